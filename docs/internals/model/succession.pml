/* succession.pml: who succeeds a process that died goes on with its numbers, and nobody else goes back (src/pml/tap.ts, src/pml/succession.ts):
 * logs, holes, SYNC, sends that are numbered and do not leave, saves that trim the logs. Agreement is taken as given (agree.pml): decisions have
 * one order, and each rank hears of each at its own time. Rails are taken as given, too (failover.pml): between two processes messages keep
 * their order.
 *
 *   -DMAXF=n     so many processes may die, each between any two steps: survivors, successors before and after their SYNC, in the replay
 *   -DFIRST=r    the first one to die has that rank
 *
 * Three ranks in a ring. Each sends three messages to its right neighbour: a rendezvous, then an eager message that is received after the save,
 * then a rendezvous. Whoever dies is succeeded by a process that begins with the newest committed save.
 *
 * Checked: no number comes twice or out of order, whatever is asked for is in the log, data come once and for a message that waits for them,
 * and there is no end in which somebody waits. Planted mistakes, each of which must be found:
 *   P_NOHOLES     what was under way counts as received           P_TRIMCUT    the log is trimmed at the cut, not at the commit
 *   P_UNNUMBERED  what does not leave takes no number             P_EARLYSEND  messages leave before the SYNC of the successor
 *   P_HOLETWICE   a hole is sent twice                            P_LATECOUNT  the numbers of a save are those of its commit
 *   P_FORGET      the numbers of a successor that dies before its SYNC are forgotten
 *   P_UNTILHEARD  the log is kept until the decision is heard     P_BACKWARDS  the log is sent newest first                              */
#ifndef MAXF
#define MAXF 1
#endif
#define N 3
#define M 3                      /* messages of a channel */
#define ALL 7
#define BIT(r) (1 << (r))
#define RIGHT(r) (((r) + 1) % N)
#define LEFT(r) (((r) + N - 1) % N)
#define OTHERS(r) (ALL & ~BIT(r))
#define IS_EAGER(s) ((s) == 1)

/* what becomes of a message at its receiver */
#define NONE 0
#define WAITS 1                  /* its envelope is here, its data are not */
#define ASKED 2                  /* it has matched, and its data were asked for */
#define HERE 3
#define TAKEN 4

/* the program: send 0, receive 0, send 1, save, receive 1, send 2, receive 2 */
#define SAVE 3
#define END 7
#define IS_SEND(c) ((c) == 0 || (c) == 2 || (c) == 5)
#define IS_RECEIVE(c) ((c) == 1 || (c) == 4 || (c) == 6)
#define PLACE(c) ((c) == 1 -> 0 : ((c) == 4 -> 1 : 2))

/* messages: kind, life of the sender, number, holes. What is for one that has died is lost. */
mtype = { SYNC, ENVELOPE, ASK, DATA };
chan net[N * N] = [8] of { mtype, byte, byte, byte };
#define NET(a, b) net[(a) * N + (b)]

byte life[N];                    /* of the process that has the rank now */
byte knows[N * N];               /* by r and q: the life of q with which r speaks */
#define KNOWS(r, q) knows[(r) * N + (q)]
byte dead = 0; byte deaths = 0;
byte begun = ALL;                /* a successor that has begun has said what it has */
byte ran = ALL;                  /* its program runs: it knows what all others have */
byte pc[N]; byte nextOut[N]; byte nextIn[N];
byte logFrom[N];
byte have[N * M];
#define HAVE(r, s) have[(r) * M + (s)]
byte holes[N];
byte synced[N];                  /* those of whom r knows what they have */
byte needFrom[N]; byte needHoles[N]; /* what the right neighbour lacks */

/* the newest committed save, and the one that is cut and not decided */
byte savedPc[N]; byte savedOut[N]; byte savedIn[N]; byte savedHave[N * M];
byte cutOut[N]; byte cutIn[N]; byte cutHave[N * M]; byte hasCut = 0;
bool isCut = false; bool isPassed = false;

/* decisions: ranks that are succeeded, or about the save */
#define D (MAXF + 1)
#define COMMITTED 8
#define ABANDONED 16
byte decision[D]; byte decided = 0; byte heard[N];

#define LIVES(r) ((dead & BIT(r)) == 0)
#define IDLE(r) (LIVES(r) && (begun & BIT(r)) && heard[r] == decided && synced[r] == OTHERS(r))
#define ENDED(r) (IDLE(r) && pc[r] == END)
#define STILL (len(net[1]) + len(net[2]) + len(net[3]) + len(net[5]) + len(net[6]) + len(net[7]) == 0)
#define FINISHED (ENDED(0) && ENDED(1) && ENDED(2) && STILL && !isCut)
#define WANTS(r, s) ((s) >= needFrom[r] || (needHoles[r] & BIT(s)) != 0)
#define AT_SAVE(r) (IDLE(r) && pc[r] == SAVE && holes[r] == 0 && nextOut[r] >= needFrom[r])

hidden byte i; hidden byte j; hidden byte x;

inline say(r, q, type, number, more) {
  if
  :: KNOWS(r, q) == life[q] -> assert(nfull(NET(r, q))); NET(r, q)!type(life[r], number, more)
  :: else
  fi
}
inline saySync(r, q) {
  if :: q == LEFT(r) -> say(r, q, SYNC, nextIn[r], holes[r]) :: else -> say(r, q, SYNC, 0, 0) fi
}
/* the right neighbour has said what it has */
inline sendRest(r) {
  x = 0;
  do
  :: x < nextOut[r] ->
#ifdef P_BACKWARDS
     j = nextOut[r] - 1 - x;
#else
     j = x;
#endif
     if
     :: WANTS(r, j) -> assert(j >= logFrom[r]); say(r, RIGHT(r), ENVELOPE, j, 0)
     :: else
     fi; x++
  :: else -> break
  od; x = 0; j = 0
}
/* of what comes from the left, what is not here as a whole comes again */
inline openHoles(r) {
  x = 0;
  do
  :: x < M ->
     if
     :: HAVE(r, x) == WAITS || HAVE(r, x) == ASKED ->
#ifndef P_NOHOLES
        holes[r] = holes[r] | BIT(x);
#endif
        HAVE(r, x) = WAITS
     :: else
     fi; x++
  :: else -> break
  od; x = 0
}
inline drain(q, r) { do :: nempty(NET(q, r)) -> NET(q, r)?_(_, _, _) :: empty(NET(q, r)) -> break od }
inline restore(r) {
  drain(LEFT(r), r); drain(RIGHT(r), r);
  life[r]++; pc[r] = savedPc[r]; nextOut[r] = savedOut[r]; nextIn[r] = savedIn[r]; logFrom[r] = savedOut[r];
  holes[r] = 0; needFrom[r] = 0; needHoles[r] = 0; synced[r] = 0; hasCut = hasCut & ~BIT(r); begun = begun & ~BIT(r);
  x = 0; do :: x < M -> HAVE(r, x) = savedHave[r * M + x]; x++ :: else -> break od; x = 0
}

proctype Rank(byte me) {
  mtype kind; byte a = 0, b = 0, q = 0, d = 0;
  do
  /* a successor begins */
  :: atomic { LIVES(me) && (begun & BIT(me)) == 0 ->
       begun = begun | BIT(me);
       saySync(me, LEFT(me)); saySync(me, RIGHT(me)) }
  /* a decision is heard */
  :: atomic { LIVES(me) && (begun & BIT(me)) && heard[me] < decided ->
       d = decision[heard[me]]; heard[me]++;
       if
       :: d == COMMITTED -> if :: hasCut & BIT(me) -> logFrom[me] = cutOut[me]; hasCut = hasCut & ~BIT(me) :: else fi
       :: d == ABANDONED -> hasCut = hasCut & ~BIT(me)
       :: else ->
          q = 0;
          do
          :: q < N ->
             if
             :: (d & BIT(q)) && q != me ->
                KNOWS(me, q)++;
                /* what has not come from the one that died does not come any more */
                do
                :: NET(q, me)?[kind, eval(KNOWS(me, q) - 1), a, b] -> NET(q, me)?_(_, _, _)
                :: else -> break
                od;
#ifdef P_FORGET
                if :: (synced[me] & BIT(q)) == 0 && q == LEFT(me) -> nextIn[me] = 0 :: else fi;
#endif
                synced[me] = synced[me] & ~BIT(q);
                if :: q == LEFT(me) -> openHoles(me) :: else fi;
#ifdef P_UNTILHEARD
                if :: q == RIGHT(me) -> logFrom[me] = nextOut[me] :: else fi;
#endif
                saySync(me, q)
             :: else
             fi; q++
          :: else -> break
          od
       fi; d = 0; q = 0 }
  /* what comes */
  :: atomic { LIVES(me) && (begun & BIT(me)) && NET(LEFT(me), me)?[kind, eval(KNOWS(me, LEFT(me))), a, b] ->
       NET(LEFT(me), me)?kind(_, a, b);
       if
       :: kind == SYNC -> synced[me] = synced[me] | BIT(LEFT(me))
       :: kind == DATA -> assert(HAVE(me, a) == ASKED); HAVE(me, a) = HERE
       :: kind == ENVELOPE && (holes[me] & BIT(a)) -> holes[me] = holes[me] & ~BIT(a); HAVE(me, a) = (IS_EAGER(a) -> HERE : WAITS)
       :: kind == ENVELOPE && !(holes[me] & BIT(a)) -> assert(a == nextIn[me]); nextIn[me]++; HAVE(me, a) = (IS_EAGER(a) -> HERE : WAITS)
       fi; kind = 0; a = 0; b = 0 }
  :: atomic { LIVES(me) && (begun & BIT(me)) && NET(RIGHT(me), me)?[kind, eval(KNOWS(me, RIGHT(me))), a, b] ->
       NET(RIGHT(me), me)?kind(_, a, b);
       if
       :: kind == SYNC -> synced[me] = synced[me] | BIT(RIGHT(me)); needFrom[me] = a; needHoles[me] = b; sendRest(me)
       :: kind == ASK -> assert(a >= logFrom[me] && a < nextOut[me]); say(me, RIGHT(me), DATA, a, 0)
       fi; kind = 0; a = 0; b = 0 }
  /* the program */
  :: atomic { LIVES(me) && (ran & BIT(me)) && IS_SEND(pc[me]) ->
       a = nextOut[me];
       if
#ifdef P_EARLYSEND
       :: (synced[me] & BIT(RIGHT(me))) == 0 || WANTS(me, a) -> say(me, RIGHT(me), ENVELOPE, a, 0); nextOut[me]++
#else
       :: (synced[me] & BIT(RIGHT(me))) && WANTS(me, a) ->
          say(me, RIGHT(me), ENVELOPE, a, 0);
#ifdef P_HOLETWICE
          if :: a < needFrom[me] -> say(me, RIGHT(me), ENVELOPE, a, 0) :: else fi;
#endif
          nextOut[me]++
#endif
       :: else ->
#ifdef P_UNNUMBERED
          if :: (synced[me] & BIT(RIGHT(me))) -> skip :: else -> nextOut[me]++ fi
#else
          nextOut[me]++
#endif
       fi; a = 0; pc[me]++ }
  :: atomic { LIVES(me) && (ran & BIT(me)) && IS_RECEIVE(pc[me]) && HAVE(me, PLACE(pc[me])) == WAITS && (holes[me] & BIT(PLACE(pc[me]))) == 0 ->
       HAVE(me, PLACE(pc[me])) = ASKED; say(me, LEFT(me), ASK, PLACE(pc[me]), 0) }
  :: atomic { LIVES(me) && (ran & BIT(me)) && IS_RECEIVE(pc[me]) && HAVE(me, PLACE(pc[me])) == HERE -> HAVE(me, PLACE(pc[me])) = TAKEN; pc[me]++ }
  /* a save that came to nothing is passed by whoever repeats it */
  :: atomic { LIVES(me) && (ran & BIT(me)) && pc[me] == SAVE && isPassed -> pc[me]++ }
  :: atomic { LIVES(me) && (begun & BIT(me)) && (ran & BIT(me)) == 0 && synced[me] == OTHERS(me) -> ran = ran | BIT(me) }
  :: FINISHED -> break
  od
}

/* Saves, and what is decided about them and about the dead. */
proctype Decide() {
  byte r = 0, s = 0;
  do
  :: atomic { dead == 0 && !isCut && !isPassed && AT_SAVE(0) && AT_SAVE(1) && AT_SAVE(2) && STILL ->
       isCut = true; isPassed = true; hasCut = ALL; r = 0;
       do
       :: r < N ->
          cutOut[r] = nextOut[r]; cutIn[r] = nextIn[r]; pc[r]++;
#ifdef P_TRIMCUT
          logFrom[r] = nextOut[r];
#endif
          s = 0; do :: s < M -> assert(HAVE(r, s) != WAITS && HAVE(r, s) != ASKED); cutHave[r * M + s] = HAVE(r, s); s++ :: else -> break od; r++
       :: else -> break
       od; r = 0; s = 0 }
  :: atomic { isCut ->
       if
       :: true ->
          decision[decided] = COMMITTED; r = 0;
          do
          :: r < N ->
             savedPc[r] = SAVE + 1; savedOut[r] = cutOut[r]; savedIn[r] = cutIn[r];
#ifdef P_LATECOUNT
             savedOut[r] = nextOut[r];
#endif
             s = 0; do :: s < M -> savedHave[r * M + s] = cutHave[r * M + s]; s++ :: else -> break od; r++
          :: else -> break
          od
       :: dead != 0 -> decision[decided] = ABANDONED
       fi;
       decided++; isCut = false; r = 0; s = 0 }
  :: atomic { dead != 0 && !isCut ->
       decision[decided] = dead; decided++; r = 0;
       do
       :: r < N -> if :: dead & BIT(r) -> restore(r) :: else fi; r++
       :: else -> break
       od;
       /* they speak with those that have the ranks now */
       r = 0;
       do
       :: r < N ->
          if
          :: dead & BIT(r) -> ran = ran & ~BIT(r); heard[r] = decided; s = 0; do :: s < N -> KNOWS(r, s) = life[s]; s++ :: else -> break od
          :: else
          fi; r++
       :: else -> break
       od;
       dead = 0; r = 0; s = 0 }
  :: FINISHED -> break
  od
}

proctype Death() {
  byte r = 0;
  do
  :: atomic { deaths < MAXF && !FINISHED ->
#ifdef FIRST
       if :: deaths == 0 -> r = FIRST :: deaths > 0 && LIVES(0) -> r = 0 :: deaths > 0 && LIVES(1) -> r = 1 :: deaths > 0 && LIVES(2) -> r = 2 fi;
#else
       if :: LIVES(0) -> r = 0 :: LIVES(1) -> r = 1 :: LIVES(2) -> r = 2 fi;
#endif
       dead = dead | BIT(r); deaths++; r = 0 }
  :: atomic { deaths < MAXF -> deaths = MAXF }
  :: deaths == MAXF -> break
  od
}

init { atomic { synced[0] = OTHERS(0); synced[1] = OTHERS(1); synced[2] = OTHERS(2); run Rank(0); run Rank(1); run Rank(2); run Decide(); run Death() } }
