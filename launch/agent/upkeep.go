package agent

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/cluster/manage"
	"libspx/launch/control"
	"libspx/launch/inspect"
	"libspx/launch/service"
	"libspx/launch/trace"
)

// An agent starts the process of its host's master (master.go), and another one when it has died or
// does not answer: that one begins with the promises and reports of the dead one (manage.Past),
// which the agent has seen pass, and gets the counts of this host's processes again.

// Limits on masters, in time.
const (
	masterRest = 250 * time.Millisecond // between two questions whether a master answers
	masterLook = 100 * time.Millisecond // between looks whether it has
	// one that has not after so many looks is replaced; they are counted, since it is no fault to
	// have stood still together with its agent
	masterMiss  = 4
	masterFirst = 4 // times as many of one that has not said anything yet
	// times as many of one that had no processor for most of the time before such a look
	masterMost = 10
	// one that dies before it is so old is not replaced at once
	masterYoung = 200 * time.Millisecond
	// but so much later, and each further one after twice the time
	masterPause = 10 * time.Millisecond
	masterSlow  = 2 * time.Second // at most
	// so many deaths of young ones in turn are reported, and no more
	masterLines = 3
)

// keptMaster is the process of a host's master.
type keptMaster struct {
	cmd    *exec.Cmd
	socket *os.File
	box    outbox
	room   room
	began  time.Time

	asked  bool             // whether it answers
	spoke  bool             // it has begun
	missed int              // how often it was seen that it has not
	queues [2]inspect.Queue // its own, and that of this process, which takes its answer
	// of these looks, those before which one of the two waited for a processor: they do not count
	kept int
	look time.Time // when that is to be seen to
	why  string    // it was killed, because; empty: it was not
}

// Events of a master's process.
type (
	masterSaid struct {
		by *keptMaster
		m  *control.Message
	}
	masterEnded struct {
		who *keptMaster
		how string
	}
)

// startMaster starts the process: in the place of one that has died with its past, without one for
// a new tree. It is to be called on the main thread, with which the process ends.
func (a *agent) startMaster(past *manage.Past) {
	k, err := a.newMaster()
	if err != nil {
		a.tree.deaths++
		a.masterPauses(fmt.Sprintf("cannot be started: %v", err))
		return
	}
	a.tree.master = k
	a.beginMaster(past)
	a.masterIs(k.cmd.Process.Pid)
}

func (a *agent) newMaster() (*keptMaster, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	unix.SetNonblock(ends[0], true) //nolint:errcheck // cannot fail
	mine, theirs := os.NewFile(uintptr(ends[0]), service.MasterName),
		os.NewFile(uintptr(ends[1]), Name)
	defer theirs.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{service.MasterName}
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = "/", os.Stderr, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		mine.Close()
		return nil, err
	}
	now := time.Now()
	k := &keptMaster{cmd: cmd, socket: mine, began: now, look: now.Add(masterRest)}
	conn := control.NewConn(mine)
	k.box.start(conn)
	go func() {
		for {
			m, err := conn.Receive()
			if err != nil {
				cmd.Process.Kill() //nolint:errcheck // it has ended
				return
			}
			a.inbox.hear(&k.room, place{from: k}, m, masterSaid{k, m})
		}
	}()
	go func() { a.inbox.put(masterEnded{k, howEnded(cmd.Wait())}) }()
	return k, nil
}

func howEnded(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		if w := exit.Sys().(syscall.WaitStatus); w.Signaled() {
			return fmt.Sprintf("was killed by signal %d", w.Signal())
		}
		return fmt.Sprintf("has ended with exit status %d", exit.ExitCode())
	}
	return "has ended"
}

// beginMaster sends the process the tree, and the counts of this host's processes.
func (a *agent) beginMaster(past *manage.Past) {
	t := &a.tree
	if t.master == nil {
		return
	}
	origin := trace.Now() - uint64(time.Since(a.began))
	t.master.box.put(&control.Message{Begin: &control.Begin{Tree: control.Tree{Epoch: t.epoch,
		Config: t.cfg, View: t.past.View}, Past: past, Origin: origin}})
	if len(t.left) > 0 {
		t.master.box.put(&control.Message{Left: t.left})
	}
	t.counts, t.dirty = nil, true
}

// tendMaster sees whether the process answers, or starts one.
func (a *agent) tendMaster() {
	t, now := &a.tree, time.Now()
	k := t.master
	switch {
	case t.epoch == 0 || t.over:
	case k == nil && !now.Before(t.again):
		past := t.past
		a.startMaster(&past)
	case k == nil || now.Before(k.look):
	case !k.asked:
		k.asked, k.missed, k.kept, k.look = true, 0, 0, now.Add(masterLook)
		k.waited(0)
		k.box.put(&control.Message{Ping: 1})
	default:
		k.look = now.Add(masterLook)
		most := masterMiss
		if !k.spoke { // it takes long to begin where much else runs
			most *= masterFirst
		}
		if k.waited(masterLook) > masterLook/2 && k.kept < masterMost*most {
			k.kept++
		} else if k.missed++; k.missed == most {
			k.why = fmt.Sprintf("has not answered for %v", time.Duration(most)*masterLook)
			k.cmd.Process.Kill() //nolint:errcheck // it has ended then
		}
	}
}

// waited is for how much of the time since the last look it, or this process, waited for a
// processor.
func (k *keptMaster) waited(passed time.Duration) time.Duration {
	return k.queues[0].Look(k.cmd.Process.Pid, passed) + k.queues[1].Look(os.Getpid(), passed)
}

// masterDue is when tendMaster is to be called next.
func (t *tree) masterDue() (at time.Time, ok bool) {
	if t.epoch == 0 || t.over {
		return at, false
	}
	if t.master == nil {
		return t.again, true
	}
	return t.master.look, true
}

// heardMaster handles a message of the process.
func (a *agent) heardMaster(e masterSaid) {
	t := &a.tree
	e.by.spoke = true
	switch {
	case e.by != t.master || e.by.why != "": // one that was given up decides nothing
	case e.m.Ping != 0:
		e.by.asked, e.by.look = false, time.Now().Add(masterRest)
	case e.m.Managed != nil && e.m.Managed.Epoch == t.epoch:
		a.sendTree(e.m.Managed)
	case e.m.Learned != nil && e.m.Learned.Epoch == t.epoch && t.past.Told(&e.m.Learned.View):
		a.heedView(t.past.View)
	}
}

// lostMaster replaces a process that has ended.
func (a *agent) lostMaster(e masterEnded) {
	t := &a.tree
	e.who.socket.Close()
	e.who.box.close()
	if e.who != t.master {
		return
	}
	t.master = nil
	if t.over {
		return
	}
	a.masterIs(0)
	if t.deaths++; time.Since(e.who.began) >= masterYoung {
		t.deaths = 0
	}
	how := e.how
	if e.who.why != "" {
		how = e.who.why
	}
	a.masterPauses(fmt.Sprintf("(process %d) %s", e.who.cmd.Process.Pid, how))
	a.tendMaster()
}

// masterPauses decides when the next process is started, and prints a line.
func (a *agent) masterPauses(how string) {
	t := &a.tree
	t.again = time.Now()
	if t.deaths > 0 {
		t.again = t.again.Add(min(masterPause<<min(t.deaths, 16), masterSlow))
	}
	if t.deaths < masterLines {
		a.say(fmt.Sprintf("the master of host %s %s; another one is started.", a.host, how))
	}
}

// endMaster ends the process, with the job.
func (a *agent) endMaster() {
	t := &a.tree
	t.over = true
	if t.master != nil {
		t.master.cmd.Process.Kill() //nolint:errcheck // it has ended by itself
	}
}

// isMaster keeps the process from being taken for something that a rank has left behind.
func (a *agent) isMaster(pid int) bool {
	return a.tree.master != nil && a.tree.master.cmd.Process.Pid == pid
}

// masterIs reports this host's master process to the agent that starts processes; 0: none is.
func (a *agent) masterIs(pid int) {
	if a.up != nil {
		a.up.box.put(&control.Message{Master: &control.Master{Pid: pid}})
		return
	}
	a.tree.mastered(a.self, pid)
}

// mastered notes it. A system's master on that host is none any more.
func (t *tree) mastered(host, pid int) {
	if t.pids == nil {
		t.pids, t.fallen = map[int]int{}, map[int]uint64{}
	}
	t.pids[host] = pid
	if pid == 0 {
		t.fallen[host] = t.past.View.Term
	}
}

// systemMaster is the system's master, and its process; -1: one is being elected.
func (t *tree) systemMaster() (host, pid int) {
	v := &t.past.View
	if host, pid = v.Master, t.pids[v.Master]; pid == 0 || v.Term == 0 || t.fallen[host] >= v.Term {
		return -1, 0
	}
	return host, pid
}
