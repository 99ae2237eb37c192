/* save.pml: saves and recoveries of src/ft (../../guide/checkpoints.md), with their votes in one order as save-core.ts has it: the slots of each
 * rank, its copy at its right neighbour, the decision about each save, the meeting after a death, the line that all go back to, the images of
 * successors, and the spreading of what was restored. Agreement itself is taken as given (agree.pml): each rank learns a decision at its own time.
 *
 *   -DSD=1|2     committed saves that stay readable: there are SD + 1 slots
 *   -DMAXF=n     so many ranks may die, each between any two steps: in a save, in a meeting, while images are read, while copies are spread
 *   -DA=n        votes: about saves, and about what was restored
 *   -DREFUSE     one rank may be unable to make its image, once
 *
 * Three ranks with one copy each. The place of a rank that died is taken by a process that has nothing. A death is learned by each of the others
 * at any later moment; who knows of one votes no, unless it has voted. A dead rank's vote counts or does not, if it is named as failed.
 *
 * Checked (F7): a save is committed where it and the copy that is held are whole; there is a free slot for each save; when all that live meet, they
 * know the same newest save; where one place was lost since it was committed, that save is the line; whatever the line is, its images are all of
 * one cut. And no end in which one that lives waits. Planted mistakes, each of which must be found:
 *   P_ONESLOT    SD slots: a save overwrites the oldest           P_OWNWORD    a rank goes by its own vote
 *   P_NOHOLD     a vote without the copy that is held             P_TWOSERIES  who knows of a death goes back, whatever will be decided
 *   P_NOSPREAD   what was restored is not spread again
 *   P_EARLY      what was restored leaves its slot before its copies are there
 *   P_GHOST      a copy of a save that was abandoned counts for the next one                                                          */
#ifndef SD
#define SD 1
#endif
#ifndef MAXF
#define MAXF 1
#endif
#ifndef A
#define A 3
#endif
#define N 3
#define ALL 7
#define BIT(r) (1 << (r))
#define RIGHT(r) (((r) + 1) % N)
#define LEFT(r) (((r) + N - 1) % N)
#ifdef P_ONESLOT
#define S SD
#else
#define S (SD + 1)
#endif
#define NONE S
#define AT(r, s) ((r) * S + (s))
/* A save: recovery epoch and number. Later epochs are newer. */
#define NAME(e, k) ((e) * 8 + (k) + 1)
#define NUMBER(x) (((x) - 1) % 8)

#define IDLE 0      /* nothing is being saved */
#define WRITING 1   /* the state is being copied into the slot */
#define WHOLE 2     /* the own image is whole, and its copy has left */
#define VOTED 3
#define MEETING 4   /* a decision has named failed ranks */
#define READING 5   /* the line is known */
#define READ 6      /* the own image of it is here */
#define DONE 7

byte name[N * S];   /* 0: the slot is free */
byte own[N * S];    /* the vote for which the image was made, + 1; 0: it is not there */
byte held[N * S];   /* the same of the left neighbour's copy */
bool committed[N * S];
byte phase[N]; byte at[N]; byte slot[N];
byte knows[N];      /* ranks that this one knows to be dead */
byte dead = 0; byte deaths = 0;
byte voted[A + 1]; byte yes[A + 1]; byte told[A + 1]; byte failed[A + 1]; byte about[A + 1];
byte decided[A + 1]; /* 0: open, 1: committed, 2: not */
bool refused = false;
byte cur = 0;        /* the vote that is open */
byte epoch = 0; byte line = 0; bool isMet = false;
byte has = 0;        /* ranks whose copy of the line is there */
byte needs = 0;      /* ranks without their own image of it */
byte readers = 0;    /* ranks that have it now */
byte newest = 0;     /* the newest save that was committed and not lost */
byte gone = 0;       /* ranks that died since: their slots, and those of who took their place, do not count */
byte copy[N * A];    /* on its way from the left neighbour, for that vote: the cut; 0: none is. It comes at any moment, or never */
#define EXCUSE 255    /* there is no copy: its owner could not make the image */
#define COPY(r) copy[(r) * A + at[me]]

#define LIVES(r) ((dead & BIT(r)) == 0)
#define ENDED(r) (phase[r] == DONE || !LIVES(r))
#define FINISHED (ENDED(0) && ENDED(1) && ENDED(2))
#define KNOWN ((LIVES(0) -> knows[0] : 0) | (LIVES(1) -> knows[1] : 0) | (LIVES(2) -> knows[2] : 0))

hidden byte i; hidden byte j; hidden byte x; hidden byte cut; hidden byte ok;

inline clear(s) { name[s] = 0; own[s] = 0; held[s] = 0; committed[s] = false }

/* the newest committed save of rank r into x */
inline newestOf(r) {
  x = 0; j = 0;
  do :: j < S -> if :: committed[AT(r, j)] && name[AT(r, j)] > x -> x = name[AT(r, j)] :: else fi; j++ :: else -> break od
}
/* slot of rank r with that committed save into j; NONE */
inline find(r, n) {
  j = 0;
  do :: j < S && !(committed[AT(r, j)] && name[AT(r, j)] == n) -> j++ :: else -> break od
}
/* a free slot of rank r into j */
inline take(r) {
  j = 0;
  do :: j < S && name[AT(r, j)] != 0 -> j++ :: else -> break od;
#ifdef P_ONESLOT
  if :: j == S -> oldestOf(r); clear(AT(r, j)) :: else fi
#else
  assert(j < S)
#endif
}
/* slot of the oldest committed save of rank r into j, their count into i */
inline oldestOf(r) {
  i = 0; cut = 0; x = 255;
  do
  :: cut < S -> if :: committed[AT(r, cut)] -> i++; if :: name[AT(r, cut)] < x -> x = name[AT(r, cut)]; j = cut :: else fi :: else fi; cut++
  :: else -> break
  od
}
inline commit(r) {
#ifndef P_NOSPREAD
  assert(own[AT(r, slot[r])] != 0 && held[AT(r, slot[r])] != 0);
#endif
  committed[AT(r, slot[r])] = true;
  oldestOf(r);
  if :: i > SD -> clear(AT(r, j)) :: else fi
}
inline vote(r, flag) {
  voted[at[r]] = voted[at[r]] | BIT(r);
  told[at[r]] = told[at[r]] | knows[r];
  if
  :: flag -> yes[at[r]] = yes[at[r]] | BIT(r);
     x = (slot[r] == NONE -> 0 : name[AT(r, slot[r])]);
     assert((yes[at[r]] & ~BIT(r)) == 0 || about[at[r]] == x);
     about[at[r]] = x
  :: else
  fi;
  phase[r] = VOTED
}

proctype Rank(byte me) {
  byte v = 0, c = 0;
  do
  /* a save */
  :: atomic { LIVES(me) && phase[me] == IDLE && at[me] < A && knows[me] == 0 ->
       newestOf(me); v = (x == 0 -> 0 : NUMBER(x) + 1);
       take(me); slot[me] = j; name[AT(me, j)] = NAME(epoch, v); phase[me] = WRITING; v = 0 }
  :: atomic { LIVES(me) && phase[me] == WRITING -> own[AT(me, slot[me])] = at[me] + 1; phase[me] = WHOLE; COPY(RIGHT(me)) = at[me] + 1 }
  :: atomic { LIVES(me) && (phase[me] == WRITING || phase[me] == WHOLE) && at[me] < A && COPY(me) != 0 && COPY(me) != EXCUSE ->
       held[AT(me, slot[me])] = COPY(me); COPY(me) = 0 }
#ifdef REFUSE
  :: atomic { LIVES(me) && phase[me] == WRITING && at[me] == cur && !refused -> refused = true; COPY(RIGHT(me)) = EXCUSE; vote(me, false) }
  :: atomic { LIVES(me) && phase[me] == WHOLE && at[me] == cur && COPY(me) == EXCUSE -> vote(me, false) }
#endif
#ifdef P_NOHOLD
  :: atomic { LIVES(me) && phase[me] == WHOLE && at[me] == cur -> vote(me, true) }
#else
  :: atomic { LIVES(me) && phase[me] == WHOLE && at[me] == cur && held[AT(me, slot[me])] != 0 -> vote(me, true) }
#endif
  /* deaths and decisions */
  :: atomic { LIVES(me) && phase[me] != DONE && (dead & ~knows[me]) != 0 -> knows[me] = dead }
  :: atomic { LIVES(me) && knows[me] != 0 && at[me] < A && at[me] == cur &&
       (phase[me] == IDLE || phase[me] == WRITING || phase[me] == WHOLE || ((phase[me] == READING || phase[me] == READ) && isMet)) ->
       vote(me, false) }
#ifdef P_TWOSERIES
  :: atomic { LIVES(me) && phase[me] == VOTED && knows[me] != 0 ->
       if :: slot[me] != NONE -> clear(AT(me, slot[me])) :: else fi; slot[me] = NONE; at[me]++; phase[me] = MEETING }
#endif
  :: atomic { LIVES(me) && phase[me] == VOTED && decided[at[me]] != 0 ->
       if
#ifdef P_OWNWORD
       :: slot[me] != NONE && (yes[at[me]] & BIT(me)) -> commit(me)
       :: slot[me] != NONE && !(yes[at[me]] & BIT(me)) -> clear(AT(me, slot[me]))
#else
       :: decided[at[me]] == 1 && slot[me] != NONE -> commit(me)
       :: decided[at[me]] == 2 && slot[me] != NONE -> clear(AT(me, slot[me]))
#endif
       :: else
       fi;
       slot[me] = NONE;
#ifdef P_GHOST
       if :: COPY(me) != 0 && COPY(me) != EXCUSE && at[me] + 1 < A && copy[me * A + at[me] + 1] == 0 -> copy[me * A + at[me] + 1] = COPY(me) :: else fi;
#endif
       COPY(me) = 0;
       phase[me] = (failed[at[me]] != 0 -> MEETING : (at[me] + 1 == A -> DONE : IDLE));
       at[me]++ }
  /* back to the line */
  /* of an image whose holder has died nothing comes, until that is known */
  :: atomic { LIVES(me) && phase[me] == READING && isMet && ((needs & BIT(me)) == 0 || LIVES(RIGHT(me))) ->
       if
       :: (needs & BIT(me)) == 0 -> skip
       :: else ->
          find(RIGHT(me), line); c = held[AT(RIGHT(me), j)];
          take(me); name[AT(me, j)] = line; own[AT(me, j)] = c; committed[AT(me, j)] = true; c = 0
       fi;
       readers = readers | BIT(me); phase[me] = READ }
  :: atomic { LIVES(me) && phase[me] == READ && readers == ALL && isMet && at[me] < A ->
       j = 0;
       do :: j < S -> if :: line == 0 || name[AT(me, j)] > line -> clear(AT(me, j)) :: else fi; j++ :: else -> break od;
       if
       :: line == 0 -> vote(me, true)
       :: else ->
          find(me, line); c = j;
          take(me); slot[me] = j;
          name[AT(me, j)] = NAME(epoch, NUMBER(line)); own[AT(me, j)] = own[AT(me, c)];
          if :: (has & BIT(LEFT(me))) -> held[AT(me, j)] = held[AT(me, c)] :: else fi;
#ifdef P_NOSPREAD
          vote(me, true)
#else
          if :: (has & BIT(me)) == 0 -> COPY(RIGHT(me)) = own[AT(me, j)] :: else fi;
#endif
#ifdef P_EARLY
          clear(AT(me, c));
#endif
#ifndef P_NOSPREAD
          phase[me] = WHOLE
#endif
       fi; c = 0; v = 0 }
  :: FINISHED -> break
  od
}

/* The agreements, one after the other. */
active proctype Decide() {
  byte f = 0, d = 0;
  do
  :: atomic { cur < A && ((voted[cur] | (KNOWN & dead)) & ALL) == ALL && (told[cur] != 0 || voted[cur] == ALL || KNOWN != 0) ->
       f = told[cur] | (ALL & ~voted[cur]);
       d = KNOWN & ~f;
       if :: d != 0 -> f = f | d :: true -> skip fi;
       assert((f & ~dead) == 0);
       if
       :: (yes[cur] & ALL & ~f) == (ALL & ~f) && yes[cur] != 0 -> decided[cur] = 1
       :: (yes[cur] & ALL & ~f) != (ALL & ~f) || yes[cur] == 0 || (voted[cur] & f & ~yes[cur]) != 0 -> decided[cur] = 2
       fi;
       failed[cur] = f;
       if :: decided[cur] == 1 -> gone = 0; newest = about[cur] :: else fi;
       if :: f != 0 -> isMet = false :: else fi;
       cur++; f = 0; d = 0 }
  :: FINISHED -> break
  od
}

active proctype Death() {
  byte r = 0;
  do
  :: atomic { deaths < MAXF && !FINISHED ->
       if :: LIVES(0) -> r = 0 :: LIVES(1) -> r = 1 :: LIVES(2) -> r = 2 fi;
       /* somebody lives */
       if :: (dead | BIT(r)) != ALL -> dead = dead | BIT(r); deaths++ :: else -> deaths = MAXF fi; r = 0 }
  :: atomic { deaths < MAXF -> deaths = MAXF }
  :: deaths == MAXF -> break
  od
}

#define WAITS(r) (!LIVES(r) || phase[r] == MEETING)
/* the image of r of that save is somewhere: where it is made in cut, else 0 */
inline imageOf(r, n) {
  find(r, n); cut = (j < S -> own[AT(r, j)] : 0);
  if :: cut == 0 && LIVES(RIGHT(r)) -> find(RIGHT(r), n); cut = (j < S -> held[AT(RIGHT(r), j)] : 0) :: else fi
}
active proctype Meeting() {
  byte r = 0, one = 0, c = 0, best = 0, here = 0, fresh = 0;
  do
  :: atomic { WAITS(0) && WAITS(1) && WAITS(2) && dead != ALL && !isMet && (phase[0] == MEETING || phase[1] == MEETING || phase[2] == MEETING) ->
       /* those that were there before know the same */
       r = 0; one = 255;
       do
       :: r < N -> if :: LIVES(r) && phase[r] == MEETING -> newestOf(r);
                        if :: x != 0 && one == 255 -> one = x :: x != 0 && one != 255 -> assert(x == one) :: else fi; here = at[r]
                   :: else fi; r++
       :: else -> break
       od;
       /* successors */
       r = 0; fresh = dead; gone = gone | dead;
       do
       :: r < N ->
          if
          :: !LIVES(r) && (here == 0 || (failed[here - 1] & BIT(r)) != 0) -> dead = dead & ~BIT(r)
          :: !LIVES(r) && here > 0 && (failed[here - 1] & BIT(r)) == 0 -> if :: dead = dead & ~BIT(r) :: true -> skip fi
          :: else
          fi;
          if
          :: (fresh & BIT(r)) && LIVES(r) -> j = 0; do :: j < S -> clear(AT(r, j)); j++ :: else -> break od
          :: else
          fi;
          at[r] = here; slot[r] = NONE; knows[r] = 0; phase[r] = (here == A -> DONE : READING); r++
       :: else -> break
       od;
#ifdef P_TWOSERIES
       cur = here;
#endif
       epoch++; readers = 0; has = 0; needs = 0; line = 0;
       if
       :: dead == 0 ->
          /* the newest save of which all images are somewhere */
          best = 0; r = 0;
          do
          :: r < N -> j = 0;
             do
             :: j < S ->
                if
                :: committed[AT(r, j)] && name[AT(r, j)] > best ->
                   one = name[AT(r, j)]; fresh = j; i = 0; c = 0; ok = true;
                   do
                   :: i < N -> imageOf(i, one);
                      if :: cut == 0 -> ok = false :: else fi; i++
                   :: else -> break
                   od;
                   if :: ok -> best = one :: else fi;
                   j = fresh
                :: else
                fi; j++
             :: else -> break
             od; r++
          :: else -> break
          od;
          /* one place at most: nothing is lost */
          assert((gone != 1 && gone != 2 && gone != 4 && gone != 0) || best == newest);
          line = best;
          /* of one cut */
          r = 0; c = 0;
          do
          :: r < N && line != 0 -> imageOf(r, line);
             if :: c == 0 -> c = cut :: else -> assert(cut == c) fi;
             find(r, line);
             if :: j < S && own[AT(r, j)] != 0 -> skip :: else -> needs = needs | BIT(r) fi;
             find(RIGHT(r), line);
             if :: j < S && held[AT(RIGHT(r), j)] != 0 -> assert(held[AT(RIGHT(r), j)] == c); has = has | BIT(r) :: else fi; r++
          :: else -> break
          od
       :: else -> skip  /* one is missing: no line is found, until its death is known */
       fi;
       if :: newest != line && dead == 0 -> newest = line :: else fi;
       isMet = true; r = 0; one = 0; c = 0; best = 0; here = 0; fresh = 0 }
  :: FINISHED -> break
  od
}

init { atomic { slot[0] = NONE; slot[1] = NONE; slot[2] = NONE; run Rank(0); run Rank(1); run Rank(2) } }
