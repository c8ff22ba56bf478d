package main

import (
	"fmt"
	"os"
	"strings"
)

// load is the processors' time since the machine started, in ticks of 10 ms, summed over all of them.
type load struct {
	busy, stolen, idle float64
}

func readLoad() (load, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return load{}, err
	}
	var user, nice, system, idle, wait, irq, soft, stolen float64
	line, _, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscanf(line, "cpu %f %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &wait, &irq, &soft, &stolen); err != nil {
		return load{}, fmt.Errorf("/proc/stat: %w", err)
	}
	return load{busy: user + nice + system + irq + soft, stolen: stolen, idle: idle + wait}, nil
}

func (l load) since(before load) load {
	return load{l.busy - before.busy, l.stolen - before.stolen, l.idle - before.idle}
}

func (l load) total() float64 { return max(l.busy+l.stolen+l.idle, 1) }

// stolenShare is the share that the hypervisor gave to other machines.
func (l load) stolenShare() float64 { return l.stolen / l.total() }

// foreignShare is the share that others than the measured processes (own ticks) used.
func (l load) foreignShare(own float64) float64 { return max(l.busy-own, 0) / l.total() }
