package main

import (
	"os"
	"path/filepath"
	"strings"

	"libspx/api"
	"libspx/internal/manual"
	"libspx/launch/command"
)

// aliases are the other names of programs, which get a page that leads to the same text.
var aliases = map[string][]string{"spxrun": {"mpiexec", "mpirun"}, "mpicc": {"mpicxx", "mpic++", "mpiCC", "mpif77", "mpif90", "mpifort"}}

// programPages makes the pages of programs and of the library: spxrun's from its table of options, spxctl's by spxctl itself; packaging/manual has those
// that are written by hand.
func programPages(files map[string]string, r release, build string) (err error) {
	files["share/man/man1/spxrun.1"] = spxrunPage(r)
	if files["share/man/man1/spxctl.1"], err = output(build, "spxctl", "manual", r.date, "libspx "+r.version); err != nil {
		return err
	}
	if files["share/man/man7/libspx.7"], err = libraryPage(r); err != nil {
		return err
	}
	written, err := filepath.Glob("packaging/manual/*.[1-8]")
	if err != nil {
		return err
	}
	for _, file := range written {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		section := name[len(name)-1:]
		files["share/man/man"+section+"/"+name] = strings.NewReplacer("@VERSION@", r.version, "@DATE@", r.date).Replace(string(text))
	}
	for name, list := range aliases {
		for _, alias := range list {
			files["share/man/man1/"+alias+".1"] = ".so man1/" + name + ".1\n"
		}
	}
	return nil
}

func spxrunPage(r release) string {
	p := manual.New("spxrun", "1", r.date, "libspx "+r.version)
	p.Name("runs programs as an MPI job", "spxrun", "mpiexec", "mpirun")
	p.Section("SYNOPSIS")
	p.Raw(".Nm spxrun\n.Op Ar options\n.Op Fl n Ar N\n.Ar program\n.Op Ar arguments\n.Op : Oo Ar options Oc Oo Fl n Ar N Oc Ar program ...")
	p.Section("DESCRIPTION")
	_, text, _ := strings.Cut(command.Usage(), "\n\n")
	p.Text("%s", text)
	group := ""
	for _, o := range command.Options() {
		if o.Group != group {
			if group != "" {
				p.EndList()
			}
			group = o.Group
			p.Subsection(group)
			p.List()
		}
		p.Term("Fl", optionTerm(o))
		switch {
		case !o.Ignored:
			p.Text("%s.", upper(strings.TrimSuffix(o.Help, ".")))
		default:
			p.Text("Taken and not used.")
		}
	}
	p.EndList()
	p.Section("ENVIRONMENT")
	p.Text("Variables that libspx and the launcher read are in libspx(7).")
	p.Section("EXIT STATUS")
	p.Text("%s", command.Ending())
	p.Section("EXAMPLES")
	p.Literal("spxrun -n 16 ./program\nspxrun -host a:4,b:4 ./program\nspxrun -n 1 ./manager : -n 7 ./worker\nspxrun -n 8 --with-ft ./survivor")
	p.See([][2]string{{"mpicc", "1"}, {"spxctl", "1"}, {"libspx", "7"}})
	p.Section("STANDARDS")
	p.Text("MPI-5.0, 11.5 (Portable MPI Process Startup), and the options that users of MPICH and Open MPI know.")
	return p.String()
}

// optionTerm is all spellings of an option, as "n, -np N" (the first dash is the macro's).
func optionTerm(o command.Option) string {
	var names []string
	for _, n := range o.Names {
		if len(n) > 1 {
			n = "-" + n
		}
		names = append(names, n)
	}
	term := strings.Join(names, ", -")
	if o.Meta != "" {
		term += " " + o.Meta
	}
	return term
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// libraryPage is libspx(7): what there is, and the variables.
func libraryPage(r release) (string, error) {
	settings, err := api.LoadSettings()
	if err != nil {
		return "", err
	}
	p := manual.New("libspx", "7", r.date, "libspx "+r.version)
	p.Name("an MPI library with the MPI-5.0 standard ABI", "libspx")
	p.Section("SYNOPSIS")
	p.Raw(".In mpi.h\n.In mpi-ext.h\n.In ulfm_dyprc.h")
	p.Literal("mpicc hello.c -o hello\nspxrun -n 4 ./hello")
	p.Section("DESCRIPTION")
	p.Text("All functions of MPI-5.0 in C and Fortran, on one host by shared memory and between hosts by TCP; surviving the death of processes, changing their number, checkpoints, and multicast to any set of ranks.")
	p.Paragraph()
	p.Text("The library's soname is libmpi_abi.so.1, the one of the standard ABI: a program that was built with it by any MPI library runs on any other.")
	p.Paragraph()
	p.Text("There is a page for every function, as MPI_Send(3).")
	p.Section("ENVIRONMENT")
	p.Text("Numbers may end in K, M or G. The values that hold are shown by MPI_T, as control variables.")
	p.List()
	for _, s := range settings {
		if !s.Control() {
			continue
		}
		p.Term("Ev", s.Name)
		p.Text("%s.", upper(strings.TrimSuffix(s.Description, ".")))
		if s.Preset != "" {
			p.Text("Preset: %s.", s.Preset)
		}
	}
	p.EndList()
	p.Section("FILES")
	p.Text("Everything is found by where the programs stand: the tree that make install has made may be moved as a whole.")
	p.List()
	for _, f := range [][2]string{
		{"lib/libmpi_abi.so.1", "The library."},
		{"lib/libmpifort_abi.so.1", "The Fortran interface."},
		{"lib/pkgconfig/libspx.pc", "For pkg-config: libspx, mpi-c, mpi-cxx, mpi-fort."},
		{"lib/cmake/libspx", "For find_package(libspx) of CMake: libspx::mpi_c, libspx::mpi_cxx, libspx::mpi_fort."},
		{"share/modulefiles, share/lmod", "For the command module of environment-modules and of Lmod."},
	} {
		p.Term("Pa", f[0])
		p.Text("%s", f[1])
	}
	p.EndList()
	p.See([][2]string{{"mpicc", "1"}, {"spxctl", "1"}, {"spxrun", "1"}, {"MPI_Init", "3"}})
	return p.String(), nil
}
