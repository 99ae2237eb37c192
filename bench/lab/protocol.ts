// What a measured rank and the measurement say to each other: lines of JSON over a local socket, which reaches every network
// namespace and no fault of the lab. Imports nothing.
//
// Times are milliseconds of the machine's monotonic clock, the same in all processes.

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Those that end in `-sync` use the blocking calls: the event loop rests meanwhile. */
export type Traffic = 'throughput' | 'bulk' | 'pingpong' | 'pingpong-sync' | 'stream8' | 'idle' | 'idle-sync';

/** Argument of lab-rank. */
export interface RankSpec {
  control: string;
  traffic: Traffic;
  /** Rails that must be up before the traffic begins. */
  rails: number;
  /** bulk: length of a message, and how many are under way. */
  bytes: number;
  window: number;
  /** pingpong: pause between two rounds; 0 = none. */
  pauseMs: number;
  /** Intervals between two deliveries are reported from this length on. */
  gapMinMs: number;
  /** throughput: one stream for each, of that time after the warm-up. */
  sizes: { bytes: number; window: number }[];
  warmMs: number;
  measureMs: number;
}

export interface RailSample {
  key: string;
  state: string;
  /** Since the last report. */
  framesReceived: number;
  payloadBytesReceived: number;
  measuredMBps: number;
  /** Since the start: how often it was lost or suspected. Events of it wait for the event loop, which blocking calls do not turn. */
  troubles: number;
}

export type FromRank =
  | { type: 'hello'; rank: number; pid: number }
  /** All rails are up, and the traffic begins. */
  | { type: 'ready'; at: number }
  /**
   * Every 10 ms or so: what was delivered here since the start, when the last delivery was, the intervals between two deliveries that
   * ended since the last report, and what the rails brought.
   */
  | { type: 'report'; at: number; delivered: number; lastAt: number; gaps: [number, number][]; rails: RailSample[] }
  | { type: 'rail'; at: number; event: string; key: string; reason: string }
  | { type: 'row'; row: ThroughputRow }
  | { type: 'computed'; at: number }
  | { type: 'done'; sent: number; received: number; errors: string[]; counters: Record<string, number>; rails: RailSummary[] };

export interface RailSummary {
  key: string;
  state: string;
  downs: number;
  suspicions: number;
  measuredMBps: number;
  payloadBytesSent: number;
  payloadBytesReceived: number;
  lastReason: string | undefined;
}

/** One stream, as the receiver saw it. */
export interface ThroughputRow {
  bytes: number;
  window: number;
  /** Between the first and the last completion within the measured time. */
  steadyMBps: number;
  /** From there to the last completion of all: with the tail in which the window empties. */
  toEndMBps: number;
  messages: number;
  /** Payload that each rail brought in the whole stream, and what the sender had measured of it at the end. */
  rails: { key: string; payloadBytes: number; measuredMBps: number }[];
}

export type ToRank = { type: 'stop' } | { type: 'compute'; ms: number };

/** Calls `onLine` for each whole line of a stream of text. */
export function lineSplitter(onLine: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  };
}
