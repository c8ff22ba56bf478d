package sim

import "math/rand/v2"

// RandomJob is the schedule of a seed: small jobs mostly, some large ones; of each kind of fault some have none, one, or many.
func RandomJob(seed uint64) Job {
	r := rand.New(rand.NewPCG(seed, 0x10b))
	j := Job{Hosts: 1 + r.IntN(5), Seed: seed, Detach: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		j.Hosts = 1
	}
	j.Ranks = j.Hosts + r.IntN(12)
	if r.IntN(100) == 0 {
		j.Ranks += 20 + r.IntN(60)
	}
	for range 1 + r.IntN(4) {
		j.Ops = append(j.Ops, randomOp(r, j.Ranks))
	}
	j.Faults = randomFaults(r, &j)
	if r.IntN(3) > 0 {
		j.Width = 1 + r.IntN(3)
	}
	return j
}

func randomOp(r *rand.Rand, ranks int) Op {
	switch r.IntN(9) {
	case 0, 1:
		return Op{Kind: Agree}
	case 2, 3, 4:
		return Op{Kind: Shrink}
	case 5:
		return Op{Kind: Both}
	case 6:
		return Op{Kind: Inter}
	case 7:
		return Op{Kind: Leave, N: 1 + r.IntN(ranks)}
	}
	return Op{Kind: Grow, N: 1 + r.IntN(4)}
}

// opTime is about how long an operation takes.
const opTime = 150

func randomFaults(r *rand.Rand, j *Job) (faults []Fault) {
	total := opTime * (len(j.Ops) + 1)
	at := func() Time { return Time(r.IntN(total)) }
	anybody := j.Ranks + len(j.Ops)
	for range [...]int{0, 1, 2, r.IntN(j.Ranks), j.Ranks - 1}[r.IntN(5)] {
		f := Fault{Kind: Kill, Who: r.IntN(anybody)}
		if r.IntN(2) == 0 {
			f.At = at()
		} else {
			f.Step = 1 + r.IntN(12*len(j.Ops))
		}
		faults = append(faults, f)
	}
	for range r.IntN(3) {
		faults = append(faults, Fault{Kind: Pause, Who: r.IntN(anybody), At: at(), For: 1 + Time(r.IntN(400))})
	}
	if r.IntN(3) == 0 {
		faults = append(faults, Fault{Kind: Revoke, Who: r.IntN(anybody), At: at()})
	}
	if j.Hosts > 1 && r.IntN(2) == 0 {
		faults = append(faults, hostFaults(r, j, at)...)
	}
	if r.IntN(40) == 0 {
		faults = append(faults, Fault{Kind: KillLauncher, At: at()})
	}
	return faults
}

// hostFaults are losses of hosts, of which one cut, silent host or pause has mostly been decided about before the next.
func hostFaults(r *rand.Rand, j *Job, at func() Time) (faults []Fault) {
	when := at()
	for range 1 + r.IntN(2) {
		host, length := r.IntN(j.Hosts), 1+Time(r.IntN(900))
		f := Fault{Kind: KillAgent, Who: host, At: when}
		switch r.IntN(4) {
		case 0:
			f = Fault{Kind: KillHost, Who: host, At: when}
		case 1:
			f = Fault{Kind: PauseHost, Who: host, At: when, For: length}
		case 2:
			f = Fault{Kind: Cut, Hosts: r.Perm(j.Hosts)[:1+r.IntN(j.Hosts-1)], At: when, For: length}
		}
		faults = append(faults, f)
		when += at()
		if r.IntN(3) > 0 {
			when += 1000
		}
	}
	return faults
}

// Shrink takes out of a schedule that violates a property whatever it can do without: what is left violates one, too.
func (j Job) Shrink() Job {
	fails := func(try Job) bool { _, err := RunJob(try); return err != nil }
	for again := true; again; {
		again = false
		for _, try := range j.smaller() {
			if fails(try) {
				j, again = try, true
				break
			}
		}
	}
	return j
}

// smaller lists schedules that are a little smaller.
func (j Job) smaller() (out []Job) {
	for i := range j.Faults {
		try := j
		try.Faults = append(append([]Fault(nil), j.Faults[:i]...), j.Faults[i+1:]...)
		out = append(out, try)
	}
	for i := range j.Ops {
		try := j
		try.Ops = append(append([]Op(nil), j.Ops[:i]...), j.Ops[i+1:]...)
		out = append(out, try)
	}
	if j.Ranks > j.Hosts && j.Ranks > 1 {
		try := j
		try.Ranks--
		out = append(out, try)
	}
	return out
}
