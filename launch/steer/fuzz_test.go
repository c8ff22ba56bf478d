package steer

import (
	"testing"

	"libspx/core/diagnose"
	"libspx/launch/service"
)

// What an agent answers is shown to a user: texts in it are plain.
func FuzzAnswer(f *testing.F) {
	f.Add(`[{"proc":1,"waits":[{"call":"MPI_Recv\u001b[2J"}]}]`)
	f.Add(`{"job":"x","system":{"layout":{"a":1},"parts":[{"name":"\u202e"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var procs []diagnose.Proc
		if decode(text, &procs) == nil {
			for _, p := range procs {
				if p.End != Plain(p.End) {
					t.Errorf("%q", p.End)
				}
			}
		}
		var about service.About
		if decode(text, &about) == nil && about.Program != Plain(about.Program) {
			t.Errorf("%q", about.Program)
		}
	})
}
