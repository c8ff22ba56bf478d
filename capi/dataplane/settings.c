/* settings.c - where a setting's value comes from: MPI_T, the environment, or the preset. docs/settings.md. */
#include "settings.h"
#include <stdlib.h>
#include <string.h>
#include "dp.h"

spx_settings spx_set;

#include "zz_settings.inc"

/* What MPI_T has written; under the lock of the tool interface. */
static struct {
  uint8_t is;
  uint64_t number;
  char text[SPX_SETTING_TEXT_MAX];
} * told;

static bool is_told(spx_setting_id id) { return told && told[id].is; }

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
  const char *env = getenv(s->name);
  uint64_t v = preset;
  if (env && *env && !parse(env, &v))
    spx_fatal(MPI_ERR_ARG, "%s=%s: the value is to be a number%s", s->name, env,
              s->kind == SPX_SK_BYTES ? " of bytes, as 16384 or 16K" : "");
  return clamp(s, v, limit);
}

const char *spx_setting_text(spx_setting_id id)
{
  const spx_setting *s = &spx_setting_table[id];
  if (is_told(id))
    return s->kind == SPX_SK_CHOICE ? (told[id].number ? s->choices[told[id].number] : "") : told[id].text;
  const char *env = getenv(s->name);
  return env ? env : "";
}

static uint64_t choice_of(const spx_setting *s, const char *name)
{
  for (uint64_t i = 0; s->choices[i]; i++)
    if (strcmp(s->choices[i], name) == 0) return i;
  return 0;
}

uint64_t spx_setting_value(spx_setting_id id)
{
  const spx_setting *s = &spx_setting_table[id];
  if (s->kind == SPX_SK_CHOICE) return is_told(id) ? told[id].number : choice_of(s, spx_setting_text(id));
  if (!s->field || !spx_segment) return spx_setting_begin(id, s->preset, UINT64_MAX);
  return s->width == 4 ? __atomic_load_n((uint32_t *)s->field, __ATOMIC_RELAXED)
                       : __atomic_load_n((uint64_t *)s->field, __ATOMIC_RELAXED);
}

static spx_write_result may_write(const spx_setting *s)
{
  if (s->when == SPX_SW_LOAD) return SPX_NEVER;
  if (s->when == SPX_SW_START && spx_segment) return SPX_NOT_NOW;
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
  if (!s->field || !spx_segment) return r;
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
  return r;
}

spx_setting_id spx_setting_find(const char *name)
{
  unsigned i = 0;
  while (i < SPX_SETTINGS && strcmp(spx_setting_table[i].name, name) != 0) i++;
  return (spx_setting_id)i;
}
