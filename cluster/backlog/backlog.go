// Package backlog is a queue of messages for a consumer that takes them one at a time, in order of
// arrival. Of messages with the same key only the newest is kept, in the place of the previous one:
// periodic messages and state updates take no more room than there are keys, however slow the
// consumer. It serves the management tree of a system of clusters (MPI/SPx, section 3.4), whose
// messages pass through the agents of its hosts.
//
// It is pure, and bounds nothing that has no key: the caller adds no more unkeyed messages when
// Bytes is large enough.
package backlog

// A Queue holds messages of type M, some of which have a key. The zero value is empty.
type Queue[K comparable, M any] struct {
	list  []entry[K, M] // from the one that is taken next on
	first uint64        // its number: they are counted as they come
	at    map[K]uint64  // the number of the one that waits, by key
	bytes int
	most  int
	spare uint64
}

type entry[K comparable, M any] struct {
	m     M
	bytes int
	key   K
	keyed bool
}

// Put adds a message of so many bytes that is not to be lost.
func (q *Queue[K, M]) Put(m M, bytes int) {
	q.add(entry[K, M]{m: m, bytes: bytes})
}

// Renew adds a message that makes an earlier one with the same key needless: if one waits, this one
// takes its place. before is that one, and had its bytes.
func (q *Queue[K, M]) Renew(key K, m M, bytes int) (before M, had int, waited bool) {
	if n, waits := q.at[key]; waits {
		e := &q.list[n-q.first]
		before, had = e.m, e.bytes
		e.m, e.bytes = m, bytes
		q.bytes += bytes - had
		q.spare++
		return before, had, true
	}
	if q.at == nil {
		q.at = map[K]uint64{}
	}
	q.at[key] = q.first + uint64(len(q.list))
	q.add(entry[K, M]{m, bytes, key, true})
	return before, 0, false
}

func (q *Queue[K, M]) add(e entry[K, M]) {
	q.list = append(q.list, e)
	q.bytes += e.bytes
	q.most = max(q.most, len(q.list))
}

// Waits reports whether one with a key waits, which the next one replaces.
func (q *Queue[K, M]) Waits(key K) bool {
	_, waits := q.at[key]
	return waits
}

// Take takes the next one; false: none waits.
func (q *Queue[K, M]) Take() (m M, ok bool) {
	if len(q.list) == 0 {
		return m, false
	}
	e := q.list[0]
	q.list[0] = entry[K, M]{} // it is not kept
	q.list = q.list[1:]
	q.first++
	q.bytes -= e.bytes
	if e.keyed {
		delete(q.at, e.key)
	}
	if len(q.list) == 0 {
		q.list = nil
	}
	return e.m, true
}

// All takes all that wait.
func (q *Queue[K, M]) All() (out []M) {
	for _, e := range q.list {
		out = append(out, e.m)
	}
	q.first += uint64(len(q.list))
	q.list, q.bytes = nil, 0
	clear(q.at)
	return out
}

// Len is how many wait.
func (q *Queue[K, M]) Len() int { return len(q.list) }

// Bytes is how many bytes those have.
func (q *Queue[K, M]) Bytes() int { return q.bytes }

// Most is how many have waited at most.
func (q *Queue[K, M]) Most() int { return q.most }

// Spared is how many were replaced before they were taken.
func (q *Queue[K, M]) Spared() uint64 { return q.spare }
