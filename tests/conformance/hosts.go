package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hosts are those that scripts/hosts makes: each line's ranks are dealt out to them, one after the other.
type hosts struct {
	script, name string
	n            int
}

// newHosts makes n hosts, which see these folders; none for n = 0.
func newHosts(root string, n int, shared ...string) (*hosts, error) {
	if n == 0 {
		return nil, nil
	}
	h := &hosts{filepath.Join(root, "scripts/hosts"), fmt.Sprintf("c%x-", os.Getpid()%0x1000000), n}
	up := exec.Command(h.script, "up", h.name, fmt.Sprint(n))
	up.Env = append(os.Environ(), fmt.Sprintf("HOSTS_OWNER=%d", os.Getpid()), "HOSTS_SHARED="+strings.Join(shared, ":"))
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("hosts cannot be made here (it takes root and namespaces): %w\n%s", err, out)
	}
	return h, nil
}

// remove ends what runs on the hosts, and takes them away.
func (h *hosts) remove() {
	if h == nil {
		return
	}
	if out, err := exec.Command(h.script, "down", h.name).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "conformance: %v\n%s", err, out)
	}
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
