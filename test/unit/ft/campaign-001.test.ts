// The campaign and the table of paper 001: which fault strikes when, how what becomes of it is classed, and what the verdict is; and how far a
// job of replicas goes back along saves any of which may hold the fault.
import { expect, test } from 'vitest';
import { nextTry } from '../../../src/ft/recover/paired-line.ts';
import { parseFaults } from '../../../src/mpi/replica/inject.ts';
import {
  campaign001,
  classOf,
  controlOf,
  type FaultEnd,
  type FaultPlayed,
  faultRuns,
  injectText,
  isCorrected,
} from '../../../tools/ft/campaign-001.ts';
import { TABLE_STEPS, type TableJob, type TablePlayed, table001, tableJobs } from '../../../tools/ft/table-001.ts';

const ended = (more: Partial<FaultEnd> = {}): FaultEnd => ({ exitCode: 0, isStuck: false, isRight: true, said: '', ...more });
const diverged = (text: string): FaultEnd =>
  ended({ exitCode: 76, isRight: undefined, said: `[1] ERR_DIVERGED: the replicas of rank 1 (processes 1 and 5) ${text}\n` });

test('faults follow from the seed, and are what --inject takes', () => {
  const runs = faultRuns({ faults: 500, seed: 1 });
  expect(faultRuns({ faults: 500, seed: 1 })).toEqual(runs);
  expect(faultRuns({ faults: 500, seed: 2 })).not.toEqual(runs);
  for (const run of runs) {
    const [paired] = parseFaults(injectText(run, true));
    const [single] = parseFaults(injectText(run, false));
    expect(paired).toMatchObject({ kind: run.kind, rank: run.rank, replica: run.replica, buffer: run.buffer });
    expect(paired.at).toBeCloseTo(run.at);
    expect(single).toEqual({ ...paired, replica: 'lead' });
  }
  for (const what of ['A', 'B', 'C', 'index', 'result']) expect(runs.filter(({ buffer }) => buffer === what).length).toBeGreaterThan(20);
  for (const kind of ['stall', 'exit']) expect(runs.filter((run) => run.kind === kind).length).toBeGreaterThan(15);
  expect(() => faultRuns({ faults: 0, seed: 1 })).toThrow('--faults 0');
});

test('what becomes of a fault has its class', () => {
  expect(classOf(ended())).toBe('LE');
  expect(classOf(ended({ isRight: false }))).toBeUndefined();
  expect(classOf(ended({ isRight: undefined }))).toBeUndefined();
  expect(classOf(ended({ isStuck: true, exitCode: 1 }))).toBeUndefined();
  expect(classOf(diverged('differ: message 3, of 800 bytes to rank 0 with tag 1, differs, first at byte 9'))).toBe('TDC');
  expect(classOf(diverged('differ: message 9, a result of 73728 bytes, differs, first at byte 9'))).toBe('FSC');
  expect(classOf(diverged('differ: the shadow is late: it has used 1.02 s of a processor'))).toBe('TOE');
  expect(classOf(ended({ exitCode: 76, said: 'no reason' }))).toBeUndefined();
  expect(classOf(ended({ exitCode: 9 }))).toBe('DUE');
  expect([ended(), ended({ isRight: false }), ended({ exitCode: 1 }), ended({ isStuck: true })].map(controlOf)).toEqual([
    'right',
    'wrong',
    'error',
    'stuck',
  ]);
});

/** A hundred faults of which all classes and enough wrong products come. */
function good(): FaultPlayed[] {
  const ends = [
    ended(),
    diverged('differ: message 3, of 8 bytes to rank 0'),
    diverged('differ: message 3, a result of 8 bytes'),
    diverged('differ: the lead is late: it has used'),
    ended({ exitCode: 9, isRight: undefined }),
  ];
  return faultRuns({ faults: 100, seed: 1 }).map((fault, i) => ({ fault, paired: ends[i % 5], single: ended({ isRight: i % 3 !== 0 }) }));
}

test('a wrong product by pairs, faults that are too harmless, and a class that is missing are problems', () => {
  const input = { faults: 100, seed: 1 };
  const { problems, lines } = campaign001(input, good());
  expect(problems).toEqual([]);
  expect(lines.at(-1)).toBe(
    'With replicas: 20 LE, 20 TDC, 20 FSC, 20 TOE, 20 DUE; wrong products: 0 (0.0 %). Without: 66 right, 34 wrong, 0 error, 0 stuck; wrong products: 34 (34.0 %).',
  );
  const wrong = good().map((one, i) => (i === 0 ? { ...one, paired: ended({ isRight: false }) } : one));
  expect(campaign001(input, wrong).problems).toEqual([expect.stringContaining('the job by pairs ends well, and its product is wrong')]);
  const stuck = good().map((one, i) => (i === 0 ? { ...one, paired: ended({ isStuck: true }) } : one));
  expect(campaign001(input, stuck).problems).toEqual([expect.stringContaining('has come to no end')]);
  const harmless = good().map((one) => ({ ...one, single: ended() }));
  expect(campaign001(input, harmless).problems).toEqual([expect.stringContaining('the faults are too harmless')]);
  const latent = good().map((one) => ({ ...one, paired: ended() }));
  expect(campaign001(input, latent).problems.length).toBe(4);
});

test('by three replicas a fault that was seen is corrected where the job has come to its right end', () => {
  const text = (what: string): FaultEnd => ended({ said: `[1] multirail: rank 1: ${what}\n` });
  const outvoted = text(
    'the lead of rank 1 (process 1) is outvoted in message 3, of 800 bytes to rank 0 with tag 1: crc32c 01, and 02 at the two others',
  );
  const healed = text(
    'the first shadow of rank 0 (process 4) is outvoted in message 9, a result of 73728 bytes: crc32c 01, and 02 at the two others',
  );
  const late = text(
    'process 5, a shadow of rank 1, is to leave the job, which goes on with two replicas of that rank: the first shadow is late: it has',
  );
  const other = text(
    'ERR_DIVERGED: the first shadow of rank 1 (process 5) leaves the job, since it does not do what its lead does: request 5 is another one',
  );
  const left = text('the second shadow of rank 1 (pid 7) exited with code 9; the rank goes on with its other shadow');
  const ends = [outvoted, healed, late, other, left];
  expect(ends.map(classOf)).toEqual(['TDC', 'FSC', 'TOE', 'TDC', 'DUE']);
  expect(ends.map(isCorrected)).toEqual([true, true, true, true, true]);
  expect([ended(), diverged('differ: message 3, of 8 bytes'), { ...outvoted, isRight: false }].map(isCorrected)).toEqual([
    false,
    false,
    false,
  ]);
  expect(classOf({ ...outvoted, isRight: false })).toBeUndefined();
  const input = { faults: 100, seed: 1, replicas: 3 };
  const single = (i: number): FaultEnd => ended({ isRight: i % 3 !== 0 });
  const played = faultRuns(input).map((fault, i) => ({ fault, paired: [ended(), outvoted, healed, late, left][i % 5], single: single(i) }));
  const { problems, lines } = campaign001(input, played);
  expect(problems).toEqual([]);
  expect(lines).toContain(
    'Corrected, so that the job came to its right end without being started again: 20 of 20 TDC, 20 of 20 FSC, 20 of 20 TOE, 20 of 20 DUE.',
  );
  // What one replica alone gets wrong may not end the job, unless a lead goes its own way.
  const isFlip = ({ fault }: FaultPlayed): boolean => fault.kind === 'flip' && fault.buffer !== 'index' && fault.replica === 'lead';
  const isStall = ({ fault }: FaultPlayed): boolean => fault.kind === 'stall' && fault.replica === 'lead';
  const endsAt = (at: number): FaultPlayed[] =>
    played.map((one, i) => (i === at ? { ...one, paired: diverged('differ: the lead is late: it has used') } : one));
  expect(campaign001(input, endsAt(played.findIndex(isFlip))).problems).toEqual([
    expect.stringContaining('the job by three ends with exit code 76'),
  ]);
  expect(campaign001(input, endsAt(played.findIndex(isStall))).problems).toEqual([]);
});

test('going back: one save further each time, and from the newest again once a run has come past the fault', () => {
  expect(nextTry(undefined, 5)).toEqual({ newest: 5, back: 0 });
  let chain = nextTry(undefined, 5);
  const tried = [];
  for (let i = 0; i < 4; i++) {
    tried.push(chain.newest - chain.back);
    chain = nextTry(chain, 5);
  }
  expect(tried).toEqual([5, 4, 3, 2]);
  expect(nextTry({ newest: 5, back: 3 }, 8)).toEqual({ newest: 8, back: 0 });
});

test('the table has the rows and moments of the paper', () => {
  const jobs = tableJobs();
  expect(jobs.length).toBe(16);
  expect(jobs.filter(({ moment }) => moment === undefined).map(({ saves }) => saves)).toEqual([0, 6, 4, 3]);
});

/** As the model has it: a start of 0.2 s, restarts of 0.3 s, saves of 0.1 s, 4 s without a fault, of which 0.5 s come after the gather. */
function modelled(job: TableJob): TablePlayed {
  const total = 4 + 0.1 * job.saves;
  const good = { beginning: 0, middle: Math.floor((0.5 * TABLE_STEPS) / (job.everySteps ?? 1)), end: job.saves };
  const first = job.moment === undefined || job.saves === 0 ? 0 : good[job.moment];
  const tries = job.moment === undefined ? [] : Array.from({ length: job.saves - first + 1 }, (_, i) => job.saves - i);
  const interval = ((job.everySteps ?? 0) / TABLE_STEPS) * 3.3;
  const undisturbed = {
    wallSeconds: total,
    startSeconds: 0.2,
    tailSeconds: 0.5,
    restartSeconds: [],
    begunWith: [undefined],
    isRight: true,
  };
  const wallSeconds = tries.reduce((sum, save) => sum + 0.3 + total - 0.7 - save * (interval + 0.1), total);
  return {
    job,
    end: {
      ...undisturbed,
      wallSeconds,
      restartSeconds: tries.map(() => 0.3),
      begunWith: [undefined, ...tries.map((save) => (save === 0 ? undefined : save))],
    },
    around: job.moment === undefined ? [] : [undisturbed, undisturbed],
  };
}

test('the table is held against the model, with tries as in the paper', () => {
  const played = tableJobs().map(modelled);
  expect(played.map(({ end }) => (end?.begunWith.length ?? 0) - 1)).toEqual([0, 1, 1, 1, 0, 7, 4, 1, 0, 5, 3, 1, 0, 4, 3, 1]);
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played }).problems).toEqual([]);
  const late = played.map((one, i) => (i === 6 && one.end ? { ...one, end: { ...one.end, wallSeconds: 1.2 * one.end.wallSeconds } } : one));
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: late }).problems).toEqual([expect.stringContaining('row 4, middle')]);
  const other = played.map((one, i) => (i === 5 && one.end ? { ...one, end: { ...one.end, begunWith: [undefined, 6, undefined] } } : one));
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: other }).problems).toEqual([
    expect.stringContaining('gone back to 6, the beginning'),
  ]);
  // A slower minute is seen in the jobs around it.
  const slow = <T extends { wallSeconds: number; startSeconds: number; tailSeconds: number }>(one: T): T => ({
    ...one,
    wallSeconds: 1.3 * one.wallSeconds,
    startSeconds: 1.3 * one.startSeconds,
    tailSeconds: 1.3 * one.tailSeconds,
  });
  const slowed = played.map((one, i) =>
    i === 5 && one.end ? { ...one, end: slow(one.end), around: one.around.map((other) => other && slow(other)) } : one,
  );
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: slowed }).problems).toEqual([]);
  const alone = played.map((one, i) => (i === 5 && one.end ? { ...one, end: slow(one.end) } : one));
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: alone }).problems).toEqual([expect.stringContaining('row 4, beginning')]);
  // Nothing behind the gather is done again.
  const repeated = played.map((one, i) =>
    i === 5 && one.end ? { ...one, end: { ...one.end, wallSeconds: one.end.wallSeconds + 7 * 0.5 } } : one,
  );
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: repeated }).problems).toEqual([
    expect.stringContaining('row 4, beginning'),
  ]);
  const wrong = played.map((one, i) => (i === 3 && one.end ? { ...one, end: { ...one.end, isRight: false } } : one));
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: wrong }).problems).toEqual([
    expect.stringContaining('the product is wrong'),
  ]);
  const dead = played.map((one, i) => (i === 2 ? { ...one, end: undefined } : one));
  expect(table001(0.01, { oneSeconds: 3, twoSeconds: 3.9, played: dead }).problems).toEqual([expect.stringContaining('came to no end')]);
});
