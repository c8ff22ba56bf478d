package posix

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mappings of a file, to store many short pieces of data at once. Storing touches nothing but the bytes that are stored, so others
// may write between them at the same time, which a read, a change and a write of the whole would undo.

// The file systems whose mappings show at once what is written otherwise, and are shown at once in what is read otherwise: those of
// this host alone.
var local = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true,
}

// writable returns a descriptor of the file that can be mapped for writing, which needs permission to read: -1 if there is none.
func (f *File) writable() int {
	f.mapping.Do(func() {
		f.mapFd = -1
		var st syscall.Statfs_t
		var file syscall.Stat_t
		if syscall.Fstatfs(f.fd, &st) != nil || !local[int64(st.Type)] || syscall.Fstat(f.fd, &file) != nil || file.Mode&syscall.S_IFMT != syscall.S_IFREG {
			return
		}
		flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFL, 0)
		if err != nil {
			return
		}
		if flags&syscall.O_ACCMODE == syscall.O_RDWR {
			f.mapFd = f.fd
		} else if fd, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", f.fd), syscall.O_RDWR|syscall.O_CLOEXEC, 0); err == nil {
			f.mapFd = fd
		}
	})
	return f.mapFd
}

// Map maps bytes [from, to). Room on the device is taken before anything is stored, so that a full device is no signal: then, and where
// there are no mappings, nil is returned, and writing will say what is wrong.
func (f *File) Map(from, to int64) ([]byte, func()) {
	fd := f.writable()
	if fd < 0 || from >= to {
		return nil, nil
	}
	if size, err := f.Size(); err != nil {
		return nil, nil
	} else if to > size {
		// Not cut or set: others may make it longer still at the same time.
		if _, err := retry(func() (int, error) { return 0, syscall.Fallocate(fd, 0, from, to-from) }); err != nil {
			return nil, nil
		}
	}
	begin := from &^ int64(syscall.Getpagesize()-1)
	p, err := unix.Mmap(fd, begin, int(to-begin), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil
	}
	unmap := func() { _ = unix.Munmap(p) } // can only fail for what is not mapped
	if unix.Madvise(p, unix.MADV_POPULATE_WRITE) != nil {
		unmap()
		return nil, nil
	}
	return p[from-begin:], unmap
}
