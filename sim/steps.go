package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
)

// steps runs tasks, the processes of a simulation that wait in the middle of their work: each on a goroutine of its own, one at a time, in an order that a seed decides. What a task
// does with others is a step, before which it may die. Between the steps there are news, which come in any order.
type steps struct {
	rnd     *rand.Rand
	tasks   []*task
	news    []func()
	yield   chan struct{}
	version int  // grows with everything that a task may wait for
	left    int  // steps until it is taken for endless
	end     bool // the simulation is over: tasks that wait are ended
}

// task is a process.
type task struct {
	s       *steps
	id      int
	resume  chan struct{}
	dieAt   int  // its last step; below 0: it lives
	made    int  // steps so far
	waits   bool // for something
	seen    int  // version when it began to wait
	limited bool // its wait ends when nothing else can happen,
	expired bool // which has come
	idle    bool // it may wait for ever
	dead    bool
	done    bool
	err     error
	died    func()
}

// mostSteps is more than a schedule takes.
const mostSteps = 200000

func newSteps(seed uint64) *steps {
	return &steps{rnd: rand.New(rand.NewPCG(seed, 0x57e95)), yield: make(chan struct{}), left: mostSteps}
}

// start adds a process that does work, and dies before its step dieAt, counted from 0; died is called then.
func (s *steps) start(dieAt int, work func(*task) error, died func()) *task {
	t := &task{s: s, id: len(s.tasks), resume: make(chan struct{}), dieAt: dieAt, died: died}
	s.tasks = append(s.tasks, t)
	go func() {
		defer func() {
			if why := recover(); why != nil && why != (gone{}) {
				t.err = fmt.Errorf("%v\n%s", why, debug.Stack())
			}
			t.done = true
			s.yield <- struct{}{}
		}()
		<-t.resume
		if !s.end {
			t.err = work(t)
		}
	}()
	return t
}

// step lets others run, unless the process dies here.
func (t *task) step() {
	if t.made == t.dieAt {
		t.dead = true
		t.s.version++
		t.died()
		panic(gone{})
	}
	t.made++
	t.pause()
}

func (t *task) pause() {
	t.s.yield <- struct{}{}
	<-t.resume
	if t.s.end {
		panic(gone{})
	}
}

// await returns when over does, asked again whenever something has happened; false: its time was over (limited), which may be soon, and is when nothing else happens.
func (t *task) await(limited bool, over func() bool) bool {
	for t.expired = false; !over(); {
		if t.expired || limited && t.s.rnd.IntN(20) == 0 {
			return false
		}
		t.waits, t.limited, t.seen = true, limited, t.s.version
		t.step()
		t.waits = false
	}
	return true
}

// ready lists the tasks that can go on.
func (s *steps) ready() (out []*task) {
	for _, t := range s.tasks {
		if !t.done && (!t.waits || t.seen != s.version) {
			out = append(out, t)
		}
	}
	if len(out) > 0 || len(s.news) > 0 {
		return out
	}
	for _, t := range s.tasks {
		if !t.done && t.limited {
			t.expired = true
			out = append(out, t)
		}
	}
	return out
}

// run carries out steps and news until nothing can happen any more. It returns the first task's error, or that a living one waits for ever.
func (s *steps) run() error {
	for s.left > 0 {
		ready := s.ready()
		n := len(ready) + len(s.news)
		if n == 0 {
			break
		}
		s.left--
		k := s.rnd.IntN(n)
		if k < len(ready) {
			ready[k].resume <- struct{}{}
			<-s.yield
			continue
		}
		k -= len(ready)
		news := s.news[k]
		s.news = append(s.news[:k:k], s.news[k+1:]...)
		s.version++
		news()
	}
	return s.over()
}

func (s *steps) over() (err error) {
	for _, t := range s.tasks {
		switch {
		case t.dead, err != nil, t.idle && !t.done:
		case t.err != nil:
			err = fmt.Errorf("process %d: %w", t.id, t.err)
		case !t.done && s.left == 0:
			err = fmt.Errorf("process %d makes no end", t.id)
		case !t.done:
			err = fmt.Errorf("process %d waits for ever", t.id)
		}
	}
	s.end = true
	for _, t := range s.tasks {
		if !t.done {
			t.resume <- struct{}{}
			<-s.yield
		}
	}
	return err
}
