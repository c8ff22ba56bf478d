package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"libspx/launch/control"
	"libspx/launch/service"
)

// realRow is a chain of clusters of real processes: what they use in a second.
type realRow struct {
	Clusters, Hosts int
	System          usage // the process that is the system's master
	Cluster         usage // the busiest that is a cluster's master, and not the system's
	Other           usage // the busiest master of a host that is neither
	Relay           usage // the agent of spxrun's host, which hands on what agents say to each other
	Agent           usage // the busiest of the other agents
}

// usage is what a process has read and written, in bytes, by how many calls of the system, what it has used of a processor, and what it has of memory (its share of what it has with others).
type usage struct {
	Calls, Bytes float64
	CPU          time.Duration
	KiB          float64
}

// since is what was used after a sight of the same process, in a second; memory is that of now.
func (u usage) since(o usage, seconds float64) usage {
	return usage{(u.Calls - o.Calls) / seconds, (u.Bytes - o.Bytes) / seconds, time.Duration(float64(u.CPU-o.CPU) / seconds), u.KiB}
}

// busiest keeps the one that has used more of a processor.
func (u *usage) busiest(o usage) {
	if o.CPU > u.CPU {
		*u = o
	}
}

// A process of libspx, on one of the hosts.
type process struct {
	pid        int
	name, host string
}

// A bed has the hosts that the systems run on.
type bed struct {
	script, build, dir string
	name               string
	networks           map[string]string // hosts by their network namespaces
}

// mostClusters are those of the longest chain; the shortest has two.
const mostClusters = 32

// chains are those to be measured on so many hosts, by their clusters and the hosts of each: all hosts in more and more clusters, then more and more clusters of the same size.
func chains(hosts int) (list [][2]int) {
	for clusters := 2; clusters <= mostClusters; clusters *= 2 {
		list = append(list, [2]int{clusters, hosts / clusters})
	}
	for clusters := 2; clusters < mostClusters; clusters *= 2 {
		list = append(list, [2]int{clusters, hosts / mostClusters})
	}
	return list
}

// measureReal adds to the rows those chains that are missing. It begins none after the time that it has (0: there is no such time).
func measureReal(rows []realRow, hosts int, window, budget time.Duration) ([]realRow, error) {
	missing := slices.DeleteFunc(chains(hosts), func(c [2]int) bool {
		return slices.ContainsFunc(rows, func(r realRow) bool { return r.Clusters == c[0] && r.Hosts == c[0]*c[1] })
	})
	if len(missing) == 0 {
		return rows, nil
	}
	began := time.Now()
	b, err := newBed(hosts)
	if err != nil {
		return rows, err
	}
	defer func() { _ = exec.Command(b.script, "down", b.name).Run() }()
	for _, c := range missing {
		if budget > 0 && time.Since(began) > budget {
			break
		}
		row, err := b.chain(c[0], c[1], window)
		if err != nil {
			return rows, fmt.Errorf("%d clusters of %d hosts: %w", c[0], c[1], err)
		}
		fmt.Printf("%+v\n", row)
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(x, y realRow) int {
		return cmp.Or(cmp.Compare(y.Hosts/hosts, x.Hosts/hosts), cmp.Compare(x.Clusters, y.Clusters))
	})
	return rows, nil
}

// newBed makes so many hosts.
func newBed(hosts int) (b *bed, err error) {
	b = &bed{name: fmt.Sprintf("ma%x-", os.Getpid()%0x1000000), networks: map[string]string{}}
	if b.script, err = filepath.Abs("scripts/hosts"); err != nil {
		return nil, err
	}
	if b.build, err = filepath.Abs("build"); err != nil {
		return nil, err
	}
	b.dir = filepath.Join(b.build, "bench-masters")
	programs := exec.Command("make", "-C", "examples/papers", "OUT="+b.dir)
	for _, name := range []string{"numbers", "square", "total"} {
		programs.Args = append(programs.Args, filepath.Join(b.dir, name))
	}
	programs.Env = append(os.Environ(), "PATH="+filepath.Join(b.build, "bin")+":"+os.Getenv("PATH"))
	if out, err := programs.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	up := exec.Command(b.script, "up", b.name, strconv.Itoa(hosts))
	up.Env = append(os.Environ(), "HOSTS_SHARED="+b.dir, "HOSTS_OWNER="+strconv.Itoa(os.Getpid()))
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("scripts/hosts: %w\n%s", err, out)
	}
	for i := range hosts {
		var at syscall.Stat_t
		if err := syscall.Stat("/run/netns/"+b.host(i), &at); err != nil {
			_ = exec.Command(b.script, "down", b.name).Run()
			return nil, err
		}
		b.networks[fmt.Sprintf("net:[%d]", at.Ino)] = b.host(i)
	}
	return b, nil
}

func (b *bed) host(i int) string { return b.name + strconv.Itoa(i+1) }

// chain runs a chain of clusters, each on so many hosts with a rank on each, and looks at its agents and masters for a while.
func (b *bed) chain(clusters, each int, window time.Duration) (row realRow, err error) {
	var text strings.Builder
	for c := range clusters {
		program, args := "square", ""
		switch c {
		case 0:
			program, args = "numbers", `"100000000", "100"`
		case clusters - 1:
			program = "total"
		}
		var on []string
		for i := range each {
			on = append(on, strconv.Quote(b.host(c*each+i)))
		}
		fmt.Fprintf(&text, "[[cluster]]\nname = \"c%d\"\nprogram = %q\nargs = [%s]\nranks = %d\nhosts = [%s]\n", c, filepath.Join(b.dir, program), args, each, strings.Join(on, ", "))
		if c > 0 {
			fmt.Fprintf(&text, "[[link]]\nfrom = \"c%d\"\nto = \"c%d\"\n", c-1, c)
		}
	}
	file := filepath.Join(b.dir, "masters.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return row, err
	}
	run := exec.Command(b.script, "on", b.host(0), filepath.Join(b.build, "bin/spxrun"), "--rsh", b.script+" rsh", "--system", file)
	run.Env = append(os.Environ(), "SPX_SPIN=0", "SPX_YIELD=0", "SPX_HEARTBEAT_LIMIT=1900-20000") // each host takes its processors to be its own; masters beat as they usually do, since less than 2 s are said
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		return row, err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	defer func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = run.Process.Kill()
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, said.String())
		}
	}()
	for range windows {
		status, err := b.complete(clusters, ended)
		if err != nil {
			return row, err
		}
		row = b.look(status, window)
		row.Clusters, row.Hosts = clusters, clusters*each
		again, err := b.status()
		if err != nil {
			return row, err
		}
		if again.Term == status.Term && again.Master == status.Master {
			return row, nil
		}
	}
	return row, fmt.Errorf("in each of %d windows of %v the system has had a new master: the hosts are too many for this machine", windows, window)
}

// windows are as many as are tried until in one of them the same master leads all the time.
const windows = 5

// look says what the agents and masters use in a window.
func (b *bed) look(status *service.System, window time.Duration) (row realRow) {
	before, began := map[process]usage{}, time.Now()
	for _, p := range b.processes() {
		before[p] = p.used()
	}
	time.Sleep(window)
	seconds := time.Since(began).Seconds()
	masters := map[string]bool{}
	for _, p := range status.Parts {
		masters[p.Master] = true
	}
	for p, u := range before {
		u = p.used().since(u, seconds)
		switch {
		case p.name == service.MasterName && p.host == status.Master:
			row.System = u
		case p.name == service.MasterName && masters[p.host]:
			row.Cluster.busiest(u)
		case p.name == service.MasterName:
			row.Other.busiest(u)
		case p.host == b.host(0):
			row.Relay = u
		default:
			row.Agent.busiest(u)
		}
	}
	return row
}

// complete waits until all clusters run, and each has a master.
func (b *bed) complete(clusters int, ended <-chan error) (*service.System, error) {
	for late := time.After(2 * time.Minute); ; {
		s, err := b.status()
		ready := 0
		if err == nil && s.Master != "" {
			for _, p := range s.Parts {
				if p.State == "running" && p.Master != "" {
					ready++
				}
			}
		}
		if ready >= clusters {
			return s, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("spxrun has ended: %v", err)
		case <-late:
			return nil, fmt.Errorf("%d of %d clusters run, with a master (%v)", ready, clusters, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *bed) status() (*service.System, error) {
	var out bytes.Buffer
	cmd := exec.Command(b.script, "on", b.host(0), filepath.Join(b.build, "bin/spxctl"), "system", "status", "--json")
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	var about service.About
	if err := json.Unmarshal(out.Bytes(), &about); err != nil {
		return nil, err
	}
	if about.System == nil {
		return nil, errors.New("no system is described")
	}
	return about.System, nil
}

// processes are the agents and masters of the hosts.
func (b *bed) processes() (list []process) {
	found, _ := filepath.Glob("/proc/[0-9]*/comm") // the pattern is right
	for _, file := range found {
		name, err := os.ReadFile(file)
		p := process{name: strings.TrimSpace(string(name))}
		if err != nil || (p.name != service.MasterName && p.name != service.AgentName && p.name != control.HostWord) {
			continue
		}
		dir := filepath.Dir(file)
		network, err := os.Readlink(filepath.Join(dir, "ns/net"))
		if p.host = b.networks[network]; err != nil || p.host == "" {
			continue
		}
		p.pid, _ = strconv.Atoi(filepath.Base(dir)) // digits
		list = append(list, p)
	}
	return list
}

// used is what a process has used until now; nothing, if it has ended.
func (p process) used() (u usage) {
	dir := fmt.Sprintf("/proc/%d", p.pid)
	text, _ := os.ReadFile(filepath.Join(dir, "io"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "rchar", "wchar":
			u.Bytes += n
		case "syscr", "syscw":
			u.Calls += n
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "smaps_rollup")); err == nil {
		if m := share.FindSubmatch(text); m != nil {
			u.KiB, _ = strconv.ParseFloat(string(m[1]), 64) // digits
		}
	}
	threads, _ := filepath.Glob(filepath.Join(dir, "task/*/schedstat")) // the pattern is right
	for _, file := range threads {
		text, _ := os.ReadFile(file)
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		u.CPU += time.Duration(ns)
	}
	return u
}

var share = regexp.MustCompile(`(?m)^Pss: +(\d+) kB$`)

func realTable(rows []realRow) string {
	var b strings.Builder
	b.WriteString("| clusters | hosts | system's master: calls | KiB | ms | MiB | busiest of a cluster: calls | KiB | ms | MiB | busiest other: calls | KiB | ms | MiB | agent of spxrun's host: calls | KiB | ms | MiB | busiest other agent: calls | KiB | ms | MiB | busiest master |\n|" + strings.Repeat("---:|", 23) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %d |", r.Clusters, r.Hosts)
		for _, u := range []usage{r.System, r.Cluster, r.Other, r.Relay, r.Agent} {
			fmt.Fprintf(&b, " %.0f | %.1f | %.1f | %.1f |", u.Calls, u.Bytes/1024, u.CPU.Seconds()*1000, u.KiB/1024)
		}
		fmt.Fprintf(&b, " %s |\n", r.busiestMaster())
	}
	return b.String()
}

// busiestMaster is the one that uses most of a processor.
func (r *realRow) busiestMaster() string {
	switch most := max(r.System.CPU, r.Cluster.CPU, r.Other.CPU); most {
	case r.System.CPU:
		return "the system's"
	case r.Cluster.CPU:
		return "a cluster's"
	}
	return "another"
}

// growth says what grows with the clusters on the same hosts, and what with both: the last of the rows beside the first.
func growth(rows []realRow, hosts int) string {
	var same, more []realRow
	for _, r := range rows {
		if r.Hosts == hosts {
			same = append(same, r)
		}
		if r.Hosts == r.Clusters*(hosts/mostClusters) {
			more = append(more, r)
		}
	}
	text := ""
	for _, x := range []struct {
		list []realRow
		how  string
	}{{same, "On the same hosts"}, {more, "With as many hosts for each cluster"}} {
		if len(x.list) < 2 {
			continue
		}
		slices.SortFunc(x.list, func(a, b realRow) int { return cmp.Compare(a.Clusters, b.Clusters) })
		first, last := x.list[0], x.list[len(x.list)-1]
		text += fmt.Sprintf("%s, from %d clusters to %d (%d hosts to %d), the system's master uses %.1f times as much of a processor (%.1f ms in a second in the end), the busiest of a cluster %.1f times (%.1f), the agent that hands on %.1f times (%.1f), "+
			"the busiest other agent %.1f times (%.1f); the master that has most memory has %.1f MiB.\n", x.how, first.Clusters, last.Clusters, first.Hosts, last.Hosts,
			times(last.System, first.System), ms(last.System), times(last.Cluster, first.Cluster), ms(last.Cluster), times(last.Relay, first.Relay), ms(last.Relay), times(last.Agent, first.Agent), ms(last.Agent),
			max(last.System.KiB, last.Cluster.KiB, last.Other.KiB)/1024)
	}
	return text
}

func ms(u usage) float64 { return u.CPU.Seconds() * 1000 }

func times(u, of usage) float64 { return u.CPU.Seconds() / max(of.CPU.Seconds(), 1e-9) }
