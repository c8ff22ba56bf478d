package api

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Setting is one row of settings.tsv: an environment variable that libspx, its programs or its tests read. The environment
// parser, the control variables of MPI_T and docs/settings.md are made from this table.
type Setting struct {
	Name  string // of the environment variable
	Was   string // its name before, which is read where the new one is not set; empty: it had no other
	Area  string // what it is about: the category of MPI_T
	Type  string // count, bytes, switch, choice (in the table: what may be chosen, as a|b: Choices), text: a setting of libspx; job: set by spxrun; tests: read by tests and tools alone
	Field string // member of spx_settings that holds the value while MPI runs, or empty
	// what holds when nothing is set: it begins with a number (K, M, G), which is the preset where nothing else is said, or with auto, which is 0
	Preset      string
	Min, Max    string   // empty: no bound; Min auto: 0, which may be written so
	Choices     []string // of a choice: beside auto, or all of them if the preset is another one, which is the first
	Scope       string   // MPI_T_SCOPE_*: local, all, all_eq, constant ...
	Level       string   // MPI_T_VERBOSITY_*: user_basic ... mpidev_all
	When        string   // when it may change: any, start (until MPI_Init), load (until the library is loaded)
	Description string
}

// LoadSettings reads the table.
func LoadSettings() ([]*Setting, error) {
	var out []*Setting
	err := rows("settings.tsv", 11, func(f []string) error {
		s := &Setting{Name: f[0], Area: f[1], Type: f[2], Field: f[3], Preset: f[4], Min: f[5], Max: f[6], Scope: f[7], Level: f[8], When: f[9], Description: f[10]}
		if all := strings.Split(s.Type, "|"); len(all) > 1 {
			s.Type, s.Choices = "choice", all
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("settings.tsv: %s: %w", s.Name, err)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, rows("renamed.tsv", 2, func(f []string) error {
		i := slices.IndexFunc(out, func(s *Setting) bool { return s.Name == f[1] })
		if i < 0 || !out[i].Control() || out[i].Was != "" {
			return fmt.Errorf("renamed.tsv: %s is to be one setting of libspx", f[1])
		}
		out[i].Was = f[0]
		return nil
	})
}

// Automatic tells whether the number may be written as auto, which is 0.
func (s *Setting) Automatic() bool { return s.Min == "auto" }

// Control tells whether the setting is a control variable of MPI_T.
func (s *Setting) Control() bool { return s.Type != "job" && s.Type != "tests" }

var settingName = regexp.MustCompile(`^SPX_[A-Z0-9_]+$`)

func (s *Setting) check() error {
	if !settingName.MatchString(s.Name) {
		return fmt.Errorf("is no name of a setting")
	}
	if !oneOf(s.Type, "count", "bytes", "switch", "text", "choice", "job", "tests") {
		return fmt.Errorf("type %q", s.Type)
	}
	if !oneOf(s.Scope, "constant", "readonly", "local", "group", "group_eq", "all", "all_eq") {
		return fmt.Errorf("scope %q", s.Scope)
	}
	if !oneOf(s.When, "any", "start", "load") {
		return fmt.Errorf("when %q", s.When)
	}
	who, much, _ := strings.Cut(s.Level, "_")
	if !oneOf(who, "user", "tuner", "mpidev") || !oneOf(much, "basic", "detail", "all") {
		return fmt.Errorf("level %q", s.Level)
	}
	for _, v := range []string{s.Preset, s.Min, s.Max} {
		if _, err := SettingNumber(v); err != nil && oneOf(s.Type, "count", "bytes", "switch") {
			return err
		}
	}
	if s.Description == "" {
		return fmt.Errorf("has no description")
	}
	return nil
}

func oneOf(s string, all ...string) bool { return slices.Contains(all, s) }

var leadingNumber = regexp.MustCompile(`^(\d+)([KMG]?)`)

// SettingNumber reads the number at the beginning of a value, 0 when the value is empty.
func SettingNumber(v string) (uint64, error) {
	if v == "" || v == "auto" {
		return 0, nil
	}
	m := leadingNumber.FindStringSubmatch(v)
	if m == nil {
		return 0, fmt.Errorf("%q does not begin with a number", v)
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	return n << (10 * strings.Index(" KMG", m[2]+" "[len(m[2]):])), err
}
