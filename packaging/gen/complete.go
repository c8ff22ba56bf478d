package main

import (
	"fmt"
	"strings"

	"libspx/launch/command"
)

// completions makes what bash, zsh and fish complete the words of spxrun and spxctl by.
func completions(files map[string]string, build string) error {
	options := command.Options()
	files["share/bash-completion/completions/spxrun"] = bashCompletion(options)
	files["share/zsh/site-functions/_spxrun"] = zshCompletion(options)
	files["share/fish/vendor_completions.d/spxrun.fish"] = fishCompletion(options)
	for shell, file := range map[string]string{"bash": "bash-completion/completions/spxctl", "zsh": "zsh/site-functions/_spxctl", "fish": "fish/vendor_completions.d/spxctl.fish"} {
		text, err := output(build, "spxctl", "completion", shell)
		if err != nil {
			return err
		}
		files["share/"+file] = text
	}
	return nil
}

// values are the words that an option's value may be, if there are few; "file", "directory" and "command" stand for those.
func values(o command.Option) []string {
	switch {
	case o.Names[0] == "bind-to":
		return []string{"none", "core", "hwthread", "socket", "numa"}
	case o.Names[0] == "on-death":
		return []string{"auto", "kill", "continue"}
	case o.Names[0] == "with-ft":
		return []string{"ulfm", "none"}
	case o.Names[0] == "stdin":
		return []string{"all", "none", "0"}
	case o.Names[0] == "initial-errhandler":
		return []string{"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"}
	case o.Meta == "FILE":
		return []string{"file"}
	case o.Meta == "DIR":
		return []string{"directory"}
	}
	return nil
}

// spellings are an option's names with their dashes: one before a single letter, two before a word.
func spellings(o command.Option) (list []string) {
	for _, n := range o.Names {
		if len(n) == 1 {
			list = append(list, "-"+n)
		} else {
			list = append(list, "--"+n)
		}
	}
	return list
}

// words is the number of words that follow an option for certain.
func words(o command.Option) int {
	switch {
	case o.Meta == "" || o.Optional:
		return 0
	case o.Meta == "NAME VALUE":
		return 2
	}
	return 1
}

func bashCompletion(options []command.Option) string {
	var b strings.Builder
	b.WriteString(`# bash completion for spxrun, mpiexec and mpirun of libspx. Made from the table of its options.
_spxrun() {
  local word=${COMP_WORDS[COMP_CWORD]} i=1 skip=0 previous=
  COMPREPLY=()
  # Where the program stands: what follows it is not ours, up to a lone ":".
  while [ "$i" -lt "$COMP_CWORD" ]; do
    local at=${COMP_WORDS[i]}
    i=$((i + 1))
    if [ "$skip" -gt 0 ]; then skip=$((skip - 1)); [ "$skip" -gt 0 ] || previous=; continue; fi
    case ${at/#--/-} in
`)
	for n := 2; n >= 1; n-- {
		var list []string
		for _, o := range options {
			if words(o) == n {
				for _, name := range o.Names {
					list = append(list, "-"+strings.ReplaceAll(name, "?", `\?`))
				}
			}
		}
		fmt.Fprintf(&b, "      %s) previous=${at/#--/-} skip=%d ;;\n", strings.Join(list, " | "), n)
	}
	b.WriteString(`      -* | :) ;;
      *)
        while [ "$i" -lt "$COMP_CWORD" ] && [ "${COMP_WORDS[i]}" != : ]; do i=$((i + 1)); done
        if [ "$i" -ge "$COMP_CWORD" ]; then COMPREPLY=($(compgen -f -- "$word")); return; fi ;;
    esac
  done
  if [ "$skip" -gt 0 ]; then
    case $previous in
`)
	for _, o := range options {
		v := values(o)
		if v == nil || words(o) == 0 {
			continue
		}
		var list []string
		for _, name := range o.Names {
			list = append(list, "-"+name)
		}
		how := `-W "` + strings.Join(v, " ") + `"`
		switch v[0] {
		case "file":
			how = "-f"
		case "directory":
			how = "-d"
		}
		fmt.Fprintf(&b, "      %s) COMPREPLY=($(compgen %s -- \"$word\")) ;;\n", strings.Join(list, " | "), how)
	}
	var all []string
	for _, o := range options {
		if !o.Ignored {
			all = append(all, spellings(o)...)
		}
	}
	fmt.Fprintf(&b, `    esac
    return
  fi
  case $word in
    -*) COMPREPLY=($(compgen -W "%s" -- "$word")) ;;
    *) COMPREPLY=($(compgen -c -- "$word") $(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _spxrun spxrun mpiexec mpirun
`, strings.Join(all, " "))
	return b.String()
}

func zshCompletion(options []command.Option) string {
	quoted := strings.NewReplacer("'", "'\\''", "[", `\[`, "]", `\]`, ":", `\:`)
	var b strings.Builder
	b.WriteString("#compdef spxrun\n# zsh completion for spxrun of libspx. Made from the table of its options.\n_arguments -S \\\n")
	for _, o := range options {
		if o.Ignored {
			continue
		}
		for _, name := range spellings(o) {
			value := ""
			v := values(o)
			switch {
			case o.Meta == "":
			case len(v) > 1:
				value = ":" + quoted.Replace(o.Meta) + ":(" + strings.Join(v, " ") + ")"
			case len(v) == 1:
				value = ":" + o.Meta + ":_files" + map[string]string{"directory": " -/"}[v[0]]
			case words(o) == 2:
				value = ":NAME: :VALUE: "
			default:
				value = ":" + quoted.Replace(o.Meta) + ": "
			}
			fmt.Fprintf(&b, "  '*%s[%s]%s' \\\n", strings.ReplaceAll(name, "?", `\?`), quoted.Replace(o.Help), value)
		}
	}
	b.WriteString("  '1:program:_command_names -e' \\\n  '*::arguments:_normal'\n")
	return b.String()
}

func fishCompletion(options []command.Option) string {
	var b strings.Builder
	b.WriteString("# fish completion for spxrun of libspx. Made from the table of its options.\n")
	for _, o := range options {
		if o.Ignored {
			continue
		}
		line := "complete -c spxrun"
		for _, n := range o.Names {
			if len(n) == 1 {
				line += " -s '" + n + "'"
			} else {
				line += " -l " + n
			}
		}
		v := values(o)
		switch {
		case o.Meta == "":
		case len(v) > 1:
			line += " -x -a '" + strings.Join(v, " ") + "'"
		case len(v) == 1 && v[0] == "directory":
			line += " -x -a '(__fish_complete_directories)'"
		default:
			line += " -r"
		}
		fmt.Fprintf(&b, "%s -d '%s'\n", line, strings.ReplaceAll(o.Help, "'", `\'`))
	}
	return b.String()
}
