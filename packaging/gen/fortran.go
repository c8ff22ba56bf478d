package main

import (
	"os"
	"regexp"
	"strings"
)

var (
	interfaceOf = regexp.MustCompile(`^  interface (\w+)$`)
	suffix      = regexp.MustCompile(`_f08(ts)?\b`)
)

// fortranInterfaces reads the interfaces of modules mpi_f08 and mpi_f08_ext: for each routine its first form, which is that with default integers.
func fortranInterfaces() (map[string]string, error) {
	out := map[string]string{}
	for _, module := range [][2]string{{"fortran/lib/zz_mpi_f08.f90", "mpi_f08"}, {"fortran/lib/zz_mpi_ext.f90", "mpi_f08_ext"}} {
		data, err := os.ReadFile(module[0])
		if err != nil {
			return nil, err
		}
		name, text := "", []string(nil)
		for _, line := range strings.Split(string(data), "\n") {
			m := interfaceOf.FindStringSubmatch(line)
			switch {
			case m != nil:
				name, text = m[1], nil
			case name == "" || strings.HasPrefix(strings.TrimSpace(line), "import ") || strings.TrimSpace(line) == "implicit none":
			case strings.HasPrefix(line, "    end "), strings.HasPrefix(line, "  end "):
				if out[name] == "" && len(text) > 0 {
					out[name] = "use " + module[1] + "\n" + strings.Join(text, "\n")
				}
				name = ""
			default:
				text = append(text, suffix.ReplaceAllString(strings.TrimPrefix(line, "    "), ""))
			}
		}
	}
	return out, nil
}
