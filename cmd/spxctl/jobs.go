package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"libspx/core/diagnose"
	"libspx/launch/service"
	"libspx/launch/steer"
)

// Commands for running jobs: docs/malleability.md.

func jobsCommand() *cobra.Command {
	c := &cobra.Command{Use: "jobs", Short: "lists this user's running jobs on this host", Args: cobra.NoArgs}
	asJSON := c.Flags().Bool("json", false, "for programs")
	long := c.Flags().BoolP("long", "l", false, "also on how many hosts, and since when")
	c.RunE = func(*cobra.Command, []string) error {
		list, late := steer.List()
		if late != nil {
			fmt.Fprintln(os.Stderr, "spxctl:", late)
		}
		if *asJSON {
			return json.NewEncoder(os.Stdout).Encode(append([]service.About{}, list...))
		}
		for _, j := range list {
			takes := "takes no commands"
			if j.Commands {
				takes = "takes commands"
			}
			where := ""
			if *long {
				where = fmt.Sprintf(" on %d hosts from %s on, since %s", j.Hosts, j.Host, j.Since)
			}
			fmt.Printf("%s  %4d processes%s, %s: %s\n", j.Job, j.Procs, where, takes, j.Program)
		}
		return nil
	}
	return c
}

func limitFlag(c *cobra.Command) *time.Duration {
	return c.Flags().Duration("limit", 10*time.Minute, "how long to wait until it is done")
}

func resizeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "resize JOB M",
		Short: "makes a running program M processes",
		Long: `JOB is the beginning of a number that spxctl jobs shows, the name of a program or of a cluster, if one job alone has it, or . for the only
job there is. The program has to use ulfm_dyprc. It is done when the command returns.`,
		Args: cobra.ExactArgs(2),
	}
	limit := limitFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		m, err := strconv.Atoi(args[1])
		if err != nil || m < 1 {
			return fmt.Errorf("%q is no number of processes, 1 or more", args[1])
		}
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		return tell(steer.Command(job, args[1], *limit))
	}
	return c
}

func tell(c service.Change, err error) error {
	if err == nil {
		fmt.Printf("%d -> %d processes in %.6f s\n", c.From, c.To, c.Seconds)
	}
	return err
}

func ranks(words []string) (list []uint32, err error) {
	for _, w := range words {
		rank, err := strconv.ParseUint(w, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q is no rank", w)
		}
		list = append(list, uint32(rank))
	}
	return list, nil
}

// processes resolves words to living processes: ranks, or processes of a system by the names that
// spxctl ps shows.
func processes(job uint64, words []string) (list []uint32, err error) {
	if list, err = ranks(words); err == nil {
		return list, nil
	}
	procs, err := steer.Inspect(job, false)
	if err != nil {
		return nil, err
	}
	list = nil
	for _, w := range words {
		i := slices.IndexFunc(procs, func(p diagnose.Proc) bool { return p.Alive() && p.Tag() == w })
		if i < 0 {
			return nil, fmt.Errorf("%q is no rank, nor what spxctl ps calls a process that lives", w)
		}
		list = append(list, uint32(procs[i].Proc))
	}
	return list, nil
}

func killCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "kill JOB [RANK...]",
		Short: "kills processes of a running program, or all",
		Long: `Kills them by SIGKILL, as a failure would, and waits until the others have recovered, if the program uses ulfm_dyprc. The ranks are those that the program has now; in a system, names as
spxctl ps shows them: radar.0, radar.standby1, input-radar.iop0. --poll: the
program is told, and they kill themselves at its next poll. Without ranks the whole job ends, as by spxctl end.`,
		Args: cobra.MinimumNArgs(1),
	}
	limit := limitFlag(c)
	poll := c.Flags().Bool("poll", false, "by the program itself")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && *poll {
			return errors.New("--poll: which ranks?")
		}
		if len(args) == 1 {
			return endJob(args[0], *limit)
		}
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		list, err := processes(job, args[1:])
		if err != nil {
			return err
		}
		if *poll {
			return tell(steer.Command(job, "k"+strings.Join(args[1:], ","), *limit))
		}
		done, err := steer.Kill(job, list, *limit)
		// there is no report of when the other processes have recovered
		if err == nil && done.Seconds == 0 {
			fmt.Printf("%d of %d processes killed\n", done.From-done.To, done.From)
			return nil
		}
		return tell(done, err)
	}
	return c
}

func waitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "wait JOB",
		Short: "waits for the end of a running job, and ends with its exit status",
		Long: `Returns when the job has ended and its output is written, with the exit status that spxrun has, or would have without --detach. Says so, with
status 1, when the job is not there, or its agent was killed and nobody knows.`,
		Args: cobra.ExactArgs(1),
	}
	limit := c.Flags().Duration("limit", 0, "how long to wait; 0: for ever")
	c.RunE = func(_ *cobra.Command, args []string) error {
		_, status, err := ended(args[0], 0, *limit)
		if err == nil && status != 0 {
			os.Exit(status)
		}
		return err
	}
	return c
}

func endCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "end JOB",
		Short: "ends a running job",
		Long: `Sends SIGTERM to the whole job, as a signal to spxrun would, and SIGKILL 3 s later to what has not ended by then; waits for the end. Single
processes are killed by spxctl kill.`,
		Args: cobra.ExactArgs(1),
	}
	limit := limitFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error { return endJob(args[0], *limit) }
	return c
}

func endJob(name string, limit time.Duration) error {
	job, status, err := ended(name, int(unix.SIGTERM), limit)
	if err == nil {
		fmt.Printf("job %016x has ended, exit status %d\n", job, status)
	}
	return err
}

// longest is the limit of an unbounded wait.
const longest = 1 << 62

func ended(name string, signal int, limit time.Duration) (job uint64, status int, err error) {
	if job, err = steer.Find(name); err == nil {
		status, err = steer.AwaitEnd(job, signal, cmp.Or(limit, longest))
	}
	return job, status, err
}

func hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook SOCKET",
		Short: "serves a socket by which a resource manager changes running jobs",
		Long: `Listens on a socket of that name (-: standard input and output) for requests, one JSON object in each line, and answers each when it is
done: docs/malleability.md. Only this user is heard. The socket is removed at the end.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "-" {
				return steer.Serve(struct {
					io.Reader
					io.Writer
				}{os.Stdin, os.Stdout})
			}
			return listen(args[0])
		},
	}
}

// mostClients are served at once; further ones wait.
const mostClients = 32

// acceptPause is waited when a connection cannot be taken.
const acceptPause = 10 * time.Millisecond

func listen(name string) error {
	old := unix.Umask(0o177)
	l, err := net.Listen("unix", name)
	unix.Umask(old)
	if err != nil {
		return err
	}
	stopped := onSignal(func() { l.Close() }) // removes the socket
	places := make(chan struct{}, mostClients)
	for {
		places <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			if stopped() || errors.Is(err, net.ErrClosed) {
				return nil
			}
			<-places
			// no descriptor, or the caller has gone: not the end of this socket
			time.Sleep(acceptPause)
			continue
		}
		go func() {
			defer func() { <-places }()
			defer conn.Close()
			if ownUser(conn.(*net.UnixConn)) {
				steer.Serve(conn) //nolint:errcheck // the client has been told, or is gone
			}
		}()
	}
}

func ownUser(conn *net.UnixConn) (own bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) { //nolint:errcheck // false then
		who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		own = err == nil && int(who.Uid) == os.Getuid()
	})
	return own
}
