/* streamed.h - how many bytes of long messages this process has begun to send. Before it: MUST. */
static unsigned long long streamed(void)
{
  static MPI_T_pvar_session session;
  static MPI_T_pvar_handle handle;
  unsigned long long bytes;
  int count, index;
  if (!handle) {
    MUST(MPI_T_init_thread(MPI_THREAD_SINGLE, &count));
    MUST(MPI_T_pvar_get_index("spx_bytes_streamed", MPI_T_PVAR_CLASS_AGGREGATE, &index));
    MUST(MPI_T_pvar_session_create(&session));
    MUST(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    MUST(MPI_T_pvar_start(session, handle));
  }
  MUST(MPI_T_pvar_read(session, handle, &bytes));
  return bytes;
}
