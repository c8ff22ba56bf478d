// Fuzzall runs every Go fuzz target of the module, one after another, each for the time given.
//
//	go run ./internal/fuzzall -time 20s
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", 20*time.Second, "time for each target")
	flag.Parse()
	if err := run(*each); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

func run(each time.Duration) error {
	out, err := exec.Command("go", "test", "-list", "^Fuzz", "./...").Output()
	if err != nil {
		return fmt.Errorf("go test -list: %w", err)
	}
	var targets []string
	ran, broken := 0, 0
	for _, line := range strings.Split(string(out), "\n") {
		if strings.HasPrefix(line, "Fuzz") {
			targets = append(targets, line)
			continue
		}
		fields := strings.Fields(line) // "ok  package  0.01s" closes the targets of a package
		if len(fields) < 2 {
			continue
		}
		for _, target := range targets {
			ran++
			fmt.Println("fuzz", fields[1], target)
			cmd := exec.Command("go", "test", fields[1], "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", each.String(),
				"-fuzzminimizetime", "100x") // else short runs are spent on making inputs short whose coverage varies
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				broken++
			}
		}
		targets = nil
	}
	fmt.Printf("%d fuzz targets, %d failed\n", ran, broken)
	if broken > 0 {
		return fmt.Errorf("%d of %d targets failed", broken, ran)
	}
	return nil
}
