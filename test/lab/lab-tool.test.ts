// `multirail lab` as its users have it: a lab that outlives the command, jobs in it, faults by command and by script, and nothing left
// behind, whichever process is killed. Then Linpack in its own lab, with the fast network pulled during the run.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SweepReport } from '../../tools/hpl/sweep.ts';
import { socketPath } from '../../tools/lab/keeper.ts';
import { labNamespaces, labUnavailable, waitUntil } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode, isAlive, type Ran, startNode } from '../support/helpers.ts';

const unavailable = labUnavailable();
const NAME = `test-${process.pid}`;
describe.skipIf(unavailable !== undefined)(`multirail lab${unavailable === undefined ? '' : ` (skipped: ${unavailable})`}`, () => {
  let code: BuiltCode;
  let folder: string;
  let program: string;
  beforeAll(async () => {
    code = await buildCode(['lab-ring.mjs']);
    folder = mkdtempSync(join(tmpdir(), 'multirail-lab-tool-'));
    program = code.fixture('lab-ring.mjs');
  });
  afterAll(() => {
    code.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    await multirail('lab', 'down', '--name', NAME);
  });

  const multirail = (...words: string[]): Promise<Ran> => startNode([code.cli, ...words], { timeoutMs: 100_000 }).ended;
  const lab = (command: string, ...words: string[]): Promise<Ran> => multirail('lab', command, '--name', NAME, ...words);
  const status = async () =>
    JSON.parse((await lab('status', '--json')).stdout) as { keeperPid: number; namespaces: string[]; faults: string[][] };
  const gone = (namespaces: readonly string[]) =>
    waitUntil('the namespaces to be gone', () => !labNamespaces().some((name) => namespaces.includes(name)), 20_000, 50);

  it('up, run, pull, flap, one way, restore, run again, down', async () => {
    const up = await lab('up', '--rails', 'fast,slow,100mbit', '-n', '3');
    expect(up).toMatchObject({ code: 0, stderr: '' });
    expect(up.stdout).toContain('The lab test-');
    const { namespaces, faults } = await status();
    expect(namespaces).toHaveLength(3);
    expect(faults).toEqual([[], [], []]);
    expect(labNamespaces()).toEqual(expect.arrayContaining(namespaces));

    const first = await lab('run', program);
    expect(first.code).toBe(0);
    expect(first.stdout).toContain('[0] went round 3 and is worth 3');
    expect(first.stdout).toMatch(/\[1\] rails \S*mr0\S* \S*mr1\S* \S*mr2/);

    expect((await lab('pull', 'fast')).stdout).toBe('rail fast pulled\n');
    expect((await lab('oneway', '2', '1')).code).toBe(0);
    expect((await lab('throttle', 'slow', '200mbit')).code).toBe(0);
    expect((await status()).faults).toEqual([['rail fast pulled'], ['rail slow at 200 Mbit/s'], ['what node 1 sends on rail 2 vanishes']]);
    const links = (await lab('exec', '1', 'ip', '-o', 'link', 'show', 'mr0')).stdout;
    expect(links).toContain('NO-CARRIER');
    // On what is left.
    expect((await lab('run', program)).stdout).toContain('went round 3');

    expect((await lab('flap', 'slow', '400ms', 'silent')).code).toBe(0);
    const twice = await lab('flap', 'slow', '400ms');
    expect(twice.code).toBe(1);
    expect(twice.stderr).toContain('is flapping already');
    expect((await lab('restore')).code).toBe(0);
    expect((await status()).faults).toEqual([[], [], []]);
    expect((await lab('run', '-n', '5', program)).stdout).toContain('[0] went round 5 and is worth 10');

    expect((await lab('up', '--rails', '1gbit')).stderr).toContain('is up already');
    expect((await lab('down')).stdout).toBe(`The lab ${NAME} is gone.\n`);
    expect(labNamespaces().filter((name) => namespaces.includes(name))).toEqual([]);
    expect(existsSync(socketPath(NAME))).toBe(false);
  });

  it('mistakes are named', async () => {
    expect(await lab('pull', '0')).toMatchObject({
      code: 2,
      stderr: `multirail: no lab ${NAME} is up: multirail lab up --rails 1gbit,1gbit makes one\n`,
    });
    expect((await lab('up', '--rails', 'quick')).stderr).toContain('"quick" is not a rate');
    await lab('up', '--rails', '1gbit', '-n', '1');
    expect(await lab('pull', '7')).toMatchObject({ code: 2, stderr: 'multirail: there is no rail "7": there is 0\n' });
    expect((await lab('exec', '4', 'true')).stderr).toContain('nodes go from 0 to 0');
    expect((await lab('exec', '0', 'sh', '-c', 'exit 7')).code).toBe(7);
  });

  it('kill -9 of its keeper takes the lab and what runs in it along; a new one can be made', async () => {
    await lab('up', '--rails', '1gbit', '-n', '2');
    const { keeperPid, namespaces } = await status();
    const job = startNode([code.cli, 'lab', 'exec', '--name', NAME, '1', 'sleep', '600']);
    await waitUntil('the sleeper', () => execFileSync('ip', ['netns', 'pids', namespaces[1]], { encoding: 'utf8' }) !== '', 20_000);
    process.kill(keeperPid, 'SIGKILL');
    await gone(namespaces);
    expect((await job.ended).code).toBe(128 + 9);
    expect((await lab('status')).stderr).toContain(`no lab ${NAME} is up`);
    expect((await lab('up', '--rails', '1gbit')).code).toBe(0);
  });

  it('a lab for one job, with a timeline; kill -9 of the command takes all of it along', async () => {
    const timeline = join(folder, 'timeline');
    writeFileSync(timeline, '# nothing of it is heard by the ranks\n0s pull fast\n50ms restore fast\n');
    const words = [code.cli, 'lab', 'run', '--rails', 'fast,slow', '-n', '2', '--timeline', timeline];
    const ran = await startNode([...words, program], { timeoutMs: 60_000 }).ended;
    expect(ran.code).toBe(0);
    expect(ran.stdout).toContain('went round 2 and is worth 1');
    expect(ran.stderr).toMatch(/^multirail: 0\.\d{3} s: rail fast pulled$/m);

    const before = labNamespaces();
    const sleeping = startNode([...words, '--', 'sh', '-c', 'echo "I am $$"; exec sleep 600']);
    const [, pid] = await sleeping.until(/I am (\d+)/);
    const made = labNamespaces().filter((name) => !before.includes(name));
    expect(made.length).toBeGreaterThanOrEqual(3);
    sleeping.child.kill('SIGKILL');
    await gone(made);
    await waitUntil('the rank to be gone', () => !isAlive(Number(pid)), 20_000, 50);
  });

  it('a timeline that cannot be read, or be played, ends it', async () => {
    const timeline = join(folder, 'wrong');
    writeFileSync(timeline, '1s unplug fast\n');
    const ran = await multirail('lab', 'run', '--rails', 'fast', '-n', '1', '--timeline', timeline, program);
    expect(ran).toMatchObject({ code: 2 });
    expect(ran.stderr).toContain('line 1 of the timeline: "unplug" is not an action of a lab');
    expect((await multirail('lab', 'run', '--rails', 'fast', '-n', '1', '--timeline', join(folder, 'none'), program)).stderr).toContain(
      'the timeline cannot be read',
    );
  });

  it('Linpack goes on while the fast network is pulled, and back when it is restored', async () => {
    const ran = await multirail(
      'hpl',
      '-n',
      '2',
      '-N',
      '200',
      '--nb',
      '16',
      '--rails',
      'fast,slow',
      '--pull',
      'fast@25%',
      '--restore',
      'fast@60%',
    );
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout).toMatch(/^WR11R2R8 +200 +16 +1 +2/m);
    expect(ran.stdout).toContain('PASSED');
    expect(ran.stdout).toMatch(/^pull carried out .* after the start, 4 of 13 blocks done$/m);
    expect(ran.stdout).toMatch(/^restore carried out .* 8 of 13 blocks done$/m);
  });

  it('told by the rails: saves at the next checkpoint, stops, and resumes', async () => {
    const save = join(folder, 'save');
    const words = ['hpl', '-n', '2', '-N', '300', '--nb', '16', '--rails', 'fast,slow', '--checkpoint', save, '--checkpoint-every', '2'];
    const stopped = await multirail(...words, '--on-rail-lost', 'stop', '--pull', 'fast@20%');
    expect(stopped.code).toBe(0);
    const [, block] = /^Stopped after block (\d+) of 19, which is saved/m.exec(stopped.stdout) ?? [];
    expect(Number(block)).toBeGreaterThanOrEqual(4);
    expect(Number(block) % 2).toBe(0);
    expect(stopped.stdout).not.toContain('PASSED');
    expect(JSON.parse(readFileSync(join(save, 'checkpoint.json'), 'utf8'))).toMatchObject({ block: Number(block) });
    const resumed = await multirail(...words, '--resume');
    expect(resumed.code).toBe(0);
    expect(resumed.stdout).toContain('PASSED');
  });

  it('a sweep: rows beside the model, a figure, JSON', async () => {
    const file = join(folder, 'sweep.json');
    const words = [
      'hpl',
      '-n',
      '2',
      '-N',
      '150',
      '--nb',
      '16',
      '--rails',
      'fast,slow',
      '--sweep',
      '--moments',
      '50',
      '--series',
      'network',
    ];
    const ran = await multirail(...words, '--out', folder, '--json', file);
    expect(ran.code).toBe(0);
    expect(ran.stdout).toMatch(/^ +150 {2}- +never +- .*PASSED$/m);
    expect(ran.stdout).toMatch(/^ +150 {2}network +0 % +0\/10 .*PASSED$/m);
    expect(ran.stdout).toMatch(/^ +150 {2}network +50 % +5\/10 +[\d.]+ +[\d.]+ +[\d.]+ +[+-][\d.]+ % .*PASSED$/m);
    const { rows } = JSON.parse(readFileSync(file, 'utf8')) as SweepReport;
    expect(rows.map(({ fraction, railsLost }) => [fraction, railsLost > 0])).toEqual([
      [undefined, false],
      [0, true],
      [0.5, true],
    ]);
    const [, figure] = /^Figure: (.*)$/m.exec(ran.stdout) ?? [];
    expect(readFileSync(figure, 'utf8')).toContain('</svg>');
  });
});
