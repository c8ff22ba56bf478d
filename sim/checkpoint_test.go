package sim

import (
	"flag"
	"testing"
)

var checkpointSeed = flag.Uint64("checkpoint-seed", 0, "the seed of the one job that TestCheckpoints shall run")

// Whoever dies and whichever call is left at any step: who lives goes on from what all have saved
// in one attempt, and no older than what was committed.
func TestCheckpoints(t *testing.T) {
	from, to := uint64(1), uint64(3000)
	if testing.Short() {
		to = 1000
	}
	if *checkpointSeed != 0 {
		from, to = *checkpointSeed, *checkpointSeed
	}
	for seed := from; seed <= to; seed++ {
		j := RandomCheckpoints(seed)
		if err := RunCheckpoints(j); err != nil {
			t.Fatalf("seed %d: %v\n%+v\nagain: go test ./sim -run TestCheckpoints -checkpoint-seed %[1]d", seed, err, j)
		}
	}
}

// What the machine counts on is needed: a shell that does not do it is caught. tests/mutants has
// bugs in the machine.
func TestCheckpointDefects(t *testing.T) {
	for name, defect := range map[string]CheckpointDefect{"nothing is revoked": {NoRevoke: true}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2000) {
				j := RandomCheckpoints(seed)
				j.Defect = defect
				if err := RunCheckpoints(j); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no job shows it")
		})
	}
}
