package inspect

import (
	"libspx/core/diagnose"
	"libspx/shm"
)

func newFiles() struct{} { return struct{}{} }

func stackOf(p *diagnose.Proc, waits []shm.Wait, files struct{}) {}
