// Package conn decides which connections a process keeps and which way its messages go, after
// Kaneda, Taura and Yonezawa ("A message passing system with dynamic connection management"),
// section 3: connections to every process on the own switch and to one on each other switch; relays
// along routes that are found by exchanging messages; shortcuts for those who talk, the least
// recently used of which is closed when there are too many.
//
// What the paper leaves open, and what holds here:
//   - Nothing is lost, doubled or reordered when a way changes: messages of a pair are numbered,
//     the receiver holds back what comes early, and what went through relays is kept until the
//     receiver says that it has it (reliable.go).
//   - A shortcut is closed by an exchange of Close frames, each the last one of its direction, so
//     that nothing is under way in it (cache.go).
//   - Relays hold a bounded number of frames and cannot deadlock: a frame says how many hops it may
//     still take, buffers are given out by that number, and a frame only ever waits for a buffer of
//     a smaller one (relay.go).
//   - When a process dies, others' ways lead around it, and what it held comes again.
//   - Where a process may have far fewer connections than there are processes, and nothing is known
//     of the network, Few says who relays (few.go).
//
// The package is pure: a Node takes events and returns what to send, open, close and deliver. It
// has no socket, clock or randomness; sim runs the same code by the hundred.
package conn
