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
 *   P_STAYTREE   a death leaves the tree in use                       P_LOCKGONE  locks are void in a new generation                        */
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
chan ch[PROCS * PROCS] = [6] of { mtype, bit, bit, bit, byte, byte, short, byte, short };
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
  gone = 0; i = 0;
  do :: i < N -> if :: (dead & BIT(PROC(i))) -> gone = gone | BIT(i) :: else fi; i++ :: else -> break od;
  i = 0
}
/* the lowest that is neither known to be dead nor named by the last decision */
inline findLeader() {
  leader[q] = 0;
  do :: leader[q] != myRank && ((gone | base[q]) & BIT(leader[q])) -> leader[q]++ :: else -> break od
}
#define NEEDED (ALL & ~gone & ~base[q])
#define MISSING(wanted, there) ((wanted) & ~(there) & ~gone & ~BIT(myRank))
/* N = 4 with everybody in the tree is the only one with an inner node */
#define HASINNER (N == 4 && base[q] == 0)
#define SUBTREE ((HASINNER && myRank == 2) -> BIT(3) : 0)
#define PARENT ((HASINNER && myRank == 3) -> 2 : leader[q])
#define CHILDREN MISSING((leader[q] == myRank -> (HASINNER -> (BIT(1) | BIT(2)) : (ALL & ~base[q])) : SUBTREE), 0)
#define DEADBITS (gone << 4)
#define LOCK(view) (gen * 8 + (view) + 1)

/* An event notes what has to be sent; flush() sends it, and the process may die before each message. */
inline answer(set) { outD = outD | MISSING(set, 0) }
inline passDecision() { if :: !passedD[q] -> passedD[q] = true; outDT = CHILDREN :: else fi }
inline clearRelayed() { relC[q] = 0; relS[q] = 0; relLV[q] = 0; relLW[q] = 0; relView[q] = NOBODY }

inline takePlace() {
  findLeader();
  if :: relView[q] != leader[q] -> clearRelayed() :: else fi;
  if :: (gone & ~base[q]) -> direct[q] = true :: else fi;
  acks[q] = 0; hasAcked[q] = false; passedP[q] = false
}

/* ---- events; q, d, view, covers, v, lv, lw and x are those of the event */

inline onCall() {
  called++;
  if
  :: st[q] == HELD ->
     st[q] = GATHERING;
     direct[q] = (gen == 1);
#if Q > 1
     if
     :: q == 1 && me != N && (value[0] >> 8) == gen -> base[q] = (value[0] >> 4) & ALL; direct[q] = false
     :: q == 1 && me != N && (value[0] >> 8) != gen -> direct[q] = true
     :: else
     fi;
#endif
     takePlace()
  :: else /* decided before it was called */
  fi
}
inline onState() {
  if
  :: st[q] == DECIDED -> doesAnswer = true
  :: st[q] != DECIDED && view == myRank ->
     ledC[q] = ledC[q] | covers; ledS[q] = ledS[q] | v;
     if :: lv > ledLV[q] -> ledLV[q] = lv; ledLW[q] = lw :: else fi;
     if :: d -> askers[q] = askers[q] | BIT(RANKOF(x)) :: else fi;
     if :: st[q] == PROPOSING -> outP = MISSING(covers, acks[q]) :: else fi
  :: st[q] != DECIDED && view != myRank && ((st[q] == HELD && relView[q] != NOBODY && relView[q] != view) || (st[q] != HELD && view != leader[q])) -> skip
  :: else ->
     relC[q] = relC[q] | covers; relS[q] = relS[q] | v; relView[q] = view;
     if :: lv > relLV[q] -> relLV[q] = lv; relLW[q] = lw :: else fi;
     if :: st[q] != GATHERING && st[q] != HELD && direct[q] -> outS = true :: else fi
  fi
}
inline onProposal() {
  if
  :: st[q] == DECIDED -> covers = BIT(view); doesAnswer = true; if :: !d -> passDecision() :: else fi
  :: st[q] != DECIDED && (view != leader[q] || view == myRank || (st[q] != STATED && st[q] != LOCKED)) -> skip
  :: else ->
     assert(lockV[q] == 0 || lockW[q] == v); /* HELD */
     if :: st[q] == STATED -> lockV[q] = LOCK(view); lockW[q] = v; acks[q] = acks[q] | BIT(myRank); st[q] = LOCKED :: else fi;
     if :: !d && !passedP[q] -> passedP[q] = true; outPT = CHILDREN :: else fi;
     if :: d && !direct[q] -> direct[q] = true; hasAcked[q] = false :: else fi
  fi
}
inline onAck() {
  if
  :: st[q] == DECIDED -> doesAnswer = true
  :: st[q] != DECIDED && (view != leader[q] || st[q] != (view == myRank -> PROPOSING : LOCKED)) -> skip
  :: else ->
     acks[q] = acks[q] | covers;
     if :: d -> askers[q] = askers[q] | BIT(RANKOF(x)) :: else fi;
     if :: st[q] == LOCKED && direct[q] -> hasAcked[q] = false :: else fi
  fi
}
inline onGone() {
  was = leader[q];
  findLeader();
  if
  :: st[q] == DECIDED -> if :: leader[q] != was -> covers = BIT(leader[q]); doesAnswer = true :: else fi
  :: st[q] == HELD || (st[q] != DECIDED && (base[q] & BIT(RANKOF(x)))) -> skip
  :: else ->
     if
     :: leader[q] != was ->
        direct[q] = true;
        acks[q] = 0; clearRelayed(); hasAcked[q] = false;
        if :: leader[q] == myRank -> st[q] = GATHERING :: else -> st[q] = STATED; outS = true fi
#ifndef P_STAYTREE
     :: leader[q] == was && !direct[q] ->
        direct[q] = true;
        if
        :: st[q] == STATED -> outS = true
        :: st[q] == LOCKED -> hasAcked[q] = false
        :: st[q] == PROPOSING -> outP = MISSING(NEEDED, acks[q])
        :: else
        fi
#endif
     :: else
     fi
  fi;
  was = 0
}
/* another process has the place of the victim from here on */
inline onGeneration() {
  base[q] = 0;
  if
  :: st[q] == DECIDED ->
     was = leader[q]; findLeader();
     if :: PROC(leader[q]) != was -> covers = BIT(leader[q]); doesAnswer = true :: else fi;
     was = 0
  :: else ->
     ledC[q] = 0; ledS[q] = 0; ledLV[q] = 0; ledLW[q] = 0; askers[q] = 0; clearRelayed();
#ifdef P_LOCKGONE
     lockV[q] = 0; lockW[q] = 0;
#endif
     findLeader();
     if :: st[q] != HELD -> st[q] = GATHERING; direct[q] = true; takePlace() :: else fi
  fi
}

/* ---- what follows from an event */

inline lead() {
  ledC[q] = ledC[q] | BIT(myRank);
  ledS[q] = ledS[q] | BIT(myRank) | DEADBITS;
  if :: lockV[q] > ledLV[q] -> ledLV[q] = lockV[q]; ledLW[q] = lockW[q] :: else fi;
  if
#ifndef P_NOLOCK
  :: ledLV[q] != 0 -> lockW[q] = ledLW[q]
  :: ledLV[q] == 0 ->
#else
  :: true ->
#endif
     lockW[q] = ledS[q] | (gen << 8);
     i = 0; /* VALID */
     do
     :: i < N ->
        assert(crashed[PROC(i)] || (base[q] & BIT(i)) || (lockW[q] & BIT(i)));
        assert(!(lockW[q] & BIT(i + 4)) || crashed[PROC(i)]);
        i++
     :: else -> break
     od;
     i = 0
  fi;
  lockV[q] = LOCK(myRank);
  acks[q] = acks[q] | BIT(myRank);
  st[q] = PROPOSING;
  if
  :: direct[q] -> outP = MISSING(NEEDED, acks[q])
  :: else -> outPT = CHILDREN; outP = MISSING(askers[q], acks[q])
  fi
}
#ifdef P_NOACK
#define ACKED true
#else
#define ACKED (MISSING(NEEDED, acks[q]) == 0)
#endif
inline advance() {
  if
  :: leader[q] == myRank ->
     if :: st[q] == GATHERING && MISSING(NEEDED, ledC[q]) == 0 -> lead() :: else fi;
     if :: st[q] == PROPOSING && ACKED -> dec = true; v = lockW[q]; d = 1 :: else fi
  :: else ->
     if :: st[q] == GATHERING && (direct[q] || (SUBTREE & ~relC[q]) == 0) -> st[q] = STATED; outS = true :: else fi;
     if :: st[q] == LOCKED && !hasAcked[q] && (direct[q] || (SUBTREE & ~acks[q]) == 0) -> hasAcked[q] = true; outA = true :: else fi
  fi
}
inline decide() {
  if
  :: st[q] == DECIDED -> assert(value[q] == v)
  :: else ->
     assert(lockV[q] == 0 || lockW[q] == v);
     assert(agreed[q] == 0 || agreed[q] == v); /* UNIFORM */
     agreed[q] = v; value[q] = v; done[me] = q + 1;
     if
     :: st[q] == PROPOSING && direct[q] -> answer(NEEDED)
     :: st[q] == PROPOSING && !direct[q] -> passDecision(); answer(askers[q])
     :: else ->
#ifndef P_NOTELL
        answer(ledC[q]);
#endif
        if :: st[q] == HELD || (st[q] == GATHERING && d) -> answer(relC[q]) :: else fi
     fi;
     st[q] = DECIDED;
     ledC[q] = 0; ledS[q] = 0; ledLV[q] = 0; ledLW[q] = 0; clearRelayed();
     acks[q] = 0; hasAcked[q] = false; lockV[q] = 0; lockW[q] = 0; askers[q] = 0; passedP[q] = false;
#if Q > 1 && !defined(GEN)
     /* everybody has the one before it; where a successor may ask for it, it is kept */
     if :: q == 1 -> value[0] = 0; hasForgotten = true :: else fi
#endif
  fi;
  if :: !d -> passDecision() :: else fi;
  dec = false
}
inline put(set, kind, way, what) {
  if
  :: (set & BIT(to)) ->
     whom = PROC(to);
     if
     :: crashed[me] || (dead & BIT(whom)) -> skip
     :: !crashed[me] && !(dead & BIT(whom)) -> ch[me * PROCS + whom] ! kind, q, gen, way, leader[q], covers, what, lv, lw
     :: !crashed[me] && crashes < allowed -> crashed[me] = true; crashes++
     fi;
     whom = 0
  :: else
  fi;
  to++
}
inline flush() {
  lv = 0; lw = 0; covers = 0;
  if
  :: outS ->
     if :: direct[q] -> outS = false; was = BIT(leader[q]) :: else -> outS = false; was = BIT(PARENT) fi;
     if :: lockV[q] > relLV[q] -> lv = lockV[q]; lw = lockW[q] :: else -> lv = relLV[q]; lw = relLW[q] fi;
     covers = relC[q] | BIT(myRank); v = relS[q] | BIT(myRank) | DEADBITS;
     do :: to < N -> put(was, STATE, direct[q], v) :: else -> break od;
     to = 0; lv = 0; lw = 0; covers = 0
  :: else
  fi;
  do :: outPT && to < N -> put(outPT, PROPOSE, 0, lockW[q]) :: else -> break od;
  to = 0; outPT = 0;
  do :: outP && to < N -> put(outP, PROPOSE, 1, lockW[q]) :: else -> break od;
  to = 0; outP = 0;
  if
  :: outA ->
     if :: direct[q] -> outA = false; was = BIT(leader[q]) :: else -> outA = false; was = BIT(PARENT) fi;
     covers = acks[q];
     do :: to < N -> put(was, ACK, direct[q], 0) :: else -> break od;
     to = 0; covers = 0
  :: else
  fi;
  do :: outDT && to < N -> put(outDT, DECIDE, 0, value[q]) :: else -> break od;
  to = 0; outDT = 0;
  do :: outD && to < N -> put(outD, DECIDE, 1, value[q]) :: else -> break od;
  to = 0; outD = 0; was = 0
}

/* a message of the next generation waits until this process has come to it */
#ifdef GEN
#define ISNOW(p) (gen == 1 || (dead & BIT(p)) || FROM(p) ?? [_, _, 0, _, _, _, _, _, _])
#else
#define ISNOW(p) true
#endif
#define CANTAKE(p) ((p) != me && nempty(FROM(p)) && ISNOW(p))
#define NEWS(p) ((p) != me && crashed[p] && !(dead & BIT(p)))
#define OVER(p) (crashed[p] || done[p] == Q)
#ifdef GEN
#define LASTOVER (OVER(N) || !recovered)
#else
#define LASTOVER true
#endif
#if N > 3
#define EVERYBODY (OVER(0) && OVER(1) && OVER(2) && OVER(3) && LASTOVER)
#else
#define EVERYBODY (OVER(0) && OVER(1) && OVER(2) && LASTOVER)
#endif

#define CALL 1
#define DIE 2
#define NEW 3
#define TAKE 4
#define NEXT 5

proctype P(byte me) {
  byte dead = 0, gone = 0, called = 0, i = 0, to = 0, was = 0, x = 0, q = 0, ev = 0, whom = 0, myRank = me;
  byte outPT = 0, outP = 0, outDT = 0, outD = 0;
  bit gen = 0; bool hasForgotten = false, outS = false, outA = false, dec = false, doesAnswer = false, isVoid = false;
  byte st[Q], leader[Q], base[Q], ledC[Q], ledLV[Q], relC[Q], relLV[Q], relView[Q], acks[Q], lockV[Q], askers[Q];
  short ledS[Q], ledLW[Q], relS[Q], relLW[Q], lockW[Q], value[Q];
  bool direct[Q], hasAcked[Q], passedP[Q], passedD[Q];
  mtype t = STATE; bit g, d; byte view, covers, lv; short v, lw;
end_unborn:
  atomic {
    (me != N || recovered) ->
    relView[0] = NOBODY;
#if Q > 1
    relView[1] = NOBODY;
#endif
#ifdef GEN
    if :: me == N -> gen = 1; myRank = victim; dead = BIT(victim); reckon() :: else fi
#endif
  }

  do
  :: atomic {
       if
       :: !crashed[me] && called < Q && called <= done[me] -> ev = CALL; q = called
       :: !crashed[me] && crashes < allowed && !EVERYBODY -> ev = DIE
       :: !crashed[me] && NEWS(0) -> ev = NEW; x = 0
       :: !crashed[me] && NEWS(1) -> ev = NEW; x = 1
       :: !crashed[me] && NEWS(2) -> ev = NEW; x = 2
       :: !crashed[me] && CANTAKE(0) -> ev = TAKE; x = 0
       :: !crashed[me] && CANTAKE(1) -> ev = TAKE; x = 1
       :: !crashed[me] && CANTAKE(2) -> ev = TAKE; x = 2
#if PROCS > 3
       :: !crashed[me] && NEWS(3) -> ev = NEW; x = 3
       :: !crashed[me] && CANTAKE(3) -> ev = TAKE; x = 3
#endif
#ifdef GEN
       :: !crashed[me] && !recovered && dead && !EVERYBODY -> /* the recovery is decided: of somebody who is known to be dead */
          recovered = true;
          do :: !(dead & BIT(victim)) || victim == NOBODY -> if :: victim == NOBODY -> victim = 0 :: else -> victim++ fi :: else -> break od
       :: !crashed[me] && recovered && gen == 0 -> ev = NEXT
#endif
       fi;
       if
       :: ev == DIE -> crashed[me] = true; crashes++
       :: ev == NEW -> dead = dead | BIT(x); reckon(); isVoid = (gen == 1 && x == victim); q = hasForgotten
       :: ev == NEXT ->
          q = 0;
          do :: q < Q -> leader[q] = PROC(leader[q]); q++ :: else -> break od;
          q = 0; dead = dead | BIT(victim); gen = 1; reckon()
       :: ev == TAKE ->
          FROM(x) ? t, q, g, d, view, covers, v, lv, lw;
          isVoid = (dead & BIT(x)) || (q == 0 && hasForgotten);
          isVoid = isVoid || (g < gen && t != DECIDE && st[q] != DECIDED)
       :: else
       fi;
       if
       :: ev == 0 || ev == DIE || isVoid -> skip
       :: else ->
          do
          :: if
             :: ev == CALL -> onCall()
             :: ev == NEW -> onGone()
             :: ev == NEXT -> onGeneration()
             :: ev == TAKE && t == STATE -> onState()
             :: ev == TAKE && t == PROPOSE -> onProposal()
             :: ev == TAKE && t == ACK -> onAck()
             :: ev == TAKE && t == DECIDE -> dec = true
             fi;
             if :: dec || doesAnswer || st[q] == HELD || st[q] == DECIDED -> skip :: else -> advance() fi;
             if :: dec -> decide() :: else fi;
#ifndef P_NOBACK
             if :: doesAnswer -> answer(covers) :: else fi;
#endif
             doesAnswer = false;
             flush();
             if
             :: (ev == NEW || ev == NEXT) && q + 1 < Q -> q++
             :: else -> break
             fi
          od
       fi;
       ev = 0; x = 0; q = 0; t = STATE; g = 0; d = 0; view = 0; covers = 0; v = 0; lv = 0; lw = 0; isVoid = false
     }
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
