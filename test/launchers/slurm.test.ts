// A Slurm of four nodes on this machine (slurm.sh): ranks by PMI-1, by PMIx and without either, a rank that is killed while the others live on, a step
// that is cancelled. One cluster serves all tests: commands go to a shell in it.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { CASES, expectPassed } from './verdicts.ts';

const SCRIPT = fileURLToPath(new URL('./slurm.sh', import.meta.url));
const SEMANTICS = fileURLToPath(new URL('./semantics.mjs', import.meta.url));
const CACHE = fileURLToPath(new URL('../../.cache/', import.meta.url));
/** What slurm.sh exits with where it cannot be done. */
const CANNOT = 77;

interface Ran {
  code: number;
  output: string;
}

/** A shell in the cluster. */
class Cluster {
  private readonly shell: ChildProcess;
  private text = '';
  private ended: string | undefined;
  private watcher: (() => void) | undefined;

  constructor() {
    this.shell = spawn(SCRIPT, ['bash'], { stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.shell.stdout, this.shell.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.text += chunk;
        this.watcher?.();
      });
    }
    this.shell.stdin?.on('error', () => undefined);
    this.shell.on('close', (code) => {
      this.ended =
        code === CANNOT
          ? (/skipped: (.*)/.exec(this.text)?.[1] ?? 'it cannot be started here')
          : `it ended with code ${code}: ${this.text}`;
      this.watcher?.();
    });
  }

  /** Why there is no cluster; undefined when there is one. Throws when it should be there and is not. */
  async up(): Promise<string | undefined> {
    const ran = await this.run('sinfo --noheader --format %D').catch((error: Error) => error);
    if (ran instanceof Error) {
      if (this.shell.exitCode === CANNOT) return this.ended;
      throw ran;
    }
    expect(ran).toEqual({ code: 0, output: '4\n' });
    return undefined;
  }

  run(command: string): Promise<Ran> {
    this.text = '';
    // Without an input of its own, srun would read the commands that follow.
    this.shell.stdin?.write(`{ ${command}\n} </dev/null\necho "engine $?"\n`);
    return new Promise((resolve, reject) => {
      this.watcher = () => {
        const match = /^engine (\d+)\n/m.exec(this.text);
        if (match !== null) resolve({ code: Number(match[1]), output: this.text.slice(0, match.index) });
        else if (this.ended !== undefined) reject(new Error(this.ended));
      };
      this.watcher();
    });
  }

  async down(): Promise<void> {
    this.shell.stdin?.end('exit\n');
    if (this.ended === undefined) await new Promise((resolve) => this.shell.once('close', resolve));
  }
}

let code: BuiltCode;
let cluster: Cluster;
let why: string | undefined;

beforeAll(async () => {
  code = await buildCode(['joining-rank.mjs']);
  cluster = new Cluster();
  why = await cluster.up();
  if (why !== undefined) console.log(`skipped: jobs of Slurm: ${why}`);
  else await cluster.run('head -c 32 /dev/urandom >/tmp/secret; chmod 600 /tmp/secret');
}, 120_000);
afterAll(async () => {
  await cluster?.down();
  code?.dispose();
});

const srun = (options: string, ...args: string[]) =>
  cluster.run(`srun --overcommit ${options} ${process.execPath} ${code.fixture('joining-rank')} ${args.join(' ')}`);
const ranksIn = (output: string) => [...output.matchAll(/rank (\d+): of (\d+)/g)].map(([, rank, size]) => `${rank}/${size}`).sort();
const all = (size: number) => Array.from({ length: size }, (_, rank) => `${rank}/${size}`);

describe('srun', () => {
  /** A test that counts as skipped where there is no Slurm. */
  const onCluster = (name: string, body: () => Promise<void>) =>
    test(name, async ({ skip }) => {
      if (why !== undefined) skip();
      await body();
    });

  onCluster('--mpi=pmi2: eight ranks on four nodes', async () => {
    const ran = await srun('--mpi=pmi2 -N4 --ntasks-per-node=2', 'ring');
    expect({ ...ran, output: ranksIn(ran.output) }).toEqual({ code: 0, output: all(8) });
  });

  onCluster('--mpi=pmix: eight ranks on four nodes', async () => {
    const ran = await srun('--mpi=pmix -N4 --ntasks-per-node=2', 'ring');
    expect({ ...ran, output: ranksIn(ran.output) }).toEqual({ code: 0, output: all(8) });
    const { output } = await cluster.run(`srun --mpi=pmix -N1 ${process.execPath} ${code.cli} info`);
    expect(output).toMatch(/^PMIx +on: libpmix\.so\.2 \(OpenPMIx .*\), by PMIX_NAMESPACE, PMIX_RANK, PMIX_SERVER_URI/m);
  });

  onCluster('without PMI: the first node of the step, and a secret in a file', async () => {
    const ran = await srun('--export=ALL,MULTIRAIL_SECRET_FILE=/tmp/secret -N4 --ntasks-per-node=1', 'ring');
    expect({ ...ran, output: ranksIn(ran.output) }).toEqual({ code: 0, output: all(4) });
  });

  onCluster('without PMI: a file that all nodes share', async () => {
    const ran = await srun('--export=ALL,MULTIRAIL_RENDEZVOUS=/tmp/meeting -N3 --ntasks-per-node=1', 'ring');
    expect({ ...ran, output: ranksIn(ran.output) }).toEqual({ code: 0, output: all(3) });
  });

  onCluster('without PMI: on one node nothing has to be said', async () => {
    const ran = await srun('-N1 -n3', 'ring');
    expect({ ...ran, output: ranksIn(ran.output) }).toEqual({ code: 0, output: all(3) });
  });

  onCluster('without PMI and without a secret: it is said what to do', async () => {
    const ran = await srun('-N2 --ntasks-per-node=1', 'ring');
    expect(ran.code).toBe(1);
    expect(ran.output).toMatch(
      /the job meets at n1:\d+ \(the first host of SLURM_STEP_NODELIST, and a port from job and step\): this job has no secret/,
    );
  });

  for (const [mode, options, victims] of [
    ['--mpi=pmi2', '--mpi=pmi2', [0, 2]],
    ['--mpi=pmix', '--mpi=pmix', [2]],
    ['no PMI', '--mpi=none --export=ALL,MULTIRAIL_SECRET_FILE=/tmp/secret', [0, 2]],
  ] as const) {
    for (const victim of victims) {
      onCluster(`-K0 --no-kill, ${mode}: rank ${victim} is killed, the others learn it, go on and leave`, async () => {
        const ran = await srun(`${options} -K0 --no-kill -N4 --ntasks-per-node=1`, 'killed', String(victim));
        for (const rank of [0, 1, 2, 3].filter((one) => one !== victim)) {
          for (const text of [`receive: ERR_PROC_FAILED about ${victim}`, `send: ERR_PROC_FAILED about ${victim}`, 'left']) {
            expect(ran.output).toContain(`rank ${rank}: ${text}\n`);
          }
        }
        // Slurm tells of the kill, in its own code.
        expect(ran.code).not.toBe(0);
      });
    }
  }

  onCluster('one throws, all end, also under -K0', async () => {
    const ran = await srun('--mpi=pmi2 -K0 -N3 --ntasks-per-node=1', 'throw');
    // 1, or 137 where Slurm, told by PMI, was quicker to kill the others.
    expect(ran.code).not.toBe(0);
    expect(ran.output).toMatch(/rank 1 of 3 \(pid \d+\): unhandled rejection:\nTypeError: this rank is wrong\n {4}at /);
  });

  onCluster('--mpi=pmi2: the suites of semantics, a rank on each node', async () => {
    const report = '/tmp/report.json';
    const program = `${process.execPath} ${SEMANTICS} srun --report ${report} --jobs 0 -- -N4`;
    const ran = await cluster.run(`MULTIRAIL_TEST_CTX_ROUNDS=50 ${program}`);
    expect(ran.code, ran.output).toBe(0);
    // What is written in the cluster goes away with it. The mark behind the output is looked for at the beginning of a line.
    const text = (await cluster.run(`cat ${report}; echo`)).output;
    expectPassed(text, CASES[0]);
    mkdirSync(CACHE, { recursive: true });
    writeFileSync(`${CACHE}report-launchers-srun-4.json`, text);
  });

  onCluster('nothing is left of all these jobs', async () => {
    // Servers end with the last rank of their job; the last job has just ended.
    const left = await cluster.run(
      'for i in $(seq 100); do pgrep -f "^multirail rendezvous" >/dev/null || break; sleep 0.1; done; pgrep -af "^multirail|joining-rank|semantics"',
    );
    expect(left).toEqual({ code: 1, output: '' });
  });
});
