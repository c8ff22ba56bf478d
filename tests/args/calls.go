package args

import (
	"regexp"
	"strings"
	"sync"

	"libspx/api"
)

// A call is what a function needs for a right call beyond the values of its kinds of arguments, all in C. Before the call: pre.
// After a right one: the results are released (unless keep), then post; after a wrong one: undo. v_NAME is the handle that the
// address argument NAME points at, k_NAME its copy; x_NAME is the room for a result; zero and nobody tell that there are no
// elements or only MPI_PROC_NULL in this call.
type call struct {
	set             map[string]string
	pre, post, undo string
	classes         map[string]string // other error classes, by "argument" or "argument=value"
	mute            map[string]bool
	skip            map[string]bool // "argument=value" that is right here, or that only the body's object decides
	more            []attempt
	ranks           int
	keep            bool
	second          string // the function that rank 1 calls in a right call
	everybodyIsRoot bool
	fails           string // the class that the right call has: it is never possible
	inside          bool   // the call is made out of the callback of an event
}

// A rule is a part of the call of every function that it names. Lists are separated by semicolons.
type rule struct {
	names           string // regular expression for the name without MPI_ and _c
	set             string
	pre, post, undo string
	classes, skip   string
	more            []attempt
	ranks           int
	keep            bool
	second          string
	everybodyIsRoot bool
	fails           string
	inside          bool
	mute            string // arguments whose wrong values need not be in the message
}

func bad(arg, code, classes string) attempt { return attempt{arg, code, code + ";", classes, "", 'w'} }
func badPair(arg, code, classes string) attempt {
	return attempt{arg, code, code + ";", classes, "", 'p'}
}
func good(arg, code string) attempt { return attempt{arg, code, code + ";", "", "", 'r'} }

// exempt lists the functions that are not called here, and why.
var exempt = map[string]string{
	"MPI_Init":        "called once, by the program itself",
	"MPI_Init_thread": "called once; tests/abi calls it with wrong arguments",
	"MPI_Finalize":    "has no argument, and ends the program",
	"MPI_Abort":       "ends the program whatever its arguments are (tests/c/boundary)",
}

var expressions = sync.OnceValue(func() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, r := range rules {
		out = append(out, regexp.MustCompile("^("+r.names+")$"))
	}
	return out
})

// callOf joins the rules of a function.
func callOf(f *api.Function) call {
	c := call{set: map[string]string{}, classes: map[string]string{}, skip: map[string]bool{}, mute: map[string]bool{}}
	name := f.Name
	if f.Count == "large" {
		name = strings.TrimSuffix(name, "_c")
	}
	name = strings.TrimPrefix(name, "MPI_")
	for i, e := range expressions() {
		if !e.MatchString(name) {
			continue
		}
		r := rules[i]
		pairs(r.set, c.set)
		pairs(r.classes, c.classes)
		for _, s := range list(r.skip) {
			c.skip[s] = true
		}
		c.pre += r.pre + " "
		c.post = r.post + " " + c.post
		c.undo = r.undo + " " + c.undo
		c.more = append(c.more, r.more...)
		c.keep = c.keep || r.keep
		for _, m := range strings.Fields(r.mute) {
			c.mute[m] = true
		}
		c.inside = c.inside || r.inside
		if r.fails != "" {
			c.fails = r.fails
		}
		if r.second != "" {
			c.second = r.second
		}
		c.everybodyIsRoot = c.everybodyIsRoot || r.everybodyIsRoot
		if r.ranks != 0 {
			c.ranks = r.ranks
		}
	}
	return c
}

func list(s string) []string {
	var out []string
	for _, e := range strings.Split(s, ";") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// pairs reads "a=1; b=2", or "a: X; b=5: Y" where a name may hold an equals sign.
func pairs(s string, into map[string]string) {
	for _, e := range list(s) {
		k, v, ok := strings.Cut(e, ": ")
		if !ok {
			k, v, _ = strings.Cut(e, "=")
		}
		into[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
}
