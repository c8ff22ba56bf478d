package main

/*
#include "comm.h"
*/
import "C"

import (
	"os"
	"syscall"

	"libspx/core/info"
	"libspx/core/mpierr"
)

// Bodies of MPI_Info_* (MPI-5.0, chapter 10). They may be called before MPI_Init and after
// MPI_Finalize. Info objects are core/info's; the C side of one is a bare object.

var infos table[info.Info]

func init() {
	onFree[C.SPX_K_INFO] = infos.remove
	onStart(func(s *startInfo) error {
		return predefine(C.SPX_K_INFO, C.SPX_HANDLE_INFO_ENV,
			infos.add(environment(s.Level).Freeze()))
	})
}

// infoHandle returns a new handle of an info object.
func infoHandle(in *info.Info) (uintptr, error) {
	o, err := newObject(C.SPX_K_INFO)
	if err != nil {
		return 0, err
	}
	o._go = C.uint32_t(infos.add(in))
	return uintptr(o.handle), nil
}

// info returns the info object that is argument i; nil for MPI_INFO_NULL.
func (c *call) info(i int) *info.Info { return infoOf(c.handle(i)) }

func infoOf(handle uintptr) *info.Info {
	o := findObject(C.SPX_K_INFO, handle)
	if o == nil {
		return nil
	}
	return infos.get(uint32(o._go))
}

// setInfo stores a new handle of in in argument i.
func (c *call) setInfo(i int, in *info.Info) error {
	h, err := infoHandle(in)
	if err != nil {
		return err
	}
	c.setHandle(i, h)
	return nil
}

//spx:body MPI_Info_create
func infoCreate(c *call) error { return c.setInfo(0, info.New()) }

//spx:body MPI_Info_dup
func infoDup(c *call) error { return c.setInfo(1, c.info(0).Clone()) }

//spx:body MPI_Info_free
func infoFree(c *call) error {
	h := at[uintptr](c.addr(0))
	o := findObject(C.SPX_K_INFO, *h)
	if o == nil || *h == C.SPX_HANDLE_INFO_ENV {
		return mpierr.New(mpierr.Info,
			"the info object is MPI_INFO_NULL, MPI_INFO_ENV or has been freed")
	}
	C.spx_retire(C.SPX_K_INFO, o)
	*h = C.SPX_HANDLE_INFO_NULL
	return nil
}

//spx:body MPI_Info_set
func infoSet(c *call) error { return c.info(0).Set(c.str(1), c.str(2)) }

//spx:body MPI_Info_delete
func infoDelete(c *call) error { return c.info(0).Delete(c.str(1)) }

//spx:body MPI_Info_get
func infoGet(c *call) error {
	key, size := c.str(1), c.int(2)
	if err := info.CheckKey(key); err != nil {
		return err
	}
	if size < 0 {
		return mpierr.New(mpierr.InfoValue, "valuelen is %d: it must be 0 or more", size)
	}
	value, ok := c.info(0).Get(key)
	if ok {
		// the user's buffer has room for the NUL (section 10, MPI_Info_get)
		c.setStr(3, value, size+1)
	}
	c.setBool(4, ok)
	return nil
}

//spx:body MPI_Info_get_valuelen
func infoGetValuelen(c *call) error {
	key := c.str(1)
	if err := info.CheckKey(key); err != nil {
		return err
	}
	value, ok := c.info(0).Get(key)
	if ok {
		c.setInt(2, len(value))
	}
	c.setBool(3, ok)
	return nil
}

// infoGetString counts the NUL in *buflen, on the way in and out. Nothing is stored in value when
// *buflen is 0.
//
//spx:body MPI_Info_get_string
func infoGetString(c *call) error {
	key := c.str(1)
	if err := info.CheckKey(key); err != nil {
		return err
	}
	size := int(*at[int32](c.addr(2)))
	if size < 0 {
		return mpierr.New(mpierr.Arg, "buflen is %d: it must be 0 or more", size)
	}
	value, ok := c.info(0).Get(key)
	if ok {
		if size > 0 {
			c.setStr(3, value, size)
		}
		c.setInt(2, len(value)+1)
	}
	c.setBool(4, ok)
	return nil
}

//spx:body MPI_Info_get_nkeys
func infoGetNkeys(c *call) error {
	c.setInt(1, c.info(0).Len())
	return nil
}

//spx:body MPI_Info_get_nthkey
func infoGetNthkey(c *call) error {
	key, err := c.info(0).Key(c.int(1))
	if err != nil {
		return err
	}
	c.setStr(2, key, info.MaxKey)
	return nil
}

// infoCreateEnv makes an info object with the keys of MPI_INFO_ENV, for use before MPI_Init. argc
// and argv, if given, are the command line.
//
//spx:body MPI_Info_create_env
func infoCreateEnv(c *call) error {
	in := environment(C.MPI_THREAD_SINGLE)
	if argc := c.int(0); argc > 0 && c.addr(1) != 0 {
		var args []string
		for _, p := range cslice[uintptr](c.addr(1), argc) {
			if p == 0 {
				break
			}
			args = append(args, C.GoString((*C.char)(at[C.char](p))))
		}
		setCommand(in, args)
	}
	return c.setInfo(2, in)
}

// environment returns how this process was started: the keys of MPI-5.0, section 11.2.1, as far as
// they are known.
func environment(level int) *info.Info {
	in := info.New()
	if b, err := os.ReadFile("/proc/self/cmdline"); err == nil {
		setCommand(in, splitNUL(b))
	}
	set := func(key, value string) {
		if value != "" && len(value) < info.MaxValue {
			in.Merge(info.New(key, value))
		}
	}
	n := getenv("SPX_MAXPROCS")
	if n == "" {
		n = "1"
	}
	set("maxprocs", n)
	set("soft", n)
	if host, err := os.Hostname(); err == nil {
		set("host", host)
	}
	set("arch", machine())
	if dir, err := os.Getwd(); err == nil {
		set("wdir", dir)
	}
	set("thread_level", map[int]string{C.MPI_THREAD_SINGLE: "MPI_THREAD_SINGLE",
		C.MPI_THREAD_FUNNELED:   "MPI_THREAD_FUNNELED",
		C.MPI_THREAD_SERIALIZED: "MPI_THREAD_SERIALIZED",
		C.MPI_THREAD_MULTIPLE:   "MPI_THREAD_MULTIPLE"}[level])
	return in
}

// machine is the architecture as uname -m gives it.
func machine() string {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return ""
	}
	var b []byte
	for _, ch := range u.Machine {
		if ch == 0 {
			break
		}
		b = append(b, byte(ch))
	}
	return string(b)
}

func splitNUL(b []byte) []string {
	var out []string
	for start, k := 0, 0; k < len(b); k++ {
		if b[k] == 0 {
			out = append(out, string(b[start:k]))
			start = k + 1
		}
	}
	return out
}

// setCommand sets "command" and "argv".
func setCommand(in *info.Info, args []string) {
	if len(args) == 0 || args[0] == "" || len(args[0]) >= info.MaxValue {
		return
	}
	in.Merge(info.New("command", args[0]))
	argv := make([]byte, 0, info.MaxValue)
	for i, a := range args[1:] {
		if i > 0 {
			argv = append(argv, ' ')
		}
		// command lines may have megabytes
		if argv = append(argv, a[:min(len(a), info.MaxValue)]...); len(argv) >= info.MaxValue {
			argv = argv[:info.MaxValue-1]
			break
		}
	}
	in.Merge(info.New("argv", string(argv)))
}
