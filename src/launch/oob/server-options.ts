// What a server of the out-of-band channel is given, and what it tells.
import { limitInCrowd } from '../../util/crowd.ts';
import type { AbortInfo, RankInfo } from './member.ts';
import { pingIntervalMs } from './silence.ts';
import type { Telemetry } from './telemetry.ts';

export interface OobServerOptions {
  jobId: string;
  size: number;
  secret: Uint8Array;
  /** So many of the highest ranks stand by at the start. */
  spares?: number;
  /** Addresses to listen on, `host` or `host:port` or `[v6]:port`; without a port, any free one. */
  listen?: readonly string[];
  /** Processes may join after the start. */
  takesJoins?: boolean;
  /**
   * The owner waits for the processes itself and calls processExited(); then silence alone never means death. Processes that somebody else has
   * started, and that join later, are not among them.
   */
  knowsProcesses: boolean;
  /** Without process knowledge: a rank that joined, and has neither lifeline nor was heard of for this long, is dead. */
  reconnectTimeoutMs: number;
  /** Without process knowledge: a rank that has not joined by then never will. */
  joinTimeoutMs?: number;
  /** Without process knowledge: a rank whose lifeline was ended by its own kernel, and not opened again for this long, is dead. */
  exitGraceMs?: number;
  pingIntervalMs?: number;
  handshakeTimeoutMs?: number;
  /** How many times as long as alone everything takes here, since the ranks share the processors of this host (util/crowd.ts); by default 1. */
  crowd?: number;
  log?: (text: string) => void;
}

export interface OobServerEvents {
  /** All ranks know each other's addresses. */
  met: [];
  joined: [rank: number, info: RankInfo];
  abort: [info: AbortInfo];
  finalized: [rank: number];
  railEvent: [rank: number, event: unknown];
  /** The rank is over, whatever its end was. */
  ended: [rank: number];
  /** A process has joined after the start, and everybody is being told. */
  added: [rank: number];
  /** A rank wants to know who waits for whom. */
  waitsAsked: [rank: number, reason: string];
  waitsReport: [rank: number, id: number, json: unknown];
  telemetry: [rank: number, report: Telemetry];
  /** It waits to be called in, or is at work now: `place` is its rank in the communicator that it was called into. */
  standby: [rank: number, isWaiting: boolean, place: number];
  /** Only without process knowledge, or when a rank's queue overflowed. */
  lost: [rank: number, text: string];
}

const HANDSHAKE_TIMEOUT_MS = 3000;

/** What is not given is as a launcher has it whose ranks are all on this host. */
export function withDefaults(options: OobServerOptions): Required<OobServerOptions> {
  const { crowd = 1 } = options;
  return {
    listen: ['127.0.0.1'],
    pingIntervalMs: pingIntervalMs(crowd),
    handshakeTimeoutMs: limitInCrowd(HANDSHAKE_TIMEOUT_MS, crowd),
    joinTimeoutMs: Number.POSITIVE_INFINITY,
    exitGraceMs: 2000,
    spares: 0,
    takesJoins: false,
    log: () => undefined,
    crowd,
    ...options,
  };
}
