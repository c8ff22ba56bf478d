/* library.c - libfabric, loaded when it is asked for, and the endpoint of this process. */
#include "fabric_start.h"
#include "fabric.h"
#ifdef SPX_HAS_FABRIC
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

spx_fabric_end spx_fabric;

static struct {
  int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                 const struct fi_info *hints, struct fi_info **info);
  void (*freeinfo)(struct fi_info *info);
  struct fi_info *(*dupinfo)(const struct fi_info *info);
  int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
  const char *(*strerror)(int error);
  uint32_t (*version)(void);
} lib;
static struct fi_info *offers;

static bool find(void *handle, const char *name, void *to)
{
  void *f = dlsym(handle, name);
  memcpy(to, &f, sizeof f);
  return f != NULL;
}

const char *spx_fabric_load(uint32_t *version)
{
  if (!lib.version) {
    void *h = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!h) return dlerror();
    bool all = find(h, "fi_getinfo", &lib.getinfo) && find(h, "fi_freeinfo", &lib.freeinfo) &&
               find(h, "fi_dupinfo", &lib.dupinfo) && find(h, "fi_fabric", &lib.fabric) &&
               find(h, "fi_strerror", &lib.strerror) && find(h, "fi_version", &lib.version);
    if (!all) {
      lib.version = NULL;
      return "libfabric.so.1 lacks functions of libfabric 1.17";
    }
  }
  *version = lib.version();
  return NULL;
}

const char *spx_fabric_text(int error) { return lib.strerror ? lib.strerror(error) : ""; }

/* What this folder needs of a provider; with what it may ask of us. */
static struct fi_info *needs(void)
{
  struct fi_info *h = lib.dupinfo(NULL);
  if (!h) return NULL;
  h->caps = FI_MSG;
  h->mode = FI_CONTEXT | FI_CONTEXT2;
  h->ep_attr->type = FI_EP_RDM;
  h->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  h->domain_attr->threading = FI_THREAD_DOMAIN; /* every call is made under one mutex */
  h->domain_attr->resource_mgmt = FI_RM_ENABLED;
  return h;
}

static void copy_name(char *to, size_t n, const char *from)
{
  strncpy(to, from ? from : "", n - 1);
  to[n - 1] = 0;
}

static void read_address(spx_fabric_row *r, const struct fi_info *i)
{
  if (!i->src_addr) return;
  if (i->addr_format == FI_SOCKADDR_IN && i->src_addrlen >= sizeof(struct sockaddr_in)) {
    r->address[10] = r->address[11] = 0xff;
    memcpy(r->address + 12, &((struct sockaddr_in *)i->src_addr)->sin_addr, 4);
    r->has_address = true;
  } else if (i->addr_format == FI_SOCKADDR_IN6 && i->src_addrlen >= sizeof(struct sockaddr_in6)) {
    memcpy(r->address, &((struct sockaddr_in6 *)i->src_addr)->sin6_addr, 16);
    r->has_address = true;
  }
}

int spx_fabric_list(spx_fabric_row **rows, uint32_t *n)
{
  struct fi_info *h = needs();
  *rows = NULL;
  *n = 0;
  int err = h ? lib.getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &offers) : -FI_ENOMEM;
  if (h) lib.freeinfo(h);
  if (err) return err == -FI_ENODATA ? 0 : -err;
  uint32_t all = 0;
  for (const struct fi_info *i = offers; i; i = i->next) all++;
  spx_fabric_row *list = calloc(all, sizeof *list);
  if (!list) return FI_ENOMEM;
  for (const struct fi_info *i = offers; i; i = i->next) {
    spx_fabric_row *r = &list[(*n)++];
    copy_name(r->provider, sizeof r->provider, i->fabric_attr->prov_name);
    copy_name(r->domain, sizeof r->domain, i->domain_attr->name);
    copy_name(r->network, sizeof r->network, i->fabric_attr->name);
    r->protocol = i->ep_attr->protocol;
    r->format = i->addr_format;
    r->longest = i->ep_attr->max_msg_size;
    read_address(r, i);
    const struct fi_link_attr *link = i->nic ? i->nic->link_attr : NULL;
    if (!link) continue;
    r->down = link->state == FI_LINK_DOWN;
    r->speed = link->speed;
  }
  *rows = list;
  return 0;
}

static int make_queue(spx_fabric_end *e, bool sleeps)
{
  struct fi_cq_attr a = {.format = FI_CQ_FORMAT_MSG,
                         .size = e->info->rx_attr->size + e->info->tx_attr->size,
                         .wait_obj = sleeps ? FI_WAIT_FD : FI_WAIT_NONE};
  int err = fi_cq_open(e->domain, &a, &e->cq, NULL);
  int fd = -1;
  if (!err && sleeps && fi_control(&e->cq->fid, FI_GETWAIT, &fd) == 0 && fd >= 0)
    e->waits = spx_net_watch(fd, EPOLLIN, EPOLL_CTL_ADD, UINT64_MAX) == 0;
  if (!err || !sleeps) return err;
  return make_queue(e, false);
}

int spx_fabric_open(uint32_t row, uint32_t processes, bool sleeps, const char **call)
{
  spx_fabric_end *e = &spx_fabric;
  const struct fi_info *i = offers;
  while (row--) i = i->next;
  *e = (spx_fabric_end){.info = lib.dupinfo(i)};
  struct fi_av_attr av = {.type = FI_AV_TABLE, .count = processes};
  *call = "fi_dupinfo";
  int err = e->info ? 0 : -FI_ENOMEM;
  if (!err && e->info->domain_attr->av_type != FI_AV_UNSPEC)
    av.type = e->info->domain_attr->av_type;
  if (!err) *call = "fi_fabric", err = lib.fabric(e->info->fabric_attr, &e->fabric, NULL);
  if (!err) *call = "fi_domain", err = fi_domain(e->fabric, e->info, &e->domain, NULL);
  if (!err) *call = "fi_av_open", err = fi_av_open(e->domain, &av, &e->av, NULL);
  if (!err) *call = "fi_cq_open", err = make_queue(e, sleeps);
  if (!err) *call = "fi_endpoint", err = fi_endpoint(e->domain, e->info, &e->ep, NULL);
  if (!err) *call = "fi_ep_bind", err = fi_ep_bind(e->ep, &e->av->fid, 0);
  if (!err) err = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
  if (!err) *call = "fi_enable", err = fi_enable(e->ep);
  size_t bytes = sizeof e->address;
  if (!err) *call = "fi_getname", err = fi_getname(&e->ep->fid, e->address, &bytes);
  e->address_bytes = (uint32_t)bytes;
  lib.freeinfo(offers);
  offers = NULL;
  if (err) spx_fabric_shut();
  return -err;
}

void spx_fabric_begin(void) { spx_byways = &spx_fabric_byway; }

void spx_fabric_shut(void)
{
  spx_fabric_end *e = &spx_fabric;
  bool open = e->ep && fi_close(&e->ep->fid) != 0;
  if (!open) spx_fabric_free_all(); /* registered with the domain */
  if (e->cq) fi_close(&e->cq->fid);
  if (e->av) fi_close(&e->av->fid);
  if (e->domain) fi_close(&e->domain->fid);
  if (e->fabric) fi_close(&e->fabric->fid);
  if (e->info) lib.freeinfo(e->info);
  *e = (spx_fabric_end){.ep = NULL};
}
#else
const char *spx_fabric_load(uint32_t *version)
{
  *version = 0;
  return "libspx was built without it: libfabric-dev was missing (make deps installs it)";
}
int spx_fabric_list(spx_fabric_row **rows, uint32_t *n)
{
  (void)rows, (void)n;
  return 0;
}
int spx_fabric_open(uint32_t row, uint32_t processes, bool sleeps, const char **call)
{
  (void)row, (void)processes, (void)sleeps, (void)call;
  return 0;
}
void spx_fabric_begin(void) {}
const char *spx_fabric_text(int error)
{
  (void)error;
  return "";
}
void spx_fabric_tick(void) {}
void spx_fabric_watch(void) {}
const char *spx_fabric_said(void) { return ""; }
#endif
