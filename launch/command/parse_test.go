package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var environ = []string{"HOME=/h", "A=1", "PMI_RANK=3", "SPX_FD=9", "OMPI_COMM_WORLD_RANK=2",
	"SPX_SPIN=7"}

func base() *Job { return &Job{Bind: BindNone, OnDeath: DeathAuto} }

func one(env []string, argv ...string) *Job {
	j := base()
	j.Programs = []Program{{Argv: argv, Env: env}}
	return j
}

var plainEnv = []string{"HOME=/h", "A=1", "SPX_SPIN=7"}

func TestParse(t *testing.T) {
	with := func(f func(*Job)) *Job { j := one(plainEnv, "./a"); f(j); return j }
	for _, c := range []struct {
		line string
		want *Job
	}{
		{"./a", one(plainEnv, "./a")},
		{"-n 4 ./a -n 5 -x",
			with(func(j *Job) {
				j.Programs[0].Procs = 4
				j.Programs[0].Argv = []string{"./a", "-n",
					"5", "-x"}
			})},
		{"--np=3 ./a", with(func(j *Job) { j.Programs[0].Procs = 3 })},
		{"-np 3 -- -strange", with(
			func(j *Job) { j.Programs[0].Procs = 3; j.Programs[0].Argv = []string{"-strange"} })},
		{"-wdir /tmp -path /x:/y ./a",
			with(func(j *Job) { j.Programs[0].Dir, j.Programs[0].Path = "/tmp", "/x:/y" })},
		{"-l --timeout 1.5 --output out --bind-to core:overload-allowed ./a",
			with(func(j *Job) {
				j.Tag, j.Timeout, j.OutputDir, j.Bind = true, 1500*time.Millisecond,
					"out", BindCore
			})},
		{"--with-ft ulfm ./a", with(func(j *Job) { j.WithFT, j.OnDeath = true, DeathContinue })},
		{"-disable-auto-cleanup ./a",
			with(func(j *Job) { j.OnDeath, j.CountDeaths = DeathContinue, true })},
		{"--with-ft ./a", with(func(j *Job) { j.WithFT, j.OnDeath = true, DeathContinue })},
		{"--with-ft --on-death=kill ./a",
			with(func(j *Job) { j.WithFT, j.OnDeath = true, DeathKill })},
		{"--on-death=continue ./a", with(func(j *Job) { j.OnDeath = DeathContinue })},
		{"--stdin all ./a", with(func(j *Job) { j.Stdin.All = true })},
		{"--stdin none ./a", with(func(j *Job) { j.Stdin.Rank = -1 })},
		{"--stdin 2 ./a", with(func(j *Job) { j.Stdin.Rank = 2 })},
		{"-host a:2,b -H c -f h1 --hostfile h2 -ppn 2 ./a",
			with(func(j *Job) {
				j.PerHost, j.Hosts, j.HostFiles = 2, []string{"a:2", "b", "c"},
					[]string{"h1", "h2"}
			})},
		{"-oversubscribe --allow-run-as-root --map-by :OVERSUBSCRIBE --mca btl self,sm ./a",
			one(plainEnv, "./a")},
		{"--cluster front ./a", func() *Job {
			j := one(append(plainEnv[:len(plainEnv):len(plainEnv)], "SPX_CLUSTER=front"), "./a")
			j.Cluster = "front"
			return j
		}()},
		{"--system s.toml -l", &Job{Bind: BindNone, OnDeath: DeathAuto, System: "s.toml", Tag: true,
			Env: plainEnv}},
		{"--system s.toml --cluster n --join h:7400", &Job{Bind: BindNone, OnDeath: DeathAuto,
			System: "s.toml", Cluster: "n", Join: "h:7400",
			Env: append(plainEnv[:len(plainEnv):len(plainEnv)], "SPX_CLUSTER=n")}},
		{"-initial-errhandler mpi_errors_return ./a",
			with(func(j *Job) { j.InitialErrhandler = "mpi_errors_return" })},
		{"-env B 2 -genv C 3 -x D=4 ./a",
			one([]string{"HOME=/h", "A=1", "SPX_SPIN=7", "C=3", "D=4", "B=2"}, "./a")},
		{"-env A=2 ./a", one([]string{"HOME=/h", "A=2", "SPX_SPIN=7"}, "./a")},
		{"-envnone -x A ./a", one([]string{"A=1"}, "./a")},
		{"-genvlist HOME,A ./a", one([]string{"HOME=/h", "A=1"}, "./a")},
		{"-x NOSUCH ./a", with(func(j *Job) {
			j.Notes = []string{"-x NOSUCH: the variable is not set here, and so not set for the " +
				"programs"}
		})},
		{"-n 2 ./a x : -env B 2 ./b", func() *Job {
			j := base()
			j.Programs = []Program{{Procs: 2, Argv: []string{"./a", "x"}, Env: plainEnv},
				{Argv: []string{"./b"}, Env: append(append([]string(nil), plainEnv...), "B=2")}}
			return j
		}()},
		{"--trace t.json --trace-limit 2 --profile --profile-json p.json --cores c ./a",
			with(func(j *Job) {
				j.Cores = "c"
				j.Trace, j.TraceLimit, j.Profile, j.ProfileJSON = "t.json", 2<<20, true, "p.json"
			})},
		{"--version", func() *Job { j := base(); j.Version = true; return j }()},
		{"-n 2 --help -nonsense", func() *Job { j := base(); j.Help = true; return j }()},
	} {
		got, err := Parse(strings.Fields(c.line), environ)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.line, d)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", "no program to run"},
		{"-n 4", "no program to run"},
		{"-n", "option -n needs N"},
		{"-n x ./a", `option -n: "x" is not a number of processes`},
		{"-n 0 ./a", "option -n: 0 is not a number of processes between 1 and 65536"},
		{"-n -3 ./a", "-3 is not a number of processes"},
		{"-n 99999999999999999999 ./a", "is not a number of processes"},
		{"--np= ./a", `option --np: ""`},
		{"-hostfil h ./a", "unknown option -hostfil (did you mean --hostfile?); spxrun --help"},
		{"--zzzzzz ./a", "unknown option --zzzzzz; spxrun"},
		{"-l=3 ./a", "option -l=3 takes no value"},
		{"./a :", `no program after ":" (program 1)`},
		{": ./a", "no program to run"},
		{"--timeout soon ./a", `"soon" is not a number of seconds`},
		{"--timeout -1 ./a", `"-1" is not a number of seconds`},
		{"--timeout NaN ./a", `"NaN" is not a number of seconds`},
		{"--bind-to moon ./a", `"moon" is none of none, core, hwthread, socket, numa`},
		{"--on-death=ignore ./a", `"ignore" is none of auto, kill, continue`},
		{"--attach . ./a", "--attach .: the job runs already; no program"},
		{"--attach . -n 2", "--since alone has a meaning then, and not --n"},
		{"-l --attach .", "and not --l"},
		{"--attach . ./a : ./b", "no program belongs"},
		{"--join h:7400 ./a", "--join h:7400: it belongs to --system FILE --cluster NAME"},
		{"--system s.toml --join h:7400", "it belongs to --system FILE --cluster NAME"},
		{"--system s.toml --cluster n --join h", "\"h\" is no address: HOST:PORT"},
		{"--system s.toml --cluster n --join h:70000", "\"h:70000\" is no address"},
		{"--attach", "needs JOB"},
		{"--attach=", "needs the name of a job"},
		{"--since start ./a", "--since start: it belongs to --attach JOB"},
		{"--attach . --since now", `"now" is none of start, last`},
		{"--with-ft=maybe ./a", `"maybe" is none of ulfm, none`},
		{"--stdin some ./a", `"some" is not a rank, all or none`},
		{"-env", "option -env needs NAME VALUE"},
		{"-env =3 ./a", `"" is not the name of a variable`},
		{"-x =3 ./a", `"=3" is not NAME or NAME=VALUE`},
		{"-initial-errhandler mine ./a", `"mine" is none of mpi_errors_are_fatal`},
		{"-configfile /nonexistent", "option -configfile: cannot read it"},
		{"--output= ./a", "needs the name of a directory"},
		{"--trace= ./a", "needs the name of a file"},
		{"--cores= ./a", "needs the name of a directory"},
		{"--profile-json= ./a", "needs the name of a file"},
		{"--trace-limit 0 ./a", "0 is not a number of MB between 1 and"},
	} {
		_, err := Parse(strings.Fields(c.line), environ)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.line, err, c.want)
		}
		if _, ok := err.(*Error); err != nil && !ok {
			t.Errorf("%q: error of type %T", c.line, err)
		}
	}
}

func TestTimeoutFromEnvironment(t *testing.T) {
	j, err := Parse([]string{"./a"}, []string{"MPIEXEC_TIMEOUT=7"})
	if err != nil || j.Timeout != 7*time.Second {
		t.Errorf("timeout %v, error %v", j, err)
	}
	if _, err = Parse([]string{"./a"}, []string{"MPIEXEC_TIMEOUT=x"}); err == nil {
		t.Error("a bad MPIEXEC_TIMEOUT passes")
	}
	if j, err = Parse([]string{"--timeout", "3", "./a"},
		[]string{"MPIEXEC_TIMEOUT=7"}); err != nil || j.Timeout != 3*time.Second {
		t.Errorf("the option does not win: %v, %v", j, err)
	}
}

func TestConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "# programs\n-n 2 ./a 'two words' \\\n  more\n\n-n 1 -env X \"a b\" ./b # comment\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Parse([]string{"-l", "-configfile", file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := base()
	want.Tag = true
	want.Programs = []Program{{Procs: 2, Argv: []string{"./a", "two words", "more"}},
		{Procs: 1, Argv: []string{"./b"}, Env: []string{"X=a b"}}}
	if d := cmp.Diff(want, j); d != "" {
		t.Error(d)
	}
	if err := os.WriteFile(file, []byte("-configfile "+file), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse([]string{"-configfile", file}, nil); err == nil ||
		!strings.Contains(err.Error(), "name each other") {
		t.Errorf("a configuration file that names itself: %v", err)
	}
	if err := os.WriteFile(file, []byte("-n 2 'abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse([]string{"-configfile", file}, nil); err == nil ||
		!strings.Contains(err.Error(), "line 1: a quote is not closed") {
		t.Errorf("an open quote: %v", err)
	}
}

// Every option that has an effect stands in --help with its explanation, and no spelling stands
// twice.
func TestTable(t *testing.T) {
	help, seen := Help(), map[string]bool{}
	for _, o := range table {
		for _, n := range o.names {
			if seen[n] {
				t.Errorf("-%s stands twice", n)
			}
			seen[n] = true
			if !strings.Contains(help, "-"+n) {
				t.Errorf("-%s is not in --help", n)
			}
		}
		if (o.apply == nil) != (o.help == "") || (o.apply == nil) != (o.group == groupIgnore) {
			t.Errorf("%v: an option either does something and is explained, or is ignored", o.names)
		}
		if (o.meta != "") != (o.nargs > 0 || o.pair || o.optional != nil) {
			t.Errorf("%v: %d values named %q", o.names, o.nargs, o.meta)
		}
	}
	for _, line := range strings.Split(help, "\n") {
		if len(line) > 34+helpWidth+1 {
			t.Errorf("line of %d letters: %s", len(line), line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-n 2 ./a : -n 3 -env A B ./b")
	f.Add("--with-ft -x A=1 -- -l")
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "config") || strings.Contains(line, "app") {
			t.Skip()
		}
		j, err := Parse(strings.Fields(line), environ)
		if err == nil && !j.Help && !j.Version && len(j.Programs) == 0 {
			t.Errorf("%q: no error and no program", line)
		}
	})
}

// A job that is there has its programs: nothing else is needed.
func TestAttach(t *testing.T) {
	for _, words := range []string{"--attach 0335 --since start", "-since=start -attach=0335 -v"} {
		if j, err := Parse(strings.Fields(words), nil); err != nil || j.Attach != "0335" ||
			j.Since != "start" || len(j.Programs) > 0 {
			t.Errorf("%s: %+v, %v", words, j, err)
		}
	}
}
