// The same program unchanged under the starters that one command can start here: multirail run, mpiexec of MPICH, mpirun of Open MPI, and
// plain shells with the variables of torchrun. Slurm has its own file.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { run } from './command.ts';
import { mpiCommand } from './mpi-commands.mjs';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['joining-rank.mjs']);
});
afterAll(() => code?.dispose());

const program = (...args: string[]) => [process.execPath, code.fixture('joining-rank'), ...args];
// As root, and with more ranks than processors.
const OPEN_MPI = mpiCommand('Open MPI');
const MPICH = mpiCommand('MPICH');
const MPIRUN = [OPEN_MPI ?? 'mpirun', '--allow-run-as-root', '--oversubscribe'];

interface StarterCase {
  name: string;
  /** Why it cannot be tried here. */
  missing?: string;
  command: (size: number) => string[];
  /** What it takes for survivors to live on; undefined = it kills them whatever one says. */
  survivors?: (size: number) => string[];
}

const STARTERS: StarterCase[] = [
  {
    name: 'multirail run',
    command: (size) => [process.execPath, code.cli, 'run', '-n', String(size)],
    survivors: (size) => [process.execPath, code.cli, 'run', '-n', String(size), '--no-abort-on-failure'],
  },
  {
    name: 'mpiexec of MPICH',
    ...(MPICH === undefined ? { missing: 'MPICH is not installed' } : {}),
    command: (size) => [MPICH ?? 'mpiexec.mpich', '-n', String(size)],
  },
  {
    name: 'mpirun of Open MPI',
    ...(OPEN_MPI === undefined ? { missing: 'Open MPI is not installed' } : {}),
    command: (size) => [...MPIRUN, '-n', String(size)],
    survivors: (size) => [...MPIRUN, '--enable-recovery', '-n', String(size)],
  },
];

const ranksIn = (stdout: string) => [...stdout.matchAll(/rank (\d+): of (\d+)/g)].map(([, rank, size]) => `${rank}/${size}`).sort();

for (const starter of STARTERS) {
  describe(starter.name, () => {
    const why = starter.missing;
    if (why !== undefined) console.log(`skipped: jobs of ${starter.name}: ${why}`);

    test.skipIf(why !== undefined)('four ranks find each other', async () => {
      const ran = await run([...starter.command(4), ...program('ring')]);
      expect({ ...ran, stdout: ranksIn(ran.stdout) }).toEqual({ code: 0, stderr: '', stdout: ['0/4', '1/4', '2/4', '3/4'] });
    });

    test.skipIf(why !== undefined)('a job of one is a job', async () => {
      const ran = await run([...starter.command(1), ...program('ring')]);
      expect({ ...ran, stdout: ranksIn(ran.stdout) }).toEqual({ code: 0, stderr: '', stdout: ['0/1'] });
    });

    test.skipIf(why !== undefined)('one throws, all end, with its stack and name', async () => {
      const ran = await run([...starter.command(3), ...program('throw')]);
      expect(ran.code).toBe(1);
      expect(ran.stderr).toMatch(/rank 1 of 3 \(pid \d+\): unhandled rejection:\n.*TypeError: this rank is wrong\n.* {4}at /);
    });

    test.skipIf(why !== undefined)('abort() ends all with its code', async () => {
      const ran = await run([...starter.command(3), ...program('abort')]);
      expect(ran.code).toBe(7);
      expect(ran.stderr).toMatch(/rank 1.* aborted the job with code 7: enough/);
    });

    const { survivors } = starter;
    if (survivors === undefined) return;
    test.skipIf(why !== undefined)('survivors of a killed rank learn it, and go on', async () => {
      const ran = await run([...survivors(3), ...program('killed', '1')]);
      for (const rank of [0, 2]) {
        for (const text of ['receive: ERR_PROC_FAILED about 1', 'send: ERR_PROC_FAILED about 1', 'left']) {
          expect(ran.stdout).toContain(`rank ${rank}: ${text}\n`);
        }
      }
    });
  });
}

describe('plain shells', () => {
  test('with the variables of torchrun', async () => {
    const script = `for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=$1 "$2" "$3" ring & done; wait`;
    const port = 20_000 + (process.pid % 10_000);
    const ran = await run(['sh', '-c', script, 'sh', String(port), ...program()]);
    expect({ ...ran, stdout: ranksIn(ran.stdout) }).toEqual({ code: 0, stderr: '', stdout: ['0/4', '1/4', '2/4', '3/4'] });
  });

  test('multirail info says what would be joined', async () => {
    const ran = await run([process.execPath, code.cli, 'info'], {
      RANK: '1',
      WORLD_SIZE: '4',
      MASTER_ADDR: 'localhost',
      MASTER_PORT: '5000',
    });
    expect(ran.stdout).toContain(
      'torchrun style (by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT): rank 1 of 4; the ranks meet at localhost:5000',
    );
  });
});
