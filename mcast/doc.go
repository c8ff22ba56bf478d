// Package mcast is the pure part of dynamic multicast: a message to any set of processes, without a
// communicator for them (docs/multicast.md).
//
//   - wire.go: how the set travels with the message, compressed into arithmetic progressions
//   - tree.go: to which members a member forwards the message, by host
//   - process.go: a process's decisions: numbers, forwarding, holding back, order, and the handling
//     of deaths
//   - parts.go: from which host each part of a long message comes to which
//   - plan.go: the sends of whole messages, by process and range of bytes: tree, scatter and ring,
//     scatter and doubling, chain
//
// It owns no process, socket, clock or memory. capi/dataplane/mcast/mcast.c and
// mcast_wire.c implement the tree and read the same wire form, and the table of cases in
// capi/dataplane/mcast/test/zz_mcast_cases.h, made here, holds them to it. The plans are for
// simulation and measurement. The package must not know communicators or ranks: members are process
// numbers.
package mcast
