// Reports as ranks send them, and a model that is fed with them: what the dashboard's tests share.

import { RAIL_COUNTER_NAMES, type RailCounterName, type Telemetry, type TelemetryRail } from '../../../src/launch/oob/telemetry.ts';
import { JobModel, type JobModelOptions } from '../../../tools/dashboard/model.ts';

export class TestClock {
  ms = 0;
  readonly now = () => this.ms;
}

export function makeModel(clock: TestClock, options: Partial<JobModelOptions> = {}): JobModel {
  return new JobModel({
    jobId: 'job-7',
    size: 2,
    command: ['app.js', '--fast'],
    version: '1.2.3',
    intervalMs: 250,
    now: clock.now,
    startedAtMs: Date.UTC(2026, 0, 1),
    ...options,
  });
}

export const countersOf = (values: Partial<Record<RailCounterName, number>>): number[] =>
  RAIL_COUNTER_NAMES.map((name) => values[name] ?? 0);

export function railReport(peer: number, rail: number, more: Partial<TelemetryRail> = {}): TelemetryRail {
  return {
    peer,
    rail,
    state: 'UP',
    epoch: 1,
    reason: '',
    outstandingBytes: 0,
    windowBytes: 1_000_000,
    measuredBytesPerSecond: 0,
    counters: countersOf({}),
    name: { key: `tcp:lo-lo#${rail}`, transport: 'tcp', standby: false, bandwidthBytesPerSecond: 1.25e8, latencyUs: 50 },
    ...more,
  };
}

export function report(atMs: number, rails: TelemetryRail[], more: Partial<Telemetry> = {}): Telemetry {
  return {
    atUs: atMs * 1000,
    aliveMs: atMs,
    turns: 1,
    retainedBytes: 0,
    takesFaults: false,
    rails,
    moves: [],
    movesDropped: 0,
    counters: {},
    ...more,
  };
}

/** Two ranks that have joined, with two rails between them, which have carried a megabyte. */
export function makeRunningModel(clock: TestClock, takesFaults = false): JobModel {
  const model = makeModel(clock);
  for (const rank of [0, 1]) model.joined(rank, { incarnation: 1, pid: 100 + rank, hostId: 'host/1' });
  for (const [atMs, bytes] of [
    [250, 0],
    [500, 1_000_000],
    [750, 2_000_000],
  ]) {
    clock.ms = atMs;
    for (const rank of [0, 1]) {
      const rails = [0, 1].map((rail) =>
        railReport(1 - rank, rail, { counters: countersOf({ payloadBytesSent: bytes, payloadBytesReceived: bytes, ups: 1 }) }),
      );
      model.telemetry(rank, report(atMs, rails, { takesFaults, counters: { bytesSent: 2 * bytes, messagesSent: 7 } }));
    }
  }
  return model;
}
