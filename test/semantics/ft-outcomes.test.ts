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
const STEPS = 8;
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
  readonly take: keyof typeof TAKES;
  /** Asked wherever somebody may die; counts on in each process. */
  dieAt(): Promise<void>;
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
      for (let left = tasks; left > 0; left--) {
        const source = await TAKES[take](comm, one);
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
    const dieAt = async (): Promise<void> => {
      // So that others come first now and then.
      if ((moment + mpi.process) % 5 === 0) await sleep(0);
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

test.each(Object.keys(TAKES) as (keyof typeof TAKES)[])(
  '%s from anybody: a successor takes what its predecessor took',
  { timeout: 60_000 },
  async (take) => {
    await play(1, 0, take);
    for (let seed = 1; seed <= 6; seed++) {
      const begun = await play(seed, 1, take);
      expect(begun.length, `seed ${seed}`).toBe(RANKS + 1);
    }
  },
);
