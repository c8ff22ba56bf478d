package main

/*
#include <stdlib.h>
#include "ckpt.h"
*/
import "C"

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"libspx/ckpt"
	"libspx/core/mpierr"
)

// What checkpoints (shim/ckpt*.c) need of the engine: decisions, which are package ckpt's, and files.

func init() {
	revokedHere = append(revokedHere, func(c *C.spx_comm) { C.spx_ckpt_revoked(c) })
	internals[C.SPX_IN_CKPT_HOST] = ckptHost
	internals[C.SPX_IN_CKPT_BUDDIES] = ckptBuddies
	internals[C.SPX_IN_CKPT_COMPLETE] = ckptComplete
	internals[C.SPX_IN_CKPT_SOURCES] = ckptSources
	internals[C.SPX_IN_CKPT_MISSING] = ckptMissing
	internals[C.SPX_IN_CKPT_SCAN] = ckptScan
	internals[C.SPX_IN_CKPT_WRITE] = ckptWrite
	internals[C.SPX_IN_CKPT_WRITTEN] = ckptWritten
	internals[C.SPX_IN_CKPT_READ] = ckptRead
	internals[C.SPX_IN_CKPT_REMOVE] = ckptRemove
}

// ckptHost gives the same number to the processes of a communicator (a[0]) that share memory, in a[1].
func ckptHost(c *call) error {
	c.setInt(1, c.comm(0).sharedColor())
	return nil
}

// ckptBuddies: a[0] hosts, of a[1] ranks; a[2] is this one, with a[3] copies. a[4] and a[5] get the ranks that keep its copies and how
// many, a[6] and a[7] those whose copies it keeps.
func ckptBuddies(c *call) error {
	hosts, me, copies := c.ints(0, c.int(1)), c.int(2), c.int(3)
	to := ckpt.Buddies(hosts, me, copies)
	var from []int
	for r := range hosts {
		if r == me || copies == 0 {
			continue
		}
		for _, q := range ckpt.Buddies(hosts, r, copies) {
			if q == me {
				from = append(from, r)
			}
		}
	}
	c.setInts(4, to)
	c.setInt64(5, int64(len(to)))
	c.setInts(6, from)
	c.setInt64(7, int64(len(from)))
	return nil
}

func ckptItem(i C.spx_ckpt_item) ckpt.Item {
	return ckpt.Item{
		Generation: int64(i.generation), Version: int32(i.version), Rank: int32(i.rank), Ranks: int32(i.ranks),
		Holder: int32(i.holder), Kind: int32(i.kind),
	}
}

func ckptCItem(i ckpt.Item) C.spx_ckpt_item {
	return C.spx_ckpt_item{
		generation: C.int64_t(i.Generation), version: C.int32_t(i.Version), rank: C.int32_t(i.Rank), ranks: C.int32_t(i.Ranks),
		holder: C.int32_t(i.Holder), kind: C.int32_t(i.Kind),
	}
}

// ckptItems are the items in arguments 0 and 1.
func (c *call) ckptItems() []ckpt.Item {
	in := cslice[C.spx_ckpt_item](c.addr(0), c.int(1))
	out := make([]ckpt.Item, len(in))
	for k, i := range in {
		out[k] = ckptItem(i)
	}
	return out
}

func (c *call) ckptVersion(i int) ckpt.Version {
	v := at[C.spx_ckpt_item](c.addr(i))
	return ckpt.Version{Generation: int64(v.generation), Version: int32(v.version), Ranks: int32(v.ranks)}
}

// ckptComplete: of a[1] items at a[0] the versions that are complete, at a[2], and how many, at a[3].
func ckptComplete(c *call) error {
	versions := ckpt.Complete(c.ckptItems())
	out := cslice[C.spx_ckpt_item](c.addr(2), len(versions))
	for k, v := range versions {
		out[k] = ckptCItem(ckpt.Item{Generation: v.Generation, Version: v.Version, Ranks: v.Ranks})
	}
	c.setInt64(3, int64(len(versions)))
	return nil
}

// ckptSources: who serves each part of the version at a[2], at a[3].
func ckptSources(c *call) error {
	c.setInts(3, ckpt.Sources(c.ckptItems(), c.ckptVersion(2)))
	return nil
}

// ckptMissing: of the version at a[2] with sources a[3], among a[5] processes on hosts a[4], which copies there have to be made for a[6] of
// each part, at *a[7] (malloc), and how many, at a[8].
func ckptMissing(c *call) error {
	v := c.ckptVersion(2)
	list := ckpt.Missing(c.ckptItems(), v, c.ints(3, int(v.Ranks)), c.ints(4, c.int(5)), c.int(6))
	room := C.malloc(C.size_t(len(list)+1) * C.size_t(unsafe.Sizeof(C.spx_ckpt_copy{})))
	out := unsafe.Slice((*C.spx_ckpt_copy)(room), len(list))
	for k, m := range list {
		out[k] = C.spx_ckpt_copy{rank: C.int32_t(m.Rank), from: C.int32_t(m.From), to: C.int32_t(m.To)}
	}
	*at[uintptr](c.addr(7)) = uintptr(room)
	c.setInt64(8, int64(len(list)))
	return nil
}

// ---- files ----

// ckptError gives an error of the file system its class.
func ckptError(err error) error {
	class := mpierr.IO
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT):
		class = mpierr.NoSuchFile
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EISDIR):
		class = mpierr.Access
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG):
		class = mpierr.BadFile
	case errors.Is(err, syscall.ENOSPC):
		class = mpierr.NoSpace
	case errors.Is(err, syscall.EDQUOT):
		class = mpierr.Quota
	case errors.Is(err, syscall.EROFS):
		class = mpierr.ReadOnly
	}
	return mpierr.New(class, "%v", err)
}

// ckptScan: the parts of a[1] in directory a[0], which is made if it is not there: those of every a[3]-th rank from a[2] on, at *a[4]
// (malloc), and how many, at a[5]. What was left half written goes.
func ckptScan(c *call) error {
	dir, name, index, sharers := c.str(0), c.str(1), c.int(2), c.int(3)
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
		return ckptError(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ckptError(err)
	}
	var found []C.spx_ckpt_item
	for _, e := range entries {
		i, temporary, ok := ckpt.ParseName(name, e.Name())
		if !ok || int(i.Rank)%sharers != index {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if temporary {
			os.Remove(path)
		} else if ckptHeadFits(path, i) {
			found = append(found, ckptCItem(i))
		}
	}
	room := C.malloc(C.size_t(len(found)+1) * C.size_t(unsafe.Sizeof(C.spx_ckpt_item{})))
	copy(unsafe.Slice((*C.spx_ckpt_item)(room), len(found)), found)
	*at[uintptr](c.addr(4)) = uintptr(room)
	c.setInt64(5, int64(len(found)))
	return nil
}

// ckptHeadFits: the file has the length that it should have, and is what its name says. Its data are looked at when they are needed.
func ckptHeadFits(path string, want ckpt.Item) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	head := make([]byte, ckpt.HeadBytes)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	got, err := ckpt.Head(head, st.Size())
	return err == nil && got == want
}

// ckptWriting has what comes of each part that is being written, by its address.
var ckptWriting sync.Map

// ckptWrite begins to write the part that is at a[2], of a[3] bytes, to directory a[0] under the name a[1] and what a[4] says. Until ckptWritten has returned the
// part must stay, as it is now.
func ckptWrite(c *call) error {
	part := cslice[byte](c.addr(2), c.int(3))
	ckpt.Seal(part)
	dir := c.str(0)
	path := filepath.Join(dir, ckpt.FileName(c.str(1), ckptItem(*at[C.spx_ckpt_item](c.addr(4)))))
	done := make(chan error, 1)
	ckptWriting.Store(c.addr(2), done)
	go func() { done <- ckptPut(dir, path, part) }()
	return nil
}

// ckptWritten waits until the part at a[0] is written: its file is on the device, whole, under its name.
func ckptWritten(c *call) error {
	done, ok := ckptWriting.LoadAndDelete(c.addr(0))
	if !ok {
		return mpierr.New(mpierr.Intern, "this part is not being written")
	}
	return <-done.(chan error)
}

func ckptPut(dir, path string, part []byte) error {
	temporary := path + ckpt.Temporary
	err := ckptStore(temporary, part)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = ckptSyncDir(dir)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return ckptError(err)
}

func ckptStore(path string, part []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(part)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func ckptSyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return err
	}
	return nil
}

// ckptRead reads the part a[2] of a[1] in directory a[0], to *a[3] (malloc) and a[4]. What is not what it should be is an error.
func ckptRead(c *call) error {
	want := ckptItem(*at[C.spx_ckpt_item](c.addr(2)))
	path := filepath.Join(c.str(0), ckpt.FileName(c.str(1), want))
	f, err := os.Open(path)
	if err != nil {
		return ckptError(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return ckptError(err)
	}
	room := C.malloc(C.size_t(st.Size() + 1))
	if room == nil {
		return mpierr.New(mpierr.NoMem, "no memory for %d bytes of %s", st.Size(), path)
	}
	part := unsafe.Slice((*byte)(room), int(st.Size()))
	_, err = io.ReadFull(f, part)
	if err == nil {
		var got ckpt.Item
		if got, _, err = ckpt.Parse(part); err == nil && (got.Generation != want.Generation || got.Version != want.Version || got.Rank != want.Rank || got.Ranks != want.Ranks) {
			err = errors.New("it is another part than its name says")
		}
	}
	if err != nil {
		C.free(room)
		return mpierr.New(mpierr.IO, "%s: %v", path, err)
	}
	*at[uintptr](c.addr(3)) = uintptr(room)
	c.setInt64(4, st.Size())
	return nil
}

// ckptRemove removes the file of part a[2] of a[1] in directory a[0].
func ckptRemove(c *call) error {
	return ckptError(os.Remove(filepath.Join(c.str(0), ckpt.FileName(c.str(1), ckptItem(*at[C.spx_ckpt_item](c.addr(2)))))))
}
