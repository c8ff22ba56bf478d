package trace

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// The page is whole, needs nothing of the network, and shows what the timeline has.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	spxctl := filepath.Join(harness.Build(t), "bin/spxctl")
	file := filepath.Join(dir, "t.json.gz")
	words := slices.Insert(harness.Spxrun(t, "3", compile(t, "dies"), "on"), 1, "--with-ft", "--trace", file)
	if o := harness.Run(t, harness.Command{Args: words}); o.Status != 0 {
		t.Fatalf("status %d\n%s", o.Status, o.Text())
	}
	o := harness.Run(t, harness.Command{Args: []string{spxctl, "report", file}, Dir: dir, Limit: time.Minute})
	if o.Status != 0 || o.Stdout != filepath.Join(dir, "t.html")+"\n" {
		t.Fatalf("status %d\n%s", o.Status, o.Text())
	}
	text, err := os.ReadFile(filepath.Join(dir, "t.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, want := range []string{"rank 1 was killed by signal 9 (killed)", "MPI_Barrier", "main (", "dies.c:", "collectives"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, outside := range []string{"http:", "https:", "src=", "href=", "@import", "url("} {
		if strings.Contains(page, outside) {
			t.Errorf("the page needs something else: %s", outside)
		}
	}
	if n := strings.Count(page, "<svg"); n < 4 || n != strings.Count(page, "</svg>") {
		t.Errorf("%d pictures", n)
	}
	if bad := regexp.MustCompile(`="(NaN|[+-]?Inf|-[0-9.]+)"|ZgotmplZ`).FindString(page); bad != "" {
		t.Errorf("a picture has %s", bad)
	}
	if o := harness.Run(t, harness.Command{Args: []string{spxctl, "report", spxctl}}); o.Status != 1 || !strings.Contains(o.Stderr, "is no timeline of spxrun --trace") {
		t.Errorf("another file: status %d\n%s", o.Status, o.Text())
	}
}
