/* tools.h - what right calls of the tool information interface need (MPI-5.0, 16.3): the interface begun, a session, handles of a
 * control variable, of performance variables and of an event, handles that were freed, and calls out of an event's callback. */

static int tools_on, choice_index, text_index, level_index, bound_index, event_index;
static MPI_T_enum choices;
static MPI_T_cvar_handle number_cvar, choice_cvar, text_cvar;
static MPI_T_pvar_session tool_session, other_session;
static MPI_T_pvar_handle counter, level, others_counter;
static MPI_T_event_registration events;

/* MPI_T has codes of its own and no error handlers. */
static void tool_must(int code, const char *what)
{
  if (code == MPI_SUCCESS) return;
  char text[32];
  snprintf(text, sizeof text, ": code %d\n", code);
  say("X ");
  say(what);
  say(text);
  _exit(91);
}
#define TMUST(call) tool_must(call, #call)

static void on_event(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety s, void *user);
static void on_drop(MPI_Count n, MPI_T_event_registration r, int source, MPI_T_cb_safety s, void *user)
{
  (void)n, (void)r, (void)source, (void)s, (void)user;
}

static MPI_T_cvar_handle cvar_made(void)
{
  MPI_T_cvar_handle h;
  int count;
  TMUST(MPI_T_cvar_handle_alloc(0, NULL, &h, &count));
  return h;
}
static MPI_T_pvar_session session_of_tool(void)
{
  MPI_T_pvar_session s;
  TMUST(MPI_T_pvar_session_create(&s));
  return s;
}
static MPI_T_pvar_handle pvar_made(MPI_T_pvar_session s)
{
  MPI_T_pvar_handle h;
  int count;
  TMUST(MPI_T_pvar_handle_alloc(s, 0, NULL, &h, &count));
  return h;
}
static MPI_T_event_registration registration_made(void)
{
  MPI_T_event_registration r;
  TMUST(MPI_T_event_handle_alloc(event_index, NULL, MPI_INFO_NULL, &r));
  return r;
}

/* The interface is on, and what calls use is there: a variable that is a number, one with an enumeration, one that is a text. */
static void tools(void)
{
  if (tools_on) return;
  int provided, n, count, kind, bind;
  TMUST(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  tools_on = 1;
  TMUST(MPI_T_cvar_get_num(&n));
  choice_index = text_index = -1;
  for (int i = 0; i < n; i++) {
    MPI_Datatype t;
    MPI_T_enum e;
    TMUST(MPI_T_cvar_get_info(i, NULL, NULL, NULL, &t, &e, NULL, NULL, NULL, NULL));
    if (e != MPI_T_ENUM_NULL && choice_index < 0) choice_index = i, choices = e;
    if (t == MPI_CHAR && text_index < 0) text_index = i;
  }
  TMUST(MPI_T_pvar_get_num(&n));
  for (int i = 0; i < n; i++) {
    TMUST(MPI_T_pvar_get_info(i, NULL, NULL, NULL, &kind, NULL, NULL, NULL, NULL, &bind, NULL, NULL, NULL));
    if (kind == MPI_T_PVAR_CLASS_LEVEL) level_index = i;
    if (bind == MPI_T_BIND_MPI_COMM) bound_index = i;
  }
  TMUST(MPI_T_event_get_index("spx_unexpected_message", &event_index));
  number_cvar = cvar_made();
  TMUST(MPI_T_cvar_handle_alloc(choice_index, NULL, &choice_cvar, &count));
  TMUST(MPI_T_cvar_handle_alloc(text_index, NULL, &text_cvar, &count));
  tool_session = session_of_tool();
  other_session = session_of_tool();
  counter = pvar_made(tool_session);
  others_counter = pvar_made(other_session);
  TMUST(MPI_T_pvar_handle_alloc(tool_session, level_index, &comm, &level, &count));
  events = registration_made();
  TMUST(MPI_T_event_register_callback(events, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
}
static void tools_off(void)
{
  if (tools_on) TMUST(MPI_T_finalize());
  tools_on = 0;
}

/* The value that a variable has, to be written again. */
static const void *value_of(MPI_T_cvar_handle h)
{
  TMUST(MPI_T_cvar_read(h, rbuf));
  return rbuf;
}
static int wrong_int = 12345;
static unsigned long long wrong_number = ~0ull;
static MPI_Comm *freed_comm(void)
{
  static MPI_Comm c;
  c = gone_COMMUNICATOR();
  return &c;
}
static MPI_Comm null_comm = MPI_COMM_NULL;

/* ---- handles that were freed just now ---------------------------------------------------------------------------- */

static MPI_T_cvar_handle gone_CVAR(void)
{
  MPI_T_cvar_handle h = cvar_made(), old = h;
  TMUST(MPI_T_cvar_handle_free(&h));
  return old;
}
static MPI_T_pvar_handle gone_PVAR(void)
{
  MPI_T_pvar_handle h = pvar_made(tool_session), old = h;
  TMUST(MPI_T_pvar_handle_free(tool_session, &h));
  return old;
}
static MPI_T_pvar_session gone_PVAR_SESSION(void)
{
  MPI_T_pvar_session s = session_of_tool(), old = s;
  TMUST(MPI_T_pvar_session_free(&s));
  return old;
}
static MPI_T_event_registration gone_EVENT_REGISTRATION(void)
{
  MPI_T_event_registration r = registration_made();
  TMUST(MPI_T_event_handle_free(r, NULL, NULL));
  return r;
}

/* ---- calls out of a callback: an event's instance lives no longer ------------------------------------------------- */

static MPI_T_event_instance instance, earlier;
static int (*inner)(int k);
static int inner_k, inner_rc;

static void on_event(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety s, void *user)
{
  (void)r, (void)s, (void)user;
  if (!inner) return;
  int (*f)(int) = inner;
  inner = NULL;
  instance = e;
  inner_rc = f(inner_k);
  earlier = e;
}
static MPI_T_event_instance gone_EVENT_INSTANCE(void) { return earlier; }

static void one_event(void)
{
  MPI_Request r;
  int flag;
  MUST(MPI_Isend(sbuf, 1, MPI_INT, me, 55, comm, &r));
  while (inner) MUST(MPI_Iprobe(me, 56, comm, &flag, &status)); /* a call that makes progress calls back */
  MUST(MPI_Recv(rbuf + 64, 1, MPI_INT, me, 55, comm, &status));
  MUST(MPI_Wait(&r, MPI_STATUS_IGNORE));
}
static int nothing_to_do(int k) { return k; }
static int inside(int (*f)(int k), int k)
{
  tools();
  if (!earlier) {
    inner = nothing_to_do;
    one_event();
  }
  inner = f;
  inner_k = k;
  one_event();
  return inner_rc;
}
