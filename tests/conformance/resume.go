package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// journal is the file that has the results so far, one a line, so that a run that was interrupted can go on.
type journal struct {
	file *os.File
	done map[string]result // of the interrupted run, by name
}

// openProgress begins a new file, or goes on with the one that is there.
func openProgress(path string, resume bool) (*journal, error) {
	p := &journal{done: map[string]result{}}
	if resume {
		if err := p.read(path); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !resume {
		flags |= os.O_TRUNC
	}
	var err error
	p.file, err = os.OpenFile(path, flags, 0o666)
	return p, err
}

func (p *journal) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		w := strings.SplitN(sc.Text(), "\t", 4)
		if len(w) < 4 {
			continue
		}
		s, err := strconv.ParseFloat(w[2], 64)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", path, sc.Text(), err)
		}
		p.done[w[0]] = result{verdict: verdict(w[1]), seconds: s, why: w[3]}
	}
	return sc.Err()
}

// add notes a result, before expected.tsv has been looked at.
func (p *journal) add(r result) {
	fmt.Fprintf(p.file, "%s\t%s\t%.2f\t%s\n", r.line.name(), r.verdict, r.seconds, strings.NewReplacer("\t", " ", "\n", " ").Replace(r.why))
}

// known is the result of a line that need not run again.
func (p *journal) known(l testLine) (result, bool) {
	r, ok := p.done[l.name()]
	r.line = l
	return r, ok
}
