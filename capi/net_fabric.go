package main

/*
#include <stdlib.h>
#include "dp.h"
#include "fabric_start.h"
#include "net_conn.h"
#include "runtime.h"
#include "settings.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/net/fabric"
	"libspx/net/tcp"
)

// SPX_TRANSPORTS=fabric: the bytes of pairs go over libfabric (dataplane/transport/fabric). Which
// provider, and which of its domains, net/fabric decides; here the library is loaded and asked.

// fabricPatience is for how long libfabric may think before it is given up: its providers look for
// devices, and talk to them.
const fabricPatience = 30 * time.Second

// fabricTick is how often messages are moved that are under way while the program makes no calls of
// MPI: providers without threads of their own move nothing by themselves.
const fabricTick = 10 * time.Millisecond

// fabricMessage is the longest message, in bytes: SPX_FABRIC_MESSAGE.
const fabricMessage = 16 << 10

var fabricWays fabric.Ways

// startFabric makes this process's endpoint, if one is wanted. An error: there is none, and nothing
// else is allowed.
func startFabric() error {
	fabricWays = fabric.Wanted(C.GoString(C.spx_setting_text(C.SPX_SET_TRANSPORTS)))
	if !fabricWays.Fabric {
		return nil
	}
	err := fabricExcluded()
	if err == nil {
		done := make(chan error, 1)
		go func() { done <- openFabric() }()
		select {
		case err = <-done:
		case <-time.After(fabricPatience):
			err = fmt.Errorf("libfabric has not come back for %v; FI_LOG_LEVEL=info shows what it "+
				"does", fabricPatience)
		}
	}
	if err == nil {
		C.spx_fabric_begin()
		go tickFabric(netState.stop)
		return nil
	}
	if !fabricWays.TCP {
		return fail(C.MPI_ERR_OTHER, "SPX_TRANSPORTS has fabric, and not tcp, but on %s there is "+
			"no fabric: %v", hostName(), err)
	}
	sayOnce("no fabric", "there is no fabric, either", fmt.Sprintf(
		"on %s there is no fabric, and TCP is used: %v", hostName(), err))
	return nil
}

// fabricExcluded: a fabric cannot be used with other settings.
func fabricExcluded() error {
	switch {
	case netState.id.TLS:
		return errors.New("SPX_TLS=1 wants all encrypted, and fabrics do not encrypt")
	case netState.policy.Relays:
		return fmt.Errorf("messages go through other processes (%s), over TCP alone",
			netState.policy.String())
	}
	return nil
}

// openFabric may take long.
func openFabric() error {
	var version C.uint32_t
	if wrong := C.spx_fabric_load(&version); wrong != nil {
		return fmt.Errorf("libfabric cannot be loaded: %s; install libfabric1, or leave fabric "+
			"out of SPX_TRANSPORTS", C.GoString(wrong))
	}
	if err := fabric.CheckVersion(uint32(version)); err != nil {
		return err
	}
	var rows *C.spx_fabric_row
	var n C.uint32_t
	if code := C.spx_fabric_list(&rows, &n); code != 0 {
		return fmt.Errorf("fi_getinfo: %s", fabricText(code))
	}
	offers := make([]fabric.Offer, n)
	for i, r := range unsafe.Slice(rows, n) {
		offers[i] = fabric.Offer{Provider: C.GoString(&r.provider[0]),
			Domain: C.GoString(&r.domain[0]), Down: bool(r.down), Speed: uint64(r.speed),
			Longest: uint64(r.longest)}
		if r.has_address {
			offers[i].Address = netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&r.address))).Unmap()
		}
	}
	C.free(unsafe.Pointer(rows))
	s := fabric.Settings{Provider: C.GoString(C.spx_setting_text(C.SPX_SET_FABRIC_PROVIDER)),
		Domain:  C.GoString(C.spx_setting_text(C.SPX_SET_FABRIC_DOMAIN)),
		Address: addressOf(netState.id.Self.Number).Addr(), Message: fabricMessage}
	i, err := fabric.Choose(offers, s)
	if err != nil {
		return err
	}
	var call *C.char
	code := C.spx_fabric_open(C.uint32_t(i), C.uint32_t(C.spx_map.nprocs),
		C.bool(fabric.Sleeps(offers[i].Provider)), &call)
	if code != 0 {
		return fmt.Errorf("provider %s, domain %s: %s: %s", offers[i].Provider, offers[i].Domain,
			C.GoString(call), fabricText(code))
	}
	return nil
}

// fabricText is what an errno of libfabric means, and what may be its reason.
func fabricText(code C.int) string {
	text := C.GoString(C.spx_fabric_text(code))
	var l unix.Rlimit
	short := syscall.Errno(code) == syscall.ENOMEM || syscall.Errno(code) == syscall.EPERM
	if short && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) == nil && l.Cur != unix.RLIM_INFINITY {
		text += fmt.Sprintf(" (a process may lock %d KiB of memory: ulimit -l, where devices of "+
			"networks want unlimited)", l.Cur/1024)
	}
	return text
}

func tickFabric(stop chan struct{}) {
	t, watch := time.NewTicker(fabricTick), time.NewTicker(time.Second)
	defer t.Stop()
	defer watch.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			C.spx_fabric_tick()
		case <-watch.C:
			C.spx_fabric_watch()
		}
	}
}

// fabricDeclined: the messages between this process and p stay on TCP.
func fabricDeclined(p tcp.Process) {
	why := C.GoString(C.spx_fabric_said())
	text := fmt.Sprintf("no fabric between %v (%s) and %v%s: %s", describe(netState.id.Self),
		hostName(), describe(p), onHost(p), why)
	if !fabricWays.TCP {
		C.spx_end_job(C.MPI_ERR_OTHER, C.CString(text+"; SPX_TRANSPORTS does not have tcp"))
		return
	}
	sayOnce("pair without fabric", "a pair has no fabric, either", text+"; TCP is used")
}
