/* pmix.c - see pmix.h. The declarations are those of the PMIx standard's ABI (versions 3 to 5 have
 * the same). */
#include "pmix.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char nspace[SPX_PMIX_NAME];
  uint32_t rank;
} proc_id;

enum {
  TYPE_BOOL = 1,
  TYPE_STRING = 3,
  TYPE_INT = 6,
  TYPE_INT32 = 9,
  TYPE_UINT = 11,
  TYPE_UINT32 = 14,
  SCOPE_GLOBAL = 3
};

typedef struct {
  uint16_t type;
  union {
    bool flag;
    char *string;
    uint32_t number;
    uint64_t room[3];
  } data;
} value;

typedef struct {
  char key[512];
  uint32_t flags;
  value value;
} info;

static struct {
  void *library;
  int (*init)(proc_id *proc, info *list, size_t n);
  int (*put)(uint8_t scope, const char *key, value *val);
  int (*commit)(void);
  int (*fence)(const proc_id *procs, size_t nprocs, const info *list, size_t n);
  int (*get)(const proc_id *proc, const char *key, const info *list, size_t n, value **val);
  int (*finalize)(const info *list, size_t n);
  const char *(*error)(int status);
} lib;

static proc_id me;
static char reason[256];

static int load(void)
{
  static const struct {
    const char *name;
    void *at;
  } wanted[] = {{"PMIx_Init", &lib.init},         {"PMIx_Put", &lib.put},
                {"PMIx_Commit", &lib.commit},     {"PMIx_Fence", &lib.fence},
                {"PMIx_Get", &lib.get},           {"PMIx_Finalize", &lib.finalize},
                {"PMIx_Error_string", &lib.error}};
  lib.library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; lib.library && i < sizeof wanted / sizeof *wanted; i++) {
    void *f = dlsym(lib.library, wanted[i].name);
    if (!f) {
      dlclose(lib.library);
      lib.library = NULL;
    } else {
      memcpy(wanted[i].at, &f, sizeof f);
    }
  }
  if (lib.library) return 0;
  const char *why = dlerror();
  snprintf(reason, sizeof reason, "%s", why ? why : "libpmix.so.2 lacks a function");
  return SPX_PMIX_NO_LIBRARY;
}

const char *spx_pmix_why(int status)
{
  switch (status) {
  case SPX_PMIX_NO_LIBRARY: return reason;
  case SPX_PMIX_OTHER_TYPE: return "its value has another type";
  case SPX_PMIX_NO_ROOM: return "its value is too long";
  }
  const char *text = lib.error ? lib.error(status) : NULL;
  return text ? text : "an error that PMIx has no word for";
}

/* The library's own thread must not take the program's signals. */
int spx_pmix_begin(char *name, uint32_t *rank)
{
  sigset_t all, before;
  int err = load();
  if (err) return err;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  err = lib.init(&me, NULL, 0);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (err) return err;
  memcpy(name, me.nspace, sizeof me.nspace);
  name[sizeof me.nspace - 1] = 0;
  *rank = me.rank;
  return 0;
}

static int get(uint32_t rank, const char *key, value **v)
{
  proc_id whose = me;
  whose.rank = rank;
  *v = NULL;
  int err = lib.get(&whose, key, NULL, 0, v);
  return err ? err : *v ? 0 : SPX_PMIX_OTHER_TYPE;
}

int spx_pmix_number(uint32_t rank, const char *key, uint32_t *number)
{
  value *v;
  int err = get(rank, key, &v);
  if (err) return err;
  if (v->type == TYPE_UINT32 || v->type == TYPE_UINT || v->type == TYPE_INT ||
      v->type == TYPE_INT32)
    *number = v->data.number;
  else
    err = SPX_PMIX_OTHER_TYPE; /* not freed: what it holds is not known */
  if (!err) free(v);
  return err;
}

int spx_pmix_text(uint32_t rank, const char *key, char *text, size_t room)
{
  value *v;
  int err = get(rank, key, &v);
  if (err) return err;
  if (v->type != TYPE_STRING || !v->data.string) return SPX_PMIX_OTHER_TYPE;
  if (strlen(v->data.string) < room)
    memcpy(text, v->data.string, strlen(v->data.string) + 1);
  else
    err = SPX_PMIX_NO_ROOM;
  free(v->data.string);
  free(v);
  return err;
}

int spx_pmix_put(const char *key, const char *text)
{
  value v = {.type = TYPE_STRING};
  v.data.string = (char *)(uintptr_t)text; /* the library copies it */
  return lib.put(SCOPE_GLOBAL, key, &v);
}

int spx_pmix_fence(void)
{
  proc_id all = me;
  info collect = {.key = "pmix.collect", .value = {.type = TYPE_BOOL}};
  collect.value.data.flag = true;
  all.rank = SPX_PMIX_ALL;
  int err = lib.commit();
  return err ? err : lib.fence(&all, 1, &collect, 1);
}

void spx_pmix_end(void) { lib.finalize(NULL, 0); }
