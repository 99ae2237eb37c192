// Exit codes of ranks that mean something to whoever started them.

/** This rank was declared dead by the others. */
export const OWN_FAILURE_CODE = 70;
/** This rank was told to end, by a signal, and the job has saved: EX_TEMPFAIL of sysexits.h, start it again later. */
export const TOLD_TO_END_CODE = 75;
/** The replicas of a rank differ. */
export const DIVERGED_CODE = 76;
/** A replica has died, and the job has saved: it is to be started again with all of its replicas. */
export const RENEW_CODE = 77;
