package main

/*
#include "replay.h"
#include "runtime.h"
#include "settings.h"
#include "stat.h"
#include "dp.h"

// Where the counters are changes when MPI begins and ends: the lock.
static uint64_t tool_counted(size_t at)
{
  spx_lock();
  uint64_t n = *(const uint64_t *)((const char *)spx_counted + at);
  spx_unlock();
  return n;
}

static uint64_t tool_take_high(void)
{
  spx_lock();
  uint64_t high = spx_stat.unexpected_high;
  spx_stat.unexpected_high = spx_unex_count;
  spx_unlock();
  return high;
}

static uint16_t tool_chosen(spx_comm *c, int kind) { return __atomic_load_n(&c->chosen[kind], __ATOMIC_RELAXED); }

static uint64_t tool_entries(void) { return atomic_load_explicit(&spx_go_entries, memory_order_relaxed); }
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"libspx/core/tool"
)

// Bodies of MPI_T (MPI-5.0, section 16.3), which core/tool decides on: here are the arguments, and
// its access to the process. All of it works before MPI_Init, after MPI_Finalize, and by several
// threads. Callbacks are bodies/tool.c's.

var tools = tool.New(toolProcess{})

// inTool calls what with the interface locked, and makes its code the result of a body.
func inTool(what func(t *tool.State) tool.Code) error { return toolError(tools.Use(what)) }

func toolError(code tool.Code) error {
	if code == tool.Success {
		return nil
	}
	return code
}

// The arguments of MPI_T. NULL becomes nil: core/tool checks where that is allowed.

func (c *call) toolHandle(i int) tool.Handle    { return tool.Handle(c.handle(i)) }
func (c *call) toolResult(i int) *tool.Handle   { return at[tool.Handle](c.addr(i)) }
func (c *call) int32At(i int) *int32            { return at[int32](c.addr(i)) }
func (c *call) int64At(i int) *int64            { return at[int64](c.addr(i)) }
func (c *call) uint64At(i int) *uint64          { return at[uint64](c.addr(i)) }
func (c *call) toolType(i int) *tool.Datatype   { return at[tool.Datatype](c.addr(i)) }
func (c *call) memory(i, mostBytes int) []byte  { return cslice[byte](c.addr(i), mostBytes) }
func (c *call) indexes(i int, size int) []int32 { return cslice[int32](c.addr(i), size) }

// name is a string argument, nil for NULL.
func (c *call) name(i int) *string {
	if c.addr(i) == 0 {
		return nil
	}
	s := c.str(i)
	return &s
}

// text is a buffer for a string, argument i, of the length behind it.
func (c *call) text(i int) tool.Text {
	size := c.int32At(i + 1)
	if size == nil {
		return tool.Text{}
	}
	return tool.Text{Buf: cslice[byte](c.addr(i), int(*size)), Len: size}
}

//spx:body MPI_T_init_thread
func toolInit(c *call) error { return toolError(tools.Init(c.int(0), c.int32At(1))) }

//spx:body MPI_T_finalize
func toolFinalize(c *call) error { return toolError(tools.Finalize()) }

// toolProcess is core/tool's access to this process.
type toolProcess struct{}

// Settings makes a copy of the table in C, which describes the variables of the environment.
func (toolProcess) Settings() []tool.Setting {
	list := make([]tool.Setting, C.SPX_SETTINGS)
	for i := range list {
		s := &C.spx_setting_table[i]
		list[i] = tool.Setting{
			Entry: tool.Entry{Name: C.GoString(s.name), Area: C.GoString(s.area),
				Description: C.GoString(s.description)},
			Kind: tool.Kind(s.kind), Scope: int(s.scope), Level: int(s.level),
			Choices: choicesOf(s),
		}
	}
	return list
}

// choicesOf are the names of a choice; nil: the setting is none.
func choicesOf(s *C.spx_setting) (names []string) {
	if s.choices == nil {
		return nil
	}
	for p := s.choices; *p != nil; p = (**C.char)(
		unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p))) {
		names = append(names, C.GoString(*p))
	}
	return names
}

func (toolProcess) Number(i int) uint64 { return uint64(C.spx_setting_value(C.spx_setting_id(i))) }
func (toolProcess) Text(i int) string {
	return C.GoString(
		C.spx_setting_text(C.spx_setting_id(i)))
}

func (toolProcess) WriteNumber(i int, v uint64) tool.Code {
	return written(C.spx_setting_write(C.spx_setting_id(i), C.uint64_t(v)))
}

func (toolProcess) WriteText(i int, s string) tool.Code {
	b := append([]byte(s), 0)
	return written(C.spx_setting_write_text(C.spx_setting_id(i), (*C.char)(unsafe.Pointer(&b[0]))))
}

func written(r C.spx_write_result) tool.Code {
	switch r {
	case C.SPX_WRITTEN:
		return tool.Success
	case C.SPX_NOT_NOW:
		return tool.SetNotNow
	case C.SPX_NEVER:
		return tool.SetNever
	}
	return tool.Invalid
}

// watched is a communicator that a performance variable is bound to. It stays as long as the
// variable's handle.
type watched struct{ c *C.spx_comm }

func (w watched) Release() { C.spx_unref(C.SPX_K_COMM, &w.c.o) }

// Count reads a counter. They are written by the threads that are in MPI, with plain stores of
// whole words.
func (toolProcess) Count(k tool.Counter, of tool.Object) uint64 {
	if w, ok := of.(watched); ok {
		return countOf(k, w.c)
	}
	if int(k) < len(countedAt) {
		return uint64(C.tool_counted(C.size_t(countedAt[k])))
	}
	switch k {
	case tool.Failures:
		return uint64(atomic.LoadUint32((*uint32)(&C.spx_ndead)))
	case tool.Entries:
		return uint64(C.tool_entries())
	}
	return atomic.LoadUint64(countWord(k))
}

// countOf reads a counter of a communicator.
func countOf(k tool.Counter, c *C.spx_comm) uint64 {
	if kind, reason, ok := k.Choice(); ok {
		chosen := uint16(C.tool_chosen(c, C.int(kind)))
		if reason {
			return uint64(chosen >> 8)
		}
		return uint64(chosen & 0xff)
	}
	if k == tool.Failures {
		return uint64(C.spx_comm_failures(c))
	}
	return atomic.LoadUint64(commWord(k, c))
}

// commWord is where the counter is of a communicator that counts messages.
func commWord(k tool.Counter, c *C.spx_comm) *uint64 {
	var at *C.uint64_t
	switch k {
	case tool.Sent:
		at = &c.counts.sent
	case tool.SentBytes:
		at = &c.counts.sent_bytes
	case tool.Received:
		at = &c.counts.received
	case tool.ReceivedBytes:
		at = &c.counts.received_bytes
	}
	return (*uint64)(at)
}

// countWord is where the counters are that are not in spx_counters.
func countWord(k tool.Counter) *uint64 {
	var at *C.uint64_t
	switch k {
	case tool.UnexpectedLength:
		at = &C.spx_unex_count
	case tool.PostedLength:
		at = &C.spx_posted_count
	case tool.Lost:
		at = &C.spx_replay_core.lost
	case tool.LostBytes:
		at = &C.spx_replay_core.lost_bytes
	case tool.RefusedStrangers:
		at = &C.spx_refused.strangers
	case tool.RefusedVersion:
		at = &C.spx_refused.version
	case tool.RefusedOld:
		at = &C.spx_refused.old
	case tool.RefusedKeyless:
		at = &C.spx_refused.keyless
	case tool.RefusedSlow:
		at = &C.spx_refused.slow
	}
	return (*uint64)(at)
}

var counters C.spx_counters

// countedAt are the places of the counters in spx_counters.
var countedAt = [tool.UnexpectedLength]uintptr{
	tool.Sent: unsafe.Offsetof(counters.sent), tool.SentBytes: unsafe.Offsetof(counters.sent_bytes),
	tool.Received:          unsafe.Offsetof(counters.received),
	tool.ReceivedBytes:     unsafe.Offsetof(counters.received_bytes),
	tool.Unexpected:        unsafe.Offsetof(counters.unexpected),
	tool.UnexpectedBytes:   unsafe.Offsetof(counters.unexpected_bytes),
	tool.Announced:         unsafe.Offsetof(counters.announced),
	tool.Gets:              unsafe.Offsetof(counters.gets),
	tool.GotBytes:          unsafe.Offsetof(counters.got_bytes),
	tool.Streams:           unsafe.Offsetof(counters.streams),
	tool.StreamedBytes:     unsafe.Offsetof(counters.streamed_bytes),
	tool.Connections:       unsafe.Offsetof(counters.connections),
	tool.Rings:             unsafe.Offsetof(counters.rings),
	tool.NetOpen:           unsafe.Offsetof(counters.net_open),
	tool.NetOpened:         unsafe.Offsetof(counters.net_opened),
	tool.NetEvicted:        unsafe.Offsetof(counters.net_evicted),
	tool.NetRelayed:        unsafe.Offsetof(counters.net_relayed),
	tool.NetAgain:          unsafe.Offsetof(counters.net_again),
	tool.NetForwarded:      unsafe.Offsetof(counters.net_forwarded),
	tool.NetForwardedBytes: unsafe.Offsetof(counters.net_forwarded_bytes),
	tool.NetDirect:         unsafe.Offsetof(counters.net_direct),
	tool.NetZerocopy:       unsafe.Offsetof(counters.net_zerocopy),
	tool.NetZerocopyCopied: unsafe.Offsetof(counters.net_zerocopy_copied),
	tool.NetStreams:        unsafe.Offsetof(counters.net_streams),
	tool.NetFurther:        unsafe.Offsetof(counters.net_further),
	tool.NetBursts:         unsafe.Offsetof(counters.net_bursts),
	tool.FabricPairs:       unsafe.Offsetof(counters.fabric_pairs),
	tool.FabricReceived:    unsafe.Offsetof(counters.fabric_received),
	tool.FabricRefused:     unsafe.Offsetof(counters.fabric_refused),
	tool.Yields:            unsafe.Offsetof(counters.yields),
	tool.Sleeps:            unsafe.Offsetof(counters.sleeps),
	tool.SleepNs:           unsafe.Offsetof(counters.sleep_ns),
	tool.Wakeups:           unsafe.Offsetof(counters.wakeups),
}

// TakeHigh is for the one level whose highest value is kept.
func (toolProcess) TakeHigh(tool.Counter) uint64 { return uint64(C.tool_take_high()) }
