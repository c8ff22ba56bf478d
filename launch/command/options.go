package command

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"libspx/core/ident"
)

// An option is a row of the table: the parser and --help read it.
type option struct {
	// spellings, after one dash or two; the first is shown with all others beside it
	names []string
	meta  string // names of its values, as --help shows them; empty: takes none
	nargs int
	pair  bool // "NAME VALUE", or NAME=VALUE in one word
	// its one value may be missing; reports whether the next word is that value
	optional func(word string) bool
	group    string
	help     string
	apply    func(p *parser, v []string) error // nil: accepted without effect
}

// wants is the number of values that the option takes, given those in its own word.
func (o *option) wants(inline, rest []string) int {
	switch {
	case o.optional != nil:
		if len(inline) > 0 || len(rest) > 0 && o.optional(rest[0]) {
			return 1
		}
		return 0
	case o.pair:
		first := append(append([]string(nil), inline...), rest...)
		if len(first) > 0 && strings.Contains(first[0], "=") {
			return 1
		}
		return 2
	}
	return o.nargs
}

const (
	groupWhat   = "What runs"
	groupEnv    = "Environment"
	groupWhere  = "Where"
	groupOutput = "Input and output"
	groupEnd    = "Failures and the end"
	groupSee    = "What happens"
	groupOther  = "Other"
	groupIgnore = "Accepted from scripts for other launchers, without effect here"
)

func flag(set func(j *Job)) func(*parser, []string) error {
	return func(p *parser, _ []string) error { set(p.job); return nil }
}

var table []*option

func init() {
	table = append(table, whatOptions...)
	table = append(table, envOptions...)
	table = append(table, whereOptions...)
	table = append(table, outputOptions...)
	table = append(table, endOptions...)
	table = append(table, traceOptions...)
	table = append(table, otherOptions...)
}

var whatOptions = []*option{
	{names: []string{"n", "np", "c"}, meta: "N", nargs: 1, group: groupWhat,
		help: "number of processes of the program (default: the slots of the host list, else 1)",
		apply: func(p *parser, v []string) (err error) {
			p.section.program.Procs, err = number(v[0], "a number of processes", 1, MaxProcs)
			return err
		}},
	{names: []string{"wdir", "wd", "cwd"}, meta: "DIR", nargs: 1, group: groupWhat,
		help:  "working directory of the program",
		apply: func(p *parser, v []string) error { p.section.program.Dir = v[0]; return nil }},
	{names: []string{"path"}, meta: "DIRS", nargs: 1, group: groupWhat,
		help:  "look for the program in these directories (a:b) before PATH",
		apply: func(p *parser, v []string) error { p.section.program.Path = v[0]; return nil }},
	{names: []string{"usize"}, meta: "N", nargs: 1, group: groupWhat,
		help: "MPI_UNIVERSE_SIZE: how many processes there may come to be, spawned ones " +
			"included (default: the processors, or twice the processes)",
		apply: func(p *parser, v []string) (err error) {
			p.job.Universe, err = number(v[0], "a number of processes", 1, MaxProcs)
			return err
		}},
	{names: []string{"configfile", "app"}, meta: "FILE", nargs: 1, group: groupWhat,
		help:  "read programs with their options from FILE, one per line; # starts a comment",
		apply: func(p *parser, v []string) error { return p.config(v[0]) }},
	{names: []string{"memory-alloc-kinds"}, meta: "LIST", nargs: 1, group: groupWhat,
		help: "memory allocation kinds that are asked for, as system,mpi:alloc_mem",
		apply: func(p *parser, v []string) error {
			return setVariable(&p.global, []string{"SPX_MEMORY_ALLOC_KINDS", v[0]})
		}},
	{names: []string{"system"}, meta: "FILE", nargs: 1, group: groupWhat,
		help: "start a system of clusters, as the system file says (docs/systems.md); no " +
			"program stands on the command line then",
		apply: func(p *parser, v []string) error { p.job.System = v[0]; return nil }},
	{names: []string{"cluster"}, meta: "NAME", nargs: 1, group: groupWhat,
		help: "with --system: start this cluster alone, on this host or those that the file " +
			"gives it, and join the others, which are started likewise; else the name of the " +
			"cluster that the job is: its processes are the process set spx://cluster/NAME",
		apply: func(p *parser, v []string) error {
			if err := ident.CheckCluster(v[0]); err != nil {
				return err
			}
			p.job.Cluster = v[0]
			return setVariable(&p.global, []string{"SPX_CLUSTER", v[0]})
		}},
	{names: []string{"join"}, meta: "ADDRESS", nargs: 1, group: groupWhat,
		help: "with --system and --cluster: attach the cluster to the system that runs and is " +
			"led at this address (HOST:PORT), whatever address the file has, if any; its file " +
			"may describe the cluster and its links alone",
		apply: func(p *parser, v []string) error {
			host, port, err := net.SplitHostPort(v[0])
			if n, e := strconv.Atoi(port); err != nil || e != nil || host == "" || n < 1 ||
				n > 65535 {
				return fmt.Errorf(
					"%q is no address: HOST:PORT, as 10.1.0.1:7400, is where the system is led "+
						"(address in the [system] of its file)", v[0])
			}
			p.job.Join = v[0]
			return nil
		}},
	{names: []string{"layout"}, meta: "FILE", nargs: 1, group: groupWhat,
		help: "the programs are the clusters and I/O processes of a system, as the table in " +
			"FILE says (docs/systems.md)",
		apply: func(p *parser, v []string) error { p.job.Layout = v[0]; return nil }},
	{names: []string{"initial-errhandler"}, meta: "NAME", nargs: 1, group: groupWhat,
		help: "initial error handler: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return",
		apply: func(p *parser, v []string) error {
			switch v[0] {
			case "mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return":
				p.job.InitialErrhandler = v[0]
				return nil
			}
			return fmt.Errorf(
				"%q is none of mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return", v[0])
		}},
}

var envOptions = []*option{
	{names: []string{"env"}, meta: "NAME VALUE", pair: true, group: groupEnv,
		help:  "set a variable for this program",
		apply: func(p *parser, v []string) error { return setVariable(&p.section.env, v) }},
	{names: []string{"genv"}, meta: "NAME VALUE", pair: true, group: groupEnv,
		help:  "set a variable for all programs",
		apply: func(p *parser, v []string) error { return setVariable(&p.global, v) }},
	{names: []string{"x"}, meta: "NAME[=VALUE]", nargs: 1, group: groupEnv,
		help: "set or hand on a variable for all programs", apply: (*parser).exportVariable},
	{names: []string{"envall"}, group: groupEnv,
		help:  "this program inherits all variables (the default)",
		apply: func(p *parser, _ []string) error { p.section.env.policy = inheritAll; return nil }},
	{names: []string{"envnone"}, group: groupEnv,
		help: "this program inherits none",
		apply: func(p *parser,
			_ []string) error {
			p.section.env.policy = inheritNone
			return nil
		}},
	{names: []string{"envlist"}, meta: "A,B", nargs: 1, group: groupEnv,
		help: "this program inherits only these",
		apply: func(p *parser, v []string) error {
			p.section.env.policy, p.section.env.names = inheritList, strings.Split(v[0], ",")
			return nil
		}},
	{names: []string{"genvall"}, group: groupEnv,
		help:  "as -envall, for all programs",
		apply: func(p *parser, _ []string) error { p.global.policy = inheritAll; return nil }},
	{names: []string{"genvnone"}, group: groupEnv,
		help:  "as -envnone, for all programs",
		apply: func(p *parser, _ []string) error { p.global.policy = inheritNone; return nil }},
	{names: []string{"genvlist"}, meta: "A,B", nargs: 1, group: groupEnv,
		help: "as -envlist, for all programs",
		apply: func(p *parser, v []string) error {
			p.global.policy, p.global.names = inheritList, strings.Split(v[0], ",")
			return nil
		}},
}

var whereOptions = []*option{
	{names: []string{"host", "hosts", "H"}, meta: "LIST", nargs: 1, group: groupWhere,
		help: "hosts, as NAME or NAME:SLOTS, with commas",
		apply: func(p *parser, v []string) error {
			p.job.Hosts = append(p.job.Hosts, strings.Split(v[0], ",")...)
			return nil
		}},
	{names: []string{"hostfile", "f", "machinefile"}, meta: "FILE", nargs: 1, group: groupWhere,
		help: "file of hosts: NAME, NAME:SLOTS or NAME slots=SLOTS per line (also by " +
			"SPX_HOSTFILE; without any, what a batch system has given)",
		apply: func(p *parser, v []string) error {
			p.job.HostFiles = append(p.job.HostFiles,
				v[0])
			return nil
		}},
	{names: []string{"ppn", "perhost", "N", "npernode"}, meta: "N", nargs: 1, group: groupWhere,
		help: "so many ranks in a row on each host (default: its slots, 1 if the list does not " +
			"say)",
		apply: func(p *parser, v []string) (err error) {
			p.job.PerHost, err = number(v[0], "a number of ranks", 1, MaxProcs)
			return err
		}},
	{names: []string{"rsh", "launcher-exec", "bootstrap-exec"}, meta: "COMMAND", nargs: 1,
		group: groupWhere,
		help:  "reach other hosts by COMMAND HOST LINE instead of ssh (also by SPX_RSH)",
		apply: func(p *parser, v []string) error {
			if p.job.Rsh = strings.Fields(v[0]); p.job.Rsh == nil {
				return fmt.Errorf("needs a command")
			}
			return nil
		}},
	{names: []string{"fanout"}, meta: "N", nargs: 1, group: groupWhere,
		help: "an agent starts the agents of at most N other hosts, which start those of more; " +
			"0: spxrun's host starts all (default: 64, or 0 where srun or qrsh reaches them; " +
			"also by SPX_FANOUT)",
		apply: func(p *parser, v []string) error {
			if _, err := number(v[0], "a number of hosts", 0, 1<<20); err != nil {
				return err
			}
			p.job.Fanout = v[0]
			return nil
		}},
	{names: []string{"prefix"}, meta: "DIR", nargs: 1, group: groupWhere,
		help:  "where libspx is installed on other hosts (default: the same place as here)",
		apply: func(p *parser, v []string) error { p.job.Prefix = v[0]; return nil }},
	{names: []string{"iface"}, meta: "NAME", nargs: 1, group: groupWhere,
		help: "the interface that hosts talk over, by its name or as a network (10.0.0.0/8); " +
			"default: the one that leads to the others",
		apply: func(p *parser, v []string) error { p.job.Iface = v[0]; return nil }},
	{names: []string{"more-hosts"}, group: groupWhere,
		help: "let hosts be added while the job runs (spxctl hosts) although it begins on one, " +
			"and jobs of other hosts meet this one (also by SPX_MORE_HOSTS=1)",
		apply: flag(func(j *Job) { j.MoreHosts = true })},
	{names: []string{"name-server", "ompi-server"}, meta: "FILE", nargs: 1, group: groupWhere,
		help: "published names (MPI_Publish_name) are found by all jobs that are started with " +
			"this file, also on other hosts (spxctl names serve FILE; also by SPX_NAME_SERVER)",
		apply: func(p *parser, v []string) error {
			if p.job.NameServer = strings.TrimPrefix(v[0], "file:"); p.job.NameServer == "" {
				return fmt.Errorf("needs a file")
			}
			return nil
		}},
	{names: []string{"probe"}, group: groupWhere,
		help: "measure which hosts share a switch first, where that is not known (spxctl " +
			"topology; for SPX_CONNECTIONS=topology:K)",
		apply: flag(func(j *Job) { j.Probe = true })},
	{names: []string{"bind-to"}, meta: "WHAT", nargs: 1, group: groupWhere,
		help: "restrict each rank to a core, hwthread, socket or numa domain in turn (default: " +
			"none)", apply: (*parser).bindTo},
}

var outputOptions = []*option{
	{names: []string{"l", "prepend-rank", "tag-output"}, group: groupOutput,
		help: "start every line of output with [rank]", apply: flag(func(j *Job) { j.Tag = true })},
	{names: []string{"output", "output-filename"}, meta: "DIR", nargs: 1, group: groupOutput,
		help: "write the output to files in DIR, one per rank and stream, not to spxrun's",
		apply: func(p *parser, v []string) error {
			if v[0] == "" {
				return fmt.Errorf("needs the name of a directory")
			}
			p.job.OutputDir = v[0]
			return nil
		}},
	{names: []string{"stdin", "s"}, meta: "WHO", nargs: 1, group: groupOutput,
		help: "who reads standard input: a rank, all or none (default: 0)",
		apply: func(p *parser, v []string) (err error) {
			switch v[0] {
			case "all":
				p.job.Stdin = Stdin{All: true}
			case "none":
				p.job.Stdin = Stdin{Rank: -1}
			default:
				p.job.Stdin.All = false
				p.job.Stdin.Rank, err = number(v[0], "a rank, all or none", 0, MaxProcs-1)
			}
			return err
		}},
}

var endOptions = []*option{
	{names: []string{"timeout"}, meta: "SEC", nargs: 1, group: groupEnd,
		help: "end the job after SEC seconds, with status 124 (also by MPIEXEC_TIMEOUT)",
		apply: func(p *parser, v []string) (err error) {
			p.job.Timeout,
				err = seconds(v[0])
			return err
		}},
	{names: []string{"report-on-timeout"}, group: groupEnd,
		help: "and say before what every rank does, and why it waits (spxctl waits; also by " +
			"Ctrl-\\)",
		apply: flag(func(j *Job) { j.Report = true })},
	{names: []string{"hang-after"}, meta: "SEC", nargs: 1, group: groupEnd,
		help: "say the same when a rank has waited for SEC seconds in one call; when it can " +
			"never go on, end the job with status 124",
		apply: func(p *parser, v []string) (err error) {
			p.job.HangAfter,
				err = seconds(v[0])
			return err
		}},
	{names: []string{"on-death"}, meta: "HOW", nargs: 1, group: groupEnd,
		help: "when a rank dies: auto (end the job, unless an error handler of a survivor " +
			"returns), kill or continue",
		apply: func(p *parser, v []string) error {
			switch OnDeath(v[0]) {
			case DeathAuto, DeathKill, DeathContinue:
				p.job.OnDeath, p.onDeathGiven = OnDeath(v[0]), true
				return nil
			}
			return fmt.Errorf("%q is none of auto, kill, continue", v[0])
		}},
	{names: []string{"detach"}, group: groupEnd,
		help: "return as soon as the job runs, which goes on; its name and its file of output " +
			"are printed (spxctl wait, end, ps)",
		apply: flag(func(j *Job) { j.Detach = true })},
	{names: []string{"attach"}, meta: "JOB", nargs: 1, group: groupEnd,
		help: "take spxrun's place in a job that goes on without it, on the host that has its " +
			"output: print that, hand signals on, end with the job's exit status; SIGINT, " +
			"SIGTERM and SIGHUP end this spxrun alone",
		apply: func(p *parser, v []string) error {
			if v[0] == "" {
				return fmt.Errorf(
					"needs the name of a job (the beginning of its number, or its program), or " +
						". for the only one")
			}
			p.job.Attach = v[0]
			return nil
		}},
	{names: []string{"since"}, meta: "WHEN", nargs: 1, group: groupEnd,
		help: "with --attach: print output from the start of its file on, or from where it was " +
			"last printed to (start, last; default: last)",
		apply: func(p *parser, v []string) error {
			if v[0] != "start" && v[0] != "last" {
				return fmt.Errorf("%q is none of start, last", v[0])
			}
			p.job.Since = v[0]
			return nil
		}},
	{names: []string{"with-ft"}, meta: "[ulfm|none]", optional: isFTMode, group: groupEnd,
		help: "tell survivors of deaths, whatever their error handlers; implies " +
			"--on-death=continue",
		apply: func(p *parser, v []string) error {
			if len(v) > 0 && !isFTMode(v[0]) {
				return fmt.Errorf("%q is none of ulfm, none", v[0])
			}
			p.job.WithFT = len(v) == 0 || !(v[0] == "none" || v[0] == "no" || v[0] == "false")
			return nil
		}},
	{names: []string{"enable-recovery"}, group: groupEnd, help: "as --on-death=continue",
		apply: func(p *parser, _ []string) error {
			p.job.OnDeath, p.onDeathGiven = DeathContinue,
				true
			return nil
		}},
	{names: []string{"disable-auto-cleanup"}, group: groupEnd,
		help: "as --on-death=continue, and a death shows in the exit status, as Hydra has it",
		apply: func(p *parser, _ []string) error {
			p.job.OnDeath, p.onDeathGiven, p.job.CountDeaths = DeathContinue, true, true
			return nil
		}},
	{names: []string{"disable-recovery"}, group: groupEnd, help: "as --on-death=kill",
		apply: func(p *parser, _ []string) error {
			p.job.OnDeath, p.onDeathGiven = DeathKill,
				true
			return nil
		}},
}

var traceOptions = []*option{
	{names: []string{"trace"}, meta: "FILE", nargs: 1, group: groupSee,
		help: "write a timeline of all ranks, with their MPI calls and messages, for " +
			"ui.perfetto.dev, chrome://tracing and spxctl report; FILE.gz: compressed",
		apply: func(p *parser, v []string) error {
			if v[0] == "" {
				return fmt.Errorf("needs the name of a file")
			}
			p.job.Trace = v[0]
			return nil
		}},
	{names: []string{"trace-limit"}, meta: "MB", nargs: 1, group: groupSee,
		help: "how much --trace keeps of every rank, in MB: what came last (default: 32; a call " +
			"takes 128 bytes, a message 256)",
		apply: func(p *parser, v []string) error {
			n, err := number(v[0], "a number of MB", 1, 1<<20)
			p.job.TraceLimit = n << 20
			return err
		}},
	{names: []string{"profile"}, group: groupSee,
		help: "say at the end how much time each rank has spent in MPI, where, and what it has " +
			"sent",
		apply: flag(func(j *Job) { j.Profile = true })},
	{names: []string{"profile-json"}, meta: "FILE", nargs: 1, group: groupSee,
		help: "write the same into FILE, for programs",
		apply: func(p *parser, v []string) error {
			if v[0] == "" {
				return fmt.Errorf("needs the name of a file")
			}
			p.job.ProfileJSON = v[0]
			return nil
		}},
}

var otherOptions = []*option{
	{names: []string{"gdb"}, meta: "RANKS", nargs: 1, group: groupOther,
		help: "start gdb for these ranks (0,2 or 4-7), which wait in MPI_Init for it: in " +
			"windows of tmux or xterm, or one in this terminal",
		apply: func(p *parser, v []string) (err error) {
			p.job.Gdb,
				err = ranks(v[0])
			return err
		}},
	{names: []string{"metrics"}, meta: "[ADDR:]PORT", nargs: 1, group: groupOther,
		help: "give metrics of the job to Prometheus at http://ADDR:PORT/metrics " +
			"(docs/live.md); without ADDR on the loopback interface; 0: any port, which is printed",
		apply: func(p *parser, v []string) (err error) {
			p.job.Metrics,
				err = metricsAddress(v[0])
			return err
		}},
	{names: []string{"cores"}, meta: "DIR", nargs: 1, group: groupOther,
		help: "collect in DIR the core files of ranks that die of a signal, with the stacks of " +
			"their threads (by gdb)",
		apply: func(p *parser, v []string) error {
			if v[0] == "" {
				return fmt.Errorf("needs the name of a directory")
			}
			p.job.Cores = v[0]
			return nil
		}},
	{names: []string{"v", "verbose"}, group: groupOther, help: "say what is done",
		apply: flag(func(j *Job) { j.Verbose = true })},
	{names: []string{"V", "version"}, group: groupOther, help: "print the version",
		apply: flag(func(j *Job) { j.Version = true })},
	{names: []string{"h", "help", "?"}, group: groupOther, help: "print this",
		apply: flag(func(j *Job) { j.Help = true })},
	{names: []string{"oversubscribe", "nooversubscribe", "allow-run-as-root", "use-hwthread-cpus",
		"report-bindings", "display-map", "display-allocation", "nolocal",
		"q", "quiet", "print-all-exitcodes", "print-rank-map"}, group: groupIgnore},
	{names: []string{"map-by", "rank-by", "rmk", "launcher", "bootstrap", "display",
		"soft", "arch", "topolib", "localhost", "personality", "runtime-options", "membind"},
		meta: "VALUE", nargs: 1, group: groupIgnore},
	{names: []string{"mca", "gmca", "omca", "gomca", "prtemca", "pmixmca"}, meta: "NAME VALUE",
		nargs: 2, group: groupIgnore},
}

// setVariable takes NAME VALUE or NAME=VALUE.
func setVariable(e *environment, v []string) error {
	name, value := v[0], ""
	if len(v) == 2 {
		value = v[1]
	} else {
		name, value, _ = strings.Cut(v[0], "=")
	}
	if name == "" || strings.Contains(name, "=") {
		return fmt.Errorf("%q is not the name of a variable", name)
	}
	e.set = append(e.set, name+"="+value)
	return nil
}

func (p *parser) exportVariable(v []string) error {
	name, _, given := strings.Cut(v[0], "=")
	if name == "" {
		return fmt.Errorf("%q is not NAME or NAME=VALUE", v[0])
	}
	if given {
		p.global.set = append(p.global.set, v[0])
		return nil
	}
	value, ok := lookupOK(p.environ, name)
	if !ok {
		p.job.Notes = append(p.job.Notes, fmt.Sprintf(
			"-x %s: the variable is not set here, and so not set for the programs", name))
		return nil
	}
	p.global.set = append(p.global.set, name+"="+value)
	return nil
}

func (p *parser) bindTo(v []string) error {
	what, _, _ := strings.Cut(v[0], ":") // core:overload-allowed
	switch what {
	case "none":
		p.job.Bind = BindNone
	case "core":
		p.job.Bind = BindCore
	case "hwthread", "hwt", "cpu":
		p.job.Bind = BindHWThread
	case "socket", "package":
		p.job.Bind = BindSocket
	case "numa":
		p.job.Bind = BindNUMA
	default:
		return fmt.Errorf("%q is none of none, core, hwthread, socket, numa", v[0])
	}
	return nil
}

// metricsAddress reads [ADDR:]PORT.
func metricsAddress(text string) (string, error) {
	host, port := "127.0.0.1", text
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("%q is neither PORT nor ADDR:PORT: %w", text, err)
		}
		if host == "" {
			host = "127.0.0.1"
		}
	}
	if _, err := number(port, "a port", 0, 1<<16-1); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}

// ranks reads a list of ranks and of ranges of them.
func ranks(text string) (list []int, err error) {
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := number(first, "a rank", 0, MaxProcs-1)
		if err != nil {
			return nil, err
		}
		b := a
		if isRange {
			if b, err = number(last, "a rank", a, MaxProcs-1); err != nil {
				return nil, err
			}
		}
		for ; a <= b; a++ {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list, nil
}

func isFTMode(word string) bool {
	switch word {
	case "ulfm", "mpi", "yes", "true", "none", "no", "false":
		return true
	}
	return false
}
