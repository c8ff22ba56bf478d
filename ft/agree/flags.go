package agree

// Flags of agreements that shrink the communicator unless all living members are calm: what all of them give is decided.
const (
	Calm = 1 << iota // no failure was seen here, nothing was revoked: the communicator is as good as before
	Go               // what was to be done is done here
)
