package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/api"
)

// A machine that is fastest with SPX_A=8 while ranks have processors, and as fast with the presets
// when they do not.
func pretend(calls *[]string) func(int, string, []string) (map[string]float64, error) {
	return func(ranks int, rows string, env []string) (map[string]float64, error) {
		*calls = append(*calls, strings.Join(env, " "))
		us := map[string]float64{"a 8": 10, "b 0": 100}
		switch {
		case ranks != 2:
		case slices.Contains(env, "SPX_A=8"):
			us["a 8"], us["b 0"] = 5, 101
		case slices.Contains(env, "SPX_A=4"):
			us["a 8"] = 9
		}
		return us, nil
	}
}

func TestTune(t *testing.T) {
	var calls []string
	tune := tuner{rounds: 3, gain: 0.04, crowd: 8, out: io.Discard, measure: pretend(&calls)}
	list := []knob{{"SPX_A", false, "a|b", []string{"4", "8"}}, {"SPX_B", false, "b", []string{"1"}}, {"SPX_A", true, "a", []string{"4", "8"}}}
	choices, err := tune.tune(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(choices) != 1 || choices[0].value != "8" || choices[0].gain > 0.72 || choices[0].gain < 0.70 {
		t.Fatalf("choices: %+v", choices)
	}
	if !slices.Contains(calls, "SPX_TUNING=none SPX_A=8 SPX_B=1") {
		t.Errorf("SPX_B was not measured with what had been found for SPX_A: %q", calls)
	}
	if slices.Contains(calls, "SPX_TUNING=none SPX_A=8 SPX_A=4") {
		t.Error("what was found with few ranks was used with many")
	}
	got := table(choices, "box", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	want := "# The table of libspx for this machine, made by spxctl tune on 2026-11-21. What is not here is as preset.\nhost box\nfree    SPX_A 8 # 0.71 of the preset's time\n"
	if got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
	tune.measure = func(int, string, []string) (map[string]float64, error) { return nil, errors.New("no processors") }
	if _, err := tune.tune(list); err == nil || !strings.Contains(err.Error(), "SPX_A: no processors") {
		t.Errorf("a failed measurement: %v", err)
	}
}

// Every knob is a setting, and its values are within the setting's bounds as far as they are
// numbers of bytes.
func TestKnobsAreSettings(t *testing.T) {
	tables, err := api.LoadSettings()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range tables {
		known[s.Name] = true
	}
	for _, k := range knobs {
		if !known[k.name] {
			t.Errorf("%s is no setting of libspx", k.name)
		}
	}
}
