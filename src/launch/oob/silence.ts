// What silence means where nobody waits for the processes: a rank that computes, or is stopped, says nothing for as long as it likes, since
// its lifeline stands. Pure.
import type { Member } from './member.ts';

export interface SilenceLimits {
  joinTimeoutMs: number;
  exitGraceMs: number;
  reconnectTimeoutMs: number;
}

/** Why that member is dead, in a sentence; undefined as long as it may live. */
export function judgeSilence(
  { rank, info, lifeline, lifelineEndedMs, lastContactMs }: Member,
  nowMs: number,
  { joinTimeoutMs, exitGraceMs, reconnectTimeoutMs }: SilenceLimits,
): string | undefined {
  const silentMs = Math.round(nowMs - lastContactMs);
  const name = `rank ${rank}`;
  if (info === undefined) return silentMs > joinTimeoutMs ? `${name} has not joined within ${silentMs} ms` : undefined;
  if (lifelineEndedMs !== undefined)
    return nowMs - lifelineEndedMs > exitGraceMs ? `${name} (pid ${info.pid}) has ended without finalize()` : undefined;
  return lifeline === undefined && silentMs > reconnectTimeoutMs ? `${name} was not heard of for ${silentMs} ms` : undefined;
}
