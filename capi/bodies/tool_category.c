/* tool_category.c - categories: one for each area that a setting, a performance variable or an event belongs to, and "spx", which
 * has all of them. MPI-5.0, 16.3.9. */
#include <string.h>
#include "tool.h"

#define MAX 32
static const char *areas[MAX]; /* 0: the root */
static int known;

static void note(const char *area)
{
  for (int i = 1; i < known; i++)
    if (strcmp(areas[i], area) == 0) return;
  if (known < MAX) areas[known++] = area;
}

/* The number of categories; finds them the first time. */
static int number(void)
{
  if (known) return known;
  const spx_tool_entry *e;
  areas[0] = "spx";
  known = 1;
  for (int i = 0; (e = spx_tool_pvar(i)); i++) note(e->area);
  for (int i = 0; (e = spx_tool_event(i)); i++) note(e->area);
  for (int i = 0; i < (int)SPX_SETTINGS; i++) note(spx_setting_table[i].area);
  return known;
}

static const char *describe(const char *area)
{
  static const char *const text[][2] = {
      {"spx", "everything that libspx has"},
      {"messages", "messages and bytes sent and received"},
      {"matching", "receives and messages that wait for each other"},
      {"transfer", "the ways that messages take"},
      {"waiting", "what a process does while it waits"},
      {"failures", "deaths of processes"},
      {"engine", "what is done outside of the data plane"},
      {"point-to-point", "limits between the ways that messages take"},
      {"collectives", "algorithms of collective operations"},
      {"memory", "kinds of memory"},
      {"network", "processes that share no memory"},
      {"processes", "processes that are spawned and connected"},
      {"diagnosis", "for finding out what goes wrong"},
  };
  for (unsigned i = 0; i < sizeof text / sizeof *text; i++)
    if (strcmp(text[i][0], area) == 0) return text[i][1];
  return "settings that belong together";
}

static const char *cvar_area(int i) { return i < (int)SPX_SETTINGS ? spx_setting_table[i].area : NULL; }
static const char *pvar_area(int i)
{
  const spx_tool_entry *e = spx_tool_pvar(i);
  return e ? e->area : NULL;
}
static const char *event_area(int i)
{
  const spx_tool_entry *e = spx_tool_event(i);
  return e ? e->area : NULL;
}

/* How many things are in category cat; the indices of the first len of them. */
static int members(int cat, const char *(*area_of)(int), int len, int *indices)
{
  int n = 0;
  const char *area;
  for (int i = 0; (area = area_of(i)); i++) {
    if (strcmp(area, areas[cat]) != 0) continue;
    if (n < len) indices[n] = i;
    n++;
  }
  return n;
}

static int list(int cat, const char *(*area_of)(int), int len, int *indices)
{
  SPX_TOOL_ENTER;
  if (cat < 0 || cat >= number()) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  if (len < 0 || (len > 0 && !indices)) return spx_tool_leave(MPI_T_ERR_INVALID);
  members(cat, area_of, len, indices);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_category_get_num(int *num_cat)
{
  SPX_TOOL_ENTER;
  if (!num_cat) return spx_tool_leave(MPI_T_ERR_INVALID);
  *num_cat = number();
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
                              int *num_pvars, int *num_categories)
{
  SPX_TOOL_ENTER;
  if (cat_index < 0 || cat_index >= number()) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  spx_tool_string(areas[cat_index], name, name_len);
  spx_tool_string(describe(areas[cat_index]), desc, desc_len);
  spx_tool_int(num_cvars, members(cat_index, cvar_area, 0, NULL));
  spx_tool_int(num_pvars, members(cat_index, pvar_area, 0, NULL));
  spx_tool_int(num_categories, cat_index == 0 ? number() - 1 : 0);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_category_get_num_events(int cat_index, int *num_events)
{
  SPX_TOOL_ENTER;
  if (cat_index < 0 || cat_index >= number()) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  spx_tool_int(num_events, members(cat_index, event_area, 0, NULL));
  return spx_tool_leave(num_events ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int spx_c_T_category_get_index(const char *name, int *cat_index)
{
  SPX_TOOL_ENTER;
  if (!name || !cat_index) return spx_tool_leave(MPI_T_ERR_INVALID);
  for (int i = 0; i < number(); i++)
    if (strcmp(areas[i], name) == 0) {
      *cat_index = i;
      return spx_tool_leave(MPI_SUCCESS);
    }
  return spx_tool_leave(MPI_T_ERR_INVALID_NAME);
}

int spx_c_T_category_get_cvars(int cat_index, int len, int indices[])
{
  return list(cat_index, cvar_area, len, indices);
}
int spx_c_T_category_get_pvars(int cat_index, int len, int indices[])
{
  return list(cat_index, pvar_area, len, indices);
}
int spx_c_T_category_get_events(int cat_index, int len, int indices[])
{
  return list(cat_index, event_area, len, indices);
}

int spx_c_T_category_get_categories(int cat_index, int len, int indices[])
{
  SPX_TOOL_ENTER;
  if (cat_index < 0 || cat_index >= number()) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  if (len < 0 || (len > 0 && !indices)) return spx_tool_leave(MPI_T_ERR_INVALID);
  for (int i = 1; cat_index == 0 && i < number() && i <= len; i++) indices[i - 1] = i;
  return spx_tool_leave(MPI_SUCCESS);
}

/* Nothing is added while a program runs. */
int spx_c_T_category_changed(int *update_number)
{
  SPX_TOOL_ENTER;
  spx_tool_int(update_number, 0);
  return spx_tool_leave(update_number ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}
