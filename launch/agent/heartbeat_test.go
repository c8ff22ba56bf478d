package agent

import (
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/job"
)

func TestBeatsOf(t *testing.T) {
	for text, want := range map[string]control.Beats{
		"": {Period: 100 * time.Millisecond, Limit: 30 * time.Second, Most: 300 * time.Second},
		"SPX_HEARTBEAT=50 SPX_HEARTBEAT_LIMIT=300": {Period: 50 * time.Millisecond,
			Limit: 300 * time.Millisecond, Most: 300 * time.Millisecond},
		"SPX_HEARTBEAT_LIMIT=200": {Period: 40 * time.Millisecond,
			Limit: 200 * time.Millisecond, Most: 200 * time.Millisecond},
		"SPX_HEARTBEAT_LIMIT=200-700": {Period: 40 * time.Millisecond,
			Limit: 200 * time.Millisecond, Most: 700 * time.Millisecond},
		"SPX_HEARTBEAT_LIMIT=200-200": {Period: 40 * time.Millisecond,
			Limit: 200 * time.Millisecond, Most: 200 * time.Millisecond},
		"SPX_HEARTBEAT=0 SPX_PARTITION=launcher": {Limit: 30 * time.Second,
			Most: 300 * time.Second, Alone: true},
	} {
		if got, err := beatsOf(beatJob(text)); err != nil || got.Period != want.Period ||
			got.Limit != want.Limit || got.Most != want.Most || got.Alone != want.Alone {
			t.Errorf("%q: %+v, error %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"SPX_HEARTBEAT=often":           "SPX_HEARTBEAT=often: a number of milliseconds",
		"SPX_HEARTBEAT_LIMIT=0":         "SPX_HEARTBEAT_LIMIT=0: a number of milliseconds",
		"SPX_HEARTBEAT_LIMIT=2000-1000": "SPX_HEARTBEAT_LIMIT=2000-1000: a number of milliseconds",
		"SPX_HEARTBEAT_LIMIT=2000-":     "SPX_HEARTBEAT_LIMIT=2000-: a number of milliseconds",
		"SPX_PARTITION=both":            "SPX_PARTITION=both: there are majority, launcher",
	} {
		if _, err := beatsOf(beatJob(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}

func beatJob(environ string) *control.Job {
	return &control.Job{Programs: []control.Program{{Env: strings.Fields(environ)}}}
}

// A job that ends with a host waits for it for long; one that can go on without it does not. What
// the user says is for all.
func TestPresetLimit(t *testing.T) {
	calm, quick := 30*time.Second, time.Second
	for _, c := range []struct {
		spec control.Job
		want time.Duration
	}{
		{control.Job{}, calm},
		{control.Job{OnDeath: "auto"}, calm},
		{control.Job{OnDeath: "kill"}, calm},
		{control.Job{OnDeath: "continue"}, quick},
		{control.Job{WithFT: true}, quick},
		{control.Job{Parts: []job.Part{{Host: job.Replace}}}, calm},
		{control.Job{Parts: []job.Part{{}, {Network: job.Degrade}}}, quick},
	} {
		c.spec.Programs = beatJob("").Programs
		if b, err := beatsOf(&c.spec); err != nil || b.Limit != c.want {
			t.Errorf("%+v: %v, want %v (%v)", c.spec, b.Limit, c.want, err)
		}
		c.spec.Programs = beatJob("SPX_HEARTBEAT_LIMIT=5000").Programs
		if b, err := beatsOf(&c.spec); err != nil || b.Limit != 5*time.Second {
			t.Errorf("%+v: %v, want what the user says (%v)", c.spec, b.Limit, err)
		}
	}
}

// beats makes the heartbeats of n hosts, on this one.
func beats(t *testing.T, n int) (list []*heartbeat, found []chan any) {
	for self := range n {
		fd, port, err := portRange{}.listen(netip.AddrFrom4([4]byte{127, 0, 0, 1}), datagrams)
		if err != nil {
			t.Fatal(err)
		}
		bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		c := make(chan any, 10)
		found = append(found, c)
		list = append(list, &heartbeat{fd: fd, bell: bell,
			at: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), self: self,
			began: time.Now(), tell: func(e any) { c <- e }})
	}
	return list, found
}

// What is said of a silence names how long was waited, and why for longer than was set.
func TestWaits(t *testing.T) {
	h := &heartbeat{limit: time.Second}
	h.allowed.Store(1_000_000)
	if got := h.waits(); got != "1s" {
		t.Errorf("as set: %s", got)
	}
	h.allowed.Store(1_640_000)
	h.worst.Store(410_000)
	if got := h.waits(); got != "1.64s (longer than 1s, because hosts had been silent for up to "+
		"410ms before and were heard again)" {
		t.Errorf("after a silence: %s", got)
	}
}

// Only what a host of the job has said to this one is heard.
func TestSeal(t *testing.T) {
	list, _ := beats(t, 3)
	for _, h := range list {
		h.key[0], h.peers = 7, make([]netip.AddrPort, 3)
	}
	b := list[1].seal(2, []byte("word"))
	if from, text, ok := list[2].unseal(b); !ok || from != 1 || string(text) != "word" {
		t.Errorf("from %d: %q, %v", from, text, ok)
	}
	if _, _, ok := list[0].unseal(b); ok {
		t.Error("what was said to another host is heard")
	}
	for i := range b {
		b[i] ^= 1
		if _, _, ok := list[2].unseal(b); ok {
			t.Errorf("byte %d is another, and nobody notices", i)
		}
		b[i] ^= 1
	}
	for n := range b {
		if _, _, ok := list[2].unseal(b[:n]); ok {
			t.Errorf("%d bytes of %d are enough", n, len(b))
		}
	}
}

// Three hosts hear of each other. One's connection ends, and it learns that the others go on
// without it; then there is no word from another one.
func TestHeartbeat(t *testing.T) {
	list, found := beats(t, 3)
	b := &control.Beats{Period: 20 * time.Millisecond, Limit: 500 * time.Millisecond}
	for _, h := range list {
		b.At = append(b.At, h.at)
	}
	for _, h := range list {
		h.start(b)
	}
	await := func(c chan any, what string) any {
		t.Helper()
		select {
		case e := <-c:
			return e
		case <-time.After(20 * time.Second):
			t.Fatalf("no %s", what)
			return nil
		}
	}
	list[0].hasGone(1, detect.OutClosed)
	// It reports when it has received nothing for long enough, and is notified then.
	if e, ok := await(found[1], "end of host 1").(fenced); !ok || e.why != detect.OutClosed {
		t.Errorf("host 1: %+v", e)
	}
	list[0].hasGone(2, detect.OutChanged)
	if e, ok := await(found[2], "end of host 2").(fenced); !ok || e.why != detect.OutChanged {
		t.Errorf("host 2: %+v", e)
	}
	select {
	case e := <-found[0]:
		t.Errorf("host 0: %+v", e)
	default:
	}
}

// Another host decides: the heartbeats begin anew around it, by the hosts' own numbers. Who has
// decided before is heard no more, and one that falls silent then is given up.
func TestHeartbeatsTurn(t *testing.T) {
	list, found := beats(t, 4)
	for _, h := range list {
		for _, o := range list {
			h.peers = append(h.peers, o.at)
		}
		h.period, h.limit, h.most = 20*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond
		h.machine = detect.New(h.config(false), h.now())
	}
	for _, h := range list[1:] {
		h.begin(&reroot{root: 2, era: 1, gone: []int{0}})
		for n := range list {
			if got := h.place(h.place(n)); got != n {
				t.Errorf("host %d is host %d", n, got)
			}
		}
	}
	lead := list[2]
	drive := func(what string, who []*heartbeat, is func() bool) {
		t.Helper()
		for limit := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
			for _, h := range who {
				h.receive()
				h.carryOut(h.machine.Tick(h.now()))
			}
			if time.Now().After(limit) {
				t.Fatalf("no %s", what)
			}
		}
	}
	drive("answers", list[1:], func() bool {
		heard := lead.places(lead.machine.Watching())
		return slices.Contains(heard, 1) && slices.Contains(heard, 3)
	})
	strange := lead.strange.Load()
	throw(t, lead, list[0].seal(2, []byte{2, 1, 1, 0}))
	lead.receive()
	if lead.strange.Load() != strange+1 {
		t.Error("what proves something for another host that decided is heard")
	}
	var silent *silence
	drive("silence", []*heartbeat{lead, list[3]}, func() bool {
		select {
		case e := <-found[2]:
			if s, ok := e.(silence); ok {
				silent = &s
			}
		default:
		}
		return silent != nil
	})
	if silent.split || !slices.Equal(silent.hosts, []int{1}) {
		t.Errorf("silent: %+v", silent)
	}
	drive("word that it is out", list[1:], func() bool {
		select {
		case e := <-found[1]:
			f, ok := e.(fenced)
			return ok && f.era == 1
		default:
			return false
		}
	})
}

// throw sends datagrams to h from a socket that is not the job's.
func throw(t *testing.T, h *heartbeat, datagrams ...[]byte) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, b := range datagrams {
		if err := unix.Sendto(fd, b, 0, sockaddr(h.at)); err != nil {
			t.Fatal(err)
		}
	}
}

// unread is how many datagrams a socket still holds; they are taken out.
func unread(h *heartbeat) (n int) {
	var b [beatMost]byte
	for {
		if _, _, err := unix.Recvfrom(h.fd, b[:], unix.MSG_DONTWAIT); err != nil {
			return n
		}
		n++
	}
}

// A turn takes in so many datagrams and no more, whatever waits: a beat that is due goes out.
// Datagrams that are not from the job are counted, and replayed ones.
func TestATurnIsBounded(t *testing.T) {
	list, _ := beats(t, 2)
	for _, h := range list {
		h.key[0], h.peers = 7, []netip.AddrPort{list[0].at, list[1].at}
	}
	h := list[0]
	h.machine = detect.New(detect.Config{Self: 0, Hosts: 2, Period: 100000, Limit: 1000000},
		h.now())
	genuine := list[1].seal(0, []byte{2, 1, 1, 0}) // an Echo, the first message of host 1
	forged := list[1].seal(0, []byte{2, 9, 1, 0})
	forged[len(forged)-1] ^= 1
	throw(t, h, genuine, genuine, genuine, forged, nil, []byte("heartbeat"),
		list[1].seal(1, []byte{2, 2, 1, 0}))
	h.receive()
	if got := [2]uint64{h.strange.Load(), h.machine.Again()}; got != [2]uint64{4, 2} {
		t.Errorf("%v datagrams are counted as nobody's, and as said again, want 4 and 2", got)
	}
	if n := unread(h); n != 0 {
		t.Fatalf("%d datagrams are left", n)
	}
	// the socket has room for so many above a turn
	const more = 20
	// what finds no room is seen below
	unix.SetsockoptInt(h.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20) //nolint:errcheck
	for range beatTurn + more {
		throw(t, h, forged)
	}
	before := h.strange.Load()
	h.receive()
	if took, left := h.strange.Load()-before, unread(h); took != beatTurn || left != more {
		t.Errorf("a turn has taken %d datagrams and left %d, want %d and %d", took, left, beatTurn,
			more)
	}
}

// The kernel drops, and counts, what does not name the job and the host that is meant; with the
// others it says how many.
func TestSieve(t *testing.T) {
	list, _ := beats(t, 2)
	for _, h := range list {
		h.key[0], h.job, h.peers = 7, [16]byte{1, 2, 3, 15: 4},
			[]netip.AddrPort{list[0].at, list[1].at}
	}
	h := list[0]
	h.machine = detect.New(detect.Config{Self: 0, Hosts: 2, Period: 100000, Limit: 1000000},
		h.now())
	h.sieve(false)
	right := list[1].seal(0, []byte{2, 1, 1, 0})
	var wrong [][]byte
	for i := range beatHead {
		if i < 16 || i >= 20 { // the bytes between say who sends
			b := slices.Clone(right)
			b[i] ^= 1
			wrong = append(wrong, b)
		}
	}
	wrong = append(wrong, nil, right[:beatHead-1])
	throw(t, h, append(wrong, right)...)
	h.receive()
	if h.strange.Load() != 0 || h.dropped.Load() != uint64(len(wrong)) || h.machine.Again() != 0 {
		t.Errorf("%d datagrams have come that nobody has sent, %d were dropped, want 0 and %d",
			h.strange.Load(), h.dropped.Load(), len(wrong))
	}
	throw(t, h, right)
	if h.receive(); h.machine.Again() != 1 {
		t.Error("the right datagram has not come")
	}
}

// Two hosts hear of each other under a flood of forged and of replayed datagrams: neither is taken
// for silent.
func TestFloodOfDatagrams(t *testing.T) {
	list, found := beats(t, 2)
	b := &control.Beats{Period: 20 * time.Millisecond, Limit: 500 * time.Millisecond}
	for _, h := range list {
		h.key[0] = 7
		b.At = append(b.At, h.at)
	}
	var recorded [][]byte
	for to, h := range list {
		// an Echo before the first, and nothing
		recorded = append(recorded, list[1-to].seal(to, []byte{2, 0, 1, 0}),
			append(h.job[:], 1, 2, 3))
	}
	for _, h := range list {
		h.sieve(false)
		h.start(b)
	}
	began, sent := time.Now(), 0
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for time.Since(began) < 4*b.Limit {
		for i, text := range recorded {
			// what is lost is sent again
			unix.Sendto(fd, text, 0, sockaddr(list[i/2].at)) //nolint:errcheck
		}
		sent += len(recorded)
	}
	for i, c := range found {
		select {
		case e := <-c:
			t.Errorf("host %d: %+v", i, e)
		default:
		}
		if strange, again := list[i].strange.Load()+list[i].dropped.Load(),
			list[i].again.Load(); strange == 0 || again == 0 {
			t.Errorf("host %d has counted %d and %d of %d", i, strange, again, sent)
		} else {
			t.Logf(
				"host %d: of %d datagrams to both, %d are counted as nobody's, %d as said "+
					"again; silence at most %v", i, sent, strange, again,
				time.Duration(list[i].longest.Load())*time.Microsecond)
		}
	}
}

// A host that has been given up because it was overloaded says so, and one that was not says
// nothing of the kind.
func TestKept(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("this kernel does not tell how long a thread has waited: %v", err)
	}
	// threads wait for a processor of the machine, not for one of the runtime
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	one := unix.CPUSet{}
	one.Set(firstProcessor(t))
	stop := make(chan struct{})
	for range 3 {
		go func() {
			runtime.LockOSThread() // and ends with it, as it stays on that processor
			// then it does not wait, and the test fails
			unix.SchedSetaffinity(0, &one) //nolint:errcheck
			for {
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	h := &heartbeat{limit: time.Hour}
	said, busy := make(chan string, 2), 0
	go func() {
		runtime.LockOSThread()
		unix.SchedSetaffinity(0, &one) //nolint:errcheck // likewise
		h.look()
		said <- h.kept()
		for h.limit = 40 * time.Millisecond; waitedFor(unix.Gettid()) < h.limit; busy++ {
		}
		said <- h.kept()
	}()
	if text := <-said; text != "" {
		t.Errorf("before: %q", text)
	}
	if text := <-said; !strings.Contains(text, "it is overloaded") {
		t.Errorf("after: %q", text)
	}
	close(stop)
}

// firstProcessor is one that this process may use.
func firstProcessor(t *testing.T) int {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for i := range len(all) * 64 {
		if all.IsSet(i) {
			return i
		}
	}
	t.Fatal("no processor")
	return 0
}
