// run() when something else goes wrong, by ranks in one process over TCP: stores that refuse or are full, memory that is not enough, programs that
// go on after their communicator was revoked, that swap their arrays, or that register something else than what was saved.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { MultirailError } from '../../src/errors.ts';
import type { FtJob } from '../../src/ft/recover/job.ts';
import type { FtOptions, ProcessPlace } from '../../src/ft/recover/options.ts';
import { run } from '../../src/ft/recover/run.ts';
import { memoryStore } from '../../src/ft/store/memory-store.ts';
import type { Store } from '../../src/ft/store/store.ts';
import { DIED, type FtPart, playFtCase } from '../support/ft-worlds.ts';

const LIMIT_MS = 15_000;
const BASE: FtOptions = { everySteps: [1], saving: 'blocking', domain: 'process' };

interface Play {
  readonly options: FtOptions;
  readonly ranks?: number;
  readonly spares?: number;
  readonly dying?: readonly number[];
  readonly params?: Readonly<Record<string, string>>;
  body(job: FtJob, part: FtPart): Promise<unknown>;
}

function play({ options, ranks = 3, spares = 0, dying = [], params = {}, body }: Play): Promise<void> {
  const all = { ft_end_signal: 'none', ft_body_grace_ms: '5000', ...params };
  const one = {
    name: 'run()',
    ranks,
    spares,
    dying,
    params: all,
    run: async (part: FtPart) => void (await run(part.mpi, options, (job) => body(job, part))),
  };
  return playFtCase(one, [tcpComponent], 'all');
}

/** Steps that only count. */
async function count(job: FtJob, steps: number, atStep: (step: number) => unknown = () => undefined): Promise<void> {
  const counted = new Float64Array(8);
  job.protect('counted', counted);
  while (counted[0] < steps) {
    await job.comm.barrier();
    await atStep(counted[0]);
    counted[0]++;
    await job.next();
  }
}

/** The first so many processes die at once, whichever of them comes to it first: nobody has heard of one death without the others. */
class Deaths {
  private readonly dying: FtPart['die'][] = [];
  private readonly ends: ((reason: unknown) => void)[] = [];
  private readonly size: number;
  constructor(size: number) {
    this.size = size;
  }
  /** The program of one process, which ends with its death, wherever it waits then. */
  async play({ mpi, die }: FtPart, program: Promise<void>): Promise<void> {
    if (mpi.process >= this.size) return await program;
    this.dying.push(die);
    await Promise.race([program, new Promise((_, reject) => void this.ends.push(reject))]);
  }
  async ofAll(): Promise<void> {
    await Promise.allSettled(this.dying.splice(0).map((die) => die('now')));
    for (const end of this.ends.splice(0)) end(DIED);
  }
}

const warnings: string[] = [];
const note = (warning: Error): void => void warnings.push(warning.message);
beforeEach(() => {
  warnings.splice(0);
  process.on('warning', note);
});
afterEach(() => void process.off('warning', note));
/** Warnings are told in the next turn of the event loop. */
async function warned(): Promise<string[]> {
  await sleep(1);
  return warnings;
}

/** A store in which some writes or reads fail. */
function failing(
  store: Store,
  { put, get }: { put?: (key: string) => Error | undefined; get?: (key: string) => Error | undefined },
): Store {
  return {
    put: async (key, parts, options) => {
      const error = put?.(key);
      if (error !== undefined) throw error;
      await store.put(key, parts, options);
    },
    get: async (key, into) => {
      const error = get?.(key);
      if (error !== undefined) throw error;
      return await store.get(key, into);
    },
    list: (prefix) => store.list(prefix),
    remove: (keys) => store.remove(keys),
  };
}
const storeError = (text: string): MultirailError => new MultirailError('ERR_STORE', text);
const withStore = (store: Store): FtOptions => ({ ...BASE, levels: [{ level: 'memory' }, { level: 'store', store }], everySteps: [1, 2] });

describe('stores that fail', () => {
  test.each([
    ['a full disk', /rank-1\.mrck$/, 'ENOSPC: no space left on device'],
    ['403', /rank-0\.mrck$/, 'PUT bucket/x: 403 AccessDenied'],
    ['503 for the manifest', /COMMIT\.json$/, 'PUT bucket/x: 503 SlowDown'],
  ])(
    '%s: the save is one of memory alone, it is told, and the job goes on from an older one when it is started again',
    { timeout: LIMIT_MS },
    async (_, key, text) => {
      const store = memoryStore();
      // The second save at the store, and every one after it.
      const full = failing(store, { put: (one) => (key.test(one) && !one.includes('/0-1/') ? storeError(text) : undefined) });
      await play({ options: withStore(full), body: (job) => count(job, 6) });
      expect((await warned()).filter((one) => one.includes(text)).length).toBeGreaterThanOrEqual(2);
      expect(
        (await warned()).every((one) => /rank \d: save \d+ is not (at level store|committed at level store): ERR_STORE/.test(one)),
      ).toBe(true);
      const from: number[] = [];
      await play({
        options: withStore(store),
        body: (job) => {
          from.push(job.step);
          return count(job, 6);
        },
      });
      expect(from).toEqual([2, 2, 2]);
    },
  );

  test('a store that cannot be read ends the job: an older save would be a wrong answer', { timeout: LIMIT_MS }, async () => {
    const store = memoryStore();
    await play({ options: withStore(store), body: (job) => count(job, 4) });
    const down = failing(store, { get: (key) => (key.endsWith('rank-2.mrck') ? storeError('GET bucket/x: 503 SlowDown') : undefined) });
    await expect(play({ options: withStore(down), body: (job) => count(job, 6) })).rejects.toThrow(
      /ERR_STORE: GET bucket\/x: 503|ERR_CHECKPOINT: rank \d cannot begin: rank 2 could not read its image of save 3 of epoch 0 at level store/,
    );
  });
});

describe('programs and memory', () => {
  test('a program that goes on after its communicator was revoked is named, with what to do', { timeout: LIMIT_MS }, async () => {
    const body = async (job: FtJob, { die, mpi }: FtPart): Promise<void> => {
      if (mpi.process === 1) {
        await job.comm.barrier();
        await die('now');
      }
      for (let i = 0; i < 100; i++) {
        // It swallows what it is told, and computes on.
        await job.comm.barrier().catch(() => undefined);
        await sleep(30);
      }
    };
    const ended = play({ options: BASE, dying: [1], params: { ft_body_grace_ms: '300' }, body });
    await expect(ended).rejects.toThrow(
      /ERR_CHECKPOINT: the program of rank \d has not ended 300 ms after its communicator was revoked \(ft_body_grace_ms\): let ERR_REVOKED and ERR_PROC_FAILED out of it/,
    );
  });

  test('arrays that the program swaps come back as they were, when both are registered', { timeout: LIMIT_MS }, async () => {
    const ends: number[][] = [];
    const body = async (job: FtJob, { die, mpi }: FtPart): Promise<void> => {
      let [now, next] = [new Float64Array([1, 0]), new Float64Array(2)];
      let step = 0;
      job.protect('a', now);
      job.protect('b', next);
      job.protectValue('step', {
        save: () => step,
        restore: (value) => {
          step = value;
          if (step % 2 === 1) [now, next] = [next, now];
        },
      });
      while (step < 9) {
        await job.comm.barrier();
        if (mpi.process === 2 && step === 5) await die('now');
        next[0] = 3 * now[0] + 1;
        next[1] = now[0];
        [now, next] = [next, now];
        step++;
        await job.next();
      }
      ends.push([...now]);
    };
    await play({ options: BASE, dying: [2], spares: 1, body });
    let expected = [1, 0];
    for (let step = 0; step < 9; step++) expected = [3 * expected[0] + 1, expected[0]];
    expect(ends).toEqual([expected, expected, expected]);
  });

  test('memory that is not enough for a copy: the save is refused, and says who needs what', { timeout: LIMIT_MS }, async () => {
    const errors: MultirailError[] = [];
    const body = async (job: FtJob): Promise<void> => {
      job.protect('big', new Uint8Array(50_000));
      try {
        await job.checkpoint();
      } catch (error) {
        errors.push(error as MultirailError);
      }
    };
    // Its own image fits, and the copy of another does not.
    await play({ options: { ...BASE, everySteps: [100] }, params: { ft_memory_bytes_max: '65536' }, body });
    expect(errors.map(({ code }) => code)).toEqual(['ERR_CHECKPOINT', 'ERR_CHECKPOINT', 'ERR_CHECKPOINT']);
    // Where the copy of another comes first, it is the own image that finds no room.
    expect(errors.map(({ message }) => message).join('\n')).toMatch(
      /has no room for the copy of rank \d \(\d+ bytes, \d+ of 65536 are in use\): allow more by ft_memory_bytes_max|an image of \d+ bytes does not fit: \d+ of 65536 bytes are in use \(ft_memory_bytes_max\)/,
    );
  });

  test('a rank that comes late to a save receives before it what others have sent, however long that takes', {
    timeout: LIMIT_MS,
  }, async () => {
    const sums: number[] = [];
    const body = async (job: FtJob): Promise<void> => {
      const long = new Float64Array(100_000).fill(job.comm.rank);
      const step = new Int32Array(1);
      job.protect('long', long);
      job.protect('step', step);
      for (; step[0] < 2; step[0]++) {
        const sent = job.comm.rank === 0 ? job.comm.isend(new Float64Array(100_000).fill(7), 1, 5) : undefined;
        if (job.comm.rank === 1) {
          await sleep(300);
          await job.comm.recv(long, 0, 5);
        }
        await job.next();
        await sent;
      }
      sums.push(long.reduce((sum, value) => sum + value, 0));
    };
    await play({ options: BASE, params: { ft_quiet_ms: '20' }, body });
    expect(sums.sort()).toEqual([0, 200_000, 700_000]);
  });

  test('a program that registers something else than what was saved: nobody goes on', { timeout: LIMIT_MS }, async () => {
    const store = memoryStore();
    await play({ options: withStore(store), body: (job) => count(job, 4) });
    const errors: string[] = [];
    const other = async (job: FtJob, { mpi }: FtPart): Promise<void> => {
      try {
        // One rank has forgotten its array.
        if (mpi.rank !== 1) job.protect('counted', new Float64Array(8));
        await job.next();
      } catch (error) {
        errors.push((error as Error).message);
        throw error;
      }
    };
    await expect(play({ options: withStore(store), body: other })).rejects.toThrow(/ERR_CHECKPOINT/);
    expect(errors.sort()).toEqual([
      expect.stringMatching(/rank 1 has not registered all that the save has, and says what: nobody goes on/),
      expect.stringMatching(/rank 1 has not registered all that the save has/),
      expect.stringMatching(/rank 1: the save has "counted", which the program does not register/),
    ]);
  });

  test.each([
    { domain: ({ rank }: ProcessPlace) => (rank < 2 ? 'left rack' : 'right rack'), level: 'memory' },
    // The control: with each process a domain of its own, the copy of rank 0 lies at rank 1.
    { domain: 'process' as const, level: undefined },
  ])(
    'racks that the program names: two ranks die at once, and what is left is $level',
    { timeout: LIMIT_MS },
    async ({ domain, level }) => {
      const levels: (string | undefined)[] = [];
      const deaths = new Deaths(2);
      const body = async (job: FtJob, part: FtPart): Promise<void> => {
        if (job.recovery !== undefined) levels.push(job.recovery.level);
        const program = count(job, 6, (step) => (step === 3 ? deaths.ofAll() : undefined));
        await deaths.play(part, program);
      };
      await play({ options: { ...BASE, domain }, ranks: 4, spares: 2, dying: [0, 1], body });
      expect(new Set(levels)).toEqual(new Set([level]));
      expect(levels.length).toBeGreaterThanOrEqual(4);
    },
  );

  test.each([
    [
      'returns no name',
      () => '',
      /ERR_ARG: domain of run\(\) has not named the failure domain of rank 1: {2}was returned, expected a name/,
    ],
    [
      'throws',
      () => {
        throw new Error('no rack is known');
      },
      /ERR_ARG: domain of run\(\) has not named the failure domain of rank 1: it threw: no rack is known/,
    ],
  ])(
    'a function for domain that %s at one rank ends run() at all, and the rank is named',
    { timeout: LIMIT_MS },
    async (_, bad, expected) => {
      const domain = ({ rank }: ProcessPlace): string => (rank === 1 ? bad() : 'a rack');
      await expect(play({ options: { ...BASE, domain }, body: (job) => count(job, 2) })).rejects.toThrow(expected);
    },
  );

  test.each([true, false])(
    'both ranks that have an image die at once, and ft_standby_holds is %s: what is left',
    { timeout: LIMIT_MS },
    async (holds) => {
      const seen: unknown[] = [];
      const deaths = new Deaths(2);
      const body = async (job: FtJob, part: FtPart): Promise<void> => {
        if (job.recovery !== undefined) seen.push([job.recovery.level, job.step]);
        const program = count(job, 6, (step) => (step === 3 ? deaths.ofAll() : undefined));
        await deaths.play(part, program);
      };
      // Those that are called in have what they held.
      await play({ options: BASE, ranks: 4, spares: 2, dying: [0, 1], params: { ft_standby_holds: String(holds) }, body });
      const expected = holds ? ['standby', 3] : [undefined, 0];
      expect(seen).toEqual([expected, expected, expected, expected]);
      expect((await warned()).filter((text) => !text.endsWith(': nobody stands by'))).toEqual([]);
    },
  );

  test('nobody stands by any more: it is told once, and saves are in memory as before', { timeout: LIMIT_MS }, async () => {
    const levels: unknown[] = [];
    const body = async (job: FtJob, { die, mpi }: FtPart): Promise<void> => {
      if (job.recovery !== undefined) levels.push(job.recovery.level);
      await count(job, 8, (step) => (step === 3 && mpi.process === 0 ? die('now') : undefined));
    };
    await play({ options: BASE, spares: 1, dying: [0], params: { ft_standby_holds: 'true' }, body });
    expect(levels).toEqual(['memory', 'memory', 'memory']);
    const told = await warned();
    expect(told.filter((text) => text.includes('is not at level standby: ERR_STORE: nobody stands by'))).toHaveLength(3);
  });

  test('a value of once() comes back in the process that takes the place of a dead one', { timeout: LIMIT_MS }, async () => {
    const values = new Map<number, number[]>();
    const body = async (job: FtJob, { die, mpi }: FtPart): Promise<void> => {
      const value = job.once('seed', () => 1000 * mpi.process + Math.floor(performance.now()));
      values.set(job.comm.rank, [...(values.get(job.comm.rank) ?? []), value]);
      await count(job, 5, (step) => (mpi.process === 1 && step === 3 ? die('now') : undefined));
    };
    await play({ options: BASE, dying: [1], spares: 1, body });
    expect([...values.keys()].sort()).toEqual([0, 1, 2]);
    for (const [first, second] of values.values()) expect(second).toBe(first);
  });
});

test('nobody of the start is left, and who stands by has not met all that have their places: all leave', {
  timeout: LIMIT_MS,
}, async () => {
  const ended: number[] = [];
  await play({
    options: BASE,
    ranks: 4,
    spares: 6,
    dying: [0, 1, 2, 3],
    body: async (job, { mpi, die }) => {
      await count(job, 6, async (step) => {
        if (step <= 4 && mpi.process === step - 1) await die('now');
      });
      ended.push(mpi.process);
    },
  });
  expect(ended.sort()).toEqual([4, 5, 6, 7]);
});
