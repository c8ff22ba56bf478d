package main

/*
#include "dp.h"
#include "fabric_start.h"
#include "net_conn.h"
#include "runtime.h"
#include "transport.h"
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"libspx/launch/service"
	"libspx/net/tcp"
)

// Connections that have broken, and processes that cannot be reached: why, in the words of the
// user, and what becomes of the job.

// lostWith finds out why the connection with a process has broken, which neither end has closed in
// order. It has ended, as a rule: its agent tells soon. One that still answers lives, and what was
// on its way between it and this one is lost: the job ends. One that cannot be reached has perhaps
// ended, too, or left MPI; if its agent does not report it for long, the user is told.
func lostWith(p tcp.Process, why syscall.Errno) {
	const first, most = 100 * time.Millisecond, 500 * time.Millisecond
	stop := netState.stop
	for n, pause := 0, first; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		if isGone(p) {
			return
		}
		ctx, over, ok := netState.slots.call(p, stop, nil)
		if !ok {
			return
		}
		c, verdict, err := dial(ctx, p)
		if err == nil && verdict == tcp.Taken {
			c.Close()
		}
		gaveWay := err != nil && ctx.Err() != nil
		over()
		netState.slots.give()
		switch {
		case gaveWay:
		case err == nil && verdict == tcp.Gone: // this process counts as dead there
			return
		case err == nil && !isGone(p):
			endLost(p, why)
		case n == int(complainAfter/most):
			complain(fmt.Sprintf("the connection with %v is lost", describe(p)),
				fmt.Sprintf(
					"the connection with %v%s has broken (%s), and it cannot be reached at %v "+
						"from %s (%v) any more: %v%s",
					describe(p), onHost(p), broke(why), addressOf(p.Number), hostName(),
					addressOf(netState.id.Self.Number).Addr(), err, cause(err)))
		}
		pause = min(2*pause, most)
	}
}

// endLost ends the job: messages between this process and p, which both run, are lost.
func endLost(p tcp.Process, why syscall.Errno) {
	self := netState.id.Self
	text := C.CString(fmt.Sprintf(
		"the connection between %v at %v (%s) and %v%s at %v has broken (%s) although both run: "+
			"messages are lost; %s",
		describe(self), addressOf(self.Number).Addr(), hostName(), describe(p), onHost(p),
		addressOf(p.Number).Addr(), broke(why), causeOfLoss(why)))
	C.spx_end_job(C.MPI_ERR_OTHER, text)
}

// broke says how a connection ended; why is 0 when the other end's side has closed it.
func broke(why syscall.Errno) string {
	if why == 0 {
		return "it was closed"
	}
	return why.Error()
}

func causeOfLoss(why syscall.Errno) string {
	switch why {
	case syscall.EBADF, syscall.ENOTSOCK, syscall.ENOTCONN:
		return "has the program closed descriptors that are not its own?"
	case syscall.EBADMSG:
		what := ""
		if refusal := C.GoString(C.spx_refusal); refusal != "" {
			what = " (" + refusal + ")"
		}
		return "what came was no message of this library" + what +
			": does the program write to descriptors that are not its own?"
	case syscall.ECOMM:
		return "the fabric has failed (" + C.GoString(C.spx_fabric_said()) + ")"
	case syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		return "the network between them was cut for long"
	}
	if why == 0 && fabricWays.Fabric {
		return "the fabric may have failed at the other end"
	}
	return "a firewall between them may have reset it, or a device that forgets connections " +
		"which are idle for long; or the program has closed descriptors that are not its own"
}

// unreached says shortly what is out of reach: the host, where that is the cause.
func unreached(at netip.AddrPort, err error) string {
	for _, no := range []error{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EACCES,
		syscall.EINVAL} {
		if errors.Is(err, no) {
			return fmt.Sprintf("%v cannot be reached (%v)", at.Addr(), no)
		}
	}
	if tcp.IsTimeout(err) {
		return fmt.Sprintf("%v cannot be reached (no answer in time)", at.Addr())
	}
	return fmt.Sprintf("%v cannot be reached", at)
}

func cause(err error) string {
	return tcp.Cause(err, tcp.Circumstances{TLS: netState.id.TLS,
		Networks: getenv(service.EnvNetworks)})
}

// hostLimit is for how long the agent may think about the names of the hosts.
const hostLimit = 2 * time.Second

// onHost names the host of a process, which the agent knows.
func onHost(p tcp.Process) string {
	number := procOf(p.Number).host
	if number == C.spx_segment.host {
		return " on this host"
	}
	var list []service.Host
	if conn, err := service.Dial(world.me.Job); err == nil {
		defer conn.Close()
		defer time.AfterFunc(hostLimit, conn.Hang).Stop()
		if conn.Send(&service.Message{Kind: service.Hosts, FD: -1}) == nil {
			if answer, err := conn.Receive(); err == nil && answer.Class == 0 {
				json.Unmarshal([]byte(answer.Text), &list) //nolint:errcheck // then it is not known
			}
		}
	}
	if int(number) < len(list) {
		return " on host " + list[number].Name
	}
	return ""
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "this host"
	}
	return name
}

func describe(p tcp.Process) string {
	if home := uint64(procOf(p.Number).home_job); home != 0 {
		return fmt.Sprintf("rank %d of world %d of job %016x", procOf(p.Number).world_rank,
			procOf(p.Number).world_id, home)
	}
	return fmt.Sprintf("rank %d of world %d (process %d)", procOf(p.Number).world_rank,
		procOf(p.Number).world_id, p.Number)
}

// complain says what is wrong with the network as it shows in this process; of those that have the
// same to say, one does. what is that shortly.
func complain(what, here string) {
	me := procOf(netState.id.Self.Number)
	sayOnce(what, what, fmt.Sprintf("rank %d of world %d: %s", me.world_rank, me.world_id, here))
}
