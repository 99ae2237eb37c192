// What a rank says it waits for, in every state of the protocol, frame by frame; since when; and when that counts as a stall.
import { describe, expect, test, vi } from 'vitest';
import type { Wait } from '../../../src/launch/oob/waits.ts';
import type { ProcessState } from '../../../src/mpi/process-state.ts';
import { WaitsWatch } from '../../../src/mpi/waits.ts';
import { ANY, type Pml } from '../../../src/pml/pml.ts';
import { Iov } from '../../../src/util/iov.ts';
import { type Item, MemPair } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

const LONG = 300_000;
const hold = (type: string) => (item: Item) => (item.type === type ? 'hold' : 'pass');
const pendingRequests = (pml: Pml) => pml.describeRequests(pml.openRequests());
const phases = (pair: MemPair, side: 0 | 1) => pendingRequests(pair.engines[side].pml).map(({ kind, phase }) => `${kind} ${phase}`);

describe('the state of the protocol in words', () => {
  test('a receive that nothing matches, and one beside which other messages wait', () => {
    const pair = new MemPair();
    pair.recv(1, new Uint8Array(8), 3, ANY);
    pair.recv(1, new Uint8Array(8), 2, 0);
    expect(phases(pair, 1)).toEqual(['recv posted: nothing has matched', 'recv posted: nothing has matched']);
    for (const tag of [4, 5]) pair.send(0, pattern(8), tag);
    pair.run();
    expect(phases(pair, 1).sort()).toEqual([
      'recv posted: nothing has matched; 2 unexpected messages from there with other tags',
      'recv posted: nothing has matched; 2 unexpected messages with other tags',
    ]);
    expect(pendingRequests(pair.engines[1].pml).find(({ tag }) => tag === 3)).toMatchObject({ peer: ANY, tag: 3, ctx: 0, bytes: 8 });
    // An eager send is done for its user, wherever its copy is.
    expect(phases(pair, 0)).toEqual([]);
  });

  test('a rendezvous from its envelope to its end', () => {
    const pair = new MemPair();
    pair.verdictOf = hold('RNDV');
    pair.send(0, pattern(LONG), 7);
    expect(phases(pair, 0)).toEqual(['send RNDV sent, and not known to be delivered']);
    pair.verdictOf = () => 'pass';
    pair.run();
    expect(phases(pair, 0)).toEqual(['send RNDV delivered: no receive there has matched it (no ACK)']);
    pair.verdictOf = hold('ACK');
    pair.recv(1, new Uint8Array(LONG), 7);
    expect(phases(pair, 1)[0]).toMatch(/^recv matched: \d+ of 300000 bytes received, ACK not known to be delivered$/);
    pair.verdictOf = hold('FRAG');
    pair.run();
    expect(phases(pair, 0)[0]).toMatch(/^send matched: \d+ of 300000 bytes delivered, [1-9]\d* on rails$/);
    expect(phases(pair, 1)[0]).toMatch(/^recv matched: \d+ of 300000 bytes received$/);
    pair.verdictOf = () => 'pass';
    pair.run();
    expect([...phases(pair, 0), ...phases(pair, 1)]).toEqual([]);
  });

  test('a restart, and no rail', () => {
    const pair = new MemPair(2);
    pair.verdictOf = hold('FRAG');
    pair.send(0, pattern(LONG), 7);
    pair.recv(1, new Uint8Array(LONG), 7);
    pair.verdictOf = (item) => (item.type === 'FRAG' || item.type === 'RNDVRESTARTNOTIFY' ? 'hold' : 'pass');
    pair.cut(0);
    expect(phases(pair, 0)).toEqual(['send restart: RNDVRESTARTNOTIFY of epoch 1 not known to be delivered']);
    const alone = new MemPair();
    alone.unreachable.add(0);
    alone.cut(0);
    alone.send(0, pattern(LONG), 7);
    expect(phases(alone, 0)).toEqual(['send RNDV not sent: no rail is up']);
  });
});

describe('the watch', () => {
  function watchOf(pair: MemPair, stallMs: number) {
    const stalls: string[] = [];
    const blocked: Wait[][] = [];
    const probes: { pattern: { source: number; ctx: number; tag: number }; sinceMs: number }[] = [];
    const describe = () => ({ comm: 'world', call: undefined });
    const proc = { rank: 1, probes: () => probes, describe, memoryWaits: { pending: () => [] } } as unknown as ProcessState;
    const hooks = { onStall: (text: string) => stalls.push(text), onBlocked: ({ waits }: { waits: Wait[] }) => blocked.push(waits) };
    return { watch: new WaitsWatch(pair.engines[1], proc, 1, stallMs, hooks), stalls, blocked, probes };
  }

  test('knows since when, oldest first, with the rails', () => {
    const pair = new MemPair();
    const { watch, probes } = watchOf(pair, 0);
    pair.nowMs = 1000;
    pair.recv(1, new Uint8Array(8), 3, ANY);
    pair.nowMs = 3000;
    pair.recv(1, new Uint8Array(8), 4, ANY);
    probes.push({ pattern: { source: 0, ctx: 0, tag: ANY }, sinceMs: 3000 });
    const { waits, more } = watch.report(5500);
    expect(waits.map(({ kind, peer, tag, waitedMs }) => ({ kind, peer, tag, waitedMs }))).toEqual([
      { kind: 'recv', peer: 'any', tag: 3, waitedMs: 4500 },
      { kind: 'recv', peer: 'any', tag: 4, waitedMs: 2500 },
      { kind: 'probe', peer: 0, tag: 'any', waitedMs: 2500 },
    ]);
    expect(more).toBe(0);
  });

  test('says nothing of receives for which nobody waits', () => {
    const pair = new MemPair();
    const { pml } = pair.engines[1];
    const heard: boolean[] = [];
    pml.irecvInBackground(ANY, 0, 9, new Iov([new Uint8Array(8)]), ({ cancelled }) => heard.push(cancelled));
    const { watch } = watchOf(pair, 0);
    expect([watch.report(1000).waits, pml.hasAwaitedRequests]).toEqual([[], false]);
    pair.recv(1, new Uint8Array(8), 3);
    expect([watch.report(1000).waits.map(({ tag }) => tag), pml.hasAwaitedRequests]).toEqual([[3], true]);
    // A cancelled one is gone, whether or not anybody hears of it.
    const silent = pml.irecvInBackground(ANY, 0, 10, new Iov([new Uint8Array(8)]), () => undefined);
    silent.onDone = undefined;
    expect(pml.cancel(silent)).toBe(true);
    pair.send(0, pattern(8), 3);
    pair.send(0, pattern(8), 9);
    pair.run();
    expect([heard, watch.report(1000).waits, pml.hasAwaitedRequests]).toEqual([[false], [], false]);
  });

  test('of very many the oldest are listed, and the others counted', () => {
    const pair = new MemPair();
    const { watch } = watchOf(pair, 0);
    for (let tag = 0; tag < 1000; tag++) {
      pair.nowMs = tag * 1000;
      pair.recv(1, new Uint8Array(8), tag, ANY);
    }
    const { waits, more } = watch.report(1_000_000);
    expect(waits.map(({ tag }) => tag)).toEqual(Array.from({ length: 200 }, (_, tag) => tag));
    expect(more).toBe(800);
    // The time of what was begun long ago is known more coarsely, in the same order.
    for (const { tag, waitedMs } of waits) expect(Math.abs(1_000_000 - waitedMs - Number(tag) * 1000)).toBeLessThanOrEqual(waitedMs / 4);
  });

  test('what waits unexpected is not looked through by the clock, and without mpi_stall_report_ms there is no clock', () => {
    const pair = new MemPair();
    for (let i = 0; i < 50; i++) pair.send(0, pattern(8), 1);
    for (let i = 0; i < 20; i++) pair.recv(1, new Uint8Array(8), 2);
    const { inbox } = pair.engines[1].pml.internals;
    const through = vi.spyOn(inbox.context(0), 'unexpectedEnvelopes');
    const posted = vi.spyOn(inbox, 'postedRequests');
    const on = watchOf(pair, 5000);
    for (let nowMs = 0; nowMs <= 3000; nowMs += 1000) on.watch.look(nowMs);
    expect(posted).toHaveBeenCalledTimes(4);
    expect(through).not.toHaveBeenCalled();
    on.watch.report(3000);
    expect(through).toHaveBeenCalledTimes(1);

    vi.useFakeTimers();
    try {
      const off = watchOf(pair, 0);
      off.watch.start(() => 0);
      expect(vi.getTimerCount()).toBe(0);
      posted.mockClear();
      for (let nowMs = 0; nowMs <= 3000; nowMs += 1000) off.watch.look(nowMs);
      expect(posted).not.toHaveBeenCalled();
      on.watch.start(() => 10_000);
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(1000);
      expect(posted).toHaveBeenCalled();
      on.watch.stop();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a stall is told once, and again only when it has gone on for twice as long', () => {
    const pair = new MemPair();
    const { watch, stalls } = watchOf(pair, 5000);
    pair.recv(1, new Uint8Array(8), 3);
    for (let nowMs = 0; nowMs <= 9000; nowMs += 1000) watch.look(nowMs);
    expect(stalls).toEqual(['nothing has moved for 5.0 s (mpi_stall_report_ms)']);
    watch.look(10_000);
    expect(stalls).toHaveLength(2);
    // What is done is forgotten, and a new one begins anew.
    pair.send(0, pattern(8), 3);
    pair.run();
    pair.nowMs = 11_000;
    pair.recv(1, new Uint8Array(8), 3);
    for (let nowMs = 11_000; nowMs <= 15_000; nowMs += 1000) watch.look(nowMs);
    expect(stalls).toHaveLength(2);
    watch.look(16_000);
    expect(stalls).toHaveLength(3);
  });

  test('a message that moves, however slowly, is no stall', () => {
    const pair = new MemPair(1, { fragBytes: 32_768 });
    const { watch, stalls } = watchOf(pair, 5000);
    let let1 = 0;
    pair.verdictOf = (item) => (item.type === 'FRAG' && let1-- <= 0 ? 'hold' : 'pass');
    pair.recv(1, new Uint8Array(LONG), 7);
    pair.send(0, pattern(LONG), 7);
    pair.run();
    const received = () => Number(/(\d+) of/.exec(phases(pair, 1)[0])?.[1]);
    let before = received();
    for (let nowMs = 0; nowMs < 20_000; nowMs += 4000) {
      watch.look(nowMs);
      let1 = 1;
      pair.run();
      expect(received()).toBeGreaterThan(before);
      before = received();
    }
    expect(stalls).toEqual([]);
    for (let nowMs = 20_000; nowMs <= 26_000; nowMs += 1000) watch.look(nowMs);
    expect(stalls).toHaveLength(1);
  });

  test('a blocking call that lasts says so after a second, and then every five', () => {
    const pair = new MemPair();
    const { watch, blocked } = watchOf(pair, 0);
    pair.recv(1, new Uint8Array(8), 3);
    for (let nowMs = 100; nowMs <= 12_000; nowMs += 50) watch.lookBlocked(nowMs, 100);
    expect(blocked).toHaveLength(3);
    // A later call begins anew.
    for (let nowMs = 12_050; nowMs <= 12_900; nowMs += 50) watch.lookBlocked(nowMs, 12_050);
    expect(blocked).toHaveLength(3);
  });
});
