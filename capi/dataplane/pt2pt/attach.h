/* attach.h - bringing up what sends and receives need: the layers base to pt2pt, with the
 * transports.
 *
 * Layer pt2pt. dataplane.c calls it, with what the layers above have registered; tests of lower
 * layers call it with nothing. Hooks that only those layers fill in (kinds.h, other_way.h,
 * sleeper.h) come first. */
#ifndef SPX_ATTACH_H
#define SPX_ATTACH_H
#include "fail.h"
#include "kinds.h"

/* Maps and adopts the memory file memfd as its process me. failures: observers of deaths above
 * pt2pt, up to NULL; handlers: of records, by kind. Returns 0 or an errno, and leaves nothing
 * behind then. */
SPX_HIDDEN int spx_messages_attach(int memfd, uint32_t me,
                                   const spx_failure_observer *const *failures,
                                   spx_record_handler *const *handlers);
SPX_HIDDEN void spx_messages_detach(void);
#endif
