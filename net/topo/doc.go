// Package topo infers the physical network under a job from measured times alone: which hosts share
// a switch, and which links join the switches. It is the method of Kaneda, Taura and Yonezawa ("A
// message passing system with dynamic connection management"), sections 2.1 and 2.2: hosts on one
// switch by sorted minimum round-trip times, links between switches by which pairs of paths slow
// each other down, and the algorithm of figure 1; with fewer measurements, made in parallel.
//
// The package is pure: Machine.Step takes what was measured and returns what to measure next. It
// has no clock, socket or randomness. tree.go is the result; search.go finds switches; links.go
// joins them; figure1.go is the paper's own algorithm, to which the tests hold links.go; machine.go
// puts both phases in order and limits how many measurements run at once.
package topo
