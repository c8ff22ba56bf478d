package follow

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"libspx/ft/replica"
	"libspx/launch/job"
)

// hostsOf are hosts that keep the sequence of a job's events; messages between them arrive at once.
type hostsOf struct {
	t      *testing.T
	agents []*replica.Machine
	copies []*Copy
	told   [][]string // by host: what its copy has decided
	lost   map[int]bool
	now    int64
}

func (h *hostsOf) do(host int, e replica.Event) {
	h.t.Helper()
	out, err := h.agents[host].Step(e, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, act := range out {
		if s, ok := act.(replica.Send); ok && !h.lost[s.Message.From] && !h.lost[s.Message.To] {
			m, err := replica.Decode(s.Message.Encode())
			if err != nil {
				h.t.Fatal(err)
			}
			h.do(m.To, replica.Received{Message: m})
		}
	}
}

func (h *hostsOf) happened(host int, e job.Event) {
	h.t.Helper()
	h.do(host, replica.Propose{Data: job.EncodeEvent(e)})
}

func (h *hostsOf) wait(periods int) {
	for range periods {
		h.now += int64(50 * time.Millisecond)
		for i := range h.agents {
			if !h.lost[i] {
				h.do(i, replica.Tick{})
			}
		}
	}
}

// The host whose agent decides is lost with its process, while another process ends, of which only
// the lost host was told: the others decide what that means, all the same, and the job comes to its
// end.
func TestHostThatDecidesIsLost(t *testing.T) {
	h := &hostsOf{t: t, told: make([][]string, 3), lost: map[int]bool{}}
	cfg := job.Config{Host: "a", Procs: 3, OnDeath: job.Continue, Detach: true}
	for i := range 3 {
		c := New(cfg, func(_ job.Event, out []job.Action, _ replica.Entry) {
			if len(out) > 0 {
				h.told[i] = append(h.told[i], fmt.Sprintf("%+v", out))
			}
		})
		h.copies = append(h.copies, c)
		h.agents = append(h.agents,
			replica.New(replica.Config{Self: i, First: []int{0, 1, 2}, Seed: uint64(i), State: c}))
	}
	h.wait(1)
	for i := range 3 {
		h.happened(i, job.Started{Proc: i, Pid: 100 + i, Host: string(rune('a' + i))})
	}
	h.happened(0, job.AllStarted{})
	h.lost[0] = true
	// the offer is lost with the host
	h.happened(2, job.Ended{Proc: 2, Owner: job.OwnerFinalized, Wait: job.Wait{Code: 0},
		OtherMPI: true})
	h.wait(40)
	lead := 1
	if h.agents[2].Leads() {
		lead = 2
	}
	h.happened(lead, job.Ended{Proc: 0, Owner: job.OwnerInit, Wait: job.Wait{Signal: job.SIGKILL},
		Fault: job.FaultHost, OtherMPI: true})
	// and so it has seen another one
	h.happened(lead, job.Ended{Proc: 0, Owner: job.OwnerInit, Wait: job.Wait{Signal: job.SIGKILL},
		Fault: job.FaultHost, OtherMPI: true})
	h.happened(1, job.Ended{Proc: 1, Owner: job.OwnerFinalized, Wait: job.Wait{Code: 7},
		OtherMPI: true})
	want := []string{
		"[{Proc:2 Dead:false Wait:{Code:0 Signal:0 Core:false Unknown:false Memory:0}}]",
		"[{Proc:0 Dead:true Wait:{Code:0 Signal:9 Core:false Unknown:false Memory:0}} " +
			"{Text:rank 0 (pid 100 on a) was killed by signal 9 (SIGKILL); the other one is " +
			"told and goes on.}]",
		"[{Proc:1 Dead:false Wait:{Code:7 Signal:0 Core:false Unknown:false Memory:0}} " +
			"{Text:rank 1 (pid 101 on b) exited with status 7 after MPI_Finalize; exit status " +
			"7.} {Status:7}]",
	}
	for _, i := range []int{1, 2} {
		if d := cmp.Diff(want, h.told[i]); d != "" {
			t.Errorf("host %d: (-want +got)\n%s", i, d)
		}
	}
	if len(h.told[0]) > 0 {
		t.Errorf("the lost host has decided %q", h.told[0])
	}
}
