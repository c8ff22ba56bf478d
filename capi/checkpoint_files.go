package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"libspx/ckpt"
	"libspx/core/mpierr"
)

// checkpointFiles are those of a checkpoint object's directory that begin with its name.
type checkpointFiles struct{ dir, name string }

// ckptError gives an error of the file system its class.
func ckptError(err error) error {
	class := mpierr.IO
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT):
		class = mpierr.NoSuchFile
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) ||
		errors.Is(err, syscall.EISDIR):
		class = mpierr.Access
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG):
		class = mpierr.BadFile
	case errors.Is(err, syscall.ENOSPC):
		class = mpierr.NoSpace
	case errors.Is(err, syscall.EDQUOT):
		class = mpierr.Quota
	case errors.Is(err, syscall.EROFS):
		class = mpierr.ReadOnly
	}
	return mpierr.New(class, "%v", err)
}

func (f checkpointFiles) path(i ckpt.Item) string {
	return filepath.Join(f.dir, ckpt.FileName(f.name, i))
}

func (f checkpointFiles) Scan(index, sharers int) ([]ckpt.Item, error) {
	if err := os.Mkdir(f.dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, ckptError(err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, ckptError(err)
	}
	var found []ckpt.Item
	for _, e := range entries {
		i, temporary, ok := ckpt.ParseName(f.name, e.Name())
		if !ok || int(i.Rank)%sharers != index {
			continue
		}
		path := filepath.Join(f.dir, e.Name())
		if temporary {
			os.Remove(path)
		} else if ckptHeadFits(path, i) {
			found = append(found, i)
		}
	}
	return found, nil
}

// ckptHeadFits reports whether the file has the right length and its head agrees with its name. Its
// data are checked when they are needed.
func ckptHeadFits(path string, want ckpt.Item) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	head := make([]byte, ckpt.HeadBytes)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	got, err := ckpt.Head(head, st.Size())
	return err == nil && got == want
}

// ckptWriting is a part that is being written.
type ckptWriting struct {
	done chan struct{} // closed when it is over
	err  error         // valid then
}

func (f checkpointFiles) Write(i ckpt.Item, part []byte) ckpt.Pending {
	w := &ckptWriting{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = ckptPut(f.dir, f.path(i), part)
	}()
	return w
}

// Wait waits until the file is on the device, whole, under its name. Messages go on meanwhile.
func (w *ckptWriting) Wait() error {
	select {
	case <-w.done:
		return w.err
	default:
	}
	left := make(chan struct{})
	meanwhile(func() {
		select {
		case <-w.done:
		case <-left:
		}
	}, func() { close(left) })
	return w.err
}

func (w *ckptWriting) Abandon(over func()) {
	go func() {
		<-w.done
		over()
	}()
}

func ckptPut(dir, path string, part []byte) error {
	temporary := path + ckpt.Temporary
	err := ckptStore(temporary, part)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = ckptSyncDir(dir)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return ckptError(err)
}

func ckptStore(path string, part []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(part)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func ckptSyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return err
	}
	return nil
}

// Read reads a whole part.
func (f checkpointFiles) Read(want ckpt.Item) ([]byte, error) {
	path := f.path(want)
	file, err := os.Open(path)
	if err != nil {
		return nil, ckptError(err)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, ckptError(err)
	}
	part := checkpointHeap{}.Alloc(st.Size() + 1)
	if part == nil {
		return nil, mpierr.New(mpierr.NoMem, "no memory for %d bytes of %s", st.Size(), path)
	}
	part = part[:st.Size()]
	_, err = io.ReadFull(file, part)
	if err == nil {
		err = ckptIs(part, want)
	}
	if err != nil {
		checkpointHeap{}.Free(part)
		return nil, mpierr.New(mpierr.IO, "%s: %v", path, err)
	}
	return part, nil
}

// ckptIs is why the part is not the one that is wanted.
func ckptIs(part []byte, want ckpt.Item) error {
	got, _, err := ckpt.Parse(part)
	if err == nil && ckpt.FileName("", got) != ckpt.FileName("", want) {
		err = errors.New("it is another part than its name says")
	}
	return err
}

func (f checkpointFiles) Remove(i ckpt.Item) { os.Remove(f.path(i)) }

func (f checkpointFiles) Unusable(rank int, text string) {
	sayOnce(text, text, fmt.Sprintf("rank %d: %s", rank, text))
}
