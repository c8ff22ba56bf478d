package hosts

// A Layout assigns the ranks to hosts.
type Layout struct {
	Hosts []string // names; 0 is this host
	Slots []int    // of every host; 0: the launcher places no rank there by itself
	Where []int    // host of every rank
}

// Merge adds up the entries of a list that name the same host, in the order in which the hosts
// first appear. All names of this host are one: its entry has the number of its first, and is first
// in the result only if it was so in the list.
func Merge(list []Host, self Names) []Host {
	var out []Host
	at := map[string]int{}
	for _, h := range list {
		key := h.Name
		if self.Local(h.Name) {
			key = ""
		}
		h.Slots = max(h.Slots, 1)
		if k, ok := at[key]; ok {
			out[k].Slots += h.Slots
			continue
		}
		at[key] = len(out)
		out = append(out, h)
	}
	return out
}

// Place gives procs ranks to the merged hosts of a list: to each as many as it has slots, or, if
// block is not 0, that many, and again from the first host on while ranks are left. The result is
// nil when all of them are on this host.
func Place(list []Host, self Names, procs, block int) *Layout {
	l := &Layout{Hosts: []string{self.Host}, Slots: []int{0}, Where: make([]int, 0, procs)}
	number := make([]int, len(list))
	for i, h := range list {
		if !self.Local(h.Name) {
			number[i] = len(l.Hosts)
			l.Hosts, l.Slots = append(l.Hosts, h.Name), append(l.Slots, 0)
		}
		l.Slots[number[i]] = max(h.Slots, block)
	}
	if len(l.Hosts) == 1 {
		return nil
	}
	for len(l.Where) < procs {
		for i, h := range list {
			n := h.Slots
			if block > 0 {
				n = block
			}
			for range min(n, procs-len(l.Where)) {
				l.Where = append(l.Where, number[i])
			}
		}
	}
	return l
}
