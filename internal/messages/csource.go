package messages

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A C function or macro that takes a text: where among its arguments the class and the format stand; -1: it has no class.
type cMaker struct{ class, text int }

var cMakers = map[string]cMaker{
	"spx_raise":     {2, 4},
	"spx_raise_by":  {1, 3},
	"spx_fatal":     {0, 1},
	"spx_detail":    {-1, 0},
	"spx_say":       {-1, 0},
	"spx_say_once":  {-1, 1},
	"spx_end_job":   {0, 1},
	"SPX_COLL_FAIL": {1, 2},
	"SPX_WIN_FAIL":  {1, 2},
	"refuse":        {0, 1}, // join.c
}

var (
	cCall     = regexp.MustCompile(`\b(spx_raise|spx_raise_by|spx_fatal|spx_detail|spx_say|spx_say_once|spx_end_job|SPX_COLL_FAIL|SPX_WIN_FAIL|fail|refuse|fprintf)\(`)
	cFunction = regexp.MustCompile(`(?m)^[a-zA-Z_][^;{}()=]*?\b(\w+)\([^;{}]*\)\s*\{`)
	cCase     = regexp.MustCompile(`case (MPIX?_ERR_[A-Z_]+)(?: \.\.\. \w+)?:|default:|^\}`)
	attribute = regexp.MustCompile(`__attribute__\(\(.*?\)\)`)
	cEquals   = regexp.MustCompile(`== (MPIX?_ERR_[A-Z_]+)`)
)

// given stands before a function whose callers give the class of what it says.
const given = "given to "

// givenClasses are the classes that calls of a function give it, and those of the table of kinds for what is said of all handles.
func givenClasses(function string, sources []string) (all []string) {
	call := regexp.MustCompile(`\b` + function + `\(`)
	add := func(text string) {
		for _, c := range mpiClass.FindAllString(text, -1) {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	for _, s := range sources {
		for _, at := range call.FindAllStringIndex(s, -1) {
			add(strings.Join(arguments(s[at[1]:]), ","))
		}
		if function == "spx_bad_handle" {
			for _, row := range kindRow.FindAllString(s, -1) {
				add(row)
			}
		}
	}
	return all
}

var kindRow = regexp.MustCompile(`\[SPX_K_\w+\] = \{"a[^}]*\}`)

// inC finds the texts of a C file. Its parts are found by their form, as clang-format leaves them: functions begin in the first column.
func inC(file, source string) (found []Text) {
	code := attribute.ReplaceAllStringFunc(withoutComments(source), func(a string) string { return strings.Repeat(" ", len(a)) })
	functions := cFunction.FindAllStringSubmatchIndex(code, -1)
	for _, at := range cCall.FindAllStringSubmatchIndex(code, -1) {
		name := code[at[2]:at[3]]
		if lineStart := strings.LastIndexByte(code[:at[0]], '\n') + 1; strings.HasPrefix(code[lineStart:], "#define") || at[0] == lineStart {
			continue // the definition of a macro, or of the function itself
		}
		m, there := cMakers[name]
		args := arguments(code[at[1]:])
		if len(args) > 0 && args[0] == "SELF" { // a macro that is two arguments
			args = append([]string{"0", "NULL"}, args[1:]...)
		}
		switch {
		case name == "fprintf" && len(args) > 1 && strings.TrimSpace(args[0]) == "stderr":
			m = cMaker{-1, 1}
		case !there:
			continue
		}
		if len(args) <= max(m.text, m.class) {
			continue
		}
		from, to, in := 0, len(code), ""
		for i, f := range functions {
			if f[0] < at[0] {
				from, to, in = f[0], len(code), code[f[2]:f[3]]
				if i+1 < len(functions) {
					to = functions[i+1][0]
				}
			}
		}
		class := ""
		switch {
		case m.class >= 0:
			if class = mpiClass.FindString(args[m.class]); class == "" && in != "" {
				class = given + in // its callers say which
			}
		case name == "spx_detail":
			class = classAround(code[from:at[0]], code[at[1]:to])
		}
		in = strings.Replace(in, "spx_c_", "MPI_", 1)
		if strings.HasPrefix(in, "MPI_") && !strings.HasPrefix(in, "MPI_T_") && strings.HasPrefix(strings.TrimPrefix(in, "MPI_"), "X_") {
			in = "MPIX_" + strings.TrimPrefix(in, "MPI_X_")
		}
		for _, format := range alternatives(args[m.text]) {
			words := cFormatted(format, args[m.text+1:])
			words = strings.TrimSuffix(words, "\n")
			if telling(words) {
				found = append(found, Text{class, words, file, in})
			}
		}
	}
	return found
}

// classAround is the class that a detail text is for: what the condition before it asks for, the case that it stands in, or what the
// function returns or raises next.
func classAround(before, after string) string {
	tail := before[max(0, len(before)-160):]
	if i := strings.LastIndexAny(tail, ";{}"); i >= 0 {
		tail = tail[i:]
	}
	if m := cEquals.FindStringSubmatch(tail); m != nil {
		return m[1]
	}
	if all := cCase.FindAllStringSubmatch(before, -1); len(all) > 0 && all[len(all)-1][1] != "" && strings.LastIndex(before, "switch (") > 0 {
		return all[len(all)-1][1]
	}
	return mpiClass.FindString(after[:min(len(after), 700)])
}

// withoutComments blanks comments out, so that positions and lines stay.
func withoutComments(s string) string {
	b := []byte(s)
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"' || b[i] == '\'':
			for q := b[i]; i+1 < len(b); {
				if i++; b[i] == '\\' {
					i++
				} else if b[i] == q || b[i] == '\n' {
					break
				}
			}
		case b[i] == '/' && i+1 < len(b) && b[i+1] == '*':
			for ; i < len(b) && !(b[i] == '*' && i+1 < len(b) && b[i+1] == '/'); i++ {
				if b[i] != '\n' {
					b[i] = ' '
				}
			}
			if i+1 < len(b) {
				b[i], b[i+1] = ' ', ' '
			}
		case b[i] == '/' && i+1 < len(b) && b[i+1] == '/':
			for ; i < len(b) && b[i] != '\n'; i++ {
				b[i] = ' '
			}
		}
	}
	return string(b)
}

// arguments splits what follows an opening bracket, up to the one that closes it.
func arguments(s string) (args []string) {
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"', '\'':
			i = endOfLiteral(s, i)
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				return append(args, strings.TrimSpace(s[from:i]))
			}
			depth--
		case ',':
			if depth == 0 {
				args, from = append(args, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	return nil
}

func endOfLiteral(s string, i int) int {
	for q := s[i]; i+1 < len(s); {
		if i++; s[i] == '\\' {
			i++
		} else if s[i] == q {
			break
		}
	}
	return i
}

// alternatives are the texts that an expression may be: one, or those of a choice (a ? "b" : "c"). Literals that stand side by side are one.
func alternatives(expr string) (all []string) {
	joined := false
	for i := 0; i < len(expr); i++ {
		switch {
		case expr[i] == '"':
			end := min(endOfLiteral(expr, i)+1, len(expr))
			text, err := strconv.Unquote(expr[i:end])
			if err != nil {
				text = expr[i+1 : end-1]
			}
			if joined {
				all[len(all)-1] += text
			} else {
				all = append(all, text)
			}
			joined = true
			i = end - 1
		case strings.IndexByte(" \t\n", expr[i]) >= 0:
		default:
			joined = false
		}
	}
	return all
}

func cFormatted(format string, args []string) string {
	next := 0
	return verb.ReplaceAllStringFunc(format, func(v string) string {
		if v == "%%" {
			return "%"
		}
		if strings.Contains(v, "*") {
			next++
		}
		if next >= len(args) {
			return "<...>"
		}
		next++
		return "<" + cArgument(args[next-1]) + ">"
	})
}

var (
	cCast  = regexp.MustCompile(`\((?:unsigned |const |long |int|char|void|size_t|u?int\d*_t|uintptr_t|short)+[ *]*\)`)
	cNames = regexp.MustCompile(`[A-Za-z_]\w*(\s*\()?`)
)

var cWords = map[string]string{"i": "index", "k": "index", "n": "number", "fn": "function", "spx_fn": "function", "FN": "function", "errno": "reason", "why": "reason", "host": "host"}

// cArgument is what stands for an expression in a placeholder: its texts if it is a choice of them, else the last name in it that is
// not a function's.
func cArgument(expr string) string {
	if texts := alternatives(expr); strings.Contains(expr, "?") && len(texts) > 0 {
		for i, t := range texts {
			if t == "" {
				texts[i] = "..."
			}
		}
		return strings.Join(texts, "|")
	}
	expr = cCast.ReplaceAllString(expr, "")
	if strings.HasPrefix(expr, "FN") || strings.HasPrefix(expr, "spx_fn_name") {
		return "function"
	}
	if strings.HasPrefix(expr, "strerror") || strings.Contains(expr, "spx_detail_text") {
		return "reason"
	}
	last, call := "", ""
	for _, m := range cNames.FindAllString(expr, -1) {
		if strings.HasSuffix(m, "(") {
			call = strings.TrimSpace(strings.TrimSuffix(m, "("))
		} else {
			last = m
		}
	}
	if last == "" {
		last = call
	}
	if w, ok := cWords[last]; ok {
		return w
	}
	if last == "" {
		return "..."
	}
	if strings.HasSuffix(expr, " - 1") {
		last += " - 1"
	}
	return strings.TrimPrefix(last, "spx_")
}
