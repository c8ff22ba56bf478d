package inspect

import "testing"

// Call frame information of any file: what is not understood is left out, and frames end.
func FuzzFrames(f *testing.F) {
	// A CIE ("zR", pcrel sdata4) and an FDE of 16 bytes of code.
	f.Add([]byte("\x14\x00\x00\x00\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x1b\x0c\x07"+
		"\x08\x90\x01\x00\x00"+
		"\x14\x00\x00\x00\x1c\x00\x00\x00\x10\x00\x00\x00"+
		"\x10\x00\x00\x00\x00\x41\x0e\x10\x86\x02\x00\x00"), uint64(0x1000), uint64(4))
	f.Add([]byte("\x0c\x00\x00\x00\x00\x00\x00\x00\x03z\x00\x01\x78\x10\x00\x00"+
		// 2^63 - 1 bytes of augmentation
		"\x1d\x00\x00\x00\x14\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00"+
		"\x10\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
		uint64(0), uint64(0x1004))
	f.Fuzz(func(t *testing.T, section []byte, address, pc uint64) {
		words := 0
		read := func(at uint64) (uint64, bool) {
			words++
			return at ^ pc, words%7 != 0
		}
		for _, fn := range readFrames(section, address) {
			row, err := fn.row(max(fn.from, min(pc, fn.to-1)))
			if err != nil {
				continue
			}
			var r registers
			for n := range regsAll {
				r.set(n, pc+uint64(n))
			}
			row.up(&r, read)
		}
	})
}
