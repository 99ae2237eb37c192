// Asynchronous recovery by ranks in one process over TCP: whose programs begin again, what comes of deaths in calls in which all save, and at the
// end, and what is refused. Over shared memory: long messages, which receivers read in the log of their sender.
import { expect, onTestFinished, test } from 'vitest';
import { smComponent } from '../../src/btl/sm/component.ts';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { Saves } from '../../src/ft/recover/epoch.ts';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import { memoryStore } from '../../src/ft/store/memory-store.ts';
import type { Store } from '../../src/ft/store/store.ts';
import { ctxOf, USER } from '../../src/mpi/contexts.ts';
import type { ProcessState } from '../../src/mpi/process-state.ts';
import { loadNative } from '../../src/native/load.ts';
import { Deferred } from '../../src/util/deferred.ts';
import { Prng } from '../../src/util/prng.ts';
import { type FtPart, playFtCase } from '../support/ft-worlds.ts';

const LIMIT_MS = 20_000;
const BASE: FtOptions = { recovery: 'asynchronous', everySteps: [2], domain: 'process' };
const STEPS = 9;

interface Play {
  readonly options?: FtOptions;
  readonly spares: number;
  readonly dying: readonly number[];
  readonly params?: Readonly<Record<string, string>>;
  readonly component?: typeof tcpComponent;
  /** How a process ends whatever its program does. */
  fate?(part: FtPart): Promise<never>;
  body(job: FtJob, part: FtPart): Promise<unknown>;
}

function play({ options = BASE, spares, dying, params, component = tcpComponent, fate, body }: Play): Promise<void> {
  const one = {
    name: 'run() in place',
    ranks: 3,
    spares,
    dying,
    params: { ft_body_grace_ms: '5000', ...params },
    run: async (part: FtPart) => {
      const played = run(part.mpi, options, (job) => body(job, part));
      await (fate === undefined ? played : Promise.race([played, fate(part)]));
    },
  };
  return playFtCase(one, [component], 'all');
}

/** Sums up what all say; `atStep` comes before the step is told to the others, `atSave` before the call in which all may save. */
async function count(job: FtJob, hooks: { atStep?: (step: number) => unknown; atSave?: (step: number) => unknown }): Promise<number> {
  const sum = new Float64Array(2);
  job.protect('sum', sum);
  while (sum[0] < STEPS) {
    await hooks.atStep?.(sum[0]);
    const all = new Float64Array(1);
    await job.comm.allreduce(Float64Array.of(sum[1] + job.comm.rank + sum[0]), all);
    sum[1] = all[0] % 1_000_003;
    sum[0]++;
    await hooks.atSave?.(sum[0]);
    await job.next();
  }
  return sum[1];
}

function expected(): number {
  let sum = 0;
  for (let step = 0; step < STEPS; step++) sum = (3 * sum + 3 + 3 * step) % 1_000_003;
  return sum;
}

test.each([
  ['in a step', 'atStep', 5],
  ['before the call in which all save', 'atSave', 6],
  ['before the last call', 'atSave', STEPS],
  ['at once', 'atStep', 0],
] as const)('a rank dies %s: its successor alone begins again', { timeout: LIMIT_MS }, async (_, when, at) => {
  const begun: number[] = [];
  const ends: number[] = [];
  await play({
    spares: 1,
    dying: [1],
    body: async (job, { mpi, die }) => {
      begun.push(mpi.process);
      const end = await count(job, { [when]: async (step: number) => mpi.process === 1 && step === at && (await die('now')) });
      expect(job.replaying).toBe(false);
      ends.push(end);
    },
  });
  expect(begun.sort()).toEqual([0, 1, 2, 3]);
  expect(ends).toEqual([expected(), expected(), expected()]);
});

const { binding, reason } = loadNative();
if (binding === undefined) console.log(`skipped: long messages over shared memory: ${reason}`);

test.skipIf(binding === undefined)(
  'long messages are read in the log of their sender, by ranks that live and by a successor',
  { timeout: LIMIT_MS },
  async () => {
    const LONG_BYTES = 300_000;
    const reads: number[] = [];
    await play({
      component: smComponent,
      spares: 1,
      dying: [1],
      // What is not exported goes through the ring.
      params: { btl_sm_single_copy: 'never' },
      body: async (job, { mpi, die }) => {
        const { comm } = job;
        const [left, right] = [(comm.rank + 2) % 3, (comm.rank + 1) % 3];
        const step = new Float64Array(1);
        job.protect('step', step);
        const [out, into] = [new Uint8Array(LONG_BYTES), new Uint8Array(LONG_BYTES)];
        const isWrong = (from: number) => into.some((byte, i) => byte !== ((from + step[0] + i) & 0xff));
        let wrong = 0;
        while (step[0] < STEPS) {
          for (let i = 0; i < LONG_BYTES; i++) out[i] = comm.rank + step[0] + i;
          await comm.sendrecv(out, right, 0, into, left, 0);
          if (isWrong(left)) wrong++;
          // Between two saves, when a neighbour has what it is to send again.
          if (mpi.process === 1 && step[0] === 4) await die('now');
          step[0]++;
          await job.next();
        }
        expect(wrong).toBe(0);
        reads.push(mpi.counters().pml.gets);
      },
    });
    expect(reads.length).toBe(3);
    for (const count of reads) expect(count).toBeGreaterThan(2);
  },
);

test('a rank dies when it has voted to begin, and the decision to begin names it', { timeout: LIMIT_MS }, async () => {
  const votes = Saves.prototype as unknown as { vote(this: Saves, flag: number): void };
  const { vote } = votes;
  onTestFinished(() => void Object.assign(votes, { vote }));
  const hasVoted = new Set<number>();
  const strike = new Deferred<void>();
  votes.vote = function (flag) {
    const { rank } = this;
    const isFirst = !hasVoted.has(rank);
    hasVoted.add(rank);
    // Rank 2 votes when the others know of the death.
    if (isFirst && rank === 2) return void setTimeout(() => vote.call(this, flag), 500);
    vote.call(this, flag);
    if (isFirst && rank === 1) setTimeout(() => strike.resolve(), 100);
  };
  const ends: number[] = [];
  await play({
    spares: 1,
    dying: [1],
    fate: async ({ mpi, die }) => {
      if (mpi.process === 1) await strike.promise;
      return await (mpi.process === 1 ? die('now') : new Promise<never>(() => undefined));
    },
    body: async (job) => ends.push(await count(job, {})),
  });
  expect(ends).toEqual([expected(), expected(), expected()]);
});

test('all have agreed to go back, and another rank dies before their programs have ended', { timeout: LIMIT_MS }, async () => {
  const begun: number[] = [];
  const ends: number[] = [];
  const strike = new Deferred<void>();
  await play({
    // The log does not reach back to the last save.
    options: { ...BASE, everySteps: [100] },
    params: { ft_log_bytes_max: String(1024 * 1024) },
    spares: 2,
    dying: [1, 2],
    fate: async ({ mpi, die }) => {
      if (mpi.process === 2) await strike.promise;
      return await (mpi.process === 2 ? die('now') : new Promise<never>(() => undefined));
    },
    body: async (job, { mpi, die, sleep }) => {
      begun.push(mpi.process);
      const long = new Uint8Array(1024 * 1024);
      try {
        const end = await count(job, {
          atStep: async (step: number) => {
            await Promise.all([
              job.comm.isend(long, 1, 7),
              job.comm.rank === 1 && Promise.all([0, 1, 2].map((rank) => job.comm.recv(long, rank, 7))),
            ]);
            if (mpi.process === 1 && step === 3) await die('now');
          },
        });
        ends.push(end);
      } catch (error) {
        if (mpi.process === 0 || mpi.process === 2) {
          // The program takes its time to end, and rank 2 dies meanwhile.
          await sleep(300);
          strike.resolve();
          await sleep(700);
        }
        throw error;
      }
    },
  });
  expect(ends).toEqual([expected(), expected(), expected()]);
  expect(begun.filter((process) => process === 0).length).toBeGreaterThan(1);
});

test('all begin from the beginning again, and a rank dies before the first call in which all may save', { timeout: LIMIT_MS }, async () => {
  const ends: number[] = [];
  const begun: number[] = [];
  const both = new Deferred<void>();
  let atTheEnd = 0;
  await play({
    spares: 3,
    dying: [1, 2, 3],
    body: async (job, { mpi, die }) => {
      begun.push(mpi.process);
      const at = async (step: number): Promise<void> => {
        // They die at the same time: no copy of what rank 1 has saved is left.
        if ((mpi.process === 1 || mpi.process === 2) && step === 5) {
          if (++atTheEnd === 2) both.resolve();
          await both.promise;
          await die('now');
        }
        // When saves are due is not what it was in the run before.
        if (mpi.process === 3 && step === 0) await die('now');
      };
      ends.push(await count(job, { atStep: at }));
    },
  });
  expect(ends).toEqual([expected(), expected(), expected()]);
  expect(begun.sort()).toEqual([0, 0, 1, 2, 3, 4, 5]);
});

test('a successor reads what the others have saved', { timeout: LIMIT_MS }, async () => {
  const read: unknown[] = [];
  await play({
    spares: 1,
    dying: [1],
    body: async (job, { mpi, die }) => {
      const { recovery } = job;
      job.protectValue('name', { save: () => `rank ${job.comm.rank}`, restore: () => undefined });
      if (recovery?.save !== undefined) for (let rank = 0; rank < 3; rank++) read.push((await recovery.read(rank)).get('name'));
      await count(job, { atStep: async (step: number) => mpi.process === 1 && step === 5 && (await die('now')) });
      if (recovery?.save !== undefined)
        await expect(recovery.read(0)).rejects.toThrow(/ERR_CHECKPOINT: the image of rank 0 is not kept any more/);
    },
  });
  expect(read).toEqual(['rank 0', 'rank 1', 'rank 2']);
});

test('with saves that block the program, and a death in one of them', { timeout: LIMIT_MS }, async () => {
  const begun: number[] = [];
  const ends: number[] = [];
  await play({
    options: { ...BASE, saving: 'blocking', everySteps: [1] },
    spares: 2,
    dying: [2, 3],
    body: async (job, { mpi, die }) => {
      begun.push(mpi.process);
      const at = async (step: number): Promise<void> => {
        if ((mpi.process === 2 && step === 4) || (mpi.process === 3 && step === 6)) await die('now');
      };
      ends.push(await count(job, { atSave: at }));
    },
  });
  expect(begun.sort()).toEqual([0, 1, 2, 3, 4]);
  expect(ends).toEqual([expected(), expected(), expected()]);
});

test('a rank dies while all write a save that blocks the program: it is made again with its successor', { timeout: LIMIT_MS }, async () => {
  const store = memoryStore();
  let strike: (() => Promise<unknown>) | undefined;
  const slow: Store = {
    put: async (key, parts, options) => {
      // The others have their copies of it already, and wait for its vote.
      if (strike !== undefined && key.endsWith('rank-1.mrck')) return void (await strike());
      await store.put(key, parts, options);
    },
    get: (key, into) => store.get(key, into),
    list: (prefix) => store.list(prefix),
    remove: (keys) => store.remove(keys),
  };
  const begun: number[] = [];
  const ends: number[] = [];
  await play({
    options: { ...BASE, levels: [{ level: 'memory' }, { level: 'store', store: slow }], everySteps: [1, 2], saving: 'blocking' },
    spares: 1,
    dying: [1],
    body: async (job, { mpi, die }) => {
      begun.push(mpi.process);
      const counted = count(job, {
        atSave: (step) => {
          if (mpi.process !== 1 || step !== 4) return;
          strike = async () => {
            strike = undefined;
            await die('now').catch((reason: unknown) => died(reason));
            await new Promise(() => undefined);
          };
        },
      });
      let died: (reason: unknown) => void = () => undefined;
      const end = new Promise<never>((_, reject) => {
        died = reject;
      });
      ends.push(await Promise.race([counted, end]));
    },
  });
  expect(begun.sort()).toEqual([0, 1, 2, 3]);
  expect(ends).toEqual([expected(), expected(), expected()]);
});

test('levels in a store: the dead go back to memory, all to the store where no copy is left, and so does the job that is started again', {
  timeout: 2 * LIMIT_MS,
}, async () => {
  const store = memoryStore();
  const options: FtOptions = {
    ...BASE,
    levels: [{ level: 'memory' }, { level: 'store', store }],
    everySteps: [1, 2],
    saving: 'blocking',
  };
  const begun: string[] = [];
  const ends: number[] = [];
  const run = (dyingAt: ReadonlyMap<number, number>): Promise<void> =>
    play({
      options,
      spares: dyingAt.size,
      dying: [...dyingAt.keys()],
      body: async (job, { mpi, die }) => {
        const { recovery } = job;
        begun.push(`${job.comm.rank} from ${recovery?.save}${recovery?.save === undefined ? '' : ` in ${recovery.level}`}`);
        const end = await count(job, {
          atStep: async (step) => {
            const at = dyingAt.get(mpi.process);
            if (at !== undefined && step === at) await die('now');
            // Who dies with it is to die in the same step.
            if (dyingAt.size > 2 && step === 5) await new Promise((resolve) => setTimeout(resolve, 50));
          },
        });
        ends.push(end);
      },
    });
  await run(new Map([[1, 4]]));
  expect(begun.sort()).toEqual(['0 from undefined', '1 from 3 in memory', '1 from undefined', '2 from undefined']);
  begun.length = 0;
  // Started again: all go on from the newest save in the store, and then two die that hold each other's copies.
  await run(
    new Map([
      [0, 8],
      [1, 8],
    ]),
  );
  expect(begun.filter((text) => text.endsWith('in store')).length).toBeGreaterThanOrEqual(3);
  expect(new Set(ends)).toEqual(new Set([expected()]));
});

test('periods that are planned from times between failures: a successor saves in the steps in which the others do', {
  timeout: 2 * LIMIT_MS,
}, async () => {
  const steps: Record<number, number[]> = {};
  const one = (die: boolean, saving: 'background' | 'blocking'): Promise<void> =>
    play({
      options: { recovery: 'asynchronous', domain: 'process', mtbfSeconds: [0.03], saving },
      spares: 2,
      dying: die ? [1, 3] : [],
      body: async (job, { mpi, die: dies }) => {
        await count(job, {
          atStep: async (step) => {
            // Some are slower than others, so that they measure different things.
            await new Promise((resolve) => setTimeout(resolve, 1 + mpi.process));
            if (die && ((mpi.process === 1 && step === 4) || (mpi.process === 3 && step === 7))) await dies('now');
          },
        });
        steps[job.comm.rank] = [...job.everySteps];
      },
    });
  for (const saving of ['background', 'blocking'] as const) {
    await one(true, saving);
    expect(steps[1]).toEqual(steps[0]);
    expect(steps[2]).toEqual(steps[0]);
  }
});

test('what is not supported is refused', { timeout: LIMIT_MS }, async () => {
  const refused = (options: FtOptions) => play({ options, spares: 0, dying: [], body: async () => undefined });
  await expect(refused({ recovery: 'sometimes' as 'coordinated' })).rejects.toThrow(
    /ERR_ARG: recovery = sometimes: expected coordinated or asynchronous/,
  );
  await play({
    spares: 0,
    dying: [],
    body: async ({ comm }) => {
      await expect(comm.recv(new Float64Array(1))).rejects.toThrow(
        /ERR_SUPPORT: recovery 'asynchronous' does not support ANY_SOURCE on job/,
      );
      await expect(comm.splitType('shared')).rejects.toThrow(
        /ERR_SUPPORT: .* splitType\(\), since a successor may run on another host on job/,
      );
      const other = await comm.dup();
      await expect(other.recv(new Float64Array(1))).rejects.toThrow(/ERR_SUPPORT: .* does not support ANY_SOURCE on job.dup/);
      expect(() => comm.agreeSync(1)).toThrow(/ERR_SUPPORT: recovery 'asynchronous' does not support agree\(\)/);
    },
  });
});

test.each([
  ['another one than is in its save', 3, /ERR_REPLAY: message \d+ of context \d+ to rank \d, .* the program does not repeat itself/],
  ['none of those in its save', undefined, /ERR_REPLAY: rank 1, .* has not made again .*, by split\(0, 0\) of communicator \d+/],
] as const)('a successor that makes %s ends the job', { timeout: LIMIT_MS }, async (_, color, text) => {
  const told: unknown[] = [];
  const played = play({
    spares: 1,
    dying: [1],
    body: async (job, { mpi, die }) => {
      try {
        if (job.recovery === undefined) await job.comm.split(0);
        else if (color !== undefined) await job.comm.split(1);
        await count(job, { atStep: async (step: number) => mpi.process === 1 && step === 5 && (await die()) });
      } catch (error) {
        if (job.recovery !== undefined) told.push((error as Error).message);
        throw error;
      }
    },
  });
  await expect(played).rejects.toThrow(/ERR_REPLAY|ERR_ABORT/);
  expect(told).toEqual([expect.stringMatching(text)]);
});

const RANKS = 4;
const RING_STEPS = 12;
const VALUES = 2000;

/** A ring of short and long messages, with sums now and then, and with other communicators. `dieAt` is asked in the midst of each step, at its end, and behind its save. */
async function ring(job: FtJob, hasOthers: boolean, dieAt: (moment: number) => Promise<void>): Promise<string> {
  const { comm } = job;
  const { rank, size } = comm;
  const values = new Float64Array(VALUES).fill(rank + 1);
  const step = new Int32Array(1);
  job.protect('values', values);
  job.protect('step', step);
  const half = hasOthers ? ((await comm.split(rank % 2)) as typeof comm) : undefined;
  while (step[0] < RING_STEPS) {
    const come = new Float64Array(VALUES);
    const receive = comm.irecv(come, (rank + size - 1) % size, 1);
    await comm.send(values.subarray(0, step[0] % 2 === 1 ? 10 : VALUES), (rank + 1) % size, 1);
    await dieAt(3 * step[0]);
    await receive;
    for (let i = 0; i < VALUES; i++) values[i] = (values[i] * 3 + come[i] + step[0]) % 1009;
    const sum = new Float64Array(1);
    if (step[0] % 2 === 0) await comm.allreduce(values.subarray(5, 6), sum);
    values[0] += sum[0] % 7;
    if (half !== undefined) {
      await half.sendrecv(values.subarray(0, 1), 1 - half.rank, 1, sum, 1 - half.rank, 1);
      const made = step[0] % 3 === 0 ? await half.dup() : undefined;
      await made?.sendrecv(values.subarray(1, 2), 1 - half.rank, 1, values.subarray(2, 3), 1 - half.rank, 1);
      await made?.free();
      values[1] += sum[0];
    }
    await dieAt(3 * step[0] + 1);
    step[0]++;
    await job.next();
    await dieAt(3 * step[0] - 1);
  }
  return `${rank}: ${values.reduce((all, value) => (all * 31 + value) % 1_000_000_007, 0)}`;
}

/** Ends of the ranks, with so many deaths at moments that follow from the seed; the first two are of ranks of the start. */
async function ends(seed: number, deaths: number, hasOthers: boolean): Promise<string> {
  const prng = new Prng(seed);
  const moments = new Map<number, number>();
  for (let i = 0; i < deaths; i++) {
    const process = i < 2 || prng.chance(1, 2) ? prng.below(RANKS) : RANKS + prng.below(deaths);
    if (!moments.has(process)) moments.set(process, prng.below(3 * RING_STEPS));
  }
  const periods: FtOptions = prng.chance(1, 2) ? { mtbfSeconds: [0.02] } : { everySteps: [prng.between(1, 5)] };
  const { everySteps: _, ...base } = BASE;
  const options: FtOptions = { ...base, ...periods, saving: prng.pick(['blocking', 'background']), duplication: 2 };
  const found = new Set<string>();
  const program = async (job: FtJob, { mpi, die }: FtPart): Promise<void> => {
    const dieAt = async (moment: number): Promise<void> => {
      if (moment >= (moments.get(mpi.process) ?? Number.POSITIVE_INFINITY)) await die('now');
    };
    found.add(await ring(job, hasOthers, dieAt));
  };
  const one = {
    name: `run() in place, seed ${seed}`,
    ranks: RANKS,
    spares: deaths,
    dying: [...moments.keys()],
    params: { pml_eager_limit_bytes: '4096' },
    run: async (part: FtPart) => void (await run(part.mpi, options, (job) => program(job, part))),
  };
  await playFtCase(one, [tcpComponent], 'all');
  return [...found].sort().join(', ');
}

test.each([
  ['', false],
  [', with communicators that are made and freed', true],
])('deaths at random moments, of successors too: the same end%s', { timeout: 60_000 }, async (_, hasOthers) => {
  const still = await ends(1, 0, hasOthers);
  expect(still.split(', ')).toHaveLength(RANKS);
  for (let seed = 1; seed <= 8; seed++) expect(await ends(seed, 1 + (seed % 4), hasOthers), `seed ${seed}`).toBe(still);
});

test('a long message that was copied into the log is on its way when its send returns', { timeout: LIMIT_MS }, async () => {
  const left: boolean[] = [];
  await play({
    spares: 0,
    dying: [],
    body: async ({ comm }, { mpi }) => {
      await comm.barrier();
      if (comm.rank === 0) {
        const { pml } = (mpi.world as unknown as { proc: ProcessState }).proc.engine;
        const buffer = new Uint8Array(200_000).fill(1);
        const request = comm.isend(buffer, 1, 5);
        buffer.fill(2);
        left.push(
          [...pml.peer(comm.group.worldRanks[1]).sends].some(({ ctx, firstSent }) => ctx === ctxOf(comm.contextId, USER) && firstSent),
        );
        await request.promise();
      } else if (comm.rank === 1) {
        const into = new Uint8Array(200_000);
        await comm.recv(into, 0, 5);
        left.push(into.every((byte) => byte === 1));
      }
      await comm.barrier();
    },
  });
  expect(left).toEqual([true, true]);
});
