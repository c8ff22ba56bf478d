package hosts

import "testing"

// Any text is a list of hosts with names and slots, or an error.
func FuzzParse(f *testing.F) {
	f.Add("node1\nnode2:4\nnode3 slots=8 # comment\n")
	f.Add("[fe80::1]:2\n::1\n10.0.0.1:3 max_slots = 5\n")
	f.Add(":\nnode:0\nnode:x\nnode1 node2\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(text, "hosts")
		if err != nil {
			return
		}
		for _, h := range list {
			if h.Name == "" || h.Slots < 0 || h.From == "" {
				t.Errorf("%q gives %+v", text, h)
			}
		}
	})
}
