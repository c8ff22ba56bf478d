/* host.c - one of the hosts of scripts/hosts: a process that is the init of its own namespaces, and runs commands there.
 *   host up DIR HOST HOSTNAME   makes it, in the network namespace HOST, and returns when it takes commands
 *   host on DIR HOST COMMAND... runs a command there as if it were started here: with this process's streams, environment, folder and limits. Signals are passed on; when this process
 *                               ends, the command is killed. Its end is that of this process
 *   host rsh DIR HOST LINE      runs a line for the shell there as ssh would: with nothing of this process but three pipes, which close when this process ends
 *   host keep PID FILE COMMAND...  in the background, runs the command when that process has ended; ends when the file has been removed
 * DIR is the folder of the bed, which all its hosts see; the socket of a host is there, and the number of its init as the others know it (HOST.pid).
 * A host has pids, mounts, a host name, IPC and clocks of its own: /tmp, /dev/shm and /run are empty, but for DIR and the folders in HOSTS_SHARED (separated by colons), which are those of
 * the caller. HOSTS_AHEAD is by how many seconds its clocks (monotonic and boot time) are ahead, HOSTS_SETUP a line for the shell that it runs first, and HOSTS_OWNER the process with
 * which it ends. /etc/hosts is DIR/hosts, if there is one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { ON = 1, RSH };
enum { WHOLE_GROUP = 0x80 }; /* of a signal's byte: it is of a terminal, whose other processes get it, too */
enum { CONNECTIONS = 1024, FOLDERS = 32, REQUEST_MAX = 16 << 20 };

/* What a client asks for. Behind it come `words` strings of the command and, for ON, the folder and `variables` strings. */
typedef struct {
  uint32_t kind, bytes, words, variables;
  uint64_t ignored; /* signals, from bit 0 */
  mode_t mask;
  cpu_set_t processors;
  struct rlimit limit[RLIM_NLIMITS];
} request;

typedef struct {
  int fd; /* -1: the client has gone */
  pid_t pid;
  uint32_t kind;
} command;

static command commands[CONNECTIONS];
static int running;
static char *login[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                        "HOME=/root",
                        "USER=root",
                        "LOGNAME=root",
                        "SHELL=/bin/sh",
                        NULL};

static void fail(const char *format, ...)
{
  int error = errno;
  va_list list;
  va_start(list, format);
  fprintf(stderr, "host: ");
  vfprintf(stderr, format, list);
  fprintf(stderr, ": %s\n", strerror(error));
  exit(255);
}

static void write_all(int fd, const void *from, size_t n)
{
  for (const char *p = from; n > 0;) {
    ssize_t done = write(fd, p, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("writing");
    p += done;
    n -= (size_t)done;
  }
}

/* Whether all n bytes have come. */
static int read_all(int fd, void *to, size_t n)
{
  for (char *p = to; n > 0;) {
    ssize_t done = read(fd, p, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    p += done;
    n -= (size_t)done;
  }
  return 1;
}

static int pidfd(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

static struct sockaddr_un address(const char *dir, const char *host)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", dir, host) >= (int)sizeof a.sun_path) {
    errno = ENAMETOOLONG;
    fail("%s/%s", dir, host);
  }
  return a;
}

/* The namespaces. */

static void folders_of(const char *path)
{
  char part[4096];
  for (size_t i = 1; path[i] && i < sizeof part; i++)
    if (path[i] == '/') {
      memcpy(part, path, i);
      part[i] = 0;
      mkdir(part, 0755); /* it may be there; what is missing shows below */
    }
  if (mkdir(path, 0755) != 0 && errno != EEXIST) fail("%s", path);
}

/* Whether an empty folder takes the place of one that path is in. */
static int is_covered(const char *path)
{
  return strncmp(path, "/tmp/", 5) == 0 || strncmp(path, "/dev/shm/", 9) == 0 || strncmp(path, "/run/", 5) == 0;
}

static void bind_over(const char *from, const char *to, unsigned long flags)
{
  if (mount(from, to, NULL, MS_BIND | flags, NULL) != 0) fail("%s as %s", from, to);
}

static void mount_own(const char *dir)
{
  struct {
    const char *path;
    int fd;
  } shared[FOLDERS];
  int n = 0;
  char list[8192], from[64], *rest = list;
  snprintf(list, sizeof list, "%s:%s", dir, getenv("HOSTS_SHARED") ? getenv("HOSTS_SHARED") : "");
  for (char *path; (path = strsep(&rest, ":"));) {
    if (!is_covered(path)) continue; /* shared as it is */
    if (n == FOLDERS) {
      errno = E2BIG;
      fail("HOSTS_SHARED");
    }
    shared[n].path = path;
    shared[n].fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (shared[n++].fd < 0) fail("%s", path);
  }
  int groups = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
  /* Slaves: what is unmounted outside, as the name of a network namespace, must not be held here. */
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) fail("mounts of its own");
  if (mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") != 0) fail("/tmp");
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") != 0) fail("/dev/shm");
  if (mount("tmpfs", "/run", "tmpfs", 0, "mode=755") != 0) fail("/run");
  for (int i = 0; i < n; i++) {
    folders_of(shared[i].path);
    snprintf(from, sizeof from, "/proc/self/fd/%d", shared[i].fd);
    bind_over(from, shared[i].path, MS_REC);
    close(shared[i].fd);
  }
  const char *temporary = getenv("TMPDIR");
  if (temporary && is_covered(temporary)) folders_of(temporary);
  mount("sysfs", "/sys", "sysfs", 0, NULL); /* that of its network; not everywhere to be had */
  if (groups >= 0) {
    snprintf(from, sizeof from, "/proc/self/fd/%d", groups);
    mount(from, "/sys/fs/cgroup", NULL, MS_BIND | MS_REC, NULL); /* as above */
    close(groups);
  }
  snprintf(list, sizeof list, "%s/hosts", dir);
  if (access(list, F_OK) == 0) bind_over(list, "/etc/hosts", 0);
  if (mount("proc", "/proc", "proc", 0, NULL) != 0) fail("/proc");
}

/* The server. */

static void to_child(const request *r, char **argv, char **env, const char *folder, const int fds[3])
{
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int s = 1; s < 64; s++)
    signal(s, r->kind == ON && r->ignored >> (s - 1) & 1 ? SIG_IGN : SIG_DFL); /* not all can be set */
  setsid();
  for (int i = 0; i < 3; i++) dup2(fds[i], i);
  if (r->kind == ON) {
    umask(r->mask);
    for (int i = 0; i < RLIM_NLIMITS; i++) setrlimit((__rlimit_resource_t)i, &r->limit[i]); /* root may */
    sched_setaffinity(0, sizeof r->processors, &r->processors);                             /* there may be fewer now */
  }
  if (chdir(folder) != 0) fail("folder %s", folder);
  environ = env;
  execvp(argv[0], argv);
  int code = errno == ENOENT ? 127 : 126;
  fprintf(stderr, "host: %s: %s\n", argv[0], strerror(errno));
  _exit(code);
}

/* The descriptors come with the first byte. */
static int read_request(int fd, request *r, int fds[3])
{
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(3 * sizeof(int))];
  } control;
  struct iovec part = {r, sizeof *r};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
  struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
  if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(3 * sizeof(int))) return 0;
  memcpy(fds, CMSG_DATA(c), 3 * sizeof(int));
  if (n < (ssize_t)sizeof *r && !read_all(fd, (char *)r + n, sizeof *r - (size_t)n)) return 0;
  return r->bytes <= REQUEST_MAX && r->words > 0 && r->words < r->bytes && r->variables < r->bytes;
}

/* Takes `n` strings; NULL at their end. */
static char **strings(uint32_t n, char **from, const char *end)
{
  char **list = calloc(n + 1, sizeof *list);
  for (uint32_t i = 0; list && i < n; i++) {
    if (*from >= end) return NULL;
    list[i] = *from;
    *from += strlen(*from) + 1;
  }
  return list;
}

/* What a client asks for is started; 0: it asks for nothing that can be. */
static int take(int fd)
{
  request r;
  int fds[3] = {-1, -1, -1}, taken = 0;
  struct timeval limit = {10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char *text = NULL;
  if (running < CONNECTIONS && read_request(fd, &r, fds) && (text = calloc(1, r.bytes + 1)) &&
      read_all(fd, text, r.bytes)) {
    char *at = text, **argv = strings(r.words, &at, text + r.bytes), *folder = r.kind == ON ? at : "/root";
    if (r.kind == ON) at += strlen(at) + 1;
    char **env = r.kind == ON ? strings(r.variables, &at, text + r.bytes) : login;
    pid_t pid = argv && env ? fork() : -1;
    if (pid == 0) to_child(&r, argv, env, folder, fds);
    if (pid > 0) commands[running++] = (command){fd, pid, r.kind};
    taken = pid > 0;
    free(argv);
    if (env != login) free(env);
  }
  free(text);
  for (int i = 0; i < 3; i++)
    if (fds[i] >= 0) close(fds[i]);
  return taken;
}

static void reap(void)
{
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (int i = 0; i < running; i++)
      if (commands[i].pid == pid) {
        if (commands[i].fd >= 0) {
          send(commands[i].fd, &status, sizeof status, MSG_NOSIGNAL); /* it may have gone */
          close(commands[i].fd);
        }
        commands[i] = commands[--running];
        break;
      }
}

/* What a client says: signals, and by its end that it has gone. */
static void hear(command *c)
{
  unsigned char s;
  if (recv(c->fd, &s, 1, MSG_DONTWAIT) == 1) {
    kill(s & WHOLE_GROUP ? -c->pid : c->pid, s & ~WHOLE_GROUP);
    return;
  }
  if (errno == EAGAIN || errno == EINTR) return;
  if (c->kind == ON) kill(c->pid, SIGKILL);
  close(c->fd);
  c->fd = -1;
}

static void serve(int listener, int owner, int ended)
{
  static struct pollfd p[CONNECTIONS + 3];
  for (;;) {
    p[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    p[1] = (struct pollfd){.fd = ended, .events = POLLIN};
    p[2] = (struct pollfd){.fd = owner, .events = POLLIN};
    int n = running;
    for (int i = 0; i < n; i++) p[i + 3] = (struct pollfd){.fd = commands[i].fd, .events = POLLIN};
    poll(p, (nfds_t)n + 3, -1);
    if (p[2].revents) exit(0); /* with all that runs here */
    for (int i = 0; i < n; i++)
      if (p[i + 3].revents) hear(&commands[i]);
    if (p[1].revents) {
      struct signalfd_siginfo all[16];
      if (read(ended, all, sizeof all) < 0 && errno != EAGAIN) fail("signals");
      reap();
    }
    if (p[0].revents) {
      int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
      if (fd >= 0 && !take(fd)) close(fd);
    }
  }
}

static pid_t owner_of(void) { return getenv("HOSTS_OWNER") ? atoi(getenv("HOSTS_OWNER")) : 0; }

static void init(const char *dir, const char *name, int listener, int owner, int ready)
{
  mount_own(dir);
  umask(022);
  if (sethostname(name, strlen(name)) != 0) fail("host name %s", name);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  const char *setup = getenv("HOSTS_SETUP");
  int status = setup ? system(setup) : 0;
  if (status != 0) {
    fprintf(stderr, "host: HOSTS_SETUP has ended with %#x\n", (unsigned)status);
    exit(1);
  }
  sigprocmask(SIG_BLOCK, &children, NULL);
  int ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), none = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (ended < 0 || none < 0 || chdir("/") != 0) fail("what an init needs");
  write_all(ready, "", 1);
  close(ready);
  for (int i = 0; i < 3; i++) dup2(none, i);
  serve(listener, owner, ended);
}

static void write_file(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail("%s", path);
  close(fd);
}

static void join_network(const char *host)
{
  char path[4096];
  snprintf(path, sizeof path, "/run/netns/%s", host);
  int network = open(path, O_RDONLY | O_CLOEXEC);
  if (network < 0 || setns(network, CLONE_NEWNET) != 0) fail("network namespace %s", host);
  close(network);
}

/* Clocks are set before there is a process that has them. */
static void own_namespaces(void)
{
  const char *ahead = getenv("HOSTS_AHEAD");
  int clocks = ahead && atol(ahead) != 0;
  if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | (clocks ? CLONE_NEWTIME : 0)) != 0)
    fail("namespaces");
  if (clocks) {
    char text[128];
    snprintf(text, sizeof text, "monotonic %ld 0\nboottime %ld 0\n", atol(ahead), atol(ahead));
    write_file("/proc/self/timens_offsets", text);
  }
}

static int up(const char *dir, const char *host, const char *name)
{
  int owner = owner_of() > 0 ? pidfd(owner_of()) : -1;
  if (owner_of() > 0 && owner < 0) fail("HOSTS_OWNER=%d", owner_of());
  join_network(host);
  struct sockaddr_un a = address(dir, host);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ready[2];
  if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, 1024) != 0)
    fail("%s", a.sun_path);
  own_namespaces();
  if (pipe2(ready, O_CLOEXEC) != 0) fail("pipe");
  pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    setsid();
    close(ready[0]);
    init(dir, name, listener, owner, ready[1]);
  }
  close(ready[1]);
  char byte, path[4096], text[32];
  if (!read_all(ready[0], &byte, 1)) return 1; /* it has said why */
  snprintf(path, sizeof path, "%s/%s.pid", dir, host);
  snprintf(text, sizeof text, "%d\n", (int)pid);
  write_file(path, text);
  return 0;
}

/* The clients. */

static char *pack(char **list, uint32_t *n, char *to, const char *end)
{
  for (*n = 0; list[*n]; ++*n) {
    size_t len = strlen(list[*n]) + 1;
    if (to + len > end) {
      errno = E2BIG;
      fail("the command");
    }
    memcpy(to, list[*n], len);
    to += len;
  }
  return to;
}

static void about_this_process(request *r)
{
  r->mask = umask(0);
  umask(r->mask);
  sched_getaffinity(0, sizeof r->processors, &r->processors);
  for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit((__rlimit_resource_t)i, &r->limit[i]);
  for (int s = 1; s < 64; s++) {
    struct sigaction old;
    if (sigaction(s, NULL, &old) == 0 && old.sa_handler == SIG_IGN) r->ignored |= 1ull << (s - 1);
  }
}

static int ask(const char *dir, const char *host, uint32_t kind, char **words, const int fds[3])
{
  static char text[REQUEST_MAX], folder[4096];
  struct sockaddr_un a = address(dir, host);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0) fail("%s does not answer", host);
  request r = {.kind = kind};
  about_this_process(&r);
  char *at = pack(words, &r.words, text, text + sizeof text);
  if (kind == ON) {
    char *where[] = {getcwd(folder, sizeof folder), NULL};
    uint32_t one;
    if (!where[0]) fail("this folder");
    at = pack(environ, &r.variables, pack(where, &one, at, text + sizeof text), text + sizeof text);
  }
  r.bytes = (uint32_t)(at - text);
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(3 * sizeof(int))];
  } control = {0};
  struct iovec part = {&r, sizeof r};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(3 * sizeof(int))};
  memcpy(CMSG_DATA(c), fds, 3 * sizeof(int));
  if (sendmsg(fd, &m, 0) != sizeof r) fail("%s", host);
  write_all(fd, text, r.bytes);
  return fd;
}

/* Ends as the command has. */
static int end_as(int status)
{
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t all;
  signal(WTERMSIG(status), SIG_DFL);
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

static int on(const char *dir, const char *host, char **words)
{
  sigset_t passed;
  sigemptyset(&passed);
  for (const int *s = (int[]){SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, 0}; *s; s++)
    sigaddset(&passed, *s);
  sigprocmask(SIG_BLOCK, &passed, NULL);
  int fd = ask(dir, host, ON, words, (int[]){0, 1, 2}), signals = signalfd(-1, &passed, SFD_CLOEXEC), status;
  if (signals < 0) fail("signals");
  int none = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 3 && none >= 0; i++) dup2(none, i); /* they are the command's now: a pipe ends with it */
  for (struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};;) {
    poll(p, 2, -1);
    if (p[0].revents)
      return read_all(fd, &status, sizeof status) ? end_as(status) : end_as(SIGKILL); /* the host has ended */
    struct signalfd_siginfo s;
    if (p[1].revents && read(signals, &s, sizeof s) == sizeof s) {
      unsigned char byte = (unsigned char)(s.ssi_signo | (s.ssi_code == SI_KERNEL ? WHOLE_GROUP : 0));
      send(fd, &byte, 1, MSG_NOSIGNAL); /* it may just have ended */
    }
  }
}

/* Moves what can be read; 0: no more will come, or it is not read. */
static int move(int from, int to)
{
  char text[65536];
  ssize_t n = read(from, text, sizeof text);
  if (n < 0 && errno == EINTR) return 1;
  for (ssize_t done = 0; n > 0 && done < n;) {
    ssize_t now = write(to, text + done, (size_t)(n - done));
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return 0;
    done += now;
  }
  return n > 0;
}

static int rsh(const char *dir, const char *host, char *line)
{
  int in[2], out[2], error[2], status = -1;
  signal(SIGPIPE, SIG_IGN);
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) fail("pipe");
  int fd = ask(dir, host, RSH, (char *[]){"sh", "-c", line, NULL}, (int[]){in[0], out[1], error[1]});
  close(in[0]);
  close(out[1]);
  close(error[1]);
  pid_t feeder = fork(); /* a command that does not read must not keep its output from coming */
  if (feeder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(fd);
    close(out[0]);
    close(error[0]);
    while (move(0, in[1]))
      ;
    _exit(0);
  }
  close(in[1]);
  struct pollfd p[3] = {
      {.fd = out[0], .events = POLLIN}, {.fd = error[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};
  while (p[0].fd >= 0 || p[1].fd >= 0 || p[2].fd >= 0) {
    poll(p, 3, -1);
    for (int i = 0; i < 2; i++)
      if (p[i].revents && !move(p[i].fd, i + 1)) {
        close(p[i].fd);
        p[i].fd = -1;
      }
    if (p[2].revents) {
      if (!read_all(fd, &status, sizeof status)) status = -1;
      p[2].fd = -1;
    }
  }
  if (feeder > 0) kill(feeder, SIGKILL);
  return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int keep(pid_t owner, const char *file, char **command)
{
  struct stat st;
  int of = pidfd(owner), fd = open(file, O_RDONLY | O_CLOEXEC);
  if (of < 0 || fd < 0) fail("process %d and %s", (int)owner, file);
  if (daemon(0, 0) != 0) fail("background");
  for (struct pollfd p = {.fd = of, .events = POLLIN}; poll(&p, 1, 300) <= 0;)
    if (fstat(fd, &st) != 0 || st.st_nlink == 0) return 0;
  close(fd);
  execvp(command[0], command);
  return 1;
}

int main(int argc, char **argv)
{
  if (argc == 5 && strcmp(argv[1], "up") == 0) return up(argv[2], argv[3], argv[4]);
  if (argc >= 5 && strcmp(argv[1], "on") == 0) return on(argv[2], argv[3], argv + 4);
  if (argc == 5 && strcmp(argv[1], "rsh") == 0) return rsh(argv[2], argv[3], argv[4]);
  if (argc >= 5 && strcmp(argv[1], "keep") == 0) return keep(atoi(argv[2]), argv[3], argv + 4);
  fprintf(stderr, "host: up, on, rsh or keep: see the beginning of host.c\n");
  return 2;
}
