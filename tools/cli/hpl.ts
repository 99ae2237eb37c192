// `multirail hpl`: High-Performance Linpack on the ranks of a job on this machine. A user's call starts the ranks, which run the same
// command again; called as a rank of a job, the command is that rank.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { RANKS_MAX } from '../../src/launch/run/launcher.ts';
import { ParamTable } from '../../src/params.ts';
import { ALGEBRA_CHOICES, BLAS_VARIABLE, chooseAlgebra } from '../hpl/blas.ts';
import { SERIES } from '../hpl/experiment.ts';
import { squarestGrid } from '../hpl/grid.ts';
import { BROADCASTS, SWAPS } from '../hpl/problem.ts';
import { type HplPlan, hplAsRank, WAITS } from '../hpl/rank.ts';
import { collect, commandLine, launchOrRun, ownWords, pairMca, wholeNumber } from './bench.ts';
import { hplInLab, refuseLabOptions, wantsLab } from './hpl-lab.ts';
import type { HplOptions } from './hpl-options.ts';

const ORDER_MAX = 1_000_000;
const NB_MAX = 4096;
const REPEATS_MAX = 1000;
const SEED_MAX = 2 ** 32;
const DEFAULT_NB = 128;
/** A checkpoint ten times in a run, unless told. */
const CHECKPOINTS = 10;

const wholeNumbers =
  (min: number, max: number) =>
  (text: string): number[] =>
    text.split(',').map((word) => wholeNumber(min, max)(word.trim()));

function parseGrids(text: string): { p: number; q: number }[] {
  return text.split(',').map((word) => {
    const match = /^(\d{1,4})x(\d{1,4})$/.exec(word.trim());
    const [p, q] = match === null ? [0, 0] : [Number(match[1]), Number(match[2])];
    if (p < 1 || q < 1) throw new InvalidArgumentError('expected grids of processes such as 2x4,1x8.');
    return { p, q };
  });
}

function planOf(options: HplOptions): HplPlan {
  const grids = options.grid.length > 0 ? options.grid : [squarestGrid(options.np)];
  for (const { p, q } of grids) {
    if (p * q !== options.np)
      throw new MultirailError(
        'ERR_ARG',
        `--grid ${p}x${q} is for ${p * q} ranks, and there are ${options.np}: use -n ${p * q}, or another grid`,
      );
  }
  const { checkpoint, order, nb } = options;
  if (checkpoint === undefined) {
    if (options.resume) throw new MultirailError('ERR_ARG', '--resume needs --checkpoint FOLDER, where the checkpoint is');
    if (options.onRailLost === 'stop')
      throw new MultirailError('ERR_ARG', '--on-rail-lost stop needs --checkpoint FOLDER, to save before it stops');
    if (options.checkpointEvery !== undefined) throw new MultirailError('ERR_ARG', '--checkpoint-every needs --checkpoint FOLDER');
  } else if (order.length * nb.length * grids.length * options.repeat > 1) {
    throw new MultirailError('ERR_ARG', '--checkpoint is for one run: one N, one NB, one grid, no --repeat');
  }
  return {
    orders: order,
    blocks: nb,
    grids,
    repeats: options.repeat,
    options: { seed: options.seed, broadcast: options.broadcast, swap: options.swap, depth: options.depth === '0' ? 0 : 1 },
    algebra: chooseAlgebra(options.kernel),
    waits: options.waits,
    warmUp: options.warmUp,
    checkpoint:
      checkpoint === undefined
        ? undefined
        : {
            folder: checkpoint,
            everyBlocks: options.checkpointEvery ?? Math.max(1, Math.floor(order[0] / nb[0] / CHECKPOINTS)),
            onRailLost: options.onRailLost,
            resume: options.resume,
          },
  };
}

async function startHpl(options: HplOptions): Promise<void> {
  const plan = planOf(options);
  if (process.env.MULTIRAIL_RANK === undefined && wantsLab(options)) return await hplInLab(options, plan);
  refuseLabOptions(options);
  await launchOrRun(options.np, {
    mca: withSingleCopy(pairMca(options.mca)),
    needsHand: false,
    run: (mpi) =>
      hplAsRank(mpi, plan, {
        jsonFile: options.json,
        commandLine: commandLine(ownWords()),
        progress: options.progress && !options.lines,
        lines: options.lines,
      }),
  });
}

/**
 * Panels travel while everybody computes, and looks at the rails only now and then. Through the ring of shared memory that takes many
 * looks of both sides; what is read in place needs one of the reader's.
 */
function withSingleCopy(mca: Record<string, string>): Record<string, string> {
  return new ParamTable(mca, process.env).origins.has('btl_sm_single_copy') ? mca : { ...mca, btl_sm_single_copy: 'always' };
}

export function register(program: Command): void {
  program
    .command('hpl')
    .description('High-Performance Linpack: solve a dense system of equations on all ranks, and check the solution')
    .option('-n, --np <N>', 'number of ranks', wholeNumber(1, RANKS_MAX), 1)
    .addOption(new Option('-N, --order <list>', 'orders of the matrix').argParser(wholeNumbers(1, ORDER_MAX)).default([1000], '1000'))
    .addOption(new Option('--nb <list>', 'columns of a block').argParser(wholeNumbers(1, NB_MAX)).default([DEFAULT_NB], String(DEFAULT_NB)))
    .addOption(new Option('--grid <PxQ>', 'grids of processes, a list').argParser(parseGrids).default([], 'as square as possible, P <= Q'))
    .addOption(new Option('--depth <0|1>', 'look-ahead').choices(['0', '1']).default('1'))
    .addOption(
      new Option('--broadcast <name>', 'how panels are sent along a row of processes').choices(BROADCASTS).default('ring-modified'),
    )
    .addOption(new Option('--swap <name>', 'how rows are swapped in a column of processes').choices(SWAPS).default('mix'))
    .addOption(
      new Option('--kernel <name>', `what computes; auto: OpenBLAS where it is installed (${BLAS_VARIABLE} names another library)`)
        .choices(ALGEBRA_CHOICES)
        .default('auto'),
    )
    .option('--seed <N>', 'seed of the matrix', wholeNumber(0, SEED_MAX), 1)
    .option('--repeat <N>', 'runs of each test', wholeNumber(1, REPEATS_MAX), 1)
    .addOption(
      new Option('--waits <how>', 'how messages are waited for; auto: by blocking calls unless there are more ranks than processors')
        .choices(WAITS)
        .default('auto'),
    )
    .option('--no-warm-up', 'do not solve a small system before the first test')
    .option('--checkpoint <folder>', 'save the state in this folder at intervals; every rank must see the folder')
    .option('--checkpoint-every <blocks>', 'blocks between two checkpoints (default: a tenth of all)', wholeNumber(1, ORDER_MAX))
    .addOption(
      new Option('--on-rail-lost <what>', 'finish on what is left, or stop once the next checkpoint is saved')
        .choices(['finish', 'stop'])
        .default('finish'),
    )
    .option('--resume', 'resume from the checkpoint', false)
    .option('--no-progress', 'do not show the progress of long runs on the standard error')
    .addOption(new Option('--lines', 'JSON lines while it runs, instead of the table').default(false).hideHelp())
    .option('--json <file>', 'also write the figures to this file')
    .option(
      '--rails <list>',
      'run in a separate lab, one node per rank (root): fast,slow or fast=unshaped,slow=100mbit, as for multirail lab',
    )
    .option('--standby <list>', 'rails of the lab that only work while no other is up, or none (default: the one called slow)')
    .addOption(
      new Option(
        '--pull <rail@percent>',
        'pull a rail of the lab, fast@25%, or the port of one node, fast:3@25%, at this part of the blocks',
      )
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(new Option('--restore <rail@percent>', 'put a rail back at this part of the blocks').argParser(collect).default([], 'none'))
    .addOption(
      new Option('--fault <kind>', 'how rails go: cables pulled, or frames lost in silence').choices(['pull', 'blackhole']).default('pull'),
    )
    .option('--sweep', 'pull at several moments and never, in turn, --repeat times each; gives a table with the model, and a figure', false)
    .option('--moments <list>', 'moments of the sweep, in percent (default: 0,10,25,50,75,90)')
    .addOption(
      new Option('--series <which>', 'what the sweep pulls: the whole network, one port of it, or both in turn')
        .choices([...SERIES, 'both'])
        .default('both'),
    )
    .option('--timeout <seconds>', 'limit for one run in the lab', wholeNumber(1, 24 * 3600), 1800)
    .option('--out <folder>', 'folder for the figure', 'out')
    .option('--no-plot', 'do not draw a figure')
    .addOption(new Option('--mca <name value...>', 'set a parameter; may be repeated').argParser(collect).default([], 'none'))
    .addHelpText(
      'after',
      `
Examples:
  multirail hpl -N 4000                              one rank
  multirail hpl -n 4 -N 4000,8000 --nb 128,192       four ranks, a grid of 2 x 2, four tests
  multirail hpl -n 2 -N 4000 --kernel wasm           without OpenBLAS
  multirail hpl -n 2 -N 8000 --checkpoint save --on-rail-lost stop
                                                     after the loss of a rail: save, and stop
  multirail hpl -n 2 -N 8000 --checkpoint save --resume
  multirail hpl -n 4 -N 4000 --rails fast,slow --pull fast@25% --restore fast@75%
                                                     four nodes, 10 Gbit/s, and 1 Gbit/s to fall back on
  multirail hpl -n 8 -N 2000,4000 --rails fast,slow --sweep --repeat 3

The exit code is 0 when every residual is below 16, and 1 otherwise.`,
    )
    .action((options: HplOptions) => startHpl(options));
}
