package agent

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/job"
	"libspx/launch/process"
)

// --cores DIR: what ranks leave that die of a signal. The kernel writes a core file where
// kernel.core_pattern says; it is found by that and by the pid in it, taken into DIR on the rank's
// host, and gdb is asked for the stacks. A pattern that hands cores to a program leaves nothing to
// collect.

const (
	mostCores   = 8                // of a host: a job of many ranks dies of one cause
	stackLimit  = 30 * time.Second // for gdb
	stackFrames = 12               // that are printed
	patternFile = "/proc/sys/kernel/core_pattern"
)

type cores struct {
	dir     string // empty: they are not wanted, or not to be had
	pattern string
	taken   int
	left    int // more than mostCores
	working sync.WaitGroup
}

// begin prepares this host, and says why when nothing can be collected.
func (c *cores) begin(a *agent) error {
	if a.spec.Cores == "" {
		return nil
	}
	text, err := os.ReadFile(patternFile)
	c.pattern = strings.TrimSpace(string(text))
	program, piped := strings.CutPrefix(c.pattern, "|")
	var limit unix.Rlimit
	switch {
	case err != nil:
		a.sayOnce(fmt.Sprintf("--cores: %v", err), fmt.Sprintf("--cores: host %s: %v", a.host, err))
		return nil
	case piped:
		program, _, _ = strings.Cut(strings.TrimSpace(program), " ")
		a.sayOnce("--cores: core files are handed to "+program,
			fmt.Sprintf(
				"--cores: host %s hands core files to %s (%s); they cannot be collected: ask "+
					"that program, as by coredumpctl, or have the administrator set "+
					"kernel.core_pattern to a file name", a.host, program, patternFile))
		return nil
	case c.pattern == "":
		a.sayOnce("--cores: no core files are written",
			fmt.Sprintf("--cores: host %s writes no core files: %s is empty", a.host, patternFile))
		return nil
	}
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		if limit.Max == 0 {
			a.sayOnce("--cores: core files may have no byte",
				fmt.Sprintf(
					"--cores: host %s: core files may have no byte there (ulimit -H -c is 0): "+
						"have the administrator raise it", a.host))
			return nil
		}
		limit.Cur = limit.Max
		// up to the hard limit it may be set
		unix.Setrlimit(unix.RLIMIT_CORE, &limit) //nolint:errcheck
	}
	dir, err := filepath.Abs(a.spec.Cores)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return fmt.Errorf("--cores: %w", err)
	}
	c.dir = dir
	return nil
}

// died takes the core file of a process that has ended: what it was for is over, but another one
// may be about to write a file of the same name.
func (c *cores) died(a *agent, i int, w job.Wait) {
	if c.dir == "" || !w.Core {
		return
	}
	if c.taken == mostCores {
		c.left++
		return
	}
	c.taken++
	r := &a.ranks[i]
	dir, file := a.spec.Dir, ""
	if dir == "" {
		dir, _ = os.Getwd() //nolint:errcheck // it is only looked for there
	}
	name := "rank " + strconv.Itoa(i)
	if r.program < len(a.spec.Programs) && !r.spawned {
		p := &a.spec.Programs[r.program]
		if filepath.IsAbs(p.Dir) {
			dir = p.Dir
		} else {
			dir = filepath.Join(dir, p.Dir)
		}
		name = "rank " + a.tagOf(r.program, i, r.in)
	}
	// a pattern that is none has no files
	candidates, _ := filepath.Glob(corePattern(c.pattern, dir, r.pid)) //nolint:errcheck
	for _, f := range candidates {
		if pidOfCore(f) == r.pid {
			file = f
		}
	}
	if file == "" {
		a.say(fmt.Sprintf(
			"--cores: %s has left a core file, but none is found as %s: has it changed its "+
				"directory, or another process written over it (kernel.core_uses_pid)?", name,
			corePattern(c.pattern, dir, r.pid)))
		return
	}
	mine := fmt.Sprintf("%s.spx-%d", file, r.pid)
	if err := os.Rename(file, mine); err != nil {
		a.say(fmt.Sprintf("--cores: %s: %v", name, err))
		return
	}
	to := filepath.Join(c.dir, fmt.Sprintf("core.%d.%s.%d", i, a.host, r.pid))
	c.working.Go(func() { a.say(name + c.keep(mine, to)) })
}

// keep moves a core file to its place, and writes the stacks beside it. It says what has come of
// it.
func (c *cores) keep(from, to string) string {
	if err := move(from, to); err != nil {
		return fmt.Sprintf(": its core file stays as %s: %v%s", from, err, process.Advice(err))
	}
	said := ": core file " + to
	stacks, err := stacksOf(to)
	if err != nil {
		return said + "; no stack: " + err.Error()
	}
	if err := os.WriteFile(to+".txt", stacks, 0o666); err != nil {
		return said + "; no stack: " + err.Error()
	}
	said += ", stacks of all threads in " + to + ".txt"
	for n, line := range firstStack(string(stacks)) {
		if n == stackFrames {
			break
		}
		said += "\n  " + line
	}
	return said
}

// end waits for what is still being done.
func (c *cores) end(a *agent) {
	c.working.Wait()
	if c.left > 0 {
		a.say(fmt.Sprintf(
			"--cores: %d more core files on host %s were left where they are: %d are taken", c.left,
			a.host, mostCores))
	}
}

// corePattern is the pattern of files that the kernel's pattern stands for: %p is the pid, what
// else it puts in is not known any more.
func corePattern(pattern, dir string, pid int) string {
	var b strings.Builder
	usesPid := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c != '%':
			if strings.ContainsRune(`*?[\`, rune(c)) {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case i+1 == len(pattern): // the kernel leaves it out
		default:
			i++
			switch pattern[i] {
			case '%':
				b.WriteByte('%')
			case 'p', 'P':
				b.WriteString(strconv.Itoa(pid))
				usesPid = true
			default:
				b.WriteByte('*')
			}
		}
	}
	file := b.String()
	if text, err := os.ReadFile("/proc/sys/kernel/core_uses_pid"); err == nil &&
		strings.TrimSpace(string(text)) != "0" && !usesPid {
		file += "." + strconv.Itoa(pid)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return file
}

// Kinds of notes in a core file.
const (
	notePrpsinfo = 3
	noteFile     = 0x46494c45
)

// notesOf are the notes of a core file that the kernel has written, the first of each kind; nil: it
// is none.
func notesOf(path string) map[uint32][]byte {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	out := map[uint32][]byte{}
	for _, p := range f.Progs {
		if f.Type != elf.ET_CORE || p.Type != elf.PT_NOTE || p.Filesz > 64<<20 {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
			return nil
		}
		for len(b) >= 12 {
			name, desc, kind := int64(f.ByteOrder.Uint32(b)), int64(f.ByteOrder.Uint32(b[4:])),
				f.ByteOrder.Uint32(b[8:])
			at := 12 + (name+3)&^3
			if at+desc > int64(len(b)) {
				break
			}
			if _, known := out[kind]; !known && bytes.HasPrefix(b[12:], []byte("CORE")) {
				out[kind] = b[at : at+desc]
			}
			b = b[min(int64(len(b)), at+(desc+3)&^3):]
		}
	}
	return out
}

// pidOfCore is the process that a core file is of; 0: it is none.
func pidOfCore(path string) int {
	const at = 24 // pr_pid, on 64-bit systems
	if b := notesOf(path)[notePrpsinfo]; len(b) >= at+4 {
		return int(binary.NativeEndian.Uint32(b[at:]))
	}
	return 0
}

// programOfCore is the file of the program: the first that the process had mapped.
func programOfCore(path string) string {
	b := notesOf(path)[noteFile]
	if len(b) < 16 {
		return ""
	}
	if n := binary.NativeEndian.Uint64(b); n > 0 && n < uint64(len(b))/24 {
		name, _, _ := strings.Cut(string(b[16+24*n:]), "\x00")
		return name
	}
	return ""
}

// move renames a file, or copies it to another file system.
func move(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(to)
		return err
	}
	return os.Remove(from)
}

// stacksOf asks gdb for the stacks of all threads.
func stacksOf(core string) ([]byte, error) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		return nil, fmt.Errorf("gdb is not in PATH")
	}
	ctx, cancel := context.WithTimeout(context.Background(), stackLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, gdb, "-q", "-nx", "-batch", "-iex",
		"set debuginfod enabled off", "-ex", "bt", "-ex", "echo \\n", "-ex", "thread apply all bt",
		"-core", core)
	if exe := programOfCore(core); exe != "" {
		cmd.Args = append(cmd.Args, exe)
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("gdb has not finished within %v", stackLimit)
	}
	if !strings.Contains(string(out), "#0") {
		return nil, fmt.Errorf("gdb: %v", err)
	}
	return out, nil
}

// firstStack are the lines of the first stack: of the thread that has died.
func firstStack(text string) (list []string) {
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#0 "): // gdb shows it once more, before all others
			list = []string{line}
		case strings.HasPrefix(line, "#"):
			list = append(list, line)
		case len(list) > 0 && strings.TrimSpace(line) == "":
			return list
		}
	}
	return list
}
