package system

// The hosts of one cluster of a system that is started one cluster after another.

// ownHosts are, of the hosts of a whole system, those on which the cluster's own processes and its
// I/O processes run, behind that of its spxrun, which is the first whether any do or not. where
// gives the host by process; the hosts of all other processes are given by their own spxruns.
func ownHosts(hosts []string, slots, where []int, own func(proc int) bool) (names []string, room,
	at []int) {
	number := map[int]int{0: 0}
	names, room, at = []string{hosts[0]}, []int{slots[0]}, make([]int, len(where))
	for proc, h := range where {
		if !own(proc) {
			continue
		}
		n, known := number[h]
		if !known {
			n = len(names)
			number[h] = n
			names, room = append(names, hosts[h]), append(room, slots[h])
		}
		at[proc] = n
	}
	return names, room, at
}
