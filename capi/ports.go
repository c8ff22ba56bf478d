package main

/*
#include "settings.h"
#include "spawn.h"
*/
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"libspx/core/comm"
	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/launch/names"
	"libspx/launch/service"
)

// Bodies of the functions by which separately started programs find each other (MPI-5.0, 11.9 and
// 11.10). A port is kept by the agent of the job that has opened it, whose number is in the port's
// name. Two roots meet there, and get each other's identity; then both sides make the
// intercommunicator as parents and children do.

const portPrefix = "spx:"

// portJob is the number of the job whose agent keeps a port.
func portJob(name string) (uint64, error) {
	rest, ok := strings.CutPrefix(name, portPrefix)
	number, _, second := strings.Cut(rest, ":")
	job, err := strconv.ParseUint(number, 16, 64)
	if !ok || !second || err != nil || len(number) != 16 {
		return 0, mpierr.New(mpierr.Port,
			"%.80q is not the name of a port; MPI_Open_port makes them", portName(name))
	}
	return job, nil
}

// portID is the part of a port's name that does not change while the port is open.
func portID(name string) string {
	id, _, _ := strings.Cut(name, "@")
	return id
}

// portName is the name of a port as it is printed: what follows admits to it
// (launch/agent/ways.go).
func portName(name string) string {
	shown, _, _ := strings.Cut(name, "#")
	return shown
}

//spx:body MPI_Open_port
func openPort(c *call) error {
	answer, err := ask(world.me.Job, &service.Message{Kind: service.OpenPort, Peer: self(), FD: -1},
		mpierr.Port, 0)
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
		_, err = ask(job, &service.Message{Kind: service.ClosePort, Text: name, FD: -1},
			mpierr.Port, 0)
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
		return c.onComm(3, mpierr.New(mpierr.Comm,
			"comm is an intercommunicator; an intracommunicator is needed"))
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

func waitAtPort(kind service.Kind, local *commObject, name string, hints *info.Info) (
	*service.Message, error) {
	job, err := portJob(name)
	if err != nil {
		return nil, err
	}
	if kind == service.Accept && job != world.me.Job {
		return nil, mpierr.New(mpierr.Port,
			"port %s was opened by another job; only processes of that can accept at it",
			portName(name))
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
		job = world.me.Job // whose agent queries that of the other
	}
	met, err := askFor(local, job, &service.Message{Kind: kind, Text: name, Name: sealing(),
		Peer: self(), FD: -1}, mpierr.Port, limit)
	if err == nil {
		met.Text = name
	}
	return met, err
}

// patience is how long a root waits at a port: for ever, unless the info key "timeout" or, for
// those that connect, SPX_CONNECT_TIMEOUT gives a number of seconds.
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
		return 0, mpierr.New(mpierr.InfoValue,
			"timeout is %q; it must be a number of seconds above 0", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// bridgeTo makes the intercommunicator with the group of the root that met names.
func bridgeTo(local *commObject, root int, met *service.Message, failure error) (*commObject,
	error) {
	var pair *commObject
	shut := func() {}
	defer func() {
		if pair != nil {
			shut()
		}
	}()
	if local.Rank == root && failure == nil && met.Peer.ID == world.me {
		failure = mpierr.New(mpierr.Comm,
			"the process that connects is the one that accepts; the two groups must be disjoint")
	}
	if local.Rank == root && failure == nil {
		ctx := comm.RendezvousContext(fmt.Sprintf("%s\x00%d", portID(met.Text), met.Number))
		pair, shut, failure = meeting(twoOf(world.me, met.Peer.ID), ctx)
	}
	return bridge(local, root, pair, failure)
}

// nameServerKey is the info key that names a name service, by its file.
const nameServerKey = "name_server"

// nameServer is the name service that the hints name, in the form that agents take; empty: that of
// the job.
func nameServer(hints *info.Info) (string, error) {
	if hints == nil {
		return "", nil
	}
	file, ok := hints.Get(nameServerKey)
	if !ok || file == "" {
		return "", nil
	}
	place, err := names.Read(file)
	if err != nil {
		return "", mpierr.New(mpierr.InfoValue, "%s: %v (spxctl names serve %s)", nameServerKey,
			err, file)
	}
	return place.Encode(), nil
}

//spx:body MPI_Publish_name
func publishName(c *call) error {
	server, err := nameServer(c.info(1))
	if err != nil {
		return err
	}
	m := &service.Message{Kind: service.Publish, Name: c.str(0), Text: c.str(2), Server: server,
		FD: -1}
	_, err = ask(world.me.Job, m, mpierr.Service, 0)
	return err
}

//spx:body MPI_Unpublish_name
func unpublishName(c *call) error { // from where it was published
	m := &service.Message{Kind: service.Unpublish, Name: c.str(0), Text: c.str(2), FD: -1}
	_, err := ask(world.me.Job, m, mpierr.Service, 0)
	return err
}

// lookupName asks this job's agent first, then those of the user's other jobs on the host, and
// then, by this job's agent, the name service that the info key names or that both may have been
// started with.
//
//spx:body MPI_Lookup_name
func lookupName(c *call) error {
	server, err := nameServer(c.info(1))
	if err != nil {
		return err
	}
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
		m.Number, m.Server = service.LookEverywhere, server
		answer, err = ask(world.me.Job, m, mpierr.Name, 0)
	}
	if err != nil {
		return err
	}
	c.setStr(2, answer.Text, C.MPI_MAX_PORT_NAME)
	return nil
}

// lookupLimit is how long another job's agent may take; one that is stopped does not hold this one
// up.
const lookupLimit = 2 * time.Second
