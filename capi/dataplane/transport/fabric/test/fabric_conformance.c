/* The contract of transport.h, over pairs of tcp whose bytes go over a fabric: the tests of
 * ../../test/conformance.c with rows of their own. Where libfabric, or a provider, is missing, it
 * prints that and does nothing. Not under sanitizers, which report what libfabric does. */
// sanitize: plain
// timeout: 480
// flags: -Wl,--wrap=send,--wrap=sendmsg,--wrap=recv,--wrap=recvmsg,--wrap=spx_ring_bell
#define SPX_SUITE_ROWS "../fabric/test/fabric_rows.h"
#define main           suite_main
#include "../../test/conformance.c"
#undef main

enum { LEAST = 3000 }; /* messages: fewer mean that the pairs have stayed on their sockets */

int main(int argc, char **argv)
{
  static const char *const providers[] = {"tcp;ofi_rxm", "udp;ofi_rxd"};
  setenv("FI_PROVIDER", "tcp,ofi_rxm,udp,ofi_rxd", 0); /* none looks for devices */
  by_messages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int k = 0; k < ROWS; k++) {
    int status = 0;
    fflush(NULL);
    /* libfabric is loaded in a process of its own: what the suite starts by fork loads it again */
    pid_t pid = fork();
    if (pid == 0) _exit(find_provider(providers[k]) ? 0 : 1);
    if (waitpid(pid, &status, 0) != pid || status == 0) continue;
    printf("not tried: libfabric or its provider %s is missing\n", providers[k]);
    return 0;
  }
  int failures = suite_main(argc, argv);
  for (int k = 0; k < ROWS && argc == 1; k++) {
    printf("%s: %lu messages over the fabric\n", rows[k].name, (unsigned long)by_messages[k]);
    failures |= by_messages[k] < LEAST;
  }
  return failures;
}
