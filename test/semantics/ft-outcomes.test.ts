// Recorded outcomes by ranks in one process over TCP: a program whose course depends on who comes first goes on as it did, whoever of it dies.
import { expect, test } from 'vitest';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { ANY_SOURCE, ANY_TAG } from '../../src/mpi/constants.ts';
import { Prng } from '../../src/util/prng.ts';
import { type FtPart, playFtCase } from '../support/ft-worlds.ts';

const RANKS = 4;
const STEPS = 6;
const BASE: FtOptions = { recovery: 'asynchronous', domain: 'process', determinism: 'recorded', everySteps: [3] };
const TAG = { RESULT: 1, TASK: 2, CHAIN: 3 } as const;

const mix = (chain: number, source: number, value: number): number => (chain * 31 + source * 7 + value) % 1_000_003;

/** How a root takes what comes first. */
type Take = (comm: Communicator, into: Float64Array) => Promise<number>;
const TAKES: Record<'recv' | 'irecv' | 'probe' | 'mprobe' | 'object', Take> = {
  recv: async (comm, into) => (await comm.recv(into, ANY_SOURCE, TAG.RESULT)).source,
  irecv: async (comm, into) => (await comm.irecv(into, ANY_SOURCE, TAG.RESULT)).source,
  probe: async (comm, into) => {
    const { source, tag } = await comm.probe(ANY_SOURCE, ANY_TAG);
    await comm.recv(into, source, tag);
    return source;
  },
  mprobe: async (comm, into) => {
    const message = await comm.mprobe(ANY_SOURCE, TAG.RESULT);
    await message.recv(into);
    return message.status.source;
  },
  object: async (comm, into) => {
    const { data, status } = await comm.recvObject<number>(ANY_SOURCE, TAG.RESULT);
    into[0] = data;
    return status.source;
  },
};

interface Hooks {
  readonly take: keyof typeof TAKES | 'flows';
  /** Asked wherever somebody may die; counts on in each process. */
  dieAt(mayRest?: boolean): Promise<void>;
}

/**
 * One rank hands tasks to whoever asks, in each step another one. What it hands out depends on all that it took before, and in which order; each rank keeps what
 * it was told. In the end the ranks must agree on what has happened.
 */
async function farm(job: FtJob, { take, dieAt }: Hooks): Promise<string> {
  const { comm } = job;
  const { rank, size } = comm;
  const step = new Float64Array(1);
  /** By step and rank: what it was told last. */
  const told = new Float64Array(STEPS);
  const ends = new Float64Array(STEPS * size);
  job.protect('step', step);
  job.protect('told', told);
  job.protect('ends', ends);
  const one = new Float64Array(1);
  while (step[0] < STEPS) {
    const root = step[0] % size;
    const tasks = 3 * (size - 1);
    if (rank === root) {
      let chain = step[0];
      const flow = async (source: number): Promise<void> => {
        const come = new Float64Array(1);
        for (let left = 3; left > 0; left--) {
          await comm.recv(come, source, TAG.RESULT);
          chain = mix(chain, source, come[0]);
          ends[step[0] * size + source] = chain;
          const told = Float64Array.of(chain);
          // Of timers nothing is recorded.
          await dieAt(false);
          await comm.send(told, source, TAG.TASK);
        }
      };
      if (take === 'flows') await Promise.all(Array.from({ length: size }, (_, other) => (other === rank ? undefined : flow(other))));
      for (let left = take === 'flows' ? 0 : tasks; left > 0; left--) {
        const source = await TAKES[take as keyof typeof TAKES](comm, one);
        chain = mix(chain, source, one[0]);
        ends[step[0] * size + source] = chain;
        await dieAt();
        await comm.send(Float64Array.of(chain), source, TAG.TASK);
      }
      const all = Float64Array.of(chain);
      for (let other = 0; other < size; other++) if (other !== rank) await comm.send(all, other, TAG.CHAIN);
      told[step[0]] = chain;
    } else {
      let value = rank;
      for (let left = 3; left > 0; left--) {
        if (take === 'object') await comm.sendObject(value, root, TAG.RESULT);
        else await comm.send(Float64Array.of(value), root, TAG.RESULT);
        await dieAt();
        await comm.recv(one, root, TAG.TASK);
        value = one[0];
      }
      ends[step[0] * size + rank] = value;
      await comm.recv(one, root, TAG.CHAIN);
      told[step[0]] = one[0];
    }
    await dieAt();
    step[0]++;
    await job.next();
  }
  // What the roots have told, and what was heard.
  const all = new Float64Array(STEPS * size);
  await comm.allgather(told, all);
  for (let other = 0; other < size; other++) expect([...all.subarray(other * STEPS, (other + 1) * STEPS)]).toEqual([...told]);
  const rows = new Float64Array(STEPS * size * size);
  await comm.allgather(ends, rows);
  for (let at = 0; at < STEPS; at++)
    for (let other = 0; other < size; other++) {
      if (other === at % size) continue;
      expect(rows[other * STEPS * size + at * size + other]).toBe(rows[(at % size) * STEPS * size + at * size + other]);
    }
  return [...told].join(' ');
}

/** Plays it with so many deaths at moments that follow from the seed. */
async function play(seed: number, deaths: number, take: Hooks['take'], options: FtOptions = BASE): Promise<readonly number[]> {
  const prng = new Prng(seed);
  const moments = new Map<number, number>();
  for (let i = 0; moments.size < deaths; i++) {
    const process = i === 0 || prng.chance(1, 2) ? prng.below(RANKS) : RANKS + prng.below(moments.size);
    if (!moments.has(process)) moments.set(process, prng.below(process < RANKS ? 25 : 8));
  }
  const begun: number[] = [];
  const ends = new Set<string>();
  const body = async (job: FtJob, { mpi, die, sleep }: FtPart): Promise<void> => {
    begun.push(mpi.process);
    let moment = 0;
    const dieAt = async (mayRest = true): Promise<void> => {
      // So that others come first now and then.
      if (mayRest && (moment + mpi.process) % 5 === 0) await sleep(0);
      if (moment++ === moments.get(mpi.process)) await die('now');
    };
    ends.add(await farm(job, { take, dieAt }));
  };
  const one = {
    name: `a farm, seed ${seed}`,
    ranks: RANKS,
    spares: deaths,
    dying: [...moments.keys()],
    run: async (part: FtPart) => void (await run(part.mpi, options, (job) => body(job, part))),
  };
  await playFtCase(one, [tcpComponent], 'all');
  expect(ends.size).toBe(1);
  return begun;
}

test.each([...(Object.keys(TAKES) as (keyof typeof TAKES)[]), 'flows'] as const)(
  '%s: a successor takes what its predecessor took',
  { timeout: 120_000 },
  async (take) => {
    for (let seed = 1; seed <= 4; seed++) {
      const begun = await play(seed, 1, take);
      expect(begun.length, `seed ${seed}`).toBe(RANKS + 1);
    }
  },
);

test('several deaths, of successors and of those that keep what was recorded', { timeout: 120_000 }, async () => {
  for (let seed = 11; seed <= 16; seed++) await play(seed, 2 + (seed % 2), 'recv');
});

test('with nothing recorded the same farm is caught', { timeout: 120_000 }, async () => {
  const caught: string[] = [];
  for (let seed = 1; seed <= 20 && caught.length === 0; seed++)
    await play(seed, 1, 'recv', { ...BASE, determinism: 'send' }).catch((error: Error) => caught.push(error.message));
  expect(caught).toEqual([expect.stringMatching(/ERR_REPLAY: message \d+ of context \d+ to rank \d, with tag \d, has 8 bytes/)]);
});

/** Three ranks, of which rank 1 dies when it is told to. */
async function three(options: FtOptions, body: (job: FtJob, part: FtPart) => Promise<void>): Promise<void> {
  const one = {
    name: 'three ranks',
    ranks: 3,
    spares: 1,
    dying: [1],
    run: async (part: FtPart) => void (await run(part.mpi, options, (job) => body(job, part))),
  };
  await playFtCase(one, [tcpComponent], 'all');
}

test.each([undefined, 'recorded'] as const)(
  'once() of a successor has the value that the others know (determinism %s)',
  { timeout: 20_000 },
  async (determinism) => {
    const { determinism: _, ...base } = BASE;
    const made: number[] = [];
    const known = new Set<number>();
    await three(determinism === undefined ? base : { ...base, determinism }, async (job, { mpi, die, sleep }) => {
      const { comm } = job;
      const step = new Float64Array(1);
      job.protect('step', step);
      while (step[0] < 6) {
        const all = new Float64Array(3);
        const own = (): number => {
          const value = made.length + 1000 * step[0];
          made.push(value);
          return value;
        };
        await comm.allgather(Float64Array.of(job.once(`in step ${step[0]}`, own)), all);
        for (const value of all) known.add(value);
        if (mpi.process === 1 && step[0] === 4) {
          // Nothing waits for it to be safe where nothing else is recorded.
          if (determinism === undefined) await sleep(300);
          await die('now');
        }
        await comm.barrier();
        step[0]++;
        await job.next();
      }
    });
    expect(made).toHaveLength(18);
    expect([...known].sort()).toEqual([...made].sort());
  },
);

test('a value of once() that is too long to be recorded is refused', { timeout: 20_000 }, async () => {
  await playFtCase(
    {
      name: 'a long value',
      ranks: 2,
      dying: [],
      run: async ({ mpi }) =>
        void (await run(mpi, BASE, async (job) => {
          expect(() => job.once('long', () => 'x'.repeat(70_000))).toThrow(/ERR_ARG: once\('long', .* no more than 60000 can be recorded/);
          await job.comm.barrier();
        })),
    },
    [tcpComponent],
    'all',
  );
});

test('a probe that waits for a rank goes on with its successor', { timeout: 20_000 }, async () => {
  const { determinism: _, ...base } = BASE;
  await three(base, async (job, { mpi, die, sleep }) => {
    const { comm } = job;
    const one = new Float64Array(1);
    await comm.barrier();
    if (comm.rank === 1) {
      if (mpi.process === 1) {
        await sleep(50);
        await die('now');
      }
      for (const to of [0, 2]) await comm.send(Float64Array.of(7), to, 3);
    } else if (comm.rank === 0) {
      await comm.probe(1, 3);
      await comm.recv(one, 1, 3);
      expect(one[0]).toBe(7);
    } else expect((await comm.mprobe(1, 3)).status).toMatchObject({ source: 1, bytes: 8 });
  });
});

test('a program that sums up what comes from anybody may say that it sends the same in any order', { timeout: 20_000 }, async () => {
  const ends = new Set<number>();
  await three({ ...BASE, determinism: 'send' }, async (job, { mpi, die }) => {
    const { comm } = job;
    const state = new Float64Array(2);
    job.protect('state', state);
    while (state[0] < 6) {
      const one = new Float64Array(1);
      for (let other = 0; other < 3; other++)
        if (other !== comm.rank) await comm.send(Float64Array.of(state[1] + comm.rank), other, state[0]);
      let sum = state[1] + comm.rank;
      for (let left = 2; left > 0; left--) {
        // A successor finds the messages of all steps there: by their tags it knows those of this one.
        await comm.recv(one, ANY_SOURCE, state[0]);
        sum += one[0];
        if (mpi.process === 1 && state[0] === 4) await die('now');
      }
      state[1] = sum % 1009;
      await comm.barrier();
      state[0]++;
      await job.next();
    }
    ends.add(state[1]);
  });
  expect(ends.size).toBe(1);
});
