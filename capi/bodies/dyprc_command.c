/* dyprc_command.c - ulfm_dyprc: where commands come from, and where it is told what has come of them. See dyprc.h.
 *
 * The command file (SPX_DYPRC_FILE) is read by rank 0 alone. What was written before rank 0 began is no command. When commands are done, the
 * number of processes is written into it. */
#define _GNU_SOURCE
#include "dyprc.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "error.h"
#include "settings.h"

#define d spx_dyprc

enum {
  LOOK_EVERY = 2000000,  /* ns between looks at the file */
  UNFINISHED = 50000000, /* ns for which a last line without its end is taken for one that is being written */
  SAME_TICK = 100000000, /* ns: a file that was changed so lately may be changed again without another time */
  FILE_MAX = SPX_DYPRC_TEXT - 1
};

static const char *path(void)
{
  const char *name = spx_setting_text(SPX_SET_DYPRC_FILE);
  return *name ? name : "ulfm_dyprc.cmd";
}

void spx_dyprc_refuse(const char *fmt, ...)
{
  if (d.order.error[0]) return;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(d.order.error, sizeof d.order.error, fmt, ap);
  va_end(ap);
  for (char *c = d.order.error; *c; c++)
    if (iscntrl((unsigned char)*c)) *c = ' ';
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

typedef struct {
  int64_t stamp[3];
  uint64_t age; /* ns since it was changed */
  ssize_t size; /* of text; more than FILE_MAX: the file is longer */
  char text[FILE_MAX + 2];
} content;

static int64_t hash(const char *text, ssize_t n)
{
  uint64_t h = 14695981039346656037u;
  for (ssize_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return (int64_t)(h >> 1);
}

static void stamp_of(const struct stat *st, int64_t *stamp, uint64_t *age)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  stamp[0] = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
  stamp[1] = (int64_t)((uint64_t)st->st_ino * 0x10001u + (uint64_t)st->st_size);
  int64_t past = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - stamp[0];
  *age = past < 0 ? UINT64_MAX : (uint64_t)past; /* a clock that was set back, or that of another host */
}

/* False: it cannot be read, or somebody is just writing it: with the time of before the same commands would be others a moment later. */
static bool read_file(int fd, content *c)
{
  struct stat st;
  int64_t after[3];
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return false;
  stamp_of(&st, c->stamp, &c->age);
  c->size = pread(fd, c->text, FILE_MAX + 1, 0);
  if (c->size < 0 || fstat(fd, &st) != 0) return false;
  stamp_of(&st, after, &c->age);
  if (memcmp(c->stamp, after, 2 * sizeof *after) != 0 || (c->size <= FILE_MAX && c->size != st.st_size)) return false;
  c->text[c->size] = 0;
  c->stamp[2] = hash(c->text, c->size);
  return true;
}

static bool settled; /* a change would be seen by the file's time */

/* What stands in the file, if it is not what was seen there last. */
static bool is_new(content *c)
{
  struct stat st;
  uint64_t age;
  int64_t seen[3];
  if (stat(path(), &st) != 0) return false;
  stamp_of(&st, seen, &age);
  if (settled && memcmp(seen, d.order.stamp, 2 * sizeof *seen) == 0) return false;
  int fd = open(path(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  bool got = read_file(fd, c);
  close(fd);
  settled = got && c->age > SAME_TICK;
  return got && memcmp(c->stamp, d.order.stamp, sizeof c->stamp) != 0;
}

static const char done[] = "# done in ";

/* The answer is written at once, with blank lines up to the end of what was there: who reads it may write the next command. */
static void answer(int fd, const content *before)
{
  static char text[FILE_MAX + 1];
  struct stat st;
  uint64_t age;
  int n = snprintf(text, sizeof text, "%d\n%s%.6f s\n", d.size, done, d.seconds);
  if (d.order.error[0]) n += snprintf(text + n, sizeof text - (size_t)n, "# error: %s\n", d.order.error);
  while (n < before->size && n < FILE_MAX) text[n++] = '\n';
  if ((before->size > FILE_MAX && ftruncate(fd, FILE_MAX) != 0) || pwrite(fd, text, (size_t)n, 0) != n)
    fprintf(stderr, "ulfm_dyprc: %s cannot be written: %s\n", path(), strerror(errno));
  settled = false; /* what is read there from now on is a command, unless it is this */
  if (fstat(fd, &st) == 0) stamp_of(&st, d.order.stamp, &age);
  d.order.stamp[2] = hash(text, n);
}

/* Writes what has come of the commands into the file, unless there are others by now. */
static void write_back(void)
{
  static content c;
  d.order.unanswered = 0;
  int fd = open(path(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 && read_file(fd, &c) && memcmp(c.stamp, d.order.stamp, sizeof c.stamp) == 0) answer(fd, &c);
  if (fd < 0 && errno != ENOENT) fprintf(stderr, "ulfm_dyprc: %s cannot be written: %s\n", path(), strerror(errno));
  if (fd >= 0) close(fd);
}

/* ---- the agent ------------------------------------------------------------------------------------------------- */

spx_dyprc_mail spx_dyprc_post;

void spx_dyprc_tell(void)
{
  spx_frame f = {.fn = SPX_IN_DYPRC_MEMBERS};
  f.a[0].p = (void *)d.world;
  f.a[1].u = d.order.epoch;
  d.told = spx_go_internal(&f) == MPI_SUCCESS;
}

/* Sees to it that a command of the agent's arrives; true: one has. */
static bool has_mail(void)
{
  int state = atomic_load_explicit(&spx_dyprc_post.state, memory_order_acquire);
  if (state == SPX_DYPRC_IDLE) {
    spx_frame f = {.fn = SPX_IN_DYPRC_AWAIT};
    f.a[0].u = d.order.number;
    atomic_store(&spx_dyprc_post.state, SPX_DYPRC_WAITING);
    if (spx_go_internal(&f) != MPI_SUCCESS) atomic_store(&spx_dyprc_post.state, SPX_DYPRC_IDLE);
  }
  return state == SPX_DYPRC_ARRIVED;
}

static void report(void)
{
  char text[sizeof d.order.error + 128];
  spx_frame f = {.fn = SPX_IN_DYPRC_DONE};
  snprintf(text, sizeof text, "%d %d %.6f %s", d.order.first, d.size, d.seconds, d.order.error);
  f.a[0].u = d.order.number;
  f.a[1].p = text;
  spx_go_internal(&f); /* is the agent gone, so is the job */
}

/* ---- taking commands ------------------------------------------------------------------------------------------- */

/* What stands in a file behind the answer to former commands, if there is one. */
static const char *behind_answer(const char *text)
{
  const char *last = NULL;
  for (const char *at = text; (at = strstr(at, done)); at++) last = at;
  return last ? last + strcspn(last, "\n") : text;
}

/* Takes the commands out of text, without blanks and comments; what they are is looked at when they are carried out. */
static void take(const char *text, int source)
{
  spx_dyprc_orders *o = &d.order;
  size_t n = 0;
  o->source = source;
  o->at = o->tries = o->killing = 0;
  o->error[0] = 0;
  o->first = d.size;
  d.seconds = 0;
  for (const char *line = text; *line;) {
    const char *end = line + strcspn(line, "\n;#");
    for (const char *at = line; at < end; at++)
      if (!isspace((unsigned char)*at)) o->text[n++] = *at;
    end += *end == '#' ? strcspn(end, "\n") : 0;
    if (n > 0 && o->text[n - 1] != ';') o->text[n++] = ';';
    line = *end ? end + 1 : end;
  }
  o->text[n] = 0;
}

void spx_dyprc_look(void)
{
  static uint64_t last;
  static content c;
  uint64_t now = spx_dyprc_now();
  if (d.order.source || now - last < LOOK_EVERY) return;
  last = now;
  if (has_mail()) {
    d.order.number = spx_dyprc_post.number;
    take(spx_dyprc_post.text, SPX_DYPRC_FROM_AGENT);
    atomic_store(&spx_dyprc_post.state, SPX_DYPRC_IDLE);
    return;
  }
  if (!is_new(&c)) {
    if (d.order.unanswered) write_back(); /* the former rank 0 has died on the way */
    return;
  }
  if (c.size == 0) return; /* is being written */
  if (c.size <= FILE_MAX && c.text[c.size - 1] != '\n' && c.age < UNFINISHED) return;
  memcpy(d.order.stamp, c.stamp, sizeof c.stamp);
  if (c.size > FILE_MAX) {
    take("", SPX_DYPRC_FROM_FILE);
    spx_dyprc_refuse("the command file has more than %d bytes", FILE_MAX);
  } else if ((size_t)c.size != strlen(c.text)) {
    take("", SPX_DYPRC_FROM_FILE);
    spx_dyprc_refuse("the command file is no text");
  } else
    take(behind_answer(c.text), SPX_DYPRC_FROM_FILE);
  if (!d.order.text[0] && !d.order.error[0]) d.order.source = 0; /* nothing but comments */
  d.order.unanswered = d.order.source != 0;
}

/* How long this process has been there, ns. */
static uint64_t own_age(void)
{
  char text[1024];
  unsigned long long ticks = 0;
  struct timespec now;
  FILE *f = fopen("/proc/self/stat", "re");
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f) fclose(f);
  text[n] = 0;
  const char *at = strrchr(text, ')'); /* the name before it may hold anything; starttime is the 20th word behind it */
  for (int i = 0; at && i < 20; i++) at = strchr(at + 1, ' ');
  clock_gettime(CLOCK_BOOTTIME, &now);
  if (!at || sscanf(at, "%llu", &ticks) != 1) return 0;
  uint64_t up = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
           began = ticks * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
  return up > began ? up - began : 0;
}

void spx_dyprc_pass_over(void)
{
  static content c;
  int fd = open(path(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  if (read_file(fd, &c) && c.age > own_age()) memcpy(d.order.stamp, c.stamp, sizeof c.stamp);
  close(fd);
}

/* ---- the end of commands --------------------------------------------------------------------------------------- */

void spx_dyprc_done(void)
{
  if (d.order.error[0]) fprintf(stderr, "ulfm_dyprc: %s\n", d.order.error);
  if (d.order.source == SPX_DYPRC_FROM_FILE) write_back();
  if (d.order.source == SPX_DYPRC_FROM_AGENT) report();
}
