// What a launcher tells the ranks of a job that it has started again, in their environment.

/** How often the job was started again. */
export const RESTARTS_ENV = 'MULTIRAIL_RESTARTS';
/** The same, where its replicas differed; not set otherwise. */
export const DIVERGED_ENV = 'MULTIRAIL_DIVERGED';
