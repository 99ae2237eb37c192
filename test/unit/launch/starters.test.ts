// The detectors of starters, each with environments as the starter was seen to set them (Open MPI 4.1.4, MPICH 4.0.2, Slurm 22.05.8) or
// documents them (torchrun, Kubernetes). Nothing is started.
import { describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import type { Env } from '../../../src/launch/starters/env.ts';
import { findStarter, STARTERS } from '../../../src/launch/starters/index.ts';
import { firstHost } from '../../../src/launch/starters/slurm.ts';
import { derivedPort, type Meeting, parseAddress } from '../../../src/launch/starters/starter.ts';

const OURS = {
  MULTIRAIL_RANK: '1',
  MULTIRAIL_SIZE: '4',
  MULTIRAIL_JOB_ID: 'abc',
  MULTIRAIL_OOB: 'ws://127.0.0.1:4000/p,ws://10.0.0.1:4000/p',
};
const HYDRA = { PMI_FD: '8', PMI_RANK: '1', PMI_SIZE: '3', MPI_LOCALRANKID: '1', MPI_LOCALNRANKS: '3' };
const TORCHRUN = {
  RANK: '5',
  WORLD_SIZE: '8',
  LOCAL_RANK: '1',
  LOCAL_WORLD_SIZE: '4',
  GROUP_RANK: '1',
  MASTER_ADDR: 'node-a',
  MASTER_PORT: '29500',
  TORCHELASTIC_RESTART_COUNT: '2',
  TORCHELASTIC_RUN_ID: 'run7',
};
const KUBERNETES = { JOB_COMPLETION_INDEX: '2', MULTIRAIL_SIZE: '3', MULTIRAIL_SERVICE: 'ring-ranks', HOSTNAME: 'ring-2' };
const MPIRUN = {
  OMPI_COMM_WORLD_RANK: '1',
  OMPI_COMM_WORLD_SIZE: '2',
  OMPI_COMM_WORLD_LOCAL_RANK: '1',
  OMPI_COMM_WORLD_LOCAL_SIZE: '2',
  PMIX_NAMESPACE: '1629093889',
};
const SERVER = { PMIX_NAMESPACE: 'prterun-a-17@1', PMIX_RANK: '1', PMIX_SERVER_URI41: 'prterun-a-17@0.0;tcp4://127.0.0.1:1' };
const SRUN = {
  SLURM_JOB_ID: '17',
  SLURM_STEP_ID: '3',
  SLURM_PROCID: '2',
  SLURM_LOCALID: '0',
  SLURM_NTASKS: '4',
  SLURM_STEP_NUM_TASKS: '4',
  SLURM_STEP_NUM_NODES: '2',
  SLURM_STEP_NODELIST: 'n[1-2]',
};
const PMI2 = { ...SRUN, PMI_FD: '11', PMI_JOBID: '17.3', PMI_RANK: '2', PMI_SIZE: '4' };

/** As where libpmix is not installed, and as where it is. */
const find = (env: Env) => findStarter(env, () => 'no libpmix here');
const findByPmix = (env: Env) => findStarter(env, () => undefined);
const nameOf = (env: Env) => find(env).starter.name;
const placeOf = (env: Env) => find(env).starter.place(env);
const meetingOf = (env: Env): Meeting => placeOf(env).meeting;
function failureOf(env: Env): MultirailError {
  try {
    placeOf(env);
  } catch (error) {
    if (error instanceof MultirailError && error.code === 'ERR_INIT') return error;
    throw error;
  }
  throw new Error('a place was found');
}

describe('which starter', () => {
  test('each is found by its own variables', () => {
    expect([{}, OURS, HYDRA, TORCHRUN, KUBERNETES, MPIRUN, SRUN, PMI2].map(nameOf)).toEqual([
      'world of one',
      'multirail run',
      'PMI-1 (mpiexec of MPICH, srun --mpi=pmi2)',
      'torchrun style',
      'Kubernetes Indexed Job',
      'mpirun of Open MPI',
      'srun of Slurm',
      'PMI-1 (mpiexec of MPICH, srun --mpi=pmi2)',
    ]);
  });

  test('where several show, the order of the table decides', () => {
    const all = [OURS, HYDRA, TORCHRUN, KUBERNETES, SERVER, MPIRUN, SRUN];
    // From each one on, with all that come after it: the first wins.
    all.forEach((_, at) => {
      const env = Object.assign({}, ...all.slice(at).reverse()) as Env;
      expect(findByPmix(env).starter.name).toBe(STARTERS[at].name);
    });
  });

  test('without the library of PMIx, what Open MPI and Slurm say is looked at, and why is kept', () => {
    const whole = { ...MPIRUN, ...SERVER };
    expect(findByPmix(whole)).toMatchObject({ seen: 'PMIX_NAMESPACE, PMIX_RANK, PMIX_SERVER_URI41' });
    expect(findByPmix(whole).pmixMissing).toBeUndefined();
    expect(find(whole)).toMatchObject({ seen: 'OMPI_COMM_WORLD_RANK', pmixMissing: 'no libpmix here' });
    expect(find({ ...SRUN, ...SERVER })).toMatchObject({ starter: { name: 'srun of Slurm' }, pmixMissing: 'no libpmix here' });
    // Nobody asks for the library where it would not be the way.
    for (const env of [{}, MPIRUN, { ...OURS, ...SERVER }, { ...SERVER, PMIX_RANK: '' }, { ...SERVER, PMIX_SERVER_URI41: undefined }]) {
      findStarter(env, () => {
        throw new Error('asked');
      });
    }
  });

  test('where only PMIx says which rank it is, its library is missed', () => {
    expect(failureOf(SERVER).message).toMatch(
      /^ERR_INIT: this is a process of a job of PMIx \(PMIX_NAMESPACE, .*\), and PMIx cannot be used: no libpmix here\..* MULTIRAIL_RANK=0 and MULTIRAIL_SIZE=1$/,
    );
    expect(placeOf({ ...SERVER, MULTIRAIL_RANK: '0', MULTIRAIL_SIZE: '1' })).toMatchObject({ size: 1, meeting: { by: 'nobody' } });
  });

  test('names that others use too, or that a batch script has, are no rank', () => {
    for (const env of [
      { RANK: '1' },
      { WORLD_SIZE: '2' },
      { MASTER_ADDR: 'node-a', MASTER_PORT: '29500' },
      { SLURM_JOB_ID: '1', SLURM_PROCID: '0', SLURM_NTASKS: '4' },
      { PMI_FD: '' },
    ]) {
      expect(nameOf(env)).toBe('world of one');
      expect(placeOf(env)).toMatchObject({ rank: 0, size: 1, meeting: { by: 'nobody' } });
    }
  });

  test('variables that are there but incomplete are an error that names those that are missing', () => {
    const cases: [Env, set: string, missing: string][] = [
      [{ RANK: '0', WORLD_SIZE: '2' }, 'RANK and WORLD_SIZE are', 'MASTER_ADDR and MASTER_PORT are'],
      [{ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: 'a' }, 'RANK, WORLD_SIZE and MASTER_ADDR are', 'MASTER_PORT is'],
      [{ RANK: '0', MASTER_ADDR: 'a', MASTER_PORT: '1' }, 'RANK, MASTER_ADDR and MASTER_PORT are', 'WORLD_SIZE is'],
      [{ WORLD_SIZE: '2', MASTER_ADDR: 'a', MASTER_PORT: '1' }, 'WORLD_SIZE, MASTER_ADDR and MASTER_PORT are', 'RANK is'],
      [{ JOB_COMPLETION_INDEX: '0' }, 'JOB_COMPLETION_INDEX is', 'MULTIRAIL_SIZE is'],
      [{ MULTIRAIL_SIZE: '3' }, 'MULTIRAIL_SIZE is', 'MULTIRAIL_RANK is'],
      [{ MULTIRAIL_RENDEZVOUS: 'a:1' }, 'MULTIRAIL_RENDEZVOUS is', 'MULTIRAIL_RANK and MULTIRAIL_SIZE are'],
      [{ PMI_RANK: '0', PMI_SIZE: '2' }, 'PMI_RANK and PMI_SIZE are', 'PMI_FD is'],
      [{ OMPI_COMM_WORLD_SIZE: '2' }, 'OMPI_COMM_WORLD_SIZE is', 'OMPI_COMM_WORLD_RANK is'],
      [{ SLURM_STEP_ID: '0', SLURM_PROCID: '1' }, 'SLURM_STEP_ID and SLURM_PROCID are', 'SLURM_STEP_NUM_TASKS is'],
    ];
    for (const [env, set, missing] of cases) {
      const { message } = failureOf(env);
      expect(message).toContain(`${missing} not set, although ${set}, as for a rank of`);
      expect(message).toContain('MULTIRAIL_RANK=0 and MULTIRAIL_SIZE=1');
    }
  });

  test('incomplete variables count only where no starter is there whole, and never for a process that is alone', () => {
    // As batch scripts export them, before srun starts the ranks.
    expect(nameOf({ ...SRUN, WORLD_SIZE: '4', MASTER_ADDR: 'n1', MASTER_PORT: '29500' })).toBe('srun of Slurm');
    for (const env of [
      { RANK: '0', WORLD_SIZE: '1' },
      { MULTIRAIL_SIZE: '1' },
      { PMI_RANK: '0', PMI_SIZE: '1' },
      { OMPI_COMM_WORLD_SIZE: '1' },
    ]) {
      expect(placeOf(env)).toMatchObject({ rank: 0, size: 1, meeting: { by: 'nobody' } });
    }
    const alone = { RANK: '0', WORLD_SIZE: '2', JOB_COMPLETION_INDEX: '3', MULTIRAIL_RANK: '0', MULTIRAIL_SIZE: '1' };
    expect(placeOf(alone)).toMatchObject({ rank: 0, size: 1, meeting: { by: 'nobody' } });
  });
});

describe('places', () => {
  test('of our own launcher', () => {
    expect(placeOf({ ...OURS, MULTIRAIL_LAUNCHER_PID: '77' })).toMatchObject({
      rank: 1,
      size: 4,
      localRank: 1,
      localSize: 4,
      meeting: { by: 'launcher', jobId: 'abc', urls: ['ws://127.0.0.1:4000/p', 'ws://10.0.0.1:4000/p'], launcherPid: 77 },
    });
  });

  test('of our own variables, set by hand', () => {
    const env = { MULTIRAIL_RANK: '0', MULTIRAIL_SIZE: '2', MULTIRAIL_RENDEZVOUS: '[fd00::1]:7000' };
    expect(placeOf(env)).toMatchObject({ rank: 0, size: 2, meeting: { by: 'address', host: 'fd00::1', port: 7000 } });
  });

  test('of PMI-1, under hydra and under srun', () => {
    expect(placeOf(HYDRA)).toMatchObject({ rank: 1, size: 3, localRank: 1, localSize: 3, meeting: { by: 'pmi', fd: 8 } });
    expect(placeOf(PMI2)).toMatchObject({ rank: 2, size: 4, localRank: 0, localSize: undefined, meeting: { by: 'pmi', fd: 11 } });
    expect(placeOf({ ...PMI2, SLURM_STEP_NUM_NODES: '1' })).toMatchObject({ localSize: 4 });
  });

  test('of torchrun: beside the store of the agent, where there is one', () => {
    expect(placeOf(TORCHRUN)).toMatchObject({ rank: 5, size: 8, localRank: 1, localSize: 4, restarts: 2 });
    expect(meetingOf(TORCHRUN)).toMatchObject({ by: 'address', host: 'node-a', port: 29500 });
    expect(meetingOf({ ...TORCHRUN, TORCHELASTIC_USE_AGENT_STORE: 'True' })).toMatchObject({ port: 29501 });
    expect(meetingOf({ ...TORCHRUN, TORCHELASTIC_USE_AGENT_STORE: 'False' })).toMatchObject({ port: 29500 });
    expect(meetingOf({ ...TORCHRUN, TORCHELASTIC_USE_AGENT_STORE: 'True', MASTER_PORT: '65535' })).toMatchObject({ port: 65534 });
  });

  test('of an Indexed Job: rank 0 is pod 0 in the service', () => {
    expect(placeOf(KUBERNETES)).toMatchObject({ rank: 2, size: 3, meeting: { by: 'address', host: 'ring-0.ring-ranks', port: 7117 } });
    expect(meetingOf({ ...KUBERNETES, MULTIRAIL_PORT: '9000' })).toMatchObject({ port: 9000 });
  });

  test('of mpirun: on one host by a file, on several where the user says', () => {
    expect(placeOf(MPIRUN)).toMatchObject({ rank: 1, size: 2, jobKey: 'ompi-1629093889', meeting: { by: 'host' } });
    const several = { ...MPIRUN, OMPI_COMM_WORLD_LOCAL_SIZE: '1' };
    expect(failureOf(several).message).toContain('-x MULTIRAIL_RENDEZVOUS=');
    expect(meetingOf({ ...several, MULTIRAIL_RENDEZVOUS: 'head:9000' })).toMatchObject({ by: 'address', host: 'head', port: 9000 });
    expect(meetingOf({ ...several, MULTIRAIL_RENDEZVOUS: 'file:///shared/x' })).toMatchObject({ by: 'file', path: '/shared/x' });
    expect(meetingOf({ ...several, MULTIRAIL_RENDEZVOUS: '/shared/x' })).toMatchObject({ by: 'file', path: '/shared/x' });
  });

  test('of PMIx: the number of ranks where the environment has it, and where the user says that they meet', () => {
    const placeBy = (env: Env) => findByPmix(env).starter.place(env);
    expect(placeBy(SERVER)).toMatchObject({
      rank: 1,
      size: undefined,
      jobKey: 'pmix-prterun-a-17@1',
      meeting: { by: 'pmix', byHand: undefined },
    });
    expect(placeBy({ ...MPIRUN, ...SERVER })).toMatchObject({ rank: 1, size: 2 });
    expect(placeBy({ ...SRUN, ...SERVER })).toMatchObject({ rank: 1, size: 4 });
    expect(placeBy({ ...SERVER, MULTIRAIL_RENDEZVOUS: '/shared/x' }).meeting).toMatchObject({ by: 'pmix', byHand: { by: 'file' } });
    expect(() => placeBy({ ...SERVER, PMIX_RANK: 'x' })).toThrow('PMIX_RANK="x"');
  });

  test('of srun: the first node of the step, and a port that follows from the step', () => {
    const place = placeOf(SRUN);
    expect(place).toMatchObject({
      rank: 2,
      size: 4,
      localRank: 0,
      meeting: { by: 'address', host: 'n1', port: derivedPort('slurm-17.3') },
    });
    expect(meetingOf({ ...SRUN, SLURM_PROCID: '0' })).toEqual(place.meeting);
    expect(meetingOf({ ...SRUN, SLURM_STEP_NUM_NODES: '1' })).toMatchObject({ by: 'host' });
    expect(meetingOf({ ...SRUN, MULTIRAIL_RENDEZVOUS: '/x' })).toMatchObject({ by: 'file' });
    // The step counts, not the allocation.
    expect(placeOf({ ...SRUN, SLURM_NTASKS: '64' }).size).toBe(4);
  });

  test('a job of one meets nobody, except where the starter wants to hear of it', () => {
    for (const env of [
      { ...TORCHRUN, RANK: '0', WORLD_SIZE: '1' },
      { JOB_COMPLETION_INDEX: '0', MULTIRAIL_SIZE: '1' },
      { ...MPIRUN, OMPI_COMM_WORLD_RANK: '0', OMPI_COMM_WORLD_SIZE: '1' },
      { ...SRUN, SLURM_PROCID: '0', SLURM_STEP_NUM_TASKS: '1' },
    ]) {
      expect(meetingOf(env)).toEqual({ by: 'nobody' });
    }
    expect(meetingOf({ ...HYDRA, PMI_RANK: '0', PMI_SIZE: '1' })).toEqual({ by: 'pmi', fd: 8 });
  });
});

describe('what is wrong is named', () => {
  test.each<[string, Env, string]>([
    ['a rank that is none', { ...OURS, MULTIRAIL_RANK: 'two' }, 'MULTIRAIL_RANK="two"'],
    ['a rank beyond the size', { ...HYDRA, PMI_RANK: '3' }, 'PMI_RANK=3 is not below PMI_SIZE=3'],
    ['no size', { ...HYDRA, PMI_SIZE: undefined }, 'PMI_SIZE is not set, although PMI_FD is'],
    ['a port that is none', { ...TORCHRUN, MASTER_PORT: '99999' }, 'MASTER_PORT="99999"'],
    ['no service', { ...KUBERNETES, MULTIRAIL_SERVICE: undefined }, 'MULTIRAIL_SERVICE'],
    ['a host name that is not that of a pod', { ...KUBERNETES, HOSTNAME: 'other' }, 'HOSTNAME is "other" and should end in "-2"'],
    ['a rendezvous that is neither', { ...SRUN, MULTIRAIL_RENDEZVOUS: 'nowhere' }, 'MULTIRAIL_RENDEZVOUS="nowhere"'],
    ['no way to the launcher', { ...OURS, MULTIRAIL_OOB: undefined }, 'MULTIRAIL_OOB is not set'],
  ])('%s', (_, env, text) => {
    expect(failureOf(env).message).toContain(text);
  });
});

test('the first host of a list of Slurm', () => {
  expect(['n1', 'n[1-4]', 'n[01-04,7],login', 'a,b', 'rack[1-2]n[03-04]', 'n[7]x,y', 'n[3'].map(firstHost)).toEqual([
    'n1',
    'n1',
    'n01',
    'a',
    'rack1n03',
    'n7x',
    'n3',
  ]);
});

test('addresses', () => {
  expect(parseAddress('host:1')).toEqual({ host: 'host', port: 1 });
  expect(parseAddress('[::1]:65535')).toEqual({ host: '::1', port: 65_535 });
  for (const text of ['host', 'host:0', 'host:65536', '::1:5', ':5', 'a/b:5', '']) expect(parseAddress(text)).toBeUndefined();
});

test('derived ports are spread, and below those that the kernel gives to connections', () => {
  const ports = new Set(Array.from({ length: 200 }, (_, i) => derivedPort(`slurm-${i}.0`)));
  expect(ports.size).toBeGreaterThan(190);
  for (const port of ports) expect(port >= 17_000 && port < 32_768).toBe(true);
});
