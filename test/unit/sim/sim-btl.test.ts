// SimBtl under seeded random operations and faults, against the recorder's model of B1-B3 (test/support/btl-recorder.ts); the
// same seed gives the same trace; and scripted cases of what only the simulator can do.
import { describe, expect, it } from 'vitest';
import { DELIVERED, IN_DOUBT, OK } from '../../../src/btl/btl.ts';
import { Prng, TraceHash } from '../../../src/util/prng.ts';
import { Fabric, type RailSpec } from '../../../tools/sim/fabric.ts';
import { simComponent } from '../../../tools/sim/sim-btl.ts';
import { type Pair, type SetupOptions, simPair } from '../../support/btl-fixture.ts';
import { seedsOf } from '../../support/sample.ts';

const FENCED = { kind: 'fenced', text: 'fenced by the test' } as const;

interface World {
  pair: Pair;
  fabric: Fabric;
  trace: TraceHash;
}

async function world(seed: string, rail: Partial<RailSpec>, options: SetupOptions = {}): Promise<World> {
  const trace = new TraceHash();
  const fabric = new Fabric({ seed, ranks: 2, rails: [rail], trace: (line) => trace.add(line) });
  const pair = await simPair({ ...options, fabric, componentOf: () => simComponent(fabric) });
  return { pair, fabric, trace };
}

interface Doubts {
  deliveredNotReported: number;
  notDelivered: number;
  halfFrames: number;
  frames: number;
}

/** Random traffic and random faults; ends with every frame completed. Returns the hash of the trace. */
async function run(seed: number, doubts?: Doubts): Promise<string> {
  const prng = new Prng(seed);
  const rail: Partial<RailSpec> = {
    liveness: prng.pick(['self', 'siblings'] as const),
    latencyUs: prng.between(1, 2000),
    jitterUs: prng.between(0, 1000),
    bytesPerMs: prng.pick([5_000, 100_000, 1_000_000]),
    cellBytesMax: prng.pick([1024, 16_384, 65_536]),
    busyPer10k: prng.pick([0, 0, 500]),
    payloadDamagePer10k: prng.pick([0, 0, 50]),
    headerDamagePer10k: prng.pick([0, 0, 20]),
    detectUsMin: 1000,
    detectUsMax: 30_000,
    canPut: prng.chance(1, 2),
    lateOneSidedUsMax: 50_000,
  };
  const { pair, fabric, trace } = await world(`random ${seed}`, rail, { unconnected: true, params: { bml_connect_timeout_ms: '20' } });
  const { a, b } = pair;
  const link = fabric.link(0, 1, 0);
  const memory = new Uint8Array(50_000);
  const registration = b.endpoints[0].register?.([memory]);
  let epoch = 0;
  let isDialling = false;
  for (let round = 0; round < 120; round++) {
    if (isDialling && (a.recorder.find('connected', 0, epoch) !== undefined || a.recorder.find('connectFailed', 0, epoch) !== undefined))
      isDialling = false;
    if (!isDialling && (a.endpoints[0].epoch === 0 || prng.chance(1, 30))) {
      epoch = Math.max(epoch, b.recorder.highestSeen.get(0) ?? 0) + 1;
      a.endpoints[0].connect(epoch);
      isDialling = true;
    }
    for (const side of [a, b]) {
      const endpoint = side.endpoints[0];
      for (let i = prng.below(5); i > 0; i--)
        side.send(prng.pick([0, 1, 100, 5000, 40_000]), { placed: prng.chance(1, 2), prompt: prng.chance(1, 4) });
      if (prng.chance(3, 4)) endpoint.flush();
      if (prng.chance(1, 60) && endpoint.epoch > 0) endpoint.fence(endpoint.epoch, FENCED);
      if (prng.chance(1, 20)) endpoint.probe(round);
      const open = side.recorder.sinks.at(-1);
      if (open !== undefined && prng.chance(1, 10)) endpoint.revokeSink(open.sink);
    }
    if (registration !== undefined && a.endpoints[0].epoch > 0 && prng.chance(1, 4)) {
      a.start({
        kind: 'put',
        local: [new Uint8Array(20_000).fill(round)],
        bytes: 20_000,
        remoteKey: registration.key,
        remoteOffset: 0,
        railFrameNumber: 0,
      });
    }
    const from = prng.below(2);
    if (prng.chance(1, 15)) {
      const fault = prng.below(12);
      if (fault <= 2) fabric.cut(link, { inFlight: prng.pick(['lost', 'delivered', 'half'] as const) });
      else if (fault === 3) fabric.blackhole(link, from, { lossy: prng.chance(1, 2) });
      else if (fault === 4) fabric.stall(link, from, prng.between(1, 10_000));
      else if (fault === 5) fabric.skew(link, from, prng.between(0, 5000));
      else if (fault === 6) fabric.corruptNext(link, from, prng.pick(['header', 'payload'] as const));
      else if (fault === 7) fabric.dropCounts(link, from, prng.chance(1, 2));
      else if (fault === 8) fabric.refuseConnections(link, from, prng.chance(1, 2));
      else if (fault === 9) fabric.onlyOtherSideNotices(link, from, prng.chance(1, 2));
      else if (fault === 10) fabric.flap(link, 2, prng.between(1, 5000), prng.between(1, 5000));
      else fabric.pause(from);
    }
    if (prng.chance(1, 5)) {
      fabric.mend(link);
      for (const rank of [0, 1]) if (fabric.isPaused(rank)) fabric.resume(rank);
    }
    await pair.settle(prng.between(0, 4));
  }
  for (const rank of [0, 1]) if (fabric.isPaused(rank)) fabric.resume(rank);
  for (const side of [a, b]) side.endpoints[0].fence(epoch, FENCED);
  const landedBefore = memory.slice();
  await pair.settle(300);
  if (Buffer.compare(landedBefore, memory) !== 0) throw new Error(`seed ${seed}: a put landed after the fence`);
  if (a.open + b.open !== 0) throw new Error(`seed ${seed}: ${a.open + b.open} frames never completed`);
  pair.check();
  if (doubts !== undefined) {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ]) {
      for (const { rail: railNo, epoch: of, model } of from.recorder.models()) {
        const received = new Set(to.recorder.model(railNo, of).received);
        for (const { id, status } of model.accepted) {
          doubts.frames += 1;
          if (status !== IN_DOUBT) continue;
          if (received.has(id)) doubts.deliveredNotReported += 1;
          else if (to.recorder.sinks.some((sink) => sink.id === id && sink.dropped && sink.buffer.some((byte) => byte !== 0)))
            doubts.halfFrames += 1;
          else doubts.notDelivered += 1;
        }
      }
    }
  }
  await pair.close();
  return `${trace.lines} ${trace.hex}`;
}

const SEEDS = seedsOf(500);

describe('SimBtl', () => {
  it(`keeps B1-B3 under ${SEEDS} seeds of random operations and faults, with all three kinds of doubt`, { timeout: 120_000 }, async () => {
    const doubts: Doubts = { deliveredNotReported: 0, notDelivered: 0, halfFrames: 0, frames: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      try {
        await run(seed, doubts);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
    }
    expect(doubts.frames).toBeGreaterThan(100 * SEEDS);
    expect(doubts.deliveredNotReported).toBeGreaterThan(SEEDS);
    expect(doubts.notDelivered).toBeGreaterThan(SEEDS);
    expect(doubts.halfFrames).toBeGreaterThan(SEEDS / 25);
  });

  it('gives the same trace for the same seed, and another one for another', async () => {
    const first: string[] = [];
    for (let seed = 1; seed <= 20; seed++) first.push(await run(seed));
    for (let seed = 1; seed <= 20; seed++) expect(await run(seed)).toBe(first[seed - 1]);
    expect(new Set(first).size).toBe(20);
  });

  it('copies at transmission: a buffer that changes too early arrives changed', async () => {
    const { pair } = await world('lazy', {});
    const { frame } = pair.a.send(1000);
    frame.payload[0].fill(0);
    pair.a.endpoints[0].flush();
    await pair.drive(() => pair.a.open === 0, 'delivered');
    expect(() => pair.check()).toThrow(/payload/);
  });

  it('delivered, not reported: with counts dropped the frame is in doubt although it arrived', async () => {
    const { pair, fabric } = await world('dropped counts', {});
    fabric.dropCounts(fabric.link(0, 1, 0), 1);
    const { id } = pair.a.send(100);
    pair.a.endpoints[0].flush();
    await pair.drive(() => pair.b.recorder.framesSeen === 1, 'arrived');
    await pair.settle(100);
    expect(pair.a.open).toBe(1);
    pair.a.endpoints[0].fence(1, FENCED);
    await pair.settle(10);
    expect(pair.a.recorder.model(0, 1).byFrame.values().next().value).toMatchObject({ id, status: IN_DOUBT });
    pair.check();
  });

  it('a paused process gets no progress, its rail does not die of it, and it catches up', async () => {
    const { pair, fabric } = await world('pause', {});
    fabric.pause(1);
    pair.a.send(100);
    pair.a.endpoints[0].flush();
    await pair.settle(60_000);
    expect(pair.a.open).toBe(1);
    expect(pair.a.recorder.count('railDown')).toBe(0);
    fabric.resume(1);
    await pair.drive(() => pair.a.open === 0, 'delivered');
    expect(pair.a.recorder.find('completed')?.text).toBe(String(DELIVERED));
    pair.check();
  });

  it('connecting to a paused process ends as busy, to a cut one by timeout, to a dead one refused', async () => {
    const { pair, fabric } = await world('kinds', {}, { unconnected: true });
    const link = fabric.link(0, 1, 0);
    const attempt = async (epoch: number) => {
      pair.a.endpoints[0].connect(epoch);
      await pair.drive(() => pair.a.recorder.find('connectFailed', 0, epoch) !== undefined, 'the attempt ends');
      return pair.a.recorder.find('connectFailed', 0, epoch)?.text;
    };
    fabric.pause(1);
    expect(await attempt(1)).toBe('busy');
    fabric.cut(link);
    expect(await attempt(2)).toBe('timeout');
    fabric.mend(link);
    fabric.refuseConnections(link, 1);
    expect(await attempt(3)).toBe('refused');
    fabric.refuseConnections(link, 1, false);
    fabric.kill(1);
    expect(await attempt(4)).toBe('refused');
  });

  it('a killed process: its kernel closes the rails, or its host falls silent and the rail checks itself', async () => {
    for (const host of ['up', 'down'] as const) {
      const { pair, fabric } = await world(`kill ${host}`, {});
      pair.a.send(100);
      pair.a.endpoints[0].flush();
      fabric.kill(1, host);
      await pair.drive(() => pair.a.recorder.count('railDown') === 1, 'noticed');
      expect(pair.a.recorder.find('railDown')?.text).toBe(host === 'up' ? 'closed' : 'silent');
      expect(pair.a.open).toBe(0);
    }
  });

  it('only one side notices: the other stays up until something is said to it', async () => {
    const { pair, fabric } = await world('one side', {});
    const link = fabric.link(0, 1, 0);
    fabric.onlyOtherSideNotices(link, 1);
    fabric.cut(link);
    await pair.drive(() => pair.a.recorder.count('railDown') === 1, 'rank 0 notices');
    await pair.settle(10_000);
    expect(pair.b.recorder.count('railDown')).toBe(0);
    expect(pair.b.endpoints[0].epoch).toBe(1);
    fabric.mend(link);
    pair.a.endpoints[0].connect(2);
    await pair.drive(() => pair.a.endpoints[0].epoch === 2 && pair.b.endpoints[0].epoch === 2, 'connected');
    expect(pair.b.recorder.find('railDown')?.text).toBe('replaced');
    pair.check();
  });

  it('a hole that keeps what is sent (as TCP does) goes on after mend() without a loss', async () => {
    const { pair, fabric } = await world('held', { liveness: 'siblings' });
    const link = fabric.link(0, 1, 0);
    fabric.blackhole(link, 0);
    for (let i = 0; i < 10; i++) expect(pair.a.send(100).result).toBe(OK);
    pair.a.endpoints[0].flush();
    await pair.settle(1000);
    expect(pair.b.recorder.framesSeen).toBe(0);
    fabric.mend(link);
    await pair.drive(() => pair.a.open === 0, 'delivered');
    expect(pair.b.recorder.framesSeen).toBe(10);
    pair.check();
  });
});
