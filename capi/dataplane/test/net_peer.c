/* What a process of another host says of what is not its own: a multicast whose data it places
 * anywhere in the memory of this host; messages and receives that this process has with another
 * one, which it names as matched, fetched, to be sent, forgotten or arrived; credit for what was
 * not sent. Its connection ends, and nothing else has happened. And records that come in pieces, as
 * a small window of TCP makes them: what lies where the rest will be says nothing. */
// sanitize: address,undefined
#define JOB_WHOLE   1
#define JOB_SOCKETS 1
#include "job.h"
#include "mcast.h"
#include "net_conn.h"

enum { PROCS = 4, BAD = 1, NEAR = 2, GOOD = 3 };
enum { STAGED, STAGED_FAR, LONG, ACK, DONE, CTS, CANCELLED, DATA, CREDIT, STRANGER, PIECES, CASES };

static spx_comm *world;
static int ends[PROCS];
static uint32_t piece = 512; /* bytes of a record that come at a time */

static void begin(void)
{
  job j = {.procs = PROCS, .maxprocs = PROCS, .ncpus = 2, .ring_bytes = SPX_RING_BYTES};
  job_memory m = job_memory_of(&j, 0);
  m.seg->flags = SPX_SEG_HOSTS;
  for (uint32_t i = 0; i < PROCS; i++) {
    m.procs[i].pid = (uint32_t)getpid();
    m.procs[i].host = i == BAD ? 1 : i == GOOD ? 2 : 0;
    __atomic_store_n(&m.procs[i].agent_state, SPX_AGENT_STARTED, __ATOMIC_RELEASE);
    if (i > 0) m.procs[i].owner_state = SPX_OWNER_INIT;
  }
  spx_basic_init();
  job_bytes = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  CHECK(job_attach(m.fd, 0) == 0);
  uint32_t self = 0;
  spx_self = job_comm(4, &self, 1, 0);
  spx_world = world = job_comm(8, NULL, PROCS, 0);
  for (uint32_t k = 0; k < PROCS; k++) spx_txs[k].life = 1;
  for (uint32_t k = BAD; k < PROCS; k += GOOD - BAD) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    spx_net_adopt(pair[0], k, 1);
    ends[k] = pair[1];
  }
  spx_progress();
}

static void say(int who, spx_rec_kind kind, uint64_t ctx, int32_t tag, int32_t src, const void *a,
                uint32_t n)
{
  static uint32_t seq[PROCS];
  static _Alignas(64) uint8_t bytes[512];
  spx_rec *rec = (spx_rec *)bytes;
  memset(bytes, 0, sizeof bytes);
  *rec = (spx_rec){.valid = SPX_REC_BYTES(n),
                   .kind = (uint16_t)kind,
                   .epoch = 1,
                   .as.envelope = {ctx, tag, src},
                   .seq = seq[who]++,
                   .len = n};
  memcpy(rec->data, a, n);
  for (uint32_t at = 0, all = rec->valid, part; at < all; at += part) {
    part = piece < all - at ? piece : all - at;
    CHECK(send(ends[who], bytes + at, part, MSG_NOSIGNAL) == (ssize_t)part);
    for (int i = 0; i < 50; i++) spx_progress();
  }
}

static void say_mcast(uint32_t master, uint64_t staging, uint64_t at, uint64_t bytes,
                      uint32_t keeper)
{
  struct {
    spx_mcast_head h;
    spx_mcast_rts where;
  } m = {{.ctx = world->ctx,
          .tag = 5,
          .src = (int32_t)master,
          .master = master,
          .number = 1,
          .epoch = 1,
          .flags = SPX_MCAST_ANNOUNCED},
         {.rts = {.index = 0, .gen = 1, .bytes = bytes},
          .staging = staging,
          .room = 1 << 20,
          .at = at,
          .keeper = keeper,
          .source = master}};
  say(BAD, SPX_REC_MCAST, 0, 0, 0, &m, sizeof m);
}

/* The name of the message or receive that the process has just told GOOD of. */
static spx_rec_id heard(spx_rec_kind kind)
{
  static _Alignas(64) uint8_t got[1 << 16];
  ssize_t n = recv(ends[GOOD], got, sizeof got, MSG_DONTWAIT);
  for (ssize_t i = 0; i + SPX_LINE <= n; i += SPX_LINE) {
    const spx_rec *rec = (const spx_rec *)(got + i);
    spx_rec_cts cts;
    memcpy(&cts, rec->data, sizeof cts);
    if (rec->kind == kind && rec->epoch == 1)
      return kind == SPX_REC_CTS ? (spx_rec_id){cts.rx_index, cts.rx_gen, 0}
                                 : (spx_rec_id){cts.index, cts.gen, 0};
  }
  CHECK(!"GOOD has heard of it");
  return (spx_rec_id){0};
}

static spx_rankset *only_good(void)
{
  spx_rankset *s = (spx_rankset *)spx_new(SPX_K_RANKSET);
  s->procs = malloc(sizeof *s->procs);
  s->procs[s->n++] = GOOD;
  s->ctx = world->ctx;
  return s;
}

/* A long message is announced, by so many bytes at a time, where another message's bytes were
 * before. */
static void in_pieces(void)
{
  static uint8_t buf[100000], ones[400];
  memset(ones, 0xff, sizeof ones);
  for (piece = 1; piece < 128; piece++) {
    spx_request *r[2];
    spx_rec_rts rts = {.index = piece, .gen = 1, .bytes = sizeof buf};
    for (int i = 0; i < 2; i++)
      CHECK(spx_irecv(buf, sizeof buf, job_bytes, GOOD, 5 + i, world, SPX_CTX_P2P, 0, &r[i]) == 0);
    say(GOOD, SPX_REC_EAGER, world->ctx, 5, GOOD, ones, sizeof ones);
    CHECK(spx_is_done(r[0]) && buf[sizeof ones - 1] == 0xff);
    say(GOOD, SPX_REC_RTS, world->ctx, 6, GOOD, &rts, sizeof rts);
    CHECK(spx_stat.net_refused == 0 && !spx_is_done(r[1]));
    heard(SPX_REC_CTS);
  }
}

static void one(int which)
{
  static uint8_t buf[100000];
  spx_request *r = NULL;
  spx_rec_id id = {0};
  alarm(20); /* whatever hangs ends */
  begin();
  if (which == PIECES) {
    in_pieces();
    _exit(0);
  }
  int from = which <= STAGED_FAR ? NEAR : which == LONG ? BAD : GOOD;
  if (which <= LONG || which == DATA)
    CHECK(spx_irecv(buf, sizeof buf, job_bytes, from, 5, world, SPX_CTX_P2P, 0, &r) == 0);
  if (which == ACK || which == CANCELLED) {
    CHECK(spx_isend(buf, 8, job_bytes, GOOD, 5, world, SPX_CTX_P2P, SPX_M_SYNC, 0, &r) == 0);
    id = heard(SPX_REC_EAGER_SYNC);
  }
  if (which == DONE || which == CTS) {
    CHECK(spx_isend(buf, sizeof buf, job_bytes, GOOD, 5, world, SPX_CTX_P2P, SPX_M_STANDARD, 0,
                    &r) == 0);
    id = heard(SPX_REC_RTS);
  }
  if (which == DATA) {
    spx_rec_rts rts = {.index = 1, .gen = 1, .bytes = sizeof buf};
    say(GOOD, SPX_REC_RTS, world->ctx, 5, GOOD, &rts, sizeof rts);
    id = heard(SPX_REC_CTS);
  }
  spx_rec_cts cts = {
      .index = id.index, .gen = id.gen, .rx_index = 1, .rx_gen = 1, .bytes = sizeof buf};
  uint64_t credit = (uint64_t)1 << 40;
  switch (which) {
  case STAGED: say_mcast(NEAR, (uint64_t)1 << 40, (uint64_t)1 << 45, sizeof buf, NEAR); break;
  case STAGED_FAR:
    say_mcast(NEAR, (spx_segment->total_bytes + 4095) / 4096 * 4096, 0, 100, SPX_NO_PEER);
    break;
  case LONG: say_mcast(BAD, 0, 0, UINT64_MAX - 8, SPX_NO_PEER); break;
  case ACK: say(BAD, SPX_REC_ACK, 0, 0, 0, &id, sizeof id); break;
  case DONE: say(BAD, SPX_REC_DONE, 0, 0, 0, &id, sizeof id); break;
  case CTS: say(BAD, SPX_REC_CTS, 0, 0, 0, &cts, sizeof cts); break;
  case CANCELLED: say(BAD, SPX_REC_CANCELLED, 0, 0, 0, &id, sizeof id); break;
  case DATA: say(BAD, SPX_REC_DATA, 0, (int32_t)id.index, (int32_t)id.gen, buf, 100); break;
  case CREDIT: say(BAD, SPX_REC_CREDIT, 0, 0, 0, &credit, sizeof credit); break;
  default: {
    spx_mcast_args a = {buf, sizeof buf, job_bytes, only_good(), 5, world, false};
    CHECK(spx_mcast_init(&a, SPX_RF_ACTIVE, &r) == MPI_SUCCESS && spx_start(r) == MPI_SUCCESS);
    spx_rec_id done = {.index = 0, .gen = 1};
    say(BAD, SPX_REC_DONE, 0, 0, 0, &done, sizeof done);
  }
  }
  CHECK(spx_stat.net_refused == 1 && spx_net.conns[BAD]->fd < 0);
  CHECK(!r || !spx_is_done(r));
  CHECK(spx_net.conns[GOOD]->fd >= 0);
  _exit(0);
}

int main(int argc, char **argv)
{
  int wrong = 0;
  for (int which = argc > 1 ? atoi(argv[1]) : 0; which < (argc > 1 ? atoi(argv[1]) + 1 : CASES);
       which++) {
    pid_t pid = fork();
    int status;
    if (pid == 0) one(which);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status == 0) continue;
    wrong++;
    fprintf(stderr, "case %d ended with %#x: net_peer %d\n", which, status, which);
  }
  return wrong != 0;
}
