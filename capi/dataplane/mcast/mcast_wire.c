/* mcast_wire.c - the encoding of a set that travels with a message, and the tree along which it
 * does: package mcast (Go) in C, on memory of the caller's. Pure: it refers to no process. */
#include "mcast.h"
#include <stdlib.h>
#include <string.h>

uint32_t spx_mcast_encode(void *to, const spx_member *members, uint32_t n)
{
  char *out = to;
  for (uint32_t i = 0; i < n;) {
    spx_mcast_item it = {.first = members[i].proc, .number = members[i].number, .count = 1};
    for (uint32_t last = it.first; ++i < n; last = members[i].proc, it.count++) {
      uint32_t gap = members[i].proc - last;
      if (members[i].number != it.number || it.count == UINT16_MAX || gap > UINT16_MAX) break;
      if (it.count > 1 && gap != it.stride) break;
      it.stride = (uint16_t)gap;
    }
    memcpy(out, &it, sizeof it);
    out += sizeof it;
  }
  return (uint32_t)(out - (char *)to);
}

int64_t spx_mcast_decode(const void *from, uint32_t bytes, uint32_t procs, spx_member *to)
{
  const char *in = from, *end = in + bytes;
  uint64_t next = 0; /* the least value of the next member */
  int64_t n = 0;
  spx_mcast_item it;
  if (bytes % sizeof it) return -1;
  for (; in < end; in += sizeof it) {
    memcpy(&it, in, sizeof it);
    uint64_t last = it.first + (uint64_t)(it.count - 1) * it.stride;
    if (it.count == 0 || (it.count == 1) != (it.stride == 0) || it.first < next || it.number == 0 ||
        last >= procs)
      return -1;
    for (uint32_t k = 0; k < it.count; k++)
      to[n++] = (spx_member){it.first + k * it.stride, it.number};
    next = last + 1;
  }
  return n;
}

static void reverse(spx_member *m, uint32_t n)
{
  for (uint32_t i = 0, j = n; i + 1 < j; i++) {
    spx_member x = m[--j];
    m[j] = m[i];
    m[i] = x;
  }
}

static spx_mcast_place *sort_host, *sort_sw; /* for qsort: the lock is held */
static uint32_t sort_home;

static int by_number(const void *a, const void *b)
{
  uint32_t x = ((const spx_member *)a)->proc, y = ((const spx_member *)b)->proc;
  return (x > y) - (x < y);
}

/* 0: this host, 1: this switch, then the other switches. */
static uint64_t place(uint32_t proc)
{
  uint32_t h = sort_host(proc);
  if (h == sort_home) return 0;
  return sort_sw(h) == sort_sw(sort_home) ? 1 : 2 + (uint64_t)sort_sw(h);
}

static int by_place(const void *a, const void *b)
{
  uint64_t x = place(((const spx_member *)a)->proc), y = place(((const spx_member *)b)->proc);
  return x != y ? (x > y) - (x < y) : by_number(a, b);
}

static spx_mcast_tree by_switch(spx_mcast_tree t, uint32_t home)
{
  sort_host = t.host;
  sort_sw = t.sw;
  sort_home = home;
  qsort(t.rest, t.n, sizeof *t.rest, by_place);
  while (t.mine < t.n && place(t.rest[t.mine].proc) == 0) t.mine++;
  for (t.near = t.mine; t.near < t.n && place(t.rest[t.near].proc) == 1;) t.near++;
  return t;
}

spx_mcast_tree spx_mcast_tree_of(spx_member *rest, uint32_t n, uint32_t home, spx_mcast_place *host,
                                 spx_mcast_place *sw, uint32_t width)
{
  uint32_t from = 0, to;
  if (sw) return by_switch((spx_mcast_tree){rest, n, 0, 0, host, sw, width}, home);
  while (from < n && host(rest[from].proc) != home) from++;
  for (to = from; to < n && host(rest[to].proc) == home;) to++;
  if (from > 0 && to > from) { /* the two parts change places */
    reverse(rest, from);
    reverse(rest + from, to - from);
    reverse(rest, to);
  }
  return (spx_mcast_tree){rest, n, to - from, n, host, NULL, width};
}

/* The host of a member, or its switch. */
static uint32_t group_of(const spx_mcast_tree *t, spx_member m, bool far)
{
  uint32_t h = t->host(m.proc);
  return far ? t->sw(h) : h;
}

/* Where the upper half of the hosts, or switches, of the n members begins. */
static uint32_t upper(const spx_mcast_tree *t, const spx_member *m, uint32_t n, bool far)
{
  uint32_t groups = 0, at = 0;
  for (uint32_t i = 0; i < n; i++)
    groups += i == 0 || group_of(t, m[i], far) != group_of(t, m[i - 1], far);
  for (uint32_t k = groups / 2; k > 0; k--) do
      at++;
    while (group_of(t, m[at], far) == group_of(t, m[at - 1], far));
  return at;
}

spx_member *spx_mcast_branch(spx_mcast_tree *t, uint32_t *n)
{
  uint32_t at;
  if (t->n == 0) return NULL;
  if (t->n > t->near) {
    at = t->near + upper(t, t->rest + t->near, t->n - t->near, true);
    qsort(t->rest + at, t->n - at, sizeof *t->rest, by_number);
  } else if (t->n > t->mine)
    at = t->mine + upper(t, t->rest + t->mine, t->n - t->mine, false);
  else {
    at = t->mine = t->width ? t->n - (t->n + t->width - 1) / t->width : t->n / 2;
    if (t->width) t->width--;
  }
  *n = t->n - at;
  t->n = at;
  return t->rest + at;
}

spx_member *spx_mcast_next_host(spx_mcast_tree *t, uint32_t home, uint32_t *n)
{
  for (uint32_t i = t->mine; i < t->n; i++) { /* ranks may be dealt out to the hosts in turn */
    spx_member m = t->rest[i];
    if (t->host(m.proc) != home) continue;
    memmove(t->rest + t->mine + 1, t->rest + t->mine, (i - t->mine) * sizeof m);
    t->rest[t->mine++] = m;
  }
  spx_member *first = t->rest + t->mine;
  if (t->n == t->mine) return NULL;
  *n = t->n - t->mine;
  t->n = t->near = t->mine;
  qsort(first + 1, *n - 1, sizeof *first, by_number);
  return first;
}

static int by_host(const void *a, const void *b)
{
  const spx_member *x = a, *y = b;
  uint64_t p = sort_sw ? place(x->proc) : 0, q = sort_sw ? place(y->proc) : 0;
  if (p != q) return (p > q) - (p < q);
  uint32_t h = sort_host(x->proc), i = sort_host(y->proc);
  return h != i ? (h > i) - (h < i) : by_number(a, b);
}

uint32_t spx_mcast_hosts(const spx_member *m, uint32_t n, spx_mcast_place *host)
{
  uint32_t hosts = 0;
  for (uint32_t i = 0; i < n; i++) hosts += i == 0 || host(m[i].proc) != host(m[i - 1].proc);
  return hosts;
}

uint32_t spx_mcast_leads(const spx_member *m, uint32_t n, spx_mcast_place *host, spx_member *to)
{
  uint32_t k = 0;
  memcpy(to, m, n * sizeof *to);
  sort_host = host;
  sort_sw = NULL;
  if (n) qsort(to, n, sizeof *to, by_host);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || host(to[i].proc) != host(to[k - 1].proc)) to[k++] = to[i];
  if (k) qsort(to, k, sizeof *to, by_number);
  return k;
}

uint64_t spx_mcast_cut(uint64_t bytes, uint32_t n, uint32_t i)
{
  enum { LINE = 64 };
  return i < n ? bytes / LINE * i / n * LINE : bytes;
}

uint32_t spx_mcast_part_from(bool doubling, uint32_t me, uint32_t i, uint32_t n)
{
  uint32_t ahead = i < me ? i + n - me : i - me, step = 1;
  if (ahead == 0) return me;
  if (!doubling) return me ? me - 1 : n - 1;
  while (step <= ahead / 2) step *= 2;
  return step < n - me ? me + step : step - (n - me);
}

uint32_t spx_mcast_halve(spx_member *m, uint32_t n, uint32_t home, spx_mcast_place *host,
                         spx_mcast_place *sw)
{
  sort_host = host;
  sort_sw = sw;
  sort_home = home;
  qsort(m, n, sizeof *m, by_host);
  uint32_t hosts = spx_mcast_hosts(m, n, host), half = (hosts + 1) / 2, seen = 1, cut = n,
           off = UINT32_MAX;
  bool border = false;
  for (uint32_t i = 1; i < n; i++) {
    if (host(m[i].proc) == host(m[i - 1].proc)) continue;
    bool at_border = sw && place(m[i].proc) != place(m[i - 1].proc);
    uint32_t d = seen > half ? seen - half : half - seen;
    if (at_border > border || (at_border == border && d < off)) {
      cut = i;
      off = d;
      border = at_border;
    }
    seen++;
  }
  if (cut > 1) qsort(m + 1, cut - 1, sizeof *m, by_number);
  if (n > cut + 1) qsort(m + cut + 1, n - cut - 1, sizeof *m, by_number);
  return cut;
}
