package main

/*
#include "settings.h"
#include "spawn.h"
*/
import "C"

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// MPI_Comm_join (MPI-5.0, 11.10.4): two processes that have a socket exchange their identities over
// it, and where to meet. The socket is the program's: nothing is read or written on it but the data
// of the other side's call, and its options are as they were when the call returns. While the call
// lasts it ends with the other side, also when that one's host answers no more.

// The message that the two processes of MPI_Comm_join send each other: a word for the protocol, the
// identity, a number, whether the process is reached over the network, and a public key.
const joinWord = "spxjoin2"
const joinWire = len(joinWord) + ident.WireSize + 8 + 1 + joinKey
const joinKey = 32

//spx:body MPI_Comm_join
func commJoin(c *call) error {
	fd := c.int(0)
	self := commOf(C.SPX_HANDLE_COMM_SELF)
	met, err := introduce(fd)
	if err != nil {
		return err
	}
	made, err := bridgeTo(self, 0, met, nil)
	if err != nil {
		return err
	}
	c.setComm(1, made)
	return nil
}

// introduce exchanges identities over a connected stream socket, which is as quiet after as before.
func introduce(fd int) (*service.Message, error) {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil ||
		kind != unix.SOCK_STREAM {
		return nil, mpierr.New(mpierr.Arg, "fd %d is not a connected stream socket", fd)
	}
	if err := needAgent(mpierr.Other); err != nil {
		return nil, err
	}
	var nonce [8]byte
	if _, err := unix.Getrandom(nonce[:], 0); err != nil {
		return nil, mpierr.New(mpierr.Other, "no random number for the connection (getrandom): %v",
			err)
	}
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, mpierr.New(mpierr.Other, "no key for the connection: %v", err)
	}
	out := append(ident.Append([]byte(joinWord), world.me), nonce[:]...)
	out = append(append(out, overWhat()), private.PublicKey().Bytes()...)
	in := make([]byte, joinWire)
	if err := exchange(fd, out, in); err != nil {
		return nil, mpierr.New(mpierr.Other, "fd %d: %v", fd, err)
	}
	if string(in[:len(joinWord)]) != joinWord {
		return nil, mpierr.New(mpierr.Other,
			"fd %d: the other side has not called MPI_Comm_join of this library", fd)
	}
	id, _ := ident.Decode(in[len(joinWord):])
	if id == world.me {
		return nil, mpierr.New(mpierr.Arg, "fd %d leads to this process itself", fd)
	}
	rest := in[len(joinWord)+ident.WireSize:]
	theirs := binary.LittleEndian.Uint64(rest)
	if id.Job != world.me.Job && (rest[8] != 0 || overNetwork()) {
		return joinAbroad(fd, id, private, rest[8] != 0, rest[9:])
	}
	return &service.Message{Text: "join", Number: theirs ^ binary.LittleEndian.Uint64(nonce[:]),
		Peer: service.Peer{ID: id}}, nil
}

// overWhat returns how this process's job is connected with others: 1 over the network, 0 in
// memory.
func overWhat() byte {
	if overNetwork() {
		return 1
	}
	return 0
}

// joinLimit is for how long the process that keeps the port waits for the other one, which may have
// died.
const joinLimit = time.Minute

// joinAbroad has two processes of different jobs meet at a port, which one of them opens for this
// and whose name it sends the other one: sealed by a key that only the two ends of the socket have,
// since any process with the name can connect.
func joinAbroad(fd int, id ident.ProcID, private *ecdh.PrivateKey, theyToo bool, public []byte) (
	*service.Message, error) {
	if !theyToo || !overNetwork() {
		return nil, mpierr.New(mpierr.UnsupportedOperation,
			"one of the two jobs is reached over the network, and the other one in memory "+
				"alone; start that with --more-hosts")
	}
	if err := mayGoAbroad(portPrefix + "@"); err != nil {
		return nil, err
	}
	box, err := joinSeal(private, public)
	if err != nil {
		return nil, mpierr.New(mpierr.Other, "fd %d: %v", fd, err)
	}
	if ident.Compare(world.me, id) < 0 {
		return keepJoin(fd, box)
	}
	sealed := make([]byte, C.MPI_MAX_PORT_NAME+box.Overhead())
	if err := exchange(fd, nil, sealed); err != nil {
		return nil, mpierr.New(mpierr.Other, "fd %d: %v", fd, err)
	}
	text, err := box.Open(nil, make([]byte, box.NonceSize()), sealed, nil)
	name := strings.TrimRight(string(text), "\x00")
	if err != nil || name == "" {
		return nil, mpierr.New(mpierr.Other,
			"fd %d: the other side has no port at which the two could meet", fd)
	}
	return meetToJoin(fd, service.Connect, name)
}

// joinSeal is the seal of one message, by the key that the two ends have agreed on.
func joinSeal(private *ecdh.PrivateKey, public []byte) (cipher.AEAD, error) {
	theirs, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	secret, err := private.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(append([]byte(joinWord), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// keepJoin opens the port, and waits there for the other one.
func keepJoin(fd int, box cipher.AEAD) (*service.Message, error) {
	var name string
	answer, failure := ask(world.me.Job, &service.Message{Kind: service.OpenPort, Peer: self(),
		FD: -1}, mpierr.Other, 0)
	if failure == nil {
		name = answer.Text
		// it ends with the job
		defer ask(world.me.Job, &service.Message{Kind: service.ClosePort, Text: name, FD: -1}, mpierr.Other, 0) //nolint:errcheck
	}
	text := make([]byte, C.MPI_MAX_PORT_NAME)
	copy(text, name)
	// the key is for this message alone
	sealed := box.Seal(nil, make([]byte, box.NonceSize()), text, nil)
	if err := exchange(fd, sealed, nil); err != nil && failure == nil {
		failure = mpierr.New(mpierr.Other, "fd %d: %v", fd, err)
	}
	if failure != nil {
		return nil, failure
	}
	return meetToJoin(fd, service.Accept, name)
}

// meetToJoin has this process meet the other one at a port. A peer that leaves meanwhile has closed
// the socket.
func meetToJoin(fd int, kind service.Kind, name string) (*service.Message, error) {
	lost, stop := watchEnd(fd)
	defer stop()
	met, err := askUntil(waiting{lost: lost, limit: joinLimit}, world.me.Job,
		&service.Message{Kind: kind, Text: name, Name: sealing(), Peer: self(), FD: -1},
		mpierr.Other)
	if err == nil {
		met.Text = name
	}
	return met, err
}

// watchEnd has the channel closed when the other end of a socket is gone. stop ends the watch; the
// descriptor is not touched any more when it has returned.
func watchEnd(fd int) (lost <-chan struct{}, stop func()) {
	gone := make(chan struct{})
	var ends [2]int
	if unix.Pipe2(ends[:], unix.O_CLOEXEC) != nil {
		return gone, func() {} // the limit ends it then
	}
	restore := keepSocketAlive(fd)
	done := make(chan struct{})
	go func() {
		defer close(done)
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP},
			{Fd: int32(ends[0]), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR ||
				poll[1].Revents != 0 {
				return
			}
			if poll[0].Revents != 0 {
				close(gone)
				return
			}
		}
	}()
	return gone, func() {
		unix.Close(ends[1])
		<-done
		unix.Close(ends[0])
		restore()
	}
}

// socketLimit is for how long the other end of a socket may not answer, in seconds.
const socketLimit = 10

// keepSocketAlive has the kernel find out whether the other host still answers, until restore is
// called. Sockets within a host need that not, and do not take it.
func keepSocketAlive(fd int) (restore func()) {
	type option struct{ level, name, value int }
	var before []option
	for _, o := range []option{{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 2},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, socketLimit - 2},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, socketLimit * 1000},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}} {
		was, err := unix.GetsockoptInt(fd, o.level, o.name)
		if err == nil && unix.SetsockoptInt(fd, o.level, o.name, o.value) == nil {
			before = append(before, option{o.level, o.name, was})
		}
	}
	return func() {
		for k := range before {
			o := before[len(before)-1-k]
			unix.SetsockoptInt(fd, o.level, o.name, o.value) //nolint:errcheck // it was so before
		}
	}
}

// exchange writes out and reads in, whether fd blocks or not, while communication goes on.
func exchange(fd int, out, in []byte) (err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(ends[0])
	stop := sync.OnceFunc(func() { unix.Close(ends[1]) })
	defer stop()
	defer keepSocketAlive(fd)()
	meanwhile(func() { err = exchangeNow(fd, ends[0], out, in) }, stop)
	return err
}

// exchangeNow is exchange, until the other end of stop is closed.
func exchangeNow(fd, stop int, out, in []byte) error {
	for len(out) > 0 || len(in) > 0 {
		want := int16(0)
		if len(out) > 0 {
			want |= unix.POLLOUT
		}
		if len(in) > 0 {
			want |= unix.POLLIN
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: want}, {Fd: int32(stop)}}
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return err
		}
		if poll[1].Revents != 0 {
			return unix.ECANCELED
		}
		if poll[0].Revents&unix.POLLNVAL != 0 {
			return unix.EBADF
		}
		if poll[0].Revents&(unix.POLLOUT|unix.POLLHUP|unix.POLLERR) != 0 && len(out) > 0 {
			n, err := unix.SendmsgN(fd, out, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			if err != nil && err != unix.EAGAIN && err != unix.EINTR {
				return err
			}
			out = out[max(n, 0):]
		}
		if poll[0].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR) != 0 && len(in) > 0 {
			n, _, err := unix.Recvfrom(fd, in, unix.MSG_DONTWAIT)
			switch {
			case err == unix.EAGAIN || err == unix.EINTR:
			case err != nil:
				return err
			case n == 0:
				return errors.New("the other side has closed it")
			}
			in = in[max(n, 0):]
		}
	}
	return nil
}
