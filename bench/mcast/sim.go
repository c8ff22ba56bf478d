package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"libspx/bench/svg"
	"libspx/mcast"
	"libspx/sim"
)

// aries is the network of the paper's machine, a Cray XC30 with one process on each node. A step of its ring (264 of them: 1.3 ms, its figure 9) takes
// 4.8 us; 8 GB/s is what a node of such a machine sends.
var aries = sim.Wire{Overhead: 1.5, Latency: 3.3, PerByte: 1.0 / 8000}

// planned is a curve of the simulation.
type planned struct {
	name, title, colour string
	most                int // members: a plan with more steps takes too long to simulate
	plan                func(members []int, bytes int) (plan []mcast.Send, master int)
}

// from has the master outside of the members; rooted has it be one of those that the plan is for, as the root of MPI_Bcast over a communicator of the master and the members is.
func from(p mcast.Plan) func([]int, int) ([]mcast.Send, int) {
	return func(members []int, bytes int) ([]mcast.Send, int) { return p(-1, members, bytes), -1 }
}

func rooted(p mcast.Plan) func([]int, int) ([]mcast.Send, int) {
	const root = 1 << 20
	return func(members []int, bytes int) ([]mcast.Send, int) {
		return p(-1, append([]int{root}, members...), bytes)[1:], root
	}
}

// along is what libspx does between hosts, from SPX_MCAST_CHAIN bytes on, with its settings as they are: pieces of an eighth go from host to host, or, where SPX_MCAST_FORK says so, from each to two.
func along(master int, members []int, bytes int) []mcast.Send {
	const fork, least, most = 64 << 10, 16 << 10, 64 << 10
	piece := min(max(bytes/8, least), most)
	if len(members)*fork >= bytes {
		return mcast.Fork(piece)(master, members, bytes)
	}
	return mcast.Chain(piece)(master, members, bytes)
}

// fetched is what libspx does with shorter ones: the announcement goes along a tree, and every host fetches the data from the master.
func fetched(master int, members []int, bytes int) []mcast.Send {
	plan := mcast.Binomial(master, members, min(bytes, 128))
	for _, m := range members {
		plan = append(plan, mcast.Send{From: master, To: m, Lo: 0, Hi: bytes})
	}
	return plan
}

// chain has segments of a length that balances filling the chain with the cost of each message.
func chain(master int, members []int, bytes int) []mcast.Send {
	segment := 4096
	for segment < bytes && bytes/segment > 4*len(members) || segment < 16384 {
		segment *= 2
	}
	return mcast.Chain(segment)(master, members, bytes)
}

// bcast is MPICH's choice for powers of two, which the paper's library has too.
func bcast(master int, members []int, bytes int) []mcast.Send {
	if bytes < 512<<10 {
		return mcast.ScatterDoubling(master, members, bytes)
	}
	return mcast.ScatterRing(master, members, bytes)
}

var planneds = []planned{
	{"paper", "the paper: scatter, ring", "#c2410c", 1024, from(mcast.ScatterRing)},
	{"MPI_Bcast", "MPI_Bcast of the paper's library", "#1d4ed8", 1024, rooted(bcast)},
	{"doubling", "scatter, doubling", "#15803d", 4096, from(mcast.ScatterDoubling)},
	{"chain", "pipelined chain", "#7c3aed", 4096, from(chain)},
	{"binomial", "binomial tree", "#a16207", 4096, from(mcast.Binomial)},
	{"fetched", "a host each, all fetch", "#6b7280", 4096, from(fetched)},
	{"libspx", "libspx: from host to host", "#be185d", 4096, from(along)},
}

const simHead = `# Multicast to r of n nodes, simulated

The plans of package mcast on the network of the paper on dynamic multicast: one process on each node, of which r get the message, at equal distances. A
message keeps a port of its sender and one of its receiver for %g us and %g us for each KB, and travels %g us: so a step of the paper's ring costs what its figure 9 says (1.3 ms for 264 of
them), and a node sends 8 GB/s. Distances are not modelled: the paper's network has few hops. Nothing is measured here: the numbers follow from the plans (` + "`sim/mcast_net.go`, `go run ./bench/mcast -sim`" + `).
*MPI_Bcast* is what the paper's library chooses, over a communicator of the master and the r: scatter and doubling at 80 KB, scatter and ring at 8 MB.
`

const simFoot = `
What to read from it. At 80 KB the paper's ring takes r steps and loses to MPI_Bcast, as its figure 9 shows; doubling (S2.7) takes log2 r. At 8 MB both move each byte
twice (once in the scatter, once around): the master outside of the set costs one more transfer of it all; a chain moves it once, and is about twice as fast as either, as long as its
members are few against the segments. The master is free after one transfer by every plan but *all fetch*, what libspx does with messages of less than 32 KiB and where hosts have no room: its
time, and the master's, grow with the number of hosts. *libspx* is a chain for long messages to few hosts, and else a tree in which each host hands pieces on to two ([multicast](../multicast.md)): never more than
4 % above MPI_Bcast, which is at 80 KB to 8 nodes, and at 8 MB 0.4 to 0.97 of it.
`

// simulate writes the table and the plots of the simulation.
func simulate(out string) error {
	var b strings.Builder
	fmt.Fprintf(&b, simHead, aries.Overhead, aries.PerByte*1000, aries.Latency)
	for _, nodes := range []int{256, 4096} {
		for _, bytes := range []int{80 << 10, 8 << 20} {
			name := fmt.Sprintf("mcast-sim-%d-%d.svg", nodes, bytes)
			fmt.Fprintf(&b, "\n## %d bytes, %d nodes\n\n![](%s)\n\nMicroseconds until the last member has the data / until the master is free.\n\n| r |", bytes, nodes, name)
			for _, p := range planneds {
				b.WriteString(" " + p.title + " |")
			}
			b.WriteString("\n|---:|" + strings.Repeat("---:|", len(planneds)) + "\n")
			curves := make([]svg.Curve, len(planneds))
			for r := 8; r <= nodes; r *= 2 {
				fmt.Fprintf(&b, "| %d |", r)
				members := make([]int, r)
				for i := range members {
					members[i] = nodes / r * i
				}
				for i, p := range planneds {
					curves[i].Name, curves[i].Colour = p.name, p.colour
					if r > p.most {
						b.WriteString(" |")
						continue
					}
					plan, master := p.plan(members, bytes)
					t := aries.Time(plan, master, bytes)
					fmt.Fprintf(&b, " %.0f / %.0f |", t.Last, t.Free)
					curves[i].Points = append(curves[i].Points, [2]float64{float64(r), t.Last})
				}
				b.WriteByte('\n')
			}
			title := fmt.Sprintf("%d bytes to r of %d nodes, simulated: microseconds by r", bytes, nodes)
			// the first curve has the labels: one that has all points
			curves[0], curves[2] = curves[2], curves[0]
			text := svg.Draw(title, curves, func(v float64) string { return fmt.Sprint(v) })
			if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o666); err != nil {
				return err
			}
		}
	}
	b.WriteString(simFoot)
	return os.WriteFile(filepath.Join(out, "mcast-sim.md"), []byte(b.String()), 0o666)
}
