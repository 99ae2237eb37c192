// Turns the figures that bench/measure.sh has measured into bench/RESULTS.md and into the part of README.md between its two
// `figures` marks, and copies the plot of the demo to docs/failover.svg. Usage: node bench/lib/results.mjs FOLDER [--dry]
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { median } from './stats.mjs';

const [folder, dry] = process.argv.slice(2);
if (folder === undefined) {
  console.error('usage: node bench/lib/results.mjs FOLDER [--dry]');
  process.exit(2);
}

const read = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
const RAILS = [
  ['sm-sync', 'sm, blocking calls'],
  ['sm', 'sm'],
  ['tcp-sync', 'tcp, blocking calls'],
  ['tcp', 'tcp'],
  ['tcp2', 'tcp + tcp'],
  ['ws', 'ws'],
  ['tcp-ws', 'tcp + ws'],
];
const SHOWN_BYTES = [1, 1024, 8192, 65536, 1048576, 4194304];
const BEGIN = '<!-- figures:begin, written by bench/measure.sh -->';
const END = '<!-- figures:end -->';

const sizeName = (bytes) => (bytes >= 1048576 ? `${bytes / 1048576} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`);
const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));

/** All rounds of one table: the first one's head, and for each size and column the values of every round. */
function rounds(name) {
  const all = readdirSync(folder)
    .filter((file) => new RegExp(`^${name}-\\d+\\.json$`).test(file))
    .map((file) => read(file.replace(/\.json$/, '')));
  if (all.length === 0) throw new Error(`${folder} holds no figures called ${name}`);
  const rows = all[0].rows.map(({ sizeBytes, values }, i) => ({
    sizeBytes,
    columns: values.map((_, column) => all.map((one) => one.rows[i].values[column])),
  }));
  return { ...all[0], rounds: all.length, rows };
}

const latency = Object.fromEntries(RAILS.map(([name]) => [name, rounds(`latency-${name}`)]));
const bandwidth = Object.fromEntries(RAILS.map(([name]) => [name, rounds(`bw-${name}`)]));
const machine = latency.tcp.machine;
const machineText = `${machine.cpus} × ${machine.cpu}, ${machine.platform}, kernel ${machine.kernel}, Node ${machine.node}`;
const load = Number(readFileSync(join(folder, 'load.txt'), 'utf8'));
const commit = readFileSync(join(folder, 'commit.txt'), 'utf8').trim().split('\n').join(', ');
const isBusy = load > 0.5 * machine.cpus;
const when = `${machine.date.slice(0, 10)}, measured at ${commit}, load ${load} before${isBusy ? ' (**other work was going on: these figures say little: run bench/measure.sh on a quiet machine**)' : ''}`;

const withSpread = (values) => `${digits(median(values))} <sub>${digits(Math.min(...values))}–${digits(Math.max(...values))}</sub>`;

function value(figures, bytes) {
  const row = figures.rows.find(({ sizeBytes }) => sizeBytes === bytes);
  return row === undefined ? '–' : withSpread(row.columns[0]);
}

function sideBySide(figures, sizes) {
  const head = `| Size | ${RAILS.map(([, title]) => title).join(' | ')} |`;
  const rows = sizes.map((bytes) => `| ${sizeName(bytes)} | ${RAILS.map(([name]) => value(figures[name], bytes)).join(' | ')} |`);
  return [head, `| ---: |${' ---: |'.repeat(RAILS.length)}`, ...rows].join('\n');
}

function failover(mode) {
  const runs = readdirSync(folder)
    .filter((file) => file.startsWith(`failover-${mode}-`))
    .map((file) => read(file.replace(/\.json$/, '')));
  return {
    runs: runs.length,
    failed: runs.filter(({ problems }) => problems.length > 0).length,
    // The phase in which the rail is pulled is the second one.
    gaps: runs.map(({ phases }) => phases[1].worstGapMs),
    messages: runs.reduce((sum, { findings }) => sum + findings.received.messages, 0),
    command: runs[0].command.replace(/ --json \S+/, ''),
  };
}

const silent = failover('silent');
const error = failover('error');
const gapText = ({ gaps }) => `median ${digits(median(gaps))} ms, worst ${digits(Math.max(...gaps))} ms`;
const failed = silent.failed + error.failed;
const verdict =
  failed === 0
    ? `In all ${silent.runs + error.runs} runs nothing was lost, doubled or reordered (${(silent.messages + error.messages).toLocaleString('en-US')} messages, each verified by content).`
    : `**${failed} of ${silent.runs + error.runs} runs FAILED their audit.**`;
const commandOf = (figures) => figures.command.replace(/ --json \S+/, '');

const readmePart = `${BEGIN}

Two ranks on one machine over loopback: ${machineText}; ${when}. Medians of ${latency.tcp.rounds} rounds over all
tables, the lowest and the highest round small beside them.

Bandwidth in MB/s (10^6 bytes per second) by size and rails, \`npx multirail bench bw\`:

${sideBySide(bandwidth, SHOWN_BYTES)}

One-way latency in µs, \`npx multirail bench latency\`:

${sideBySide(latency, SHOWN_BYTES)}

The columns are \`--mca btl self,sm\` and \`self,tcp\` with and without \`--sync\` (blocking calls; without it promises), \`self,tcp\` with
\`--mca btl_tcp_links 2\`, \`self,ws\`, and \`self,tcp,ws\`, as shipped and not pinned to processors. On loopback
all rails share the same processors: what a second rail adds or costs here says nothing about two cables; it is there to survive the first.

Longest gap between two deliveries when one of two TCP rails is pulled, ${silent.runs} runs each: **${gapText(silent)}** when it dies in silence
(no error anywhere, \`bml_rail_timeout_ms\` is 400), **${gapText(error)}** when its end is seen. ${verdict}

${END}`;

const tableOf = (figures, units) => {
  const rows = figures.rows.map(({ sizeBytes, columns }) => `| ${sizeBytes} | ${columns.map(withSpread).join(' | ')} |`);
  return [
    `\`${commandOf(figures)}\``,
    '',
    `| Size (bytes) | ${units.join(' | ')} |`,
    `| ---: |${' ---: |'.repeat(units.length)}`,
    ...rows,
    '',
  ].join('\n');
};

const results = `# Results

Written by \`bench/measure.sh\`, which measures all of this again in one command.

- Machine: ${machineText}
- Date and load: ${when}
- Two ranks on this machine, all rails over loopback. MB/s are 10^6 bytes per second. The scheme is that of the OSU benchmarks: ping-pong
  for latency; for bandwidth a window of 64 messages and a short acknowledgement. Each figure is the median of ${latency.tcp.rounds} rounds over all tables,
  with the lowest and the highest round beside it; in a round a figure is the median of five measurements.

## Failover

Two TCP rails, 1 MiB messages, window 16. Rail 1 is pulled after 1 s and put back after 2 s; the run takes 4 s. The gap is the longest
time between two deliveries to the receiving program while the rail is pulled.

| Rail dies | Runs | Failed audits | Gaps (ms) | Command |
| --- | ---: | ---: | --- | --- |
${[
  ['in silence', silent],
  ['with an error', error],
]
  .map(([name, run]) => `| ${name} | ${run.runs} | ${run.failed} | ${run.gaps.map(digits).join(', ')} | \`${run.command}\` |`)
  .join('\n')}

![Payload carried by each rail while one is pulled and put back](../docs/failover.svg)

## Latency

${RAILS.map(([name, title]) => `### ${title}\n\n${tableOf(latency[name], ['Latency (µs)'])}`).join('\n')}
## Bandwidth

${RAILS.map(([name, title]) => `### ${title}\n\n${tableOf(bandwidth[name], ['MB/s'])}`).join('\n')}
## Both ways at once

${tableOf(rounds('bibw-tcp'), ['MB/s'])}
## Message rate

${tableOf(rounds('rate-tcp'), ['MB/s', 'Messages/s'])}`;

if (dry === '--dry') {
  console.log(readmePart);
  process.exit(0);
}
// What bench/peers.sh wrote there, and what was written by hand, such as figures over real links, stays: both come last.
const resultsFile = 'bench/RESULTS.md';
const KEPT = /\n<!-- (?:peers:begin|by hand from here on)/;
let kept = '';
try {
  const old = readFileSync(resultsFile, 'utf8');
  const at = old.search(KEPT);
  if (at >= 0) kept = old.slice(at);
} catch {
  // The first time.
}
writeFileSync(resultsFile, results.trimEnd() + (kept === '' ? '\n' : `\n${kept}`));
const readme = readFileSync('README.md', 'utf8');
const from = readme.indexOf(BEGIN);
const to = readme.indexOf(END);
if (from < 0 || to < from) throw new Error('README.md has lost its marks for the figures');
writeFileSync('README.md', readme.slice(0, from) + readmePart + readme.slice(to + END.length));
mkdirSync('docs', { recursive: true });
copyFileSync(join(folder, 'failover.svg'), 'docs/failover.svg');
console.log('written: README.md (figures), bench/RESULTS.md, docs/failover.svg');
