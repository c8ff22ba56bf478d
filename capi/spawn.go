package main

/*
#include "runtime.h"
#include "spawn.h"
static void have_met(void) { spx_proc_of(spx_me)->ft_flags |= SPX_FT_MET; }
*/
import "C"

import (
	"cmp"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/comm"
	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/service"
)

// Bodies of MPI_Comm_spawn and MPI_Comm_spawn_multiple (MPI-5.0, 11.8), and the other end: a
// spawned process in MPI_Init. The root has the agent start the processes, sends the outcome to the
// other parents, and meets the first child, which comes when all children are in MPI_Init.

func init() { onStart(meetParents) }

//spx:body MPI_Comm_spawn
func commSpawn(c *call) error {
	return c.spawn(spawnArgs{root: 4, comm: 5, out: 6, codes: 7},
		func() ([]service.Program, error) {
			p, err := c.program(c.str(0), c.addr(1), c.int(2), c.handle(3))
			return []service.Program{p}, err
		})
}

//spx:body MPI_Comm_spawn_multiple
func commSpawnMultiple(c *call) error {
	return c.spawn(spawnArgs{root: 5, comm: 6, out: 7, codes: 8},
		func() ([]service.Program, error) {
			n := c.int(0)
			if n < 1 {
				return nil, mpierr.New(mpierr.Arg, "count is %d: there must be a command at least",
					n)
			}
			commands, procs, infos := cslice[uintptr](c.addr(1), n), cslice[int32](c.addr(3), n),
				cslice[uintptr](c.addr(4), n)
			if commands == nil || procs == nil || infos == nil {
				return nil, mpierr.New(mpierr.Arg,
					"array_of_commands, array_of_maxprocs or array_of_info is NULL at the root")
			}
			var out []service.Program
			var failure error
			for k := range n {
				argv := uintptr(0) // MPI_ARGVS_NULL
				if c.addr(2) != 0 {
					argv = cslice[uintptr](c.addr(2), n)[k]
				}
				if commands[k] == 0 {
					return nil, mpierr.New(mpierr.Arg, "array_of_commands[%d] is NULL", k)
				}
				p, err := c.program(C.GoString(at[C.char](commands[k])), argv, int(procs[k]),
					infos[k])
				out = append(out, p)
				failure = cmp.Or(failure, err)
			}
			return out, failure
		})
}

// spawnArgs are the positions of what the two functions have in common.
type spawnArgs struct{ root, comm, out, codes int }

// program is one command with its arguments (NULL: none), number of processes and hints.
func (c *call) program(command string, argv uintptr, maxprocs int, hints uintptr) (service.Program,
	error) {
	p := service.Program{Argv: []string{command}, Procs: uint32(max(maxprocs, 0)),
		Env: currentEnvironment()}
	if maxprocs < 0 {
		return p, mpierr.New(mpierr.Arg, "maxprocs is %d: it must be 0 or more", maxprocs)
	}
	if command == "" {
		return p, mpierr.New(mpierr.Spawn, "the command is empty")
	}
	for argv != 0 {
		arg := *at[uintptr](argv)
		if arg == 0 {
			break
		}
		p.Argv = append(p.Argv, C.GoString(at[C.char](arg)))
		argv += unsafe.Sizeof(arg)
	}
	in := infoOf(hints)
	if in == nil && hints != C.SPX_HANDLE_INFO_NULL {
		return p, mpierr.New(mpierr.Info, "an info handle is neither valid nor MPI_INFO_NULL")
	}
	p.Dir, _ = unix.Getwd()
	return p, applySpawnHints(&p, in)
}

// currentEnvironment is that of this process as it is now: the variables that spxrun would forward.
func currentEnvironment() []string {
	var out []string
	for e := C.spx_environ(); *e != nil; e = (**C.char)(
		unsafe.Add(unsafe.Pointer(e), unsafe.Sizeof(*e))) {
		kv := C.GoString(*e)
		name, _, ok := strings.Cut(kv, "=")
		if ok && name != "" && !service.IsPlace(name) {
			out = append(out, kv)
		}
	}
	return out
}

// spawn is collective over the communicator; what programs returns counts at the root alone.
func (c *call) spawn(a spawnArgs, programs func() ([]service.Program, error)) error {
	parents := c.comm(a.comm)
	if parents.Inter() {
		return c.onComm(a.comm, mpierr.New(mpierr.Comm,
			"comm is an intercommunicator; an intracommunicator is needed"))
	}
	made, o, err := parents.spawn(c.int(a.root), programs)
	c.setCodes(a.codes, o, err != nil)
	if err != nil {
		return c.onComm(a.comm, err)
	}
	c.setComm(a.out, made)
	return nil
}

// spawn starts the programs returned by programs at the root, and makes the intercommunicator with
// them.
func (parents *commObject) spawn(root int, programs func() ([]service.Program, error)) (*commObject,
	comm.Outcome, error) {
	ftLetGo()
	var answer *service.Message
	var meetingID uint64
	var made *commObject
	shut := func() {}
	defer giveUp(&made)()
	defer func() { shut() }()
	o, err := parents.Spawn(world.contexts, root, comm.Starter{
		Start: func() (o comm.Outcome) {
			meetingID = world.contexts.Take(1)
			answer, o = startChildren(programs, meetingID)
			return o
		},
		Meet: func() (*comm.Comm, error) {
			pair, end, err := meetChild(answer, meetingID)
			shut = end
			if err != nil {
				return nil, notMet(err)
			}
			pair.OfPair = notMet
			return pair.core(), nil
		},
	}, maker(parents, &made))
	switch {
	case err == nil:
		whole := made
		made = nil
		return whole, o, nil
	case o.Failure != nil:
		return nil, o, o.Failure
	case answer != nil:
		// they are gone then
		ask(world.me.Job, &service.Message{Kind: service.SpawnResult, World: answer.World, FD: -1}, mpierr.Spawn, 0) //nolint:errcheck
	}
	return nil, o, err
}

// bridge makes the intercommunicator with the group of the other process of pair, which the root
// has alone, and nil when there is none because of failure. All processes of both groups have it
// when it returns, or an error; a process that has it all the same finds it revoked.
func bridge(local *commObject, root int, pair *commObject, failure error) (*commObject, error) {
	var made *commObject
	defer giveUp(&made)()
	err := comm.Join(world.contexts, local.Comm, root, pair.core(), failure, maker(local, &made))
	whole := made
	made = nil
	return whole, err
}

// giveUp gives a function that a maker's caller defers: *made that is left then was not handed out,
// as the wait for the others was left.
func giveUp(made **commObject) func() {
	return func() {
		if *made != nil {
			maker(nil, made).GiveUp()
		}
	}
}

// maker builds a communicator like parent in *made.
func maker(parent *commObject, made **commObject) comm.Maker {
	return comm.Maker{
		Build: func(m *comm.Made) (err error) {
			*made, err = newComm(m, parent)
			return err
		},
		GiveUp: func() {
			(*made).revoke()
			C.spx_retire(C.SPX_K_COMM, &(*made).c.o)
			*made = nil
		},
	}
}

// startChildren has the agent start the processes.
func startChildren(programs func() ([]service.Program, error), meetingID uint64) (
	answer *service.Message, o comm.Outcome) {
	list, err := programs()
	for _, p := range list {
		o.Asked += int(p.Procs)
	}
	if err != nil {
		o.Failure = err
		return nil, o
	}
	answer, o.Failure = ask(world.me.Job, &service.Message{Kind: service.Spawn, Peer: self(),
		Text: parentText(meetingID), Programs: list, FD: -1},
		mpierr.Spawn, 0)
	if answer != nil {
		o.Codes = answer.Codes
	}
	return answer, o
}

// notMet is the error of a spawn to which the children did not come, from the root's view of them.
// The root decides whether a child or a parent has failed: other parents may get the error before
// their agent reports the dead process.
func notMet(err error) error {
	if mpierr.ClassOf(err) == mpierr.Spawn {
		return err
	}
	return mpierr.New(mpierr.Spawn,
		"the processes were started, but have ended before MPI_Init was complete in all of "+
			"them: %v", err)
}

// core is the communicator of package comm, nil for none.
func (o *commObject) core() *comm.Comm {
	if o == nil {
		return nil
	}
	return o.Comm
}

// setCodes stores the error codes in argument i, unless they are ignored.
func (c *call) setCodes(i int, o comm.Outcome, failed bool) {
	out := cslice[int32](c.addr(i), o.Asked)
	for k := range out {
		switch {
		case k < len(o.Codes) && o.Codes[k] != 0:
			out[k] = int32(o.Codes[k])
		case failed:
			out[k] = int32(mpierr.Spawn)
		default:
			out[k] = 0
		}
	}
}

// meetChild opens the communicator of the root and the first child.
func meetChild(answer *service.Message, ctx uint64) (*commObject, func(), error) {
	if len(answer.Slots) == 0 {
		return nil, func() {}, mpierr.New(mpierr.Spawn, "no process was to be started")
	}
	child := memberOf(procOf(answer.Slots[0]), world.me.Job)
	o, shut, err := meeting(twoOf(world.me, child), ctx)
	if err != nil {
		return nil, func() {}, err
	}
	return o, shut, nil
}

// twoOf is the group of two processes, the same on both sides.
func twoOf(a, b ident.ProcID) *group.Group {
	if ident.Compare(a, b) > 0 {
		a, b = b, a
	}
	return group.Of(a, b)
}

// parentText is the value of SPX_PARENT for spawned processes: the identity of the root, and the
// context of the meeting.
func parentText(ctx uint64) string {
	return fmt.Sprintf("%x:%x:%x:%x:%x", world.me.Job, world.me.World, world.me.Rank,
		world.me.Incarnation, ctx)
}

// meetParents connects a spawned process with those that have spawned it.
func meetParents(s *startInfo) error {
	text := getenv(service.EnvParent)
	if text == "" || s.WorldID == 0 {
		return nil
	}
	var root ident.ProcID
	var ctx uint64
	if _, err := fmt.Sscanf(text, "%x:%x:%x:%x:%x", &root.Job, &root.World, &root.Rank,
		&root.Incarnation, &ctx); err != nil {
		return fail(C.MPI_ERR_OTHER, "%s is %q, which the launcher cannot have written",
			service.EnvParent, text)
	}
	w := commOf(C.SPX_HANDLE_COMM_WORLD)
	var pair *commObject
	var failure error
	shut := func() {}
	if w.Rank == 0 {
		var end func()
		if pair, end, failure = meeting(twoOf(world.me, root), ctx); failure == nil {
			shut = end
		}
	}
	o, err := bridge(w, 0, pair, failure)
	shut()
	if err != nil {
		return fail(C.MPI_ERR_SPAWN, "this process was spawned, and cannot meet its parents: %v",
			err)
	}
	for k, ch := range "MPI_COMM_PARENT" {
		o.c.name[k] = C.char(ch)
	}
	*(*uintptr)(unsafe.Pointer(&C.spx_parent)) = o.handle()
	C.have_met()
	return nil
}
