/* two-rendezvous.pml: two rendezvous messages of one sender to one receiver, sharing the rails, both restarted; ids of
 * slot + generation (DESIGN section 5, "A message's state outlives ...", Failover rules 4 and 7).
 *
 * Message 0 (sequence 0) and message 1 (sequence 1), each of NF fragments, both in hand at the sender at once. The
 * receiver's requests live in slots. With RSLOTS=1 (the default) message 1 can be matched only when the slot of message 0
 * has been retired: complete, and its ACK delivered; it then takes the same slot with the next generation, while the
 * sender may still restart message 0. With RSLOTS=2 both are received at the same time. With -DONESLOT the sender too
 * has one slot, and begins message 1 when message 0 has ended; frames for message 0 may then reach the new owner.
 * With -DSHORT message 0 is a short synchronous send: all its data is in the RNDV, so the receive completes at the match
 * and the ACK is all that is left of it.
 * A FRAG is received in two steps, as in failover.pml. Rails, failures, detection and re-dialling: rails.pml.
 * An id in a frame is the message number m: slot and generation in one.
 *
 * What is held to be the rule, beside the rules of failover.pml: ACK is owed until delivered, and its slot is not retired
 * before. A NOTIFY for a retired generation is answered by RESTARTNACK (READING: this answer is kept by the peer's state
 * until delivered, since the message has none any more). Every other frame for a retired generation is dropped.
 *
 * Checked: as in failover.pml, for each message; messages match in order; no frame changes a message that it does not name.
 * Planted mistakes: P_NOGEN (R does not look at generations) P_NOGEN_S (S does not) P_ACKGONE (a slot is retired before its
 * ACK was delivered) P_RNACKLOST P_SILENT (NOTIFY for a retired generation unanswered) P_DUPREVOKE P_KEEPSINKS P_RACKTWICE
 * P_WIDEREVOKE (a NOTIFY revokes the sinks of every message) P_RAILFENCE P_RDLOST.
 */
#ifndef NF
#define NF 1
#endif
#ifndef RSLOTS
#define RSLOTS 1
#endif
#define ALL ((1 << NF) - 1)
#define REVOKED 128
#define NONE 3
mtype = { RNDV, ACK, FRAG, NOTIFY, RACK, RNACK, RAILDOWN };
mtype:st = { IDLE, WAIT_ACK, SENDING, RESTART, DONE };
mtype:rt = { UNSEEN, SEEN, MATCHED, COMPLETE, RETIRED };
#define on_cut_SR(r) if :: sink[r] != 0 -> half[r] = true :: else fi
#define on_cut_RS(r) skip
#include "rails.pml"

/* sender, per message */
mtype:st sst[2]; byte sep[2], toSend[2], deliv[2]; bool oweRNDV[2], oweNOTIFY[2];
/* receiver, per message */
mtype:rt rst[2]; byte rep[2], have[2]; bool oweACK[2], ackHere[2], oweRACK[2], oweRNACK[2];
byte owner = NONE;                     /* who has the slot (RSLOTS=1) */
/* receiver, per rail: the open sink, the message that opened it, its epoch */
byte sink[NR], sinkEp[NR], sinkOf[NR]; bool half[NR];

inline lost_S(r) {
	end_down(S_END(r), R_END(r));
	do
	:: out[S_END(r)]?lf,lx,ly,lz -> if
		:: lf == RNDV -> if :: sst[lx] == WAIT_ACK -> oweRNDV[lx] = true :: else fi
		:: lf == FRAG -> if
			:: ly == sep[lx] && sst[lx] == SENDING ->
				sst[lx] = RESTART; sep[lx] = sep[lx] + 1; toSend[lx] = 0; oweNOTIFY[lx] = true
			:: else
			fi
		:: lf == NOTIFY -> if :: (ly & 3) == sep[lx] && sst[lx] == RESTART -> oweNOTIFY[lx] = true :: else fi
		:: lf == RAILDOWN -> RD_AGAIN(S_END(lx), lx, ly)
		fi
	:: empty(out[S_END(r)]) -> break
	od }

inline lost_R(r) {
	end_down(R_END(r), S_END(r)); sink[r] = 0; sinkEp[r] = 0; sinkOf[r] = 0; half[r] = false;
	do
	:: out[R_END(r)]?lf,lx,ly,lz -> if
		:: lf == ACK -> if :: !ackHere[lx] && rst[lx] != RETIRED -> oweACK[lx] = true :: else fi
		:: lf == RACK -> if :: ly == rep[lx] && rst[lx] == MATCHED -> oweRACK[lx] = true :: else fi
#ifdef P_RNACKLOST
		:: lf == RNACK -> skip
#else
		:: lf == RNACK -> oweRNACK[lx] = true
#endif
		:: lf == RAILDOWN -> RD_AGAIN(R_END(lx), lx, ly)
		fi
	:: empty(out[R_END(r)]) -> break
	od }

#define RAILDOWN_S(q) atomic { (OWERD_S(q) && ANY(ROOM_S)) -> oweRD[S_END(q)] = false; \
	send_S(RAILDOWN, q, epoch[q], 0); rest() }
#define RAILDOWN_R(q) atomic { (OWERD_R(q) && ANY(ROOM_R)) -> oweRD[R_END(q)] = false; \
	send_R(RAILDOWN, q, epoch[q], 0); rest() }
#define IN_S(r) (up[S_END(r)] && nempty(wire[R_END(r)]))
#define IN_R(r) (up[R_END(r)] && nempty(wire[S_END(r)]) && sink[r] == 0)
#define WHOLE(r) (up[R_END(r)] && sink[r] != 0 && !half[r])

inline send_done(m) { sst[m] = DONE; toSend[m] = 0; oweNOTIFY[m] = false; deliv[m] = ALL;
	assert(rst[m] == COMPLETE || rst[m] == RETIRED) }

/* which message a frame that names m reaches at the sender; NONE: dropped */
inline at_sender() {
#ifdef P_NOGEN_S
	if :: sst[1] != IDLE -> x = 1 :: else fi
#else
	skip
#endif
}

#define RNDV_S(m)   atomic { (oweRNDV[m] && ANY(ROOM_S)) -> oweRNDV[m] = false; send_S(RNDV, m, 0, 0); rest() }
/* a NOTIFY is (m, epoch, list) */
#define NOTIFY_S(m) atomic { (oweNOTIFY[m] && ANY(ROOM_S)) -> oweNOTIFY[m] = false; send_S(NOTIFY, m, sep[m], DEADLIST); rest() }
#define FRAG_S(m)   atomic { (sst[m] == SENDING && toSend[m] != 0 && ANY(ROOM_S)) -> \
	if :: toSend[m] & 1 -> x = 1 :: else -> x = 2 fi; \
	toSend[m] = toSend[m] & (ALL - x); send_S(FRAG, m, sep[m], x); rest() }

#ifdef P_RACKTWICE
#define OBEYS (sst[x] == RESTART || sst[x] == SENDING)
#else
#define OBEYS (sst[x] == RESTART)
#endif
active proctype S() {
	atomic {
		sst[0] = WAIT_ACK; oweRNDV[0] = true;
#ifdef ONESLOT
		sst[1] = IDLE
#else
		sst[1] = WAIT_ACK; oweRNDV[1] = true
#endif
	};
end:	do
	:: RNDV_S(0)
	:: RNDV_S(1)
	:: NOTIFY_S(0)
	:: NOTIFY_S(1)
	:: FRAG_S(0)
	:: FRAG_S(1)
	:: RAILDOWN_S(0)
	:: RAILDOWN_S(1)
#if NR == 3
	:: RAILDOWN_S(2)
#endif
#ifdef ONESLOT
	:: atomic { (sst[0] == DONE && sst[1] == IDLE) -> sst[1] = WAIT_ACK; oweRNDV[1] = true }
#endif
	:: atomic { ANY(ACK_S) -> PICK(ACK_S); acks[S_END(r)]--; out[S_END(r)]?f,x,y,z;
		if
		:: f == FRAG && y == sep[x] && sst[x] == SENDING -> deliv[x] = deliv[x] | z;
			if :: deliv[x] == ALL -> send_done(x) :: else fi
		:: else
		fi;
		rest() }
	:: atomic { ANY(IN_S) -> PICK(IN_S); wire[R_END(r)]?f,x,y,z; count_S(r);
		if
		:: f == ACK -> at_sender(); if
			:: sst[x] == WAIT_ACK -> oweRNDV[x] = false;
				if
				:: y == 0 -> send_done(x)               /* nothing more is wanted */
				:: else -> sst[x] = SENDING; toSend[x] = ALL
				fi
			:: else
			fi
		:: f == RACK -> at_sender(); if
			:: OBEYS && y == sep[x] -> sst[x] = SENDING; oweNOTIFY[x] = false; toSend[x] = z; deliv[x] = ALL & (ALL - z);
				if :: z == 0 -> send_done(x) :: else fi
			:: else
			fi
		:: f == RNACK -> at_sender(); if :: sst[x] == RESTART -> send_done(x) :: else fi
		:: f == RAILDOWN -> if :: up[S_END(x)] && epoch[x] <= y -> lost_S(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(SEES_S) -> PICK(SEES_S); oweRD[S_END(r)] = true; lost_S(r); rest() }
	od }

#ifdef P_WIDEREVOKE
#define OF(k, m) true
#else
#define OF(k, m) (sinkOf[k] == m)
#endif
inline revoke(m) {
	k = 0;
	do
	:: k < NR -> if :: sink[k] != 0 && OF(k, m) -> sink[k] = REVOKED; sinkEp[k] = 0; sinkOf[k] = 0 :: else fi; k++
	:: else -> break
	od }
inline fence(list) {
	k = 0;
	do
	:: k < NR -> if :: up[R_END(k)] && TO_FENCE(k, list) -> lost_R(k) :: else fi; k++
	:: else -> break
	od }
/* complete and nothing owed: the slot is free for the next generation */
#ifdef P_ACKGONE
#define ACK_OVER(m) true
#else
#define ACK_OVER(m) ackHere[m]
#endif
inline try_retire(m) {
	if
	:: (rst[m] == COMPLETE && ACK_OVER(m)) -> rst[m] = RETIRED; rep[m] = 0; have[m] = 0; ackHere[m] = false; oweACK[m] = false;
#if RSLOTS == 1
		if :: owner == m -> owner = NONE :: else fi
#endif
	:: else
	fi }
inline match(m) {
	rst[m] = MATCHED; oweACK[m] = true;
#if RSLOTS == 1
	owner = m;
#endif
#ifdef SHORT
	if :: m == 0 -> rst[m] = COMPLETE; have[m] = ALL; try_retire(m) :: else fi
#endif
}
#if RSLOTS == 1
#define SLOT_FREE (owner == NONE)
#else
#define SLOT_FREE true
#endif
/* whom a frame that names m reaches at the receiver */
#ifdef P_NOGEN
#define AT_RECEIVER(m) if :: owner != NONE -> m = owner :: else fi
#else
#define AT_RECEIVER(m) skip
#endif
#ifdef SHORT
#define WANTED(m) ((m == 0 -> 0 : ALL))
#else
#define WANTED(m) ALL
#endif
#define ACK_R_(m)   atomic { (oweACK[m] && ANY(ROOM_R)) -> oweACK[m] = false; send_R(ACK, m, WANTED(m), 0); rest() }
#define RACK_R(m)  atomic { (oweRACK[m] && ANY(ROOM_R)) -> oweRACK[m] = false; send_R(RACK, m, rep[m], ALL & (ALL - have[m])); rest() }
#define RNACK_R(m) atomic { (oweRNACK[m] && ANY(ROOM_R)) -> oweRNACK[m] = false; send_R(RNACK, m, 0, 0); rest() }

active proctype R() {
	atomic { rst[0] = UNSEEN; rst[1] = UNSEEN };
end:	do
	:: atomic { (rst[0] == SEEN && SLOT_FREE) -> match(0); rest() }
	:: atomic { (rst[1] == SEEN && rst[0] != UNSEEN && rst[0] != SEEN && SLOT_FREE) -> match(1); rest() }
	:: ACK_R_(0)
	:: ACK_R_(1)
	:: RACK_R(0)
	:: RACK_R(1)
	:: RNACK_R(0)
	:: RNACK_R(1)
	:: RAILDOWN_R(0)
	:: RAILDOWN_R(1)
#if NR == 3
	:: RAILDOWN_R(2)
#endif
	:: atomic { ANY(ACK_R) -> PICK(ACK_R); acks[R_END(r)]--; out[R_END(r)]?f,x,y,z;
		if
		:: f == ACK -> if :: rst[x] != RETIRED -> ackHere[x] = true; oweACK[x] = false; try_retire(x) :: else fi
		:: else
		fi;
		rest() }
	:: atomic { ANY(IN_R) -> PICK(IN_R); wire[S_END(r)]?f,x,y,z;
		if
		:: f == RNDV -> count_R(r); if :: rst[x] == UNSEEN -> rst[x] = SEEN :: else fi
		:: f == FRAG -> AT_RECEIVER(x); if
			:: rst[x] == MATCHED && y == rep[x] -> sink[r] = z; sinkEp[r] = y; sinkOf[r] = x
			:: else -> count_R(r)
			fi
		:: f == NOTIFY -> count_R(r); AT_RECEIVER(x); if
			:: rst[x] == COMPLETE || rst[x] == RETIRED ->
#ifdef P_SILENT
				if :: rst[x] == RETIRED -> skip :: else -> oweRNACK[x] = true fi
#else
				oweRNACK[x] = true
#endif
			:: rst[x] == MATCHED && y > rep[x] -> rep[x] = y; ackHere[x] = true; oweACK[x] = false;
				fence(z);
#ifndef P_KEEPSINKS
				revoke(x);
#endif
				oweRACK[x] = true
			:: rst[x] == MATCHED && y == rep[x] -> oweRACK[x] = true;
#ifdef P_DUPREVOKE
				revoke(x)
#endif
			:: else
			fi
		:: f == RAILDOWN -> count_R(r); if :: up[R_END(x)] && epoch[x] <= y -> lost_R(x) :: else fi
		fi;
		rest() }
	:: atomic { ANY(WHOLE) -> PICK(WHOLE); x = sinkOf[r]; y = sink[r];
		if
		:: y == REVOKED
		:: else -> assert(rst[x] == MATCHED);                   /* no write after completion */
			if
			:: sinkEp[r] == rep[x] -> assert((have[x] & y) == 0); have[x] = have[x] | y;
				if :: have[x] == ALL -> rst[x] = COMPLETE; oweRACK[x] = false; try_retire(x) :: else fi
			:: else
			fi
		fi;
		sink[r] = 0; sinkEp[r] = 0; sinkOf[r] = 0; count_R(r); rest() }
	:: atomic { ANY(SEES_R) -> PICK(SEES_R); oweRD[R_END(r)] = true; lost_R(r); rest() }
	od }

#define OVER(m) (sst[m] == DONE && rst[m] == RETIRED && !oweRNDV[m] && !oweNOTIFY[m] && !oweRACK[m] && !oweRNACK[m] && !oweACK[m])
#define FINISHED (OVER(0) && OVER(1))
#include "net.pml"
