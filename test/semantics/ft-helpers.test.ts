// Helpers under asynchronous recovery, by ranks in one process over TCP: processes that stand by repeat with a successor what its predecessor did,
// and stand by again. Whoever of them dies, or is called in meanwhile, the result is the same.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import type { Communicator } from '../../src/mpi/communicator.ts';
import { Prng } from '../../src/util/prng.ts';
import { type FtPart, playFtCase } from '../support/ft-worlds.ts';

const LIMIT_MS = 30_000;
const RANKS = 3;
const STEPS = 12;
const VALUES = 60;
const MODULUS = 1009;

/** What a step does with one value. */
const worked = (value: number, step: number): number => (value * 7 + step) % MODULUS;

interface Hooks {
  /** Of whoever's program is called, a helper's too. */
  readonly atCall?: (part: FtPart) => Promise<unknown>;
  /** Of a rank of the job, in each step. */
  readonly atStep?: (part: FtPart, step: number) => Promise<unknown>;
  /** Of a helper, for each piece of work; of its successor, likewise. */
  readonly atHelp?: (part: FtPart, count: number) => Promise<unknown>;
  readonly atShare?: (part: FtPart, count: number) => Promise<unknown>;
  /** For so long at most a successor waits for its team, before the first step that it repeats. */
  readonly teamWaitMs?: number;
}

class Told {
  readonly strikes = new Map<number, () => Promise<void>>();
  readonly begun: number[] = [];
  readonly ends: number[] = [];
  /** Pieces of work by process. */
  readonly helped = new Map<number, number>();
  /** Sizes of teams, in each step that was repeated. */
  readonly teams: number[] = [];
}

/** Half of the values are the helper's, as they are at the successor now. */
async function share(team: Communicator, values: Float64Array, step: number): Promise<Float64Array> {
  const half = values.length / team.size;
  const next = values.slice();
  for (let helper = 1; helper < team.size; helper++) {
    await team.send(Float64Array.of(step), helper, 10);
    await team.send(values.subarray(helper * half, (helper + 1) * half), helper, 11);
  }
  for (let at = 0; at < half; at++) next[at] = worked(values[at], step);
  for (let helper = 1; helper < team.size; helper++) await team.recv(next.subarray(helper * half, (helper + 1) * half), helper, 12);
  return next;
}

async function program(job: FtJob, part: FtPart, told: Told, { atCall, atStep, atHelp, atShare, teamWaitMs = 1000 }: Hooks): Promise<void> {
  const { comm } = job;
  const { process } = part.mpi;
  const kept = new Float64Array(VALUES);
  const step = new Int32Array(1);
  kept.fill(comm.rank + 1);
  job.protect('values', kept);
  job.protect('step', step);
  let values: Float64Array = kept.slice();
  await atCall?.(part);
  job.onHelp(async (team) => {
    for (;;) {
      const of = new Float64Array(1);
      await team.recv(of, 0, 10);
      const piece = new Float64Array(VALUES / team.size);
      await team.recv(piece, 0, 11);
      told.helped.set(process, (told.helped.get(process) ?? 0) + 1);
      await atHelp?.(part, told.helped.get(process) as number);
      for (let at = 0; at < piece.length; at++) piece[at] = worked(piece[at], of[0]);
      await team.send(piece, 0, 12);
    }
  });
  told.begun.push(process);
  let shared = 0;
  for (let waitedMs = 0; job.replaying && job.team.size === 1 && waitedMs < teamWaitMs; waitedMs++) await sleep(1);
  while (step[0] < STEPS) {
    await atStep?.(part, step[0]);
    if (job.replaying) told.teams.push(job.team.size);
    let next: Float64Array | undefined;
    if (job.replaying && job.team.size > 1) {
      await atShare?.(part, ++shared);
      try {
        next = await share(job.team, values, step[0]);
      } catch (error) {
        if (job.team.size > 1) throw error;
      }
    }
    values = next ?? values.map((value) => worked(value, step[0]));
    const sum = new Float64Array(1);
    await comm.allreduce(Float64Array.of(values.reduce((all, value) => all + value, 0)), sum);
    values[0] = (values[0] + sum[0]) % MODULUS;
    kept.set(values);
    step[0]++;
    await job.next();
  }
  told.ends.push(values.reduce((all, value) => (all * 31 + value) % 1_000_003, comm.rank));
}

async function play(spares: number, dying: readonly number[], given: Hooks | ((told: Told) => Hooks), more: FtOptions = {}): Promise<Told> {
  const told = new Told();
  const hooks = typeof given === 'function' ? given : () => given;
  const options: FtOptions = { recovery: 'asynchronous', everySteps: [100], domain: 'process', helpers: 1, ...more };
  const one = {
    name: 'run() with helpers',
    ranks: RANKS,
    spares,
    dying,
    params: { ft_body_grace_ms: '5000', ft_end_signal: 'none' },
    run: async (part: FtPart) => {
      // Whoever dies by another one's doing ends wherever it waits then.
      const struck = new Promise<never>((_, reject) => {
        told.strikes.set(part.mpi.process, () => part.die('now').catch((reason: unknown) => reject(reason)));
      });
      struck.catch(() => undefined);
      await Promise.race([run(part.mpi, options, (job) => program(job, part, told, hooks(told))), struck]);
    },
  };
  await playFtCase(one, [tcpComponent], 'all');
  told.ends.sort();
  return told;
}

const still = (await play(0, [], {})).ends;
const dies =
  (...deaths: readonly (readonly [process: number, at: number])[]) =>
  async ({ mpi, die }: FtPart, at: number): Promise<void> => {
    if (deaths.some(([process, when]) => process === mpi.process && when === at)) await die('now');
  };

test('a helper repeats with the successor, and stands by again', { timeout: LIMIT_MS }, async () => {
  const told = await play(2, [1], { atStep: dies([1, 8]) });
  expect(told.ends).toEqual(still);
  expect(told.begun.sort()).toEqual([0, 1, 2, 3]);
  expect(told.teams[0]).toBe(2);
  expect(told.helped.get(4)).toBeGreaterThan(3);
});

test('with nobody left to help, the successor is alone', { timeout: LIMIT_MS }, async () => {
  const told = await play(1, [1], { atStep: dies([1, 8]), teamWaitMs: 20 });
  expect(told.ends).toEqual(still);
  expect([told.helped.size, new Set(told.teams)]).toEqual([0, new Set([1])]);
});

test('the successor does not wait for a helper whose program has not come so far', { timeout: LIMIT_MS }, async () => {
  let isCalled = false;
  let mayHelp = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    mayHelp = resolve;
  });
  const told = await play(2, [1], {
    atStep: async (part, step) => {
      await dies([1, 8])(part, step);
      if (part.mpi.process !== 3) return;
      // A step of the repetition, and the last one, which the helper is too late for.
      if (step === 4) while (!isCalled) await sleep(1);
      if (step === STEPS - 1) mayHelp();
    },
    atCall: async ({ mpi }) => {
      if (mpi.process !== 4) return;
      isCalled = true;
      await held;
    },
    teamWaitMs: 0,
  });
  expect(told.ends).toEqual(still);
  expect(new Set(told.teams)).toEqual(new Set([1]));
  expect(told.helped.size).toBe(0);
});

test('a helper dies: the successor goes on alone', { timeout: LIMIT_MS }, async () => {
  const told = await play(2, [1, 4], { atStep: dies([1, 8]), atHelp: dies([4, 3]) });
  expect(told.ends).toEqual(still);
  expect([told.teams[0], told.teams.at(-1)]).toEqual([2, 1]);
});

test('the successor dies while it is helped: another one takes its place, and the helper helps that, or does so itself', {
  timeout: LIMIT_MS,
}, async () => {
  for (const spares of [2, 3]) {
    const told = await play(spares, [1, 3], { atStep: dies([1, 8]), atShare: dies([3, 3]) });
    expect(told.ends).toEqual(still);
    // Lowest number first: the helper has the place where nobody else is left, and else it helps once more.
    expect(told.begun.sort()).toEqual([0, 1, 2, 3, 4]);
    expect([...told.helped.keys()]).toEqual([spares === 2 ? 4 : 5]);
    expect(told.helped.get(spares === 2 ? 4 : 5)).toBeGreaterThan(spares === 2 ? 1 : 5);
  }
});

test('a helper is called in for another rank: the successor goes on alone, and both are right', { timeout: LIMIT_MS }, async () => {
  // The second one dies when the helper has done two pieces.
  const told = await play(2, [1, 2], ({ strikes }) => ({
    atStep: dies([1, 8]),
    atHelp: async (_, count) => {
      if (count !== 2) return;
      await strikes.get(2)?.();
      // Its successor waits for it, and it is called in meanwhile.
      await sleep(300);
    },
  }));
  expect(told.ends).toEqual(still);
  expect(told.begun.sort()).toEqual([0, 1, 2, 3, 4]);
  expect(told.teams[0]).toBe(2);
  expect(told.helped.get(4)).toBe(2);
});

test('the job ends while a process helps: it ends with it', { timeout: LIMIT_MS }, async () => {
  // The program of the helper does not look at the team any more.
  const told = await play(2, [1], { atStep: dies([1, STEPS - 1]), atHelp: async (_, count) => count === 2 && (await sleep(300)) });
  expect(told.ends).toEqual(still);
  expect(told.helped.get(4)).toBeGreaterThan(1);
});

test('deaths at random moments, of ranks, successors and helpers: the same end', { timeout: 120_000 }, async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const prng = new Prng(`helpers ${seed}`);
    const deaths = prng.between(1, 4);
    const moments = new Map<number, number>();
    // Not all that have the places at first.
    for (let i = 0; i < deaths; i++) moments.set(i < 2 ? prng.below(RANKS) : prng.between(RANKS, RANKS + 3), prng.between(1, STEPS - 1));
    const fallen = new Set<number>();
    const die = async ({ mpi, die: now }: FtPart, at: number): Promise<void> => {
      if (at < (moments.get(mpi.process) ?? Number.POSITIVE_INFINITY)) return;
      fallen.add(mpi.process);
      await now('now');
    };
    // Whoever is never called dies of nothing, and whoever only helps, of that.
    const more: FtOptions = { helpers: prng.between(1, 2), everySteps: [prng.pick([3, 100])], duplication: 2 };
    const told = await play(6, [], { atStep: die, atHelp: die, teamWaitMs: 50 }, more);
    expect(told.ends, `seed ${seed}`).toEqual(still);
    expect(fallen.size).toBeGreaterThan(0);
  }
});

test('what makes no sense is refused', { timeout: LIMIT_MS }, async () => {
  await expect(play(0, [], {}, { helpers: 9 })).rejects.toThrow(/ERR_ARG: helpers = 9: expected a whole number from 0 to 8/);
  await expect(play(0, [], {}, { recovery: 'coordinated' })).rejects.toThrow(/ERR_ARG: helpers = 1 with recovery 'coordinated'/);
});
