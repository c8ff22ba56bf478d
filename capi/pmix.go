package main

/*
#include <stdlib.h>
#include "pmix.h"
*/
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"
)

// pmixJob is the pmi.Launcher that speaks PMIx.
type pmixJob struct {
	rank, size uint32
	name       string
	appnum     int
	near       []int
}

// pmixRoom is more than any requested value has: an offer, a list of ranks of a host.
const pmixRoom = 1 << 20

// findPMIx is nil where no PMIx server has started this process.
func findPMIx() (*pmixJob, error) {
	if getenv("PMIX_RANK") == "" || getenv("PMIX_NAMESPACE") == "" {
		return nil, nil
	}
	p := &pmixJob{appnum: -1}
	var name [C.SPX_PMIX_NAME]C.char
	if code := C.spx_pmix_begin(&name[0], (*C.uint32_t)(&p.rank)); code != 0 {
		hint := "; a program that a process of the job starts is not in the job: unset " +
			"PMIX_RANK in its environment to run it alone"
		if code == C.SPX_PMIX_NO_LIBRARY {
			hint = "; install the PMIx library (Debian: libpmix2) or name its folder in " +
				"LD_LIBRARY_PATH, or start the program with spxrun"
		}
		return nil, fmt.Errorf(
			"a launcher that speaks PMIx has started this process (PMIX_RANK=%s), but cannot be "+
				"talked with: %s%s", getenv("PMIX_RANK"), C.GoString(C.spx_pmix_why(code)), hint)
	}
	p.name = C.GoString(&name[0])
	var size, appnum C.uint32_t
	if err := pmixError("its number of processes",
		C.spx_pmix_number(C.SPX_PMIX_ALL, pmixKey("pmix.job.size"), &size)); err != nil {
		p.Close()
		return nil, err
	}
	p.size = uint32(size)
	if C.spx_pmix_number(C.uint32_t(p.rank), pmixKey("pmix.appnum"), &appnum) == 0 {
		p.appnum = int(appnum)
	}
	if text, err := pmixText(C.SPX_PMIX_ALL, "pmix.lpeers"); err == nil {
		p.near = rankList(text)
	}
	return p, nil
}

// rankList parses a server's list of the ranks of a host: 0,1,4. Nil if it is something else.
func rankList(text string) (list []int) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return nil
		}
		list = append(list, n)
	}
	return list
}

var pmixKeys = map[string]*C.char{}

// pmixKey is a key in C memory, which stays: there are few.
func pmixKey(key string) *C.char {
	if pmixKeys[key] == nil {
		pmixKeys[key] = C.CString(key)
	}
	return pmixKeys[key]
}

func pmixError(what string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("the PMIx server of this job: %s: %s (%d)", what,
		C.GoString(C.spx_pmix_why(code)), code)
}

func pmixText(rank C.uint32_t, key string) (string, error) {
	room := (*C.char)(C.malloc(pmixRoom))
	defer C.free(unsafe.Pointer(room))
	if err := pmixError(key, C.spx_pmix_text(rank, pmixKey(key), room, pmixRoom)); err != nil {
		return "", err
	}
	return C.GoString(room), nil
}

func (p *pmixJob) Place() (rank, size int) { return int(p.rank), int(p.size) }
func (p *pmixJob) Name() string            { return "PMIx " + p.name }
func (p *pmixJob) Appnum() int             { return p.appnum }
func (p *pmixJob) Near() []int             { return p.near }
func (p *pmixJob) Socket() int             { return -1 }
func (p *pmixJob) Close()                  { C.spx_pmix_end() }

func (p *pmixJob) Put(key string, data []byte) error {
	text := C.CString(string(data))
	defer C.free(unsafe.Pointer(text))
	return pmixError(key, C.spx_pmix_put(pmixKey(key), text))
}

func (p *pmixJob) Get(key string) ([]byte, error) {
	text, err := pmixText(0, key)
	return []byte(text), err
}

func (p *pmixJob) Barrier() error { return pmixError("fence", C.spx_pmix_fence()) }
