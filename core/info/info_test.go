package info

import (
	"strings"
	"testing"

	"libspx/core/mpierr"
)

func keys(t *testing.T, in *Info) string {
	t.Helper()
	var out []string
	for k := range in.Len() {
		key, err := in.Key(k)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key)
	}
	return strings.Join(out, " ")
}

func TestKeysKeepTheOrderOfTheirFirstSetting(t *testing.T) {
	in := New()
	for _, kv := range []string{"b=1", "a=2", "c=3", "a=4"} {
		key, value, _ := strings.Cut(kv, "=")
		if err := in.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	if got := keys(t, in); got != "b a c" {
		t.Errorf("keys = %q", got)
	}
	if v, ok := in.Get("a"); !ok || v != "4" {
		t.Errorf("a = %q, %v", v, ok)
	}
	if err := in.Delete("b"); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, in); got != "a c" {
		t.Errorf("keys after deletion = %q", got)
	}
}

func TestErrorClasses(t *testing.T) {
	in := New("k", "v")
	long := strings.Repeat("x", MaxKey)
	for what, c := range map[string]struct {
		err  error
		want mpierr.Class
	}{
		"set empty key":      {in.Set("", "v"), mpierr.InfoKey},
		"set long key":       {in.Set(long, "v"), mpierr.InfoKey},
		"set longest key":    {in.Set(long[1:], "v"), 0},
		"set long value":     {in.Set("v", strings.Repeat("x", MaxValue)), mpierr.InfoValue},
		"set longest value":  {in.Set("v", strings.Repeat("x", MaxValue-1)), 0},
		"delete missing key": {in.Delete("none"), mpierr.InfoNoKey},
		"delete long key":    {in.Delete(long), mpierr.InfoKey},
		"set read-only":      {New().Freeze().Set("k", "v"), mpierr.Info},
		"delete read-only":   {New("k", "v").Freeze().Delete("k"), mpierr.Info},
	} {
		if got := mpierr.ClassOf(c.err); got != c.want {
			t.Errorf("%s: class %d (%v), want %d", what, got, c.err, c.want)
		}
	}
	for _, n := range []int{-1, in.Len()} {
		if _, err := in.Key(n); mpierr.ClassOf(err) != mpierr.Arg {
			t.Errorf("key %d: %v", n, err)
		}
	}
}

func TestCloneIsIndependentAndWritable(t *testing.T) {
	in := New("k", "v").Freeze()
	out := in.Clone()
	if err := out.Set("k", "w"); err != nil {
		t.Fatal(err)
	}
	if v, _ := in.Get("k"); v != "v" {
		t.Errorf("the original changed to %q", v)
	}
	var none *Info
	if none.Clone().Len() != 0 {
		t.Error("the clone of nothing has keys")
	}
	out.Merge(New("k", "x", "new", "y"))
	if v, _ := out.Get("k"); v != "x" || out.Len() != 2 {
		t.Errorf("after Merge k = %q of %d keys", v, out.Len())
	}
}
