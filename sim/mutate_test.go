package sim

import "encoding/binary"

// setFlags makes an agreement's Gather message claim that all flags are set: kind, number, Gather, ballot, flags, ...
func setFlags(data []byte) []byte {
	_, ballot := binary.Uvarint(data[3:])
	flags := 3 + ballot
	_, length := binary.Uvarint(data[flags:])
	out := binary.AppendUvarint(append([]byte(nil), data[:flags]...), 0xffffffff)
	return append(out, data[flags+length:]...)
}
