package comm

import (
	"cmp"
	"encoding/binary"
	"slices"

	"libspx/core/group"
	"libspx/core/mpierr"
)

// localTree spans the local group of c, rooted at a rank of it.
func (c *Comm) localTree(tag, root int) *tree {
	return newTree(c.LocalLink, tag, c.Group().Size(), c.Rank, root)
}

// Edge is a neighbour in the tree along which a new context travels.
type Edge struct {
	Remote bool // Rank counts in the remote group of an intercommunicator
	Rank   int
}

// DupTree is this process's place in the duplication of a communicator: the process from which it
// gets the new context (nil: it decides), and those to which it sends it. The message has the tag
// given and the form of EncodeContext. MPI_Comm_idup follows it in the background.
type DupTree struct {
	Tag      int
	Parent   *Edge
	Children []Edge
}

// NewDupTree numbers a duplication and returns this process's place in it.
func (c *Comm) NewDupTree() DupTree {
	t := c.localTree(c.nextTag(), 0)
	d := DupTree{Tag: t.tag}
	switch {
	case t.me != 0:
		d.Parent = &Edge{Rank: t.ranks(t.parent())}
	case c.Inter() && !c.First:
		d.Parent = &Edge{Remote: true, Rank: 0}
	case c.Inter():
		d.Children = append(d.Children, Edge{Remote: true, Rank: 0})
	}
	for s := t.span() / 2; s > 0; s /= 2 {
		if t.me+s < t.n {
			d.Children = append(d.Children, Edge{Rank: t.ranks(t.me + s)})
		}
	}
	return d
}

// ContextWire is the length in bytes of a context as it travels along a DupTree.
const ContextWire = 16

// EncodeContext returns the message of a DupTree: an error class (4 bytes), nothing (4 bytes), the
// context (8 bytes).
func EncodeContext(ctx uint64, failure error) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(mpierr.ClassOf(failure)))
	return binary.LittleEndian.AppendUint64(b, ctx)
}

// DecodeContext reads the message of a DupTree.
func DecodeContext(b []byte) (uint64, error) {
	if len(b) != ContextWire {
		return 0, errShort
	}
	err := ClassError(binary.LittleEndian.Uint32(b),
		"the communicator cannot be duplicated: a process that decides it is dead or unreachable")
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[8:]), nil
}

func (c *Comm) linkOf(e Edge) Link {
	if e.Remote {
		return c.Link
	}
	return c.LocalLink
}

// Dup agrees on the context of a duplicate (MPI_Comm_dup). failure, if not nil, is an error of this
// process in what came before: it gets no context, nor do those to which it would send it.
// Collective over c.
func (c *Comm) Dup(ids *Contexts, failure error) (*Made, error) {
	d := c.NewDupTree()
	var ctx uint64
	if d.Parent == nil {
		ctx = ids.TakeLike(c)
	} else {
		var b [ContextWire]byte
		n, err := c.linkOf(*d.Parent).Recv(d.Parent.Rank, d.Tag, b[:])
		if err == nil {
			ctx, err = DecodeContext(b[:n])
		}
		failure = firstError(failure, err)
	}
	for _, e := range d.Children {
		err := c.linkOf(e).Send(e.Rank, d.Tag, EncodeContext(ctx, failure))
		failure = firstError(failure, err)
	}
	if failure != nil {
		return nil, failure
	}
	return c.LiteDup(ctx), nil
}

// LiteDup is a duplicate of c with another context.
func (c *Comm) LiteDup(ctx uint64) *Made {
	m := &Made{Ctx: ctx, Local: c.Group(), Rank: c.Rank, First: c.First}
	if c.Inter() {
		m.Remote = c.RemoteGroup()
	}
	return m
}

// checkSubset makes sure that all members of g are in the local group of c.
func (c *Comm) checkSubset(g *group.Group) error {
	if out := group.Difference(g, c.Group()); out.Size() > 0 {
		return mpierr.New(mpierr.Group,
			"%d of the group's %d members are not in the communicator's group, the first is %v",
			out.Size(), g.Size(), out.At(0))
	}
	return nil
}

// Create makes a communicator of the members of g (MPI_Comm_create). Collective over c, whose
// processes may pass different groups if these are disjoint; processes outside get nil at once.
func (c *Comm) Create(ids *Contexts, g *group.Group) (*Made, error) {
	tag := c.nextTag()
	if c.Inter() {
		return c.createInter(ids, g, tag)
	}
	return c.createAmong(ids, g, tag)
}

// CreateGroup makes a communicator of the members of g (MPI_Comm_create_group). Collective over g.
func (c *Comm) CreateGroup(ids *Contexts, g *group.Group, userTag int) (*Made, error) {
	if c.Inter() {
		return nil, mpierr.New(mpierr.Comm,
			"the communicator is an intercommunicator; an intracommunicator is needed")
	}
	return c.createAmong(ids, g, createGroupTag|userTag)
}

// createAmong lets the first member of g decide and notify the other members.
func (c *Comm) createAmong(ids *Contexts, g *group.Group, tag int) (*Made, error) {
	if err := c.checkSubset(g); err != nil {
		return nil, err
	}
	me := g.Rank(c.Me())
	if me == group.Undefined {
		return nil, nil
	}
	all := c.Group()
	t := &tree{link: c.LocalLink, tag: tag, n: g.Size(), me: me,
		ranks: func(i int) int { return all.Rank(g.At(i)) }}
	var payload []byte
	if me == 0 {
		payload = binary.LittleEndian.AppendUint64(nil, ids.TakeFor(1))
	}
	payload, err := t.bcast(payload, nil)
	if err != nil {
		return nil, err
	}
	ctx, _, err := takeUint64(payload)
	if err != nil {
		return nil, err
	}
	return NewFromGroup(g, ctx, c.Me()), nil
}

// choice is what a process passes to MPI_Comm_split.
type choice struct{ color, key int32 }

const choiceWire = 8

// Split makes a communicator for each color, whose ranks go by key and, for equal keys, by rank in
// c (MPI_Comm_split). Collective over c. A process with color group.Undefined gets nil. failure, if
// not nil, is an error in this process's arguments: all get it.
func (c *Comm) Split(ids *Contexts, color, key int, failure error) (*Made, error) {
	if failure == nil && color < 0 && color != group.Undefined {
		failure = mpierr.New(mpierr.Arg, "color is %d: it must be 0 or more, or MPI_UNDEFINED",
			color)
	}
	tag := c.nextTag()
	t := c.localTree(tag, 0)
	block := binary.LittleEndian.AppendUint32(nil, uint32(int32(color)))
	block = binary.LittleEndian.AppendUint32(block, uint32(int32(key)))
	mine, err := t.gather(block, failure)
	if c.Inter() {
		return c.splitInter(ids, t, color, mine, err)
	}
	if t.me == 0 && err == nil {
		mine = binary.LittleEndian.AppendUint64(mine, ids.TakeFor(len(colors(decodeChoices(mine)))))
	}
	mine, err = t.bcast(mine, err)
	if err != nil {
		return nil, firstError(failure, err)
	}
	if len(mine) != c.Group().Size()*choiceWire+8 {
		return nil, errShort
	}
	table := decodeChoices(mine[:len(mine)-8])
	base := binary.LittleEndian.Uint64(mine[len(mine)-8:])
	if color == group.Undefined {
		return nil, nil
	}
	g := chosen(c.Group(), table, int32(color))
	k := slices.Index(colors(table), int32(color))
	return NewFromGroup(g, base+uint64(k)*CtxStep, c.Me()), nil
}

func decodeChoices(b []byte) []choice {
	out := make([]choice, len(b)/choiceWire)
	for k := range out {
		out[k].color = int32(binary.LittleEndian.Uint32(b[k*choiceWire:]))
		out[k].key = int32(binary.LittleEndian.Uint32(b[k*choiceWire+4:]))
	}
	return out
}

// colors lists the colors of a table in the order of their first appearance.
func colors(table []choice) []int32 {
	var out []int32
	seen := map[int32]bool{group.Undefined: true}
	for _, ch := range table {
		if !seen[ch.color] {
			seen[ch.color] = true
			out = append(out, ch.color)
		}
	}
	return out
}

// chosen is the group of those members of g that chose a color, ordered by key.
func chosen(g *group.Group, table []choice, color int32) *group.Group {
	var ranks []int
	for r, ch := range table {
		if ch.color == color {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int {
		return cmp.Compare(table[a].key,
			table[b].key)
	})
	out, _ := g.Incl(ranks) // ranks of g, each once
	return out
}
