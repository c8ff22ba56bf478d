/* suite_leave.h - what the contract (transport.h) promises of a process that leaves or dies: what
 * it has sent before has gone, and comes. */
#ifndef SPX_TEST_SUITE_LEAVE_H
#define SPX_TEST_SUITE_LEAVE_H

/* ---- has all gone, and has all come ---- */

/* When nothing is unsent the sender may end at once, and all comes. The receiver knows when the
 * pair is silent. */
static void leaves(void)
{
  uint32_t n = rounds(300);
  if (me == 0) {
    for (uint32_t k = 0; k < n; k++) say(1);
    at_stage(1);
    UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0); /* of memory: all is in it */
    one_more(&board->done);
    at_stage(2);
    _exit(0);
  }
  AWAIT_STAGE(0, 1); /* the sender's buffers are full */
  if (tried->has & HAS_SOCKETS)
    UNTIL(spx_net_silent(process_of(0)));
  else
    UNTIL(with[0].heard == n);
  CHECK(with[0].heard == n && spx_stat.net_refused == 0);
}

/* What a process had sent before it died arrives when its death is noticed: all of it, though
 * nothing was looked for before. */
static void sent_then_died(void)
{
  enum { SENT = 30 };
  if (me == 0) {
    for (uint32_t k = 0; k < SENT; k++) say(1);
    UNTIL(!spx_tx_waiting() && spx_net_unsent() == 0);
    raise(SIGKILL);
  }
  if (tried->begin) { /* nothing is sent before it is acknowledged */
    UNTIL(with[0].life == 1);
    CHECK(heard_at_death[0] == SENT);
    return;
  }
  int noticed;
  do { /* its state comes first, then the word that is looked at */
    sched_yield();
    take_sockets(); /* as the engine's threads do, while the program makes no call */
  } while ((noticed = notice_deaths()) == 0);
  CHECK(noticed > 1 && with[0].heard == SENT);
  UNTIL(with[0].life == 1);
}

/* The ring to a process that has died, which it will never read, goes to another pair. */
static void ring_of_dead(void)
{
  if (me == 0) {
    AWAIT_STAGE(1, 1);
    raise(SIGKILL);
  }
  if (me == 1) {
    say(0);
    CHECK(spx_txs[process_of(0)].ring >= 0);
    at_stage(1);
    UNTIL(with[0].life == 1);
    say(2);
  } else
    UNTIL(with[1].heard == 1);
}

/* A process leaves its transports with all that there can be under way: records, texts and streams
 * that wait for room, a record that there is no memory for, a socket that was not taken yet, of a
 * peer that is met and of one that is not. */
static void leaves_all(void)
{
  uint32_t other = 1 - me;
  for (int i = 0; i < 3; i++) say(other);
  UNTIL(with[other].heard == 3 && !spx_tx_waiting());
  at_stage(1);
  UNTIL(atomic_load(&board->stage[other]) >= 1);
  for (uint32_t k = 0; k < NO_ROOM_MOST / 30000 && !spx_tx_waiting(); k++) say(other);
  for (int i = 0; i < 20; i++) say(other), say_text(other);
  say_stream(other);
  at_stage(2);
  AWAIT_STAGE(other, 2);
  if (me == 1) refusals = UINT32_MAX;
  if (me == 1)
    for (int i = 0; i < 3; i++) look();
  looks_for_sockets = false;
  if (tried->wired(spx_me, process_of(other), processes)) {
    uint32_t now = atomic_load(&board->life[process_of(other)]);
    for (uint32_t g = 1; g < SOCKETS; g++) {
      int *end = &the_ends[g][spx_me][process_of(other)];
      /* the last one is of a process that is to come */
      spx_net_adopt(*end, process_of(other), now + g - 1);
      *end = -1;
      if (g == 1 && me == 0) look();
    }
  }
  drop_traffic(other);
  check_left_nothing(true);
}
#endif
