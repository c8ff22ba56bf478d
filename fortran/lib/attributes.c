/* Values of attributes across languages (MPI-5.0, 20.3.7). What Fortran sets is an integer: C is to see its address, so it lies in a box, and the box's address is the
   attribute. What C sets is an address, which Fortran sees as an integer. A box is recognised by where it lies. It goes with the attribute if the keyval was
   created in Fortran; else, since only C's function is called then, it stays as long as the process. */
#include "callbacks.h"

#include <pthread.h>

enum { BOXES = 128 };

struct boxes {
  struct boxes *next;
  MPI_Aint values[BOXES];
};

static struct boxes *all;
static MPI_Aint *unused; /* a free box has the address of the next one */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int more(void)
{
  struct boxes *b = malloc(sizeof *b);
  if (!b) return 0;
  for (int i = 0; i < BOXES; i++) {
    b->values[i] = (MPI_Aint)unused;
    unused = &b->values[i];
  }
  b->next = all;
  all = b;
  return 1;
}

void *spxf_box(MPI_Aint value)
{
  pthread_mutex_lock(&lock);
  MPI_Aint *box = NULL;
  if (unused || more()) {
    box = unused;
    unused = (MPI_Aint *)*box;
    *box = value;
  }
  pthread_mutex_unlock(&lock);
  return box;
}

int spxf_is_box(const void *attribute)
{
  int found = 0;
  pthread_mutex_lock(&lock);
  for (struct boxes *b = all; b && !found; b = b->next)
    found = (const char *)attribute >= (const char *)b->values && (const char *)attribute < (const char *)(b + 1);
  pthread_mutex_unlock(&lock);
  return found;
}

MPI_Aint spxf_unbox(void *attribute) { return spxf_is_box(attribute) ? *(MPI_Aint *)attribute : (MPI_Aint)attribute; }

void spxf_box_free(void *attribute)
{
  if (!spxf_is_box(attribute)) return;
  pthread_mutex_lock(&lock);
  *(MPI_Aint *)attribute = (MPI_Aint)unused;
  unused = attribute;
  pthread_mutex_unlock(&lock);
}
