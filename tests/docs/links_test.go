package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"libspx/tests/harness"
)

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineCode = regexp.MustCompile("`[^`]*`")
	dropped    = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// pages are all texts of the repository that people read, by their paths below its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(harness.Root(), func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // vanished meanwhile
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "out" || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(p, ".md"):
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(harness.Root(), p)
			list[filepath.ToSlash(rel)] = string(text)
		}
		return nil
	})
	if err != nil || len(list) < 40 {
		t.Fatalf("%d pages, %v", len(list), err)
	}
	return list
}

// prose are the lines of a page that are not indented code.
func prose(text string) (lines []string) {
	blank := true
	for _, line := range strings.Split(text, "\n") {
		code := strings.HasPrefix(line, "    ") && blank
		if !code {
			lines = append(lines, line)
		}
		blank = code || strings.TrimSpace(line) == ""
	}
	return lines
}

// anchors are the fragments by which the headings of a page are reached, as GitHub and the site make them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, line := range prose(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			title = link.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			found[strings.ReplaceAll(dropped.ReplaceAllString(title, ""), " ", "-")] = true
		}
	}
	return found
}

// brokenLinks are the relative links of a page that lead nowhere.
func brokenLinks(all map[string]string, page string) (broken []string, checked int) {
	for _, line := range prose(all[page]) {
		for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "x"), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			checked++
			name, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			text, isPage := all[target]
			if _, err := os.Stat(filepath.Join(harness.Root(), target)); err != nil && !isPage {
				broken = append(broken, page+": "+m[1]+" does not exist")
			} else if anchor != "" && !anchors(text)[anchor] {
				broken = append(broken, page+": "+m[1]+": no such heading")
			}
		}
	}
	return broken, checked
}

// Every relative link in every page leads to a file that is there, and to a heading of it if it names one.
func TestLinks(t *testing.T) {
	all, sum := pages(t), 0
	for page := range all {
		broken, n := brokenLinks(all, page)
		sum += n
		for _, b := range broken {
			t.Error(b)
		}
	}
	if sum < 150 {
		t.Errorf("only %d links: are they still found?", sum)
	}
}

// What TestLinks is for is found.
func TestLinksBite(t *testing.T) {
	all := map[string]string{"docs/a.md": "# One `two`: three\n\n[x](b.md) [y](#one-two-three) [z](../c.md#d)\n\n    [code](not.md)\n", "c.md": "# e\n"}
	broken, n := brokenLinks(all, "docs/a.md")
	if n != 3 || len(broken) != 2 || !strings.Contains(broken[0], "b.md does not exist") || !strings.Contains(broken[1], "no such heading") {
		t.Errorf("%d links, broken: %q", n, broken)
	}
}
