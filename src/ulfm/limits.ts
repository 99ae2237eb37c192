// How many processes and communicators a job may have.

/** Processes of a job, and so members of a communicator, are never more than this. */
export const PROCESSES_MAX = 8192;
/** Ids of communicators are below this, so that a ctx of the PML is an unsigned number of 32 bits. */
export const IDS = 2 ** 30;
