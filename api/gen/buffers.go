package main

import (
	"fmt"
	"strings"

	"libspx/api"
)

// A group is a buffer with the count and the datatype that describe it. In a reduction two buffers share them.
type group struct {
	buf, count, dtype, types, displs api.Param
}

func isCount(p api.Param) bool {
	return strings.HasSuffix(p.Kind, "XFER_NUM_ELEM_NNI") || strings.HasPrefix(p.Kind, "POLYDTYPE_NUM_ELEM") || p.Kind == "POLYXFER_NUM_ELEM"
}

// groups finds the buffers that have a datatype. The count and type of a buffer follow it, before the next buffer; buffers
// that stand side by side share what follows.
func (c *checks) groups() []group {
	var out []group
	params := c.f.Params
	for i, p := range params {
		if p.Kind != "BUFFER" {
			continue
		}
		g := group{buf: p}
		j := i + 1
		for j < len(params) && params[j].Kind == "BUFFER" {
			j++
		}
		for ; j < len(params) && params[j].Kind != "BUFFER"; j++ {
			switch q := params[j]; {
			case g.count.Name == "" && q.Dir == "in" && isCount(q):
				g.count = q
			case strings.HasSuffix(q.Kind, "DISPLACEMENT") && q.Dir == "in" && q.Array():
				g.displs = q
			case q.Kind == "DATATYPE" && q.Dir == "in" && q.Array() && g.types.Name == "":
				g.types = q
			case q.Kind == "DATATYPE" && q.Dir == "in" && !q.Array() && g.dtype.Name == "":
				g.dtype = q
			}
		}
		if g.dtype.Name != "" || g.types.Name != "" {
			out = append(out, g)
		}
	}
	return out
}

// part is the condition under which a buffer is significant on this process, in place or not.
func (c *checks) part(buf api.Param) string {
	switch {
	case c.root() == "":
		return ""
	case buf.Has("root_only"):
		return "at_root"
	case len(c.groups()) == 1:
		return "takes_part"
	}
	return "at_leaf"
}

// significant is the condition under which a count or a datatype counts: one of its buffers does, and is not MPI_IN_PLACE.
func (c *checks) significant(p api.Param) string {
	var any []string
	for _, g := range c.groups() {
		if g.count.Name != p.Name && g.dtype.Name != p.Name && g.types.Name != p.Name {
			continue
		}
		cond := c.part(g.buf)
		if g.buf.Has("inplace") || g.buf.Has("inplace_root") {
			cond = and(cond, g.buf.Name+" != MPI_IN_PLACE")
		}
		if cond == "" {
			return ""
		}
		any = append(any, cond)
	}
	switch {
	case len(any) == 0 && p.Kind == "OPERATION" && c.root() != "":
		return "takes_part"
	case len(any) == 0:
		return c.atRoot(p)
	case len(any) == 1:
		return any[0]
	}
	return "takes_part" // Reduce: sendbuf of the leaves, recvbuf of the root
}

func and(a, b string) string {
	if a == "" {
		return b
	}
	return a + " && " + b
}

// buffers emits the checks of counts and buffers; datatypes were checked before.
func (c *checks) buffers() {
	done := map[string]bool{}
	for _, g := range c.groups() {
		if n := g.count; n.Name != "" && !done[n.Name] && !n.Has("unchecked") {
			done[n.Name] = true
			c.count(g, n)
		}
	}
	for _, g := range c.groups() {
		if !g.buf.Has("unchecked") {
			c.buffer(g)
		}
	}
}

// entries is how many entries a count array has; "" when only the body knows (types).
func (c *checks) entries(n api.Param) string {
	switch {
	case c.f.Chapter == "neighbor" && strings.HasPrefix(n.Name, "send"):
		return c.comm() + "->outdegree"
	case c.f.Chapter == "neighbor":
		return c.comm() + "->indegree"
	case c.f.Chapter != "coll" || c.comm() == "":
		return ""
	case n.Flags["array"] == "size":
		return c.comm() + "->size"
	}
	return c.comm() + "->remote_size"
}

func (c *checks) count(g group, n api.Param) {
	on := target(c.f)
	if !n.Array() {
		c.check(c.significant(n), n.Name+" >= 0", fmt.Sprintf("spx_bad_count(%s, \"%s\", %s)", on, n.Name, n.Name))
		return
	}
	entries := c.entries(n)
	if entries == "" {
		return
	}
	when := c.significant(n)
	if when != "" {
		when = "if (" + when + ") "
	}
	c.line("%sSPX_TRY(spx_check_counts(%s, \"%s\", %s, %s, %s));", when, on, n.Name, n.Name, entries, width(n))
	if t := g.types; t.Name != "" {
		c.line("%sSPX_TRY(spx_check_types(%s, \"%s\", %s, %s, %s, %s));", when, on, t.Name, t.Name, n.Name, entries, width(n))
	}
}

// buffer emits the checks of the displacements and of the buffer itself.
func (c *checks) buffer(g group) {
	on := target(c.f)
	entries := ""
	if g.count.Array() {
		if entries = c.entries(g.count); entries == "" {
			return
		}
	}
	if d := g.displs; d.Name != "" && entries != "" {
		c.check(c.significant(g.count), entries+" == 0 || "+d.Name, c.null(d, "MPI_ERR_ARG"))
	}
	n := "1"
	if g.count.Name != "" {
		n = g.count.Name
	}
	if c.f.Chapter == "neighbor" && entries == "" { // a process without neighbours has no buffer
		n = fmt.Sprintf("%s ? %s : 0", c.entries(g.count), n)
	}
	if g.buf.Has("above_0") {
		n = fmt.Sprintf("%s->rank == 0 && sendbuf != MPI_IN_PLACE ? 0 : %s", c.comm(), n)
	}
	when := c.part(g.buf)
	ok := fmt.Sprintf("spx_buffer_ok(%s, %s, t_%s)", g.buf.Name, n, g.dtype.Name)
	bad := fmt.Sprintf("spx_bad_buffer(%s, \"%s\", %s)", on, g.buf.Name, g.buf.Name)
	switch {
	case g.types.Name != "":
		ok = fmt.Sprintf("spx_buffers_of_types_ok(%s, %s, %s, %s, %s)", g.buf.Name, array(g.count), array(g.displs), entries, g.types.Name)
	case g.count.Array():
		ok = fmt.Sprintf("spx_buffers_ok(%s, %s, %s, %s, t_%s)", g.buf.Name, array(g.count), array(g.displs), entries, g.dtype.Name)
	}
	if g.buf.Has("own_block") {
		mine := fmt.Sprintf("spx_count_at(%s, %s->rank)", array(g.count), c.comm())
		ok = fmt.Sprintf("sendbuf == MPI_IN_PLACE ? %s : spx_buffer_ok(%s, %s, t_%s)", ok, g.buf.Name, mine, g.dtype.Name)
	}
	switch {
	case g.buf.Has("inplace"):
		ok = fmt.Sprintf("%s == MPI_IN_PLACE ? spx_in_place_ok(%s) : %s", g.buf.Name, c.comm(), ok)
	case g.buf.Has("inplace_root"):
		ok = fmt.Sprintf("%s == MPI_IN_PLACE ? at_root && spx_in_place_ok(%s) : %s", g.buf.Name, c.comm(), ok)
	}
	c.check(when, ok, bad)
}

// array is an array of counts or displacements as the checks take it; there need not be one.
func array(p api.Param) string {
	if p.Name == "" {
		return "(spx_counts){NULL, 0}"
	}
	return fmt.Sprintf("(spx_counts){%s, %s}", p.Name, width(p))
}
