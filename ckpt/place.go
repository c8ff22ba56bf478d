package ckpt

// Buddies returns the ranks that keep copies of a rank's part in their memory: copies of them, or
// fewer when there are not so many other ranks. hosts has a number for the host of every rank. They
// are on other hosts while there are any; every rank keeps as many copies as every other if no host
// has more than half of the ranks.
func Buddies(hosts []int, rank, copies int) []int {
	order, most := byHost(hosts)
	n, at := len(order), 0
	for i, r := range order {
		if r == rank {
			at = i
		}
	}
	shift := most
	if shift == n {
		shift = 1 // one host
	}
	var near, far []int // on the own host; on others
	taken := map[int]bool{rank: true}
	add := func(r int) {
		if taken[r] {
			return
		}
		taken[r] = true
		if hosts[r] == hosts[rank] {
			near = append(near, r)
		} else {
			far = append(far, r)
		}
	}
	for k := 1; k <= n; k++ { // a host further each time
		add(order[(at+k*shift)%n])
	}
	// from the beginning of the other hosts on: not all of a large host to one
	for k := 1; k < n && len(far) < copies; k++ {
		add(order[(at*2+k)%n])
	}
	for k := 1; k < n; k++ {
		add(order[(at+k)%n])
	}
	all := append(far, near...)
	return all[:min(copies, len(all))]
}

// byHost lists the ranks host by host, and returns the number of ranks on the largest host.
func byHost(hosts []int) (order []int, most int) {
	on := map[int][]int{}
	var first []int
	for r, h := range hosts {
		if on[h] == nil {
			first = append(first, h)
		}
		on[h] = append(on[h], r)
	}
	for _, h := range first {
		order = append(order, on[h]...)
		most = max(most, len(on[h]))
	}
	return order, most
}
