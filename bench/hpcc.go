package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// hpccRows are the parts of HPCC that communicate, in microseconds of the whole part.
var hpccRows = []string{"hpcc-linpack 0", "hpcc-transpose 0", "hpcc-randomaccess 0", "hpcc-fft 0"}

// hpccTimes are what HPCC calls them, in seconds; several are added up.
var hpccTimes = map[string]string{"hpcc-linpack 0": "HPL_time", "hpcc-transpose 0": "PTRANS_time", "hpcc-randomaccess 0": "MPIRandomAccess_time", "hpcc-fft 0": `MPIFFT_time\d`}

// prepareHPCC copies the program that `make apps` built, with the numerical libraries that it needs: the peers look for them in their own
// folder first.
func (b *bench) prepareHPCC() error {
	built := filepath.Join(b.build, "apps/hpcc-1.5.0")
	dir := filepath.Join(b.dir, "hpcc")
	if err := os.MkdirAll(filepath.Join(dir, "lib"), 0o777); err != nil {
		return err
	}
	for _, name := range []string{"hpcc", "_hpccinf.txt"} {
		data, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return fmt.Errorf("-hpcc measures the program that make apps builds: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o777); err != nil {
			return err
		}
	}
	out, err := exec.Command("ldd", filepath.Join(dir, "hpcc")).Output()
	if err != nil {
		return err
	}
	for _, m := range regexp.MustCompile(`(lib(?:openblas|gfortran|quadmath)\S*) => (\S+)`).FindAllStringSubmatch(string(out), -1) {
		data, err := os.ReadFile(m[2])
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "lib", m[1]), data, 0o777); err != nil {
			return err
		}
	}
	return nil
}

// grid is the most nearly square grid of n processes.
func grid(n int) (p, q int) {
	for p = 1; p*p <= n; p++ {
		if n%p == 0 {
			q = p
		}
	}
	return q, n / q
}

// runHPCC runs it and returns lines as programs/rows.c has them. args start the program under a library.
func (b *bench) runHPCC(args, env []string, ranks int) (string, shares, error) {
	dir := filepath.Join(b.dir, "hpcc")
	input, err := os.ReadFile(filepath.Join(dir, "_hpccinf.txt"))
	if err != nil {
		return "", shares{}, err
	}
	p, q := grid(ranks)
	text := string(input)
	for key, v := range map[string]int{"Ps": p, "Qs": q, "Ns": 600} {
		text = regexp.MustCompile(`(?m)^\d+(\s+`+key+`)$`).ReplaceAllString(text, strconv.Itoa(v)+"$1")
	}
	if err := os.WriteFile(filepath.Join(dir, "hpccinf.txt"), []byte(text), 0o666); err != nil {
		return "", shares{}, err
	}
	os.Remove(filepath.Join(dir, "hpccoutf.txt"))
	in := *b
	in.dir = dir
	_, share, err := in.watched(append(args, filepath.Join(dir, "hpcc")), env)
	if err != nil {
		return "", share, err
	}
	out, err := os.ReadFile(filepath.Join(dir, "hpccoutf.txt"))
	if err != nil {
		return "", share, err
	}
	if !strings.Contains(string(out), "Success=1") {
		return "", share, fmt.Errorf("HPCC did not succeed: %s", last(string(out), 500))
	}
	var lines strings.Builder
	for _, row := range hpccRows {
		seconds, found := 0.0, false
		for _, m := range regexp.MustCompile(`(?m)^`+hpccTimes[row]+`=([-+.\deE]+)$`).FindAllStringSubmatch(string(out), -1) {
			v, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return "", share, err
			}
			seconds, found = seconds+v, true
		}
		if !found {
			return "", share, fmt.Errorf("HPCC's output has no %s", hpccTimes[row])
		}
		fmt.Fprintf(&lines, "%s %g\n", row, seconds*1e6)
	}
	return lines.String(), share, nil
}
