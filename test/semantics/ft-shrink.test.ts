// run() with fewer ranks than have saved, by ranks in one process over TCP: who is left reads what any rank has saved, the dead included, from
// the memory of others or from a store, also when a holder dies in the middle of it. What is read is compared byte by byte.
import { afterEach, describe, expect, test } from 'vitest';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { MultirailError } from '../../src/errors.ts';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import { memoryStore } from '../../src/ft/store/memory-store.ts';
import { type FtPart, playFtCase } from '../support/ft-worlds.ts';

const LIMIT_MS = 15_000;
const PARAMS = { ft_end_signal: 'none', ft_body_grace_ms: '5000' };
const NUMBERS = 5000;
const STEPS = 12;

/** What a rank of the saved world has in that step. */
const numbersOf = (rank: number, size: number, step: number): Float64Array =>
  Float64Array.from({ length: NUMBERS + 100 * rank }, (_, i) => 1000 * step + 10 * rank + size + i / 7);

interface Told {
  readonly rank: number;
  readonly size: number;
  readonly savedSize: number | undefined;
  readonly isRegrouped: boolean;
  readonly level: string | undefined;
  readonly failed: readonly number[];
  readonly step: number;
}
const told: Told[] = [];
afterEach(() => void told.splice(0));

/** Reads all that was saved, and compares it with what its rank had in that step. */
async function readAll({ recovery, step }: FtJob): Promise<void> {
  const { savedSize } = recovery as NonNullable<FtJob['recovery']>;
  const all = await Promise.all(Array.from({ length: savedSize as number }, (_, rank) => recovery?.read(rank)));
  for (const [rank, saved] of all.entries()) {
    expect([...(saved?.keys() ?? [])]).toEqual(['numbers', 'note']);
    expect(saved?.get('note')).toEqual({ rank, step });
    const numbers = saved?.get('numbers') as Float64Array;
    expect(
      Buffer.compare(
        Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength),
        Buffer.from(numbersOf(rank, savedSize as number, step).buffer),
      ),
    ).toBe(0);
  }
}

/** A program that is the same whatever the number of ranks; `strike` is asked in every step, before the step ends. */
const program =
  ({ die }: FtPart, strike: (job: FtJob) => Promise<unknown> | undefined, steps: number, begun: (job: FtJob) => Promise<void> = readAll) =>
  async (job: FtJob): Promise<string> => {
    const { comm, recovery } = job;
    const { rank, size } = comm;
    const restored = new Float64Array(NUMBERS + 100 * rank);
    job.protect('numbers', restored);
    job.protectValue('note', { save: () => ({ rank, step: job.step }), restore: () => undefined });
    if (recovery !== undefined) {
      const { savedSize, isRegrouped, level, failed } = recovery;
      told.push({ rank, size, savedSize, isRegrouped, level, failed, step: job.step });
      // Where other ranks have saved, nothing is restored by itself.
      expect(restored).toEqual(
        isRegrouped || savedSize === undefined ? new Float64Array(restored.length) : numbersOf(rank, size, job.step),
      );
      if (savedSize !== undefined) await begun(job);
    }
    while (job.step < steps) {
      restored.set(numbersOf(rank, size, job.step + 1));
      await comm.barrier();
      if (strike(job) !== undefined) await die('now');
      await job.next();
    }
    return `${rank} of ${size}`;
  };

function play(
  ranks: number,
  options: FtOptions,
  dying: readonly number[],
  strike: (job: FtJob, process: number) => unknown,
  more: { spares?: number; steps?: number; begun?: (job: FtJob) => Promise<void>; ends?: string[] } = {},
): Promise<void> {
  const { spares = 0, steps = STEPS, begun, ends = [] } = more;
  return playFtCase(
    {
      name: 'run()',
      ranks,
      spares,
      dying,
      params: PARAMS,
      async run(part) {
        const die = (job: FtJob) => (strike(job, part.mpi.process) ? Promise.resolve() : undefined);
        ends.push(await run(part.mpi, options, program(part, die, steps, begun)));
      },
    },
    [tcpComponent],
    'all',
  );
}

const SHRINK: FtOptions = { everySteps: [2], whenNoSpares: 'shrink', saving: 'blocking', domain: 'process' };

describe('run() with fewer ranks', () => {
  test('nobody stands by: who is left reads what all four have saved, and saves as three', { timeout: LIMIT_MS }, async () => {
    const ends: string[] = [];
    await play(4, SHRINK, [1], (job, process) => process === 1 && job.step === 4, { ends });
    expect(ends.sort()).toEqual(['0 of 3', '1 of 3', '2 of 3']);
    expect(told).toHaveLength(3);
    for (const one of told) expect(one).toMatchObject({ size: 3, savedSize: 4, isRegrouped: true, level: 'memory', failed: [1], step: 4 });
  });

  test('a further death before the first save of the fewer, and then one after it', { timeout: LIMIT_MS }, async () => {
    const ends: string[] = [];
    const strike = ({ comm, step }: FtJob, process: number) =>
      (process === 1 && step === 4) || (process === 2 && comm.size === 4 && step === 4) || (process === 0 && comm.size === 3 && step === 9);
    await play(5, SHRINK, [0, 1, 2], strike, { ends });
    expect(ends.sort()).toEqual(['0 of 2', '1 of 2']);
    const by = (size: number) => told.filter((one) => one.size === size);
    // Ranks 1 and 2 may fall in one recovery or in two.
    for (const one of told.filter(({ size }) => size >= 3)) expect(one).toMatchObject({ savedSize: 5, isRegrouped: true, step: 4 });
    expect(by(2)).toHaveLength(2);
    for (const one of by(2)) expect(one).toMatchObject({ savedSize: 3, isRegrouped: true, step: 8 });
  });

  test('a holder dies in the middle of reading: an error, and then it is read from another', { timeout: LIMIT_MS }, async () => {
    const errors: unknown[] = [];
    const ends: string[] = [];
    await playFtCase(
      {
        name: 'run()',
        ranks: 4,
        dying: [1, 2],
        params: PARAMS,
        async run(part) {
          const { mpi, die } = part;
          const begun = async (job: FtJob): Promise<void> => {
            const { comm, recovery } = job;
            if (comm.size !== 3) return readAll(job);
            // Process 2 has the image of the dead one, and dies when it has been asked for it.
            if (mpi.process === 2) {
              await comm.recv(new Uint8Array(1), 0, 5);
              await die('now');
            }
            if (mpi.process !== 0) return;
            const reading = recovery?.read(1);
            await comm.send(new Uint8Array(1), 1, 5);
            try {
              await reading;
              // It came before the death did: the next is asked of a dead one.
              await recovery?.read(2);
            } catch (error) {
              errors.push(error);
              throw error;
            }
          };
          const strike = (job: FtJob) => (mpi.process === 1 && job.step === 4 ? Promise.resolve() : undefined);
          ends.push(await run(mpi, SHRINK, program(part, strike, STEPS, begun)));
        },
      },
      [tcpComponent],
      'all',
    );
    expect(ends.sort()).toEqual(['0 of 2', '1 of 2']);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(MultirailError);
    expect((errors[0] as MultirailError).code).toMatch(/^ERR_(PROC_FAILED|REVOKED)$/);
    for (const one of told.filter(({ size }) => size === 2)) expect(one).toMatchObject({ savedSize: 4, isRegrouped: true, step: 4 });
  });

  test('one stands by for two: it takes a place, and reads like the others', { timeout: LIMIT_MS }, async () => {
    const ends: string[] = [];
    const strike = ({ comm, step }: FtJob, process: number) => comm.size === 4 && (process === 1 || process === 3) && step === 5;
    await play(4, { ...SHRINK, duplication: 2 }, [1, 3], strike, { ends, spares: 1 });
    expect(ends.sort()).toEqual(['0 of 3', '1 of 3', '2 of 3']);
    const last = told.filter(({ size }) => size === 3);
    expect(last).toHaveLength(3);
    for (const one of last) expect(one).toMatchObject({ savedSize: 4, isRegrouped: true, step: 4 });
  });

  test('a death before all have met for the first time: the others begin with other ranks', { timeout: LIMIT_MS }, async () => {
    const ends: string[] = [];
    await playFtCase(
      {
        name: 'run()',
        ranks: 4,
        dying: [0],
        params: PARAMS,
        async run(part) {
          if (part.mpi.process === 0) await part.die('now');
          ends.push(
            await run(
              part.mpi,
              SHRINK,
              program(part, () => undefined, STEPS),
            ),
          );
        },
      },
      [tcpComponent],
      'all',
    );
    expect(ends.sort()).toEqual(['0 of 3', '1 of 3', '2 of 3']);
    for (const one of told) expect(one).toMatchObject({ savedSize: undefined, isRegrouped: false, step: 0 });
  });

  test('one rank alone goes on', { timeout: LIMIT_MS }, async () => {
    const ends: string[] = [];
    await play(2, SHRINK, [0], (job, process) => process === 0 && job.step === 4, { ends });
    expect(ends).toEqual(['0 of 1']);
    expect(told).toEqual([{ rank: 0, size: 1, savedSize: 2, isRegrouped: true, level: 'memory', failed: [0], step: 4 }]);
  });

  test('no copy is left in memory: it comes from the store', { timeout: LIMIT_MS }, async () => {
    const store = memoryStore();
    const options: FtOptions = { ...SHRINK, duplication: 0, levels: [{ level: 'memory' }, { level: 'store', store }], everySteps: [2, 4] };
    await play(3, options, [2], (job, process) => process === 2 && job.step === 6);
    expect(told).toHaveLength(2);
    for (const one of told) expect(one).toMatchObject({ size: 2, savedSize: 3, isRegrouped: true, level: 'store', step: 4 });
  });

  test('no save at all: from the beginning, or ERR_CHECKPOINT, as whenNoSave has it', { timeout: LIMIT_MS }, async () => {
    const options: FtOptions = { ...SHRINK, duplication: 0 };
    const ends: string[] = [];
    await play(3, options, [2], (job, process) => process === 2 && job.step === 5, { ends });
    expect(ends.sort()).toEqual(['0 of 2', '1 of 2']);
    for (const one of told) expect(one).toMatchObject({ savedSize: undefined, isRegrouped: false, level: undefined, step: 0 });
    const failing = play(3, { ...options, whenNoSave: 'fail' }, [2], (job, process) => process === 2 && job.step === 5);
    await expect(failing).rejects.toThrow(/ERR_CHECKPOINT: rank \d: no save is left/);
  });

  test('a job is started again with fewer ranks, and with more; without the option it is told', { timeout: LIMIT_MS }, async () => {
    const store = memoryStore();
    const options: FtOptions = { ...SHRINK, levels: [{ level: 'memory' }, { level: 'store', store }], everySteps: [2, 4] };
    await play(4, options, [], () => false, { steps: 8 });
    await expect(play(3, { ...options, whenNoSpares: 'fail' }, [], () => false)).rejects.toThrow(
      /ERR_CHECKPOINT: save \d+ of epoch 0 of job "job" was made by 4 ranks, and there are 3: start as many/,
    );
    for (const [ranks, saved, steps] of [
      [3, 4, 12],
      [5, 3, 16],
    ]) {
      told.splice(0);
      await play(ranks, options, [], () => false, { steps });
      expect(told).toHaveLength(ranks);
      for (const one of told)
        expect(one).toMatchObject({ size: ranks, savedSize: saved, isRegrouped: true, level: 'store', step: steps - 4 });
    }
  });

  test('a rank that was not there, and a save that newer ones have replaced, are told', { timeout: LIMIT_MS }, async () => {
    const codes: string[] = [];
    const codeOf = async (reading: Promise<unknown> | undefined): Promise<void> => {
      try {
        await reading;
        codes.push('none');
      } catch (error) {
        codes.push((error as MultirailError).code);
      }
    };
    await playFtCase(
      {
        name: 'run()',
        ranks: 3,
        dying: [1],
        params: PARAMS,
        async run(part) {
          const { mpi, die } = part;
          await run(mpi, SHRINK, async (job) => {
            const numbers = new Float64Array(4);
            job.protect('numbers', numbers);
            const { recovery } = job;
            if (recovery !== undefined && job.comm.rank === 0) {
              await codeOf(recovery.read(3));
              await codeOf(recovery.read(-1));
              await codeOf(recovery.read(2));
            }
            while (job.step < STEPS) {
              await job.comm.barrier();
              if (mpi.process === 1 && job.step === 5) await die('now');
              await job.next();
            }
            if (recovery !== undefined && job.comm.rank === 0) for (const rank of [0, 1, 2]) await codeOf(recovery.read(rank));
          });
        },
      },
      [tcpComponent],
      'all',
    );
    expect(codes).toEqual(['ERR_RANK', 'ERR_RANK', 'none', 'ERR_CHECKPOINT', 'ERR_CHECKPOINT', 'ERR_CHECKPOINT']);
  });

  test('any rank may read where nobody was left out, too', { timeout: LIMIT_MS }, async () => {
    await play(3, SHRINK, [2], (job, process) => process === 2 && job.step === 5, { spares: 1 });
    expect(told).toHaveLength(3);
    for (const one of told) expect(one).toMatchObject({ size: 3, savedSize: 3, isRegrouped: false, level: 'memory', failed: [2], step: 4 });
  });
});
