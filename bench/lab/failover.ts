// Many faults of every kind under audited traffic: how long nothing was delivered, and when the rail was in use again.
// Imports the lab and the files of this folder.

import { Prng } from '../../src/util/prng.ts';
import { Lab, sleep } from '../../tools/lab/lab.ts';
import { DEFAULT_SPEC, Job } from './measured-job.ts';
import { nowMs, type Traffic } from './protocol.ts';
import { Budget, type CommonOptions, Report } from './report.ts';
import { digits, quantile } from './stats.ts';

export interface FailoverOptions extends CommonOptions {
  faults: number;
  traffics: Traffic[];
  kinds: string[];
  seed: number;
  mbit: number;
  /** How long a fault lasts. */
  holdMs: { low: number; high: number };
}

type KindClass = 'link down' | 'silent' | 'none';

interface Kind {
  class: KindClass;
  text: string;
  begin(lab: Lab, rail: number): Promise<unknown>;
}

/** Rank 0 sends (or pings), rank 1 receives: "own" is rank 0's side. */
export const KINDS: Record<string, Kind> = {
  none: { class: 'none', text: 'no fault (control)', begin: async () => undefined },
  'own-carrier': { class: 'link down', text: 'own carrier lost', begin: (lab, rail) => lab.cableCut(0, rail) },
  'peer-carrier': { class: 'link down', text: "peer's carrier lost", begin: (lab, rail) => lab.cableCut(1, rail) },
  'own-port': { class: 'link down', text: 'own interface set down', begin: (lab, rail) => lab.ownPortDown(0, rail) },
  'peer-port': { class: 'link down', text: "peer's interface set down", begin: (lab, rail) => lab.peerPortDown(0, rail) },
  'wire-cut': { class: 'link down', text: 'carrier lost at both ends', begin: (lab, rail) => lab.wireCut(rail) },
  'black-hole': { class: 'silent', text: 'black hole in the wire', begin: (lab, rail) => lab.blackhole(rail) },
  'one-way-out': { class: 'silent', text: 'one way: from the sender', begin: (lab, rail) => lab.oneWay(rail, 0) },
  'one-way-in': { class: 'silent', text: 'one way: to the sender', begin: (lab, rail) => lab.oneWay(rail, 1) },
};
export const KINDS_ASKED_FOR = ['none', 'own-carrier', 'peer-carrier', 'black-hole', 'one-way-out', 'one-way-in'];

const TARGETS: Record<KindClass, { p50: number; max: number } | undefined> = {
  'link down': { p50: 20, max: 50 },
  silent: { p50: 110, max: 150 },
  none: undefined,
};
const RETURN_MAX_MS = 1000;

const TRAFFIC_TEXT: Partial<Record<Traffic, string>> = {
  bulk: '1 MiB, 16 under way',
  pingpong: '8 B ping-pong',
  'pingpong-sync': '8 B ping-pong, blocking calls',
  stream8: '8 B one way, window 64',
};

// A cycle takes some 2.5 s: quiet, fault, heal, return, quiet.
const QUIET_MS = { low: 300, high: 700 };
const SETTLE_MS = { low: 400, high: 700 };
const cycleMs = ({ holdMs }: FailoverOptions) => 1850 + (holdMs.low + holdMs.high) / 2;
/** A rail that is not back by then is written down as never. */
const RETURN_WAIT_MS = 10_000;
const STALL_MS = 20_000;
const USE_WINDOW_MS = 100;
/** Jobs that may end badly per traffic before it is given up. */
const JOBS_MAX = 4;

interface FaultFigure {
  traffic: Traffic;
  kind: string;
  rail: string;
  gapMs: number;
  /** That began between the beginning of the heal and the next fault. */
  gapAtReturnMs: number;
  /** From the beginning of the heal; Infinity = not within the wait. */
  usedAgainMs: number;
  noticed: boolean;
  /** Longest time of the fault in which no payload came to the receiver at all, in steps of 10 ms: the rest of the gap is repair. */
  withoutPayloadMs: number;
  /** From the beginning of the fault, which the tools take some milliseconds to make, to each event of that rail. */
  events: { rank: number; afterMs: number; event: string; reason: string }[];
  beginMs: number;
  healAfterMs: number;
}

export async function failover(options: FailoverOptions): Promise<number> {
  const report = new Report('failover', options);
  const budget = new Budget(options.minutes);
  const prng = new Prng(options.seed);
  report.say(`seed ${options.seed}`);
  const figures: FaultFigure[] = [];
  const problems: string[] = [];
  const audits: string[] = [];
  const progress = { done: 0, total: options.traffics.length * options.kinds.length * options.faults };
  for (const traffic of options.traffics) {
    const plan: string[] = [];
    // Every round has each kind once: a campaign that is cut short has as many of each.
    for (let round = 0; round < options.faults; round++) plan.push(...prng.split(`${traffic}/${round}`).shuffle([...options.kinds]));
    const chance = prng.split(traffic);
    for (let jobs = 0; plan.length > 0 && jobs < JOBS_MAX && budget.has(cycleMs(options) + 6000); jobs++) {
      await using lab = await Lab.create({
        nodes: 2,
        rails: [{ mbit: options.mbit }, { mbit: options.mbit }],
        congestionControl: options.congestionControl,
      });
      const gapMinMs = traffic === 'bulk' ? 2 : 0.5;
      const job = await Job.start({
        lab,
        nodes: [0, 1],
        mca: { btl: 'self,tcp', ...options.mca },
        spec: { ...DEFAULT_SPEC, traffic, rails: 2, gapMinMs },
      });
      try {
        await sleep(2000);
        while (plan.length > 0 && budget.has(cycleMs(options))) {
          const figure = await strike(lab, job, traffic, plan[0], options.holdMs, chance);
          plan.shift();
          figures.push(figure);
          report.figure(figure);
          progress.done++;
          report.say(
            `${progress.done}/${progress.total} ${traffic} ${figure.kind.padEnd(12)} ${figure.rail}: gap ${digits(figure.gapMs)} ms, ` +
              `at return ${digits(figure.gapAtReturnMs)} ms, used again ${digits(figure.usedAgainMs, 0)} ms` +
              `${figure.noticed || figure.kind === 'none' ? '' : ', not noticed'}  ${budget.eta(progress.done, progress.total)}`,
          );
        }
        const wrong = await job.stop();
        const messages = job.ranks[0].done?.sent ?? 0;
        audits.push(`${TRAFFIC_TEXT[traffic]}: ${messages.toLocaleString('en-US')} messages`);
        for (const text of wrong) problems.push(`${traffic}: ${text}`);
        report.figure({ audit: traffic, messages, wrong, counters: job.ranks.map((rank) => rank.done?.counters) });
      } catch (error) {
        await job.kill();
        problems.push(`${traffic}, during ${plan[0] ?? 'the end'}: ${(error as Error).message}`);
        report.figure({ problem: traffic, kind: plan[0], text: (error as Error).message });
        report.say(`PROBLEM: ${(error as Error).message}`);
        plan.shift();
      }
    }
    if (plan.length > 0) report.say(`${traffic}: ${plan.length} faults were left out`);
  }
  summarise(report, options, figures, problems, audits);
  return report.end();
}

async function strike(
  lab: Lab,
  job: Job,
  traffic: Traffic,
  kindName: string,
  holdMs: FailoverOptions['holdMs'],
  chance: Prng,
): Promise<FaultFigure> {
  const kind = KINDS[kindName];
  const receiver = traffic.startsWith('pingpong') ? job.ranks[0] : job.ranks[1];
  await sleep(chance.between(QUIET_MS.low, QUIET_MS.high));
  // A fault of a rail that carries nothing proves nothing.
  const keys = [...receiver.uses.keys()];
  const used = keys.filter((key) => job.ranks.some((rank) => rank.framesSince(key, nowMs() - USE_WINDOW_MS) > 0));
  const key = used.length > 0 ? used[chance.below(used.length)] : keys[0];
  const rail = Number(/mr(\d+)-/.exec(key)?.[1]);
  const troublesBefore = job.ranks.map((rank) => rank.troublesOf(key));
  const faultAt = nowMs();
  await kind.begin(lab, rail);
  const beginMs = nowMs() - faultAt;
  await sleep(chance.between(holdMs.low, holdMs.high));
  const healAt = nowMs();
  await lab.heal(rail);
  const usedAgainAt = () => {
    const times = job.ranks.map((rank) => rank.usedAt(key, healAt)).filter((time) => time !== undefined);
    return times.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...times);
  };
  const isBack = () => Number.isFinite(usedAgainAt()) && job.ranks.every((rank) => rank.stateOf(key) === 'UP');
  const waitEnd = healAt + RETURN_WAIT_MS;
  await job.until('the reports after a heal', () => isBack() || nowMs() > waitEnd, RETURN_WAIT_MS + 1000);
  await sleep(chance.between(SETTLE_MS.low, SETTLE_MS.high));
  const endAt = nowMs();
  // A gap that is still open is part of the figure; one without end is a stall.
  await job.until('the next delivery (stalled)', () => receiver.lastAt >= endAt, STALL_MS);
  const events = job.ranks.flatMap((rank, number) =>
    rank.railEvents
      .filter(({ at, key: name }) => name === key && at >= faultAt)
      .map(({ at, event, reason }) => ({ rank: number, afterMs: at - faultAt, event, reason })),
  );
  return {
    traffic,
    kind: kindName,
    rail: key,
    gapMs: receiver.worstGapMs(faultAt, healAt),
    gapAtReturnMs: receiver.worstGapMs(healAt, endAt, 'began'),
    usedAgainMs: usedAgainAt() - healAt,
    noticed: job.ranks.some((rank, number) => rank.troublesOf(key) > troublesBefore[number]),
    withoutPayloadMs: receiver.longestWithoutPayloadMs(faultAt, healAt),
    events,
    beginMs,
    healAfterMs: healAt - faultAt,
  };
}

function summarise(report: Report, options: FailoverOptions, figures: FaultFigure[], problems: string[], audits: string[]): void {
  report.text(
    `Two rails of ${options.mbit} Mbit/s; a fault of ${options.holdMs.low} to ${options.holdMs.high} ms every ${digits(cycleMs(options) / 1000)} s or so on a rail that carries traffic, seed ${options.seed}. ` +
      'Gap: longest time without a delivery at the receiver (ping-pong: at the sender) while the fault lasts, in ms. ' +
      'Return: from the beginning of the repair (which itself takes some 50 ms) until a frame has come over the rail, in ms.',
    '',
  );
  const rows: string[][] = [];
  for (const traffic of options.traffics) {
    for (const kind of options.kinds) {
      const list = figures.filter((figure) => figure.traffic === traffic && figure.kind === kind);
      const gaps = list.map((figure) => figure.gapMs);
      const returns = list.map((figure) => figure.usedAgainMs);
      const target = TARGETS[KINDS[kind].class];
      const p50 = quantile(gaps, 0.5);
      const max = gaps.length === 0 ? Number.NaN : Math.max(...gaps);
      const back = returns.length === 0 ? Number.NaN : Math.max(...returns);
      const judged = target === undefined ? '' : report.verdict(p50 <= target.p50 && max <= target.max);
      rows.push([
        TRAFFIC_TEXT[traffic] ?? traffic,
        KINDS[kind].text,
        kind === 'none' ? String(list.length) : `${list.length} (${list.filter((figure) => figure.noticed).length} noticed)`,
        digits(p50),
        digits(quantile(gaps, 0.99)),
        digits(max),
        target === undefined ? '' : `≤ ${target.p50} / ${target.max}: ${judged}`,
        digits(
          quantile(
            list.map((figure) => figure.gapAtReturnMs),
            1,
          ),
        ),
        digits(quantile(returns, 0.5), 0),
        digits(back, 0),
        kind === 'none' ? '' : `≤ ${RETURN_MAX_MS}: ${report.verdict(back <= RETURN_MAX_MS)}`,
      ]);
    }
  }
  report.table(
    ['traffic', 'fault', 'n', 'gap p50', 'p99', 'max', 'target p50 / max', 'gap at return, max', 'return p50', 'max', 'target'],
    rows,
  );
  const fewest = Math.min(
    ...options.traffics.flatMap((t) => options.kinds.map((k) => figures.filter((f) => f.traffic === t && f.kind === k).length)),
  );
  if (fewest < 100) report.text(`Only ${fewest} faults of the rarest kind: fewer than the 100 that the targets ask for.`, '');
  report.text(
    `Audit (${audits.join('; ') || 'no job came to its end'}): nothing lost, doubled, reordered or damaged: ${report.verdict(problems.length === 0 && audits.length > 0)}.`,
  );
  for (const problem of problems) report.text(`- ${problem.replaceAll('\n', ' ').slice(0, 1000)}`);
}
