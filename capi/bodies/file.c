/* file.c - data access to files (MPI-5.0, 15.4) where it is one system call, or one for each long
 * run of the view: no entry into Go.
 *
 * What is needed for that stands in spx_fh (dataplane/base/file.h). Whatever is not simple goes to
 * the engine (capi/io_access.go): other datatypes and views, atomic mode, collective writes in
 * which processes need each other, wrong arguments, and errors of the system, which the engine
 * meets again and names. A request is complete when it is made. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include "coll.h"
#include "file.h"
#include "io.h"
#include "shim.h"

/* One access. The functions differ in the pointer, the direction, and the processes that take
 * part. */
typedef enum { EXPLICIT, INDIVIDUAL, SHARED } pointer;
typedef struct {
  pointer at;
  bool write, all, nonblock;
} form;

typedef struct {
  MPI_File file;
  int64_t offset; /* EXPLICIT: in etypes */
  char *buf;
  int64_t count;
  spx_type *type;
  void *out; /* MPI_Status * or MPI_Request * */
} transfer;

#define GAP  8192 /* bytes: a longer gap between two runs is not worth reading */
#define RUNS 128  /* runs that are read by one call */
/* positions beyond are left to the engine, which can find the end of a file */
#define FARTHEST ((int64_t)1 << 60)

/* Moves n bytes at an offset of the file: how many were moved; -1: the engine shall find out why
 * not. */
static int64_t move(int fd, bool write, char *p, int64_t n, int64_t off)
{
  int64_t done = 0;
  while (done < n) {
    ssize_t k = write ? pwrite(fd, p + done, (size_t)(n - done), off + done)
                      : pread(fd, p + done, (size_t)(n - done), off + done);
    if (SPX_UNLIKELY(k < 0)) {
      if (errno == EINTR) continue;
      return -1;
    }
    if (k == 0) break;
    done += k;
  }
  return write && done < n ? -1 : done;
}

/* Reads m whole runs from offset off on in one call, with the gaps between them, which go to a
 * scratch buffer. False: not all could be read so. */
static bool read_through(const spx_fh *f, char *p, int64_t m, int64_t off)
{
  static char sink[GAP];
  struct iovec iov[2 * RUNS];
  int64_t gap = f->stride - f->run, k = 0;
  for (int64_t i = 0; i < m; i++) {
    iov[k++] = (struct iovec){p + i * f->run, (size_t)f->run};
    iov[k++] = (struct iovec){sink, (size_t)gap};
  }
  return preadv(f->fd, iov, (int)k - 1, off) == m * f->stride - gap;
}

/* The same from position pos of the view on. */
static int64_t move_view(const spx_fh *f, bool write, char *p, int64_t n, int64_t pos)
{
  if (SPX_LIKELY(f->run == 0)) return move(f->fd, write, p, n, f->first + pos);
  bool through = !write && f->stride - f->run <= GAP;
  for (int64_t done = 0, k; done < n; done += k) {
    int64_t tile = (pos + done) / f->run, in = (pos + done) % f->run,
            off = f->first + tile * f->stride + in;
    int64_t whole = in ? 0 : (n - done) / f->run;
    if (through && whole > 1) {
      k = (whole < RUNS ? whole : RUNS) * f->run;
      if (read_through(f, p + done, k / f->run, off)) continue;
      through = false; /* the file ends here, or a signal came: run by run finds out */
    }
    k = f->run - in < n - done ? f->run - in : n - done;
    int64_t got = move(f->fd, write, p + done, k, off);
    if (SPX_UNLIKELY(got < k)) return got < 0 ? got : done + got;
  }
  return n;
}

/* Takes the position, in bytes of the view, for an access of n etypes. */
static int64_t take(spx_fh *f, form k, const transfer *a, int64_t n)
{
  switch (k.at) {
  case INDIVIDUAL: return atomic_fetch_add_explicit(&f->pos, n, memory_order_relaxed) * f->etype;
  case SHARED: return __atomic_fetch_add(f->shared, n, __ATOMIC_SEQ_CST) * f->etype;
  default: return a->offset * f->etype;
  }
}

/* The engine does the access at the position that was taken. */
static void give_back(spx_fh *f, form k, int64_t n)
{
  if (k.at == INDIVIDUAL) atomic_fetch_sub_explicit(&f->pos, n, memory_order_relaxed);
  if (k.at == SHARED) __atomic_fetch_sub(f->shared, n, __ATOMIC_SEQ_CST);
}

/* Does the access, if that is simple: bytes moved, or -1: nothing has happened that the engine
 * would not do again. */
static int64_t simple(spx_fh *f, form k, const transfer *a)
{
  uint32_t want = (k.write ? SPX_FILE_WRITE : SPX_FILE_READ) |
                  (k.at == SHARED ? SPX_FILE_SHARED : SPX_FILE_POINTER) |
                  (!k.all    ? 0
                   : k.write ? SPX_FILE_WRITE_ALL
                             : SPX_FILE_READ_ALL);
  int64_t n, end;
  if (SPX_UNLIKELY((atomic_load_explicit(&f->ways, memory_order_acquire) & want) != want))
    return -1;
  if (SPX_UNLIKELY(!(a->type->flags & SPX_T_CONTIG) ||
                   __builtin_mul_overflow(a->count, a->type->size, &n)))
    return -1;
  if (SPX_UNLIKELY(n <= 0 || n > FARTHEST)) return -1;
  int64_t etypes = f->etype == 1 ? n : n / f->etype;
  if (SPX_UNLIKELY(etypes * f->etype != n)) return -1;
  int64_t at = k.at == EXPLICIT ? a->offset : k.at == SHARED ? *f->shared : atomic_load(&f->pos);
  if (SPX_UNLIKELY(at < 0 || __builtin_mul_overflow(at, f->etype, &at) || at > FARTHEST)) return -1;
  if (f->run && (__builtin_mul_overflow((at + n) / f->run + 1, f->stride, &end) || end > FARTHEST))
    return -1;
  int64_t moved = move_view(f, k.write, a->buf, n, take(f, k, a, etypes));
  if (SPX_UNLIKELY(moved < 0)) give_back(f, k, etypes);
  return moved;
}

static int by_engine(form k, const transfer *a)
{
  spx_frame frame = {.fn = spx_fn};
  spx_word *w = frame.a;
  (w++)->u = (uintptr_t)a->file;
  if (k.at == EXPLICIT) (w++)->i = a->offset;
  (w++)->u = (uintptr_t)a->buf;
  (w++)->i = a->count;
  (w++)->u = a->type->o.handle;
  w->u = (uintptr_t)a->out;
  return spx_go(&frame);
}

/* ---- the outcome of a collective write, on which all agree: what core/io.Agree does, for a
 * process that has no error ---- */

/* bytes of the report of a process with an error: length, text (core/io, textMax, in whole
 * words) */
enum { TEXT = 248 };

/* Some process has an error: the first of them sends its text. */
static int others_error(const transfer *a, spx_comm *comm, const int64_t *classes)
{
  char nothing[TEXT] = "", *all = calloc((size_t)comm->size, TEXT);
  int first = 0;
  while (!classes[first]) first++;
  int err = all ? spx_inside_gather(comm, nothing, all, TEXT) : MPI_ERR_NO_MEM;
  const char *text = all ? all + (size_t)first * TEXT : nothing;
  if (err == MPI_SUCCESS)
    err = spx_raise(SPX_K_FILE, a->file, (int)classes[first], spx_fn_name[spx_fn],
                    "on rank %d: %.*s", first, (int)(unsigned char)text[0], text + 1);
  else
    err = spx_raise(SPX_K_FILE, a->file, err, spx_fn_name[spx_fn], "%s", spx_detail_text());
  free(all);
  return err;
}

static int agree(const transfer *a, spx_comm *comm)
{
  enum { FEW = 64 };
  int64_t mine = MPI_SUCCESS, few[FEW],
          *classes = comm->size <= FEW ? few : calloc((size_t)comm->size, sizeof mine);
  if (!classes) spx_detail("no memory for the errors of %d processes", comm->size);
  int err = classes ? spx_inside_gather(comm, &mine, classes, sizeof mine) : MPI_ERR_NO_MEM;
  if (SPX_UNLIKELY(err != MPI_SUCCESS)) {
    if (classes != few) free(classes);
    return spx_raise(SPX_K_FILE, a->file, err, spx_fn_name[spx_fn], "%s", spx_detail_text());
  }
  int64_t any = 0;
  for (int i = 0; i < comm->size; i++) any |= classes[i];
  if (SPX_UNLIKELY(any != 0)) err = others_error(a, comm, classes);
  if (classes != few) free(classes);
  return err;
}

static inline int run(form k, const transfer *a)
{
  spx_fh *f = (spx_fh *)spx_get(SPX_K_FILE, a->file);
  int64_t moved = simple(f, k, a);
  if (SPX_UNLIKELY(moved < 0)) return by_engine(k, a);
  if (k.all && k.write) {
    int err = agree(a, f->comm);
    if (SPX_UNLIKELY(err != MPI_SUCCESS)) return err;
  }
  if (!k.nonblock) {
    spx_status_set(a->out, MPI_ANY_SOURCE, MPI_ANY_TAG, SPX_KEEP_ERROR, moved, 0);
    return MPI_SUCCESS;
  }
  spx_request *r = spx_io_request(moved);
  if (!r)
    return spx_raise(
        SPX_K_FILE, a->file, MPI_ERR_NO_MEM, spx_fn_name[spx_fn],
        "there is no room for another request (at most %u exist): complete some, or free them",
        1u << SPX_H_INDEX_BITS);
  *(MPI_Request *)a->out = (MPI_Request)(uintptr_t)r->o.handle;
  return MPI_SUCCESS;
}

int spx_c_File_read_at(MPI_File fh, MPI_Offset offset, void *buf, int64_t count, spx_type *datatype,
                       MPI_Status *status)
{
  transfer a = {fh, offset, buf, count, datatype, status};
  return run((form){EXPLICIT, false, false, false}, &a);
}

int spx_c_File_iread_at(MPI_File fh, MPI_Offset offset, void *buf, int64_t count,
                        spx_type *datatype, MPI_Request *request)
{
  transfer a = {fh, offset, buf, count, datatype, request};
  return run((form){EXPLICIT, false, false, true}, &a);
}

int spx_c_File_read(MPI_File fh, void *buf, int64_t count, spx_type *datatype, MPI_Status *status)
{
  transfer a = {fh, 0, buf, count, datatype, status};
  return run((form){INDIVIDUAL, false, false, false}, &a);
}

int spx_c_File_iread(MPI_File fh, void *buf, int64_t count, spx_type *datatype,
                     MPI_Request *request)
{
  transfer a = {fh, 0, buf, count, datatype, request};
  return run((form){INDIVIDUAL, false, false, true}, &a);
}

int spx_c_File_read_shared(MPI_File fh, void *buf, int64_t count, spx_type *datatype,
                           MPI_Status *status)
{
  transfer a = {fh, 0, buf, count, datatype, status};
  return run((form){SHARED, false, false, false}, &a);
}

int spx_c_File_iread_shared(MPI_File fh, void *buf, int64_t count, spx_type *datatype,
                            MPI_Request *request)
{
  transfer a = {fh, 0, buf, count, datatype, request};
  return run((form){SHARED, false, false, true}, &a);
}

int spx_c_File_read_at_all(MPI_File fh, MPI_Offset offset, void *buf, int64_t count,
                           spx_type *datatype, MPI_Status *status)
{
  transfer a = {fh, offset, buf, count, datatype, status};
  return run((form){EXPLICIT, false, true, false}, &a);
}

int spx_c_File_read_all(MPI_File fh, void *buf, int64_t count, spx_type *datatype,
                        MPI_Status *status)
{
  transfer a = {fh, 0, buf, count, datatype, status};
  return run((form){INDIVIDUAL, false, true, false}, &a);
}

int spx_c_File_write_at(MPI_File fh, MPI_Offset offset, const void *buf, int64_t count,
                        spx_type *datatype, MPI_Status *status)
{
  transfer a = {fh, offset, (char *)(uintptr_t)buf, count, datatype, status};
  return run((form){EXPLICIT, true, false, false}, &a);
}

int spx_c_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int64_t count,
                         spx_type *datatype, MPI_Request *request)
{
  transfer a = {fh, offset, (char *)(uintptr_t)buf, count, datatype, request};
  return run((form){EXPLICIT, true, false, true}, &a);
}

int spx_c_File_write(MPI_File fh, const void *buf, int64_t count, spx_type *datatype,
                     MPI_Status *status)
{
  transfer a = {fh, 0, (char *)(uintptr_t)buf, count, datatype, status};
  return run((form){INDIVIDUAL, true, false, false}, &a);
}

int spx_c_File_iwrite(MPI_File fh, const void *buf, int64_t count, spx_type *datatype,
                      MPI_Request *request)
{
  transfer a = {fh, 0, (char *)(uintptr_t)buf, count, datatype, request};
  return run((form){INDIVIDUAL, true, false, true}, &a);
}

int spx_c_File_write_shared(MPI_File fh, const void *buf, int64_t count, spx_type *datatype,
                            MPI_Status *status)
{
  transfer a = {fh, 0, (char *)(uintptr_t)buf, count, datatype, status};
  return run((form){SHARED, true, false, false}, &a);
}

int spx_c_File_iwrite_shared(MPI_File fh, const void *buf, int64_t count, spx_type *datatype,
                             MPI_Request *request)
{
  transfer a = {fh, 0, (char *)(uintptr_t)buf, count, datatype, request};
  return run((form){SHARED, true, false, true}, &a);
}

int spx_c_File_write_at_all(MPI_File fh, MPI_Offset offset, const void *buf, int64_t count,
                            spx_type *datatype, MPI_Status *status)
{
  transfer a = {fh, offset, (char *)(uintptr_t)buf, count, datatype, status};
  return run((form){EXPLICIT, true, true, false}, &a);
}

int spx_c_File_write_all(MPI_File fh, const void *buf, int64_t count, spx_type *datatype,
                         MPI_Status *status)
{
  transfer a = {fh, 0, (char *)(uintptr_t)buf, count, datatype, status};
  return run((form){INDIVIDUAL, true, true, false}, &a);
}
