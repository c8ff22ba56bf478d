/* file_memory.c - memory behind the parts of the job's memory file that are laid out in layout.h:
 * windows, shared memory of communicators, staging buffers of multicasts. A process that needs
 * memory adds its size to spx_seg.win_bytes and then allocates the range that it got, so that
 * nothing is left behind and a full memory is an error. Places are not used twice (the file is
 * sparse and its addresses have 63 bits); memory that is given back becomes a hole. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "dp.h"
#include "rma.h"

/* bytes that are allocated without asking whether there are so many */
#define SMALL        (1u << 20)
#define MOST         (UINT64_C(1) << 46)
#define PAGE         4096u
#define ROUND(n, to) (((uint64_t)(n) + (to)-1) / (to) * (to))

uint64_t spx_file_reserve(uint64_t bytes)
{
  uint64_t before =
      __atomic_fetch_add(&spx_segment->win_bytes, ROUND(bytes, PAGE), __ATOMIC_RELAXED);
  return ROUND(spx_segment->total_bytes, PAGE) + before;
}

int spx_file_allocate(uint64_t offset, uint64_t bytes)
{
  int rc;
  struct stat st;
  struct rlimit l;
  /* Beyond the limit on the size of files the kernel sends SIGXFSZ. The file has all its size from
   * the beginning, where the agent may give it that. */
  if (fstat(spx_map.fd, &st) == 0 && offset + bytes > (uint64_t)st.st_size &&
      getrlimit(RLIMIT_FSIZE, &l) == 0 && offset + bytes > l.rlim_cur)
    return ENOMEM;
  do rc = fallocate(spx_map.fd, 0, (off_t)offset, (off_t)bytes);
  while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

int spx_file_take(uint64_t bytes, uint64_t *offset)
{
  *offset = 0;
  if (bytes == 0) return 0;
  if (bytes > SMALL && (bytes > MOST || bytes > spx_memory_available())) return ENOMEM;
  bytes = ROUND(bytes, PAGE);
  *offset = spx_file_reserve(bytes);
  int err = spx_file_allocate(*offset, bytes);
  if (err) spx_file_drop(*offset, bytes);
  return err;
}

void spx_file_drop(uint64_t offset, uint64_t bytes)
{
  if (bytes == 0) return;
  fallocate(spx_map.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
            (off_t)ROUND(bytes, PAGE));
}

char *spx_file_map(uint64_t offset, uint64_t bytes)
{
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spx_map.fd, (off_t)offset);
  return p == MAP_FAILED ? NULL : p;
}

void spx_file_unmap(char *map, uint64_t bytes) { munmap(map, bytes); }
