/* Calls every collective in every form, on several communicators, with sizes around the limits of the table, and says what the
 * library has chosen for each, as a tool reads it: one line for each call of rank 0,
 *   call OPERATION FORM BYTES COMMUNICATOR FUNCTION | ALGORITHM | REASON
 * and one for each event spx_collective_chosen,
 *   event OPERATION ALGORITHM | REASON | BYTES
 * All ranks of a communicator must read the same. With arguments: SPXCTL asks what spxctl says of the job while it runs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(x)                                                                                                          \
  do {                                                                                                                 \
    int code_ = (x);                                                                                                   \
    if (code_ != MPI_SUCCESS) fprintf(stderr, "line %d: %s: %d\n", __LINE__, #x, code_), MPI_Abort(MPI_COMM_WORLD, 2); \
  } while (0)

enum { MOST = 1 << 20, COMMS = 16 };
static const char *const kinds[] = {"barrier",
                                    "bcast",
                                    "gather",
                                    "gatherv",
                                    "scatter",
                                    "scatterv",
                                    "allgather",
                                    "allgatherv",
                                    "alltoall",
                                    "alltoallv",
                                    "alltoallw",
                                    "reduce",
                                    "allreduce",
                                    "reduce_scatter_block",
                                    "reduce_scatter",
                                    "scan",
                                    "exscan",
                                    "neighbor_allgather",
                                    "neighbor_allgatherv",
                                    "neighbor_alltoall",
                                    "neighbor_alltoallv",
                                    "neighbor_alltoallw"};
enum { KINDS = sizeof kinds / sizeof *kinds };
enum { BLOCKING, NONBLOCKING, PERSISTENT };
static const char *const forms[] = {"blocking", "nonblocking", "persistent"};

static int world_rank, world_size;
static MPI_T_pvar_session session;
static char *in, *out;
static int counts[COMMS * 64], displs[COMMS * 64];
static MPI_Datatype types[COMMS * 64];

/* The name of item `value` of an enumeration. */
static const char *item(MPI_T_enum e, int value)
{
  static char name[4][1024];
  static int turn;
  int v, len = sizeof name[0];
  turn = (turn + 1) % 4;
  OK(MPI_T_enum_get_item(e, value, &v, name[turn], &len));
  if (v != value) MPI_Abort(MPI_COMM_WORLD, 3);
  return name[turn];
}

/* What a state of a communicator is now. */
static int state(const char *kind, const char *what, MPI_Comm comm, MPI_T_enum *e)
{
  char name[128];
  int index, count, value = -1, class, verb, bind, readonly, continuous, atomic;
  MPI_T_pvar_handle h;
  MPI_Datatype type;
  snprintf(name, sizeof name, "spx_coll_%s_%s", kind, what);
  OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &index));
  OK(MPI_T_pvar_get_info(index, NULL, NULL, &verb, &class, &type, e, NULL, NULL, &bind, &readonly, &continuous,
                         &atomic));
  OK(MPI_T_pvar_handle_alloc(session, index, &comm, &h, &count));
  int guard[2] = {-1, 4711};
  OK(MPI_T_pvar_read(session, h, guard));
  value = guard[0];
  if (guard[1] != 4711 || count != 1) MPI_Abort(MPI_COMM_WORLD, 4);
  OK(MPI_T_pvar_handle_free(session, &h));
  return value;
}

/* ---- events ---- */
static struct {
  int choice, reason;
  unsigned long long bytes, context;
} seen[4096];
static int nseen;

static void chosen(MPI_T_event_instance event, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
  (void)r, (void)safety, (void)data;
  if (nseen == 4096) return;
  MPI_T_event_read(event, 0, &seen[nseen].choice);
  MPI_T_event_read(event, 1, &seen[nseen].reason);
  MPI_T_event_read(event, 2, &seen[nseen].bytes);
  MPI_T_event_read(event, 3, &seen[nseen].context);
  nseen++;
}

static MPI_T_enum listen_to_choices(void)
{
  int index, m = 0, verb, bind;
  MPI_T_enum e;
  MPI_T_event_registration r;
  OK(MPI_T_event_get_index("spx_collective_chosen", &index));
  OK(MPI_T_event_get_info(index, NULL, NULL, &verb, NULL, NULL, &m, &e, NULL, NULL, NULL, &bind));
  OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r));
  OK(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, chosen));
  return e;
}

static void say_events(MPI_T_enum choices)
{
  for (int i = 0; i < nseen && world_rank == 0; i++) {
    MPI_T_enum reasons;
    char kind[64];
    const char *name = item(choices, seen[i].choice);
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(name, " "), name);
    state(kind, "reason", MPI_COMM_WORLD, &reasons);
    printf("event %s | %s | %llu\n", name, item(reasons, seen[i].reason), seen[i].bytes);
  }
}

/* ---- calls ---- */
/* One call: f of the three forms with the arguments a; i is the name of the nonblocking one. */
#define CALL(f, i, ...)                                                                                                \
  do {                                                                                                                 \
    MPI_Request r_;                                                                                                    \
    *function = form == BLOCKING ? "MPI_" #f : form == NONBLOCKING ? "MPI_" #i : "MPI_" #f "_init";                    \
    if (form == BLOCKING) OK(MPI_##f(__VA_ARGS__));                                                                    \
    if (form == NONBLOCKING) OK(MPI_##i(__VA_ARGS__, &r_));                                                            \
    if (form == PERSISTENT) OK(MPI_##f##_init(__VA_ARGS__, MPI_INFO_NULL, &r_));                                       \
    if (form == PERSISTENT) OK(MPI_Start(&r_));                                                                        \
    if (form != BLOCKING) OK(MPI_Wait(&r_, MPI_STATUS_IGNORE));                                                        \
    if (form == PERSISTENT) OK(MPI_Request_free(&r_));                                                                 \
  } while (0)

static void make(int kind, int form, int bytes, MPI_Comm c, int n, int others, const char **function)
{
  int rank, inter;
  OK(MPI_Comm_rank(c, &rank));
  OK(MPI_Comm_test_inter(c, &inter));
  int root = !inter || others ? 0 : world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  if (inter && (kind == 13 || kind == 14)) { /* 12 elements in all, in blocks for the own group */
    OK(MPI_Comm_size(c, &n));
    bytes = kind == 13 ? 8 * 12 / n : 8 * 12;
  }
  /* v forms: n blocks that have so many elements together */
  int whole = kind == 14 ? bytes / 8 : bytes, each = (kind == 7 && !inter) || kind == 14 ? whole / n : whole;
  for (int i = 0, at = 0; i < n; i++, at += counts[i - 1]) {
    counts[i] = each != whole && i == n - 1 ? whole - each * (n - 1) : each;
    displs[i] = at;
    types[i] = MPI_BYTE;
  }
  int own = counts[inter ? 0 : rank];
  switch (kind) {
  case 0: CALL(Barrier, Ibarrier, c); break;
  case 1: CALL(Bcast, Ibcast, out, bytes, MPI_BYTE, root, c); break;
  case 2: CALL(Gather, Igather, in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, c); break;
  case 3: CALL(Gatherv, Igatherv, in, bytes, MPI_BYTE, out, counts, displs, MPI_BYTE, root, c); break;
  case 4: CALL(Scatter, Iscatter, in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, c); break;
  case 5: CALL(Scatterv, Iscatterv, in, counts, displs, MPI_BYTE, out, bytes, MPI_BYTE, root, c); break;
  case 6: CALL(Allgather, Iallgather, in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, c); break;
  case 7: CALL(Allgatherv, Iallgatherv, in, own, MPI_BYTE, out, counts, displs, MPI_BYTE, c); break;
  case 8: CALL(Alltoall, Ialltoall, in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, c); break;
  case 9: CALL(Alltoallv, Ialltoallv, in, counts, displs, MPI_BYTE, out, counts, displs, MPI_BYTE, c); break;
  case 10: CALL(Alltoallw, Ialltoallw, in, counts, displs, types, out, counts, displs, types, c); break;
  case 11: CALL(Reduce, Ireduce, in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, root, c); break;
  case 12: CALL(Allreduce, Iallreduce, in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, c); break;
  case 13: CALL(Reduce_scatter_block, Ireduce_scatter_block, in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, c); break;
  case 14: CALL(Reduce_scatter, Ireduce_scatter, in, out, counts, MPI_DOUBLE, MPI_SUM, c); break;
  case 15: CALL(Scan, Iscan, in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, c); break;
  case 16: CALL(Exscan, Iexscan, in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, c); break;
  case 17: CALL(Neighbor_allgather, Ineighbor_allgather, in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, c); break;
  case 18:
    CALL(Neighbor_allgatherv, Ineighbor_allgatherv, in, bytes, MPI_BYTE, out, counts, displs, MPI_BYTE, c);
    break;
  case 19: CALL(Neighbor_alltoall, Ineighbor_alltoall, in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, c); break;
  case 20:
    CALL(Neighbor_alltoallv, Ineighbor_alltoallv, in, counts, displs, MPI_BYTE, out, counts, displs, MPI_BYTE, c);
    break;
  case 21: {
    static const MPI_Aint places[2] = {0, MOST};
    CALL(Neighbor_alltoallw, Ineighbor_alltoallw, in, counts, places, types, out, counts, places, types, c);
    break;
  }
  }
}

/* Makes a call, and says what was chosen. Ranks send what they have read to rank 0, by messages. */
static void report(int kind, int form, int bytes, MPI_Comm c, const char *name, int n, int others)
{
  const char *function = "";
  MPI_T_enum algorithms, reasons;
  int both[2], theirs[2];
  make(kind, form, bytes, c, n, others, &function);
  both[0] = state(kinds[kind], "algorithm", c, &algorithms);
  both[1] = state(kinds[kind], "reason", c, &reasons);
  if (others) return;
  int rank, size;
  OK(MPI_Comm_rank(c, &rank));
  OK(MPI_Comm_size(c, &size));
  if (rank > 0) {
    OK(MPI_Send(both, 2, MPI_INT, 0, 4711, MPI_COMM_WORLD));
    return;
  }
  for (int r = 1; r < size; r++) {
    OK(MPI_Recv(theirs, 2, MPI_INT, r, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (memcmp(both, theirs, sizeof both) != 0) fprintf(stderr, "%s: rank %d has chosen otherwise\n", function, r);
  }
  printf("call %s %s %d %s %s | %s | %s\n", kinds[kind], forms[form], bytes, name, function, item(algorithms, both[0]),
         item(reasons, both[1]));
}

static const int sizes[] = {0, 8, 48, 56, 4096, 4104, 8192, 8200, 65536, 65544, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int rests_on_bytes(int kind)
{
  return kind != 0 && kind != 3 && kind != 5 && kind != 9 && kind != 10 && kind < 17;
}

/* others: rank 0 of the world is in the other group of an intercommunicator, or in none of c. */
static void all(MPI_Comm c, const char *name, int n, int others, int first, int last)
{
  for (int kind = first; kind < last; kind++)
    for (int form = BLOCKING; form <= PERSISTENT; form++)
      for (int s = 0; s < SIZES; s++) {
        int bytes = rests_on_bytes(kind) ? sizes[s] : 64;
        if (!rests_on_bytes(kind) && s > 0) continue;
        if (world_size > 8 && bytes == MOST) continue;         /* memory */
        if ((kind == 7 || kind == 14) && bytes == 0) continue; /* the class of no bytes is that of one */
        report(kind, form, bytes, c, name, n, others);
      }
}

/* What spxctl says of this job, of the blocking calls. */
static void ask(const char *spxctl)
{
  for (int kind = 0; kind < KINDS && world_rank == 0; kind++) {
    char line[4096], found[4096] = "";
    snprintf(line, sizeof line, "'%s' explain \"$SPX_JOB\" %s 8200", spxctl, kinds[kind]);
    FILE *f = popen(line, "r");
    while (f && fgets(line, sizeof line, f))
      if (sscanf(line, "  algorithm %4000[a-z_]", found) == 1) printf("job %s %s\n", kinds[kind], found);
    if (!f || pclose(f) != 0 || !*found) fprintf(stderr, "spxctl explain of %s has failed\n", kinds[kind]);
  }
}

int main(int argc, char **argv)
{
  int level, one = 1;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
  if (argc > 2) { /* NAME VALUE: a setting that a tool writes */
    int index, count, value = atoi(argv[2]);
    MPI_T_cvar_handle h;
    OK(MPI_T_cvar_get_index(argv[1], &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &h, &count));
    OK(MPI_T_cvar_write(h, &value));
  }
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
  OK(MPI_T_pvar_session_create(&session));
  MPI_T_enum choices = listen_to_choices();
  in = calloc((size_t)world_size + 1, MOST);
  out = calloc((size_t)world_size + 1, MOST);
  all(MPI_COMM_WORLD, "world", world_size, 0, 0, 17);
  MPI_Comm ring, half, inter;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &one, 0, &ring));
  all(ring, "ring", 2, 0, 17, KINDS);
  if (world_size >= 4) {
    int there = world_rank >= world_size / 2, n = there ? world_size - world_size / 2 : world_size / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, there, 0, &half));
    all(half, "half", n, there, 0, 17);
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, there ? 0 : world_size / 2, 1, &inter));
    /* the local group of rank 0 is the one that has the roots */
    for (int kind = 0; kind < 15; kind++)
      for (int form = BLOCKING; form <= PERSISTENT; form++)
        report(kind, form, 64, inter, "inter", world_size - n, there);
  }
  if (argc == 2) ask(argv[1]);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  say_events(choices);
  OK(MPI_Finalize());
  return 0;
}
