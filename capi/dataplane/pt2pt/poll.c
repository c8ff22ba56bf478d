/* poll.c - one poll for messages, as wait.c requests it (progress.h), over all layers that have
 * some. */
#include "dp.h"
#include "progress.h"

int spx_poll(bool all)
{
  int n = spx_rx_poll_all(all);
  if (SPX_UNLIKELY(spx_network != NULL)) n += spx_network->poll();
  if (SPX_UNLIKELY(spx_tx_waiting())) n += spx_tx_drain();
  if (SPX_UNLIKELY(spx_asked != NULL)) n += spx_get_impatient(false);
  if (spx_pollers) n += spx_run_pollers();
  if (SPX_UNLIKELY(spx_late_source != NULL)) n += spx_late_source();
  if (SPX_FAILED(__atomic_load_n(&spx_segment->death_seq, __ATOMIC_RELAXED) != spx_map.seen_deaths))
    n += spx_on_deaths();
  if (n) spx_happened(n);
  return n;
}

static int before_sleep(void)
{
  return SPX_UNLIKELY(spx_asked != NULL) ? spx_get_impatient(true) : 0;
}

const spx_progress_source spx_message_source = {.poll = spx_poll,
                                                .settle = spx_rx_settle,
                                                .rest = spx_unex_rest,
                                                .before_sleep = before_sleep,
                                                .wants_room = spx_tx_waiting};
