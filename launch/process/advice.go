package process

import (
	"errors"
	"syscall"
)

// Advice is what can be done about an error of the system that has made something fail: "; " and a
// sentence, or nothing.
func Advice(err error) string {
	for _, a := range []struct {
		no   syscall.Errno
		text string
	}{
		{syscall.EAGAIN,
			"the limit of processes is reached (ulimit -u, or the container's), start fewer"},
		{syscall.EMFILE, "the limit of open files is reached, raise it with ulimit -n"},
		{syscall.ENFILE,
			"the system's limit of open files is reached (fs.file-max): close other programs, " +
				"or have the administrator raise it"},
		{syscall.ENOMEM,
			"memory is used up: start fewer processes, or raise the limit of the job or container"},
		{syscall.ENOSPC, "the file system is full: df tells which"},
		{syscall.EDQUOT, "the quota is used up: make room, or use another directory"},
	} {
		if errors.Is(err, a.no) {
			return "; " + a.text
		}
	}
	return ""
}
