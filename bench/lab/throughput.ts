// Several shaped rails against one: contenders interleaved round by round, each a job of its own over the same lab, as ratios within
// each round; medians and bootstrap bounds of these. Imports the lab and the files of this folder.
import { Lab } from '../../tools/lab/lab.ts';
import { bootstrapMedian, median } from '../lib/stats.mjs';
import { DEFAULT_SPEC, Job } from './measured-job.ts';
import type { ThroughputRow } from './protocol.ts';
import { Budget, type CommonOptions, Report } from './report.ts';
import { digits } from './stats.ts';

export interface ThroughputOptions extends CommonOptions {
  rounds: number;
  cases: string[];
  sizes: { bytes: number; window: number }[];
  seconds: number;
  warmSeconds: number;
  seed: number;
}

/** What is compared: rates of the rails, which of them each contender uses, and the ratio asked for. */
interface Case {
  mbit: number[];
  contenders: { name: string; rails: number[]; btl?: string; wsRails?: number[] }[];
  /** Numerator: contender `all`; denominator: the sum of these. */
  against: { names: string[]; text: string };
  /** Least ratio, by the lower bound. Undefined: shown, and not judged. */
  target: number | undefined;
}

/** Two rails against the first of them alone. */
const pair = (first: number, second: number, text: string, target: number | undefined): Case => ({
  mbit: [first, second],
  contenders: [
    { name: 'one', rails: [0] },
    { name: 'all', rails: [0, 1] },
  ],
  against: { names: ['one'], text },
  target,
});

export const CASES: Record<string, Case> = {
  '400+400': pair(400, 400, 'one', 1.95),
  '400+100': pair(400, 100, 'the fast one', 1.19),
  '1000+400+100': {
    mbit: [1000, 400, 100],
    contenders: [
      { name: '1000', rails: [0] },
      { name: '400', rails: [1] },
      { name: '100', rails: [2] },
      { name: 'all', rails: [0, 1, 2] },
    ],
    against: { names: ['1000', '400', '100'], text: 'the sum of each alone' },
    target: 0.95,
  },
  '1000+1': pair(1000, 1, 'the fast one', 0.99),
  '1000+1000': pair(1000, 1000, 'one', undefined),
  'tcp+ws': {
    mbit: [1000, 1000],
    contenders: [
      { name: 'one', rails: [0] },
      { name: 'all', rails: [0, 1], wsRails: [1] },
    ],
    against: { names: ['one'], text: 'TCP alone' },
    target: undefined,
  },
};

function mcaOf(contender: Case['contenders'][number], lab: Lab): Record<string, string> {
  const names = (rails: number[]) => rails.map((rail) => lab.interfaceName(rail)).join(',');
  const { rails, wsRails } = contender;
  if (wsRails === undefined) return { btl: 'self,tcp', btl_tcp_if_include: names(rails) };
  const tcp = rails.filter((rail) => !wsRails.includes(rail));
  return { btl: 'self,tcp,ws', btl_tcp_if_include: names(tcp), btl_ws_if_include: names(wsRails) };
}

const JOB_OVERHEAD_MS = 2500;

export async function throughput(options: ThroughputOptions): Promise<number> {
  const { rounds, cases, sizes, seconds, warmSeconds, minutes } = options;
  const report = new Report('throughput', options);
  const budget = new Budget(minutes);
  const jobMs = JOB_OVERHEAD_MS + sizes.length * (seconds + warmSeconds + 1.5) * 1000;
  const total = rounds * cases.reduce((sum, name) => sum + CASES[name].contenders.length, 0);
  let done = 0;
  const problems: string[] = [];
  /** Case, size, contender: one rate per round. */
  const rates = new Map<string, Map<number, Map<string, number[]>>>();
  for (let round = 0; round < rounds; round++) {
    for (const name of cases) {
      const { mbit, contenders } = CASES[name];
      if (!budget.has(jobMs * contenders.length)) {
        report.say(`the time is up after ${round} rounds`);
        round = rounds;
        break;
      }
      await using lab = await Lab.create({
        nodes: 2,
        rails: mbit.map((rate) => ({ mbit: rate })),
        congestionControl: options.congestionControl,
      });
      // Every other round the other way round: whatever drifts meets both.
      const order = round % 2 === 0 ? contenders : [...contenders].reverse();
      const rows = new Map<string, ThroughputRow[]>();
      for (const contender of order) {
        let received: ThroughputRow[];
        try {
          received = await runContender(lab, contender, options);
        } catch (error) {
          const text = `round ${round + 1}, ${name}, ${contender.name}: ${(error as Error).message}`;
          problems.push(text);
          report.figure({ problem: text });
          report.say(`PROBLEM: ${text}`);
          break;
        }
        rows.set(contender.name, received);
        done++;
        for (const row of received) {
          report.figure({ case: name, round, contender: contender.name, ...row });
          const shares = row.rails.map(
            ({ key, payloadBytes, measuredMBps }) => `${key} ${(payloadBytes / 1e6).toFixed(0)} MB at ${measuredMBps.toFixed(1)}`,
          );
          report.say(
            `round ${round + 1}/${rounds} ${name} ${contender.name.padEnd(5)} ${row.bytes} B: ${row.steadyMBps.toFixed(2)} MB/s ` +
              `(${row.toEndMBps.toFixed(2)} with the tail; ${shares.join(', ')})  ${budget.eta(done, total)}`,
          );
        }
      }
      // A round is whole or not at all: ratios are taken within it.
      if (rows.size < contenders.length) continue;
      for (const [contender, list] of rows) {
        for (const row of list) {
          const bySize = getOrMake(rates, name, () => new Map<number, Map<string, number[]>>());
          const byName = getOrMake(bySize, row.bytes, () => new Map<string, number[]>());
          getOrMake(byName, contender, () => []).push(row.steadyMBps);
        }
      }
    }
  }
  summarise(report, rates, options);
  for (const problem of problems) report.text(`- ${problem.replaceAll('\n', ' ').slice(0, 1000)}: ${report.verdict(false)}`);
  return report.end();
}

async function runContender(lab: Lab, contender: Case['contenders'][number], options: ThroughputOptions): Promise<ThroughputRow[]> {
  const { mca, sizes, seconds, warmSeconds } = options;
  const job = await Job.start({
    lab,
    nodes: [0, 1],
    mca: { ...mca, ...mcaOf(contender, lab) },
    spec: {
      ...DEFAULT_SPEC,
      traffic: 'throughput',
      rails: contender.rails.length,
      sizes,
      warmMs: warmSeconds * 1000,
      measureMs: seconds * 1000,
    },
  });
  try {
    const timeoutMs = sizes.length * (seconds + warmSeconds) * 1000 + 120_000;
    await job.until('the end of the streams', () => job.ranks.every((rank) => rank.done !== undefined), timeoutMs);
  } catch (error) {
    await job.kill();
    throw error;
  }
  await job.ended();
  const errors = job.ranks.flatMap((rank) => rank.done?.errors ?? []);
  if (errors.length > 0) throw new Error(errors.join('; '));
  return job.ranks[1].rows;
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function summarise(report: Report, rates: Map<string, Map<number, Map<string, number[]>>>, options: ThroughputOptions): void {
  report.text('Shaped veth (tbf), one job per contender, interleaved; steady state of a sliding window; ratio within each round.', '');
  const rows: string[][] = [];
  for (const name of options.cases) {
    const { against, target, contenders, mbit } = CASES[name];
    for (const { bytes, window } of options.sizes) {
      const byName = rates.get(name)?.get(bytes);
      if (byName === undefined) {
        rows.push([
          `${name} Mbit/s`,
          sizeText(bytes),
          String(window),
          '–',
          '–',
          '–',
          '–',
          target === undefined ? '' : `≥ ${target}`,
          report.verdict(target === undefined),
        ]);
        continue;
      }
      const all = byName.get('all') ?? [];
      const ratios = all.map((rate, round) => rate / against.names.reduce((sum, one) => sum + (byName.get(one)?.[round] ?? Number.NaN), 0));
      const { low, high } = bootstrapMedian(ratios, { seed: options.seed });
      report.figure({ case: name, bytes, ratios, median: median(ratios), low, high, target });
      rows.push([
        `${name} Mbit/s`,
        sizeText(bytes),
        String(window),
        contenders.map((one) => `${one.name} ${digits(median(byName.get(one.name) ?? []))}`).join(', '),
        `${digits(median(ratios), 3)} × ${against.text}`,
        `${digits((median(all) / (mbit.reduce((total, rate) => total + rate, 0) / 8)) * 100)} %`,
        `${digits(low, 3)} to ${digits(high, 3)} (n = ${ratios.length})`,
        target === undefined ? '' : `≥ ${target}`,
        target === undefined ? '' : report.verdict(low >= target),
      ]);
    }
  }
  report.table(
    ['rails', 'message', 'window', 'MB/s, median', 'ratio, median', 'of the nominal rates', 'bootstrap 95 %', 'target', ''],
    rows,
  );
}

export function sizeText(bytes: number): string {
  if (bytes >= 1 << 20) return `${bytes / (1 << 20)} MiB`;
  return bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`;
}
