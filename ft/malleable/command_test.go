package malleable

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		word string
		size int
		want Command
		err  string
	}{
		{"8", 4, Command{Size: 8}, ""},
		{"007", 4, Command{Size: 7}, ""},
		{"2147483647", 4, Command{Size: 2147483647}, ""},
		{"k3,0,3", 4, Command{Kill: []int{3, 0}}, ""},
		{"0", 4, Command{},
			"0: a command is a number of processes, 1 or more, or k and ranks (k3,5)"},
		{"2147483648", 4, Command{}, "2147483648: a command is a number"},
		{"-1", 4, Command{}, "-1: a command is a number"},
		{"+1", 4, Command{}, "+1: a command is a number"},
		{"8x", 4, Command{}, "8x: a command is a number"},
		{"k", 4, Command{}, "k: after k stand ranks from 0 to 3, separated by commas"},
		{"k4", 4, Command{}, "k4: after k stand ranks"},
		{"k1,", 4, Command{}, "k1,: after k stand ranks"},
		{"k1;2", 4, Command{}, "k1;2: after k stand ranks"},
		{"k99999999999999999999", 4, Command{}, "k99999999999999999999: after k stand ranks"},
		{"k0,1", 2, Command{}, "k0,1: one of the 2 processes has to stay"},
		{"k5000", 6000, Command{Kill: []int{5000}}, ""},
	} {
		got, err := ParseCommand(c.word, c.size)
		if c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want)) || c.err != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), c.err)) {
			t.Errorf("%q for %d processes: %v, %v", c.word, c.size, got, err)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"4\n":                        "4;",
		"2\n# a comment; 7\n5;k0, 4": "2;5;k0,4;",
		";;\n ; \t\n":                "",
		"4 # one ; 5\r\n6":           "4;6;",
		"k 1 , 2;\v3":                "k1,2;3;",
		"\xff4":                      "\xff4;",
	} {
		if got := Commands(text); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	}
	if text := "4\n# done in 0.004800 s\n\n5\n"; Commands(BehindAnswer(text)) != "5;" {
		t.Errorf("behind the answer %q is %q", text, BehindAnswer(text))
	}
}

// What is read as commands is read the same again, each command is parsed or refused, and an answer
// is no command.
func FuzzCommands(f *testing.F) {
	f.Add("2\n# a comment; 7\n5;k0, 4", 3)
	f.Add("4\n# done in 0.004800 s\n# error: x\n8", 1)
	f.Add("k1,1,1,;k\x00;\xff", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		text = text[:min(len(text), TextMax)]
		size = 1 + (size&0xffff)%5000
		commands := Commands(BehindAnswer(text))
		if len(commands) > TextMax+1 || Commands(commands) != commands {
			t.Fatalf("%q: %q, and %q again", text, commands, Commands(commands))
		}
		o := Orders{}
		o.take(commands, FromFile, size)
		for o.next() != "" {
			c, err := ParseCommand(o.next(), size)
			if err == nil && c.Size < 1 && (len(c.Kill) == 0 || len(c.Kill) >= size ||
				slices.Max(c.Kill) >= size || slices.Min(c.Kill) < 0) {
				t.Fatalf("%q for %d processes is taken for %v", o.next(), size, c)
			}
			if err != nil {
				o.refuse(err)
			}
			o.pass()
		}
		answer := Answer(size, 0.5, o.Refused, len(text))
		if len(answer) < len(text) || Commands(BehindAnswer(answer)) != "" &&
			!strings.Contains(o.Refused, answered) {
			t.Fatalf("the answer %q has commands", answer)
		}
		var read Orders
		if !read.Decode(o.Encode()) || !reflect.DeepEqual(read, o) || read.print() != o.print() {
			t.Fatalf("%+v became %+v", o, read)
		}
	})
}

func FuzzOrders(f *testing.F) {
	f.Add(make([]byte, 8*OrderWords))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := make([]uint64, OrderWords)
		for i := range min(len(b), 8*OrderWords) {
			w[i/8] |= uint64(b[i]) << (i % 8 * 8)
		}
		if o := (Orders{}); o.Decode(w) {
			o.next()
			o.pass()
		}
	})
}
