// A rank's reports: only what changed, nothing lost by a report that was not taken, bounded, and nothing at all unless it was asked for.
import { describe, expect, test } from 'vitest';
import { RAIL_STATES, type Rail, type RailState } from '../../../src/bml/rail.ts';
import { wrapFaultComponent } from '../../../src/btl/interpose/fault.ts';
import { selfComponent } from '../../../src/btl/self/component.ts';
import { tcpComponent } from '../../../src/btl/tcp/component.ts';
import { decodeEnvelope, encodeEnvelope } from '../../../src/launch/oob/envelope.ts';
import {
  checkRailFault,
  checkTelemetry,
  RAIL_COUNTER_NAMES,
  REPORT_MOVES_MAX,
  REPORT_RAILS_MAX,
  type Telemetry,
} from '../../../src/launch/oob/telemetry.ts';
import { createRuntime, type Runtime } from '../../../src/mpi/runtime.ts';
import { TelemetryReporter } from '../../../src/mpi/telemetry.ts';
import type { RailInfo, RuntimeCounters } from '../../../src/mpi/views.ts';
import { ParamTable } from '../../../src/params.ts';
import { newPmlCounters } from '../../../src/pml/counters.ts';
import { LOOPBACK_PARAMS, MemoryOobHub } from '../../support/p2p-worlds.ts';

const EMPTY = Object.fromEntries(RAIL_COUNTER_NAMES.map((name) => [name, 0])) as unknown as RailInfo['counters'];

function railInfo(peer: number, rail: number, more: Partial<RailInfo> = {}): RailInfo {
  return {
    peer,
    rail,
    key: `tcp:eth${rail}`,
    transport: 'tcp',
    state: 'UP',
    epoch: 1,
    role: 'active',
    bandwidthMBps: 125,
    latencyUs: 50,
    measuredMBps: 0,
    outstandingBytes: 0,
    windowBytes: 1000,
    counters: { ...EMPTY },
    lastReason: undefined,
    ...more,
  };
}

class Source {
  rank = 0;
  list: RailInfo[] = [];
  count: RuntimeCounters = {
    pml: newPmlCounters(),
    engine: { turns: 3, aliveMs: 12.7, retainedBytes: 9 },
    collectives: { collectives: 0, messages: 0, bytes: 0, rounds: 0, atOnce: 0 },
  };
  rails = () => this.list;
  counters = () => this.count;
}

function makeReporter(source: Source) {
  const state = { now: 1000, accepts: true, sent: [] as Telemetry[] };
  const reporter = new TelemetryReporter(source, {
    intervalMs: 60_000,
    takesFaults: true,
    now: () => state.now,
    send: (report) => {
      if (state.accepts) state.sent.push(report);
      return state.accepts;
    },
  });
  return { reporter, state };
}

describe('reports', () => {
  test('a rail in any state is told, and taken', () => {
    for (const state of Object.keys(RAIL_STATES) as RailState[]) {
      const source = new Source();
      source.list = [railInfo(1, 0, { state })];
      const report = makeReporter(source).reporter.makeReport();
      expect(report.rails.map((rail) => rail.state)).toEqual([state]);
      expect(() => checkTelemetry(report, 2)).not.toThrow();
    }
  });

  test('the first one has everything; the next ones what changed; the last one comes at the end', () => {
    const source = new Source();
    source.list = [
      railInfo(0, 0, { transport: 'self' }),
      railInfo(1, 0),
      railInfo(1, 1, { role: 'standby', windowBytes: Number.POSITIVE_INFINITY }),
    ];
    const { reporter, state } = makeReporter(source);
    reporter.start();
    const [first] = state.sent;
    expect(first).toMatchObject({ atUs: 0, aliveMs: 12, turns: 3, retainedBytes: 9, takesFaults: true, moves: [] });
    expect(first.rails.map(({ peer, rail, name }) => [peer, rail, name?.standby])).toEqual([
      [1, 0, false],
      [1, 1, true],
    ]);
    expect(first.rails[0].name).toEqual({
      key: 'tcp:eth0',
      transport: 'tcp',
      standby: false,
      bandwidthBytesPerSecond: 1.25e8,
      latencyUs: 50,
    });
    expect(Object.keys(first.counters)).toEqual(Object.keys(newPmlCounters()));
    expect(() => checkTelemetry(first, 2)).not.toThrow();

    source.list = [source.list[0], source.list[1], railInfo(1, 1, { counters: { ...EMPTY, payloadBytesSent: 77 } })];
    source.count.pml.bytesResent = 5;
    state.now = 1250.5;
    const second = reporter.makeReport();
    expect(second.atUs).toBe(250_500);
    expect(second.rails).toEqual([
      expect.objectContaining({ peer: 1, rail: 1, counters: RAIL_COUNTER_NAMES.map((name) => (name === 'payloadBytesSent' ? 77 : 0)) }),
    ]);
    expect(second.rails[0].name).toBeUndefined();
    expect(second.counters).toEqual({ bytesResent: 5 });

    reporter.stop();
    expect(state.sent).toHaveLength(2);
    expect(reporter.makeReport()).toMatchObject({ rails: [], counters: {} });
    reporter.stop();
    expect(state.sent).toHaveLength(2);
  });

  test('what a report could not tell, the next one does', () => {
    const source = new Source();
    source.list = [railInfo(1, 0)];
    const { reporter, state } = makeReporter(source);
    state.accepts = false;
    reporter.start();
    reporter.railMoved({ peer: 1, index: 0, lastReason: undefined } as unknown as Rail, 'DOWN', 'CONNECTING');
    state.accepts = true;
    reporter.stop();
    expect(state.sent).toMatchObject([
      { rails: [{ peer: 1, rail: 0, name: { transport: 'tcp' } }], moves: [{ from: 'DOWN', to: 'CONNECTING' }] },
    ]);
  });

  test('moves: with their reason on the way down, not those to oneself, and no more than fit', () => {
    const source = new Source();
    const { reporter, state } = makeReporter(source);
    const rail = (peer: number) => ({ peer, index: 2, lastReason: { kind: 'reset', text: 'x'.repeat(1000) } }) as unknown as Rail;
    reporter.railMoved(rail(0), 'DOWN', 'UP');
    state.now = 1002;
    reporter.railMoved(rail(1), 'UP', 'DOWN');
    reporter.railMoved(rail(1), 'DOWN', 'CONNECTING');
    const { moves } = reporter.makeReport();
    expect(moves).toMatchObject([
      { peer: 1, rail: 2, from: 'UP', to: 'DOWN', atUs: 2000, reason: expect.stringMatching(/^reset: x+…$/) },
      { peer: 1, rail: 2, from: 'DOWN', to: 'CONNECTING', reason: '' },
    ]);
    for (let i = 0; i < 5000; i++) reporter.railMoved(rail(1), 'UP', 'DOWN');
    const full = reporter.makeReport();
    expect(full.moves).toHaveLength(REPORT_MOVES_MAX);
    expect(full.movesDropped).toBeGreaterThan(3000);
    expect(() => checkTelemetry(full, 2)).not.toThrow();
  });

  test('with more rails than a report takes, each has its turn, and a full report stays under the bound on messages', () => {
    const source = new Source();
    source.list = Array.from({ length: 600 }, (_, peer) => railInfo(peer + 1, 0, { key: 'k'.repeat(500), lastReason: 'r'.repeat(1000) }));
    const { reporter, state } = makeReporter(source);
    reporter.start();
    for (let i = 0; i < 2; i++) (reporter as unknown as { report(): void }).report();
    expect(state.sent.map(({ rails }) => rails.length)).toEqual([REPORT_RAILS_MAX, REPORT_RAILS_MAX, 600 - 2 * REPORT_RAILS_MAX]);
    expect(new Set(state.sent.flatMap(({ rails }) => rails.map(({ peer }) => peer))).size).toBe(600);
    const encoded = encodeEnvelope(1, 0, 'telemetry', state.sent[0]);
    expect(encoded.length).toBeLessThan(256 * 1024);
    const { body } = decodeEnvelope(encoded);
    expect(() => checkTelemetry(body as Telemetry, 601)).not.toThrow();
    expect((body as Telemetry).rails[5].name?.key).toHaveLength(128);
    // They go on in a circle: those at the end of the list are not starved by those in front.
    source.list = source.list.map((rail) => ({ ...rail, epoch: 2 }));
    for (let i = 0; i < 3; i++) (reporter as unknown as { report(): void }).report();
    expect(new Set(state.sent.slice(3).flatMap(({ rails }) => rails.map(({ peer }) => peer))).size).toBe(600);
    reporter.stop();
  });
});

describe('reports that make no sense are refused', () => {
  const source = new Source();
  source.list = [railInfo(1, 0)];
  const good = makeReporter(source).reporter.makeReport();
  const [rail] = good.rails;
  const move = { peer: 1, rail: 0, from: 'UP', to: 'DOWN', reason: '', atUs: 1 };

  test.each<[string, Partial<Telemetry>]>([
    ['a peer that there is not', { rails: [{ ...rail, peer: 2 }] }],
    ['a state that is no word', { rails: [{ ...rail, state: '<b>' }] }],
    ['a reason without end', { rails: [{ ...rail, reason: 'x'.repeat(10_000) }] }],
    ['a count beyond 2^53', { rails: [{ ...rail, counters: [2 ** 60] }] }],
    ['a negative count', { rails: [{ ...rail, outstandingBytes: -1 }] }],
    ['a thousand counts', { rails: [{ ...rail, counters: new Array(1000).fill(0) }] }],
    ['a name without end', { rails: [{ ...rail, name: { ...rail.name!, key: 'k'.repeat(10_000) } }] }],
    ['a speed that is none', { rails: [{ ...rail, name: { ...rail.name!, latencyUs: Number.NaN } }] }],
    ['a thousand rails', { rails: new Array(1000).fill(rail) }],
    ['a thousand moves', { moves: new Array(1000).fill(move) }],
    ['a move of a stranger', { moves: [{ ...move, peer: 9 }] }],
    ['a move to nowhere', { moves: [{ ...move, to: 'somewhere else' }] }],
    ['a counter with a bad name', { counters: { 'a"b': 1 } }],
    ['a counter that is no number', { counters: { a: Number.NaN } }],
    ['a thousand counters', { counters: Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`c${i}`, 1])) }],
  ])('%s', (_name, part) => {
    expect(() => checkTelemetry(good, 2)).not.toThrow();
    expect(() => checkTelemetry({ ...good, ...part }, 2)).toThrow(/ERR_PROTOCOL/);
  });

  test('an order that there is not', () => {
    expect(checkRailFault({ action: 'pull', peer: 1, rail: 0 }).action).toBe('pull');
    expect(() => checkRailFault({ action: 'explode', peer: 1, rail: 0 })).toThrow(/ERR_PROTOCOL/);
  });
});

describe('runtimes', () => {
  async function pair(params: Record<string, string>, fault: boolean): Promise<{ hub: MemoryOobHub; runtimes: Runtime[] }> {
    const hub = new MemoryOobHub(2);
    const tcp = fault ? wrapFaultComponent(tcpComponent, 'manual') : tcpComponent;
    const runtimes = await Promise.all(
      [0, 1].map((rank) => {
        const job = { rank, size: 2, localRank: rank, localSize: 2, jobId: 'unit', incarnation: 5 + rank, hostId: 'h' };
        const secret = new TextEncoder().encode('the secret of this test');
        const table = new ParamTable({ ...LOOPBACK_PARAMS, btl_tcp_links: '2', ...params });
        return createRuntime({ ...job, secret, oob: hub.client(rank) }, { params: table, modules: [selfComponent, tcp] });
      }),
    );
    return { hub, runtimes };
  }
  const finalize = (runtimes: Runtime[]) => Promise.all(runtimes.map((runtime) => runtime.finalize()));
  const talk = ([a, b]: Runtime[]) => Promise.all([a.world.send(new Uint8Array(200_000), 1), b.world.recv(new Uint8Array(200_000), 0)]);

  test('unless they are asked, they report nothing', async () => {
    const { hub, runtimes } = await pair({}, false);
    await talk(runtimes);
    await finalize(runtimes);
    expect(hub.reports).toEqual([]);
  });

  test('asked, they do, and what they did is in the reports when they have finished', async () => {
    const { hub, runtimes } = await pair({ mpi_telemetry_ms: '20' }, false);
    await talk(runtimes);
    await finalize(runtimes);
    for (const { report } of hub.reports) expect(() => checkTelemetry(report, 2)).not.toThrow();
    const own = hub.reports.filter(({ rank }) => rank === 0).map(({ report }) => report);
    expect(Object.assign({}, ...own.map(({ counters }) => counters))).toMatchObject({ messagesSent: 1, bytesSent: 200_000 });
    const last = new Map(own.flatMap(({ rails }) => rails.map((rail) => [rail.rail, rail] as const)));
    const sent = [...last.values()].reduce((sum, { counters }) => sum + counters[RAIL_COUNTER_NAMES.indexOf('payloadBytesSent')], 0);
    expect(sent).toBeGreaterThanOrEqual(200_000);
    expect(own.flatMap(({ moves }) => moves).filter(({ to }) => to === 'UP')).toHaveLength(2);
    expect(own.every(({ takesFaults }) => !takesFaults)).toBe(true);
  });

  test.each(['pull', 'blackhole'] as const)('behind the interposer a rail is broken and mended by order: %s', async (action) => {
    const { hub, runtimes } = await pair({ mpi_telemetry_ms: '20' }, true);
    await talk(runtimes);
    expect(hub.reports.every(({ report }) => report.takesFaults)).toBe(true);
    const states = () =>
      runtimes.flatMap((runtime) =>
        runtime
          .rails()
          .filter(({ peer, rail }) => peer !== runtime.rank && rail === 1)
          .map(({ state }) => state),
      );
    const until = async (isThere: () => boolean) => {
      while (!isThere()) {
        await talk(runtimes);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    await until(() => states().every((state) => state === 'UP'));
    for (const rank of [0, 1]) hub.orderFault(rank, { action, peer: 1 - rank, rail: 1 });
    await until(() => states().every((state) => state !== 'UP' && state !== 'SUSPECT'));
    for (const rank of [0, 1]) hub.orderFault(rank, { action: 'restore', peer: 1 - rank, rail: 1 });
    await until(() => states().every((state) => state === 'UP'));
    await finalize(runtimes);
    const moves = hub.reports.flatMap(({ report }) => report.moves).filter(({ rail }) => rail === 1);
    expect(moves.filter(({ from, to }) => to === 'DOWN' && (from === 'UP' || from === 'SUSPECT')).length).toBeGreaterThanOrEqual(2);
    expect(hub.railEvents.map(({ event }) => (event as { type: string }).type)).toEqual(expect.arrayContaining(['lost', 'restored']));
  });
});
