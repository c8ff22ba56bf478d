// Package machine names the machine that a page of figures was measured on. Pages are made from files of figures, perhaps elsewhere and later: the name is kept
// with the figures.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Name is this machine's: processors and kernel.
func Name() string {
	model := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d x %s, Linux %s", runtime.NumCPU(), model, strings.TrimSpace(string(kernel)))
}

// Add is a list with this machine in it, once.
func Add(list []string) []string {
	if name := Name(); !slices.Contains(list, name) {
		list = append(list, name)
	}
	return list
}

// Sentence is what a page says of the machines that its figures are from; empty names are figures of which that was not kept.
func Sentence(list []string) string {
	var known []string
	for _, name := range list {
		if name != "" && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	switch more := slices.Contains(list, ""); {
	case len(known) == 0:
		return "The machine was not noted."
	case more:
		return "Measured on " + strings.Join(known, "; and on ") + "; the machine of older figures was not noted."
	}
	return "Measured on " + strings.Join(known, "; and on ") + "."
}
