package info

import "testing"

// What a program sets it gets back, and nothing else is accepted.
func FuzzSet(f *testing.F) {
	f.Add("key", "value")
	f.Add("", "")
	f.Add("mpi_memory_alloc_kinds", "system:device,mpi:x")
	f.Add(string(make([]byte, MaxKey)), "1")
	f.Add("k", string(make([]byte, MaxValue)))
	f.Fuzz(func(t *testing.T, key, value string) {
		in := New("first", "1")
		err := in.Set(key, value)
		fits := key != "" && len(key) < MaxKey && value != "" && len(value) < MaxValue
		if (err == nil) != fits && value != "" {
			t.Fatalf("key of %d, value of %d characters: %v", len(key), len(value), err)
		}
		if err != nil {
			return
		}
		if got, ok := in.Get(key); !ok || got != value {
			t.Errorf("%q: got %q, %v instead of %q", key, got, ok, value)
		}
		if err := in.Delete(key); err != nil {
			t.Error(err)
		}
	})
}
