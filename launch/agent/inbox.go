package agent

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"libspx/launch/job"
)

// inbox carries events of other goroutines to the main thread.
type inbox struct {
	fd int // eventfd, readable when there is something
	mu sync.Mutex
	queued
	looks
}

func (b *inbox) open() (err error) {
	if b.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	return nil
}

func (b *inbox) put(e job.Event) {
	b.mu.Lock()
	b.queue.Put(heard{e: e}, 0)
	if p, ok := e.(pinged); ok {
		b.ping.Store(int64(p))
	}
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) ring() {
	one := [8]byte{1}
	unix.Write(b.fd, one[:]) //nolint:errcheck // a full counter wakes as well
}

func (b *inbox) take() []job.Event {
	var count [8]byte
	unix.Read(b.fd, count[:]) //nolint:errcheck // nothing to read is fine
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all()
}
