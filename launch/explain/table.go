package explain

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The machine's table, which spxctl tune writes, as libspx reads it
// (capi/dataplane/base/settings.c, docs/tuning.md).

// A table is the lines that count on a host.
type table struct {
	path string
	rows [][3]string // when, variable, value
}

// readTable finds the table of a process with an environment, on a host, and reads it; without one
// it is empty.
func readTable(getenv func(string) string, host string) (*table, error) {
	named := getenv("SPX_TUNING")
	if named == "none" {
		return &table{}, nil
	}
	places := []string{named}
	if named == "" {
		places = []string{"/etc/libspx/tuning"}
		if home := getenv("HOME"); home != "" {
			places = []string{filepath.Join(home, ".config/libspx/tuning"), "/etc/libspx/tuning"}
		}
	}
	for _, path := range places {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		defer f.Close()
		t := &table{path: path}
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			text, _, _ := strings.Cut(lines.Text(), "#")
			w := strings.Fields(text)
			switch {
			case len(w) == 0:
			case len(w) == 2 && w[0] == "host":
				if named == "" && w[1] != "*" && w[1] != host {
					return t, nil // all that follows is another host's
				}
			case len(w) == 3 && (w[0] == "always" || w[0] == "free" || w[0] == "crowded"):
				t.rows = append(t.rows, [3]string(w))
			default:
				return nil, fmt.Errorf(
					"%s:%d: a line of the table is 'host NAME' or 'always|free|crowded VARIABLE "+
						"VALUE'", path, n)
			}
		}
		return t, lines.Err()
	}
	if named != "" {
		return nil, fmt.Errorf("SPX_TUNING=%s: this file cannot be read; 'none' means no table",
			named)
	}
	return &table{}, nil
}

// value is the first line for a variable; "": there is none. crowded: the job's processes outnumber
// the processors.
func (t *table) value(name string, crowded bool) string {
	now := "free"
	if crowded {
		now = "crowded"
	}
	for _, r := range t.rows {
		if r[1] == name && (r[0] == "always" || r[0] == now) {
			return r[2]
		}
	}
	return ""
}
