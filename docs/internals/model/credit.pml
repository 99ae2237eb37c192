/* credit.pml: bounded unexpected payload by credit, while rails fail (DESIGN section 5, "Bounded memory").
 *
 * S runs  isend(tag 1) x (NMSG-1), then send(tag 2).  R takes tag 2 first, then the others in order, each receive posted
 * when the one before is complete (-DINORDER: R takes them in the order sent). Every payload is 1 unit; R may hold BOUND
 * units unexpected. Envelopes are not bounded.
 * The payload that S has charged (sent for the first time) stays at or below the limit that S knows. With no credit left a
 * message leaves as RNDV without data; once matched R answers ACK and S sends the data as one FRAG. The restart of
 * rendezvous data is modelled elsewhere: a FRAG in doubt is just sent again here, and dropped when it is counted.
 * R's limit is BOUND + what it has released. It is told by a CREDIT frame, which is owed while the limit is above what
 * is delivered or under way, and it rides on every ACK as well.
 * Rails, failures, detection and re-dialling: rails.pml.
 *
 * Checked: payload held <= BOUND at every moment; each message is matched once and received once; no end state in which
 * anything is unfinished (so no deadlock of a correct MPI program); and at the end the credit is whole: S knows
 * R's limit, R holds nothing, and the limit is BOUND + what was charged.
 *
 * Planted mistakes: P_BLOCK (without credit the envelope waits) P_INCR (a CREDIT frame is an increment) P_RESENDTAKES (a
 * resend needs credit, and waits for it) P_DUPRETURNS (a dropped duplicate returns credit) P_CREDITLOST (a CREDIT in doubt
 * is not owed again) P_LASTWINS (a CREDIT that comes later replaces a higher one) P_DATA (RNDV carries its data without
 * credit) P_NODUP P_RDLOST.
 */
#ifndef NMSG
#define NMSG 3
#endif
#ifndef BOUND
#define BOUND 1
#endif
#define LAST (NMSG - 1)
mtype = { MATCH, RNDV, ACK, FRAG, CREDIT, RAILDOWN };
#define on_cut_SR(r) skip
#define on_cut_RS(r) skip
#include "rails.pml"

/* sender: bit per message */
byte next, charged, limitS = BOUND;
byte eager;                            /* left as MATCH (the others as RNDV) */
byte oweFirst, oweFRAG, acked, delivd; /* first frame owed again; FRAG owed; ACK obeyed; data delivered */
/* receiver */
byte limitR = BOUND, told = BOUND, sure = BOUND;   /* limit; highest told (delivered or under way); highest delivered */
byte arrived, payload;                 /* envelopes that came; payloads held */
byte matched, got, oweACK, held;
#define BIT(m) (1 << (m))

inline credit_here(v) { if :: v > sure -> sure = v :: else fi; if :: sure > told -> told = sure :: else fi }
inline credit_doubt(v) {
#ifndef P_CREDITLOST
	if :: v > sure -> told = sure :: else fi
#else
	skip
#endif
}

inline lost_S(r) {
	end_down(S_END(r), R_END(r));
	do
	:: out[S_END(r)]?lf,lx,ly,lz -> if
		:: lf == MATCH -> oweFirst = oweFirst | BIT(lx)
		:: lf == RNDV -> if :: (acked & BIT(lx)) == 0 -> oweFirst = oweFirst | BIT(lx) :: else fi
		:: lf == FRAG -> oweFRAG = oweFRAG | BIT(lx)
		:: lf == RAILDOWN -> RD_AGAIN(S_END(lx), lx, ly)
		fi
	:: empty(out[S_END(r)]) -> break
	od }
inline lost_R(r) {
	end_down(R_END(r), S_END(r));
	do
	:: out[R_END(r)]?lf,lx,ly,lz -> if
		:: lf == ACK -> oweACK = oweACK | BIT(lx); credit_doubt(ly)
		:: lf == CREDIT -> credit_doubt(lx)
		:: lf == RAILDOWN -> RD_AGAIN(R_END(lx), lx, ly)
		fi
	:: empty(out[R_END(r)]) -> break
	od }

#define RAILDOWN_S(q) atomic { (OWERD_S(q) && ANY(ROOM_S)) -> oweRD[S_END(q)] = false; \
	send_S(RAILDOWN, q, epoch[q], 0); rest() }
#define RAILDOWN_R(q) atomic { (OWERD_R(q) && ANY(ROOM_R)) -> oweRD[R_END(q)] = false; \
	send_R(RAILDOWN, q, epoch[q], 0); rest() }
#define IN_S(r) (up[S_END(r)] && nempty(wire[R_END(r)]))
#define IN_R(r) (up[R_END(r)] && nempty(wire[S_END(r)]))
inline lowest(set) { x = 0; do :: (set & BIT(x)) == 0 -> x++ :: else -> break od }

#ifdef P_BLOCK
#define MAY_LEAVE (charged < limitS)
#else
#define MAY_LEAVE true
#endif
#ifdef P_RESENDTAKES
#define MAY_RESEND (charged < limitS)
#else
#define MAY_RESEND true
#endif
#ifdef P_INCR
#define NEWLIMIT(v) limitS = limitS + v
#elif defined(P_LASTWINS)
#define NEWLIMIT(v) limitS = v
#else
#define NEWLIMIT(v) if :: v > limitS -> limitS = v :: else fi
#endif

active proctype S() {
end:	do
	:: atomic { (next < NMSG && MAY_LEAVE && ANY(ROOM_S)) -> x = next; next++;
		if
		:: charged < limitS -> charged++; eager = eager | BIT(x); send_S(MATCH, x, 0, 0)
		:: else -> send_S(RNDV, x, 0, 0)
		fi;
		rest() }
	:: atomic { (oweFirst != 0 && MAY_RESEND && ANY(ROOM_S)) -> lowest(oweFirst); oweFirst = oweFirst - BIT(x);
		if
		:: eager & BIT(x) ->
#ifdef P_RESENDTAKES
			charged++;
#endif
			send_S(MATCH, x, 0, 0)
		:: else -> send_S(RNDV, x, 0, 0)
		fi;
		rest() }
	:: atomic { (oweFRAG != 0 && ANY(ROOM_S)) -> lowest(oweFRAG); oweFRAG = oweFRAG - BIT(x); send_S(FRAG, x, 0, 0); rest() }
	:: RAILDOWN_S(0)
	:: RAILDOWN_S(1)
#if NR == 3
	:: RAILDOWN_S(2)
#endif
	:: atomic { ANY(ACK_S) -> PICK(ACK_S); acks[S_END(r)]--; out[S_END(r)]?f,x,y,z;
		if :: f == MATCH || f == FRAG -> delivd = delivd | BIT(x) :: else fi;
		rest() }
	:: atomic { ANY(IN_S) -> PICK(IN_S); wire[R_END(r)]?f,x,y,z; count_S(r);
		if
		:: f == ACK -> if
			:: (acked & BIT(x)) == 0 -> acked = acked | BIT(x); oweFirst = oweFirst & (255 - BIT(x)); oweFRAG = oweFRAG | BIT(x)
			:: else
			fi;
#ifndef P_INCR
			NEWLIMIT(y)
#endif
		:: f == CREDIT -> NEWLIMIT(x)
		:: f == RAILDOWN -> if :: up[S_END(x)] && epoch[x] <= y -> lost_S(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_S) -> PICK(SEES_S); oweRD[S_END(r)] = true; lost_S(r); rest() }
	od }

#ifdef P_INCR                          /* the frame carries what was released since the last one; ACK carries none */
#define SAY (limitR - told)
#define RIDE 0
#define TOLD_BY_ACK
#else
#define SAY limitR
#define RIDE limitR
#define TOLD_BY_ACK told = limitR;
#endif
inline release(m) { payload = payload - BIT(m); held--; limitR++ }
#ifdef P_NODUP
#define NEW(m) ((got & BIT(m)) == 0 || true)
#else
#define NEW(m) ((arrived & BIT(m)) == 0)
#endif
/* which message the receive in hand takes: tag 2 first, then tag 1 in order; all lower numbers must have come (order) */
#ifdef INORDER
#define TURN(m) (matched == BIT(m) - 1)
#else
#define TURN(m) ((m) == LAST -> matched == 0 : matched == (BIT(LAST) | (BIT(m) - 1)))
#endif
#define COME(m) ((arrived & (BIT(m) - 1)) == BIT(m) - 1 && (arrived & BIT(m)) != 0)
#define READY(m) (got == matched && TURN(m) && COME(m))
inline take(m) {
	assert((matched & BIT(m)) == 0); matched = matched | BIT(m);
	if
	:: payload & BIT(m) -> got = got | BIT(m); release(m)
	:: else -> oweACK = oweACK | BIT(m)
	fi }

active proctype R() {
end:	do
	:: atomic { READY(0) -> take(0); rest() }
	:: atomic { READY(1) -> take(1); rest() }
	:: atomic { READY(2) -> take(2); rest() }
#if NMSG == 4
	:: atomic { READY(3) -> take(3); rest() }
#endif
	:: atomic { (oweACK != 0 && ANY(ROOM_R)) -> lowest(oweACK); oweACK = oweACK - BIT(x); y = RIDE; TOLD_BY_ACK send_R(ACK, x, y, 0); rest() }
	:: atomic { (limitR > told && ANY(ROOM_R)) -> x = SAY; told = limitR; send_R(CREDIT, x, 0, 0); rest() }
	:: RAILDOWN_R(0)
	:: RAILDOWN_R(1)
#if NR == 3
	:: RAILDOWN_R(2)
#endif
	:: atomic { ANY(ACK_R) -> PICK(ACK_R); acks[R_END(r)]--; out[R_END(r)]?f,x,y,z;
		if :: f == ACK -> credit_here(y) :: f == CREDIT -> credit_here(x) :: else fi;
		rest() }
	:: atomic { ANY(IN_R) -> PICK(IN_R); wire[S_END(r)]?f,x,y,z; count_R(r);
		if
		:: f == MATCH -> if
			:: NEW(x) -> assert((got & BIT(x)) == 0 && (payload & BIT(x)) == 0);
				arrived = arrived | BIT(x); payload = payload | BIT(x); held++; assert(held <= BOUND)
			:: else ->
#ifdef P_DUPRETURNS
				limitR++
#else
				skip
#endif
			fi
		:: f == RNDV -> if
			:: (arrived & BIT(x)) == 0 -> arrived = arrived | BIT(x);
#ifdef P_DATA
				payload = payload | BIT(x); held++; assert(held <= BOUND)
#endif
			:: else
			fi
		:: f == FRAG -> if :: (got & BIT(x)) == 0 -> assert(matched & BIT(x)); got = got | BIT(x) :: else fi
		:: f == RAILDOWN -> if :: up[R_END(x)] && epoch[x] <= y -> lost_R(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_R) -> PICK(SEES_R); oweRD[R_END(r)] = true; lost_R(r); rest() }
	od }

#define EVERY (BIT(NMSG) - 1)
#define FINISHED (got == EVERY && matched == EVERY && delivd == EVERY && oweFirst == 0 && oweFRAG == 0 && oweACK == 0 \
	&& held == 0 && limitS == limitR && limitR == BOUND + charged)
#include "net.pml"
