package config

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// reader collects what is wrong while tables are read.
type reader struct {
	places   places
	problems Problems
}

func (r *reader) wrong(path []string, format string, args ...any) {
	at := r.places.of(path...)
	r.problems = append(r.problems, Problem{at.line, at.col, fmt.Sprintf(format, args...)})
}

// value is the file's value of a key.
type value struct {
	r    *reader
	path []string
	name string // for messages: the key
	v    any
}

func (v value) wrong(format string, args ...any) {
	v.r.wrong(v.path, "%s: %s", v.name, fmt.Sprintf(format, args...))
}

func (v value) element(i int, x any) value {
	return value{v.r, append(append([]string(nil), v.path...), strconv.Itoa(i)), v.name, x}
}

// field is a key of a table: its row in the schema.
type field[T any] struct {
	name     string
	takes    string // kind of value, for the manual and messages
	preset   string // what holds if it is not given, for the manual
	help     string
	required bool
	set      func(*T, value)
}

// readTable fills in a T from the keys of a table. Keys that the schema does not have are mistakes.
func readTable[T any](r *reader, path []string, what string, m map[string]any, fields []field[T],
	into *T) {
	var names []string
	known := map[string]*field[T]{}
	for i := range fields {
		names = append(names, fields[i].name)
		known[fields[i].name] = &fields[i]
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		at := append(append([]string(nil), path...), k)
		f := known[k]
		if f == nil {
			r.wrong(at, "%s has no key %q%s; it has %s", what, k, meant(k, names),
				list(names, "and"))
			continue
		}
		f.set(into, value{r, at, k, m[k]})
	}
	for i := range fields {
		if _, given := m[fields[i].name]; fields[i].required && !given {
			r.wrong(path, "%s has no %s: say %s = %s (%s)", what, fields[i].name, fields[i].name,
				fields[i].takes, fields[i].help)
		}
	}
}

// kind is what a value of the TOML library is called.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case []any, []map[string]any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

func (v value) text() (string, bool) {
	s, ok := v.v.(string)
	if !ok {
		v.wrong("this is %s, a string is wanted", kind(v.v))
		return "", false
	}
	if strings.ContainsRune(s, 0) {
		v.wrong("a string with a zero byte cannot be given to a program")
		return "", false
	}
	return s, true
}

// elements are those of an array.
func (v value) elements() ([]value, bool) {
	var out []value
	switch x := v.v.(type) {
	case []any:
		for i, e := range x {
			out = append(out, v.element(i, e))
		}
	case []map[string]any:
		for i, e := range x {
			out = append(out, v.element(i, e))
		}
	default:
		return nil, false
	}
	return out, true
}

func text[T any](to func(*T) *string) func(*T, value) {
	return func(t *T, v value) {
		s, ok := v.text()
		if ok && s == "" {
			v.wrong("it is empty")
		}
		*to(t) = s
	}
}

// choice takes one of some words.
func choice[T any](to func(*T) *string, words ...string) func(*T, value) {
	return func(t *T, v value) {
		s, ok := v.text()
		if !ok {
			return
		}
		if !contains(words, s) {
			v.wrong("%q is none of %s%s", s, list(words, "and"), meant(s, words))
			return
		}
		*to(t) = s
	}
}

func flag[T any](to func(*T) *bool) func(*T, value) {
	return func(t *T, v value) {
		b, ok := v.v.(bool)
		if !ok {
			v.wrong("this is %s, true or false is wanted", kind(v.v))
		}
		*to(t) = b
	}
}

func (v value) count(least, most int) (int, bool) {
	n, ok := v.v.(int64)
	if !ok {
		v.wrong("this is %s, an integer from %d to %d is wanted", kind(v.v), least, most)
		return least, false
	}
	if n < int64(least) || n > int64(most) {
		v.wrong("%d is out of range, %d to %d are possible", n, least, most)
		return least, false
	}
	return int(n), true
}

func count[T any](to func(*T) *int, least, most int) func(*T, value) {
	return func(t *T, v value) { *to(t), _ = v.count(least, most) }
}

// words takes an array of strings.
func words[T any](to func(*T) *[]string) func(*T, value) {
	return func(t *T, v value) {
		elements, ok := v.elements()
		if !ok {
			v.wrong("this is %s, an array of strings is wanted, as [\"a\", \"b\"]", kind(v.v))
			return
		}
		list := []string{}
		for _, e := range elements {
			if s, ok := e.text(); ok {
				list = append(list, s)
			}
		}
		*to(t) = list
	}
}

// names takes a name, or an array of names.
func names[T any](to func(*T) *[]string) func(*T, value) {
	return func(t *T, v value) {
		if s, ok := v.v.(string); ok {
			*to(t) = []string{s}
			return
		}
		words(to)(t, v)
	}
}

func counts[T any](to func(*T) *[]int, least, most int) func(*T, value) {
	return func(t *T, v value) {
		elements, ok := v.elements()
		if !ok {
			v.wrong("this is %s, an array of integers is wanted, as [2, 1]", kind(v.v))
			return
		}
		for _, e := range elements {
			if n, ok := e.count(least, most); ok {
				*to(t) = append(*to(t), n)
			}
		}
	}
}

// environment takes a table of variables.
func environment[T any](to func(*T) *[]string) func(*T, value) {
	return func(t *T, v value) {
		m, ok := v.v.(map[string]any)
		if !ok {
			v.wrong("this is %s, a table of variables is wanted, as { NAME = \"value\" }",
				kind(v.v))
			return
		}
		for name, x := range m {
			at := value{v.r, append(append([]string(nil), v.path...), name), v.name + "." + name, x}
			if name == "" || strings.ContainsAny(name, "=\x00") {
				at.wrong("%q is no name of a variable", name)
				continue
			}
			if s, ok := at.text(); ok {
				*to(t) = append(*to(t), name+"="+s)
			}
		}
		sort.Strings(*to(t))
	}
}

// units of spans, in milliseconds.
var units = []struct {
	name string
	ms   float64
}{{"ms", 1}, {"min", 60_000}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}}

// MaxSpanMS bounds every time in a system file: thirty days.
const MaxSpanMS = 30 * 24 * 3600 * 1000

// span takes a time: "500ms", "30s", "2m", or a number of seconds.
func span[T any](to func(*T) *int64) func(*T, value) {
	return func(t *T, v value) {
		ms := math.NaN()
		switch x := v.v.(type) {
		case int64:
			ms = float64(x) * 1000
		case float64:
			ms = x * 1000
		case string:
			ms = parseSpan(x)
		}
		switch {
		case math.IsNaN(ms):
			v.wrong(
				"this is no time; times are as \"500ms\", \"30s\", \"2m\", \"1h\", or a number " +
					"of seconds")
		case ms < 1 || ms > MaxSpanMS:
			v.wrong("it is out of range, 1ms to 720h are possible")
		default:
			*to(t) = int64(ms)
		}
	}
}

// spanOrEver is a time, or 0 for "ever".
func spanOrEver[T any](to func(*T) *int64) func(*T, value) {
	set := span(to)
	return func(t *T, v value) {
		if v.v == "ever" {
			*to(t) = 0
			return
		}
		set(t, v)
	}
}

func parseSpan(s string) float64 {
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			if x, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil {
				return x * u.ms
			}
		}
	}
	return math.NaN()
}

// inner takes a table with fields of its own.
func inner[T, U any](to func(*T) *U, what string, fields func() []field[U]) func(*T, value) {
	return func(t *T, v value) {
		m, ok := v.v.(map[string]any)
		if !ok {
			v.wrong("this is %s, a table is wanted", kind(v.v))
			return
		}
		readTable(v.r, v.path, what, m, fields(), to(t))
	}
}
