package agent

import (
	"testing"
	"time"

	"libspx/launch/job"
	"libspx/launch/service"
)

// A tool's question is answered once: in its turn, or before what came earlier when that has kept
// it waiting. Other questions keep their places.
func TestToolsDoNotWait(t *testing.T) {
	var b inbox
	if err := b.open(); err != nil {
		t.Fatal(err)
	}
	ask := func(kind service.Kind, world uint32) {
		b.ask(&question{&service.Message{Kind: kind, World: world, FD: -1}, noClient{}})
	}
	b.put(job.Tick{})
	if b.put(pinged(7)); b.ping.Swap(0) != 7 || b.ping.Load() != 0 {
		t.Error("spxrun's question is not there at once, and once")
	}
	ask(service.Describe, service.Waits)
	ask(service.Order, service.Waits) // changes something
	ask(service.Hosts, 0)             // a process asks
	ask(service.Inspect, service.Waits)
	soon, late := time.Now, func() time.Time { return time.Now().Add(2 * attention) }
	if l := b.overdue(soon); l != nil {
		t.Errorf("question %d is answered before its turn", l.Kind)
	}
	if l := b.overdue(late); l == nil || l.Kind != service.Describe {
		t.Errorf("%+v is answered first", l)
	}
	list := b.take()
	if len(list) != 6 || list[1] != pinged(7) { // other loops answer it in its turn

		t.Fatalf("%d events", len(list))
	}
	if b.answers(list[2].(*looking)) {
		t.Error("the same question is answered twice")
	}
	for i, kind := range map[int]service.Kind{3: service.Order, 4: service.Hosts} {
		if q, ok := list[i].(*question); !ok || q.Kind != kind {
			t.Errorf("event %d is %+v", i, list[i])
		}
	}
	if !b.answers(list[5].(*looking)) {
		t.Error("the last question is not answered")
	}
	if l := b.overdue(late); l != nil {
		t.Errorf("question %d is answered again", l.Kind)
	}
}
