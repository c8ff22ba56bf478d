package main

/*
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "comm.h"
#include "dyprc.h"
#include "error.h"
#include "settings.h"
#include "stat.h"
static void adopt(spx_comm *c)
{
  spx_c_Comm_set_errhandler(c, spx_dyprc.handler);
  snprintf(c->name, sizeof c->name, "mworld");
}
static spx_comm *mark_revoked(void)
{
  const spx_errh *handler = (const spx_errh *)spx_get(SPX_K_ERRH, spx_dyprc.handler);
  return handler ? spx_mark_revoked(handler) : NULL;
}
static void part_revoked(spx_comm *c)
{
  for (; c; c = c->inner) {
    atomic_store(&c->revoked, 1);
    spx_comm_revoked(c);
  }
}
static void dyprc_fatal(int code, const char *text) { spx_fatal(code, "%s", text); }
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"libspx/core/info"
	"libspx/core/mpierr"
	"libspx/ft/malleable"
	"libspx/launch/service"
)

// ulfm_dyprc: the shell around package ft/malleable. What has to be C is in bodies/dyprc.c: the way
// back to the point of the program, and meetings in which nothing is on.

// dyprc is the part of this process; nil before ulfm_dyprc_merge_child. The program's calls do not
// meet.
var dyprc *malleable.Machine

func init() { revokedHere = append(revokedHere, dyprcRevoked) }

// dyprcRevoked is called when c has been revoked. What was made of the communicator of all
// processes has its error handler, and is of no use either: a process may wait there for one that
// has gone back already.
func dyprcRevoked(c *C.spx_comm) {
	if c != C.spx_dyprc.comm {
		return
	}
	for {
		made := C.mark_revoked()
		if made == nil {
			return
		}
		C.part_revoked(made)
		C.spx_unref(C.SPX_K_COMM, &made.o)
	}
}

// dyprcMergeChild has mworld, and gets in arguments 1 and 2 whether this process is new, and what C
// does then.
//
//spx:body ulfm_dyprc_merge_child
func dyprcMergeChild(c *call) error {
	m := malleable.New(dyprcShell{}, dyprcDisk{})
	if inter := commOf(*(*uintptr)(unsafe.Pointer(&C.spx_parent))); inter != nil &&
		getenv(envNewcomer) != "" {
		// it is set: what this process starts is not new in this way
		os.Unsetenv(envNewcomer) //nolint:errcheck
		joined, err := m.Join(dyprcInter{inter.handle()})
		endIf(err)
		if !joined {
			fmt.Fprintln(os.Stderr,
				"ulfm_dyprc: the processes that have spawned this one are gone; it ends")
			c.setInt(2, C.SPX_DYPRC_UNWANTED)
			return nil
		}
	} else {
		all, err := commOf(C.SPX_HANDLE_COMM_WORLD).survivors()
		if err != nil {
			return err
		}
		m.Start(dyprcWorld{all.handle()}) // a duplicate, without those that have died since
	}
	dyprc = m
	c.setBool(1, m.Newcomer())
	c.leaveDyprc(malleable.Stay, 2)
	return nil
}

// envNewcomer is set in processes that are spawned to join a running program, and not for another
// reason.
const envNewcomer = "SPX_DYPRC_NEWCOMER"

// dyprcResume has mworld, jumped and newcomer, and gets in arguments 3 and 4 whether a process
// comes after a change, and what C does then.
//
//spx:body ulfm_dyprc_resume
func dyprcResume(c *call) error {
	jumped := c.int(1) != 0
	if enterDyprc(); jumped && C.spx_dyprc.failed != 0 {
		endIf(dyprc.Recover())
	}
	restart, step, err := dyprc.Resume(jumped, c.int(2) != 0)
	endIf(err)
	c.setBool(3, restart)
	c.leaveDyprc(step, 4)
	return nil
}

// dyprcPoll has mworld, and gets in argument 1 what C does then.
//
//spx:body ulfm_dyprc_poll
func dyprcPoll(c *call) error {
	enterDyprc()
	var step malleable.Step
	var err error
	if C.spx_dyprc.met {
		news := make([]int64, malleable.NewsWords)
		for i := range news {
			news[i] = int64(C.spx_dyprc.news[i])
		}
		step, _, err = dyprc.Met(news, linkError(C.spx_dyprc.err))
	} else {
		step, err = dyprc.Poll()
	}
	endIf(err)
	c.leaveDyprc(step, 1)
	return nil
}

// enterDyprc takes what C has noted since the last call.
func enterDyprc() {
	d := &C.spx_dyprc
	if d.last != 0 {
		dyprc.Passed(malleable.Duration(d.last), int(d.stride))
	}
	if d.failed != 0 {
		dyprc.FailedAt(malleable.Duration(d.failed))
	}
}

// leaveDyprc stores mworld, what C does then in argument i, and what it needs until the next call.
func (c *call) leaveDyprc(step malleable.Step, i int) {
	d := &C.spx_dyprc
	c.setInt(i, int(step)) // SPX_DYPRC_STAY, SPX_DYPRC_ANOTHER, SPX_DYPRC_LEAVE
	d.quick, d.last, d.met = false, 0, false
	if step == malleable.Leave {
		setDyprcWorld(nil)
		return
	}
	quick, looked := dyprc.Quick()
	d.quick, d.looked = C.bool(quick), C.uint64_t(looked)
	d.print = C.int64_t(dyprc.Fingerprint())
	d.stride = C.int(dyprc.Stride())
	d.left = d.stride
	c.setHandle(0, dyprc.World().(dyprcWorld).handle)
}

func setDyprcWorld(o *commObject) {
	d := &C.spx_dyprc
	handle := uintptr(C.SPX_HANDLE_COMM_NULL)
	d.comm = nil
	if o != nil {
		d.comm, handle = o.c, o.handle()
	}
	*(*uintptr)(unsafe.Pointer(&d.world)) = handle
}

// endIf ends the job if there is no way on.
func endIf(err error) {
	if err == nil {
		return
	}
	text := C.CString(err.Error())
	C.dyprc_fatal(C.int(mpierr.ClassOf(err)), text)
}

// survivors makes a communicator of the living processes of o.
func (o *commObject) survivors() (*commObject, error) {
	_, made, err := o.decide(0)
	return made, err
}

// dyprcWorld is a communicator of processes that change their number.
type dyprcWorld struct{ handle uintptr }

func (w dyprcWorld) obj() *commObject { return commOf(w.handle) }
func (w dyprcWorld) Rank() int        { return int(w.obj().c.rank) }
func (w dyprcWorld) Size() int        { return int(w.obj().c.size) }
func (w dyprcWorld) Revoke()          { w.obj().revoke() }
func (w dyprcWorld) Free()            { freeComm(w.handle) }

func worldOf(o *commObject, err error) (malleable.World, error) {
	if o == nil {
		return nil, err
	}
	return dyprcWorld{o.handle()}, err
}

func (w dyprcWorld) Decide(flags uint32) (uint32, malleable.World, error) {
	decided, o, err := w.obj().decide(flags)
	next, err := worldOf(o, err)
	return decided, next, err
}

func (w dyprcWorld) Greatest(values []int64) ([]int64, error) {
	return here().greatest(w.obj().c, values)
}

func (w dyprcWorld) Bcast(words []uint64) error { return here().bcast(w.obj().c, words) }

func (w dyprcWorld) Split(stays bool) (malleable.World, error) {
	o, color := w.obj(), 1
	if stays {
		color = 0
	}
	m, err := o.Comm.Split(o.dealer(), color, int(o.c.rank), nil)
	if err != nil {
		return nil, err
	}
	return worldOf(newLiving(m, o, false))
}

func (w dyprcWorld) Left(from int) bool {
	o := w.obj()
	for _, p := range ranksOf(o.c.local, o.c.size)[from:] {
		if C.spx_proc_left(C.uint32_t(p)) == 0 {
			return false
		}
	}
	return true
}

// dyprcInter leads to processes that were spawned, or to those that have spawned this one.
type dyprcInter struct{ handle uintptr }

func (k dyprcInter) obj() *commObject { return commOf(k.handle) }
func (k dyprcInter) Revoke()          { k.obj().revoke() }
func (k dyprcInter) Remote() int      { return int(k.obj().c.remote_size) }
func (k dyprcInter) Free()            { freeComm(k.handle) }

func (k dyprcInter) Merge(high bool) (malleable.World, error) {
	o := k.obj()
	m, err := o.Comm.Merge(world.contexts, high)
	if err != nil {
		return nil, err
	}
	return worldOf(newLiving(m, o, false))
}

func (k dyprcInter) Decide(flags uint32) (uint32, malleable.Inter, error) {
	decided, o, err := k.obj().decide(flags)
	if o == nil {
		return decided, nil, err
	}
	return decided, dyprcInter{o.handle()}, err
}

// dyprcShell is this process.
type dyprcShell struct{}

func (dyprcShell) Now() malleable.Duration { return malleable.Duration(monotonic()) }
func (dyprcShell) Say(line string)         { fmt.Fprintln(os.Stderr, "ulfm_dyprc: "+line) }

// Age counts from the start of the process, as the kernel has it in its 22nd field, in ticks.
func (dyprcShell) Age() malleable.Duration {
	var now unix.Timespec
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	began, ok := startOf(string(text))
	if !ok {
		return 0
	}
	return malleable.Duration(max(0, now.Nano()-began*(1000000000/int64(C.sysconf(C._SC_CLK_TCK)))))
}

func (dyprcShell) Adopted(w malleable.World) {
	o := w.(dyprcWorld).obj()
	C.adopt(o.c)
	setDyprcWorld(o)
	C.spx_dyprc.failed = 0
}

func (dyprcShell) Spawn(w malleable.World, n int) (malleable.Inter, error) {
	o, _, err := w.(dyprcWorld).obj().spawn(0,
		func() ([]service.Program, error) { return newcomers(n) })
	if err != nil {
		return nil, mpierr.New(mpierr.ClassOf(err), "MPI_Comm_spawn: %v", err)
	}
	return dyprcInter{o.handle()}, nil
}

// newcomers is n processes with this process's own command line.
func newcomers(n int) ([]service.Program, error) {
	argv, err := ownCommand()
	if err != nil {
		return nil, err
	}
	hints := info.New()
	hints.Set("env", envNewcomer+"=1") //nolint:errcheck // it is short
	p := service.Program{Argv: argv, Procs: uint32(n), Env: currentEnvironment()}
	p.Dir, _ = unix.Getwd()
	err = applySpawnHints(&p, hints)
	return []service.Program{p}, err
}

func (dyprcShell) Yield() {
	here().progress()
	C.sched_yield()
}

func (dyprcShell) Kill() {
	unix.Kill(os.Getpid(), unix.SIGKILL) //nolint:errcheck // this process may
	select {}
}

func (dyprcShell) IsFailure(err error) bool {
	switch mpierr.ClassOf(err) {
	case errProcFailed, errProcFailedPending, errRevoked:
		return true
	}
	return false
}

// dyprcDisk is the command file.
type dyprcDisk struct{}

func (dyprcDisk) Name() string {
	if name := C.GoString(C.spx_setting_text(C.SPX_SET_DYPRC_FILE)); name != "" {
		return name
	}
	return "ulfm_dyprc.cmd"
}

func (k dyprcDisk) Stat() (malleable.FileState, error) {
	var st unix.Stat_t
	err := unix.Stat(k.Name(), &st)
	return fileState(&st), err
}

func (k dyprcDisk) Open(write bool) (malleable.OpenFile, bool, error) {
	mode := unix.O_RDONLY
	if write {
		mode = unix.O_RDWR
	}
	fd, err := unix.Open(k.Name(), mode|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Is(err, unix.ENOENT), systemError(err)
	}
	return dyprcFile(fd), false, nil
}

func fileState(st *unix.Stat_t) malleable.FileState {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME, &now) //nolint:errcheck // it exists
	age := malleable.Duration(now.Nano() - st.Mtim.Nano())
	if age < 0 {
		age = 1<<63 - 1
	}
	return malleable.FileState{Regular: st.Mode&unix.S_IFMT == unix.S_IFREG,
		Modified: st.Mtim.Nano(), Inode: st.Ino, Size: st.Size, Age: age}
}

// systemError is an error of the system as C names it.
func systemError(err error) error {
	var code unix.Errno
	if !errors.As(err, &code) {
		return err
	}
	return errors.New(C.GoString(C.strerror(C.int(code))))
}

// dyprcFile is the descriptor of the command file.
type dyprcFile int

func (f dyprcFile) Stat() (malleable.FileState, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f), &st)
	return fileState(&st), err
}

func (f dyprcFile) Read(most int) ([]byte, error) {
	text := make([]byte, most)
	n, err := unix.Pread(int(f), text, 0)
	return text[:max(n, 0)], err
}

func (f dyprcFile) Write(text string, size int64) error {
	var err error
	if size > 0 {
		err = unix.Ftruncate(int(f), size)
	}
	if err == nil {
		_, err = unix.Pwrite(int(f), []byte(text), 0)
	}
	if err != nil {
		return systemError(err)
	}
	return nil
}

func (f dyprcFile) Close() { unix.Close(int(f)) }
