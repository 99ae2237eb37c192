// What a rank's side of the out-of-band channel is given.
import { limitInCrowd } from '../../util/crowd.ts';
import { LauncherWatch } from './launcher-watch.ts';
import type { JoinKind } from './messages.ts';
import { pingIntervalMs } from './silence.ts';

export interface OobClientOptions {
  urls: readonly string[];
  secret: Uint8Array;
  /** Undefined: the server says it. */
  jobId: string | undefined;
  /** Where the process joins after the start: the number that is kept for it, or 0; its index with `join` index. */
  rank: number;
  size: number;
  /** It may join after the start: what it is then is known when hello() has resolved. */
  join?: JoinKind;
  incarnation: number;
  hostId: string;
  reconnectTimeoutMs: number;
  /** How long to try before the first contact; by default reconnectTimeoutMs. */
  joinTimeoutMs?: number;
  /** Keep a second connection that shows, without this process's doing, that the process lives. */
  lifeline?: boolean;
  pingIntervalMs?: number;
  connectTimeoutMs?: number;
  /** What is known of the launcher's process; by default nothing. */
  watch?: LauncherWatch;
  /** How many times as long as alone everything takes here, since other ranks share the processors (util/crowd.ts); by default 1. */
  crowd?: number;
  log?: (text: string) => void;
}

/** The deadline of the first attempt to connect. */
const CONNECT_TIMEOUT_MS = 1000;

type Filled = Required<Omit<OobClientOptions, 'jobId' | 'join'>> & { jobId: string | undefined; join: JoinKind | '' };

/** What is not given is as a rank has it that knows its launcher's address, and nothing else of it. */
export function withDefaults(options: OobClientOptions): Filled {
  const { crowd = 1 } = options;
  return {
    pingIntervalMs: pingIntervalMs(crowd),
    connectTimeoutMs: limitInCrowd(CONNECT_TIMEOUT_MS, crowd),
    crowd,
    joinTimeoutMs: options.reconnectTimeoutMs,
    lifeline: false,
    join: '',
    watch: new LauncherWatch(undefined),
    log: () => undefined,
    ...options,
  };
}
