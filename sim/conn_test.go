package sim

import (
	"math/rand/v2"
	"testing"

	"libspx/net/conn"
)

// connCase makes a random case: up to 24 hosts with one or two processes.
func connCase(seed uint64) Conn {
	r := rand.New(rand.NewPCG(seed, 5))
	tree := randomNetwork(r, 1+r.IntN(8), 4)
	var host []int
	for h := range tree.Of {
		for range 1 + r.IntN(2) {
			host = append(host, h)
		}
	}
	return Conn{Tree: tree, Host: host, Static: r.IntN(8) > 0, Cache: r.IntN(5), Window: 1 << (8 + r.IntN(8)), Relay: 1 + r.IntN(16), Messages: 120, Deaths: r.IntN(3),
		Loss: []float64{0, 0.001, 0.02}[r.IntN(3)]}
}

func TestConnections(t *testing.T) {
	var total conn.Stats
	for seed := range uint64(80) {
		got, err := RunConn(connCase(seed), seed)
		if err != nil {
			t.Fatalf("seed %d: %v, %+v", seed, err, got)
		}
		total.Add(got.Stats)
	}
	t.Logf("%+v", total)
	if total.Relayed == 0 || total.Evicted == 0 || total.Again == 0 {
		t.Error("too tame")
	}
}

// The checks see each of these defects.
func TestConnectionsMutated(t *testing.T) {
	for name, mutate := range map[string]func(from, to int, f *conn.Frame) bool{
		"a direct message lost": func(from, to int, f *conn.Frame) bool {
			return f.Kind != conn.Data || f.Left > 0 || f.Seq%50 != 49 || f.Src != from
		},
		"credits lost":              func(_, _ int, f *conn.Frame) bool { return f.Kind != conn.Credit },
		"more acknowledged than is": func(_, _ int, f *conn.Frame) bool { f.Seq += uint64(3 * int(f.Kind&conn.Ack)); return true },
		"the last frame lost":       func(_, _ int, f *conn.Frame) bool { return f.Kind != conn.Close || f.Seq > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				c := connCase(seed)
				c.Mutate = mutate
				if _, err := RunConn(c, seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no schedule shows it")
		})
	}
}

// Messages between 128 processes on 64 hosts and 6 switches, as in the paper's experiment: no process has more connections than
// the static ones and the cache.
func TestConnectionsOf128Processes(t *testing.T) {
	tree := cluster112()
	var host []int
	for h := range 64 {
		host = append(host, h*84/64, h*84/64)
	}
	for _, cache := range []int{0, 4, 16} {
		got, err := RunConn(Conn{Tree: tree, Host: host, Static: true, Cache: cache, Messages: 60}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got.Connections > 31+max(1, cache)+1 {
			t.Errorf("cache %d: %d connections", cache, got.Connections)
		}
		t.Logf("cache %d: at most %d connections, %+v", cache, got.Connections, got.Stats)
	}
}
