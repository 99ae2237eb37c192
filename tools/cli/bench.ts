// `multirail bench latency|bw|bibw|rate|allreduce|alltoall|bcast|barrier`: OSU-style tests; processes that die (`bench ft`); saves (`bench
// save`); logs (`bench log`); and the failover run of `bench bw --pull RAIL@TIME`. A user's call starts a job on this machine whose ranks run the same command
// again; called as a rank of a job, the command is that rank.
import { realpathSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { RANKS_MAX, runJob } from '../../src/launch/run/launcher.ts';
import { init } from '../../src/mpi/init.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';
import { ParamTable } from '../../src/params.ts';
import { type CollTest, checkCollSizes } from '../bench/coll.ts';
import { collAsRank } from '../bench/coll-rank.ts';
import { ftAsRank, ftLogAsRank, ftSaveAsRank } from '../bench/ft-rank.ts';
import { HEADER_BYTES } from '../bench/message.ts';
import { type OsuTest, parseBytes, parseSizes } from '../bench/osu.ts';
import { pt2ptAsRank } from '../bench/pt2pt-rank.ts';
import {
  PULL_MODES_EXPECTED,
  type PullMode,
  parsePullMode,
  parseRailActions,
  type RailHand,
  takeRailsInHand,
} from '../bench/rail-actions.ts';
import type { StreamSpec } from '../bench/stream.ts';
import { streamAsRank } from '../bench/stream-rank.ts';

const DEFAULT_WINDOW = 64;
/** Measurements of which a row shows the median. */
const DEFAULT_REPEATS = 5;
const STREAM = { sizeBytes: 1024 * 1024, seconds: 6, window: 16, stallMs: 30_000, plotFolder: 'out' } as const;
/** `bench ft`: calls before the clock runs, as a part of those that are timed. */
const WARMUP_PART = 2;
const FT_ITERATIONS = 500;
const FT_RANKS = 4;
/** `bench save`. */
const SAVE_REPEATS = 5;
const SAVE_DEATHS = 3;
/** `bench log`. */
const LOG_REPEATS = 7;
const LOG_ITERATIONS = 10_000;
const PLATE = 2000;
const PLATE_MAX = 20_000;
const STATE_BYTES_MAX = 4 * 1024 ** 3;
const SECONDS_MAX = 24 * 3600;
const COUNT_MAX = 10_000_000;
const WINDOW_MAX = 4096;
const REPEATS_MAX = 1000;
/** The receiver has memory for a whole window. */
const WINDOW_BYTES_MAX = 2 ** 31;
const FAILED_FINALIZE_MS_MAX = 2000;
const SIGPIPE_EXIT_CODE = 128 + 13;

interface BenchOptions {
  np: number;
  mca: string[];
  sizes?: string;
  iterations?: number;
  warmup?: number;
  repeats?: number;
  window?: number;
  sync?: boolean;
  json?: string;
}

interface FtBenchOptions {
  np: number;
  spares: number;
  mca: string[];
  iterations: number;
  deaths?: number;
  sync?: boolean;
  json?: string;
}

interface BwOptions extends BenchOptions {
  pull: string[];
  restore: string[];
  mode: PullMode;
  verify: boolean;
  seconds?: number;
  size?: string;
  seed: string;
  out: string;
  plot: boolean;
}

/** What a rank needs when it is called with these words. */
export interface RankProgram {
  mca: Record<string, string>;
  run(mpi: Runtime, hand: RailHand | undefined): Promise<number>;
  needsHand: boolean;
}

export const collect = (value: string, previous: string[]) => [...previous, value];

export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}.`);
    return value;
  };

function parseSeconds(text: string): number {
  const value = /^\d+(\.\d+)?s?$/.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (!(value > 0 && value <= SECONDS_MAX)) throw new InvalidArgumentError(`expected seconds, up to ${SECONDS_MAX}.`);
  return value;
}

/** `--mca NAME VALUE` takes two words, `--mca NAME=VALUE` one: the words as they came, made into pairs. */
export function pairMca(words: readonly string[]): Record<string, string> {
  const mca: Record<string, string> = {};
  for (let i = 0; i < words.length; i++) {
    const equals = words[i].indexOf('=');
    if (equals > 0) mca[words[i].slice(0, equals)] = words[i].slice(equals + 1);
    else if (i + 1 < words.length) mca[words[i]] = words[++i];
    else throw new MultirailError('ERR_ARG', `--mca ${words[i]}: expected --mca NAME VALUE`);
  }
  new ParamTable(mca);
  return mca;
}

/** As the user would type it: shown with the figures. */
export const commandLine = (words: readonly string[]): string =>
  ['multirail', ...words].map((word) => (/^[\w@%+=:,./*-]+$/.test(word) ? word : JSON.stringify(word))).join(' ');

export const ownWords = (): string[] => process.argv.slice(2);

/** Starts the ranks with the same command line; in a rank, is that rank. */
export async function launchOrRun(size: number, program: RankProgram, spares = 0): Promise<void> {
  if (process.env.MULTIRAIL_RANK !== undefined) await beRank(program);
  else await startRanks(size, ownWords(), program.mca, spares);
}

async function startRanks(size: number, words: readonly string[], mca: Record<string, string>, spares = 0): Promise<void> {
  const result = await runJob({
    size,
    spares,
    // The link in node_modules/.bin has no ending by which Node is recognised.
    command: [realpathSync(process.argv[1]), ...words],
    mca,
    stdinTo: 'none',
    prefix: false,
    forwardSignals: true,
  });
  process.exitCode = result.exitCode;
}

export async function beRank(program: RankProgram): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever read our output (`| head`) has what they wanted.
    process.exit(error.code === 'EPIPE' ? SIGPIPE_EXIT_CODE : 1);
  });
  const hand = program.needsHand ? takeRailsInHand() : undefined;
  const mpi = await init({ params: program.mca });
  hand?.release();
  try {
    process.exitCode = await program.run(mpi, hand);
  } catch (error) {
    // A mistake in the command line is one for every rank: rank 0 speaks for all, and ends the job.
    if (error instanceof MultirailError && error.code === 'ERR_ARG' && mpi.rank !== 0)
      await new Promise((resolve) => setTimeout(resolve, 2000));
    throw error;
  }
  // Where something is wrong already, the other rank may never come to its end: the verdict stands, and is not held up.
  if (process.exitCode === 0) await mpi.finalize();
  else await mpi.finalize({ timeoutMs: FAILED_FINALIZE_MS_MAX }).catch(() => undefined);
}

function startTest(test: OsuTest, options: BenchOptions): Promise<void> {
  const { iterations, warmup, repeats = DEFAULT_REPEATS, window = DEFAULT_WINDOW, sync = false, json } = options;
  const sizes = parseSizes(options.sizes);
  if (test !== 'rate' && options.np !== 2) throw new MultirailError('ERR_ARG', `bench ${test} takes two ranks, not ${options.np}`);
  if (test === 'rate' && options.np % 2 !== 0)
    throw new MultirailError('ERR_ARG', `bench rate takes an even number of ranks, not ${options.np}`);
  return launchOrRun(options.np, {
    mca: pairMca(options.mca),
    needsHand: false,
    run: async (mpi) => {
      const output = { jsonFile: json, commandLine: commandLine(ownWords()) };
      await pt2ptAsRank(mpi.world, { test, sizes, window, sync, iterations, warmup, repeats }, output);
      return 0;
    },
  });
}

function startCollTest(test: CollTest, options: BenchOptions): Promise<void> {
  const { iterations, warmup, sync = false, json } = options;
  // Numbers of 4 bytes: nothing shorter can be summed.
  const sizes = checkCollSizes(test, parseSizes(options.sizes ?? (test === 'allreduce' ? '4..4m' : '1..1m')));
  return launchOrRun(options.np, {
    mca: pairMca(options.mca),
    needsHand: false,
    run: async (mpi) => {
      await collAsRank(mpi.world, { test, sizes, sync, iterations, warmup }, { jsonFile: json, commandLine: commandLine(ownWords()) });
      return 0;
    },
  });
}

function startFtTest({ np, spares, mca, iterations, deaths = Math.max(1, spares), sync = false, json }: FtBenchOptions): Promise<void> {
  if (deaths > Math.max(1, spares)) {
    const why = 'each death takes a process that stands by, and a single one none';
    throw new MultirailError('ERR_ARG', `--deaths ${deaths} and --spares ${spares}: ${why}: expected at most ${Math.max(1, spares)}`);
  }
  const program: RankProgram = {
    mca: { ft: 'on', ...pairMca(mca) },
    needsHand: false,
    run: async (mpi) => {
      const warmup = Math.ceil(iterations / WARMUP_PART);
      await ftAsRank(mpi, { iterations, warmup, deaths, sync }, spares, { jsonFile: json, commandLine: commandLine(ownWords()) });
      return 0;
    },
  };
  return launchOrRun(np, program, spares);
}

interface SaveBenchOptions {
  np: number;
  state: string;
  repeats: number;
  deaths: number;
  mca: string[];
  json?: string;
}

function startSaveTest({ np, state, repeats, deaths, mca, json }: SaveBenchOptions): Promise<void> {
  const stateBytes = parseBytes(state);
  if (stateBytes % 8 !== 0 || stateBytes < 8 || stateBytes > STATE_BYTES_MAX)
    throw new MultirailError('ERR_ARG', `--state ${state}: expected a multiple of 8 up to ${STATE_BYTES_MAX} bytes`);
  const program: RankProgram = {
    mca: { ft: 'on', ...pairMca(mca) },
    needsHand: false,
    run: async (mpi) => {
      await ftSaveAsRank(mpi, { stateBytes, repeats, deaths }, { jsonFile: json, commandLine: commandLine(ownWords()) });
      return 0;
    },
  };
  return launchOrRun(np, program, deaths);
}

interface LogBenchOptions {
  np: number;
  iterations: number;
  repeats: number;
  plate: number;
  mca: string[];
  json?: string;
}

function startLogTest({ np, iterations, repeats, plate, mca, json }: LogBenchOptions): Promise<void> {
  return launchOrRun(np, {
    mca: { ft: 'on', ...pairMca(mca) },
    needsHand: false,
    run: async (mpi) => {
      await ftLogAsRank(mpi, { repeats, iterations, plate }, { jsonFile: json, commandLine: commandLine(ownWords()) });
      return 0;
    },
  });
}

/** Pulling a rail takes a second one: two TCP rails, unless the user has said what the rails are. */
function withRails(mca: Record<string, string>): Record<string, string> {
  const { origins } = new ParamTable(mca, process.env);
  if (origins.has('btl')) return mca;
  return { ...mca, btl: 'self,tcp', ...(origins.has('btl_tcp_links') ? {} : { btl_tcp_links: '2' }) };
}

function streamSpec(options: BwOptions): StreamSpec {
  const sizeBytes = options.size === undefined ? STREAM.sizeBytes : parseBytes(options.size);
  const durationMs = (options.seconds ?? STREAM.seconds) * 1000;
  const window = options.window ?? STREAM.window;
  if (sizeBytes < HEADER_BYTES)
    throw new MultirailError('ERR_ARG', `--size ${options.size}: expected at least ${HEADER_BYTES} bytes, the header of a message`);
  if (sizeBytes * window > WINDOW_BYTES_MAX) {
    throw new MultirailError(
      'ERR_ARG',
      `--size ${sizeBytes} and --window ${window}: expected a product of at most ${WINDOW_BYTES_MAX} bytes under way`,
    );
  }
  return {
    sizeBytes,
    durationMs,
    window,
    verify: options.verify,
    seed: options.seed,
    actions: parseRailActions(options.pull, options.restore, durationMs),
    mode: options.mode,
    stallMs: STREAM.stallMs,
  };
}

function startBandwidth(options: BwOptions): Promise<void> {
  const isStream =
    options.pull.length > 0 || options.restore.length > 0 || options.verify || options.seconds !== undefined || options.size !== undefined;
  if (!isStream) return startTest('bw', options);
  for (const name of ['sizes', 'iterations', 'warmup', 'repeats', 'sync'] as const) {
    if (options[name] !== undefined)
      throw new MultirailError('ERR_ARG', `--${name} does not go with a run of some seconds (--seconds, --size, --pull)`);
  }
  if (options.np !== 2) throw new MultirailError('ERR_ARG', `bench bw takes two ranks, not ${options.np}`);
  return startStream(options);
}

function startStream(options: BwOptions): Promise<void> {
  const spec = streamSpec(options);
  return launchOrRun(2, {
    mca: withRails(pairMca(options.mca)),
    needsHand: true,
    run: async (mpi, hand) => {
      const output = { plotFolder: options.plot ? options.out : undefined, jsonFile: options.json, commandLine: commandLine(ownWords()) };
      return await streamAsRank(mpi, mpi.world, hand as RailHand, spec, output);
    },
  });
}

/** Runs `multirail bench bw` with these words, as a job of its own. */
export async function runBenchJob(words: readonly string[], mca: Record<string, string>): Promise<void> {
  if (process.env.MULTIRAIL_RANK !== undefined)
    throw new MultirailError('ERR_ARG', 'this command starts its own ranks: do not run it as a rank of a job');
  await startRanks(2, ['bench', 'bw', ...words], mca);
}

function pullMode(text: string): PullMode {
  const mode = parsePullMode(text);
  if (mode === undefined) throw new InvalidArgumentError(`expected ${PULL_MODES_EXPECTED}.`);
  return mode;
}

const railTimes = (flags: string, text: string) => new Option(flags, text).argParser(collect).default([], 'none');

export function register(program: Command): void {
  const bench = program
    .command('bench')
    .description(
      'measure latency, bandwidth, message rate and collectives as the OSU benchmarks do; pull rails, and lose ranks, meanwhile',
    );
  const test = (name: OsuTest | CollTest, description: string, start: (options: BenchOptions) => Promise<void>): Command =>
    bench
      .command(name)
      .description(description)
      .option('-n, --np <N>', 'number of ranks', wholeNumber(2, RANKS_MAX), 2)
      .addOption(new Option('--mca <name value...>', 'set a parameter; may be repeated').argParser(collect).default([], 'none'))
      .option('--sizes <list>', 'message sizes: 8,64k,4m or 1..4m for all doublings')
      .option('--iterations <N>', 'repetitions per size', wholeNumber(1, COUNT_MAX))
      .option(
        '--warmup <N>',
        'repetitions before the clock runs; 0 also leaves out the warm-up of the compiler before each size',
        wholeNumber(0, COUNT_MAX),
      )
      .option('--sync', 'blocking calls (sendSync, recvSync, allreduceSync) instead of promises; for tcp and sm of the native part')
      .option('--json <file>', 'also write the figures to this file')
      .action(start);
  const pt2pt = (name: OsuTest, description: string) => test(name, description, (options) => startTest(name, options));
  const coll = (name: CollTest, description: string) => test(name, description, (options) => startCollTest(name, options));
  const latency = pt2pt('latency', 'ping-pong: one-way latency by message size');
  coll('allreduce', 'time of a sum over all ranks, by length of the buffer');
  coll('alltoall', 'time of an exchange of every rank with every rank, by length for each rank');
  coll('bcast', 'time of a broadcast from rank 0, by length');
  coll('barrier', 'time of a barrier');
  const bw = pt2pt('bw', 'bandwidth one way; with --pull, a run of some seconds in which rails are lost, with an audit of every message');
  bench
    .command('ft')
    .description('time of agree() and shrink(), and of what follows the death of a rank, with a process called in that stands by')
    .option('-n, --np <N>', 'number of ranks', wholeNumber(3, RANKS_MAX), FT_RANKS)
    .option('--spares <K>', 'processes that stand by; 0 leaves replace() out', wholeNumber(0, RANKS_MAX), 1)
    .option('--deaths <N>', 'ranks that die, one after the other (default: as many as stand by)', wholeNumber(1, RANKS_MAX))
    .option('--iterations <N>', 'repetitions of each call while all live', wholeNumber(1, COUNT_MAX), FT_ITERATIONS)
    .addOption(new Option('--mca <name value...>', 'set a parameter; may be repeated').argParser(collect).default([], 'none'))
    .option('--sync', 'blocking calls (agreeSync, shrinkSync, replaceSync) instead of promises')
    .option('--json <file>', 'also write the figures to this file')
    .action((options: FtBenchOptions) => startFtTest(options));
  bench
    .command('save')
    .description(
      'saves: copy rate, spreading, what they cost a program in the background, and the time from SIGKILL to a program that runs again',
    )
    .option('-n, --np <N>', 'number of ranks', wholeNumber(2, RANKS_MAX), FT_RANKS)
    .option('--state <bytes>', 'state of each rank', '64m')
    .option('--repeats <N>', 'measurements of which the median is shown', wholeNumber(1, COUNT_MAX), SAVE_REPEATS)
    .option(
      '--deaths <N>',
      'ranks that die, one after the other, each with a process that stands by',
      wholeNumber(0, RANKS_MAX),
      SAVE_DEATHS,
    )
    .addOption(new Option('--mca <name value...>', 'set a parameter; may be repeated').argParser(collect).default([], 'none'))
    .option('--json <file>', 'also write the figures to this file')
    .action((options: SaveBenchOptions) => startSaveTest(options));
  bench
    .command('log')
    .description('logs of asynchronous recovery: what they cost short and long messages, and a program that computes')
    .option('-n, --np <N>', 'number of ranks', wholeNumber(2, RANKS_MAX), FT_RANKS)
    .option('--repeats <N>', 'measurements of which the median is shown', wholeNumber(1, COUNT_MAX), LOG_REPEATS)
    .option('--iterations <N>', 'short messages there and back in each', wholeNumber(1, COUNT_MAX), LOG_ITERATIONS)
    .option('--plate <N>', 'rows and columns of the plate', wholeNumber(4, PLATE_MAX), PLATE)
    .addOption(new Option('--mca <name value...>', 'set a parameter; may be repeated').argParser(collect).default([], 'none'))
    .option('--json <file>', 'also write the figures to this file')
    .action((options: LogBenchOptions) => startLogTest(options));
  const windowed = [bw, pt2pt('bibw', 'bandwidth both ways at once'), pt2pt('rate', 'messages per second of several pairs of ranks')];
  for (const command of windowed) {
    command.option('--window <N>', `messages under way (default: ${DEFAULT_WINDOW})`, wholeNumber(1, WINDOW_MAX));
  }
  for (const command of [latency, ...windowed]) {
    command.option(
      '--repeats <N>',
      `measurements of which a row shows the median (default: ${DEFAULT_REPEATS})`,
      wholeNumber(1, REPEATS_MAX),
    );
  }
  bw.addOption(railTimes('--pull <rail@time>', 'pull a rail out at this moment: 1@2s, *@1500ms; may be repeated'))
    .addOption(railTimes('--restore <rail@time>', 'put a rail back at this moment; may be repeated'))
    .addOption(
      new Option(
        '--mode <mode>',
        'what a pull does: the rail dies in silence, or with an error that both sides see, or goes bad: lossy:PERCENT, slow:BYTES_PER_SECOND',
      )
        .argParser(pullMode)
        .default('silent'),
    )
    .option('--verify', 'also check the content of every message', false)
    .option('--seconds <S>', `length of the run (default: ${STREAM.seconds})`, parseSeconds)
    .option('--size <bytes>', 'length of the messages of the run (default: 1m)')
    .option('--seed <text>', 'seed of the contents', '1')
    .option('--out <folder>', 'folder for the plot', STREAM.plotFolder)
    .option('--no-plot', 'do not draw a plot')
    .addHelpText(
      'after',
      `
Examples:
  multirail bench bw                                   the table that OSU prints
  multirail bench bw --mca btl_tcp_links 2             over two TCP rails
  multirail bench bw --pull 1@2s --restore 1@4s --verify --seconds 6
                                                       rail 1 dies in silence after 2 s and is back after 4 s
  multirail bench bw --pull 1@2s --mode error --mca btl self,tcp,ws
                                                       a TCP and a WebSocket rail; the second breaks and stays away
  multirail bench bw --pull 1@2s --restore 1@4s --mode lossy:20
                                                       rail 1 loses one packet in five for 2 s
  multirail bench bw --pull 1@2s --restore 1@4s --mode slow:8000
                                                       rail 1 falls to 64 kbit/s for 2 s

The exit code of a run is 0 when nothing was lost, doubled, reordered or damaged, and 1 otherwise.`,
    )
    .action((options: BwOptions) => startBandwidth(options));
}
