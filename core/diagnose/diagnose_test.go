package diagnose

import (
	"strings"
	"testing"
)

// A job in words: a line a process, "RANK STATE-OR-WAIT ...".
//
//	0 recv 1 tag 7      1 send 0 tag 7      2 coll MPI_Barrier op 3 of 0,1,2      3 running      4 finalized      5 dead
func jobOf(t testing.TB, lines ...string) []Proc {
	t.Helper()
	var out []Proc
	for rank, line := range lines {
		f := strings.Fields(line)
		p := Proc{Proc: rank, Rank: rank, State: Waiting, Queues: &Queues{}}
		w := Wait{PeerRank: Nobody, Peer: Nobody, Tag: Nobody, Root: Nobody, Comm: "MPI_COMM_WORLD",
			Context: 8, For: 5}
		for i := range lines {
			if i != rank {
				w.Members = append(w.Members, i)
			}
		}
		number := func(i int) (n int) {
			if i >= len(f) {
				t.Fatalf("%q is cut short", line)
			}
			for _, c := range f[i] {
				n = n*10 + int(c-'0')
			}
			return n
		}
		switch f[0] {
		case "recv", "send":
			w.What, w.Call = map[string]string{"recv": Recv, "send": Send}[f[0]],
				map[string]string{"recv": "MPI_Recv", "send": "MPI_Send"}[f[0]]
			if f[1] == "any" {
				w.PeerRank = Anybody
			} else {
				w.Peer, w.PeerRank = number(1), number(1)
			}
			w.Tag = number(2)
			if len(f) > 3 { // has a message of that rank and tag
				p.Queues.Unexpected = 1
				p.Queues.Entries = []Entry{{Kind: Unexpected, Peer: number(3), Rank: number(3),
					Tag: number(4), Context: 8, Comm: "MPI_COMM_WORLD", Bytes: 4}}
			}
		case "coll":
			w.What, w.Call, w.Coll, w.Seq = Coll, f[1], f[1], uint32(number(2))
			if len(f) > 3 {
				w.Root = number(3)
			}
		case "event":
			w.What, w.Call = Event, "MPI_Win_lock"
		case "running":
			p.State = Running
		case "finalized":
			p.State = Finalized
		case "dead":
			p.State, p.End = Dead, "killed by signal 9"
		default:
			t.Fatalf("%q is no process", line)
		}
		if p.State == Waiting {
			p.Waits = []Wait{w}
		}
		out = append(out, p)
	}
	return out
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name  string
		procs []string
		want  []string // what the findings begin with, in their order; certain ones with a "!"
	}{
		{"two that receive", []string{"recv 1 7", "recv 0 7"},
			[]string{"!deadlock: rank 0 and rank 1 wait for each other"}},
		{"five in a circle", []string{"send 1 0", "send 2 0", "send 3 0", "send 4 0", "send 0 0"},
			[]string{"!deadlock: a circle of 5: rank 0 waits for rank 1, rank 1 waits for rank " +
				"2, rank 2 waits for rank 3, rank 3 waits for rank 4, rank 4 waits for rank 0"}},
		{"a circle beside one that computes", []string{"recv 1 7", "recv 0 7", "running"},
			[]string{"!deadlock: rank 0 and rank 1"}},
		{"one computes", []string{"recv 1 7", "running"},
			[]string{"rank 0 waits for rank 1, which is in no MPI call"}},
		{"any source, one of them computes", []string{"recv any 7", "recv 0 7", "running"},
			[]string{"rank 0 waits for rank 2, which"}},
		{"any source, all wait", []string{"recv any 7", "recv 0 7", "recv 0 7"},
			[]string{"!deadlock: rank 0 and rank 1"}},
		{"missing in a barrier", []string{"coll MPI_Barrier 3", "coll MPI_Barrier 3", "recv 0 1",
			"coll MPI_Barrier 3"},
			[]string{"!rank 2 is missing in MPI_Barrier on MPI_COMM_WORLD: ranks 0-1,3 are in it",
				"!deadlock: rank 0 and rank 2"}},
		{"missing, and computes", []string{"coll MPI_Barrier 3", "running", "coll MPI_Barrier 3"},
			[]string{"rank 1 is missing in MPI_Barrier",
				"ranks 0,2 wait for rank 1, which is in no MPI call"}},
		{"missing, and has finished", []string{"coll MPI_Barrier 3", "finalized"},
			[]string{"!rank 0 waits for rank 1, which has called MPI_Finalize",
				"!rank 1 is missing in MPI_Barrier"}},
		{"all there", []string{"coll MPI_Barrier 3", "coll MPI_Barrier 3"}, nil},
		{"different roots", []string{"coll MPI_Reduce 3 0", "coll MPI_Reduce 3 1"},
			[]string{"!mismatched collectives on MPI_COMM_WORLD: rank 0 in MPI_Reduce with root " +
				"0, rank 1 in MPI_Reduce with root 1"}},
		{"different calls", []string{"coll MPI_Barrier 3", "coll MPI_Bcast 3 0"},
			[]string{"!mismatched collectives on MPI_COMM_WORLD: rank 0 in MPI_Barrier, rank 1 " +
				"in MPI_Bcast with root 0"}},
		{"the root is in a later operation", []string{"coll MPI_Bcast 4 1", "coll MPI_Bcast 3 0"},
			[]string{"rank 1 is missing in MPI_Bcast"}},
		{"wrong tag", []string{"recv 1 7", "recv 0 8 0 9"},
			[]string{"!wrong tag: rank 1 waits for a message with tag 8, but rank 0 of " +
				"MPI_COMM_WORLD has sent it one with tag 9", "!deadlock"}},
		{"the message is there", []string{"recv 1 7", "recv 0 8 0 8"}, nil},
		{"send to one that has finished", []string{"send 1 7", "finalized"},
			[]string{"!unmatched send: the message of rank 0 to rank 1 (tag 7, 0 bytes, on " +
				"MPI_COMM_WORLD) is not received: rank 1 has called MPI_Finalize",
				"!rank 0 waits for rank 1"}},
		{"receive from one that has died", []string{"recv 1 7", "dead"},
			[]string{"!rank 0 waits for rank 1, which has ended: killed by signal 9"}},
		{"what it waits for is not known", []string{"event", "recv 0 7"}, nil},
		{"waits for one that waits for the unknown", []string{"recv 1 7", "event"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := Find(jobOf(t, c.procs...))
			var got []string
			for _, f := range found {
				mark := ""
				if f.Certain {
					mark = "!"
				}
				got = append(got, mark+f.Text)
			}
			if len(got) != len(c.want) {
				t.Fatalf("found %q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("found %q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}

// Ranks of a cluster that wait for other clusters wait for any one of the I/O processes that lead
// there: these are named, and nothing is a deadlock before they can do nothing more.
func TestClusterIn(t *testing.T) {
	procs := jobOf(t, "recv any 7", "recv any 7", "recv any 7", "running")
	for i := range procs {
		procs[i].Part = "cluster sink"
		if i < 2 {
			procs[i].Waits[0].PeerRank, procs[i].Waits[0].Members = ClusterIn, []int{2}
		}
	}
	procs[2].Part, procs[2].IO, procs[2].Rank, procs[3].Part = "link a-b", true, 0, "cluster source"
	procs[2].Waits[0].Members, procs[2].Traffic.HeldMessages = []int{3}, 2
	found := Find(procs)
	last := found[len(found)-1]
	if last.Text != "ranks 0-1 of cluster sink wait for messages from other clusters "+
		"(MPISP_CLUSTER_IN), which come by I/O process 0 of link a-b" || last.Certain ||
		!strings.Contains(last.Details[0], "it holds 2 messages") ||
		!strings.Contains(procs[0].Waits[0].Text(), "source=MPISP_CLUSTER_IN") || Hangs(procs, 1) {
		t.Errorf("%+v", found)
	}
	procs[3].State, procs[3].End = Dead, "killed by signal 9"
	if !Hangs(procs, 1) {
		t.Errorf("nothing can come any more, and that is not found: %+v", Find(procs))
	}
}

// What processes are called: in a text together, and each in the table as before its output.
func TestNames(t *testing.T) {
	procs := []Proc{{Rank: 2}, {Rank: 0}, {World: 3, Rank: 1},
		{World: 1, Rank: 4, Part: "cluster a"}, {World: 1, Rank: 0, Part: "cluster a",
			Standby: true}, {World: 9, Rank: 1, Part: "link a-b", IO: true},
		{World: 12, Rank: 0, Part: "link a-b", IO: true}}
	var list []*Proc
	var tags []string
	for i := range procs {
		list, tags = append(list, &procs[i]), append(tags, procs[i].tag())
	}
	if got, want := names(list),
		"ranks 0,2 and rank 4 of cluster a and standby 0 of cluster a and rank 1 of world 3 and "+
			"I/O processes 0-1 of link a-b"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := strings.Join(tags, " "),
		"2 0 3/1 a.4 a.standby0 a-b.iop1 a-b.iop0"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for text, want := range map[string]string{
		"is in no MPI call that waits: it is in f (x.c:1)": "are in no MPI call that " +
			"waits: they are in f (x.c:1)",
		"has not called MPI_Init in the 2.0 s since it was started": "have not called MPI_Init " +
			"in the 2.0 s since they were started",
		"waits in MPI_Init for a rank to take over, for 1.0 s": "wait in MPI_Init for a " +
			"rank to take over, for 1.0 s",
		"was killed by signal 9, which is a fate and stays the same": "was killed by signal 9, " +
			"which is a fate and stays the same",
	} {
		if got := ofMany(text); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// One that has not called MPI_Init is named, and for how long it has been there.
func TestBeforeInit(t *testing.T) {
	procs := jobOf(t, "coll MPI_Barrier 0", "running", "coll MPI_Barrier 0")
	procs[1].State, procs[1].Age = Starting, 7.25
	want := "ranks 0,2 wait for rank 1, which has not called MPI_Init in the 7.2 s since it was " +
		"started"
	if all := strings.Join(Waits(procs), "\n"); !strings.Contains(all, want) {
		t.Errorf("%s\nlacks %q", all, want)
	}
	if all := strings.Join(Ps(procs), "\n"); !strings.Contains(all, "7.2 s  before MPI_Init") {
		t.Errorf("%s", all)
	}
}

// With MPI_THREAD_MULTIPLE a thread that is not seen may go on: nothing is certain.
func TestThreadsAreNeverStuck(t *testing.T) {
	procs := jobOf(t, "recv 1 7", "recv 0 7")
	procs[1].Multiple = true
	for _, f := range Find(procs) {
		if f.Certain {
			t.Errorf("certain: %s", f.Text)
		}
	}
}

// The times of jobOf are 5 seconds.
func TestHangs(t *testing.T) {
	for _, c := range []struct {
		procs   []string
		seconds float64
		want    bool
	}{{[]string{"recv 1 7", "recv 0 7"}, 4, true}, {[]string{"recv 1 7", "recv 0 7"}, 6, false},
		{[]string{"recv 1 7", "running"}, 4, false}, {[]string{"running"}, 0, false}} {
		procs := jobOf(t, c.procs...)
		if got := Hangs(procs, c.seconds); got != c.want {
			t.Errorf("%q for %v s: %v", c.procs, c.seconds, got)
		}
	}
	if got := Longest(jobOf(t, "recv 1 7", "running")); got != 5 {
		t.Errorf("longest wait %v", got)
	}
}

func TestCallText(t *testing.T) {
	for want, w := range map[string]Wait{
		"MPI_Recv(count=1, datatype=MPI_INT, source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG, comm=c)": {
			Call: "MPI_Recv", What: Recv, PeerRank: Anybody,
			Tag: AnyTag, Count: 1, Type: "MPI_INT", Comm: "c", Context: 8},
		"MPI_Wait(send: count=2, datatype=MPI_INT, dest=3, tag=4, comm=c)": {
			Call: "MPI_Wait", What: Send, PeerRank: 3,
			Tag: 4, Count: 2, Type: "MPI_INT", Comm: "c", Context: 8},
		"MPI_Wait(MPI_Barrier: comm=a communicator of 3 without a name (context 0x10))": {
			Call: "MPI_Wait", What: Coll, Coll: "MPI_Barrier",
			Root: Nobody, Context: 16, CommSize: 3},
		"MPI_Bcast(count=5, datatype=MPI_CHAR, root=1, comm=c)": {
			Call: "MPI_Bcast", What: Coll, Coll: "MPI_Bcast",
			Root: 1, Count: 5, Type: "MPI_CHAR", Comm: "c", Context: 8},
		"MPI_Isend_is_none()": {Call: "MPI_Isend_is_none", What: Event},
	} {
		if got := w.Text(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestRanges(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "3": {3}, "0-2": {0, 1, 2},
		"0,2-3,7": {0, 2, 3, 7}} {
		if got := Ranges(list); got != want {
			t.Errorf("%v: %q", list, got)
		}
	}
}
