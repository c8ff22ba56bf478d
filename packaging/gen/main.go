// Command gen makes what is installed beside programs and libraries from the tables of package api, the options of package
// launch/command and the commands of spxctl: manual pages, completion for shells, module files, the package description for CMake.
// It owns their texts, and reads nothing but the repository and the finished programs.
//
//	go run ./packaging/gen BUILD      writes into BUILD/share and BUILD/lib/cmake
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen BUILD")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging/gen:", err)
		os.Exit(1)
	}
}

// release is what every page and file says of the library.
type release struct{ version, date string }

var (
	versionLine = regexp.MustCompile(`(?m)^#define SPX_VERSION +"(.*)"`)
	dateLine    = regexp.MustCompile(`(?m)^#define SPX_VERSION_DATE +"(.*)"`)
)

func readRelease() (r release, err error) {
	text, err := os.ReadFile("capi/abi/version.h")
	if err != nil {
		return r, err
	}
	version, date := versionLine.FindSubmatch(text), dateLine.FindSubmatch(text)
	if version == nil || date == nil {
		return r, fmt.Errorf("capi/abi/version.h states no SPX_VERSION or no SPX_VERSION_DATE")
	}
	return release{string(version[1]), string(date[1])}, nil
}

func run(build string) error {
	r, err := readRelease()
	if err != nil {
		return err
	}
	files := map[string]string{} // below BUILD
	if err := functionPages(files, r); err != nil {
		return err
	}
	if err := programPages(files, r, build); err != nil {
		return err
	}
	if err := completions(files, build); err != nil {
		return err
	}
	for from, to := range map[string]string{
		"packaging/cmake/libspx-config.cmake":         "lib/cmake/libspx/libspx-config.cmake",
		"packaging/cmake/libspx-config-version.cmake": "lib/cmake/libspx/libspx-config-version.cmake",
		"packaging/valgrind/libspx.supp":              "share/libspx/valgrind.supp",
		"packaging/modules/libspx.tcl":                "share/modulefiles/libspx/" + r.version,
		"packaging/modules/libspx.lua":                "share/lmod/libspx/" + r.version + ".lua",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		files[to] = strings.ReplaceAll(string(text), "@VERSION@", r.version)
	}
	for _, dir := range []string{"share/man", "share/modulefiles", "share/lmod", "lib/cmake"} { // what is made no more must go
		if err := os.RemoveAll(filepath.Join(build, dir)); err != nil {
			return err
		}
	}
	for name, text := range files {
		file := filepath.Join(build, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// output runs a program of the build and returns what it prints.
func output(build, name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(build, "bin", name), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}
