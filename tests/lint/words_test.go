package lint

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"libspx/tests/harness"
)

// words.tsv has the words that a reader from the field does not know, or that stand for a process as
// if it were a person: each with the term for it, and how often it stands in code and comments today.
// That may only become less.
const wordsFile = "tests/lint/words.tsv"

// A word of the table. Where: folders, separated by spaces; none: all.
type word struct {
	text, plain string
	where       []string
	most        int
}

func readWords(t *testing.T) (list []*word) {
	data, err := os.ReadFile(filepath.Join(harness.Root(), wordsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		most, err := strconv.Atoi(f[1])
		if len(f) != 4 || err != nil {
			t.Fatalf("%s: not a row of four: %q", wordsFile, line)
		}
		list = append(list, &word{f[0], f[2], strings.Fields(f[3]), most})
	}
	return list
}

func (w *word) holds(p string) bool {
	return len(w.where) == 0 || slices.ContainsFunc(w.where, func(dir string) bool {
		return strings.HasPrefix(p, dir)
	})
}

// literals are the strings and characters of C and Go; what stands before is a comment, or code.
var literals = regexp.MustCompile("(?s)//[^\n]*|/\\*.*?\\*/|\"(?:\\\\.|[^\"\\\\\n])*\"|`[^`]*`|'(?:\\\\.|[^'\\\\\n])+'")

// withoutLiterals is a file's text but its strings: texts for users have words of their own.
func withoutLiterals(text []byte) []byte {
	return literals.ReplaceAllFunc(text, func(b []byte) []byte {
		if b[0] == '/' {
			return b
		}
		return bytes.Repeat([]byte("\n"), bytes.Count(b, []byte("\n")))
	})
}

// parts are the words of a text in lower case, those of which names are made, too: spx_vault_take and
// takeVaults are of three and of two.
func parts(text []byte, each func(w string)) {
	var b []rune
	end := func() {
		if len(b) > 0 {
			each(string(b))
			b = b[:0]
		}
	}
	var before rune
	for _, r := range string(text) {
		switch {
		case !unicode.IsLetter(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			b = append(b, unicode.ToLower(r))
		default:
			b = append(b, unicode.ToLower(r))
		}
		before = r
	}
	end()
}

// counts are how often each word of the table stands in a text. A word of several is looked for in
// the text of lower case with single spaces.
func counts(list []*word, text []byte, p string, add func(w *word)) {
	single := map[string][]*word{}
	var several []*word
	for _, w := range list {
		switch {
		case !w.holds(p):
		case strings.Contains(w.text, " "):
			several = append(several, w)
		default:
			single[w.text] = append(single[w.text], w)
		}
	}
	var flat strings.Builder
	parts(text, func(s string) {
		for _, w := range single[s] {
			add(w)
		}
		flat.WriteString(s + " ")
	})
	for _, w := range several {
		for range strings.Count(flat.String(), w.text+" ") {
			add(w)
		}
	}
}

// TestWords: no word of the table stands anywhere more often than it did.
func TestWords(t *testing.T) {
	list, found, first := readWords(t), map[*word]int{}, map[*word][]string{}
	for _, f := range files(t, ".go", ".c", ".h") {
		if f.generated() || path.Base(f.path) == "words_test.go" {
			continue
		}
		counts(list, withoutLiterals(f.text), f.path, func(w *word) {
			found[w]++
			if n := len(first[w]); n < 5 && (n == 0 || first[w][n-1] != f.path) {
				first[w] = append(first[w], f.path)
			}
		})
	}
	for _, w := range list {
		if n := found[w]; n > w.most {
			t.Errorf("%q stands %d times in code and comments, and stood %d times: write %s (it is in %s, and perhaps elsewhere)",
				w.text, n, w.most, w.plain, strings.Join(first[w], ", "))
		} else if n < w.most && !*rewrite {
			t.Logf("%q: %d of %d are left; go test ./tests/lint -run TestWords -rewrite notes it", w.text, n, w.most)
		}
	}
	if *rewrite {
		rewriteWords(t, list, found)
	}
}

// rewriteWords lowers the counts of the table to what there is.
func rewriteWords(t *testing.T, list []*word, found map[*word]int) {
	file := filepath.Join(harness.Root(), wordsFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		f := strings.Split(line, "\t")
		if len(f) == 4 && line[0] != '#' {
			i := slices.IndexFunc(list, func(w *word) bool {
				return w.text == f[0] && strings.Join(w.where, " ") == strings.TrimSpace(f[3])
			})
			f[1] = fmt.Sprint(min(list[i].most, found[list[i]]))
			line = strings.Join(f, "\t")
		}
		b.WriteString(line)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestWordsAreSeen: in names, comments, and across lines; not in strings.
func TestWordsAreSeen(t *testing.T) {
	list := []*word{{text: "vault", where: []string{"capi/"}}, {text: "hand on"}, {text: "nobody"}}
	text := "int spx_vault_take(int theVault); // the vault's; nobody\n// is to hand\n// on \"vault\"\nchar *s = \"nobody, vault\";\nint vaulted;"
	for p, want := range map[string]string{"capi/a.c": "vault 4, hand on 1, nobody 1", "core/a.c": "vault 0, hand on 1, nobody 1"} {
		n := map[*word]int{}
		counts(list, withoutLiterals([]byte(text)), p, func(w *word) { n[w]++ })
		var got []string
		for _, w := range list {
			got = append(got, fmt.Sprintf("%s %d", w.text, n[w]))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", p, s, want)
		}
	}
}
