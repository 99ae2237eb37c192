// The end of a rank's part in its job: what it sent is delivered, and no rank goes while another one may still dial it.
import { MultirailError } from '../errors.ts';
import type { OobClient } from '../launch/oob/client.ts';
import type { Engine } from '../progress/engine.ts';

/** How often it is looked at whether everybody has left, at first and at most. */
const LEFT_POLL_MIN_MS = 1;
const LEFT_POLL_MAX_MS = 10;
/** Name of the barrier on the out-of-band channel, where a program has no barriers. */
const BARRIER = 'finalize';
/** How long the server is given to say who has not come. */
const MISSING_WAIT_MS = 1000;

/** How long a server that is away is waited for when there is nothing left but to tell it so. */
const AWAY_WAIT_MS = 3000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Leaves. Ranks that this one never met may still have messages for it: it stays until all have said to the server of the out-of-band channel
 * that theirs are delivered. Where there is no such server, none any more, or none for half of the time, this rank meets everybody, and hears it
 * from each. With nobody left to wait for it asks nobody.
 *
 * @param others The other processes of the job, those that have died or left included.
 * @param standbys Those of them that stand by, and leave when all others have left.
 * @returns Who has not left within the time, one line each.
 */
export async function leaveTogether(
  engine: Engine,
  others: readonly number[],
  standbys: readonly number[],
  oob: Partial<Pick<OobClient, 'barrier' | 'missingAt' | 'isConnected'>> | undefined,
  timeoutMs: number,
): Promise<string[]> {
  const deadlineMs = performance.now() + timeoutMs;
  let isWaiting = oob?.barrier !== undefined && others.length > 0;
  let isEntered = false;
  let awaySinceMs: number | undefined;
  const meetAll = (): void => {
    isWaiting = false;
    for (const rank of others) engine.meet(rank);
  };
  const withoutServer = (): void => {
    engine.beginFinalize(false, standbys);
    meetAll();
  };
  engine.beginFinalize(isWaiting, standbys);
  if (!isWaiting) meetAll();
  for (let pauseMs = LEFT_POLL_MIN_MS; !engine.isLeft(); pauseMs = Math.min(LEFT_POLL_MAX_MS, pauseMs + 1)) {
    if (performance.now() >= deadlineMs) {
      const met = engine.notLeftPeers().map(({ rank, text }) => `rank ${rank}: ${text}`);
      if (!isWaiting || !isEntered) return met;
      const missing = await Promise.race([oob?.missingAt?.(BARRIER).catch(() => []), pause(MISSING_WAIT_MS)]);
      const others = (missing ?? []).filter((rank) => !met.some((line) => line.startsWith(`rank ${rank}: `)));
      const lines = [...met, ...others.map((rank) => `rank ${rank}: it has not left the job`)];
      return lines.length > 0 ? lines : ['the other ranks: they have not all left the job'];
    }
    if (isWaiting && !isEntered && engine.isDrained) {
      isEntered = true;
      oob?.barrier?.(BARRIER, { tolerant: true }).then(() => {
        isWaiting = false;
        engine.everyoneDrained();
      }, withoutServer);
    }
    if (isWaiting && isEntered && others.every((rank) => engine.endingOf(rank) !== undefined)) {
      isWaiting = false;
      engine.everyoneDrained();
    }
    awaySinceMs = oob?.isConnected === false ? (awaySinceMs ?? performance.now()) : undefined;
    if (isWaiting && awaySinceMs !== undefined && performance.now() - awaySinceMs > timeoutMs / 2) withoutServer();
    await pause(pauseMs);
  }
  return [];
}

/**
 * Tells the server that this rank is done. The loss of the server does not undo what was delivered: while it is away it is waited for a little,
 * and then it is left to find out.
 */
export async function tellFinalized(oob: Pick<OobClient, 'finalized'> & Partial<Pick<OobClient, 'isConnected'>>): Promise<void> {
  let isOver = false;
  const told = oob.finalized().finally(() => {
    isOver = true;
  });
  const away = async (): Promise<void> => {
    for (let awayMs = 0; !isOver && awayMs < AWAY_WAIT_MS; awayMs = oob.isConnected === false ? awayMs + LEFT_POLL_MAX_MS : 0)
      await pause(LEFT_POLL_MAX_MS);
  };
  await Promise.race([told, away()]);
}

/** As a process that has stood by, and that nobody has needed: all that it met have left or are dead. */
export async function leaveUnneeded(engine: Engine, timeoutMs: number): Promise<string[]> {
  const deadlineMs = performance.now() + timeoutMs;
  engine.beginFinalize(true);
  engine.everyoneDrained();
  while (!engine.isLeft()) {
    if (performance.now() >= deadlineMs) return engine.notLeftPeers().map(({ rank, text }) => `rank ${rank}: ${text}`);
    await pause(LEFT_POLL_MAX_MS);
  }
  return [];
}

/** What finalize() rejects with when its time is over. */
export function notFinished(rank: number, timeoutMs: number, notLeft: readonly string[]): MultirailError {
  const text = `after ${timeoutMs} ms rank ${rank} has not finished: ${notLeft.join('; ')}`;
  return new MultirailError('ERR_FINALIZE_TIMEOUT', text, { rank });
}
