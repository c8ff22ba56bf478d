package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"libspx/launch/reach"
)

// What the kernel says of this host's interfaces, addresses and routes (netlink). Package reach
// chooses from what all hosts say (agree.go); where a host is alone with the choice, it is made
// here.

// nameLimit is how long the name service may take to tell another host's address, where that is
// asked at all.
const nameLimit = 2 * time.Second

// mostRoutes bounds what of a routing table is told to the host that chooses: a host with more is a
// router of the internet.
const mostRoutes = 512

// chooseAddress is where the processes of this host listen, when those of other hosts are to reach
// them, and that has not been set yet.
func (a *agent) chooseAddress() (netip.Addr, error) {
	local := interfaceAddresses()
	if a.spec.Iface != "" {
		return named(a.spec.Iface, local)
	}
	if !a.several() {
		at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		return at, reachesItself(at)
	}
	if at := a.sshAddress(local); at.IsValid() {
		return at, nil
	}
	for _, other := range a.towards() {
		if at, ok := routeTo(other); ok {
			return at, nil
		}
	}
	p, err := reach.Choose([]reach.Host{{Name: a.host, Addresses: local}}, "", 0)
	if err != nil {
		return netip.Addr{}, err
	}
	return p.At[0], nil
}

// reachesItself says why processes of this host cannot call each other at an address of its own;
// that goes through the loopback interface, whatever the address.
func reachesItself(at netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket: %w", err)
	}
	defer unix.Close(fd)
	// nothing is sent
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: at.As4()}); err != nil {
		return fmt.Errorf(
			"the processes of this host cannot reach each other over TCP at %v: %w; is the "+
				"loopback interface up (ip link set lo up)? Over shared memory they need none: "+
				"leave SPX_TRANSPORTS unset", at, err)
	}
	return nil
}

// sshAddress is that to which ssh has come, where this agent was started so.
func (a *agent) sshAddress(local []reach.Address) (at netip.Addr) {
	fields := strings.Fields(os.Getenv("SSH_CONNECTION"))
	if a.self == 0 || len(fields) != 4 { // client, its port, this host, its port
		return at
	}
	if to, err := netip.ParseAddr(fields[2]); err == nil && reach.Usable(to) &&
		slices.ContainsFunc(local, func(l reach.Address) bool { return l.Addr == to }) {
		return to
	}
	return at
}

// towards are addresses of other hosts, those first that are likely to be reached directly.
func (a *agent) towards() (out []netip.Addr) {
	for _, at := range a.addresses {
		out = append(out, at.At.Addr())
	}
	near := slices.Clone(a.spec.Near)
	local := interfaceAddresses()
	slices.SortStableFunc(near, func(x, y netip.Addr) int {
		return boolInt(!sharesNetwork(x, local)) - boolInt(!sharesNetwork(y, local))
	})
	out = append(out, near...)
	ctx, cancel := context.WithTimeout(context.Background(), nameLimit)
	defer cancel()
	for i, name := range a.spec.Hosts {
		if i == a.self || len(out) > 0 {
			continue
		}
		list, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		out = append(out, list...)
	}
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// routeTo is this host's address on the way to another: the kernel's choice, for which nothing is
// sent.
func routeTo(other netip.Addr) (netip.Addr, bool) {
	list, err := netlink.RouteGet(net.IP(other.Unmap().AsSlice()))
	if err != nil || len(list) == 0 {
		return netip.Addr{}, false
	}
	at, _ := netip.AddrFromSlice(list[0].Src)
	return at.Unmap(), reach.Usable(at.Unmap())
}

// describe is what this host says of itself.
func (a *agent) describe() reach.Host {
	h := reach.Host{Name: a.host, Stack: networkStack(), Addresses: interfaceAddresses(),
		Routes: routes()}
	h.Near = a.sshAddress(h.Addresses)
	return h
}

// networkStack tells the network stack that this process uses from all others, on all machines;
// empty: it cannot be told.
func networkStack() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/net")
	if err != nil || err2 != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// unfit are addresses that the kernel is about to drop, or has not tried yet.
const unfit = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_DEPRECATED |
	unix.IFA_F_TEMPORARY

// interfaceAddresses are those of interfaces that are up and have a carrier, IPv4 first.
func interfaceAddresses() (out []reach.Address) {
	links, _ := netlink.LinkList()
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		for _, l := range links {
			of := l.Attrs()
			if of.Flags&net.FlagUp == 0 || of.OperState == netlink.OperDown ||
				of.OperState == netlink.OperLowerLayerDown {
				continue
			}
			list, _ := netlink.AddrList(l, family)
			for _, x := range list {
				at, ok := netip.AddrFromSlice(x.IP)
				bits, _ := x.Mask.Size()
				if !ok || x.Flags&unfit != 0 {
					continue
				}
				p := netip.PrefixFrom(at.Unmap(), bits)
				out = append(out, reach.Address{Iface: of.Name, Addr: p.Addr(), Network: p.Masked(),
					Speed: speedOf(of.Name), Inner: isInner(l, links)})
			}
		}
	}
	return out
}

// speedOf is an interface's speed in Mbit/s; 0: it does not say.
func speedOf(iface string) int {
	text, err := os.ReadFile(filepath.Join("/sys/class/net", iface, "speed"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// isInner: a tunnel, or a bridge that has only the ports of containers and virtual machines, or
// none.
func isInner(l netlink.Link, all []netlink.Link) bool {
	if l.Attrs().Flags&net.FlagPointToPoint != 0 {
		return true
	}
	return l.Type() == "bridge" && !slices.ContainsFunc(all, func(port netlink.Link) bool {
		return port.Attrs().MasterIndex == l.Attrs().Index && port.Type() != "veth" &&
			port.Type() != "tuntap" && port.Type() != "tun"
	})
}

// routes are those of the main table.
func routes() (out []reach.Route) {
	names := map[int]string{}
	links, _ := netlink.LinkList()
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		n := 0
		// what has come counts
		netlink.RouteListFilteredIter(family, &netlink.Route{}, 0, func(r netlink.Route) bool { //nolint:errcheck
			if way, ok := asRoute(&r, family, names); ok {
				out = append(out, way)
				n++
			}
			return n < mostRoutes
		})
	}
	return out
}

func asRoute(r *netlink.Route, family int, names map[int]string) (out reach.Route, ok bool) {
	out.To = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if family == netlink.FAMILY_V6 {
		out.To = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if r.Dst != nil {
		at, _ := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		out.To = netip.PrefixFrom(at.Unmap(), bits)
	}
	out.Metric = r.Priority
	switch r.Type {
	case unix.RTN_UNICAST:
		index := r.LinkIndex
		if len(r.MultiPath) > 0 {
			index = r.MultiPath[0].LinkIndex
		}
		out.Iface = names[index]
		return out, out.To.IsValid() && out.Iface != ""
	// without an interface of its own
	case unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT:
		return out, out.To.IsValid()
	}
	return out, false
}

func sharesNetwork(a netip.Addr, local []reach.Address) bool {
	return slices.ContainsFunc(local, func(l reach.Address) bool {
		return reach.Usable(l.Addr) &&
			l.Network.Contains(a)
	})
}

// named is the address that --iface means on this host.
func named(iface string, local []reach.Address) (netip.Addr, error) {
	if list := reach.Named(iface, local); len(list) > 0 {
		return list[0].Addr, nil
	}
	var have []string
	for _, l := range local {
		have = append(have, fmt.Sprintf("%s %v", l.Iface, l.Addr))
	}
	return netip.Addr{}, fmt.Errorf(
		"--iface %s: no interface that is up has that name or an address in that network; there "+
			"are: %s", iface, strings.Join(have, ", "))
}
