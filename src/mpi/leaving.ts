// The end of a rank's part in its job: what it sent is delivered, and no rank goes while another one may still dial it.
import { MultirailError } from '../errors.ts';
import type { OobClient } from '../launch/oob/client.ts';
import { NOT_LEFT, type NotLeft } from '../progress/departure.ts';
import type { Engine } from '../progress/engine.ts';
import { ranksText } from '../util/rank-list.ts';

/**
 * How often it is looked at whether the time is over, whether the server is away, and whether everybody has ended, at first and at most. Whatever
 * else the end waits for tells it itself: many ranks that look would keep each other from leaving.
 */
const LOOK_MIN_MS = 1;
const LOOK_MAX_MS = 250;
/** Name of the barrier on the out-of-band channel, where a program has no barriers. */
const BARRIER = 'finalize';
/** How long the server is given to say who has not come. */
const MISSING_WAIT_MS = 1000;
/** Lines about those that have not left: there may be one for each rank. */
const LINES_MAX = 16;

/** How long a server that is away is waited for when there is nothing left but to tell it so. */
const AWAY_WAIT_MS = 3000;
const AWAY_LOOK_MS = 10;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** For how long the others are waited for. */
export interface LeaveLimit {
  timeoutMs: number;
  /** Time in which others leave does not count: the limit is one of time without that. */
  whileNobodyLeaves: boolean;
}

/** Until the departure of this rank has come a step further, or for so long. */
function nextStep(engine: Engine, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      engine.onDepartureStep = undefined;
      resolve();
    }
    engine.onDepartureStep = done;
  });
}

/**
 * Counts who has not left, four times in the limit, so that it shows whether the others still leave: each time that they have become fewer, the
 * limit starts again.
 */
class LeavingWatch {
  private readonly limitMs: number;
  private readonly countOpen: () => Promise<number | undefined>;
  private beganMs: number;
  private lookedMs: number;
  private open = Number.POSITIVE_INFINITY;
  private isLooking = false;

  constructor(nowMs: number, limitMs: number, countOpen: () => Promise<number | undefined>) {
    this.beganMs = nowMs;
    this.lookedMs = nowMs;
    this.limitMs = limitMs;
    this.countOpen = countOpen;
  }

  get isOver(): boolean {
    return performance.now() - this.beganMs >= this.limitMs;
  }

  look(): void {
    const nowMs = performance.now();
    if (this.isLooking || nowMs - this.lookedMs < this.limitMs / 4) return;
    this.lookedMs = nowMs;
    this.isLooking = true;
    void this.countOpen().then((open) => {
      this.isLooking = false;
      if (open === undefined || open >= this.open) return;
      // The first look has nothing to compare with.
      if (this.open !== Number.POSITIVE_INFINITY) this.beganMs = performance.now();
      this.open = open;
    });
  }
}

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
  { timeoutMs, whileNobodyLeaves }: LeaveLimit,
): Promise<string[]> {
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
  const missing = async (): Promise<number[] | undefined> =>
    isWaiting && isEntered ? await oob?.missingAt?.(BARRIER).catch(() => undefined) : [];
  const watch = new LeavingWatch(performance.now(), timeoutMs, async () => {
    const absent = await missing();
    return absent && absent.length + engine.notLeftPeers().length;
  });
  engine.beginFinalize(isWaiting, standbys);
  if (!isWaiting) meetAll();
  for (let lookMs = LOOK_MIN_MS; !engine.isLeft(); lookMs = Math.min(LOOK_MAX_MS, lookMs * 2)) {
    if (watch.isOver) {
      const met = engine.notLeftPeers();
      if (!isWaiting || !isEntered) return linesOf(met);
      const absent = await Promise.race([missing(), pause(MISSING_WAIT_MS)]);
      const unmet = (absent ?? []).filter((rank) => !met.some((peer) => peer.rank === rank));
      const lines = linesOf([...met, ...unmet.map((rank) => ({ rank, text: NOT_LEFT }))]);
      return lines.length > 0 ? lines : ['the other ranks: they have not all left the job'];
    }
    if (whileNobodyLeaves) watch.look();
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
    await nextStep(engine, Math.min(lookMs, Math.max(1, timeoutMs / 8)));
  }
  return [];
}

/** Those of whom the same is to be said share a line. */
export function linesOf(peers: readonly NotLeft[]): string[] {
  const ranksByText = new Map<string, number[]>();
  for (const { rank, text } of peers) ranksByText.set(text, [...(ranksByText.get(text) ?? []), rank]);
  const lines = [...ranksByText].map(([text, ranks]) => {
    if (text === NOT_LEFT && ranks.length > 1) return `${ranksText(ranks)}: they have not left the job`;
    return `${ranksText(ranks)}: ${text}`;
  });
  const more = lines.length - LINES_MAX;
  return more > 0 ? [...lines.slice(0, LINES_MAX), `and ${more} more like these`] : lines;
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
    for (let awayMs = 0, lookMs = AWAY_LOOK_MS; !isOver && awayMs < AWAY_WAIT_MS; lookMs = Math.min(LOOK_MAX_MS, lookMs * 2)) {
      await pause(lookMs);
      awayMs = oob.isConnected === false ? awayMs + lookMs : 0;
    }
  };
  await Promise.race([told, away()]);
}

/** As a process that has stood by, and that nobody has needed: all that it met have left or are dead. */
export async function leaveUnneeded(engine: Engine, timeoutMs: number): Promise<string[]> {
  const deadlineMs = performance.now() + timeoutMs;
  engine.beginFinalize(true);
  engine.everyoneDrained();
  while (!engine.isLeft()) {
    if (performance.now() >= deadlineMs) return linesOf(engine.notLeftPeers());
    await nextStep(engine, LOOK_MAX_MS);
  }
  return [];
}

/** What finalize() rejects with when its time is over. */
export function notFinished(rank: number, timeoutMs: number, notLeft: readonly string[]): MultirailError {
  const text = `after ${timeoutMs} ms rank ${rank} has not finished: ${notLeft.join('; ')}`;
  return new MultirailError('ERR_FINALIZE_TIMEOUT', text, { rank });
}
