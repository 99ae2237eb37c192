// `multirail bench`, `demo` and `info` with real processes: the tables, the verdict and the exit code of failover runs, and that a run in
// which something is wrong fails. The tests check that figures are there, not their values.
import { strict as assert } from 'node:assert';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, describe as group, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, type Ran, type Running, startNode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';

const TIME_MS_MAX = 60_000;

let code: BuiltCode;
let folder: string;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['bench-planted.ts']);
  folder = mkdtempSync(join(code.folder, 'out-'));
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  code?.dispose();
});

function multirail(line: string, env: Record<string, string> = {}): Promise<Ran> {
  const job = startNode([code.cli, ...line.split(' ').map((word) => word.replace('OUT', folder))], {
    input: '',
    env,
    timeoutMs: TIME_MS_MAX,
  });
  running.push(job);
  return job.ended;
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

group('processes that die', () => {
  test('bench ft: calls while all live, two deaths, and who was called in', async () => {
    const ran = await multirail('bench ft -n 3 --spares 2 --iterations 5 --json OUT/ft.json');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/^barrier\(\) +[\d.]+ [um]s$/m);
    expect(ran.stdout).toMatch(/^death to replaced +[\d.]+ ms +[\d.]+ ms$/m);
    const { deaths, ranks } = JSON.parse(readFileSync(join(folder, 'ft.json'), 'utf8'));
    expect(ranks).toBe(3);
    expect(deaths).toHaveLength(2);
    for (const { learned, shrunk, replaced } of deaths) {
      expect(learned).toBeGreaterThan(0);
      expect(shrunk).toBeGreaterThan(learned);
      expect(replaced).toBeGreaterThan(shrunk);
    }
  });

  test('bench save: rates, a save in the background, and a death that is recovered from', async () => {
    const ran = await multirail('bench save -n 3 --state 1m --repeats 1 --deaths 1 --json OUT/save.json');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/^copy with checksum +[\d.]+ GB\/s/m);
    expect(ran.stdout).toMatch(/^SIGKILL to the program running, of 1 +[\d.]+ ms/m);
    const { rates, background, recoveriesMs } = JSON.parse(readFileSync(join(folder, 'save.json'), 'utf8'));
    for (const rate of Object.values(rates)) expect(rate).toBeGreaterThan(0);
    expect(background.committedMs).toBeGreaterThan(0);
    expect(recoveriesMs).toHaveLength(1);
  });

  test('bench log: short and long messages, a plate and an allreduce, with and without a log', async () => {
    const ran = await multirail('bench log -n 2 --repeats 1 --iterations 100 --plate 64 --json OUT/log.json');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/^on one that is logged +[\d.]+ us/m);
    expect(ran.stdout).toMatch(/^on one that is logged +[\d.]+ GB\/s/m);
    const { latency, stream, heat, allreduce } = JSON.parse(readFileSync(join(folder, 'log.json'), 'utf8'));
    for (const figure of [latency.withoutLogUs, latency.besideUs, latency.loggedUs]) expect(figure).toBeGreaterThan(0);
    for (const rate of Object.values(stream)) expect(rate).toBeGreaterThan(0);
    expect(heat.loggedMs).toBeGreaterThan(0);
    for (const figure of [allreduce.withoutLogUs, allreduce.besideUs, allreduce.loggedUs]) expect(figure).toBeGreaterThan(0);
  });
});

group('tables', () => {
  test('latency starts its own ranks and prints what OSU prints', async () => {
    const ran = await multirail('bench latency --sizes 1,1k,100k --iterations 10 --warmup 2 --json OUT/latency.json');
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const [machine, ...table] = lines(ran.stdout);
    expect(machine).toMatch(/^# .*Node v\d+/);
    expect(table.slice(0, 2)).toEqual(['# multirail Latency Test (OSU scheme)', '# Size          Latency (us)']);
    expect(table.slice(2).map((line) => /^(\d+) +\d+\.\d\d$/.exec(line)?.[1])).toEqual(['1', '1024', '102400']);
    const figures = JSON.parse(readFileSync(join(folder, 'latency.json'), 'utf8'));
    expect(figures).toMatchObject({ test: 'latency', ranks: 2, rows: [{ sizeBytes: 1 }, { sizeBytes: 1024 }, { sizeBytes: 102400 }] });
  });

  test.each([
    ['bw', ''],
    ['bibw', ' --mca btl self,tcp --mca btl_tcp_links=2'],
    ['rate', ' -n 4'],
  ])('%s%s', async (name, more) => {
    const ran = await multirail(`bench ${name} --sizes 8,100k --iterations 2 --warmup 1 --window 4${more}`);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const rows = lines(ran.stdout).filter((line) => !line.startsWith('#'));
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row).toMatch(/^\d+( +\d+\.\d\d)+$/);
  });

  test.each([
    ['allreduce', ' -n 3', ['8', '102400'], '# multirail Allreduce Latency Test (OSU scheme)'],
    [
      'alltoall',
      loadNative().reason === undefined ? ' -n 2 --sync --mca btl self,tcp' : ' -n 2',
      ['8', '102400'],
      '# multirail All-to-All Latency Test (OSU scheme)',
    ],
    ['bcast', ' -n 4', ['8', '102400'], '# multirail Broadcast Latency Test (OSU scheme)'],
    ['barrier', ' -n 3', [''], '# multirail Barrier Latency Test (OSU scheme)'],
  ])('%s%s', async (name, more, sizes, title) => {
    const ran = await multirail(`bench ${name} --sizes 8,100k --iterations 5 --warmup 1 --json OUT/${name}.json${more}`);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const [, ...table] = lines(ran.stdout);
    expect(table[0]).toBe(title);
    expect(table[1]).toMatch(/^#( Size)? +Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\) +Iterations$/);
    const rows = table.slice(2).map((line) => /^(\d*) +(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d\d) +5$/.exec(line) ?? assert.fail(line));
    expect(rows.map(([, size]) => size)).toEqual(sizes);
    for (const [, , average, least, most] of rows) {
      expect(Number(least)).toBeLessThanOrEqual(Number(average));
      expect(Number(average)).toBeLessThanOrEqual(Number(most));
    }
    expect(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'))).toMatchObject({
      test: name,
      rows: rows.map(() => ({ iterations: 5 })),
    });
  });

  test('allreduce takes numbers of four bytes', async () => {
    const ran = await multirail('bench allreduce --sizes 6');
    expect(ran.code).not.toBe(0);
    expect(ran.stderr).toMatch(/size 6: allreduce sums numbers of 4 bytes/);
  });

  test('as a rank of another job it is that rank', async () => {
    const ran = await multirail(`run -n 2 --no-prefix ${code.cli} bench latency --sizes 8 --iterations 3`);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(lines(ran.stdout).at(-1)).toMatch(/^8 +\d+\.\d\d$/);
  });

  const MISUSE: [string, string][] = [
    ['bench latency --sizes x', 'size "x"'],
    ['bench latency -n 3', 'takes two ranks'],
    ['bench rate -n 3', 'even number'],
    ['bench ft --spares 1 --deaths 2', 'expected at most 1'],
    ['bench bw --pull 1', 'RAIL@TIME'],
    ['bench bw --pull 1@9s', 'over after 6000 ms'],
    ['bench bw --pull 7@1s --no-plot', 'there are rails 0 to 1'],
    ['bench bw --pull 0@1s --mca btl_tcp_links 1', 'every one of the 1 rails'],
    ['bench bw --verify --sizes 8', 'does not go with'],
    ['bench bw --mca no_such 1', 'unknown parameter'],
  ];
  test.each(drawTests('misuse of bench', MISUSE))('%s: exit code 2, and why', async (line, text) => {
    const ran = await multirail(line);
    expect(ran.stderr).toContain(text);
    expect(ran.code).toBe(2);
  });
});

group('failover runs', () => {
  test.each(['silent', 'error'])('a rail that dies (%s) and comes back: everything arrives', async (mode) => {
    const ran = await multirail(
      `bench bw --pull 1@800ms --restore 1@1800ms --seconds 3 --mode ${mode} --verify --out OUT/${mode} --json OUT/${mode}.json`,
    );
    // Each rank restores its end by its own clock: the first to dial may find the other end pulled still.
    const complaints = ran.stderr.split('\n').filter((line) => line !== '' && !/: the rail is pulled \(fault interposer\)$/.test(line));
    expect(complaints).toEqual([]);
    const verdict = lines(ran.stdout).at(-1);
    expect(verdict).toMatch(/^PASS: nothing lost, doubled or reordered/);
    expect(ran.code).toBe(0);
    expect(ran.stdout).toMatch(/rank 0: rail 1 pulled/);
    expect(ran.stdout).toMatch(/rail 1 is lost/);
    const report = JSON.parse(readFileSync(join(folder, `${mode}.json`), 'utf8'));
    expect(report).toMatchObject({ verdict, problems: [], findings: { lost: 0, doubled: 0, reordered: 0, damaged: 0 } });
    expect(report.findings.received).toEqual(report.findings.sent);
    expect(report.phases.map(({ pulled }: { pulled: number[] }) => pulled)).toEqual([[], [1], []]);
    const plot = join(folder, mode, 'failover.svg');
    expect(ran.stdout).toContain(`Plot: ${plot}\n`);
    expect(readFileSync(plot, 'utf8')).toContain('rail 1 pulled');
  });

  test('rails of two kinds, short messages, without a plot', async () => {
    const ran = await multirail(
      'bench bw --pull 0@500ms --seconds 1.5 --size 2000 --mode error --mca btl self,tcp,ws --no-plot --out OUT/none',
    );
    expect(ran.stdout).toMatch(/PASS: .*contents not verified\)\n$/);
    expect(ran.code).toBe(0);
    expect(existsSync(join(folder, 'none'))).toBe(false);
  });

  test('the parameter btl_fault breaks rails of any program, here of a run that pulls none itself', async () => {
    const ran = await multirail(
      'bench bw --seconds 1.5 --verify --no-plot --mca btl_tcp_links 2 --mca btl_fault pull:1:error@700ms,restore:1@900ms',
    );
    // Both ranks pull by their own clocks. The notice of the other end's loss may overtake what the own interposer says.
    for (const rank of [0, 1]) {
      expect(ran.stdout).toMatch(new RegExp(`rank ${rank}: rail 1 is lost: (.*fault interposer|fenced: the peer lost it|closed: )`));
    }
    expect(ran.stdout).not.toMatch(/rail 0 is lost/);
    expect(lines(ran.stdout).at(-1)).toMatch(/^PASS/);
    expect(ran.code).toBe(0);
    const wrong = await multirail('bench latency --mca btl_fault pull:1:slowly@700ms');
    expect(wrong.stderr).toContain('btl_fault');
    expect(wrong.code).not.toBe(0);
  });

  test('the run that is planted with nothing passes', async () => {
    const ran = await multirail(`run -n 2 --no-prefix --mca btl self,tcp --mca btl_tcp_links 2 ${code.fixture('bench-planted.ts')}`, {
      BENCH_PLANT: 'none',
    });
    expect(lines(ran.stdout).at(-1)).toMatch(/^PASS/);
    expect(ran.code).toBe(0);
  });

  const PLANTS: [string, RegExp][] = [
    ['lose', /^FAIL: 1 message lost \(20\); .*hashes of the two sides differ/],
    ['double', /^FAIL: 1 message doubled \(20\); /],
    ['swap', /^FAIL: 1 message reordered \(20 after 21\); /],
    ['damage', /^FAIL: 1 message damaged \(20\); /],
    ['no-end', /^FAIL: the end of the stream did not come; the sender did not report what it has sent; a receive failed: ERR_PROC_FAILED/],
    ['hang', /^FAIL: the end of the stream did not come; the sender did not report what it has sent; nothing was delivered for 2 s/],
    ['shorten', /^FAIL: 1 message damaged \(20\); /],
  ];
  test.each(drawTests('planted in a failover run', PLANTS))('a planted fault must show: %s', async (plant, verdict) => {
    const ran = await multirail(`run -n 2 --no-prefix --mca btl self,tcp --mca btl_tcp_links 2 ${code.fixture('bench-planted.ts')}`, {
      BENCH_PLANT: plant,
    });
    expect(lines(ran.stdout).at(-1)).toMatch(verdict);
    expect(ran.code).toBe(1);
  });
});

group('demo and info', () => {
  test('the demo passes', async () => {
    const ran = await multirail('demo --out OUT/demo');
    expect(lines(ran.stdout).at(-1)).toMatch(/^PASS: /);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(join(folder, 'demo', 'failover.svg'))).toBe(true);
  });

  test('info', async () => {
    const ran = await multirail('info --mca btl_tcp_links 2', { MULTIRAIL_MCA_pml_frag_bytes: '64k' });
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout).toMatch(/^multirail \d+\.\d+\.\d+\n/);
    expect(ran.stdout).toContain('btl_tcp_links = 2 connections [argument]');
    expect(ran.stdout).toContain('[environment MULTIRAIL_MCA_pml_frag_bytes]');
    expect(JSON.parse((await multirail('info --json')).stdout)).toMatchObject({
      transports: [{ name: 'self' }, { name: 'sm' }, { name: 'verbs' }, { name: 'tcp' }, { name: 'ws' }],
    });
    expect((await multirail('info --all')).stdout).toContain('bml_rail_timeout_ms = 400 ms');
  });
});
