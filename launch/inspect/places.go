package inspect

import "libspx/core/diagnose"

// Places names addresses of processes that need not be there any more, by the lines of
// /proc/PID/maps that they have left.
type Places struct {
	files *files
	known map[place]diagnose.Frame
}

type place struct {
	path string
	at   uint64
}

// NewPlaces returns an empty cache.
func NewPlaces() *Places { return &Places{newFiles(), map[place]diagnose.Frame{}} }

// Caller names the function, file and line of a call that returns to an address, as far as the
// files on this host have them.
func (p *Places) Caller(maps []Mapping, back uint64) diagnose.Frame {
	for _, m := range maps {
		if back <= m.from || back > m.to {
			continue
		}
		key := place{m.path, back - m.from + m.offset}
		if f, known := p.known[key]; known {
			return f
		}
		frame := diagnose.Frame{Object: m.path, PC: key.at}
		if f := p.files.open(0, m, func([]byte, uint64) bool { return false }); f != nil {
			if at, ok := f.address(m, back-1); ok {
				frame = f.frames(at)[0]
				frame.PC = at
			}
		}
		p.known[key] = frame
		return frame
	}
	return diagnose.Frame{PC: back}
}
