package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"libspx/core/mpierr"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Programs that change their number of processes (ulfm_dyprc, docs/malleability.md): orders of
// users and batch systems are kept here until the program's rank 0 asks for them, and answered when
// it reports them as done. Rank 0 also reports which processes belong to the program.

// steering is what the agent that decides knows of such a program.
type steering struct {
	epoch   uint64    // grows with every change
	members []uint32  // processes by rank; nil: the program takes no commands
	await   *question // rank 0, which waits for a command
	orders  []*order  // not done yet; the first is carried out
	last    uint64    // number of the latest
	kills   []*killed
}

// order is a command. ask is nil when no client waits for it any more.
type order struct {
	number uint64
	ask    *question
	sent   bool
}

// killed are processes that were killed by an order; its client waits until the others continue
// without them.
type killed struct {
	ask   *question
	epoch uint64
	from  int
	began time.Time
}

// newcomerMark in the environment marks a process that is spawned to join its parents' program.
const newcomerMark = "SPX_DYPRC_NEWCOMER=1"

// memberList stores which processes belong to the program now. Processes that were spawned to join
// it, and do not belong to it after all because their parents have died meanwhile, are ended.
func (a *agent) memberList(q *question) *service.Message {
	s := &a.steering
	if q.Number <= s.epoch && s.members != nil {
		return &service.Message{Number: s.epoch + 1, FD: -1}
	}
	// by a successor: new processes may be on their way
	again := s.members == nil
	s.epoch, s.members = q.Number, slices.Clone(q.Slots)
	for _, p := range s.members {
		if int(p) < len(a.ranks) {
			a.ranks[p].member = true
		}
	}
	var strays []int
	for i := range a.ranks {
		if r := &a.ranks[i]; r.newcomer && !r.member && r.alive && !again {
			strays = append(strays, i)
		}
	}
	a.end(strays)
	s.kills = slices.DeleteFunc(s.kills, func(k *killed) bool {
		if k.epoch >= s.epoch {
			return false
		}
		k.ask.reply(result(k.from, len(s.members), time.Since(k.began)))
		return true
	})
	return &service.Message{FD: -1}
}

// end kills processes, on all hosts.
func (a *agent) end(procs []int) {
	if len(procs) == 0 {
		return
	}
	act := job.SendTo{Procs: procs, Signal: int(syscall.SIGKILL)}
	a.toAll(act)
	a.carryOut(act)
}

func result(from, to int, took time.Duration) *service.Message {
	return &service.Message{Text: service.Change{From: from, To: to,
		Seconds: took.Seconds()}.String(), FD: -1}
}

// awaitOrder is rank 0, which has nothing to do. Commands up to that Number are done.
func (a *agent) awaitOrder(q *question) {
	s := &a.steering
	s.await, s.last = q, max(s.last, q.Number)
	for len(s.orders) > 0 && s.orders[0].number <= q.Number {
		a.orderDone(s.orders[0].number, service.Change{From: len(s.members),
			To: len(s.members)}.String())
	}
	if len(s.orders) > 0 {
		s.orders[0].sent = false // it was lost with the former rank 0
	}
	a.nextOrder()
}

func (a *agent) nextOrder() {
	s := &a.steering
	s.orders = slices.DeleteFunc(s.orders, func(o *order) bool { return o.ask == nil && !o.sent })
	if s.await == nil || len(s.orders) == 0 || s.orders[0].sent {
		return
	}
	o := s.orders[0]
	if s.await.conn.Send(&service.Message{Kind: service.AwaitOrder, Number: o.number,
		Text: o.ask.Text, FD: -1}) == nil {
		o.sent = true
	}
	s.await = nil
}

// orderDone answers the client of an order.
func (a *agent) orderDone(number uint64, text string) {
	s := &a.steering
	if len(s.orders) == 0 || s.orders[0].number != number {
		return
	}
	if ask := s.orders[0].ask; ask != nil {
		ask.reply(&service.Message{Text: text, FD: -1})
	}
	s.orders = s.orders[1:]
}

// Bounds of what is kept for clients that give orders.
const (
	mostOrders   = 256
	longestOrder = 4000
)

// takeOrder keeps a command until rank 0 asks for it.
func (a *agent) takeOrder(q *question) {
	s := &a.steering
	switch {
	case s.members == nil:
		q.reply(refuse(mpierr.UnsupportedOperation,
			"job %016x takes no commands: its program has not called ulfm_dyprc_setjmp",
			a.jobNumber()))
	case a.machine.Ending():
		q.reply(refuse(mpierr.Other, "the job is being ended"))
	case len(q.Text) > longestOrder || len(s.orders) >= mostOrders:
		q.reply(refuse(mpierr.Arg,
			"a command of %d bytes, with %d waiting: at most %d bytes and %d commands are kept",
			len(q.Text), len(s.orders), longestOrder, mostOrders))
	default:
		s.last++
		s.orders = append(s.orders, &order{number: s.last, ask: q})
		a.nextOrder()
	}
}

// killRanks kills the processes with these ranks (Slots): of the program that takes commands, else
// of the first world.
func (a *agent) killRanks(q *question) {
	s := &a.steering
	procs, size := []int(nil), len(s.members)
	if s.members == nil {
		for _, p := range a.spec.Programs {
			size += p.Procs
		}
		if len(a.spec.Parts) > 0 { // also those that were started again
			size = len(a.ranks)
		}
	}
	for _, rank := range q.Slots {
		if int(rank) >= size {
			q.reply(refuse(mpierr.Rank, "rank %d: there are ranks from 0 to %d", rank, size-1))
			return
		}
		p := int(rank)
		if s.members != nil {
			p = int(s.members[rank])
		}
		if !slices.Contains(procs, p) && a.ranks[p].alive && !a.ranks[p].external {
			procs = append(procs, p)
		}
	}
	began := time.Now()
	a.end(procs)
	if s.members == nil { // those that are there
		size = 0
		for i := range a.ranks {
			if r := &a.ranks[i]; r.alive && !r.external {
				size++
			}
		}
	}
	if len(procs) == 0 || s.members == nil || len(procs) >= size {
		q.reply(result(size, size-len(procs), 0))
		return
	}
	s.kills = append(s.kills, &killed{ask: q, epoch: s.epoch, from: size, began: began})
}

// about describes the job for a list of jobs.
func (a *agent) about() *service.Message {
	s := &a.steering
	about := service.About{Job: fmt.Sprintf("%016x", a.jobNumber()), Host: a.host,
		Commands: s.members != nil, Procs: len(s.members)}
	if len(a.spec.Programs) > 0 {
		about.Program = strings.Join(a.spec.Programs[0].Argv, " ")
	}
	if s.members == nil {
		for i := range a.ranks {
			if a.ranks[i].alive && !a.ranks[i].external {
				about.Procs++
			}
		}
	}
	about.Hosts, about.Since = 1, a.began.Format(time.RFC3339)
	for _, h := range a.others {
		if !h.gone {
			about.Hosts++
		}
	}
	about.System = a.aboutSystem()
	text, err := json.Marshal(about)
	if err != nil {
		return refuse(mpierr.Intern, "%v", err)
	}
	return &service.Message{Text: string(text), FD: -1}
}

// forget drops a client that has hung up. What rank 0 has begun continues.
func (s *steering) forget(conn client) {
	if s.await != nil && s.await.conn == conn {
		s.await = nil
	}
	for _, o := range s.orders {
		if o.ask != nil && o.ask.conn == conn {
			o.ask = nil
		}
	}
	s.kills = slices.DeleteFunc(s.kills, func(k *killed) bool { return k.ask.conn == conn })
}
