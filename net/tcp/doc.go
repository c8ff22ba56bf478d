// Package tcp makes connections between the processes of a job, over any stream: both ends prove
// that they hold the job's key before a byte of data is believed.
//
//	from -> to   hello: job, caller, callee, a nonce, a digest of the ways that messages take
//	to -> from   challenge: a nonce, and HMAC-SHA-256(key, "to" hello nonce); "to, and it differs" where messages take other ways
//	from -> to   proof: HMAC-SHA-256(key, "from" hello nonce)
//	             here TLS 1.3 begins, if both are set to it and nothing differs (seal.go)
//	to -> from   verdict: taken, or a connection of this pair exists already or is being made by the other end, or messages
//	             take other ways here: which
//
// It owns the handshake and the cost of strangers: a bounded number of unproved connections, for a
// bounded time, the oldest dropped first. Bytes that follow the verdict are not touched: the
// socket, or the TLS stream over it, is passed to the caller as it is. It knows no ranks, opens no
// listener, and keeps nothing about connections that were made.
package tcp
