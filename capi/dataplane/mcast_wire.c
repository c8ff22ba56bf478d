/* mcast_wire.c - how a set travels with a message, and the tree along which it does: package mcast (Go) in C, on memory of the
 * caller's. Pure: it knows no process. */
#include "mcast.h"
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
  uint64_t next = 0; /* what the next member is at least */
  int64_t n = 0;
  spx_mcast_item it;
  if (bytes % sizeof it) return -1;
  for (; in < end; in += sizeof it) {
    memcpy(&it, in, sizeof it);
    uint64_t last = it.first + (uint64_t)(it.count - 1) * it.stride;
    if (it.count == 0 || (it.count == 1) != (it.stride == 0) || it.first < next || it.number == 0 || last >= procs)
      return -1;
    for (uint32_t k = 0; k < it.count; k++) to[n++] = (spx_member){it.first + k * it.stride, it.number};
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

spx_mcast_tree spx_mcast_tree_of(spx_member *rest, uint32_t n, uint32_t home, uint32_t (*host)(uint32_t),
                                 uint32_t width)
{
  uint32_t from = 0, to;
  while (from < n && host(rest[from].proc) != home) from++;
  for (to = from; to < n && host(rest[to].proc) == home;) to++;
  if (from > 0 && to > from) { /* the two parts change places */
    reverse(rest, from);
    reverse(rest + from, to - from);
    reverse(rest, to);
  }
  return (spx_mcast_tree){rest, n, to - from, host, width};
}

/* Where the upper half of the hosts of the n members begins. */
static uint32_t upper_hosts(const spx_mcast_tree *t, const spx_member *m, uint32_t n)
{
  uint32_t hosts = 0, at = 0;
  for (uint32_t i = 0; i < n; i++) hosts += i == 0 || t->host(m[i].proc) != t->host(m[i - 1].proc);
  for (uint32_t k = hosts / 2; k > 0; k--) do
      at++;
    while (t->host(m[at].proc) == t->host(m[at - 1].proc));
  return at;
}

spx_member *spx_mcast_branch(spx_mcast_tree *t, uint32_t *n)
{
  uint32_t at;
  if (t->n == 0) return NULL;
  if (t->n > t->mine)
    at = t->mine + upper_hosts(t, t->rest + t->mine, t->n - t->mine);
  else {
    at = t->mine = t->width ? t->n - (t->n + t->width - 1) / t->width : t->n / 2;
    if (t->width) t->width--;
  }
  *n = t->n - at;
  t->n = at;
  return t->rest + at;
}
