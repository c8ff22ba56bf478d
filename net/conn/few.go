package conn

// LeastFew is the least number of connections with which processes can relay for each other as in
// Few: two that a process has been given, two that it was chosen for, and one for what no relay
// moves.
const LeastFew = 5

// Degree is how many neighbours each process has in Few, at most, where it may have so many
// connections: one is left for those that talk much.
func Degree(connections int) int { return max(0, connections-1) / 2 * 2 }

// Few is the plan for processes that may have far fewer connections than there are processes, and
// are all to reach each other: each has degree neighbours at most, beside those that it shares
// memory with (host[p] == host[q]), independent of its communication. Process i is connected with
// the k = degree/2 processes from k*i on, modulo their number n: so in h steps it comes to k^h
// processes in a row, and to all of them in the least h with k^h >= n (Imase and Itoh, "A design
// for directed graphs with minimum diameter"); connections lead both ways, which makes it fewer as
// a rule.
func Few(degree int, host []int, gone []bool) *Plan {
	n, k := len(host), degree/2
	p := &Plan{near: sets(n), gone: gone, hops: Hops}
	byHost := map[int][]int{}
	for i, h := range host {
		byHost[h] = append(byHost[h], i)
	}
	for i := range n {
		for _, j := range byHost[host[i]] {
			p.link(i, j)
		}
		for r := range min(k, n) {
			p.link(i, (i*k+r)%n)
		}
	}
	return p
}
