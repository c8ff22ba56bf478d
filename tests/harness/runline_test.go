package harness

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// What make test takes instead of the numbers of make test-all, in whatever order they stand.
func TestFewOfARunLine(t *testing.T) {
	for full, want := range map[string]string{"": "[3] [b]", "full": "[1 2 40] [a 4000]"} {
		t.Setenv("SPX_TESTS", full)
		r, err := ParseRunLine(`n.few=3 args="a 4000" n=1,2,40 args.few=b`)
		if got := fmt.Sprint(r.Ranks, r.Args); err != nil || got != want {
			t.Errorf("SPX_TESTS=%s: ranks and arguments %s, want %s (%v)", full, got, want, err)
		}
	}
}

func TestParseRunLine(t *testing.T) {
	r, err := ParseRunLine(` n=1,4 args="-x \"a b\" y" env=K=V=W status=3 stderr~"MPI_ERR_\w+ here" timeout=7 spxrun=--with-ft`)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Ranks, []int{1, 4}) || !slices.Equal(r.Args, []string{"-x", "a b", "y"}) ||
		!slices.Equal(r.Env, []string{"K=V=W"}) || r.Status != 3 || r.Limit != 7*time.Second || !slices.Equal(r.Spxrun, []string{"--with-ft"}) {
		t.Errorf("ParseRunLine = %+v", r)
	}
	for _, bad := range []string{"n=0", "n=x", "colour=red", "word", `args="a`, "stdout~(", "timeout=soon"} {
		if _, err := ParseRunLine(bad); err == nil {
			t.Errorf("ParseRunLine(%q) found nothing wrong", bad)
		}
	}
}

func TestCheck(t *testing.T) {
	r, err := ParseRunLine(`n=2 status=3 stderr~^boom stdout~ok$`)
	if err != nil {
		t.Fatal(err)
	}
	good := Outcome{Status: 3, Stdout: "first\nall ok\n", Stderr: "x\nboom: 1\n"}
	if why := r.Check(good); why != "" {
		t.Errorf("Check(good) = %q", why)
	}
	for name, change := range map[string]func(*Outcome){
		"status": func(o *Outcome) { o.Status = 0 },
		"stdout": func(o *Outcome) { o.Stdout = "ok then\n" },
		"stderr": func(o *Outcome) { o.Stderr = "no boom\n" },
		"late":   func(o *Outcome) { o.Late = true },
	} {
		o := good
		change(&o)
		if r.Check(o) == "" {
			t.Errorf("Check accepts a wrong %s", name)
		}
	}
}
