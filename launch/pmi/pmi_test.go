package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestMain is also the process that a launcher starts (TestLaunchers).
func TestMain(m *testing.M) {
	if os.Getenv("PMI_TEST_CHILD") != "" {
		if err := child(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child sends the other ranks bytes that depend on its rank and checks theirs.
func child() error {
	place, ok, err := Find(os.Getenv)
	if err != nil || !ok {
		return fmt.Errorf("found %v, %v", ok, err)
	}
	c, err := Connect(os.NewFile(uintptr(place.FD), "PMI"))
	if err != nil {
		return err
	}
	mine := func(rank int) []byte {
		return bytes.Repeat([]byte{byte(rank), 0, ' ', '\n', 0xff},
			700*rank)
	}
	if err := c.PutBytes("spx-"+strconv.Itoa(place.Rank), mine(place.Rank)); err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	for r := range place.Size {
		got, err := c.GetBytes("spx-" + strconv.Itoa(r))
		if err != nil || !bytes.Equal(got, mine(r)) {
			return fmt.Errorf("of rank %d: %d bytes, %v", r, len(got), err)
		}
	}
	mapping, err := c.GetWord("PMI_process_mapping")
	if err != nil {
		return err
	}
	nodes, err := Mapping(mapping, place.Size)
	if err != nil {
		return err
	}
	if _, err := c.GetWord("spx-absent"); !errors.As(err, new(*Refused)) {
		return fmt.Errorf("a key that is not there: %v", err)
	}
	fmt.Printf("rank %d of %d on node %d\n", place.Rank, place.Size, nodes[place.Rank])
	_, err = c.call("finalize_ack", "finalize")
	return err
}

// TestLaunchers runs child under the launchers that are installed.
func TestLaunchers(t *testing.T) {
	for name, command := range map[string][]string{
		"hydra": {"mpiexec.hydra", "-n", "5"},
		"slurm": {"srun", "--mpi=pmi2", "-n", "5", "--overcommit"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(command[0])
			if err != nil {
				t.Skipf("%s is not installed", command[0])
			}
			if name == "slurm" && exec.Command("squeue").Run() != nil {
				t.Skip("no Slurm is running")
			}
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("timeout", append(append([]string{"60", path}, command[1:]...),
				program)...)
			cmd.Env = append(os.Environ(), "PMI_TEST_CHILD=1")
			out, err := cmd.CombinedOutput()
			for r := range 5 {
				if !strings.Contains(string(out), fmt.Sprintf("rank %d of 5 on node ", r)) {
					t.Errorf("nothing of rank %d", r)
				}
			}
			if err != nil || t.Failed() {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// server answers as Slurm's does, on one connection, until it is closed. It reads one request a
// read, and no more than it supports.
func server(t *testing.T, conn net.Conn, values map[string]string) {
	buf := make([]byte, longest)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if buf[n-1] != '\n' || bytes.Count(buf[:n], []byte{'\n'}) != 1 {
			t.Errorf("not one whole request: %q", buf[:n])
		}
		m, err := parse(string(buf[:n-1]))
		if err != nil {
			t.Error(err)
		}
		answer := ""
		switch m.cmd {
		case "init":
			answer = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"
		case "get_maxes":
			answer = "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"
		case "get_my_kvsname":
			answer = "cmd=my_kvsname rc=0 kvsname=21.0"
		case "get_appnum":
			answer = "cmd=appnum rc=0 appnum=-1"
		case "put":
			values[m.fields["key"]] = m.fields["value"]
			answer = "cmd=put_result rc=0"
		case "get":
			answer = "cmd=get_result rc=1"
			if v, ok := values[m.fields["key"]]; ok {
				answer = "cmd=get_result rc=0 value=" + v
			}
		case "barrier_in":
			answer = "cmd=barrier_out rc=0"
		case "finalize":
			answer = "cmd=finalize_ack rc=0"
		}
		if _, err := conn.Write([]byte(answer + "\n")); err != nil {
			return
		}
	}
}

func connected(t *testing.T, serve func(net.Conn)) net.Conn {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		if conns[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { conns[i].Close() })
		conns[i].SetDeadline(time.Now().Add(30 * time.Second))
	}
	go serve(conns[1])
	return conns[0]
}

func TestClient(t *testing.T) {
	values := map[string]string{"PMI_process_mapping": "(vector,(0,2,2))"}
	c, err := Connect(connected(t, func(conn net.Conn) { server(t, conn, values) }))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Appnum(); n != -1 || err != nil {
		t.Errorf("appnum %d, %v", n, err)
	}
	for _, size := range []int{0, 1, 100, 1000, 100000} {
		data := bytes.Repeat([]byte{'a', ' ', 0, '\n', '='}, size)[:size]
		if err := c.PutBytes("k", data); err != nil {
			t.Fatal(err)
		}
		if got, err := c.GetBytes("k"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	if err := c.PutWord("k", "two words"); err == nil {
		t.Error("a value of two words was sent")
	}
	if err := c.PutWord("k", strings.Repeat("x", 1023)); err == nil {
		t.Error("a request longer than servers read was sent")
	}
	if err := c.PutWord(strings.Repeat("k", 64), "x"); err == nil {
		t.Error("a key longer than allowed was sent")
	}
	if _, err := c.GetWord("absent"); !errors.As(err, new(*Refused)) {
		t.Errorf("absent: %v", err)
	}
	if err := c.Barrier(); err != nil {
		t.Error(err)
	}
}

// An unexpected answer of a server, or none, is an error that describes it.
func TestStrangeServers(t *testing.T) {
	for answer, want := range map[string]string{
		"":                                "no answer",
		"\n":                              "not a PMI-1 message",
		"hello\n":                         "not a PMI-1 message",
		"cmd=maxes rc=0\n":                "the answer is maxes",
		"cmd=response_to_init rc=-1\n":    "refuses init",
		strings.Repeat("x", 5000) + "\n":  "no answer",
		"cmd=response_to_init rc=0":       "no answer",
		"cmd=response_to_init rc=0 =\n":   "not a PMI-1 message",
		"cmd=response_to_init\ncmd=maxes": "no answer",
	} {
		_, err := Connect(connected(t, func(conn net.Conn) {
			conn.Write([]byte(answer))
			conn.(*net.UnixConn).CloseWrite()
		}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", answer, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		env  string
		want Place
		ok   bool
		err  string
	}{
		{"", Place{}, false, ""},
		{"PMI_FD=7 PMI_RANK=2 PMI_SIZE=4 PMI_JOBID=21.0",
			Place{FD: 7, Rank: 2, Size: 4, Job: "21.0"}, true, ""},
		{"PMI_PORT=node3:4711 PMI_ID=5", Place{FD: -1, Rank: 5, Port: "node3:4711"}, true, ""},
		{"PMI_PORT=4711 PMI_ID=5", Place{}, false, "not host:port"},
		{"PMI_PORT=node3:4711 PMI_ID=x", Place{}, false, "PMI_ID=\"x\""},
		{"PMI_FD=7 PMI_RANK=2 PMI_SIZE=4 PMI_PORT=node3:4711", Place{FD: 7, Rank: 2, Size: 4}, true,
			""},
		{"PMI_FD=7 PMI_RANK=4 PMI_SIZE=4", Place{}, false, "less than the size"},
		{"PMI_FD=7 PMI_SIZE=4", Place{}, false, `PMI_RANK=""`},
		{"PMI_FD=x PMI_RANK=0 PMI_SIZE=4", Place{}, false, "PMI_FD=x"},
		{"SLURM_STEP_NUM_TASKS=8 SLURM_MPI_TYPE=none", Place{}, false, "srun --mpi=pmi2"},
		{"SLURM_STEP_NUM_TASKS=1", Place{}, false, ""},
		{"SLURM_STEP_NUM_TASKS=8 PMIX_RANK=3", Place{}, false, ""},
	} {
		vars := map[string]string{}
		for _, word := range strings.Fields(c.env) {
			key, value, _ := strings.Cut(word, "=")
			vars[key] = value
		}
		p, ok, err := Find(func(name string) string { return vars[name] })
		if ok != c.ok || ok && p != c.want || (err == nil) != (c.err == "") || err != nil &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v, %v", c.env, p, ok, err)
		}
	}
}

// A server that is called, and what it may answer instead.
func TestCall(t *testing.T) {
	for answer, want := range map[string]string{
		strings.Repeat("x", 5000): "not a PMI-1 message",

		"cmd=initack\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\nrest\n": "",
		"cmd=initack\ncmd=set size=4\ncmd=set rank=4\ncmd=set debug=0\n":       "rank 4 of 4",
		"cmd=initack\ncmd=set rank=2\ncmd=set size=4\ncmd=set debug=0\n":       "has no size",

		"cmd=initack\ncmd=set size=4\n": "no answer",
		"cmd=abort\n":                   "instead of initack",
		"cmd=initack\ncmd=set\n":        "has no size",
		"initack\n":                     "not a PMI-1 message",
		"cmd=initack\ncmd=set size":     "no answer",
	} {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan string, 1)
		go func() {
			defer server.Close()
			conn, err := server.Accept()
			if err != nil {
				heard <- err.Error()
				return
			}
			line := make([]byte, len("cmd=initack pmiid=9\n"))
			io.ReadFull(conn, line)          //nolint:errcheck // compared below
			io.WriteString(conn, answer)     //nolint:errcheck // the caller says what it got
			conn.(*net.TCPConn).CloseWrite() //nolint:errcheck // the same
			io.Copy(io.Discard, conn)        //nolint:errcheck // until the caller hangs up
			conn.Close()
			heard <- string(line)
		}()
		p, err := Call(Place{FD: -1, Rank: 9, Port: server.Addr().String()})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q: %v, want %q", answer, err, want)
			}
		} else if err != nil || p.Rank != 2 || p.Size != 4 {
			t.Errorf("%.40q: %+v, %v", answer, p, err)
		} else {
			file := os.NewFile(uintptr(p.FD), "PMI")
			if rest, err := io.ReadAll(file); err != nil || string(rest) != "rest\n" {
				t.Errorf("after the greeting comes %q, %v", rest, err)
			}
			file.Close()
		}
		if line := <-heard; line != "cmd=initack pmiid=9\n" {
			t.Errorf("the server heard %q", line)
		}
	}
	if _, err := Call(Place{FD: -1, Port: "127.0.0.1:1"}); err == nil ||
		!strings.Contains(err.Error(), "PMI_PORT=127.0.0.1:1") {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestMapping(t *testing.T) {
	for _, c := range []struct {
		value string
		size  int
		want  []int
	}{
		{"(vector,(0,2,2))", 4, []int{0, 0, 1, 1}},
		{"(vector,(0,1,3),(1,1,1))", 4, []int{0, 0, 0, 1}},
		{"(vector,(0,2,1))", 5, []int{0, 1, 0, 1, 0}},
		{"(vector,(0,4,1))", 2, []int{0, 1}},
	} {
		got, err := Mapping(c.value, c.size)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", c.value, err, diff)
		}
	}
	for _, value := range []string{"", "(vector)", "(vector,(0,0,1))", "(vector,(0,1))",
		"(vector,(0,1,1)", "(vector,(0,1,x))", "(matrix,(0,1,1))",
		"(vector,(0,1,99999999999999999999))"} {
		if nodes, err := Mapping(value, 3); err == nil {
			t.Errorf("%q: %v", value, nodes)
		}
	}
}

func FuzzMapping(f *testing.F) {
	f.Add("(vector,(0,2,2))", 4)
	f.Add("(vector,(0,1,3),(1,1,1))", 4)
	f.Fuzz(func(t *testing.T, value string, size int) {
		size &= 0xfff
		nodes, err := Mapping(value, size)
		if err == nil && len(nodes) != size {
			t.Errorf("%d nodes for %d processes", len(nodes), size)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add("cmd=get_result rc=0 value=(vector,(0,2,2))")
	f.Add("cmd= x")
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parse(line)
		if err != nil {
			return
		}
		var pairs []string
		for k, v := range m.fields {
			pairs = append(pairs, k, v)
		}
		again, err := format(m.cmd, pairs...)
		if err != nil {
			return
		}
		back, err := parse(strings.TrimSuffix(again, "\n"))
		if diff := cmp.Diff(m, back, cmp.AllowUnexported(message{})); diff != "" || err != nil {
			t.Errorf("%q: %v %s", again, err, diff)
		}
	})
}

// Any answers of a server, to all requests of a process.
func FuzzAnswers(f *testing.F) {
	const greeting = "cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 " +
		"vallen_max=1024\ncmd=my_kvsname kvsname=k\n"
	f.Add(greeting +
		"cmd=appnum appnum=2\ncmd=get_result rc=0 value=1.3\ncmd=get_result rc=0 " +
		"value=YWJj\ncmd=barrier_out\n")
	f.Add(greeting + "cmd=appnum appnum=x\ncmd=get_result rc=0 value=1048577.1\n")
	f.Add(greeting + "cmd=appnum\ncmd=get_result rc=0 value=-1.-1\n")
	f.Add("cmd=response_to_init rc=-1 msg=no\n")
	f.Fuzz(func(t *testing.T, said string) {
		c, err := Connect(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(said), io.Discard})
		if err != nil {
			return
		}
		c.Appnum() //nolint:errcheck // it must not fail badly
		data, err := c.GetBytes("a")
		if err == nil && len(data) > len(said) {
			t.Errorf("%d bytes in an answer of %d", len(data), len(said))
		}
		c.PutBytes("b", data) //nolint:errcheck // nor this
		c.Barrier()           //nolint:errcheck // nor this
	})
}
