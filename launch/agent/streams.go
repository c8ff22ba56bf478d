package agent

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/output"
)

// Output of the processes of other hosts, and their standard input, by goroutines of their own:
// each goes at the pace of its reader (outbox.go has the window).

// addPlain has a Mux read from a pipe whose lines are complete as they are.
func addPlain(mux *output.Mux, from *os.File) error {
	fd, err := unix.FcntlInt(from.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	from.Close()
	if err != nil {
		return err
	}
	return mux.AddPlain(fd)
}

// A printer forwards the output of a host, at the pace of its reader. Without a host the amount is
// reported to none.
type printer struct {
	mu   sync.Mutex
	more sync.Cond
	list [][]byte // guarded by mu
	over bool     // guarded by mu
	pipe *os.File
}

func (a *agent) newPrinter(h *remoteHost, stream int) *printer {
	p := &printer{}
	p.more.L = &p.mu
	r, w, err := os.Pipe()
	if err == nil {
		p.pipe = w
		err = addPlain([]*output.Mux{1: a.out, 2: a.err}[stream], r)
	}
	a.printing.Go(func() { p.run(h, err == nil) })
	return p
}

func (p *printer) put(text []byte) {
	p.mu.Lock()
	p.list = append(p.list, text)
	p.mu.Unlock()
	p.more.Signal()
}

func (p *printer) close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.more.Signal()
}

func (p *printer) run(h *remoteHost, works bool) {
	for {
		p.mu.Lock()
		for len(p.list) == 0 && !p.over {
			p.more.Wait()
		}
		list := p.list
		p.list = nil
		p.mu.Unlock()
		if len(list) == 0 {
			p.pipe.Close()
			return
		}
		for _, text := range list {
			if works {
				_, err := p.pipe.Write(text)
				works = err == nil
			}
			if h != nil {
				h.box.put(&control.Message{Taken: &control.Taken{Bytes: len(text)}})
			}
		}
	}
}

// sendInput copies a file to the standard input of a host's processes.
func sendInput(h *remoteHost, from *os.File) {
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !h.window.take(n) {
			return
		}
		if n > 0 {
			h.box.put(&control.Message{Input: &control.Input{Text: slices.Clone(b[:n])}})
		}
		if err != nil {
			h.box.put(&control.Message{Input: &control.Input{}})
			return
		}
	}
}
