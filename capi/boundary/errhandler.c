/* errhandler.c - error handlers: the predefined ones, and
 * MPI_{Comm,Win,File,Session}_{create,set,get,call}_errhandler (MPI-5.0, 10.3 and 10.5). Objects
 * hold a reference to their handler; every handle that the user gets is another. */
#define _GNU_SOURCE
#include "error.h"
#include "rma.h"
#include "runtime.h"
#include "shim.h"
#include <stdlib.h>
#include <string.h>

#define FN spx_fn_name[spx_fn]

spx_errh spx_errors_are_fatal = {.o = {.handle = 321, .refs = 1}, .mode = 321};
spx_errh spx_errors_abort = {.o = {.handle = 322, .refs = 1}, .mode = 322};
spx_errh spx_errors_return = {.o = {.handle = 323, .refs = 1}, .mode = 323};

/* The handler that files begin with: that of MPI_FILE_NULL (MPI-5.0, 15.7). */
static spx_errh *file_default = &spx_errors_return;

__attribute__((constructor)) static void predefine(void)
{
  spx_predef[SPX_K_ERRH][321] = &spx_errors_are_fatal.o;
  spx_predef[SPX_K_ERRH][322] = &spx_errors_abort.o;
  spx_predef[SPX_K_ERRH][323] = &spx_errors_return.o;
}

spx_errh *spx_initial_errh(void)
{
  static spx_errh *initial;
  if (initial) return initial;
  const char *name = secure_getenv("SPX_INITIAL_ERRHANDLER");
  if (name && strcmp(name, "mpi_errors_return") == 0) return initial = &spx_errors_return;
  if (name && strcmp(name, "mpi_errors_abort") == 0) return initial = &spx_errors_abort;
  return initial = &spx_errors_are_fatal;
}

/* Errors that belong to no object go to MPI_COMM_SELF (MPI-5.0, 10.3). Up to MPI-3.1 they went to
 * MPI_COMM_WORLD, and programs set a handler only there: it counts as long as MPI_COMM_SELF has
 * none of its own. */
static spx_errh *default_errh(void)
{
  spx_errh *initial = spx_initial_errh();
  if (spx_self && spx_self->errh && spx_self->errh != initial) return spx_self->errh;
  if (spx_world && spx_world->errh) return spx_world->errh;
  return initial;
}

spx_errh *spx_errh_of(spx_kind k, const void *handle)
{
  spx_errh *e = NULL;
  spx_obj *o = k ? spx_get(k, handle) : NULL;
  if (k == SPX_K_FILE)
    e = o && ((spx_plain *)o)->errh ? ((spx_plain *)o)->errh : file_default;
  else if (o && k == SPX_K_COMM)
    e = ((spx_comm *)o)->errh;
  else if (o && (k == SPX_K_WIN || k == SPX_K_SESSION))
    e = ((spx_plain *)o)->errh;
  else if (o && k == SPX_K_REQ && ((spx_request *)o)->comm)
    e = ((spx_request *)o)->comm->errh;
  return e ? e : default_errh();
}

/* ---- making and freeing ---- */

static int create(int of, void *fn, MPI_Errhandler *errhandler)
{
  spx_errh *e = (spx_errh *)spx_new(SPX_K_ERRH);
  if (!e)
    return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN,
                     "there is no room for another error handler (at most %u exist): free those "
                     "that are not used any more",
                     1u << SPX_H_INDEX_BITS);
  e->of = of;
  e->fn = (void (*)(void *, int *, ...))fn;
  e->held = 1;
  *errhandler = (MPI_Errhandler)(uintptr_t)e->o.handle;
  return MPI_SUCCESS;
}

int spx_c_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn,
                                 MPI_Errhandler *errhandler)
{
  return create(SPX_K_COMM, (void *)comm_errhandler_fn, errhandler);
}

int spx_c_Win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn,
                                MPI_Errhandler *errhandler)
{
  return create(SPX_K_WIN, (void *)win_errhandler_fn, errhandler);
}

int spx_c_File_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn,
                                 MPI_Errhandler *errhandler)
{
  return create(SPX_K_FILE, (void *)file_errhandler_fn, errhandler);
}

int spx_c_Session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn,
                                    MPI_Errhandler *errhandler)
{
  return create(SPX_K_SESSION, (void *)session_errhandler_fn, errhandler);
}

/* Releases a handle; the handler stays while objects have it. */
int spx_c_Errhandler_free(MPI_Errhandler *errhandler)
{
  spx_errh *e = (spx_errh *)spx_get(SPX_K_ERRH, *errhandler);
  int ok = e != NULL;
  if (e && e->mode == 0 && atomic_fetch_sub(&e->held, 1) <= 0) {
    atomic_fetch_add(&e->held, 1);
    ok = 0;
  }
  if (!ok)
    return spx_raise(0, NULL, MPI_ERR_ERRHANDLER, FN,
                     "errhandler is %p, which is no error handler, or was freed",
                     (void *)*errhandler);
  if (e->mode == 0) spx_unref(SPX_K_ERRH, &e->o);
  *errhandler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

/* ---- setting, getting, calling ---- */

/* Puts a handler into *slot, which belongs to an object of this kind. */
static int set(spx_kind k, void *handle, spx_errh **slot, MPI_Errhandler errhandler)
{
  spx_errh *e = (spx_errh *)spx_get(SPX_K_ERRH, errhandler);
  if (!e)
    return spx_raise(k, handle, MPI_ERR_ERRHANDLER, FN,
                     "errhandler is %p, which is no error handler, or was freed",
                     (void *)errhandler);
  if (e->mode == 0 && e->of != (int)k)
    return spx_raise(
        k, handle, MPI_ERR_ERRHANDLER, FN,
        "errhandler was created for another kind of object; use the function that is named alike");
  spx_errh *old = *slot;
  spx_ref(&e->o);
  *slot = e;
  if (old) spx_unref(SPX_K_ERRH, &old->o);
  return MPI_SUCCESS;
}

spx_errh *spx_errh_ref(MPI_Errhandler errhandler)
{
  spx_errh *e = (spx_errh *)spx_get(SPX_K_ERRH, errhandler);
  if (e) spx_ref(&e->o);
  return e;
}

int spx_raise_by(MPI_Errhandler errhandler, int code, const char *function, const char *text)
{
  spx_errh *e = (spx_errh *)spx_get(SPX_K_ERRH, errhandler);
  if (e && e->mode == 323) return code;
  if (!e || e->mode) return spx_raise(0, NULL, code, function, "%s", text);
  void *null = MPI_SESSION_NULL;
  int arg = code;
  e->fn(&null, &arg, function, text);
  return code;
}

static int get(spx_kind k, const void *handle, MPI_Errhandler *errhandler)
{
  spx_errh *e = spx_errh_of(k, handle);
  spx_ref(&e->o);
  atomic_fetch_add(&e->held, 1);
  *errhandler = (MPI_Errhandler)(uintptr_t)e->o.handle;
  return MPI_SUCCESS;
}

static int call(spx_kind k, void *handle, int errorcode)
{
  if (spx_class_of(errorcode) < 0)
    return spx_raise(k, handle, MPI_ERR_ARG, FN, "errorcode is %d, which is no error code",
                     errorcode);
  const char *last = spx_last_error(errorcode);
  char text[MPI_MAX_ERROR_STRING] = "";
  if (last) strncpy(text, last, sizeof text - 1);
  spx_raise(k, handle, errorcode, FN, "%s", text);
  return MPI_SUCCESS;
}

static void *comm_handle(const spx_comm *c) { return (void *)(uintptr_t)c->o.handle; }

void spx_note_returning(const spx_comm *c)
{
  const spx_errh *e = c->errh;
  if (e && spx_segment && (e->mode == 0 || e->mode == 323) &&
      (c->size > 1 || (c->flags & SPX_C_INTER)))
    __atomic_store_n(&spx_proc_of(spx_me)->ft_flags, spx_proc_of(spx_me)->ft_flags | SPX_FT_RETURNS,
                     __ATOMIC_RELEASE);
}

int spx_c_Comm_set_errhandler(spx_comm *comm, MPI_Errhandler errhandler)
{
  int err = set(SPX_K_COMM, comm_handle(comm), &comm->errh, errhandler);
  if (err == MPI_SUCCESS) spx_note_returning(comm);
  return err;
}

int spx_c_Comm_get_errhandler(spx_comm *comm, MPI_Errhandler *errhandler)
{
  return get(SPX_K_COMM, comm_handle(comm), errhandler);
}

int spx_c_Comm_call_errhandler(spx_comm *comm, int errorcode)
{
  return call(SPX_K_COMM, comm_handle(comm), errorcode);
}

/* Windows, files and sessions. */
static spx_errh **slot_of(spx_kind k, const void *handle)
{
  spx_plain *o = (spx_plain *)spx_get(k, handle);
  return o ? &o->errh : NULL;
}

int spx_c_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
  int err = set(SPX_K_WIN, win, slot_of(SPX_K_WIN, win), errhandler);
  const spx_errh *e = spx_errh_of(SPX_K_WIN, win);
  if (err == MPI_SUCCESS &&
      (e->mode == 0 || e->mode == 323)) /* functions that always return their errors */
    spx_note_returning(((const spx_win *)spx_get(SPX_K_WIN, win))->comm);
  return err;
}

int spx_c_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
  return get(SPX_K_WIN, win, errhandler);
}

int spx_c_Win_call_errhandler(MPI_Win win, int errorcode)
{
  return call(SPX_K_WIN, win, errorcode);
}

int spx_c_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
  return set(SPX_K_SESSION, session, slot_of(SPX_K_SESSION, session), errhandler);
}

int spx_c_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler)
{
  return get(SPX_K_SESSION, session, errhandler);
}

int spx_c_Session_call_errhandler(MPI_Session session, int errorcode)
{
  return call(SPX_K_SESSION, session, errorcode);
}

/* MPI_FILE_NULL stands for the files that are not open yet, so the shims let it through, and files
 * are checked here. */
static int bad_file(MPI_File file)
{
  if (file == MPI_FILE_NULL || spx_get(SPX_K_FILE, file)) return MPI_SUCCESS;
  return spx_raise(SPX_K_FILE, NULL, MPI_ERR_FILE, FN,
                   "file is %p, which is no file, or was closed", (void *)file);
}

int spx_c_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler)
{
  int err = bad_file(file);
  if (err) return err;
  return set(SPX_K_FILE, file, file == MPI_FILE_NULL ? &file_default : slot_of(SPX_K_FILE, file),
             errhandler);
}

int spx_c_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler)
{
  int err = bad_file(file);
  return err ? err : get(SPX_K_FILE, file, errhandler);
}

int spx_c_File_call_errhandler(MPI_File fh, int errorcode)
{
  int err = bad_file(fh);
  return err ? err : call(SPX_K_FILE, fh, errorcode);
}
