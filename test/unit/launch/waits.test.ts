// Who waits for whom: cycles of the graph, the text, and the gatherer with real clients of the out-of-band channel.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { newIncarnation } from '../../../src/launch/meeting/identity.ts';
import { OobClient } from '../../../src/launch/oob/client.ts';
import { OobServer } from '../../../src/launch/oob/server.ts';
import {
  findCycles,
  makeReport,
  type RankState,
  type RankWaits,
  reportLines,
  type Wait,
  type WaitsReport,
} from '../../../src/launch/oob/waits.ts';
import { WaitsGatherer } from '../../../src/launch/watch/waits-gather.ts';

const graph = (edges: Record<number, number[]>) => new Map(Object.entries(edges).map(([from, to]) => [Number(from), new Set(to)]));

describe('cycles', () => {
  test.each<[string, Record<number, number[]>, number[][]]>([
    ['none', { 0: [1], 1: [2] }, []],
    ['two', { 0: [1], 1: [0] }, [[0, 1]]],
    ['oneself', { 0: [], 3: [3] }, [[3]]],
    ['the shortest of several', { 0: [1, 2], 1: [2], 2: [0] }, [[0, 2]]],
    [
      'two that are apart',
      { 0: [1], 1: [0], 2: [3], 3: [4], 4: [2] },
      [
        [0, 1],
        [2, 3, 4],
      ],
    ],
    ['behind a tail', { 0: [1], 1: [2], 2: [3], 3: [1] }, [[1, 2, 3]]],
    ['a ring of all', { 0: [3], 1: [0], 2: [1], 3: [2] }, [[0, 3, 2, 1]]],
    ['one cycle for those that share a rank', { 0: [1, 2], 1: [0], 2: [0] }, [[0, 1]]],
  ])('%s', (_, edges, cycles) => {
    expect(findCycles(graph(edges))).toEqual(cycles);
  });
});

const wait = (over: Partial<Wait>): Wait => ({
  kind: 'recv',
  peer: 1,
  tag: 7,
  comm: 'world',
  bytes: 8,
  waitedMs: 1500,
  phase: 'posted: nothing has matched',
  rails: ['tcp:lo'],
  ...over,
});
const answer = (rank: number, waits: Wait[], rails: RankWaits['rails'] = []): RankState & { state: 'answered' } => ({
  state: 'answered',
  waits: { rank, process: rank, pid: 100 + rank, waits, more: 0, rails },
});

describe('the report', () => {
  test('names the collective that waits', () => {
    const inside = wait({ call: 'allreduce', comm: 'rows', tag: 3 });
    expect(reportLines(makeReport('j', 'why', [answer(0, [inside])]))).toContain(
      '    recv from rank 1, in allreduce of rows, 8 bytes, for 1.5 s: posted: nothing has matched, on tcp:lo',
    );
  });

  test('names each rank, each wait, and the cycle', () => {
    const broken = { peer: 0, key: 'tcp:b', state: 'DOWN', reason: 'carrier: gone' };
    const states: RankState[] = [
      answer(0, [wait({})]),
      answer(1, [wait({ kind: 'send', peer: 0, tag: 9, bytes: 1_000_000, phase: 'RNDV delivered' })], [broken]),
      answer(2, []),
      { state: 'silent' },
      { state: 'ended' },
      { state: 'absent' },
      { state: 'blocked', waits: answer(6, [wait({ peer: 4, rails: [] })]).waits, agoMs: 2000 },
    ];
    expect(reportLines(makeReport('job', 'SIGUSR2', states))).toEqual([
      'who waits for whom (SIGUSR2):',
      '  rank 0 (pid 100) waits for',
      '    recv from rank 1, tag 7, world, 8 bytes, for 1.5 s: posted: nothing has matched, on tcp:lo',
      '  rank 1 (pid 101) waits for',
      '    send to rank 0, tag 9, world, 1000000 bytes, for 1.5 s: RNDV delivered, on tcp:lo',
      '    rail tcp:b to rank 0 is DOWN: carrier: gone',
      '  rank 2 (pid 102): waits for nothing',
      '  rank 3: does not answer: it computes, is stopped, or has just begun a blocking call',
      '  rank 4: has ended',
      '  rank 5: has not joined',
      '  rank 6 (pid 106), in a blocking call, said 2.0 s ago that it waits for',
      '    recv from rank 4, tag 7, world, 8 bytes, for 1.5 s: posted: nothing has matched',
      '  cycle: 0 waits for 1 waits for 0',
    ]);
  });

  test('a receive from anybody waits for nobody in particular, except among two', () => {
    const any = () => wait({ peer: 'any', tag: 'any' });
    expect(makeReport('job', '', [answer(0, [any()]), answer(1, [any()])]).cycles).toEqual([[0, 1]]);
    expect(
      makeReport(
        'job',
        '',
        [0, 1, 2].map((rank) => answer(rank, [any()])),
      ).cycles,
    ).toEqual([]);
  });

  test('long lists are cut, and say so', () => {
    const lines = reportLines(
      makeReport('job', '', [
        answer(
          0,
          Array.from({ length: 50 }, () => wait({})),
        ),
      ]),
    );
    expect(lines).toHaveLength(1 + 1 + 20 + 1 + 1);
    expect(lines.at(-2)).toBe('    and 30 more');
  });
});

describe('the gatherer', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  /** Two of three ranks have joined. */
  async function startJob() {
    const folder = mkdtempSync(join(tmpdir(), 'joining-waits-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const secret = randomBytes(32);
    const server = new OobServer({ jobId: 'job', size: 3, secret, knowsProcesses: true, reconnectTimeoutMs: 10_000 });
    await server.open();
    cleanups.push(() => server.close());
    const printed: string[] = [];
    const reports: WaitsReport[] = [];
    let onReported: () => void = () => undefined;
    const jsonFile = join(folder, 'waits.json');
    const gatherer = new WaitsGatherer(server, {
      say: (text) => printed.push(text),
      jsonFile,
      onReport: (report) => {
        reports.push(report);
        // What is printed of it is printed by then.
        setImmediate(onReported);
      },
    });
    server.on('waitsAsked', (rank, reason) => gatherer.gather(`rank ${rank}: ${reason}`));
    server.on('waitsReport', (rank, id, json) => gatherer.take(rank, id, json));
    const clients = [0, 1].map(
      (rank) =>
        new OobClient({
          urls: server.urls,
          secret,
          jobId: 'job',
          rank,
          size: 3,
          incarnation: newIncarnation(),
          hostId: 'h',
          reconnectTimeoutMs: 10_000,
        }),
    );
    for (const client of clients) cleanups.push(() => client.close(0));
    await Promise.all(clients.map((client) => client.hello()));
    const reported = () =>
      new Promise<void>((resolve) => {
        onReported = resolve;
      });
    return { server, clients, gatherer, printed, reports, reported, jsonFile };
  }

  test('asks every rank, takes what a blocked one said before, and prints once for many who ask', async () => {
    const { server, clients, printed, reports, reported, jsonFile } = await startJob();
    // Rank 0 answers; rank 1 said something from its blocking call, and hears nothing.
    clients[0].on('waitsRequest', (id) => clients[0].waitsReport(id, answer(0, [wait({})]).waits));
    const pushed = new Promise((resolve) => server.once('waitsReport', resolve));
    clients[1].pushWaits(answer(1, [wait({ peer: 0 })]).waits);
    await pushed;
    const once = reported();
    for (const client of clients) client.askWaits('stalled');
    await once;
    expect(printed[0]).toContain('who waits for whom (rank ');
    expect(printed[0]).toContain('rank 0 (pid 100) waits for\n');
    expect(printed[0]).toMatch(/rank 1 \(pid 101\), in a blocking call, said [\d.]+ s ago that it waits for/);
    expect(printed[0]).toContain('rank 2: has not joined');
    expect(printed[0]).toContain('cycle: 0 waits for 1 waits for 0');
    // Both have asked before this message, which the server has taken by now: the second one was not worth a report.
    await clients[1].finalized();
    await clients[0].finalized();
    expect(printed).toHaveLength(1);
    expect(reports).toHaveLength(1);
    const records = readFileSync(jsonFile, 'utf8').trim().split('\n');
    expect(records).toHaveLength(1);
    expect(JSON.parse(records[0])).toMatchObject({
      jobId: 'job',
      cycles: [[0, 1]],
      ranks: [
        { rank: 0, state: 'answered' },
        { rank: 1, state: 'blocked' },
        { rank: 2, state: 'absent' },
      ],
    });
  });

  test('a report that need not be printed goes to whoever asked, once a second, and takes nothing from those who want it printed', async () => {
    const { clients, gatherer, printed, reports, reported, jsonFile } = await startJob();
    for (const [rank, client] of clients.entries()) {
      client.on('waitsRequest', (id) => client.waitsReport(id, answer(rank, [wait({ peer: 1 - rank })]).waits));
    }
    // The second in which nobody is asked again lasts as long as this test wants.
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000_000);
    cleanups.push(() => now.mockRestore());
    let next = reported();
    gatherer.gather('the page', { printed: false });
    gatherer.gather('the page again', { printed: false });
    await next;
    expect(reports).toMatchObject([{ reason: 'the page', cycles: [[0, 1]], ranks: { length: 3 } }]);
    expect(printed).toEqual([]);
    expect(existsSync(jsonFile)).toBe(false);
    now.mockReturnValue(1_000_999);
    gatherer.gather('too soon', { printed: false });
    // The page's report was read by nobody else: who wants it printed gets one, and so does the page.
    next = reported();
    gatherer.gather('SIGUSR2');
    await next;
    expect(reports.map(({ reason }) => reason)).toEqual(['the page', 'SIGUSR2']);
    expect(printed).toHaveLength(1);
    gatherer.gather('SIGUSR2 again');
    now.mockReturnValue(1_002_000);
    // One that is under way is printed for who comes later.
    next = reported();
    gatherer.gather('the page', { printed: false });
    gatherer.gather('SIGUSR2');
    await next;
    expect(reports.map(({ reason }) => reason)).toEqual(['the page', 'SIGUSR2', 'SIGUSR2']);
    expect(printed).toHaveLength(2);
  });

  test('before anybody has joined: nothing is printed, and the page is told just that', async () => {
    const server = new OobServer({ jobId: 'job', size: 2, secret: randomBytes(32), knowsProcesses: true, reconnectTimeoutMs: 10_000 });
    await server.open();
    cleanups.push(() => server.close());
    const printed: string[] = [];
    const reports: WaitsReport[] = [];
    const gatherer = new WaitsGatherer(server, {
      say: (text) => printed.push(text),
      jsonFile: '',
      onReport: (report) => reports.push(report),
    });
    gatherer.gather('SIGUSR2');
    expect(reports).toEqual([]);
    gatherer.gather('the page', { printed: false });
    expect(reports).toMatchObject([{ ranks: [{ state: 'absent' }, { state: 'absent' }] }]);
    expect(printed).toEqual([]);
  });
});

describe('a job of replicas', () => {
  test('shadows have the names of their ranks, and are in no cycle', () => {
    const states: RankState[] = [
      answer(0, [wait({ peer: 1 })]),
      answer(1, [wait({ peer: 0 })]),
      { state: 'answered', waits: { ...answer(0, [wait({ peer: 1, phase: 'the lead has not said what has come' })]).waits, process: 2 } },
      { state: 'silent' },
    ];
    const report = makeReport('job', 'test', states, 2);
    expect(report.cycles).toEqual([[0, 1]]);
    expect(report.ranks.map(({ shadowOf }) => shadowOf)).toEqual([undefined, undefined, 0, 1]);
    const lines = reportLines(report);
    expect(lines.find((line) => line.includes('the shadow of rank 0'))).toMatch(/ {2}the shadow of rank 0 \(pid 100\) waits for/);
    expect(lines).toContain('  the shadow of rank 1: does not answer: it computes, is stopped, or has just begun a blocking call');
    const three = makeReport(
      'job',
      'test',
      Array.from({ length: 6 }, (): RankState => ({ state: 'ended' })),
      3,
    );
    expect(reportLines(three).slice(1, 7)).toEqual(
      [
        'rank 0',
        'rank 1',
        'the first shadow of rank 0',
        'the first shadow of rank 1',
        'the second shadow of rank 0',
        'the second shadow of rank 1',
      ].map((name) => `  ${name}: has ended`),
    );
    // What waits for anybody waits for the one other rank, of which there are two processes.
    expect(
      makeReport('job', 'test', [answer(0, [wait({ peer: 'any' })]), answer(1, [wait({ peer: 0 })]), ...states.slice(2)], 2).cycles,
    ).toEqual([[0, 1]]);
  });

  test('a collective through shared memory is a line for each rank that it waits for', () => {
    const waits = [
      wait({ kind: 'collective', call: 'barrier', tag: 'any', bytes: 0, rails: [], phase: 'has not come so far (shared memory)' }),
    ];
    expect(reportLines(makeReport('job', 'test', [answer(0, waits), answer(1, [])]))[2]).toBe(
      '    barrier of world, rank 1 for 1.5 s: has not come so far (shared memory)',
    );
  });
});
