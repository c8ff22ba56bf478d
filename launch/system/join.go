package system

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"libspx/cluster/config"
	"libspx/launch/control"
	"libspx/launch/service"
)

// One cluster of a system, which finds the other clusters by the address and the key that the file
// names (docs/systems.md, "One cluster after another").

// unknown is the error that a cluster is none of the file's.
func unknown(s *config.System, cluster string) error {
	var names []string
	for _, c := range s.Clusters {
		names = append(names, c.Name)
	}
	return fmt.Errorf("--cluster %s: the system has no such cluster; there are %s", cluster,
		strings.Join(names, ", "))
}

func (p *planner) isAway(cluster string) bool { return p.cluster != "" && cluster != p.cluster }

// join fills in how the cluster finds the other clusters, and on which hosts it runs.
func (p *planner) join(file string, getenv func(string) string) error {
	s := p.plan.System
	if s.Address == "" {
		return errors.New(
			`--cluster: the file does not say where the clusters meet: [system] needs address = "HOST:PORT" (or --join names the address of the system that runs) and key = "FILE" (spxctl system key FILE makes one)`)
	}
	key, err := ReadKey(p.keyFile(file, getenv), s.Name)
	if err != nil {
		return err
	}
	declared := p.declared()
	own := s.Find(p.cluster)
	p.job.Join = &control.Join{System: s.Name, Cluster: p.cluster, Address: s.Address,
		Through: s.Through, Key: key, Limit: time.Duration(limitOf(own)), Declared: declared,
		Calls: len(s.Others) > 0, Whole: p.whole()}
	if p.job.Join.Offer, err = p.offer(); err != nil {
		return err
	}
	var mine []bool // by process
	for k := range p.job.Programs {
		prog := &p.job.Programs[k]
		mine = append(mine, slices.Repeat([]bool{declared[prog.Part-1].Cluster == p.cluster},
			prog.Procs)...)
	}
	p.job.MoreHosts, p.job.StdinRank = true, -1
	p.job.Hosts, p.job.Slots, p.job.Where = ownHosts(p.job.Hosts, p.job.Slots, p.job.Where,
		func(proc int) bool { return mine[proc] })
	if len(p.job.Hosts) > 1 {
		return nil
	}
	p.job.Slots[0] = max(1, p.job.Slots[0])
	return nil
}

// whole is what must be the same for the system.
func (p *planner) whole() control.Declared {
	security := config.SecurityKey
	if slices.Contains(p.env, tls) {
		security = config.SecurityTLS
	}
	return control.Declared{Name: "the system", Text: fmt.Sprintf("messages = %q and security = %q",
		p.plan.System.Messages, security), Place: p.at(1)}
}

// at is a place in the file.
func (p *planner) at(line int) string { return fmt.Sprintf("%s:%d", p.file, line) }

// offer is the file as a plan.
func (p *planner) offer() (o control.Offer, err error) {
	s := p.plan.System
	o = control.Offer{Parts: p.job.Parts, Start: p.job.Start}
	for _, prog := range p.job.Programs {
		prog.Env = nil
		o.Programs = append(o.Programs, prog)
	}
	for i, m := range o.Start {
		var names []string
		for _, k := range m.Awaits {
			names = append(names, p.job.Parts[k].Name)
		}
		c, joins := 0, s.Others
		if o.Parts[i].Serves { // of those that it joins, where its cluster waits for them
			c = o.Parts[i].With - 1
			iop := p.plan.Layout.IOPs[i-len(s.Clusters)]
			joins = namesOf(p.plan.Layout, slices.Concat(iop.In, iop.Out))
		} else {
			c = i
		}
		for _, name := range s.Awaited(&s.Clusters[c]) {
			if slices.Contains(s.Others, name) && slices.Contains(joins, name) {
				names = append(names, "cluster "+name)
			}
		}
		o.Awaits = append(o.Awaits, names)
	}
	o.Table, err = p.plan.Layout.Encode()
	return o, err
}

// declared is the data that must be equal in the files of all starters of a part of the system.
func (p *planner) declared() (out []control.Declared) {
	s := p.plan.System
	for _, c := range s.Clusters {
		out = append(out, control.Declared{Name: "cluster " + c.Name, Cluster: c.Name,
			Text: fmt.Sprintf("%s with %d ranks and %d standbys%s",
				strings.Join(append([]string{c.Program}, c.Args...), " "), c.Ranks, c.Standbys,
				replaced(&c)), Place: p.at(c.Line)})
	}
	for _, k := range s.Links {
		for range k.IOPs {
			name := p.job.Parts[len(out)].Name
			arrow := "to"
			if k.Bidirectional {
				arrow = "to and from"
			}
			out = append(out, control.Declared{Name: name, Cluster: p.with(&k),
				Text: fmt.Sprintf("%s, one of %d, from %s %s %s, chosen by %s, messages %s",
					strings.Join(append([]string{k.Program}, k.Args...), " "),
					k.IOPs, strings.Join(k.From, ","), arrow, strings.Join(k.To, ","), choiceOf(&k),
					s.Messages), Place: p.at(k.Line)})
		}
	}
	return out
}

// replaced describes how dead ranks of a cluster are replaced, beside by waiting standbys; empty:
// not at all, and the program is notified.
func replaced(c *config.Cluster) (text string) {
	if n := c.Cold(); n > 0 {
		text = fmt.Sprintf(", places for %d processes that are started later", n)
	}
	if c.Takeover == config.Transparent {
		text += fmt.Sprintf(", taken over transparently, copies = %q", c.Copies)
	}
	return text
}

func (p *planner) keyFile(file string, getenv func(string) string) string {
	if own := getenv(service.EnvSystemKey); own != "" {
		return own
	}
	if key := p.plan.System.Key; key == "" || filepath.IsAbs(key) {
		return key
	}
	return filepath.Join(filepath.Dir(file), p.plan.System.Key)
}

// Bounds on a key, in bytes.
const (
	leastKey = 16
	mostKey  = 4096
)

// ReadKey reads the key of a system. Only its owner may be able to read the file.
func ReadKey(file, system string) (key [32]byte, err error) {
	if file == "" {
		return key, errors.New(`the file names no key: [system] needs key = "FILE", or ` +
			service.EnvSystemKey + " is to name it (spxctl system key FILE makes one)")
	}
	f, err := os.Open(file)
	if err != nil {
		return key, fmt.Errorf("the system's key: %w (spxctl system key FILE makes one)", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return key, fmt.Errorf("the system's key %s: %w", file, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return key, fmt.Errorf("the system's key %s is no file", file)
	case st.Mode&0o077 != 0:
		return key, fmt.Errorf(
			"the system's key %s can be read or changed by others than its owner (mode %04o): "+
				"chmod 600 %s", file, st.Mode&0o7777, file)
	case int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return key, fmt.Errorf("the system's key %s belongs to another user (%d)", file, st.Uid)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostKey+1))
	if err != nil {
		return key, fmt.Errorf("the system's key %s: %w", file, err)
	}
	word := strings.TrimSpace(string(text))
	if len(word) < leastKey || len(text) > mostKey {
		return key, fmt.Errorf(
			"the system's key %s has %d bytes, and needs %d to %d (spxctl system key FILE makes "+
				"one)", file, len(word), leastKey, mostKey)
	}
	mac := hmac.New(sha256.New, []byte(word))
	mac.Write([]byte("system " + system))
	return [32]byte(mac.Sum(nil)), nil
}

// MakeKey makes a file with a new key, which must not exist.
func MakeKey(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	var b [32]byte
	rand.Read(b[:])
	_, err = fmt.Fprintln(f, hex.EncodeToString(b[:]))
	return cmp.Or(err, f.Close())
}
