package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Circumstances are the inputs, beside the error, of a message about a connection that cannot be
// made.
type Circumstances struct {
	TLS bool // the job's connections are sealed
	// other networks that all hosts of the job are in, "10.78.0.0/24 (data0), ..."; empty: none is
	// known
	Networks string
}

// Cause returns the likely reason why a connection could not be made, and a remedy. It begins with
// "; ", or is empty.
func Cause(err error, c Circumstances) string {
	is := func(list ...error) bool {
		for _, e := range list {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case is(ErrKey, ErrTongue):
		if c.TLS {
			return "; another program listens there, or passes on what it hears"
		}
		return "; another program listens there: is this another host's address too, or does a " +
			"rule of a firewall lead there?"
	case is(syscall.ECONNREFUSED):
		return "; nobody listens there, or a firewall rejects it: has the process ended, is " +
			"this another host's address too, are the ports open? SPX_PORTS=LOW-HIGH keeps to " +
			"those that a firewall leaves open" + c.others()
	case is(syscall.EACCES, syscall.EPERM):
		return "; a rule of this host forbids it (ip route, firewall): remove it, or name " +
			"another interface (--iface)" + c.others()
	case is(syscall.EINVAL):
		return "; a route of this host throws such packets away (ip route: blackhole): remove " +
			"it, or name another interface (--iface)" + c.others()
	case is(syscall.ENETUNREACH):
		return "; this host has no route there: add one, or name the interface that leads there " +
			"(--iface)" + c.others()
	case is(syscall.EHOSTUNREACH):
		return "; no route leads there, the host does not answer in its network, or a firewall " +
			"on the way rejects it: is it up, is the address its own? Name the interface that " +
			"leads there (--iface)" + c.others()
	case is(syscall.EADDRNOTAVAIL):
		return "; this host has no port left for connections that it makes (sysctl " +
			"net.ipv4.ip_local_port_range)"
	case is(syscall.EMFILE):
		return "; this process has all the descriptors that it may have (ulimit -n): raise the " +
			"limit, or have fewer connections (SPX_CONNECTIONS_MAX)"
	case is(syscall.ENFILE):
		return "; this host has all the open files that it may have (sysctl fs.file-max)"
	case IsTimeout(err):
		return "; something drops the packets: a firewall between the hosts (open the ports of " +
			"SPX_PORTS=LOW-HIGH in it), or the wrong interface (--iface)" + c.others()
	case is(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE):
		return "; what listens there hangs up: another program, or a firewall that cuts connections"
	}
	return ""
}

// IsTimeout: there was no answer in time, either by this process's limit or by the kernel's.
func IsTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.As(err, &n) && n.Timeout()
}

// others names the networks that could be used instead.
func (c Circumstances) others() string {
	if c.Networks == "" {
		return ""
	}
	first, _, _ := strings.Cut(c.Networks, " ")
	return fmt.Sprintf("; all hosts of the job are also in %s, which --iface %s would take",
		c.Networks, first)
}
