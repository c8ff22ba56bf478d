/* What comes over a connection and is not what a process of the job would say (net.c, net_long.c,
 * net_relay.c, net_streams.c and the handlers of records): records of all kinds with numbers that
 * are nearly right, among ones that are right; lengths, kinds, bytes and bits changed; records left
 * out, doubled, cut off; portions on a further stream; greetings. Each case is a process of its own
 * with messages under way, which a seed decides. Nothing may follow but the end of that connection,
 * or messages as the records say: another process's message still comes, and is answered.
 *
 *   net_fuzz [FIRST [N [STEPS]]]   one case, or N, with the seeds from FIRST on; of so many steps
 * each, over as many connections as it takes SPX_RECORDS=R net_fuzz         as many such cases as R
 * records take (make fuzz-records) */
// sanitize: address,undefined
// timeout: 300
#define JOB_WHOLE   1
#define JOB_SOCKETS 1
#include "job.h"
#include <fcntl.h>
#include "mcast.h"
#include "net_conn.h"
#include "stat.h"

enum {
  CASES = 1000,
  PROCS = 4,
  BAD = 1,  /* the process that says what it should not */
  AWAY = 2, /* is reached through others, or not at all */
  GOOD = 3, /* the one whose message has to come */
  STEPS = 150,
  ROOM = 4 << 20,
  IDS = 64
};
/* What there is beside one connection. */
enum {
  PLAIN,
  RELAYS,
  FURTHER,
  HOSTS /* AWAY shares memory with this process, the others are on other hosts */,
  SCENES
};

static uint64_t dice;
static uint32_t below(uint32_t n)
{
  return n ? rnd(&dice) % n : 0;
} /* numbers that go round come by 0 */
static bool once_in(uint32_t n) { return below(n) == 0; }

/* the layer of records has hardly anything to say against what is said: the connection goes on for
 * longer */
static bool tame;
static int scene, ends[PROCS], further = -1; /* the played ends */
static spx_comm *world, *apart;              /* apart: of GOOD and this process */
static uint32_t steps = STEPS;
static uint32_t seq, away_seq, away_position; /* of the next record, and of AWAY's stream */
static uint32_t position_first(void) { return (uint32_t)spx_count_from(32, 5000); }
static _Atomic uint64_t *said; /* records, by all cases */

/* ---- the process under test ---- */

enum { MESSAGES = 10 };
static spx_request *requests[2 * MESSAGES];
static void *rooms[2 * MESSAGES];
static int n_requests;

static spx_type *some_type(void)
{
  static spx_type *forms[4];
  if (!forms[0])
    forms[0] = forms[1] = job_bytes, forms[2] = job_vector(100, 24, 40),
    forms[3] = job_vector(3, 5000, 6001);
  return forms[below(4)];
}

/* Memory that ends where the message does. */
static void *room_for(const spx_type *t, int64_t count)
{
  return calloc(1, count ? (size_t)((count - 1) * t->extent + t->true_extent) : 1);
}

/* To all others, and whether they have received it. */
static spx_rankset *others(void)
{
  spx_rankset *s = (spx_rankset *)spx_new(SPX_K_RANKSET);
  s->procs = malloc(PROCS * sizeof *s->procs);
  s->ctx = world->ctx;
  for (uint32_t k = 1; k < PROCS; k++)
    if (k != AWAY || scene == RELAYS || scene == HOSTS) s->procs[s->n++] = k;
  return s;
}

static void post(void)
{
  static const int64_t sizes[] = {0, 8, 100, 3000, 20000, 120000, 400000};
  spx_type *t = some_type();
  int64_t count = sizes[below(7)] / t->size;
  int from = once_in(4) ? MPI_ANY_SOURCE : BAD, tag = once_in(6) ? MPI_ANY_TAG : (int)below(4);
  void *buf = room_for(t, count);
  spx_request **r = &requests[n_requests];
  rooms[n_requests++] = buf;
  if (once_in(5)) {
    spx_mcast_args a = {buf, count, t, others(), tag < 0 ? 0 : tag, world, once_in(2)};
    CHECK(spx_mcast_init(&a, SPX_RF_ACTIVE, r) == MPI_SUCCESS && spx_start(*r) == MPI_SUCCESS);
  } else if (once_in(2))
    CHECK(spx_irecv(buf, count, t, from, tag, world, SPX_CTX_P2P, 0, r) == 0);
  else
    CHECK(spx_isend(buf, count, t, BAD, tag < 0 ? 0 : tag, world, SPX_CTX_P2P,
                    once_in(3) ? SPX_M_SYNC : SPX_M_STANDARD, 0, r) == 0);
}

/* What is over makes room for more. */
static void sweep(void)
{
  int n = 0;
  for (int i = 0; i < n_requests; i++)
    if (spx_is_done(requests[i])) {
      spx_request_free(requests[i]);
      free(rooms[i]);
    } else {
      requests[n] = requests[i];
      rooms[n++] = rooms[i];
    }
  n_requests = n;
}

static void spx_routes_of_scene(void)
{
  spx_routes *t = calloc(1, sizeof *t + PROCS * sizeof t->to[0]);
  t->n = PROCS;
  for (uint32_t i = 0; i < PROCS; i++)
    t->to[i] = (spx_route){.kept = i != AWAY, .n = 2, .needs = {1, 1}, .via = {BAD, GOOD}};
  spx_net_policy((spx_net_ways){.heeds = true, .relays = true, .cache = 1});
  spx_net_route(t);
}

static int connect_with(uint32_t peer)
{
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  spx_net_adopt(pair[0], peer, 1);
  return pair[1];
}

static void begin(void)
{
  job j = {.procs = PROCS, .maxprocs = PROCS, .ncpus = 2, .ring_bytes = SPX_RING_BYTES};
  job_memory m = job_memory_of(&j, 0);
  for (uint32_t i = 0; i < PROCS; i++) {
    m.procs[i].pid = (uint32_t)getpid();
    __atomic_store_n(&m.procs[i].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
    m.procs[i].owner_state = i == 0 ? m.procs[i].owner_state : SPX_OWNER_INIT;
    if (scene == HOSTS) m.procs[i].host = i == BAD ? 1 : i == GOOD ? 2 : 0;
  }
  if (scene == HOSTS) m.seg->flags = SPX_SEG_HOSTS;
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  CHECK(job_attach(m.fd, 0) == 0);
  uint32_t both[] = {0, GOOD}, self = 0;
  spx_self = job_comm(4, &self, 1, 0);
  spx_world = world = job_comm(8, NULL, PROCS, 0);
  apart = job_comm(1ull << 40, both, 2, 0);
  for (uint32_t k = 0; k < PROCS; k++) spx_txs[k].life = 1;
  seq = away_seq = spx_first_record();
  away_position = position_first();
  if (scene == RELAYS) spx_routes_of_scene();
  ends[BAD] = connect_with(BAD);
  ends[GOOD] = connect_with(GOOD);
  if (scene == FURTHER) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    spx_net_adopt_further(pair[0], BAD, 1, false);
    further = pair[1];
  }
}

#include "net_fuzz_say.h"

/* ---- a case ---- */

static void write_some(int fd, text *t)
{
  if (fd < 0 || t->at == t->n) return;
  uint32_t n = once_in(3) ? 1 + below(t->n - t->at) : t->n - t->at;
  ssize_t sent = send(fd, t->bytes + t->at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) t->at += (uint32_t)sent;
  if (t->at == t->n) t->at = t->n = 0;
}

static void note(names *of, uint32_t index, uint32_t gen)
{
  of->id[of->n < IDS ? of->n++ : below(IDS)] = (spx_rec_id){index, gen, 0};
}

/* What the process says of messages and receives is remembered. */
static void listen_to(uint8_t *got, ssize_t n)
{
  for (ssize_t i = 0; i + SPX_LINE <= n; i += SPX_LINE) {
    const spx_rec *rec = (const spx_rec *)(got + i);
    spx_rec_cts cts;
    memcpy(&cts, rec->data, sizeof cts);
    if (rec->epoch != 1 || rec->valid % SPX_LINE) continue;
    if (rec->kind == SPX_REC_RTS || rec->kind == SPX_REC_EAGER_SYNC)
      note(&sends, cts.index, cts.gen);
    if (rec->kind == SPX_REC_CTS) note(&receives, cts.rx_index, cts.rx_gen);
  }
}

static void hear(void)
{
  static _Alignas(64) uint8_t got[1 << 16];
  if (ends[BAD] >= 0) listen_to(got, recv(ends[BAD], got, sizeof got, MSG_DONTWAIT));
  if (further >= 0 && recv(further, got, sizeof got, MSG_DONTWAIT) < 0) {}
}

/* A greeting: of what follows, so many bytes have come before. */
static void greet(uint8_t greeting[16], uint32_t again)
{
  uint32_t position = position_first() - again;
  memcpy(greeting, "spx>", 4);
  memcpy(greeting + 4, &position, sizeof position);
}

/* GOOD says something, and is answered. */
static void still_talks(void)
{
  static _Alignas(64) uint8_t bytes[256];
  part p = {.ctx = apart->ctx + SPX_CTX_P2P, .tag = 77, .src = 1};
  int asked = 0, answer = 4711;
  spx_request *r;
  fill(&p, sizeof asked);
  uint32_t n = 0;
  if (scene == RELAYS) {
    uint8_t before[16 + 999] = {0};
    uint32_t again = below(sizeof before - 15);
    greet(before, again);
    CHECK(send(ends[GOOD], before, 16 + again, MSG_NOSIGNAL) == (ssize_t)(16 + again));
  }
  n = record(bytes, SPX_REC_EAGER, &p, spx_first_record());
  CHECK(spx_irecv(&asked, sizeof asked, job_bytes, 1, 77, apart, SPX_CTX_P2P, 0, &r) == 0);
  CHECK(send(ends[GOOD], bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
  for (int i = 0; i < 10000 && !spx_is_done(r); i++) spx_progress();
  CHECK(spx_is_done(r) && r->error == MPI_SUCCESS && memcmp(&asked, p.data, sizeof asked) == 0);
  CHECK(spx_send(&answer, sizeof answer, job_bytes, 1, 78, apart, SPX_CTX_P2P, SPX_M_STANDARD) ==
        0);
  static _Alignas(64) uint8_t got[1 << 20];
  ssize_t all = 0;
  /* what waits before it may be more than the socket holds */
  for (int i = 0; i < 1000; i++, spx_progress()) {
    ssize_t more = recv(ends[GOOD], got + all, sizeof got - (size_t)all, MSG_DONTWAIT);
    if (more <= 0) continue;
    all += more;
    for (ssize_t k = scene == RELAYS ? 16 : 0; k + SPX_LINE <= all; k += SPX_LINE) {
      spx_rec rec;
      memcpy(&rec, got + k, sizeof rec);
      if (rec.kind == SPX_REC_EAGER && rec.as.envelope.tag == 78 &&
          memcmp(got + k + sizeof rec, &answer, sizeof answer) == 0)
        return;
    }
  }
  CHECK(!"the answer has been written");
}

/* The connection has ended because of what was said over it: another one, which goes on with the
 * record that was to come. */
static void connect_again(void)
{
  spx_conn *c = spx_net.conns[BAD];
  close(ends[BAD]);
  c->in_at = c->in_end = 0;
  c->long_in = (spx_long_in){.left = 0};
  to_say.at = to_say.n = 0;
  seq = spx_rxs[BAD].seq;
  ends[BAD] = connect_with(BAD);
  spx_progress();
}

static void one(uint64_t seed)
{
  alarm(20 + steps / 1000); /* whatever hangs ends */
  dice = seed * 0x9e3779b97f4a7c15ull + 1;
  for (int i = 0; i < 4; i++) rnd(&dice);
  scene = (int)below(SCENES);
  if (once_in(2)) setenv("SPX_CREDIT", "4096", 1);
  if (once_in(3)) setenv("SPX_EAGER_MAX", "1000", 1);
  if (once_in(2)) setenv("SPX_DIRECT_MIN", "100", 1);
  if (scene == FURTHER) setenv("SPX_STREAMS", "2", 1);
  if (once_in(4)) setenv("SPX_WRAP", "1", 1);
  to_say.bytes = malloc(ROOM);
  beside.bytes = malloc(ROOM);
  begin();
  spx_progress();
  if (scene == RELAYS) {
    static uint8_t before[2 * SPX_NET_OUT];
    uint8_t greeting[16] = {0};
    uint32_t again = once_in(2) ? 0 : below(once_in(10) ? sizeof before : 1000);
    greet(greeting, again);
    if (once_in(10)) greeting[below(16)] ^= (uint8_t)(1 << below(8));
    put(&to_say, greeting, sizeof greeting);
    put(&to_say, before, again);
  }
  tame = !once_in(3);
  uint64_t refused = 0;
  for (uint32_t i = 0; i < steps; i++) {
    bool over = spx_stat.net_refused != refused || (steps > STEPS && spx_net.conns[BAD]->fd < 0);
    if (over && (steps == STEPS || scene == RELAYS || scene == FURTHER)) break;
    if (over) {
      connect_again();
      refused = spx_stat.net_refused;
      tame = !once_in(3);
    }
    if (n_requests == 2 * MESSAGES && steps > STEPS) sweep();
    if (n_requests < 2 * MESSAGES && once_in(4)) post();
    if (n_requests && once_in(60)) spx_cancel(requests[below((uint32_t)n_requests)]);
    if (!once_in(3)) say_record(!tame && once_in(25));
    if (wrong_in(3)) say_other_payload();
    if (scene == FURTHER && once_in(6)) say_portion();
    write_some(ends[BAD], &to_say);
    write_some(further, &beside);
    if (once_in(2)) spx_progress();
    if (!once_in(4)) hear();
  }
  for (int i = 0; i < 50 && (to_say.n || beside.n); i++) {
    write_some(ends[BAD], &to_say);
    write_some(further, &beside);
    spx_progress();
    hear();
  }
  bool stays = once_in(2);
  if (!stays) close(ends[BAD]);
  for (int i = 0; i < 50; i++) spx_progress();
  still_talks();
  int64_t n;
  static uint8_t control[SPX_CTRL_MAX];
  uint32_t from;
  while ((n = spx_ctrl_recv(control, sizeof control, &from)) >= 0)
    CHECK(from < PROCS && n <= (int64_t)sizeof control);
  _exit(0);
}

int main(int argc, char **argv)
{
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  uint64_t n = argc > 2   ? strtoull(argv[2], NULL, 0)
               : argc > 1 ? 1
                          : (uint64_t)full_or_fifth(CASES);
  if (argc > 3) steps = (uint32_t)strtoul(argv[3], NULL, 0);
  const char *many = getenv("SPX_RECORDS");
  uint64_t records = many ? strtoull(many, NULL, 0) : UINT64_MAX;
  if (many) n = UINT64_MAX / 2, steps = 20000, first = now_ns(); /* others than the last time */
  int wrong = 0;
  said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (uint64_t seed = first; seed < first + n && wrong < 5 && *said < records; seed++) {
    pid_t pid = fork();
    int status;
    if (pid == 0) one(seed);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status == 0) continue;
    wrong++;
    fprintf(stderr, "the case with seed %llu ended with %#x: net_fuzz %llu 1 %u\n",
            (unsigned long long)seed, status, (unsigned long long)seed, steps);
  }
  if (argc > 1 || many) printf("%llu records\n", (unsigned long long)*said);
  return wrong != 0;
}
