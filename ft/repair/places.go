package repair

import "slices"

// Assign assigns the places of dead members to spares. places lists, by rank of the working
// communicator, the member of the base at that rank; living lists the living members, ascending.
// Living members keep their places, the lowest spares get those of the dead, and if the spares run
// out, the remaining ranks close up. All members compute the same. The arguments are not modified.
func Assign(places, living []int) []int {
	works := make(map[int]bool, len(places))
	for _, m := range places {
		works[m] = true
	}
	var spares []int
	for _, m := range living {
		if !works[m] {
			spares = append(spares, m)
		}
	}
	var next []int
	for _, m := range places {
		if _, lives := slices.BinarySearch(living, m); lives {
			next = append(next, m)
		} else if len(spares) > 0 {
			next, spares = append(next, spares[0]), spares[1:]
		}
	}
	return next
}

// Invitation is what a process that was started late is sent: the members of the pool that it
// belongs to, and what has been decided before it came.
type Invitation struct {
	Members []int // of the pool, ascending
	Places  []int // as Assign's
	Fresh   []int // those that are invited together, in the order in which they were started
	Joined  int   // how many of those that are started late have been invited, these included
}

// invitationHead is the number of words before the lists: Joined, and the lengths of Members,
// Places and Fresh.
const invitationHead = 4

// Encode gives the words of the invitation: the head, and the lists.
func (v *Invitation) Encode() []uint64 {
	w := []uint64{uint64(v.Joined), uint64(len(v.Members)), uint64(len(v.Places)),
		uint64(len(v.Fresh))}
	for _, m := range slices.Concat(v.Members, v.Places, v.Fresh) {
		w = append(w, uint64(m))
	}
	return w
}

// DecodeInvitation reads the words of an invitation to a base of size members; false: they are
// none.
func DecodeInvitation(w []uint64, size int) (v Invitation, ok bool) {
	most := uint64(size)
	if len(w) < invitationHead || slices.Max(w[:invitationHead]) > most || w[3] == 0 {
		return v, false
	}
	n, places, fresh := w[1], w[2], w[3]
	if uint64(len(w)) != invitationHead+n+places+fresh {
		return v, false
	}
	var all []int
	for _, m := range w[invitationHead:] {
		if m >= most {
			return v, false
		}
		all = append(all, int(m))
	}
	return Invitation{Members: all[:n], Places: all[n : n+places], Fresh: all[n+places:],
		Joined: int(w[0])}, true
}
