/* place ROOT HOST: one process is spawned on the host, and says at which address that is. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_address(void)
{
  struct ifaddrs *list;
  char text[INET_ADDRSTRLEN];
  if (getifaddrs(&list) != 0) exit(1);
  for (struct ifaddrs *i = list; i; i = i->ifa_next)
    if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && strcmp(i->ifa_name, "lo") != 0)
      printf("child at %s\n", inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof text));
  freeifaddrs(list);
}

int main(int argc, char **argv)
{
  MPI_Comm parent;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", argv[2]);
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, info, atoi(argv[1]), MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
  } else {
    say_address();
  }
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
