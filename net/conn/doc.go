// Package conn decides which connections a process keeps and which way its messages go, after
// Kaneda, Taura and Yonezawa ("A message passing system with dynamic connection management"),
// section 3: connections to every process on the own switch and to one on each other switch; relays
// along routes that are found by exchanging messages; shortcuts for communicating pairs, of which
// the least recently used is closed when there are too many.
//
// Where the paper is silent, this holds:
//   - Nothing is lost, doubled or reordered when a way changes: messages of a pair are numbered,
//     the receiver holds back early messages, and relayed messages are kept until the receiver
//     acknowledges them (reliable.go).
//   - A shortcut is closed by an exchange of Close frames, each the last one of its direction, so
//     that nothing is under way in it (cache.go).
//   - Relays hold a bounded number of frames and cannot deadlock: a frame carries the number of
//     hops left to it, buffers are assigned by that number, and a frame only ever waits for a
//     buffer of a smaller one (relay.go).
//   - When a process dies, the other processes route around it, and the frames it held are sent
//     again.
//   - Where a process may have far fewer connections than there are processes, and the network is
//     unknown, Few selects the relays (few.go).
//
// The package is pure: a Node takes events and returns what to send, open, close and deliver. It
// has no socket, clock or randomness; sim runs the same code by the hundred.
package conn
