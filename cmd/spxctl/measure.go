package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"libspx/launch/cpus"
)

// programs finds the measuring program and spxrun beside this one, wherever the tree stands.
func programs() (rows, run string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", "", err
	}
	rows, run = filepath.Join(filepath.Dir(self), "../libexec/libspx/rows"), filepath.Join(filepath.Dir(self), "spxrun")
	for _, p := range []string{rows, run} {
		if _, err := os.Stat(p); err != nil {
			return "", "", fmt.Errorf("a part of the installation is missing: %w", err)
		}
	}
	return rows, run, nil
}

// measure runs rows once and returns microseconds by row.
func measure(run, rows string, ranks int, expression string, env []string) (map[string]float64, error) {
	dir, err := os.MkdirTemp("", "spxctl")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(run, "--timeout", "120", "-n", strconv.Itoa(ranks), rows, "-t", "4", "-f", dir, expression)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, errors.String())
	}
	us := map[string]float64{}
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		if v, err := strconv.ParseFloat(f[2], 64); err == nil && v > 0 {
			us[f[0]+" "+f[1]] = v
		}
	}
	if len(us) == 0 {
		return nil, fmt.Errorf("%s printed no figures", strings.Join(cmd.Args, " "))
	}
	return us, nil
}

func processors() int {
	if n := cpus.Usable(); n > 0 {
		return n
	}
	return runtime.NumCPU()
}
