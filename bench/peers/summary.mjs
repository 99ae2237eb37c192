// Makes the section of bench/RESULTS.md out of the runs that were written down: verdicts on the targets, medians, what was left out.
// Imports node:*, stats.mjs and the files of this folder.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { acceptedRuns, bootstrapMedian, FOREIGN_MAX, judge, median, pairedRatios, ROUNDS_MIN, rejection } from '../lib/stats.mjs';
import { CONTENDERS, RAIL_CASES, RAIL_CONTENDERS } from './contenders.mjs';
import { linePlot } from './plot.mjs';
import { COMPARISONS, TARGETS } from './targets.mjs';

const RESULTS = join(import.meta.dirname, '../RESULTS.md');
const PLOTS = join(import.meta.dirname, 'plots');
const BEGIN = '<!-- peers:begin, written by bench/peers.sh -->';
const END = '<!-- peers:end -->';
/** What was written by hand comes last in that file. */
const BY_HAND = '\n<!-- by hand from here on -->';
const CLASSES = ['smt', 'near', 'far', 'any'];
const CLASS_TEXTS = {
  smt: 'smt: the two CPUs are siblings of one core (below 35 ns)',
  near: 'near: cores that share a last-level cache (35 to 120 ns)',
  far: 'far: cores that do not (200 to 600 ns)',
  any: 'any: shaped rails, where the place of the CPUs does not matter',
};

/** All runs of these files, in the order in which they were done. A last line that was cut off by a kill is left out. */
export function readRuns(files) {
  return files.flatMap((file) => {
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        try {
          return line === '' ? [] : [JSON.parse(line)];
        } catch {
          return [];
        }
      });
  });
}

const sizeName = (bytes) => (bytes >= 1048576 ? `${bytes / 1048576} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`);
const digits = (value) =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2) : value.toFixed(3);
const table = (head, rows, left = 1) =>
  [head, head.map((_, i) => (i < left ? '---' : '---:')), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

function boundOf(target, coreClass) {
  const { atMost, atLeast } = target.byClass === undefined ? target : (target.byClass[coreClass] ?? {});
  if (atMost === undefined && atLeast === undefined) return undefined;
  return atMost === undefined ? { atLeast, text: `≥ ${atLeast}` } : { atMost, text: `≤ ${atMost}` };
}

/** Rows of a list of targets: one per class in which the two met; one that says so where they never did. */
function targetRows(targets, runs) {
  return targets.flatMap((target) => {
    const ratios = pairedRatios(runs, target);
    const names = `${target.subject} / ${target.reference}`;
    const found = CLASSES.filter((coreClass) => ratios.has(coreClass));
    if (found.length === 0) {
      const { text } = boundOf(target, Object.keys(target.byClass ?? { near: 0 })[0]) ?? { text: '–' };
      return [[target.text, names, text, '–', '0', '–', '–', text === '–' ? '–' : 'not enough rounds']];
    }
    return found.map((coreClass) => {
      const values = ratios.get(coreClass);
      const bound = boundOf(target, coreClass);
      const judged = bound === undefined ? undefined : judge(values, bound);
      const { low, high } = bootstrapMedian(values);
      const interval = values.length < 2 ? '–' : `${digits(low)} to ${digits(high)}`;
      const verdict = judged === undefined ? '–' : judged.verdict === 'missed' ? '**missed**' : judged.verdict;
      return [target.text, names, bound?.text ?? '–', coreClass, String(values.length), digits(median(values)), interval, verdict];
    });
  });
}

const TARGET_HEAD = ['What', 'Contenders', 'Target', 'Class', 'Rounds', 'Ratio', '95 %', 'State'];

function medianTables(runs, coreClass) {
  const here = runs.filter((run) => run.coreClass === coreClass);
  const cellsOf = (contender, metric, size) =>
    here
      .filter((run) => run.contender === contender)
      .flatMap((run) => run.cells.filter((cell) => cell.metric === metric && cell.size === size).map(({ value }) => value));
  const sizesOf = (metric) => [
    ...new Set(here.flatMap((run) => run.cells.filter((cell) => cell.metric === metric).map(({ size }) => size))),
  ];
  const names = Object.keys({ ...CONTENDERS, ...RAIL_CONTENDERS }).filter((name) => here.some(({ contender }) => contender === name));
  const one = (metric, title, more) => {
    const sizes = sizesOf(metric).sort((a, b) => a - b);
    const rows = names.flatMap((name) => {
      const columns = sizes.map((size) => cellsOf(name, metric, size));
      if (columns.every((values) => values.length === 0)) return [];
      const shown = columns.map((values) => (values.length === 0 ? '–' : digits(median(values))));
      return [[name, ...shown, ...more.map(({ value }) => value(name)), String(Math.max(...columns.map(({ length }) => length)))]];
    });
    return rows.length === 0 ? '' : `${table([title, ...sizes.map(sizeName), ...more.map(({ head }) => head), 'n'], rows)}\n`;
  };
  const rate = (name) => {
    const values = cellsOf(name, 'rate', 8);
    return values.length === 0 ? '–' : digits(median(values) / 1e6);
  };
  const rateColumn = coreClass === 'any' ? [] : [{ head: '8 B, 10⁶/s', value: rate }];
  return [one('latency', 'Latency (µs)', []), one('bandwidth', 'Bandwidth (MB/s)', rateColumn)].filter((text) => text !== '').join('\n');
}

const PLOTTED = ['mr-tcp-sync', 'mr-tcp-promise', 'c-spin', 'c-spin-cubic', 'ompi-tcp', 'ompi-tcp-cubic', 'net', 'zeromq', 'ws'];
const PLOTTED_SM = ['mr-sm-sync', 'mr-sm-promise', 'c-shm', 'ompi-vader', 'mpich-shm'];

async function plots(runs, coreClass, isDry) {
  const points = (names, metric) =>
    names.flatMap((contender) => {
      const values = new Map();
      for (const run of runs) {
        if (run.contender !== contender || run.coreClass !== coreClass) continue;
        for (const cell of run.cells) if (cell.metric === metric) values.set(cell.size, [...(values.get(cell.size) ?? []), cell.value]);
      }
      return [...values].map(([size, list]) => ({ contender, size, value: median(list) }));
    });
  const wanted = [
    ['tcp-latency', 'One-way latency over TCP', 'µs', points(PLOTTED, 'latency')],
    ['tcp-bandwidth', 'Bandwidth over TCP, window 64', 'MB/s', points(PLOTTED, 'bandwidth')],
    ['sm-latency', 'One-way latency over shared memory', 'µs', points(PLOTTED_SM, 'latency')],
    ['sm-bandwidth', 'Bandwidth over shared memory, window 64', 'MB/s', points(PLOTTED_SM, 'bandwidth')],
  ].filter(([, , , list]) => list.length > 1);
  if (!isDry) {
    mkdirSync(PLOTS, { recursive: true });
    for (const [name, title, unit, list] of wanted) {
      const svg = await linePlot(list, { title: `${title}; medians, class ${coreClass}`, unit, sizeName });
      writeFileSync(join(PLOTS, `${name}.svg`), svg);
    }
  }
  return wanted.map(([name, title]) => `![${title}](peers/plots/${name}.svg)`).join('\n');
}

/** What did not count, and why. */
function leftOut(all) {
  const reasons = {
    failed: 'failed',
    foreign: `more than ${FOREIGN_MAX * 100} % foreign CPU`,
    moved: 'the CPUs moved',
    unplaced: 'in no class',
  };
  const counts = Object.entries(reasons).flatMap(([reason, text]) => {
    const count = all.filter((run) => rejection(run) === reason).length;
    return count === 0 ? [] : [`${count} ${text}`];
  });
  const failures = new Map();
  for (const run of all) if (!run.ok) failures.set(run.contender, run.why);
  const lines = [...failures].map(([name, why]) => `- ${name}: ${why.replaceAll('|', '/').replaceAll('`', "'")}`);
  const text = `${all.length} runs were made; left out: ${counts.length === 0 ? 'none' : counts.join(', ')}.`;
  return lines.length === 0 ? text : `${text} The last failure of each contender that failed:\n\n${lines.join('\n')}`;
}

function sectionHead(all, runs, others) {
  const machines = [...new Map(all.map(({ machine }) => [JSON.stringify({ ...machine, commit: '' }), machine])).values()];
  const dates = all.map(({ at }) => at.slice(0, 10)).sort();
  const rounds = CLASSES.flatMap((coreClass) => {
    const count = new Set(runs.filter((run) => run.coreClass === coreClass).map((run) => `${run.session} ${run.round}`)).size;
    return count === 0 ? [] : [`${coreClass} ${count}`];
  });
  const machineLines = machines.map((machine) => {
    const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
    return `- Machine: ${machine.cpu}, kernel ${machine.kernel}, Node ${machine.node}, default congestion control ${machine.congestionControl}; ${versions.join(', ')}`;
  });
  return [
    ...machineLines,
    `- Date: ${dates[0]}${dates.at(-1) === dates[0] ? '' : ` to ${dates.at(-1)}`}; multirail measured at ${[...new Set(all.map(({ machine }) => machine.commit))].join(', ')}, build ${all[0].build}`,
    `- Rounds by class of the CPUs (a round can have runs in several): ${rounds.join(', ') || 'none'}`,
    ...(others === 0 ? [] : [`- ${others} runs of other builds are not looked at`]),
  ].join('\n');
}

/** The section as Markdown; undefined when no run was written down. */
async function makeSection(files, isDry) {
  const everything = readRuns(files);
  const build = everything.at(-1)?.build;
  if (build === undefined) return undefined;
  const all = everything.filter((run) => run.build === build);
  const runs = acceptedRuns(all);
  const classes = CLASSES.filter((coreClass) => runs.some((run) => run.coreClass === coreClass));
  const countOf = (coreClass) => runs.filter((run) => run.coreClass === coreClass).length;
  const plotted = classes.filter((coreClass) => coreClass !== 'any').sort((a, b) => countOf(b) - countOf(a))[0];
  const names = Object.entries({ ...CONTENDERS, ...RAIL_CONTENDERS }).filter(([name]) => all.some(({ contender }) => contender === name));
  const railNames = Object.keys(RAIL_CASES).join(', ');
  return `${BEGIN}

## Peers

Two ranks on this machine in OSU's scheme: ping-pong for latency, windows of 64 messages (8 of 64 MiB) and a small acknowledgement for
bandwidth and rate. All contenders take turns, in another order each round. The virtual CPUs move on their host: a probe before and after
each run tells their class, and a ratio is taken only within one round and one class. Runs in which others used more than
${FOREIGN_MAX * 100} % of a CPU do not count. *met*: at least ${ROUNDS_MIN} rounds, and the whole bootstrap 95 % interval of the median ratio on the right
side; *missed*: it is not; with fewer rounds nothing is said. "As shipped" is each one's default congestion control: the system's
for the peers, cubic between ranks of one host for multirail. Spinning contenders are pinned, rank r to CPU r; the others are not.

${sectionHead(all, runs, everything.length - all.length)}

${classes.map((coreClass) => `- ${CLASS_TEXTS[coreClass]}`).join('\n')}

### Targets

${table(TARGET_HEAD, targetRows(TARGETS, runs), 2)}

### Further ratios

${table(
  TARGET_HEAD.slice(0, -1),
  targetRows(COMPARISONS, runs).map((cells) => cells.slice(0, -1)),
  2,
)}

### Medians

MB/s are 10^6 bytes per second; n is the number of runs. Rails (${railNames} Mbit/s) are veth pairs between two network namespaces, shaped by tbf.

${classes.map((coreClass) => `#### Class ${coreClass}\n\n${medianTables(runs, coreClass)}`).join('\n')}
${plotted === undefined ? '' : await plots(runs, plotted, isDry)}

### Contenders

${names.map(([name, { text }]) => `- \`${name}\`: ${text}`).join('\n')}

${leftOut(all)}

${END}`;
}

/** Puts the section into bench/RESULTS.md between its marks, or prints it. Everything else in that file stays. */
export async function writeSection(files, { isDry }) {
  const section = await makeSection(files, isDry);
  if (section === undefined) {
    console.error(`no run is written down in ${files.join(', ')}: nothing to summarise`);
    process.exitCode = 1;
    return;
  }
  if (isDry) {
    console.log(section);
    return;
  }
  const old = existsSync(RESULTS) ? readFileSync(RESULTS, 'utf8') : '# Results\n';
  writeFileSync(RESULTS, replaceSection(old, section));
  console.log('written: the section "Peers" of bench/RESULTS.md');
}

/** `text` with `section` in the place of the old one; before what was written by hand when there is none. */
export function replaceSection(text, section) {
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from >= 0 && to > from) return text.slice(0, from) + section + text.slice(to + END.length);
  const at = text.indexOf(BY_HAND);
  if (at < 0) return `${text.trimEnd()}\n\n${section}\n`;
  return `${text.slice(0, at).trimEnd()}\n\n${section}\n${text.slice(at)}`;
}
