package args

import (
	"fmt"
	"sort"
	"strings"

	"libspx/api"
)

// An attempt is one call: a right one with one argument changed.
type attempt struct {
	arg     string // the parameter that is wrong; several, when nothing is
	what    string // the value
	code    string // C: sets a_ARG
	classes string // that the standard allows; "" when the value is right
	says    string // what else the message must have
	kind    byte   // w, r, s, p, t, a: see args.h
}

// wrong is a wrong value of a scalar.
type wrong struct{ value, classes string }

// scalars has wrong values of the kinds of arguments that are passed by value. A kind that is not here needs its own (calls.go).
var scalars = map[string][]wrong{
	"DEST":                   {{"size", "MPI_ERR_RANK"}, {"MPI_ANY_SOURCE", "MPI_ERR_RANK"}, {"MPI_ROOT", "MPI_ERR_RANK"}, {"-32766", "MPI_ERR_RANK"}, {"2147483647", "MPI_ERR_RANK"}},
	"SOURCE":                 {{"size", "MPI_ERR_RANK"}, {"MPI_ROOT", "MPI_ERR_RANK"}, {"-32766", "MPI_ERR_RANK"}, {"2147483647", "MPI_ERR_RANK"}},
	"ROOT":                   {{"size", "MPI_ERR_ROOT"}, {"-32766", "MPI_ERR_ROOT"}, {"MPI_ROOT", "MPI_ERR_ROOT"}, {"MPI_PROC_NULL", "MPI_ERR_ROOT"}, {"MPI_ANY_SOURCE", "MPI_ERR_ROOT"}},
	"TAG":                    {{"-32766", "MPI_ERR_TAG"}, {"2147483647", "MPI_ERR_TAG"}},
	"RANK":                   {{"size", "MPI_ERR_RANK"}, {"-32766", "MPI_ERR_RANK"}},
	"RANK_NNI":               {{"size", "MPI_ERR_RANK"}, {"-32766", "MPI_ERR_RANK"}},
	"POLYXFER_NUM_ELEM_NNI":  {{"-5", "MPI_ERR_COUNT"}},
	"POLYXFER_NUM_ELEM":      {{"-5", "MPI_ERR_COUNT"}},
	"XFER_NUM_ELEM_NNI":      {{"-5", "MPI_ERR_COUNT"}},
	"XFER_NUM_ELEM":          {{"-5", "MPI_ERR_COUNT"}},
	"POLYDTYPE_NUM_ELEM_NNI": {{"-5", "MPI_ERR_COUNT MPI_ERR_ARG"}},
	"POLYDTYPE_NUM_ELEM":     {{"-5", "MPI_ERR_COUNT"}},
	"ARRAY_LENGTH":           {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT"}},
	"ARRAY_LENGTH_NNI":       {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT"}},
	"ARRAY_LENGTH_PI":        {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT"}, {"0", "MPI_ERR_ARG MPI_ERR_COUNT"}},
	"DEGREE":                 {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT"}},
	"NUM_DIMS":               {{"-5", "MPI_ERR_DIMS MPI_ERR_ARG"}},
	"POLYNUM_BYTES_NNI":      {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT MPI_ERR_SIZE"}},
	"POLYDTYPE_PACK_SIZE":    {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT MPI_ERR_SIZE"}},
	"POLYNUM_PARAM_VALUES":   {{"-5", "MPI_ERR_ARG MPI_ERR_COUNT"}},
	"INFO_VALUE_LENGTH":      {{"-5", "MPI_ERR_ARG"}},
	"WINDOW_SIZE":            {{"-5", "MPI_ERR_SIZE"}},
	"WIN_ATTACH_SIZE":        {{"-5", "MPI_ERR_SIZE"}},
	"ALLOC_MEM_NUM_BYTES":    {{"-5", "MPI_ERR_ARG MPI_ERR_SIZE"}, {"(MPI_Aint)1 << 60", "MPI_ERR_NO_MEM"}},
	"POLYRMA_DISPLACEMENT":   {{"-5", "MPI_ERR_DISP"}, {"0", "MPI_ERR_DISP"}},
	"RMA_DISPLACEMENT_NNI":   {{"-5", "MPI_ERR_DISP MPI_ERR_RMA_RANGE"}, {"1 << 30", "MPI_ERR_DISP MPI_ERR_RMA_RANGE"}},
	"OFFSET":                 {{"-5", "MPI_ERR_ARG"}},
	"UPDATE_MODE":            {{"-5", "MPI_ERR_ARG"}, {"12345", "MPI_ERR_ARG"}},
	"ACCESS_MODE":            {{"0", "MPI_ERR_AMODE"}, {"MPI_MODE_RDONLY | MPI_MODE_WRONLY", "MPI_ERR_AMODE"}, {"MPI_MODE_RDONLY | MPI_MODE_CREATE", "MPI_ERR_AMODE"}, {"MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL", "MPI_ERR_AMODE"}, {"MPI_MODE_RDWR | 1 << 30", "MPI_ERR_AMODE"}},
	"ASSERT":                 {{"1 << 30", "MPI_ERR_ASSERT"}, {"-1", "MPI_ERR_ASSERT"}},
	"LOCK_TYPE":              {{"-5", "MPI_ERR_LOCKTYPE"}, {"0", "MPI_ERR_LOCKTYPE"}},
	"ORDER":                  {{"-5", "MPI_ERR_ARG"}, {"0", "MPI_ERR_ARG"}},
	"SPLIT_TYPE":             {{"-5", "MPI_ERR_ARG"}, {"0", "MPI_ERR_ARG"}},
	"COLOR":                  {{"-5", "MPI_ERR_ARG"}},
	"COMM_SIZE":              {{"-5", "MPI_ERR_ARG MPI_ERR_DIMS MPI_ERR_TOPOLOGY MPI_ERR_SPAWN"}},
	"COMM_SIZE_PI":           {{"-5", "MPI_ERR_ARG"}, {"0", "MPI_ERR_ARG"}},
	"TYPECLASS":              {{"-5", "MPI_ERR_ARG"}, {"0", "MPI_ERR_ARG"}},
	"TYPECLASS_SIZE":         {{"-5", "MPI_ERR_ARG"}, {"3", "MPI_ERR_ARG"}},
	"ERROR_CODE":             {{"-5", "MPI_ERR_ARG"}, {"1 << 30", "MPI_ERR_ARG"}},
	"ERROR_CLASS":            {{"-5", "MPI_ERR_ARG"}, {"1 << 30", "MPI_ERR_ARG"}},
	"KEYVAL":                 {{"MPI_KEYVAL_INVALID", "MPI_ERR_KEYVAL"}, {"12345678", "MPI_ERR_KEYVAL"}, {"gone_ckey()", "MPI_ERR_KEYVAL"}},
	"INDEX":                  {{"-5", "MPI_ERR_ARG"}, {"12345", "MPI_ERR_ARG"}},
	"KEY_INDEX":              {{"-5", "MPI_ERR_ARG"}, {"12345", "MPI_ERR_ARG"}},
	"PARTITION":              {{"-5", "MPI_ERR_ARG"}, {"12345", "MPI_ERR_ARG"}},
	"FILE_DESCRIPTOR":        {{"-5", "MPI_ERR_ARG"}, {"12345", "MPI_ERR_ARG"}},
	"THREAD_LEVEL":           {{"-5", "MPI_ERR_ARG"}},
}

// arrays has wrong contents of arrays that go in, and the class for NULL.
var arrays = map[string]struct {
	null  string
	wrong []wrong
}{
	"POLYXFER_NUM_ELEM_NNI":       {"MPI_ERR_ARG MPI_ERR_COUNT", []wrong{{"~negative", "MPI_ERR_COUNT"}}},
	"POLYDTYPE_NUM_ELEM_NNI":      {"MPI_ERR_ARG MPI_ERR_COUNT", []wrong{{"~negative", "MPI_ERR_ARG MPI_ERR_COUNT"}}},
	"POLYDTYPE_NUM_ELEM_PI":       {"MPI_ERR_ARG MPI_ERR_COUNT", []wrong{{"~negative", "MPI_ERR_ARG"}, {"~zeros", "MPI_ERR_ARG"}}},
	"POLYDISPLACEMENT":            {"MPI_ERR_ARG MPI_ERR_DISP", nil},
	"DISPLACEMENT":                {"MPI_ERR_ARG MPI_ERR_DISP", nil},
	"POLYDISPLACEMENT_AINT_COUNT": {"MPI_ERR_ARG MPI_ERR_DISP", nil},
	"POLYDISPLACEMENT_COUNT":      {"MPI_ERR_ARG MPI_ERR_DISP", nil},
	"DATATYPE":                    {"MPI_ERR_ARG MPI_ERR_TYPE", []wrong{{"null_types", "MPI_ERR_TYPE"}}},
	"RANK":                        {"MPI_ERR_ARG MPI_ERR_RANK", []wrong{{"i_fives", "MPI_ERR_RANK"}, {"i_negative", "MPI_ERR_RANK"}}},
	"RANK_NNI":                    {"MPI_ERR_ARG MPI_ERR_RANK", []wrong{{"i_fives", "MPI_ERR_RANK MPI_ERR_ARG"}, {"i_negative", "MPI_ERR_RANK MPI_ERR_ARG"}}},
	"DEGREE":                      {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG"}}},
	"DIMENSION":                   {"MPI_ERR_ARG MPI_ERR_DIMS", []wrong{{"i_negative", "MPI_ERR_DIMS MPI_ERR_ARG"}}},
	"LOGICAL":                     {"MPI_ERR_ARG", nil},
	"COORDINATE":                  {"MPI_ERR_ARG", nil},
	"INDEX":                       {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG MPI_ERR_TOPOLOGY"}}},
	"DISTRIB_ENUM":                {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG"}}},
	"DTYPE_DISTRIBUTION":          {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG"}, {"i_zeros", "MPI_ERR_ARG"}}},
	"PROCESS_GRID_SIZE":           {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG"}, {"i_zeros", "MPI_ERR_ARG"}}},
	"STRING":                      {"MPI_ERR_ARG", []wrong{{"\"no such one\"", "MPI_ERR_ARG MPI_ERR_UNSUPPORTED_DATAREP"}}},
	"COMM_SIZE":                   {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG MPI_ERR_SPAWN"}}},
	"PARTITION":                   {"MPI_ERR_ARG", []wrong{{"i_negative", "MPI_ERR_ARG"}}},
	"BITMAP":                      {"MPI_ERR_ARG", []wrong{{"all_bits", "MPI_ERR_RANK"}}},
	"WEIGHT":                      {"", []wrong{{"i_negative", "MPI_ERR_ARG"}}},
}

// anything lists the kinds of which every value is right.
var anything = map[string]bool{
	"LOGICAL": true, "KEY": true, "EXTRA_STATE": true, "EXTRA_STATE2": true, "ATTRIBUTE_VAL": true, "ATTRIBUTE_VAL_10": true, "PROFILE_LEVEL": true,
	"LOCATION_SMALL": true, "LOCATION": true, "DISPLACEMENT": true, "POLYDTYPE_STRIDE_BYTES": true, "POLYDISPLACEMENT_AINT_COUNT": true, "FUNCTION": true, "POLYFUNCTION": true,
	"MATH": true, "DIMENSION": true, "EVENT_CB_FUNCTION": true, "EVENT_DROP_CB_FUNCTION": true, "EVENT_FREE_CB_FUNCTION": true, "STRING_LENGTH": true,
}

// attempts are the calls of a function.
func attempts(f *api.Function, c call) []attempt {
	var out []attempt
	for _, p := range f.Params {
		one := argument
		if f.Chapter == "tools" {
			one = toolArgument
		}
		for _, a := range one(f, p) {
			if c.skip[a.arg+"="+a.what] {
				continue
			}
			if classes, ok := c.classes[a.arg+"="+a.what]; ok {
				a.classes = classes
			} else if classes, ok := c.classes[a.arg]; ok && a.kind != 'r' {
				a.classes = classes
			}
			if c.mute[a.arg] {
				a.says = ""
			}
			if p.Has("root_only") && !c.everybodyIsRoot && a.kind == 'w' {
				a.kind = 's' // elsewhere it is not significant: the call would go on there
			}
			out = append(out, a)
		}
	}
	for _, a := range nothing(f) {
		if !c.skip[a.arg+"="+a.what] {
			out = append(out, a)
		}
	}
	return append(out, c.more...)
}

func argument(f *api.Function, p api.Param) []attempt {
	name := "a_" + p.Name
	var out []attempt
	add := func(value, classes, says string) {
		out = append(out, attempt{p.Name, value, name + " = " + tilde(p, value) + ";", classes, says, 'w'})
	}
	k, isHandle := handles[p.Kind]
	switch {
	case isHandle && p.Dir == "out" || p.Dir == "out" && !optionalResult(p):
		if !p.Array() || p.Kind == "STRING" || neededArray(p) {
			add("NULL", "MPI_ERR_ARG", "NULL")
			if p.Kind == "REQUEST" {
				out[0].classes += " MPI_ERR_REQUEST"
			}
		}
	case isHandle && p.Array() && p.Kind == "REQUEST":
		add("NULL", "MPI_ERR_REQUEST MPI_ERR_ARG", "")
		for _, w := range wrongHandles(p, k) {
			out = append(out, attempt{p.Name, w.value, "many[1] = " + w.value + ";", w.classes, "[1]", 'w'})
		}
	case isHandle && p.Pointer() && !p.Array():
		add("NULL", "MPI_ERR_ARG "+k.class, "NULL")
		for _, w := range wrongHandles(p, k) {
			out = append(out, attempt{p.Name, w.value, "v_" + p.Name + " = " + w.value + ";", w.classes, says(w.value), 'w'})
		}
	case isHandle && !p.Array():
		for _, w := range wrongHandles(p, k) {
			add(w.value, w.classes, says(w.value))
		}
		if p.Has("nullable") {
			out = append(out, attempt{p.Name, k.null, name + " = " + k.null + ";", "", "", 'r'})
		}
	case p.Kind == "BUFFER" && p.Has("above_0"):
		// Rank 0's call is right, and would meet none of another rank: it gets a communicator of its own.
		out = append(out, attempt{p.Name, "NULL at rank 0", "if (me == 0) " + name + " = NULL;", "", "", 'r'},
			attempt{p.Name, "NULL", name + " = NULL; if (me == 0) a_comm = self;", "MPI_ERR_BUFFER", "NULL", 'a'})
	case p.Kind == "BUFFER":
		add("NULL", "MPI_ERR_BUFFER", "NULL")
		if !p.Has("inplace") && !p.Has("inplace_root") {
			add("MPI_IN_PLACE", "MPI_ERR_BUFFER MPI_ERR_ARG", "MPI_IN_PLACE")
		}
	case p.Dir == "in" && p.Array():
		a := arrays[p.Kind]
		if a.null != "" {
			add("NULL", a.null, "NULL")
		}
		for _, w := range a.wrong {
			s := ""
			if strings.HasSuffix(w.value, "negative") && f.Chapter != "group" {
				s = "-5"
			}
			add(w.value, w.classes, s)
		}
		if p.Kind == "DATATYPE" && (f.Chapter == "coll" || f.Chapter == "neighbor") {
			add("raw_types", "MPI_ERR_TYPE", "commit")
		}
	case p.Kind == "STRING" && p.Dir == "in", p.Kind == "STATUS" && p.Dir != "out", p.Has("nonnull"):
		add("NULL", "MPI_ERR_ARG", "NULL")
	case p.Kind == "KEYVAL" && p.Pointer():
		add("NULL", "MPI_ERR_ARG MPI_ERR_KEYVAL", "NULL")
		for _, w := range scalars["KEYVAL"] {
			out = append(out, attempt{p.Name, w.value, "*" + name + " = " + w.value + ";", w.classes, "", 'w'})
		}
	case p.Dir == "inout" && p.Pointer(), p.Dir == "in" && p.Pointer() && !anything[p.Kind]:
		add("NULL", "MPI_ERR_ARG", "NULL")
	case !p.Pointer():
		for _, w := range scalars[p.Kind] {
			if p.Kind == "TAG" && f.Chapter == "comm" && w.value == "2147483647" {
				w.classes += " MPI_ERR_ARG"
			}
			add(w.value, w.classes, says(w.value))
		}
		if p.Kind == "TAG" && !p.Has("any") {
			add("MPI_ANY_TAG", "MPI_ERR_TAG", "MPI_ANY_TAG")
		}
		if p.Kind == "SOURCE" && !p.Has("any") {
			add("MPI_ANY_SOURCE", "MPI_ERR_RANK", "MPI_ANY_SOURCE")
		}
	}
	return out
}

// optionalResult tells whether NULL may stand for a result, or the body alone knows.
func optionalResult(p api.Param) bool {
	switch p.Kind {
	case "STATUS", "BUFFER", "ARGUMENT_COUNT", "ARGUMENT_LIST":
		return true
	}
	return p.Array() && !neededArray(p) && !(p.Kind == "STRING" && strings.HasPrefix(p.Flags["array"], "MPI_MAX"))
}

// neededArray tells whether an array gets results that the caller cannot do without.
func neededArray(p api.Param) bool {
	switch p.Kind {
	case "COORDINATE", "DIMENSION", "LOGICAL", "INDEX", "RANK", "RANK_NNI":
		return p.Dir == "out" && p.Array()
	}
	return false
}

// says is what a message has of a wrong value: a number, or a name.
func says(value string) string {
	switch {
	case strings.HasPrefix(value, "MPI_") && strings.HasSuffix(value, "_NULL") && value != "MPI_PROC_NULL":
		return value
	case value == "-5" || value == "-32766" || value == "12345" || value == "2147483647":
		return value
	}
	return ""
}

func wrongHandles(p api.Param, k handle) []wrong {
	out := []wrong{{"(" + k.ctype + ")0x7123456", k.class}, {"(" + k.ctype + ")-1", k.class}, {k.other, k.class}, {"gone_" + p.Kind + "()", k.class}}
	if !p.Has("nullable") {
		out = append([]wrong{{k.null, k.class}}, out...)
	}
	if p.Kind == "DATATYPE" && p.Has("committed") {
		out = append(out, wrong{"uncommitted", k.class})
	}
	return out
}

// nothing are the right calls in which something is left out: no status, no elements, nobody to talk to, in place.
func nothing(f *api.Function) []attempt {
	var out []attempt
	counts, buffers, ranks := "", "", ""
	var countNames []string
	types := false
	for _, p := range f.Params {
		name := "a_" + p.Name
		count := strings.HasSuffix(p.Kind, "XFER_NUM_ELEM_NNI") || p.Kind == "POLYXFER_NUM_ELEM" || strings.HasPrefix(p.Kind, "POLYDTYPE_NUM_ELEM") && f.Chapter == "type"
		switch {
		case p.Kind == "STATUS" && p.Dir == "out":
			out = append(out, attempt{p.Name, "MPI_STATUS_IGNORE", name + " = MPI_STATUS_IGNORE;", "", "", 'r'})
		case p.Dir == "in" && count && p.Array():
			counts += name + " = " + tilde(p, "~zeros") + "; "
			countNames = append(countNames, p.Name)
		case p.Dir == "in" && count:
			counts += name + " = 0; "
			countNames = append(countNames, p.Name)
		case p.Kind == "BUFFER":
			buffers += name + " = NULL; "
		case p.Kind == "DEST" || p.Kind == "SOURCE":
			ranks += name + " = MPI_PROC_NULL; "
		case p.Kind == "DATATYPE" && p.Dir == "in":
			types = true
		}
		if p.Has("inplace") || p.Has("inplace_root") {
			code := name + " = MPI_IN_PLACE;"
			if p.Has("inplace_root") {
				code = "if (me == 0) " + code
			}
			out = append(out, attempt{p.Name, "MPI_IN_PLACE", code, "", "", 'r'})
		}
	}
	if counts != "" && buffers != "" && types {
		sort.Strings(countNames)
		out = append(out, attempt{strings.Join(countNames, " "), "0, buffers NULL", counts + buffers, "", "zero", 'r'})
	}
	if ranks != "" {
		out = append(out, attempt{"ranks", "MPI_PROC_NULL", ranks, "", "nobody", 'r'})
	}
	if code := elsewhere(f); code != "" {
		out = append(out, attempt{"arguments of the root", "anything elsewhere", "if (me != 0) {" + code + "}", "", "", 't'})
	}
	return out
}

// elsewhere makes what is significant at the root alone senseless at the others.
func elsewhere(f *api.Function) string {
	code := ""
	for _, p := range f.Params {
		if !p.Has("root_only") {
			continue
		}
		switch {
		case p.Pointer():
			code += fmt.Sprintf("a_%s = (void *)1; ", p.Name)
		case handles[p.Kind].null != "":
			code += fmt.Sprintf("a_%s = (%s)-1; ", p.Name, handles[p.Kind].ctype)
		default:
			code += fmt.Sprintf("a_%s = -7; ", p.Name)
		}
	}
	return code
}
