package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"libspx/ft/malleable"
)

// Malleable is a simulated program that changes its number of processes (package ft/malleable): Ranks processes, which compute and poll; a user writes the Commands into the command file,
// one after another. Deaths are the steps before which processes die, by their order of starts; those that it does not name live.
type Malleable struct {
	Ranks    int
	Commands []string
	Flaws    int // collectives that fail without a death
	Deaths   []int
	Seed     uint64
}

// program is what all of its processes have in common.
type program struct {
	Malleable
	teams
	file     []byte
	changed  malleable.Duration // when the file was
	clock    malleable.Duration
	stop     bool // the user has no more commands
	epoch    uint64
	listed   []int        // the processes by the agent's word
	member   map[int]bool // processes that the agent has ever been told of
	elastics []*elastic
	expected int // processes after the commands so far, as long as none dies
	deaths   bool
}

// elastic is a process of it.
type elastic struct {
	*task
	w     *program
	m     *malleable.Machine
	steps int
	known *world
}

// RunMalleable runs the program to its end. The error is the first rule that was broken.
func RunMalleable(c Malleable) error {
	w := &program{Malleable: c, teams: teams{steps: newSteps(c.Seed), flaws: c.Flaws}, expected: c.Ranks, member: map[int]bool{}}
	var all []int
	for p := range c.Ranks {
		all = append(all, p)
	}
	first := newTeam(all)
	for range c.Ranks {
		w.begin(func(e *elastic) error {
			e.m.Start(&world{first, e})
			return e.compute()
		})
	}
	w.enter()
	w.start(-1, w.user, nil)
	return w.run()
}

// begin starts a process.
func (w *program) begin(work func(*elastic) error) *elastic {
	e := &elastic{w: w}
	e.m = malleable.New(e, e)
	dieAt := -1
	if n := len(w.elastics); n < len(w.Deaths) {
		dieAt = w.Deaths[n]
	}
	w.enter()
	e.task = w.start(dieAt, func(*task) error {
		err := work(e)
		w.ends(e.id)
		return err
	}, func() { w.deaths = true; w.died(e.id) })
	w.elastics = append(w.elastics, e)
	return e
}

// compute is the program's main function, behind ulfm_dyprc_merge_child.
func (e *elastic) compute() error {
	newcomer := e.m.Newcomer()
	for jumped := false; ; jumped = true {
		restart, s, err := e.m.Resume(jumped, newcomer)
		if err != nil || s == malleable.Leave {
			return err
		}
		if restart && !e.meets() || !e.iterate(&s) {
			if err := e.m.Recover(); err != nil {
				return err
			}
			continue
		}
		switch s {
		case malleable.Leave:
			return nil
		case malleable.Stay:
			return e.ends()
		}
	}
}

// ends is the end of the program: the agent knows its processes.
func (e *elastic) ends() error {
	if k := e.m.World().(*world); k.Rank() == 0 && !slices.Equal(k.members, e.w.listed) {
		return fmt.Errorf("the processes are %v, and the agent knows %v", k.members, e.w.listed)
	}
	return nil
}

// meets is a restore in which all take part; they have to be in the same communicator.
func (e *elastic) meets() bool {
	all, err := e.m.World().Greatest([]int64{int64(e.steps)})
	if err != nil {
		return false
	}
	e.steps = int(all[0])
	return true
}

// iterate computes and polls until the program ends (s is Stay or Leave then), or there is another communicator; false: a process has failed.
func (e *elastic) iterate(s *malleable.Step) bool {
	for {
		for range e.m.Stride() {
			e.steps++
			stop := int64(0)
			if e.w.stop && e.m.World().Rank() == 0 {
				stop = 1
			}
			all, err := e.m.World().Greatest([]int64{stop})
			if err != nil {
				return false
			}
			if all[0] != 0 {
				*s = malleable.Stay
				return true
			}
		}
		var err error
		if *s, err = e.m.Poll(); err != nil || *s != malleable.Stay {
			return err == nil
		}
	}
}

// user writes the commands, and waits for the answers.
func (w *program) user(t *task) error {
	for _, command := range w.Commands {
		w.write(command + "\n")
		w.expect(command)
		t.await(false, func() bool { return w.answered() || w.isOver() })
		if w.isOver() {
			break
		}
		if err := w.check(command); err != nil {
			return err
		}
	}
	w.stop = true
	w.version++
	return nil
}

func (w *program) write(text string) {
	w.file, w.changed = []byte(text), w.clock
	w.version++
}

func (w *program) answered() bool { return strings.Contains(string(w.file), "# done in ") }

// isOver tells whether all processes have ended.
func (w *program) isOver() bool {
	return !slices.ContainsFunc(w.elastics, func(e *elastic) bool { return w.lives(e.id) })
}

// expect follows what commands are to do as long as no process dies.
func (w *program) expect(commands string) {
	for word := range strings.SplitSeq(strings.TrimSuffix(malleable.Commands(commands), ";"), ";") {
		if c, err := malleable.ParseCommand(word, w.expected); err == nil {
			if w.expected -= len(c.Kill); c.Size > 0 {
				w.expected = c.Size
			}
		}
	}
}

// check compares the answer with that.
func (w *program) check(command string) error {
	first, _, _ := strings.Cut(string(w.file), "\n")
	n, err := strconv.Atoi(first)
	if err != nil || !w.deaths && w.Flaws == 0 && n != w.expected {
		return fmt.Errorf("the answer to %q is %q, where %d processes are expected", command, w.file, w.expected)
	}
	return nil
}

// The Shell of package malleable.

// tick is a turn of the clock, which every look at it is.
const tick = malleable.Duration(300000)

func (e *elastic) Now() malleable.Duration {
	e.w.clock += tick
	return e.w.clock
}

func (e *elastic) Age() malleable.Duration   { return e.w.clock }
func (e *elastic) Say(string)                {}
func (e *elastic) Adopted(w malleable.World) { e.known = w.(*world) }
func (e *elastic) Yield()                    { e.step(); e.w.version++ }
func (e *elastic) IsFailure(err error) bool  { return err == errBroken }
func (e *elastic) Report(uint64, string)     {}

func (e *elastic) Mail(uint64) (string, uint64, bool) { return "", 0, false }

func (e *elastic) Kill() {
	e.dieAt = e.made
	e.step()
}

// Members has the agent end the processes that were spawned and do not belong to the others.
func (e *elastic) Members(w malleable.World, epoch uint64) (least uint64, ok bool) {
	e.step()
	if epoch <= e.w.epoch {
		return e.w.epoch + 1, true
	}
	e.w.epoch, e.w.listed = epoch, w.(*world).members
	for _, q := range w.(*world).members {
		e.w.member[q] = true
	}
	for _, q := range e.w.elastics[e.w.Ranks:] {
		if !e.w.member[q.id] {
			e.w.kill(q.id)
		}
	}
	return 0, true
}

// Spawn is a collective; whichever process comes first starts the others.
func (e *elastic) Spawn(w malleable.World, n int) (malleable.Inter, error) {
	t := w.(*world).team
	c, err := e.w.collect(e.task, t, nil, t.everyPart)
	if err != nil {
		return nil, err
	}
	if c.parts[0] == nil {
		inter := newTeam(slices.Clone(t.members))
		c.parts[0] = inter
		for range n {
			child := e.w.begin(func(child *elastic) error {
				if joined, err := child.m.Join(&bridgeOf{inter, t.members, child}); err != nil || !joined {
					return err
				}
				return child.compute()
			})
			inter.members = append(inter.members, child.id)
		}
		e.w.version++
	}
	return &bridgeOf{c.parts[0], t.members, e}, nil
}

// The Disk.

func (e *elastic) Name() string { return "commands" }

func (e *elastic) Stat() (malleable.FileState, error) {
	return malleable.FileState{Regular: true, Modified: int64(e.w.changed), Inode: 1, Size: int64(len(e.w.file)), Age: e.w.clock - e.w.changed}, nil
}

func (e *elastic) Open(bool) (malleable.OpenFile, bool, error) { return e, e.w.file == nil, nil }
func (e *elastic) Close()                                      {}

func (e *elastic) Read(most int) ([]byte, error) {
	return slices.Clone(e.w.file[:min(most, len(e.w.file))]), nil
}

func (e *elastic) Write(text string, _ int64) error {
	e.step()
	e.w.clock += tick
	e.w.write(text)
	return nil
}

// world is a communicator of all processes.
type world struct {
	*team
	e *elastic
}

func (k *world) Rank() int { return slices.Index(k.members, k.e.id) }
func (k *world) Size() int { return len(k.members) }
func (k *world) Revoke()   { k.e.step(); k.e.w.revoke(k.e.id, k.team) }
func (k *world) Free()     {}

func (k *world) Decide(flags uint32) (uint32, malleable.World, error) {
	k.e.step()
	said, next := k.e.w.decide(k.e.task, k.team, flags)
	k.e.step()
	if next == nil {
		return said, nil, nil
	}
	return said, &world{next, k.e}, nil
}

func (k *world) Greatest(values []int64) ([]int64, error) {
	return k.e.w.greatest(k.e.task, k.team, values)
}

// Bcast needs rank 0 alone.
func (k *world) Bcast(words []uint64) error {
	root := k.members[0]
	c, err := k.e.w.collect(k.e.task, k.team, slices.Clone(words), func(gave map[int]any) bool { return gave[root] != nil })
	if err == nil {
		copy(words, c.gave[root].([]uint64))
	}
	return err
}

func (k *world) Split(stays bool) (malleable.World, error) {
	color := 0
	if !stays {
		color = 1
	}
	t, err := k.e.w.split(k.e.task, k.team, color, k.Rank())
	if err != nil {
		return nil, err
	}
	return &world{t, k.e}, nil
}

func (k *world) Left(from int) bool {
	return !slices.ContainsFunc(k.members[from:], k.e.w.lives)
}

// bridgeOf is an intercommunicator with spawned processes, which are not in low.
type bridgeOf struct {
	*team
	low []int
	e   *elastic
}

func (k *bridgeOf) Revoke() { k.e.step(); k.e.w.revoke(k.e.id, k.team) }
func (k *bridgeOf) Free()   {}

func (k *bridgeOf) Merge(bool) (malleable.World, error) {
	t, err := k.e.w.split(k.e.task, k.team, 0, 0)
	if err != nil {
		return nil, err
	}
	return &world{t, k.e}, nil
}

func (k *bridgeOf) Decide(flags uint32) (uint32, malleable.Inter, error) {
	k.e.step()
	said, next := k.e.w.decide(k.e.task, k.team, flags)
	if next == nil {
		return said, nil, nil
	}
	return said, &bridgeOf{next, k.low, k.e}, nil
}

func (k *bridgeOf) Remote() int {
	high := 0
	for _, q := range k.members {
		if !slices.Contains(k.low, q) {
			high++
		}
	}
	if slices.Contains(k.low, k.e.id) {
		return high
	}
	return len(k.members) - high
}
