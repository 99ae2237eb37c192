// Types of respawn-play.mjs.
export interface RespawnRun {
  problems: string[];
  killed: number;
  recoveries: number;
  /** Resident bytes of process 0 and of the launcher, at each recovery. */
  rss: { process: number; launcher: number }[];
  stdout: string;
  stderr: string;
}

export function playRespawn(options: {
  words: readonly string[];
  ranks: number;
  kills: number;
  seed: number;
  limitMs: number;
}): Promise<RespawnRun>;
