package diagnose

import (
	"encoding/json"
	"testing"
)

// Any report of other hosts' agents about their processes is handled.
func FuzzFind(f *testing.F) {
	for _, procs := range [][]Proc{
		jobOf(f, "send 1 7", "recv any 3 1 2", "coll MPI_Bcast 3 0", "event"),
		{{Proc: 1, Waits: []Wait{{What: Coll, Coll: "MPI_Bcast", CommSize: -1,
			Members: []int{0, 1, -7}}}, Queues: &Queues{Pending: 1,
			Entries: []Entry{{Kind: Announced, Peer: 1}}}}},
	} {
		text, err := json.Marshal(procs)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var procs []Proc
		if json.Unmarshal(text, &procs) != nil {
			return
		}
		for _, finding := range Find(procs) {
			if finding.Text == "" {
				t.Errorf("%+v", finding)
			}
		}
		Waits(procs)
		Ps(procs)
		Stacks(procs)
		Longest(procs)
		Hangs(procs, 1)
	})
}
