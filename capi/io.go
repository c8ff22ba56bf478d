package main

/*
#include "io.h"
#include "net.h"
*/
import "C"

import (
	"slices"
	"strings"
	"sync"
	"unsafe"

	"libspx/core/datatype"
	"libspx/core/info"
	"libspx/core/io"
	"libspx/core/mpierr"
	"libspx/io/posix"
)

// Files (MPI-5.0, 15.2): opening, closing, sizes. What files do is core/io's; the C side of one is
// a bare object with an error handler. A file has a private duplicate of its communicator, over
// which its processes work together.

const fileNull = 280 // MPI_FILE_NULL

// fileObject is an open file.
type fileObject struct {
	obj     *C.spx_obj
	comm    *commObject
	name    string
	mode    int
	backend io.Backend
	shared  sharedCounter
	tune    io.Hints
	locked  bool // io.Hints.Locked

	mu     sync.Mutex // guards what follows
	hints  *info.Info
	view   fileView
	alone  bool // collective reads need no peers: the same on all processes
	atomic bool
	split  *splitAccess // the split collective that is active, or nil
}

// fileView is what MPI_File_set_view has set.
type fileView struct {
	*io.View
	etype, filetype *typeObject
	rep             *datarep
}

var files table[fileObject]

func init() { onFree[C.SPX_K_FILE] = files.remove }

// file returns the file that is argument 0, which the shim has checked.
func (c *call) file() *fileObject { return fileOf(c.handle(0)) }

func fileOf(handle uintptr) *fileObject {
	o := findObject(C.SPX_K_FILE, handle)
	if o == nil {
		return nil
	}
	return files.get(uint32(o._go))
}

// onFile makes a file the object whose error handler gets err.
func (f *fileObject) onFile(err error) error {
	return raisedOn(C.SPX_K_FILE, uintptr(f.obj.handle), err)
}

func onNoFile(err error) error { return raisedOn(C.SPX_K_FILE, fileNull, err) }

// filePeers is core/io's Peers over a communicator.
type filePeers struct{ c *commObject }

func (p filePeers) Rank() int { return p.c.Rank }
func (p filePeers) Size() int { return p.c.Group().Size() }

const fileTag = 1

func (p filePeers) Exchange(sends, recvs []io.Message) error {
	return p.together(func() error {
		_, err := here().exchange(p.c.c, C.SPX_CTX_P2P, messages(recvs), messages(sends))
		return err
	})
}

// together runs the part that all processes do at once. If it fails here, or is left, the peers
// must not wait for messages that this process will not send.
func (p filePeers) together(work func() error) (err error) {
	whole := false
	defer func() {
		if !whole {
			p.c.revoke()
		}
	}()
	err = work()
	whole = err == nil
	return err
}

// Gather is a collective of the file's communicator, on whole words.
func (p filePeers) Gather(record, all []byte) error {
	n := len(record)
	words := (n + 7) / 8
	mine, got := make([]uint64, words), make([]uint64, words*p.Size())
	copy(octets(mine), record)
	err := p.together(func() error { return here().gather(p.c.c, mine, got) })
	for r, bytes := 0, octets(got); r < p.Size(); r++ {
		copy(all[r*n:(r+1)*n], bytes[8*words*r:])
	}
	return err
}

// octets are the bytes of words.
func octets(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

func messages(list []io.Message) []message {
	out := make([]message, len(list))
	for i, m := range list {
		out[i] = message{m.Peer, fileTag, m.Data}
	}
	return out
}

func (f *fileObject) peers() io.Peers { return filePeers{f.comm} }

//spx:body MPI_File_open
func fileOpen(c *call) error {
	old := c.comm(0)
	if old.Inter() {
		return onNoFile(mpierr.New(mpierr.Comm,
			"comm is an intercommunicator; a file is opened by an intracommunicator"))
	}
	f := &fileObject{name: fileName(c.str(1)), mode: c.int(2), hints: info.New()}
	opened := false
	defer func() {
		if !opened && f.comm != nil {
			f.discard(false)
		}
	}()
	if err := old.DupForAll(world.contexts, maker(old, &f.comm)); err != nil {
		return onNoFile(err)
	}
	if err := f.open(c.info(3)); err != nil {
		return onNoFile(err)
	}
	opened = true
	c.setHandle(4, uintptr(f.obj.handle))
	return nil
}

// fileName takes the prefix off by which other libraries choose a file system.
func fileName(name string) string {
	for _, prefix := range []string{"ufs:", "nfs:"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// open does all that needs undoing by discard. Rank 0 opens first, since it may create the file.
func (f *fileObject) open(in *info.Info) error {
	bytes := named().byName["MPI_BYTE"]
	v, err := io.NewView(0, bytes.t, bytes.t)
	f.view = fileView{v, bytes, bytes, nativeRep}
	if err == nil {
		err = io.CheckMode(f.mode)
	}
	if err := io.AgreeOn(f.peers(), "amode", int64(f.mode), err); err != nil {
		return err
	}
	if err := f.setHints(in); err != nil {
		return err
	}
	rank := f.comm.Rank
	if rank == 0 {
		err = f.openHere(f.mode)
	}
	if err := io.Agree(f.peers(), err); err != nil {
		return err
	}
	if rank != 0 {
		err = f.openHere(f.mode &^ (io.Create | io.Excl))
	}
	if err == nil {
		f.obj, err = newObject(C.SPX_K_FILE)
	}
	if err := io.Agree(f.peers(), err); err != nil {
		return err
	}
	C.spx_io_inherit(f.obj)
	if err := f.shareCounter(); err != nil {
		return err
	}
	if err := f.begin(); err != nil {
		return err
	}
	f.obj._go = C.uint32_t(files.add(f))
	f.mu.Lock()
	f.publish()
	f.mu.Unlock()
	return nil
}

func (f *fileObject) openHere(mode int) error {
	var b *posix.File
	var err error
	if created := f.mode&io.Create != 0; created && f.comm.Rank != 0 {
		b, err = posix.OpenCreated(f.name, mode)
	} else {
		b, err = posix.Open(f.name, mode, f.permissions())
	}
	if err != nil {
		return err
	}
	f.backend = b
	if !b.IsKept() || !f.onHosts() {
		return nil
	}
	unlock, err := b.Lock(0, 1, mode&io.ReadOnly == 0)
	if err == nil {
		unlock()
		f.locked, f.tune.Locked = true, true
		return nil
	}
	if mode&io.ReadOnly != 0 {
		return nil // writes of other processes are seen late, and nothing is lost
	}
	return mpierr.New(mpierr.UnsupportedOperation,
		"the file \"%s\" is on a network file system without locks, which is not to be written "+
			"by several hosts: "+
			"one would write back what it has kept of another's data; mount it with locks: %v",
		f.name,
		err)
}

// onHosts reports whether processes of the file share no memory with others; all of them get the
// same result.
func (f *fileObject) onHosts() bool {
	return slices.ContainsFunc(unsafe.Slice((*uint32)(unsafe.Pointer(f.comm.c.peer)),
		f.peers().Size()), func(p uint32) bool { return !bool(C.spx_is_near(C.uint32_t(p))) })
}

// begin sets the pointers that a file begins with.
func (f *fileObject) begin() error {
	if f.mode&io.Append == 0 {
		return nil
	}
	size, err := f.backend.Size()
	*f.pos() = size
	if f.comm.Rank == 0 {
		f.shared.set(size)
	}
	return io.Agree(f.peers(), err)
}

// discard gives back what a file has; together: all processes do, and none will use it again.
func (f *fileObject) discard(together bool) {
	if f.backend != nil {
		_ = f.backend.Close() // on the way out of an error
	}
	f.shared.close(together)
	if f.obj != nil {
		C.spx_io_disown(f.obj)
		C.spx_retire(C.SPX_K_FILE, f.obj)
	}
	C.spx_retire(C.SPX_K_COMM, &f.comm.c.o)
}

// fileClose waits for all, so that a file that is deleted is not in use.
//
//spx:body MPI_File_close
func fileClose(c *call) error {
	h := at[uintptr](c.addr(0))
	f := fileOf(*h)
	if f == nil {
		return onNoFile(mpierr.New(mpierr.File, "the file is MPI_FILE_NULL, or it has been closed"))
	}
	if f.split != nil {
		return f.onFile(mpierr.New(mpierr.IO,
			"the split collective operation %s was begun on this file and not ended", f.split.name))
	}
	err := f.backend.Close()
	f.backend = nil
	f.publish()
	together := false
	defer func() { f.discard(together) }() // also when the wait for the peers is left
	err = io.Agree(f.peers(), err)
	if f.mode&io.DeleteOnClose != 0 {
		var gone error
		if f.comm.Rank == 0 {
			gone = posix.Delete(f.name)
		}
		if gone = io.Agree(f.peers(), gone); err == nil {
			err = gone
		}
	}
	together = err == nil
	*h = fileNull
	return onNoFile(err)
}

//spx:body MPI_File_delete
func fileDelete(c *call) error { return onNoFile(posix.Delete(fileName(c.str(0)))) }

//spx:body MPI_File_get_amode
func fileGetAmode(c *call) error {
	c.setInt(1, c.file().mode)
	return nil
}

//spx:body MPI_File_get_group
func fileGetGroup(c *call) error {
	f := c.file()
	return f.onFile(c.setGroup(1, f.comm.Group(), nil))
}

//spx:body MPI_File_get_size
func fileGetSize(c *call) error {
	f := c.file()
	n, err := f.backend.Size()
	if err == nil {
		c.setInt64(1, n)
	}
	return f.onFile(err)
}

// resize calls f on rank 0, after all have come with the same size.
func (f *fileObject) resize(n int64, do func(int64) error) error {
	var err error
	switch {
	case n < 0:
		err = mpierr.New(mpierr.Arg, "size is %d: it may not be negative", n)
	case f.mode&io.ReadOnly != 0:
		err = mpierr.New(mpierr.ReadOnly,
			"the file \"%s\" was opened with MPI_MODE_RDONLY: its size cannot be set", f.name)
	case f.mode&io.Sequential != 0:
		err = mpierr.New(mpierr.UnsupportedOperation,
			"the file \"%s\" was opened with MPI_MODE_SEQUENTIAL: its size cannot be set", f.name)
	}
	if err = io.AgreeOn(f.peers(), "size", n, err); err != nil {
		return err
	}
	if f.comm.Rank == 0 {
		err = do(n)
	}
	return io.Agree(f.peers(), err)
}

//spx:body MPI_File_set_size
func fileSetSize(c *call) error {
	f := c.file()
	return f.onFile(f.resize(c.int64(1), f.backend.SetSize))
}

//spx:body MPI_File_preallocate
func filePreallocate(c *call) error {
	f := c.file()
	return f.onFile(f.resize(c.int64(1), f.backend.Preallocate))
}

//spx:body MPI_File_sync
func fileSync(c *call) error {
	f := c.file()
	var err error
	if f.mode&io.ReadOnly == 0 {
		err = f.backend.Sync()
	}
	return f.onFile(io.Agree(f.peers(), err))
}

//spx:body MPI_File_set_atomicity
func fileSetAtomicity(c *call) error {
	f := c.file()
	on := int64(0)
	if c.int(1) != 0 {
		on = 1
	}
	if err := io.AgreeOn(f.peers(), "flag", on, nil); err != nil {
		return f.onFile(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atomic = on != 0
	f.publish()
	return nil
}

//spx:body MPI_File_get_atomicity
func fileGetAtomicity(c *call) error {
	f := c.file()
	f.mu.Lock()
	defer f.mu.Unlock()
	c.setBool(1, f.atomic)
	return nil
}

// setType stores a handle of a view's type: predefined ones are themselves, others are new, for the
// user to free.
func (c *call) setType(i int, o *typeObject) error {
	if o.t.Predefined() {
		c.setHandle(i, o.handle())
		return nil
	}
	dup, err := newTypeObject(datatype.Dup(o.t))
	if err != nil {
		return err
	}
	if err := dup.commit(); err != nil {
		dup.drop()
		return err
	}
	c.setHandle(i, dup.handle())
	return nil
}
