/* error.c - raising errors: the detail text of a thread, and the way to the error handler (MPI-5.0,
 * 10.3).
 *
 * An error has a code (its class, or a user's code), a function, and a detail text with the wrong
 * argument, its value, and what to do. The text is kept per thread, so that MPI_Error_string can
 * return it afterwards. */
#include "error.h"
#include "runtime.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DETAIL_MAX 1024
typedef struct detail {
  int code;              /* of the error that was raised with it; 0: not raised yet */
  int left;              /* that code as a user's error handler has left it */
  char text[DETAIL_MAX]; /* of the thread's latest error */
  char raised[DETAIL_MAX + 64];
} detail;

/* A pointer, because the library may be opened by dlopen, when static thread-local memory is
 * scarce. */
static SPX_TLS detail *mine;
static pthread_key_t detail_key;
static pthread_once_t detail_once = PTHREAD_ONCE_INIT;

static void make_key(void) { pthread_key_create(&detail_key, free); }

static detail *my_detail(void)
{
  static detail last_resort; /* memory is out: texts of several threads may mix */
  if (mine) return mine;
  pthread_once(&detail_once, make_key);
  detail *d = calloc(1, sizeof *d);
  if (!d) return &last_resort;
  pthread_setspecific(detail_key, d);
  return mine = d;
}

void spx_detail(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(my_detail()->text, DETAIL_MAX, fmt, ap);
  va_end(ap);
}

void spx_detail_bytes(const char *text, size_t len)
{
  detail *d = my_detail();
  if (len >= DETAIL_MAX) len = DETAIL_MAX - 1;
  memcpy(d->text, text, len);
  d->text[len] = 0;
}

const char *spx_detail_text(void) { return mine ? mine->text : ""; }

const char *spx_last_error(int code)
{
  return mine && mine->code == code && code != MPI_SUCCESS ? mine->raised : NULL;
}

/* The name of the object in a message. */
static void name_object(spx_kind k, const void *handle, char *out, size_t size)
{
  spx_obj *o = k ? spx_get(k, handle) : NULL;
  *out = 0;
  if (o && k == SPX_K_COMM && ((spx_comm *)o)->name[0])
    snprintf(out, size, " on %s", ((spx_comm *)o)->name);
}

static _Noreturn __attribute__((noinline)) void end_by_handler(spx_kind k, void *handle,
                                                               const spx_errh *e, int code,
                                                               const char *function,
                                                               const char *text)
{
  char what[MPI_MAX_ERROR_STRING], where[MPI_MAX_OBJECT_NAME + 8], line[3 * DETAIL_MAX];
  spx_code_string(code, what, sizeof what);
  name_object(k, handle, where, sizeof where);
  snprintf(line, sizeof line, "%s%s failed: %s%s%s\n  error handler: %s", function, where, what,
           *text ? ": " : "", text, e->mode == 322 ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL");
  int class = spx_class_of(code);
  if (e->mode == 322 && k == SPX_K_COMM)
    spx_end_comm((spx_comm *)spx_get(k, handle), class > 0 ? class : MPI_ERR_OTHER, line);
  spx_end_job(class > 0 ? class : MPI_ERR_OTHER, line);
}

/* The handle that a user's error handler gets: the object's, or MPI_COMM_SELF. */
static void *handle_for_user(spx_kind k, void *handle)
{
  spx_obj *o = k ? spx_get(k, handle) : NULL;
  if (o && (k == SPX_K_COMM || k == SPX_K_WIN || k == SPX_K_FILE || k == SPX_K_SESSION))
    return handle;
  if (o && k == SPX_K_REQ && ((spx_request *)o)->comm)
    return spx_comm_handle(((spx_request *)o)->comm);
  return (void *)MPI_COMM_SELF;
}

SPX_TLS int spx_mute;

/* A separate function, since a user's error handler may return in another thread. */
static __attribute__((noinline)) void set_left(int code) { my_detail()->left = code; }

int spx_raise(spx_kind k, void *handle, int code, const char *function, const char *fmt, ...)
{
  char text[DETAIL_MAX];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  detail *d = my_detail();
  d->code = d->left = code;
  snprintf(d->raised, sizeof d->raised, "%s: %s", function, text);
  /* Go hands the error on, and it is raised when no Go frame is below */
  if (spx_in_go) return code;
  if (spx_mute) return code;
  spx_errh *e = spx_errh_of(k, handle);
  if (e->mode == 323) return code;
  if (e->mode != 0) end_by_handler(k, handle, e, code, function, text);
  /* A user's function. It may call MPI, and it may never come back. */
  void *arg = handle_for_user(k, handle);
  int arg_code = code;
  e->fn(&arg, &arg_code, function, text);
  set_left(arg_code);
  return code;
}

int spx_fail_on_comm(const spx_comm *c, int code)
{
  return spx_raise_on_comm((spx_comm *)(uintptr_t)c, code, spx_fn_name[spx_fn]);
}

int spx_raise_on_comm(spx_comm *c, int code, const char *function)
{
  void *handle = spx_comm_handle(c);
  if (SPX_LIKELY(handle != NULL))
    return spx_raise(SPX_K_COMM, handle, code, function, "%s", spx_detail_text());
  handle = (void *)(uintptr_t)spx_revive(SPX_K_COMM, &c->o);
  code = spx_raise(SPX_K_COMM, handle, code, function, "%s", spx_detail_text());
  spx_unrevive(SPX_K_COMM, &c->o);
  return code;
}

int spx_code_left(void) { return my_detail()->left; }
