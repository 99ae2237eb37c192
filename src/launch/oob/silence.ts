// What silence means where nobody waits for the processes: a rank that computes, or is stopped, says nothing for as long as it likes, since
// its lifeline stands. Pure.
import { limitInCrowd } from '../../util/crowd.ts';
import type { Member } from './member.ts';

const PING_INTERVAL_MS = 500;
/** Pings cost the processors that are short; but a connection that is gone has to be noticed. */
const CROWD_MAX = 4;

/** How often each side says something on a connection that has nothing to say, where ranks share processors (util/crowd.ts). */
export function pingIntervalMs(crowd: number): number {
  return limitInCrowd(PING_INTERVAL_MS, Math.min(CROWD_MAX, crowd));
}

export interface SilenceLimits {
  joinTimeoutMs: number;
  exitGraceMs: number;
  reconnectTimeoutMs: number;
}

/** Why a member is dead. Not certain: its host may only be cut off, and it may live there. */
export interface Silence {
  readonly text: string;
  readonly isCertain: boolean;
}

const certain = (text: string): Silence => ({ text, isCertain: true });

/** Why that member is dead; undefined as long as it may live. */
export function judgeSilence(
  { rank, info, lifeline, lifelineEndedMs, lastContactMs }: Member,
  nowMs: number,
  { joinTimeoutMs, exitGraceMs, reconnectTimeoutMs }: SilenceLimits,
): Silence | undefined {
  const silentMs = Math.round(nowMs - lastContactMs);
  const name = `rank ${rank}`;
  if (info === undefined) return silentMs > joinTimeoutMs ? certain(`${name} has not joined within ${silentMs} ms`) : undefined;
  if (lifelineEndedMs !== undefined)
    return nowMs - lifelineEndedMs > exitGraceMs ? certain(`${name} (pid ${info.pid}) has ended without finalize()`) : undefined;
  if (lifeline !== undefined || silentMs <= reconnectTimeoutMs) return undefined;
  return { text: `${name} was not heard of for ${silentMs} ms`, isCertain: false };
}
