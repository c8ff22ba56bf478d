/* A model of ft/agree for Spin: N members agree once, of which up to CRASHES die, each anywhere, also between two sends of one step.
 * What a dead member had sent may be lost from any point on, for each receiver another; each member learns of each death at some time.
 * It has the names of ft/agree/agree.go. MPIX_Comm_agree and MPIX_Comm_shrink are both one such agreement: failed is the members that the new
 * communicator is without, context the one that it gets. Flags are left out; the members that have contributed stand for them.
 *
 * Checked in every reachable state: all that return from it return the same, also those that die afterwards; only the dead are excluded; all living
 * members have contributed. In every state in which nothing more can happen: all living members have returned.
 *
 * MUTANT puts a bug in: 1 a later root forgets what it has accepted, 2 a decision before all have accepted, 3 new children hear of no proposal,
 * 4 a proposal of a root that is known dead is taken, 5 a new parent does not get the contribution. */
#ifndef N
#define N 3
#endif
#ifndef CRASHES
#define CRASHES (N - 1)
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define NONE 255
#define BIT(i) (1 << (i))
#define ALL ((1 << N) - 1)
#define LIVES(i) (!(dead & BIT(i)))
#define QUEUE 6

mtype = { Gather, Propose, Accept, Commit };
/* kind, ballot, members that have contributed, failed, context */
chan way[N * N] = [QUEUE] of { mtype, byte, byte, byte, byte };

byte dead;      /* sets of members are bits */
byte returned;
byte theGave, theFailed, theContext; /* what the first has returned */

/* The lowest member that is not known dead. */
inline lowest(set, result) {
  result = 0;
  do
  :: set & BIT(result) -> result++
  :: else -> break
  od
}

/* The nearest ancestor of c that is not in set, else the lowest: agree/tree.go. */
inline parentOf(set, low, c, result) {
  if
  :: c == low -> result = NONE
  :: else ->
    result = c;
    do
    :: result == 0 -> result = low; break
    :: else ->
      result = (result - 1) / 2;
      if
      :: !(set & BIT(result)) -> break
      :: else -> skip
      fi
    od
  fi
}

inline relatives() {
  lowest(known, ballot);
  parentOf(known, ballot, me, parent);
  children = 0;
  i = 0;
  do
  :: i < N ->
    if
    :: i != me && !(known & BIT(i)) ->
      parentOf(known, ballot, i, up);
      if
      :: up == me -> children = children | BIT(i)
      :: else -> skip
      fi
    :: else -> skip
    fi;
    i++
  :: else -> break
  od;
  i = 0; up = 0
}

/* A member may die instead of any send. */
inline send(to, kind, b, g, f, x) {
  if
  :: !LIVES(me) || !LIVES(to) -> skip
  :: LIVES(me) && LIVES(to) ->
    assert(len(way[me * N + to]) < QUEUE);
    way[me * N + to]!kind, b, g, f, x
  :: LIVES(me) && crashes < CRASHES -> die()
  fi
}

inline die() {
  dead = dead | BIT(me);
  crashes++
}

byte crashes;

inline sendChildren(which, kind, g, f, x) {
  j = 0;
  do
  :: j < N ->
    if
    :: which & BIT(j) -> send(j, kind, ballot, g, f, x)
    :: else -> skip
    fi;
    j++
  :: else -> break
  od;
  j = 0
}

inline accept(g, f, x) {
  acceptedBallot = ballot; gave = g; failed = f; context = x;
  sendChildren(children, Propose, g, f, x)
}

/* The sends come first, then the return to the application. */
inline commit(g, f, x, from) {
  if
  :: committed -> skip
  :: else ->
    committed = true; gave = g; failed = f; context = x;
    j = children;
    if
    :: from != NONE -> j = j & ~BIT((from) % 8)
    :: else -> skip
    fi;
    up = j;
    sendChildren(up, Commit, g, f, x);
    if
    :: parent != NONE && parent != from -> send(parent, Commit, ballot, g, f, x)
    :: else -> skip
    fi;
    up = 0;
    if
    :: LIVES(me) && called -> gives()
    :: else -> skip
    fi
  fi
}

inline gives() {
  if
  :: returned == 0 ->
    theGave = gave; theFailed = failed; theContext = context;
    assert((failed & dead) == failed);            /* nobody alive is excluded */
    assert((ALL & ~dead & ~gave) == 0);           /* everybody alive has contributed */
    assert(gave & BIT(context))                   /* the context is somebody's */
  :: else -> assert(theGave == gave && theFailed == failed && theContext == context)
  fi;
  returned = returned | BIT(me)
}

/* learn takes in deaths: the tree changes, and who is new in it hears where we are. */
inline learn(set) {
  if
  :: (known & (set)) == (set) -> skip
  :: else ->
    known = known | (set);
    oldParent = parent; oldChildren = children;
    relatives();
    if
    :: parent != oldParent ->
      if
      :: MUTANT != 5 -> sentGather = NONE
      :: else -> skip
      fi;
      sentAccept = NONE;
      if
      :: committed && parent != NONE -> send(parent, Commit, ballot, gave, failed, context)
      :: else -> skip
      fi
    :: else -> skip
    fi;
    if
    :: committed -> sendChildren((children & ~oldChildren), Commit, gave, failed, context)
    :: !committed && acceptedBallot == ballot && MUTANT != 3 -> sendChildren((children & ~oldChildren), Propose, gave, failed, context)
    :: else -> skip
    fi;
    oldParent = 0; oldChildren = 0
  fi
}

/* allGathered and allAccepted over the children; the sum of what they have brought. */
inline sum() {
  ready = true; g1 = BIT(me); f1 = known;
  i = 0;
  do
  :: i < N ->
    if
    :: (children & BIT(i)) && gatherBallot[i] != ballot -> ready = false
    :: (children & BIT(i)) && gatherBallot[i] == ballot -> g1 = g1 | gatherGave[i]; f1 = f1 | gatherFailed[i]
    :: else -> skip
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

inline accepts() {
  ready = true;
  i = 0;
  do
  :: i < N ->
    if
    :: MUTANT != 2 && (children & BIT(i)) && acceptBallot[i] != ballot -> ready = false
    :: else -> skip
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

/* advance does whatever the present state allows. */
inline advance() {
  if
  :: !committed && called && LIVES(me) && sentGather != ballot && acceptedBallot != ballot ->
    sum();
    if
    :: ready ->
      sentGather = ballot;
      if
      :: parent != NONE -> send(parent, Gather, ballot, g1, f1, 0)
      :: parent == NONE && acceptedBallot != NONE && MUTANT != 1 -> accept(gave, failed, context) /* it may have been committed by somebody who is dead now */
      :: else -> accept(g1, f1, me)
      fi
    :: else -> skip
    fi
  :: else -> skip
  fi;
  if
  :: !committed && called && LIVES(me) && acceptedBallot == ballot && sentAccept != ballot ->
    accepts();
    if
    :: ready ->
      sentAccept = ballot;
      if
      :: parent != NONE -> send(parent, Accept, ballot, 0, 0, 0)
      :: else -> commit(gave, failed, context, NONE)
      fi
    :: else -> skip
    fi
  :: else -> skip
  fi;
  ready = false; g1 = 0; f1 = 0
}

inline receive(from) {
  way[from * N + me]?kind, b, g, f, x;
  if
  :: committed && kind != Commit -> send(from, Commit, ballot, gave, failed, context)
  :: kind == Commit -> commit(g, f, x, from)
  :: !committed && kind == Gather && b >= ballot -> gatherBallot[from] = b; gatherGave[from] = g; gatherFailed[from] = f
  :: !committed && kind == Accept && b >= ballot -> acceptBallot[from] = b
  :: !committed && kind == Propose ->
    if
    :: b > ballot -> learn((BIT(b) - 1))
    :: else -> skip
    fi;
    if
    :: LIVES(me) && (b == ballot || MUTANT == 4) && acceptedBallot != ballot -> accept(g, f, x)
    :: else -> skip
    fi
  :: else -> skip
  fi;
  kind = 0; b = 0; g = 0; f = 0; x = 0;
  advance()
}

/* What a dead member had sent, and is on its way, does not arrive. */
inline lose(from) {
  do
  :: nempty(way[from * N + me]) -> way[from * N + me]?_, _, _, _, _
  :: empty(way[from * N + me]) -> break
  od
}

proctype Member(byte me) {
  byte known, ballot, parent, children;
  byte gatherBallot[N] = NONE, gatherGave[N], gatherFailed[N], acceptBallot[N] = NONE;
  byte acceptedBallot = NONE, gave, failed, context, sentGather = NONE, sentAccept = NONE;
  bool called, committed;
  mtype kind;
  byte b, g, f, x, i, j, up, from, g1, f1, oldParent, oldChildren; /* 0 between two steps */
  bool ready;
  d_step { relatives() };
end:
  do
  :: !LIVES(me) -> break
  :: atomic { LIVES(me) && !called -> called = true; advance() }
  :: atomic { LIVES(me) && crashes < CRASHES -> die(); break }
  :: atomic { LIVES(me) && nempty(way[0 * N + me]) -> receive(0) }
  :: atomic { LIVES(me) && nempty(way[1 * N + me]) -> receive(1) }
  :: atomic { LIVES(me) && nempty(way[2 * N + me]) -> receive(2) }
#if N > 3
  :: atomic { LIVES(me) && nempty(way[3 * N + me]) -> receive(3) }
#endif
  :: atomic { LIVES(me) && (dead & ~known & BIT(0)) -> learn(BIT(0)); advance() }
  :: atomic { LIVES(me) && (dead & ~known & BIT(1)) -> learn(BIT(1)); advance() }
  :: atomic { LIVES(me) && (dead & ~known & BIT(2)) -> learn(BIT(2)); advance() }
#if N > 3
  :: atomic { LIVES(me) && (dead & ~known & BIT(3)) -> learn(BIT(3)); advance() }
#endif
  :: atomic { LIVES(me) && (dead & BIT(0)) && nempty(way[0 * N + me]) -> lose(0) }
  :: atomic { LIVES(me) && (dead & BIT(1)) && nempty(way[1 * N + me]) -> lose(1) }
  :: atomic { LIVES(me) && (dead & BIT(2)) && nempty(way[2 * N + me]) -> lose(2) }
#if N > 3
  :: atomic { LIVES(me) && (dead & BIT(3)) && nempty(way[3 * N + me]) -> lose(3) }
#endif
  od
}

init {
  atomic {
    run Member(0); run Member(1); run Member(2);
#if N > 3
    run Member(3);
#endif
  };
  crashes = CRASHES; /* at some moment: no further member dies */
end:
  timeout -> assert((ALL & ~dead & ~returned) == 0); /* nothing more will happen: no living member hangs */
}
