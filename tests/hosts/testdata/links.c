/* links.c - links between switches that take time: frames that come out of one tap go into the other one of its pair, later.
 *   links MICROSECONDS TAP TAP [TAP TAP ...]
 * With LINKS_MBIT in the environment the taps say that they have that speed.
 * With LINKS_LOSS so many of a thousand frames are lost, each way; LINKS_SEED chooses which.
 * With LINKS_OWNER it ends some time after the process with that id.
 * Makes the taps in the network namespace in which it runs. When they are there it goes on in the background, until it is killed or a tap is gone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST   64
#define FRAMES 4096 /* under way in one direction, at most; more are dropped */

typedef struct {
  uint64_t due;
  int len;
  unsigned char data[2048];
} frame;

static int taps[MOST];
static frame *queue[MOST]; /* of what came out of a tap */
static unsigned first[MOST], last[MOST];

static uint64_t loss, chance; /* of 1000; the state of a generator (xorshift) */

static int is_lost(void)
{
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return chance % 1000 < loss;
}

static uint64_t number(const char *name, uint64_t preset)
{
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 10) : preset;
}

static uint64_t now_us(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void set_speed(const char *name, const char *mbit)
{
  struct ethtool_cmd c = {.cmd = ETHTOOL_GSET};
  struct ifreq r = {.ifr_data = (void *)&c};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
  int err = ioctl(fd, SIOCETHTOOL, &r);
  c.cmd = ETHTOOL_SSET;
  ethtool_cmd_speed_set(&c, (uint32_t)strtoul(mbit, NULL, 10));
  if (err != 0 || ioctl(fd, SIOCETHTOOL, &r) != 0) {
    fprintf(stderr, "links: %s: its speed cannot be set: %s\n", name, strerror(errno));
    exit(1);
  }
  close(fd);
}

static int tap(const char *name)
{
  struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &r) != 0) {
    fprintf(stderr, "links: %s: %s\n", name, strerror(errno));
    exit(1);
  }
  if (getenv("LINKS_MBIT")) set_speed(name, getenv("LINKS_MBIT"));
  return fd;
}

static void take(int i, uint64_t delay)
{
  static frame lost;
  for (;;) {
    frame *f = last[i] - first[i] < FRAMES ? &queue[i][last[i] % FRAMES] : &lost;
    f->len = (int)read(taps[i], f->data, sizeof f->data);
    if (f->len <= 0) return;
    f->due = now_us() + delay;
    if (f != &lost && !is_lost()) last[i]++;
  }
}

int main(int argc, char **argv)
{
  int n = argc - 2;
  if (n < 2 || n % 2 != 0 || n > MOST) {
    fprintf(stderr, "links: MICROSECONDS and pairs of taps are needed, %d taps at most\n", MOST);
    return 2;
  }
  uint64_t delay = strtoull(argv[1], NULL, 10);
  struct pollfd p[MOST];
  for (int i = 0; i < n; i++) {
    taps[i] = tap(argv[i + 2]);
    queue[i] = malloc(FRAMES * sizeof(frame));
    if (!queue[i]) return 1;
    p[i] = (struct pollfd){.fd = taps[i], .events = POLLIN};
  }
  loss = number("LINKS_LOSS", 0);
  chance = number("LINKS_SEED", 0) + 0x9e3779b97f4a7c15;
  pid_t owner = (pid_t)number("LINKS_OWNER", 0);
  if (daemon(0, 0) != 0) return 1;
  for (uint64_t looked = 0;;) {
    uint64_t now = now_us(), next = UINT64_MAX;
    for (int i = 0; i < n; i++) {
      take(i, delay);
      for (; first[i] != last[i] && queue[i][first[i] % FRAMES].due <= now; first[i]++) {
        frame *f = &queue[i][first[i] % FRAMES];
        if (write(taps[i ^ 1], f->data, (size_t)f->len) < 0 && errno == EAGAIN)
          continue; /* full: dropped, as by a switch */
      }
      if (first[i] != last[i] && queue[i][first[i] % FRAMES].due < next) next = queue[i][first[i] % FRAMES].due;
    }
    now = now_us();
    if (owner > 0 && now - looked > 500000) {
      if (kill(owner, 0) != 0 && errno == ESRCH) return 0;
      looked = now;
    }
    struct timespec t = {0, next > now ? (long)(next - now < 500000 ? next - now : 500000) * 1000 : 0};
    ppoll(p, (nfds_t)n, &t, NULL);
    for (int i = 0; i < n; i++)
      if (p[i].revents & (POLLERR | POLLHUP | POLLNVAL)) return 1;
  }
}
