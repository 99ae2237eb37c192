// Tells everybody who can end the job that it is over.

/** How long an abort may take to reach the launcher, and the starter, before this process exits all the same. */
const ABORT_WAIT_MS = 500;

/** What of a job can end it. */
export interface Ends {
  /** By the starter's own means, where it has some. */
  abortByStarter?: (code: number, reason: string) => Promise<void>;
  oob: { abort(code: number, reason: string, stack?: string): Promise<void> } | undefined;
}

/** Resolves when it is told, could not be told, or took too long. */
async function inTime(told: Promise<void> | undefined): Promise<void> {
  if (told === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ABORT_WAIT_MS);
  });
  await Promise.race([told.catch(() => undefined), late]);
  clearTimeout(timer);
}

/** Tells the starter, where it is one that ends jobs. Resolves in bounded time. */
export function abortByStarter(job: Ends, code: number, reason: string): Promise<void> {
  return inTime(job.abortByStarter?.(code, reason));
}

/** Tells our server, then the starter. Resolves in bounded time. */
export async function abortEverywhere(job: Ends, code: number, reason: string, stack = ''): Promise<void> {
  // The launcher also sees the exit code: the message is not waited for very long.
  await inTime(job.oob?.abort(code, reason, stack));
  await abortByStarter(job, code, reason);
}
