/* suite_sleep.h - what the contract (transport.h) promises to a process that sleeps, or makes no
 * call: it is woken for what comes and for room, and what it has handed over goes on. */
#ifndef SPX_TEST_SUITE_SLEEP_H
#define SPX_TEST_SUITE_SLEEP_H

/* ---- bells ---- */

/* Sleeps until something happens, as a call that waits does. False: nothing has. */
static bool sleeps_until_woken(void)
{
  uint64_t end = now_ns() + PATIENCE_S * 1000000000ull;
  spx_wait_event(spx_ticket(), end);
  if (now_ns() >= end) show_state();
  return now_ns() < end;
}

/* Waits until a process is in a sleep that only others end. */
static void await_sleep(uint32_t participant, uint32_t *seen)
{
  CHECK(word_reaches(&board->deep[process_of(participant)], *seen + 1));
  *seen = atomic_load(&board->deep[process_of(participant)]);
}

/* A receiver that sleeps is woken by a record, of any length and by any way, whose sender makes no
 * further call. */
static void sleeper(void)
{
  uint32_t n = rounds(24), seen = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (me == 0) {
      while (with[1].heard == k) CHECK(sleeps_until_woken());
      CHECK(with[1].heard == k + 1);
      at_stage(k + 1);
    } else {
      await_sleep(0, &seen);
      say(0);
      WITHOUT_CALLS_UNTIL(atomic_load(&board->stage[0]) > k);
      /* a relayed pair's buffer has what is not acknowledged */
      UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
    }
  }
}

/* A sender that sleeps with something queued is woken when its receiver makes room. A kernel may
 * make some by itself: then the receiver need not wait for that sleep. */
static void room_wakes(void)
{
  uint32_t n = rounds(4), seen = 0, sent = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (me == 0) {
      const spx_tx *tx = ready(1); /* what spx_tx_waiting says may be over since the last look */
      while (!tx->pend) say(1), sent++;
      board->made[MOST - 1][0] = sent;
      at_stage(2 * k + 1);
      while (tx->pend) CHECK(sleeps_until_woken());
      at_stage(2 * k + 2);
      UNTIL(atomic_load(&board->stage[1]) > k);
    } else {
      AWAIT_STAGE(0, 2 * k + 1);
      uint64_t end = now_ns() + PATIENCE_S * 1000000000ull;
      while (atomic_load(&board->deep[process_of(0)]) == seen &&
             atomic_load(&board->stage[0]) == 2 * k + 1) {
        CHECK(now_ns() < end);
        sched_yield();
      }
      seen = atomic_load(&board->deep[process_of(0)]);
      UNTIL(with[0].heard == atomic_load(&board->made[MOST - 1][0]));
      at_stage(k + 1);
    }
  }
}

/* What the sender's call has sent arrives although it makes no further one. */
static void alone(void)
{
  enum { FIRST = 8, ALL = 48 }; /* the first ones open what the pair needs */
  if (me == 1) {
    for (uint32_t k = 0; k < FIRST; k++) say(0);
    UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
    for (uint32_t k = FIRST; k < ALL; k++) say(0);
    CHECK(!spx_tx_waiting());
    WITHOUT_CALLS_UNTIL(atomic_load(&board->stage[0]) == 1);
  } else {
    UNTIL(with[1].heard == ALL);
    at_stage(1);
  }
}

/* Also what a full socket has not taken: the engine's threads write it. */
static _Atomic bool engine_ends;
static void *engine(void *none)
{
  while (!atomic_load(&engine_ends)) {
    hear_engine();
    spx_net_carry();
    sched_yield();
  }
  return none;
}
static void handed(void)
{
  if (me == 1) {
    uint32_t n = 0;
    looks_for_sockets = false;
    say(0);
    UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
    while (!spx_tx_waiting() && n < NO_ROOM_MOST / 30000)
      say_by(0, PUT), n++; /* the last one waits, and is no one's but the pair's */
    uint32_t whole = n;    /* of those before the last */
    pthread_t thread;
    carries = true;
    CHECK(pthread_create(&thread, NULL, engine, NULL) == 0);
    at_stage(whole);
    AWAIT_STAGE(0, 1);
    atomic_store(&engine_ends, true);
    CHECK(pthread_join(thread, NULL) == 0);
    carries = false;
    UNTIL(!spx_tx_waiting());
  } else {
    CHECK(word_reaches(&board->stage[1], 1));
    UNTIL(with[1].heard == atomic_load(&board->stage[1]));
    at_stage(1);
    UNTIL(with[1].heard == atomic_load(&board->stage[1]) + 1);
  }
}
#endif
