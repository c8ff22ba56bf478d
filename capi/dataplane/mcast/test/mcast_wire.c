/* The wire form of a set, and the tree: the same as package mcast (Go) makes, for the cases in
 * zz_mcast_cases.h, and no nonsense is taken for a set, whatever byte is changed. */
// sanitize: address,undefined
#include "mcast.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint32_t procs, per_host, home, switches, width, n; /* switches 0: not known */
  spx_member members[41];
  const char *wire;
  struct {
    uint32_t lead, n;
  } branches[41];
} wire_case;
/* At host me of n: from which hosts each part comes, the two ways, and where the parts of 81921 + n
 * bytes begin. */
typedef struct {
  uint32_t n, me;
  struct {
    uint32_t ring, doubling, at;
  } part[14];
} part_case;
#include "zz_mcast_cases.h"

static uint32_t per_host, switches;
static uint32_t host_of(uint32_t proc) { return proc / per_host; }
static uint32_t switch_of(uint32_t host) { return host % switches; }

static void fail(int i, const char *what)
{
  fprintf(stderr, "case %d: %s\n", i, what);
  exit(1);
}

static uint32_t bytes_of(const char *hex, uint8_t *to)
{
  uint32_t n = 0;
  unsigned v;
  for (; sscanf(hex, "%2x", &v) == 1; hex += 2) to[n++] = (uint8_t)v;
  return n;
}

/* What is taken is in order, exists, and comes back as it is. */
static void nonsense(int i, const uint8_t *wire, uint32_t n, uint32_t procs)
{
  spx_member *m = malloc(procs * sizeof *m);
  uint8_t *copy = malloc(n + 1), *again = malloc((size_t)procs * sizeof(spx_mcast_item));
  for (uint32_t at = 0; at < n; at++)
    for (int bit = 0; bit < 8; bit++) {
      memcpy(copy, wire, n);
      copy[at] ^= (uint8_t)(1 << bit);
      int64_t k = spx_mcast_decode(copy, n, procs, m);
      for (int64_t j = 0; j < k; j++)
        if (m[j].proc >= procs || m[j].number == 0 || (j && m[j - 1].proc >= m[j].proc))
          fail(i, "nonsense was taken");
      if (k < 0) continue;
      uint32_t len = spx_mcast_encode(again, m, (uint32_t)k);
      spx_member *back = malloc(procs * sizeof *back);
      if (spx_mcast_decode(again, len, procs, back) != k || memcmp(back, m, (size_t)k * sizeof *m))
        fail(i, "a set does not come back");
      free(back);
    }
  if (n && spx_mcast_decode(wire, n - 1, procs, m) >= 0) fail(i, "a cut form was taken");
  free(m);
  free(copy);
  free(again);
}

/* The halves of the members of other hosts: no host, and no switch if there are several, is in
 * both; they are even, and in order. */
static void halves(int i, const wire_case *c, spx_mcast_place *host)
{
  spx_member *m = malloc((c->n + 1) * sizeof *m);
  uint32_t n = 0, home = c->home, hosts[2] = {0};
  for (uint32_t k = 0; k < c->n; k++)
    if (host(c->members[k].proc) != home) m[n++] = c->members[k];
  uint32_t cut = n ? spx_mcast_halve(m, n, home, host, switches ? switch_of : NULL) : 0,
           switch_in[2] = {0};
  if (n && (cut == 0 || cut > n)) fail(i, "no half");
  for (uint32_t k = 0; k < n; k++) {
    bool second = k >= cut, again = false;
    for (uint32_t j = second ? cut : 0; j < k; j++)
      again = again || host(m[j].proc) == host(m[k].proc);
    hosts[second] += !again;
    if (switches) switch_in[second] |= 1u << switch_of(host(m[k].proc));
    if (k > (second ? cut : 0) + 1 && m[k - 1].proc >= m[k].proc) fail(i, "a half is not in order");
    for (uint32_t j = 0; second && j < cut; j++)
      if (host(m[j].proc) == host(m[k].proc)) fail(i, "a host is in both halves");
  }
  bool one_switch = (switch_in[0] | switch_in[1]) == (switch_in[0] & switch_in[1]);
  if (one_switch && hosts[0] + hosts[1] > 1 && (hosts[0] < hosts[1] || hosts[0] > hosts[1] + 1))
    fail(i, "uneven");
  if (!one_switch && hosts[1] && (switch_in[0] & switch_in[1]))
    fail(i, "a switch is in both halves");
  free(m);
}

/* The first member of each host, once, in order. */
static void leads(int i, const wire_case *c, spx_mcast_place *host)
{
  spx_member *m = malloc((c->n + 1) * sizeof *m);
  uint32_t k = spx_mcast_leads(c->members, c->n, host, m), n = 0;
  if (k != spx_mcast_hosts(m, k, host)) fail(i, "two leads of a host");
  for (uint32_t j = 0; j < c->n; j++) {
    bool again = false;
    for (uint32_t l = 0; l < j; l++)
      again = again || host(c->members[l].proc) == host(c->members[j].proc);
    uint32_t at = 0;
    while (at < k && m[at].proc != c->members[j].proc) at++;
    if (again != (at == k) || (!again && m[at].number != c->members[j].number))
      fail(i, "another lead");
    n += !again;
  }
  for (uint32_t j = 1; j < k; j++)
    if (m[j - 1].proc >= m[j].proc) fail(i, "leads are not in order");
  if (n != k) fail(i, "leads are missing");
  free(m);
}

static void shares(int i, const part_case *c)
{
  uint64_t bytes = 81921 + c->n;
  for (uint32_t k = 0; k < c->n; k++) {
    if (spx_mcast_part_from(false, c->me, k, c->n) != c->part[k].ring)
      fail(i, "a part comes another way round the ring");
    if (spx_mcast_part_from(true, c->me, k, c->n) != c->part[k].doubling)
      fail(i, "a part comes from another host");
    if (spx_mcast_cut(bytes, c->n, k) != c->part[k].at) fail(i, "parts are cut otherwise");
  }
  if (spx_mcast_cut(bytes, c->n, c->n) != bytes) fail(i, "the last part ends elsewhere");
}

static uint32_t in_turn(uint32_t proc) { return proc % 5; }

int main(void)
{
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    const wire_case *c = &cases[i];
    spx_member *m = malloc(c->procs * sizeof *m), *b;
    uint8_t *want = malloc(sizeof c->members * 2), *got = malloc(c->n * sizeof(spx_mcast_item) + 1);
    uint32_t bytes = bytes_of(c->wire, want), len;
    if (spx_mcast_encode(got, c->members, c->n) != bytes || memcmp(got, want, bytes))
      fail(i, "encoded otherwise");
    if (spx_mcast_decode(want, bytes, c->procs, m) != c->n ||
        memcmp(m, c->members, c->n * sizeof *m))
      fail(i, "decoded otherwise");
    per_host = c->per_host;
    switches = c->switches;
    spx_mcast_tree t =
        spx_mcast_tree_of(m, c->n, c->home, host_of, switches ? switch_of : NULL, c->width);
    int k = 0;
    for (; (b = spx_mcast_branch(&t, &len)); k++)
      if (b[0].proc != c->branches[k].lead || len != c->branches[k].n) fail(i, "another tree");
    if (c->branches[k].n) fail(i, "branches are missing");
    if (c->procs < 1000) nonsense(i, want, bytes, c->procs);
    halves(i, c, host_of);
    if (!switches) halves(i, c, in_turn);
    leads(i, c, host_of);
    leads(i, c, in_turn);
    free(m);
    free(want);
    free(got);
  }
  for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++) shares(i, &parts[i]);
  return 0;
}
