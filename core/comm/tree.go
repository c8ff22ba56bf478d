package comm

import "libspx/core/mpierr"

// tree is a binomial tree over processes 0 to n-1, each of which is a rank of a link. Its root is
// process 0, and the subtree of a process is a range of consecutive processes that begins with it.
type tree struct {
	link  Link
	tag   int
	n, me int
	ranks func(i int) int // process -> rank of link
}

// newTree spans all ranks of a link of size n, with a chosen root.
func newTree(l Link, tag, n, me, root int) *tree {
	return &tree{link: l, tag: tag, n: n, me: (me - root + n) % n,
		ranks: func(i int) int { return (i + root) % n }}
}

// span is the size that the subtree of process v would have in a full tree.
func (t *tree) span() int {
	if t.me == 0 {
		s := 1
		for s < t.n {
			s *= 2
		}
		return s
	}
	return t.me & -t.me
}

func (t *tree) parent() int { return t.me & (t.me - 1) }

// bcast sends the root's payload, or its error, down to all. The root passes it in; the others'
// arguments are ignored. A process that cannot receive it sends the reason down.
func (t *tree) bcast(payload []byte, failure error) ([]byte, error) {
	if t.me != 0 {
		payload, failure = recv(t.link, t.ranks(t.parent()), t.tag)
	}
	var undelivered error
	for s := t.span() / 2; s > 0; s /= 2 {
		if t.me+s < t.n {
			undelivered = firstError(undelivered,
				send(t.link, t.ranks(t.me+s), t.tag, payload, failure))
		}
	}
	return payload, firstError(failure, undelivered)
}

// gather collects one block of the same size from each process at the root, in the order of the
// processes. If a process passes in an error, or cannot be reached, the root gets an error instead.
func (t *tree) gather(block []byte, failure error) ([]byte, error) {
	size := len(block)
	all := append([]byte(nil), block...)
	for s := 1; s < t.span(); s *= 2 {
		child := t.me + s
		if child >= t.n {
			break
		}
		blocks, err := recv(t.link, t.ranks(child), t.tag)
		if err == nil && len(blocks) != size*min(s, t.n-child) {
			err = mpierr.New(mpierr.Intern, "a gather of the engine got %d bytes", len(blocks))
		}
		failure = firstError(failure, err)
		all = append(all, blocks...)
	}
	if t.me == 0 {
		return all, failure
	}
	return nil, firstError(send(t.link, t.ranks(t.parent()), t.tag, all, failure), failure)
}
