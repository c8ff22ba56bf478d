package inspect

import (
	"encoding/binary"
	"errors"
	"sort"
)

// The call frame information of .eh_frame (System V ABI, AMD64 supplement, 3.7; DWARF 5, 6.4):
// where an active function has saved its caller's registers. Every program and library for
// x86-64 has it, with debugging information or without.

// Registers of x86-64 by their DWARF numbers.
const (
	regBX   = 3
	regBP   = 6
	regSP   = 7
	regR12  = 12
	regPC   = 16 // the return address
	regsAll = 17
)

// registers of a frame; known marks the known ones.
type registers struct {
	v     [regsAll]uint64
	known [regsAll]bool
}

func (r *registers) set(n int, v uint64) { r.v[n], r.known[n] = v, true }

// function is the frame information for a range of addresses of a file.
type function struct {
	from, to uint64
	code     []byte
	common   *common
}

// common is what functions share (a CIE).
type common struct {
	codeAlign uint64
	dataAlign int64
	encoding  byte
	augmented bool
	signal    bool // a signal has interrupted the frame above
	code      []byte
}

var errFrames = errors.New("call frame information that is not understood")

// cursor reads a section.
type cursor struct {
	b    []byte
	at   int
	base uint64 // address of b
	bad  bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.b)-c.at {
		c.bad = true
		return make([]byte, max(0, min(n, 16)))
	}
	out := c.b[c.at : c.at+n]
	c.at += n
	return out
}
func (c *cursor) u8() byte    { return c.bytes(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.bytes(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.bytes(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.bytes(8)) }
func (c *cursor) more() bool  { return c.at < len(c.b) && !c.bad }
func (c *cursor) text() string {
	from := c.at
	for c.u8() != 0 && !c.bad {
	}
	if c.bad {
		return ""
	}
	return string(c.b[from : c.at-1])
}

func (c *cursor) uleb() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 || c.bad {
			return v
		}
	}
}

func (c *cursor) sleb() (v int64) {
	for shift := 0; ; {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 == 0 || c.bad {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// pointer reads one in an encoding (DW_EH_PE_*).
func (c *cursor) pointer(encoding byte) uint64 {
	at := c.base + uint64(c.at)
	var v uint64
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		v = c.u64()
	case 0x01:
		v = c.uleb()
	case 0x02:
		v = uint64(c.u16())
	case 0x03:
		v = uint64(c.u32())
	case 0x09:
		v = uint64(c.sleb())
	case 0x0a:
		v = uint64(int64(int16(c.u16())))
	case 0x0b:
		v = uint64(int64(int32(c.u32())))
	default:
		c.bad = true
	}
	switch encoding & 0x70 {
	case 0x00:
	case 0x10:
		v += at
	default:
		c.bad = true
	}
	return v
}

// readFrames reads a section at an address of the file; unsupported entries are left out.
func readFrames(section []byte, address uint64) []function {
	commons := map[int]*common{}
	var out []function
	for at := 0; at+8 <= len(section); {
		length := int(binary.LittleEndian.Uint32(section[at:]))
		if length == 0 || length > len(section)-at-4 {
			break // the end, or 64-bit lengths, which do not occur here
		}
		body := &cursor{b: section[:at+4+length], at: at + 4, base: address}
		id := int(body.u32())
		if id == 0 {
			commons[at] = readCommon(body)
		} else if c := commons[at+4-id]; c != nil {
			if f, ok := readFunction(body, c); ok {
				out = append(out, f)
			}
		}
		at += 4 + length
	}
	sort.Slice(out, func(i, k int) bool { return out[i].from < out[k].from })
	return out
}

func readCommon(c *cursor) *common {
	version, augmentation := c.u8(), c.text()
	out := &common{codeAlign: c.uleb(), dataAlign: c.sleb()}
	register := uint64(0)
	if version == 1 {
		register = uint64(c.u8())
	} else {
		register = c.uleb()
	}
	for i, a := range augmentation {
		switch {
		case a == 'z' && i == 0:
			out.augmented = true
			c.uleb()
		case a == 'R':
			out.encoding = c.u8()
		case a == 'P':
			c.pointer(c.u8() &^ 0x80)
		case a == 'L':
			c.u8()
		case a == 'S':
			out.signal = true
		default:
			return nil
		}
	}
	if c.bad || register != regPC {
		return nil
	}
	out.code = c.b[c.at:]
	return out
}

func readFunction(c *cursor, of *common) (f function, ok bool) {
	f.from = c.pointer(of.encoding)
	f.to = f.from + c.pointer(of.encoding&0x0f)
	if of.augmented {
		c.bytes(int(c.uleb()))
	}
	f.common, f.code = of, c.b[min(c.at, len(c.b)):]
	return f, !c.bad && f.to > f.from
}

// rule describes where the caller's register is.
type rule struct {
	kind byte // one of the below
	n    int64
	expr []byte
}

const (
	ruleSame      = iota
	ruleUndefined // cannot be known
	ruleOffset    // in memory, n bytes from the frame's address
	ruleValue     // is the frame's address + n
	ruleRegister
	ruleAt // in memory, at the address given by an expression
	ruleIs // the value of an expression
)

// table is the state of the program that describes a function.
type table struct {
	cfaReg  int
	cfaOff  int64
	cfaExpr []byte
	rules   [regsAll]rule
}

// row runs the program up to an address.
func (f *function) row(pc uint64) (t table, err error) {
	if err = t.run(f.common.code, f, ^uint64(0), table{}); err != nil {
		return t, err
	}
	return t, t.run(f.code, f, pc, t)
}

// run carries out instructions until they describe a place behind pc.
func (t *table) run(code []byte, f *function, pc uint64, first table) error {
	c := &cursor{b: code}
	at := f.from
	var saved []table
	set := func(reg uint64, r rule) {
		if reg < regsAll {
			t.rules[reg] = r
		}
	}
	move := func(delta uint64) bool {
		at += delta * f.common.codeAlign
		return at > pc
	}
	for c.more() {
		op := c.u8()
		low := uint64(op & 0x3f)
		switch op & 0xc0 {
		case 0x40:
			if move(low) {
				return nil
			}
			continue
		case 0x80:
			set(low, rule{kind: ruleOffset, n: int64(c.uleb()) * f.common.dataAlign})
			continue
		case 0xc0:
			if low < regsAll {
				t.rules[low] = first.rules[low]
			}
			continue
		}
		beyond := false
		switch op {
		case 0x00: // DW_CFA_nop
		case 0x01:
			at = c.pointer(f.common.encoding &^ 0x70)
			return errFrames // DW_CFA_set_loc: no compiler writes it
		case 0x02:
			beyond = move(uint64(c.u8()))
		case 0x03:
			beyond = move(uint64(c.u16()))
		case 0x04:
			beyond = move(uint64(c.u32()))
		case 0x05:
			reg := c.uleb()
			set(reg, rule{kind: ruleOffset, n: int64(c.uleb()) * f.common.dataAlign})
		case 0x06:
			if reg := c.uleb(); reg < regsAll {
				t.rules[reg] = first.rules[reg]
			}
		case 0x07:
			set(c.uleb(), rule{kind: ruleUndefined})
		case 0x08:
			set(c.uleb(), rule{kind: ruleSame})
		case 0x09:
			reg := c.uleb()
			set(reg, rule{kind: ruleRegister, n: int64(c.uleb())})
		case 0x0a:
			saved = append(saved, *t)
		case 0x0b:
			if len(saved) == 0 {
				return errFrames
			}
			*t = saved[len(saved)-1]
			saved = saved[:len(saved)-1]
		case 0x0c:
			t.cfaReg, t.cfaOff, t.cfaExpr = int(c.uleb()), int64(c.uleb()), nil
		case 0x0d:
			t.cfaReg, t.cfaExpr = int(c.uleb()), nil
		case 0x0e:
			t.cfaOff = int64(c.uleb())
		case 0x0f:
			t.cfaExpr = c.bytes(int(c.uleb()))
		case 0x10:
			reg := c.uleb()
			set(reg, rule{kind: ruleAt, expr: c.bytes(int(c.uleb()))})
		case 0x11:
			reg := c.uleb()
			set(reg, rule{kind: ruleOffset, n: c.sleb() * f.common.dataAlign})
		case 0x12:
			t.cfaReg, t.cfaOff, t.cfaExpr = int(c.uleb()), c.sleb()*f.common.dataAlign, nil
		case 0x13:
			t.cfaOff = c.sleb() * f.common.dataAlign
		case 0x14:
			reg := c.uleb()
			set(reg, rule{kind: ruleValue, n: int64(c.uleb()) * f.common.dataAlign})
		case 0x15:
			reg := c.uleb()
			set(reg, rule{kind: ruleValue, n: c.sleb() * f.common.dataAlign})
		case 0x16:
			reg := c.uleb()
			set(reg, rule{kind: ruleIs, expr: c.bytes(int(c.uleb()))})
		case 0x2e:
			c.uleb() // DW_CFA_GNU_args_size
		default:
			return errFrames
		}
		if beyond {
			return nil
		}
	}
	if c.bad {
		return errFrames
	}
	return nil
}

// reader reads a word of memory.
type reader func(address uint64) (uint64, bool)

// up gives the registers of the caller.
func (t *table) up(r *registers, read reader) (out registers, ok bool) {
	cfa := uint64(0)
	if t.cfaExpr != nil {
		if cfa, ok = evaluate(t.cfaExpr, nil, r, read); !ok {
			return out, false
		}
	} else {
		if t.cfaReg < 0 || t.cfaReg >= regsAll || !r.known[t.cfaReg] {
			return out, false
		}
		cfa = r.v[t.cfaReg] + uint64(t.cfaOff)
	}
	out.set(regSP, cfa)
	for n, rule := range t.rules {
		v, ok := r.v[n], r.known[n]
		switch rule.kind {
		case ruleSame:
			if n == regSP || n == regPC {
				continue
			}
		case ruleUndefined:
			ok = false
		case ruleOffset:
			v, ok = read(cfa + uint64(rule.n))
		case ruleValue:
			v, ok = cfa+uint64(rule.n), true
		case ruleRegister:
			if ok = rule.n < regsAll && r.known[rule.n]; ok {
				v = r.v[rule.n]
			}
		case ruleAt, ruleIs:
			if v, ok = evaluate(rule.expr, &cfa, r, read); ok && rule.kind == ruleAt {
				v, ok = read(v)
			}
		}
		out.v[n], out.known[n] = v, ok
	}
	return out, out.known[regPC]
}

// evaluate computes an expression, as far as linkers and C libraries write them for entries of the
// linkage table and signal handlers.
func evaluate(code []byte, cfa *uint64, r *registers, read reader) (uint64, bool) {
	var stack []uint64
	if cfa != nil {
		stack = append(stack, *cfa)
	}
	pop := func() (v uint64) {
		if n := len(stack); n > 0 {
			v, stack = stack[n-1], stack[:n-1]
		}
		return v
	}
	push := func(v uint64) { stack = append(stack, v) }
	for c := (&cursor{b: code}); c.more(); {
		switch op := c.u8(); {
		case op >= 0x30 && op <= 0x4f:
			push(uint64(op - 0x30))
		case op >= 0x70 && op <= 0x8f:
			n, off := int(op-0x70), c.sleb()
			if n >= regsAll || !r.known[n] {
				return 0, false
			}
			push(r.v[n] + uint64(off))
		case op == 0x06:
			v, ok := read(pop())
			if !ok {
				return 0, false
			}
			push(v)
		case op == 0x08:
			push(uint64(c.u8()))
		case op == 0x1a:
			push(pop() & pop())
		case op == 0x1c:
			b, a := pop(), pop()
			push(a - b)
		case op == 0x22:
			push(pop() + pop())
		case op == 0x23:
			push(pop() + c.uleb())
		case op == 0x24:
			b, a := pop(), pop()
			push(a << (b & 63))
		case op == 0x2a:
			b, a := int64(pop()), int64(pop())
			if a >= b {
				push(1)
			} else {
				push(0)
			}
		default:
			return 0, false
		}
	}
	return pop(), true
}
