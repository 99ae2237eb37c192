// What a job of `multirail run` has come to.

/** The program ended well, and kills that were asked for could not be carried out. */
export const UNMET_KILLS_CODE = 3;

export interface RankResult {
  rank: number;
  pid: number;
  code: number | undefined;
  signal: NodeJS.Signals | undefined;
  joined: boolean;
  finalized: boolean;
}

export interface JobResult {
  jobId: string;
  /**
   * 0, or the first failing rank's code, or 128 + its signal's number. With the parameter ft on, ranks that died are no failure as long as
   * others have come to their end, and processes that have stood by all the time do not count; 3 when all went well, and kills that were asked for could not be carried out.
   */
  exitCode: number;
  ranks: RankResult[];
  /** Why the job failed. */
  failure: string | undefined;
  /** Ranks that died: by a signal that is not the launcher's, with their host, or because the others had declared them dead. */
  deaths: number;
  /** Hosts to which there was no connection any more at its end. */
  lostHosts: readonly string[];
  /** By number: the host of each process of the start. */
  placed: readonly string[];
  /** By rank of the start: the number of the process that was its lead at the end. Where each rank is one process, it is that. */
  leads: readonly number[];
  /** A signal was passed on to the ranks, or a rank that was told to end has saved and ended (exit code 75). */
  wasTold: boolean;
}
