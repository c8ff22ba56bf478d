package hosts

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	text := "# hosts\nlocalhost slots=4 max_slots=8\n\na:3  # three\nb slots = 2\n::1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := List([]string{"x", " y:2", "[fe80::1]:2"}, []string{file})
	if err != nil {
		t.Fatal(err)
	}
	want := []Host{{"x", 0, "-host"}, {"y", 2, "-host"}, {"fe80::1", 2, "-host"},
		{"localhost", 4, file + ", line 2"}, {"a", 3, file + ", line 4"},
		{"b", 2, file + ", line 5"}, {"::1", 0, file + ", line 6"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMistakes(t *testing.T) {
	if _, err := List(nil, []string{"/nonexistent/hosts"}); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/hosts: no such file") {
		t.Errorf("missing file: %v", err)
	}
	for entry, want := range map[string]string{"": "names no host",
		"a:x": `"x" is not a number of slots`, "a:0": `"0" is not`, ":3": "names no host",
		"-oProxyCommand=id": "is no name of a host", "-l:2": "is no name of a host",
		"[-x]:2": "is no name of a host", "a b": "is no name of a host",
		"a\x1bc": "is no name of a host"} {
		if _, err := List([]string{entry}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", entry, err, want)
		}
	}
	for text, want := range map[string]string{
		"a slots=x": `f, line 1: "x" is not a number of slots`,
		"\na b":     `f, line 2: "b" is not NAME=VALUE`,
	} {
		if _, err := Parse(text, "f"); err == nil || err.Error()[:len(want)] != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Names that a remote shell would take for options get nowhere near it, wherever they come from.
func TestOptionsAsNames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "nodes")
	if err := os.WriteFile(file, []byte("n1\n-oProxyCommand=id\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]map[string]string{
		"PBS": {"PBS_JOBID": "1", "PBS_NODEFILE": file}, "LSF": {"LSB_JOBID": "1",
			"LSB_MCPU_HOSTS": "n1 2 -oProxyCommand=id 2"}, "file": {"SPX_HOSTFILE": file},
	} {
		list, _, err := Find(nil, nil, nil, func(name string) string { return env[name] })
		if err == nil || !strings.Contains(err.Error(), "is no name of a host") {
			t.Errorf("%s: %v, error %v", name, list, err)
		}
	}
	if got := Shell([]string{"/usr/bin/ssh", "-x"}, "n1", "line"); strings.Join(got,
		" ") != "/usr/bin/ssh -x -- n1 line" {
		t.Errorf("ssh: %q", got)
	}
	if got := Shell([]string{"rsh"}, "n1", "line"); strings.Join(got, " ") != "rsh n1 line" {
		t.Errorf("rsh: %q", got)
	}
}

func TestLocal(t *testing.T) {
	n := Names{Host: "Node7.example.org", Addresses: []net.IP{net.ParseIP("10.0.0.7")}}
	for name, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true,
		"node7": true, "node7.example.org": true, "10.0.0.7": true,
		"10.0.0.8": false, "node8": false, "node7.example.com": false, "": false} {
		if got := n.Local(name); got != want {
			t.Errorf("%q: local %v", name, got)
		}
	}
	if !(Names{Host: "node7"}).Local("node7.example.org") {
		t.Error("a full name of a host that knows its short one only")
	}
	service := map[string][]net.IP{"node7.a": {net.ParseIP("10.0.0.7")},
		"node7.b": {net.ParseIP("10.1.0.7")}, "node7.own": {net.ParseIP("127.0.1.1")}}
	asked := Names{Host: "node7", Addresses: n.Addresses,
		Lookup: func(name string) []net.IP { return service[name] }}
	for name, want := range map[string]bool{"node7.a": true, "node7.b": false, "node7.own": true,
		"node7.unknown": true, "node7": true, "node8.a": false} {
		if got := asked.Local(name); got != want {
			t.Errorf("%q, by its address: local %v", name, got)
		}
	}
}
