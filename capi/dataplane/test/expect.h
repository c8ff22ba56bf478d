/* expect.h - for tests of one function or header: says which condition does not hold, and ends. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>

#define CHECK(ok)                                                                                  \
  do {                                                                                             \
    if (!(ok)) {                                                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #ok);                                     \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#endif
