package agent

import (
	"slices"
	"testing"

	"libspx/launch/job"
	"libspx/launch/service"
)

// Where processes go whose hosts are lost: to near hosts with a slot free, then to others; without
// one nowhere or, if that does not count, where there is the least to do.
func TestRehost(t *testing.T) {
	lost := candidate{slots: 4, lost: true}
	for name, c := range map[string]struct {
		was             []int
		hosts           []candidate
		together, crowd bool
		want            []int
	}{
		"nothing is lost": {was: []int{1, 1},
			hosts: []candidate{{slots: 1}, {slots: 1}}, want: []int{1, 1}},
		"the lost ones alone move": {was: []int{0, 1, 2},
			hosts: []candidate{{slots: 1}, lost, {slots: 2}}, want: []int{0, 2, 2}},
		"those that stay have their slots": {was: []int{0, 1},
			hosts: []candidate{{slots: 1}, lost}},
		"others have taken the slot": {was: []int{1},
			hosts: []candidate{{slots: 2, load: 2}, lost}},
		"no slots are said of a host": {was: []int{1}, hosts: []candidate{{}, lost}, crowd: true},
		"the nearest": {was: []int{0},
			hosts: []candidate{lost, {slots: 9, far: 2}, {slots: 1, far: 0}, {slots: 1, far: 1}},
			want:  []int{2}},
		"near ones are full": {was: []int{0},
			hosts: []candidate{lost, {slots: 9, far: 2}, {slots: 1, load: 1}, {slots: 1, far: 1}},
			want:  []int{3}},
		"as near: that with more room": {was: []int{0},
			hosts: []candidate{lost, {slots: 2, load: 1}, {slots: 2}}, want: []int{2}},
		"crowd, where there is room": {was: []int{0},
			hosts: []candidate{lost, {slots: 4, load: 4}, {slots: 1, far: 2}}, crowd: true,
			want: []int{2}},
		"crowd, without room": {was: []int{0},
			hosts: []candidate{lost, {slots: 1, load: 1, far: 1}, {slots: 4, load: 5, far: 1},
				{slots: 1, load: 1}}, crowd: true, want: []int{3}},
		"together, although one could stay": {was: []int{0, 1},
			hosts: []candidate{{slots: 1}, lost, {slots: 1}, {slots: 2, far: 2}}, together: true,
			want: []int{3, 3}},
		"together, and no host has room": {was: []int{1, 1},
			hosts: []candidate{{slots: 1}, lost, {slots: 1}}, together: true},
		"all are lost": {was: []int{0, 1}, hosts: []candidate{lost, lost},
			crowd: true},
	} {
		before := slices.Clone(c.hosts)
		if got, ok := rehost(c.was, c.hosts, c.together, c.crowd); ok != (c.want != nil) || ok &&
			!slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, not %v", name, got, ok, c.want)
		}
		if !slices.Equal(before, c.hosts) {
			t.Errorf("%s: what is known of the hosts has changed", name)
		}
	}
}

// A part that could not be started since some host was lost meanwhile is started again, whether it
// was to run there or not; one that could not for another reason is not.
func TestStartedAgainForAnyLoss(t *testing.T) {
	for _, lost := range []bool{true, false} {
		a, h := twoHosts(t, 0)
		if err := a.inbox.open(); err != nil {
			t.Fatal(err)
		}
		n := a.asksFor(1)
		h.gone = lost
		// it has no end
		n.Send(&service.Message{Class: 1, Text: "it is not there"}) //nolint:errcheck
		list := a.inbox.take()
		if len(list) != 1 || list[0].(job.NotRestarted).Again != lost {
			t.Errorf("lost=%v: %v", lost, list)
		}
	}
}
