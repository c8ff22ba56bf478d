/* settings.h - the settings of libspx: environment variables, which are control variables of MPI_T as well. The table is made
 * from api/settings.tsv; a new setting is a row there, and a member of spx_settings (dp.h) if the data plane reads it often. */
#ifndef SPX_SETTINGS_H
#define SPX_SETTINGS_H
#include <stdbool.h>
#include <stdint.h>
#include "spx.h"
#include "zz_settings.h"

enum { SPX_SK_COUNT = 1, SPX_SK_BYTES, SPX_SK_SWITCH, SPX_SK_TEXT, SPX_SK_CHOICE };          /* kind */
enum { SPX_SW_ANY = 1 /* at any time */, SPX_SW_START /* until MPI starts */, SPX_SW_LOAD }; /* when it may change */
typedef struct spx_setting {
  const char *name, *area, *description;
  uint8_t kind, when, width;
  int scope, level; /* MPI_T_SCOPE_*, MPI_T_VERBOSITY_* */
  uint64_t preset, min, max;
  bool automatic;             /* a number that may be "auto", which is 0 */
  const char *const *choices; /* of a choice, NULL at the end; 0 is "auto" */
  void *field;                /* where the value is while MPI runs: width bytes; NULL: read when it is needed */
} spx_setting;
SPX_HIDDEN extern const spx_setting spx_setting_table[SPX_SETTINGS];
#define SPX_SETTING_TEXT_MAX 256 /* bytes of a text that is written by MPI_T, with its 0 */

/* While a job's memory file is attached: do its ranks outnumber its processors? NULL: none is. segment.c sets it. */
SPX_HIDDEN extern bool (*spx_setting_crowded)(void);

/* The value that a number or switch begins with: what MPI_T has written, else the environment's, else preset; within its bounds,
 * and at most limit. No value at all is fatal. */
SPX_HIDDEN uint64_t spx_setting_begin(spx_setting_id id, uint64_t preset, uint64_t limit);
/* The value of a text or choice (its name): what MPI_T has written, else the environment's; "": none. */
SPX_HIDDEN const char *spx_setting_text(spx_setting_id id);
/* Ends the program with a message if the choice is none. */
SPX_HIDDEN void spx_setting_check(spx_setting_id id);
/* The value now of a number, switch or choice (its index). */
SPX_HIDDEN uint64_t spx_setting_value(spx_setting_id id);
typedef enum { SPX_WRITTEN, SPX_NOT_NOW, SPX_NEVER, SPX_NO_VALUE } spx_write_result;
/* What MPI_T_cvar_write does. */
SPX_HIDDEN spx_write_result spx_setting_write(spx_setting_id id, uint64_t value);
SPX_HIDDEN spx_write_result spx_setting_write_text(spx_setting_id id, const char *text);
/* So many texts have been written while MPI ran. */
SPX_HIDDEN uint32_t spx_setting_changes(void);
/* By name; SPX_SETTINGS: there is none. */
SPX_HIDDEN spx_setting_id spx_setting_find(const char *name);
#endif
