package mcast

import (
	"maps"
	"slices"
)

// AckEvery is the number of messages of a master after which a member acknowledges them.
const AckEvery = 32

// Kind is what a Record is.
type Kind uint8

const (
	Data      Kind = iota // a message, with its data
	Announced             // a message whose data are fetched from its master
	Ask                   // a member wants the data of message ID
	Answer                // here they are
	Ack                   // all messages of the receiver's up to Number have come
	// the same; and its sender leaves, possibly without having forwarded all that it had to
	Bye
	// a message, with its data, whose master requires acknowledgement by all
	Acked
	Got  // those in Set have received message ID of Master
	Lost // some reports on message ID may not arrive
)

// A Record goes from one process to another. Records of a pair arrive in the order in which they
// were put.
type Record struct {
	Kind   Kind
	Master uint32
	Number uint32 // of the message, for the receiver of the record
	ID     uint64 // of the message, at its master
	Set    []byte // wire form of those that the receiver hands it on to
	Again  bool   // this message has gone another way, too, on which it may still come
}

// A Put is a record that is to go to a process.
type Put struct {
	To uint32
	Record
}

// Result is what follows from an event at a Process.
type Result struct {
	Puts []Put
	// messages whose turn it is; the data of an announced one are requested by Fetch
	Delivered []Record
	// announced or acked multicasts of this process that all living members have fetched, or
	// received
	Complete []uint64
	Failed   []uint64 // of them, those of which a member has died before it had
}

func (r *Result) put(to uint32, rec Record) { r.Puts = append(r.Puts, Put{to, rec}) }

// outgoing is what a process has sent to a member as its master.
type outgoing struct {
	number, acked uint32
	// all up to this one were put into the member's own channel: no other way is faster than what
	// follows there
	direct uint32
}

type kept struct {
	id      uint64
	kind    Kind
	members []Member
	// announced: have not requested it yet; acked: are not known to have received it
	left   []uint32
	failed bool
	lossy  bool // a member has died: reports to it may be lost
	tree   bool // it has gone along the tree
	split  bool // and to some members directly: these may leave before they have handed it on
	all    bool // to all members directly that had not acknowledged it
}

// incoming is what a process has had from a master.
type incoming struct {
	number, acked uint32
	early         map[uint32]Record
	// messages that have come directly first, and are still on their way along the tree
	due int
}

// Process is one process's part in multicasts: numbers, forwarding, holding back, acknowledging,
// and the handling of deaths. It decides as capi/dataplane/mcast/mcast.c does, without data and
// credit, so that the rules can be run by a simulator. Events are calls; each returns what is to be
// sent and delivered.
type Process struct {
	me    uint32
	procs uint32
	host  func(uint32) uint32
	sw    func(uint32) uint32
	width int
	dead  map[uint32]bool // or gone
	out   map[uint32]*outgoing
	in    map[uint32]*incoming
	kept  []*kept
	acks  []*aggregation
	// Defect leaves a rule out, so that a test can show that it is needed.
	Defect Defect
}

// Defect is a rule that a Process does not obey.
type Defect uint8

const (
	None            Defect = iota
	NoHoldingBack          // what comes early is delivered at once
	NoSendingAgain         // messages that a dead process should have forwarded are not sent again
	NoDroppingTwice        // what comes twice is delivered twice
	NoOrder                // an ordered multicast goes along the tree
	NoBye                  // a member leaves without a word
	NoLastWord             // a master does
	// a process that has forwarded an acked message does not wait for the reports of members behind
	// it
	NoAggregation
	// acknowledgements that a dead process had to forward are not recovered
	NoNewWay
	NoLost // nor about those of a process that has left
)

// NewProcess makes process me of procs processes; host maps each to its host. sw, width: as for
// Children.
func NewProcess(me, procs uint32, host, sw func(uint32) uint32, width int) *Process {
	return &Process{me: me, procs: procs, host: host, sw: sw, width: width, dead: map[uint32]bool{},
		out: map[uint32]*outgoing{}, in: map[uint32]*incoming{}}
}

func (p *Process) to(member uint32) *outgoing {
	if p.out[member] == nil {
		p.out[member] = &outgoing{}
	}
	return p.out[member]
}

// Send multicasts message id (Data, Announced or Acked) to the members, other processes in
// ascending order. ordered: no member receives it before what this process has sent to it otherwise
// until now, nor after what it sends from now on: then it goes to each of them directly, behind
// what they may not have yet.
func (p *Process) Send(id uint64, members []uint32, kind Kind, ordered bool) Result {
	var res Result
	k := &kept{id: id, kind: kind}
	for _, m := range members {
		if p.dead[m] {
			k.failed = true
			continue
		}
		o := p.to(m)
		o.number++
		k.members = append(k.members, Member{m, o.number})
	}
	if kind != Data {
		for _, m := range k.members {
			k.left = append(k.left, m.Proc)
		}
	}
	p.kept = append(p.kept, k)
	switch {
	case len(k.members) == 0:
	case ordered && p.Defect != NoOrder:
		for _, m := range k.members {
			p.catchUp(&res, m.Proc)
		}
	default:
		p.handOver(&res, k)
	}
	p.settle(&res, k)
	return res
}

// handOver sends the message to one member, the first on this host if there is one, or on this
// switch, which serves all others. Where processes outnumber processors, few members that are all
// on this host get it at once.
func (p *Process) handOver(res *Result, k *kept) {
	k.tree = true
	rest := slices.Clone(k.members)
	home := p.host(p.me)
	if p.width > 0 && len(rest) <= p.width &&
		!slices.ContainsFunc(rest, func(m Member) bool { return p.host(m.Proc) != home }) {
		for _, m := range rest {
			res.put(m.Proc, Record{Kind: k.kind, Master: p.me, Number: m.Number, ID: k.id})
		}
		return
	}
	at := slices.IndexFunc(rest, func(m Member) bool { return p.host(m.Proc) == home })
	if at < 0 && p.sw != nil {
		at = slices.IndexFunc(rest,
			func(m Member) bool { return p.sw(p.host(m.Proc)) == p.sw(home) })
	}
	at = max(at, 0)
	lead := rest[at]
	rest = slices.Delete(rest, at, at+1)
	res.put(lead.Proc, Record{Kind: k.kind, Master: p.me, Number: lead.Number, ID: k.id,
		Set: Encode(nil, rest)})
}

// catchUp puts everything that the member may lack into its own channel.
func (p *Process) catchUp(res *Result, member uint32) {
	o := p.to(member)
	for _, k := range p.kept {
		for _, m := range k.members {
			if m.Proc == member && m.Number > max(o.acked, o.direct) {
				res.put(member, Record{Kind: k.kind, Master: p.me, Number: m.Number, ID: k.id,
					Again: k.tree})
				k.split = k.split || k.tree
			}
		}
	}
	o.direct = o.number
}

func (p *Process) settle(res *Result, k *kept) {
	if k.kind == Data || len(k.left) > 0 {
		return
	}
	res.Complete = append(res.Complete, k.id)
	if k.failed {
		res.Failed = append(res.Failed, k.id)
	}
	k.kind = Data // nothing is waited for any more
}

// Arrived is called with each record, in the order of its pair.
func (p *Process) Arrived(from uint32, rec Record) Result {
	var res Result
	switch rec.Kind {
	case Ack, Bye:
		o := p.to(from)
		o.acked = max(o.acked, min(rec.Number, o.number))
		if rec.Kind == Bye {
			p.sendSplit(&res, func(k *kept) bool { return k.has(from) })
		}
		p.letGo()
	case Ask:
		res.put(from, Record{Kind: Answer, Master: p.me, ID: rec.ID})
		p.strike(&res, from, func(k *kept) bool { return k.id == rec.ID }, false)
	case Answer:
	case Got:
		p.got(&res, from, rec)
	case Lost:
		p.lost(&res, rec)
	default:
		p.message(&res, from, rec)
	}
	return res
}

func (p *Process) message(res *Result, peer uint32, rec Record) {
	members, err := Decode(rec.Set, p.procs)
	if err != nil || rec.Number == 0 || rec.Master == p.me {
		return
	}
	from := p.in[rec.Master]
	if from == nil {
		from = &incoming{early: map[uint32]Record{}}
		p.in[rec.Master] = from
	}
	members = slices.DeleteFunc(members, func(m Member) bool { return p.dead[m.Proc] })
	_, early := from.early[rec.Number]
	twice := early || rec.Number <= from.number
	g := p.gather(peer, rec, !twice || p.isUnread(rec))
	for _, b := range Children(members, p.host(p.me), p.host, p.sw, p.width) {
		g.behind(b.Lead().Proc)
		res.put(b.Lead().Proc, Record{Kind: rec.Kind, Master: rec.Master, Number: b.Lead().Number,
			ID: rec.ID, Set: Encode(nil, b[1:])})
	}
	rec.Set = nil
	p.tell(res)
	if twice {
		if !rec.Again && from.due > 0 {
			from.due--
		}
		if p.Defect != NoDroppingTwice {
			return // it came directly, too: but those behind this process may not have it
		}
	} else if rec.Again {
		from.due++
	}
	if p.Defect == NoHoldingBack || p.Defect == NoDroppingTwice && rec.Number <= from.number {
		res.Delivered = append(res.Delivered, rec)
		return
	}
	from.early[rec.Number] = rec
	for {
		next, ok := from.early[from.number+1]
		if !ok {
			return
		}
		delete(from.early, next.Number)
		from.number++
		res.Delivered = append(res.Delivered, next)
		if from.number-from.acked >= AckEvery {
			from.acked = from.number
			res.put(rec.Master, Record{Kind: Ack, Master: rec.Master, Number: from.number})
		}
	}
}

// letGo forgets what all members have.
func (p *Process) letGo() {
	for len(p.kept) > 0 && p.kept[0].kind == Data {
		for _, m := range p.kept[0].members {
			if !p.dead[m.Proc] && p.out[m.Proc].acked < m.Number {
				return
			}
		}
		p.kept = p.kept[1:]
	}
}

// strike stops waiting for a member in the multicasts that which selects.
func (p *Process) strike(res *Result, member uint32, which func(*kept) bool, died bool) {
	for _, k := range p.kept {
		at := slices.Index(k.left, member)
		if at < 0 || !which(k) {
			continue
		}
		k.left = slices.Delete(k.left, at, at+1)
		k.failed = k.failed || died
		p.settle(res, k)
	}
}

// Died is called when this process learns of a death. No message of the dead process is passed to
// Arrived from then on. Messages that it may have had to forward are sent again, to all that have
// not acknowledged it.
func (p *Process) Died(who uint32) Result {
	var res Result
	p.dead[who] = true
	p.gone(&res, who, true)
	for _, k := range p.kept {
		if p.Defect == NoSendingAgain || !k.has(who) {
			continue
		}
		p.sendAll(&res, k)
	}
	p.strike(&res, who, func(*kept) bool { return true }, true)
	p.passGone(&res)
	p.letGo()
	return res
}

// Fetch requests the data of a delivered message that was announced.
func (p *Process) Fetch(rec Record) Put {
	return Put{rec.Master, Record{Kind: Ask, Master: rec.Master, ID: rec.ID}}
}

func (k *kept) has(member uint32) bool {
	return slices.ContainsFunc(k.members, func(m Member) bool { return m.Proc == member })
}

// sendAll sends a message to all members that have not acknowledged it, and an acked one to those
// not known to have received it, which answer this process.
func (p *Process) sendAll(res *Result, k *kept) {
	k.all = true
	k.lossy = k.kind == Acked && p.Defect != NoNewWay
	for _, m := range k.members {
		unknown := k.lossy && slices.Contains(k.left, m.Proc)
		if !p.dead[m.Proc] && (unknown || p.to(m.Proc).acked < m.Number) {
			res.put(m.Proc, Record{Kind: k.kind, Master: p.me, Number: m.Number, ID: k.id,
				Again: true})
		}
	}
}

// sendSplit sends to all their members those messages that have gone to some members directly, and
// to the rest along a tree.
func (p *Process) sendSplit(res *Result, which func(*kept) bool) {
	for _, k := range p.kept {
		if k.split && !k.all && which(k) {
			p.sendAll(res, k)
		}
	}
	p.passGone(res)
}

// Leave is called when this process will accept no more messages. Members that may depend on
// messages it has not forwarded get them from the master, which is notified, or from this process
// if it is the master.
func (p *Process) Leave() Result {
	var res Result
	if p.Defect != NoLastWord {
		p.sendSplit(&res, func(*kept) bool { return true })
	}
	for _, master := range slices.Sorted(maps.Keys(p.in)) {
		from := p.in[master]
		if from.due > 0 && !p.dead[master] && p.Defect != NoBye {
			res.put(master, Record{Kind: Bye, Master: master, Number: from.number})
		}
		from.due = 0
	}
	return res
}

// Left is called when this process learns that another one has left: nothing is to be sent to it
// any more. Its earlier messages are still passed to Arrived.
func (p *Process) Left(who uint32) Result {
	var res Result
	p.dead[who] = true
	p.gone(&res, who, false)
	p.passGone(&res)
	p.letGo()
	return res
}
