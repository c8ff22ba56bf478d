package report

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// Any file may be given as a timeline: it is one, and the page can be made, or it is refused.
func FuzzDecode(f *testing.F) {
	f.Add(
		`{"libspx":{"ranks":[{"rank":0},{"rank":1,"sent":[{"to":0,"messages":3}]}]},"traceEvents":[` +
			`{"ph":"X","pid":0,"ts":1,"dur":3,"name":"MPI_Send","args":{"at":"x"}},{"ph":"s","id":1,"pid":0,"ts":1},{"ph":"f","id":1,"pid":1,"ts":2},` +
			`{"ph":"i","cat":"failure","pid":9,"ts":-1}]}`)
	f.Add(`{"libspx":null,"traceEvents":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		line, err := decode(json.NewDecoder(strings.NewReader(text)))
		if err != nil {
			return
		}
		line.Write(io.Discard) //nolint:errcheck // must not panic
	})
}
