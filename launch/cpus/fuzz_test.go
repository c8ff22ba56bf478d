package cpus

import (
	"strings"
	"testing"
)

// The kernel's lists of processors and its quotas, from any text.
func FuzzKernelText(f *testing.F) {
	f.Add("0-3,8")
	f.Add("")
	f.Add("5-2,-1,a-b,1-")
	f.Add("0-4000000000")
	f.Add("max 100000")
	f.Add("150000 100000")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range ParseList(text) {
			if c < 0 || c > most {
				t.Errorf("%q has the processor %d", text, c)
			}
		}
		if r := ratio(strings.Fields(text)); r < 0 {
			t.Errorf("%q is a quota of %v processors", text, r)
		}
	})
}
