package agent

import (
	"net"
	"net/netip"
	"os"

	"libspx/launch/control"
)

// Listen makes a socket on host spec.Self where a program other than an agent is reached by the
// job's other hosts: at the address that processes would have, with a port that SPX_PORTS in
// environ allows.
func Listen(spec *control.Job, environ []string) (net.Listener, error) {
	a := &agent{spec: spec, self: spec.Self, host: spec.Hosts[spec.Self]}
	at, err := a.chooseAddress()
	if err != nil {
		return nil, err
	}
	ports, err := portsOf(environ)
	if err != nil {
		return nil, err
	}
	fd, _, err := ports.listen(at, len(spec.Hosts)+64)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	return net.FileListener(f)
}

// Addresses are those by which this host may be reached.
func Addresses() []netip.Addr { return ownAddresses() }
