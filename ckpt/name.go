package ckpt

import (
	"fmt"
	"strings"
)

// Suffixes of the files: of those that are whole, and of those that are being written.
const (
	suffix    = ".ckpt"
	Temporary = ".tmp"
)

// FileName is the name of the file that holds a part.
func FileName(name string, i Item) string {
	return fmt.Sprintf("%s-g%d-v%d-r%d-of%d%s", name, i.Generation, i.Version, i.Rank, i.Ranks,
		suffix)
}

// ParseName reports whether a file belongs to name, the part it should contain, and whether it is a
// temporary file of an unfinished write.
func ParseName(name, file string) (i Item, temporary, ok bool) {
	whole, temporary := strings.CutSuffix(file, Temporary)
	rest, found := strings.CutPrefix(whole, name+"-g")
	if !found {
		return Item{}, false, false
	}
	if _, err := fmt.Sscanf(rest, "%d-v%d-r%d-of%d"+suffix, &i.Generation, &i.Version, &i.Rank,
		&i.Ranks); err != nil {
		return Item{}, false, false
	}
	i.Kind = File
	return i, temporary, FileName(name, i) == whole
}
