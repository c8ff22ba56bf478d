package layers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// flags: nothing is inlined, cloned or left out, so that the references are those of the source whatever the compiler's version;
// no symbol is bound more tightly than the file itself says.
var flags = []string{"-std=gnu11", "-O0", "-g1", "-fno-inline", "-ffunction-sections", "-fdata-sections", "-fPIC", "-ftls-model=initial-exec",
	"-fno-strict-aliasing", "-pthread", "-w", "-fno-lto", "-ffile-prefix-map=./="}

// Program is C code: the folder against which all names are relative, and what the compiler is given besides.
type Program struct {
	Root    string
	CC      string
	Include []string // folders, relative to Root
	Cache   string   // folder in which results are kept; empty: none
}

// kept is one file's result with what it was made from.
type kept struct {
	With  string            // hash of the compiler, the flags and this program
	Files map[string]string // hash of the source and of each header of the project
	Object
}

// Compile returns what the files define and need, by name. A file is compiled anew only if it, a header that it includes, the compiler or the
// flags have changed.
func (p Program) Compile(files []string) (map[string]*Object, error) {
	version, err := exec.Command(p.CC, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", p.CC, err)
	}
	with := hash([]byte(fmt.Sprintln(format, string(version), flags, p.Include)))
	var hashes sync.Map
	hashOf := func(name string) string {
		if h, ok := hashes.Load(name); ok {
			return h.(string)
		}
		text, err := os.ReadFile(filepath.Join(p.Root, name))
		h := ""
		if err == nil {
			h = hash(text)
		}
		hashes.Store(name, h)
		return h
	}
	var (
		lock    sync.Mutex
		first   error
		objects = map[string]*Object{}
		wait    sync.WaitGroup
		room    = make(chan bool, runtime.GOMAXPROCS(0))
	)
	for _, file := range files {
		room <- true
		wait.Go(func() {
			defer func() { <-room }()
			k, ok := p.load(file, with, hashOf)
			var err error
			if !ok {
				k, err = p.compile(file, with, hashOf)
			}
			lock.Lock()
			defer lock.Unlock()
			if err != nil && first == nil {
				first = err
			}
			objects[file] = &k.Object
		})
	}
	wait.Wait()
	return objects, first
}

// format is the version of what is kept: another one when ReadObject finds something else in the same object.
const format = 2

func hash(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func (p Program) path(file string) string {
	return filepath.Join(p.Cache, strings.ReplaceAll(file, "/", "_")+".json")
}

func (p Program) load(file, with string, hashOf func(string) string) (k kept, ok bool) {
	text, err := os.ReadFile(p.path(file))
	if p.Cache == "" || err != nil || json.Unmarshal(text, &k) != nil || k.With != with || k.Files[file] == "" {
		return kept{}, false
	}
	for name, h := range k.Files {
		if hashOf(name) != h {
			return kept{}, false
		}
	}
	return k, true
}

func (p Program) compile(file, with string, hashOf func(string) string) (k kept, err error) {
	dir, err := os.MkdirTemp("", "layers")
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(dir)
	object, rules := filepath.Join(dir, "file.o"), filepath.Join(dir, "file.d")
	args := slices.Clone(flags)
	for _, i := range p.Include {
		args = append(args, "-I"+i)
	}
	cmd := exec.Command(p.CC, append(args, "-MMD", "-MF", rules, "-c", "-o", object, file)...)
	cmd.Dir = p.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return k, fmt.Errorf("%s %s: %v\n%s", p.CC, file, err, out)
	}
	o, err := ReadObject(object)
	if err != nil {
		return k, err
	}
	made, err := os.ReadFile(rules)
	if err != nil {
		return k, err
	}
	k = kept{With: with, Files: map[string]string{file: hashOf(file)}, Object: *o}
	for _, name := range prerequisites(made) {
		if filepath.IsLocal(name) {
			k.Files[name] = hashOf(name)
		}
	}
	if p.Cache == "" {
		return k, nil
	}
	text, err := json.Marshal(k)
	if err == nil {
		replace(p.path(file), text) // where it cannot be kept it is made again
	}
	return k, err
}

// prerequisites are the files that a rule for make names behind its colon.
func prerequisites(rule []byte) []string {
	_, list, _ := bytes.Cut(bytes.ReplaceAll(rule, []byte("\\\n"), nil), []byte(":"))
	return strings.Fields(string(list))
}

// replace writes a file as a whole: another test may read it meanwhile.
func replace(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if e := f.Chmod(0o666); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
