package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"libspx/launch/progress"
)

// runAll runs the lines and hands each result to done, in the order of the lines. Lines run at the same time as long as
// they have no more ranks together than jobs; those of one folder that write files share none of it.
func (r *runner) runAll(tests []testLine, jobs int, done func(*result)) []result {
	results := make([]result, len(tests))
	finished := make([]chan struct{}, len(tests))
	room := tokens{free: jobs}
	room.changed.L = &room.mu
	for i := range finished {
		finished[i] = make(chan struct{})
	}
	go func() {
		for i, l := range tests {
			if known, ok := r.progress.known(l); ok {
				results[i] = known
				close(finished[i])
				continue
			}
			if r.over() {
				results[i] = result{line: l, verdict: notRun}
				close(finished[i])
				continue
			}
			weight := min(l.ranks, jobs)
			room.take(weight)
			go func() {
				if writesFiles(l.dir) {
					defer lockFiles(r.tree(""))()
				}
				results[i] = r.run(l)
				if r.ctx.Err() == nil {
					r.progress.add(results[i])
				} else {
					results[i].verdict = notRun
				}
				room.put(weight)
				close(finished[i])
			}()
		}
	}()
	bar := progress.Start("running the suite", len(tests))
	defer bar.End()
	at := ""
	for i := range tests {
		if dir := tests[i].dir; dir != at {
			at = dir
			bar.Clear()
			fmt.Printf("%s ...\n", at)
		}
		bar.Say(tests[i].name())
		<-finished[i]
		bar.Clear()
		done(&results[i])
		bar.Step()
	}
	return results
}

// writesFiles tells the folders whose programs write files of fixed names beside themselves.
func writesFiles(dir string) bool { return dir == "io" || strings.HasSuffix(dir, "/io") }

// lockFiles keeps other lines that write files away, those of other runs with the same cache, too, until the function that it
// returns is called.
func lockFiles(tree string) (unlock func()) {
	f, err := os.OpenFile(filepath.Join(tree, ".files"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return func() {}
	}
	syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	return func() { f.Close() }
}

// tokens counts processors that are free.
type tokens struct {
	mu      sync.Mutex
	changed sync.Cond
	free    int // guarded by mu
}

func (t *tokens) take(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.free < n {
		t.changed.Wait()
	}
	t.free -= n
}

func (t *tokens) put(n int) {
	t.mu.Lock()
	t.free += n
	t.mu.Unlock()
	t.changed.Broadcast()
}

// timeLimit is what a line may take: its own limit or the preset one, more when others keep the processors busy. A line that
// has to fail may want just that: its program never ends.
func (r *runner) timeLimit(l testLine) time.Duration {
	if l.check != wantNoErrors && l.limit > 0 {
		return min(l.limit, r.most)
	}
	limit := r.limit
	if l.limit > 0 {
		limit = max(l.limit, 60*time.Second)
	}
	text, _ := os.ReadFile("/proc/loadavg")
	var load float64
	fmt.Sscan(string(text), &load)
	busy := min(max(load/float64(runtime.NumCPU()), 1), 4)
	return min(time.Duration(float64(limit)*busy), r.most)
}
