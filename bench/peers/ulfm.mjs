// Deaths of processes, measured beside Open MPI 5's ULFM in turn: a barrier, agreement and shrinking while all live, and what follows
// the death of a rank. Open MPI 5 comes from Debian 13, in a root file system of its own that mmdebstrap makes (root; half a minute; kept
// under .cache). Prints the table, and writes it with --write into bench/RESULTS.md between its two `ulfm` marks.
//   node bench/peers/ulfm.mjs [--ranks 4,8,16] [--rounds 9] [--iterations 500] [--write]
// Every round runs each contender once, in a drawn order. Run it on a machine that does nothing else.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { makeDebian13 } from '../../tools/lab/debian13.mjs';
import { measuredAt, writeBetween } from '../lib/section.mjs';
import { median, random, shuffled } from '../lib/stats.mjs';

const folder = new URL('../..', import.meta.url).pathname;
/** Not the one of the tests, which has no compiler. */
const root = join(folder, '.cache/debian13-mpicc');
const PACKAGES = ['openmpi-bin', 'libopenmpi-dev', 'gcc', 'libc6-dev'];
const SOURCE = join(import.meta.dirname, 'c/ulfm.c');
const BEGIN = '<!-- ulfm:begin, written by bench/peers/ulfm.mjs -->';
const END = '<!-- ulfm:end -->';
/** How long one job may take, in milliseconds. */
const limitOf = (ranks) => 60_000 + 2000 * ranks;

const { values: given } = parseArgs({
  options: {
    ranks: { type: 'string', default: '4,8,16' },
    rounds: { type: 'string', default: '9' },
    iterations: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (given.help) {
  console.log('usage: node bench/peers/ulfm.mjs [--ranks 4,8,16] [--rounds 9] [--iterations 500] [--seed 1] [--write]');
  process.exit(0);
}
const rounds = Number(given.rounds);
const sizes = given.ranks.split(',').map(Number);
const next = random(Number(given.seed));

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26, ...options });
  return { ...done, text: `${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}` };
}

function must(what, command, args, options) {
  const done = run(command, args, options);
  if (done.status === 0) return done;
  console.error(`${what}: ${command} ${args.join(' ')} ended with ${done.status ?? done.signal}:\n${done.text.slice(-2000)}`);
  process.exit(2);
}

/** The root file system with Open MPI 5, and the program in it. */
function prepareOpenMpi() {
  try {
    makeDebian13(root, PACKAGES);
  } catch (error) {
    console.error(`Open MPI 5: ${error.message}`);
    process.exit(2);
  }
  writeFileSync(join(root, 'ulfm.c'), readFileSync(SOURCE));
  must('the program in C', 'chroot', [root, 'mpicc', '-O2', '-o', '/ulfm', '/ulfm.c']);
  return must('Open MPI', 'chroot', [root, 'mpirun', '--allow-run-as-root', '--version']).stdout.split('\n')[0];
}

/** /proc, /dev and a /dev/shm in a mount namespace of its own: nothing stays mounted. */
function openMpi(size) {
  writeFileSync(join(root, 'shared'), Buffer.alloc(4096));
  const inside = `mpirun --allow-run-as-root --oversubscribe --with-ft ulfm -n ${size} /ulfm /shared ${given.iterations}`;
  const script = `mount -t proc proc ${root}/proc && mount --rbind /dev ${root}/dev && mount --rbind /sys ${root}/sys && exec chroot ${root} ${inside}`;
  const done = run('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script], { timeout: limitOf(size) });
  const line = /^\{.*\}$/m.exec(done.stdout ?? '')?.[0];
  if (line === undefined) return { failed: done.text.trim().split('\n').slice(-3).join(' | ') };
  const figures = JSON.parse(line);
  return {
    barrier: figures.barrierUs,
    agree: figures.agreeUs,
    shrink: figures.shrinkUs,
    learned: figures.learnedUs,
    firstAgree: figures.firstAgreeUs,
    firstShrink: figures.firstShrinkUs,
    shrunk: figures.killToShrunkUs,
  };
}

const own = mkdtempSync(join(tmpdir(), 'multirail-ulfm-'));
process.on('exit', () => rmSync(own, { recursive: true, force: true }));

function multirail(size, sync) {
  const file = join(own, 'figures.json');
  rmSync(file, { force: true });
  const words = ['bench', 'ft', '-n', String(size), '--spares', '1', '--iterations', given.iterations, ...(sync ? ['--sync'] : [])];
  const done = run(process.execPath, [join(folder, 'dist/cli.js'), ...words, '--json', file], { timeout: limitOf(size) });
  if (done.status !== 0 || !existsSync(file)) return { failed: done.text.trim().split('\n').slice(-3).join(' | ') };
  const { callsUs, deaths } = JSON.parse(readFileSync(file, 'utf8'));
  return { ...callsUs, ...deaths[0] };
}

const CONTENDERS = {
  'multirail, promises': (size) => multirail(size, false),
  'multirail, blocking calls': (size) => multirail(size, true),
  'Open MPI 5, ULFM': openMpi,
};
const ROWS = {
  barrier: 'barrier',
  agree: 'agree',
  shrink: 'shrink',
  learned: 'death → the last survivor has learned',
  firstAgree: 'first agree after it',
  firstShrink: 'first shrink after that',
  shrunk: 'death → shrunk',
  replaced: 'death → replaced by a standby',
};

if (!existsSync(join(folder, 'dist/cli.js'))) must('the build', 'npm', ['run', '-s', 'build'], { cwd: folder });
const version = prepareOpenMpi();
const load = loadavg()[0].toFixed(2);
const results = new Map();
for (let round = 0; round < rounds; round++) {
  for (const size of sizes) {
    for (const name of shuffled(Object.keys(CONTENDERS), next)) {
      const figures = CONTENDERS[name](size);
      const key = `${name} ${size}`;
      results.set(key, [...(results.get(key) ?? []), figures]);
      console.log(
        `round ${round + 1}, ${size} ranks, ${name}: ${figures.failed ?? `shrunk after ${(figures.shrunk / 1000).toFixed(1)} ms`}`,
      );
    }
  }
}

const time = (us) => (us >= 1000 ? `${(us / 1000).toFixed(us >= 100_000 ? 0 : 1)} ms` : `${us.toFixed(us >= 100 ? 0 : 1)} µs`);
function cell(name, size, row) {
  const values = (results.get(`${name} ${size}`) ?? []).map((figures) => figures[row]).filter((value) => Number.isFinite(value));
  return values.length === 0 ? '–' : `${time(median(values))} <sub>${time(Math.min(...values))}–${time(Math.max(...values))}</sub>`;
}
const lines = [];
for (const size of sizes) {
  const failed = Object.keys(CONTENDERS).map(
    (name) => results.get(`${name} ${size}`).filter((figures) => figures.failed !== undefined).length,
  );
  lines.push(`| ${size} ranks | ${Object.keys(CONTENDERS).join(' | ')} |`, `| --- |${' ---: |'.repeat(Object.keys(CONTENDERS).length)}`);
  for (const [row, title] of Object.entries(ROWS))
    lines.push(
      `| ${title} | ${Object.keys(CONTENDERS)
        .map((name) => cell(name, size, row))
        .join(' | ')} |`,
    );
  lines.push(`| runs that failed | ${failed.map((count) => `${count} of ${rounds}`).join(' | ')} |`, '');
}
const text = [
  `${measuredAt(version, load)} Median of ${rounds} jobs each, in turn, with the least and the most.`,
  `Command: \`node bench/peers/ulfm.mjs --ranks ${given.ranks} --rounds ${rounds} --iterations ${given.iterations}\``,
  '',
  ...lines,
].join('\n');
console.log(`\n${text}`);
if (given.write) writeBetween(BEGIN, END, text);
