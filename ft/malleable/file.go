package malleable

import (
	"bytes"
	"errors"
	"fmt"
)

// The command file is read by rank 0 alone. What was written before rank 0 began is no command.
// When commands are done, the number of processes is written into it.

const (
	lookEvery = 2 * millisecond // between polls of the file
	// for which a last line without its end is taken for one that is being written
	unfinished = 50 * millisecond
	// a file that was changed so lately may be changed again without another time
	sameTick = 100 * millisecond
)

// Stamp distinguishes versions of the command file.
type Stamp struct {
	Modified uint64 // when it was changed, ns
	File     uint64 // which file, and its size
	Content  uint64 // a hash
}

// FileState is the status of a file (stat).
type FileState struct {
	Regular  bool
	Modified int64 // ns since 1970
	Inode    uint64
	Size     int64
	// since it was changed; long if that is in the future, by a clock that was set back or that of
	// another host
	Age Duration
}

func (s FileState) stamp() Stamp {
	return Stamp{Modified: uint64(s.Modified), File: s.Inode*0x10001 + uint64(s.Size)}
}

// Disk has the command file.
type Disk interface {
	Name() string
	// Stat reads the status of the file without opening it.
	Stat() (FileState, error)
	// Open opens it, for writing as well if write is set. missing: there is none.
	Open(write bool) (f OpenFile, missing bool, err error)
}

// OpenFile is the command file, open.
type OpenFile interface {
	Stat() (FileState, error)
	// Read returns its first bytes, max at most.
	Read(max int) ([]byte, error)
	// Write writes at its beginning, and cuts it off at size bytes, unless that is 0.
	Write(text string, size int64) error
	Close()
}

// content is what was read.
type content struct {
	stamp Stamp
	age   Duration
	text  []byte // more than TextMax bytes: the file is longer
}

// readFile reads an open file; nil: it cannot be read, or is being written (with the earlier time,
// the same commands would count as new ones a moment later).
func readFile(f OpenFile) *content {
	before, err := f.Stat()
	if err != nil || !before.Regular {
		return nil
	}
	text, err := f.Read(TextMax + 1)
	if err != nil {
		return nil
	}
	after, err := f.Stat()
	if err != nil || after.stamp() != before.stamp() || len(text) <= TextMax &&
		int64(len(text)) != after.Size {
		return nil
	}
	c := &content{stamp: after.stamp(), age: after.Age, text: text}
	c.stamp.Content = hash(text)
	return c
}

// fresh returns what stands in the command file, if it is not what was seen there last, else nil.
func (m *Machine) fresh() *content {
	seen, err := m.disk.Stat()
	last := m.order.Stamp
	last.Content = 0
	if err != nil || m.settled && seen.stamp() == last {
		return nil
	}
	f, _, err := m.disk.Open(false)
	if err != nil {
		return nil
	}
	defer f.Close()
	c := readFile(f)
	m.settled = c != nil && c.age > sameTick
	if c == nil || c.stamp == m.order.Stamp {
		return nil
	}
	return c
}

// look takes the next commands from the file, if there are any and no command is being executed.
func (m *Machine) look() {
	now := m.shell.Now()
	if m.order.Source != None || now-m.looked < lookEvery {
		return
	}
	m.looked = now
	if text, number, ok := m.shell.Mail(m.order.Number); ok {
		m.order.Number = number
		m.take(Commands(text), FromAgent)
		return
	}
	c := m.fresh()
	switch {
	case c == nil:
		if m.order.Unanswered != 0 { // the former rank 0 has died on the way
			m.writeBack()
		}
		return
	case len(c.text) == 0: // it is being written
		return
	case len(c.text) <= TextMax && c.text[len(c.text)-1] != '\n' && c.age < unfinished:
		return
	}
	m.order.Stamp = c.stamp
	m.takeFrom(c)
}

// takeFrom takes the commands of the file.
func (m *Machine) takeFrom(c *content) {
	switch {
	case len(c.text) > TextMax:
		m.take("", FromFile)
		m.order.refuse(fmt.Errorf("the command file has more than %d bytes", TextMax))
	case bytes.IndexByte(c.text, 0) >= 0:
		m.take("", FromFile)
		m.order.refuse(errors.New("the command file is no text"))
	default:
		m.take(Commands(BehindAnswer(string(c.text))), FromFile)
	}
	m.order.Unanswered = 1
	if m.order.Text == "" && m.order.Refused == "" { // nothing but comments
		m.order.Source, m.order.Unanswered = None, 0
	}
}

func (m *Machine) take(commands string, source Source) {
	m.order.take(commands, source, m.size())
	m.seconds = 0
}

// writeBack writes the outcome of the commands into the file, unless it contains new commands by
// now.
func (m *Machine) writeBack() {
	m.order.Unanswered = 0
	f, missing, err := m.disk.Open(true)
	if err == nil {
		defer f.Close()
		if c := readFile(f); c != nil && c.stamp == m.order.Stamp {
			err = m.answer(f, len(c.text))
		}
	}
	if err != nil && !missing {
		err = fmt.Errorf("%s cannot be written: %w", m.disk.Name(), err)
		m.shell.Say(err.Error())
	}
}

// answer writes the answer at once, with blank lines up to the end of what was there: its reader
// may write the next command.
func (m *Machine) answer(f OpenFile, former int) error {
	text := Answer(m.size(), m.seconds, m.order.Refused, former)
	cut := int64(0)
	if former > TextMax {
		cut = TextMax
	}
	err := f.Write(text, cut)
	m.settled = false // what is read there from now on is a command, unless it is this
	if st, failed := f.Stat(); failed == nil {
		m.order.Stamp = st.stamp()
	}
	m.order.Stamp.Content = hash([]byte(text))
	return err
}

// passOver marks what stands in the file as seen, if it is older than this process: it is no
// command.
func (m *Machine) passOver() {
	f, _, err := m.disk.Open(false)
	if err != nil {
		return
	}
	defer f.Close()
	if c := readFile(f); c != nil && c.age > m.shell.Age() {
		m.order.Stamp = c.stamp
	}
}
