/* Routines that are more than a conversion of arguments. Compiled twice, as zz_f77.c is. */
#include "f77.h"
#include "callbacks.h"

#include <string.h>

void F77(init)(MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  *ierror = CALL(Init)(NULL, NULL);
}
SAME_IN_F08(init)

void F77(init_thread)(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  *ierror = CALL(Init_thread)(NULL, NULL, *required, provided);
}
SAME_IN_F08(init_thread)

void F77(pcontrol)(MPI_Fint *level) { CALL(Pcontrol)(*level); }
SAME_IN_F08(pcontrol)

void F77(info_create_env)(MPI_Fint *info, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  MPI_Info c_info = MPI_INFO_NULL;
  if ((*ierror = CALL(Info_create_env)(0, NULL, &c_info)) == MPI_SUCCESS) *info = MPI_Info_toint(c_info);
}
SAME_IN_F08(info_create_env)

/* Info values: Fortran's length does not count the zero of C. */
void F77(info_get)(MPI_Fint *info, char *key, MPI_Fint *valuelen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
                   size_t l_key, size_t l_value)
{
  OPTIONAL_IERROR;
  char *c_key = spxf_string(key, l_key);
  char c_value[MPI_MAX_INFO_VAL + 1] = "";
  int c_flag = 0, most = *valuelen < MPI_MAX_INFO_VAL ? *valuelen : MPI_MAX_INFO_VAL;
  *ierror = CALL(Info_get)(MPI_Info_fromint(*info), c_key, most, c_value, &c_flag);
  if (*ierror == MPI_SUCCESS) {
    *flag = c_flag != 0;
    if (c_flag) spxf_fill(value, l_value < (size_t)most ? l_value : (size_t)most, c_value);
    if (c_flag && l_value > (size_t)most) memset(value + most, ' ', l_value - (size_t)most);
  }
  free(c_key);
}
SAME_IN_F08(info_get)

void F77(info_get_string)(MPI_Fint *info, char *key, MPI_Fint *buflen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
                          size_t l_key, size_t l_value)
{
  OPTIONAL_IERROR;
  char *c_key = spxf_string(key, l_key);
  int c_flag = 0, room = *buflen > 0 ? *buflen + 1 : 0;
  char *c_value = malloc((size_t)room + 1);
  *c_value = 0;
  *ierror = CALL(Info_get_string)(MPI_Info_fromint(*info), c_key, &room, c_value, &c_flag);
  if (*ierror == MPI_SUCCESS) {
    *flag = c_flag != 0;
    if (c_flag && *buflen > 0) spxf_fill(value, l_value, c_value);
    if (c_flag) *buflen = room > 0 ? room - 1 : 0;
  }
  free(c_value);
  free(c_key);
}
SAME_IN_F08(info_get_string)

void F77(session_get_nth_pset)(MPI_Fint *session, MPI_Fint *info, MPI_Fint *n, MPI_Fint *pset_len, char *pset_name,
                               MPI_Fint *ierror, size_t l_name)
{
  OPTIONAL_IERROR;
  int room = *pset_len > 0 ? *pset_len + 1 : 0;
  char *name = malloc((size_t)room + 1);
  *name = 0;
  *ierror = CALL(Session_get_nth_pset)(MPI_Session_fromint(*session), MPI_Info_fromint(*info), *n, &room, name);
  if (*ierror == MPI_SUCCESS) {
    if (*pset_len > 0) spxf_fill(pset_name, l_name, name);
    *pset_len = room > 0 ? room - 1 : 0;
  }
  free(name);
}
SAME_IN_F08(session_get_nth_pset)

/* The compiler cannot see that nothing is done (MPI-5.0, 20.1.8). */
void F77(f_sync_reg)(void *buf) { (void)buf; }

/* A status has the same numbers in both forms. */
void F77(status_f082f)(const MPI_Fint *f08_status, MPI_Fint *f_status, MPI_Fint *ierror)
{
  memcpy(f_status, f08_status, sizeof(MPI_Status));
  if (ierror) *ierror = MPI_SUCCESS;
}
SAME_IN_F08(status_f082f)

void F77(status_f2f08)(const MPI_Fint *f_status, MPI_Fint *f08_status, MPI_Fint *ierror)
{
  memcpy(f08_status, f_status, sizeof(MPI_Status));
  if (ierror) *ierror = MPI_SUCCESS;
}
SAME_IN_F08(status_f2f08)

/* The address that is detached cannot be returned in an array of the caller's: BUFFER_ADDR stays as it is (MPI-5.0, 3.6.1). */
void F77(buffer_detach)(void *buffer, MPI_Fint *size, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  void *was;
  (void)buffer;
  *ierror = CALL(Buffer_detach)(&was, size);
}

void F77(comm_detach_buffer)(MPI_Fint *comm, void *buffer, MPI_Fint *size, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  void *was;
  (void)buffer;
  *ierror = CALL(Comm_detach_buffer)(MPI_Comm_fromint(*comm), &was, size);
}

void F77(session_detach_buffer)(MPI_Fint *session, void *buffer, MPI_Fint *size, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  void *was;
  (void)buffer;
  *ierror = CALL(Session_detach_buffer)(MPI_Session_fromint(*session), &was, size);
}

/* Module mpi_f08 gets the address. */
void F08(buffer_detach)(void **buffer, MPI_Fint *size, MPI_Fint *ierror)
{
  int err = CALL(Buffer_detach)(buffer, size);
  if (ierror) *ierror = err;
}

void F08(buffer_detach_c)(void **buffer, MPI_Count *size, MPI_Fint *ierror)
{
  int err = CALL(Buffer_detach_c)(buffer, size);
  if (ierror) *ierror = err;
}

void F08(comm_detach_buffer)(MPI_Fint *comm, void **buffer, MPI_Fint *size, MPI_Fint *ierror)
{
  int err = CALL(Comm_detach_buffer)(MPI_Comm_fromint(*comm), buffer, size);
  if (ierror) *ierror = err;
}

void F08(comm_detach_buffer_c)(MPI_Fint *comm, void **buffer, MPI_Count *size, MPI_Fint *ierror)
{
  int err = CALL(Comm_detach_buffer_c)(MPI_Comm_fromint(*comm), buffer, size);
  if (ierror) *ierror = err;
}

void F08(session_detach_buffer)(MPI_Fint *session, void **buffer, MPI_Fint *size, MPI_Fint *ierror)
{
  int err = CALL(Session_detach_buffer)(MPI_Session_fromint(*session), buffer, size);
  if (ierror) *ierror = err;
}

void F08(session_detach_buffer_c)(MPI_Fint *session, void **buffer, MPI_Count *size, MPI_Fint *ierror)
{
  int err = CALL(Session_detach_buffer_c)(MPI_Session_fromint(*session), buffer, size);
  if (ierror) *ierror = err;
}

void F77(comm_spawn)(char *command, char *argv, MPI_Fint *maxprocs, MPI_Fint *info, MPI_Fint *root, MPI_Fint *comm,
                     MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror, size_t l_command, size_t l_argv)
{
  OPTIONAL_IERROR;
  char *c_command = spxf_string(command, l_command);
  char **c_argv = spxf_no_argv(argv) ? MPI_ARGV_NULL : spxf_strings(argv, l_argv, -1, 1);
  MPI_Comm made = MPI_COMM_NULL;
  *ierror = CALL(Comm_spawn)(c_command, c_argv, *maxprocs, MPI_Info_fromint(*info), *root, MPI_Comm_fromint(*comm),
                             &made, spxf_errcodes(errcodes));
  if (*ierror == MPI_SUCCESS) *intercomm = MPI_Comm_toint(made);
  spxf_free_strings(c_argv);
  free(c_command);
}
SAME_IN_F08(comm_spawn)

/* ARRAY_OF_ARGV(COUNT, *): the arguments of command i are row i, so that each is COUNT strings after the one before. */
void F77(comm_spawn_multiple)(MPI_Fint *count, char *commands, char *argvs, MPI_Fint *maxprocs, MPI_Fint *infos,
                              MPI_Fint *root, MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror,
                              size_t l_commands, size_t l_argvs)
{
  OPTIONAL_IERROR;
  int rank = -1;
  PMPI_Comm_rank(MPI_Comm_fromint(*comm), &rank);
  int n = rank == *root ? spxf_length(*count) : 0; /* significant at the root alone */
  char **c_commands = spxf_strings(commands, l_commands, n, 1);
  char ***c_argvs = MPI_ARGVS_NULL;
  if (!spxf_no_argvs(argvs)) {
    c_argvs = malloc(sizeof *c_argvs * ((size_t)n + 1));
    for (int i = 0; i < n; i++) c_argvs[i] = spxf_strings(argvs + (size_t)i * l_argvs, l_argvs, -1, n);
  }
  SPXF_ARRAY(MPI_Info, c_infos, n);
  for (int i = 0; i < n; i++) c_infos[i] = MPI_Info_fromint(infos[i]);
  MPI_Comm made = MPI_COMM_NULL;
  *ierror = CALL(Comm_spawn_multiple)(*count, c_commands, c_argvs, maxprocs, c_infos, *root, MPI_Comm_fromint(*comm),
                                      &made, spxf_errcodes(errcodes));
  if (*ierror == MPI_SUCCESS) *intercomm = MPI_Comm_toint(made);
  SPXF_FREE(c_infos);
  for (int i = 0; c_argvs && i < n; i++) spxf_free_strings(c_argvs[i]);
  free(c_argvs);
  spxf_free_strings(c_commands);
}
SAME_IN_F08(comm_spawn_multiple)

/* Attributes (attributes.c). Those that libspx sets are numbers behind pointers in C, but for the base of a window. */
static int predefined(MPI_Fint keyval)
{
  switch (keyval) {
  case MPI_TAG_UB:
  case MPI_IO:
  case MPI_HOST:
  case MPI_WTIME_IS_GLOBAL:
  case MPI_UNIVERSE_SIZE:
  case MPI_LASTUSEDCODE:
  case MPI_APPNUM:
  case MPI_WIN_CREATE_FLAVOR:
  case MPI_WIN_MODEL:
  case MPI_WIN_DISP_UNIT: return 1;
  case MPI_WIN_SIZE: return 2;
  }
  return 0;
}

static MPI_Aint attribute(MPI_Fint keyval, void *value)
{
  switch (predefined(keyval)) {
  case 1: return *(int *)value;
  case 2: return *(MPI_Aint *)value;
  }
  return spxf_unbox(value);
}

#define ATTRIBUTES(object, type, convert)                                                                              \
  void F77(object##_get_attr)(MPI_Fint * handle, MPI_Fint * keyval, MPI_Aint * value, MPI_Fint * flag,                 \
                              MPI_Fint * ierror)                                                                       \
  {                                                                                                                    \
    OPTIONAL_IERROR;                                                                                                   \
    void *v = NULL;                                                                                                    \
    int found = 0;                                                                                                     \
    *ierror = CALL(type##_get_attr)(convert(*handle), *keyval, &v, &found);                                            \
    if (*ierror != MPI_SUCCESS) return;                                                                                \
    *flag = found != 0;                                                                                                \
    if (found) *value = attribute(*keyval, v);                                                                         \
  }                                                                                                                    \
  void F77(object##_set_attr)(MPI_Fint * handle, MPI_Fint * keyval, MPI_Aint * value, MPI_Fint * ierror)               \
  {                                                                                                                    \
    OPTIONAL_IERROR;                                                                                                   \
    void *box = spxf_box(*value);                                                                                      \
    *ierror = box ? CALL(type##_set_attr)(convert(*handle), *keyval, box) : MPI_ERR_NO_MEM;                            \
    if (*ierror != MPI_SUCCESS) spxf_box_free(box);                                                                    \
  }                                                                                                                    \
  void F77(object##_create_keyval)(spxf_copy_fn * copy, spxf_delete_fn * delete, MPI_Fint * keyval, MPI_Aint * extra,  \
                                   MPI_Fint * ierror)                                                                  \
  {                                                                                                                    \
    OPTIONAL_IERROR;                                                                                                   \
    *ierror = CALL(type##_create_keyval)(spxf_##object##_copy(copy), spxf_##object##_delete(delete), keyval,           \
                                         spxf_keyval(copy, delete, *extra));                                           \
  }                                                                                                                    \
  SAME_IN_F08(object##_get_attr)                                                                                       \
  SAME_IN_F08(object##_set_attr)                                                                                       \
  SAME_IN_F08(object##_create_keyval)

ATTRIBUTES(comm, Comm, MPI_Comm_fromint)
ATTRIBUTES(type, Type, MPI_Type_fromint)
ATTRIBUTES(win, Win, MPI_Win_fromint)

/* The forms of MPI-1: values are INTEGERs. */
void F77(attr_get)(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  void *v = NULL;
  int found = 0;
  *ierror = CALL(Comm_get_attr)(MPI_Comm_fromint(*comm), *keyval, &v, &found);
  if (*ierror != MPI_SUCCESS) return;
  *flag = found != 0;
  if (found) *value = (MPI_Fint)attribute(*keyval, v);
}
SAME_IN_F08(attr_get)

void F77(attr_put)(MPI_Fint *comm, MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  void *box = spxf_box(*value);
  *ierror = box ? CALL(Comm_set_attr)(MPI_Comm_fromint(*comm), *keyval, box) : MPI_ERR_NO_MEM;
  if (*ierror != MPI_SUCCESS) spxf_box_free(box);
}
SAME_IN_F08(attr_put)

void F77(keyval_create)(spxf_copy_fn *copy, spxf_delete_fn *delete, MPI_Fint *keyval, MPI_Fint *extra, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  *ierror =
      CALL(Comm_create_keyval)(spxf_old_copy(copy), spxf_old_delete(delete), keyval, spxf_keyval(copy, delete, *extra));
}

/* A reduction gets INTEGERs, and an error handler does: both are called with addresses of handles, whose low half is the INTEGER. */
void F77(op_create)(MPI_User_function *function, MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  MPI_Op made = MPI_OP_NULL;
  if ((*ierror = CALL(Op_create)(function, *commute != 0, &made)) == MPI_SUCCESS) *op = MPI_Op_toint(made);
}
SAME_IN_F08(op_create)

void F08(op_create_c)(MPI_User_function_c *function, MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror)
{
  MPI_Op made = MPI_OP_NULL;
  int err = CALL(Op_create_c)(function, *commute != 0, &made);
  if (err == MPI_SUCCESS) *op = MPI_Op_toint(made);
  if (ierror) *ierror = err;
}

#define ERRHANDLER(object, type)                                                                                       \
  void F77(object##_create_errhandler)(type##_errhandler_function * fn, MPI_Fint * handler, MPI_Fint * ierror)         \
  {                                                                                                                    \
    OPTIONAL_IERROR;                                                                                                   \
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;                                                                         \
    if ((*ierror = CALL_ERRHANDLER(type)(fn, &made)) == MPI_SUCCESS) *handler = MPI_Errhandler_toint(made);            \
  }                                                                                                                    \
  SAME_IN_F08(object##_create_errhandler)
#ifdef SPX_PROFILE
#define CALL_ERRHANDLER(type) P##type##_create_errhandler
#else
#define CALL_ERRHANDLER(type) type##_create_errhandler
#endif
ERRHANDLER(comm, MPI_Comm)
ERRHANDLER(win, MPI_Win)
ERRHANDLER(file, MPI_File)
ERRHANDLER(session, MPI_Session)

void F77(errhandler_create)(MPI_Comm_errhandler_function *fn, MPI_Fint *handler, MPI_Fint *ierror)
{
  F77(comm_create_errhandler)(fn, handler, ierror);
}

void F77(grequest_start)(spxf_query_fn *query, spxf_free_fn *release, spxf_cancel_fn *cancel, MPI_Aint *extra,
                         MPI_Fint *request, MPI_Fint *ierror)
{
  OPTIONAL_IERROR;
  MPI_Request made = MPI_REQUEST_NULL;
  struct spxf_grequest *state = spxf_grequest(query, release, cancel, extra);
  *ierror = CALL(Grequest_start)(spxf_query, spxf_release, spxf_cancel, state, &made);
  if (*ierror == MPI_SUCCESS)
    *request = MPI_Request_toint(made);
  else
    free(state);
}
SAME_IN_F08(grequest_start)

void F77(register_datarep)(char *name, spxf_conversion_fn *read, spxf_conversion_fn *write, spxf_extent_fn *extent,
                           MPI_Aint *extra, MPI_Fint *ierror, size_t l_name)
{
  OPTIONAL_IERROR;
  char *c_name = spxf_string(name, l_name);
  struct spxf_datarep *state = spxf_datarep(read, write, extent, extra);
  *ierror = CALL(Register_datarep)(c_name, state->read ? spxf_read : MPI_CONVERSION_FN_NULL,
                                   state->write ? spxf_write : MPI_CONVERSION_FN_NULL, spxf_extent, state);
  if (*ierror != MPI_SUCCESS) free(state);
  free(c_name);
}
SAME_IN_F08(register_datarep)

void F08(register_datarep_c)(char *name, spxf_conversion_c_fn *read, spxf_conversion_c_fn *write,
                             spxf_extent_fn *extent, MPI_Aint *extra, MPI_Fint *ierror, size_t l_name)
{
  char *c_name = spxf_string(name, l_name);
  struct spxf_datarep *state = spxf_datarep_c(read, write, extent, extra);
  int err = CALL(Register_datarep_c)(c_name, state->read_c ? spxf_read_c : MPI_CONVERSION_FN_NULL_C,
                                     state->write_c ? spxf_write_c : MPI_CONVERSION_FN_NULL_C, spxf_extent, state);
  if (err != MPI_SUCCESS) free(state);
  if (ierror) *ierror = err;
  free(c_name);
}
