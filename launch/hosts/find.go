package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Find returns the hosts of a command line, by the entries of -host and the files of -hostfile, or
// else by SPX_HOSTFILE, or else by a batch system's allocation; and the command by which they are
// reached, if none is given (nil): SPX_RSH, the batch system's where it gave the hosts, or ssh.
// getenv is os.Getenv. The list is empty where nothing names a host.
func Find(entries, files, rsh []string, getenv func(string) string) (list []Host, how []string,
	err error) {
	if file := getenv("SPX_HOSTFILE"); file != "" && len(entries)+len(files) == 0 {
		files = []string{file}
	}
	if list, err = List(entries, files); err != nil {
		return nil, nil, err
	}
	given, err := granted(getenv)
	if err != nil && len(list) == 0 {
		return nil, nil, err
	}
	if given != nil && len(list) == 0 {
		list = given.Hosts
	}
	switch {
	case rsh != nil:
	case getenv("SPX_RSH") != "":
		rsh = strings.Fields(getenv("SPX_RSH"))
	case given != nil && given.Has(list):
		rsh = given.Rsh // which reaches no other hosts
	}
	if len(rsh) == 0 {
		rsh = SSH
	}
	for _, h := range list { // a batch system's are no better than the user's
		if !IsName(h.Name) {
			return nil, nil, fmt.Errorf("%s: %q is no name of a host", h.From, h.Name)
		}
	}
	return list, rsh, nil
}

// SSH reaches other hosts by default: without a terminal, and without questions.
var SSH = []string{"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o",
	"ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"}

// granted is a batch system's allocation; nil: none, or SPX_ALLOCATION=none disables its use.
func granted(getenv func(string) string) (*Allocation, error) {
	if getenv("SPX_ALLOCATION") == "none" {
		return nil, nil
	}
	a, err := Allocated(getenv, os.ReadFile)
	if err != nil {
		err = fmt.Errorf(
			"%w (-host or -hostfile names hosts, SPX_ALLOCATION=none runs all on this one)", err)
	}
	return a, err
}

// Shell is the command that has a host's shell run a line: the host's name stands where rsh has
// HostWord, or behind it.
func Shell(rsh []string, host, line string) []string {
	words, named := make([]string, 0, len(rsh)+2), false
	for _, w := range rsh {
		named = named || strings.Contains(w, HostWord)
		words = append(words, strings.ReplaceAll(w, HostWord, host))
	}
	// what follows is no option, whatever it is
	if !named && len(rsh) > 0 && filepath.Base(rsh[0]) == "ssh" {
		words = append(words, "--")
	}
	if !named {
		words = append(words, host)
	}
	return append(words, line)
}

// Quote makes one word of text for a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
