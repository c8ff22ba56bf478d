package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// hosts are network namespaces that scripts/hosts makes: each line's ranks are dealt out to them, one after the other.
type hosts struct {
	script, name string
	n            int
}

// newHosts makes n hosts; none for n = 0.
func newHosts(root string, n int) (*hosts, error) {
	if n == 0 {
		return nil, nil
	}
	h := &hosts{filepath.Join(root, "scripts/hosts"), fmt.Sprintf("c%x-", os.Getpid()%0x1000000), n}
	if out, err := exec.Command(h.script, "up", h.name, fmt.Sprint(n)).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("hosts cannot be made here (it takes root and network namespaces): %w\n%s", err, out)
	}
	if err := h.nameThem(); err != nil {
		h.remove()
		return nil, err
	}
	return h, nil
}

// etc is what ip(8) puts in the place of files of /etc for what runs on a host.
func (h *hosts) etc(i int) string { return filepath.Join("/etc/netns", h.name+strconv.Itoa(i)) }

// nameThem lets the hosts find each other by name, as those of a network do: spawn/join wants it.
func (h *hosts) nameThem() error {
	text := "127.0.0.1 localhost\n"
	for i := range h.n {
		text += fmt.Sprintf("10.77.0.%d %s%d\n", i+1, h.name, i+1)
	}
	for i := range h.n {
		if err := os.MkdirAll(h.etc(i+1), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(h.etc(i+1), "hosts"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// remove ends what runs on the hosts, and takes them away.
func (h *hosts) remove() {
	if h == nil {
		return
	}
	if out, err := exec.Command(h.script, "down", h.name).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n%s", err, out)
	}
	for i := range h.n {
		if err := os.RemoveAll(h.etc(i + 1)); err != nil {
			fmt.Fprintln(os.Stderr, "conformance:", err)
		}
	}
	os.Remove("/etc/netns") //nolint:errcheck // others may have something there
}

// command is a command line that starts spxrun on the first host, for all of them.
func (h *hosts) command(spxrun string) []string {
	if h == nil {
		return []string{spxrun}
	}
	var list []string
	for i := range h.n {
		list = append(list, fmt.Sprintf("%s%d:1", h.name, i+1))
	}
	return []string{h.script, "on", h.name + "1", spxrun, "--rsh", h.script + " rsh", "-host", strings.Join(list, ",")}
}

// env is what programs need that start others. Hosts with few ranks each cannot know that they share the processors.
func (h *hosts) env() []string {
	if h == nil {
		return nil
	}
	return []string{"SPX_RSH=" + h.script + " rsh", "SPX_SPIN=0"}
}
