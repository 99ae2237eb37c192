// The record of a soak: text, JSON line and tables, and its verdict. Imports lab-report, lab-stats, the lab's rails, the files of the soak.
import { readFileSync, writeFileSync } from 'node:fs';
import { type NamedRail, showRate } from '../../tools/lab/rails.ts';
import type { Report } from '../lab/report.ts';
import { digits } from '../lab/stats.ts';
import type { MemorySample } from './job.ts';
import { JS_LIMITS, judgeMemory, type MemoryLimits, type MemoryVerdict, RSS_LIMITS } from './memory.ts';
import type { SoakCounts } from './protocol.ts';
import { SOAK_FAULTS, type SoakFault } from './schedule.ts';

export interface SoakRecord {
  elapsedMs: number;
  isInterrupted: boolean;
  rounds: number;
  /** Over all ranks. */
  totals: SoakCounts;
  faults: ReadonlyMap<SoakFault, number>;
  gap: { anyMs: number; railLeftMs: number };
  /** By rank. */
  memory: readonly (readonly MemorySample[])[];
  warmMs: number;
  /** What the audit, the watch and the counts have found. */
  wrong: string[];
}

export interface RecordOptions {
  seed: number;
  ranks: number;
  rails: readonly NamedRail[];
  minutes: number;
  faults: boolean;
  results?: boolean;
}

const count = (value: number) => value.toLocaleString('en-US');
const mib = (bytes: number) => digits(bytes / 2 ** 20);

/** Writes everything; the exit code of the command. */
export function writeRecord(report: Report, options: RecordOptions, record: SoakRecord): number {
  const { totals, wrong, elapsedMs } = record;
  const isShort = record.isInterrupted ? `, interrupted (${options.minutes} were asked for)` : '';
  report.text(
    `${options.ranks} ranks on as many nodes, rails ${options.rails.map(({ name, mbit }) => `${name} ${showRate(mbit)}`).join(', ')}; seed ${options.seed}; ` +
      `${digits(elapsedMs / 60_000)} minutes${isShort}. Each round is drawn from the seed: messages of every kind and all collectives, on the world and on ` +
      'communicators that are made and freed again, each result compared with what it must be, each message counted by sender and receiver.',
    '',
  );
  const struck = Object.keys(SOAK_FAULTS).map((kind) => `${kind} ${record.faults.get(kind as SoakFault) ?? 0}`);
  const strikes = [...record.faults.values()].reduce((sum, value) => sum + value, 0);
  const audit = report.verdict(wrong.length === 0);
  // A run in which nothing happened proves nothing.
  const happened = record.rounds > 0 && totals.received > 0 && (!options.faults || (strikes > 0 && totals.downs > 0));
  report.table(
    ['', 'value', ''],
    [
      ['rounds', count(record.rounds), ''],
      ['messages of the program, each audited', count(totals.received), `nothing lost, doubled, reordered or damaged: ${audit}`],
      ['collectives × ranks, each audited', count(totals.collectives), ''],
      ['messages in all, those of collectives included', count(totals.pmlMessages), ''],
      ['payload received, MiB', count(Math.round(totals.pmlBytes / 2 ** 20)), ''],
      [
        'faults',
        `${count(strikes)}: ${struck.join(', ')}`,
        `rounds, messages${options.faults ? ', faults and losses' : ''}: ${report.verdict(happened)}`,
      ],
      ['rails lost / up, as the ranks at both ends count', `${count(totals.downs)} / ${count(totals.ups)}`, ''],
      ['payload sent again, MiB', digits(totals.bytesResent / 2 ** 20), ''],
      ['envelopes sent again / long messages restarted', `${count(totals.envelopesResent)} / ${count(totals.restarts)}`, ''],
      ['duplicates dropped', count(totals.duplicatesDropped), ''],
      ['longest time without a delivery at a rank, ms', digits(record.gap.anyMs, 0), ''],
      ['the same, but for outages of all rails, ms', digits(record.gap.railLeftMs, 0), ''],
    ],
  );
  for (const text of wrong) report.text('```', text, '```', '');
  const { isFlat, verdicts } = memoryTable(report, record);
  report.figure({
    record: { ...record, faults: Object.fromEntries(record.faults), memory: undefined },
    memory: verdicts,
  });
  for (const text of wrong) report.say(`WRONG: ${text}`);
  const exitCode = report.end();
  const verdict = exitCode !== 0 ? 'FAILED' : isFlat === undefined ? 'PASSED (memory not judged: too short)' : 'PASSED';
  report.say(
    `soak ${verdict}: seed ${options.seed}, ${record.rounds} rounds, ${count(totals.received)} messages, ${count(strikes)} faults`,
  );
  if (options.results === true) writeResults(report.markdown);
  return exitCode;
}

/** What JavaScript holds: the heap without what V8 has compiled, which grows as long as code is met that has not been hot before. */
const liveBytes = ({ heapUsedBytes, codeBytes, externalBytes }: MemorySample) => heapUsedBytes - codeBytes + externalBytes;

function memoryTable(report: Report, { memory, warmMs }: SoakRecord): { isFlat: boolean | undefined; verdicts: object[] } {
  const verdicts: object[] = [];
  let judged = 0;
  let tooShort = '';
  const all: string[] = [];
  const line = (samples: readonly MemorySample[], bytesOf: (sample: MemorySample) => number, limits: Omit<MemoryLimits, 'warmMs'>) => {
    const points = samples.map((sample) => ({ atMs: sample.atMs, round: sample.round, bytes: bytesOf(sample) }));
    return judgeMemory(points, { ...limits, warmMs });
  };
  const cells = (what: string, verdict: MemoryVerdict) => {
    if (verdict.verdict === 'not judged') {
      tooShort = verdict.why;
      return 'not judged';
    }
    judged++;
    if (verdict.verdict === 'grows') all.push(`${what}: ${verdict.why}`);
    return report.verdict(verdict.verdict === 'flat');
  };
  const rows = memory.map((samples, rank) => {
    const js = line(samples, liveBytes, JS_LIMITS);
    const rss = line(samples, ({ rssBytes }) => rssBytes, RSS_LIMITS);
    verdicts.push({ rank, js, rss });
    const perRound = ({ verdict, bytesPerRound, low, high }: MemoryVerdict) =>
      verdict === 'not judged' ? '–' : `${digits(bytesPerRound, 0)} (${digits(low, 0)} to ${digits(high, 0)})`;
    const thirds = (one: MemoryVerdict) =>
      one.verdict === 'not judged'
        ? '–'
        : `${mib(one.firstBytes)}, ${mib(one.firstMaxBytes)} → ${mib(one.lastBytes)}, ${mib(one.lastMaxBytes)}`;
    const most = (pick: (sample: MemorySample) => number) => count(Math.max(0, ...samples.map(pick)));
    return [
      String(rank),
      String(js.samples),
      thirds(js),
      perRound(js),
      cells(`rank ${rank}, JavaScript`, js),
      thirds(rss),
      perRound(rss),
      cells(`rank ${rank}, RSS`, rss),
      most(({ retainedBytes }) => retainedBytes),
      most(({ pendingRequests }) => pendingRequests),
    ];
  });
  report.text(
    `Memory of each rank between two rounds, after garbage collection, past ${digits(warmMs / 1000, 0)} s of warming up: median and most of the first third → ` +
      'of the last, in MiB, and the growth by round in bytes over the second half (Theil and Sen’s slope with its 95 % interval). JavaScript: heapUsed without compiled code + external. Flat: ' +
      `${limitText(JS_LIMITS)}; RSS: ${limitText(RSS_LIMITS)}.`,
    '',
  );
  const head = [
    'rank',
    'samples',
    'JavaScript, MiB',
    'B / round',
    'flat',
    'RSS, MiB',
    'B / round',
    'flat',
    'most retained, B',
    'most pending',
  ];
  report.table(head, rows);
  for (const text of all) report.text(`- ${text}`);
  if (judged === 0) report.text(`**The memory was not judged**: ${tooShort}.`);
  return { isFlat: judged === 0 ? undefined : all.length === 0, verdicts };
}

function limitText({ leakBytesPerRound, leakMustBe, slackBytes, growthBytes, growthShare }: Omit<MemoryLimits, 'warmMs'>): string {
  const leak =
    leakMustBe === 'excluded'
      ? `${leakBytesPerRound} B a round are excluded`
      : `not shown to grow by ${leakBytesPerRound} B a round that make ${mib(slackBytes)} MiB`;
  return `${leak}, and the most of the last third is at most ${mib(growthBytes)} MiB or ${growthShare * 100} % above that of the first`;
}

const RESULTS = 'bench/RESULTS.md';
const BEGIN = '<!-- soak:begin, written by bench/soak.sh traffic --results -->';
const END = '<!-- soak:end -->';

/** In place of the record that is there, or at the end, where what other scripts write leaves it alone. */
export function withSoak(results: string, markdown: string): string {
  const part = `${BEGIN}\n\n## Soak\n\n${markdown.trim()}\n\n${END}`;
  const from = results.indexOf(BEGIN);
  const to = results.indexOf(END);
  if (from >= 0 && to > from) return results.slice(0, from) + part + results.slice(to + END.length);
  return `${results.trimEnd()}\n\n${part}\n`;
}

function writeResults(markdown: string): void {
  writeFileSync(RESULTS, withSoak(readFileSync(RESULTS, 'utf8'), markdown));
  process.stdout.write(`written: ${RESULTS}\n`);
}
