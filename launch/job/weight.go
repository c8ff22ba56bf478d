package job

// Weighty reports whether an action of a list must not be performed before a majority of the
// keepers of the event sequence have its event (package launch/follow). A process's normal end may
// be published before: its host reports it again to the next deciding agent.
func Weighty(list []Action) bool {
	for _, act := range list {
		if p, ok := act.(Publish); !ok || p.Dead {
			return true
		}
	}
	return false
}
