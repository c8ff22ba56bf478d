package main

/*
#include "comm.h"
#include "tool.h"

static uintptr_t tool_freed_function(void) { return (uintptr_t)spx_tool_freed; }
*/
import "C"

import (
	"unsafe"

	"libspx/core/info"
	"libspx/core/tool"
)

// Bodies of MPI_T for events and their source (MPI-5.0, section 16.3.8). Callbacks are called by
// bodies/tool.c, without Go, which has the bodies that callbacks call, too.

// The kinds of events are those of the data plane, and a kind of handle is as wide.
const (
	_ = uint(tool.UnexpectedMessage-C.SPX_EV_UNEXPECTED) +
		uint(C.SPX_EV_UNEXPECTED-tool.UnexpectedMessage)
	_ = uint(tool.FailureSeen-C.SPX_EV_FAILURE) + uint(C.SPX_EV_FAILURE-tool.FailureSeen)
	_ = uint(tool.GetDone-C.SPX_EV_GET) + uint(C.SPX_EV_GET-tool.GetDone)
	_ = uint(tool.CollectiveChosen-C.SPX_EV_CHOSEN) + uint(C.SPX_EV_CHOSEN-tool.CollectiveChosen)
	_ = uint(tool.EventKinds-C.SPX_EVENTS) + uint(C.SPX_EVENTS-tool.EventKinds)
)

// Listen gives the data plane's side the callbacks.
func (toolProcess) Listen(list []tool.Listener) bool {
	var wanted uint32
	out := make([]C.spx_listener, len(list))
	for i, l := range list {
		wanted |= 1 << l.Kind
		n, ints := l.Kind.Elements()
		out[i] = C.spx_listener{order: C.uint64_t(l.Order), key: C.uintptr_t(l.Key),
			fn:   C.uintptr_t(l.Fn),
			data: C.uintptr_t(l.Data), dropped: C.uintptr_t(l.Dropped), kind: C.int64_t(l.Kind),
			elements: C.uint32_t(n), ints: C.uint32_t(ints)}
	}
	return bool(C.spx_tool_listen(unsafe.SliceData(out), C.uint32_t(len(out)), C.uint32_t(wanted)))
}

func (toolProcess) DropEvents() { C.spx_tool_drop_events() }

// infoOK: argument i is an info object, or MPI_INFO_NULL.
func (c *call) infoOK(i int) bool {
	return c.handle(i) == C.SPX_HANDLE_INFO_NULL || findObject(C.SPX_K_INFO, c.handle(i)) != nil
}

// withHints is the result err of a body that stores an info object without hints in argument i: as
// it is if that is wanted, but fails.
func (c *call) withHints(i int, err error) error {
	if err == nil && c.addr(i) != 0 && c.setInfo(i, info.New()) != nil {
		return tool.Memory
	}
	return err
}

// needHints is withHints where the argument cannot be left out.
func (c *call) needHints(i int, err error) error {
	if err == nil && c.addr(i) == 0 {
		return tool.Invalid
	}
	return c.withHints(i, err)
}

//spx:body MPI_T_event_get_num
func toolEventNum(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.EventNum(c.int32At(0)) })
}

//spx:body MPI_T_event_get_info
func toolEventInfo(c *call) error {
	return c.withHints(8, inTool(func(t *tool.State) tool.Code {
		elements := tool.Elements{Num: c.int32At(6)}
		if elements.Num != nil {
			n := int(*elements.Num)
			elements.Types, elements.At = cslice[tool.Datatype](c.addr(4), n),
				cslice[int64](c.addr(5), n)
		}
		return t.EventInfo(c.int(0), c.text(1), c.int32At(3), elements, c.toolResult(7), c.text(9),
			c.int32At(11))
	}))
}

//spx:body MPI_T_event_get_index
func toolEventIndex(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.EventIndex(c.name(0), c.int32At(1)) })
}

//spx:body MPI_T_event_handle_alloc
func toolEventAlloc(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.AllocEvent(c.int(0), c.infoOK(2),
			c.toolResult(3))
	})
}

// toolEventFree calls the function of the program last, when nothing else is called for the
// registration any more.
//
//spx:body MPI_T_event_handle_free
func toolEventFree(c *call) error {
	err := inTool(func(t *tool.State) tool.Code { return t.FreeEvent(c.toolHandle(0)) })
	if err != nil || c.addr(2) == 0 {
		return err
	}
	args := []uint64{c.word(2), c.word(0), c.word(1)}
	return c.callOut(coInternal, uintptr(C.tool_freed_function()), args,
		func(int64) error { return nil })
}

//spx:body MPI_T_event_handle_set_info
func toolEventSetInfo(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.EventHints(c.toolHandle(0),
			c.infoOK(1))
	})
}

//spx:body MPI_T_event_handle_get_info
func toolEventGetInfo(c *call) error {
	return c.needHints(1,
		inTool(func(t *tool.State) tool.Code { return t.EventHints(c.toolHandle(0), true) }))
}

//spx:body MPI_T_event_register_callback
func toolEventRegister(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.RegisterCallback(c.toolHandle(0), c.int(1), c.infoOK(2), c.addr(3), c.addr(4))
	})
}

//spx:body MPI_T_event_callback_set_info
func toolCallbackSetInfo(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.CallbackHints(c.toolHandle(0), c.int(1),
			c.infoOK(2))
	})
}

//spx:body MPI_T_event_callback_get_info
func toolCallbackGetInfo(c *call) error {
	return c.needHints(2, inTool(
		func(t *tool.State) tool.Code { return t.CallbackHints(c.toolHandle(0), c.int(1), true) }))
}

//spx:body MPI_T_event_set_dropped_handler
func toolEventDropped(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.SetDropped(c.toolHandle(0), c.addr(1)) })
}

//spx:body MPI_T_source_get_num
func toolSourceNum(c *call) error {
	return inTool(func(t *tool.State) tool.Code { return t.SourceNum(c.int32At(0)) })
}

//spx:body MPI_T_source_get_info
func toolSourceInfo(c *call) error {
	return c.withHints(8, inTool(func(t *tool.State) tool.Code {
		return t.SourceInfo(c.int(0), c.text(1), c.text(3), c.int32At(5), c.int64At(6),
			c.int64At(7))
	}))
}

//spx:body MPI_T_source_get_timestamp
func toolSourceTime(c *call) error {
	return inTool(func(t *tool.State) tool.Code {
		return t.SourceTime(c.int(0),
			int64(C.spx_event_clock()), c.int64At(1))
	})
}
