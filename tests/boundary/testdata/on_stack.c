/* on_stack.c - preloaded: runs the program's main on a stack of so many KiB, with a guard page below, of a user-level thread or of a thread.
 *   ON_STACK="coroutine 64" or "thread 64" */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef int main_function(int, char **, char **);
static main_function *program;
static int argc, status;
static char **argv, **envp;
static ucontext_t at, back;

static void run(void) { status = program(argc, argv, envp); }

static void *run_thread(void *none)
{
  run();
  return none;
}

static int on_stack(int c, char **v, char **e)
{
  char kind[16] = "";
  unsigned long kib = 0;
  const char *how = getenv("ON_STACK");
  argc = c, argv = v, envp = e;
  if (!how || sscanf(how, "%15s %lu", kind, &kib) != 2) return 125;
  size_t bytes = kib << 10, guard = 64 << 10;
  if (strcmp(kind, "thread") == 0) {
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    if (pthread_attr_setstacksize(&a, bytes) || pthread_create(&t, &a, run_thread, NULL)) return 125;
    pthread_join(t, NULL);
    return status;
  }
  char *m = mmap(NULL, guard + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED || mprotect(m, guard, PROT_NONE)) return 125;
  getcontext(&at);
  at.uc_stack.ss_sp = m + guard;
  at.uc_stack.ss_size = bytes;
  at.uc_link = &back;
  makecontext(&at, run, 0);
  swapcontext(&back, &at);
  return status;
}

int __libc_start_main(main_function *f, int c, char **v, void (*init)(void), void (*fini)(void), void (*rtld)(void),
                      void *end)
{
  int (*real)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
      (int (*)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *))dlsym(
          RTLD_NEXT, "__libc_start_main");
  program = f;
  return real(on_stack, c, v, init, fini, rtld, end);
}
