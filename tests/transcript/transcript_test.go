package transcript

import (
	"os/exec"
	"slices"
	"testing"
)

const page = `Text.

    $ cat >a <<'END'
    one

      two
    END
    $ echo pid 17 on here; false
    pid 23 on node1
    ...
    $ echo $?
    1

Not a command.
`

func TestSteps(t *testing.T) {
	list := Steps("p.md", page)
	if len(list) != 3 || list[0].Command != "cat >a <<'END'\none\n\n  two\nEND" || list[0].Shows != nil || list[1].Line != 8 ||
		!slices.Equal(list[1].Shows, []string{"pid 23 on node1", "..."}) || !slices.Equal(list[2].Shows, []string{"1"}) {
		t.Errorf("%+v", list)
	}
}

// A real shell carries them out: outputs and statuses come back, a status is known to the next step, and what is missing is told.
func TestScript(t *testing.T) {
	list := Steps("p.md", page)
	cmd := exec.Command("bash", "-c", Script(list))
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	got := Outcomes(string(out))
	if len(got) != 3 || got[0].Status != 0 || got[1].Status != 1 || got[1].Output != "pid 17 on here\n" || got[2].Output != "1\n" || got[2].At < 1e9 {
		t.Fatalf("%v, %+v\n%s", err, got, out)
	}
	if !Allowed(list, 1, 1) || Allowed(list, 0, 1) || !Allowed(list, 0, 0) {
		t.Error("a status that is not zero is allowed where echo $? follows, and nowhere else")
	}
	if m := list[1].Missing(got[1].Output, "here"); m != nil {
		t.Errorf("missing: %q", m)
	}
	if m := list[1].Missing(got[1].Output, "there"); len(m) != 1 {
		t.Errorf("missing: %q", m)
	}
	if cut := Outcomes(string(out[:len(out)-3])); len(cut) != 2 {
		t.Errorf("%d steps of an output that was cut", len(cut))
	}
}
