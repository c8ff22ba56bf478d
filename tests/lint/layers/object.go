// Package layers reads from the compiler's output which C functions of capi/ name which functions and variables of other files,
// and compares that with the layers in which they are to lie. Every C file has a row in files.tsv, every layer one in layers.tsv;
// allowance.tsv holds the references that still point upwards, budgets.tsv the sizes that must not grow. It compiles into a
// cache of its own and changes nothing else; the tests of tests/lint run it. How the tables are read: docs/layers.md.
package layers

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Reference is one name that a function uses: the name of a function or variable that another file defines, whether it is
// called, read, written, or has its address taken.
type Reference struct {
	From   string // the function, or the variable whose initial value holds the address
	Symbol string
}

// Object is what one compiled C file defines and what it needs of others.
type Object struct {
	Defines    []string
	References []Reference // sorted, each once
	Uses       []Use       // the same with what stays within the file; sorted by From
}

// Use is what a function or variable names: in its own file, marked, or in another.
type Use struct {
	From  string
	Other []string // names of other files
	Own   []string `json:",omitempty"` // names of the same file
}

// section says what the bytes of a section of the object belong to.
type section struct {
	symbols []elf.Symbol // those defined in it, by address
}

// owner is the function or variable at the offset; empty where no symbol covers it: unwind tables, debug information, strings.
func (s section) owner(offset uint64) string {
	name := ""
	for _, y := range s.symbols {
		if y.Value > offset {
			break
		}
		name = y.Name
	}
	return name
}

// ReadObject reads an object that was compiled with -O0 -g1 -ffunction-sections -fdata-sections, so that each function and each variable
// is there as it was written, in a section of its own. What an inline function of a header names is counted for the functions that
// use it: a header is no way round the layers.
func ReadObject(name string) (*Object, error) {
	f, err := elf.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o, parts := &Object{}, make([]section, len(f.Sections))
	for _, y := range symbols {
		if int(y.Section) >= len(parts) || y.Section == elf.SHN_UNDEF || y.Name == "" {
			continue
		}
		switch elf.ST_TYPE(y.Info) {
		case elf.STT_SECTION, elf.STT_FILE:
			continue
		}
		parts[y.Section].symbols = append(parts[y.Section].symbols, y)
		if elf.ST_BIND(y.Info) != elf.STB_LOCAL {
			o.Defines = append(o.Defines, y.Name)
		}
	}
	for _, p := range parts {
		slices.SortStableFunc(p.symbols, func(a, b elf.Symbol) int { return int(a.Value) - int(b.Value) })
	}
	inline, err := inlineFunctions(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	named, err := relocations(f, symbols, parts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o.References = through(named, inline)
	o.Uses = uses(named)
	slices.Sort(o.Defines)
	return o, nil
}

// name of a symbol in the object: global names are as they are, names of the object itself are marked, as two files may have
// static functions of one name.
type name struct {
	text  string
	local bool
}

// relocations are the names that each function and variable uses. Only sections that are part of the program count.
func relocations(f *elf.File, symbols []elf.Symbol, parts []section) (map[string]map[name]bool, error) {
	if f.Class != elf.ELFCLASS64 {
		return nil, errors.New("not a 64-bit object")
	}
	named := map[string]map[name]bool{}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA || int(s.Info) >= len(f.Sections) || f.Sections[s.Info].Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		for ; len(data) >= 24; data = data[24:] {
			offset, info := f.ByteOrder.Uint64(data), f.ByteOrder.Uint64(data[8:])
			n := elf.R_SYM64(info)
			from := parts[s.Info].owner(offset)
			if n == 0 || int(n) > len(symbols) || from == "" {
				continue
			}
			to, ok := target(symbols[n-1], parts)
			if !ok {
				continue
			}
			if named[from] == nil {
				named[from] = map[name]bool{}
			}
			named[from][to] = true
		}
	}
	return named, nil
}

// target is the name at which a relocation points. The assembler writes static functions and variables as the section that they
// are alone in.
func target(y elf.Symbol, parts []section) (name, bool) {
	switch {
	case elf.ST_TYPE(y.Info) == elf.STT_SECTION:
		if int(y.Section) < len(parts) {
			if owner := parts[y.Section].owner(0); owner != "" {
				return name{owner, true}, true
			}
		}
		return name{}, false // strings, tables of jumps
	case y.Section == elf.SHN_UNDEF:
		return name{y.Name, false}, y.Name != ""
	default:
		return name{y.Name, true}, y.Name != ""
	}
}

// inlineFunctions are those of the object's functions that headers define.
func inlineFunctions(f *elf.File) (map[string]bool, error) {
	d, err := f.DWARF()
	if err != nil {
		return nil, err
	}
	inline := map[string]bool{}
	var files []*dwarf.LineFile
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return inline, nil
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			lines, err := d.LineReader(e)
			if err != nil {
				return nil, err
			}
			if files = nil; lines != nil {
				files = lines.Files()
			}
			continue
		case dwarf.TagSubprogram:
			text, _ := e.Val(dwarf.AttrName).(string)
			n, _ := e.Val(dwarf.AttrDeclFile).(int64)
			if e.Val(dwarf.AttrDeclaration) == nil && text != "" && n > 0 && int(n) < len(files) && files[n] != nil && path.Ext(files[n].Name) == ".h" {
				inline[text] = true
			}
		}
		r.SkipChildren()
	}
}

// through replaces the inline functions of headers by what these name, and leaves out what stays within the file.
func through(named map[string]map[name]bool, inline map[string]bool) (list []Reference) {
	for from := range named {
		if inline[from] {
			continue
		}
		seen := map[string]bool{}
		var follow func(string)
		follow = func(at string) {
			if seen[at] {
				return
			}
			seen[at] = true
			for n := range named[at] {
				if !n.local {
					list = append(list, Reference{from, n.text})
				} else if inline[n.text] {
					follow(n.text)
				}
			}
		}
		follow(from)
	}
	slices.SortFunc(list, func(a, b Reference) int {
		if c := strings.Compare(a.From, b.From); c != 0 {
			return c
		}
		return strings.Compare(a.Symbol, b.Symbol)
	})
	return slices.Compact(list)
}

func uses(named map[string]map[name]bool) (list []Use) {
	for from, names := range named {
		u := Use{From: from}
		for n := range names {
			if n.local {
				u.Own = append(u.Own, n.text)
			} else {
				u.Other = append(u.Other, n.text)
			}
		}
		slices.Sort(u.Own)
		slices.Sort(u.Other)
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Use) int { return strings.Compare(a.From, b.From) })
	return list
}
