/* settings.c - where a setting's value comes from: MPI_T, the environment, the machine's table
 * (docs/tuning.md), or the preset. docs/settings.md. */
#define _GNU_SOURCE
#include "settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dp.h"

spx_settings spx_set;
bool (*spx_setting_crowded)(void);

#include "zz_settings.inc"

/* Values written through MPI_T; under the lock of the tool interface. */
static struct {
  uint8_t is;
  uint64_t number;
  char text[SPX_SETTING_TEXT_MAX];
} * told;

static uint32_t texts_written;

static bool is_told(spx_setting_id id) { return told && told[id].is; }

/* ---- the machine's table ---- */

#define TUNED_MAX 64
static struct {
  bool read;
  int n;
  struct {
    char *name, *value;
    char when; /* 'a': always; 'f', 'c': while ranks do not, or do, outnumber the processors */
  } row[TUNED_MAX];
} tuned; /* the string stays until the process ends */

/* The table's file: SPX_TUNING names it; else the user's, else the system's. NULL: there is none.
 * *sure: it is meant for this host. */
static FILE *open_table(char *path, size_t room, bool *sure)
{
  const char *named = secure_getenv("SPX_TUNING"), *home = secure_getenv("HOME");
  *sure = named && *named;
  if (*sure && strcmp(named, "none") == 0) return NULL;
  if (*sure) {
    snprintf(path, room, "%s", named);
    FILE *f = fopen(path, "re");
    if (!f)
      spx_fatal(MPI_ERR_ARG, "SPX_TUNING=%s: this file cannot be read; 'none' means no table",
                named);
    return f;
  }
  snprintf(path, room, "%s/.config/libspx/tuning", home ? home : "");
  FILE *f = home ? fopen(path, "re") : NULL;
  if (f) return f;
  snprintf(path, room, "/etc/libspx/tuning");
  return fopen(path, "re");
}

/* One line of the table, with at most four words; false: it is for another host, and so is all that
 * follows. */
static bool take_line(char *line, const char *path, int number, bool sure)
{
  char host[256] = "", *rest, *word[4], *end = strchr(line, '#');
  int n = 0;
  if (end) *end = 0;
  for (char *w = strtok_r(line, " \t\r\n", &rest); w && n < 4; w = strtok_r(NULL, " \t\r\n", &rest))
    word[n++] = w;
  if (n == 0) return true;
  if (n == 2 && strcmp(word[0], "host") == 0) {
    gethostname(host, sizeof host - 1);
    return sure || strcmp(word[1], "*") == 0 || strcmp(word[1], host) == 0;
  }
  if (n != 3 ||
      (strcmp(word[0], "always") && strcmp(word[0], "free") && strcmp(word[0], "crowded")))
    spx_fatal(MPI_ERR_ARG,
              "%s:%d: a line of the table is 'host NAME' or 'always|free|crowded VARIABLE VALUE' "
              "(SPX_TUNING=none: no table)",
              path, number);
  if (tuned.n == TUNED_MAX) return false;
  tuned.row[tuned.n].when = word[0][0];
  tuned.row[tuned.n].name = strdup(word[1]);
  tuned.row[tuned.n].value = strdup(word[2]);
  if (tuned.row[tuned.n].name && tuned.row[tuned.n].value) tuned.n++;
  return true;
}

static void read_table(void)
{
  static char path[4096];
  char line[512];
  bool sure;
  int number = 0;
  tuned.read = true;
  FILE *f = open_table(path, sizeof path, &sure);
  if (!f) return;
  while (fgets(line, sizeof line, f) && take_line(line, path, ++number, sure)) {}
  fclose(f);
}

static const char *in_environment(const spx_setting *s)
{
  const char *env = secure_getenv(s->name);
  return env || !s->was ? env : secure_getenv(s->was);
}

const char *spx_setting_was(spx_setting_id id)
{
  const spx_setting *s = &spx_setting_table[id];
  return s->was && !secure_getenv(s->name) && secure_getenv(s->was) ? s->was : NULL;
}

static bool is_name(const spx_setting *s, const char *name)
{
  return strcmp(name, s->name) == 0 || (s->was && strcmp(name, s->was) == 0);
}

/* The value in the environment, else in the table; NULL: neither has one. */
static const char *given(const spx_setting *s)
{
  const char *env = in_environment(s);
  if (env && *env) return env;
  if (!tuned.read) read_table();
  char now = spx_setting_crowded && spx_setting_crowded() ? 'c' : 'f';
  for (int i = 0; i < tuned.n; i++)
    if ((tuned.row[i].when == 'a' || tuned.row[i].when == now) && is_name(s, tuned.row[i].name))
      return tuned.row[i].value;
  return env;
}

spx_setting_source spx_setting_from(spx_setting_id id)
{
  const char *env = in_environment(&spx_setting_table[id]), *value = given(&spx_setting_table[id]);
  if (is_told(id)) return SPX_FROM_TOOL;
  return env && *env ? SPX_FROM_ENVIRONMENT : value && *value ? SPX_FROM_TABLE : SPX_FROM_NOTHING;
}

/* A number with K, M or G behind it. */
static bool parse(const char *s, uint64_t *v)
{
  char *end;
  if (*s < '0' || *s > '9') return false;
  *v = strtoull(s, &end, 10);
  const char *unit = *end ? strchr("KkMmGg", *end) : NULL;
  if (unit) {
    *v <<= 10 * (1 + (unit - "KkMmGg") / 2);
    end++;
  }
  return *end == 0;
}

static uint64_t clamp(const spx_setting *s, uint64_t v, uint64_t limit)
{
  uint64_t max = limit < s->max ? limit : s->max;
  return v < s->min ? s->min : v > max ? max : v;
}

uint64_t spx_setting_begin(spx_setting_id id, uint64_t preset, uint64_t limit)
{
  const spx_setting *s = &spx_setting_table[id];
  if (is_told(id)) return clamp(s, told[id].number, limit);
  const char *env = given(s);
  uint64_t v = preset;
  if (env && s->automatic && strcmp(env, "auto") == 0)
    v = 0;
  else if (env && *env && !parse(env, &v))
    spx_fatal(MPI_ERR_ARG, "%s=%s: the value is to be a number%s", s->name, env,
              s->automatic              ? ", or auto"
              : s->kind == SPX_SK_BYTES ? " of bytes, as 16384 or 16K"
                                        : "");
  return clamp(s, v, limit);
}

const char *spx_setting_text(spx_setting_id id)
{
  const spx_setting *s = &spx_setting_table[id];
  if (is_told(id))
    return s->kind == SPX_SK_CHOICE ? (told[id].number ? s->choices[told[id].number] : "")
                                    : told[id].text;
  const char *env = given(s);
  return env ? env : "";
}

static uint64_t choice_of(const spx_setting *s, const char *name)
{
  for (uint64_t i = 0; s->choices[i]; i++)
    if (strcmp(s->choices[i], name) == 0) return i;
  return 0;
}

void spx_setting_check(spx_setting_id id)
{
  const spx_setting *s = &spx_setting_table[id];
  const char *name = spx_setting_text(id);
  if (*name && strcmp(name, s->choices[0]) != 0 && choice_of(s, name) == 0)
    spx_fatal(MPI_ERR_ARG, "%s=%s: there is no such choice; docs/settings.md lists them", s->name,
              name);
}

uint64_t spx_setting_value(spx_setting_id id)
{
  const spx_setting *s = &spx_setting_table[id];
  if (s->kind == SPX_SK_CHOICE)
    return is_told(id) ? told[id].number : choice_of(s, spx_setting_text(id));
  if (!s->field || !spx_setting_crowded) return spx_setting_begin(id, s->preset, UINT64_MAX);
  return s->width == 4 ? __atomic_load_n((uint32_t *)s->field, __ATOMIC_RELAXED)
                       : __atomic_load_n((uint64_t *)s->field, __ATOMIC_RELAXED);
}

static spx_write_result may_write(const spx_setting *s)
{
  if (s->when == SPX_SW_LOAD) return SPX_NEVER;
  if (s->when == SPX_SW_START && spx_setting_crowded) return SPX_NOT_NOW;
  if (!told && !(told = calloc(SPX_SETTINGS, sizeof *told))) return SPX_NOT_NOW;
  return SPX_WRITTEN;
}

spx_write_result spx_setting_write(spx_setting_id id, uint64_t value)
{
  const spx_setting *s = &spx_setting_table[id];
  if (value < s->min || value > s->max) return SPX_NO_VALUE;
  spx_write_result r = may_write(s);
  if (r != SPX_WRITTEN) return r;
  told[id].number = value;
  told[id].is = 1;
  if (!s->field || !spx_setting_crowded) return r;
  if (s->width == 4)
    __atomic_store_n((uint32_t *)s->field, (uint32_t)value, __ATOMIC_RELAXED);
  else
    __atomic_store_n((uint64_t *)s->field, value, __ATOMIC_RELAXED);
  return r;
}

spx_write_result spx_setting_write_text(spx_setting_id id, const char *text)
{
  if (strlen(text) >= SPX_SETTING_TEXT_MAX) return SPX_NO_VALUE;
  spx_write_result r = may_write(&spx_setting_table[id]);
  if (r != SPX_WRITTEN) return r;
  strcpy(told[id].text, text);
  told[id].is = 1;
  __atomic_fetch_add(&texts_written, 1, __ATOMIC_RELEASE);
  return r;
}

uint32_t spx_setting_changes(void) { return __atomic_load_n(&texts_written, __ATOMIC_ACQUIRE); }

spx_setting_id spx_setting_find(const char *name)
{
  unsigned i = 0;
  while (i < SPX_SETTINGS && strcmp(spx_setting_table[i].name, name) != 0) i++;
  return (spx_setting_id)i;
}
