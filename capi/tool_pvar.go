package main

/*
#include "comm.h"
#include "tool.h"
*/
import "C"

import (
	"unsafe"

	"libspx/core/tool"
)

// Bodies of MPI_T for performance variables and their sessions (MPI-5.0, section 16.3.7).

//spx:body MPI_T_pvar_get_num
func toolPvarNum(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.PvarNum(c.int32At(0)) })
}

//spx:body MPI_T_pvar_get_info
func toolPvarInfo(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.PvarInfo(c.int(0), c.text(1), c.int32At(3), c.int32At(4), c.toolType(5),
			c.toolResult(6), c.text(7),
			c.int32At(9), c.int32At(10), c.int32At(11), c.int32At(12))
	})
}

//spx:body MPI_T_pvar_get_index
func toolPvarIndex(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.PvarIndex(c.name(0), c.int(1),
			c.int32At(2))
	})
}

//spx:body MPI_T_pvar_session_create
func toolSessionCreate(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.CreateSession(c.toolResult(0)) })
}

//spx:body MPI_T_pvar_session_free
func toolSessionFree(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.FreeSession(c.toolResult(0)) })
}

//spx:body MPI_T_pvar_handle_alloc
func toolPvarAlloc(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.AllocPvar(c.toolHandle(0), c.int(1),
			func() tool.Object { return watch(c.addr(2)) }, c.toolResult(3), c.int32At(4))
	})
}

// watch keeps the communicator whose handle is at an address; nil when there is none.
func watch(addr uintptr) tool.Object {
	if addr == 0 {
		return nil
	}
	o := findObject(C.SPX_K_COMM, *at[uintptr](addr))
	if o == nil {
		return nil
	}
	C.spx_ref(o)
	return watched{(*C.spx_comm)(unsafe.Pointer(o))}
}

//spx:body MPI_T_pvar_handle_free
func toolPvarFree(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.FreePvar(c.toolHandle(0),
			c.toolResult(1))
	})
}

//spx:body MPI_T_pvar_start
func toolPvarStart(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.Start(c.toolHandle(0),
			c.toolHandle(1))
	})
}

//spx:body MPI_T_pvar_stop
func toolPvarStop(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.Stop(c.toolHandle(0), c.toolHandle(1)) })
}

//spx:body MPI_T_pvar_reset
func toolPvarReset(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.Reset(c.toolHandle(0),
			c.toolHandle(1))
	})
}

// toolPvarRead has what bodies/tool.c does not read by itself.
//
//spx:body MPI_T_pvar_read
func toolPvarRead(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		if code, is := t.ReadState(c.toolHandle(0), c.toolHandle(1), c.int32At(2)); is {
			return code
		}
		return t.ReadPvar(c.toolHandle(0), c.toolHandle(1), c.uint64At(2))
	})
}

//spx:body MPI_T_pvar_write
func toolPvarWrite(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.WritePvar(c.toolHandle(0),
			c.toolHandle(1), c.uint64At(2))
	})
}

//spx:body MPI_T_pvar_readreset
func toolPvarReadReset(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.ReadReset(c.toolHandle(0),
			c.toolHandle(1), c.uint64At(2))
	})
}

// Show gives the data plane's side the value of MPI_T_pvar_read for a handle. Where there is no
// memory for it, or the counter is not a word, MPI_T_pvar_read calls the engine.
func (p toolProcess) Show(key tool.Handle, v tool.View) {
	view := C.spx_tool_view{key: C.uintptr_t(key), session: C.uintptr_t(v.Session), offset: -1,
		more: C.uint64_t(v.More)}
	if v.Seconds {
		view.seconds = 1
	}
	w, bound := v.Of.(watched)
	switch {
	case v.Still:
	case v.Counter == tool.Failures, v.Counter == tool.Entries:
		return
	case bound:
		view.at = (*C.uint64_t)(commWord(v.Counter, w.c))
	case int(v.Counter) < len(countedAt):
		view.offset = C.int64_t(countedAt[v.Counter])
	default:
		view.at = (*C.uint64_t)(countWord(v.Counter))
	}
	C.spx_tool_show(C.uint32_t(key.Index()), &view)
}

func (toolProcess) Hide(key tool.Handle) { C.spx_tool_hide(C.uint32_t(key.Index())) }
