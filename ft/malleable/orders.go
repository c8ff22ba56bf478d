package malleable

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// Source is where commands come from.
type Source uint64

// The sources.
const (
	None Source = iota
	FromFile
	FromAgent
)

// tries is how often a command is begun while processes die.
const tries = 4

// Orders is the state of the commands that were taken, at all processes. Rank 0 sends it to the
// other ranks, so that its successor can continue.
type Orders struct {
	Stamp  Stamp  // of the command file when commands were taken from it
	Number uint64 // of the latest command of the agent
	Source Source // of these commands
	At     uint64 // position in Text of the next one
	Tries  uint64 // how often it has failed because a process died meanwhile
	// processes that the command ends: it is done when the other processes have recovered
	Killing uint64
	From    uint64 // number of processes when these were named
	// 1: commands were taken from the file, and no process is known to have written the answer
	Unanswered uint64
	First      uint64 // number of processes when they were taken
	Epoch      uint64 // number of changes so far
	Text       string // commands, each with a semicolon behind it
	Refused    string // why the first command that failed could not be executed; empty: none
}

// Sizes of the texts in words of 8 bytes, and of all orders.
const (
	textWords    = (TextMax + 1 + 7) / 8
	refusedMax   = 255
	refusedWords = (refusedMax + 7) / 8
	fieldWords   = 12
	OrderWords   = fieldWords + 2 + textWords + refusedWords
)

// next is the command that comes next, "" at the end.
func (o *Orders) next() string {
	word, _, _ := strings.Cut(o.Text[o.At:], ";")
	return word
}

// pending reports whether a command is to be executed now.
func (o *Orders) pending() bool { return o.Source != None && o.Killing == 0 && o.next() != "" }

// pass skips the next command.
func (o *Orders) pass() {
	o.At = min(o.At+uint64(len(o.next()))+1, uint64(len(o.Text)))
	o.Tries = 0
}

// refuse notes why a command cannot be executed, if it is the first.
func (o *Orders) refuse(why error) {
	if o.Refused == "" {
		o.Refused = printable(why.Error(), refusedMax)
	}
}

// take begins with commands for size processes.
func (o *Orders) take(commands string, source Source, size int) {
	o.Source, o.Text, o.First = source, commands, uint64(size)
	o.At, o.Tries, o.Killing, o.Refused = 0, 0, 0, ""
}

func (o *Orders) fields() [fieldWords]*uint64 {
	return [fieldWords]*uint64{&o.Stamp.Modified, &o.Stamp.File, &o.Stamp.Content, &o.Number,
		(*uint64)(&o.Source), &o.At, &o.Tries, &o.Killing, &o.From, &o.Unanswered, &o.First,
		&o.Epoch}
}

// Encode gives the OrderWords words of the orders: the numbers, the lengths of the texts, the
// texts.
func (o *Orders) Encode() []uint64 {
	w := make([]uint64, 0, OrderWords)
	for _, f := range o.fields() {
		w = append(w, *f)
	}
	w = append(w, uint64(len(o.Text)), uint64(len(o.Refused)))
	return append(append(w, words(o.Text, textWords)...), words(o.Refused, refusedWords)...)
}

// Decode reads what Encode gives; false: it is not that.
func (o *Orders) Decode(w []uint64) bool {
	if len(w) != OrderWords {
		return false
	}
	var read Orders
	for i, f := range read.fields() {
		*f = w[i]
	}
	text, refused := w[fieldWords], w[fieldWords+1]
	w = w[fieldWords+2:]
	if text > 8*textWords || refused > 8*refusedWords || read.At > text {
		return false
	}
	read.Text, read.Refused = unwords(w[:textWords], text), unwords(w[textWords:], refused)
	*o = read
	return true
}

func words(text string, n int) []uint64 {
	b := make([]byte, 8*n)
	copy(b, text)
	w := make([]uint64, n)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return w
}

func unwords(w []uint64, n uint64) string {
	var b bytes.Buffer
	for _, v := range w {
		b.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	return string(b.Bytes()[:n])
}

// print is a fingerprint of the orders; it is not negative.
func (o *Orders) print() int64 {
	h := fnv.New64a()
	for _, v := range o.Encode() {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	return int64(h.Sum64() >> 1)
}

func hash(text []byte) uint64 {
	h := fnv.New64a()
	h.Write(text)
	return h.Sum64() >> 1
}
