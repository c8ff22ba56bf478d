package inspect

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"

	"libspx/core/diagnose"
)

// The programs and libraries of processes: which is where, and what their addresses are called.

// A Mapping is a part of a process's memory that holds code.
type Mapping struct {
	from, to, offset uint64
	path             string
}

// mappings are those of a process.
func mappings(pid int) (out []Mapping, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	return Mappings(string(text)), nil
}

// Mappings reads the text of /proc/PID/maps.
func Mappings(text string) (out []Mapping) {
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.Contains(f[1], "x") {
			continue
		}
		a, b, _ := strings.Cut(f[0], "-")
		from, err1 := strconv.ParseUint(a, 16, 64)
		to, err2 := strconv.ParseUint(b, 16, 64)
		offset, err3 := strconv.ParseUint(f[2], 16, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			out = append(out, Mapping{from, to, offset, strings.Join(f[5:], " ")})
		}
	}
	return out
}

// file is a program or library.
type file struct {
	path      string
	elf       *elf.File
	functions []function
	symbols   []elf.Symbol // functions, by address
	dwarf     *dwarf.Data
	looked    bool // for dwarf
}

// files keeps those that were read.
type files struct{ by map[string]*file }

func newFiles() *files { return &files{by: map[string]*file{}} }

// open is the file behind a mapping; nil: it cannot be read.
func (s *files) open(pid int, m Mapping, read func([]byte, uint64) bool) *file {
	key := m.path
	if f, known := s.by[key]; known {
		return f
	}
	f := &file{path: m.path}
	var from io.ReaderAt
	if strings.HasPrefix(m.path, "/") {
		h, err := os.Open(fmt.Sprintf("/proc/%d/root%s", pid, m.path))
		if err != nil {
			h, err = os.Open(m.path)
		}
		if err == nil {
			from = h // open as long as the look lasts
		}
	} else if m.path == "[vdso]" && m.to-m.from < 1<<20 {
		if b := make([]byte, m.to-m.from); read(b, m.from) {
			from = bytes.NewReader(b)
		}
	}
	if from != nil {
		f.elf, _ = elf.NewFile(from)
	}
	if f.elf == nil {
		f = nil
	} else {
		f.load()
	}
	s.by[key] = f
	return f
}

func (f *file) load() {
	if section := f.elf.Section(".eh_frame"); section != nil {
		if b, err := section.Data(); err == nil {
			f.functions = readFrames(b, section.Addr)
		}
	}
	for _, list := range []func() ([]elf.Symbol, error){f.elf.Symbols, f.elf.DynamicSymbols} {
		all, _ := list()
		for _, s := range all {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
				f.symbols = append(f.symbols, s)
			}
		}
		if len(f.symbols) > 0 {
			break
		}
	}
	sort.SliceStable(f.symbols,
		func(i, k int) bool { return f.symbols[i].Value < f.symbols[k].Value })
}

// address is that in the file of one in a process; false: the mapping is none of the file's.
func (f *file) address(m Mapping, pc uint64) (uint64, bool) {
	for _, p := range f.elf.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && m.offset < p.Off+p.Filesz &&
			m.offset+(m.to-m.from) > p.Off {
			return pc - m.from + m.offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

// function is the frame information for an address.
func (f *file) function(at uint64) *function {
	i := sort.Search(len(f.functions), func(i int) bool { return f.functions[i].from > at }) - 1
	if i < 0 || at >= f.functions[i].to {
		return nil
	}
	return &f.functions[i]
}

// symbol is the name of the function at an address, the shortest of several: MPI_Send is PMPI_Send,
// too.
func (f *file) symbol(at uint64) (name string) {
	i := sort.Search(len(f.symbols), func(i int) bool { return f.symbols[i].Value > at }) - 1
	if i < 0 {
		return ""
	}
	for start := f.symbols[i].Value; i >= 0 && f.symbols[i].Value == start; i-- {
		s := f.symbols[i]
		if (s.Size == 0 || at < s.Value+s.Size) && (name == "" || len(s.Name) < len(name)) {
			name = s.Name
		}
	}
	return name
}

// ours: the file is libspx. Its own lines are of no use to a user, and its debugging information is
// large.
func (f *file) ours() bool {
	base := path.Base(f.path)
	return strings.HasPrefix(base, "libmpi_abi") || strings.HasPrefix(base, "libspx")
}

// frames name an address of the file: a function, and those whose code it has become part of.
func (f *file) frames(at uint64) []diagnose.Frame {
	out := []diagnose.Frame{{Function: f.symbol(at), Object: f.path, PC: at}}
	if f.ours() || !strings.HasPrefix(f.path, "/") {
		return out
	}
	if !f.looked {
		f.looked = true
		f.dwarf, _ = f.elf.DWARF()
	}
	if f.dwarf == nil {
		return out
	}
	r := f.dwarf.Reader()
	unit, err := r.SeekPC(at)
	if err != nil {
		return out
	}
	where := dwarf.LineEntry{}
	var names []*dwarf.LineFile
	if lines, err := f.dwarf.LineReader(unit); err == nil && lines != nil {
		names = lines.Files()
		if lines.SeekPC(at, &where) != nil {
			where = dwarf.LineEntry{}
		}
	}
	for i, p := range parts(f.dwarf, r, at) {
		if i > 0 {
			out = append(out, diagnose.Frame{Object: f.path, PC: at})
		}
		at := &out[len(out)-1]
		if at.Function = p.name; where.File != nil {
			at.File, at.Line = where.File.Name, where.Line
		}
		where = dwarf.LineEntry{Line: p.line} // of the call
		if p.file >= 0 && p.file < len(names) {
			where.File = names[p.file]
		}
	}
	return out
}

// part is a function whose code is at an address, and where it was called if it is part of
// another's.
type part struct {
	name       string
	file, line int
}

// parts are the functions of a unit at an address, by the names that the source has, the innermost
// first. The reader stands behind the unit.
func parts(d *dwarf.Data, r *dwarf.Reader, at uint64) (out []part) {
	depth := 1
	for depth > 0 {
		e, err := r.Next()
		if err != nil || e == nil {
			return out
		}
		switch {
		case e.Tag == 0:
			depth--
			continue
		case e.Tag == dwarf.TagSubprogram || e.Tag == dwarf.TagInlinedSubroutine ||
			e.Tag == dwarf.TagLexDwarfBlock:
			// one that is only declared may contain others
			if !covers(d, e, at) && e.Tag != dwarf.TagSubprogram {
				if e.Children {
					r.SkipChildren()
				}
				continue
			}
			if n := nameOf(d, e); n != "" && covers(d, e, at) {
				// one that is contained in another (Fortran) has a frame of its own
				if e.Tag == dwarf.TagSubprogram {
					out = nil
				}
				out = append([]part{{n, number(e, dwarf.AttrCallFile),
					number(e, dwarf.AttrCallLine)}}, out...)
			}
		case e.Tag != dwarf.TagModule && e.Tag != dwarf.TagNamespace:
			if e.Children {
				r.SkipChildren()
			}
			continue
		}
		if e.Children {
			depth++
		}
	}
	return out
}

func number(e *dwarf.Entry, a dwarf.Attr) int {
	if n, ok := e.Val(a).(int64); ok {
		return int(n)
	}
	return -1
}

// covers: the address is in the code of an entry.
func covers(d *dwarf.Data, e *dwarf.Entry, at uint64) bool {
	ranges, err := d.Ranges(e)
	if err != nil {
		return false
	}
	for _, x := range ranges {
		if at >= x[0] && at < x[1] {
			return true
		}
	}
	return false
}

// nameOf is the name of an entry, or of the one that it is a copy of.
func nameOf(d *dwarf.Data, e *dwarf.Entry) string {
	for range 4 {
		if n, ok := e.Val(dwarf.AttrName).(string); ok {
			return n
		}
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if origin, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return ""
			}
		}
		r := d.Reader()
		r.Seek(origin)
		next, err := r.Next()
		if err != nil || next == nil {
			return ""
		}
		e = next
	}
	return ""
}
