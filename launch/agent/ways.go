package agent

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"libspx/launch/control"
	"libspx/net/tcp"
)

// A way leads from other jobs, on any host, to the agent that keeps a port. It stands in the port's
// name, behind what names job and port: "@", an address, "#", and the key of the port, which
// whoever calls has to hold. So the name of a port is what admits to it: there is a key for each
// port, it ends with the port, and no job's own key goes into it.

// way is what the name of a port says of how to reach its agent.
type way struct {
	job, port uint64
	at        netip.AddrPort
	key       [32]byte
}

// parseWay reads the name of a port; false: it says of no way.
func parseWay(name string) (w way, ok bool) {
	rest, is := strings.CutPrefix(name, PortPrefix)
	number, rest, _ := strings.Cut(rest, ":")
	port, rest, _ := strings.Cut(rest, "@")
	at, key, found := strings.Cut(rest, "#")
	job, err := strconv.ParseUint(number, 16, 64)
	n, err2 := strconv.ParseUint(port, 10, 64)
	addr, err3 := netip.ParseAddrPort(at)
	secret, err4 := base64.RawURLEncoding.DecodeString(key)
	if !is || !found || err != nil || err2 != nil || err3 != nil || err4 != nil ||
		len(secret) != len(w.key) {
		return way{}, false
	}
	return way{job, n, addr, [32]byte(secret)}, true
}

func (w way) String() string {
	return fmt.Sprintf("@%v#%s", w.at, base64.RawURLEncoding.EncodeToString(w.key[:]))
}

// portName is the name of a port as it is printed.
func portName(name string) string {
	shown, _, _ := strings.Cut(name, "#")
	return shown
}

// identity is that of an end of a call at the port.
func (w way) identity(number uint32) *tcp.Identity {
	id := agentIdentity(w.id(), w.key, number)
	return &id
}

func (w way) id() (id [16]byte) {
	binary.LittleEndian.PutUint64(id[:], w.job)
	binary.LittleEndian.PutUint64(id[8:], w.port)
	return id
}

// callers are the numbers of the two ends of such a call.
const (
	keeperNumber = callee
	callerNumber = 1
)

// entrance is where the agents of other jobs call.
type entrance struct {
	at       netip.AddrPort
	listener net.Listener

	mu   sync.Mutex
	open map[[16]byte]*tcp.Identity // guarded by mu: of ports
}

// openWay makes the way to a new port.
func (a *agent) openWay(port uint64, key [32]byte) (string, error) {
	e := &a.abroad.entrance
	if e.listener == nil {
		if err := a.openEntrance(e); err != nil {
			return "", err
		}
	}
	w := way{job: a.jobNumber(), port: port, at: e.at, key: key}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[w.id()] = w.identity(keeperNumber)
	return w.String(), nil
}

func newPortKey() (key [32]byte) {
	rand.Read(key[:])
	return key
}

// sameKey: both names of a port admit to it.
func sameKey(x, y string) bool {
	v, _ := parseWay(x)
	w, ok := parseWay(y)
	return ok && subtle.ConstantTimeCompare(v.key[:], w.key[:]) == 1
}

// closeWay ends the way to a port. Who has come by it stays.
func (a *agent) closeWay(name string) {
	if w, ok := parseWay(name); ok {
		e := &a.abroad.entrance
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.open, w.id())
	}
}

func (a *agent) openEntrance(e *entrance) (err error) {
	if !a.address.IsValid() {
		if a.address, err = a.chooseAddress(); err != nil {
			return err
		}
	}
	ports, err := portsOf(a.spec.Programs[0].Env)
	if err != nil {
		return err
	}
	fd, port, err := ports.listen(a.listenAt(a.address), linkQueue)
	if err != nil {
		return fmt.Errorf("the agent cannot listen on %v for other jobs: %w", a.address, err)
	}
	file := os.NewFile(uintptr(fd), "for other jobs")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return err
	}
	e.listener, e.at, e.open = l, netip.AddrPortFrom(a.address, port), map[[16]byte]*tcp.Identity{}
	// for calls of no port: none has this key
	shut := agentIdentity([16]byte{}, [32]byte{}, keeperNumber)
	rand.Read(shut.Job[:])
	rand.Read(shut.Key[:])
	server := &tcp.Server{Identity: shut, Other: e.identity,
		Decide: func(tcp.Process) tcp.Verdict { return tcp.Taken },
		Adopt:  func(c net.Conn, _ tcp.Process) { a.hearCaller(c) },
		Failed: func(tcp.Process, uint16) {},
	}
	go server.Serve(l) //nolint:errcheck // it ends when the listener is closed
	return nil
}

func (e *entrance) identity(port [16]byte, _ tcp.Process) *tcp.Identity {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[port]
}

// Limits on links.
const (
	linkQueue = 64
	linkLimit = 10 * time.Second // for the other agent to answer a call
)

// hearCaller takes the agent of another job in, which has proved that it knows a port.
func (a *agent) hearCaller(c net.Conn) {
	c = sealedConn(c)
	conn := control.NewConn(c)
	// without, it ends with its caller
	c.SetReadDeadline(time.Now().Add(linkLimit)) //nolint:errcheck
	m, err := conn.Receive()
	if err != nil || m.Link == nil || c.SetReadDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	a.inbox.put(called{conn: conn, link: m.Link, raw: c})
}

// call calls the agent that keeps a port.
func (w way) call(hello *control.Link) answered {
	out := answered{job: w.job}
	c, verdict, err := tcp.Dial(w.at.String(), w.identity(callerNumber),
		tcp.Process{Number: keeperNumber})
	if err != nil || verdict != tcp.Taken {
		out.err = fmt.Errorf(
			"the agent of job %016x cannot be called at %v (%v); has it ended, is the port "+
				"closed, or does a firewall stand between?", w.job, w.at, err)
		return out
	}
	out.raw = sealedConn(c)
	out.conn = control.NewConn(out.raw)
	// without, it ends with the other agent
	out.raw.SetReadDeadline(time.Now().Add(linkLimit)) //nolint:errcheck
	m, err := ask(out.conn, &control.Message{Link: hello})
	if err == nil && (m.Link == nil || out.raw.SetReadDeadline(time.Time{}) != nil) {
		err = fmt.Errorf("it has sent something else")
	}
	if err != nil {
		out.raw.Close()
		out.err = fmt.Errorf("the agent of job %016x at %v does not answer: %v", w.job, w.at, err)
		return out
	}
	out.link = m.Link
	return out
}
