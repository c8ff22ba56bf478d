package sim

import (
	"libspx/core/comm"
	"libspx/core/mpierr"
	"libspx/core/win"
)

// Windows under deaths: their creation and their end (core/win), each process with half of the others on its host. See creation.go.

const (
	windowTag = 5 // of a gathering over the communicator that the window is made of
	freeTag   = 6 // on the window's own
)

// winPeers is core/win's Peers. Who gathers sends to all and hears from all, whatever has failed.
type winPeers struct{ c *comm.Comm }

func (p winPeers) Rank() int { return p.c.Rank }
func (p winPeers) Size() int { return p.c.Group().Size() }

func (p winPeers) Gather(mine, all []uint64) (err error) {
	n, data := len(mine), make([]byte, 8*len(mine))
	for i, v := range mine {
		putWord(data[8*i:], v)
	}
	for to := range p.Size() {
		if e := p.c.Link.Send(to, windowTag, data); err == nil {
			err = e
		}
	}
	for from := range p.Size() {
		if _, e := p.c.Link.Recv(from, windowTag, data); e != nil {
			if err == nil {
				err = e
			}
			continue
		}
		for i := range n {
			all[n*from+i] = word(data[8*i:])
		}
	}
	return err
}

func putWord(to []byte, v uint64) {
	for i := range 8 {
		to[i] = byte(v >> (8 * i))
	}
}

func word(from []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(from[i]) << (8 * i)
	}
	return v
}

// winHost is core/win's Host: the memory of an odd process is on another host than that of an even one. What a process has of the window is in maker.
type winHost struct{ p *maker }

func (h winHost) Near(rank int) bool  { return rank%2 == h.p.id%2 }
func (h winHost) Reads(rank int) bool { return rank%3 > 0 }
func (h winHost) Prepare() bool       { return true }
func (h winHost) Context() uint64     { return 8 * 1024 }
func (h winHost) Name(uint64)         {}
func (h winHost) Control(bool) uint64 { return 4096 }
func (h winHost) Spare() win.Chunk    { return win.Chunk{} }
func (h winHost) Take(bytes uint64) (win.Chunk, win.Errno) {
	return win.Chunk{Offset: 4096, Bytes: bytes}, 0
}
func (h winHost) Reason(win.Errno) string         { return "" }
func (h winHost) Return(win.Chunk)                {}
func (h winHost) Map(*win.Window) bool            { return true }
func (h winHost) Fill(*win.Window)                { h.p.made = true }
func (h winHost) Serve() mpierr.Class             { return 0 }
func (h winHost) Drop(_ *win.Window, how win.End) { h.p.made, h.p.revoked = false, how == win.Lost }

// winLink is core/win's Link.
type winLink struct{ c *comm.Comm }

func (l winLink) Rank() int           { return l.c.Rank }
func (l winLink) Size() int           { return l.c.Group().Size() }
func (l winLink) Send(to int) error   { return l.c.Link.Send(to, freeTag, nil) }
func (l winLink) Recv(from int) error { _, err := l.c.Link.Recv(from, freeTag, nil); return err }

// window makes a window.
func (p *maker) window(local *comm.Comm) error {
	_, err := win.Create(win.Args{Flavor: win.FromUser, Base: 4096, Size: 8, Unit: 1}, winPeers{local}, winHost{p})
	return err
}

// freed frees a window. A process that has done so without an error gives its memory away: all others have to have begun by then.
func (p *maker) freed(local *comm.Comm) error {
	p.begunToFree = true
	var stop func()
	if p.w.Seed%2 > 0 {
		stop = func() {}
	}
	err := win.Leave(winLink{local}, stop)
	if err == nil {
		for _, o := range p.w.procs {
			if !o.begunToFree {
				return mpierr.New(mpierr.Intern, "gives its memory away while process %d uses it", o.id)
			}
		}
	}
	p.made, p.revoked = err == nil, win.EndOf(err) == win.Lost
	return err
}
