package command

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// MaxProcs is the largest number of processes of a job on one host.
const MaxProcs = 1 << 16

// Parse reads the words after the program's name. environ is the environment that programs inherit
// (os.Environ). All errors are of type *Error.
func Parse(args, environ []string) (*Job, error) {
	p := &parser{job: &Job{Bind: BindNone, OnDeath: DeathAuto}, environ: environ}
	p.section = newSection()
	if err := p.timeoutFromEnvironment(); err != nil {
		return nil, err
	}
	if err := p.words(args); err != nil {
		return nil, err
	}
	if p.job.Help || p.job.Version {
		return p.job, nil
	}
	if p.job.Attach != "" {
		return p.job, p.attach()
	}
	if p.job.Since != "" {
		return nil, fail("--since %s: it belongs to --attach JOB", p.job.Since)
	}
	if p.job.Join != "" && (p.job.System == "" || p.job.Cluster == "") {
		return nil,
			fail(
				"--join %s: it belongs to --system FILE --cluster NAME, which say what is "+
					"attached there", p.job.Join)
	}
	if p.job.System != "" {
		if err := p.system(); err != nil {
			return nil, err
		}
	} else if err := p.endSection(); err != nil {
		return nil, err
	}
	p.resolveEnvironments()
	if p.job.WithFT && !p.onDeathGiven {
		p.job.OnDeath = DeathContinue
	}
	return p.job, nil
}

// attach takes a command line for a job that is there.
func (p *parser) attach() error {
	if len(p.sections) > 0 || len(p.section.program.Argv) > 0 {
		return fail("--attach %s: the job runs already; no program belongs on the command line",
			p.job.Attach)
	}
	for _, name := range p.given {
		if o := find(name); o.apply != nil && o.names[0] != "attach" && o.names[0] != "since" &&
			o.names[0] != "v" {
			return fail(
				"--attach %s: the job runs already; of the options, --since alone has a meaning "+
					"then, and not --%s", p.job.Attach, name)
		}
	}
	return nil
}

// system takes a command line without programs: a system file has them, and their hosts.
func (p *parser) system() error {
	switch s := &p.section.program; {
	case len(p.sections) > 0 || len(s.Argv) > 0:
		return fail(
			"--system %s: the system file names the programs; %q does not belong on the command "+
				"line", p.job.System, strings.Join(s.Argv, " "))
	case s.Procs > 0 || s.Dir != "" || s.Path != "":
		return fail(
			"--system %s: the system file says how many processes there are, and where they "+
				"work: -n, -wdir and -path do not count", p.job.System)
	case p.job.Cluster != "" && (p.job.Detach || p.job.Gdb != nil || p.job.Stdin != (Stdin{})):
		return fail(
			"--system %s --cluster %s: --detach, --gdb and --stdin are for systems that one "+
				"spxrun starts", p.job.System, p.job.Cluster)
	case len(p.job.Hosts)+len(p.job.HostFiles) > 0 || p.job.PerHost > 0 || p.job.Layout != "":
		return fail(
			"--system %s: the system file says where the clusters run: -host, -hostfile, -ppn "+
				"and --layout do not count", p.job.System)
	}
	p.job.Env = resolve(p.environ, p.global, p.section.env)
	return nil
}

type parser struct {
	job          *Job
	environ      []string
	section      *section
	sections     []*section
	global       environment // -genv, -x ...: for all programs
	onDeathGiven bool
	configDepth  int
	given        []string // options
}

// section is what has been read of one program.
type section struct {
	program Program
	env     environment
	any     bool // something was given
}

func newSection() *section { return &section{} }

func fail(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// words reads options and programs up to the end of args. A lone ":" ends a program.
func (p *parser) words(args []string) error {
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == ":":
			if err := p.endSection(); err != nil {
				return err
			}
			args = args[1:]
		case word == "--":
			args = p.program(args[1:])
		case len(word) > 1 && word[0] == '-':
			rest, err := p.option(word, args[1:])
			if err != nil {
				return err
			}
			if p.job.Help || p.job.Version {
				return nil
			}
			args = rest
		default:
			args = p.program(args)
		}
	}
	return nil
}

// program takes the program and its arguments, up to a lone ":".
func (p *parser) program(args []string) []string {
	n := 0
	for n < len(args) && args[n] != ":" {
		n++
	}
	p.section.program.Argv = append(p.section.program.Argv, args[:n]...)
	p.section.any = true
	return args[n:]
}

// option applies one option, whose values may be in the word itself (-n=4) or follow it.
func (p *parser) option(word string, rest []string) ([]string, error) {
	name, value, inline := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
	o := find(name)
	if o == nil {
		return nil, fail("unknown option %s%s; spxrun --help lists the options", word,
			suggestion(name))
	}
	p.section.any = true
	p.given = append(p.given, name)
	var values []string
	if inline {
		values = []string{value}
	}
	want := o.wants(values, rest)
	if inline && want == 0 {
		return nil, fail("option %s takes no value", word)
	}
	for len(values) < want {
		if len(rest) == 0 {
			return nil, fail("option %s needs %s", word, o.meta)
		}
		values, rest = append(values, rest[0]), rest[1:]
	}
	if o.apply == nil {
		return rest, nil
	}
	if err := o.apply(p, values); err != nil {
		return nil, fail("option %s: %v", strings.SplitN(word, "=", 2)[0], err)
	}
	return rest, nil
}

// endSection closes the program that is being read.
func (p *parser) endSection() error {
	s := p.section
	p.section = newSection()
	if len(s.program.Argv) == 0 || s.program.Argv[0] == "" {
		switch {
		case len(p.sections) > 0:
			return fail(
				"no program after \":\" (program %d); each part is [options] program [arguments]",
				len(p.sections))
		}
		return fail(
			"no program to run; usage: spxrun [options] -n N program [arguments]; spxrun --help " +
				"lists the options")
	}
	p.sections = append(p.sections, s)
	return nil
}

func (p *parser) resolveEnvironments() {
	for _, s := range p.sections {
		s.program.Env = resolve(p.environ, p.global, s.env)
		p.job.Programs = append(p.job.Programs, s.program)
	}
}

func (p *parser) timeoutFromEnvironment() error {
	if v := lookup(p.environ, "MPIEXEC_TIMEOUT"); v != "" {
		limit, err := seconds(v)
		if err != nil {
			return fail("environment variable MPIEXEC_TIMEOUT: %v", err)
		}
		p.job.Timeout = limit
	}
	return nil
}

func seconds(text string) (time.Duration, error) {
	sec, err := strconv.ParseFloat(text, 64)
	if err != nil || !(sec >= 0) || sec > 1e9 {
		return 0, fmt.Errorf("%q is not a number of seconds", text)
	}
	return time.Duration(sec * float64(time.Second)), nil
}

func number(text, what string, min, max int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not %s", text, what)
	}
	if n < min || n > max {
		return 0, fmt.Errorf("%d is not %s between %d and %d", n, what, min, max)
	}
	return n, nil
}

// config reads a -configfile (MPI-5.0, 11.5): a program with its options per line; # starts a
// comment, \ continues a line.
func (p *parser) config(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read it: %v", err)
	}
	if p.configDepth++; p.configDepth > 8 {
		return fmt.Errorf("%s: configuration files name each other", file)
	}
	defer func() { p.configDepth-- }()
	text := strings.ReplaceAll(string(data), "\\\n", " ")
	for n, line := range strings.Split(text, "\n") {
		words, err := split(line)
		if err != nil {
			return fmt.Errorf("%s, line %d: %v", file, n+1, err)
		}
		if len(words) == 0 {
			continue
		}
		if p.section.any && len(p.section.program.Argv) > 0 {
			if err := p.endSection(); err != nil {
				return err
			}
		}
		if err := p.words(words); err != nil {
			return fmt.Errorf("%s, line %d: %v", file, n+1, err)
		}
	}
	return nil
}

// split cuts a line into words as a shell does: blanks, single and double quotes, backslash, #
// comment.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for _, c := range line {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			in, escaped = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			in, quote = true, c
		case c == '#' && !in:
			return words, nil
		case c == ' ' || c == '\t' || c == '\r':
			if in {
				words, in = append(words, word.String()), false
				word.Reset()
			}
		default:
			in = true
			word.WriteRune(c)
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
