package agree

// Flags of agreements that shrink the communicator unless all living members are calm: what all of
// them give is decided.
const (
	// no failure was seen here, nothing was revoked: the communicator is as good as before
	Calm = 1 << iota
	Go   // what was to be done is done here
)
