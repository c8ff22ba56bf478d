package pmi

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
)

// Client is a process's side of the protocol. It is not for concurrent use.
type Client struct {
	rw  io.ReadWriter
	in  *bufio.Reader
	kvs string // name of the job's key space
	max struct{ key, value int }
}

// Connect greets the server and requests the job's key space. The stream belongs to the Client from
// then on.
func Connect(rw io.ReadWriter) (*Client, error) {
	c := &Client{rw: rw, in: bufio.NewReaderSize(rw, 2*longest)}
	if _, err := c.call("response_to_init", "init", "pmi_version", "1", "pmi_subversion",
		"1"); err != nil {
		return nil, err
	}
	m, err := c.call("maxes", "get_maxes")
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]*int{"keylen_max": &c.max.key, "vallen_max": &c.max.value} {
		if *value, err = strconv.Atoi(m.fields[name]); err != nil || *value < 16 {
			return nil, fmt.Errorf("the PMI-1 server allows %s=%q", name, m.fields[name])
		}
	}
	if m, err = c.call("my_kvsname", "get_my_kvsname"); err != nil {
		return nil, err
	}
	if c.kvs = m.fields["kvsname"]; c.kvs == "" {
		return nil, fmt.Errorf("the PMI-1 server names no key space")
	}
	return c, nil
}

// call sends a request in one write, as some servers want it, and returns the answer, which must be
// of the given kind and without an error.
func (c *Client) call(answer, cmd string, pairs ...string) (message, error) {
	request, err := format(cmd, pairs...)
	if err != nil {
		return message{}, err
	}
	if _, err := io.WriteString(c.rw, request); err != nil {
		return message{}, fmt.Errorf("PMI-1 %s: %w", cmd, err)
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return message{}, fmt.Errorf("PMI-1 %s: no answer: %w", cmd, err)
	}
	m, err := parse(string(line[:len(line)-1]))
	if err != nil {
		return message{}, err
	}
	if m.cmd != answer {
		return message{}, fmt.Errorf("PMI-1 %s: the answer is %s, not %s", cmd, m.cmd, answer)
	}
	if rc, has := m.fields["rc"]; has && rc != "0" {
		return m, &Refused{cmd, rc, m.fields["msg"]}
	}
	return m, nil
}

// Refused is a server's refusal of a request.
type Refused struct{ Cmd, RC, Message string }

func (e *Refused) Error() string {
	return fmt.Sprintf("the PMI-1 server refuses %s (rc=%s %s)", e.Cmd, e.RC, e.Message)
}

// KVS is the name of the job's key space, which is different for each job of a launcher.
func (c *Client) KVS() string { return c.kvs }

// Appnum is the number of the program on the launcher's command line; -1 if not given.
func (c *Client) Appnum() (int, error) {
	m, err := c.call("appnum", "get_appnum")
	if err != nil {
		return -1, err
	}
	n, err := strconv.Atoi(m.fields["appnum"])
	if err != nil {
		return -1, nil
	}
	return n, nil
}

// PutWord stores a word under a key; all processes can GetWord it after the next Barrier.
func (c *Client) PutWord(key, value string) error {
	if len(key) >= c.max.key || len(value) >= c.max.value {
		return fmt.Errorf(
			"PMI-1: key %q has %d bytes and its value %d; less than %d and %d are possible", key,
			len(key), len(value), c.max.key, c.max.value)
	}
	_, err := c.call("put_result", "put", "kvsname", c.kvs, "key", key, "value", value)
	return err
}

// GetWord returns the value of a key; a *Refused error if there is none.
func (c *Client) GetWord(key string) (string, error) {
	m, err := c.call("get_result", "get", "kvsname", c.kvs, "key", key)
	if err != nil {
		return "", err
	}
	return m.fields["value"], nil
}

// Barrier waits until all processes of the job have called it.
func (c *Client) Barrier() error {
	_, err := c.call("barrier_out", "barrier_in")
	return err
}

// wire is the form of bytes in values: one word, without the characters that mean something in the
// protocol.
var wire = base64.RawURLEncoding

// PutBytes stores any bytes under a key, in as many pieces as the server's limits need.
func (c *Client) PutBytes(key string, data []byte) error {
	text := wire.EncodeToString(data)
	overhead := len("cmd=put kvsname= key=.999999 value=\n") + len(c.kvs) + len(key)
	piece := min(c.max.value-1, longest-overhead)
	if piece < 8 {
		return fmt.Errorf("PMI-1: no room for a value: the key space is named %q and the key %q",
			c.kvs, key)
	}
	n := (len(text) + piece - 1) / piece
	if err := c.PutWord(key, strconv.Itoa(n)+"."+strconv.Itoa(len(data))); err != nil {
		return err
	}
	for i := range n {
		if err := c.PutWord(key+"."+strconv.Itoa(i),
			text[i*piece:min((i+1)*piece, len(text))]); err != nil {
			return err
		}
	}
	return nil
}

// GetBytes returns what PutBytes stored.
func (c *Client) GetBytes(key string) ([]byte, error) {
	head, err := c.GetWord(key)
	if err != nil {
		return nil, err
	}
	var n, size int
	if _, err := fmt.Sscanf(head, "%d.%d", &n, &size); err != nil || n < 0 || size < 0 ||
		n > 1<<20 {
		return nil, fmt.Errorf("PMI-1: the value %q of %s was not written by PutBytes", head, key)
	}
	var text []byte
	for i := range n {
		piece, err := c.GetWord(key + "." + strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		text = append(text, piece...)
	}
	data, err := wire.AppendDecode(nil, text)
	if err != nil || len(data) != size {
		return nil, fmt.Errorf("PMI-1: %s has %d bytes, not %d: %v", key, len(data), size, err)
	}
	return data, nil
}
