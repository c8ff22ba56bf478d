package conn

// patience is the number of ticks after a refusal before the same connection is requested again: it
// differs for each try, so that two processes do not keep blocking each other.
func (n *Node) patience(peer int) int { return 1 + (7*n.cfg.Self+13*peer+n.Stats.Refused)%16 }

// open returns a connection over which data may be sent.
func (n *Node) open(peer int) *link {
	if l := n.links[peer]; l != nil && !l.closing {
		return l
	}
	return nil
}

func (n *Node) connect(peer int, out *Output) {
	if n.links[peer] == nil && !n.opening[peer] && !n.dead.Has(peer) {
		n.opening[peer] = true
		out.Connect = append(out.Connect, peer)
	}
}

// shortcut requests a direct connection to a process to which messages were relayed or that no
// relay reaches, once there is room for it.
func (n *Node) shortcut(peer int, out *Output) {
	if n.pair(peer).patience > 0 || n.links[peer] != nil || n.opening[peer] {
		return
	}
	if n.shortcuts()+len(n.opening) < n.limit() {
		n.connect(peer, out)
		return
	}
	if n.shortcuts() == n.kept() && len(n.opening) == 0 { // none is being closed, and none comes
		n.evictOne(out)
	}
}

// limit is the number of shortcuts that may be open: one even without a cache, for a process that
// no relay reaches.
func (n *Node) limit() int { return max(1, n.cfg.Cache) }

// kept counts the shortcuts that stay open.
func (n *Node) kept() (count int) {
	for _, l := range n.links {
		if !l.static && !l.closing {
			count++
		}
	}
	return count
}

// shortcuts counts the connections beside the static ones, also those being closed.
func (n *Node) shortcuts() (count int) {
	for _, l := range n.links {
		if !l.static {
			count++
		}
	}
	return count
}

// evict closes shortcuts until no more than allowed are left open.
func (n *Node) evict(out *Output) {
	for n.kept() > n.limit() {
		n.evictOne(out)
	}
}

// evictOne begins to close the shortcut that was not used for the longest time.
func (n *Node) evictOne(out *Output) {
	victim := -1
	for p, l := range n.links {
		if !l.static && !l.closing && (victim < 0 || l.used < n.links[victim].used) {
			victim = p
		}
	}
	if victim >= 0 {
		n.links[victim].closing = true
		n.Stats.Evicted++
		out.send(victim, Frame{Kind: Close})
	}
}

// closed takes the other end's last frame on a shortcut.
func (n *Node) closed(peer int, l *link, out *Output) {
	if !l.closing {
		out.send(peer, Frame{Kind: Close})
	}
	delete(n.links, peer)
	out.Close = append(out.Close, peer)
	n.progress(out)
}
