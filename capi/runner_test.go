package main

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// drive plays the shim: it carries out what a body waits for by play, until the body is over.
func drive(t *testing.T, r *runner, now *uint32, play func(args []uint64) int64) error {
	t.Helper()
	for {
		err, ok := r.goOn(now)
		if !ok {
			t.Fatalf("the body has panicked: %s", r.crash)
		}
		var out *callOut
		if !errors.As(err, &out) {
			return err
		}
		if out.run != r || *now != 0 {
			t.Fatalf("a call-out of %v, in runner %d", out.run, *now)
		}
		r.ret = play(out.args)
	}
}

func TestARunnerGoesOnBehindItsWait(t *testing.T) {
	var now uint32
	failure := errors.New("the end")
	var r *runner
	r = newRunner(func() error {
		if now != r.id || runners.get(now) != r {
			t.Errorf("in runner %d, want %d", now, r.id)
		}
		for i := range uint64(100) {
			if got := r.callOut(0, i, 2*i); got != int64(3*i) {
				t.Fatalf("wait %d returns %d", i, got)
			}
		}
		return failure
	})
	if err := drive(t, r, &now,
		func(a []uint64) int64 { return int64(a[0] + a[1]) }); err != failure {
		t.Errorf("the body returns %v", err)
	}
	if runners.get(r.id) != nil {
		t.Error("it is over and in the table")
	}
}

// A function of the program calls MPI again while a body waits: the inner body runs on a runner of
// its own, and either may be left.
func TestRunnersNest(t *testing.T) {
	var now uint32
	var order []string
	body := func(name string) (r *runner) {
		r = newRunner(func() error {
			defer func() { order = append(order, name+" is over") }()
			r.callOut(0)
			order = append(order, name+" goes on")
			return nil
		})
		return r
	}
	outer, inner := body("outer"), body("inner")
	outer.goOn(&now)
	inner.goOn(&now)
	if !inner.end(&now) {
		t.Fatal(inner.crash)
	}
	outer.goOn(&now)
	if want := []string{"inner is over", "outer goes on", "outer is over"}; !slices.Equal(order,
		want) || now != 0 {
		t.Errorf("%v, want %v; in runner %d", order, want, now)
	}
}

// A body whose wait was left is unwound: its deferred calls run, a wait in them ends as well, and
// nothing is left.
func TestARunnerThatIsLeft(t *testing.T) {
	var now uint32
	before := runtime.NumGoroutine()
	undone, behind := 0, 0
	for range 10000 {
		var r *runner
		r = newRunner(func() error {
			defer func() { undone++ }()
			defer func() {
				r.callOut(0)
				behind++
			}()
			r.callOut(0)
			behind++
			return nil
		})
		r.goOn(&now)
		if !r.end(&now) {
			t.Fatal(r.crash)
		}
	}
	if undone != 10000 || behind != 0 {
		t.Errorf("%d of 10000 have done what they have deferred, %d have gone on", undone, behind)
	}
	for wait := time.Now(); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Since(wait) > 10*time.Second {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
	if n := runners.add(&runner{}); n > 64 {
		t.Errorf("the table has grown to %d", n)
	} else {
		runners.remove(n)
	}
}

// A panic of a body, also while it is unwound, is reported with its stack.
func TestARunnerThatPanics(t *testing.T) {
	var now uint32
	r := newRunner(func() error { panic("by itself") })
	if _, ok := r.goOn(&now); ok || !strings.Contains(r.crash, "by itself") ||
		!strings.Contains(r.crash, "TestARunnerThatPanics") {
		t.Errorf("%v %s", ok, r.crash)
	}
	r = newRunner(func() error {
		defer func() { panic("while it was unwound") }()
		r.callOut(0)
		return nil
	})
	r.goOn(&now)
	if r.end(&now) || !strings.Contains(r.crash, "while it was unwound") {
		t.Errorf("%s", r.crash)
	}
}
