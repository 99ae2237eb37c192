// What a rank tells the launcher about itself while the job runs (message Telemetry of oob.proto): its shape, its bounds, the names of a
// rail's counters, and the check of what came in.
import { MultirailError } from '../../errors.ts';

/** One report names at most so many rails and moves; the others wait for the next one. */
export const REPORT_RAILS_MAX = 256;
export const REPORT_MOVES_MAX = 256;
export const REPORT_COUNTERS_MAX = 256;
/** Longest name and reason, in characters. */
export const REPORT_NAME_MAX = 128;
export const REPORT_REASON_MAX = 256;
/** With more messages than this under way the launcher is slow or away: no report is added. */
export const TELEMETRY_WAITING_MAX = 64;

/** Counters of a rail in the order in which they travel, with what they count. Appended to, never reordered. */
export const RAIL_COUNTERS = {
  payloadBytesSent: 'Payload bytes sent, those sent again included.',
  payloadBytesReceived: 'Payload bytes received, those that came twice included.',
  bytesSent: 'Bytes sent, headers included.',
  bytesReceived: 'Bytes received, headers included.',
  framesSent: 'Frames sent.',
  framesReceived: 'Frames received.',
  framesRefused: 'Frames refused for a damaged payload.',
  framesInDoubt: 'Frames of which it was not known, when the rail was lost, whether they had been delivered.',
  ups: 'Times that the rail came up.',
  downs: 'Times that the rail was lost.',
  suspicions: 'Times that nothing came through for a while.',
  connectAttempts: 'Attempts to connect.',
} as const;
export type RailCounterName = keyof typeof RAIL_COUNTERS;
export const RAIL_COUNTER_NAMES = Object.keys(RAIL_COUNTERS) as readonly RailCounterName[];

/** What multirail/ft counts, as it travels among the counters: name, whether it only grows, and what it is. */
export const SAVE_COUNTERS = {
  ftSavesCommitted: { grows: true, text: 'Saves of this rank that were committed.' },
  ftSavesAbandoned: { grows: true, text: 'Saves that were given up, because a rank could not do its part or has failed.' },
  ftSavesNotStored: { grows: true, text: 'Saves that are in memory alone, because a folder or a store has refused them.' },
  ftSaveBytes: { grows: true, text: 'Bytes of the images of committed saves.' },
  ftSaveMs: {
    grows: true,
    text: 'Time from the begin of saves until they were committed, in milliseconds; the program goes on meanwhile.',
  },
  ftRecoveries: { grows: true, text: 'Times that this rank was called again after a failure.' },
  ftRecoveriesInPlace: { grows: true, text: 'Recoveries in which only the dead went back, as this rank has seen them.' },
  ftFailures: { grows: true, text: 'Failures of the job so far, as this rank knows.' },
  ftLostSteps: { grows: true, text: 'Steps that were done again after failures.' },
  ftToleranceLeft: {
    grows: false,
    text: 'Hosts, or processes where there is one host, that may be lost now without losing the newest save in memory.',
  },
  ftUsefulMs: { grows: false, text: 'Time that this rank has spent in steps that have not been lost, in milliseconds.' },
  ftElapsedMs: { grows: true, text: 'Time since this rank has begun to run the program, in milliseconds.' },
} as const;
export type SaveCounterName = keyof typeof SAVE_COUNTERS;
export type SaveCounters = Record<SaveCounterName, number>;

export interface TelemetryRailName {
  key: string;
  transport: string;
  standby: boolean;
  bandwidthBytesPerSecond: number;
  latencyUs: number;
}

export interface TelemetryRail {
  peer: number;
  rail: number;
  state: string;
  epoch: number;
  reason: string;
  outstandingBytes: number;
  windowBytes: number;
  /** 0 until measured. */
  measuredBytesPerSecond: number;
  /** In the order of RAIL_COUNTER_NAMES. */
  counters: number[];
  /** In the first report of this rail; null afterwards. */
  name?: TelemetryRailName | null;
}

export interface TelemetryMove {
  peer: number;
  rail: number;
  from: string;
  to: string;
  reason: string;
  atUs: number;
}

export interface Telemetry {
  atUs: number;
  aliveMs: number;
  turns: number;
  retainedBytes: number;
  takesFaults: boolean;
  rails: TelemetryRail[];
  moves: TelemetryMove[];
  movesDropped: number;
  counters: Record<string, number>;
}

export const FAULT_ACTIONS = ['pull', 'blackhole', 'restore'] as const;
export type FaultActionName = (typeof FAULT_ACTIONS)[number];

export interface RailFault {
  action: string;
  peer: number;
  rail: number;
}

const STATE = /^[A-Z_]{1,16}$/;
const COUNTER = /^[a-z][A-Za-z0-9]{0,63}$/;

function refuse(text: string): never {
  throw new MultirailError('ERR_PROTOCOL', `telemetry: ${text}`);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Throws ERR_PROTOCOL that says which name, number or length of a report is out of bounds. */
export function checkTelemetry(report: Telemetry, size: number): void {
  const { rails, moves, counters } = report;
  if (rails.length > REPORT_RAILS_MAX) refuse(`${rails.length} rails`);
  if (moves.length > REPORT_MOVES_MAX) refuse(`${moves.length} moves`);
  for (const { peer, state, reason, outstandingBytes, windowBytes, measuredBytesPerSecond, counters: counts, name } of rails) {
    if (peer >= size) refuse(`peer ${peer} in a job of ${size}`);
    if (!STATE.test(state)) refuse(`state "${state.slice(0, 32)}"`);
    if (reason.length > REPORT_REASON_MAX) refuse('a reason that is too long');
    if (counts.length > REPORT_COUNTERS_MAX || ![outstandingBytes, windowBytes, measuredBytesPerSecond, ...counts].every(isCount))
      refuse('a count that is out of range');
    if (name !== undefined && name !== null) {
      if (name.key.length > REPORT_NAME_MAX || name.transport.length > REPORT_NAME_MAX) refuse('a name that is too long');
      if (!Number.isFinite(name.bandwidthBytesPerSecond) || !Number.isFinite(name.latencyUs))
        refuse('a bandwidth or latency that is not a finite number');
    }
  }
  for (const { peer, from, to, reason, atUs } of moves) {
    if (peer >= size) refuse(`peer ${peer} in a job of ${size}`);
    if (STATE.test(from) && STATE.test(to) && reason.length <= REPORT_REASON_MAX && isCount(atUs)) continue;
    const given = `rail to rank ${peer} went from "${from.slice(0, 32)}" to "${to.slice(0, 32)}" at ${atUs} us, with a reason of ${reason.length} characters`;
    refuse(
      `${given}; expected names of states, whole microseconds, and at most ${REPORT_REASON_MAX} characters. Run the same version of multirail on all ranks`,
    );
  }
  const named = Object.entries(counters);
  if (named.length > REPORT_COUNTERS_MAX) refuse(`${named.length} counters`);
  for (const [name, value] of named) if (!COUNTER.test(name) || !isCount(value)) refuse('a malformed counter');
}

export function checkRailFault(fault: RailFault): RailFault & { action: FaultActionName } {
  if (!(FAULT_ACTIONS as readonly string[]).includes(fault.action)) {
    throw new MultirailError('ERR_PROTOCOL', `rail fault "${fault.action.slice(0, 32)}": expected one of ${FAULT_ACTIONS.join(', ')}`);
  }
  return fault as RailFault & { action: FaultActionName };
}
