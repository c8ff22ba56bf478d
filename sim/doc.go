// Package sim runs the very state machines of libspx under a seeded discrete-event network: thousands of simulated
// ranks in one goroutine, with delays, deaths at any step (also between two sends of one step), and late news of them. One seed and
// one commit replay a run exactly.
//
// net.go is the event queue and the network. Whole jobs (job.go) run the failure protocols (package ft/member) in processes (process.go) on hosts
// with agents (hosts.go), which watch each other (watch.go, package ft/detect); check.go checks, after every event, what must never happen (safety), and at the end what must have happened (liveness);
// random.go makes schedules and shrinks those that fail, text.go writes and reads them. topo.go measures simulated networks of switches
// for the inference of net/topo; conn.go lets processes talk over the connections that net/conn chooses; creation.go runs collective creations
// (core/comm) with a death at a step, windows.go those of windows (core/win); checkpoint.go runs programs with checkpoints (ckpt),
// with deaths, and calls that are left, at any step; repair.go and malleable.go run repairs with spares and programs that change
// their number of processes (ft/repair, ft/malleable), over the communicators of teams.go and the tasks of steps.go;
// takeover.go runs takeovers of ranks (cluster/takeover), logs.go how standbys get the logs of ranks (cluster/msglog).
package sim
