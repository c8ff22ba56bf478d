/* error_code.c - codes, classes and strings that users add, and the functions that query them
 * (MPI-5.0, 10.4 and 10.5).
 *
 * A predefined code is its class. Added classes and codes are numbers from USER_FIRST on, never
 * reused, so that the attribute MPI_LASTUSEDCODE only grows. All functions are local, and are
 * allowed before MPI_Init and after MPI_Finalize. */
#include "error.h"
#include "runtime.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FN         spx_fn_name[spx_fn]
#define USER_FIRST 0x10000
typedef struct user_code {
  int class;  /* its class: itself when it is one; 0: removed */
  int left;   /* of a class: how many codes it has */
  char *text; /* of MPI_Add_error_string, or NULL */
} user_code;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static user_code *codes;
static int ncodes, cap;

static user_code *find(int code)
{
  if (code < USER_FIRST || code >= USER_FIRST + ncodes || !codes[code - USER_FIRST].class)
    return NULL;
  return &codes[code - USER_FIRST];
}

static int class_of(int code)
{
  user_code *u = find(code);
  if (u) return u->class;
  return spx_class_name(code) ? code : -1;
}

int spx_class_of(int code)
{
  pthread_mutex_lock(&lock);
  int class = class_of(code);
  pthread_mutex_unlock(&lock);
  return class;
}

int spx_last_used_code(void)
{
  pthread_mutex_lock(&lock);
  int last = ncodes ? USER_FIRST + ncodes - 1 : MPI_ERR_LASTCODE;
  pthread_mutex_unlock(&lock);
  return last;
}

int spx_code_string(int code, char *out, int size)
{
  pthread_mutex_lock(&lock);
  user_code *u = find(code);
  int n;
  if (u)
    n = snprintf(out, (size_t)size, "%s", u->text ? u->text : "");
  else if (code == MPI_SUCCESS)
    n = snprintf(out, (size_t)size, "MPI_SUCCESS: no error");
  else
    n = snprintf(out, (size_t)size, "%s: %s",
                 spx_class_name(code) ? spx_class_name(code) : "unknown error code",
                 spx_class_text(code) ? spx_class_text(code) : "");
  pthread_mutex_unlock(&lock);
  return n < size ? n : size - 1;
}

/* A new code of a class, or a new class (class 0); -1 when memory is out. */
static int add(int class)
{
  if (ncodes == cap) {
    user_code *more = realloc(codes, sizeof *codes * (size_t)(cap ? 2 * cap : 16));
    if (!more) return -1;
    codes = more;
    cap = cap ? 2 * cap : 16;
  }
  int code = USER_FIRST + ncodes++;
  codes[code - USER_FIRST] = (user_code){.class = class ? class : code};
  if (find(class)) find(class)->left++;
  return code;
}

int spx_c_Add_error_class(int *errorclass)
{
  pthread_mutex_lock(&lock);
  int code = add(0);
  pthread_mutex_unlock(&lock);
  if (code < 0) return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN, "no memory for a new class");
  *errorclass = code;
  return MPI_SUCCESS;
}

int spx_c_Add_error_code(int errorclass, int *errorcode)
{
  pthread_mutex_lock(&lock);
  int known = class_of(errorclass) == errorclass;
  int code = known ? add(errorclass) : 0;
  pthread_mutex_unlock(&lock);
  if (!known)
    return spx_raise(0, NULL, MPI_ERR_ARG, FN, "errorclass is %d, which is no error class",
                     errorclass);
  if (code < 0) return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN, "no memory for a new code");
  *errorcode = code;
  return MPI_SUCCESS;
}

/* Sets (or, with NULL, removes) the string of an added code. */
static int set_string(int errorcode, const char *string)
{
  char *copy = string ? strndup(string, MPI_MAX_ERROR_STRING - 1) : NULL;
  if (string && !copy) return spx_raise(0, NULL, MPI_ERR_NO_MEM, FN, "no memory for the string");
  pthread_mutex_lock(&lock);
  user_code *u = find(errorcode);
  int ok = u && (string || u->text);
  if (ok) {
    free(u->text);
    u->text = copy;
  }
  pthread_mutex_unlock(&lock);
  if (ok) return MPI_SUCCESS;
  free(copy);
  return spx_raise(0, NULL, MPI_ERR_ARG, FN,
                   string ? "errorcode is %d, which is neither an added class nor an added code"
                          : "errorcode is %d, which has no string that MPI_Add_error_string gave",
                   errorcode);
}

int spx_c_Add_error_string(int errorcode, const char *string)
{
  return set_string(errorcode, string);
}

int spx_c_Remove_error_string(int errorcode) { return set_string(errorcode, NULL); }

/* Removes an added code or class; a class that still has codes stays (MPI-5.0, 10.5.1:
 * erroneous). */
static int remove_code(int code, int is_class)
{
  const char *why = NULL;
  pthread_mutex_lock(&lock);
  user_code *u = find(code);
  if (!u || (u->class == code) != is_class)
    why = is_class ? "is no class that MPI_Add_error_class made"
                   : "is no code that MPI_Add_error_code made";
  if (!why && is_class && u->left > 0) why = "still has error codes; remove them first";
  if (!why) {
    if (!is_class && find(u->class)) find(u->class)->left--;
    free(u->text);
    *u = (user_code){0};
  }
  pthread_mutex_unlock(&lock);
  if (!why) return MPI_SUCCESS;
  return spx_raise(0, NULL, MPI_ERR_ARG, FN, "%s %d %s", is_class ? "errorclass" : "errorcode",
                   code, why);
}

int spx_c_Remove_error_class(int errorclass) { return remove_code(errorclass, 1); }

int spx_c_Remove_error_code(int errorcode) { return remove_code(errorcode, 0); }

int spx_c_Error_class(int errorcode, int *errorclass)
{
  int class = spx_class_of(errorcode);
  if (class < 0)
    return spx_raise(0, NULL, MPI_ERR_ARG, FN, "errorcode is %d, which is no error code",
                     errorcode);
  *errorclass = class;
  return MPI_SUCCESS;
}

/* The text of a code, and of what went wrong if this thread's latest error had that code. string
 * has room for MPI_MAX_ERROR_STRING characters. */
int spx_c_Error_string(int errorcode, char *string, int *resultlen)
{
  if (spx_class_of(errorcode) < 0)
    return spx_raise(0, NULL, MPI_ERR_ARG, FN, "errorcode is %d, which is no error code",
                     errorcode);
  int n = spx_code_string(errorcode, string, MPI_MAX_ERROR_STRING);
  const char *last = errorcode < USER_FIRST ? spx_last_error(errorcode) : NULL;
  if (last) n += snprintf(string + n, (size_t)(MPI_MAX_ERROR_STRING - n), " (%s)", last);
  if (n >= MPI_MAX_ERROR_STRING) n = MPI_MAX_ERROR_STRING - 1;
  *resultlen = n;
  return MPI_SUCCESS;
}
