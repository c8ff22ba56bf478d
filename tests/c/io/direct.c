// run: n=1,2,4 timeout=60
/* Accesses that are done without the engine, and those that need it, on the same file: both must see the same pointers, views and
 * data. Random accesses through views of one piece and of long runs, with buffers of one piece and with holes, are compared with a copy
 * of the file. Then what may not be done directly: atomic mode, a process with a wrong argument in a collective read, sequential files.
 * MPI-5.0, 15.3 and 15.4. */
#include "file.h"

enum { PART = 1 << 18, WHOLE = 4 * PART, ROUNDS = 300 };

static unsigned char model[2 * WHOLE], data[2 * WHOLE], got[2 * WHOLE];
static unsigned seed;

static int64_t below(int64_t n)
{
  seed = seed * 1103515245u + 12345u;
  return (int64_t)((uint64_t)(seed >> 8) * (uint64_t)n >> 24);
}

typedef struct {
  int64_t disp, run, stride, etype; /* run == stride: one piece */
} shape;

static int64_t place(const shape *s, int64_t pos) { return s->disp + pos / s->run * s->stride + pos % s->run; }

static MPI_Datatype filetype(const shape *s)
{
  MPI_Datatype run, tile;
  OK(MPI_Type_contiguous((int)s->run, MPI_BYTE, &run));
  OK(MPI_Type_create_resized(run, 0, s->stride, &tile));
  OK(MPI_Type_commit(&tile));
  MPI_Type_free(&run);
  return tile;
}

/* Bytes of a buffer: in one piece, or every other byte of it. */
static MPI_Datatype buffer_type(int holes, int64_t n)
{
  MPI_Datatype t;
  OK(MPI_Type_vector((int)n, 1, holes ? 2 : 1, MPI_BYTE, &t));
  OK(MPI_Type_commit(&t));
  return t;
}

static int64_t bytes_of(const MPI_Status *st)
{
  MPI_Count n = -1;
  MPI_Get_elements_x(st, MPI_BYTE, &n);
  return n;
}

static void wait_for(MPI_Request *r, MPI_Status *st, int nonblocking)
{
  if (nonblocking) OK(MPI_Wait(r, st));
}

/* Writes n bytes at position pos, in etypes, in one of several ways; the individual pointer is where it was afterwards. */
static void put(MPI_File f, const shape *s, int64_t pos, int64_t n, int holes)
{
  MPI_Datatype t = buffer_type(holes, n * s->etype);
  MPI_Status st;
  MPI_Request r;
  int how = (int)below(4);
  for (int64_t i = 0; i < n * s->etype; i++) {
    data[holes ? 2 * i : i] = (unsigned char)below(256);
    model[place(s, pos * s->etype + i)] = data[holes ? 2 * i : i];
  }
  if (how & 2) OK(MPI_File_seek(f, pos, MPI_SEEK_SET));
  switch (how) {
  case 0: OK(MPI_File_write_at(f, pos, data, 1, t, &st)); break;
  case 1: OK(MPI_File_iwrite_at(f, pos, data, 1, t, &r)); break;
  case 2: OK(MPI_File_write(f, data, 1, t, &st)); break;
  case 3: OK(MPI_File_iwrite(f, data, 1, t, &r)); break;
  }
  wait_for(&r, &st, how & 1);
  CHECK(bytes_of(&st) == n * s->etype);
  MPI_Offset now;
  OK(MPI_File_get_position(f, &now));
  if (how & 2) CHECK(now == pos + n);
  MPI_Type_free(&t);
}

/* Reads n etypes at pos, of which the file has bytes up to end. */
static void get(MPI_File f, const shape *s, int64_t pos, int64_t n, int holes, int64_t end)
{
  MPI_Datatype t = buffer_type(holes, n * s->etype);
  MPI_Status st;
  MPI_Request r;
  int how = (int)below(6);
  int64_t want = 0;
  memset(got, 0, (size_t)(2 * n * s->etype));
  while (want < n * s->etype && place(s, pos * s->etype + want) < end) want++;
  if (how == 2 || how == 3 || how == 5) OK(MPI_File_seek(f, pos, MPI_SEEK_SET));
  switch (how) {
  case 0: OK(MPI_File_read_at(f, pos, got, 1, t, &st)); break;
  case 1: OK(MPI_File_iread_at(f, pos, got, 1, t, &r)); break;
  case 2: OK(MPI_File_read(f, got, 1, t, &st)); break;
  case 3: OK(MPI_File_iread(f, got, 1, t, &r)); break;
  case 4: OK(MPI_File_iread_at_all(f, pos, got, 1, t, &r)); break;
  case 5: OK(MPI_File_iread_all(f, got, 1, t, &r)); break;
  }
  wait_for(&r, &st, how != 0 && how != 2);
  CHECK(bytes_of(&st) == want);
  int wrong = 0;
  for (int64_t i = 0; i < want; i++) wrong += got[holes ? 2 * i : i] != model[place(s, pos * s->etype + i)];
  CHECK(wrong == 0);
  MPI_Type_free(&t);
}

/* Every process has a file of its own here: the copy is exact. */
static void random_accesses(void)
{
  static const shape shapes[] = {
      {0, 1 << 20, 1 << 20, 1}, {24, 1 << 20, 1 << 20, 8}, {0, 4096, 8192, 1}, {100, 4096, 4097, 4},
      {8, 8192, 40960, 1},      {0, 4104, 12303, 8},       {0, 16, 64, 4}};
  char name[600];
  MPI_File f;
  snprintf(name, sizeof name, "%s.%d", test_file("direct"), rank);
  seed = (unsigned)rank + 1;
  OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
  for (int i = 0; i < WHOLE; i++) data[i] = model[i] = (unsigned char)below(256);
  OK(MPI_File_write(f, data, WHOLE, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int round = 0; round < ROUNDS; round++) {
    const shape *s = &shapes[below(sizeof shapes / sizeof *shapes)];
    MPI_Datatype tile = filetype(s), etype = s->etype == 8 ? MPI_DOUBLE : s->etype == 4 ? MPI_INT : MPI_BYTE;
    OK(MPI_File_set_view(f, s->disp, s->etype == 1 ? MPI_BYTE : etype, s->run == s->stride ? etype : tile, "native",
                         MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(f, below(8) == 0));
    int64_t room = WHOLE / s->stride * s->run / s->etype * 3 / 4;
    for (int k = 0; k < 4; k++) {
      int64_t pos = below(room / 2),
              n = 1 + below(k ? 3 * s->run / s->etype < room / 8 ? 3 * s->run / s->etype : room / 8 : 8);
      if (below(2) == 0) put(f, s, pos, n, below(4) == 0);
      get(f, s, pos + below(3), n, below(4) == 0, WHOLE);
    }
    get(f, s, room, room, below(4) == 0, WHOLE); /* beyond the end */
    OK(MPI_File_set_atomicity(f, 0));
    MPI_Type_free(&tile);
  }
  OK(MPI_File_close(&f));
}

/* Collective reads in which one process is wrong, or has a view that needs the others. */
static void collective_reads(void)
{
  MPI_File f = open_new(test_file("direct-all"), MPI_INFO_NULL);
  MPI_Status st;
  int last = size - 1;
  char buf[4096], old[4096];
  for (int i = 0; i < 4096; i++) buf[i] = (char)(rank * 3 + i % 101);
  OK(MPI_File_write_at_all(f, rank * 4096, buf, 4096, MPI_BYTE, &st));
  OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int round = 0; round < 2; round++) {
    int n = rank == last ? 4095 : 4096; /* not a number of ints */
    int err = MPI_File_read_at_all(f, (last - rank) * 1024, old, n, MPI_BYTE, &st), class = MPI_SUCCESS;
    if (err) MPI_Error_class(err, &class);
    CHECK(rank != last || class == MPI_ERR_ARG);
    OK(MPI_File_read_at_all(f, (last - rank) * 1024, old, 4096, MPI_BYTE, &st));
    for (int i = 0; i < 4096; i++) CHECK(old[i] == (char)((last - rank) * 3 + i % 101));
    OK(MPI_File_set_atomicity(f, 1));
  }
  OK(MPI_File_set_atomicity(f, 0));
  /* One process sees every other int, the others one piece. */
  shape s = {0, 4, 8, 4};
  MPI_Datatype tile = filetype(&s);
  OK(MPI_File_set_view(f, 0, MPI_INT, rank == last ? tile : MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_read_all(f, old, 512, MPI_INT, &st));
  CHECK(count_of(&st, MPI_INT) == 512);
  for (int i = 0; i < 512; i++) {
    int at = rank == last ? 2 * i : i, want;
    unsigned char w[4];
    for (int k = 0; k < 4; k++) w[k] = (unsigned char)(0 * 3 + (at * 4 + k) % 4096 % 101);
    memcpy(&want, w, 4);
    CHECK(((int *)(void *)old)[i] == want);
  }
  MPI_Type_free(&tile);
  /* A split collective is active: no other may be begun, direct or not. */
  OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at_all_begin(f, rank * 4096, old, 4096, MPI_BYTE));
  CHECK_CLASS(MPI_File_read_at_all(f, 0, buf, 1, MPI_BYTE, &st), MPI_ERR_IO);
  OK(MPI_File_read_at_all_end(f, old, &st));
  CHECK(count_of(&st, MPI_BYTE) == 4096 && old[5] == (char)(rank * 3 + 5));
  OK(MPI_File_read_at_all(f, 0, buf, 1, MPI_BYTE, &st));
  OK(MPI_File_close(&f));
}

/* Wrong directions, and what a sequential file allows. */
static void refusals(void)
{
  const char *name = test_file("direct-modes");
  char c[16] = "123456789abcdef";
  MPI_File f;
  MPI_Status st;
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
  CHECK_CLASS(MPI_File_read_at(f, 0, c, 4, MPI_BYTE, &st), MPI_ERR_ACCESS);
  CHECK_CLASS(MPI_File_write_at(f, -1, c, 4, MPI_BYTE, &st), MPI_ERR_ARG);
  OK(MPI_File_write_at(f, 16 * rank, c, 16, MPI_BYTE, &st));
  OK(MPI_File_close(&f));
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f));
  CHECK_CLASS(MPI_File_read_at(f, 0, c, 4, MPI_BYTE, &st), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_read(f, c, 4, MPI_BYTE, &st), MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK_CLASS(MPI_File_write_shared(f, c, 4, MPI_BYTE, &st), MPI_ERR_READ_ONLY);
  OK(MPI_File_read_shared(f, c, 16, MPI_BYTE, &st));
  CHECK(count_of(&st, MPI_BYTE) == 16 && memcmp(c, "123456789abcdef", 16) == 0);
  MPI_Offset at = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_CLASS(MPI_File_get_position_shared(f, &at), MPI_ERR_UNSUPPORTED_OPERATION);
  OK(MPI_File_close(&f));
  if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
}

int main(int argc, char **argv)
{
  start(&argc, &argv);
  random_accesses();
  collective_reads();
  refusals();
  MPI_Finalize();
  return check_status();
}
