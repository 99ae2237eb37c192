// The engine: rail events, turns, the log's bound, who is admitted, and the parameters it is made from.
import { describe, expect, test } from 'vitest';
import { ALIVE_PER_TURN_MAX_MS, type BtlModule } from '../../../src/btl/btl.ts';
import { ParamTable } from '../../../src/params.ts';
import { Engine } from '../../../src/progress/engine.ts';
import { engineOptions } from '../../../src/progress/options.ts';
import { Iov } from '../../../src/util/iov.ts';
import { MemPair, OPTIONS } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

test('rail events tell what happened, and how many rails are left', () => {
  const pair = new MemPair(3);
  const told = () => pair.events.splice(0).map(({ type, rail, up, of }) => `${type} ${rail} ${up}/${of}`);
  expect(told()).toEqual(['restored 0 1/3', 'restored 1 2/3', 'restored 2 3/3']);
  pair.cut(1);
  expect(told()).toEqual(['lost 1 2/3', 'degraded 1 2/3']);
  pair.cut(0);
  expect(told()).toEqual(['lost 0 1/3', 'last 0 1/3']);
  pair.cut(2);
  expect(told()).toEqual(['lost 2 0/3', 'unreachable 2 0/3']);
  pair.restore(0);
  expect(told()).toEqual(['restored 0 1/3']);
});

test('a long turn adds little to the alive time', () => {
  let nowMs = 0;
  const engine = new Engine({ ...OPTIONS, rank: 0 }, { now: () => nowMs, defer: () => {}, yield: () => {}, arm: () => {} });
  for (const [elapsedMs, addedMs] of [
    [10, 10],
    [60_000, ALIVE_PER_TURN_MAX_MS],
    [-5, 0],
    [ALIVE_PER_TURN_MAX_MS, ALIVE_PER_TURN_MAX_MS],
  ]) {
    const before = engine.aliveMs;
    nowMs += elapsedMs;
    engine.progress();
    expect(engine.aliveMs - before).toBe(addedMs);
  }
});

/** A transport without rails, of which a test only sees when it is polled. */
const IDLE_MODULE: Omit<BtlModule, 'progress' | 'nextDeadline'> = {
  name: 'idle',
  address: () => ({}),
  plan: () => [],
  endpoint: () => {
    throw new Error('not used');
  },
  remoteAddressChanged: () => {},
  forgetPeer: () => true,
  open: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

test('one progress() lasts no longer than 10 ms while there is more; nobody enters another one before the event loop had its turn', () => {
  let nowMs = 0;
  let yields = 0;
  let looks = 0;
  const engine = new Engine({ ...OPTIONS, rank: 0 }, { now: () => nowMs, defer: () => {}, yield: () => void yields++, arm: () => {} });
  engine.addModule({
    ...IDLE_MODULE,
    nextDeadline: () => Number.POSITIVE_INFINITY,
    progress: () => {
      looks++;
      nowMs += 3;
      return 1;
    },
  });
  engine.progress();
  expect([looks, yields]).toEqual([5, 1]);
  engine.wake();
  expect([looks, yields]).toEqual([5, 1]);
  engine.progress();
  expect([looks, yields]).toEqual([10, 2]);
});

test('looks of the program arm no timer and no doorbell; the turn that they ask for does', () => {
  const told: string[] = [];
  const note = (word: string) => () => void told.push(word);
  const engine = new Engine({ ...OPTIONS, rank: 0 }, { now: () => 0, defer: note('defer'), yield: note('yield'), arm: note('arm') });
  let work = 0;
  engine.addModule({
    ...IDLE_MODULE,
    nextDeadline: () => 5,
    park: () => told.push('park') > 0,
    progress: () => {
      told.push('poll');
      return work-- > 0 ? 1 : 0;
    },
  });
  engine.look();
  engine.look();
  expect(told.splice(0)).toEqual(['defer', 'poll', 'defer', 'poll']);
  // What has come is taken to its end.
  work = 2;
  engine.look();
  expect(told.splice(0)).toEqual(['defer', 'poll', 'poll', 'poll']);
  engine.progress();
  expect(told).toEqual(['poll', 'park', 'arm']);
});

test('very many messages leave piece by piece, in their order', () => {
  const pair = new MemPair();
  const { pml } = pair.engines[0];
  pair.busy.add(0);
  const sends = Array.from({ length: 5000 }, (_, i) => pml.isend(1, 0, 1, new Iov([new Uint8Array(new Uint32Array([i]).buffer)])));
  expect(sends.every(({ done }) => done)).toBe(false);
  pair.run();
  pair.busy.clear();
  pair.sent = [];
  pair.engines[0].onWritable(pair.endpoints[0][0]);
  expect(pml.pump()).toBe(true);
  expect([pair.sent.length, pml.isUnfinished]).toEqual([1024, true]);
  expect(pair.engines[0].nextDeadline()).toBeLessThanOrEqual(pair.nowMs);
  pair.run();
  expect(pml.isUnfinished).toBe(false);
  const words = new Uint32Array(1);
  for (let i = 0; i < sends.length; i++) {
    pair.recv(1, new Uint8Array(words.buffer), 1);
    expect(words[0]).toBe(i);
  }
  expect(sends.every(({ done }) => done)).toBe(true);
  expect(pair.leftovers()).toEqual([]);
});

test('a flood of warnings is counted, not passed on', () => {
  let nowMs = 0;
  const lines: string[] = [];
  const hooks = { log: (_level: string, text: string) => void lines.push(text) };
  const engine = new Engine({ ...OPTIONS, rank: 0 }, { now: () => nowMs, defer: () => {}, yield: () => {}, arm: () => {} }, hooks);
  for (let i = 0; i < 1000; i++) engine.log('warn', `stranger ${i}`);
  expect(lines).toHaveLength(20);
  nowMs += 1500;
  engine.progress();
  engine.log('warn', 'one more');
  expect(lines.slice(20)).toEqual(['980 further lines were left out', 'one more']);
});

describe('first use', () => {
  /** An engine that knows ranks 0 to 3 by their addresses only, and asks for their rails one by one. */
  const alone = (options: { rank?: number } = {}) => {
    const planned: number[] = [];
    const failed: string[] = [];
    const engine = new Engine(
      engineOptions(options.rank ?? 1, new ParamTable()),
      { now: () => 0, defer: () => {}, yield: () => {}, arm: () => {} },
      {
        planPeer: (rank) => {
          if (!(rank >= 0 && rank < 4)) return undefined;
          planned.push(rank);
          return { incarnation: 1, endpoints: [], unexpectedBytesMax: 1024 };
        },
        onPeerFailed: (rank, error) => failed.push(`${rank} ${error.code}`),
      },
    );
    return { engine, planned, failed };
  };
  const claim = { rank: 3, incarnation: 1, rail: 0, key: 'mem#0', epoch: 1 };
  const module = {} as BtlModule;

  test('a send, a named receive and a HELLO make a peer once; a receive from anybody makes none', () => {
    const { engine, planned } = alone();
    engine.pml.irecv(-1, 1, 1, new Iov([]));
    expect(planned).toEqual([]);
    engine.pml.isend(2, 1, 1, new Iov([]));
    engine.pml.irecv(2, 1, 1, new Iov([]));
    engine.pml.irecv(0, 1, 1, new Iov([]));
    expect(engine.admit(module, claim)).toMatchObject({ ok: false, reason: 'WILL_DIAL' });
    expect(engine.admit(module, claim)).toMatchObject({ ok: false, reason: 'WILL_DIAL' });
    expect(engine.admit(module, { ...claim, rank: 4 })).toMatchObject({ ok: false, reason: 'UNKNOWN_RANK' });
    expect(planned).toEqual([2, 0, 3]);
  });

  test('a rank that died before it was needed is told of once, and fails whatever needs it', () => {
    const { engine, planned, failed } = alone();
    engine.failPeer(2, 'ERR_PROC_FAILED', 'its process ended');
    engine.failPeer(2, 'ERR_PROC_FAILED', 'its process ended');
    engine.peerLeft(0, true);
    expect(failed).toEqual(['2 ERR_PROC_FAILED']);
    expect(planned).toEqual([]);
    expect(engine.endingOf(2)).toMatchObject({ failure: { code: 'ERR_PROC_FAILED' } });
    expect(engine.endingOf(0)).toMatchObject({ ended: { code: 'ERR_PROC_FAILED' }, failure: undefined });
    expect(engine.endingOf(3)).toBe(undefined);
    expect(engine.pml.irecv(2, 1, 1, new Iov([])).error?.code).toBe('ERR_PROC_FAILED');
    expect(engine.pml.irecv(0, 1, 1, new Iov([])).error?.message).toMatch(/rank 0 has left the job/);
    expect(engine.admit(module, { ...claim, rank: 2 })).toMatchObject({ ok: false, reason: 'PEER_FAILED' });
  });

  test('a rank leaves when all are drained, and meets whoever comes until then', () => {
    const { engine } = alone();
    engine.beginFinalize(true);
    engine.progress();
    expect([engine.isDrained, engine.isLeft()]).toEqual([true, false]);
    engine.admit(module, claim);
    expect(engine.isDrained).toBe(false);
    engine.progress();
    expect([engine.isDrained, engine.isLeft()]).toEqual([true, false]);
    engine.everyoneDrained();
    engine.progress();
    expect(engine.isLeft()).toBe(true);
  });
});

describe('admission', () => {
  const hello = { rank: 0, incarnation: 1, rail: 0, key: 'mem#0', epoch: 50 };
  const asked = (change: Partial<typeof hello>, prepare: (pair: MemPair) => void = () => {}) => {
    const pair = new MemPair(2);
    prepare(pair);
    return pair.engines[1].admit(pair.modules[1], { ...hello, ...change });
  };
  test('the peer that is known, with a newer epoch', () => {
    expect(asked({})).toMatchObject({ ok: true });
  });
  test.each([
    ['UNKNOWN_RANK', { rank: 7 }],
    ['OLD_INCARNATION', { incarnation: 0 }],
    ['PEER_FAILED', { incarnation: 2 }],
    ['RAIL_MISMATCH', { rail: 9 }],
    ['RAIL_MISMATCH', { key: 'mem#1' }],
    ['STALE_EPOCH', { epoch: 1 }],
    ['STALE_EPOCH', { epoch: 2 + 2 ** 20 }],
    ['STALE_EPOCH', { epoch: 0xffff_ffff }],
  ])('%s', (reason, change) => {
    expect(asked(change)).toMatchObject({ ok: false, reason });
  });
  test('a stranger that claims the own rank, or one that cannot be, changes nothing, however new its incarnation', () => {
    const pair = new MemPair();
    const engine = pair.engines[1];
    engine.addPeer(1, 1, [], 1024);
    const claims = [
      [1, 'RAIL_MISMATCH'],
      [2, 'UNKNOWN_RANK'],
      [0xffffffff, 'UNKNOWN_RANK'],
      [-1, 'UNKNOWN_RANK'],
      [Number.NaN, 'UNKNOWN_RANK'],
    ] as const;
    for (const [rank, reason] of claims) {
      const claim = { ...hello, rank, incarnation: Number.MAX_SAFE_INTEGER };
      expect(engine.admit(pair.modules[1], claim)).toMatchObject({ ok: false, reason });
    }
    pair.run();
    expect([0, 1].map((rank) => engine.pml.peer(rank).failure)).toEqual([undefined, undefined]);
  });
  test('a stale epoch is told the highest one, and so is one that is too far above it', () => {
    expect(asked({ epoch: 1 })).toMatchObject({ highestEpoch: 1 });
    expect(asked({ epoch: 0xffff_ffff })).toMatchObject({ highestEpoch: 1 });
    expect(asked({ epoch: 1 + 2 ** 20 })).toMatchObject({ ok: true });
  });
  test('a newer process of a rank proves the older one dead', () => {
    const pair = new MemPair();
    const recv = pair.recv(1, new Uint8Array(5), 1);
    pair.engines[1].admit(pair.modules[1], { ...hello, incarnation: 2 });
    pair.run();
    expect(recv.error?.code).toBe('ERR_PROC_FAILED');
  });
});

test('an invariant that broke comes with the last transitions', () => {
  const pair = new MemPair();
  pair.recv(1, new Uint8Array(5000), 1);
  pair.send(0, pattern(5000), 1);
  const states = pair.engines[0].pml.traceEntries().map(({ from, to }) => `${from}>${to}`);
  expect(states).toEqual(['ENVELOPE>STREAMING', 'STREAMING>DONE']);
});

test('options come from the parameters', () => {
  const options = engineOptions(3, new ParamTable({ pml_eager_limit_bytes: '1k', bml_rail_timeout_ms: '77' }));
  expect(options).toMatchObject({ rank: 3, pml: { rank: 3, eagerLimitBytes: 1024 }, bml: { rank: 3, railTimeoutMs: 77 } });
  for (const part of [options, options.pml, options.bml]) expect(Object.values(part)).not.toContain(undefined);
});
