package machine

import (
	"strings"
	"testing"
)

func TestSentence(t *testing.T) {
	for want, list := range map[string][]string{
		"The machine was not noted.":        nil,
		"Measured on a.":                    {"a", "a"},
		"Measured on a; and on b.":          {"a", "b", "a"},
		"Measured on a; the machine of old": {"", "a"},
	} {
		if got := Sentence(list); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
	if list := Add(Add(nil)); len(list) != 1 || !strings.Contains(list[0], "Linux ") {
		t.Errorf("%q", list)
	}
}
