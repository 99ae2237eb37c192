/* bye.pml: the end of a job, while rails fail (DESIGN B9).
 *
 * S has one last eager message to R, then both finalize. S is drained when that message is delivered; R when it has
 * received it. Drained, and with no RAILDOWN owed, a rank says BYE on each rail that is up (on each new rail epoch too).
 * A rank that leaves closes its rails: what it has sent may still arrive or may be lost with the close, as after a reset.
 * The other side notices the end of the rail at any moment. "Gone" is what tells a rank that a peer which it cannot reach
 * any more has exited: the launcher's word, a refused dial, or the peer timeout; it comes when no rail is left.
 * Rails, failures, detection and re-dialling (while both ranks are there): rails.pml.
 *
 * What is held to be the rule: a rank leaves when it is drained, has the peer's BYE, and (READING) its own BYE was
 * delivered over some rail; or when it has the peer's BYE and the peer is gone. With the peer's BYE in hand everything
 * outstanding to it counts as delivered, except the own BYE while the peer can still be reached.
 *
 * Checked: both leave; none leaves before the last message has been received; and none learns that the peer is gone
 * without having its BYE (that would be ERR_PROC_UNREACHABLE or ERR_PROC_FAILED at the end of a good job).
 *
 * By the letter of DESIGN: T_LETTER ("a rank leaves only after every peer's BYE": its own need not have been delivered).
 * Planted mistakes: P_EARLYBYE (R says BYE before it is drained) P_NOGONE (a rank waits for ever for its own BYE to be
 * delivered) P_BYEONCE (BYE on one rail only, in doubt and not sent again) P_RDLOST.
 */
mtype = { MATCH, BYE, RAILDOWN };
bool leftS, leftR;
#define DIAL_OK (!leftS && !leftR)
#define on_cut_SR(r) skip
#define on_cut_RS(r) skip
#include "rails.pml"

bool oweMATCH = true, retained = true, got;
bool hasS, hasR;                       /* has the peer's BYE */
bool sureS, sureR;                     /* the own BYE was delivered */
bool saidS[NR], saidR[NR];             /* BYE said on this rail epoch */
bool onceS, onceR;

inline lost_S(r) {
	end_down(S_END(r), R_END(r)); saidS[r] = false;
	do
	:: out[S_END(r)]?lf,lx,ly,lz -> if
		:: lf == MATCH -> if :: retained && !hasS -> oweMATCH = true :: else fi
		:: lf == RAILDOWN -> RD_AGAIN(S_END(lx), lx, ly)
		:: lf == BYE
		fi
	:: empty(out[S_END(r)]) -> break
	od }
inline lost_R(r) {
	end_down(R_END(r), S_END(r)); saidR[r] = false;
	do
	:: out[R_END(r)]?lf,lx,ly,lz -> if
		:: lf == RAILDOWN -> RD_AGAIN(R_END(lx), lx, ly)
		:: lf == BYE
		fi
	:: empty(out[R_END(r)]) -> break
	od }

/* a rank exits: its ends close; what it sent arrives, or is lost with the close */
inline close(own, other) {
	if
	:: up[own] -> up[own] = false; acks[own] = 0; sees[own] = false; drain(out[own]);
		cut[own] = true; cut[other] = true; drain(wire[other]);
		if :: drain(wire[own]); acks[other] = 0 :: skip fi
	:: else
	fi;
	if :: up[other] -> sees[other] = true :: else fi;
	oweRD[own] = false }
inline leave_S() { leftS = true; oweMATCH = false; retained = false; assert(got);
	k = 0; do :: k < NR -> close(S_END(k), R_END(k)); saidS[k] = false; k++ :: else -> break od }
inline leave_R() { leftR = true; assert(got);
	k = 0; do :: k < NR -> close(R_END(k), S_END(k)); saidR[k] = false; k++ :: else -> break od }

#define IN_S(r) (up[S_END(r)] && nempty(wire[R_END(r)]))
#define IN_R(r) (up[R_END(r)] && nempty(wire[S_END(r)]))
#define DOWN_S(r) (!up[S_END(r)])
#define RAILDOWN_S(q) atomic { (!leftS && OWERD_S(q) && ANY(ROOM_S)) -> oweRD[S_END(q)] = false; \
	send_S(RAILDOWN, q, epoch[q], 0); rest() }
#define RAILDOWN_R(q) atomic { (!leftR && OWERD_R(q) && ANY(ROOM_R)) -> oweRD[R_END(q)] = false; \
	send_R(RAILDOWN, q, epoch[q], 0); rest() }
#define OWES_NOT_S(r) (!oweRD[S_END(r)])
#define OWES_NOT_R(r) (!oweRD[R_END(r)])
#define DRAINED_S ((!retained || hasS) && (hasS || ALLR(OWES_NOT_S)))
#ifdef P_EARLYBYE
#define DRAINED_R true
#else
#define DRAINED_R (got && (hasR || ALLR(OWES_NOT_R)))
#endif
#ifdef P_BYEONCE
#define BYE_S(r) (ROOM_S(r) && !onceS)
#define BYE_R(r) (ROOM_R(r) && !onceR)
#else
#define BYE_S(r) (ROOM_S(r) && !saidS[r])
#define BYE_R(r) (ROOM_R(r) && !saidR[r])
#endif
#ifdef T_LETTER
#define SAID_S(r) saidS[r]
#define SAID_R(r) saidR[r]
#define LEAVES_S (hasS && (ANY(SAID_S) || ALLR(DOWN_S)))
#define LEAVES_R (hasR && (ANY(SAID_R) || ALLR(DOWN_R)))
#else
#define LEAVES_S (hasS && sureS)
#define LEAVES_R (hasR && sureR)
#endif

active proctype S() {
end:	do
	:: atomic { (oweMATCH && ANY(ROOM_S)) -> oweMATCH = false; send_S(MATCH, 0, 0, 0); rest() }
	:: RAILDOWN_S(0)
	:: RAILDOWN_S(1)
#if NR == 3
	:: RAILDOWN_S(2)
#endif
	:: atomic { (!leftS && DRAINED_S && ANY(BYE_S)) -> PICK(BYE_S); saidS[r] = true;
#ifdef P_BYEONCE
		onceS = true;
#endif
		out[S_END(r)]!BYE,0,0,0; if :: !cut[S_END(r)] -> wire[S_END(r)]!BYE,0,0,0 :: else fi; rest() }
	:: atomic { (!leftS && DRAINED_S && LEAVES_S) -> leave_S(); rest() }
#ifndef P_NOGONE
	:: atomic { (!leftS && leftR && ALLR(DOWN_S)) -> assert(hasS); leave_S(); rest() }      /* gone */
#endif
	:: atomic { ANY(ACK_S) -> PICK(ACK_S); acks[S_END(r)]--; out[S_END(r)]?f,x,y,z;
		if :: f == MATCH -> retained = false :: f == BYE -> sureS = true :: else fi;
		rest() }
	:: atomic { ANY(IN_S) -> PICK(IN_S); wire[R_END(r)]?f,x,y,z; count_S(r);
		if
		:: f == BYE -> hasS = true; oweMATCH = false
		:: f == RAILDOWN -> if :: up[S_END(x)] && epoch[x] <= y -> lost_S(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_S) -> PICK(SEES_S); if :: !hasS -> oweRD[S_END(r)] = true :: else fi; lost_S(r); rest() }
	od }

active proctype R() {
end:	do
	:: RAILDOWN_R(0)
	:: RAILDOWN_R(1)
#if NR == 3
	:: RAILDOWN_R(2)
#endif
	:: atomic { (!leftR && DRAINED_R && ANY(BYE_R)) -> PICK(BYE_R); saidR[r] = true;
#ifdef P_BYEONCE
		onceR = true;
#endif
		out[R_END(r)]!BYE,0,0,0; if :: !cut[R_END(r)] -> wire[R_END(r)]!BYE,0,0,0 :: else fi; rest() }
	:: atomic { (!leftR && DRAINED_R && LEAVES_R) -> leave_R(); rest() }
#ifndef P_NOGONE
	:: atomic { (!leftR && leftS && ALLR(DOWN_R)) -> assert(hasR); leave_R(); rest() }
#endif
	:: atomic { ANY(ACK_R) -> PICK(ACK_R); acks[R_END(r)]--; out[R_END(r)]?f,x,y,z;
		if :: f == BYE -> sureR = true :: else fi;
		rest() }
	:: atomic { ANY(IN_R) -> PICK(IN_R); wire[S_END(r)]?f,x,y,z; count_R(r);
		if
		:: f == MATCH -> got = true
		:: f == BYE -> hasR = true
		:: f == RAILDOWN -> if :: up[R_END(x)] && epoch[x] <= y -> lost_R(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_R) -> PICK(SEES_R); if :: !hasR -> oweRD[R_END(r)] = true :: else fi; lost_R(r); rest() }
	od }

#define FINISHED (leftS && leftR)
#include "net.pml"
