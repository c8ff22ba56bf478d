package agent

import (
	"io"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"libspx/launch/control"
)

// An agent that comes to decide calls those that keep copies, and those that have lost the one
// above them with the one before; it reaches others as the one before did, through those that are
// there; and what it was not told of, or cannot be, is not there.
func TestWaysTo(t *testing.T) {
	at := func(list ...int) (out []netip.AddrPort) {
		for _, n := range list {
			// port 0: valid, too
			out = append(out, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}),
				uint16(n)))
		}
		return out
	}
	var none netip.AddrPort
	// 0 has led, on its own hosts 0 and 1; 2 and 3 are a cluster, 4 to 6 another one, 7 and 8 one
	// that has gone, 9 is alone.
	m := &control.Mesh{At: at(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), Members: []int{0, 2, 4, 9}, From: 0,
		By: []int{0, 0, 0, 2, 0, 4, 4, -1, -1, 0}, Home: []int{0, 0, 2, 2, 4, 4, 4, 7, 7, 9}}
	m.At[7], m.At[8] = none, none
	want := func(self, before int, way []access, by []int) {
		t.Helper()
		var out []route
		for n := range way {
			out = append(out, route{way[n], by[n], m.Home[n]})
		}
		if d := cmp.Diff(out, waysTo(m, len(way), self, before),
			cmp.AllowUnexported(route{})); d != "" {
			t.Errorf("%d in the place of %d: (-want +got)\n%s", self, before, d)
		}
	}
	want(2, 0, []access{noWay, calls, noWay, behind, calls, behind, behind, noWay, noWay, calls},
		[]int{0, 0, 0, 2, 0, 4, 4, 0, 0, 0})
	want(9, 0, []access{noWay, calls, calls, behind, calls, behind, behind, noWay, noWay, noWay},
		[]int{0, 0, 0, 2, 0, 4, 4, 0, 0, 0})
	// 2 has decided for a moment, and has told nothing: those behind it have lost it, those of 0
	// may wait still.
	want(9, 2, []access{calls, calls, noWay, calls, calls, behind, behind, noWay, noWay, noWay},
		[]int{0, 0, 0, 0, 0, 4, 4, 0, 0, 0})
	// The host in between is not there, or the one that it has led is not reached.
	m.Members, m.At[1] = []int{0, 2, 9}, none
	want(2, 0, []access{noWay, noWay, noWay, behind, calls, behind, behind, noWay, noWay, calls},
		[]int{0, 0, 0, 2, 0, 4, 4, 0, 0, 0})
	m.By[4] = -1
	want(2, 0, []access{noWay, noWay, noWay, behind, noWay, noWay, noWay, noWay, noWay, calls},
		[]int{0, 0, 0, 2, 0, 0, 0, 0, 0, 0})
	// What cannot be.
	for _, m := range []*control.Mesh{{}, {By: []int{3, 1 << 40, -7}, Home: []int{-1, 1 << 40},
		Members: []int{1 << 40}}, {By: []int{0, 2, 1}}} {
		for n, r := range waysTo(m, 3, 1, 7) {
			if r != (route{home: n}) && m.By[n] != 1 {
				t.Errorf("host %d of %+v: %+v", n, m, r)
			}
		}
	}
}

// What agents behind one hand up, which has come to decide, ends there, and what is for them is
// handed down, as between two agents. Who has ended is not behind it any more, nor who is not of
// the job.
func TestDecidesHere(t *testing.T) {
	a := newAgent(&control.Job{}, nil)
	c := &company{job: []int{0, 3, 0, 4}, hosts: []*remoteHost{nil, newRemoteHost(1, "m"),
		newRemoteHost(2, "n"), newRemoteHost(3, "o")}}
	sent := map[int]*sentBy{}
	for n, h := range c.hosts[1:] {
		h.link, h.conn, sent[n+1] = &link{}, &sentBy{}, &sentBy{}
		h.box.start(sent[n+1])
	}
	if a.company.behindHere() != nil {
		t.Error("hosts behind one that is alone")
	}
	a.company = c
	if d := cmp.Diff([]control.Behind{{Host: 3, Index: 1}, {Host: 4, Index: 3}},
		c.behindHere()); d != "" {
		t.Error(d)
	}
	a.decidesHere()
	way := c.behind.to(toBehind{a}, 1)
	c.handUp(&control.Relayed{Index: 1, Message: &control.Message{Ping: 5}})
	c.ends(1)
	c.handUp(&control.Relayed{Index: 1, End: &control.Ending{How: "it has ended"}})
	if m, err := way.Receive(); err != nil || m.Ping != 5 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := way.Receive(); err != io.EOF || way.how() != "it has ended" {
		t.Errorf("%v, %q", err, way.how())
	}
	if list := c.behindHere(); !slices.Equal(list, []control.Behind{{Host: 4, Index: 3}}) {
		t.Errorf("%+v", list)
	}
	if err := c.behind.to(toBehind{a}, 3).Send(&control.Message{Ping: 6}); err != nil {
		t.Error(err)
	}
	c.hosts[3].box.close()
	<-c.hosts[3].box.done
	if list := sent[3].list; len(list) != 1 || list[0].Ping != 6 {
		t.Errorf("%+v", list)
	}
	(fromBehind{a}).put(&control.Message{Ping: 1}) // nothing that was handed on
}
