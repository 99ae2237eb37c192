// A job that is watched over a pipe: what the launcher's observer is told arrives, orders go the other way, and a watcher that does not read
// costs the launcher a bounded amount of memory and no time. Both ends are in this process, with a socket between them.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { HeldReports } from '../../../src/launch/oob/held-reports.ts';
import { REPORT_RAILS_MAX, type TelemetryMove } from '../../../src/launch/oob/telemetry.ts';
import type { WaitsReport } from '../../../src/launch/oob/waits.ts';
import { JobRelay, RelayedJob } from '../../../src/launch/run/relay.ts';
import type { JobObserver } from '../../../src/launch/watch/observer.ts';
import { railReport, report } from '../dashboard/telemetry-examples.ts';

let sockets = 0;
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** An observer that writes down what it is told. */
function notebook() {
  const told: unknown[][] = [];
  const note =
    (name: keyof JobObserver) =>
    (...args: unknown[]) =>
      void told.push([name, ...args]);
  const observer: JobObserver = {
    spawned: note('spawned'),
    joined: note('joined'),
    telemetry: note('telemetry'),
    railEvent: note('railEvent'),
    eventsLeftOut: note('eventsLeftOut'),
    finalized: note('finalized'),
    exited: note('exited'),
    aborted: note('aborted'),
  };
  return { told, observer };
}

/** Two ends of a socket in the file system, as those between a process and its child are. */
async function socketPair(): Promise<[Socket, Socket]> {
  const path = join(tmpdir(), `multirail-relay-${process.pid}-${++sockets}`);
  const server = createServer().listen(path);
  await once(server, 'listening');
  const here = connect(path);
  const [there] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [here, there];
}

async function open({ size = 2, reads = true, lastWordsMs = 20_000 } = {}) {
  const [here, there] = await socketPair();
  cleanups.push(() => {
    here.destroy();
    there.destroy();
  });
  const { told, observer } = notebook();
  const waits: WaitsReport[] = [];
  const said: string[] = [];
  const relay = new JobRelay(here, { lastWordsMs });
  const watch = () => new RelayedJob(there, { size, observer, onWaits: (one) => waits.push(one), say: (text) => said.push(text) });
  return { relay, here, there, told, waits, said, watch, relayed: reads ? watch() : undefined };
}

const move = (rail: number): TelemetryMove => ({ peer: 1, rail, from: 'UP', to: 'DOWN', reason: 'pulled', atUs: 5 });
const WAITS: WaitsReport = { jobId: 'j', reason: 'asked', ranks: [{ rank: 0, state: 'silent' }], cycles: [] };

describe('what the observer is told', () => {
  test('arrives in order, whole, and the outcome is the last of it', async () => {
    const { relay, relayed, told, waits } = await open();
    const { observer } = relay;
    const info = { incarnation: 3, pid: 12, hostId: 'host/1' };
    observer.spawned?.(0, 11);
    observer.joined?.(0, info);
    observer.telemetry?.(0, report(250, [railReport(1, 0)], { moves: [move(0)] }));
    observer.railEvent?.(1, { type: 'lost', rail: 0, text: 'line\nbreak' });
    relay.waits(WAITS);
    observer.finalized?.(1);
    observer.exited?.(1, { code: undefined, signal: 'SIGKILL', finalized: true, lost: false });
    observer.aborted?.({ rank: 0, code: 4, reason: 'enough', stack: '' });
    await relay.end({ exitCode: 4, failure: 'rank 0 aborted' });
    expect(await relayed?.outcome).toEqual({ exitCode: 4, failure: 'rank 0 aborted' });
    expect(told).toEqual([
      ['spawned', 0, 11],
      ['joined', 0, info],
      ['telemetry', 0, report(250, [railReport(1, 0)], { moves: [move(0)] })],
      ['railEvent', 1, { type: 'lost', rail: 0, text: 'line\nbreak' }],
      ['finalized', 1],
      ['exited', 1, { signal: 'SIGKILL', finalized: true, lost: false }],
      ['aborted', { rank: 0, code: 4, reason: 'enough', stack: '' }],
    ]);
    expect(waits).toEqual([WAITS]);
  });

  test('orders go the other way, once there is a job', async () => {
    const { relay, relayed, here } = await open();
    const orders: unknown[] = [];
    relayed?.askWaits('too early');
    await once(here, 'data');
    const last = new Promise<void>((resolve) => {
      relay.serve({
        railFault: (...args) => orders.push(args),
        kill: (rank) => orders.push(`kill ${rank}`),
        askWaits: (reason) => {
          orders.push(reason);
          resolve();
        },
      });
    });
    relayed?.railFault(1, { action: 'pull', peer: 0, rail: 2 });
    relayed?.kill(1);
    relayed?.askWaits('now');
    await last;
    expect(orders).toEqual([[1, { action: 'pull', peer: 0, rail: 2 }], 'kill 1', 'now']);
  });

  test.each([
    ['a text that is no JSON', 'hello\n'],
    ['a number beyond all that there are', '{"is":"spawned","args":[8192,77]}\n'],
    ['a rank that is not there', '{"is":"finalized","args":[2]}\n'],
    ['a call that there is not', '{"is":"constructor","args":[0]}\n'],
    ['a report that is none', '{"is":"telemetry","args":[0,{"rails":7}]}\n'],
    ['no arguments', '{"is":"finalized"}\n'],
  ])('%s ends the watching with a word, and calls nothing', async (_name, line) => {
    const { here, relayed, told, said } = await open();
    here.write(line);
    here.write('{"is":"spawned","args":[0,1]}\n');
    expect(await relayed?.outcome).toBeUndefined();
    expect(told).toEqual([]);
    expect(said).toEqual([expect.stringContaining('the job is watched no more')]);
    // The launcher's end learns of it, and goes on without.
    if (!here.closed) await once(here, 'close');
  });
});

describe('a watcher that does not read', () => {
  test('reports wait as one, events stop at a bound, and both come when it reads again', async () => {
    const { relay, here, told, watch } = await open({ reads: false });
    const { observer } = relay;
    const event = { type: 'lost', text: 'x'.repeat(60_000) };
    for (let i = 0; i < 300; i++) observer.railEvent?.(0, { ...event, i });
    const full = here.writableLength;
    expect(full).toBeGreaterThan(7_000_000);
    expect(full).toBeLessThan(9_000_000);
    for (let i = 1; i <= 5000; i++) {
      const { name, ...later } = railReport(1, 0, { epoch: i });
      observer.telemetry?.(0, report(i, [i === 1 ? { ...later, name: name ?? null } : later], { counters: { messagesSent: i } }));
    }
    // What is said once per rank is said however full it is.
    observer.finalized?.(0);
    expect(here.writableLength - full).toBeLessThan(1000);

    const relayed = watch();
    await relay.end({ exitCode: 0, failure: undefined });
    expect(await relayed.outcome).toEqual({ exitCode: 0 });
    const events = told.filter(([name]) => name === 'railEvent');
    const [[, leftOut]] = told.filter(([name]) => name === 'eventsLeftOut');
    expect(events.length).toBeGreaterThan(100);
    expect(events.length + (leftOut as number)).toBe(300);
    expect(events.map(([, , one]) => (one as { i: number }).i)).toEqual(events.map((_, i) => i));
    expect(told.filter(([name]) => name === 'finalized')).toHaveLength(1);
    const reports = told.filter(([name]) => name === 'telemetry');
    expect(reports).toHaveLength(1);
    // The newest of everything, and the name that came once.
    expect(reports[0][2]).toMatchObject({
      atUs: 5_000_000,
      counters: { messagesSent: 5000 },
      rails: [{ epoch: 5000, name: { transport: 'tcp' } }],
    });
  });

  test('or that is gone: the launcher ends all the same', async () => {
    const { relay, here, there } = await open({ reads: false });
    there.destroy();
    await once(here, 'close');
    relay.observer.spawned?.(0, 1);
    relay.observer.telemetry?.(0, report(1, [railReport(1, 0)]));
    await relay.end({ exitCode: 0, failure: undefined });
    const stopped = await open({ reads: false, lastWordsMs: 50 });
    for (let i = 0; i < 100; i++) stopped.relay.observer.railEvent?.(0, { text: 'x'.repeat(60_000) });
    await stopped.relay.end({ exitCode: 0, failure: undefined });
    expect(stopped.here.destroyed).toBe(true);
  });

  test('a launcher that dies leaves no outcome', async () => {
    const { here, relayed } = await open();
    here.destroy();
    expect(await relayed?.outcome).toBeUndefined();
  });
});

describe('reports that wait', () => {
  test('more rails and changes than one report has come in several', () => {
    const held = new HeldReports();
    const rails = REPORT_RAILS_MAX + 10;
    for (let i = 0; i < rails; i++) held.add(1, report(i, [railReport(0, i)], { moves: [move(i), move(i)] }));
    const taken = [...held.take()];
    expect(taken.map(({ rank, report: one }) => [rank, one.rails.length, one.moves.length])).toEqual([
      [1, 256, 256],
      [1, 10, 256],
      [1, 0, 20],
    ]);
    expect(taken.flatMap(({ report: one }) => one.rails.map(({ rail }) => rail))).toEqual(Array.from({ length: rails }, (_, i) => i));
    expect(held.isEmpty).toBe(true);
    expect([...held.take()]).toEqual([]);
  });

  test('what finds no room is counted for its rank, for ever', () => {
    const held = new HeldReports({ railsMax: 1, movesMax: 3 });
    held.add(0, report(1, [railReport(1, 0)], { moves: [move(0), move(1)], movesDropped: 2 }));
    held.add(1, report(1, [railReport(0, 0)], { moves: [move(0), move(1)] }));
    const dropped = () => [...held.take()].map(({ report: one }) => [one.rails.length, one.moves.length, one.movesDropped]);
    expect(dropped()).toEqual([
      [1, 2, 2],
      [0, 1, 1],
    ]);
    held.add(1, report(2, [railReport(0, 0)]));
    expect(dropped()).toEqual([[1, 0, 1]]);
  });
});
