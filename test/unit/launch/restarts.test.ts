// Which jobs are started again, how often, and what is said.
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { JobResult } from '../../../src/launch/run/job-result.ts';
import type { RunOptions } from '../../../src/launch/run/launcher.ts';
import { againAfter } from '../../../src/launch/run/placing-again.ts';
import { isRestartable, type Relaunches, runWithRelaunches, runWithRestarts } from '../../../src/launch/run/restarts.ts';

const ended = (more: Partial<JobResult>): JobResult => ({
  jobId: 'job',
  exitCode: 0,
  ranks: [],
  failure: undefined,
  deaths: 0,
  lostHosts: [],
  placed: [],
  leads: [],
  wasTold: false,
  ...more,
});
const died = ended({ exitCode: 137, deaths: 1, failure: 'rank 1 was killed by SIGKILL' });

/** Plays these ends one after the other. */
async function play(ends: readonly JobResult[], restarts: number | Relaunches) {
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
  const options = { size: 2, command: ['a.js'], mca, env: { A: '1' }, stderr, kill };
  const run = async (one: RunOptions): Promise<JobResult> => {
    starts.push(one);
    return ends[starts.length - 1];
  };
  const result = await (typeof restarts === 'number' ? runWithRestarts(options, restarts, run) : runWithRelaunches(options, restarts, run));
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
    const { result, starts, said } = await play([diverged, died, diverged, ended({})], { onDiverged: 5, onDeath: 0 });
    expect(result).toMatchObject({ exitCode: 0, relaunches: 3 });
    expect(starts.map(({ env }) => env?.MULTIRAIL_RESTARTS)).toEqual(['0', '1', '2', '3']);
    expect(starts.map(({ env }) => env?.MULTIRAIL_DIVERGED)).toEqual([undefined, '1', undefined, '3']);
    expect(starts.map(({ kill }) => kill !== undefined)).toEqual([true, false, false, false]);
    expect(starts.map(({ mca }) => mca?.ft_inject)).toEqual(['exit:rank=0,at=1%', '', '', '']);
    expect(said).toContain('the replicas differ; the job is started again, from a save if it has one (relaunch 1 of 5)');
    expect(said).toContain('the lead of a rank has died (rank 1 was killed by SIGKILL); the job is started again');
  });

  it('end when they are used up, and do not follow errors of the program', async () => {
    const used = await play([diverged, diverged], { onDiverged: 1, onDeath: 0 });
    expect(used.result).toMatchObject({ exitCode: 76, relaunches: 1 });
    expect(used.said).toContain('the job is not started again: 1 relaunch is used up');
    expect((await play([ended({ exitCode: 9 })], { onDiverged: 3, onDeath: 0 })).result).toMatchObject({ exitCode: 9, relaunches: 0 });
    // Somebody has ended it meanwhile.
    const told = await play([{ ...diverged, wasTold: true }], { onDiverged: 3, onDeath: 0 });
    expect(told.result).toMatchObject({ exitCode: 76, relaunches: 0 });
  });

  it('follow a save behind the death of a replica, as often as that was asked for', async () => {
    const incomplete = ended({ exitCode: 77, deaths: 1, failure: 'rank 0 aborted the job' });
    const { result, starts, said } = await play([incomplete, died, ended({})], { onDiverged: 0, onDeath: 2 });
    expect(result).toMatchObject({ exitCode: 0, relaunches: 2 });
    // The last one cannot be started again: it goes on with whoever is left.
    expect(starts.map(({ mca }) => mca?.ft_replica_renew)).toEqual(['host', 'host', undefined]);
    expect(starts.map(({ env }) => env?.MULTIRAIL_DIVERGED)).toEqual([undefined, undefined, undefined]);
    expect(said).toContain('a replica has died; the job is started again, from a save if it has one (relaunch 1 of 2)');
    expect(said).toContain('the lead of a rank has died (rank 1 was killed by SIGKILL); the job is started again');
    const used = await play([incomplete, died], { onDiverged: 3, onDeath: 1 });
    expect(used.result).toMatchObject({ exitCode: 137, relaunches: 1 });
    // Where nobody has asked for it, 77 is a code of the program.
    const own = await play([ended({ exitCode: 77 })], { onDiverged: 3, onDeath: 0 });
    expect(own.result).toMatchObject({ exitCode: 77, relaunches: 0 });
    // Differences that nobody has asked for are said by the ranks.
    const differ = await play([diverged], { onDiverged: 0, onDeath: 2 });
    expect([differ.result.exitCode, differ.said]).toEqual([76, '']);
    // Each kind has its own number.
    const both = await play([incomplete, diverged, ended({})], { onDiverged: 1, onDeath: 1 });
    expect(both.result).toMatchObject({ exitCode: 0, relaunches: 2 });
    expect(both.starts.map(({ mca }) => mca?.ft_replica_renew)).toEqual(['host', undefined, undefined]);
  });

  it('leave out hosts that are gone, ask for what was lost with them where the others have room, and put leads where they have saved', async () => {
    const slots = (text: string) => text.split(',').map((host) => ({ host, slots: 2 }));
    const hostsOf = ({ hosts }: RunOptions) => hosts?.map(({ host }) => host).join();
    // Of both ranks the lead was lost with its host.
    const incomplete = ended({ exitCode: 77, deaths: 2, lostHosts: ['a'], placed: ['a', 'a', 'b', 'b'], leads: [2, 3] });
    const options = { size: 2, replicas: 2, command: ['a.js'], stderr: new Writable({ write: (_chunk, _encoding, done) => done() }) };
    const playOn = async (text: string): Promise<RunOptions[]> => {
      const starts: RunOptions[] = [];
      const results = [incomplete, ended({})];
      await runWithRelaunches({ ...options, hosts: slots(text) }, { onDiverged: 0, onDeath: 2 }, async (one) => {
        starts.push(one);
        return results[starts.length - 1];
      });
      return starts;
    };
    const roomy = await playOn('a,b,c');
    expect(roomy.map(hostsOf)).toEqual(['a,b,c', 'b,c']);
    expect(roomy[1].places).toEqual(['b', 'b', 'c', 'c']);
    expect(roomy.map(({ mca }) => mca?.ft_replica_renew)).toEqual(['host', 'process']);
    const full = await playOn('a,b');
    expect(full.map(hostsOf)).toEqual(['a,b', 'a,b']);
    expect(full.map(({ mca }) => mca?.ft_replica_renew)).toEqual(['process', 'process']);
    // One lead was killed on its host, where the new shadow goes.
    const { places } = againAfter({ ...options, hosts: slots('a,b') }, { ...incomplete, lostHosts: [], leads: [0, 3] });
    expect(places).toEqual(['a', 'b', 'b', 'a']);
    const core = { ...options, hosts: slots('a,b'), replicaPlace: 'core' } as const;
    expect(againAfter(core, ended({ placed: ['a', 'b', 'a', 'b'], leads: [0, 1] })).places).toEqual(['a', 'b', 'a', 'b']);
    const apart = { ...options, hosts: slots('b').map((host) => ({ ...host, slots: 4 })), replicaPlace: 'host' } as const;
    expect(againAfter(apart, ended({ placed: [], leads: [] })).places).toBeUndefined();
  });
});
