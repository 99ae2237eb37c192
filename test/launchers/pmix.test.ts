// PMIx under mpirun of Open MPI as Debian 12 has it: ranks on several hosts that need no meeting place, and what happens without PMIx, without
// its library, and with a meeting place all the same. Debian 13's Open MPI and PRRTE are tried by debian13.mjs.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { run } from './command.ts';
import { mpiCommand } from './mpi-commands.mjs';
import { makeHosts, netnsMissing } from './netns-hosts.mjs';

const OPEN_MPI = mpiCommand('Open MPI');
const MPIRUN = [OPEN_MPI ?? 'mpirun', '--allow-run-as-root', '--oversubscribe'];
let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['joining-rank.mjs']);
});
afterAll(() => code?.dispose());

const ring = () => [process.execPath, code.fixture('joining-rank'), 'ring'];
const ranksIn = (stdout: string) => [...stdout.matchAll(/rank (\d+): of (\d+)/g)].map(([, rank, size]) => `${rank}/${size}`).sort();
const infoUnder = async (...options: string[]) =>
  (await run([...MPIRUN, '-n', '1', ...options, process.execPath, code.cli, 'info'])).stdout;

describe('PMIx under mpirun', () => {
  const why = OPEN_MPI === undefined ? 'Open MPI is not installed' : undefined;
  if (why !== undefined) console.log(`skipped: PMIx under mpirun: ${why}`);

  describe('on two hosts', () => {
    const noHosts = why ?? netnsMissing();
    if (why === undefined && noHosts !== undefined) console.log(`skipped: mpirun on hosts in network namespaces: ${noHosts}`);
    let hosts: ReturnType<typeof makeHosts> | undefined;
    beforeAll(() => {
      if (noHosts === undefined) hosts = makeHosts('10.213.8');
    });
    afterAll(() => hosts?.remove());
    const onHosts = (...options: string[]) => {
      const { agent, subnet } = hosts as ReturnType<typeof makeHosts>;
      return [...MPIRUN, '--mca', 'plm_rsh_agent', agent, '--mca', 'oob_tcp_if_include', subnet, '-H', 'a:2,b:2', ...options];
    };

    test.skipIf(noHosts !== undefined)('the ranks meet, and nothing has to be said', async () => {
      const ran = await run([...onHosts('-x', 'MULTIRAIL_DEBUG=1'), ...ring()]);
      expect({ code: ran.code, stdout: ranksIn(ran.stdout) }, ran.stderr).toEqual({ code: 0, stdout: ['0/4', '1/4', '2/4', '3/4'] });
      for (const rank of [0, 1, 2, 3]) expect(ran.stderr).toMatch(new RegExp(`multirail: rank ${rank}: PMIx: rank ${rank} of job \\d+`));
    });
  });

  test.skipIf(why !== undefined)('switched off, and without the library: all is as without PMIx, and info says why', async () => {
    const ran = await run([...MPIRUN, '-n', '2', '-x', 'MULTIRAIL_MCA_ess_pmix=false', '-x', 'MULTIRAIL_DEBUG=1', ...ring()]);
    expect({ code: ran.code, stdout: ranksIn(ran.stdout) }, ran.stderr).toEqual({ code: 0, stdout: ['0/2', '1/2'] });
    expect(ran.stderr).toContain('multirail: rank 1: PMIx is not used: switched off by ess_pmix = false');
    const off = await infoUnder('-x', 'MULTIRAIL_MCA_ess_pmix_library=libno-such-pmix.so.9');
    expect(off).toMatch(
      /^PMIx +off: the library of PMIx cannot be loaded \(Debian package libpmix2\): libno-such-pmix\.so\.9: cannot open/m,
    );
    expect(off).toMatch(/^Launcher +mpirun of Open MPI \(by OMPI_COMM_WORLD_RANK\): rank 0 of 1/m);
    const on = await infoUnder();
    expect(on).toMatch(/^PMIx +on: libpmix\.so\.2 \(OpenPMIx .*\), by PMIX_NAMESPACE, PMIX_RANK, PMIX_SERVER_URI/m);
  });

  test.skipIf(why !== undefined)('a meeting place that the user names is where the ranks meet', async () => {
    const file = `${code.folder}/meeting`;
    const ran = await run([...MPIRUN, '-n', '2', '-x', `MULTIRAIL_RENDEZVOUS=${file}`, '-x', 'MULTIRAIL_DEBUG=1', ...ring()]);
    expect({ code: ran.code, stdout: ranksIn(ran.stdout) }, ran.stderr).toEqual({ code: 0, stdout: ['0/2', '1/2'] });
    expect(ran.stderr).toContain('PMIx: rank 1 of job');
    const info = await infoUnder('-x', `MULTIRAIL_RENDEZVOUS=${file}`);
    expect(info).toContain(`the file ${file} says where the ranks meet (MULTIRAIL_RENDEZVOUS); PMIx tells of the ends of ranks`);
    rmSync(file, { force: true });
  });
});
