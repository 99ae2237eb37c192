/* agree.pml: the agreement of src/ulfm (../ULFM.md), event by event as agreement.ts has it: the tree and the direct way, locks, two
 * agreements one after the other, and a generation in which another process has the place of a dead one.
 *
 *   -DN=3|4      members. With 4 the tree has an inner node: 0 has 1 and 2, and 2 has 3.
 *   -DMAXF=n     so many processes may die, each between any two of its steps and before any of its messages
 *   -DQ=1|2      agreements; the second one's tree leaves out those that the first one names as failed
 *   -DGEN        a dead member gets a successor, process N: who learns of it goes on in the next generation, at any moment afterwards
 *   -DLATECALL   members call at any moment, and not at once
 *
 * A death is learned by each other process at any later moment, or never, if nothing depends on it; from then on nothing of the dead process
 * is taken. Each pair has a channel that keeps its order; between pairs there is none. What a dead process has sent arrives or does not.
 *
 * Checked: all that decide an agreement decide the same, also those that die afterwards (UNIFORM); a new value holds the contributions of all
 * that live, and names nobody as failed that lives (VALID); nobody is proposed another value than the one that it has locked (HELD); no end
 * in which one that lives has not decided. Planted mistakes, each of which must be found:
 *   P_NOACK      the leader decides without waiting for ACKs          P_NOLOCK    a leader looks at no locks
 *   P_NOBACK     who has decided says nothing to a new leader         P_NOTELL    told before it leads, it says nothing to those that asked it
 *   P_STAYTREE   a death leaves the tree in use                       P_OLDVIEW   a PROPOSE of a leader that is known to be dead is locked
 *   P_KEEPGATHER what was gathered on the way to a dead leader goes to the next one
 *   P_FORGET     a decision is forgotten as soon as it is made        P_LOCKGONE  locks are void in a new generation
 *   P_OLDGEN     ACKs of an older generation count                    P_SUMDEAD   the failed set is the leader's own knowledge only, in the
 *                                                                                tree of the next agreement as each member knows it        */
#ifndef N
#define N 3
#endif
#ifndef MAXF
#define MAXF 1
#endif
#ifndef Q
#define Q 1
#endif
#ifdef GEN
#define PROCS (N + 1)
#else
#define PROCS N
#endif
#define ALL ((1 << N) - 1)
#define BIT(r) (1 << (r))
#define NOBODY 7

#define HELD 0
#define GATHERING 1
#define STATED 2
#define LOCKED 3
#define PROPOSING 4
#define DECIDED 5

mtype = { STATE, PROPOSE, ACK, DECIDE };
/* type, agreement, generation, direct, view, covers, value (contributions, 16 * the dead, 256 * its generation), lock's view, lock's value */
chan ch[PROCS * PROCS] = [8] of { mtype, bit, bit, bit, byte, byte, short, byte, short };
#define TO(p) ch[me * PROCS + (p)]
#define FROM(p) ch[(p) * PROCS + me]

bool crashed[PROCS];
byte crashes = 0;
byte allowed = 0;      /* a run may have fewer deaths than MAXF */
short agreed[Q];       /* what the first decided; 0: nobody has */
byte done[PROCS];      /* agreements that a process has decided */
bool recovered = false;
byte victim = NOBODY;  /* the rank whose place process N takes */

#define PROC(r) ((gen == 1 && (r) == victim) -> N : (r))
#define RANKOF(p) ((p) == N -> victim : (p))

/* ranks of the present generation that are known to be dead */
inline reckon() {
  goneRanks = 0;
  i = 0;
  do
  :: i < N -> if :: (dead & BIT(PROC(i))) -> goneRanks = goneRanks | BIT(i) :: else fi; i++
  :: else -> break
  od;
  i = 0
}
/* the lowest that is neither known to be dead nor named by the last decision */
inline findLeader(q) {
  leader[q] = 0;
  do
  :: leader[q] != myRank && ((goneRanks | base[q]) & BIT(leader[q])) -> leader[q]++
  :: else -> break
  od
}
#define NEEDED(q) (ALL & ~goneRanks & ~base[q])
#define MISSING(wanted, there) ((wanted) & ~(there) & ~goneRanks & ~BIT(myRank))
/* N = 4 with everybody in the tree is the only one with an inner node */
#define HASINNER(q) (N == 4 && base[q] == 0)
#define SUBTREE(q) ((HASINNER(q) && myRank == 2) -> BIT(3) : 0)
#define PARENT(q) ((HASINNER(q) && myRank == 3) -> 2 : leader[q])
#define CHILDREN(q) (MISSING((leader[q] == myRank -> (HASINNER(q) -> (BIT(1) | BIT(2)) : (ALL & ~base[q])) : SUBTREE(q)), 0))

inline die() { crashed[me] = true; crashes++ }
/* one message; its sender may die before it */
inline send(rank, kind, q, way, covering, what, theView, theLock) {
  whom = PROC(rank);
  if
  :: crashed[me] || (dead & BIT(whom)) -> skip
  :: !crashed[me] && !(dead & BIT(whom)) -> TO(whom) ! kind, q, gen, way, leader[q], covering, what, theView, theLock
  :: !crashed[me] && crashes < allowed -> die()
  fi;
  whom = 0
}
inline sendAll(set, kind, q, way, what) {
  targets = set;
  to = 0;
  do
  :: to < N -> if :: (targets & BIT(to)) -> send(to, kind, q, way, 0, what, 0, 0) :: else fi; to++
  :: else -> break
  od;
  to = 0; targets = 0
}
#define DEADBITS (goneRanks << 4)
inline upwards(q) {
  if :: direct[q] -> to = leader[q] :: else -> to = PARENT(q) fi
}
inline sendState(q) {
  upwards(q);
  /* its own lock, or the highest that came up the tree */
  if :: lockView[q] > relLockView[q] -> lv2 = lockView[q]; lw2 = lockVal[q] :: else -> lv2 = relLockView[q]; lw2 = relLockVal[q] fi;
  send(to, STATE, q, direct[q], relCovers[q] | BIT(myRank), relSum[q] | BIT(myRank) | DEADBITS, lv2, lw2);
  to = 0; lv2 = 0; lw2 = 0
}
inline sendAck(q) {
  hasAcked[q] = true;
  upwards(q);
  send(to, ACK, q, direct[q], acks[q], 0, 0, 0);
  to = 0
}
inline propose(q, set) { sendAll(set, PROPOSE, q, 1, lockVal[q]) }
#ifdef P_NOBACK
#define ANSWER(q, set) skip
#else
#define ANSWER(q, set) sendAll(MISSING(set, 0), DECIDE, q, 1, value[q])
#endif
inline passDecision(q) {
  if
  :: !passedD[q] -> passedD[q] = true; children = CHILDREN(q); sendAll(children, DECIDE, q, 0, value[q])
  :: else
  fi
}

inline decide(q, v, isDirect) {
  if
  :: st[q] != DECIDED ->
     value[q] = v;
     assert(agreed[q] == 0 || agreed[q] == v); /* UNIFORM */
     agreed[q] = v;
     done[me] = q + 1;
     was = st[q];
     st[q] = DECIDED;
     if
     :: was == PROPOSING && direct[q] -> sendAll(MISSING(NEEDED(q), 0), DECIDE, q, 1, v)
     :: was == PROPOSING && !direct[q] -> passDecision(q); sendAll(MISSING(askers[q], 0), DECIDE, q, 1, v)
     :: was != PROPOSING ->
#ifndef P_NOTELL
        ANSWER(q, ledCovers[q]);
#endif
        if
        :: was == HELD || (was == GATHERING && isDirect) -> ANSWER(q, relCovers[q])
        :: else
        fi
     fi;
     was = 0;
     tidy(q)
  :: else
  fi
}
/* what an agreement that is decided does not need any more */
inline tidy(q) {
  ledCovers[q] = 0; ledSum[q] = 0; ledLockView[q] = 0; ledLockVal[q] = 0; relCovers[q] = 0; relSum[q] = 0; relLockView[q] = 0; relLockVal[q] = 0;
  relView[q] = NOBODY; acks[q] = 0; hasAcked[q] = false; lockView[q] = 0; lockVal[q] = 0; askers[q] = 0; passedP[q] = false;
#if Q > 1 && !defined(GEN)
  if
  :: q > 0 -> value[0] = 0; forgotten = true; leader[0] = 0; direct[0] = false; passedD[0] = false; base[0] = 0
  :: else
  fi
#endif
}

inline lead(q) {
  ledCovers[q] = ledCovers[q] | BIT(myRank);
  ledSum[q] = ledSum[q] | BIT(myRank) | DEADBITS;
  if :: lockView[q] > ledLockView[q] -> ledLockView[q] = lockView[q]; ledLockVal[q] = lockVal[q] :: else fi;
  if
#ifndef P_NOLOCK
  :: ledLockView[q] != 0 -> lockVal[q] = ledLockVal[q]
  :: ledLockView[q] == 0 ->
#else
  :: true ->
#endif
     lockVal[q] = ledSum[q] | (gen << 8);
     /* VALID: everybody who lives has contributed, and nobody who lives is named */
     i = 0;
     do
     :: i < N ->
        assert(crashed[PROC(i)] || (base[q] & BIT(i)) || (lockVal[q] & BIT(i)));
        assert(!(lockVal[q] & BIT(i + 4)) || crashed[PROC(i)]);
        i++
     :: else -> break
     od;
     i = 0
  fi;
  lockView[q] = gen * 8 + myRank + 1;
  acks[q] = acks[q] | BIT(myRank);
  st[q] = PROPOSING;
  if
  :: direct[q] -> propose(q, MISSING(NEEDED(q), acks[q]))
  :: else -> children = CHILDREN(q); sendAll(children, PROPOSE, q, 0, lockVal[q]); propose(q, MISSING(askers[q], acks[q]))
  fi
}
#ifdef P_NOACK
#define ACKED(q) true
#else
#define ACKED(q) (MISSING(NEEDED(q), acks[q]) == 0)
#endif
inline advance(q) {
  if
  :: leader[q] == myRank ->
     if :: st[q] == GATHERING && MISSING(NEEDED(q), ledCovers[q]) == 0 -> lead(q) :: else fi;
     if :: st[q] == PROPOSING && ACKED(q) -> decide(q, lockVal[q], 1) :: else fi
  :: else ->
     if
     :: st[q] == GATHERING && (direct[q] || (SUBTREE(q) & ~relCovers[q]) == 0) -> st[q] = STATED; sendState(q)
     :: else
     fi;
     if
     :: st[q] == LOCKED && !hasAcked[q] && (direct[q] || (SUBTREE(q) & ~acks[q]) == 0) -> sendAck(q)
     :: else
     fi
  fi
}
inline clearRelayed(q) { relCovers[q] = 0; relSum[q] = 0; relLockView[q] = 0; relLockVal[q] = 0; relView[q] = NOBODY }
inline takePlace(q) {
  findLeader(q);
  if :: relView[q] != leader[q] -> clearRelayed(q) :: else fi;
  if :: (goneRanks & ~base[q]) -> direct[q] = true :: else fi;
  acks[q] = 0; hasAcked[q] = false; passedP[q] = false
}
inline begin(q) {
  called = q + 1;
  if
  :: st[q] == HELD ->
     st[q] = GATHERING;
     direct[q] = false;
     if
     :: me == N -> direct[q] = true
#if Q > 1
     :: me < N && q == 1 && (value[0] >> 8) == gen -> base[q] = (value[0] >> 4) & ALL
     :: me < N && q == 1 && (value[0] >> 8) != gen -> direct[q] = true
     :: me < N && q == 0 -> direct[q] = (gen == 1)
#else
     :: me < N -> direct[q] = (gen == 1)
#endif
     fi;
     takePlace(q);
     advance(q)
  :: else /* decided before it was called */
  fi
}

inline takeState(q, d, view, covers, v, lv, lw) {
  if
  :: st[q] == DECIDED -> ANSWER(q, covers)
  :: st[q] != DECIDED && view == myRank ->
     ledCovers[q] = ledCovers[q] | covers; ledSum[q] = ledSum[q] | v;
     if :: lv > ledLockView[q] -> ledLockView[q] = lv; ledLockVal[q] = lw :: else fi;
     if :: d -> askers[q] = askers[q] | BIT(RANKOF(p)) :: else fi;
     if
     :: st[q] == PROPOSING -> propose(q, MISSING(covers, acks[q]))
     :: st[q] != PROPOSING && leader[q] == view -> advance(q)
     :: else
     fi
  :: st[q] != DECIDED && view != myRank ->
     if
     :: (st[q] == HELD && relView[q] != NOBODY && relView[q] != view) || (st[q] != HELD && view != leader[q]) -> skip
     :: else ->
        relCovers[q] = relCovers[q] | covers; relSum[q] = relSum[q] | v; relView[q] = view;
        if :: lv > relLockView[q] -> relLockView[q] = lv; relLockVal[q] = lw :: else fi;
        if
        :: st[q] == GATHERING -> advance(q)
        :: st[q] != GATHERING && st[q] != HELD && direct[q] -> sendState(q)
        :: else
        fi
     fi
  fi
}
#ifdef P_OLDVIEW
#define ISOLD(q, view) (view == myRank)
#else
#define ISOLD(q, view) (view != leader[q] || view == myRank)
#endif
inline takeProposal(q, d, view, v) {
  if
  :: st[q] == DECIDED -> ANSWER(q, BIT(view)); if :: !d -> passDecision(q) :: else fi
  :: st[q] != DECIDED && (ISOLD(q, view) || (st[q] != STATED && st[q] != LOCKED)) -> skip
  :: else ->
     assert(lockView[q] == 0 || lockVal[q] == v); /* HELD */
     if
     :: st[q] == STATED -> lockView[q] = gen * 8 + view + 1; lockVal[q] = v; acks[q] = acks[q] | BIT(myRank); st[q] = LOCKED
     :: else
     fi;
     if :: !d && !passedP[q] -> passedP[q] = true; children = CHILDREN(q); sendAll(children, PROPOSE, q, 0, v) :: else fi;
     if :: d && !direct[q] -> direct[q] = true; hasAcked[q] = false :: else fi;
     advance(q)
  fi
}
inline takeAck(q, d, view, covers) {
  if
  :: st[q] == DECIDED -> ANSWER(q, covers)
  :: st[q] != DECIDED && (view != leader[q] || st[q] != (view == myRank -> PROPOSING : LOCKED)) -> skip
  :: else ->
     acks[q] = acks[q] | covers;
     if :: d -> askers[q] = askers[q] | BIT(RANKOF(p)) :: else fi;
     if :: st[q] == LOCKED && direct[q] -> hasAcked[q] = false :: else fi;
     advance(q)
  fi
}
inline takeDecision(q, d, v) {
  if
  :: st[q] == DECIDED -> assert(value[q] == v)
  :: else -> assert(lockView[q] == 0 || lockVal[q] == v)
  fi;
  decide(q, v, d);
  if :: !d -> passDecision(q) :: else fi
}

/* a rank is gone, which goneRanks knows by now */
inline gone(q, r) {
  was = leader[q];
  findLeader(q);
  changed = (leader[q] != was);
  was = 0;
  if
#ifdef P_NOBACK
  :: st[q] == DECIDED -> skip
#else
  :: st[q] == DECIDED -> if :: changed -> ANSWER(q, BIT(leader[q])) :: else fi
#endif
  :: st[q] == HELD || (st[q] != DECIDED && (base[q] & BIT(r))) -> skip
  :: else ->
     if
     :: changed ->
        direct[q] = true;
#ifndef P_KEEPGATHER
        clearRelayed(q);
#endif
        acks[q] = 0; hasAcked[q] = false;
        if
        :: leader[q] == myRank -> st[q] = GATHERING
        :: else -> st[q] = STATED; sendState(q)
        fi
     :: !changed && !direct[q] ->
#ifndef P_STAYTREE
        direct[q] = true;
        if
        :: st[q] == STATED -> sendState(q)
        :: st[q] == LOCKED -> hasAcked[q] = false
        :: st[q] == PROPOSING -> propose(q, MISSING(NEEDED(q), acks[q]))
        :: else
        fi
#else
        skip
#endif
     :: else
     fi;
     advance(q)
  fi;
  changed = false
}
inline learn(x) {
  dead = dead | BIT(x);
  reckon();
  if
  :: x == N || gen == 0 || x != victim ->
     lost = RANKOF(x);
     gone(0, lost);
#if Q > 1
     gone(1, lost);
#endif
     lost = 0
  :: else
  fi
}

/* another process has the place of the victim from here on */
inline generation(q) {
  if
  :: st[q] == DECIDED ->
     was = leader[q]; base[q] = 0; findLeader(q);
     if :: PROC(leader[q]) != was -> ANSWER(q, BIT(leader[q])) :: else fi;
     was = 0
  :: else ->
     ledCovers[q] = 0; ledSum[q] = 0; ledLockView[q] = 0; ledLockVal[q] = 0; askers[q] = 0; clearRelayed(q);
     base[q] = 0;
     findLeader(q);
     if
     :: st[q] != HELD ->
        st[q] = GATHERING;
        direct[q] = true;
#ifdef P_LOCKGONE
        lockView[q] = 0; lockVal[q] = 0;
#endif
        takePlace(q);
        advance(q)
     :: else
     fi
  fi
}

inline take(x) {
  p = x;
  FROM(x) ? t, b, g, d, view, covers, v, lv, lw;
  if
  :: (dead & BIT(x)) -> skip
#if Q > 1
  :: !(dead & BIT(x)) && b == 0 && forgotten -> skip
#endif
#ifndef P_OLDGEN
  :: !(dead & BIT(x)) && g < gen && t != DECIDE && st[b] != DECIDED -> skip
#endif
  :: else ->
     if
#ifdef P_FORGET
     :: st[b] == DECIDED -> skip
#endif
     :: t == STATE -> takeState(b, d, view, covers, v, lv, lw)
     :: t == PROPOSE -> takeProposal(b, d, view, v)
     :: t == ACK -> takeAck(b, d, view, covers)
     :: t == DECIDE -> takeDecision(b, d, v)
     fi
  fi;
  p = 0; t = 0; b = 0; g = 0; d = 0; view = 0; covers = 0; v = 0; lv = 0; lw = 0
}

#define CANTAKE(x) (x != me && nempty(FROM(x)) && ISNOW(x))
/* a message of the next generation waits until this process has come to it */
#ifdef GEN
#define ISNOW(x) (gen == 1 || FROM(x) ?? [_, _, 0, _, _, _, _, _, _] || (dead & BIT(x)))
#else
#define ISNOW(x) true
#endif
#define NEWS(x) (x != me && crashed[x] && !(dead & BIT(x)))
#define OVER(x) (crashed[x] || done[x] == Q)
#if PROCS == 3
#define EVERYBODY (OVER(0) && OVER(1) && OVER(2))
#elif defined(GEN) && N == 3
#define EVERYBODY (OVER(0) && OVER(1) && OVER(2) && (OVER(3) || !recovered))
#else
#define EVERYBODY (OVER(0) && OVER(1) && OVER(2) && OVER(3))
#endif

proctype P(byte me) {
  byte dead = 0, goneRanks = 0, called = 0, i = 0, to = 0, targets = 0, was = 0, p = 0;
  bit gen = 0; bool changed = false, forgotten = false;
  byte st[Q], leader[Q], base[Q], ledCovers[Q], ledLockView[Q], relCovers[Q], relLockView[Q], relView[Q], acks[Q], lockView[Q], askers[Q];
  short ledSum[Q], ledLockVal[Q], relSum[Q], relLockVal[Q], lockVal[Q], value[Q];
  bool direct[Q], hasAcked[Q], passedP[Q], passedD[Q];
  mtype t; bit b, g, d; byte view, covers, lv, lv2 = 0, whom = 0, children = 0, lost = 0, myRank = me; short v, lw, lw2 = 0;
  atomic {
    relView[0] = NOBODY;
#if Q > 1
    relView[1] = NOBODY;
#endif
    t = 0;
#ifdef GEN
    if :: me == N -> recovered; gen = 1; myRank = victim; dead = BIT(victim); reckon(); leader[0] = 0; findLeader(0) :: else fi;
#endif
#ifndef LATECALL
    begin(0)
#endif
  }
  do
  :: atomic { !crashed[me] && called < Q && called <= done[me] -> begin(called - 0) }
  :: atomic { !crashed[me] && crashes < allowed && !EVERYBODY -> die() }
  :: atomic { !crashed[me] && NEWS(0) -> learn(0) }
  :: atomic { !crashed[me] && NEWS(1) -> learn(1) }
  :: atomic { !crashed[me] && NEWS(2) -> learn(2) }
#if PROCS > 3
  :: atomic { !crashed[me] && NEWS(3) -> learn(3) }
#endif
  :: atomic { !crashed[me] && CANTAKE(0) -> take(0) }
  :: atomic { !crashed[me] && CANTAKE(1) -> take(1) }
  :: atomic { !crashed[me] && CANTAKE(2) -> take(2) }
#if PROCS > 3
  :: atomic { !crashed[me] && CANTAKE(3) -> take(3) }
#endif
#ifdef GEN
  :: atomic { !crashed[me] && !recovered && crashed[0] && (dead & 1) -> victim = 0; recovered = true }
  :: atomic { !crashed[me] && !recovered && crashed[1] && (dead & 2) -> victim = 1; recovered = true }
  :: atomic { !crashed[me] && !recovered && crashed[2] && (dead & 4) -> victim = 2; recovered = true }
  :: atomic { !crashed[me] && recovered && gen == 0 ->
       dead = dead | BIT(victim);
       gen = 1; reckon();
       generation(0);
#if Q > 1
       generation(1)
#endif
     }
#endif
  :: atomic { crashed[me] || (EVERYBODY && done[me] == Q) -> break }
  od
}

init {
  atomic {
    do :: allowed < MAXF -> allowed++ :: break od;
    byte n = 0;
    do :: n < PROCS -> run P(n); n++ :: else -> break od
  }
}
