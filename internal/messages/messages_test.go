package messages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func collected(t *testing.T) []Text {
	t.Helper()
	all, err := Collect(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 800 {
		t.Fatalf("only %d texts are found: has the form of the sources changed?", len(all))
	}
	return all
}

// What a text may not be like.
var rules = []struct {
	bad *regexp.Regexp
	why string
}{
	{regexp.MustCompile(`(?i)error (has )?occurred|something went wrong|unknown error|unexpected error|please try again|oops|!$`), "says nothing"},
	{regexp.MustCompile(`(?i)^(an |the )?(invalid|bad|wrong|illegal) (argument|value|parameter|input)\.?$`), "does not say which, nor its value"},
	{regexp.MustCompile(`(?i)out of memory for|not enough memory|cannot allocate|insufficient memory`), "say: no memory for ..."},
	{regexp.MustCompile(`^no memory$`), "does not say for what"},
	{regexp.MustCompile(`but has to be`), "say: but must be"},
	{regexp.MustCompile(`was not committed$`), "say: was not committed: call MPI_Type_commit first"},
	{regexp.MustCompile(`^\S+ (must|may not) be `), "does not say what the value is"},
	{regexp.MustCompile(`\s$`), "ends with a blank"},
}

// faults are what is wrong with a text.
func faults(x Text) (all []string) {
	for _, r := range rules {
		if r.bad.MatchString(x.Words) {
			all = append(all, r.why)
		}
	}
	if x.Class != "" {
		if strings.HasSuffix(x.Words, ".") && !strings.HasSuffix(x.Words, "...") {
			all = append(all, "ends with a full stop: it stands inside another sentence")
		}
		if strings.Contains(x.Words, "\n") {
			all = append(all, "has several lines: MPI_Error_string gives one")
		}
		if n := len(strings.Fields(x.Words)); n < 3 && !strings.Contains(x.Words, "<reason>") {
			all = append(all, "is too short to say what is wrong")
		}
	}
	return all
}

// Every text keeps the rules.
//
//	go test ./internal/messages -run TestRules
func TestRules(t *testing.T) {
	for _, x := range collected(t) {
		for _, why := range faults(x) {
			t.Errorf("%s (%s): %q %s", x.File, x.In, x.Words, why)
		}
	}
}

// The rules find what they are for.
func TestRulesBite(t *testing.T) {
	for _, words := range []string{"an error occurred", "invalid argument", "no memory", "out of memory for a window", "datatype was not committed", "count must be 0 or more", "no rank", "it is wrong."} {
		if faults(Text{Class: "MPI_ERR_ARG", Words: words}) == nil {
			t.Errorf("nothing is found wrong with %q", words)
		}
	}
	if f := faults(Text{Class: "MPI_ERR_RANK", Words: "dest = <dest> is not a rank of the communicator's group (size <size>)"}); f != nil {
		t.Errorf("a good text: %v", f)
	}
}

// One thing is said in one way: no two texts of a class differ only in small words.
func TestOneWording(t *testing.T) {
	small := regexp.MustCompile(`<[^>]*>|\b(the|a|an|this|that|is|was|been|has|have)\b|[^A-Za-z0-9]+`)
	seen := map[string]Text{}
	for _, x := range collected(t) {
		if x.Class == "" {
			continue
		}
		key := x.Class + ":" + strings.ToLower(small.ReplaceAllString(x.Words, " "))
		key = strings.Join(strings.Fields(key), " ")
		if y, there := seen[key]; there && plain(x.Words) != plain(y.Words) {
			t.Errorf("%s: %q (%s) and %q (%s) say the same", x.Class, x.Words, x.File, y.Words, y.File)
		}
		seen[key] = x
	}
}

func plain(words string) string { return placeholder.ReplaceAllString(words, "<>") }

// Every class is explained, and every explanation is of a class.
func TestClasses(t *testing.T) {
	classes, err := Classes(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range classes {
		names = append(names, c.Name)
		if c.Number == "" {
			t.Errorf("%s has no number", c.Name)
		}
		if c.Means == "" && !strings.HasPrefix(c.Name, "MPI_T_") && c.Name != "MPI_SUCCESS" && c.Name != "MPI_ERR_LASTCODE" {
			t.Errorf("%s: classes.tsv does not say what it means and what to do", c.Name)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(guide), "\n") {
		if name, _, _ := strings.Cut(line, "\t"); !strings.HasPrefix(name, "#") && !slices.Contains(names, name) {
			t.Errorf("classes.tsv: %s is no class", name)
		}
	}
	for _, x := range collected(t) {
		if x.Class != "" && !slices.Contains(names, x.Class) {
			t.Errorf("%s (%s): %q has the class %s, which is none", x.File, x.In, x.Words, x.Class)
		}
	}
}

func TestC(t *testing.T) {
	found := inC("capi/bodies/x.c", `
/* spx_raise(0, NULL, MPI_ERR_ARG, FN, "a comment says nothing"); */
int spx_c_Send(const void *buf, int count)
{
  if (count < 0)
    return spx_raise(SPX_K_COMM, h, MPI_ERR_COUNT, FN, "count = %d, with a \"quote\", is "
                     "%s", count, big ? "too large" : "negative");
  spx_detail("no memory for %zu bytes", (size_t)(n * sizeof *p));
  return MPI_ERR_NO_MEM;
}
static int other(int code)
{
  switch (code) {
  case MPI_ERR_TAG: spx_detail(in ? "a tag in" : "a tag out %.40s", text); break;
  }
  return spx_raise(0, NULL, code, FN, "%s", spx_detail_text());
}
`)
	want := []Text{
		{"MPI_ERR_COUNT", `count = <count>, with a "quote", is <too large|negative>`, "capi/bodies/x.c", "MPI_Send"},
		{"MPI_ERR_NO_MEM", "no memory for <p> bytes", "capi/bodies/x.c", "MPI_Send"},
		{"MPI_ERR_TAG", "a tag in", "capi/bodies/x.c", "other"},
		{"MPI_ERR_TAG", "a tag out <text>", "capi/bodies/x.c", "other"},
	}
	if !slices.Equal(found, want) {
		t.Errorf("found\n%q, want\n%q", found, want)
	}
}

func TestGo(t *testing.T) {
	found, err := inGo("capi/x.go", []byte(`package main

const limit = "SPX_CHECK"

//spx:body MPI_Comm_split
func split(c *call) error {
	if c.color < 0 {
		return mpierr.New(mpierr.Arg, "color is %d: it must be 0 to %d", c.color, len(list)-1)
	}
	return fail(C.MPI_ERR_OTHER, "%s=%s: "+"not understood: %v", limit, c.text(), err)
}
`), map[string]string{"main.limit": "SPX_CHECK", "mpierr.Arg": "MPI_ERR_ARG"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Text{
		{"MPI_ERR_ARG", "color is <color>: it must be 0 to <number of list - 1>", "capi/x.go", "MPI_Comm_split"},
		{"MPI_ERR_OTHER", "SPX_CHECK=<text>: not understood: <reason>", "capi/x.go", "MPI_Comm_split"},
	}
	if !slices.Equal(found, want) {
		t.Errorf("found\n%q, want\n%q", found, want)
	}
}
