package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"libspx/launch/control"
	"libspx/net/tcp"
)

// Agents that reach each other over TCP (attach.go, join.go) exchange orders: programs to run,
// environments, signals. These connections are always encrypted and authenticated, whatever SPX_TLS
// is for the messages of processes: a relay between two hosts can end them, and nothing else.

// sealedWays is part of the handshake: an agent whose connections are in the clear is refused.
const sealedWays = "agents, sealed"

// agentIdentity is an agent's identity in the handshake with another agent.
func agentIdentity(job [16]byte, key [32]byte, number uint32) tcp.Identity {
	return tcp.Identity{Job: job, Key: key, Self: tcp.Process{Number: number}, Ways: sealedWays,
		TLS: true}
}

// errChanged: the bytes that arrived are not those that the other agent has sent.
var errChanged = errors.New("bytes were changed on the way between the two hosts, or inserted; " +
	"nothing of the message was carried out, and the connection is closed. Look for what relays " +
	"connections between them")

// sealed is a connection that the handshake has made: its errors are for users, and Close does not
// wait for the other end, which TLS does.
type sealed struct{ *tls.Conn }

// sealedConn is c, which comes from a handshake with agentIdentity.
func sealedConn(c net.Conn) net.Conn { return sealed{c.(*tls.Conn)} }

// Read reads what the other agent has sent.
func (s sealed) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err != nil && (tcp.IsChanged(err) || tcp.IsRefused(err)) {
		err = fmt.Errorf("%w (%v)", errChanged, err)
	}
	return n, err
}

// Close closes the connection at once.
func (s sealed) Close() error { return s.NetConn().Close() }

// ask sends a message and receives the answer. An agent that refuses while the message is still
// being sent hangs up: the reason is in what it has sent before, not in the error of the write.
func ask(conn *control.Conn, m *control.Message) (*control.Message, error) {
	failed := conn.Send(m)
	answer, err := conn.Receive()
	if failed != nil && err != nil && !errors.Is(err, errChanged) {
		err = failed
	}
	return answer, err
}

// connectionEnd describes how a connection with another agent has ended, by the error of its last
// Receive.
func connectionEnd(err error) string {
	if errors.Is(err, errChanged) {
		return err.Error()
	}
	return "its agent has ended, or the connection with it is broken"
}
