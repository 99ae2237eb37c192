// `multirail hpl --rails …`: Linpack in its own lab, with rails pulled at moments of the run, once or as a sweep.
import { mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { MultirailError } from '../../src/errors.ts';
import { machineInfo } from '../bench/machine.ts';
import { type Cell, type Moment, parseFractions, parseMoment, type Series, SWEEP_FRACTIONS, sweepCells } from '../hpl/experiment.ts';
import { type LabRun, type LabRunSpec, runInLab } from '../hpl/lab-runs.ts';
import type { HplPlan } from '../hpl/rank.ts';
import { type CellRuns, percent, type SweepReport, sweepHead, sweepRows, sweepTable } from '../hpl/sweep.ts';
import { sweepPlot } from '../hpl/sweep-plot.ts';
import { headLines, resultLines } from '../hpl/table.ts';
import type { Lab } from '../lab/lab.ts';
import { nodeInterface } from '../lab/plan.ts';
import { type NamedRail, parseRails, railIndex } from '../lab/rails.ts';
import { createLab } from '../lab/view.ts';
import { commandLine, ownWords, pairMca } from './bench.ts';
import type { HplOptions } from './hpl-options.ts';
import { ownFile, untilSignal } from './lab-run.ts';

/** A rail of this name is the service network: used only while no other is up. */
const STANDBY_NAME = 'slow';

/** Where each run of a lab gets its words and its moments from. */
interface Stage {
  lab: Lab;
  rails: readonly NamedRail[];
  options: HplOptions;
  plan: HplPlan;
  mca: Record<string, string>;
}

export const wantsLab = (options: HplOptions): boolean => options.rails !== undefined;

/** Options that mean nothing without a lab. */
export function refuseLabOptions(options: HplOptions): void {
  const given = options.sweep || options.pull.length > 0 || options.restore.length > 0;
  if (given) throw new MultirailError('ERR_ARG', '--pull, --restore and --sweep need a lab: --rails fast,slow');
}

/** Rails that only work while no other is up, as interfaces. */
function standbyOf(options: HplOptions, rails: readonly NamedRail[]): string[] {
  if (options.standby === 'none') return [];
  if (options.standby !== undefined) return options.standby.split(',').map((word) => nodeInterface(railIndex(rails, word.trim())));
  return rails.flatMap(({ name }, i) => (name === STANDBY_NAME && rails.length > 1 ? [nodeInterface(i)] : []));
}

export async function hplInLab(options: HplOptions, plan: HplPlan): Promise<void> {
  const rails = parseRails(options.rails as string);
  const given = pairMca(options.mca);
  const standby = standbyOf(options, rails);
  const mca = standby.length === 0 || 'btl_tcp_if_standby' in given ? given : { ...given, btl_tcp_if_standby: standby.join(',') };
  const moments = (list: readonly string[]) => list.map((text) => parseMoment(text, rails, options.np));
  const pulls = moments(options.pull);
  const restores = moments(options.restore);
  const { blocks, grids } = plan;
  if (blocks.length > 1 || grids.length > 1)
    throw new MultirailError('ERR_ARG', 'with --rails there can be only one NB and one grid: give one value for --nb and for --grid');
  const sweep = options.sweep ? sweepPlanOf(options, rails, pulls, restores) : undefined;
  if (sweep === undefined) mustLeaveOne(pulls, restores, rails);
  const lab = await createLab(options.np, rails);
  const { signal, release } = untilSignal();
  let interrupted: NodeJS.Signals | undefined;
  void signal.then((name) => {
    interrupted = name;
    // Its jobs end with it.
    void lab.destroy();
  });
  const stage = { lab, rails, options, plan, mca };
  try {
    if (sweep === undefined) await runsOf(stage, pulls, restores);
    else await sweepOf(stage, sweep);
  } catch (error) {
    if (interrupted === undefined) throw error;
    process.exitCode = 128 + constants.signals[interrupted];
  } finally {
    await lab.destroy();
    release();
  }
}

/** A job all of whose rails are pulled and stay so would wait until its peers are given up. */
function mustLeaveOne(pulls: readonly Moment[], restores: readonly Moment[], rails: readonly NamedRail[]): void {
  const isLost = (rail: number) => {
    const last = Math.max(-1, ...pulls.filter((moment) => moment.rail === rail).map(({ fraction }) => fraction));
    return last >= 0 && !restores.some((moment) => moment.rail === rail && moment.fraction > last);
  };
  if (rails.every((_, rail) => isLost(rail)))
    throw new MultirailError('ERR_ARG', 'every rail is pulled and none restored, so the ranks could never end: leave or restore one rail');
}

function specOf(stage: Stage, n: number, pulls: readonly Moment[], restores: readonly Moment[]): LabRunSpec {
  const { options, plan, mca } = stage;
  const [{ p, q }] = plan.grids;
  const words = ['hpl', '-n', String(options.np), '-N', String(n), '--nb', String(plan.blocks[0]), '--grid', `${p}x${q}`];
  words.push('--depth', options.depth, '--broadcast', options.broadcast, '--swap', options.swap, '--seed', String(options.seed));
  words.push('--kernel', plan.algebra.name, '--lines', '--waits', options.waits, ...(plan.warmUp ? [] : ['--no-warm-up']));
  const { checkpoint } = plan;
  if (checkpoint !== undefined) {
    words.push('--checkpoint', resolve(checkpoint.folder), '--checkpoint-every', String(checkpoint.everyBlocks));
    words.push('--on-rail-lost', checkpoint.onRailLost, ...(checkpoint.resume ? ['--resume'] : []));
  }
  return { cli: ownFile(), words, size: options.np, mca, pulls, restores, fault: options.fault, timeoutMs: options.timeout * 1000 };
}

const blocksOf = (plan: HplPlan, n: number): number => Math.ceil(n / plan.blocks[0]);
const print = (lines: readonly string[]): void => {
  process.stdout.write(`${lines.join('\n')}\n`);
};
const tell = (options: HplOptions, text: string): void => {
  if (options.progress) process.stderr.write(`${text}\n`);
};

// ---------------------------------------------------------------- single runs

async function runsOf(stage: Stage, pulls: readonly Moment[], restores: readonly Moment[]): Promise<void> {
  const { options, plan } = stage;
  const { algebra } = plan;
  const algebraText = `${algebra.description} (${algebra.reason})`;
  print(
    headLines({ orders: plan.orders, blocks: plan.blocks, grids: plan.grids, ...plan.options, algebra: algebraText, warmUp: plan.warmUp }),
  );
  const runs: LabRun[] = [];
  for (const n of plan.orders) {
    for (let i = 0; i < options.repeat; i++) {
      const run = await runInLab(stage.lab, stage.rails, specOf(stage, n, pulls, restores));
      runs.push(run);
      print(runLines(run, blocksOf(plan, n)));
    }
  }
  if (options.json !== undefined) {
    const report = { commandLine: commandLine(ownWords()), machine: machineInfo(), algebra: algebraText, rails: stage.rails, runs };
    writeFileSync(options.json, `${JSON.stringify(report, undefined, 1)}\n`);
  }
  if (runs.some((run) => run.result?.residual.passed === false)) process.exitCode = 1;
}

function runLines(run: LabRun, blocks: number): string[] {
  const { result, stopped, railsLost, railsRestored } = run;
  const seconds = (ms: number) => (ms / 1000).toFixed(3);
  const done = run.done.map(
    ({ text, atMs, block }) => `${text} carried out ${seconds(atMs)} s after the start, ${block} of ${blocks} blocks done`,
  );
  const lost = run.losses.map(({ peer, key, reason, atMs }) => `${seconds(atMs)} s: rank 0 lost ${key} to rank ${peer} (${reason})`);
  const end =
    stopped === undefined
      ? []
      : [`Stopped after block ${stopped.block} of ${blocks}, which is saved in ${stopped.folder}; the same command with --resume goes on.`];
  const table = result === undefined ? [] : resultLines(result);
  return [...table, ...done, ...lost, `rank 0 lost ${railsLost} rails and got ${railsRestored} back`, ...end, ''];
}

// ---------------------------------------------------------------- the sweep

interface SweepPlan {
  rail: number;
  /** Whose port is pulled in that series. */
  node: number;
  series: readonly Series[];
  fractions: readonly number[];
  restore: Moment | undefined;
}

function sweepPlanOf(options: HplOptions, rails: readonly NamedRail[], pulls: readonly Moment[], restores: readonly Moment[]): SweepPlan {
  if (rails.length < 2) throw new MultirailError('ERR_ARG', 'a sweep needs a second rail to finish on: --rails fast,slow');
  if (pulls.length > 1 || restores.length > 1)
    throw new MultirailError('ERR_ARG', 'a sweep takes one --pull (which rail) and at most one --restore');
  if (options.checkpoint !== undefined) throw new MultirailError('ERR_ARG', '--checkpoint is for one run, not for a sweep');
  const [pull] = pulls;
  const rail = pull?.rail ?? 0;
  const [restore] = restores;
  if (restore !== undefined && restore.rail !== rail) throw new MultirailError('ERR_ARG', 'a sweep restores the rail that it pulls');
  const fractions = options.moments === undefined ? SWEEP_FRACTIONS : parseFractions(options.moments);
  const wanted = restore === undefined ? fractions : fractions.filter((fraction) => fraction < restore.fraction);
  // The model is made of a run that is pulled at once.
  const all = wanted.includes(0) ? wanted : [0, ...wanted];
  const series: readonly Series[] = options.series === 'both' ? ['network', 'port'] : [options.series];
  return { rail, node: pull?.node ?? options.np - 1, series, fractions: all, restore };
}

async function sweepOf(stage: Stage, sweep: SweepPlan): Promise<void> {
  const { options, plan, rails } = stage;
  const cells: CellRuns[] = sweepCells(plan.orders, sweep.series, sweep.fractions).map((cell) => ({ cell, runs: [] }));
  const [{ p, q }] = plan.grids;
  const head: Omit<SweepReport, 'rows'> = {
    commandLine: commandLine(ownWords()),
    machine: machineInfo(),
    algebra: plan.algebra.description,
    rails,
    pulledRail: rails[sweep.rail].name,
    restoreFraction: sweep.restore?.fraction,
    ranks: options.np,
    nb: plan.blocks[0],
    p,
    q,
    repeats: options.repeat,
  };
  print(sweepHead(head));
  const count = cells.length * options.repeat;
  let at = 0;
  for (let round = 0; round < options.repeat; round++) {
    for (const { cell, runs } of cells) {
      const [pulls, restores] = momentsOf(cell, sweep);
      const run = await runInLab(stage.lab, rails, specOf(stage, cell.n, pulls, restores));
      runs.push(run);
      const verdict = run.result?.residual.passed === true ? 'PASSED' : 'FAILED';
      const what = cell.fraction === undefined ? 'never pulled' : `${cell.series} pulled at ${percent(cell.fraction)}`;
      tell(options, `run ${++at} of ${count}: N=${cell.n}, ${what}: ${(run.totalMs / 1000).toFixed(2)} s, ${verdict}`);
    }
  }
  const rows = sweepRows(cells, (n) => blocksOf(plan, n), sweep.restore?.fraction);
  print(sweepTable(rows));
  const report: SweepReport = { ...head, rows };
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ ...report, cells }, undefined, 1)}\n`);
  if (options.plot) {
    mkdirSync(options.out, { recursive: true });
    const file = join(
      options.out,
      `hpl-sweep-${rails.map(({ name, mbit }) => `${name}-${Number.isFinite(mbit) ? mbit : 'unshaped'}`).join('-')}.svg`,
    );
    writeFileSync(file, await sweepPlot(report));
    print(['', `Figure: ${file}`]);
  }
  if (rows.some((row) => !row.passed)) process.exitCode = 1;
}

function momentsOf({ series, fraction }: Cell, { rail, node, restore }: SweepPlan): [Moment[], Moment[]] {
  if (fraction === undefined) return [[], []];
  return [[{ rail, node: series === 'port' ? node : undefined, fraction }], restore === undefined ? [] : [restore]];
}
