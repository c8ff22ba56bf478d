/* mset.c - collectives over a set of ranks without a communicator: MPIX_Mbarrier, MPIX_Mreduce,
 * MPIX_Mallreduce, MPIX_Mgather, MPIX_Mscatter, MPIX_Malltoall. docs/multicast.md.
 *
 * All members give the same set, and derive their neighbours from it: nothing is agreed, nothing is
 * kept. The messages are those of the communicator, in a context of their own, with the caller's
 * tag. Two processes exchange messages of the operations that both take part in in the order of
 * their calls, so these need no numbers.
 *
 * Operands go up a tree of the positions in the set, and the result comes down it again where all
 * want it: a member serves a range of positions that it is the first of, and cuts the rest into
 * BRANCHES ranges. Operands are thus combined in the order of their ranks. A member that has an
 * error still sends, but a message that cannot be a valid one: so no member waits for one that has
 * no result. */
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "p2p.h"

enum { BRANCHES = 4 };

typedef struct {
  const spx_rankset *set;
  spx_comm *comm;
  int tag;
  int32_t n, me; /* members; position of this process, -1: it is none of them */
  int32_t parent, child[BRANCHES], children;
  int error;
} participants;

/* ---- participants ---- */

static int32_t position_of(const spx_rankset *s, int32_t rank)
{
  int32_t lo = 0, hi = (int32_t)s->n;
  while (lo < hi) {
    int32_t mid = (lo + hi) / 2;
    if (s->ranks[mid] < rank)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < (int32_t)s->n && s->ranks[lo] == rank ? lo : -1;
}

/* The first of the k-th of the BRANCHES parts that the positions [from, to) are cut into. */
static int32_t edge(int32_t from, int32_t to, int k)
{
  return from + (int32_t)((int64_t)(to - from) * k / BRANCHES);
}

/* Finds this process in the tree. */
static void place(participants *p)
{
  int32_t lo = 0, hi = p->n;
  p->parent = -1;
  while (lo != p->me) {
    int k = 0;
    while (edge(lo + 1, hi, k + 1) <= p->me) k++;
    int32_t from = edge(lo + 1, hi, k), to = edge(lo + 1, hi, k + 1);
    p->parent = lo;
    lo = from;
    hi = to;
  }
  p->children = 0;
  for (int k = 0; k < BRANCHES; k++)
    if (edge(lo + 1, hi, k) < edge(lo + 1, hi, k + 1))
      p->child[p->children++] = edge(lo + 1, hi, k);
}

static int fail(const participants *p, int code) { return spx_fail_on_comm(p->comm, code); }

/* The participants of a call; root: a rank that takes part too, or -1. Errors are raised. */
static int gather_participants(participants *p, MPIX_Rankset set, int tag, spx_comm *comm, int root)
{
  *p = (participants){.set = (spx_rankset *)spx_get(SPX_K_RANKSET, set), .comm = comm, .tag = tag};
  if (p->set->ctx != comm->ctx) {
    spx_detail("set is a set of ranks of another communicator than comm");
    return fail(p, MPI_ERR_ARG);
  }
  if (comm->flags & SPX_C_INTER) {
    spx_detail("comm is an intercommunicator: the ranks of a set of it are in the other group");
    return fail(p, MPI_ERR_COMM);
  }
  p->n = (int32_t)p->set->n;
  p->me = position_of(p->set, comm->rank);
  if (p->me < 0 && root != comm->rank) {
    spx_detail(root < 0 ? "rank %d, which calls, is not in set"
                        : "rank %d, which calls, is neither in set nor the root",
               comm->rank);
    return fail(p, MPI_ERR_ARG);
  }
  return MPI_SUCCESS;
}

static int32_t rank_at(const participants *p, int32_t position) { return p->set->ranks[position]; }

/* The first error stays. */
static void note(participants *p, int error)
{
  if (p->error == MPI_SUCCESS) p->error = error;
}

static int end(participants *p)
{
  if (SPX_LIKELY(p->error == MPI_SUCCESS)) return MPI_SUCCESS;
  if (p->error == MPIX_ERR_PROC_FAILED)
    spx_detail("a process that takes part has failed; the others have been told");
  return fail(p, p->error);
}

/* ---- messages ---- */

/* Bytes of the message that stands for one of so many, which cannot be sent. */
static int64_t poison(int64_t bytes) { return bytes == 3 ? 5 : 3; }

static void give(participants *p, int32_t rank, const void *buf, int64_t count, spx_type *t)
{
  int err;
  if (p->error == MPI_SUCCESS)
    err = spx_send(buf, count, t, rank, p->tag, p->comm, SPX_CTX_SET, SPX_M_STANDARD);
  else
    err = spx_send("sorry", poison(count * t->size), (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE),
                   rank, p->tag, p->comm, SPX_CTX_SET, SPX_M_STANDARD);
  if (err != MPI_SUCCESS) note(p, err);
}

/* Checks whether the complete receive r has the expected length. */
static void judge(participants *p, const spx_request *r, int64_t wanted, int32_t rank)
{
  if (r->error != MPI_SUCCESS && r->error != MPI_ERR_TRUNCATE) {
    note(p, r->error);
    return;
  }
  int64_t got = (int64_t)r->full;
  if (SPX_LIKELY(got == wanted)) return;
  if (got == poison(wanted)) {
    note(p, MPIX_ERR_PROC_FAILED); /* a member behind that rank */
    return;
  }
  spx_detail("rank %d takes part with %lld bytes, this process with %lld: the calls of the "
             "processes do not match",
             rank, (long long)got, (long long)wanted);
  note(p, MPI_ERR_TRUNCATE);
}

static void take(participants *p, int32_t rank, void *buf, int64_t count, spx_type *t)
{
  spx_request *r;
  int err = spx_irecv(buf, count, t, rank, p->tag, p->comm, SPX_CTX_SET, SPX_RF_INTERNAL, &r);
  if (err != MPI_SUCCESS) {
    note(p, err);
    return;
  }
  spx_wait(r);
  judge(p, r, count * t->size, rank);
  spx_request_free(r);
}

/* ---- up and down the tree ---- */

/* Memory for count elements; what to free is in *memory. It is as core/coll.Type.place has it: room
 * for the data, for whole structures where the elements are such, and an address of the first
 * element that is aligned as the user's. */
static void *room_for(participants *p, int64_t count, const spx_type *t, void **memory)
{
  enum { ALIGN = 64 };
  int64_t low = t->true_lb, high = t->true_lb + t->true_extent,
          last = count ? (count - 1) * t->extent : 0;
  if (low >= 0 && high <= t->extent) low = 0, high = t->extent;
  low += last < 0 ? last : 0;
  high += last > 0 ? last : 0;
  if (count == 0) low = high = 0;
  int64_t before = (-low + ALIGN - 1) & -ALIGN, bytes = (before + high + ALIGN) & -ALIGN;
  *memory = aligned_alloc(ALIGN, (size_t)bytes);
  if (!*memory) {
    spx_detail("no memory for %lld elements on their way", (long long)count);
    note(p, MPI_ERR_NO_MEM);
    return NULL;
  }
  return (char *)*memory + before;
}

static void copy(const void *from, void *to, int64_t count, const spx_type *t)
{
  enum { PIECE = 4096 };
  char piece[PIECE];
  int64_t end = count * t->size;
  if (from == to) return;
  if (t->flags & SPX_T_CONTIG)
    memcpy(to, from, (size_t)end);
  else
    for (int64_t at = 0, n; at < end; at += n) {
      n = end - at < PIECE ? end - at : PIECE;
      spx_pack(from, count, t, at, at + n, piece);
      spx_unpack(to, count, t, at, at + n, piece);
    }
}

/* The operands, and the memory for them. */
typedef struct {
  int64_t count;
  spx_type *type;
  spx_op *op;
  void *left, *in; /* the partial result; the next operand */
  void *memory[2];
} operands;

/* Combines own and the children's operands. Returns where the result is: own, or one of two places
 * that free_operands frees. Without memory it receives from the children all the same, so that they
 * do not wait. */
static const void *combine(participants *p, operands *x, const void *own)
{
  *x = (operands){.count = x->count, .type = x->type, .op = x->op};
  if (p->children == 0) return own;
  x->left = room_for(p, x->count, x->type, &x->memory[0]);
  x->in = room_for(p, x->count, x->type, &x->memory[1]);
  bool room = x->memory[0] && x->memory[1];
  if (room) copy(own, x->left, x->count, x->type);
  for (int k = 0; k < p->children; k++) {
    take(p, rank_at(p, p->child[k]), room ? x->in : NULL, room ? x->count : 0, x->type);
    if (p->error != MPI_SUCCESS) continue;
    void *before = x->op->commute ? x->in : x->left, *after = x->op->commute ? x->left : x->in;
    int err = spx_reduce(before, after, x->count, x->type, x->op);
    if (err != MPI_SUCCESS) note(p, err);
    x->left = after;
    x->in = before;
  }
  return x->left;
}

static void free_operands(operands *x)
{
  free(x->memory[0]);
  free(x->memory[1]);
}

static void spread(participants *p, void *buf, int64_t count, spx_type *t)
{
  if (p->parent >= 0) take(p, rank_at(p, p->parent), buf, count, t);
  for (int k = 0; k < p->children; k++) give(p, rank_at(p, p->child[k]), buf, count, t);
}

int spx_c_X_Mbarrier(MPIX_Rankset set, int tag, spx_comm *comm)
{
  participants p;
  spx_type *byte = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  int rc = gather_participants(&p, set, tag, comm, -1);
  if (rc != MPI_SUCCESS) return rc;
  place(&p);
  for (int k = 0; k < p.children; k++) take(&p, rank_at(&p, p.child[k]), NULL, 0, byte);
  if (p.parent >= 0) give(&p, rank_at(&p, p.parent), NULL, 0, byte);
  spread(&p, NULL, 0, byte);
  return end(&p);
}

static int check_op(const spx_comm *comm, int count, const spx_op *op, const spx_type *t)
{
  if (SPX_LIKELY(spx_op_valid(op, t)) || count == 0) return MPI_SUCCESS;
  spx_detail("%s is not defined for %s; make an operation by MPI_Op_create", spx_op_title(op),
             spx_type_title(t));
  return spx_fail_on_comm(comm, MPI_ERR_OP);
}

int spx_c_X_Mreduce(const void *sendbuf, void *recvbuf, int count, spx_type *datatype, spx_op *op,
                    int root, MPIX_Rankset set, int tag, spx_comm *comm)
{
  participants p;
  operands x = {.count = count, .type = datatype, .op = op};
  int rc = gather_participants(&p, set, tag, comm, root);
  if (rc == MPI_SUCCESS) rc = check_op(comm, count, op, datatype);
  if (rc != MPI_SUCCESS || p.n == 0) return rc;
  int32_t first = rank_at(&p, 0);
  if (p.me >= 0) {
    place(&p);
    const void *sum = combine(&p, &x, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf);
    int32_t to = p.me > 0 ? rank_at(&p, p.parent) : root;
    if (to != comm->rank)
      give(&p, to, sum, count, datatype);
    else if (p.error == MPI_SUCCESS)
      copy(sum, recvbuf, count, datatype);
    free_operands(&x);
  }
  if (comm->rank == root && first != root) take(&p, first, recvbuf, count, datatype);
  return end(&p);
}

int spx_c_X_Mallreduce(const void *sendbuf, void *recvbuf, int count, spx_type *datatype,
                       spx_op *op, MPIX_Rankset set, int tag, spx_comm *comm)
{
  participants p;
  operands x = {.count = count, .type = datatype, .op = op};
  int rc = gather_participants(&p, set, tag, comm, -1);
  if (rc == MPI_SUCCESS) rc = check_op(comm, count, op, datatype);
  if (rc != MPI_SUCCESS) return rc;
  place(&p);
  const void *sum = combine(&p, &x, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf);
  if (p.parent >= 0)
    give(&p, rank_at(&p, p.parent), sum, count, datatype);
  else if (p.error == MPI_SUCCESS)
    copy(sum, recvbuf, count, datatype);
  free_operands(&x);
  spread(&p, recvbuf, count, datatype);
  return end(&p);
}

/* ---- directly ---- */

/* Messages that are on their way together. */
typedef struct {
  spx_request **r;
  int32_t *rank, n;
} bundle;

static bool begin(participants *p, bundle *b, int32_t most)
{
  *b = (bundle){.r = malloc((size_t)most * sizeof *b->r + 1),
                .rank = malloc((size_t)most * sizeof *b->rank + 1)};
  if (b->r && b->rank) return true;
  free(b->r);
  free(b->rank);
  spx_detail("no memory for messages to and from %d processes", most);
  note(p, MPI_ERR_NO_MEM);
  return false;
}

static void add(participants *p, bundle *b, int32_t rank, bool sends, const void *buf,
                int64_t count, spx_type *t)
{
  int err;
  if (sends)
    err = spx_isend(buf, count, t, rank, p->tag, p->comm, SPX_CTX_SET, SPX_M_STANDARD,
                    SPX_RF_INTERNAL, &b->r[b->n]);
  else
    err = spx_irecv((void *)(uintptr_t)buf, count, t, rank, p->tag, p->comm, SPX_CTX_SET,
                    SPX_RF_INTERNAL, &b->r[b->n]);
  if (err != MPI_SUCCESS)
    note(p, err);
  else
    b->rank[b->n++] = rank;
}

/* Waits for all: receives are of so many bytes each. */
static void finish(participants *p, bundle *b, int64_t wanted)
{
  for (int32_t i = 0; i < b->n; i++) {
    spx_request *r = b->r[i];
    int err = spx_wait(r);
    if (r->kind == SPX_R_RECV)
      judge(p, r, wanted, b->rank[i]);
    else if (err != MPI_SUCCESS)
      note(p, err);
    spx_request_free(r);
  }
  free(b->r);
  free(b->rank);
}

static void *block(const void *buf, int64_t i, int64_t count, const spx_type *t)
{
  return (char *)(uintptr_t)buf + i * count * t->extent;
}

int spx_c_X_Mgather(const void *sendbuf, int sendcount, spx_type *sendtype, void *recvbuf,
                    int recvcount, spx_type *recvtype, int root, MPIX_Rankset set, int tag,
                    spx_comm *comm)
{
  participants p;
  bundle b;
  int rc = gather_participants(&p, set, tag, comm, root);
  if (rc != MPI_SUCCESS) return rc;
  bool own = p.me >= 0 && sendbuf != MPI_IN_PLACE, all = comm->rank == root;
  if (!begin(&p, &b, (all ? p.n : 0) + own)) return end(&p);
  for (int32_t i = 0; i < p.n && all; i++)
    if (i != p.me || own)
      add(&p, &b, rank_at(&p, i), false, block(recvbuf, i, recvcount, recvtype), recvcount,
          recvtype);
  if (own) add(&p, &b, root, true, sendbuf, sendcount, sendtype);
  finish(&p, &b, all ? recvcount * recvtype->size : 0);
  return end(&p);
}

int spx_c_X_Mscatter(const void *sendbuf, int sendcount, spx_type *sendtype, void *recvbuf,
                     int recvcount, spx_type *recvtype, int root, MPIX_Rankset set, int tag,
                     spx_comm *comm)
{
  participants p;
  bundle b;
  int rc = gather_participants(&p, set, tag, comm, root);
  if (rc != MPI_SUCCESS) return rc;
  bool own = p.me >= 0 && recvbuf != MPI_IN_PLACE, all = comm->rank == root;
  if (!begin(&p, &b, (all ? p.n : 0) + own)) return end(&p);
  if (own) add(&p, &b, root, false, recvbuf, recvcount, recvtype);
  for (int32_t i = 0; i < p.n && all; i++)
    if (i != p.me || own)
      add(&p, &b, rank_at(&p, i), true, block(sendbuf, i, sendcount, sendtype), sendcount,
          sendtype);
  finish(&p, &b, own ? recvcount * recvtype->size : 0);
  return end(&p);
}

int spx_c_X_Malltoall(const void *sendbuf, int sendcount, spx_type *sendtype, void *recvbuf,
                      int recvcount, spx_type *recvtype, MPIX_Rankset set, int tag, spx_comm *comm)
{
  participants p;
  bundle b;
  int rc = gather_participants(&p, set, tag, comm, -1);
  if (rc != MPI_SUCCESS) return rc;
  char *copied = NULL;
  int64_t out = sendcount;
  if (sendbuf == MPI_IN_PLACE) { /* the data to send are copied, packed */
    int64_t bytes = (int64_t)p.n * recvcount * recvtype->size;
    if (!(copied = malloc((size_t)bytes + 1))) {
      spx_detail("no memory for %lld bytes that are to be exchanged in place", (long long)bytes);
      note(&p, MPI_ERR_NO_MEM);
      return end(&p);
    }
    spx_pack(recvbuf, (int64_t)p.n * recvcount, recvtype, 0, bytes, copied);
    sendbuf = copied;
    out = recvcount * recvtype->size;
    sendtype = (spx_type *)spx_get(SPX_K_TYPE, MPI_BYTE);
  }
  if (begin(&p, &b, 2 * p.n)) {
    for (int32_t i = 0; i < p.n; i++)
      add(&p, &b, rank_at(&p, i), false, block(recvbuf, i, recvcount, recvtype), recvcount,
          recvtype);
    for (int32_t k = 1; k <= p.n; k++) { /* not all to the same one at once */
      int32_t i = (p.me + k) % p.n;
      add(&p, &b, rank_at(&p, i), true, block(sendbuf, i, out, sendtype), out, sendtype);
    }
    finish(&p, &b, recvcount * recvtype->size);
  }
  free(copied);
  return end(&p);
}
