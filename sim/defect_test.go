package sim

import "testing"

// What the machines of ft count on is needed: a shell around them that does not do it is caught. tests/mutants has bugs in the machines.
func TestDefects(t *testing.T) {
	for name, defect := range map[string]Defect{
		"a host without contact goes on":               {NoFence: true},
		"messages of a fenced process are taken":       {NoDrop: true},
		"messages for a communicator to come are lost": {NoEarly: true},
		"new processes are greeted by one alone":       {NoWelcome: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20000) {
				job := RandomJob(seed)
				job.Defect = defect
				if _, err := RunJob(job); err != nil {
					t.Logf("seed %d: %v", seed, err)
					least := job.Shrink()
					if _, err := RunJob(least); err == nil || len(least.Faults) > len(job.Faults) {
						t.Errorf("the least of it is no example:\n%s", least.Text())
					}
					return
				}
			}
			t.Error("no schedule shows it")
		})
	}
}
