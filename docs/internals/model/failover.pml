/* failover.pml: eager resend, rendezvous, and restart by resume, while rails fail (DESIGN section 5, Failover
 * rules 1 to 4, 6 and 7).
 *
 * S sends to R one eager message (sequence 0) and one rendezvous (sequence 1) of NF fragments. The rendezvous is
 * matched when the eager one has been, at any later moment (a receive posted late). A FRAG is received in two steps:
 * its sink is opened, and the frame is whole; between the two its bytes are being written.
 * Rails, count acks, failures, detection and re-dialling: rails.pml.
 *
 * What is held to be the rule:
 *   - FRAG in doubt -> the sender stops scheduling the message and at once sends NOTIFY(epoch + 1, dead list). It does
 *     not wait for FRAGs on living rails.
 *   - NOTIFY of a new epoch: fence the rails of the list up to their epochs, revoke the sinks of the message on every
 *     rail, drop FRAGs of older epochs, answer RESTARTACK(epoch, missing) or RESTARTNACK. Of the current epoch:
 *     only answered again. Older: ignored.
 *   - RESTARTACK is obeyed only while waited for and only of the current epoch; its list replaces the sender's view.
 *   - READING (not in DESIGN): RESTARTNACK is obeyed whatever its epoch, while the sender waits: complete is for ever.
 *   - MATCH in doubt, RNDV in doubt and not yet answered: sent again. R drops what it has. ACK, RESTARTACK,
 *     RESTARTNACK and RAILDOWN are owed until delivered.
 *
 * Checked: each message matches once; a fragment counts once; no byte is written after the receive completed; sender
 * complete => receiver complete; and no end state in which a message, an owed frame or a frame in flight is left.
 *
 * Properties and variants: S_READ (when the send completes, no FRAG of it is still on the wire of a living rail, reading
 * the user's buffer: found to be false), V_HOLD (the send completes only when every FRAG of it, of any epoch, has completed).
 * T_NACKEPOCH (R answers the NOTIFY that came last, S wants its own epoch: fails), V_NACKMAX (R answers the newest).
 * Planted mistakes: P_NODUP P_EAGERSENT P_SILENT P_RNACKLOST P_ACKLOST P_RACKTWICE P_STALERACK P_DUPREVOKE
 * P_KEEPSINKS P_OLDEPOCH P_OLDCOUNT P_NOFENCE P_RAILFENCE P_RDLOST, and P_NOSTOP (FRAGs go on while it restarts).
 */
#ifndef NF
#define NF 2
#endif
#define ALL ((1 << NF) - 1)
#define REVOKED 128

mtype = { MATCH, RNDV, ACK, FRAG, NOTIFY, RACK, RNACK, RAILDOWN };
mtype:st = { WAIT_ACK, SENDING, RESTART, DONE };
#define on_cut_SR(r) if :: sink[r] != 0 -> half[r] = true :: else fi   /* half a frame: never becomes whole */
#define on_cut_RS(r) skip
#include "rails.pml"

/* sender */
mtype:st sst = WAIT_ACK;
byte sep, toSend, deliv;               /* message epoch; fragments to send; fragments delivered, as S knows */
bool oweMATCH = true, oweRNDV = true, oweNOTIFY, retained = true;
#ifdef V_HOLD
byte reading;                          /* FRAGs of any epoch that rails still hold: they read the user's buffer */
#define READ_MORE reading++
#define READ_LESS reading--
#define READ_NONE (reading == 0)
#else
#define READ_MORE skip
#define READ_LESS skip
#define READ_NONE true
#endif
/* receiver */
bool seen0, seen1, matched, rdone;
byte rep, have, nackEp;                /* message epoch; fragments counted; T_NACKEPOCH, V_NACKMAX: epoch to answer */
bool oweACK, oweRACK, oweRNACK;
byte sink[NR], sinkEp[NR];             /* open sink per rail: the fragment, or REVOKED */
bool half[NR];
byte nMatch0, nMatch1;

#ifdef V_HOLD
#define COMPLETE skip
#else
#define COMPLETE send_done()
#endif
inline send_done() { sst = DONE; assert(rdone);
#ifdef S_READ
	k = 0; do :: k < NR -> assert(!up[S_END(k)] || !wire[S_END(k)]??[FRAG,_,_,_]); k++ :: else -> break od; k = 0;
#endif
	deliv = ALL }
inline all_delivered() { deliv = ALL; toSend = 0; oweNOTIFY = false; COMPLETE }

inline lost_S(r) {
	end_down(S_END(r), R_END(r));
	do
	:: out[S_END(r)]?lf,lx,ly,lz -> if
		:: lf == MATCH ->
#ifdef P_EAGERSENT
			skip
#else
			oweMATCH = true
#endif
		:: lf == RNDV -> if :: sst == WAIT_ACK -> oweRNDV = true :: else fi
		:: lf == FRAG -> READ_LESS;
			if
			:: lx == sep && sst == SENDING && deliv != ALL -> sst = RESTART; sep++; oweNOTIFY = true;
#ifndef P_NOSTOP
				toSend = 0
#endif
			:: else
			fi
		:: lf == NOTIFY -> if :: lx == sep && sst == RESTART && deliv != ALL -> oweNOTIFY = true :: else fi
		:: lf == RAILDOWN -> RD_AGAIN(S_END(lx), lx, ly)
		fi
	:: empty(out[S_END(r)]) -> break
	od }

inline lost_R(r) {
	end_down(R_END(r), S_END(r)); sink[r] = 0; sinkEp[r] = 0; half[r] = false;
	do
	:: out[R_END(r)]?lf,lx,ly,lz -> if
#ifdef P_ACKLOST
		:: lf == ACK -> skip
#else
		:: lf == ACK -> if :: rep == 0 -> oweACK = true :: else fi      /* a NOTIFY has proved that it was delivered */
#endif
		:: lf == RACK -> if :: lx == rep && !rdone -> oweRACK = true :: else fi
#ifdef P_RNACKLOST
		:: lf == RNACK -> skip
#else
		:: lf == RNACK -> if :: lx == nackEp -> oweRNACK = true :: else fi
#endif
		:: lf == RAILDOWN -> RD_AGAIN(R_END(lx), lx, ly)
		fi
	:: empty(out[R_END(r)]) -> break
	od }

#ifdef T_NACKEPOCH
#define NACK_OK (x == sep)
#define NACK_EPOCH nackEp = x
#elif defined(V_NACKMAX)
#define NACK_OK (x == sep)
#define NACK_EPOCH nackEp = (x > nackEp -> x : nackEp)
#else
#define NACK_OK true
#define NACK_EPOCH skip
#endif
#define RAILDOWN_S(q) atomic { (OWERD_S(q) && ANY(ROOM_S)) -> oweRD[S_END(q)] = false; \
	send_S(RAILDOWN, q, epoch[q], 0); rest() }
#define RAILDOWN_R(q) atomic { (OWERD_R(q) && ANY(ROOM_R)) -> oweRD[R_END(q)] = false; \
	send_R(RAILDOWN, q, epoch[q], 0); rest() }
#define IN_S(r) (up[S_END(r)] && nempty(wire[R_END(r)]))
#define IN_R(r) (up[R_END(r)] && nempty(wire[S_END(r)]) && sink[r] == 0)
#define WHOLE(r) (up[R_END(r)] && sink[r] != 0 && !half[r])
#ifdef P_NOSTOP
#define MAY_SEND (sst == SENDING || sst == RESTART)
#else
#define MAY_SEND (sst == SENDING)
#endif

active proctype S() {
end:	do
	:: atomic { (oweMATCH && ANY(ROOM_S)) -> oweMATCH = false; send_S(MATCH, 0, 0, 0); rest() }
	:: atomic { (oweRNDV && ANY(ROOM_S)) -> oweRNDV = false; send_S(RNDV, 0, 0, 0); rest() }
	:: atomic { (oweNOTIFY && ANY(ROOM_S)) -> oweNOTIFY = false; send_S(NOTIFY, sep, DEADLIST, 0); rest() }
	:: atomic { (MAY_SEND && toSend != 0 && ANY(ROOM_S)) ->
		if :: toSend & 1 -> x = 1 :: else -> if :: toSend & 2 -> x = 2 :: else -> x = 4 fi fi;
		toSend = toSend & (ALL - x); READ_MORE; send_S(FRAG, sep, x, 0); rest() }
	:: RAILDOWN_S(0)
	:: RAILDOWN_S(1)
#if NR == 3
	:: RAILDOWN_S(2)
#endif
#ifdef V_HOLD
	:: atomic { (sst != DONE && deliv == ALL && READ_NONE) -> send_done(); rest() }
#endif
	:: atomic { ANY(ACK_S) -> PICK(ACK_S); acks[S_END(r)]--; out[S_END(r)]?f,x,y,z;   /* delivered */
		if
		:: f == MATCH -> retained = false
		:: f == FRAG -> READ_LESS;
			if
			:: (x == sep
#ifdef P_OLDCOUNT
				|| true
#endif
				) && sst == SENDING && deliv != ALL -> deliv = deliv | y;
				if :: deliv == ALL -> all_delivered() :: else fi
			:: else
			fi
		:: else
		fi;
		rest() }
	:: atomic { ANY(IN_S) -> PICK(IN_S); wire[R_END(r)]?f,x,y,z; count_S(r);
		if
		:: f == ACK -> if :: sst == WAIT_ACK -> sst = SENDING; toSend = ALL; oweRNDV = false :: else fi
		:: f == RACK -> if
			:: (sst == RESTART
#ifdef P_RACKTWICE
				|| sst == SENDING
#endif
				) && deliv != ALL && (x == sep
#ifdef P_STALERACK
				|| true
#endif
				) -> sst = SENDING; oweNOTIFY = false; toSend = y; deliv = ALL & (ALL - y);
				if :: y == 0 -> all_delivered() :: else fi
			:: else
			fi
		:: f == RNACK -> if :: sst == RESTART && deliv != ALL && NACK_OK -> all_delivered() :: else fi
		:: f == RAILDOWN -> if :: up[S_END(x)] && epoch[x] <= y -> lost_S(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_S) -> PICK(SEES_S); oweRD[S_END(r)] = true; lost_S(r); rest() }
	od }

inline revoke_all() {
	k = 0;
	do
	:: k < NR -> if :: sink[k] != 0 -> sink[k] = REVOKED; sinkEp[k] = 0 :: else fi; k++
	:: else -> break
	od }
inline fence(list) {
	k = 0;
	do
	:: k < NR -> if :: up[R_END(k)] && TO_FENCE(k, list) -> lost_R(k) :: else fi; k++
	:: else -> break
	od }

active proctype R() {
end:	do
	:: atomic { (seen0 && seen1 && !matched) -> matched = true; nMatch1++; assert(nMatch1 <= 1); oweACK = true; rest() }
	:: atomic { (oweACK && ANY(ROOM_R)) -> oweACK = false; send_R(ACK, 0, 0, 0); rest() }
	:: atomic { (oweRACK && ANY(ROOM_R)) -> oweRACK = false; send_R(RACK, rep, ALL & (ALL - have), 0); rest() }
	:: atomic { (oweRNACK && ANY(ROOM_R)) -> oweRNACK = false; send_R(RNACK, nackEp, 0, 0); rest() }
	:: RAILDOWN_R(0)
	:: RAILDOWN_R(1)
#if NR == 3
	:: RAILDOWN_R(2)
#endif
	:: atomic { ANY(ACK_R) -> PICK(ACK_R); acks[R_END(r)]--; out[R_END(r)]?f,x,y,z; rest() }
	:: atomic { ANY(IN_R) -> PICK(IN_R); wire[S_END(r)]?f,x,y,z;
		if
		:: f == MATCH -> count_R(r);
			if
			:: (!seen0
#ifdef P_NODUP
				|| true
#endif
				) -> seen0 = true; nMatch0++; assert(nMatch0 <= 1)
			:: else
			fi
		:: f == RNDV -> count_R(r); seen1 = true
		:: f == FRAG -> if
			:: matched && !rdone && (x == rep
#ifdef P_OLDEPOCH
				|| true
#endif
				) -> sink[r] = y; sinkEp[r] = x
			:: else -> count_R(r)                   /* dropped and counted */
			fi
		:: f == NOTIFY -> count_R(r);
			if
			:: rdone ->
#ifndef P_SILENT
				NACK_EPOCH; oweRNACK = true
#else
				skip
#endif
			:: !rdone && x > rep -> rep = x; oweACK = false;
#ifndef P_NOFENCE
				fence(y);
#endif
#ifndef P_KEEPSINKS
				revoke_all();
#endif
				oweRACK = true
			:: !rdone && x == rep -> oweRACK = true;
#ifdef P_DUPREVOKE
				revoke_all()
#endif
			:: else
			fi
		:: f == RAILDOWN -> count_R(r); if :: up[R_END(x)] && epoch[x] <= y -> lost_R(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(WHOLE) -> PICK(WHOLE);          /* the bytes were being written until now */
		if
		:: sink[r] == REVOKED
		:: else -> assert(!rdone);              /* no write after completion */
			if
			:: (sinkEp[r] == rep
#ifdef P_OLDEPOCH
				|| true
#endif
				) -> assert((have & sink[r]) == 0);             /* a range counts once */
				have = have | sink[r];
				if :: have == ALL -> rdone = true; oweRACK = false :: else fi
			:: else
			fi
		fi;
		sink[r] = 0; sinkEp[r] = 0; count_R(r); rest() }
	:: atomic { ANY(SEES_R) -> PICK(SEES_R); oweRD[R_END(r)] = true; lost_R(r); rest() }
	od }

#define FINISHED (sst == DONE && rdone && nMatch0 == 1 && !retained && !oweMATCH && !oweRNDV && !oweNOTIFY && toSend == 0 \
	&& !oweACK && !oweRACK && !oweRNACK)
#include "net.pml"
