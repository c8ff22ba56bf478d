package malleable

import (
	"errors"
	"strings"
	"testing"

	"libspx/ft/agree"
)

const (
	microsecond = millisecond / 1000
	minute      = 60 * second
	hour        = 60 * minute
)

// site is a process that is alone, with a command file.
type site struct {
	text    []byte
	there   bool
	changed Duration
	clock   Duration
	torn    bool // the file is changed while it is read
	mail    string
	said    []string
	reports []string
}

func (s *site) Now() Duration   { return s.clock }
func (s *site) Age() Duration   { return second }
func (s *site) Say(line string) { s.said = append(s.said, line) }
func (s *site) Adopted(World)   {}
func (s *site) Spawn(World, int) (Inter, error) {
	return nil,
		errors.New("MPI_Comm_spawn: no room")
}
func (s *site) Yield()                               {}
func (s *site) Kill()                                {}
func (s *site) IsFailure(error) bool                 { return false }
func (s *site) Members(World, uint64) (uint64, bool) { return 0, true }
func (s *site) Report(_ uint64, text string)         { s.reports = append(s.reports, text) }
func (s *site) Mail(after uint64) (string, uint64, bool) {
	text := s.mail
	s.mail = ""
	return text, after + 1, text != ""
}

func (s *site) Name() string { return "commands" }
func (s *site) Stat() (FileState, error) {
	if !s.there {
		return FileState{}, errors.New("no such file")
	}
	return FileState{Regular: true, Modified: int64(s.changed), Inode: 7, Size: int64(len(s.text)),
		Age: s.clock - s.changed}, nil
}
func (s *site) Open(bool) (OpenFile, bool, error) {
	if !s.there {
		return nil, true, errors.New("no such file")
	}
	return s, false, nil
}
func (s *site) Close() {}
func (s *site) Read(most int) ([]byte, error) {
	text := append([]byte(nil), s.text[:min(most, len(s.text))]...)
	if s.torn {
		s.write(string(s.text) + "9")
	}
	return text, nil
}
func (s *site) Write(text string, size int64) error {
	s.write(text)
	return nil
}
func (s *site) write(text string) { s.text, s.there, s.changed = []byte(text), true, s.clock }

// lone is the world of one process.
type lone struct{}

func (lone) Rank() int { return 0 }
func (lone) Size() int { return 1 }
func (lone) Revoke()   {}
func (lone) Free()     {}
func (lone) Decide(flags uint32) (uint32, World, error) {
	if flags&agree.Calm == 0 {
		return flags, lone{}, nil
	}
	return flags, nil, nil
}
func (lone) Greatest(values []int64) ([]int64, error) { return values, nil }
func (lone) Bcast([]uint64) error                     { return nil }
func (lone) Split(bool) (World, error)                { return lone{}, nil }
func (lone) Left(int) bool                            { return true }

// after has the machine meet a while later.
func (s *site) after(t *testing.T, m *Machine, d Duration) {
	t.Helper()
	s.clock += d
	if step, err := m.Poll(); step == Leave || err != nil {
		t.Fatalf("a meeting: %v, %v", step, err)
	}
}

func begun(text string) (*site, *Machine) {
	s := &site{clock: hour}
	if text != "" {
		s.write(text)
		s.changed -= minute
	}
	m := New(s, s)
	m.Start(lone{})
	return s, m
}

func TestCommandFile(t *testing.T) {
	s, m := begun("5\n")
	if s.after(t, m, second); string(s.text) != "5\n" {
		t.Errorf("what was there before is answered: %q", s.text)
	}
	s.write("1\n")
	if s.after(t, m, second); string(s.text) != "1\n# done in 0.000000 s\n" {
		t.Errorf("the answer is %q", s.text)
	}
	s.write(string(s.text) + "k0")
	if s.after(t, m, 10*millisecond); !strings.HasSuffix(string(s.text), "k0") {
		t.Errorf("an unfinished line is answered: %q", s.text)
	}
	if s.after(t, m, second); !strings.HasPrefix(string(s.text),
		"1\n# done in 0.000000 s\n# error: k0: one of the 1 processes has to stay\n") {
		t.Errorf("the answer is %q", s.text)
	}
	s.write("# nothing\n")
	if s.after(t, m, second); string(s.text) != "# nothing\n" {
		t.Errorf("a comment is answered: %q", s.text)
	}
	s.write("3\n")
	if s.after(t, m, second); !strings.Contains(string(s.text),
		"# error: MPI_Comm_spawn: no room\n") {
		t.Errorf("the answer is %q", s.text)
	}
	s.write("\x001\n")
	if s.after(t, m, second); !strings.Contains(string(s.text),
		"# error: the command file is no text\n") {
		t.Errorf("the answer is %q", s.text)
	}
	s.write(strings.Repeat("1;", TextMax))
	if s.after(t, m, second); !strings.Contains(string(s.text),
		"# error: the command file has more than 4095 bytes\n") {
		t.Errorf("the answer is %q", s.text)
	}
}

// The same commands are taken once, whatever the clock of the file; a file that changes while it is
// read is read later.
func TestSameTick(t *testing.T) {
	s, m := begun("")
	s.write("1\n")
	s.after(t, m, 5*millisecond)
	answer := string(s.text)
	for range 5 {
		s.after(t, m, 5*millisecond)
	}
	if string(s.text) != answer || !strings.Contains(answer, answered) {
		t.Errorf("the answer %q became %q", answer, s.text)
	}
	changed := s.changed
	s.write("1\n")
	s.changed = changed // within one tick of the clock of files
	if s.after(t, m, 5*millisecond); !strings.Contains(string(s.text), answered) {
		t.Errorf("a command of the same time is not answered: %q", s.text)
	}
	s.write("1\n")
	s.torn = true
	if s.after(t, m, second); strings.Contains(string(s.text), answered) {
		t.Errorf("a file that is being written is answered: %q", s.text)
	}
}

func TestMail(t *testing.T) {
	s, m := begun("")
	s.mail = "1;k7"
	s.after(t, m, second)
	if len(s.reports) != 1 ||
		s.reports[0] != "1 1 0.000000 k7: after k stand ranks from 0 to 0, separated by commas" {
		t.Errorf("the reports are %q", s.reports)
	}
}

// A meeting comes about every 2 ms, after 64 calls at most, and seldom becomes rarer at once.
func TestPace(t *testing.T) {
	s, m := begun("")
	var strides []int
	for range 8 {
		s.clock += Duration(m.Stride()) * microsecond
		if _, err := m.Poll(); err != nil {
			t.Fatal(err)
		}
		strides = append(strides, m.Stride())
	}
	if strides[0] > 2 || strides[7] != StrideMax {
		t.Errorf("calls between meetings: %v", strides)
	}
	if s.after(t, m, second); m.Stride() != 1 {
		t.Errorf("after slow calls: %d", m.Stride())
	}
}
