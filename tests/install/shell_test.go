package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// complete asks bash what it completes the last word by.
func complete(t *testing.T, file, function string, words ...string) []string {
	t.Helper()
	script := `source "$1"; f=$2; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; $f "$1" "${COMP_WORDS[COMP_CWORD]}" ""; printf '%s\n' "${COMPREPLY[@]}"`
	o := harness.Start(t, harness.Command{Args: append([]string{"bash", "--norc", "-c", script, "bash", file, function}, words...), Dir: t.TempDir()})
	if o.Status != 0 || o.Stderr != "" {
		t.Fatalf("completing %v: %s", words, o.Text())
	}
	return strings.Fields(o.Stdout)
}

func TestCompletion(t *testing.T) {
	home := installed(t)
	file := filepath.Join(home, "share/bash-completion/completions/spxrun")
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"spxrun", "--on-d"}, "--on-death"},
		{[]string{"spxrun", "-n", "4", "--on-death", ""}, "auto kill continue"},
		{[]string{"spxrun", "-on-death", "co"}, "continue"},
		{[]string{"spxrun", "--env", "A", "1", "--bind-to", "s"}, "socket"},
		{[]string{"spxrun", "-n", "4", "./program", "--on-d"}, ""},          // the program's own
		{[]string{"spxrun", "./manager", "x", ":", "--on-d"}, "--on-death"}, // behind ":" ours again
	} {
		if got := strings.Join(complete(t, file, "_spxrun", c.words...), " "); got != c.want {
			t.Errorf("%v is completed by %q, not %q", c.words, got, c.want)
		}
	}
	for _, s := range []struct{ shell, check, file string }{{"bash", "-n", "bash-completion/completions/spxctl"}, {"zsh", "-n", "zsh/site-functions/_spxrun"}, {"zsh", "-n", "zsh/site-functions/_spxctl"},
		{"fish", "--no-execute", "fish/vendor_completions.d/spxrun.fish"}, {"fish", "--no-execute", "fish/vendor_completions.d/spxctl.fish"}} {
		t.Run(filepath.Base(s.file), func(t *testing.T) {
			if _, err := exec.LookPath(s.shell); err != nil {
				t.Skipf("%s is not installed", s.shell)
			}
			if out, err := exec.Command(s.shell, s.check, filepath.Join(home, "share", s.file)).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The shells themselves complete a line with what is installed: bash by bash-completion, which finds the files, and zsh (zpty) in a terminal, as a user would by
// the tab key.
func TestCompletionByShells(t *testing.T) {
	home := installed(t)
	t.Run("fish", func(t *testing.T) {
		harness.Need(t, "packaging", "fish")
		for line, want := range map[string]string{"spxrun --on-d": "--on-death", "spxrun --on-death co": "continue", "spxctl resi": "resize", "spxctl jobs --js": "--json"} {
			file := filepath.Join(home, "share/fish/vendor_completions.d", strings.Fields(line)[0]+".fish")
			o := harness.Start(t, harness.Command{Args: []string{"fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", file, line},
				Env: []string{"HOME=" + t.TempDir(), "PATH=" + home + "/bin:" + os.Getenv("PATH")}})
			if word, _, _ := strings.Cut(strings.TrimSpace(o.Stdout), "\t"); o.Status != 0 || word != want {
				t.Errorf("%q is completed by %q, not %q\n%s", line, word, want, o.Text())
			}
		}
	})
	t.Run("bash", func(t *testing.T) {
		loader := "/usr/share/bash-completion/bash_completion"
		if _, err := os.Stat(loader); err != nil {
			loader = filepath.Join(harness.Debian(t, "bash-completion"), loader)
		}
		for line, want := range map[string]string{"spxrun --on-d": "spxrun --on-death ", "spxrun --on-death co": "spxrun --on-death continue ", "spxctl resi": "spxctl resize ",
			"spxctl jobs --js": "spxctl jobs --json "} {
			dir := t.TempDir()
			rc := "source " + loader + `; bind 'set bell-style none'; bind -x '"\C-x": printf "%s" "$READLINE_LINE" >line; kill -9 $$'` + "\n"
			if err := os.WriteFile(filepath.Join(dir, "rc"), []byte(rc), 0o666); err != nil {
				t.Fatal(err)
			}
			o := harness.Start(t, harness.Command{Args: []string{"script", "-qec", "bash --rcfile rc -i", "/dev/null"}, Stdin: line + "\t\x18", Dir: dir,
				Env: []string{"HOME=" + dir, "TERM=dumb", "XDG_DATA_DIRS=" + home + "/share", "PATH=" + home + "/bin:" + os.Getenv("PATH")}})
			if got, err := os.ReadFile(filepath.Join(dir, "line")); err != nil || string(got) != want {
				t.Errorf("%q is completed to %q, not %q (%v)\n%s", line, got, want, err, o.Text())
			}
		}
	})
	t.Run("zsh", func(t *testing.T) {
		harness.Need(t, "packaging", "zsh")
		for line, want := range map[string]string{"spxrun --on-d": "spxrun --on-death", "spxrun --on-death co": "spxrun --on-death continue", "spxctl resi": "spxctl resize"} {
			script := `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u; setopt no_list_ambiguous; bindkey '^I' complete-word; show() { print -r -- \"<\$BUFFER>\" }; zle -N show; bindkey '^X' show; print rea''dy"
zpty -m shell '*ready*' >/dev/null || zpty -r shell x '*ready*'
zpty -w -n shell "$2"$'\t'$'\030'
zpty -r shell answer '*<*>*'
print -r -- "$answer"`
			o := harness.Start(t, harness.Command{Args: []string{"zsh", "-f", "-c", script, "zsh", filepath.Join(home, "share/zsh/site-functions"), line},
				Env: []string{"HOME=" + t.TempDir(), "TERM=dumb", "PATH=" + home + "/bin:" + os.Getenv("PATH")}})
			if !strings.Contains(o.Stdout, "<"+want) {
				t.Errorf("%q is not completed to %q\n%q", line, want, o.Stdout)
			}
		}
	})
}

// After `module load libspx` the commands are there, and a program of another library's finds this one.
func TestModuleFile(t *testing.T) {
	home := installed(t)
	harness.Need(t, "packaging", "/usr/share/modules/init/bash")
	dir := project(t, "")
	out := command(t, home, dir, nil, "bash", "--norc", "-c", `set -e
PATH=/usr/bin:/bin
source /usr/share/modules/init/bash
module use "$1/share/modulefiles"
module load libspx
command -v spxrun
test "$LD_LIBRARY_PATH" = "$1/lib"
gcc hello.c -I"$LIBSPX_DIR/include" -L"$LIBSPX_DIR/lib" -lmpi_abi -o hello_c
spxrun -n 2 ./hello_c
man -w MPI_Send
module unload libspx
! command -v spxrun`, "bash", home)
	for _, want := range []string{home + "/bin/spxrun", "rank 1 of 2", home + "/share/man/man3/MPI_Send.3"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
