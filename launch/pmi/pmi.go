// Package pmi implements PMI-1, the wire protocol by which a process finds its job under Hydra,
// Flux and Slurm (srun --mpi=pmi2): lines of key=value pairs on an inherited stream socket,
// answered one by one. Only starting needs it: nothing after MPI_Init may wait for it, because a
// barrier is never released once a process has died.
//
// env.go finds the socket; mapping.go reads which processes share a node;
// client.go is the protocol.
package pmi

import (
	"errors"
	"fmt"
	"strings"
)

// message is a line of the protocol: cmd=NAME key=value ...
type message struct {
	cmd    string
	fields map[string]string
}

var errForm = errors.New("not a PMI-1 message")

// parse reads a line without its newline. A value ends at the next space: the protocol has no
// quotes.
func parse(line string) (message, error) {
	m := message{fields: map[string]string{}}
	for _, word := range strings.Fields(line) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return message{}, fmt.Errorf("%w: %q", errForm, line)
		}
		if key == "cmd" {
			m.cmd = value
		} else {
			m.fields[key] = value
		}
	}
	if m.cmd == "" {
		return message{}, fmt.Errorf("%w: %q", errForm, line)
	}
	return m, nil
}

// format writes a request: pairs are keys and values. A value must be one word.
func format(cmd string, pairs ...string) (string, error) {
	var b strings.Builder
	b.WriteString("cmd=" + cmd)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" || strings.ContainsAny(pairs[i+1], " \t\r\n\v\f\x00\u0085\u00a0") {
			return "", fmt.Errorf("PMI-1 cannot carry the value %q of %s: it must be one word",
				pairs[i+1], pairs[i])
		}
		b.WriteString(" " + pairs[i] + "=" + pairs[i+1])
	}
	b.WriteByte('\n')
	if b.Len() > longest {
		return "", fmt.Errorf("the PMI-1 request %s has %d bytes; servers lose what is beyond %d",
			cmd, b.Len(), longest)
	}
	return b.String(), nil
}

// longest is the number of bytes that servers read of a request: Slurm's drops the rest and reports
// success.
const longest = 1024
