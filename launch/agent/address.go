package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// nameLimit is how long the name service may take to tell another host's address, where that is asked at all.
const nameLimit = 2 * time.Second

// chooseAddress is where the processes of this host listen, when those of other hosts are to reach them.
func (a *agent) chooseAddress() (netip.Addr, error) {
	local := interfaceAddresses()
	if a.spec.Iface != "" {
		return named(a.spec.Iface, local)
	}
	if !a.several() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if fields := strings.Fields(os.Getenv("SSH_CONNECTION")); a.self > 0 && len(fields) == 4 { // client, its port, this host, its port
		if at, err := netip.ParseAddr(fields[2]); err == nil && slices.ContainsFunc(local, func(l localAddress) bool { return l.addr == at }) && !at.IsLoopback() {
			return at, nil
		}
	}
	for _, other := range a.towards() {
		if at, ok := routeTo(other); ok {
			return at, nil
		}
	}
	for _, l := range local {
		if usable(l.addr) {
			return l.addr, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no interface of host %s has an address by which other hosts could reach it; --iface names one", a.host)
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

// routeTo is this host's address on the way to another: the kernel's choice, for which nothing is sent.
func routeTo(other netip.Addr) (netip.Addr, bool) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(other.Unmap(), 9)))
	if err != nil {
		return netip.Addr{}, false
	}
	defer c.Close()
	at := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return at, usable(at)
}

func usable(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsUnspecified()
}

// A local address, with its interface and network.
type localAddress struct {
	iface   string
	addr    netip.Addr
	network netip.Prefix
}

func interfaceAddresses() (out []localAddress) {
	list, _ := net.Interfaces()
	for _, i := range list {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out = append(out, localAddress{i.Name, p.Addr().Unmap(), p.Masked()})
			}
		}
	}
	return out
}

func sharesNetwork(a netip.Addr, local []localAddress) bool {
	return slices.ContainsFunc(local, func(l localAddress) bool { return usable(l.addr) && l.network.Contains(a) })
}

// named is the address that --iface means: of an interface, or in a network.
func named(iface string, local []localAddress) (netip.Addr, error) {
	network, err := netip.ParsePrefix(iface)
	var have []string
	for _, l := range local {
		if l.iface == iface || err == nil && network.Contains(l.addr) {
			return l.addr, nil
		}
		have = append(have, fmt.Sprintf("%s %v", l.iface, l.addr))
	}
	return netip.Addr{}, fmt.Errorf("--iface %s: no interface that is up has that name or an address in that network; there are: %s", iface, strings.Join(have, ", "))
}
