package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

// The host of a job falls silent, whose processes are connected with those of another one, or about to be (MPI-5.0, 11.9 and 11.10). No call of the other job waits for it for ever: not one that talks, that parts, that waits at a port,
// that has called MPI_Comm_join over a socket, nor one that connects when all is silent. The socket is as it was.
func TestPortsSilent(t *testing.T) {
	b := newBed(t, 2)
	silent, dir := program(t, "ports_silent"), b.Dir()
	var keeps, calls harness.Outcome
	var both sync.WaitGroup
	run := func(on int, n int, what string) harness.Command {
		c := b.spxrunOn(on, slices.Repeat([]int{on}, n), "--more-hosts", silent, what, dir, b.host(1))
		c.Limit = time.Minute
		return c
	}
	k, c := run(1, 4, "keep"), run(2, 4, "call")
	both.Go(func() { keeps = harness.Run(t, k) })
	both.Go(func() { calls = harness.Run(t, c) })
	ended := func() {
		for r := range 4 {
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("end.%d", r)), nil, 0o666) //nolint:errcheck // the job ends at its limit then
		}
		both.Wait()
	}
	for r := range 4 {
		for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("ready.%d", r))); err == nil {
				break
			}
			if time.Since(began) > harness.Patience(30*time.Second) {
				ended()
				t.Fatalf("rank %d is not there\n%s\n%s", r, keeps.Text(), calls.Text())
			}
		}
	}
	b.ip(unplug(1))
	late := harness.Run(t, run(2, 1, "late"))
	ended()
	want := []string{"connect: MPI_ERR_PORT", "disconnect: MPI_SUCCESS", "disconnect: MPI_SUCCESS", "join: MPI_ERR_OTHER", "receive: MPIX_ERR_PROC_FAILED", "the socket: 77, 0, 0"}
	if got := harness.Lines(calls.Stdout); calls.Status != 0 || calls.Late || !slices.Equal(got, want) {
		t.Errorf("want %q\n%s\nthe other one:\n%s", want, calls.Text(), keeps.Text())
	}
	if late.Status != 0 || late.Late || late.Stdout != "late: MPI_ERR_PORT\n" {
		t.Errorf("%s", late.Text())
	}
	b.nothingLeft(t)
}
