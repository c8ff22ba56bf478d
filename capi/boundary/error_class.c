/* error_class.c - the predefined error classes: name and text (MPI-5.0, 10.4). Codes that users add
 * are in error_code.c. */
#include "error.h"
#if __has_include("mpi-ext.h")
#include "mpi-ext.h"
#else
#define MPIX_ERR_PROC_FAILED         16385
#define MPIX_ERR_PROC_FAILED_PENDING 16386
#define MPIX_ERR_REVOKED             16387
#define MPIX_ERR_CHECKPOINT          16388
#endif

typedef struct class_row {
  int code;
  const char *name, *text;
} class_row;
#define ROW(c, text)                                                                               \
  {                                                                                                \
    c, #c, text                                                                                    \
  }

static const class_row rows[] = {
    ROW(MPI_SUCCESS, "no error"),
    ROW(MPI_ERR_BUFFER, "invalid buffer pointer"),
    ROW(MPI_ERR_COUNT, "invalid count argument"),
    ROW(MPI_ERR_TYPE, "invalid datatype"),
    ROW(MPI_ERR_TAG, "invalid tag"),
    ROW(MPI_ERR_COMM, "invalid communicator"),
    ROW(MPI_ERR_RANK, "invalid rank"),
    ROW(MPI_ERR_REQUEST, "invalid request"),
    ROW(MPI_ERR_ROOT, "invalid root"),
    ROW(MPI_ERR_GROUP, "invalid group"),
    ROW(MPI_ERR_OP, "invalid operation"),
    ROW(MPI_ERR_TOPOLOGY, "invalid topology"),
    ROW(MPI_ERR_DIMS, "invalid number of dimensions"),
    ROW(MPI_ERR_ARG, "invalid argument"),
    ROW(MPI_ERR_UNKNOWN, "unknown error"),
    ROW(MPI_ERR_TRUNCATE, "message longer than the receive buffer"),
    ROW(MPI_ERR_OTHER, "another error"),
    ROW(MPI_ERR_INTERN, "internal error of the library"),
    ROW(MPI_ERR_PENDING, "request not complete, nor failed"),
    ROW(MPI_ERR_IN_STATUS, "the error codes are in the statuses"),
    ROW(MPI_ERR_ACCESS, "permission denied"),
    ROW(MPI_ERR_AMODE, "invalid access mode of a file"),
    ROW(MPI_ERR_ASSERT, "invalid assert argument"),
    ROW(MPI_ERR_BAD_FILE, "invalid file name"),
    ROW(MPI_ERR_BASE, "invalid base address"),
    ROW(MPI_ERR_CONVERSION, "a user's conversion function failed"),
    ROW(MPI_ERR_DISP, "invalid displacement"),
    ROW(MPI_ERR_DUP_DATAREP, "data representation defined twice"),
    ROW(MPI_ERR_FILE_EXISTS, "the file exists"),
    ROW(MPI_ERR_FILE_IN_USE, "the file is open in some process"),
    ROW(MPI_ERR_FILE, "invalid file handle"),
    ROW(MPI_ERR_INFO_KEY, "info key too long, or empty"),
    ROW(MPI_ERR_INFO_NOKEY, "no such info key"),
    ROW(MPI_ERR_INFO_VALUE, "info value too long, or empty"),
    ROW(MPI_ERR_INFO, "invalid info object"),
    ROW(MPI_ERR_IO, "input or output failed"),
    ROW(MPI_ERR_KEYVAL, "invalid key of an attribute"),
    ROW(MPI_ERR_LOCKTYPE, "invalid type of lock"),
    ROW(MPI_ERR_NAME, "service name not published"),
    ROW(MPI_ERR_NO_MEM, "out of memory"),
    ROW(MPI_ERR_NOT_SAME, "arguments differ between processes that must give the same"),
    ROW(MPI_ERR_NO_SPACE, "no space on the device"),
    ROW(MPI_ERR_NO_SUCH_FILE, "no such file"),
    ROW(MPI_ERR_PORT, "invalid port name"),
    ROW(MPI_ERR_QUOTA, "quota exceeded"),
    ROW(MPI_ERR_READ_ONLY, "file or file system is read-only"),
    ROW(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    ROW(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    ROW(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    ROW(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    ROW(MPI_ERR_RMA_SYNC, "wrong synchronisation of a window"),
    ROW(MPI_ERR_SERVICE, "service name not published by this process, or published already"),
    ROW(MPI_ERR_SIZE, "invalid size"),
    ROW(MPI_ERR_SPAWN, "processes could not be spawned"),
    ROW(MPI_ERR_UNSUPPORTED_DATAREP, "data representation not supported"),
    ROW(MPI_ERR_UNSUPPORTED_OPERATION, "operation not supported"),
    ROW(MPI_ERR_WIN, "invalid window"),
    ROW(MPI_ERR_RMA_FLAVOR, "wrong flavor of a window"),
    ROW(MPI_ERR_PROC_ABORTED, "a process was aborted"),
    ROW(MPI_ERR_VALUE_TOO_LARGE, "value too large for the variable that should hold it"),
    ROW(MPI_ERR_SESSION, "invalid session"),
    ROW(MPI_ERR_ERRHANDLER, "invalid error handler"),
    ROW(MPI_ERR_ABI, "mismatch of the binary interface"),
    ROW(MPI_T_ERR_CANNOT_INIT, "the tool interface cannot be initialised"),
    ROW(MPI_T_ERR_NOT_ACCESSIBLE, "the function is not accessible now"),
    ROW(MPI_T_ERR_NOT_INITIALIZED, "the tool interface is not initialised"),
    ROW(MPI_T_ERR_NOT_SUPPORTED, "functionality not supported"),
    ROW(MPI_T_ERR_MEMORY, "out of memory"),
    ROW(MPI_T_ERR_INVALID, "invalid use of the tool interface"),
    ROW(MPI_T_ERR_INVALID_INDEX, "invalid index"),
    ROW(MPI_T_ERR_INVALID_ITEM, "invalid item index"),
    ROW(MPI_T_ERR_INVALID_SESSION, "invalid session of the tool interface"),
    ROW(MPI_T_ERR_INVALID_HANDLE, "invalid handle of the tool interface"),
    ROW(MPI_T_ERR_INVALID_NAME, "invalid name"),
    ROW(MPI_T_ERR_OUT_OF_HANDLES, "no more handles"),
    ROW(MPI_T_ERR_OUT_OF_SESSIONS, "no more sessions"),
    ROW(MPI_T_ERR_CVAR_SET_NOT_NOW, "the control variable cannot be set now"),
    ROW(MPI_T_ERR_CVAR_SET_NEVER, "the control variable can never be set"),
    ROW(MPI_T_ERR_PVAR_NO_WRITE, "the performance variable cannot be written"),
    ROW(MPI_T_ERR_PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    ROW(MPI_T_ERR_PVAR_NO_ATOMIC, "the performance variable cannot be read and written at once"),
    ROW(MPIX_ERR_PROC_FAILED, "a process that takes part has failed"),
    ROW(MPIX_ERR_PROC_FAILED_PENDING,
        "a process that might send has failed; acknowledge the failure to go on"),
    ROW(MPIX_ERR_REVOKED, "the communicator was revoked"),
    ROW(MPIX_ERR_CHECKPOINT, "no such version, or not all of it is there"),
    ROW(MPI_ERR_LASTCODE, "last predefined error code"),
};

static const class_row *find(int code)
{
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].code == code) return &rows[i];
  return NULL;
}

const char *spx_class_name(int code)
{
  const class_row *r = find(code);
  return r ? r->name : NULL;
}

const char *spx_class_text(int code)
{
  const class_row *r = find(code);
  return r ? r->text : NULL;
}
