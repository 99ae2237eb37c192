/* rails.pml: the rails under every model of this folder (DESIGN section 4: B1, B2, B3, B6, B8).
 *
 * Two ranks, S and R, and NR rails between them. Each rail has two ends, S_END(r) and R_END(r). Per end:
 *   wire   frames sent from this end and not yet handed up at the other (B1: in order)
 *   out    frames accepted at this end and not yet completed (B2), oldest first, at most OUT
 *          (at R's end at most OUT_R, which is OUT unless it is given)
 *   acks   count acknowledgements on their way to this end; each completes the oldest frame as `delivered`.
 *          They may run ahead of, or behind, the frames of the same direction: more orders than a real rail has.
 *   up     this end believes that the rail epoch lives
 *   cut    nothing that is sent from this end arrives any more
 *   sees   this end will notice the failure by itself, at some moment
 * epoch[r] is the newest rail epoch that both have shaken hands on. The highest dead epoch that an end knows is
 * epoch[r] when it is down and epoch[r]-1 when it is up.
 *
 * A failure (Net, at any moment, at most MAXF) takes for each direction one of: what is under way is lost and
 * nothing follows; what is under way still arrives and nothing follows; the direction is sound. Then both ends
 * notice, each at a moment of its own; with -DONESIDED only one of them does, and the other learns it by RAILDOWN,
 * by a NOTIFY, or by a handshake. With -DREDIAL a lost rail is dialled again at any moment, with a new epoch;
 * the handshake is one step, and each end that still believes in the older epoch runs railDown first.
 *
 * A model that includes this file defines lost_S(r) and lost_R(r) (railDown of that end), on_cut_SR(r) and on_cut_RS(r)
 * (what else is lost with a direction), FINISHED (what must hold when nothing can happen any more), and includes net.pml
 * as its last line. Each of its steps ends with rest(), so that scratch never tells two states apart.
 *
 * Packet names as in DESIGN, the long ones short: NOTIFY, RACK, RNACK and RECVERR are RNDVRESTARTNOTIFY, RNDVRESTARTACK,
 * RNDVRESTARTNACK and RECVERRNOTIFY. A frame is a type and three bytes.
 */
#ifndef NR
#define NR 2
#endif
#ifndef MAXF
#define MAXF 2
#endif
#ifndef OUT
#define OUT 2
#endif
#ifndef OUT_R
#define OUT_R OUT
#endif
#define S_END(r) (r)
#define R_END(r) (NR + (r))

chan wire[2*NR] = [OUT] of { byte, byte, byte, byte };
chan out[2*NR]  = [OUT] of { byte, byte, byte, byte };
byte acks[2*NR];
bool up[2*NR];
bool cut[2*NR];
bool sees[2*NR];
bool failed[NR];
byte epoch[NR];
byte nfail;
bool oweRD[2*NR];                      /* RAILDOWN(r, epoch[r]) is owed by this end */

byte r, f, x, y, z;                    /* scratch of the step in hand: rail and frame */
byte k, lf, lx, ly, lz;                /* scratch of railDown */
inline rest() { d_step { r = 0; f = 0; x = 0; y = 0; z = 0; k = 0; lf = 0; lx = 0; ly = 0; lz = 0 } }

#if NR == 2
#define ANY(C)  (C(0) || C(1))
#define PICK(C) if :: C(0) -> r = 0 :: C(1) -> r = 1 fi
#define ALLR(C) (C(0) && C(1))
#else
#define ANY(C)  (C(0) || C(1) || C(2))
#define PICK(C) if :: C(0) -> r = 0 :: C(1) -> r = 1 :: C(2) -> r = 2 fi
#define ALLR(C) (C(0) && C(1) && C(2))
#endif

#define ROOM_S(r) (up[S_END(r)] && nfull(out[S_END(r)]))
#define ROOM_R(r) (up[R_END(r)] && len(out[R_END(r)]) < OUT_R)
#define ACK_S(r)  (up[S_END(r)] && acks[S_END(r)] > 0)
#define ACK_R(r)  (up[R_END(r)] && acks[R_END(r)] > 0)
#define SEES_S(r) (up[S_END(r)] && sees[S_END(r)])
#define SEES_R(r) (up[R_END(r)] && sees[R_END(r)])
#define SOUND(r)  (up[S_END(r)] && up[R_END(r)] && !failed[r])
#define OWERD_S(r) oweRD[S_END(r)]
#define OWERD_R(r) oweRD[R_END(r)]
#define DOWN_R(r) (!up[R_END(r)])
#ifdef REDIAL
/* S is the lower rank and dials: what it knows to be lost; or, all its rails being silent alike, beside them (B7) */
#ifndef DIAL_OK
#define DIAL_OK true
#endif
#define DIALABLE(r) (DIAL_OK && (!up[S_END(r)] || ALLR(DOWN_R)))
#else
#define DIALABLE(r) false
#endif

/* any rail that is up and has room: the models never prefer one */
inline send_S(t, p, q, s) {
	PICK(ROOM_S);
	out[S_END(r)]!t, p, q, s;
	if :: !cut[S_END(r)] -> wire[S_END(r)]!t, p, q, s :: else fi }
inline send_R(t, p, q, s) {
	PICK(ROOM_R);
	out[R_END(r)]!t, p, q, s;
	if :: !cut[R_END(r)] -> wire[R_END(r)]!t, p, q, s :: else fi }

/* the upcall has returned: the count is raised and acknowledged (B2) */
inline count_S(r) { if :: !cut[S_END(r)] -> acks[R_END(r)]++ :: else fi }
inline count_R(r) { if :: !cut[R_END(r)] -> acks[S_END(r)]++ :: else fi }

inline drain(c) { do :: c?_,_,_,_ :: empty(c) -> break od }
/* one end goes down: nothing of that epoch comes up here again (B3) */
inline end_down(own, other) { up[own] = false; acks[own] = 0; sees[own] = false; cut[other] = true; drain(wire[other]) }

#ifdef P_RDLOST                        /* planted: a RAILDOWN in doubt is not sent again */
#define RD_AGAIN(end, rail, ep)
#else
#define RD_AGAIN(end, rail, ep) if :: epoch[rail] == ep -> oweRD[end] = true :: else fi
#endif

/* the highest dead epoch per rail that S knows, two bits each: the list of a NOTIFY */
#define DEAD1(r) ((epoch[r] - up[S_END(r)]) << (2*(r)))
#if NR == 2
#define DEADLIST (DEAD1(0) | DEAD1(1))
#else
#define DEADLIST (DEAD1(0) | DEAD1(1) | DEAD1(2))
#endif
#ifdef P_RAILFENCE                     /* planted: fence by rail, not by (rail, epoch) */
#define TO_FENCE(r, list) (((list >> (2*(r))) & 3) != 0)
#else
#define TO_FENCE(r, list) (epoch[r] <= ((list >> (2*(r))) & 3))
#endif

#define QUIET(r) ((!up[S_END(r)] || empty(out[S_END(r)])) && (!up[R_END(r)] || empty(out[R_END(r)])) \
	&& !oweRD[S_END(r)] && !oweRD[R_END(r)])
