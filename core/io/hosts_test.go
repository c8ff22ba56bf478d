package io

import (
	"bytes"
	"sync"
	"testing"

	"libspx/core/datatype"
)

// A file system of several hosts that do not notify each other of writes, as NFS: each host caches
// pages. Written data goes to the server later, and if the host has the whole page and holds no
// lock, it writes back the whole page. Taking a lock drops the cache.

const hostPage = 64

type server struct {
	mu   sync.Mutex
	free *sync.Cond
	data []byte
	held []heldRange
}

type heldRange struct {
	from, to  int64
	exclusive bool
	by        *keeper
}

// keeper is a host's view of the file, a Backend for its processes.
type keeper struct {
	*server
	pages   map[int64][]byte // whole ones
	written map[int64]byte   // bytes that the server has not got yet
	writes  int
}

func (k *keeper) locks() bool {
	for _, h := range k.held {
		if h.by == k {
			return true
		}
	}
	return false
}

// flush brings what was written to the server. With mu held.
func (k *keeper) flush() {
	for off, b := range k.written {
		page := off / hostPage * hostPage
		if whole := k.pages[page]; whole != nil && !k.locks() {
			copy(k.data[page:], whole)
		}
		k.data[off] = b
	}
	clear(k.written)
}

func (k *keeper) ReadAt(p []byte, off int64) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range p {
		at := off + int64(i)
		if b, ok := k.written[at]; ok {
			p[i] = b
			continue
		}
		page := at / hostPage * hostPage
		if k.pages[page] == nil {
			k.pages[page] = bytes.Clone(k.data[page : page+hostPage])
		}
		p[i] = k.pages[page][at-page]
	}
	return len(p), nil
}

func (k *keeper) WriteAt(p []byte, off int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, b := range p {
		at := off + int64(i)
		k.written[at] = b
		if page := at / hostPage * hostPage; k.pages[page] != nil {
			k.pages[page][at-page] = b
		}
	}
	if k.writes++; k.writes%3 == 0 {
		k.flush()
	}
	return nil
}

func (k *keeper) Lock(from, to int64, exclusive bool) (func(), error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.conflicts(from, to, exclusive) {
		k.free.Wait()
	}
	k.flush()
	clear(k.pages)
	mine := heldRange{from, to, exclusive, k}
	k.held = append(k.held, mine)
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.flush()
		for i, h := range k.held {
			if h == mine {
				k.held = append(k.held[:i], k.held[i+1:]...)
				break
			}
		}
		k.free.Broadcast()
	}, nil
}

func (k *keeper) conflicts(from, to int64, exclusive bool) bool {
	for _, h := range k.held {
		if h.from < to && from < h.to && (exclusive || h.exclusive) {
			return true
		}
	}
	return false
}

func (k *keeper) Sync() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
	return nil
}

func (k *keeper) Map(int64, int64) ([]byte, func()) { return nil, nil }
func (k *keeper) Size() (int64, error)              { return int64(len(k.data)), nil }
func (k *keeper) SetSize(int64) error               { return nil }
func (k *keeper) Preallocate(int64) error           { return nil }
func (k *keeper) Close() error                      { return nil }

// Processes of two hosts, each of which has every fourth int, write and read in turns, alone and
// together. With locks, no write may be lost, and all must be visible to the other processes after
// they have met. Without locks, this file system fails that.
func TestHostsThatKeepPages(t *testing.T) {
	lost := func(locked bool, mode int) (wrong int) {
		const ranks, ints, rounds = 4, 300, 6
		srv := &server{data: make([]byte, 4*ranks*ints+hostPage)}
		srv.free = sync.NewCond(&srv.mu)
		var hosts [2]*keeper
		for i := range hosts {
			hosts[i] = &keeper{srv, map[int64][]byte{}, map[int64]byte{}, 0}
		}
		h := Hints{Aggregators: 2, Window: partAlign, Mode: mode, Locked: locked}
		bad := make([]int, ranks)
		together(ranks, func(p Peers) {
			me := p.Rank()
			host, v := hosts[me%2], everyFourthInt(t, me)
			all := everyFourthInt(t, -1)
			data, got := make(Bytes, 4*ints), make(Bytes, 4*ranks*ints)
			for round := range rounds {
				for i := range data {
					data[i] = byte(1 + me + ranks*round)
				}
				var err error
				if round%2 == 0 {
					_, err = AccessAll(p, h, host, v, data, 0, true, false, nil)
				} else {
					_, err = Access(host, v, data, 0, true, h.Locked)
				}
				if err == nil {
					err = host.Sync()
				}
				if err = Agree(p, err); err != nil {
					t.Error(err)
					return
				}
				if _, err = Access(host, all, got, 0, false, h.Locked); err != nil {
					t.Error(err)
					return
				}
				for i, b := range got {
					if int(b) != 1+i/4%ranks+ranks*round {
						bad[me]++
					}
				}
				if err = Agree(p, nil); err != nil {
					return
				}
			}
		})
		for _, n := range bad {
			wrong += n
		}
		return wrong
	}
	for _, mode := range []int{CollectiveAlways, CollectiveNever} {
		if n := lost(true, mode); n > 0 {
			t.Errorf("mode %d: %d bytes are not what was written last", mode, n)
		}
		if lost(false, mode) == 0 {
			t.Errorf("mode %d: without locks nothing is lost, so this test shows nothing", mode)
		}
	}
}

// everyFourthInt is the view of a rank of four; -1: of all.
func everyFourthInt(t *testing.T, rank int) *View {
	filetype, err := datatype.Resized(intType, 0, 16, true)
	if rank < 0 {
		rank, filetype = 0, intType
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(4*int64(rank), intType, filetype)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
