package sim

import (
	"math/rand/v2"
	"testing"
)

func randomLogs(seed uint64) Logs {
	rnd := rand.New(rand.NewPCG(seed, 2))
	return Logs{Ranks: 1 + rnd.IntN(3), Standbys: rnd.IntN(4), Kills: rnd.IntN(4), Seed: seed}
}

// Processes are killed while standbys open the logs: no rank goes on before all living standbys have
// its log, and none waits for ever.
func TestLogs(t *testing.T) {
	for seed := range uint64(*schedules) {
		if l := randomLogs(seed); RunLogs(l) != nil {
			t.Fatalf("seed %d: %v, of %+v", seed, RunLogs(l), l)
		}
	}
}

func TestLogsDefects(t *testing.T) {
	for name, defect := range map[string]LogsDefect{
		"a pid is taken for the process":      {NoRuns: true},
		"a rank does not wait for others":     {Hasty: true},
		"a rank counts those that have ended": {Counts: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20000) {
				l := randomLogs(seed)
				l.Defect = defect
				if err := RunLogs(l); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no cluster shows it")
		})
	}
}
