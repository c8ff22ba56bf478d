package layout

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Procs are numbers of processes, in an order that matters. In text they are ranges: "0-3,7".
type Procs []int

// maxProcs is more than any job has.
const maxProcs = 1 << 20

// String writes runs of ascending numbers as ranges.
func (p Procs) String() string {
	var b strings.Builder
	for i := 0; i < len(p); {
		j := i
		for j+1 < len(p) && p[j+1] == p[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(p[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(p[j]))
		}
		i = j + 1
	}
	return b.String()
}

// MarshalJSON writes the ranges.
func (p Procs) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// UnmarshalJSON reads ranges, as MarshalJSON writes them.
func (p *Procs) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("processes are a text as \"0-3,7\": %w", err)
	}
	*p = nil
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		z := a
		if err == nil && isRange {
			z, err = strconv.Atoi(last)
		}
		if err != nil || a < 0 || z < a || z >= maxProcs || len(*p)+z-a+1 > maxProcs {
			return fmt.Errorf("processes %q: %q is no number or range of numbers", text, part)
		}
		for i := a; i <= z; i++ {
			*p = append(*p, i)
		}
	}
	return nil
}
