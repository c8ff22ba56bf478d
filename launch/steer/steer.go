// Package steer is how users and batch systems change running jobs (docs/malleability.md): it finds
// jobs of this user on this host, and has their agents carry out what is wanted. It owns the
// protocol of the scheduler's socket (hook.go); it decides nothing about a job.
package steer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"libspx/core/diagnose"
	"libspx/launch/process"
	"libspx/launch/service"
)

// ErrLate says that a job has not answered in time. What was asked for may still happen.
var ErrLate = errors.New("no answer in time (what was asked for may still be done)")

// List describes this user's jobs on this host. All are asked at once: one that is stopped does not
// hold up the others. The error tells which have not answered in time (ErrLate).
func List() ([]service.About, error) { return describe(func(uint64) bool { return true }) }

// describe asks those that are wanted.
func describe(wanted func(job uint64) bool) (list []service.About, err error) {
	jobs := slices.DeleteFunc(service.Jobs(), func(job uint64) bool { return !wanted(job) })
	found, errs := make([]service.About, len(jobs)), make([]error, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() { found[i], errs[i] = Describe(job) })
	}
	all.Wait()
	var late []error
	for i := range jobs {
		switch {
		case errs[i] == nil:
			list = append(list, found[i])
		case errors.Is(errs[i], ErrLate): // else it has ended, or is another user's
			late = append(late, errs[i])
		}
	}
	return list, errors.Join(late...)
}

// Describe asks a job's agent about it.
func Describe(job uint64) (about service.About, err error) {
	answer, err := look(job, &service.Message{Kind: service.Describe, FD: -1}, stillLimit)
	if err == nil {
		err = decode(answer.Text, &about)
	}
	return about, err
}

// Inspect asks what the processes of a job do, and with stacks where they are.
func Inspect(job uint64, stacks bool) (procs []diagnose.Proc, err error) {
	m := &service.Message{Kind: service.Inspect, FD: -1}
	if stacks {
		m.Number = 1
	}
	answer, err := look(job, m, fetchLimit)
	if err == nil {
		err = decode(answer.Text, &procs)
	}
	return procs, err
}

// decode reads what an agent answers.
func decode(text string, to any) error {
	err := json.Unmarshal([]byte(text), to)
	if err == nil {
		makePlain(to)
	}
	return err
}

// Find is the job that a user means: the beginning of its number, the id that its processes have
// (SPX_JOB), the name of its program or of a cluster of it, or "." for the only one there is.
func Find(name string) (uint64, error) {
	job, full := service.JobOf(name) // as the job's own processes know it
	if number, err := strconv.ParseUint(name, 16, 64); err == nil && len(name) == 16 {
		job, full = number, true
	}
	if full {
		if _, err := Describe(job); err == nil || errors.Is(err, ErrLate) {
			return job, err
		}
	}
	byNumber := func(job uint64) bool {
		return name == "." || name != "" && strings.HasPrefix(fmt.Sprintf("%016x", job),
			strings.ToLower(name))
	}
	found, late := describe(byNumber)
	all := len(found)
	if name != "." && late == nil {
		others, silent := describe(func(job uint64) bool { return !byNumber(job) })
		all += len(others)
		found = append(found, slices.DeleteFunc(others,
			func(a service.About) bool { return !isCalled(a, name) })...)
		if len(found) == 0 {
			late = silent
		}
	}
	switch {
	case len(found) > 1:
		return 0, fmt.Errorf("%q may be any of %d jobs; spxctl jobs lists them", name, len(found))
	case late != nil: // it may be meant
		return 0, late
	case len(found) == 1:
		return strconv.ParseUint(found[0].Job, 16, 64)
	}
	return 0, fmt.Errorf(
		"job %q is none of the %d jobs of this user on this host; spxctl jobs lists them", name,
		all)
}

// isCalled: the name is that of the job's program, without its folder, or of a cluster of its
// system (whose parts are called as spxctl system status shows them).
func isCalled(about service.About, name string) bool {
	program, _, _ := strings.Cut(about.Program, " ")
	if program != "" && name == filepath.Base(program) {
		return true
	}
	return about.System != nil && slices.ContainsFunc(about.System.Parts,
		func(p service.Part) bool { return p.Name == "cluster "+name })
}

// Detach has a cluster leave a system in good order, within a time, and waits for that; gone: it is
// not awaited then. The text says what has come of it.
func Detach(job uint64, cluster string, within, limit time.Duration, gone bool) (string, error) {
	m := &service.Message{Kind: service.Detach, Name: cluster,
		Number: uint64(within.Milliseconds()), FD: -1}
	if gone {
		m.World = 1
	}
	answer, err := ask(job, m, limit)
	if err != nil {
		return "", err
	}
	return Plain(answer.Text), nil
}

// AwaitEnd waits for the end of a job, having sent it a signal (0: none), and returns its exit
// status. spxrun, or what keeps the job in its place, has written all that it writes by then.
func AwaitEnd(job uint64, signal int, limit time.Duration) (int, error) {
	keeper := keeperOf(job)
	if keeper >= 0 {
		defer unix.Close(keeper)
	}
	answer, err := ask(job, &service.Message{Kind: service.AwaitEnd, Number: uint64(signal),
		FD: -1}, limit)
	if err != nil {
		return 0, err
	}
	if keeper >= 0 { // it hears of the end in the same moment
		process.AwaitEnd(keeper, lastWords)
	}
	return int(answer.Number), nil
}

// lastWords is how long spxrun may take to end when its job has.
const lastWords = 2 * time.Second

// keeperOf is a pidfd of the spxrun that is the parent of a job's agent; -1: another launcher's
// job, or it cannot be seen.
func keeperOf(job uint64) int {
	conn, err := service.Dial(job)
	if err != nil {
		return -1
	}
	defer conn.Close()
	agent, _, err := conn.Peer()
	if err != nil {
		return -1
	}
	parent := parentOf(agent)
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", parent)); err != nil ||
		filepath.Base(exe) != "spxrun" {
		return -1
	}
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return -1
	}
	if parentOf(agent) != parent { // it has ended meanwhile, and the number may be another's
		unix.Close(fd)
		return -1
	}
	return fd
}

func parentOf(pid int) (parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // without, there is none
	_, rest, _ := strings.Cut(string(text), "\nPPid:")
	line, _, _ := strings.Cut(rest, "\n")
	parent, _ = strconv.Atoi(strings.TrimSpace(line))
	return parent
}

// Command has a job carry out a command of ulfm_dyprc ("8", "k1,2"), and waits until that is done.
func Command(job uint64, command string, limit time.Duration) (service.Change, error) {
	return change(job, &service.Message{Kind: service.Order, Text: command, FD: -1}, limit)
}

// Kill ends processes by SIGKILL, and waits until the others have recovered, if they do.
func Kill(job uint64, ranks []uint32, limit time.Duration) (service.Change, error) {
	return change(job, &service.Message{Kind: service.KillRanks, Slots: ranks, FD: -1}, limit)
}

// Hosts lists the hosts of a job.
func Hosts(job uint64) ([]service.Host, error) {
	answer, err := look(job, &service.Message{Kind: service.Hosts, FD: -1}, fetchLimit)
	return hostsIn(answer, err)
}

// AddHosts adds hosts (NAME or NAME:SLOTS) to a running job. The error tells which of them could
// not be added; the others are.
func AddHosts(job uint64, list []string, limit time.Duration) ([]service.Host, error) {
	return changeHosts(job, &service.Message{Kind: service.AddHosts, Text: strings.Join(list, ","),
		FD: -1}, limit)
}

// RemoveHosts takes hosts on which nothing runs from a running job: all of them, or none.
func RemoveHosts(job uint64, list []string, limit time.Duration) ([]service.Host, error) {
	return changeHosts(job, &service.Message{Kind: service.RemoveHosts,
		Text: strings.Join(list, ","), FD: -1}, limit)
}

func changeHosts(job uint64, m *service.Message, limit time.Duration) ([]service.Host, error) {
	return hostsIn(ask(job, m, limit))
}

func hostsIn(answer *service.Message, err error) (list []service.Host, _ error) {
	if err == nil {
		err = decode(answer.Text, &list)
	}
	return list, err
}

func change(job uint64, m *service.Message, limit time.Duration) (c service.Change, err error) {
	answer, err := ask(job, m, limit)
	if err != nil {
		return c, err
	}
	if c, err = service.ParseChange(answer.Text); err == nil && c.Error != "" {
		err = errors.New(Plain(c.Error))
	}
	return c, err
}

// ask has the agent of a job do something, for which it has so long.
func ask(job uint64, m *service.Message, limit time.Duration) (*service.Message, error) {
	return put(job, m, func(conn *service.Conn) (*service.Message, error) {
		late := time.AfterFunc(limit, conn.Hang)
		answer, err := conn.Receive()
		if !late.Stop() {
			return nil, ErrLate
		}
		return answer, err
	})
}

// look asks the agent of a job how something is. It is waited for as long as it shows life, and for
// so long without (patience).
func look(job uint64, m *service.Message, still time.Duration) (*service.Message, error) {
	m.World = service.Waits
	return put(job, m, func(conn *service.Conn) (*service.Message,
		error) {
		return await(conn, job, still)
	})
}

// put puts a question to the agent of a job.
func put(job uint64, m *service.Message, receive func(*service.Conn) (*service.Message, error)) (
	*service.Message, error) {
	conn, err := service.Dial(job)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.Send(m); err != nil {
		return nil, err
	}
	answer, err := receive(conn)
	switch {
	case errors.Is(err, ErrLate):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("the job has ended, or its agent does not know this question: %w",
			err)
	case answer.Class != 0:
		return nil, errors.New(Plain(answer.Text))
	}
	return answer, nil
}
