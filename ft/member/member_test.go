package member

import (
	"encoding/binary"
	"testing"

	"libspx/ft/agree"
	"libspx/ft/place"
	"libspx/ft/rankset"
)

// For arbitrary bytes of other members: no panic; a refused message has no effect; and no agreement
// is created for a number out of reach, so that no sender can make the machine grow.
func FuzzReceive(f *testing.F) {
	const n = 4
	places := place.New(n, []int{0, 1, 0, 1}, 0, 0)
	other := New(places, 1, rankset.Set{})
	for _, s := range append(other.Agree(agree.Contribution{Flags: 1}).Sends,
		other.Revoke().Sends...) {
		f.Add(s.Data, 1, uint8(1))
	}
	f.Add([]byte{kindRevoke}, 3, uint8(0))
	f.Add(binary.AppendUvarint([]byte{kindAgree}, 1<<63), 2, uint8(5))
	f.Add([]byte{}, -1, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, from int, calls uint8) {
		m := New(places, 0, rankset.Set{})
		for range calls % 4 {
			m.Agree(agree.Contribution{Flags: 1})
		}
		revoked := m.Revoked()
		out, err := m.Receive(from, data)
		if err != nil && (len(out.Sends) > 0 || out.Done != nil || m.Revoked() != revoked) {
			t.Errorf("%x of rank %d is refused (%v), and has the effect %+v", data, from, err, out)
		}
		for num := range m.agrees {
			if num > m.running+1 {
				t.Errorf("%x of rank %d makes agreement %d of %d", data, from, num, m.running)
			}
		}
		for _, s := range out.Sends {
			if s.To < 0 || s.To >= n {
				t.Errorf("%x is answered to rank %d", data, s.To)
			}
		}
		m.Failed(rankset.Of(1, 2, 3))
	})
}
