// Which jobs are started again, how often, and what is said.
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { JobResult } from '../../../src/launch/run/job-result.ts';
import type { RunOptions } from '../../../src/launch/run/launcher.ts';
import { isRestartable, runWithRelaunches, runWithRestarts } from '../../../src/launch/run/restarts.ts';

const ended = (more: Partial<JobResult>): JobResult => ({
  jobId: 'job',
  exitCode: 0,
  ranks: [],
  failure: undefined,
  deaths: 0,
  wasTold: false,
  ...more,
});
const died = ended({ exitCode: 137, deaths: 1, failure: 'rank 1 was killed by SIGKILL' });

/** Plays these ends one after the other. */
async function play(
  ends: readonly JobResult[],
  restarts: number,
  restarted: typeof runWithRestarts | typeof runWithRelaunches = runWithRestarts,
) {
  const starts: RunOptions[] = [];
  let said = '';
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      said += String(chunk);
      done();
    },
  });
  const kill = { kind: 'list', kills: [] } as unknown as NonNullable<RunOptions['kill']>;
  const mca = { ft_inject: 'exit:rank=0,at=1%' };
  const result = await restarted({ size: 2, command: ['a.js'], mca, env: { A: '1' }, stderr, kill }, restarts, async (options) => {
    starts.push(options);
    return ends[starts.length - 1];
  });
  return { result, starts, said };
}

describe('restarts of a whole job', () => {
  it('follow deaths, and nothing else', () => {
    expect(isRestartable(died)).toBe(true);
    expect(isRestartable(ended({ exitCode: 0, deaths: 1 }))).toBe(false);
    expect(isRestartable(ended({ exitCode: 1 }))).toBe(false);
    expect(isRestartable(ended({ exitCode: 75, wasTold: true, deaths: 1 }))).toBe(false);
  });

  it('are counted, tell the ranks, and kill nobody a second time', async () => {
    const { result, starts, said } = await play([died, died, ended({})], 5);
    expect(result).toMatchObject({ exitCode: 0, restarts: 2 });
    expect(starts.map(({ env }) => env)).toEqual(['0', '1', '2'].map((count) => ({ A: '1', MULTIRAIL_RESTARTS: count })));
    expect(starts.map(({ kill }) => kill !== undefined)).toEqual([true, false, false]);
    expect(said).toContain('(rank 1 was killed by SIGKILL); it is started again, from its newest save if it has one (restart 2 of 5)');
    expect(said).toContain('the job was started again 2 times and ends with exit code 0');
  });

  it('end with the number that was allowed', async () => {
    const { result, starts, said } = await play([died, died, died], 2);
    expect(result).toMatchObject({ exitCode: 137, restarts: 2 });
    expect(starts.length).toBe(3);
    expect(said).toContain('it is not started again: 2 restarts are used up');
  });

  it('a program that fails by itself is not started again', async () => {
    const { result, starts, said } = await play([ended({ exitCode: 1, failure: 'rank 0 aborted the job' })], 3);
    expect(result).toMatchObject({ exitCode: 1, restarts: 0 });
    expect(starts.length).toBe(1);
    expect(said).toBe('');
  });

  it.each([-1, 1.5, 1001])('%s of them make no sense', async (restarts) => {
    await expect(play([], restarts)).rejects.toMatchObject({ code: 'ERR_ARG' });
  });
});

describe('relaunches of replicas', () => {
  const diverged = ended({ exitCode: 76, failure: 'the replicas of rank 1 differ' });

  it('follow differences and deaths of leads, and tell the ranks which of these it was', async () => {
    const { result, starts, said } = await play([diverged, died, diverged, ended({})], 5, runWithRelaunches);
    expect(result).toMatchObject({ exitCode: 0, relaunches: 3 });
    expect(starts.map(({ env }) => env?.MULTIRAIL_RESTARTS)).toEqual(['0', '1', '2', '3']);
    expect(starts.map(({ env }) => env?.MULTIRAIL_DIVERGED)).toEqual([undefined, '1', undefined, '3']);
    expect(starts.map(({ kill }) => kill !== undefined)).toEqual([true, false, false, false]);
    expect(starts.map(({ mca }) => mca?.ft_inject)).toEqual(['exit:rank=0,at=1%', '', '', '']);
    expect(said).toContain('the replicas differ; the job is started again, from a save if it has one (relaunch 1 of 5)');
    expect(said).toContain('the lead of a rank has died (rank 1 was killed by SIGKILL); the job is started again');
  });

  it('end when they are used up, and do not follow errors of the program', async () => {
    const used = await play([diverged, diverged], 1, runWithRelaunches);
    expect(used.result).toMatchObject({ exitCode: 76, relaunches: 1 });
    expect(used.said).toContain('the job is not started again: 1 relaunch is used up');
    expect((await play([ended({ exitCode: 9 })], 3, runWithRelaunches)).result).toMatchObject({ exitCode: 9, relaunches: 0 });
  });
});
