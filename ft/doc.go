// Package ft contains the failure logic as pure state machines, which decide and never act.
//
// Each sub-package is one protocol. A machine takes events (a call by the application, a message,
// the certain knowledge that ranks have died) and returns actions (send these bytes to that rank,
// return this result). It owns no goroutine, clock, socket, or source of randomness; the shell
// around it (capi for real processes, sim for simulated ones) performs the actions in order and
// passes in the next event. Ranks are those of the communicator that the machine serves.
//
//   - rankset: sparse sets of ranks, and their wire form
//   - place: which members communicate, so that only one member of each host communicates with
//     other hosts
//   - agree: uniform agreement among the living members of a communicator; it carries
//     MPIX_Comm_agree and MPIX_Comm_shrink
//   - revoke: reliable broadcast of a revocation, MPIX_Comm_revoke
//   - repair: spares get the places of dead processes, MPIX_Comm_repair
//   - malleable: the number of processes changes while the program runs, ulfm_dyprc
//   - detect: which hosts are silent, which continue then, and which have to end; its members are
//     hosts, and its shell is launch/agent
//   - replica: one sequence of entries at several hosts, so that none of them is special (Raft)
//
// repair and malleable build on agreements and communicators, for which they wait: their processes
// run as coroutines.
//
// Failure knowledge is certain: the kernel's word (a pidfd) from a live agent, or a fenced host. A
// death is never revoked. Messages between two living processes are delivered once and in order;
// what a process sent before it died may or may not arrive.
package ft
