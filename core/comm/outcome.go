package comm

import (
	"encoding/binary"
	"math"

	"libspx/core/mpierr"
)

// Outcome is the result of a start that the root of MPI_Comm_spawn sends the other parents
// (MPI-5.0, 11.8.2): the error, or nil; the number of processes requested; and their error codes,
// none if all were or none was started.
type Outcome struct {
	Failure error
	Asked   int
	Codes   []uint32
}

// class of the error, number of codes (4 bytes each), processes requested (8); then the codes, and
// the text of the error
const outcomeHead = 16

// Encode returns the form in which an Outcome travels.
func (o Outcome) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(mpierr.ClassOf(o.Failure)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(o.Codes)))
	b = binary.LittleEndian.AppendUint64(b, uint64(o.Asked))
	for _, code := range o.Codes {
		b = binary.LittleEndian.AppendUint32(b, code)
	}
	if o.Failure != nil {
		b = append(b, o.Failure.Error()...)
	}
	return b
}

// DecodeOutcome reads what Encode made. There are no more codes than processes, and each of them,
// as the class, can be a C int.
func DecodeOutcome(b []byte) (o Outcome, err error) {
	if len(b) < outcomeHead {
		return o, errShort
	}
	word := func(k int) uint32 { return binary.LittleEndian.Uint32(b[4*k:]) }
	class, codes, asked := word(0), int64(word(1)), int64(binary.LittleEndian.Uint64(b[8:]))
	end := outcomeHead + 4*codes
	if asked < codes || end > int64(len(b)) || class == 0 && end != int64(len(b)) {
		return o, errShort
	}
	for k := range int(codes) {
		code := word(outcomeHead/4 + k)
		if code > math.MaxInt32 {
			return Outcome{}, errShort
		}
		o.Codes = append(o.Codes, code)
	}
	o.Asked = int(asked)
	o.Failure = ClassError(class, "%s", b[end:])
	return o, nil
}
