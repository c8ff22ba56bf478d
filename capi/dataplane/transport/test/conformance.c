/* The contract of transport.h, over each transport. The table of transports, and the missing
 * features of each, are in suite_rows.h; a further one is a row there (docs/dataplane.md, "A new
 * transport").
 *
 *   conformance [ROW [TEST [STEP]]]   all, or those of a row, or one; of a loss that one step
 *   conformance list                  the tests of each row, and why the rest do not apply
 *   SPX_SUITE=N conformance           N times as much */
// layer: relay
// sanitize: plain address,undefined thread
// timeout: 480
// flags: -Wl,--wrap=send,--wrap=sendmsg,--wrap=recv,--wrap=recvmsg,--wrap=spx_ring_bell
#include "suite_rows.h"
#include "suite_tests.h"
#include "suite_loss.h"

static const test tests[] = {
    {.name = "reach",
     .participants = 2,
     .body = reach,
     .record = line_length,
     .wrap = true,
     .states = "one transport reaches a peer; open and listen set up both sides"},
    {.name = "lengths",
     .participants = 2,
     .body = all_lengths,
     .record = listed_length,
     .states = "records of every length up to the longest arrive whole"},
    {.name = "methods",
     .participants = 2,
     .body = methods,
     .record = by_method,
     .wrap = true,
     .states = "put, put_two, write and queued requests are one order"},
    {.name = "texts",
     .participants = 2,
     .body = texts,
     .text = growing_text,
     .states = "what is longer than a record goes in pieces"},
    {.name = "streams",
     .participants = 2,
     .body = streams,
     .stream = growing_stream,
     .wrap = true,
     .states = "long messages arrive whole; a buffer is its owner's when it is written"},
    {.name = "mixture",
     .participants = 2,
     .body = mixture,
     .wrap = true,
     .states = "streams, records and texts do not disturb each other"},
    {.name = "order",
     .participants = 2,
     .body = order,
     .wrap = true,
     .states = "records come once, in order, both ways at once"},
    {.name = "refused",
     .participants = 2,
     .body = refused,
     .wrap = true,
     .states = "a record that there is no memory for stays, and comes again"},
    {.name = "room",
     .participants = 3,
     .body = room,
     .record = big,
     .wrap = true,
     .states = "a pair's memory is bounded; a full pair holds no call and no other pair up"},
    {.name = "both-full",
     .participants = 2,
     .body = both_full,
     .record = big,
     .states = "two that send before they look do not block"},
    {.name = "many", .participants = 6, .body = many, .states = "many peers at once"},
    {.name = "few-rings",
     .participants = 6,
     .needs = HAS_RINGS,
     .rings = 2,
     .body = few_rings,
     .record = short_length,
     .wrap = true,
     .states = "rings go from pair to pair"},
    {.name = "sleeper",
     .participants = 2,
     .body = sleeper,
     .states = "a sleeping receiver is woken by a record"},
    {.name = "room-wakes",
     .participants = 2,
     .needs = HAS_LONG_SLEEP,
     .body = room_wakes,
     .record = big,
     .states = "a sleeping sender is woken by room"},
    {.name = "alone",
     .participants = 2,
     .body = alone,
     .record = line_length,
     .states = "what was sent arrives without a further call"},
    {.name = "lent",
     .participants = 2,
     .needs = HAS_ENGINE,
     .body = handed,
     .record = big,
     .states = "also what was not taken at once"},
    {.name = "together",
     .participants = 3,
     .body = together,
     .states = "gather and together end with all written"},
    {.name = "taken-back",
     .participants = 2,
     .body = taken_back,
     .record = big,
     .stream = long_stream,
     .states = "a send that is taken back is not read any more"},
    {.name = "credit",
     .participants = 2,
     .body = credit,
     .record = kilobyte,
     .wrap = true,
     .states = "credit comes back, exactly"},
    {.name = "leaves",
     .participants = 2,
     .body = leaves,
     .record = big,
     .stays_apart = true,
     .states = "nothing unsent: the sender may go; silent: all has come"},
    {.name = "sent-died",
     .participants = 2,
     .body = sent_then_died,
     .record = kilobyte,
     .dies = true,
     .states = "what a process had sent before it died arrives when that is noticed"},
    {.name = "dead-ring",
     .participants = 3,
     .needs = HAS_RINGS,
     .rings = 1,
     .body = ring_of_dead,
     .record = kilobyte,
     .dies = true,
     .states = "the buffer of a dead process's pair is free"},
    {.name = "leaves-all",
     .participants = 2,
     .body = leaves_all,
     .record = big,
     .text = growing_text,
     .stays_apart = true,
     .states = "detach gives back all, whatever is under way"},
    {.name = "threads",
     .participants = 3,
     .body = threads,
     .states = "several threads, under the lock"},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

static const char *only_row, *only_test;
static int cases, failed;

static bool wanted(const row *r, const test *t)
{
  return (!only_row || strcmp(only_row, r->name) == 0) &&
         (!only_test || strcmp(only_test, t->name) == 0);
}

static void try_case(const row *r, const test *t, bool wrap)
{
  uint64_t began = now_ns();
  bool good = run_case(r, t, wrap);
  cases++;
  printf("%-10s %-12s %5.0f ms%s\n", r->name, t->name, (double)(now_ns() - began) / 1e6,
         wrap ? " wrap" : "");
  if (good) return;
  failed++;
  fprintf(stderr, "%s fails (%s): again: conformance %s %s\n", case_name, t->states, r->name,
          t->name);
}

static void try_losses(const row *r, int which, uint32_t only)
{
  uint64_t began = now_ns();
  uint32_t n = lose_at_each(r, which, only);
  cases++;
  failed += n == 0;
  printf("%-10s %-12s %5.0f ms, %u steps\n", r->name, losses[which].t.name,
         (double)(now_ns() - began) / 1e6, n);
}

static void list_one(const row *r, const test *t)
{
  const char *why = why_not(r, t);
  printf("%-10s %-12s %s%s\n", r->name, t->name, why ? "not: " : t->states, why ? why : "");
}

static int list(void)
{
  for (int k = 0; k < ROWS; k++)
    for (int i = 0; i < TESTS + LOSSES; i++)
      list_one(&rows[k], i < TESTS ? &tests[i] : &losses[i - TESTS].t);
  return 0;
}

int main(int argc, char **argv)
{
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!rows_are_whole()) return 1;
  if (argc > 1 && strcmp(argv[1], "list") == 0) return list();
  only_row = argc > 1 ? argv[1] : NULL;
  only_test = argc > 2 ? argv[2] : NULL;
  board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  setenv("SPX_SPIN", "0", 0);
  setenv("SPX_YIELD", "0", 0);
  for (int k = 0; k < ROWS; k++)
    for (int i = 0; i < TESTS; i++) {
      if (!wanted(&rows[k], &tests[i]) || why_not(&rows[k], &tests[i])) continue;
      for (int wrap = 0; wrap <= tests[i].wrap; wrap++) try_case(&rows[k], &tests[i], wrap);
    }
  for (int k = 0; k < ROWS; k++)
    for (int i = 0; i < LOSSES; i++)
      if (wanted(&rows[k], &losses[i].t) && !why_not(&rows[k], &losses[i].t))
        try_losses(&rows[k], i, argc > 3 ? (uint32_t)atoi(argv[3]) : 0);
  return failed != 0 || cases == 0;
}
