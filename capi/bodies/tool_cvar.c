/* tool_cvar.c - control variables: every setting of libspx is one, by the name of its environment variable. MPI-5.0, 16.3.6.
 * A choice and a switch are MPI_INT with an enumeration, numbers MPI_UNSIGNED_LONG_LONG, texts MPI_CHAR. */
#include <stdlib.h>
#include <string.h>
#include "tool.h"

typedef struct {
  spx_setting_id id;
} cvar;

static const char *const off_on[] = {"off", "on", NULL};
#define ENUM_BASE 0x60000000u /* handles of enumerations: this and the setting; the switches share the last one */

static int is_enum(const spx_setting *s) { return s->kind == SPX_SK_CHOICE || s->kind == SPX_SK_SWITCH; }

static MPI_Datatype type_of(const spx_setting *s)
{
  return s->kind == SPX_SK_TEXT ? MPI_CHAR : is_enum(s) ? MPI_INT : MPI_UNSIGNED_LONG_LONG;
}

int spx_c_T_cvar_get_num(int *num_cvar)
{
  SPX_TOOL_ENTER;
  spx_tool_int(num_cvar, SPX_SETTINGS);
  return spx_tool_leave(num_cvar ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int spx_c_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
                          MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
  SPX_TOOL_ENTER;
  if (cvar_index < 0 || cvar_index >= (int)SPX_SETTINGS) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  const spx_setting *s = &spx_setting_table[cvar_index];
  spx_tool_string(s->name, name, name_len);
  spx_tool_string(s->description, desc, desc_len);
  spx_tool_int(verbosity, s->level);
  if (datatype) *datatype = type_of(s);
  if (enumtype) *enumtype = is_enum(s) ? spx_tool_enum_of((spx_setting_id)cvar_index) : MPI_T_ENUM_NULL;
  spx_tool_int(bind, MPI_T_BIND_NO_OBJECT);
  spx_tool_int(scope, s->scope);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_cvar_get_index(const char *name, int *cvar_index)
{
  SPX_TOOL_ENTER;
  if (!name || !cvar_index) return spx_tool_leave(MPI_T_ERR_INVALID);
  spx_setting_id id = spx_setting_find(name);
  if (id == SPX_SETTINGS) return spx_tool_leave(MPI_T_ERR_INVALID_NAME);
  *cvar_index = (int)id;
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
  (void)obj_handle; /* none is bound to an object */
  SPX_TOOL_ENTER;
  if (cvar_index < 0 || cvar_index >= (int)SPX_SETTINGS) return spx_tool_leave(MPI_T_ERR_INVALID_INDEX);
  if (!handle || !count) return spx_tool_leave(MPI_T_ERR_INVALID);
  cvar *v = malloc(sizeof *v);
  if (!v) return spx_tool_leave(MPI_T_ERR_MEMORY);
  v->id = (spx_setting_id)cvar_index;
  if (!(*handle = spx_tool_handle(SPX_TH_CVAR, v))) {
    free(v);
    return spx_tool_leave(MPI_T_ERR_OUT_OF_HANDLES);
  }
  *count = spx_setting_table[v->id].kind == SPX_SK_TEXT ? SPX_SETTING_TEXT_MAX : 1;
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
  SPX_TOOL_ENTER;
  cvar *v = handle ? spx_tool_find(SPX_TH_CVAR, *handle) : NULL;
  if (!v) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  spx_tool_forget(SPX_TH_CVAR, *handle);
  *handle = MPI_T_CVAR_HANDLE_NULL;
  free(v);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
  SPX_TOOL_ENTER;
  cvar *v = spx_tool_find(SPX_TH_CVAR, handle);
  if (!v) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  if (!buf) return spx_tool_leave(MPI_T_ERR_INVALID);
  const spx_setting *s = &spx_setting_table[v->id];
  if (s->kind == SPX_SK_TEXT) {
    int len = SPX_SETTING_TEXT_MAX;
    spx_tool_string(spx_setting_text(v->id), buf, &len);
  } else if (is_enum(s))
    *(int *)buf = (int)spx_setting_value(v->id);
  else
    *(unsigned long long *)buf = spx_setting_value(v->id);
  return spx_tool_leave(MPI_SUCCESS);
}

static int write_value(spx_setting_id id, const void *buf)
{
  const spx_setting *s = &spx_setting_table[id];
  spx_write_result r;
  if (s->kind == SPX_SK_TEXT)
    r = memchr(buf, 0, SPX_SETTING_TEXT_MAX) ? spx_setting_write_text(id, buf) : SPX_NO_VALUE;
  else if (is_enum(s))
    r = *(const int *)buf < 0 ? SPX_NO_VALUE : spx_setting_write(id, (uint64_t) * (const int *)buf);
  else
    r = spx_setting_write(id, *(const unsigned long long *)buf);
  switch (r) {
  case SPX_WRITTEN: return MPI_SUCCESS;
  case SPX_NOT_NOW: return MPI_T_ERR_CVAR_SET_NOT_NOW;
  case SPX_NEVER: return MPI_T_ERR_CVAR_SET_NEVER;
  default: return MPI_T_ERR_INVALID;
  }
}

int spx_c_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
  SPX_TOOL_ENTER;
  cvar *v = spx_tool_find(SPX_TH_CVAR, handle);
  if (!v) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  if (!buf) return spx_tool_leave(MPI_T_ERR_INVALID);
  return spx_tool_leave(write_value(v->id, buf));
}

/* ---- enumerations ---------------------------------------------------------------------------------------------- */

MPI_T_enum spx_tool_enum_of(spx_setting_id id)
{
  uintptr_t i = spx_setting_table[id].kind == SPX_SK_SWITCH ? SPX_SETTINGS : id;
  return (MPI_T_enum)(ENUM_BASE + i);
}

/* The names of the items, and of the enumeration; NULL: it is none. */
static const char *const *items_of(MPI_T_enum e, const char **name)
{
  uintptr_t i = (uintptr_t)e - ENUM_BASE;
  if (i == SPX_SETTINGS) {
    *name = "switch";
    return off_on;
  }
  if (i > SPX_SETTINGS || spx_setting_table[i].kind != SPX_SK_CHOICE) return NULL;
  *name = spx_setting_table[i].name;
  return spx_setting_table[i].choices;
}

static int number_of(const char *const *items)
{
  int n = 0;
  while (items[n]) n++;
  return n;
}

int spx_c_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
  SPX_TOOL_ENTER;
  const char *own;
  const char *const *items = items_of(enumtype, &own);
  if (!items) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  spx_tool_int(num, number_of(items));
  spx_tool_string(own, name, name_len);
  return spx_tool_leave(MPI_SUCCESS);
}

int spx_c_T_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
  SPX_TOOL_ENTER;
  const char *own;
  const char *const *items = items_of(enumtype, &own);
  if (!items) return spx_tool_leave(MPI_T_ERR_INVALID_HANDLE);
  if (indx < 0 || indx >= number_of(items)) return spx_tool_leave(MPI_T_ERR_INVALID_ITEM);
  spx_tool_int(value, indx);
  spx_tool_string(items[indx], name, name_len);
  return spx_tool_leave(MPI_SUCCESS);
}
