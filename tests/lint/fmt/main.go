// Fmt formats the Go sources (gofmt) and the C sources (clang-format) that are written by hand, in place: `make fmt`. With
// arguments it formats these files alone.
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fmt:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = sources(); err != nil {
			return err
		}
	}
	var golang, c []string
	for _, f := range files {
		switch filepath.Ext(f) {
		case ".go":
			golang = append(golang, f)
		case ".c", ".h", ".cc":
			c = append(c, f)
		}
	}
	for _, tool := range []struct{ name, files []string }{{[]string{"gofmt", "-l", "-w"}, golang}, {[]string{"clang-format", "-i"}, c}} {
		if len(tool.files) == 0 {
			continue
		}
		out, err := exec.Command(tool.name[0], append(tool.name[1:], tool.files...)...).CombinedOutput()
		os.Stdout.Write(out)
		if err != nil {
			return fmt.Errorf("%s: %w", tool.name[0], err)
		}
	}
	return nil
}

// sources are all files but generated ones.
func sources() (list []string, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "out") {
			return fs.SkipDir
		}
		if d.IsDir() || strings.HasPrefix(d.Name(), "zz_") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		head := text[:min(len(text), 600)]
		if !bytes.Contains(head, []byte("DO NOT EDIT")) && !bytes.Contains(head, []byte("enerated by")) {
			list = append(list, p)
		}
		return nil
	})
	return list, err
}
