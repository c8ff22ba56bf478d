package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	spxrun "libspx/launch/command"
	"libspx/tests/harness"
)

// Commands that another test executes are executed there in another form, with its own hosts, files and programs. As they are
// printed, their options must be ones that spxrun and spxctl have: bash splits the line, and their own parsers read it.

// recorder defines the programs as functions that write their words to descriptor 3, zero-terminated, with an empty one behind.
const recorder = `PATH=/nonexistent
for name in spxrun mpirun mpiexec spxctl; do eval "$name() { printf '%s\0' $name \"\$@\" '' >&3; }"; done
`

// placeholders are words of pages that stand for what the reader puts there.
var placeholders = regexp.MustCompile(`\[options\]| \.\.\.`)

// wordsOf are the calls of spxrun (by any of its names) and spxctl that a command line makes.
func wordsOf(dir, text string) (calls [][]string, err error) {
	words := filepath.Join(dir, "words")
	bash := exec.Command("bash", "-c", recorder+placeholders.ReplaceAllString(text, "")+"\ntrue")
	bash.Dir = dir
	file, err := os.Create(words)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	bash.ExtraFiles = []*os.File{file}
	if out, err := bash.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("bash: %w\n%s", err, out)
	}
	written, err := os.ReadFile(words)
	if err != nil {
		return nil, err
	}
	for _, call := range strings.Split(strings.TrimSuffix(string(written), "\x00\x00"), "\x00\x00") {
		if call != "" {
			calls = append(calls, strings.Split(call, "\x00"))
		}
	}
	return calls, nil
}

// misread says why the words of a call are none that its program takes; empty: it takes them.
func misread(t *testing.T, words []string) string {
	t.Helper()
	if words[0] != "spxctl" {
		if len(words) == 1 {
			return "" // the program's name alone
		}
		_, err := spxrun.Parse(words[1:], nil)
		if err != nil && !strings.Contains(err.Error(), "no program") {
			return err.Error()
		}
		return ""
	}
	// cobra's completion parses the words before the last one, and reports what it cannot read.
	o := harness.Run(t, harness.Command{Args: append(append([]string{filepath.Join(harness.Build(t), "bin/spxctl"), "__complete"}, words[1:]...), "")})
	for _, line := range strings.Split(o.Stdout+o.Stderr, "\n") {
		if _, wrong, found := strings.Cut(line, "[Error] "); found {
			return wrong
		}
	}
	return ""
}

// parses says what is wrong with a command as it is printed.
func (c *checker) parses(text string) string {
	if !regexp.MustCompile(`\b(spxrun|mpirun|mpiexec|spxctl)\b`).MatchString(text) {
		return ""
	}
	calls, err := wordsOf(c.t.TempDir(), text)
	if err != nil {
		return err.Error()
	}
	for _, words := range calls {
		if wrong := misread(c.t, words); wrong != "" {
			return fmt.Sprintf("%q: %s", words, wrong)
		}
	}
	return ""
}

// What parses is for is found.
func TestParsesBites(t *testing.T) {
	c := &checker{t: t}
	for text, good := range map[string]bool{
		"spxrun -n 2 -no-such-option ./a.out":              false,
		"spxrun -n two ./a.out":                            false,
		"SPX_X=1 spxrun -n 2 ./a.out && spxctl jobs -q":    false,
		"spxctl topology --hots a":                         false,
		"spxctl topolgy":                                   false,
		"spxctl topology -host a,b --json":                 true,
		"until spxrun --with-ft ./a.out; do sleep 1; done": true,
		`spxrun --rsh "scripts/hosts rsh" -host a:2 ...`:   true,
	} {
		if wrong := c.parses(text); (wrong == "") != good {
			t.Errorf("%s: %q", text, wrong)
		}
	}
}
