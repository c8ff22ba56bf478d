package job

// Weighty reports whether something of a list must not be done before a majority of those that keep
// the sequence of events know of the event it comes from (package launch/follow). That a process
// has left as it should may be told before: its host tells it again to whoever decides next.
func Weighty(list []Action) bool {
	for _, act := range list {
		if p, ok := act.(Publish); !ok || p.Dead {
			return true
		}
	}
	return false
}
