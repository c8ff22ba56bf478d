package main

/*
#include "comm.h"
#include "init.h"
#include "settings.h"
*/
import "C"

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/info"
	"libspx/core/mpierr"
)

// The Sessions Model (MPI-5.0, 12.3): process sets and the data that a session reports.
// bodies/init.c begins and ends sessions. There are the two process sets that every MPI has, one of
// the processes on this host, and, in a job that is a named cluster, one of its processes.
const (
	psetWorld   = "mpi://WORLD"
	psetSelf    = "mpi://SELF"
	psetHost    = "spx://host/"    // and the host's name
	psetCluster = "spx://cluster/" // and the cluster's name
)

// psets lists the names of the process sets. A host without a name has no set of its own.
var psets = sync.OnceValue(func() []string {
	names := []string{psetWorld, psetSelf}
	if host, err := os.Hostname(); err == nil && host != "" &&
		len(psetHost)+len(host) < C.MPI_MAX_PSET_NAME_LEN {
		names = append(names, psetHost+host)
	}
	if name := clusterName(); name != "" {
		names = append(names, psetCluster+name)
	}
	return names
})

// clusterName is what spxrun --cluster or SPX_CLUSTER says, or empty.
func clusterName() string { return C.GoString(C.spx_setting_text(C.SPX_SET_CLUSTER)) }

func init() {
	onStart(func(*startInfo) error {
		if name := clusterName(); name != "" {
			if err := ident.CheckCluster(name); err != nil {
				return fail(C.MPI_ERR_OTHER, "SPX_CLUSTER: %v", err)
			}
		}
		return nil
	})
}

type threadLevel struct {
	value int
	name  string
}

// threadLevels are the values of the key below.
var threadLevels = []threadLevel{
	{C.MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
	{C.MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
	{C.MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
	{C.MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"},
}

const keyThreadLevel = "thread_level"

func init() { internals[C.SPX_IN_SESSION_LEVEL] = sessionLevel }

// sessionLevel reads the thread level that the info object in a[0] requests into a[1], and makes
// the Go side of the session, whose index a[2] gets: 0 when it needs none.
func sessionLevel(c *call) error {
	// MPI_THREAD_SINGLE is discouraged as a default; this one costs no lock either
	level := C.MPI_THREAD_SERIALIZED
	if in := c.info(0); in != nil {
		if text, ok := in.Get(keyThreadLevel); ok {
			i := slices.IndexFunc(threadLevels,
				func(l threadLevel) bool { return l.name == strings.TrimSpace(text) })
			if i < 0 {
				return fail(C.MPI_ERR_INFO_VALUE,
					"%s is %q; it must be MPI_THREAD_SINGLE, _FUNNELED, _SERIALIZED or _MULTIPLE",
					keyThreadLevel, text)
			}
			level = threadLevels[i].value
		}
	}
	*(*int64)(unsafe.Pointer(&c.f.a[1])) = int64(level)
	*(*uint64)(unsafe.Pointer(&c.f.a[2])) = 0
	if in := c.info(0); in != nil {
		if text, ok := in.Get(info.KeyKinds); ok {
			kinds := info.Kinds(text)
			*(*uint64)(unsafe.Pointer(&c.f.a[2])) = uint64(sessionKinds.add(&kinds))
		}
	}
	return nil
}

//spx:body MPI_Session_get_info
func sessionGetInfo(c *call) error {
	in := info.New()
	for _, l := range threadLevels {
		if l.value == int(C.spx_thread_level) {
			if err := in.Set(keyThreadLevel, l.name); err != nil {
				return err
			}
		}
	}
	mergeKinds(in, C.uint32_t(c.handle(0)), in)
	return c.setInfo(1, in)
}

//spx:body MPI_Session_get_num_psets
func sessionGetNumPsets(c *call) error {
	c.setInt(2, len(psets()))
	return nil
}

// sessionGetNthPset counts the NUL in *pset_len, on the way in and out; with 0 there it only tells
// the length.
//
//spx:body MPI_Session_get_nth_pset
func sessionGetNthPset(c *call) error {
	n := c.int(2)
	if n < 0 || n >= len(psets()) {
		return c.onSession(mpierr.New(mpierr.Arg, "n is %d; there are %d process sets", n,
			len(psets())))
	}
	size := at[int32](c.addr(3))
	if *size < 0 {
		return c.onSession(mpierr.New(mpierr.Arg, "pset_len is %d; it must be 0 or more", *size))
	}
	if *size > 0 {
		c.setStr(4, psets()[n], int(*size))
	}
	*size = int32(len(psets()[n]) + 1)
	return nil
}

// onSession has an error raised by the handler of the session in argument 0.
func (c *call) onSession(err error) error { return raisedOn(C.SPX_K_SESSION, c.handle(0), err) }

// pset returns the processes of a set.
func pset(name string) (*group.Group, error) {
	switch {
	case strings.EqualFold(name, psetWorld):
		return commOf(C.SPX_HANDLE_COMM_WORLD).Group(), nil
	case strings.EqualFold(name, psetSelf):
		return commOf(C.SPX_HANDLE_COMM_SELF).Group(), nil
	case strings.HasPrefix(name, psetHost) && slices.Contains(psets(), name):
		return onThisHost(commOf(C.SPX_HANDLE_COMM_WORLD).Group()), nil
	case strings.HasPrefix(name, psetCluster) && slices.Contains(psets(), name):
		return commOf(C.SPX_HANDLE_COMM_WORLD).Group(), nil
	}
	return nil, mpierr.New(mpierr.Arg, "pset_name is %q; there are %s", name,
		strings.Join(psets(), ", "))
}

// onThisHost returns those members of g that run here: processes of other hosts have lines in the
// memory file, too.
func onThisHost(g *group.Group) *group.Group {
	var here []ident.ProcID
	for _, id := range g.IDs() {
		if k, err := processIndex(id); err == nil && procOf(k).host == C.spx_segment.host {
			here = append(here, id)
		}
	}
	return group.Of(here...)
}

//spx:body MPI_Session_get_pset_info
func sessionGetPsetInfo(c *call) error {
	g, err := pset(c.str(1))
	if err != nil {
		return c.onSession(err)
	}
	in := info.New()
	if err := in.Set("mpi_size", strconv.Itoa(g.Size())); err != nil {
		return err
	}
	return c.setInfo(2, in)
}

//spx:body MPI_Group_from_session_pset
func groupFromSessionPset(c *call) error {
	g, err := pset(c.str(1))
	return c.onSession(c.setGroup(2, g, err))
}
