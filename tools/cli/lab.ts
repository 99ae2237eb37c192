// `multirail lab`: networks made of network namespaces of this machine, in which jobs run while their links are broken. It needs root.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { type Command, Option } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { RANKS_MAX } from '../../src/launch/run/launcher.ts';
import { ACTION_USAGE, describeAction, type LabAction, parseAction } from '../lab/actions.ts';
import { askKeeper, Keeper, type LabStatus } from '../lab/keeper.ts';
import { MAX_NODES } from '../lab/plan.ts';
import { labJson, type NamedRail, parseLabJson, parseRails, showRate } from '../lab/rails.ts';
import type { LabView } from '../lab/view.ts';
import { wholeNumber } from './bench.ts';
import { DEFAULT_NODES, launch, mustBePossible, ownFile, runInLab, settingsOf, untilSignal } from './lab-run.ts';
import { mcaOption, messageOf, watchOptions } from './run.ts';

const DEFAULT_NAME = 'default';
const KEEPER_READY_MS = 90_000;
const KB = 1024;
const SEED_MAX = 2 ** 32 - 1;
const CONGESTION_TEXT = 'congestion control of TCP on the nodes, by its name in the kernel: cubic, bbr, reno (default: cubic)';
const SEED_TEXT = 'seed of the random numbers of delay, reorder and flip, and of loss together with them (default: 1)';

// ---------------------------------------------------------------- up, keep, down

interface UpOptions {
  rails: string;
  nodes: number;
  name: string;
  seed?: number;
  congestionControl?: string;
  foreground: boolean;
}

function viewLines(view: LabView): string[] {
  return [
    ...view.rails.map(({ name, mbit }, rail) => `  rail ${name.padEnd(12)} ${showRate(mbit).padEnd(12)} interface mr${rail} on every node`),
    ...view.namespaces.map(
      (namespace, node) => `  node ${String(node).padEnd(12)} ${namespace.padEnd(24)} ${view.addresses[node].join('  ')}`,
    ),
  ];
}

async function up(options: UpOptions): Promise<void> {
  mustBePossible();
  const rails = parseRails(options.rails);
  if (options.foreground) return await keepInForeground(options, rails);
  const view = await startKeeper(options);
  const hint = options.name === DEFAULT_NAME ? '' : ` --name ${options.name}`;
  process.stdout.write(
    [
      `The lab ${options.name} is up: ${view.namespaces.length} nodes, ${view.rails.length} rails, congestion control ${view.congestionControl}.`,
      ...viewLines(view),
      `multirail lab run${hint} -n ${view.namespaces.length} app.js   runs a job in it; multirail lab down${hint} takes it down.`,
      '',
    ].join('\n'),
  );
}

async function keepInForeground(options: UpOptions, rails: readonly NamedRail[]): Promise<void> {
  const { signal, release } = untilSignal();
  const keeper = await Keeper.start(options.name, options.nodes, rails, settingsOf(options));
  process.stdout.write(`The lab ${options.name} is up until this command ends.\n${viewLines(keeper.view).join('\n')}\n`);
  await Promise.race([signal, keeper.ended]);
  await keeper.close();
  release();
}

type KeeperWord = { ready: LabView } | { failed: string; code: 'ERR_ARG' | 'ERR_SUPPORT' };

/** Starts the process that keeps the lab, and waits until the lab is there. */
function startKeeper({ rails, nodes, name, seed, congestionControl }: UpOptions): Promise<LabView> {
  const words = [
    'lab',
    'up',
    '--kept',
    '--rails',
    rails,
    '-n',
    String(nodes),
    '--name',
    name,
    ...(seed === undefined ? [] : ['--seed', String(seed)]),
    ...(congestionControl === undefined ? [] : ['--congestion-control', congestionControl]),
  ];
  // A session of its own, in no folder that somebody may want to unmount.
  const child = spawn(process.execPath, [ownFile(), ...words], { detached: true, cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] });
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(`it was not up after ${KEEPER_READY_MS} ms`);
    }, KEEPER_READY_MS);
    const fail = (why: string, code: 'ERR_ARG' | 'ERR_SUPPORT' = 'ERR_SUPPORT') => {
      clearTimeout(timer);
      reject(new MultirailError(code, code === 'ERR_ARG' ? why : `the lab could not be made: ${why}`));
    };
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (!text.includes('\n')) return;
      const word = parseLabJson(text) as KeeperWord;
      if ('failed' in word) return fail(word.failed, word.code);
      clearTimeout(timer);
      child.stdout.destroy();
      child.unref();
      resolve(word.ready);
    });
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => fail(`its keeper ended with ${signal ?? code}`));
  });
}

/** What startKeeper() starts: this process is the keeper until somebody takes the lab down, or kills it. */
async function keep(options: UpOptions): Promise<void> {
  const { signal } = untilSignal();
  const word = (said: KeeperWord) => new Promise<void>((resolve) => process.stdout.write(`${labJson(said)}\n`, () => resolve()));
  let keeper: Keeper;
  try {
    keeper = await Keeper.start(options.name, options.nodes, parseRails(options.rails), settingsOf(options));
  } catch (error) {
    const isUsage = error instanceof MultirailError && error.code === 'ERR_ARG';
    await word({ failed: messageOf(error), code: isUsage ? 'ERR_ARG' : 'ERR_SUPPORT' });
    process.exitCode = 1;
    return;
  }
  process.stdout.on('error', () => undefined);
  await word({ ready: keeper.view });
  await Promise.race([signal, keeper.ended]);
  await keeper.close();
}

async function status(name: string, json: boolean): Promise<void> {
  const { view, keeperPid, faults, counters, forwarders } = await askKeeper<LabStatus>(name, { op: 'status' });
  if (json) {
    process.stdout.write(`${JSON.stringify({ lab: name, keeperPid, ...view, faults, counters, forwarders }, undefined, 1)}\n`);
    return;
  }
  const sent = (rail: number) => counters.reduce((sum, port) => (port.rail === rail ? sum + port.deliveredBytes : sum), 0);
  const lines = [`The lab ${name}, kept by process ${keeperPid}:`, ...viewLines(view), ''];
  view.rails.forEach(({ name: rail }, i) => {
    const state = faults[i].length === 0 ? 'as at the start' : faults[i].join('; ');
    const overrun = (forwarders[i] ?? []).reduce((sum, { noRoom, missed }) => sum + noRoom + missed, 0);
    const note = overrun === 0 ? '' : `; its forwarder could not keep up with ${overrun} frames, and dropped them`;
    lines.push(`  rail ${rail.padEnd(12)} ${(sent(i) / KB / KB).toFixed(1).padStart(10)} MiB delivered   ${state}${note}`);
  });
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function act(name: string, words: readonly string[]): Promise<void> {
  const view = await askKeeper<LabView>(name, { op: 'view' });
  const action = parseAction(words, view.rails, view.namespaces.length);
  await askKeeper(name, { op: 'act', action });
  process.stdout.write(`${describeAction(action, view.rails)}\n`);
}

// ---------------------------------------------------------------- exec

async function execInLab(node: string, words: readonly string[], name: string): Promise<void> {
  mustBePossible();
  const view = await askKeeper<LabView>(name, { op: 'view' });
  const namespace = /^\d{1,3}$/.test(node) ? view.namespaces[Number(node)] : undefined;
  if (namespace === undefined)
    throw new MultirailError('ERR_ARG', `there is no node "${node}": nodes go from 0 to ${view.namespaces.length - 1}`);
  const child = spawn('ip', ['netns', 'exec', namespace, ...words], { stdio: 'inherit' });
  // The terminal tells the whole process group.
  const { release } = untilSignal();
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
  release();
}

// ---------------------------------------------------------------- the command

const ACTION_TEXTS: Readonly<Record<LabAction['kind'], string>> = {
  pull: 'pull the cables of a rail, at all nodes or at one; carriers go',
  blackhole: 'let all frames of a rail vanish; carriers stay',
  oneway: 'let what one node sends on a rail vanish',
  loss: 'let a rail lose frames by chance: those of all nodes, or those that one sends; 0 ends it',
  delay: 'let every frame of a rail take MS milliseconds longer, each way, with a spread by chance; 0 ends it',
  reorder: 'hold frames of a rail back by chance, so that others overtake them, for 10ms or the given time; 0 ends it',
  flip: 'flip a bit in frames of a rail by chance, which checksums find: in those of all nodes, or in those that one sends; 0 ends it',
  flap: 'let a rail go and come, half of that time each, until it is restored; silent: carriers stay',
  throttle: 'give a rail another rate, and a queue of the given length',
  kill: 'kill every process on a node; the launcher of lab run is on node 0',
  halt: 'let a host vanish without a word: its cables are out and its processes stand still, until all is restored',
  restore: 'bring a rail, or all of them, back to how they were at the start',
};

export function register(program: Command): void {
  const lab = program
    .command('lab')
    .description('make links for experiments: network namespaces with rails between them, which can be pulled (root)');
  const nameOption = () => new Option('--name <name>', 'name of the lab, where there are several').default(DEFAULT_NAME);
  lab
    .command('up')
    .description('make a lab; it stays until it is taken down, or its keeper is killed')
    .requiredOption('--rails <list>', 'rates, with or without names: 1gbit,1gbit,100mbit or fast=10gbit,slow=1gbit or fast=unshaped,slow')
    .option('-n, --nodes <N>', 'number of nodes', wholeNumber(1, MAX_NODES), DEFAULT_NODES)
    .addOption(nameOption())
    .option('--seed <number>', SEED_TEXT, wholeNumber(0, SEED_MAX))
    .option('--congestion-control <name>', CONGESTION_TEXT)
    .option('--foreground', 'keep it in this process, until it is interrupted', false)
    .addOption(new Option('--kept').default(false).hideHelp())
    .action((options: UpOptions & { kept: boolean }) => (options.kept ? keep(options) : up(options)));
  const run = lab
    .command('run')
    .description('run a program as ranks that are placed on the nodes of a lab in turn')
    .usage('[-n N] [options] [--] program [arguments...]')
    .argument('<program...>', 'what each rank runs, as for multirail run')
    .option('-n, --np <N>', 'number of ranks (default: one per node)', wholeNumber(1, RANKS_MAX))
    .option('--rails <list>', 'make a lab for this job alone')
    .option('--nodes <N>', 'nodes of that lab (default: one per rank)', wholeNumber(1, MAX_NODES))
    .option('--seed <number>', SEED_TEXT, wholeNumber(0, SEED_MAX))
    .option('--congestion-control <name>', CONGESTION_TEXT)
    .addOption(nameOption())
    .addOption(mcaOption())
    .addOption(
      new Option('--node-arg <argument>', 'an argument for Node itself; may be repeated')
        .argParser((value: string, all: string[]) => [...all, value])
        .default([], 'none'),
    )
    .option('--timeline <file>', 'file that says what happens to the rails, and when')
    .option('--no-prefix', 'do not put [rank] before each line of output')
    .passThroughOptions()
    .action(runInLab);
  for (const option of watchOptions()) run.addOption(option);
  run.addHelpText(
    'after',
    `
Parameters come before the program: --mca NAME VALUE. Transports are self,tcp unless --mca btl says otherwise.
With --dashboard the buttons of the page do to the lab what multirail lab pull, blackhole, oneway, loss, delay, reorder, flip, flap and
restore do, and the page shows what other shells and the timeline have done.

Examples:
  multirail lab run -n 4 app.js
  multirail lab run --dashboard app.js                a page with the rails, and buttons to pull them
  multirail lab run --rails fast,slow --dashboard 8080 --dashboard-hold -n 2 app.js
  multirail lab run --timeline pull.txt --events events.jsonl app.js`,
  );
  for (const [kind, usage] of Object.entries(ACTION_USAGE) as [LabAction['kind'], string][]) {
    const command = lab
      .command(kind)
      .description(ACTION_TEXTS[kind])
      .usage(usage.slice(kind.length + 1))
      .argument('[words...]');
    command.addOption(nameOption()).action((words: string[], { name }: { name: string }) => act(name, [kind, ...words]));
  }
  lab
    .command('status')
    .description('show rails, nodes, addresses, faults, and what was delivered')
    .option('--json', 'print JSON', false)
    .addOption(nameOption())
    .action(({ name, json }: { name: string; json: boolean }) => status(name, json));
  lab
    .command('exec')
    .description('run a command on a node')
    .argument('<node>')
    .argument('<command...>')
    .addOption(nameOption())
    .passThroughOptions()
    .action((node: string, words: string[], { name }: { name: string }) => execInLab(node, words, name));
  lab
    .command('down')
    .description('end everything that runs in a lab, and remove the lab')
    .addOption(nameOption())
    .action(async ({ name }: { name: string }) => {
      await askKeeper(name, { op: 'down' });
      process.stdout.write(`The lab ${name} is gone.\n`);
    });
  lab
    .command('launch', { hidden: true })
    .argument('<spec>')
    .action((spec: string) => launch(spec));
  lab.addHelpText(
    'after',
    `
Examples:
  multirail lab up --rails 1gbit,1gbit,100mbit -n 4
  multirail lab run -n 4 app.js &           four ranks, one on each node
  multirail lab pull 0                      the cables of rail 0; carriers go
  multirail lab flap 1 500ms silent         rail 1 vanishes and comes back, carriers stay
  multirail lab loss 0 5                    rail 0 loses 5 % of its frames
  multirail lab delay 0 300 50              its frames take 250 to 350 ms longer, each way
  multirail lab restore
  multirail lab down
  multirail lab run --dashboard app.js      a page with the rails, and buttons to pull them
  multirail lab run --rails fast,slow -n 2 --timeline pull.txt app.js
                                            a lab for this job alone, with a script such as
                                              1.5s pull fast
                                              3s   restore fast

The lab needs root on Linux, and ip and tc (Debian package iproute2); delay, reorder and flip need the lab's forwarder, a binary of the package.`,
  );
}
