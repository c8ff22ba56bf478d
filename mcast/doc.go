// Package mcast is the pure part of dynamic multicast: a message to any set of processes that
// nobody has made a communicator for (docs/multicast.md).
//
//   - wire.go: how the set travels with the message, compressed into arithmetic progressions
//   - tree.go: which members a member hands the message on to, by host
//   - process.go: what a process decides: numbers, handing on, holding back, order, and what deaths
//     do
//   - parts.go: from which host each part of a long message comes to which
//   - plan.go: who sends which bytes to whom, for whole messages: tree, scatter and ring, scatter
//     and doubling, chain
//
// It owns no process, socket, clock or memory of anybody. capi/dataplane/mcast/mcast.c and
// mcast_wire.c carry out the tree and read the same wire form, and the table of cases in
// capi/dataplane/mcast/test/zz_mcast_cases.h, made here, holds them to it. The plans are for
// simulation and measurement. The package must not know communicators or ranks: members are process
// numbers.
package mcast
