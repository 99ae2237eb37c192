// `multirail conformance` with real processes: tester and endpoint apart, over lines and over TCP, in every form of report; exit codes.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { CLAUSES } from '../../tools/wire-suite/clauses.ts';
import type { JsonReport } from '../../tools/wire-suite/report.ts';
import { type BuiltCode, buildCode, type Ran, type Running, startNode, untilGone } from '../support/helpers.ts';

const TIME_MS_MAX = 100_000;

let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode([]);
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

function start(args: readonly string[]): Running {
  const job = startNode([code.cli, 'conformance', ...args], { timeoutMs: TIME_MS_MAX });
  running.push(job);
  return job;
}

const conformance = (...args: string[]): Promise<Ran> => start(args).ended;

test('the whole suite against our endpoint in a process of its own, as TAP', async () => {
  const served = start(['--serve', '127.0.0.1:0']);
  const [, port] = await served.until(/waiting for testers on 127\.0\.0\.1:(\d+)/);
  const output = join(code.folder, 'report.tap');
  const ran = await conformance('--format', 'tap', '--output', output, `tcp://127.0.0.1:${port}`);
  const tap = existsSync(output) ? readFileSync(output, 'utf8').split('\n') : [];
  expect(tap.filter((line) => line.startsWith('not ok') || line.startsWith('    - '))).toEqual([]);
  expect(ran.code, ran.stderr).toBe(0);
  expect(ran.stdout).toBe('');
  expect(ran.stderr).toMatch(/clauses: \d{3} passed, 0 failed/);
  expect(tap[1]).toBe(`1..${CLAUSES.length}`);
  // The next tester is served as well, and the endpoint is still there.
  const second = await conformance('--only', 'a good handshake', `ws://127.0.0.1:${port}`);
  expect(second.code, second.stderr).toBe(0);
  expect(second.stdout).toContain('over ws');
});

test('a driver that is started, as JSON; it ends with the suite', async () => {
  const pidFile = join(code.folder, 'pid');
  const driver = ['sh', '-c', `echo $$ > ${pidFile}; exec ${process.execPath} ${code.cli} conformance --serve`];
  const ran = await conformance('--format', 'json', '--group', 'credit,rendezvous', '--', ...driver);
  expect(ran.code, ran.stderr).toBe(0);
  const report = JSON.parse(ran.stdout) as JsonReport;
  expect(report.endpoint.name).toBe('multirail');
  expect(report.totals.failed).toBe(0);
  const verdictOf = (id: string) => report.clauses.find((clause) => clause.id === id)?.verdict;
  expect(verdictOf('CR-2')).toBe('passed');
  expect(verdictOf('RV-4')).toBe('passed');
  expect(verdictOf('BY-1')).toBe('skipped');
  expect(verdictOf('VB-1')).toBe('untestable');
  await untilGone([Number(readFileSync(pidFile, 'utf8'))]);
});

test('an implementation that fails: exit code 1, and the report says what and where', async () => {
  const driver = ['sh', '-c', `${process.execPath} ${code.cli} conformance --serve | sed -u 's/"tag":5,/"tag":7,/'`];
  const ran = await conformance('--only', 'the oldest posted receive', '--limit', '2000', '--', ...driver);
  expect(ran.code, ran.stderr).toBe(1);
  expect(ran.stdout).toContain('FAILED MT-5 §7');
  expect(ran.stdout).toContain('has tag 5, and not 7');
  expect(ran.stderr).toContain('the oldest posted receive that fits: FAILED');
});

test('command lines that make no sense', async () => {
  const usage: [string[], RegExp][] = [
    [[], /say where the driver of the implementation listens/],
    [['--group', 'nonsense', '--', 'true'], /expected some of handshake, framing/],
    [['--format', 'xml', '--', 'true'], /expected text, json or tap/],
    [['tcp://127.0.0.1'], /is not an address/],
    [['--only', 'no case of that name', '--', process.execPath, code.cli, 'conformance', '--serve'], /nothing was tested/],
  ];
  for (const [args, text] of usage) {
    const ran = await conformance(...args);
    expect(ran.stderr, args.join(' ')).toMatch(text);
    expect(ran.code, args.join(' ')).toBe(2);
  }
  const nobody = await conformance('tcp://127.0.0.1:1');
  expect(nobody).toMatchObject({ code: 1, stdout: '' });
  expect(nobody.stderr).toContain('no driver answers at 127.0.0.1:1');
  const silent = await conformance('--', 'true');
  expect(silent.code).toBe(1);
  expect(silent.stderr).toContain('the driver has ended');
  const list = await conformance('--list');
  expect(list.stdout.trim().split('\n').length).toBe(CLAUSES.length);
});
