package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

var reference = regexp.MustCompile(`<(a|link|script|img)\b[^>]*?\b(?:href|src)="([^"]*)"`)

// The site is built without a warning; every page of docs/ is in its navigation; every link in it leads to a file and a place that are there, and
// nothing is fetched from elsewhere.
func TestSite(t *testing.T) {
	harness.Need(t, "site", "mkdocs", "/usr/share/mkdocs/themes/material/main.html")
	out := t.TempDir()
	o := harness.Start(t, harness.Command{Args: []string{"mkdocs", "build", "--strict", "--site-dir", out}, Dir: harness.Root(), Limit: 2 * time.Minute})
	if o.Status != 0 || o.Late {
		t.Fatalf("mkdocs build --strict: exit status %d\n%s", o.Status, o.Text())
	}
	if strings.Contains(o.Text(), "not included in the \"nav\"") {
		t.Errorf("docs/README.md, which the navigation is made from, lacks pages:\n%s", o.Text())
	}
	made := map[string]string{}
	err := filepath.WalkDir(out, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(out, p)
		made[rel] = ""
		if strings.HasSuffix(p, ".html") {
			text, err := os.ReadFile(p)
			made[rel] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for page, text := range made {
		if page == "404.html" { // its links begin at the site's root
			continue
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target := m[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "//") {
				if m[1] != "a" {
					t.Errorf("%s: <%s> fetches %s", page, m[1], target)
				}
				continue
			}
			links++
			name, anchor, _ := strings.Cut(target, "#")
			to := page
			if name != "" {
				to = path.Join(path.Dir(page), name)
			}
			if to == "." {
				to = "index.html"
			}
			there, ok := made[to]
			if !ok {
				t.Errorf("%s: %s does not exist", page, target)
			} else if anchor != "" && anchor != "__skip" && !strings.Contains(there, `id="`+anchor+`"`) {
				t.Errorf("%s: %s: no such place", page, target)
			}
		}
	}
	if links < 1000 {
		t.Errorf("only %d links: are they still found?", links)
	}
	for page, want := range map[string]string{"errors.html": "<li>", "running.html": "<table>", "checkpoint.html": "<pre>"} {
		if !strings.Contains(made[page], want) {
			t.Errorf("%s: no %s", page, want)
		}
	}
}
