/* replay_parts.h - what the files of replay_core.h have for each other: replay_log.c (which messages have come, the message log), replay_image.c (commits),
 * replay_core.c (all else, which calls both). Only these three may include it. */
#ifndef SPX_REPLAY_PARTS_H
#define SPX_REPLAY_PARTS_H
#include "replay_core.h"

/* In the place of a stream, in a message log: it is no message, but a note (spx_core_note), or says to whom one of this party's is given. */
#define NOTE  UINT32_MAX
#define GIVEN (UINT32_MAX - 1)

static inline uint64_t round8(uint64_t n) { return (n + 7) & ~7ull; }
static inline bool leaves(uint32_t stream) { return (stream & SPX_LEAVES) != 0; }
static inline spx_seen *seen_in(const spx_core *c, uint32_t stream)
{
  return &c->seen[leaves(stream)][stream & ~SPX_LEAVES];
}

/* The message has this number. */
static inline bool is_of(const spx_frame_head *h, const spx_frame_ack *a)
{
  return h->n == a->n && h->stream == a->stream && h->sub == a->sub && h->life == a->life;
}

/* replay_log.c */
spx_seen *spx_core_seen_of(spx_core *c, uint32_t stream, uint32_t life);
bool spx_core_is_seen(const spx_seen *s, uint64_t n, uint32_t sub);
bool spx_core_note_seen(spx_core *c, const spx_frame_head *h);
void spx_core_free_seen(spx_seen *s);
uint32_t spx_core_area_now(const spx_vault *v);
uint8_t *spx_core_bytes_at(const spx_vault *v, uint32_t area, uint64_t at);
bool spx_core_has_room(spx_core *c, uint32_t area, uint64_t at, uint64_t n);
void spx_core_log(spx_core *c, const spx_frame_head *head, const uint8_t *data);
spx_came *spx_core_new_came(const spx_frame_head *head, const uint8_t *data, bool copy);
bool spx_core_read_area(spx_core *c, uint32_t area, bool seen);
bool spx_core_again(const spx_core *c);
spx_kept *spx_core_find_kept(const spx_core *c, uint32_t first, const spx_frame_ack *id);
bool spx_core_note_given(spx_core *c, uint64_t n, uint32_t given);
uint32_t spx_core_noted(const spx_core *c, uint64_t n);
uint32_t spx_core_take_noted(spx_core *c, uint64_t n);
void spx_core_free_noted(spx_core *c);
/* replay_core.c */
void spx_core_append(spx_core *c, spx_kept *m);
void spx_core_answer(spx_core *c, uint32_t from, spx_frame_claim a);
#endif
