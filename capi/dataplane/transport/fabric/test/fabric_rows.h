/* fabric_rows.h - the rows of the conformance suite in which pairs of tcp go over a fabric. */
#ifndef SPX_TEST_FABRIC_ROWS_H
#define SPX_TEST_FABRIC_ROWS_H
#include "fabric_start.h"

static uint32_t chosen_row;

/* Of all cases, by row: messages that came over the fabric. */
static _Atomic uint64_t *by_messages;

/* The provider's domain on the loopback interface; false: it is not there. */
static bool find_provider(const char *name)
{
  static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
  uint32_t version, n = 0;
  spx_fabric_row *list = NULL;
  if (spx_fabric_load(&version) || spx_fabric_list(&list, &n) != 0) return false;
  for (chosen_row = 0; chosen_row < n; chosen_row++) {
    const spx_fabric_row *r = &list[chosen_row];
    if (strcmp(r->provider, name) == 0 && memcmp(r->address, loopback, 16) == 0) break;
  }
  free(list);
  return chosen_row < n;
}

static void load_rxm(void) { CHECK(find_provider("tcp;ofi_rxm")); }
static void load_rxd(void) { CHECK(find_provider("udp;ofi_rxd")); }

static void open_end(bool sleeps)
{
  const char *call = "";
  int err = spx_fabric_open(chosen_row, processes, sleeps, &call);
  if (err) SAY("%s: %s", call, spx_fabric_text(err));
  CHECK(err == 0);
  spx_fabric_begin();
}
static void begin_rxm(void) { open_end(true); }
static void begin_rxd(void) { open_end(false); }

static void count_messages(void);

static const row rows[] = {
    {.name = "rxm",
     .by = &spx_tcp,
     .has = HAS_ENGINE | HAS_LONG_SLEEP,
     .flags = SPX_SEG_TCP,
     .longest = NET_LONGEST,
     .processes = as_many,
     .process = as_it_is,
     .host = one_host,
     .wired = each_with_each,
     .by_load = load_rxm,
     .by_begin = begin_rxm,
     .by_moves = spx_fabric_tick,
     .by_end = count_messages},
    {.name = "rxd",
     .by = &spx_tcp,
     .has = HAS_ENGINE,
     .flags = SPX_SEG_TCP,
     .longest = NET_LONGEST,
     .processes = as_many,
     .process = as_it_is,
     .host = one_host,
     .wired = each_with_each,
     .by_load = load_rxd,
     .by_begin = begin_rxd,
     .by_moves = spx_fabric_tick,
     .by_end = count_messages},
};

static void count_messages(void)
{
  atomic_fetch_add(&by_messages[tried - rows], spx_stat.fabric_received);
}

static const struct {
  const char *row;
  uint32_t lacks;
  const char *why;
} lacks[] = {
    {"rxm", HAS_RINGS, "as tcp: each connection has its buffer from the start"},
    {"rxm", HAS_SOCKETS,
     "steps are system calls of connections, and a fabric makes its own: tests/fabric kills, "
     "closes "
     "and cuts"},
    {"rxm", HAS_RELAYS, "a pair has a connection of its own"},
    {"rxd", HAS_RINGS, "as rxm"},
    {"rxd", HAS_SOCKETS, "as rxm"},
    {"rxd", HAS_RELAYS, "as rxm"},
    {"rxd", HAS_LONG_SLEEP, "the provider has no descriptor to sleep on: a sleeper looks each ms"},
};
#endif
