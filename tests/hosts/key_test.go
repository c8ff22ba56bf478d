package hosts

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"libspx/shm"
)

// keyOf reads the key of the job of a process out of its memory file.
func keyOf(t *testing.T, pid string) (key [32]byte, found bool) {
	t.Helper()
	files, _ := filepath.Glob("/proc/" + pid + "/fd/*")
	for _, name := range files {
		if to, _ := os.Readlink(name); !strings.Contains(to, "memfd:") && !strings.Contains(to, "(deleted)") {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		s, err := shm.Open(f)
		if err != nil {
			f.Close()
			continue
		}
		key = s.Key()
		s.Close()
		return key, true
	}
	return key, false
}

// The key of a job is in its memory file, and in no process's command line, where everybody would see it, nor in any process's environment.
func TestKeyIsHidden(t *testing.T) {
	b := newBed(t, 3)
	r := b.start(t, 3)
	var key [32]byte
	found := false
	for _, p := range b.find("shrink") {
		if key, found = keyOf(t, strconv.Itoa(p)); found {
			break
		}
	}
	if !found || key == [32]byte{} {
		t.Fatal("no rank has a memory file with a key")
	}
	forms := [][]byte{key[:16], []byte(hex.EncodeToString(key[:])), []byte(base64.RawStdEncoding.EncodeToString(key[:])), []byte(base64.RawURLEncoding.EncodeToString(key[:]))}
	looked := 0
	for _, what := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil || len(text) == 0 {
				continue
			}
			looked++
			for _, form := range forms {
				if bytes.Contains(bytes.ToLower(text), bytes.ToLower(form)) {
					line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
					t.Errorf("%s of %q has the key", what, line)
				}
			}
		}
	}
	if looked < 10 {
		t.Errorf("only %d files were looked at", looked)
	}
	r.cmd.Process.Kill() //nolint:errcheck // seen below
	until(t, "end of all", func() bool { return len(b.find("")) == 0 })
}
