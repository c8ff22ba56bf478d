package agent

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"testing"

	"libspx/launch/control"
	"libspx/launch/reach"
)

// sentBy takes what was put into an outbox.
type sentBy struct{ list []*control.Message }

func (s *sentBy) Send(m *control.Message) error      { s.list = append(s.list, m); return nil }
func (s *sentBy) Receive() (*control.Message, error) { return nil, io.EOF }
func (s *sentBy) Close() error                       { return nil }
func (s *sentBy) numbers() (out []int) {
	for _, m := range s.list {
		out = append(out, m.Relayed.Index)
	}
	return out
}

// A passage brings what came before its end, and then how it has ended; what is sent goes by the
// agent in between, by number.
func TestPassage(t *testing.T) {
	var box outbox
	by := &sentBy{}
	box.start(by)
	var p passages
	first, second := p.to(&box, 1), p.to(&box, 7)
	if p.to(&box, 7) != second || !p.known(1) || p.known(2) {
		t.Error("a passage was made twice, or not at all")
	}
	first.take(&control.Relayed{Index: 1, Message: &control.Message{Ping: 3}})
	second.take(&control.Relayed{Index: 7, End: &control.Ending{How: "it was killed", Changed: true,
		Quiet: true}})
	if m, err := first.Receive(); err != nil || m.Ping != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := second.Receive(); !errors.Is(err, errChanged) || second.how() != "it was killed" {
		t.Errorf("%v, %q", err, second.how())
	}
	if !(&remoteHost{conn: second}).wasQuiet() || (&remoteHost{conn: first}).wasQuiet() {
		t.Error("which of them had been quiet is not known")
	}
	if second.Send(&control.Message{Ping: 1}) == nil {
		t.Error("a message was sent to who has gone")
	}
	if err := first.Send(&control.Message{Ping: 1}); err != nil {
		t.Error(err)
	}
	first.take(&control.Relayed{Index: 1, Message: &control.Message{Ping: 4}})
	p.lose("the one in between is lost")
	if m, err := first.Receive(); err != nil || m.Ping != 4 {
		t.Errorf("what had come before: %+v, %v", m, err)
	}
	if _, err := first.Receive(); err != io.EOF || first.how() != "the one in between is lost" ||
		second.how() != "it was killed" {
		t.Errorf("%v, %q, %q", err, first.how(), second.how())
	}
	if late := p.to(&box, 9); late.how() != "the one in between is lost" {
		t.Errorf("one that is made later: %q", late.how())
	}
	third := (&passages{}).to(&box, 3)
	third.Close()
	third.Close()
	if _, err := third.Receive(); err != io.EOF || third.Send(&control.Message{}) == nil {
		t.Errorf("it was closed: %v", err)
	}
	box.close()
	<-box.done
	if got := by.numbers(); !slices.Equal(got, []int{1, 3}) || !by.list[1].Relayed.Kill {
		t.Errorf("sent for %v", got)
	}
}

// Hosts that come one after another get their rows and columns in the table of addresses; who was
// there before with one address for all has that for those before.
func TestPairsGrow(t *testing.T) {
	at := func(text string) netip.Addr {
		if text == "" {
			return netip.Addr{}
		}
		return netip.MustParseAddr(text)
	}
	list := func(texts ...string) (out []netip.Addr) {
		for _, x := range texts {
			out = append(out, at(x))
		}
		return out
	}
	var p places
	known := func(texts ...string) (out []reach.Known) {
		for _, x := range list(texts...) {
			out = append(out, reach.Known{At: x})
		}
		return out
	}
	// 0 and 1 are in the first network, 1 and 2 in the second one. 3 was not taken the first time;
	// then it is in the first one; 4 is in the second, when 0 has gone.
	p.add(2, at("10.2.0.2"), known("10.1.0.0", "10.1.0.1"), []int{0, 1}, list("", "10.2.0.2"),
		list("", "10.2.0.1"))
	p.add(3, at("10.9.9.9"), known("10.1.0.0", "10.1.0.1", "10.2.0.2"), []int{0, 1, 2},
		list("10.9.9.9", "", ""), list("10.1.0.0", "", ""))
	p.add(3, at("10.1.0.3"), known("10.1.0.0", "10.1.0.1", "10.2.0.2"), []int{0, 1, 2},
		list("10.1.0.3", "10.1.0.3", ""), list("10.1.0.0", "10.1.0.1", ""))
	p.add(4, at("10.2.0.4"), known("10.1.0.1", "10.2.0.2", "10.1.0.3"), []int{1, 2, 3},
		list("10.2.0.4", "10.2.0.4", ""), list("10.2.0.1", "10.2.0.2", ""))
	want := [][]netip.Addr{
		list("10.1.0.0", "10.1.0.0", "", "10.1.0.0", ""),
		list("10.1.0.1", "10.1.0.1", "10.2.0.1", "10.1.0.1", "10.2.0.1"),
		list("", "10.2.0.2", "10.2.0.2", "", "10.2.0.2"),
		list("10.1.0.3", "10.1.0.3", "", "10.1.0.3", ""),
		list("10.2.0.4", "10.2.0.4", "10.2.0.4", "", "10.2.0.4"),
	}
	for i := range want {
		if !slices.Equal(p.pairs[i], want[i]) {
			t.Errorf("host %d is called at %v, not %v", i, p.pairs[i], want[i])
		}
	}
	a := &agent{places: p}
	if got := a.seen(4, 1, netip.MustParseAddrPort("10.1.0.1:80")); got.String() != "10.2.0.1:80" {
		t.Errorf("host 4 calls %v", got)
	}
	if a.seen(0, 2, netip.MustParseAddrPort("10.2.0.2:80")).IsValid() || a.meets(0, 2) ||
		!a.meets(1, 2) {
		t.Error("there is a way where there is none, or none where there is one")
	}
}
