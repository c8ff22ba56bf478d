package pmi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime is how long a server that is called may take to answer.
const answerTime = 30 * time.Second

// Call makes the connection that a Place with a Port lacks, and learns the number of processes:
// after it, the Place is as if the socket had been inherited.
func Call(p Place) (Place, error) {
	conn, err := net.DialTimeout("tcp", p.Port, answerTime)
	if err != nil {
		return p, fmt.Errorf("the launcher's PMI-1 server (PMI_PORT=%s) cannot be reached: %w",
			p.Port, err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTime)) //nolint:errcheck // a TCP connection has deadlines
	rank, size, err := greet(conn, p.Rank)
	if err != nil {
		return p, fmt.Errorf("the launcher's PMI-1 server (PMI_PORT=%s, PMI_ID=%d): %w", p.Port,
			p.Rank, err)
	}
	if p.Rank, p.Size = rank, size; rank < 0 || rank >= size {
		return p, fmt.Errorf("the launcher's PMI-1 server (PMI_PORT=%s) says rank %d of %d", p.Port,
			rank, size)
	}
	p.FD, err = plain(conn.(*net.TCPConn))
	return p, err
}

// Leave ends the conversation that Call has begun, in order: a server takes one that just ends for
// the death of the process, and kills what is left of it.
func Leave(p Place) error {
	server := os.NewFile(uintptr(p.FD), "PMI")
	defer server.Close()
	if _, err := server.Write(FinalizeRequest()); err != nil {
		return fmt.Errorf("PMI-1 finalize: %w", err)
	}
	if _, err := bufio.NewReader(server).ReadSlice('\n'); err != nil {
		return fmt.Errorf("PMI-1 finalize: no answer: %w", err)
	}
	return nil
}

// greet sends the caller's number, and reads the three lines of the answer: size, rank, and whether
// the server wants to see everything.
func greet(conn io.ReadWriter, id int) (rank, size int, err error) {
	if _, err := fmt.Fprintf(conn, "cmd=initack pmiid=%d\n", id); err != nil {
		return 0, 0, err
	}
	// nothing beyond these lines is taken from the conversation to come
	in := bufio.NewReaderSize(byteByByte{conn}, 16)
	read := func(cmd, key string) (int, error) {
		var line []byte
		for len(line) == 0 || line[len(line)-1] != '\n' {
			b, err := in.ReadByte()
			if err != nil {
				return 0, fmt.Errorf("no answer to initack: %w", err)
			}
			if line = append(line, b); len(line) > longest {
				return 0, fmt.Errorf("%w: %.40q", errForm, line)
			}
		}
		m, err := parse(string(line))
		if err != nil || m.cmd != cmd {
			return 0, fmt.Errorf("%w: %q instead of %s", errForm, line, cmd)
		}
		if key == "" {
			return 0, nil
		}
		n, err := strconv.Atoi(m.fields[key])
		if err != nil {
			return 0, fmt.Errorf("%w: %q has no %s", errForm, line, key)
		}
		return n, nil
	}
	if _, err = read("initack", ""); err != nil {
		return 0, 0, err
	}
	if size, err = read("set", "size"); err != nil {
		return 0, 0, err
	}
	if rank, err = read("set", "rank"); err != nil {
		return 0, 0, err
	}
	_, err = read("set", "debug")
	return rank, size, err
}

// byteByByte reads no more than one byte at a time.
type byteByByte struct{ io.Reader }

func (r byteByByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:1]) }

// plain is a descriptor of the connection's socket that blocks, and is not inherited.
func plain(conn *net.TCPConn) (int, error) {
	file, err := conn.File()
	if err != nil {
		return -1, err
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3) // Fd makes the socket blocking
	if err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	return fd, nil
}
