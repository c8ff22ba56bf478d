// Package hosts reads lists of hosts (-host, -hostfile), determines which names are this host's,
// and places the ranks of a job on the hosts of a list.
//
// It owns the spelling of such lists and the rule by which ranks are given to hosts (place.go;
// MPI-5.0, 11.5, leaves it open); it starts nothing there. It resolves a name in one case alone:
// where a name with a domain and one without it agree, so that the address decides whether both are
// this host. A list that names this host by an alias of the name service has to be written with
// localhost or the host's own name.
package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// A Host is an entry of a list.
type Host struct {
	Name  string
	Slots int    // 0: not given
	From  string // where it was read, for messages
}

// List reads the entries of -host (NAME or NAME:SLOTS) and then the host files. The error names the
// wrong entry and the reason.
func List(entries, files []string) ([]Host, error) {
	var out []Host
	for _, e := range entries {
		h, err := entry(strings.TrimSpace(e))
		if err != nil {
			return nil, fmt.Errorf("-host: %v", err)
		}
		h.From = "-host"
		out = append(out, h)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("host file: %v", err)
		}
		list, err := Parse(string(data), name)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("host file %s names no host", name)
		}
		out = append(out, list...)
	}
	return out, nil
}

// Parse reads the text of a host file: per line NAME, NAME:SLOTS or NAME slots=SLOTS; # starts a
// comment. Words of other launchers (max_slots=..., user=...) are ignored.
func Parse(text, file string) ([]Host, error) {
	var out []Host
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(strings.ReplaceAll(line, " = ", "="))
		if len(words) == 0 {
			continue
		}
		from := fmt.Sprintf("%s, line %d", file, n+1)
		h, err := entry(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %v", from, err)
		}
		for _, w := range words[1:] {
			k, v, ok := strings.Cut(w, "=")
			if !ok {
				return nil, fmt.Errorf("%s: %q is not NAME=VALUE; write one host per line", from, w)
			}
			if k == "slots" {
				if h.Slots, err = slots(v); err != nil {
					return nil, fmt.Errorf("%s: %v", from, err)
				}
			}
		}
		h.From = from
		out = append(out, h)
	}
	return out, nil
}

func entry(e string) (h Host, err error) {
	h.Name = e
	// The last colon separates the slots, unless the entry is an IPv6 address.
	if i := strings.LastIndexByte(e, ':'); i >= 0 && net.ParseIP(e) == nil {
		h.Name = strings.Trim(e[:i], "[]")
		if h.Slots, err = slots(e[i+1:]); err != nil {
			return h, fmt.Errorf("host %q: %v", e, err)
		}
	}
	if h.Name == "" {
		return h, fmt.Errorf("%q names no host", e)
	}
	if !IsName(h.Name) {
		return h, fmt.Errorf(
			"%q is no name of a host: it must not begin with -, which the remote shell takes "+
				"for an option, nor have blanks or control characters in it", h.Name)
	}
	return h, nil
}

// IsName reports whether a name may be handed to a remote shell as that of a host.
func IsName(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func slots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of slots", text)
	}
	return n, nil
}

// Names holds the names and addresses of this host.
type Names struct {
	Host      string
	Addresses []net.IP
	// by the name service; none: no such name, or no name service
	Lookup func(name string) []net.IP
}

// lookupLimit is how long the name service may take.
const lookupLimit = 2 * time.Second

// lookup queries the name service, once for each name.
func lookup() func(name string) []net.IP {
	var known sync.Map // name -> []net.IP
	return func(name string) []net.IP {
		if list, ok := known.Load(name); ok {
			return list.([]net.IP)
		}
		ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
		defer cancel()
		list, _ := (&net.Resolver{PreferGo: true}).LookupIP(ctx, "ip", name) // unknown: none
		known.Store(name, list)
		return list
	}
}

// Self queries the system for this host's names.
func Self() Names {
	n := Names{Lookup: lookup()}
	n.Host, _ = os.Hostname()
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok {
			n.Addresses = append(n.Addresses, ip.IP)
		}
	}
	return n
}

// has reports whether an address is one of this host's.
func (n Names) has(ip net.IP) bool {
	return ip.IsLoopback() || slices.ContainsFunc(n.Addresses, ip.Equal)
}

// Local reports whether name means this host: localhost, the host's name with or without its
// domain, or one of its addresses. Hosts of different domains may have the same name there: where
// one of the two names has no domain, the other host is recognized by its address.
func (n Names) Local(name string) bool {
	if ip := net.ParseIP(name); ip != nil {
		return n.has(ip)
	}
	name, self := strings.ToLower(name), strings.ToLower(n.Host)
	if name == "localhost" || strings.HasPrefix(name, "localhost.") || name == self {
		return true
	}
	short, _, full := strings.Cut(name, ".")
	selfShort, _, selfFull := strings.Cut(self, ".")
	if short != selfShort || short == "" || full && selfFull {
		return false
	}
	if n.Lookup == nil {
		return true
	}
	addresses := n.Lookup(name)
	return len(addresses) == 0 || slices.ContainsFunc(addresses, n.has)
}
