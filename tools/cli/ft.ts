// `multirail ft`: plans saves, prints what four papers on fault tolerance print, computed again, and looks into saves.
// Exit codes: 0 all is in its band, 1 something is not, or is damaged, 2 the command line makes no sense.
import { writeFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MultirailError } from '../../src/errors.ts';
import { type PlanInput, plan } from '../../src/ft/plan/plan.ts';
import { RANKS_MAX } from '../../src/launch/run/launcher.ts';
import { figure000 } from '../ft/figure-000.ts';
import { figure001 } from '../ft/figure-001.ts';
import { figure004 } from '../ft/figure-004.ts';
import { inspect } from '../ft/inspect.ts';
import type { Finding } from '../ft/papers.ts';
import { planLines, planSvg } from '../ft/plan-report.ts';
import { FITTED_RESTORE, LITERAL_RESTORE, table002 } from '../ft/table-002.ts';
import { commandLine, ownWords, wholeNumber } from './bench.ts';
import { beCampaignRank, playCampaign, playPeriods } from './ft-campaign.ts';
import { playFaults, playTable } from './ft-campaign-001.ts';
import { playRecoveries } from './ft-campaign-002.ts';

const RUNS_MAX = 1_000_000;
const DOMAINS_MAX = 8192;

const TIME_UNITS: Readonly<Record<string, number>> = { '': 1, ms: 0.001, s: 1, m: 60, min: 60, h: 3600, d: 86_400 };
function seconds(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|min|h|d|)$/.exec(text.trim());
  if (match === null) throw new InvalidArgumentError(`"${text}": expected a time such as 0.5s, 10min or 2h.`);
  return Number(match[1]) * TIME_UNITS[match[2]];
}
const times = (text: string): number[] => text.split(',').map(seconds);

const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
function size(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(?:([kmgt])(?:ib)?)?$/i.exec(text.trim());
  if (match === null) throw new InvalidArgumentError('expected a size such as 512MiB or 2GiB.');
  return Math.round(Number(match[1]) * SIZE_UNITS[(match[2] ?? '').toLowerCase()]);
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('expected a number.');
  return value;
}

const numbers = (text: string): number[] => text.split(',').map(number);

const out = (text: string): void => void process.stdout.write(`${text}\n`);

/** Prints what was found; its problems come last, one a line. */
function show({ lines, data, problems }: Finding, asJson: boolean): void {
  if (asJson) out(JSON.stringify({ ...(data as object), problems }, null, 2));
  else {
    for (const line of lines) out(line);
    for (const problem of problems) out(`FAIL: ${problem}`);
  }
  process.exitCode = problems.length === 0 ? 0 : 1;
}

interface PlanOptions {
  mtbf: number[];
  cost: number[];
  restore?: number[];
  groups?: number;
  alpha?: number;
  rho?: number;
  lambda?: number;
  beta?: number;
  nodes?: number;
  df?: number;
  sd?: number;
  failures?: number;
  state?: number;
  memory?: number;
  svg?: string;
  json: boolean;
}

/** Without what was not given: the library has its own defaults. */
function given<T extends object>(all: T): { [K in keyof T]: Exclude<T[K], undefined> } | undefined {
  const entries = Object.entries(all).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> });
}

async function startPlan(options: PlanOptions): Promise<void> {
  const { mtbf, cost, restore, groups, alpha, rho, lambda, beta, nodes, df, sd, failures, state, memory, svg } = options;
  const hierarchical = given({ groups, alpha, rho, lambda, beta });
  const copies = given({ domains: nodes, duplication: df, depth: sd, failures, stateBytes: state, memoryBytes: memory });
  const input: PlanInput = {
    mtbfSeconds: mtbf,
    costSeconds: cost,
    ...(restore === undefined ? {} : { restoreSeconds: restore }),
    ...(hierarchical === undefined ? {} : { hierarchical }),
    ...(copies === undefined ? {} : { copies }),
  };
  const planned = plan(input);
  if (svg !== undefined) writeFileSync(svg, await planSvg(input, planned, commandLine(ownWords())));
  show({ lines: planLines(planned), data: planned, problems: [] }, options.json);
}

interface FigureOptions {
  tolerance: boolean;
  sets: number;
  periods: number;
  svg?: string;
  json: boolean;
}

async function startFigure(paper: string, { tolerance, sets, periods, svg, json }: FigureOptions): Promise<void> {
  if (paper !== '000' && tolerance) throw new MultirailError('ERR_ARG', `--tolerance with paper ${paper}: it belongs to figure 000`);
  if (paper !== '004' && svg !== undefined) throw new MultirailError('ERR_ARG', `--svg with paper ${paper}: only figure 004 is drawn`);
  if (paper === '000') {
    if (!tolerance) throw new MultirailError('ERR_ARG', 'paper 000 has no figure of its own: --tolerance prints what its scheme survives');
    return show(figure000(sets), json);
  }
  if (paper === '001') return show(figure001(), json);
  const figure = figure004(periods, commandLine(ownWords()));
  if (svg !== undefined) writeFileSync(svg, await figure.svg());
  show(figure, json);
}

interface CampaignWords {
  np?: number;
  spares?: number;
  df?: number;
  sd?: number;
  sets?: string;
  runs?: number;
  mtbf?: number[];
  cost?: number;
  failures?: number;
  groups?: number;
  periods?: number[];
  scale?: number;
  rows?: number[];
  repeaters?: number[];
  faults?: number;
  replicas?: number;
  seed: number;
  asRank?: string;
  json: boolean;
}

/** Options of each campaign. */
const CAMPAIGNS: Readonly<Record<string, readonly string[]>> = {
  '000': ['np', 'spares', 'df', 'sd', 'sets', 'runs'],
  '001': ['faults', 'replicas'],
  '002': ['scale', 'rows', 'repeaters', 'runs'],
  '004': ['np', 'mtbf', 'cost', 'failures', 'groups', 'periods'],
};

/** Progress goes beside the result. */
const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function startCampaign(paper: string, { asRank, json: asJson, seed, ...given }: CampaignWords): Promise<void> {
  const own = CAMPAIGNS[paper];
  if (own === undefined) throw new MultirailError('ERR_ARG', `campaign ${paper}: expected ${Object.keys(CAMPAIGNS).join(' or ')}`);
  if (asRank !== undefined) return await beCampaignRank(paper, asRank);
  const foreign = Object.entries(given).find(([name, value]) => value !== undefined && !own.includes(name))?.[0];
  if (foreign !== undefined) {
    const owners = Object.keys(CAMPAIGNS).filter((one) => CAMPAIGNS[one].includes(foreign));
    throw new MultirailError('ERR_ARG', `--${foreign} with campaign ${paper}: it belongs to ${owners.join(' and ')}`);
  }
  if (paper === '001')
    return show(await playFaults({ faults: given.faults ?? 500, seed, ...(given.replicas === 3 ? { replicas: 3 } : {}) }, say), asJson);
  const { np, mtbf, cost, failures, scale, rows, repeaters, spares, df = 2, sd = 3, sets = 'mnf', runs = 10 } = given;
  if (paper === '002') {
    const input = { scale: scale ?? 0.01, runs, rows: rows ?? [1, 2, 3, 4, 5], repeaters: repeaters ?? [1, 2], seed };
    return show(await playRecoveries(input, say), asJson);
  }
  if (paper === '004') {
    const { groups = 1, periods } = given;
    // Groups are held against the model at given periods; all that go back together at those that the library plans.
    const input = {
      ranks: np ?? 2 * groups,
      mtbfSeconds: mtbf ?? (groups > 1 ? [2, 4] : [1, 2, 4]),
      costSeconds: cost ?? 0.02,
      failures: failures ?? 12,
      stepSeconds: 0.01,
      groups,
      everySteps: periods ?? (groups > 1 ? [10, 20, 40] : []),
      seed,
    };
    return show(await playPeriods(input, say), asJson);
  }
  show(await playCampaign({ np: np ?? 12, spares, df, sd, sets, runs, seed }, say), asJson);
}

export function register(program: Command): void {
  const ft = program.command('ft').description('plan saves, print the tables and figures of the papers behind them, and look into saves');
  const json = (): Option => new Option('--json', 'JSON instead of text').default(false);

  ft.command('plan')
    .description('how often to save, what that costs, and how many copies to keep')
    .requiredOption('--mtbf <times>', 'mean time between failures of the job, per level: 2h,48h', times)
    .requiredOption('--cost <times>', 'what a save takes, per level: 1s,6s', times)
    .option('--restore <times>', 'what a restore takes, per level (default: nothing)', times)
    .option('--groups <G>', 'groups that save one after the other; the cost is that of one group (default: 1)', wholeNumber(1, DOMAINS_MAX))
    .option('--alpha <share>', 'share of the work that goes on while a group saves (default: 0)', number)
    .option('--rho <factor>', 'speed of re-execution with logs (default: 1)', number)
    .option('--lambda <factor>', 'speed of execution with logs (default: 1)', number)
    .option('--beta <growth>', 'growth of a save by its log, per second of work (default: 0)', number)
    .option('--nodes <N>', 'failure domains', wholeNumber(1, DOMAINS_MAX))
    .option('--df <DF>', 'copies of each image on other domains', wholeNumber(0, DOMAINS_MAX))
    .option('--sd <SD>', 'committed saves kept', wholeNumber(1, 64))
    .option('--failures <count>', 'instead of --df and --sd: failures at once that must be survived', wholeNumber(1, DOMAINS_MAX))
    .option('--state <size>', 'size of an image: 2GiB', size)
    .option('--memory <size>', 'memory of a process for images and copies', size)
    .option('--svg <file>', 'draw cost against period into this file')
    .addOption(json())
    .action((options: PlanOptions) => startPlan(options));

  ft.command('table')
    .description('a table of a paper, computed again, next to its numbers; exit code 1 when one lies outside of its band')
    .argument(
      '<paper>',
      '001: replicas that go back along their saves, by real processes; 002: simulated jobs with coordinated and asynchronous recovery',
    )
    .option('--scale <share>', "001: of the paper's times (default: 0.02, 6.6 s for a product)", number)
    .option('--runs <N>', 'runs of each cell (default: 001 1, 002 10,000)', wholeNumber(1, RUNS_MAX))
    .option('--steps', 'step by step, as the paper has it, instead of by events', false)
    .option(
      '--restore1 <seconds>',
      `what a restore of level 1 takes in the asynchronous columns: the paper says ${LITERAL_RESTORE}, ${FITTED_RESTORE} fits`,
      number,
      FITTED_RESTORE,
    )
    .addOption(
      new Option('--asynchronous <levels>', 'which levels are recovered asynchronously').choices(['all', 'level-1']).default('all'),
    )
    .option('--seed <N>', 'seed of the failures', wholeNumber(0, 2 ** 32 - 1), 1)
    .addOption(json())
    .action(
      async (
        paper: string,
        options: {
          scale?: number;
          runs?: number;
          steps: boolean;
          restore1: number;
          asynchronous: 'all' | 'level-1';
          seed: number;
          json: boolean;
        },
      ) => {
        if (paper === '001') return show(await playTable(options.scale ?? 0.02, options.runs ?? 1, say), options.json);
        if (paper !== '002') throw new MultirailError('ERR_ARG', `table ${paper}: expected 001 or 002`);
        if (options.scale !== undefined) throw new MultirailError('ERR_ARG', '--scale with table 002: it belongs to table 001');
        if (!(options.restore1 >= 0)) throw new MultirailError('ERR_ARG', `--restore1 ${options.restore1}: expected a time from 0 s`);
        show(table002({ ...options, runs: options.runs ?? 10_000 }), options.json);
      },
    );

  ft.command('figure')
    .description('a figure of a paper, computed again, next to its numbers; exit code 1 when one lies outside of its band')
    .argument('<paper>', '000: what copies survive; 001: what going back along saves costs; 004: cost against period')
    .option('--tolerance', '000: failures that each scheme survives, by formula and by search', false)
    .option('--sets <N>', '000: random sets of failures', wholeNumber(1, RUNS_MAX), 20_000)
    .option('--periods <N>', '004: simulated periods for each point', wholeNumber(1000, 10_000_000), 200_000)
    .option('--svg <file>', '004: draw it into this file')
    .addOption(json())
    .action((paper: string, options: FigureOptions) => {
      if (!['000', '001', '004'].includes(paper)) throw new MultirailError('ERR_ARG', `figure ${paper}: expected 000, 001 or 004`);
      return startFigure(paper, options);
    });

  ft.command('campaign')
    .description(
      'jobs of real processes in which chosen ranks die: what all go back to, next to what the scheme promises, and whether the result is the same; exit code 1 when it is not',
    )
    .argument(
      '<paper>',
      '000: copies and recovery lines; 001: silent errors in replicas, and without; 002: coordinated and asynchronous recovery with the same deaths; 004: what saves by planned periods cost',
    )
    .option('-n, --np <N>', 'ranks (default: 12 for 000, each a failure domain; 2 of each group for 004)', wholeNumber(2, RANKS_MAX))
    .option('--spares <K>', '000: processes that stand by (default: as many as die)', wholeNumber(1, RANKS_MAX))
    .option('--df <DF>', '000: copies of each image on other domains (default: 2)', wholeNumber(0, DOMAINS_MAX))
    .option('--sd <SD>', '000: committed saves kept (default: 3)', wholeNumber(1, 64))
    .option(
      '--sets <sets>',
      '000: who dies: mnf, random sets of as many as formula (2) survives; worst, a smallest set that destroys all saves; or ranks: 0,1,2,8 (default: mnf)',
    )
    .option('--runs <N>', '000: jobs; 002: jobs of each kind in each row (default: 10)', wholeNumber(1, RUNS_MAX))
    .option('--scale <share>', "002: of the paper's times (default: 0.01, 36 s of computing)", number)
    .option('--rows <rows>', '002: of the table, from 1 (default: 1,2,3,4,5)', numbers)
    .option('--repeaters <k>', '002: processes that repeat what a dead one has done, a kind of jobs for each (default: 1,2)', numbers)
    .option('--mtbf <times>', '004: mean times between failures, a job for each (default: 1s,2s,4s)', times)
    .option('--cost <time>', '004: what a save keeps the program from (default: 20ms)', seconds)
    .option(
      '--groups <G>',
      '004: groups of ranks that save one after the other and go back by themselves (default: 1, all go back)',
      wholeNumber(1, DOMAINS_MAX),
    )
    .option('--periods <steps>', '004: steps between saves, a job for each (default: as planned; with --groups 10,20,40)', numbers)
    .option('--failures <N>', '004: processes that stand by, at most so many failures of each job (default: 12)', wholeNumber(1, RANKS_MAX))
    .option('--faults <N>', '001: faults, each in a job by replicas and in one without (default: 500)', wholeNumber(1, RUNS_MAX))
    .option(
      '--replicas <R>',
      '001: processes of each rank, 2 or 3; three correct what one of them gets wrong (default: 2)',
      wholeNumber(2, 3),
    )
    .option('--seed <N>', 'seed of who dies or is struck, and when', wholeNumber(0, 2 ** 32 - 1), 1)
    .addOption(new Option('--as-rank <job>').hideHelp())
    .addOption(json())
    .action((paper: string, options: CampaignWords) => startCampaign(paper, options));

  ft.command('inspect')
    .description('what an image holds, which saves a folder has, whether they are whole, and what could be restored')
    .argument('<path>', 'an image (.mrck), a COMMIT.json, or the folder of a store, of a job or of a save')
    .addOption(json())
    .action(async (path: string, options: { json: boolean }) => show(await inspect(path), options.json));

  ft.addHelpText(
    'after',
    `
Examples:
  multirail ft plan --mtbf 2h,48h --cost 1s,6s --restore 0.5s,4s
  multirail ft plan --mtbf 2h --cost 4s --failures 3 --nodes 16 --state 2GiB
  multirail ft table 002
  multirail ft figure 000 --tolerance
  multirail ft figure 004 --svg cost.svg
  multirail ft campaign 000                            random sets of MNF ranks die; 10 jobs of 16 processes
  multirail ft campaign 000 --sets worst --runs 3      sets that destroy every save: from the beginning, never a wrong result
  multirail ft campaign 000 -n 11 --sets 0,1,2,8 --runs 1
                                                       where the paper's bound is wrong
  multirail ft campaign 001 --faults 50                silent errors by replicas, and the same without
  multirail ft campaign 001 --faults 50 --replicas 3   the same by three replicas, which correct them
  multirail ft table 001 --scale 0.005                 what it costs to go back along saves any of which may hold the fault
  multirail ft campaign 002 --rows 5 --runs 3          only the dead go back: what that saves when ranks die often
  multirail ft campaign 004                            what saves by planned periods cost, next to the plan (70 s)
  multirail ft campaign 004 --groups 2                 what groups that go back by themselves cost, next to the hierarchical model
  multirail ft inspect saves`,
  );
}
