package posix

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"libspx/core/io"
	"libspx/core/mpierr"
)

func open(t *testing.T, name string, mode int) *File {
	t.Helper()
	f, err := Open(name, mode, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestReadWriteAndSizes(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "f"), io.ReadWrite|io.Create)
	if err := f.WriteAt([]byte("hello"), 3); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 20)
	if n, err := f.ReadAt(p, 2); n != 6 || err != nil || string(p[:n]) != "\x00hello" {
		t.Errorf("%d bytes, %q: %v", n, p, err)
	}
	if n, err := f.ReadAt(p, 100); n != 0 || err != nil {
		t.Errorf("behind the end: %d bytes, %v", n, err)
	}
	for _, step := range []struct {
		do   func(int64) error
		arg  int64
		want int64
	}{{f.SetSize, 4, 4}, {f.Preallocate, 5000, 5000}, {f.Preallocate, 10, 5000}} {
		if err := step.do(step.arg); err != nil {
			t.Error(err)
		}
		if n, err := f.Size(); n != step.want || err != nil {
			t.Errorf("size is %d, not %d: %v", n, step.want, err)
		}
	}
	if n, _ := f.ReadAt(p[:1], 3); n != 1 || p[0] != 'h' {
		t.Error("MPI_File_preallocate has changed what was there")
	}
	if err := f.Sync(); err != nil {
		t.Error(err)
	}
}

// What rank 0 has created is opened; where it is not to be seen, the error says why that is odd. None of the file systems here keeps parts of
// files for a host.
func TestOpenCreated(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if _, err := OpenCreated(name, io.ReadWrite); mpierr.ClassOf(err) != mpierr.NoSuchFile || !strings.Contains(err.Error(), "rank 0 has created it") {
		t.Errorf("a file that is not there: %v", err)
	}
	open(t, name, io.ReadWrite|io.Create)
	f, err := OpenCreated(name, io.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.IsKept() {
		t.Error("the file system of temporary files is taken for one of several hosts")
	}
	f.kept = true // then its size is asked for in another way
	if err := f.SetSize(5); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Size(); n != 5 || err != nil {
		t.Errorf("size %d: %v", n, err)
	}
}

func TestErrorsHaveClasses(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	open(t, there, io.ReadWrite|io.Create)
	for _, test := range []struct {
		name string
		mode int
		want mpierr.Class
	}{
		{filepath.Join(dir, "none"), io.ReadOnly, mpierr.NoSuchFile},
		{there, io.ReadWrite | io.Create | io.Excl, mpierr.FileExists},
		{dir, io.ReadWrite, mpierr.BadFile},
		{filepath.Join(there, "below"), io.ReadOnly, mpierr.BadFile},
	} {
		if _, err := Open(test.name, test.mode, 0o600); mpierr.ClassOf(err) != test.want {
			t.Errorf("%s: %v, not class %d", test.name, err, test.want)
		}
	}
	if err := Delete(dir); mpierr.ClassOf(err) != mpierr.BadFile {
		t.Errorf("deleting a folder: %v", err)
	}
	for no, want := range map[syscall.Errno]mpierr.Class{
		syscall.EACCES: mpierr.Access, syscall.EROFS: mpierr.ReadOnly, syscall.ENOSPC: mpierr.NoSpace, syscall.EDQUOT: mpierr.Quota,
		syscall.EIO: mpierr.IO, syscall.EBADF: mpierr.File, syscall.EBUSY: mpierr.FileInUse, syscall.EFAULT: mpierr.Buffer,
	} {
		if got := Class(no); got != want {
			t.Errorf("%v has class %d, not %d", no, got, want)
		}
	}
}

// Two open files exclude each other, and goroutines that share one too.
func TestLocksExclude(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	a := open(t, name, io.ReadWrite|io.Create)
	for _, b := range []*File{a, open(t, name, io.ReadWrite)} {
		unlock, err := a.Lock(10, 20, true)
		if err != nil {
			t.Fatal(err)
		}
		var held atomic.Bool // guarded by the lock, of which the race detector does not know
		held.Store(true)
		done := make(chan bool)
		go func() {
			free, err := b.Lock(15, 16, false)
			if err != nil {
				t.Error(err)
			}
			done <- held.Load()
			free()
		}()
		held.Store(false)
		unlock()
		if <-done {
			t.Error("the lock was given away while it was held")
		}
	}
}
