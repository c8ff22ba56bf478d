package args

import (
	"regexp"
	"strings"

	"libspx/api"
)

// The tool information interface (MPI-5.0, 16.3) has handles and codes of its own, and no error handlers: what differs from the
// rest of the interface is here.

// toolHandles are kinds of handles that only MPI_T has.
var toolHandles = map[string]handle{
	"CVAR":               {"MPI_T_cvar_handle", "MPI_T_CVAR_HANDLE_NULL", "MPI_T_ERR_INVALID_HANDLE", "(MPI_T_cvar_handle)counter"},
	"PVAR":               {"MPI_T_pvar_handle", "MPI_T_PVAR_HANDLE_NULL", "MPI_T_ERR_INVALID_HANDLE", "(MPI_T_pvar_handle)number_cvar"},
	"PVAR_SESSION":       {"MPI_T_pvar_session", "MPI_T_PVAR_SESSION_NULL", "MPI_T_ERR_INVALID_SESSION", "(MPI_T_pvar_session)counter"},
	"EVENT_REGISTRATION": {"MPI_T_event_registration", "(MPI_T_event_registration)0", "MPI_T_ERR_INVALID_HANDLE", "(MPI_T_event_registration)counter"},
	"EVENT_INSTANCE":     {"MPI_T_event_instance", "(MPI_T_event_instance)0", "MPI_T_ERR_INVALID_HANDLE", "(MPI_T_event_instance)events"},
	"TOOLS_ENUM":         {"MPI_T_enum", "MPI_T_ENUM_NULL", "MPI_T_ERR_INVALID_HANDLE", "(MPI_T_enum)counter"},
}

var toolRight = map[string]string{
	"CVAR": "number_cvar", "PVAR": "counter", "PVAR_SESSION": "tool_session", "EVENT_REGISTRATION": "events", "EVENT_INSTANCE": "instance", "TOOLS_ENUM": "choices",
	"CAT_INDEX": "0", "CVAR_INDEX": "0", "CVAR_INDEX_SPECIAL": "0", "PVAR_INDEX": "0", "EVENT_INDEX": "event_index", "SOURCE_INDEX": "0", "TOOLENUM_INDEX": "0",
	"PVAR_CLASS": "MPI_T_PVAR_CLASS_COUNTER", "CALLBACK_SAFETY": "MPI_T_CB_REQUIRE_NONE", "TOOL_MPI_OBJ": "NULL",
	"EVENT_CB_FUNCTION": "on_event", "EVENT_DROP_CB_FUNCTION": "on_drop", "EVENT_FREE_CB_FUNCTION": "NULL",
}

var noIndex = []wrong{{"-5", "MPI_T_ERR_INVALID_INDEX"}, {"12345", "MPI_T_ERR_INVALID_INDEX"}, {"-2147483647 - 1", "MPI_T_ERR_INVALID_INDEX"}}

var toolScalars = map[string][]wrong{
	"CAT_INDEX": noIndex, "CVAR_INDEX": noIndex, "CVAR_INDEX_SPECIAL": noIndex, "PVAR_INDEX": noIndex, "EVENT_INDEX": noIndex, "SOURCE_INDEX": noIndex, "INDEX": noIndex,
	"TOOLENUM_INDEX":  {{"-5", "MPI_T_ERR_INVALID_ITEM"}, {"12345", "MPI_T_ERR_INVALID_ITEM"}},
	"PVAR_CLASS":      {{"-5", "MPI_T_ERR_INVALID MPI_T_ERR_INVALID_NAME"}, {"MPI_T_PVAR_CLASS_LEVEL", "MPI_T_ERR_INVALID_NAME"}},
	"CALLBACK_SAFETY": {{"-5", "MPI_T_ERR_INVALID"}, {"12345", "MPI_T_ERR_INVALID"}},
	"ARRAY_LENGTH":    {{"-5", "MPI_T_ERR_INVALID"}},
	"THREAD_LEVEL":    {{"-5", "MPI_T_ERR_INVALID"}, {"12345", "MPI_T_ERR_INVALID"}},
}

// In these every result may be NULL: it is not wanted (16.3.5 to 16.3.9).
var describes = regexp.MustCompile(`^MPI_T_(cvar|pvar|event|source|category)_get_info$|^MPI_T_enum_`)

// toolArgument are the calls with one argument of a function of MPI_T wrong.
func toolArgument(f *api.Function, p api.Param) []attempt {
	name := "a_" + p.Name
	k, isHandle := handles[p.Kind]
	one := func(value, classes string, kind byte) attempt {
		return attempt{p.Name, value, name + " = " + value + ";", classes, "", kind}
	}
	switch {
	case p.Dir == "inout" && !isHandle, p.Dir == "out" && describes.MatchString(f.Name):
		return []attempt{one("NULL", "", 'r')} // a length, or what nobody wants
	case p.Dir == "out", strings.HasSuffix(p.Kind, "BUFFER"), p.Kind == "STRING":
		return []attempt{one("NULL", "MPI_T_ERR_INVALID", 'w')}
	case isHandle:
		var out []attempt
		if p.Has("nullable") {
			out = append(out, one(k.null, "", 'r'))
		}
		if p.Pointer() {
			out = append(out, one("NULL", "MPI_T_ERR_INVALID "+k.class, 'w'))
		}
		for _, w := range wrongHandles(p, k) {
			w.classes = strings.ReplaceAll(w.classes, "MPI_ERR_INFO", "MPI_T_ERR_INVALID MPI_T_ERR_INVALID_HANDLE")
			switch {
			case p.Kind == "TOOLS_ENUM" && strings.HasPrefix(w.value, "gone_"): // it cannot be freed
			case p.Pointer():
				out = append(out, attempt{p.Name, w.value, "v_" + p.Name + " = " + w.value + ";", w.classes, "", 'w'})
			default:
				out = append(out, one(w.value, w.classes, 'w'))
			}
		}
		return out
	}
	var out []attempt
	for _, w := range toolScalars[p.Kind] {
		out = append(out, one(w.value, w.classes, 'w'))
	}
	return out
}

// off is the call outside of MPI_T_init_thread and MPI_T_finalize.
var off = attempt{"the interface", "not begun", "tools_off();", "MPI_T_ERR_NOT_INITIALIZED", "", 'w'}

var toolRules = []rule{
	{names: "T_.*", pre: "tools();", keep: true},
	{names: "T_init_thread", post: "TMUST(MPI_T_finalize());"},
	{names: "T_finalize", pre: "int level_given; TMUST(MPI_T_init_thread(MPI_THREAD_SINGLE, &level_given));", more: []attempt{bad("the interface", "MPI_T_finalize(), tools_off()", "MPI_T_ERR_NOT_INITIALIZED")}},
	{names: "T_(cvar|pvar|category|enum|source)_.*|T_event_(get_num|get_info|get_index|handle_.*|register_callback|callback_.*|set_dropped_handler)", more: []attempt{off}},
	{names: "T_(cvar|pvar|event|source|category)_get_info|T_enum_get_(info|item)", pre: "x_name_len[0] = 64;"},
	{names: "T_(cvar|pvar|event|source|category)_get_info", pre: "x_desc_len[0] = 64;",
		more: []attempt{good("name", "x_name_len[0] = x_desc_len[0] = 0"), good("name_len", "x_name_len[0] = x_desc_len[0] = -5")}},
	{names: "T_event_get_info", pre: "x_num_elements[0] = 64;", more: []attempt{good("num_elements", "x_num_elements[0] = 0; a_array_of_datatypes = NULL; a_array_of_displacements = NULL")}},
	{names: "T_(event|source)_get_info|T_event_(handle|callback)_get_info", post: "if (a_INFO) MUST(MPI_Info_free(a_INFO));"},
	{names: "T_cvar_get_index", set: "name=\"SPX_SPIN\"", more: []attempt{bad("name", "a_name = \"no such one\"", "MPI_T_ERR_INVALID_NAME"), bad("name", "a_name = long_text", "MPI_T_ERR_INVALID_NAME")}},
	{names: "T_pvar_get_index", set: "name=\"spx_messages_sent\"", more: []attempt{bad("name", "a_name = \"no such one\"", "MPI_T_ERR_INVALID_NAME")}},
	{names: "T_event_get_index", set: "name=\"spx_unexpected_message\"", more: []attempt{bad("name", "a_name = \"no such one\"", "MPI_T_ERR_INVALID_NAME")}},
	{names: "T_category_get_index", set: "name=\"spx\"", more: []attempt{bad("name", "a_name = \"no such one\"", "MPI_T_ERR_INVALID_NAME")}},
	{names: "T_category_get_(categories|cvars|pvars|events)", set: "cat_index=1; len=4", skip: "indices=NULL",
		more: []attempt{good("indices", "a_len = 0; a_indices = NULL"), bad("indices", "a_indices = NULL", "MPI_T_ERR_INVALID")}},
	{names: "T_(cvar|event)_handle_alloc", skip: "obj_handle=anything"}, // none is bound to an object
	{names: "T_cvar_handle_alloc", post: "TMUST(MPI_T_cvar_handle_free(x_handle));"},
	{names: "T_cvar_handle_free", set: "handle=cvar_made()", undo: "if (tools_on) TMUST(MPI_T_cvar_handle_free(&k_handle));"},
	{names: "T_cvar_write", set: "buf=value_of(number_cvar)", more: []attempt{
		{"handle", "a value out of the enumeration", "a_handle = choice_cvar, a_buf = &wrong_int;", "MPI_T_ERR_INVALID MPI_T_ERR_CVAR_SET_NOT_NOW MPI_T_ERR_CVAR_SET_NEVER", "", 'w'},
		{"buf", "a value out of range", "a_buf = &wrong_number;", "MPI_T_ERR_INVALID", "", 'w'},
		{"buf", "a text without an end", "a_handle = text_cvar, a_buf = long_text;", "MPI_T_ERR_INVALID MPI_T_ERR_CVAR_SET_NOT_NOW MPI_T_ERR_CVAR_SET_NEVER", "", 'w'}}},
	{names: "T_pvar_session_create", post: "TMUST(MPI_T_pvar_session_free(x_session));"},
	{names: "T_pvar_session_free", set: "session=session_of_tool()", undo: "if (tools_on) TMUST(MPI_T_pvar_session_free(&k_session));"},
	{names: "T_pvar_handle_alloc", post: "TMUST(MPI_T_pvar_handle_free(tool_session, x_handle));",
		more: []attempt{bad("obj_handle", "a_pvar_index = bound_index", "MPI_T_ERR_INVALID MPI_T_ERR_INVALID_HANDLE"), bad("obj_handle", "a_pvar_index = bound_index; a_obj_handle = &null_comm", "MPI_T_ERR_INVALID MPI_T_ERR_INVALID_HANDLE"),
			bad("obj_handle", "a_pvar_index = bound_index; a_obj_handle = freed_comm()", "MPI_T_ERR_INVALID MPI_T_ERR_INVALID_HANDLE"), good("obj_handle", "a_pvar_index = bound_index; a_obj_handle = &comm")}},
	{names: "T_pvar_handle_free", set: "handle=pvar_made(tool_session)", undo: "if (tools_on) TMUST(MPI_T_pvar_handle_free(tool_session, &k_handle));", more: []attempt{bad("handle", "v_handle = others_counter", "MPI_T_ERR_INVALID_HANDLE")}},
	{names: "T_pvar_(start|stop|reset|read|write|readreset)", more: []attempt{bad("handle", "a_handle = others_counter", "MPI_T_ERR_INVALID_HANDLE")}},
	{names: "T_pvar_(start|stop)", more: []attempt{good("handle", "a_handle = MPI_T_PVAR_ALL_HANDLES"), bad("handle", "a_handle = level", "MPI_T_ERR_PVAR_NO_STARTSTOP")}},
	{names: "T_pvar_reset", more: []attempt{good("handle", "a_handle = MPI_T_PVAR_ALL_HANDLES"), bad("handle", "a_handle = level", "MPI_T_ERR_PVAR_NO_WRITE")}},
	{names: "T_pvar_(read|write|readreset)", more: []attempt{bad("handle", "a_handle = MPI_T_PVAR_ALL_HANDLES", "MPI_T_ERR_INVALID_HANDLE MPI_T_ERR_INVALID")}},
	{names: "T_pvar_write", more: []attempt{bad("handle", "a_handle = level", "MPI_T_ERR_PVAR_NO_WRITE")}},
	{names: "T_pvar_readreset", more: []attempt{bad("handle", "a_handle = level", "MPI_T_ERR_PVAR_NO_ATOMIC MPI_T_ERR_PVAR_NO_WRITE")}},
	{names: "T_event_handle_alloc", post: "TMUST(MPI_T_event_handle_free(x_event_registration[0], NULL, NULL));"},
	{names: "T_event_handle_free", set: "event_registration=registration_made()", undo: "if (tools_on) TMUST(MPI_T_event_handle_free(k_event_registration, NULL, NULL));"},
	{names: "T_event_(read|copy|get_timestamp|get_source)", inside: true, more: []attempt{bad("event_instance", "a_event_instance = earlier", "MPI_T_ERR_INVALID_HANDLE")}},
	{names: "T_event_read", set: "element_index=0"},
}
