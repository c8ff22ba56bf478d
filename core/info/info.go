// Package info implements info objects (MPI-5.0, chapter 10): small ordered lists of (key, value)
// strings. It owns no handles and gives no key a meaning.
package info

import (
	"slices"
	"sync"

	"libspx/core/mpierr"
)

// Limits of the standard ABI; they count the NUL that ends a string in C.
const (
	MaxKey   = 256  // MPI_MAX_INFO_KEY
	MaxValue = 1024 // MPI_MAX_INFO_VAL
)

type pair struct{ key, value string }

// Info is a list of pairs in the order in which their keys were first set. It is safe for
// concurrent use.
type Info struct {
	mu       sync.Mutex
	pairs    []pair
	readOnly bool
}

// New returns an info object with the given keys and values, alternating.
func New(keyValues ...string) *Info {
	in := &Info{}
	for k := 0; k+1 < len(keyValues); k += 2 {
		in.pairs = append(in.pairs, pair{keyValues[k], keyValues[k+1]})
	}
	return in
}

// Freeze makes in read-only, as MPI_INFO_ENV is, and returns it.
func (in *Info) Freeze() *Info {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.readOnly = true
	return in
}

// CheckKey returns an error of class MPI_ERR_INFO_KEY for a key that is empty or too long.
func CheckKey(key string) error {
	switch {
	case key == "":
		return mpierr.New(mpierr.InfoKey, "the key is empty")
	case len(key) >= MaxKey:
		return mpierr.New(mpierr.InfoKey,
			"the key %.32q... has %d characters; MPI_MAX_INFO_KEY allows %d", key, len(key),
			MaxKey-1)
	}
	return nil
}

func (in *Info) find(key string) int {
	return slices.IndexFunc(in.pairs, func(p pair) bool { return p.key == key })
}

// Set adds a pair, or replaces the value of a key that is there (MPI_Info_set).
func (in *Info) Set(key, value string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if len(value) >= MaxValue {
		return mpierr.New(mpierr.InfoValue,
			"the value of key %q has %d characters; MPI_MAX_INFO_VAL allows %d", key, len(value),
			MaxValue-1)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.readOnly {
		return mpierr.New(mpierr.Info,
			"the info object is read-only (MPI_INFO_ENV); work on a duplicate of it")
	}
	if k := in.find(key); k >= 0 {
		in.pairs[k].value = value
	} else {
		in.pairs = append(in.pairs, pair{key, value})
	}
	return nil
}

// Delete removes a key (MPI_Info_delete): MPI_ERR_INFO_NOKEY when it is not there.
func (in *Info) Delete(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	k := in.find(key)
	switch {
	case in.readOnly:
		return mpierr.New(mpierr.Info,
			"the info object is read-only (MPI_INFO_ENV); work on a duplicate of it")
	case k < 0:
		return mpierr.New(mpierr.InfoNoKey, "the key %q is not in the info object", key)
	}
	in.pairs = slices.Delete(in.pairs, k, k+1)
	return nil
}

// Get returns the value of a key, and whether it is there.
func (in *Info) Get(key string) (value string, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if k := in.find(key); k >= 0 {
		return in.pairs[k].value, true
	}
	return "", false
}

// Len returns the number of keys (MPI_Info_get_nkeys).
func (in *Info) Len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.pairs)
}

// Key returns the n-th key, counted from 0 (MPI_Info_get_nthkey).
func (in *Info) Key(n int) (string, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n < 0 || n >= len(in.pairs) {
		return "", mpierr.New(mpierr.Arg,
			"n is %d, but the info object has %d keys, counted from 0", n, len(in.pairs))
	}
	return in.pairs[n].key, nil
}

// Clone returns a copy that may be changed (MPI_Info_dup). The clone of nil is empty.
func (in *Info) Clone() *Info {
	if in == nil {
		return &Info{}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return &Info{pairs: slices.Clone(in.pairs)}
}

// Merge sets every pair of other in in.
func (in *Info) Merge(other *Info) {
	for _, p := range other.Clone().pairs {
		in.mu.Lock()
		if k := in.find(p.key); k >= 0 {
			in.pairs[k].value = p.value
		} else {
			in.pairs = append(in.pairs, p)
		}
		in.mu.Unlock()
	}
}
