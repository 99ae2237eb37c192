// The campaign of bad links, `bench/lab.sh gray`: many faults of every kind under audited traffic over real links, judged by the bound.
//
// A cell is a fault x a traffic. In a cell a job runs over a lab; one fault after the other begins, lasts for a time (1 s; a flap its
// five periods, if that is more), ends and is followed by a pause of 0.3 to 0.5 s, or of up to 1 s while a healed rail is not up. Which
// rail is bad is drawn for each fault from those that carry something, if their siblings are up: a healthy rail is always left, and
// one that was bad half a second ago may be it. A rail that has not come back is struck again; the median, the share and what is wasted
// are then of the faults that struck a rail in use.
// - A gap is the time between two deliveries at a receiver while something for it is outstanding: gray-protocol.ts says it exactly. To a
//   fault belong all gaps of which a part lies between its beginning and the end of the pause behind it. The gap that is open at that
//   end is waited for, and belongs to it whole.
// - Bound: worst gap of all faults of a cell at most 150 ms, median of the worst per fault at most 110 ms, each + the time that the
//   healthy rails need for one message.
// - Share: payload delivered between beginning and end of the faults : what the same traffic carries in that time over the healthy rails
//   alone. That is measured by a second job, which runs in turn with the first one, three times a cell, while the first pauses.
// - Control: what flaps a link, forwards or polices takes processor time of its own, and traffic that is bound by the processor feels
//   that without having a bad rail at all. The second job therefore runs twice more, before the first one starts and after it has ended,
//   while the same fault is on a rail that the second job does not use. The share is judged by that, and both shares are shown.
// - Wasted: payload that was sent again : payload delivered, from the beginning of a fault to the end of its pause.
// - Every message is audited by content and order. A job that dies, or delivers nothing for 10 s, is a failed cell: its log is kept.
// Imports the lab, the generator, the files of the campaign and of the lab's measurements.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MultirailError } from '../../src/errors.ts';
import { Prng } from '../../src/util/prng.ts';
import { Lab, LabError } from '../../tools/lab/lab.ts';
import { GRAY_FAULTS, type GrayFault, type Impairment, whyNotRun } from './gray-faults.ts';
import { GrayJob, HANG_MS } from './gray-job.ts';
import { mergeKept, readKept } from './gray-kept.ts';
import { startPeer, whyNoPeers } from './gray-peers.ts';
import { GRAY_TRAFFICS, type GrayTraffic } from './gray-protocol.ts';
import {
  type AloneLine,
  type CellFigures,
  type CellKey,
  cellName,
  cellsOf,
  type FaultLine,
  fullName,
  type GrayLine,
  missedBy,
  TOPOLOGIES,
  type Topology,
  TRANSPORTS,
  type Transport,
} from './gray-record.ts';
import { writeGrayTable } from './gray-table.ts';
import { JobError } from './job.ts';
import { nowMs } from './protocol.ts';
import { Budget, type CommonOptions, commitHere, Report } from './report.ts';
import { digits } from './stats.ts';

export interface GrayOptions extends CommonOptions {
  /** Patterns of names: FAULT/TRAFFIC, FAULT, /TRAFFIC, with * for anything. */
  cells?: string[];
  faults: number;
  /** Draw that many of the cells. */
  sample?: number;
  seed: number;
  topology: Topology;
  transport: Transport;
  /** Name of the record: out/lab/NAME.jsonl and .md. */
  name?: string;
  /** Keep the record, and leave out the cells that are in it or in the tables of bench/RESULTS.md. */
  resume?: boolean;
  /** Each cell over Multipath TCP of the kernel, too. */
  peers?: boolean;
  /** A fault lasts so long, whichever it is. */
  holdMs?: number;
  /** Print what the ranks say of their rails. */
  events?: boolean;
  results?: boolean;
  stop: AbortSignal;
}

const LOGS = join('out', 'lab', 'gray-logs');
/** Before the first fault. Code that is called for each of many short messages is compiled only after seconds. */
const WARM_MS: Record<GrayTraffic, number> = { bulk: 1200, small: 1200, pingpong: 6000, allreduce: 3000, mixed: 1200 };
const PAUSE_MS = { low: 300, high: 500 };
/** How long a pause waits for the healed rails to be up again. */
const UP_WAIT_MS = 1000;
/** A rail that brought nothing for so long carries nothing. */
const USE_WINDOW_MS = 150;
const ALONE_WARM_MS = 200;
const ALONE_MS = 600;
const ALONE_TURNS = 3;
const CELL_START_MS = 5000;

/** Cells in the order in which they are run: by traffic, so that the job of the healthy rails alone is kept. */
export function chooseCells({ cells, sample, seed }: Pick<GrayOptions, 'cells' | 'sample' | 'seed'>): Pick<CellKey, 'fault' | 'traffic'>[] {
  const traffics = Object.keys(GRAY_TRAFFICS) as GrayTraffic[];
  const all = traffics.flatMap((traffic) => Object.keys(GRAY_FAULTS).map((fault) => ({ fault, traffic })));
  const patterns = (cells ?? []).map((text) => {
    const [fault, traffic = '*'] = text.split('/', 2);
    const parts = [fault === '' ? '*' : fault, traffic].map((part) => part.replaceAll(/[^a-z0-9*-]/g, '').replaceAll('*', '.*'));
    return { text, pattern: new RegExp(`^${parts.join('/')}$`) };
  });
  for (const { text, pattern } of patterns) {
    if (!all.some((cell) => pattern.test(cellName(cell))))
      throw new Error(
        `--cells: no cell is called ${text}; faults: ${Object.keys(GRAY_FAULTS).join(', ')}; traffics: ${traffics.join(', ')}`,
      );
  }
  const chosen = all.filter((cell) =>
    cells === undefined ? GRAY_FAULTS[cell.fault].isAsked : patterns.some(({ pattern }) => pattern.test(cellName(cell))),
  );
  if (sample === undefined) return chosen;
  const drawn = new Set(new Prng(`${seed}/cells`).shuffle([...chosen]).slice(0, sample));
  return chosen.filter((cell) => drawn.has(cell));
}

export async function gray(options: GrayOptions): Promise<number> {
  const { topology, transport, seed, faults } = options;
  const name = options.name ?? (options.cells === undefined ? 'gray' : 'gray-cells');
  const report = new Report(name, options, { resume: options.resume === true });
  const lines = report.kept<GrayLine>().filter(({ kind }) => kind !== undefined);
  const budget = new Budget(options.minutes);
  const noPeers = options.peers === true ? whyNoPeers() : undefined;
  if (noPeers !== undefined) report.say(`Multipath TCP is not measured: ${noPeers}`);
  const transports: Transport[] = options.peers === true && noPeers === undefined ? [transport, 'mptcp'] : [transport];
  const all = chooseCells(options).flatMap((cell) => transports.map((each): CellKey => ({ topology, transport: each, ...cell })));
  const known = options.resume === true ? mergeKept(readKept(), cellsOf(lines).values()) : cellsOf(lines);
  const isDone = (cell: CellKey) => (known.get(fullName(cell))?.faults ?? 0) >= faults;
  const cells = all.filter((cell) => !isDone(cell));
  report.say(
    `seed ${seed}: ${cells.length} cells of ${faults} faults${cells.length < all.length ? `, ${all.length - cells.length} are done` : ''}`,
  );
  report.say(`${TOPOLOGIES[topology].text}; ${TRANSPORTS[transport].text}`);
  const campaign = new Campaign(options, report, budget, lines);
  await campaign.run(cells);
  return writeGrayTable(report, options, lines, campaign.leftOut);
}

class Campaign {
  /** Cells for which there was no time. */
  leftOut = 0;
  private readonly options: GrayOptions;
  private readonly report: Report;
  private readonly budget: Budget;
  private readonly lines: GrayLine[];
  private readonly runName = new Date().toISOString();
  private readonly commit = commitHere();
  /** Over the healthy rails: of multirail and of the peer. */
  private readonly alone = new Map<Transport, GrayJob>();

  constructor(options: GrayOptions, report: Report, budget: Budget, lines: GrayLine[]) {
    this.options = options;
    this.report = report;
    this.budget = budget;
    this.lines = lines;
  }

  private keep(line: GrayLine): void {
    this.lines.push(line);
    this.report.figure(line);
  }

  private get rails() {
    return TOPOLOGIES[this.options.topology];
  }

  /** Estimated, of one cell. */
  private cellMs(fault: string): number {
    const { faults, holdMs = GRAY_FAULTS[fault].holdMs } = this.options;
    return (
      CELL_START_MS +
      ALONE_TURNS * (2 * ALONE_WARM_MS + ALONE_MS) +
      2 * holdMs +
      faults * (holdMs + (PAUSE_MS.low + PAUSE_MS.high) / 2 + 150)
    );
  }

  async run(cells: readonly CellKey[]): Promise<void> {
    const { stop } = this.options;
    let lab: Lab | undefined;
    try {
      for (const [i, key] of cells.entries()) {
        if (stop.aborted || !this.budget.has(this.cellMs(key.fault))) {
          this.leftOut = cells.length - i;
          break;
        }
        const nodes = GRAY_TRAFFICS[key.traffic].ranks;
        if (lab !== undefined && lab.nodeCount !== nodes) {
          await this.endAlone();
          await lab.destroy();
          lab = undefined;
        }
        lab ??= await Lab.create({
          nodes,
          rails: this.rails.mbits.map((mbit) => ({ mbit })),
          seed: this.options.seed,
          congestionControl: this.options.congestionControl,
        });
        const reason = whyNotRun(key.fault);
        if (reason === undefined) await new Cell(this, lab, key, this.options.seed).run();
        else this.keep({ kind: 'not run', run: this.runName, ...key, reason });
        this.tell(key, i + 1, cells.length);
      }
    } finally {
      await this.endAlone();
      await lab?.destroy();
    }
  }

  private tell(key: CellKey, done: number, total: number): void {
    const figures = cellsOf(this.lines).get(fullName(key));
    const text = figures === undefined ? 'interrupted' : sentenceOf(figures);
    const name = key.transport === 'mptcp' ? `${cellName(key)}, MPTCP` : cellName(key);
    this.report.say(`${done}/${total} ${name.padEnd(26)} ${text}  ${this.budget.eta(done, total)}`);
  }

  // ---- jobs

  /** Over all rails, or over those that stay healthy in a topology whose first rails are bad. */
  async startJob(lab: Lab, { traffic, transport, fault }: CellKey, which: 'all' | 'healthy'): Promise<GrayJob> {
    const { mbits, bad } = this.rails;
    const rails = mbits.map((_, rail) => rail).slice(which === 'all' ? 0 : bad);
    if (transport === 'mptcp') return await startPeer({ lab, traffic, rails });
    const { mca, ifInclude } = TRANSPORTS[transport];
    const only: Record<string, string> = which === 'all' ? {} : { [ifInclude]: rails.map((rail) => `mr${rail}`).join(',') };
    return await GrayJob.start({
      lab,
      traffic,
      mca: { ...mca, ...GRAY_FAULTS[fault].mca, ...only, ...this.options.mca },
      rails: rails.length,
    });
  }

  private async endAlone(): Promise<void> {
    for (const job of this.alone.values()) await job.kill();
    this.alone.clear();
  }

  /**
   * Measures the healthy rails alone once; the other job must pause. With a fault: while it is on the rails that are not used, where
   * no other job may react to it.
   */
  async measureAlone(lab: Lab, key: CellKey, under?: { fault: GrayFault; chance: Prng }): Promise<void> {
    if ([...this.alone.values()].some(({ traffic }) => traffic !== key.traffic)) await this.endAlone();
    const known = this.alone.get(key.transport);
    const job = known ?? (await this.startJob(lab, { ...key, fault: 'none' }, 'healthy'));
    this.alone.set(key.transport, job);
    try {
      job.go();
      await job.watch(known === undefined ? WARM_MS[key.traffic] : ALONE_WARM_MS);
      const unused = under === undefined ? [] : this.rails.mbits.map((_, rail) => rail).slice(0, this.rails.bad);
      const from = nowMs();
      let to: number;
      try {
        for (const rail of unused) await under?.fault.begin(lab, rail, under.chance);
        await job.watch(under === undefined ? ALONE_MS : (this.options.holdMs ?? under.fault.holdMs));
        to = nowMs();
      } finally {
        await Promise.all(unused.map((rail) => lab.heal(rail)));
      }
      await job.watch(50);
      const rate = job.bytesIn(from, to, 'delivered') / (to - from);
      const worstGapMs = Math.max(0, ...job.receivers.flatMap((rank) => rank.gapsIn(from, to).map((gap) => gap.toMs - gap.fromMs)));
      await job.pause();
      const during = under === undefined ? {} : { underFault: true };
      this.keep({ kind: 'alone', run: this.runName, ...key, ...during, rate, worstGapMs } satisfies AloneLine);
    } catch (error) {
      await this.endAlone();
      throw error;
    }
  }

  get settings() {
    const { options, report, rails, runName: run, commit } = this;
    return { options, report, rails, run, commit, keep: (line: GrayLine) => this.keep(line) };
  }
}

function sentenceOf(figures: CellFigures): string {
  if (figures.notRun !== undefined) return `not run: ${figures.notRun}`;
  const missed = missedBy(figures, GRAY_TRAFFICS[figures.traffic].bytes);
  const slow = figures.worstOfStreamMs.length > 1 ? ` (by stream ${figures.worstOfStreamMs.map((ms) => digits(ms, 0)).join(', ')})` : '';
  return (
    `gap median ${digits(figures.medianMs, 0)}, worst ${digits(figures.worstMs, 0)} ms${slow}, share ${digits(figures.share, 2)} of the control, ${digits(figures.shareOfQuiet, 2)} of quiet rails, ` +
    `wasted ${digits(100 * figures.wasted)} % (by rails ${digits(100 * figures.beyondOnce)} %): ${missed.length === 0 ? 'met' : `MISSED ${missed.join(', ')}`}` +
    `${figures.wrong.map((text) => `\n    ${text.split('\n')[0]}`).join('')}`
  );
}

/** One cell: its job, its faults. */
class Cell {
  private readonly campaign: Campaign;
  private readonly lab: Lab;
  private readonly key: CellKey;
  private readonly chance: Prng;
  private readonly seed: number;
  /** The rails that were bad last. */
  private last: number[] | undefined;

  constructor(campaign: Campaign, lab: Lab, key: CellKey, seed: number) {
    this.campaign = campaign;
    this.lab = lab;
    this.key = key;
    this.seed = seed;
    this.chance = new Prng(`${seed}/${key.topology}/${key.transport}/${cellName(key)}`);
  }

  async run(): Promise<void> {
    const { options, run, commit, keep, report } = this.campaign.settings;
    const control = { fault: GRAY_FAULTS[this.key.fault], chance: new Prng(`${this.seed}/control/${cellName(this.key)}`) };
    let job: GrayJob | undefined;
    try {
      await this.campaign.measureAlone(this.lab, this.key, control);
      job = await this.campaign.startJob(this.lab, this.key, 'all');
      await this.campaign.measureAlone(this.lab, this.key);
      job.go();
      await job.watch(WARM_MS[this.key.traffic]);
      const turnEvery = Math.ceil(options.faults / (ALONE_TURNS - 1));
      for (let number = 1; number <= options.faults && !options.stop.aborted; number++) {
        const line = await this.strike(job, number);
        keep(line);
        this.tell(job, line);
        if (number % turnEvery !== 0 && number !== options.faults) continue;
        await job.pause();
        await this.campaign.measureAlone(this.lab, this.key);
        job.go();
        await job.watch(ALONE_WARM_MS);
      }
      const messages = job.receivers.reduce((sum, rank) => sum + rank.messages, 0);
      const wrong = await job.finish();
      const counters = job.ranks.map(({ done }) => done!.counters);
      const log = wrong.length > 0 ? { log: this.keepLog(job.output) } : {};
      await this.campaign.measureAlone(this.lab, this.key, control);
      keep({ kind: 'cell', run, commit, ...this.key, messages, wrong, counters, ...log });
    } catch (error) {
      if (!(error instanceof JobError || error instanceof LabError || error instanceof MultirailError)) throw error;
      const output = (await job?.autopsy()) ?? '';
      await this.lab.healAll();
      const log = this.keepLog(`${error.message}\n\n${output}`);
      report.say(`${cellName(this.key)} FAILED: ${error.message.split('\n')[0]} (${log})`);
      keep({ kind: 'cell', run, commit, ...this.key, messages: 0, wrong: [error.message], log });
    } finally {
      await job?.kill();
    }
  }

  private keepLog(text: string): string {
    mkdirSync(LOGS, { recursive: true });
    const file = join(LOGS, `${this.key.topology}-${this.key.transport}-${this.key.fault}-${this.key.traffic}.log`);
    writeFileSync(file, `seed ${this.seed}\n${text}\n`);
    return file;
  }

  /** The rails that are to be bad: at least one of them carries something, and the others are up. */
  private pickRails(job: GrayJob): number[] {
    const { mbits, bad } = this.campaign.settings.rails;
    const all = mbits.map((_, rail) => rail);
    // Where rails are unlike, the fast one is the bad one.
    if (new Set(mbits).size > 1) return all.slice(0, bad);
    const since = nowMs() - USE_WINDOW_MS;
    const sets = all.map((first) => Array.from({ length: bad }, (_, i) => (first + i) % mbits.length).sort());
    const leavesOne = sets.filter((set) => all.every((rail) => set.includes(rail) || job.isUp(rail)));
    const hurts = leavesOne.filter((set) => set.some((rail) => job.carries(rail, since)));
    const choice = hurts.length > 0 ? hurts : leavesOne;
    return choice.length > 0 ? this.chance.pick(choice) : (this.last ?? sets[0]);
  }

  private async strike(job: GrayJob, number: number): Promise<FaultLine> {
    const { options, run } = this.campaign.settings;
    const { lab, chance } = this;
    const fault = GRAY_FAULTS[this.key.fault];
    const rails = this.pickRails(job);
    this.last = rails;
    const faultAt = nowMs();
    const inUse = rails.some((rail) => job.carries(rail, faultAt - USE_WINDOW_MS));
    const impairments: Impairment[] = [];
    let beganAt: number;
    let healAt: number;
    try {
      for (const rail of rails) impairments.push(await fault.begin(lab, rail, chance));
      beganAt = nowMs();
      await job.watch(options.holdMs ?? fault.holdMs);
      healAt = nowMs();
    } finally {
      await Promise.all(rails.map((rail) => lab.heal(rail)));
    }
    const cycles = impairments.map((one) => one.cycles?.()).filter((count) => count !== undefined);
    const healedAt = nowMs();
    const pauseMs = chance.between(PAUSE_MS.low, PAUSE_MS.high);
    await job.watch(Math.max(0, healedAt + pauseMs - nowMs()));
    await job.watchUntil(() => rails.every((rail) => job.isUp(rail)), UP_WAIT_MS - pauseMs);
    const endAt = nowMs();
    // The gap that is open now belongs to this fault, whole.
    await job.watchUntil(() => job.receivers.every(({ lastAt }) => lastAt >= endAt), HANG_MS + 1000);
    const gaps = job.receivers
      .flatMap((rank) => rank.gapsIn(faultAt, endAt))
      .map(({ fromMs, toMs, stream }) => ({ ms: toMs - fromMs, second: Math.max(0, Math.floor((toMs - faultAt) / 1000)), stream }));
    const bySecondMs: number[] = [];
    const worstOfStreamMs = new Array<number>(GRAY_TRAFFICS[this.key.traffic].streams).fill(0);
    for (const { ms, second, stream } of gaps) {
      bySecondMs[second] = Math.max(bySecondMs[second] ?? 0, Math.round(ms));
      worstOfStreamMs[stream] = Math.max(worstOfStreamMs[stream], ms);
    }
    return {
      kind: 'fault',
      run,
      ...this.key,
      seed: this.seed,
      number,
      rails,
      inUse,
      holdMs: healAt - faultAt,
      beginMs: beganAt - faultAt,
      ...(cycles.length > 0 ? { cycles: Math.max(...cycles) } : {}),
      worstGapMs: Math.max(...worstOfStreamMs),
      worstOfStreamMs,
      bySecondMs: Array.from(bySecondMs, (ms) => ms ?? 0),
      inFault: { bytes: job.bytesIn(faultAt, healAt, 'delivered'), ms: healAt - faultAt },
      delivered: job.bytesIn(faultAt, endAt, 'delivered'),
      sentAgain: job.bytesIn(faultAt, endAt, 'sentAgain'),
      beyondOnce: job.bytesIn(faultAt, endAt, 'beyondOnce'),
      backMs: job.backAfterMs(rails, healAt),
    };
  }

  private tell(job: GrayJob, line: FaultLine): void {
    const { options, report } = this.campaign.settings;
    const rate = line.inFault.bytes / 1000 / line.inFault.ms;
    report.say(
      `  ${cellName(line)} ${line.number}/${options.faults} rail ${line.rails.join('+')}${line.inUse ? '' : ' (not in use)'}: worst gap ${digits(line.worstGapMs, 0)} ms, ` +
        `by second ${line.bySecondMs.join(' ') || '-'}; ${digits(rate)} MB/s, sent again ${digits((100 * line.sentAgain) / line.delivered)} %` +
        `${line.backMs === undefined ? ', not used again' : `, used again after ${digits(line.backMs, 0)} ms`}`,
    );
    if (options.events !== true) return;
    const from = nowMs() - line.holdMs - PAUSE_MS.high - UP_WAIT_MS;
    const events = job.ranks.flatMap((one, rank) => one.events.filter(({ at }) => at >= from).map((event) => ({ ...event, rank })));
    for (const { at, rank, key, peer, event, reason } of events.sort((a, b) => a.at - b.at))
      report.say(`      ${digits(at - from, 0).padStart(6)} ms rank ${rank}: ${key} to rank ${peer} ${event} (${reason})`);
  }
}
