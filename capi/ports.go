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
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/comm"
	"libspx/core/ident"
	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// Bodies of the functions by which programs that were started apart find each other (MPI-5.0, 11.9 and 11.10). A port is kept by the
// agent of the job that has opened it, whose number is in the port's name. Two roots meet there, and learn who the other is; then
// both sides make the intercommunicator as parents and children do.

const portPrefix = "spx:"

// portJob is the number of the job whose agent keeps a port.
func portJob(name string) (uint64, error) {
	rest, ok := strings.CutPrefix(name, portPrefix)
	number, _, second := strings.Cut(rest, ":")
	job, err := strconv.ParseUint(number, 16, 64)
	if !ok || !second || err != nil || len(number) != 16 {
		return 0, mpierr.New(mpierr.Port, "%.80q is not the name of a port; MPI_Open_port makes them", portName(name))
	}
	return job, nil
}

// portID is the part of a port's name that does not change while the port is open.
func portID(name string) string {
	id, _, _ := strings.Cut(name, "@")
	return id
}

// portName is the name of a port as it is printed: what follows admits to it (launch/agent/ways.go).
func portName(name string) string {
	shown, _, _ := strings.Cut(name, "#")
	return shown
}

//spx:body MPI_Open_port
func openPort(c *call) error {
	answer, err := ask(world.me.Job, &service.Message{Kind: service.OpenPort, Peer: self(), FD: -1}, mpierr.Port, 0)
	if err != nil {
		return err
	}
	c.setStr(1, answer.Text, C.MPI_MAX_PORT_NAME)
	return nil
}

//spx:body MPI_Close_port
func closePort(c *call) error {
	name := c.str(0)
	job, err := portJob(name)
	if err == nil && job != world.me.Job {
		err = mpierr.New(mpierr.Port, "port %s was opened by another job", portName(name))
	}
	if err == nil {
		_, err = ask(job, &service.Message{Kind: service.ClosePort, Text: name, FD: -1}, mpierr.Port, 0)
	}
	return err
}

//spx:body MPI_Comm_accept
func commAccept(c *call) error { return c.atPort(service.Accept) }

//spx:body MPI_Comm_connect
func commConnect(c *call) error { return c.atPort(service.Connect) }

// atPort is MPI_Comm_accept and MPI_Comm_connect: port and hints count at the root alone.
func (c *call) atPort(kind service.Kind) error {
	local, root := c.comm(3), c.int(2)
	if local.Inter() {
		return c.onComm(3, mpierr.New(mpierr.Comm, "comm is an intercommunicator; an intracommunicator is needed"))
	}
	var met *service.Message
	var failure error
	if local.Rank == root {
		met, failure = waitAtPort(kind, local, c.str(0), c.info(1))
	}
	made, err := bridgeTo(local, root, met, failure)
	if err != nil {
		return c.onComm(3, err)
	}
	c.setComm(4, made)
	return nil
}

func waitAtPort(kind service.Kind, local *commObject, name string, hints *info.Info) (*service.Message, error) {
	job, err := portJob(name)
	if err != nil {
		return nil, err
	}
	if kind == service.Accept && job != world.me.Job {
		return nil, mpierr.New(mpierr.Port, "port %s was opened by another job; only processes of that can accept at it", portName(name))
	}
	limit, err := patience(kind, hints)
	if err != nil {
		return nil, err
	}
	if err := needAgent(mpierr.Port); err != nil {
		return nil, err
	}
	if job != world.me.Job {
		if err := mayGoAbroad(name); err != nil {
			return nil, err
		}
	}
	if overNetwork() {
		job = world.me.Job // whose agent asks that of the other
	}
	met, err := askFor(local, job, &service.Message{Kind: kind, Text: name, Name: sealing(), Peer: self(), FD: -1}, mpierr.Port, limit)
	if err == nil {
		met.Text = name
	}
	return met, err
}

// patience is how long a root waits at a port: for ever, unless the info key "timeout" or, for those that connect, SPX_CONNECT_TIMEOUT says
// how many seconds.
func patience(kind service.Kind, hints *info.Info) (time.Duration, error) {
	text, given := "", false
	if kind == service.Connect {
		text = C.GoString(C.spx_setting_text(C.SPX_SET_CONNECT_TIMEOUT))
		given = text != ""
	}
	if hints != nil {
		if v, ok := hints.Get("timeout"); ok {
			text, given = v, true
		}
	}
	if !given {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || seconds <= 0 {
		return 0, mpierr.New(mpierr.InfoValue, "timeout is %q; it must be a number of seconds above 0", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// bridgeTo makes the intercommunicator with the group of the root that met names.
func bridgeTo(local *commObject, root int, met *service.Message, failure error) (*commObject, error) {
	var pair *commObject
	shut := func() {}
	if local.Rank == root && failure == nil && met.Peer.ID == world.me {
		failure = mpierr.New(mpierr.Comm, "the process that connects is the one that accepts; the two groups must be disjoint")
	}
	if local.Rank == root && failure == nil {
		ctx := comm.RendezvousContext(fmt.Sprintf("%s\x00%d", portID(met.Text), met.Number))
		pair, shut, failure = meeting(twoOf(world.me, met.Peer.ID), ctx)
	}
	made, err := bridge(local, root, pair, failure)
	if pair != nil {
		shut()
	}
	return made, err
}

// What the two processes of MPI_Comm_join send each other: a word that tells the protocol, who they are, a number, whether they are reached over the network, and a public key.
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
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		return nil, mpierr.New(mpierr.Arg, "fd %d is not a connected stream socket", fd)
	}
	if err := needAgent(mpierr.Other); err != nil {
		return nil, err
	}
	var nonce [8]byte
	if _, err := unix.Getrandom(nonce[:], 0); err != nil {
		return nil, mpierr.New(mpierr.Other, "no random number for the connection (getrandom): %v", err)
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
		return nil, mpierr.New(mpierr.Other, "fd %d: the other side has not called MPI_Comm_join of this library", fd)
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
	return &service.Message{Text: "join", Number: theirs ^ binary.LittleEndian.Uint64(nonce[:]), Peer: service.Peer{ID: id}}, nil
}

// overWhat says how this process's job is connected with others: 1 over the network, 0 in memory.
func overWhat() byte {
	if overNetwork() {
		return 1
	}
	return 0
}

// joinLimit is for how long the process that keeps the port waits for the other one, which may have died.
const joinLimit = time.Minute

// joinAbroad has two processes of different jobs meet at a port, which one of them opens for this and whose name it sends the other one: sealed by a key that
// only the two ends of the socket know, since who has the name can connect.
func joinAbroad(fd int, id ident.ProcID, private *ecdh.PrivateKey, theyToo bool, public []byte) (*service.Message, error) {
	if !theyToo || !overNetwork() {
		return nil, mpierr.New(mpierr.UnsupportedOperation, "one of the two jobs is reached over the network, and the other one in memory alone; start that with --more-hosts")
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
		return nil, mpierr.New(mpierr.Other, "fd %d: the other side has no port at which the two could meet", fd)
	}
	return meetToJoin(service.Connect, name)
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
	answer, failure := ask(world.me.Job, &service.Message{Kind: service.OpenPort, Peer: self(), FD: -1}, mpierr.Other, 0)
	if failure == nil {
		name = answer.Text
		defer ask(world.me.Job, &service.Message{Kind: service.ClosePort, Text: name, FD: -1}, mpierr.Other, 0) //nolint:errcheck // it ends with the job
	}
	text := make([]byte, C.MPI_MAX_PORT_NAME)
	copy(text, name)
	sealed := box.Seal(nil, make([]byte, box.NonceSize()), text, nil) // the key is for this message alone
	if err := exchange(fd, sealed, nil); err != nil && failure == nil {
		failure = mpierr.New(mpierr.Other, "fd %d: %v", fd, err)
	}
	if failure != nil {
		return nil, failure
	}
	return meetToJoin(service.Accept, name)
}

func meetToJoin(kind service.Kind, name string) (*service.Message, error) {
	met, err := ask(world.me.Job, &service.Message{Kind: kind, Text: name, Name: sealing(), Peer: self(), FD: -1}, mpierr.Other, joinLimit)
	if err == nil {
		met.Text = name
	}
	return met, err
}

// exchange writes out and reads in, whether fd blocks or not.
func exchange(fd int, out, in []byte) error {
	for len(out) > 0 || len(in) > 0 {
		want := int16(0)
		if len(out) > 0 {
			want |= unix.POLLOUT
		}
		if len(in) > 0 {
			want |= unix.POLLIN
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: want}}
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return err
		}
		if poll[0].Revents&unix.POLLOUT != 0 && len(out) > 0 {
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

//spx:body MPI_Publish_name
func publishName(c *call) error {
	m := &service.Message{Kind: service.Publish, Name: c.str(0), Text: c.str(2), FD: -1}
	_, err := ask(world.me.Job, m, mpierr.Service, 0)
	return err
}

//spx:body MPI_Unpublish_name
func unpublishName(c *call) error {
	m := &service.Message{Kind: service.Unpublish, Name: c.str(0), Text: c.str(2), FD: -1}
	_, err := ask(world.me.Job, m, mpierr.Service, 0)
	return err
}

// lookupName asks this job's agent first, then those of the user's other jobs on the host, and then, by this job's agent, the name service that both may have been started with.
//
//spx:body MPI_Lookup_name
func lookupName(c *call) error {
	m := &service.Message{Kind: service.Lookup, Name: c.str(0), FD: -1}
	answer, err := ask(world.me.Job, m, mpierr.Name, 0)
	if mpierr.ClassOf(err) == mpierr.Name {
		for _, job := range service.Jobs() {
			if job == world.me.Job {
				continue
			}
			if other, e := ask(job, m, mpierr.Name, lookupLimit); e == nil {
				answer, err = other, nil
				break
			}
		}
	}
	if mpierr.ClassOf(err) == mpierr.Name {
		m.Number = service.LookEverywhere
		answer, err = ask(world.me.Job, m, mpierr.Name, 0)
	}
	if err != nil {
		return err
	}
	c.setStr(2, answer.Text, C.MPI_MAX_PORT_NAME)
	return nil
}

// lookupLimit is how long another job's agent may take; one that is stopped does not hold this one up.
const lookupLimit = 2 * time.Second
