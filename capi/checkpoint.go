package main

/*
#include "mpi-ext.h"
#include "ckpt.h"
*/
import "C"

import (
	"strconv"
	"strings"

	"libspx/ckpt"
	"libspx/core/info"
	"libspx/core/mpierr"
)

// Bodies of MPIX_Checkpoint_* (docs/checkpoint.md). What they do is package ckpt's;
// checkpoint_peers.go, checkpoint_memory.go and checkpoint_files.go are what that needs of this
// process.

// checkpoint is what a handle stands for.
type checkpoint struct {
	*ckpt.Object
	// the user's communicator, which it was attached to last: its error handler gets the errors
	comm uintptr
}

var checkpoints table[checkpoint]

func init() { onFree[C.SPX_K_CHECKPOINT] = checkpoints.remove }

// checkpoint returns the object that is argument i, which the shim has checked.
func (c *call) checkpoint(i int) *checkpoint { return checkpointOf(c.handle(i)) }

func checkpointOf(handle uintptr) *checkpoint {
	return checkpoints.get(uint32(findObject(C.SPX_K_CHECKPOINT, handle)._go))
}

// raised gives err to the error handler of the user's communicator.
func (k *checkpoint) raised(err error) error { return raisedOn(C.SPX_K_COMM, k.comm, err) }

//spx:body MPIX_Checkpoint_create
func checkpointCreate(c *call) error {
	c.setHandle(2, 0) // MPIX_CHECKPOINT_NULL
	k, err := newCheckpoint(c.info(1))
	if err != nil {
		return c.onComm(0, err)
	}
	o, err := newObject(C.SPX_K_CHECKPOINT)
	if err != nil {
		return c.onComm(0, err)
	}
	whole := false
	defer func() {
		if !whole {
			k.Abandon()
			C.spx_retire(C.SPX_K_CHECKPOINT, o)
		}
	}()
	if err := k.attach(c.comm(0)); err != nil {
		return c.onComm(0, err)
	}
	whole = true
	o._go = C.uint32_t(checkpoints.add(k))
	c.setHandle(2, uintptr(o.handle))
	return nil
}

// newCheckpoint makes an object by the keys of in, which may be nil.
func newCheckpoint(in *info.Info) (*checkpoint, error) {
	if in == nil {
		in = info.New()
	}
	copies, err := infoNumber(in, "mpix_copies", 0, 1)
	if err != nil {
		return nil, err
	}
	versions, err := infoNumber(in, "mpix_versions", 1, 2)
	if err != nil {
		return nil, err
	}
	name, there := in.Get("mpix_name")
	if !there {
		name = "checkpoint"
	}
	if name == "" || strings.Contains(name, "/") {
		return nil, mpierr.New(mpierr.InfoValue,
			"info key mpix_name is \"%.80s\", but must be the beginning of a file's name", name)
	}
	var files ckpt.Files
	if dir, there := in.Get("mpix_directory"); there {
		if dir == "" {
			return nil, mpierr.New(mpierr.InfoValue, "info key mpix_directory is empty")
		}
		files = checkpointFiles{dir, name}
	}
	return &checkpoint{Object: ckpt.New(ckpt.Settings{Copies: copies, Versions: versions},
		checkpointHeap{}, files)}, nil
}

// infoNumber is the value of a key, from least to 1,000,000; otherwise if it is not there.
func infoNumber(in *info.Info, key string, least, otherwise int) (int, error) {
	text, there := in.Get(key)
	if !there {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 1000000 {
		return 0, mpierr.New(mpierr.InfoValue,
			"info key %s is \"%.40s\", but must be a number from %d on", key, text, least)
	}
	return n, nil
}

// attach has the processes of user go on with k.
func (k *checkpoint) attach(user *commObject) error {
	p, err := newCheckpointPeers(user)
	if err != nil {
		return err
	}
	k.comm = user.handle()
	return k.Attach(p)
}

//spx:body MPIX_Checkpoint_attach
func checkpointAttach(c *call) error {
	k := c.checkpoint(1)
	k.Detach()
	return c.onComm(0, k.attach(c.comm(0)))
}

//spx:body MPIX_Checkpoint_free
func checkpointFree(c *call) error {
	h := at[uintptr](c.addr(0))
	k := checkpointOf(*h)
	C.spx_retire(C.SPX_K_CHECKPOINT, findObject(C.SPX_K_CHECKPOINT, *h))
	*h = 0 // MPIX_CHECKPOINT_NULL
	k.Free()
	return nil
}

//spx:body MPIX_Checkpoint_register
func checkpointRegister(c *call) error {
	k, buf := c.checkpoint(0), c.checkpointBuffer(2, 3, 4)
	err := k.Register(c.int(1), buf.count, int64(buf.typ.size), buf)
	if err != nil {
		buf.release()
	}
	return k.raised(err)
}

//spx:body MPIX_Checkpoint_unregister
func checkpointUnregister(c *call) error {
	k := c.checkpoint(0)
	return k.raised(k.Unregister(c.int(1)))
}

//spx:body MPIX_Checkpoint_save
func checkpointSave(c *call) error {
	k := c.checkpoint(0)
	return k.raised(k.Save(c.int(1)))
}

//spx:body MPIX_Checkpoint_save_begin
func checkpointSaveBegin(c *call) error {
	k := c.checkpoint(0)
	return k.raised(k.SaveBegin(c.int(1)))
}

//spx:body MPIX_Checkpoint_commit
func checkpointCommit(c *call) error {
	k := c.checkpoint(0)
	return k.raised(k.Commit())
}

//spx:body MPIX_Checkpoint_get_versions
func checkpointGetVersions(c *call) error {
	k, room := c.checkpoint(0), c.int(1)
	if room > 0 && c.addr(2) == 0 {
		return k.raised(mpierr.New(mpierr.Arg, "versions is NULL, but there is to be room for %d",
			room))
	}
	known := k.Versions()
	out := cslice[int32](c.addr(2), min(room, len(known)))
	for i := range out {
		out[i] = known[i].Version
	}
	c.setInt(3, len(known))
	return nil
}

//spx:body MPIX_Checkpoint_delete
func checkpointDelete(c *call) error {
	k := c.checkpoint(0)
	return k.raised(k.Delete(c.int(1)))
}

//spx:body MPIX_Checkpoint_restore
func checkpointRestore(c *call) error {
	k := c.checkpoint(0)
	v, err := k.Restore(c.int(1),
		func(b ckpt.Buffer) ckpt.Buffer { return b.(*checkpointBuffer).again() })
	if err != nil {
		return k.raised(err)
	}
	c.setInt(2, int(v.Version))
	return nil
}

//spx:body MPIX_Checkpoint_restore_begin
func checkpointRestoreBegin(c *call) error {
	k := c.checkpoint(0)
	v, err := k.RestoreBegin(c.int(1))
	if err != nil {
		return k.raised(err)
	}
	c.setInt(2, int(v.Version))
	c.setInt(3, int(v.Ranks))
	return nil
}

//spx:body MPIX_Checkpoint_get_bytes
func checkpointGetBytes(c *call) error {
	k := c.checkpoint(0)
	bytes, err := k.Bytes(c.int(1), c.int(2))
	if err != nil {
		return k.raised(err)
	}
	if bytes < 0 {
		bytes = C.MPI_UNDEFINED
	}
	c.setInt64(3, bytes)
	return nil
}

//spx:body MPIX_Checkpoint_fetch
func checkpointFetch(c *call) error {
	k, buf := c.checkpoint(0), c.checkpointBuffer(4, 5, 6)
	kept, err := k.Fetch(c.int(1), c.int(2), c.int64(3), buf.count, int64(buf.typ.size), buf)
	if !kept {
		buf.release()
	}
	return k.raised(err)
}

//spx:body MPIX_Checkpoint_restore_end
func checkpointRestoreEnd(c *call) error {
	k := c.checkpoint(0)
	return k.raised(k.RestoreEnd())
}
