// The table of the campaign of bad links, fault x traffic, and its section in bench/RESULTS.md. Imports lab-report, lab-stats, the files
// of the campaign.
import { readFileSync, writeFileSync } from 'node:fs';
import { GRAY_FAULTS } from './gray-faults.ts';
import { mergeKept, readKept, writeKept } from './gray-kept.ts';
import { GRAY_TRAFFICS, type GrayTraffic } from './gray-protocol.ts';
import { BOUND, type CellFigures, cellName, cellsOf, type GrayLine, missedBy, TOPOLOGIES, TRANSPORTS } from './gray-record.ts';
import type { Report } from './report.ts';
import { digits } from './stats.ts';

const RESULTS = 'bench/RESULTS.md';
const BEGIN = '<!-- bad-links:begin, written by bench/lab.sh gray --results -->';
const END = '<!-- bad-links:end -->';
const WRONG_CHARS = 300;

/** In place of the section that is there, or at the end, where what other scripts write leaves it alone. */
export function withBadLinks(results: string, markdown: string): string {
  const part = `${BEGIN}\n\n## Bad links\n\n${markdown.trim()}\n\n${END}`;
  const from = results.indexOf(BEGIN);
  const to = results.indexOf(END);
  if (from >= 0 && to > from) return results.slice(0, from) + part + results.slice(to + END.length);
  return `${results.trimEnd()}\n\n${part}\n`;
}

const missedOf = (cell: CellFigures) => missedBy(cell, GRAY_TRAFFICS[cell.traffic].bytes);

/** `38 / 120 ms, 0.98, 0.3 %`, with what misses the bound in bold. */
function textOf(cell: CellFigures | undefined, faults: number): string {
  if (cell === undefined) return '–';
  if (cell.notRun !== undefined) return 'not run';
  if (cell.wrong.length > 0) return `**failed** (${cell.faults})`;
  const missed = missedOf(cell);
  const mark = (what: (typeof missed)[number], text: string) => (missed.includes(what) ? `**${text}**` : text);
  const streams = cell.worstOfStreamMs.length > 1 ? `; by stream ${cell.worstOfStreamMs.map((ms) => digits(ms, 0)).join(', ')} ms` : '';
  return (
    `${mark('median', digits(cell.medianMs, 0))} / ${mark('worst', digits(cell.worstMs, 0))} ms, ` +
    `${mark('share', digits(cell.share, 2))} (${digits(cell.shareOfQuiet, 2)}), ${cell.transport === 'mptcp' ? '–' : mark('wasted', `${digits(100 * cell.wasted)} %`)}${streams}${cell.faults < faults || cell.inUse < cell.faults ? ` (${cell.inUse} of ${cell.faults})` : ''}`
  );
}

/** `75 cells 2026-11-26, measured at b847717; 12 cells …` */
function measuredText(cells: readonly CellFigures[]): string {
  const counts = new Map<string, number>();
  for (const { run, commit } of cells) {
    const when = `${run.slice(0, 10)}, measured at ${commit ?? 'no commit'}`;
    counts.set(when, (counts.get(when) ?? 0) + 1);
  }
  return [...counts].map(([when, count]) => `${count} cells ${when}`).join('; ');
}

/**
 * Writes everything that is there of all runs; the exit code of the command. With `results`, these cells and those that were kept before, in
 * bench/RESULTS.md.
 */
export function writeGrayTable(
  report: Report,
  options: { seed: number; faults: number; results?: boolean },
  lines: readonly GrayLine[],
  leftOut: number,
): number {
  const isKept = options.results === true;
  const all = isKept ? mergeKept(readKept(), cellsOf(lines).values()) : cellsOf(lines);
  if (isKept) writeKept(all);
  const cells = [...all.values()];
  // Peers stand beside, and are not judged.
  const ran = cells.filter(({ notRun, transport }) => notRun === undefined && transport !== 'mptcp');
  report.text(
    `Each cell: worst gap by fault, median / worst of ${options.faults} faults; payload carried during faults against the same traffic over ` +
      'the healthy rails alone, measured in turn; payload sent again against payload delivered. **Bold** misses the bound: ' +
      `worst at most ${BOUND.worstMs} ms, median at most ${BOUND.medianMs} ms, each + the time that the healthy rails need for one message; ` +
      `share at least ${BOUND.share}; sent again at most ${100 * BOUND.wasted} % (without faults ${100 * BOUND.wastedWithoutFaults} %). Seed ${options.seed}. ` +
      '(m of n): n faults, of which m struck a rail in use, and the median, the share and what was sent again are theirs. A gap is the time between two deliveries at a receiver while something for it is outstanding; `bench/lab/gray.ts` says all of it exactly.',
    '',
  );
  for (const topology of Object.keys(TOPOLOGIES) as (keyof typeof TOPOLOGIES)[]) {
    for (const transport of Object.keys(TRANSPORTS) as (keyof typeof TRANSPORTS)[]) {
      const here = cells.filter((cell) => cell.topology === topology && cell.transport === transport);
      if (here.length === 0) continue;
      const traffics = (Object.keys(GRAY_TRAFFICS) as GrayTraffic[]).filter((traffic) => here.some((cell) => cell.traffic === traffic));
      const faults = Object.keys(GRAY_FAULTS).filter((fault) => here.some((cell) => cell.fault === fault));
      report.text(`### ${TOPOLOGIES[topology].text}; ${TRANSPORTS[transport].text}`, '');
      report.table(
        ['fault', ...traffics.map((traffic) => GRAY_TRAFFICS[traffic].text)],
        faults.map((fault) => [
          GRAY_FAULTS[fault].text,
          ...traffics.map((traffic) =>
            textOf(
              here.find((cell) => cell.fault === fault && cell.traffic === traffic),
              options.faults,
            ),
          ),
        ]),
      );
      const alone = traffics.map((traffic) => {
        const one = here.filter((cell) => cell.traffic === traffic && Number.isFinite(cell.aloneRate));
        const rates = one.map(({ aloneRate }) => aloneRate / 1000);
        const gaps = one.map(({ aloneWorstMs }) => aloneWorstMs);
        return `${GRAY_TRAFFICS[traffic].text}: ${rates.length === 0 ? '–' : `${digits(Math.min(...rates), 2)} to ${digits(Math.max(...rates), 2)} MB/s, worst gap ${digits(Math.max(...gaps), 0)} ms`}`;
      });
      report.text(`The healthy rails alone: ${alone.join('; ')}.`, '');
    }
  }
  const met = ran.filter((cell) => missedOf(cell).length === 0).length;
  report.text(`${measuredText(ran)}.`);
  report.text(`${ran.length} cells, ${met} met: ${report.verdict(ran.length > 0 && met === ran.length)}.`);
  const fewer = ran.filter((cell) => cell.faults < options.faults).length;
  if (fewer > 0) report.text(`${fewer} cells have fewer than ${options.faults} faults.`);
  if (leftOut > 0) report.text(`${leftOut} cells were left out for want of time.`);
  const reasons = new Map<string, string[]>();
  for (const cell of cells) {
    if (cell.notRun === undefined) continue;
    const list = reasons.get(cell.notRun) ?? [];
    reasons.set(cell.notRun, [...list, cellName(cell)]);
  }
  for (const [reason, names] of reasons) report.text(`Not run, and not counted: ${names.join(', ')}: ${reason}.`);
  const failed = ran.filter(({ wrong }) => wrong.length > 0);
  report.text(
    `Audit: nothing lost, doubled, reordered or damaged, no hang: ${report.verdict(failed.length === 0 && ran.length > 0)}.`,
    ...failed.map((cell) => `- ${cellName(cell)}: ${cell.wrong.join('; ').replaceAll('\n', ' ').slice(0, WRONG_CHARS)}`),
  );
  const code = report.end();
  if (isKept) {
    writeFileSync(RESULTS, withBadLinks(readFileSync(RESULTS, 'utf8'), report.markdown));
    report.say(`written: ${RESULTS}`);
  }
  return code;
}
