package agent

import (
	"cmp"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/service"
)

// Output when the spxrun that printed it is lost: the agent that decides next writes it to a file
// of its host (keptOutput, clients.go).

// mostKept bounds the output that is kept of a job whose user has named no file for it, in bytes.
const mostKept = 64 << 20

// outputFile is a file for the output of this job on this host: that of spxrun --detach, where the
// hosts share the folder.
func (a *agent) outputFile() (file *os.File, most int) {
	if most = -1; !a.spec.Detached {
		most = mostKept
	}
	if f := openOwn(a.outputPath(cmp.Or(a.spec.OutputDir, a.spec.Dir)), 0o666); f != nil {
		return f, most
	}
	if f := openOwn(a.outputPath(os.TempDir()), 0o600); f != nil {
		return f, most
	}
	return nil, 0
}

// openOwn opens a file to write at its end, and for clients to read, or makes it; nil: that cannot
// be, or another user has put something in its place, whose name is no secret.
func openOwn(name string, mode os.FileMode) *os.File {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK,
		mode)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		f.Close()
		return nil
	}
	return f
}

// flush writes what was to be sent.
func (u *uplink) flush() {
	for _, m := range outputOnly(u.box.empty()) {
		u.kept.write(m.Output.Text) //nolint:errcheck // no terminal is left to say it on
	}
}

// pass hands text on; false: it is not taken, and will not be.
func (u *uplink) pass(stream int, text []byte) bool {
	if !u.window.take(len(text)) {
		if !u.kept.on.Load() {
			return false
		}
		u.kept.write(text) //nolint:errcheck // see flush
		return true
	}
	u.box.put(&control.Message{Output: &control.Output{Stream: stream, Text: slices.Clone(text)}})
	if u.kept.on.Load() {
		u.flush()
	}
	return true
}

// endLine is the last line of that file.
func (a *agent) endLine(status int) string {
	if a.succession.left {
		return ""
	}
	return service.EndLine(a.jobNumber(), status)
}
