// Package mutants shows that the simulator can fail: it puts deliberate bugs into the failure protocols, one at a time, and each has to be
// caught by the random schedules of sim. The sources stay as they are: go test takes the changed file from elsewhere (-overlay).
package mutants

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// mutant is a bug: text of a file, which stands there once, and what stands there instead.
type mutant struct{ name, file, old, new string }

var mutants = []mutant{
	{"a later root forgets what it has accepted", "ft/agree/agree.go", "if m.acceptedBallot != none {", "if false {"},
	{"a decision before all have accepted", "ft/agree/agree.go", "b, ok := m.accepts[c]; !ok || b != m.ballot", "b, ok := m.accepts[c]; ok && b != m.ballot"},
	{"new children do not hear of the decision", "ft/agree/agree.go", "case m.committed:\n\t\t\tm.send(c,", "case m.committed && c < 0:\n\t\t\tm.send(c,"},
	{"a new parent does not get the contribution", "ft/agree/agree.go", "\tm.sentGather, m.sentAcpt = none, none", "\tm.sentAcpt = none"},
	{"flags of others are not heeded", "ft/agree/agree.go", "sum.decision.Flags &= g.flags", ""},
	{"acknowledged by one counts for all", "ft/agree/agree.go", "sum.decision.Acked.Intersect(g.acked)", "sum.decision.Acked.Union(g.acked)"},
	{"a proposal of a dead root is taken", "ft/agree/agree.go", "if msg.ballot != m.ballot || m.acceptedBallot == m.ballot {", "if m.acceptedBallot == m.ballot {"},
	{"an orphan of a dead rank is forgotten", "ft/place/place.go", "out = t.living(t.width*i+k+1, out)", "if k > 0 || t.width == 1 {\n\t\t\tout = t.living(t.width*i+k+1, out)\n\t\t}"},
	{"the next head of a host does not take over what the first one had", "ft/place/place.go", "if self != 0 { //", "if false { //"},
	{"a revocation stays on its host", "ft/place/place.go", "return behind(far, at, out)", "return out"},
	{"a revocation is not handed on when members die", "ft/revoke/revoke.go", "m.failed = m.failed.Union(dead)\n\tif !m.revoked {", "m.failed = m.failed.Union(dead)\n\tif true {"},
	{"the agreement before the last is forgotten", "ft/member/member.go", "const keep = 2", "const keep = 1"},
	{"the agreement before the last does not hear of deaths", "ft/member/member.go", "first = m.running - keep + 1", "first = m.running"},
	{"hosts are given up together with one that has reached the limit", "ft/detect/watch.go", "if group[h] >= m.cfg.Limit {", "if slices.Max(slices.Collect(maps.Values(group))) >= m.cfg.Limit {"},
	{"whoever is out is not told", "ft/detect/detect.go", "if msg.epoch >= m.epoch && !m.root() {", "if false {"},
	{"an entry that came in twice is applied twice", "ft/replica/log.go", "p.Seq != m.last[p.Origin]+1", "p.Seq > m.last[p.Origin]+1"},
	{"what an agent is given is without the numbers of entries", "ft/replica/log.go", "m.last = last\n", "m.last = map[int]uint64{}\n"},
	{"what an agent is given is without its time", "ft/replica/log.go", "m.applied = Mark{snap.GetMetadata().GetIndex(), at}", "m.applied = Mark{snap.GetMetadata().GetIndex(), at * 0}"},
	{"a new leader's time is taken as it is", "ft/replica/log.go", "m.applied.At = max(m.applied.At, p.At)", "m.applied.At = p.At"},
	{"an agent decides as soon as it is elected", "ft/replica/replica.go", "m.settled, m.given, m.changing = false, map", "m.settled, m.given, m.changing = role == raft.StateLeader, map"},
	{"a leader that is cut off goes on", "ft/replica/replica.go", "CheckQuorum: true", "CheckQuorum: false"},
	{"an offer that is lost is not made again", "ft/replica/offer.go", "\tp.anew()\n\tp.asked++", "\tp.asked++"},
	{"the dead go on voting", "ft/replica/members.go", "return gone(a) && a != m.cfg.Self", "return false"},
	{"an even number votes", "ft/replica/members.go", "return n - 1 + n%2", "return n"},
	{"attempts to save a version are not told apart", "ckpt/save.go", "\to.generation++\n\to.saved,", "\to.saved,"},
	{"a version counts although a copy was not made", "ckpt/save.go", "if class == 0 && least == most {", "if least == most {"},
	{"what was left of a save is kept", "ckpt/save.go", "if !begun { //", "if false && !begun { //"},
	{"copies that were lost are not made anew", "ckpt/move.go", "if o.set.Copies > 0 {", "if false {"},
	{"memory is freed that messages use", "ckpt/spread.go", "b.uses.Add(1)", "b.uses.Add(0)"},
	{"a version counts of which a part is missing", "ckpt/choose.go", "len(p) == int(v.Ranks)", "len(p) >= int(v.Ranks)-1"},
	{"a process that has left a call is waited for", "ckpt/object.go", "\t\t\t\to.peers.Revoke()", "\t\t\t\to.peers.Rank()"},
	{"who has decided before is still heard", "launch/follow/mirror.go", "if entry.Origin != m.Decider || n <= 0", "if n <= 0"},
	{"who decides goes on although another one does", "launch/follow/office.go", "case o.holds && o.mirror.Decider != o.self:", "case false:"},
	{"a window that may be at others is dropped silently", "core/win/create.go", "\t\treturn Lost\n", "\t\treturn Failed\n"},
	{"a creation of a window ends at its first failure", "core/win/create.go", "\tparts, err := c.hear(mine)\n", "\tparts, err := c.hear(mine)\n\tif err != nil {\n\t\treturn err\n\t}\n"},
	{"not all have come when a window is freed", "core/win/leave.go", "d *= 2", "d *= 3"},
	{"who sees a failure leaves the end of a window", "core/win/leave.go", "\t\tif err == nil {\n\t\t\terr = e\n\t\t}\n\t}\n\treturn err", "\t\tif err = e; err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\treturn err"},
	{"who is cut off waits for ever", "launch/follow/office.go", "if o.waits++; o.waits < o.limit {", "if true {"},
	{"spares wait for those that work, who have died", "ft/repair/repair.go", "\t\tr.Await()\n", "\t\tr.shell.Wait(0, 0, r.pool.Revoked)\n"},
	{"spares alone take the work for done", "ft/repair/repair.go", "if decided&isSpare == 0 {", "if true {"},
	{"a process that cannot make a communicator leaves the others waiting", "ft/repair/repair.go", "pool.Revoke() // no member", "// no member"},
	{"a communicator counts where it was made", "ft/repair/repair.go", "pool.Agree(err == nil)", "pool.Agree(true)"},
	{"a process that meets the others does not call them", "ft/repair/repair.go", "\tr.pool.Revoke()\n\tdecided, next, err", "\tdecided, next, err"},
	{"the cluster leaves while a rank is to be taken over", "ft/repair/repair.go", "return !lives && !r.shell.Done(m)", "return !lives && r.size == 0"},
	{"a place stays with a dead process", "ft/repair/places.go", "m); lives {", "m); lives || m == 0 {"},
	{"one process alone invites", "ft/repair/late.go", "\t\tr.shell.Send(m, v.Encode())", "\t\tif r.self == v.Members[0] {\n\t\t\tr.shell.Send(m, v.Encode())\n\t\t}"},
	{"a late process invites no later one", "ft/repair/late.go", "\tr.send(v, v.Fresh[", "\t_ = r.send\n\t_ = (v.Fresh["},
	{"a change counts where it was made", "ft/malleable/malleable.go", "\tif decided&agree.Go != 0 {", "\tif flags&agree.Go != 0 {"},
	{"a process that fails in a change does not call the others", "ft/malleable/malleable.go", "\t\t\tm.world.Revoke() // other ranks", "\t\t\t// other ranks"},
	{"rank 0 alone knows the commands", "ft/malleable/malleable.go", "if !known && (restarts", "if false && (restarts"},
	{"spawned processes that have failed to meet do not call the others", "ft/malleable/change.go", "} else {\n\t\t\tinter.Revoke()", "} else {"},
	{"commands of a rank 0 that has died are not answered", "ft/malleable/file.go", "if m.order.Unanswered != 0 {", "if false {"},
	{"the agent does not learn of processes after an epoch that it has had", "ft/malleable/malleable.go", "\t\tm.order.Epoch = least\n", ""},
	{"a late process waits for the dead", "ft/repair/late.go", "if before && !r.shell.Left(m) {", "if before {"},
	{"a rank says that it is done when others may have left", "cluster/takeover/meet.go", "p.sh.Publish(true) // before other processes see it, and have left\n\t\tif p.meetAll(true) {", "if p.meetAll(true) {\n\t\t\tp.sh.Publish(true)"},
	{"a rank leaves although others go on", "cluster/takeover/meet.go", "if p.meetAll(true) {\n\t\t\treturn", "if p.meetAll(true); true {\n\t\t\treturn"},
	{"a standby keeps the ranks from leaving", "cluster/takeover/meet.go", "p.meet(true); home", "p.meet(false); home"},
	{"a log is taken for its rank's whatever has become of that", "cluster/msglog/msglog.go", "case !s.src.Runs(rank):", "case false:"},
	{"a rank waits for standbys that have ended", "cluster/msglog/msglog.go", "if !has[s] && !left[s] {", "if !has[s] {"},
}

// testsOf are the random schedules for a file, and their package.
func testsOf(file string) (tests, where string) {
	switch {
	case strings.HasPrefix(file, "ft/replica/"):
		return "TestSequences", "./sim"
	case strings.HasPrefix(file, "ckpt/"):
		return "TestCheckpoints", "./sim"
	case strings.HasPrefix(file, "core/win/"):
		return "TestCreations", "./sim"
	case strings.HasPrefix(file, "ft/repair/"):
		return "TestRepairs", "./sim"
	case strings.HasPrefix(file, "ft/malleable/"):
		return "TestMalleables", "./sim"
	case strings.HasPrefix(file, "launch/follow/"):
		return "TestLeaderships", "./launch/follow"
	case strings.HasPrefix(file, "cluster/takeover/"):
		return "TestTakeovers", "./sim"
	case strings.HasPrefix(file, "cluster/msglog/"):
		return "TestLogs", "./sim"
	}
	return "TestJobs|TestDeathAtEveryStep", "./sim"
}

var found = regexp.MustCompile(`seed \d+: .*`)

func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		if !harness.Full() && i%3 != 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			what, failed := m.run(t, root)
			if !failed {
				t.Fatalf("no schedule shows it:\n%s", what)
			}
			if line := found.FindString(what); line == "" {
				t.Fatalf("it fails for another reason:\n%s", what)
			} else {
				t.Log(line)
			}
		})
	}
}

// run runs the simulator on the changed source.
func (m mutant) run(t *testing.T, root string) (output string, failed bool) {
	source := filepath.Join(root, m.file)
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s has %d times %q: the mutant has to follow the source", m.file, n, m.old)
	}
	changed, overlay := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err == nil {
		err = os.WriteFile(changed, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, replace, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	defer cancel()
	tests, where := testsOf(m.file)
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-overlay", overlay, where, "-run", tests, "-schedules", "30000")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("not over after 150 s:\n%s", out)
	}
	return string(out), err != nil
}
