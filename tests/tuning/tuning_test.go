// Package tuning runs a program with tables of a machine (docs/tuning.md): which file is read, when a line counts, what goes before it.
// A value that is none is how a test sees that a line was read: the program ends with a message that shows it.
package tuning

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

func TestTable(t *testing.T) {
	program := harness.Compile(t, "tuning/hello", []string{filepath.Join(harness.Root(), "examples/hello.c")})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	crowd := strconv.Itoa(runtime.NumCPU() + 1)
	const seen = "SPX_SPIN=lots: the value is to be a number"
	for _, c := range []struct {
		name  string
		named string   // text of the file that SPX_TUNING names
		home  string   // text of the user's table
		env   []string // besides
		ranks string
		want  string // in the message; "": the program runs
	}{
		{name: "a file that is named", named: "free SPX_SPIN lots\n", ranks: "1", want: seen},
		{name: "the user's", home: "free SPX_SPIN lots # too many\n", ranks: "1", want: seen},
		{name: "always", named: "always SPX_SPIN lots\n", ranks: "1", want: seen},
		{name: "crowded, and it is not", named: "crowded SPX_SPIN lots\n", ranks: "1"},
		{name: "crowded, and it is", named: "crowded SPX_SPIN lots\n", ranks: crowd, want: seen},
		{name: "free, and it is not", named: "free SPX_SPIN lots\n", ranks: crowd},
		{name: "the environment first", named: "free SPX_SPIN lots\n", env: []string{"SPX_SPIN=10"}, ranks: "1"},
		{name: "none", home: "free SPX_SPIN lots\n", env: []string{"SPX_TUNING=none"}, ranks: "1"},
		{name: "this host", home: "host " + host + "\nfree SPX_SPIN lots\n", ranks: "1", want: seen},
		{name: "any host", home: "host *\nfree SPX_SPIN lots\n", ranks: "1", want: seen},
		{name: "another host", home: "host elsewhere.invalid\nfree SPX_SPIN lots\n", ranks: "1"},
		{name: "another host, named", named: "host elsewhere.invalid\nfree SPX_SPIN lots\n", ranks: "1", want: seen},
		{name: "the first line of two", named: "free SPX_SPIN 10\nfree SPX_SPIN lots\n", ranks: "1"},
		{name: "a variable of the future", named: "free SPX_NOT_YET 3\n", ranks: "1"},
		{name: "comments and blanks", named: "\n# SPX_SPIN lots\n   \n\tfree\tSPX_SPIN\t10\n", ranks: "1"},
		{name: "a line that is none", named: "free SPX_SPIN 10\nSPX_SPIN 20\n", ranks: "1", want: "table:2: a line of the table is"},
		{name: "no such file", env: []string{"SPX_TUNING=/nonexistent/table"}, ranks: "1", want: "SPX_TUNING=/nonexistent/table: this file cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			env := append([]string{"HOME=" + dir}, c.env...)
			if c.named != "" {
				write(t, filepath.Join(dir, "table"), c.named)
				env = append(env, "SPX_TUNING="+filepath.Join(dir, "table"))
			}
			if c.home != "" {
				write(t, filepath.Join(dir, ".config/libspx/tuning"), c.home)
			}
			o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, c.ranks, program), Env: env, Limit: time.Minute})
			if (o.Status == 0) != (c.want == "") || o.Late || !strings.Contains(o.Stderr, c.want) {
				t.Errorf("exit status %d, want %q in:\n%s", o.Status, c.want, o.Text())
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
