// Package posix is the backend of MPI-IO (MPI-5.0, chapter 15) for the files of a POSIX system: one descriptor a process, pread
// and pwrite, and locks that belong to the open file. It owns the translation of system errors to MPI error classes, and must
// know neither views nor other processes.
package posix

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"libspx/core/io"
	"libspx/core/mpierr"
)

// File is an open file, an io.Backend.
type File struct {
	name string
	fd   int
	kept bool // IsKept
	// mu keeps goroutines of this process apart: locks belong to the open file, and do not do it.
	mu sync.Mutex

	mapping sync.Once
	mapFd   int // descriptor for mappings once mapping is done: fd itself, another one, or -1
}

// Open opens a file with the flags of MPI_File_open (core/io) and, for a new file, these permissions, from which the process's
// umask is taken.
func Open(name string, mode int, perm uint32) (*File, error) {
	flags := syscall.O_CLOEXEC
	switch {
	case mode&io.ReadWrite != 0:
		flags |= syscall.O_RDWR
	case mode&io.WriteOnly != 0:
		flags |= syscall.O_WRONLY
	}
	if mode&io.Create != 0 {
		flags |= syscall.O_CREAT
	}
	if mode&io.Excl != 0 {
		flags |= syscall.O_EXCL
	}
	fd, err := retry(func() (int, error) { return syscall.Open(name, flags, perm) })
	if err != nil {
		return nil, Error("open", name, err)
	}
	var st syscall.Statfs_t
	return &File{name: name, fd: fd, kept: syscall.Fstatfs(fd, &st) == nil && kept[int64(st.Type)]}, nil
}

// OpenCreated opens a file that a process of another host may just have created: a host may remember for a minute that there was none, until it
// looks at the folder again.
func OpenCreated(name string, mode int) (*File, error) {
	f, err := Open(name, mode, 0)
	if mpierr.ClassOf(err) != mpierr.NoSuchFile {
		return f, err
	}
	if dir, no := syscall.Open(filepath.Dir(name), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); no == nil {
		_ = syscall.Close(dir) // opened to be looked at
	}
	f, err = Open(name, mode, 0)
	if mpierr.ClassOf(err) == mpierr.NoSuchFile {
		err = mpierr.New(mpierr.NoSuchFile, "%v, though rank 0 has created it: its folder is not the same one here", err)
	}
	return f, err
}

// Delete removes a file.
func Delete(name string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(name, &st); err != nil {
		return Error("delete", name, err)
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return Error("delete", name, syscall.EISDIR)
	}
	if err := syscall.Unlink(name); err != nil {
		return Error("delete", name, err)
	}
	return nil
}

// retry calls f again while it is interrupted by signals.
func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// Error is a system error with its MPI class (MPI-5.0, 15.8), and what was done to which file.
func Error(what, name string, err error) error {
	var no syscall.Errno
	errors.As(err, &no)
	return mpierr.New(Class(no), "%s of file \"%s\" failed: %v", what, name, err)
}

// Class returns the MPI error class of a system error.
func Class(no syscall.Errno) mpierr.Class {
	switch no {
	case syscall.ENOENT:
		return mpierr.NoSuchFile
	case syscall.EEXIST:
		return mpierr.FileExists
	case syscall.EACCES, syscall.EPERM:
		return mpierr.Access
	case syscall.EROFS:
		return mpierr.ReadOnly
	case syscall.ENOSPC:
		return mpierr.NoSpace
	case syscall.EDQUOT:
		return mpierr.Quota
	case syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO:
		return mpierr.BadFile
	case syscall.EBUSY, syscall.ETXTBSY:
		return mpierr.FileInUse
	case syscall.EFAULT:
		return mpierr.Buffer
	case syscall.EBADF:
		return mpierr.File
	case syscall.EOPNOTSUPP, syscall.ENOSYS:
		return mpierr.UnsupportedOperation
	case syscall.ENOMEM:
		return mpierr.NoMem
	}
	return mpierr.IO
}

// ReadAt reads until p is full or the file ends.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := retry(func() (int, error) { return syscall.Pread(f.fd, p[done:], off+int64(done)) })
		if err != nil {
			return done, Error("read", f.name, err)
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}

// WriteAt writes all of p.
func (f *File) WriteAt(p []byte, off int64) error {
	for len(p) > 0 {
		n, err := retry(func() (int, error) { return syscall.Pwrite(f.fd, p, off) })
		if err != nil {
			return Error("write", f.name, err)
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// The file systems of several hosts, each of which keeps parts of a file, and its length, without being told of what the others write.
var kept = map[int64]bool{unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true}

// IsKept reports whether the file's hosts keep parts of it: then Lock makes them see what others have written.
func (f *File) IsKept() bool { return f.kept }

// Size returns the length of the file; that of a device is where its end can be sought to.
func (f *File) Size() (int64, error) {
	if f.kept {
		var now unix.Statx_t // asks the server
		if unix.Statx(f.fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC, unix.STATX_SIZE, &now) == nil {
			return int64(now.Size), nil
		}
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(f.fd, &st); err != nil {
		return 0, Error("fstat", f.name, err)
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFBLK {
		n, err := syscall.Seek(f.fd, 0, 2)
		if err != nil {
			return 0, Error("lseek", f.name, err)
		}
		return n, nil
	}
	return st.Size, nil
}

// SetSize cuts or extends the file.
func (f *File) SetSize(n int64) error {
	if _, err := retry(func() (int, error) { return 0, syscall.Ftruncate(f.fd, n) }); err != nil {
		return Error("ftruncate", f.name, err)
	}
	return nil
}

// Preallocate asks the file system for room; if that cannot do it, the file is made longer by writing zeros.
func (f *File) Preallocate(n int64) error {
	if n == 0 {
		return nil
	}
	_, err := retry(func() (int, error) { return 0, syscall.Fallocate(f.fd, 0, 0, n) })
	if err == nil {
		return nil
	}
	if err != syscall.EOPNOTSUPP && err != syscall.ENOSYS {
		return Error("fallocate", f.name, err)
	}
	size, sizeErr := f.Size()
	if sizeErr != nil {
		return sizeErr
	}
	zeros := make([]byte, 1<<20)
	for size < n {
		k := min(n-size, int64(len(zeros)))
		if err := f.WriteAt(zeros[:k], size); err != nil {
			return err
		}
		size += k
	}
	return nil
}

// Sync waits until the device has what was written. Files that know no such thing, as pipes, are in sync.
func (f *File) Sync() error {
	_, err := retry(func() (int, error) { return 0, syscall.Fsync(f.fd) })
	if err != nil && err != syscall.EINVAL && err != syscall.EROFS {
		return Error("fsync", f.name, err)
	}
	return nil
}

// Lock waits for a lock of the open file. A file system without locks gives an error.
func (f *File) Lock(from, to int64, exclusive bool) (func(), error) {
	kind := int16(syscall.F_RDLCK)
	if exclusive {
		kind = syscall.F_WRLCK
	}
	f.mu.Lock()
	set := func(kind int16) error {
		l := unix.Flock_t{Type: kind, Start: from, Len: to - from}
		_, err := retry(func() (int, error) {
			return 0, unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLKW, &l)
		})
		return err
	}
	if err := set(kind); err != nil {
		f.mu.Unlock()
		return nil, Error("lock", f.name, err)
	}
	return func() {
		_ = set(syscall.F_UNLCK) // can only fail for a descriptor that is no more
		f.mu.Unlock()
	}, nil
}

// Descriptor is the file's descriptor in this process.
func (f *File) Descriptor() int { return f.fd }

// Close gives the descriptors back.
func (f *File) Close() error {
	f.mapping.Do(func() { f.mapFd = -1 })
	if f.mapFd >= 0 && f.mapFd != f.fd {
		_ = syscall.Close(f.mapFd) // what was stored is the file's already
	}
	if err := syscall.Close(f.fd); err != nil && err != syscall.EINTR {
		return Error("close", f.name, err)
	}
	return nil
}
