// Short collective calls in shared memory, in one step: the ranks of a call are played one after the other in one thread, each as it finds the
// memory, with the layout of the product (src/mpi/coll/shared/segment.ts).
import { expect, test } from 'vitest';
import { sendRegion } from '../../../src/mpi/coll/memory.ts';
import { NativeKernels } from '../../../src/mpi/coll/native-kernels.ts';
import type { LocalProcess, Scope } from '../../../src/mpi/coll/scope.ts';
import { type AtOnce, barrierAtOnce, bcastAtOnce, Plan, reductionAtOnce } from '../../../src/mpi/coll/shared/at-once.ts';
import { CONTRIBUTION, SharedSegment, segmentBytes } from '../../../src/mpi/coll/shared/segment.ts';
import { Op } from '../../../src/mpi/op.ts';
import { SHARED_CALL, SHARED_CALL_END, SHARED_CALL_LENGTH } from '../../../src/native/binding.ts';
import { describeNative, misuse, native, thrown } from './native-fixture.ts';

const { DONE, BELL, TAKEN_AWAY, UNFIT } = SHARED_CALL_END;
const CODE = 0x87654321;

class World {
  readonly segment: SharedSegment;
  private readonly plans: Plan[];
  private readonly size: number;

  constructor(size: number) {
    this.size = size;
    this.segment = new SharedSegment(new ArrayBuffer(segmentBytes(size, 256)), size, 256);
    // No rank waits for another one of the same thread.
    this.plans = Array.from({ length: size }, (_, rank) => new Plan(this.segment, rank, true));
  }

  scope(rank: number, checkSignatures = false): Scope {
    const proc = { nativeKernels: new NativeKernels(native.combine) } as Partial<LocalProcess>;
    return { rank, size: this.size, tuning: { checkSignatures }, proc } as unknown as Scope;
  }

  call(rank: number, number: number, call: AtOnce, code = CODE): number {
    const plan = this.plans[rank].of(number, code, call);
    // Other processes may want the processor as long as they like.
    plan[SHARED_CALL.takenAwayUs] = 2 ** 30;
    return native.sharedCall(this.segment.words, plan, call.own, call.out);
  }

  finished(rank: number): number {
    return this.segment.words[this.segment.clearAt(rank)];
  }
}

describeNative('a call in one step', () => {
  test('a barrier is done for the last one that comes, and for the others when they look again', () => {
    const world = new World(3);
    const go = (rank: number): number => world.call(rank, 1, barrierAtOnce(world.scope(rank)));
    expect([go(0), go(2), go(0)]).toEqual([0, 0, 0]);
    expect([0, 1, 2].map((rank) => world.finished(rank))).toEqual([0, 0, 0]);
    expect([go(1), go(0), go(2)]).toEqual([DONE, DONE, DONE]);
    expect([0, 1, 2].map((rank) => world.finished(rank))).toEqual([2, 2, 2]);
  });

  test.each([
    ['Float64Array', Op.SUM, [0.1, 1e9], [0.2, -1e9], [0.3, 1e-9]],
    ['Float32Array', Op.PROD, [0.1, 3], [0.7, 5], [0.3, 7]],
    ['Int8Array', Op.SUM, [100, -100], [100, -100], [100, 1]],
    ['Uint8ClampedArray', Op.SUM, [100, 0], [100, 1], [100, 2]],
    ['Uint16Array', Op.BXOR, [0xffff, 1], [0x00ff, 2], [0x0f0f, 3]],
    ['BigInt64Array', Op.MIN, [5n, -5n], [4n, 2n ** 62n], [3n, 0n]],
  ] as const)('an allreduce of a %s, in the order of the ranks, whoever comes first', (name, op, ...given) => {
    const type = globalThis[name] as unknown as Float64ArrayConstructor;
    const world = new World(3);
    const own = given.map((values) => type.from(values as unknown as number[]));
    const wanted = own[0].slice();
    const kernel = (a: number, b: number): number => {
      if (op === Op.SUM) return a + b;
      if (op === Op.PROD) return a * b;
      return op === Op.MIN ? [b, a][Number(a < b)] : a ^ b;
    };
    for (const more of own.slice(1)) for (let i = 0; i < wanted.length; i++) wanted[i] = kernel(wanted[i], more[i]);
    const outs = own.map((array) => new type(array.length));
    const go = (rank: number): number => {
      const call = reductionAtOnce(world.scope(rank), sendRegion(own[rank]), sendRegion(outs[rank]), op);
      return world.call(rank, 7, call as AtOnce);
    };
    expect([go(2), go(1)]).toEqual([0, 0]);
    expect(outs.map((out) => [...out].every((value) => Number(value) === 0))).toEqual([true, true, true]);
    expect([go(0), go(1), go(2)]).toEqual([DONE, DONE, DONE]);
    for (const out of outs) expect(out).toEqual(wanted);
  });

  test('a reduce waits at its root alone, a bcast everywhere else, unless calls are checked', () => {
    for (const isChecked of [false, true]) {
      const world = new World(2);
      const sum = new Int32Array(1);
      const reduce = (rank: number): number => {
        const own = sendRegion(Int32Array.of(rank + 4));
        return world.call(
          rank,
          1,
          reductionAtOnce(world.scope(rank, isChecked), own, rank === 1 ? sendRegion(sum) : undefined, Op.SUM) as AtOnce,
        );
      };
      expect([reduce(0), reduce(1), sum[0]]).toEqual([isChecked ? 0 : DONE, DONE, 9]);
      expect(reduce(0)).toBe(DONE);
      const data = [new Uint8Array(5), Uint8Array.of(1, 2, 3, 4, 5)];
      const bcast = (rank: number): number => world.call(rank, 2, bcastAtOnce(world.scope(rank, isChecked), data[rank], 1));
      expect(bcast(0)).toBe(0);
      expect([bcast(1), bcast(0)]).toEqual([DONE, DONE]);
      expect(data[0]).toEqual(data[1]);
      // Without checks a rank that takes says nothing.
      expect(world.segment.words[world.segment.flagAt(0, CONTRIBUTION, 2)]).toBe(isChecked ? 2 : 0);
    }
  });

  test('an operation of the user, or of pairs, and a class that the native part does not know, go by steps', () => {
    const scope = new World(2).scope(0);
    const region = sendRegion(new Float64Array(2));
    const user = Op.create((_incoming, _inout) => undefined);
    expect([Op.MAXLOC, user].map((op) => reductionAtOnce(scope, region, region, op))).toEqual([undefined, undefined]);
  });

  test('another call, another length and an error of a member leave it to the steps', () => {
    const own = sendRegion(Int32Array.of(1, 2));
    const call = (world: World): AtOnce => reductionAtOnce(world.scope(0), own, sendRegion(new Int32Array(2)), Op.SUM) as AtOnce;
    const others: ((world: World) => void)[] = [
      (world) => world.call(1, 3, call(world), CODE + 1),
      (world) => world.call(1, 3, barrierAtOnce(world.scope(1))),
      (world) => world.segment.words.fill(~3, world.segment.flagAt(1, CONTRIBUTION, 3), world.segment.flagAt(1, CONTRIBUTION, 3) + 1),
    ];
    for (const other of others) {
      const world = new World(2);
      other(world);
      expect(world.call(0, 3, call(world))).toBe(UNFIT);
      expect(world.finished(0)).toBe(0);
      // What this rank puts stands there for the others.
      expect(world.segment.words[world.segment.flagAt(0, CONTRIBUTION, 3)]).toBe(3);
    }
  });

  test('an offer of the processor that is taken for long leaves it to the steps', () => {
    const world = new World(2);
    const plan = new Plan(world.segment, 0, true).of(1, CODE, barrierAtOnce(world.scope(0)));
    plan[SHARED_CALL.takenAwayUs] = 0;
    expect(native.sharedCall(world.segment.words, plan, new Uint8Array(0), undefined)).toBe(TAKEN_AWAY);
  });

  test('somebody who sleeps is told of at once, behind what is put and behind the end', () => {
    const world = new World(2);
    const bell = world.segment.bellAt(0);
    const go = (rank: number): number => world.call(rank, 1, barrierAtOnce(world.scope(rank)));
    world.segment.words[bell] = 1;
    expect(go(1)).toBe(0);
    expect(go(0)).toBe(BELL);
    world.segment.words[bell] = 0;
    expect(go(0)).toBe(DONE);
  });

  test('the last number is followed by the first', () => {
    const world = new World(2);
    const last = 2 ** 31 - 1;
    for (const rank of [0, 1, 0]) world.call(rank, last, barrierAtOnce(world.scope(rank)));
    expect([world.finished(0), world.finished(1)]).toEqual([1, 1]);
  });

  test('a plan that leads outside the memory, and other buffers, are refused', () => {
    const { segment } = new World(2);
    const good = (): Int32Array => {
      const plan = new Plan(segment, 0, true);
      return plan.of(1, CODE, { ...barrierAtOnce(new World(2).scope(0)), bytes: 8 }).slice();
    };
    const own = new Uint8Array(8);
    const out = new Float64Array(1);
    const run = (change: Partial<Record<keyof typeof SHARED_CALL, number>>, ownBytes: Uint8Array = own, into: unknown = out): unknown => {
      const plan = good();
      plan[SHARED_CALL.op] = 0;
      plan[SHARED_CALL.takenAwayUs] = 2 ** 30;
      for (const [key, value] of Object.entries(change)) plan[SHARED_CALL[key as keyof typeof SHARED_CALL]] = value;
      return native.sharedCall(segment.words, plan, ownBytes, into as Float64Array);
    };
    expect(run({})).toBe(0);
    const far = segment.words.length;
    const refused = [
      { flagAt: -1 },
      { flagAt: far },
      { flagAt: far - 3 },
      { stride: 0 },
      { stride: far },
      { stride: 2 ** 31 - 1 },
      { stride: -1024 },
      { members: 1 },
      { members: 1000 },
      { rank: 2 },
      { rank: -1 },
      { from: -1 },
      { until: 3 },
      { bytes: -1 },
      { bytes: 5000 },
      { op: -1 },
      { op: 10 },
      { op: 4 },
      { source: 2 },
      { clearAt: far },
      { clearAt: -1 },
      { bellAt: far },
      { looks: -1 },
      { looksPerYield: 0 },
    ];
    for (const change of refused)
      expect(
        thrown(() => run(change)),
        JSON.stringify(change),
      ).toEqual(misuse);
    const inside = new Uint8Array(segment.memory, 64, 8);
    for (const [bytes, into] of [
      [new Uint8Array(7), out],
      [own, new Float64Array(2)],
      [own, new Uint8Array(7)],
      [own, {}],
      [own, null],
      [inside, out],
      [own, inside],
    ] as [Uint8Array, unknown][])
      expect(thrown(() => run({}, bytes, into))).toEqual(misuse);
    expect(thrown(() => native.sharedCall(segment.words, new Int32Array(SHARED_CALL_LENGTH - 1), own, out))).toEqual(misuse);
  });
});
