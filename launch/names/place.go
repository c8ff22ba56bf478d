package names

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Place is where a server is, and the key that admits to it, as its file says.
type Place struct {
	At   string // address and port
	Key  [32]byte
	File string // for messages
}

// fileWord begins the one line of the file.
const fileWord = "spx-names"

// mostFile is more than it has.
const mostFile = 512

// NewKey makes one.
func NewKey() (key [32]byte) {
	rand.Read(key[:])
	return key
}

// Parse reads the text of a file.
func Parse(text string) (p Place, err error) {
	f := strings.Fields(text)
	if len(f) != 3 || f[0] != fileWord {
		return p, errors.New("it is no file of a name service; spxctl names serve FILE makes one")
	}
	at, err := netip.ParseAddrPort(f[1])
	key, err2 := base64.RawURLEncoding.DecodeString(f[2])
	if err != nil || err2 != nil || len(key) != len(p.Key) {
		return p, errors.New(
			"it is damaged; spxctl names serve FILE makes another one when it is removed")
	}
	return Place{At: at.String(), Key: [32]byte(key)}, nil
}

func (p *Place) String() string {
	return fmt.Sprintf("%s %s %s\n", fileWord, p.At, base64.RawURLEncoding.EncodeToString(p.Key[:]))
}

// Encode is the place in the form in which processes tell it to their agents.
func (p *Place) Encode() string { return p.String() + p.File }

// Decode reads what Encode has made.
func Decode(text string) (*Place, error) {
	line, file, _ := strings.Cut(text, "\n")
	p, err := Parse(line)
	if err != nil {
		return nil, err
	}
	p.File = file
	return &p, nil
}

// Read reads a file. Other users must not be able to read it: who has the key publishes and finds
// names, and the names of ports admit to jobs.
func Read(file string) (*Place, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s is no regular file", file)
	case int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s belongs to another user (%d)", file, st.Uid)
	case st.Mode&0o077 != 0:
		return nil, fmt.Errorf(
			"%s can be read or changed by others than its owner (mode %#o): chmod 600", file,
			st.Mode&0o777)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p.File = file
	return &p, nil
}

// Write writes the file, at once for who reads it.
func (p *Place) Write(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".spx-names-") // readable by its owner alone
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has its name then
	_, err = f.WriteString(p.String())
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return err
}
