/* segment.c - maps the job's memory file, publishes there what peers need to know of this process,
 * and reads the settings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dp.h"
#include "related.h"
#include "settings.h"

spx_seg *spx_segment;
uint32_t spx_me;
spx_seg_map spx_map = {.fd = -1};

/* peers read it by process_vm_readv: it proves that the pid is ours and that reading is allowed */
static uint64_t cma_nonce;

bool spx_crowded;
uint32_t spx_ranks_here;

/* How many processes of this host share a processor: none, few, many. */
typedef enum { ALONE, FEW, MANY } crowd;
enum { FEW_MOST = 4 };
#define EAGER       (16u << 10)
#define NET_EAGER   (64u << 10)
#define DIRECT_MIN  (64u << 10)
#define COPY_MIN    2048         /* glibc 2.36: rep movsb from 2112 bytes on */
#define APART_GET   (256u << 10) /* bytes, with up to two processes for each processor */
#define STREAM_BOTH (2u << 20)   /* bytes, with up to two processes for each processor */
static crowd crowded_by;
static uint64_t cache_part; /* of each process, when it was first needed */

static crowd how_crowded(void)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < spx_segment->nprocs; i++) {
    uint32_t state = __atomic_load_n(&spx_proc_of(i)->agent_state, __ATOMIC_RELAXED);
    n += state != SPX_AGENT_DEAD && state != SPX_AGENT_EXITED &&
         spx_proc_of(i)->host == spx_segment->host;
  }
  spx_ranks_here = n;
  return n <= spx_segment->ncpus ? ALONE : n <= FEW_MOST * spx_segment->ncpus ? FEW : MANY;
}

static void read_settings(void)
{
  uint32_t n =
      spx_segment->world_size > spx_segment->nprocs ? spx_segment->world_size : spx_segment->nprocs;
  uint32_t largest =
      /* a record of this size always fits into an empty ring, padding included */
      spx_segment->ring_bytes / 4;
  uint64_t credit = (64ull << 20) / (n ? n : 1);
  static const uint64_t streamed[] = {
      [ALONE] = SPX_STREAM_ALONE, [FEW] = 512u << 10, [MANY] = 128u << 10};
  static const uint32_t yields[] = {[ALONE] = 20000, [FEW] = 100, [MANY] = 16};
  crowded_by = how_crowded();
  bool crowded = crowded_by != ALONE;
  if (!cache_part) cache_part = spx_cache_part(n < spx_segment->ncpus ? n : spx_segment->ncpus);
  spx_crowded = crowded;
  uint64_t stream_max = spx_setting_begin(SPX_SET_STREAM_MAX, streamed[crowded_by], UINT64_MAX);
  bool two_each = crowded_by == FEW && spx_ranks_here <= 2 * spx_segment->ncpus;
  uint64_t both = two_each && stream_max == streamed[FEW] ? STREAM_BOTH : stream_max;
  uint64_t stream_both = spx_setting_begin(SPX_SET_STREAM_BOTH, both, UINT64_MAX);
  uint64_t apart_get = stream_both == streamed[ALONE]           ? 0
                       : two_each && stream_both == STREAM_BOTH ? APART_GET
                                                                : UINT64_MAX;
  spx_set = (spx_settings){
      .eager_max = (uint32_t)spx_setting_begin(SPX_SET_EAGER_MAX, EAGER, largest),
      .fragment = (uint32_t)spx_setting_begin(SPX_SET_FRAGMENT, 8192, largest),
      .fragment_packed = (uint32_t)spx_setting_begin(SPX_SET_FRAGMENT_PACKED, 16384, largest),
      .stream_max = stream_max,
      .net_eager_max = spx_setting_begin(SPX_SET_NET_EAGER_MAX, NET_EAGER, NET_EAGER),
      .direct_min = spx_setting_begin(SPX_SET_DIRECT_MIN, DIRECT_MIN, UINT64_MAX),
      .streams = (uint32_t)spx_setting_begin(SPX_SET_STREAMS, 0, 16),
      .stream_both = stream_both,
      .past_cache = spx_setting_begin(SPX_SET_PAST_CACHE, 4 * cache_part, UINT64_MAX),
      .copy_min = (uint32_t)spx_setting_begin(SPX_SET_COPY_MIN, COPY_MIN, UINT32_MAX),
      .copy_max = spx_setting_begin(SPX_SET_COPY_MAX, 256u << 10, UINT64_MAX),
      .apart_min = (uint32_t)spx_setting_begin(SPX_SET_APART_MIN, 2048, UINT32_MAX),
      .apart_max = spx_setting_begin(SPX_SET_APART_MAX, 256u << 10, UINT64_MAX),
      .apart_get = spx_setting_begin(SPX_SET_APART_GET, apart_get, UINT64_MAX),
      .apart_every = (uint32_t)spx_setting_begin(SPX_SET_APART_EVERY, 16, UINT32_MAX),
      .apart_trial = spx_setting_begin(SPX_SET_APART_TRIAL, 20000, UINT32_MAX),
      .cma = (uint32_t)spx_setting_begin(SPX_SET_CMA, 1, 1),
      .progress = (uint32_t)spx_setting_begin(SPX_SET_PROGRESS, 0, 1),
      .spin = (uint32_t)spx_setting_begin(SPX_SET_SPIN, crowded ? 0 : 20000, UINT32_MAX),
      .spin_busy = (uint32_t)spx_setting_begin(SPX_SET_SPIN_BUSY, 300, UINT32_MAX),
      .yield = (uint32_t)spx_setting_begin(SPX_SET_YIELD, yields[crowded_by], UINT32_MAX),
      .credit = spx_setting_begin(SPX_SET_CREDIT, credit < 65536 ? 65536 : credit, UINT64_MAX),
      .mcast_staging = spx_setting_begin(SPX_SET_MCAST_STAGING, 256u << 20, UINT64_MAX),
      .kept_max = spx_setting_begin(SPX_SET_KEPT_MAX, 4u << 20, UINT64_MAX),
      .mcast_each = (uint32_t)spx_setting_begin(SPX_SET_MCAST_EACH, 64, UINT32_MAX),
      .mcast_fork = spx_setting_begin(SPX_SET_MCAST_FORK, 8u << 10, UINT64_MAX),
      .mcast_parts = spx_setting_begin(SPX_SET_MCAST_PARTS, 0, UINT64_MAX),
      .mcast_chain = spx_setting_begin(SPX_SET_MCAST_CHAIN, 32u << 10, UINT64_MAX),
      .wrap = (uint32_t)spx_setting_begin(SPX_SET_WRAP, 0, 1),
  };
  spx_setting_check(SPX_SET_MCAST_WAY);
  spx_setting_check(SPX_SET_ZEROCOPY);
  spx_first_generation = (uint32_t)spx_count_from(SPX_H_GEN_BITS, 2);
  if (spx_set.eager_max != EAGER) /* set, and the other one is not perhaps */
    spx_set.net_eager_max = spx_setting_begin(SPX_SET_NET_EAGER_MAX, spx_set.eager_max, NET_EAGER);
}

/* Updates the settings that depend on the number of processes; the rest stays as it was when MPI
 * started. */
void spx_settings_refresh(void)
{
  if (how_crowded() == crowded_by) return;
  spx_settings before = spx_set;
  read_settings();
  spx_set.credit = before.credit;
}

static bool outnumber(void) { return spx_segment->nprocs > spx_segment->ncpus; }

static bool is_sound(const spx_seg *s, uint64_t file_bytes)
{
  return s->magic == SPX_SEG_MAGIC && s->version == SPX_SEG_VERSION &&
         s->total_bytes <= file_bytes && s->ring_off < s->total_bytes && s->maxprocs > 0 &&
         s->ring_bytes >= 4096 && s->rings_per_proc <= SPX_RINGS_PER_PROC;
}

static int publish_self(void)
{
  uint64_t row = spx_segment->sdesc_off + spx_me * spx_segment->sdesc_row;
  if (fallocate(spx_map.fd, 0, (off_t)row, (off_t)spx_segment->sdesc_row) != 0) return errno;
  if (getrandom(&cma_nonce, sizeof cma_nonce, 0) != (ssize_t)sizeof cma_nonce)
    cma_nonce = (uint64_t)(uintptr_t)&cma_nonce ^ (uint64_t)getpid();
  spx_related_name();
  spx_proc *p = spx_proc_of(spx_me);
  struct stat st;
  p->pid_space = stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
  __atomic_store_n(&p->self_pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
  p->cma_nonce = cma_nonce;
  __atomic_store_n(&p->cma_nonce_addr, (uint64_t)(uintptr_t)&cma_nonce, __ATOMIC_RELEASE);
  return 0;
}

int spx_seg_attach(int memfd, uint32_t me)
{
  struct stat st;
  if (fstat(memfd, &st) != 0) return errno;
  spx_seg head;
  if (pread(memfd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
      !is_sound(&head, (uint64_t)st.st_size))
    return EINVAL;
  size_t bytes = head.ring_off; /* rings lie behind it (ring.c), and then windows */
  char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0);
  if (base == MAP_FAILED) return errno;
  spx_own = (spx_file){.base = base, .fd = -1, .me = me, .bytes = bytes};
  spx_map = (spx_seg_map){.base = base, .fd = -1, .nprocs = spx_head(&spx_own)->maxprocs};
  int err = EINVAL;
  if (me < spx_map.nprocs) {
    spx_segment = (spx_seg *)base;
    spx_setting_crowded = outnumber;
    spx_me = me;
    spx_map.epoch = spx_own.epoch = (uint16_t)spx_proc_of(me)->incarnation;
    spx_map.fd = spx_own.fd = fcntl(memfd, F_DUPFD_CLOEXEC, 3);
    if (spx_map.fd >= 0) err = publish_self();
  }
  if (err != 0)
    spx_seg_detach();
  else
    read_settings();
  return err;
}

void spx_seg_detach(void)
{
  spx_seg_unmap(&spx_own);
  if (spx_map.fd >= 0) close(spx_map.fd);
  spx_map.fd = -1;
  spx_segment = NULL;
  spx_setting_crowded = NULL;
}
