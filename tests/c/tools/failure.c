/* A failure is an event and a level (MPI-5.0, 16.3.7 and 16.3.8): the survivors are told who died, once. */
// run: n=3 spxrun="--with-ft" env="SPX_SPIN=100" timeout=30
#include "../check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

static int told, who[2];

static void on_failure(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data)
{
  (void)r;
  (void)safety;
  (void)data;
  CHECK(MPI_T_event_copy(e, who) == MPI_SUCCESS);
  told++;
}

static unsigned long long level(MPI_T_pvar_session s, const char *name, void *object)
{
  int index, count;
  MPI_T_pvar_handle h;
  unsigned long long n = 99;
  CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_handle_alloc(s, index, object, &h, &count) == MPI_SUCCESS);
  CHECK(MPI_T_pvar_read(s, h, &n) == MPI_SUCCESS);
  MPI_T_pvar_handle_free(s, &h);
  return n;
}

int main(int argc, char **argv)
{
  int rank, index, provided, x = 0;
  MPI_T_event_registration r;
  MPI_T_pvar_session s;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Init(&argc, &argv);
  MPI_Comm w = MPI_COMM_WORLD, self = MPI_COMM_SELF;
  MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
  MPI_Comm_rank(w, &rank);
  MPI_T_event_get_index("spx_failure_seen", &index);
  MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r);
  MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_failure);
  MPI_T_pvar_session_create(&s);
  CHECK(level(s, "spx_failures", NULL) == 0);
  MPI_Barrier(w);
  if (rank == 1) kill(getpid(), SIGKILL);
  CHECK_CLASS(MPI_Recv(&x, 1, MPI_INT, 1, 0, w, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
  while (!told) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self, &x, MPI_STATUS_IGNORE);
  CHECK(told == 1 && who[0] == 1 && who[1] == 1);
  CHECK(level(s, "spx_failures", NULL) == 1);
  CHECK(level(s, "spx_comm_failures", &w) == 1 && level(s, "spx_comm_failures", &self) == 0);
  MPI_T_event_handle_free(r, NULL, NULL);
  MPI_Finalize();
  MPI_T_finalize();
  return check_status();
}
