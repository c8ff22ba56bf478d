/* copies_hosts.h - the hosts of copies_sim.c: what keeps copies there, and the messages about them.
 * They take any time, but those from one to another stay in order; what a host had sent when it
 * died may come or not. */
enum { HOSTS = 5, MOST = 150 };

typedef struct parcel {
  struct parcel *next;
  uint32_t life; /* of the rank's process that has sent it, or that it is for */
  bool forget;
  spx_copy_piece piece; /* or: key and version */
  uint8_t data[MOST];
} parcel;
typedef struct waiting {
  struct waiting *next;
  uint64_t need;
  spx_kept *m;
  uint32_t to, n, claims; /* numbers of acknowledgements, or of claims */
  uint64_t data[];
} waiting;

static struct {
  uint32_t host, keeper, life; /* hosts; what life of the second */
  spx_copying out;
  waiting *first, **last;
  uint64_t term,
      version; /* messages that have left since depend on a copy at least as new as this */
} on[RANKS];
static struct {
  bool up;
  uint32_t life;
  spx_copies kept;
} hosts[HOSTS];
static parcel *to_host[RANKS][HOSTS], *to_rank[RANKS][HOSTS];
static uint64_t host_deaths, moved, barred;

static void add(parcel **at, const parcel *p)
{
  parcel *q = malloc(sizeof *q);
  *q = *p;
  q->next = NULL;
  while (*at) at = &(*at)->next;
  *at = q;
}

static void cut(parcel **at)
{
  while (*at) {
    parcel *q = *at;
    *at = q->next;
    free(q);
  }
}

static spx_msglog *make(void *arg, uint64_t area_bytes, void **memory)
{
  (void)arg;
  (void)memory;
  if (area_bytes != AREA) abort();
  return calloc(1, SPX_MSGLOG_HEAD + 3ul * AREA);
}
static bool room_for(void *arg, void *memory, uint64_t at, uint64_t bytes)
{
  (void)arg;
  (void)memory;
  return at + bytes <= SPX_MSGLOG_HEAD + 3ull * AREA;
}
static void drop(void *arg, spx_msglog *v, void *memory)
{
  (void)arg;
  (void)memory;
  free(v);
}
static spx_copies new_store(void)
{
  return (spx_copies){.make = make, .room = room_for, .drop = drop};
}

static void hosts_begin(void)
{
  memset(on, 0, sizeof on);
  for (uint32_t h = 0; h < HOSTS; h++) {
    hosts[h].up = true;
    hosts[h].kept = new_store();
  }
}

static void hosts_end(void)
{
  for (uint32_t h = 0; h < HOSTS; h++) {
    spx_copies_end(&hosts[h].kept);
    for (uint32_t i = 0; i < RANKS; i++) {
      cut(&to_host[i][h]);
      cut(&to_rank[i][h]);
    }
  }
}

/* The host with the copy of a rank that counts, but for one; HOSTS: there is none. */
static uint32_t best_of(uint32_t rank, uint32_t but)
{
  uint32_t best = HOSTS;
  const spx_log_copy *c = NULL;
  for (uint32_t h = 0; h < HOSTS; h++) {
    const spx_log_copy *d = hosts[h].up && h != but ? spx_copies_best(&hosts[h].kept, rank) : NULL;
    if (!d || (c && spx_copy_order(&d->key, d->version, &c->key, c->version) <= 0)) continue;
    c = d;
    best = h;
  }
  return best;
}

/* A host, but for one, has a copy of all that effects have come of. */
static bool is_safe(uint32_t i, uint32_t but)
{
  uint32_t best = best_of(i, but);
  if (best == HOSTS) return false;
  const spx_log_copy *c = spx_copies_best(&hosts[best].kept, i);
  return c->key.term > on[i].term || (c->key.term == on[i].term && c->version >= on[i].version);
}

/* Something is left of a rank when its process dies. */
static bool spares(uint32_t i) { return i >= RANKS || is_safe(i, HOSTS); }

static uint32_t another(uint32_t but)
{
  uint32_t h;
  do h = (uint32_t)chance(HOSTS);
  while (!hosts[h].up || h == but);
  return h;
}

static void keep_at(uint32_t i, uint32_t host)
{
  on[i].keeper = host;
  on[i].life = hosts[host].life;
  spx_copying_begin(&on[i].out, (spx_msglog *)(void *)msglogs[i],
                    (spx_copy_key){on[i].out.key.term + 1, participants[i].life, i});
}

/* Messages that leave here wait for the copy, and stay in order. */
static waiting *holds_bytes(uint32_t i, spx_kept *m, uint32_t to, const void *data, size_t n)
{
  if (i >= RANKS) return NULL;
  uint64_t version = participants[i].core.version;
  if (!on[i].first && on[i].out.there >= version) return NULL;
  for (waiting *w = on[i].first; w && m; w = w->next)
    if (w->m == m) {
      w->m = NULL;
      spx_core_unbusy(&participants[i].core, m);
    }
  waiting *w = malloc(sizeof *w + n);
  *w = (waiting){.need = version, .m = m, .to = to};
  if (n) memcpy(w->data, data, n);
  if (m) m->busy++;
  *on[i].last = w;
  on[i].last = &w->next;
  return w;
}

static bool holds(uint32_t i, spx_kept *m, uint32_t to, const spx_frame_ack *acks, uint32_t n)
{
  waiting *w = holds_bytes(i, m, to, acks, n * sizeof *acks);
  if (w) w->n = n;
  return w != NULL;
}

static bool holds_claims(uint32_t i, uint32_t to, const spx_frame_claim *claims, uint32_t n)
{
  waiting *w = holds_bytes(i, NULL, to, claims, n * sizeof *claims);
  if (w) w->claims = n;
  return w != NULL;
}

static void release_to(uint32_t i, bool sends)
{
  participant *p = &participants[i];
  for (waiting *w; (w = on[i].first) && (!sends || on[i].out.there >= w->need);) {
    on[i].first = w->next;
    if (!w->next) on[i].last = &on[i].first;
    if (w->m) {
      if (sends && !w->m->gone)
        post(i, w->m->to, 0, &w->m->head, sizeof w->m->head + w->m->head.bytes);
      spx_core_unbusy(&p->core, w->m);
    } else if (sends && w->n)
      post(i, w->to, w->n, w->data, w->n * sizeof(spx_frame_ack));
    else if (sends && w->claims)
      post(i, w->to, 0, w->data, w->claims * sizeof(spx_frame_claim))->claims = w->claims;
    free(w);
  }
}

static void copies_end(uint32_t i)
{
  release_to(i, false);
  for (uint32_t h = 0; h < HOSTS; h++) { /* its messages may arrive or not */
    parcel **at = &to_host[i][h];
    while (*at && chance(3)) at = &(*at)->next;
    cut(at);
  }
}

/* A process has the rank: from nothing, or from a copy, of which it is the only one when its own
 * host has had it. */
static void copies_begin(uint32_t i)
{
  uint64_t term = 0;
  uint32_t best = best_of(i, HOSTS);
  if (participants[i].life > 1) {
    if (best == HOSTS) abort();
    for (uint32_t h = 0; h < HOSTS; h++) {
      if (hosts[h].up && !spx_copies_fence(&hosts[h].kept, i, participants[i].life)) abort();
      uint64_t t = hosts[h].up ? spx_copies_term(&hosts[h].kept, i) : 0;
      if (t > term) term = t;
    }
    spx_log_copy *c = spx_copies_best(&hosts[best].kept, i);
    spx_copies mine = new_store();
    spx_copying all;
    spx_copy_piece p;
    const uint8_t *data;
    spx_log_copy *got = NULL;
    spx_copying_begin(&all, c->log, c->key);
    while (spx_copying_next(&all, c->version, MOST, &p, &data))
      if (spx_copies_take(&mine, &p, data, &got) != SPX_COPY_TAKEN) abort();
    memcpy(msglogs[i], got->log, SPX_MSGLOG_HEAD + 3ul * AREA);
    spx_copies_end(&mine);
    on[i].host = another(HOSTS);
    if (on[i].host == best) spx_copies_forget(&hosts[best].kept, i, UINT64_MAX);
    /* spx_core_begin has read the state that was there before */
    spx_core_end(&participants[i].core);
    spx_core_io io = {transmit, acknowledge, claim,  deliver,         NULL,
                      NULL,     room,        failed, &participants[i]};
    if (!spx_core_begin(&participants[i].core, &io, PARTICIPANTS, i, participants[i].life, false,
                        (spx_msglog *)(void *)msglogs[i]))
      abort();
  } else
    on[i].host = i % HOSTS;
  participants[i].core.sparing = true;
  on[i].first = NULL;
  on[i].last = &on[i].first;
  on[i].out.key.term = term;
  keep_at(i, another(on[i].host));
}

static void pump(uint32_t i)
{
  parcel q = {.life = 0};
  const uint8_t *data;
  if (i >= RANKS) return;
  q.life = participants[i].life;
  while (spx_copying_next(&on[i].out, participants[i].core.version, MOST, &q.piece, &data)) {
    memcpy(q.data, data, q.piece.bytes);
    /* else it is lost */
    if (hosts[on[i].keeper].life == on[i].life) add(&to_host[i][on[i].keeper], &q);
  }
}

static parcel *next_of(parcel **at)
{
  parcel *q = *at;
  if (q) *at = q->next;
  return q;
}

static void at_host(uint32_t i, uint32_t h)
{
  parcel *q = next_of(&to_host[i][h]);
  spx_log_copy *c;
  if (!q) return;
  if (spx_copies_bars(&hosts[h].kept, &q->piece.key)) {
    if (q->life >= participants[i].life) abort();
    barred++;
  } else if (q->forget)
    spx_copies_forget(&hosts[h].kept, i, q->piece.key.term);
  else {
    spx_copy_result got = spx_copies_take(&hosts[h].kept, &q->piece, q->data, &c);
    if (got == SPX_COPY_WRONG || got == SPX_COPY_NO_MEMORY) abort();
    if (got == SPX_COPY_TAKEN && q->piece.version) add(&to_rank[i][h], q);
  }
  free(q);
}

static void at_rank(uint32_t i, uint32_t h)
{
  parcel *q = next_of(&to_rank[i][h]);
  if (!q) return;
  if (participants[i].up && q->life == participants[i].life && h == on[i].keeper) {
    bool first = !on[i].out.there;
    if (spx_copying_has(&on[i].out, &q->piece.key, q->piece.version)) {
      on[i].term = q->piece.key.term;
      on[i].version = q->piece.version;
      release_to(i, true);
    }
    parcel f = {.life = q->life, .forget = true, .piece = q->piece};
    for (uint32_t k = 0; first && on[i].out.there && k < HOSTS; k++)
      if (k != h && hosts[k].up) add(&to_host[i][k], &f);
  }
  free(q);
}

/* Something is left of all ranks when it has died, and two hosts. */
static bool may_lose(uint32_t h)
{
  uint32_t up = 0;
  for (uint32_t k = 0; k < HOSTS; k++) up += hosts[k].up && k != h;
  for (uint32_t i = 0; i < RANKS; i++)
    if ((!participants[i].up || on[i].host == h) && !is_safe(i, h)) return false;
  return hosts[h].up && up >= 2;
}

static void lose(uint32_t h)
{
  host_deaths++;
  hosts[h].up = false;
  hosts[h].life++;
  spx_copies_end(&hosts[h].kept);
  for (uint32_t i = 0; i < RANKS; i++) {
    cut(&to_host[i][h]);
    parcel **at = &to_rank[i][h];
    while (*at && chance(2)) at = &(*at)->next;
    cut(at);
    if (participants[i].up && on[i].host == h) dies(i);
  }
}

static void host_turn(void)
{
  uint32_t h = (uint32_t)chance(HOSTS), i = (uint32_t)chance(RANKS);
  if (hosts[h].up && deaths && chance(400) == 0 && may_lose(h)) lose(h);
  if (!hosts[h].up && chance(100) == 0) hosts[h].up = true; /* and without any state */
  for (int n = 0; n < 6; n++) {
    at_host((uint32_t)chance(RANKS), (uint32_t)chance(HOSTS));
    at_rank((uint32_t)chance(RANKS), (uint32_t)chance(HOSTS));
  }
  if (!participants[i].up) return;
  /* another one keeps it */
  if (hosts[on[i].keeper].life != on[i].life || (deaths && chance(300) == 0)) {
    keep_at(i, another(on[i].host));
    moved++;
  }
  pump(i);
}

static bool copies_quiet(void)
{
  for (uint32_t i = 0; i < RANKS; i++) {
    if (on[i].first || hosts[on[i].keeper].life != on[i].life || on[i].keeper == on[i].host ||
        on[i].out.there != participants[i].core.version)
      return false;
    for (uint32_t h = 0; h < HOSTS; h++) {
      if (to_host[i][h] || to_rank[i][h]) return false;
      for (const spx_log_copy *c = hosts[h].up ? hosts[h].kept.first : NULL; c; c = c->next)
        /* what is not needed is freed */
        if (c->key.rank == i && c->key.term != on[i].out.key.term) return false;
    }
  }
  return true;
}

static bool copies_told(uint64_t runs)
{
  printf("%llu hosts have died, %llu times another one was to keep a copy, %llu pieces of the dead "
         "were barred\n",
         (unsigned long long)host_deaths, (unsigned long long)moved, (unsigned long long)barred);
  return host_deaths >= runs && barred;
}
