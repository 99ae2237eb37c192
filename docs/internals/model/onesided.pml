/* onesided.pml: one-sided writes under restart by resume (DESIGN B6, "PUTs", Failover rules 3, 4 and 5).
 *
 * One rendezvous of two ranges, already matched. R gives windows: PUT(number, rail) in an epoch; S writes the range
 * over that rail, once per number; when the write is `delivered`, FIN(epoch, number) goes to R over any rail. Ranges
 * for which no window is given go as FRAGs; after each restart R chooses anew, range by range. A write lands at any
 * moment until it is lost or R's end of its rail is fenced; its completion is a step of its own and may be lost.
 * The ACK is modelled as the RESTARTACK of epoch 0 (it says which ranges are wanted, and how).
 * Rails, failures, detection and re-dialling: rails.pml. A FRAG is received in one step here (two in failover.pml).
 *
 * What is held to be the rule, beside the rules of failover.pml:
 *   - a put in doubt (its rail was lost before it completed) -> restart. The sender schedules nothing more, waits for
 *     its own puts on living rails, then sends NOTIFY(epoch + 1, dead list).
 *   - the sender carries out each number of the current epoch once; a PUT of another epoch, or one that comes while the
 *     message restarts, is dropped; a repeat is answered by its FIN, if that is due.
 *   - READING: RESTARTNACK is obeyed whatever its epoch, while the sender waits.
 *   - FIN is owed until delivered, also when the user's request is complete. R takes FINs of its current epoch only,
 *     also for a window that it has fenced itself: the write was delivered before the fence.
 *   - READING (not in DESIGN): when a rail goes down under a window whose FIN has not come, R owes RECVERRNOTIFY(epoch),
 *     and never gives the same range a second window in the same epoch.
 *   - READING (not in DESIGN): PUTs are held back until the ACK or RESTARTACK of their epoch was delivered.
 *
 * Checked: no write lands after the receive completed; a range counts once; when the send completes every range has
 * landed; the user's buffer is not read after the send completed (by a put); no end state with anything unfinished.
 *
 * By the letter of DESIGN: T_LETTER (no RECVERRNOTIFY for windows: "only for the receiver's own gets in doubt").
 * Other readings that fail: T_EARLYPUT (PUTs may overtake the RESTARTACK; S drops them), T_EARLYPUT2 (S carries them
 * out), T_REOFFER (R gives a second window, under a new number, in the same epoch), T_FENCEDFIN (R drops the FIN of a
 * window that it has fenced).
 * Another reading that holds: V_SAMENUMBER (no RECVERRNOTIFY; the same number is given again with a window on another rail).
 * Planted mistakes: P_TWICE P_FINGONE P_NOFENCE P_NOWAITPUTS P_OLDPUT P_OLDFIN P_FINTWICE P_EARLYFIN P_PUTLOST
 * P_RAILFENCE P_RDLOST.
 */
#define ALL 3
mtype = { RACK, RNACK, PUT, FIN, FRAG, NOTIFY, RECVERR, RAILDOWN };
mtype:st = { WAIT, ACTIVE, DRAIN, DONE };
#define on_cut_SR(r) if :: flight[r] = 0 :: skip fi                    /* lost, or late */
#define on_cut_RS(r) putAck[r] = 0
#include "rails.pml"

/* S */
mtype:st sst = WAIT;                   /* WAIT: for ACK or RESTARTACK of epoch sep */
byte sep, left = ALL, toSend;          /* ranges not delivered, as S knows; ranges to send by FRAG */
bool oweNOTIFY;
byte carried;                          /* numbers of this epoch that were taken in hand */
byte finDue, finOwed;                  /* numbers whose write was delivered; those whose FIN is not under way or delivered */
byte putNo[NR];                        /* own puts outstanding per rail (bits of their numbers) */
/* the wire of the one-sided rails, bits of numbers */
byte flight[NR];                       /* writes that are still to land */
byte putAck[NR];                       /* completions on their way to S */
byte landed;                           /* ranges whose bytes have been in R's memory */
/* R */
byte rep, have, byPut;                 /* epoch; ranges counted; ranges that go by PUT in this epoch */
bool rdone, oweRACK = true, oweRNACK, rackHere, oweRECVERR;
byte owePUT, finished;         /* numbers to give; numbers whose FIN was taken */
byte winRail[4];                       /* rail + 1 of the window of a number; 0: none, or its rail is lost */

/* number -> range: with T_REOFFER numbers 0,1 and 2,3 name ranges 0,1; everything is kept as bits */
#define RANGE(b) (((b) | ((b) >> 2)) & 3)
#define OWN_PUT(r) (up[S_END(r)] && putNo[r] != 0)

inline restart() { sst = DRAIN; toSend = 0; finDue = 0; finOwed = 0 }
inline delivered(b) {
	left = left & (ALL - b);
	if
	:: left == 0 && sst != DONE -> sst = DONE; toSend = 0; oweNOTIFY = false; assert((landed | have) == ALL);
		k = 0; do :: k < NR -> assert(putNo[k] == 0); k++ :: else -> break od; k = 0
	:: else
	fi }

inline lost_S(r) {
	end_down(S_END(r), R_END(r)); putAck[r] = 0;
	if :: putNo[r] != 0 && sst == ACTIVE -> restart() :: else fi;
	putNo[r] = 0;
	do
	:: out[S_END(r)]?lf,lx,ly,lz -> if
		:: lf == FRAG -> if :: lx == sep && sst == ACTIVE -> restart() :: else fi
		:: lf == NOTIFY -> if :: lx == sep && sst == WAIT -> oweNOTIFY = true :: else fi
		:: lf == FIN ->
#ifdef P_FINGONE
			if :: lx == sep && sst == ACTIVE -> finOwed = finOwed | ly :: else fi
#else
			if :: lx == sep && (sst == ACTIVE || sst == DONE) -> finOwed = finOwed | ly :: else fi
#endif
		:: lf == RAILDOWN -> RD_AGAIN(S_END(lx), lx, ly)
		fi
	:: empty(out[S_END(r)]) -> break
	od }

#ifdef T_LETTER
#define UNDER_LOST(n) skip
#elif defined(V_SAMENUMBER)
#define UNDER_LOST(n) owePUT = owePUT | (1 << (n))
#elif defined(T_REOFFER)
#define UNDER_LOST(n) owePUT = owePUT | ((n) < 2 -> (4 << (n)) : 0)
#else
#define UNDER_LOST(n) oweRECVERR = true
#endif
#define WINDOW_LOST(r, n) \
	if \
	:: winRail[n] == r + 1 -> winRail[n] = 0; owePUT = owePUT & (15 - (1 << (n))); UNDER_LOST(n) \
	:: else \
	fi

/* the fence of B6 included: no write of this rail epoch lands any more */
inline lost_R(r) {
	end_down(R_END(r), S_END(r)); flight[r] = 0;
	do
	:: out[R_END(r)]?lf,lx,ly,lz -> if
		:: lf == RACK -> if :: lx == rep && !rdone -> oweRACK = true :: else fi
		:: lf == RNACK -> oweRNACK = true
		:: lf == PUT ->
#ifndef P_PUTLOST
			if :: lx == rep && !rdone && (ly & finished) == 0 -> owePUT = owePUT | ly :: else fi
#else
			skip
#endif
		:: lf == RECVERR -> if :: lx == rep && !rdone -> oweRECVERR = true :: else fi
		:: lf == RAILDOWN -> RD_AGAIN(R_END(lx), lx, ly)
		fi
	:: empty(out[R_END(r)]) -> break
	od;
	WINDOW_LOST(r, 0); WINDOW_LOST(r, 1);
#ifdef T_REOFFER
	WINDOW_LOST(r, 2); WINDOW_LOST(r, 3)
#else
	skip
#endif
	}
#define RAILDOWN_S(q) atomic { (OWERD_S(q) && ANY(ROOM_S)) -> oweRD[S_END(q)] = false; \
	send_S(RAILDOWN, q, epoch[q], 0); rest() }
#define RAILDOWN_R(q) atomic { (OWERD_R(q) && ANY(ROOM_R)) -> oweRD[R_END(q)] = false; \
	send_R(RAILDOWN, q, epoch[q], 0); rest() }
#define IN_S(r) (up[S_END(r)] && nempty(wire[R_END(r)]))
#define IN_R(r) (up[R_END(r)] && nempty(wire[S_END(r)]))
#define PUT_DONE(r) (up[S_END(r)] && putAck[r] != 0)
#define LANDS(r) (up[R_END(r)] && flight[r] != 0)
#define UP_R(r) up[R_END(r)]

#ifdef P_NOWAITPUTS
#define PUTS_OVER true
#elif NR == 2
#define PUTS_OVER (!OWN_PUT(0) && !OWN_PUT(1))
#else
#define PUTS_OVER (!OWN_PUT(0) && !OWN_PUT(1) && !OWN_PUT(2))
#endif

/* x epoch, y bit of the number, z rail + 1 and rail epoch of the window */
#ifdef T_EARLYPUT2
#define PUT_WANTED (x == sep && (sst == ACTIVE || sst == WAIT))
#elif defined(P_OLDPUT)
#define PUT_WANTED (sst == ACTIVE || sst == WAIT)
#else
#define PUT_WANTED (x == sep && (sst == ACTIVE || sst == DONE))
#endif
inline carry_out() {
	if
	:: PUT_WANTED -> if
		:: ((y & carried) != 0
#ifdef P_TWICE
			&& false
#endif
			) -> finOwed = finOwed | (y & finDue)             /* a repeat */
		:: else -> k = (z & 3) - 1;
			if
			:: up[S_END(k)] && epoch[k] == (z >> 2) ->
				assert(sst != DONE);                    /* the buffer is the user's again */
				if :: x == sep -> carried = carried | y; putNo[k] = putNo[k] | y :: else fi;
#ifdef P_EARLYFIN
				finOwed = finOwed | y;
#endif
				if :: !cut[S_END(k)] -> flight[k] = flight[k] | y :: else fi
			:: else                                         /* that rail epoch is lost here: R will learn it */
			fi
		fi
	:: else
	fi }

active proctype S() {
end:	do
	:: atomic { (oweNOTIFY && ANY(ROOM_S)) -> oweNOTIFY = false; send_S(NOTIFY, sep, DEADLIST, 0); rest() }
	:: atomic { (sst == DRAIN && PUTS_OVER) -> sst = WAIT; sep++; oweNOTIFY = true; carried = 0;
		k = 0; do :: k < NR -> putNo[k] = 0; k++ :: else -> break od;
		rest() }
	:: atomic { (sst == ACTIVE && toSend != 0 && ANY(ROOM_S)) ->
		if :: toSend & 1 -> x = 1 :: else -> x = 2 fi;
		toSend = toSend & (ALL - x); send_S(FRAG, sep, x, 0); rest() }
	:: atomic { (finOwed != 0 && ANY(ROOM_S)) ->
		if :: finOwed & 1 -> x = 1 :: else -> if :: finOwed & 2 -> x = 2 :: else -> if :: finOwed & 4 -> x = 4 :: else -> x = 8 fi fi fi;
		finOwed = finOwed & (15 - x); send_S(FIN, sep, x, 0); rest() }
	:: RAILDOWN_S(0)
	:: RAILDOWN_S(1)
#if NR == 3
	:: RAILDOWN_S(2)
#endif
	:: atomic { ANY(PUT_DONE) -> PICK(PUT_DONE); y = putAck[r] & putNo[r]; putAck[r] = 0;
		putNo[r] = putNo[r] & (15 - y);
		if
		:: y != 0 && sst == ACTIVE -> finDue = finDue | y;
#ifndef P_EARLYFIN
			finOwed = finOwed | y;
#endif
			delivered(RANGE(y))
		:: else                                                 /* restarting: counts for nothing */
		fi;
		rest() }
	:: atomic { ANY(ACK_S) -> PICK(ACK_S); acks[S_END(r)]--; out[S_END(r)]?f,x,y,z;
		if
		:: f == FRAG && x == sep && sst == ACTIVE -> delivered(y)
		:: else
		fi;
		rest() }
	:: atomic { ANY(IN_S) -> PICK(IN_S); wire[R_END(r)]?f,x,y,z; count_S(r);
		if
		:: f == RACK -> if
			:: sst == WAIT && x == sep -> sst = ACTIVE; oweNOTIFY = false; left = y; toSend = y & (ALL - z);
				if :: y == 0 -> delivered(0) :: else fi
			:: else
			fi
		:: f == RNACK -> if :: sst == WAIT -> assert(rdone); left = 0; delivered(0) :: else fi
		:: f == PUT -> carry_out()
		:: f == RECVERR -> if :: x == sep && sst == ACTIVE -> restart() :: else fi
		:: f == RAILDOWN -> if :: up[S_END(x)] && epoch[x] <= y -> lost_S(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_S) -> PICK(SEES_S); oweRD[S_END(r)] = true; lost_S(r); rest() }
	od }

inline fence(list) {
	k = 0;
	do
	:: k < NR -> if :: up[R_END(k)] && TO_FENCE(k, list) -> lost_R(k) :: else fi; k++
	:: else -> break
	od }
inline choose_put() {                                                   /* PUT or FRAG, for each missing range */
	y = ALL & (ALL - have);
	if :: byPut = y :: byPut = y & 1 :: byPut = 0 fi }
inline complete() { rdone = true; oweRACK = false; owePUT = 0; oweRECVERR = false; byPut = 0;
	winRail[0] = 0; winRail[1] = 0; winRail[2] = 0; winRail[3] = 0 }
#ifdef T_REOFFER                       /* "no PUT of any number neither finished nor fenced" */
#define COMPLETE_TOO ((owePUT == 0) && (winRail[2] == 0 || (finished & 4)) && (winRail[3] == 0 || (finished & 8)))
#else
#define COMPLETE_TOO true
#endif
inline take(b) { assert((have & b) == 0); have = have | b; if :: have == ALL && COMPLETE_TOO -> complete() :: else fi }
#ifdef T_EARLYPUT
#define PUT_HELD false
#elif defined(T_EARLYPUT2)
#define PUT_HELD false
#else
#define PUT_HELD (!rackHere)
#endif

#ifdef P_OLDFIN
#define OLD_TOO true
#else
#define OLD_TOO false
#endif
#ifdef P_FINTWICE
#define AGAIN_TOO true
#else
#define AGAIN_TOO false
#endif
#ifdef T_FENCEDFIN
#define WINDOW_OK (winRail[(y == 1 -> 0 : 1)] != 0)
#else
#define WINDOW_OK true
#endif

active proctype R() {
	atomic { choose_put(); owePUT = byPut; rest() };
end:	do
	:: atomic { (oweRACK && ANY(ROOM_R)) -> oweRACK = false; send_R(RACK, rep, ALL & (ALL - have), byPut); rest() }
	:: atomic { (oweRNACK && ANY(ROOM_R)) -> oweRNACK = false; send_R(RNACK, 0, 0, 0); rest() }
	:: atomic { (oweRECVERR && rackHere && ANY(ROOM_R)) -> oweRECVERR = false; send_R(RECVERR, rep, 0, 0); rest() }
	:: atomic { (owePUT != 0 && !PUT_HELD && ANY(ROOM_R)) ->
		if :: owePUT & 1 -> x = 1; k = 0 :: else -> if :: owePUT & 2 -> x = 2; k = 1 :: else -> if :: owePUT & 4 -> x = 4; k = 2 :: else -> x = 8; k = 3 fi fi fi;
		owePUT = owePUT & (15 - x);
		if
		:: winRail[k] == 0 -> PICK(UP_R); winRail[k] = r + 1    /* a window, on any rail that is up */
		:: else
		fi;
		y = winRail[k] | (epoch[winRail[k] - 1] << 2);
		send_R(PUT, rep, x, y); rest() }
	:: RAILDOWN_R(0)
	:: RAILDOWN_R(1)
#if NR == 3
	:: RAILDOWN_R(2)
#endif
	:: atomic { ANY(ACK_R) -> PICK(ACK_R); acks[R_END(r)]--; out[R_END(r)]?f,x,y,z;
		if :: f == RACK && x == rep -> rackHere = true :: else fi;
		rest() }
	:: atomic { ANY(LANDS) -> PICK(LANDS);
		assert(!rdone);                                         /* no write after completion */
		if :: flight[r] & 1 -> x = 1 :: flight[r] & 2 -> x = 2 :: flight[r] & 4 -> x = 4 :: flight[r] & 8 -> x = 8 fi;
		flight[r] = flight[r] & (15 - x); landed = landed | RANGE(x);
		if :: !cut[R_END(r)] -> putAck[r] = putAck[r] | x :: else fi;
		rest() }
	:: atomic { ANY(IN_R) -> PICK(IN_R); wire[S_END(r)]?f,x,y,z; count_R(r);
		if
		:: f == FRAG -> if :: x == rep && !rdone -> landed = landed | y; take(y) :: else fi
		:: f == FIN -> if
			:: (!rdone && (x == rep || OLD_TOO) && ((finished & y) == 0 || AGAIN_TOO) && WINDOW_OK) -> finished = finished | y; owePUT = owePUT & (15 - y); rackHere = true;
				if :: y == 1 -> winRail[0] = 0 :: y == 2 -> winRail[1] = 0 :: y == 4 -> winRail[2] = 0 :: else -> winRail[3] = 0 fi;
#ifdef T_REOFFER
				if :: (have & RANGE(y)) != 0 -> if :: have == ALL && COMPLETE_TOO -> complete() :: else fi
				:: else -> take(RANGE(y)) fi
#else
				take(RANGE(y))
#endif
			:: else
			fi
		:: f == NOTIFY -> if
			:: rdone -> oweRNACK = true
			:: !rdone && x > rep -> rep = x; rackHere = false; finished = 0; owePUT = 0; oweRECVERR = false;
				winRail[0] = 0; winRail[1] = 0; winRail[2] = 0; winRail[3] = 0;
#ifndef P_NOFENCE
				fence(y);
#endif
				choose_put(); owePUT = byPut; oweRACK = true
			:: !rdone && x == rep -> oweRACK = true
			:: else
			fi
		:: f == RAILDOWN -> if :: up[R_END(x)] && epoch[x] <= y -> lost_R(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_R) -> PICK(SEES_R); oweRD[R_END(r)] = true; lost_R(r); rest() }
	od }

#define FINISHED (sst == DONE && rdone && !oweNOTIFY && !oweRACK && !oweRNACK && !oweRECVERR && finOwed == 0 && owePUT == 0)
#include "net.pml"
