package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Ways are what SPX_TRANSPORTS allows beyond shared memory.
type Ways struct {
	Fabric bool
	TCP    bool // also where a fabric cannot be used
}

// Wanted reads SPX_TRANSPORTS; the agent has refused unknown words.
func Wanted(text string) (w Ways) {
	separates := func(r rune) bool { return r == ',' || r == ' ' }
	for _, word := range strings.FieldsFunc(text, separates) {
		w.Fabric = w.Fabric || word == "fabric"
		w.TCP = w.TCP || word == "tcp"
	}
	return w
}

// Offer is a provider with one of its domains.
type Offer struct {
	Provider, Domain string
	Address          netip.Addr // of the interface; invalid: it has none, or none of IP
	Down             bool       // the device's link
	Speed            uint64     // of the device, bits/s; 0: unknown
	Longest          uint64     // message, bytes
}

// Settings are those of the user, and what follows from the job.
type Settings struct {
	Provider, Domain string
	Address          netip.Addr // by which the other processes reach this one
	Message          uint64     // bytes of the longest message that will be sent
}

// LeastVersion is that of libfabric: major<<16 | minor.
const LeastVersion = 1<<16 | 17

// CheckVersion checks whether the library is one that can be used.
func CheckVersion(v uint32) error {
	if v < LeastVersion {
		return fmt.Errorf("libfabric is of version %d.%d, and 1.17 is needed", v>>16, v&0xffff)
	}
	return nil
}

// ordered are the providers that are chosen without being named, the best first: of network
// hardware, and then those that go over IP. ("verbs" has messages by ofi_rxm.) sockets, which
// libfabric has given up, and providers that are not known here have to be named.
var ordered = []string{"cxi", "efa", "opx", "psm3", "psm2", "verbs", "tcp", "net", "udp"}

// overIP are those whose domains are network interfaces: they are used on the one that the agents
// have found to reach the other hosts.
var overIP = []string{"tcp", "net", "udp", "sockets"}

// core is the provider's own name: "tcp" of "tcp;ofi_rxm".
func core(provider string) string {
	name, _, _ := strings.Cut(provider, ";")
	return name
}

// leaves are providers that leave files behind in /dev/shm when a process is killed. They reach
// processes of the same host alone, which communicate through shared memory anyway.
func leaves(provider string) bool { return slices.Contains([]string{"shm", "sm2"}, core(provider)) }

// Sleeps reports whether a process can rely on being woken by a provider's descriptor. ofi_rxd
// sends again what was lost when it is called: a process that sleeps has to look now and then.
func Sleeps(provider string) bool { return !strings.Contains(provider, "ofi_rxd") }

// Choose returns the index of the offer to be used.
func Choose(offers []Offer, s Settings) (int, error) {
	if leaves(s.Provider) {
		return -1, fmt.Errorf("SPX_FABRIC_PROVIDER=%s: it leaves files in /dev/shm when a process "+
			"is killed, and is not used; processes of one host share memory with "+
			"SPX_TRANSPORTS=shm,...",
			s.Provider)
	}
	var list []int
	for i, o := range offers {
		if named(o, s.Provider) && !leaves(o.Provider) && o.Longest >= s.Message {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return -1, noProvider(offers, s)
	}
	list = slices.DeleteFunc(list, func(i int) bool { return !usable(offers[i], s) })
	if len(list) == 0 {
		return -1, noDomain(offers, s)
	}
	return slices.MinFunc(list, func(i, j int) int { return compare(offers[i], offers[j], s) }), nil
}

// named: it is the one that the user wants, or one that may be chosen.
func named(o Offer, provider string) bool {
	if provider == "" {
		return slices.Contains(ordered, core(o.Provider))
	}
	return o.Provider == provider || core(o.Provider) == provider
}

func usable(o Offer, s Settings) bool {
	if s.Domain != "" {
		return o.Domain == s.Domain
	}
	if slices.Contains(overIP, core(o.Provider)) {
		return o.Address == s.Address
	}
	return !o.Down
}

func compare(a, b Offer, s Settings) int {
	rank := func(o Offer) int {
		if i := slices.Index(ordered, core(o.Provider)); i >= 0 {
			return i
		}
		return len(ordered)
	}
	far := func(o Offer) int {
		switch {
		case o.Address == s.Address:
			return 0
		case o.Address.IsLinkLocalUnicast(): // needs the name of the interface, too
			return 2
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(far(a), far(b)),
		cmp.Compare(b.Speed, a.Speed))
}

func noProvider(offers []Offer, s Settings) error {
	var names []string
	for _, o := range offers {
		if !leaves(o.Provider) && !slices.Contains(names, core(o.Provider)) {
			names = append(names, core(o.Provider))
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return errors.New("libfabric offers no provider with messages to any peer " +
			"(FI_MSG, FI_EP_RDM); fi_info lists what it has")
	case s.Provider == "":
		return fmt.Errorf("libfabric offers %s alone, which SPX_FABRIC_PROVIDER has to name",
			strings.Join(names, ", "))
	}
	return fmt.Errorf("SPX_FABRIC_PROVIDER=%s: libfabric offers %s (with messages to any peer: "+
		"FI_MSG, FI_EP_RDM)", s.Provider, strings.Join(names, ", "))
}

func noDomain(offers []Offer, s Settings) error {
	var names []string
	for _, o := range offers {
		if named(o, s.Provider) && !leaves(o.Provider) && !slices.Contains(names, o.Domain) {
			names = append(names, o.Domain)
		}
	}
	slices.Sort(names)
	if s.Domain != "" {
		return fmt.Errorf("SPX_FABRIC_DOMAIN=%s: there are %s", s.Domain, strings.Join(names, ", "))
	}
	return fmt.Errorf("none of the domains %s has the address %v by which the other processes "+
		"reach this one; SPX_FABRIC_DOMAIN can name one", strings.Join(names, ", "), s.Address)
}
