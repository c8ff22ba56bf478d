// Package manual builds manual pages in the language mdoc, for mandoc and groff. It owns the form alone: what a page says is its
// caller's. Text is escaped here, so that no caller needs to know the language.
package manual

import (
	"fmt"
	"strings"
)

// A Page is a manual page that grows from top to bottom.
type Page struct{ b strings.Builder }

// New begins a page: its title, section, the date as mdoc has it ("January 2, 2006") and what it is a part of.
func New(title, section, date, of string) *Page {
	p := &Page{}
	p.macro("Dd", date)
	p.macro("Dt", strings.ToUpper(title), section)
	p.macro("Os", quote(of))
	return p
}

// Name is the section NAME: names, and what they are in a few words.
func (p *Page) Name(words string, names ...string) {
	p.Section("NAME")
	for i, n := range names {
		if i < len(names)-1 {
			p.macro("Nm", n, ",")
		} else {
			p.macro("Nm", n)
		}
	}
	p.macro("Nd", Escape(words))
}

// Section begins a section; its heading is in capitals.
func (p *Page) Section(heading string) { p.macro("Sh", heading) }

// Subsection begins a part of a section.
func (p *Page) Subsection(heading string) { p.macro("Ss", Escape(heading)) }

// Paragraph begins a paragraph.
func (p *Page) Paragraph() { p.macro("Pp") }

// Text adds text, a sentence a line.
func (p *Page) Text(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	for _, sentence := range sentences(strings.Join(strings.Fields(text), " ")) {
		line := ""
		for _, word := range strings.Fields(sentence) {
			if line != "" && len(line)+1+len(word) > longestLine {
				p.line(Escape(line))
				line = ""
			}
			line = strings.TrimLeft(line+" "+word, " ")
		}
		p.line(Escape(line))
	}
}

const longestLine = 76

// Prose adds paragraphs behind a text, with empty lines between them; one with a line that begins with a blank stays as it is.
func (p *Page) Prose(text string) {
	for _, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if strings.Contains("\n"+part, "\n ") {
			p.Literal(part)
			continue
		}
		p.Paragraph()
		p.Text("%s", part)
	}
}

// Function is a prototype in C: result type, name, parameters.
func (p *Page) Function(result, name string, params []string) {
	p.macro("Ft", quote(result))
	p.macro("Fo", name)
	for _, a := range params {
		p.macro("Fa", quote(a))
	}
	p.macro("Fc")
}

// Include names the header of a prototype.
func (p *Page) Include(header string) { p.macro("In", header) }

// Literal is text as it stands, indented.
func (p *Page) Literal(text string) {
	p.macro("Bd", "-literal -offset indent")
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		p.line(Escape(line))
	}
	p.macro("Ed")
}

// List begins a list of terms with their explanations, EndList ends it.
func (p *Page) List() { p.macro("Bl", "-tag -width 8n") }

// EndList ends a List.
func (p *Page) EndList() { p.macro("El") }

// Term begins an entry of a List: kind is the macro of mdoc that shows the term (Fa argument, Er error, Ev variable, Cm command ...).
func (p *Page) Term(kind string, term string) { p.macro("It", kind, quote(term)) }

// See refers to other pages, as name and section.
func (p *Page) See(refs [][2]string) {
	p.Section("SEE ALSO")
	for i, r := range refs {
		if i < len(refs)-1 {
			p.macro("Xr", r[0], r[1], ",")
		} else {
			p.macro("Xr", r[0], r[1])
		}
	}
}

// Raw adds a line of mdoc.
func (p *Page) Raw(line string) { p.line(line) }

// String is the page.
func (p *Page) String() string { return p.b.String() }

func (p *Page) macro(name string, args ...string) {
	p.line(strings.TrimRight("."+name+" "+strings.Join(args, " "), " "))
}

func (p *Page) line(text string) { p.b.WriteString(text + "\n") }

// Escape makes a line of text safe: backslashes, a period or quote at the beginning of the line, minus signs of options.
func Escape(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "--", `\-\-`)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	if strings.HasPrefix(text, "-") {
		text = `\` + text
	}
	return strings.ReplaceAll(text, " -", ` \-`)
}

// quote makes an argument of a macro.
func quote(arg string) string {
	if arg == "" {
		return `""`
	}
	escaped := strings.ReplaceAll(Escape(arg), `"`, `""`)
	if strings.ContainsAny(arg, " \"") {
		return `"` + escaped + `"`
	}
	if len(arg) == 2 || len(arg) == 1 { // might be the name of a macro, or punctuation
		return `\&` + escaped
	}
	return escaped
}

// sentences cuts text behind the periods that end sentences: a small letter does not follow.
func sentences(text string) (out []string) {
	for {
		at := strings.Index(text, ". ")
		for at >= 0 && at+2 < len(text) && !(text[at+2] >= 'A' && text[at+2] <= 'Z') {
			next := strings.Index(text[at+2:], ". ")
			if next < 0 {
				at = -1
				break
			}
			at += 2 + next
		}
		if at < 0 {
			return append(out, text)
		}
		out, text = append(out, text[:at+1]), text[at+2:]
	}
}
