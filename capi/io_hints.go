package main

import (
	"runtime"
	"slices"
	"strconv"

	"libspx/core/info"
	"libspx/core/io"
)

// Hints of files (MPI-5.0, 15.2.8). Known keys with a sensible value are kept and given back;
// others are ignored.

const (
	defaultWindow = 4 << 20
	defaultPerm   = 0o666
)

// keptHints are the standard's keys that change nothing here, but are given back.
var keptHints = []string{"access_style", "chunked", "chunked_item", "chunked_size", "filename",
	"io_node_list", "nb_proc", "num_io_nodes", "striping_factor",
	"striping_unit", "cb_block_size"}

// setHints adopts the hints in in. Collective over the file, whose processes follow rank 0 in
// settings that must be alike.
func (f *fileObject) setHints(in *info.Info) error {
	if in == nil {
		in = info.New()
	}
	f.mu.Lock()
	f.keepHints(in)
	nodes, window, mode := f.number("cb_nodes", int64(min(f.peers().Size(), runtime.NumCPU()))),
		f.number("cb_buffer_size", defaultWindow), int64(io.CollectiveAuto)
	if v, ok := f.hints.Get("collective_buffering"); ok {
		mode = io.CollectiveNever
		if v == "true" {
			mode = io.CollectiveAlways
		}
	}
	alone := int64(0)
	if _, _, _, ok := f.view.Simple(); ok {
		alone = 1
	}
	f.mu.Unlock()
	all, err := io.GatherInts(f.peers(), nodes, window, mode, alone)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tune = io.Hints{Aggregators: int(all[0][0]), Window: all[0][1], Mode: int(all[0][2]),
		Locked: f.locked}
	f.alone = f.tune.Mode != io.CollectiveAlways &&
		!slices.ContainsFunc(all, func(x []int64) bool { return x[3] == 0 })
	if f.obj != nil {
		f.publish()
	}
	return nil
}

// keepHints adds the known keys of in to f.hints.
func (f *fileObject) keepHints(in *info.Info) {
	keepKinds(f.hints, in)
	for _, key := range keptHints {
		if v, ok := in.Get(key); ok {
			f.hints.Merge(info.New(key, v))
		}
	}
	for _, key := range []string{"cb_nodes", "cb_buffer_size"} {
		if v, ok := in.Get(key); ok && positive(v) {
			f.hints.Merge(info.New(key, v))
		}
	}
	if v, ok := in.Get("collective_buffering"); ok && (v == "true" || v == "false") {
		f.hints.Merge(info.New("collective_buffering", v))
	}
	if v, ok := in.Get("file_perm"); ok {
		if _, err := strconv.ParseUint(v, 8, 12); err == nil {
			f.hints.Merge(info.New("file_perm", v))
		}
	}
}

func positive(v string) bool {
	n, err := strconv.ParseInt(v, 10, 31)
	return err == nil && n > 0
}

// number returns the value of a key that is a number.
func (f *fileObject) number(key string, otherwise int64) int64 {
	if v, ok := f.hints.Get(key); ok {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	return otherwise
}

// permissions of a file that is created.
func (f *fileObject) permissions() uint32 {
	if v, ok := f.hints.Get("file_perm"); ok {
		if n, err := strconv.ParseUint(v, 8, 12); err == nil {
			return uint32(n)
		}
	}
	return defaultPerm
}

//spx:body MPI_File_set_info
func fileSetInfo(c *call) error {
	f := c.file()
	return f.onFile(f.setHints(c.info(1)))
}

//spx:body MPI_File_get_info
func fileGetInfo(c *call) error {
	f := c.file()
	f.mu.Lock()
	in := f.hints.Clone()
	mergeKinds(in, f.comm.c.session, f.hints)
	f.mu.Unlock()
	in.Merge(info.New("cb_nodes", strconv.Itoa(f.tune.Aggregators), "cb_buffer_size",
		strconv.FormatInt(f.tune.Window, 10), "filename", f.name))
	return f.onFile(c.setInfo(1, in))
}
