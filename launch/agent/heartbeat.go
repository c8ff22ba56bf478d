package agent

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// The agents of a job's hosts hear of each other regularly (package ft/detect), over the network
// that the processes use: datagrams with the job's key, sent and received by a thread of its own,
// which no process waits for. What it finds out is an event for the main thread.

// Presets of the settings.
const (
	beatPeriod = 100 * time.Millisecond
	beatLimit  = time.Second // of jobs that are to survive the loss of a host
	// of other jobs, which end with a host: longer than the failover of a network bond, or the
	// migration of a virtual machine
	calmLimit = 30 * time.Second
	beatShare = 5 // the limit is at least so many periods
	// a preset limit follows the silences that were seen up to so many times its length
	beatGrowth = 10
)

// The form of a datagram: job, sender, receiver, the machine's message, and the proof that the
// sender has the job's key.
const (
	beatHead  = 16 + 4 + 4
	beatProof = 16
	// a set of hosts or a report that is longer does not travel; the next is as good
	beatMost = 1400
)

// beatTurn is how many datagrams are received before the clock is read again: a sender that is
// faster than the reader keeps no beat from being sent.
const beatTurn = 256

// beatRoom is the room in bytes that the socket asks for.
const beatRoom = 1 << 20

// What the thread has detected: on spxrun's host that other hosts are silent, on another that its
// own time is over.
type (
	silence struct {
		hosts []int
		split bool // more than half are: this side ends
	}
	fenced struct {
		why detect.Reason
		era uint64 // of the one that decided
	}
)

// heartbeat is this host's part.
type heartbeat struct {
	fd, bell int
	at       netip.AddrPort
	self     int
	job      [16]byte
	key      [32]byte
	peers    []netip.AddrPort
	began    time.Time
	lookedAt time.Time // by its thread alone
	limit    time.Duration
	period   time.Duration
	tell     func(any)
	machine  *detect.Machine
	tree     detect.Tree // by its thread alone, once it runs
	between  bool        // likewise: there are hosts that are reached through other ones
	root     int         // by its thread alone: host that decides
	era      uint64      // likewise: after so many changes of the deciding host
	most     time.Duration

	thread atomic.Int64 // that of the heartbeats, by its number
	// for how long it had waited for a processor, half of the limit ago or more, in nanoseconds
	before  atomic.Int64
	latest  atomic.Int64 // the same, since
	longest atomic.Int64 // silence so far, in microseconds
	allowed atomic.Int64 // silence after which a host is given up now, in microseconds
	// the longest silence that has ended, in microseconds, as far as this host knows
	worst   atomic.Int64
	strange atomic.Uint64 // datagrams that no host of the job has sent to this one
	// those that the kernel has dropped: such as it sees to be none of the job's, and such as found
	// no room
	dropped atomic.Uint64
	// those that came after a later one of their host: late, or replayed
	again atomic.Uint64

	mu    sync.Mutex
	gone  []goneHost  // guarded by mu; of which the machine does not know yet
	more  *grownBeats // guarded by mu; all hosts, when there are more than the machine knows
	quiet []int       // guarded by mu; those of detect.Machine.Quiet
	next  *reroot     // guarded by mu; of which the thread does not know yet
}

// grownBeats are all hosts, and the tree of their heartbeats.
type grownBeats struct {
	at   []netip.AddrPort
	tree detect.Tree
}

// reroot reports that another host decides, and which hosts are gone then.
type reroot struct {
	root int
	era  uint64
	gone []int
}

// silence is for how long a host may be silent now, before it is given up; 0: no heartbeats have
// begun.
func (h *heartbeat) silence() time.Duration {
	return time.Duration(h.allowed.Load()) * time.Microsecond
}

// turnTo has all begin anew around another host that decides. What was said before is not heard any
// more.
func (h *heartbeat) turnTo(to reroot) {
	h.mu.Lock()
	h.next, h.gone, h.quiet = &to, nil, nil
	h.mu.Unlock()
	h.ring()
}

// place is the number by which the machine knows a host, and the host by which it knows a number:
// the one that decides is its host 0.
func (h *heartbeat) place(host int) int {
	switch host {
	case 0:
		return h.root
	case h.root:
		return 0
	}
	return host
}

// places are those of a list.
func (h *heartbeat) places(list []int) []int {
	out := slices.Clone(list)
	for i := range out {
		out[i] = h.place(out[i])
	}
	return out
}

// config is what the machine knows from the start.
func (h *heartbeat) config(alone bool) detect.Config {
	return detect.Config{Self: h.place(h.self), Hosts: len(h.peers),
		Period: detect.Time(h.period.Microseconds()), Limit: detect.Time(h.limit.Microseconds()),
		Most: detect.Time(h.most.Microseconds()), Alone: alone, Tree: h.builtTree()}
}

// know stores all hosts, and the tree of their heartbeats.
func (h *heartbeat) know(peers []netip.AddrPort, tree detect.Tree) {
	h.peers, h.tree = peers, tree
	if !h.between && relayed(tree) {
		h.between = true
		h.sieve(true)
	}
}

// built is the tree as the machine has it: around another host that decides it follows from the
// numbers, and agents in between hand on what passes them.
func (h *heartbeat) builtTree() detect.Tree {
	if h.root != 0 || !h.between {
		return detect.Tree{}
	}
	return h.tree
}

// openHeartbeat makes the socket. Without one this host is never heard, and never suspected.
func (a *agent) openHeartbeat() error {
	if !a.several() {
		return nil
	}
	at, err := a.beatAddress()
	if err != nil {
		return err
	}
	ports, err := portsOf(a.spec.Programs[0].Env)
	if err != nil {
		return err
	}
	fd, port, err := ports.listen(a.listenAt(at), datagrams)
	if err != nil {
		return err
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return err
	}
	if above, e := unix.FcntlInt(uintptr(bell), unix.F_DUPFD_CLOEXEC,
		control.ListenFD+1); e == nil {
		unix.Close(bell)
		bell = above
	}
	a.beating = &heartbeat{fd: fd, bell: bell, at: netip.AddrPortFrom(at, port), self: a.self,
		job: a.segment.JobID(), key: a.segment.Key(), began: time.Now(),
		tell: func(e any) { a.inbox.put(e) }}
	a.beating.sieve(false)
	a.company.hears(a.beating)
	return nil
}

// presetLimit is the preset of SPX_HEARTBEAT_LIMIT for a job. A host that is silent for a moment is
// worth waiting for where its loss would end the job; where the other hosts can continue without it
// they are not to wait for long.
func presetLimit(spec *control.Job) time.Duration {
	survives := func(p job.Part) bool { return p.Network != job.Stop }
	if spec.WithFT || spec.OnDeath == "continue" || slices.ContainsFunc(spec.Parts, survives) {
		return beatLimit
	}
	return calmLimit
}

// beatsOf reads the settings of a job.
func beatsOf(spec *control.Job) (b control.Beats, err error) {
	environ := spec.Programs[0].Env
	b.Period, b.Limit = beatPeriod, presetLimit(spec)
	b.Most = beatGrowth * b.Limit
	if text := variableOf(environ, service.EnvHeartbeat); text != "" {
		if b.Period, err = millisecondsOf(text, 0); err != nil {
			return b, fmt.Errorf(
				"%s=%s: a number of milliseconds is expected, from 1 (%s=0: no heartbeats)",
				service.EnvHeartbeat, text, service.EnvHeartbeat)
		}
	}
	if text := variableOf(environ, service.EnvHeartbeatLimit); text != "" {
		least, most, two := strings.Cut(text, "-")
		if b.Limit, err = millisecondsOf(least, 1); err == nil && two {
			b.Most, err = millisecondsOf(most, b.Limit/time.Millisecond)
		} else {
			b.Most = b.Limit // what is said holds
		}
		if err != nil {
			return b, fmt.Errorf(
				"%s=%s: a number of milliseconds is expected, from 1, or two, as 1000-5000: the "+
					"least and the most (%s=0: no heartbeats)", service.EnvHeartbeatLimit, text,
				service.EnvHeartbeat)
		}
	}
	b.Period = min(b.Period, b.Limit/beatShare)
	switch text := cmp.Or(variableOf(environ, service.EnvPartition), "majority"); text {
	case "majority":
	case "launcher":
		b.Alone = true
	default:
		return b, fmt.Errorf("%s=%s: there are majority, launcher", service.EnvPartition, text)
	}
	return b, nil
}

// millisecondsOf reads a number of milliseconds, at least so many.
func millisecondsOf(text string, least time.Duration) (time.Duration, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err == nil && n < uint64(least) {
		err = strconv.ErrRange
	}
	return time.Duration(n) * time.Millisecond, err
}

// start begins to beat, when the addresses of the other hosts are known.
func (h *heartbeat) start(b *control.Beats) {
	h.limit, h.period, h.most = b.Limit, b.Period, b.Most
	h.know(b.At, b.Tree)
	h.allowed.Store(b.Limit.Microseconds())
	h.machine = detect.New(h.config(b.Alone), h.now())
	go h.run()
}

func (h *heartbeat) now() detect.Time { return detect.Time(time.Since(h.began).Microseconds()) }

// goneHost is a host that has certainly ended, or whose agent is ignored from now on.
type goneHost struct {
	number int
	why    detect.Reason
}

// hasGone reports that a host has gone.
func (h *heartbeat) hasGone(host int, why detect.Reason) {
	h.mu.Lock()
	h.gone = append(h.gone, goneHost{host, why})
	h.mu.Unlock()
	h.ring()
}

// wasQuiet reports whether nothing was received from a host for some time.
func (h *heartbeat) wasQuiet(host int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.quiet, host)
}

// hasGrown reports that hosts have been added.
func (h *heartbeat) hasGrown(peers []netip.AddrPort, tree detect.Tree) {
	h.mu.Lock()
	h.more = &grownBeats{slices.Clone(peers), detect.Tree{Up: slices.Clone(tree.Up),
		By: slices.Clone(tree.By)}}
	h.mu.Unlock()
	h.ring()
}

func (h *heartbeat) ring() {
	one := [8]byte{1}
	unix.Write(h.bell, one[:]) //nolint:errcheck // a full counter wakes as well
}

// run is the thread. It ends with the process.
func (h *heartbeat) run() {
	prioritizeHeartbeat()
	fds := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN},
		{Fd: int32(h.bell), Events: unix.POLLIN}}
	for {
		h.look()
		unix.Poll(fds, h.timeout()) //nolint:errcheck // the loop looks again
		h.receive()
		h.mu.Lock()
		gone, more, next := h.gone, h.more, h.next
		h.gone, h.more, h.next = nil, nil, nil
		h.mu.Unlock()
		if len(gone) > 0 || more != nil || next != nil {
			var count [8]byte
			unix.Read(h.bell, count[:]) //nolint:errcheck // nothing to read is fine
		}
		if more != nil && len(more.at) > len(h.peers) {
			h.know(more.at, more.tree)
			h.carryOut(h.machine.Grow(len(h.peers), h.builtTree(), h.now()))
		}
		if next != nil {
			h.begin(next)
		}
		for _, host := range gone {
			h.carryOut(h.machine.Gone(h.place(host.number), host.why, h.now()))
		}
		quiet := h.places(h.machine.Quiet(h.now()))
		h.mu.Lock()
		h.quiet = quiet
		h.mu.Unlock()
		h.carryOut(h.machine.Tick(h.now()))
		h.longest.Store(int64(h.machine.Longest()))
		h.again.Store(h.machine.Again())
	}
}

// begin begins anew: the machine is another one, in the same place.
func (h *heartbeat) begin(to *reroot) {
	h.root, h.era = to.root, to.era
	*h.machine = *detect.New(h.config(false), h.now())
	for _, host := range to.gone {
		h.carryOut(h.machine.Gone(h.place(host), detect.OutClosed, h.now()))
	}
}

// look notes, twice in the limit, for how long this thread has waited for a processor so far.
func (h *heartbeat) look() {
	if now := time.Now(); now.Sub(h.lookedAt) >= h.limit/2 {
		h.lookedAt = now
		h.before.Store(h.latest.Load())
		h.latest.Store(int64(waitedFor(unix.Gettid())))
		h.thread.Store(int64(unix.Gettid()))
	}
}

// kept describes how long, before a silence was noticed, the thread could have run and had no
// processor, if that explains the silence.
func (h *heartbeat) kept() string {
	if waited := waitedFor(int(h.thread.Load())) - time.Duration(
		h.before.Load()); waited >= h.limit/2 {
		return fmt.Sprintf(
			"; the heartbeats of this host have waited %v for a processor meanwhile: it is "+
				"overloaded", waited.Round(time.Millisecond))
	}
	return ""
}

// waitedFor is for how long a thread of this process could have run and had no processor; 0: the
// kernel does not say.
func waitedFor(thread int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", thread))
	words := strings.Fields(string(text)) // nanoseconds that it ran, that it waited, and turns
	if err != nil || len(words) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(words[1], 10, 64)
	return time.Duration(ns)
}

// waits describes for how long a host may be silent now, and the reason.
func (h *heartbeat) waits() string {
	allowed := time.Duration(h.allowed.Load()) * time.Microsecond
	if allowed <= h.limit {
		return allowed.String()
	}
	return fmt.Sprintf(
		"%v (longer than %v, because hosts had been silent for up to %v before and were heard "+
			"again)", allowed.Round(time.Millisecond), h.limit,
		(time.Duration(h.worst.Load()) * time.Microsecond).Round(time.Millisecond))
}

func (h *heartbeat) timeout() int {
	at := h.machine.Deadline()
	if at == detect.Never {
		return -1
	}
	return int(max(0, at-h.now()+999) / 1000)
}

// receive takes what has come, beatTurn datagrams at most; what was not said by a host of the job
// is left aside. The rest is taken after the next look at the clock: the socket is still readable.
func (h *heartbeat) receive() {
	var b [beatMost]byte
	var about [dropBytes]byte
	for range beatTurn {
		n, more, _, _, err := unix.Recvmsg(h.fd, b[:], about[:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		if more == dropBytes {
			h.dropped.Store(uint64(binary.NativeEndian.Uint32(about[dropBytes-8:])))
		}
		if h.handOn(b[:n]) {
			continue
		}
		from, text, ok := h.unseal(b[:n])
		if !ok {
			h.strange.Add(1)
			continue
		}
		// what has no meaning changes nothing
		out, _ := h.machine.Receive(h.place(from), text, h.now())
		h.carryOut(out)
	}
}

// dropBytes is the size of the kernel's count of dropped datagrams, which comes with a datagram: a
// header, and four bytes in eight.
const dropBytes = unix.SizeofCmsghdr + 8

// sieve has the kernel drop datagrams that do not name this job and, unless other hosts are reached
// through it, this host: they use no room in the socket, and no turn. The proof is still checked
// here. Without a sieve all datagrams are received.
func (h *heartbeat) sieve(between bool) {
	const udpHeader = 8 // the filter sees the datagram from there on
	words := []uint32{}
	for i := 0; i < len(h.job); i += 4 {
		words = append(words, binary.BigEndian.Uint32(h.job[i:]))
	}
	var self [4]byte
	binary.LittleEndian.PutUint32(self[:], uint32(h.self))
	at := []uint32{0, 4, 8, 12, beatHead - 4}
	var code []unix.SockFilter
	if !between {
		words = append(words, binary.BigEndian.Uint32(self[:]))
	}
	for i, word := range words {
		code = append(code, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS,
			K: udpHeader + at[i]},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: word, Jt: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K})
	}
	code = append(code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16})
	// see above
	unix.SetsockoptSockFprog(h.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}) //nolint:errcheck
	// it counts only
	unix.SetsockoptInt(h.fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) //nolint:errcheck
	// there is some room
	unix.SetsockoptInt(h.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, beatRoom) //nolint:errcheck
}

func (h *heartbeat) carryOut(out detect.Output) {
	h.allowed.Store(int64(h.machine.Limit()))
	h.worst.Store(int64(h.machine.Worst()))
	for _, s := range out.Sends {
		if at := h.way(h.place(s.To)); at.IsValid() && len(s.Data) <= beatMost-beatHead-beatProof {
			// what is lost is said again
			unix.Sendto(h.fd, h.seal(h.place(s.To), s.Data), unix.MSG_DONTWAIT, sockaddr(at)) //nolint:errcheck
		}
	}
	if out.Lost != nil || out.Split != nil {
		h.tell(silence{h.places(append(out.Lost, out.Split...)), out.Split != nil})
	}
	if out.Fenced != detect.NotFenced {
		h.tell(fenced{out.Fenced, h.era})
	}
}

func (h *heartbeat) seal(to int, text []byte) []byte {
	b := append(make([]byte, 0, beatHead+len(text)+beatProof), h.job[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.self))
	b = binary.LittleEndian.AppendUint32(b, uint32(to))
	b = append(b, text...)
	return append(b, h.proof(b)...)
}

func (h *heartbeat) proof(text []byte) []byte {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write([]byte("heartbeat"))
	if h.era > 0 { // what was said for another host that decided proves nothing
		mac.Write(binary.LittleEndian.AppendUint64(nil, h.era))
	}
	mac.Write(text)
	return mac.Sum(nil)[:beatProof]
}

// unseal is what a host of the job has said to this one.
func (h *heartbeat) unseal(b []byte) (from int, text []byte, ok bool) {
	if len(b) < beatHead+beatProof || [16]byte(b) != h.job ||
		binary.LittleEndian.Uint32(b[20:]) != uint32(h.self) {
		return 0, nil, false
	}
	from = int(binary.LittleEndian.Uint32(b[16:]))
	return from, b[beatHead : len(b)-beatProof], from < len(h.peers) && h.proves(b)
}

// proves reports whether the sender of a datagram has the job's key.
func (h *heartbeat) proves(b []byte) bool {
	said, proof := b[:len(b)-beatProof], b[len(b)-beatProof:]
	return [16]byte(b) == h.job && hmac.Equal(proof, h.proof(said))
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if a := at.Addr(); !a.Is4() {
		return &unix.SockaddrInet6{Addr: a.As16(), Port: int(at.Port())}
	}
	return &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
}
