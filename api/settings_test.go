package api

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What reads an environment variable, in each language.
var readers = map[string]*regexp.Regexp{
	".c":  regexp.MustCompile(`(?:getenv|env_number)\("(SPX_\w+)"\)`),
	".go": regexp.MustCompile(`(?:Getenv|LookupEnv)\("(SPX_\w+)"\)|=\s*"(SPX_[A-Z0-9_]+)"`),
	"":    regexp.MustCompile(`\$\{?(SPX_[A-Z0-9_]+)`),
	".sh": regexp.MustCompile(`\$\{?(SPX_[A-Z0-9_]+)`),
}

// The data plane's and the shims' C reads settings by their id, which does not compile without a row in the table; what is left
// is the environment itself.
func TestEveryVariableIsInTheTable(t *testing.T) {
	list, err := LoadSettings()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range list {
		if known[s.Name] {
			t.Errorf("settings.tsv: %s is there twice", s.Name)
		}
		known[s.Name] = true
		if s.Was != "" {
			known[s.Was] = true
		}
	}
	found := 0
	walkSources(t, func(path, text string) {
		re := readers[filepath.Ext(path)]
		if re == nil {
			return
		}
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			found++
			if name := strings.Join(m[1:], ""); !known[name] {
				t.Errorf("%s reads the environment variable %s, which has no row in api/settings.tsv", path, name)
			}
		}
	})
	if found < 15 {
		t.Errorf("only %d reads of variables were found: the patterns of this test are out of date", found)
	}
}

// Settings are read in one place.
func TestOnlySettingsReadsSettings(t *testing.T) {
	list, err := LoadSettings()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range list {
		if s.Control() && s.When != "load" {
			names = append(names, s.Name)
		}
	}
	re := regexp.MustCompile(`(?i)(?:getenv|lookupenv)\("(` + strings.Join(names, "|") + `)"\)`)
	walkSources(t, func(path, text string) {
		if strings.Contains(path, "capi/") && re.MatchString(text) {
			t.Errorf("%s reads %s from the environment: use spx_setting_*, so that MPI_T can write it", path, re.FindString(text))
		}
	})
}

func walkSources(t *testing.T, fn func(path, text string)) {
	t.Helper()
	for _, dir := range []string{"capi", "cmd", "launch", "internal", "shm", "core", "ft", "io", "bench", "scripts", "tests"} {
		root := filepath.Join("..", dir)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if d != nil && d.Name() == "out" {
					return fs.SkipDir
				}
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil {
				fn(path, string(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSettingNumber(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "17": 17, "16K": 16 << 10, "64M / processes": 64 << 20, "2G": 2 << 30, "20000; 0 else": 20000} {
		if got, err := SettingNumber(text); err != nil || got != want {
			t.Errorf("SettingNumber(%q) = %d, %v instead of %d", text, got, err, want)
		}
	}
	if _, err := SettingNumber("many"); err == nil {
		t.Error("SettingNumber(many): no error")
	}
}
