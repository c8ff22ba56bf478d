package comm

import "encoding/binary"

// Exchange brings blocks of any size from all processes to rank 0, whose answer turns them, in the
// order of ranks, into one block for each process. Collective over the local group of c. failure,
// if not nil, is an error of this process: all get it instead of a block.
func (c *Comm) Exchange(block []byte, failure error,
	answer func(blocks [][]byte) ([][]byte, error)) ([]byte, error) {
	t := c.localTree(c.nextTag(), 0)
	all, err := t.collect(block, failure)
	var out [][]byte
	if t.me == 0 && err == nil {
		out, err = answer(all)
	}
	mine, err := t.deal(out, err)
	return mine, firstError(failure, err)
}

// DupWith is Exchange and then Dup, in which all take part whatever became of the exchange: some
// may have their block, and wait in the second round for one that has none.
func (c *Comm) DupWith(ids *Contexts, block []byte, failure error,
	answer func(blocks [][]byte) ([][]byte, error)) (*Made, []byte, error) {
	mine, err := c.Exchange(block, failure, answer)
	m, err := c.Dup(ids, err)
	return m, mine, err
}

// collect is gather for blocks of different sizes: each travels behind its length (4 bytes). The
// root gets them by process.
func (t *tree) collect(block []byte, failure error) ([][]byte, error) {
	all := frame(nil, block)
	for s := 1; s < t.span() && t.me+s < t.n; s *= 2 {
		blocks, err := recv(t.link, t.ranks(t.me+s), t.tag)
		failure = firstError(failure, err)
		all = append(all, blocks...)
	}
	if t.me == 0 {
		if failure != nil {
			return nil, failure
		}
		return unframe(all, t.n)
	}
	return nil, firstError(send(t.link, t.ranks(t.parent()), t.tag, all, failure), failure)
}

// deal gives each process its block of those that the root passes in, or the root's error.
func (t *tree) deal(blocks [][]byte, failure error) ([]byte, error) {
	if t.me != 0 {
		all, err := recv(t.link, t.ranks(t.parent()), t.tag)
		if failure = err; err == nil {
			blocks, failure = unframe(all, min(t.span(), t.n-t.me))
		}
	}
	var undelivered error
	for s := t.span() / 2; s > 0; s /= 2 {
		if t.me+s >= t.n {
			continue
		}
		var part []byte
		if failure == nil {
			for _, b := range blocks[s:min(2*s, len(blocks))] {
				part = frame(part, b)
			}
		}
		undelivered = firstError(undelivered, send(t.link, t.ranks(t.me+s), t.tag, part, failure))
	}
	if failure != nil {
		return nil, failure
	}
	return blocks[0], undelivered
}

func frame(to, block []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(to, uint32(len(block))), block...)
}

// unframe splits what frame put together; there must be n blocks.
func unframe(b []byte, n int) ([][]byte, error) {
	out := make([][]byte, 0, n)
	for len(b) >= 4 {
		size := int64(binary.LittleEndian.Uint32(b))
		if b = b[4:]; size > int64(len(b)) {
			return nil, errShort
		}
		out = append(out, b[:size:size])
		b = b[size:]
	}
	if len(b) != 0 || len(out) != n {
		return nil, errShort
	}
	return out, nil
}
