/* replay_inside.h - what the files of replay_core.h share: replay_core.c (accepting messages),
 * replay_sending.c (keeping them), replay_log.c (the message log), replay_claims.c (claims of
 * receivers), replay_image.c (commits). */
#ifndef SPX_REPLAY_INSIDE_H
#define SPX_REPLAY_INSIDE_H
#include "replay_core.h"

/* In place of a stream, in a message log: the entry is no message, but a note (spx_core_note), or
 * the receiver that one of this participant's messages was given to. */
#define NOTE  UINT32_MAX
#define GIVEN (UINT32_MAX - 1)

spx_came *spx_core_in_new_came(const spx_frame_head *head, const uint8_t *data, bool copy);
uint32_t spx_core_in_reached_in(const spx_core *c, uint32_t area);
void spx_core_in_transmit(spx_core *c, spx_kept *m);
spx_seen *spx_core_in_seen_of(spx_core *c, uint32_t stream, uint32_t life);
bool spx_core_in_note_seen(spx_core *c, const spx_frame_head *h);
void spx_core_in_join(spx_passed **at, spx_passed *p);
void spx_core_in_take_out(spx_core *c, spx_passed *p);
void spx_core_in_let_go(spx_core *c, spx_passed *p);
bool spx_core_in_leaves(uint32_t stream);
bool spx_core_in_is_of(const spx_frame_head *h, const spx_frame_ack *a);
spx_passed *spx_core_in_find_passed(const spx_core *c, uint32_t token);
uint32_t *spx_core_in_went_to(spx_passed *p, uint32_t to);
void spx_core_in_release(spx_core *c, spx_kept *m, bool accepted);
void spx_core_in_go(spx_core *c, uint32_t to);
void spx_core_in_append(spx_core *c, spx_kept *m);
uint64_t spx_core_in_cost(const spx_kept *m);
void spx_core_in_note(spx_core *c, const spx_frame_head *head, const uint8_t *data);
bool spx_core_in_owe_claim(spx_core *c, uint32_t participant, const spx_frame_claim *claim);
uint64_t spx_core_in_round8(uint64_t n);
uint32_t spx_core_in_area_now(const spx_msglog *v);
uint8_t *spx_core_in_bytes_at(const spx_msglog *v, uint32_t area, uint64_t at);
bool spx_core_in_has_room(spx_core *c, uint32_t area, uint64_t at, uint64_t n);
bool spx_core_in_read_area(spx_core *c, uint32_t area, bool seen);
bool spx_core_in_again(const spx_core *c);
bool spx_core_in_prelude_over(const spx_core *c);
void spx_core_in_free_noted(spx_core *c);
void spx_core_in_drop(spx_core *c, const spx_passed *p);
void spx_core_in_claim_unknown(spx_core *c, uint32_t participant);
void spx_core_in_claim_replaced(spx_core *c, uint32_t participant);
bool spx_core_in_note_given(spx_core *c, uint64_t n, uint32_t given);
uint32_t spx_core_in_take_noted(spx_core *c, uint64_t n);
void spx_core_in_answer(spx_core *c, uint32_t from, spx_frame_claim a);
#endif
