package steer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlain(t *testing.T) {
	type part struct {
		Name string
		More map[string]string
	}
	type all struct {
		Text  string
		List  []string
		Parts []*part
		Raw   []byte
		N     int
	}
	got := all{"\x1b]0;title\a", []string{"fine, é", "\u009b2J", "a\nb", "\u202egpj"},
		[]*part{{"\x7f", map[string]string{"k": "\r"}}, nil}, []byte("\x1b"), 7}
	makePlain(&got)
	want := all{`\x1b]0;title\x07`, []string{"fine, é", `\x9b2J`, `a\x0ab`, `\x202egpj`},
		[]*part{{`\x7f`, map[string]string{"k": `\x0d`}}, nil}, []byte("\x1b"), 7}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
