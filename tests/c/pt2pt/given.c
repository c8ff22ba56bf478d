/* What a call was given is the caller's again when it has returned, but for the data: datatypes, communicators, info objects, error handlers are
 * freed and their places taken by others, arrays overwritten, while the operation goes on. MPI-5.0 5.1.9, 7.4.3, 9.3, 12.3, 14.3. */
// run: n=2 timeout=60
// run: n=2 env=SPX_CMA=0 timeout=60 full=1
// run: n=2 env=SPX_TRANSPORTS=tcp timeout=60
#include "../check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 40000, TAG = 5 };
static int rank, other;
static MPI_Comm comm; /* for each part anew: it is freed before the end, too */
static int a[2 * ROWS], b[2 * ROWS];

/* Every second int. */
static MPI_Datatype every_second(int rows)
{
  MPI_Datatype t;
  MPI_Type_vector(rows, 1, 2, MPI_INT, &t);
  MPI_Type_commit(&t);
  return t;
}

/* Takes the places of what was freed. */
static void reuse(void)
{
  for (int i = 0; i < 20; i++) {
    MPI_Datatype t;
    MPI_Type_create_hvector(3, 5, 7 + i, MPI_DOUBLE, &t);
    MPI_Type_commit(&t);
    MPI_Type_free(&t);
  }
}

static void forget(MPI_Datatype t)
{
  MPI_Type_free(&t);
  reuse();
}

static void fill(void)
{
  for (int i = 0; i < 2 * ROWS; i++) a[i] = i + rank, b[i] = -1;
}

/* The first n rows came from the other process, and nothing else changed. */
static void judge(int n, const char *what)
{
  int wrong = 0;
  for (int i = 0; i < 2 * ROWS; i++) wrong += b[i] != (i % 2 == 0 && i / 2 < n ? i + other : -1);
  if (wrong) fprintf(stderr, "%s: %d ints are wrong\n", what, wrong);
  CHECK(wrong == 0);
}

static void begin(void)
{
  fill();
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

static void nonblocking(int n)
{
  MPI_Request r[2];
  MPI_Datatype t = every_second(n);
  begin();
  if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Irecv(b, 1, t, other, TAG, comm, &r[0]);
  MPI_Isend(a, 1, t, other, TAG, comm, &r[1]);
  MPI_Comm_free(&comm);
  forget(t);
  if (rank == 1) MPI_Send(NULL, 0, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  judge(n, "Isend, Irecv");
}

static void persistent(int n, int mode)
{
  MPI_Request r[2];
  MPI_Datatype t = every_second(n);
  begin();
  MPI_Recv_init(b, 1, t, other, TAG, comm, &r[0]);
  (mode == 0 ? MPI_Send_init : mode == 1 ? MPI_Ssend_init : MPI_Bsend_init)(a, 1, t, other, TAG, comm, &r[1]);
  MPI_Comm_free(&comm);
  forget(t);
  for (int k = 0; k < 2; k++) {
    fill();
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    judge(n, "Startall");
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

static void partitioned(void)
{
  enum { PARTS = 8 };
  MPI_Request r[2];
  MPI_Datatype v, t;
  MPI_Info info;
  MPI_Type_vector(ROWS / PARTS, 1, 2, MPI_INT, &v);
  MPI_Type_create_resized(v, 0, ROWS / PARTS * 2 * (MPI_Aint)sizeof(int), &t);
  MPI_Type_commit(&t);
  MPI_Type_free(&v);
  MPI_Info_create(&info);
  begin();
  MPI_Precv_init(b, PARTS, 1, t, other, TAG, comm, info, &r[0]);
  MPI_Psend_init(a, PARTS, 1, t, other, TAG, comm, info, &r[1]);
  MPI_Comm_free(&comm);
  MPI_Info_free(&info);
  forget(t);
  for (int k = 0; k < 2; k++) {
    int list[PARTS];
    fill();
    MPI_Startall(2, r);
    for (int i = 0; i < PARTS; i++) list[i] = PARTS - 1 - i;
    MPI_Pready_list(PARTS, list, r[1]);
    memset(list, 0xff, sizeof list);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    judge(ROWS, "partitioned");
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

static void windows(int n)
{
  MPI_Win w;
  MPI_Info info;
  MPI_Errhandler none;
  MPI_Request r;
  MPI_Datatype t;
  MPI_Info_create(&info);
  begin();
  MPI_Win_create(b, sizeof b, 1, info, comm, &w);
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &none);
  MPI_Win_set_errhandler(w, none);
  MPI_Errhandler_free(&none);
  for (int way = 0; way < 5; way++) {
    fill();
    if (way == 1 || way == 3)
      for (int i = 0; i < ROWS; i++) b[2 * i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w);
    MPI_Datatype from = every_second(n);
    t = every_second(n);
    switch (way) {
    case 0: MPI_Put(a, 1, from, other, 0, 1, t, w); break;
    case 1: MPI_Accumulate(a, 1, from, other, 0, 1, t, MPI_SUM, w); break;
    case 2: MPI_Rput(a, 1, from, other, 0, 1, t, w, &r); break;
    case 3: MPI_Raccumulate(a, 1, from, other, 0, 1, t, MPI_SUM, w, &r); break;
    default: MPI_Rget(a, 1, from, other, 0, 1, t, w, &r); break;
    }
    forget(t);
    forget(from);
    if (way >= 2) MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(w);
    MPI_Barrier(MPI_COMM_WORLD);
    if (way == 1 || way == 3)
      for (int i = n; i < ROWS; i++) b[2 * i] = b[2 * i] == 0 ? -1 : -2;
    if (way < 4) judge(n, "a window");
    if (way == 4)
      for (int i = 0; i < n; i++) CHECK(a[2 * i] == -1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_free(&w);
}

static void files(int n)
{
  MPI_File f;
  MPI_Info info;
  MPI_Request r;
  char name[64] = "/tmp/given-XXXXXX", native[] = "native";
  if (rank == 0) close(mkstemp(name));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Info_create(&info);
  begin();
  CHECK_CLASS(MPI_File_open(comm, name, MPI_MODE_RDWR, info, &f), MPI_SUCCESS);
  MPI_Comm_free(&comm);
  MPI_Datatype view = every_second(1000), mine;
  MPI_Type_create_resized(view, 0, 8000, &mine);
  MPI_Type_commit(&mine);
  MPI_File_set_view(f, rank * 4, MPI_INT, mine, native, info);
  memset(native, 'x', sizeof native - 1);
  MPI_Info_free(&info);
  MPI_Type_free(&view);
  forget(mine);
  for (int way = 0; way < 3; way++) {
    fill();
    MPI_Datatype t = every_second(n);
    if (way == 0) MPI_File_iwrite_at(f, 0, a, 1, t, &r);
    if (way == 1) MPI_File_iwrite_at_all(f, 0, a, 1, t, &r);
    if (way == 2) MPI_File_write_at_all_begin(f, 0, a, 1, t);
    forget(t);
    if (way < 2) MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (way == 2) MPI_File_write_at_all_end(f, a, MPI_STATUS_IGNORE);
    t = every_second(n);
    if (way == 0) MPI_File_iread_at(f, 0, b, 1, t, &r);
    if (way == 1) MPI_File_iread_at_all(f, 0, b, 1, t, &r);
    if (way == 2) MPI_File_read_at_all_begin(f, 0, b, 1, t);
    forget(t);
    if (way < 2) MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (way == 2) MPI_File_read_at_all_end(f, b, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * n; i++) b[i] += i % 2 == 0 ? other - rank : 0;
    judge(n, "a file");
  }
  MPI_File_close(&f);
  if (rank == 0) unlink(name);
}

int main(int argc, char **argv)
{
  static char space[2 * sizeof a];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  MPI_Buffer_attach(space, sizeof space);
  for (int n = 3; n <= ROWS; n = n == 3 ? ROWS : ROWS + 1) {
    nonblocking(n);
    for (int mode = 0; mode < 3; mode++) persistent(n, mode);
    windows(n);
    files(n);
  }
  partitioned();
  void *was;
  int bytes;
  MPI_Buffer_detach(&was, &bytes);
  MPI_Finalize();
  return check_status();
}
