package ckpt

import "testing"

// Names of files in a directory that other programs write to, too.
func FuzzName(f *testing.F) {
	f.Add("a", FileName("a", Item{Generation: 1, Version: 2, Rank: 3, Ranks: 4}))
	f.Add("a-g1", "a-g1-g+1-v2-r3-of4.ckpt.tmp")
	f.Fuzz(func(t *testing.T, name, file string) {
		i, temporary, ok := ParseName(name, file)
		want := file
		if temporary {
			want = file[:len(file)-len(Temporary)]
		}
		if ok && FileName(name, i) != want {
			t.Errorf("%q is %+v, whose file is %q", file, i, FileName(name, i))
		}
	})
}
