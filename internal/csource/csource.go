// Package csource knows where the C code of the library lies: in folders below capi, one a layer.
// It reads the file system, and nothing else; tests, generators and lints share it.
package csource

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Roots are the folders below which all C code of the library lies, from the root of the repository.
var Roots = []string{"capi/abi", "capi/bodies", "capi/boundary", "capi/dataplane"}

// Files are the C files with one of these extensions (".c", ".h"), of Roots, from the root of the repository; sorted. Tests of the data plane are none.
func Files(root string, extensions ...string) (out []string, err error) {
	err = walk(root, func(name string, d fs.DirEntry) {
		if !d.IsDir() && slices.Contains(extensions, path.Ext(name)) {
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return out, err
}

// Folders are those that have C code, from the root of the repository; sorted. Each has to be known to a compiler.
func Folders(root string) (out []string, err error) {
	err = walk(root, func(name string, d fs.DirEntry) {
		if d.IsDir() {
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return out, err
}

func walk(root string, visit func(name string, d fs.DirEntry)) error {
	for _, dir := range Roots {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "test" || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			name, err := filepath.Rel(root, p)
			visit(filepath.ToSlash(name), d)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
