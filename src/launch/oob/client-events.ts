// What a rank's side of the out-of-band channel tells, by the names of its events.
import type { AbortInfo, ExitInfo } from './member.ts';
import type { checkRailFault } from './telemetry.ts';

export interface OobClientEvents {
  modexUpdate: [rank: number, json: unknown];
  exit: [rank: number, info: ExitInfo];
  abort: [info: AbortInfo];
  /** The launcher wants a rail broken or mended. */
  railFault: [fault: ReturnType<typeof checkRailFault>];
  /** The launcher is dead, or was away for too long; no further event follows. */
  /** The server has taken this process for dead, and the others go on without it. */
  declaredDead: [text: string];
  launcherLost: [text: string];
  /** The server wants to know what this rank waits for: answer with waitsReport(id, …). */
  waitsRequest: [id: number];
  /** That process stands by from now on, or does not any more. */
  standbyState: [rank: number, isWaiting: boolean];
  /** `caller` calls this process in. */
  standbyCall: [caller: number, call: Uint8Array];
  /** A process has joined after the start: its number, and what it published. */
  processJoined: [number: number, incarnation: number, json: unknown];
  /** No process will be started any more in place of those that die. */
  standbysEnd: [];
  connected: [url: string];
  disconnected: [text: string];
}
