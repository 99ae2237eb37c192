// `multirail conformance`: plays the wire conformance suite against an implementation, or serves multirail's own endpoint to such a suite.
// Exit codes: 0 every clause that was tested holds, 1 one does not, 2 the command line makes no sense.
import { writeFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import type { CaseResult, Group } from '../wire-suite/case.ts';
import { CLAUSES } from '../wire-suite/clauses.ts';
import { type Control, connectControl, spawnControl } from '../wire-suite/control.ts';
import { listenForTesters, serveLines } from '../wire-suite/endpoint/serve.ts';
import { plain, toJson, toTap, toText, totalsOf } from '../wire-suite/report.ts';
import { CASES, runSuite } from '../wire-suite/run.ts';

interface ConformanceOptions {
  format: 'text' | 'json' | 'tap';
  output?: string;
  transport?: 'tcp' | 'ws';
  group?: Group[];
  only?: string;
  limit: number;
  quiet: number;
  verbose?: boolean;
  list?: boolean;
  serve?: true | string;
  native: boolean;
}

const GROUPS = [...new Set(CASES.map(({ group }) => group))];

function parseFormat(text: string): ConformanceOptions['format'] {
  if (text !== 'text' && text !== 'json' && text !== 'tap') throw new InvalidArgumentError('expected text, json or tap.');
  return text;
}

function parseTransport(text: string): 'tcp' | 'ws' {
  if (text !== 'tcp' && text !== 'ws') throw new InvalidArgumentError('expected tcp or ws.');
  return text;
}

function parseGroups(text: string): Group[] {
  const names = text.split(',') as Group[];
  if (!names.every((name) => GROUPS.includes(name))) throw new InvalidArgumentError(`expected some of ${GROUPS.join(', ')}.`);
  return names;
}

function parseMs(text: string): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) < 1) throw new InvalidArgumentError('expected milliseconds, from 1 to 999999.');
  return Number(text);
}

export function register(program: Command): void {
  program
    .command('conformance')
    .description('speak the wire protocol to an implementation, and judge it clause by clause of docs/internals/PROTOCOL.md')
    .argument(
      '[driver...]',
      'where its driver listens (tcp://HOST:PORT, or ws://HOST:PORT for WebSocket rails), or, after --, a command that starts one',
    )
    .option('--format <name>', 'text, json or tap', parseFormat, 'text')
    .option('--output <file>', 'write the report to this file, and only a summary to the terminal')
    .option('--transport <name>', 'rails to test, tcp or ws (only with a command; an address names its transport)', parseTransport)
    .option('--group <names>', `only these cases: ${GROUPS.join(', ')}`, parseGroups)
    .option('--only <text>', 'only cases whose name contains this')
    .option('--limit <ms>', 'how long to wait for an answer', parseMs, 5000)
    .option('--quiet <ms>', 'how long to check that nothing comes where nothing is due', parseMs, 30)
    .option('--verbose', 'print each case as it is played')
    .option('--list', 'print the clauses and end')
    .option('--serve [host:port]', 'be an endpoint under test instead: on the standard input and output, or for testers that connect there')
    .option('--no-native', 'with --serve: without the native part')
    .action(async (driver: string[], options: ConformanceOptions) => {
      if (options.list === true) return list();
      if (options.serve !== undefined) return await serve(program.version() ?? '', options);
      process.exitCode = await play(driver, options);
    });
}

function list(): void {
  for (const { id, section, says, untestable } of CLAUSES) {
    process.stdout.write(
      `${id.padEnd(6)} §${section.padEnd(3)} ${plain(says)}${untestable === undefined ? '' : `  (not testable from outside: ${untestable})`}\n`,
    );
  }
}

async function serve(version: string, options: ConformanceOptions): Promise<void> {
  const debug = process.env.MULTIRAIL_DEBUG !== undefined && process.env.MULTIRAIL_DEBUG !== '';
  const endpoint = {
    version,
    native: options.native,
    ...(debug ? { log: (text: string) => void process.stderr.write(`${text}\n`) } : {}),
  };
  if (typeof options.serve !== 'string') return await serveLines(process.stdin, process.stdout, endpoint);
  const { host, port } = hostAndPort(options.serve);
  const server = await listenForTesters(host, port, endpoint);
  const address = server.address();
  process.stderr.write(`waiting for testers on ${host}:${typeof address === 'object' && address !== null ? address.port : port}\n`);
  await new Promise((resolve) => server.once('close', resolve));
}

function hostAndPort(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  if (match === null || Number(match[3]) > 65_535)
    throw new MultirailError('ERR_ARG', `"${text}" is not an address: expected HOST:PORT or [IPV6]:PORT`);
  return { host: match[1] ?? match[2], port: Number(match[3]) };
}

/** The way to the driver, and the transport that its address names. */
async function reach(driver: readonly string[], options: ConformanceOptions): Promise<{ control: Control; transport: 'tcp' | 'ws' }> {
  if (driver.length === 0) {
    throw new MultirailError(
      'ERR_ARG',
      'conformance: say where the driver of the implementation listens (tcp://HOST:PORT), or, after --, the command that starts it',
    );
  }
  const url = /^(tcp|ws):\/\/(.+?)\/?$/.exec(driver[0]);
  if (url === null) return { control: spawnControl(driver[0], driver.slice(1)), transport: options.transport ?? 'tcp' };
  const { host, port } = hostAndPort(url[2]);
  return { control: await connectControl(host, port), transport: options.transport ?? (url[1] as 'tcp' | 'ws') };
}

async function play(driver: readonly string[], options: ConformanceOptions): Promise<number> {
  const { control, transport } = await reach(driver, options);
  const say = (text: string) => void process.stderr.write(`${text}\n`);
  const onCase = ({ case: one, skipped, findings, ms }: CaseResult) => {
    const failures = findings.filter(({ ok }) => !ok);
    if (options.verbose !== true && failures.length === 0) return;
    const verdict = skipped !== undefined ? `skipped: ${skipped}` : failures.length > 0 ? 'FAILED' : 'ok';
    say(`${one.group}: ${one.name}: ${verdict} (${findings.length} checks, ${Math.round(ms)} ms)`);
  };
  try {
    const report = await runSuite(control, {
      transport,
      limitMs: options.limit,
      quietMs: options.quiet,
      onCase,
      ...(options.group === undefined ? {} : { groups: options.group }),
      ...(options.only === undefined ? {} : { only: options.only }),
    });
    const text =
      options.format === 'tap'
        ? toTap(report)
        : options.format === 'json'
          ? `${JSON.stringify(toJson(report), null, 2)}\n`
          : toText(report);
    if (options.output === undefined) process.stdout.write(text);
    else writeFileSync(options.output, text);
    const totals = totalsOf(report.clauses);
    if (options.output !== undefined || options.format !== 'text')
      say(
        `clauses: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped, ${totals.untestable} not testable from outside`,
      );
    if (totals.passed + totals.failed === 0) throw new MultirailError('ERR_ARG', 'no case fits --group and --only: nothing was tested');
    return totals.failed === 0 ? 0 : 1;
  } finally {
    await control.close();
  }
}
