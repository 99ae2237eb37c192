/* net.pml: the process that lets rails fail and dials them again; included last (see rails.pml). */
active proctype Net() {
	atomic {
		do :: k < NR -> up[S_END(k)] = true; up[R_END(k)] = true; epoch[k] = 1; k++ :: else -> break od;
		rest()
	};
	do
	:: atomic { nfail < MAXF && ANY(SOUND) -> PICK(SOUND); nfail++; failed[r] = true;
		if
		:: cut[S_END(r)] = true; drain(wire[S_END(r)]); acks[R_END(r)] = 0; on_cut_SR(r)
		:: cut[S_END(r)] = true
		:: skip
		fi;
		if
		:: cut[R_END(r)] = true; drain(wire[R_END(r)]); acks[S_END(r)] = 0; on_cut_RS(r)
		:: cut[R_END(r)] = true
		:: skip
		fi;
#ifdef ONESIDED
		if :: sees[S_END(r)] = true :: sees[R_END(r)] = true fi;
#else
		sees[S_END(r)] = true; sees[R_END(r)] = true;
#endif
		rest() }
	:: atomic { ANY(DIALABLE) -> PICK(DIALABLE);
		if :: up[S_END(r)] -> lost_S(r) :: else fi;
		if :: up[R_END(r)] -> lost_R(r) :: else fi;
		epoch[r] = epoch[r] + 1; failed[r] = false;
		oweRD[S_END(r)] = false; oweRD[R_END(r)] = false;
		cut[S_END(r)] = false; cut[R_END(r)] = false;
		up[S_END(r)] = true; up[R_END(r)] = true;
		rest() }
	:: timeout -> assert(FINISHED); assert(ALLR(QUIET)); break
	od
}
