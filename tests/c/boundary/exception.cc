// C++ exceptions leave error handlers and attribute functions like longjmp does: through libspx, with destructors run, nothing left behind.
// run: n=1,2
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace
{

int destroyed;

struct Guard {
  ~Guard() { destroyed++; }
};

void check(bool ok, const char *what)
{
  if (ok) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(9);
}

void throw_error(MPI_Comm *, int *code, ...)
{
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(*code, text, &length);
  throw std::runtime_error(text);
}

bool armed = true;

int throw_in_delete(MPI_Comm, int, void *, void *)
{
  if (armed) throw std::logic_error("kept");
  return MPI_SUCCESS;
}

void send_nowhere()
{
  Guard guard;
  MPI_Send(nullptr, 0, MPI_INT, 4242, 0, MPI_COMM_WORLD);
}

void delete_attribute(int keyval)
{
  Guard guard;
  MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
}

} // namespace

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(throw_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, throw_in_delete, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &keyval);
  int caught = 0;
  for (int i = 0; i < 1000; i++) {
    try {
      if (i % 2)
        send_nowhere();
      else
        delete_attribute(keyval);
    } catch (const std::runtime_error &e) {
      check(std::string(e.what()).find("4242") != std::string::npos, "the text of the error");
      caught++;
    } catch (const std::logic_error &) {
      caught++;
    }
  }
  check(caught == 1000 && destroyed == 1000, "1000 exceptions, 1000 destructors");
  armed = false;
  int one = 1, sum = 0, size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == size, "the sum");
  MPI_Comm_free_keyval(&keyval);
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return 0;
}
