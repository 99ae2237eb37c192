// The command line of bench/lab.sh and bench/soak.sh. Imports commander, the lab, the files of this folder.
import { Command, InvalidArgumentError, Option } from 'commander';
import { labUnavailable } from '../../tools/lab/lab.ts';
import { type NamedRail, parseRails } from '../../tools/lab/rails.ts';
import { PLANTS, type Plant } from '../soak/protocol.ts';
import { soakTraffic } from '../soak/traffic.ts';
import { type AlarmsOptions, alarms } from './alarms.ts';
import { failover, KINDS, KINDS_ASKED_FOR } from './failover.ts';
import { gray } from './gray.ts';
import { grayAudit } from './gray-audit.ts';
import { GRAY_PLANTS, type GrayPlant } from './gray-protocol.ts';
import { OWN_TRANSPORTS, TOPOLOGIES, type Topology, type Transport } from './gray-record.ts';
import { idle } from './idle.ts';
import { memory } from './memory.ts';
import type { Traffic } from './protocol.ts';
import { CASES, throughput } from './throughput.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) {
  process.stderr.write(`cannot measure here: ${unavailable}\n`);
  process.exit(2);
}

const count = (text: string): number => {
  const value = Number(text);
  if (!(Number.isFinite(value) && value > 0)) throw new InvalidArgumentError('a number above 0 is expected');
  return value;
};
const oneOf =
  (known: readonly string[]) =>
  (text: string): string[] => {
    const list = text.split(',').filter((word) => word !== '');
    for (const word of list) if (!known.includes(word)) throw new InvalidArgumentError(`known are ${known.join(', ')}`);
    return list;
  };
const mca = (text: string, before: Record<string, string>): Record<string, string> => {
  const at = text.indexOf('=');
  if (at <= 0) throw new InvalidArgumentError('NAME=VALUE is expected');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
};
const range = (text: string) => {
  const match = /^(\d+)\.\.(\d+)$/.exec(text);
  if (match === null || Number(match[1]) > Number(match[2])) throw new InvalidArgumentError('LOW..HIGH is expected, as in 500..1000');
  return { low: Number(match[1]), high: Number(match[2]) };
};
/** 1m:64,8m:8 */
const sizes = (text: string) =>
  text.split(',').map((word) => {
    const match = /^(\d+)([km]?):(\d+)$/.exec(word);
    if (match === null) throw new InvalidArgumentError('BYTES:WINDOW is expected, as in 1m:64,8m:8');
    return { bytes: Number(match[1]) * { '': 1, k: 1024, m: 1 << 20 }[match[2] as '' | 'k' | 'm'], window: Number(match[3]) };
  });

const command = ['bench', ...process.argv.slice(2)].join(' ');
const program = new Command('bench/lab.sh').description('measurements over real links, as root').showHelpAfterError();
const withCommon = (made: Command, minutes: number) =>
  made
    .option('--minutes <n>', 'stop after that many minutes with what there is', count, minutes)
    .option('--mca <name=value>', 'a parameter of the ranks (repeatable)', mca, {})
    .option('--congestion-control <name>', "of TCP on the lab's nodes, by the name in the kernel: cubic, bbr, reno (default: cubic)")
    .option('--seed <n>', 'of all chance', count, 1);

withCommon(program.command('throughput'), 60)
  .option('--rounds <n>', 'interleaved rounds', count, 9)
  .option('--cases <list>', `of ${Object.keys(CASES).join(', ')}`, oneOf(Object.keys(CASES)), ['400+400', '400+100', '1000+400+100'])
  .option('--sizes <list>', 'BYTES:WINDOW, …', sizes, sizes('1m:64,8m:8'))
  .option('--seconds <n>', 'measured time of each stream', count, 4)
  .option('--warm-seconds <n>', 'before it', count, 1.5)
  .action(async (options) => {
    process.exitCode = await throughput({ ...options, command });
  });

withCommon(program.command('failover'), 180)
  .option('--faults <n>', 'of each kind and traffic', count, 100)
  .option('--traffic <list>', 'of bulk, pingpong, pingpong-sync, stream8', oneOf(['bulk', 'pingpong', 'pingpong-sync', 'stream8']), [
    'bulk',
    'pingpong',
    'stream8',
  ])
  .option('--kinds <list>', `of ${Object.keys(KINDS).join(', ')}`, oneOf(Object.keys(KINDS)), KINDS_ASKED_FOR)
  .option('--mbit <n>', 'rate of each rail', count, 1000)
  .option('--hold-ms <low..high>', 'how long a fault lasts', range, { low: 500, high: 1000 })
  .action(async (options) => {
    process.exitCode = await failover({ ...options, traffics: options.traffic as Traffic[], command });
  });

withCommon(program.command('alarms'), 90)
  .option('--short', '5 s, 5 s and 20 s instead of 60 s, 60 s and 600 s')
  .option('--compute-seconds <n>', 'of a receiver that computes', count)
  .option('--stop-seconds <n>', 'of SIGSTOP', count)
  .option('--busy-seconds <n>', 'beside busy processes, for each traffic', count)
  .option('--only <list>', 'of compute, stop, busy', oneOf(['compute', 'stop', 'busy']), ['compute', 'stop', 'busy'])
  .option('--over <list>', 'of loopback, rails', oneOf(['loopback', 'rails']), ['loopback', 'rails'])
  .action(async ({ short = false, computeSeconds, stopSeconds, busySeconds, ...options }) => {
    const alarmsOptions: AlarmsOptions = {
      ...options,
      computeMs: (computeSeconds ?? (short ? 5 : 60)) * 1000,
      stopMs: (stopSeconds ?? (short ? 5 : 60)) * 1000,
      busyMs: (busySeconds ?? (short ? 20 : 600)) * 1000,
      command,
    };
    process.exitCode = await alarms(alarmsOptions);
  });

withCommon(program.command('idle'), 10)
  .option('--rails <n>', 'links over loopback', count, 8)
  .option('--seconds <n>', 'measured time', count, 30)
  .option('--settle-seconds <n>', 'before it', count, 5)
  .option('--sync', 'rank 1 waits in recvSync() instead of by a promise')
  .action(async (options) => {
    process.exitCode = await idle({ ...options, command });
  });

withCommon(program.command('memory'), 15)
  .option('--peers <n>', 'of one process', count, 128)
  .option('--base-peers <n>', 'of the smaller run that is subtracted', count, 8)
  .option('--rails <n>', 'to each', count, 2)
  .option('--hosts <n>', 'processes that hold the peers', count, 4)
  .action(async (options) => {
    process.exitCode = await memory({ ...options, command });
  });

const rails = (text: string): NamedRail[] => {
  try {
    return parseRails(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
};
/** For a measurement that ends in order when it is asked to. */
const interrupted = new AbortController();
let endsInOrder = false;

withCommon(program.command('traffic'), 120)
  .description('all kinds of messages and collectives, audited, while rails are pulled, black-holed, flapped and restored')
  .option('--ranks <n>', 'each on a node of its own', count, 8)
  .option('--rails <list>', 'their rates', rails, rails('fast,slow1=1gbit,slow2=1gbit'))
  .option('--round-seconds <n>', 'a round that takes longer ends the run, with who waits for whom', count, 45)
  .option('--sample-seconds <n>', 'between two looks at the memory of a rank', count, 10)
  .option('--no-sync', 'promises only, no blocking calls')
  .option('--no-faults', 'leave the rails alone')
  .option('--name <name>', 'of the record: out/lab/NAME.md and .jsonl', 'soak')
  .option('--results', 'write the tables into bench/RESULTS.md, too')
  .addOption(new Option('--plant <mistake>', 'that must be found').choices(Object.keys(PLANTS)).hideHelp())
  .action(async (options) => {
    endsInOrder = true;
    process.exitCode = await soakTraffic({ ...options, plant: options.plant as Plant | undefined, command, stop: interrupted.signal });
  });

const words = (text: string): string[] => text.split(',').filter((word) => word !== '');

withCommon(program.command('gray'), 240)
  .description('links that are bad without being down: every fault x every traffic, gaps and shares judged by the bound')
  .option('--cells <list>', 'FAULT/TRAFFIC, FAULT or /TRAFFIC, … with * for anything; default: all that the bound is asked of', words)
  .option('--faults <n>', 'of each cell', count, 20)
  .option('--sample <n>', 'draw that many of the cells by the seed', count)
  .addOption(new Option('--topology <name>', 'of rails').choices(Object.keys(TOPOLOGIES)).default('2'))
  .addOption(new Option('--transport <name>', 'of rails').choices(OWN_TRANSPORTS).default('tcp'))
  .option('--peers', 'each cell over Multipath TCP of the kernel, too (needs gcc)')
  .option('--hold-ms <n>', 'a fault lasts so long, whichever it is', count)
  .option('--events', 'print what the ranks say of their rails')
  .option('--name <name>', 'of the record: out/lab/NAME.md and .jsonl (default: gray, with --cells gray-cells)')
  .option('--resume', 'keep the record, and leave out the cells that are in it')
  .option('--results', 'write the section "Bad links" of bench/RESULTS.md, too')
  .option('--audit', 'judge no figures: faults drawn by the seed over drawn rails, until the minutes are up; nothing may be lost')
  .addOption(new Option('--plant <mistake>', 'that the audit must find').choices(Object.keys(GRAY_PLANTS)).hideHelp())
  .action(async ({ audit, plant, ...options }) => {
    endsInOrder = true;
    if (audit === true) {
      process.exitCode = await grayAudit({ ...options, plant: plant as GrayPlant | undefined, command, stop: interrupted.signal });
      return;
    }
    const { topology, transport } = options as { topology: Topology; transport: Transport };
    process.exitCode = await gray({ ...options, topology, transport, command, stop: interrupted.signal });
  });

// The lab's reaper removes the namespaces when this process ends in whichever way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!endsInOrder || interrupted.signal.aborted) process.exit(130);
    interrupted.abort();
  });
}
// What a lab waits for may hold nobody: without this the process would end amid it.
setInterval(() => undefined, 60_000);
try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\n`);
  process.exitCode = 1;
}
process.exit();
