// The bench with peers: runs all contenders round by round in random order, books what happened to each run, and writes every one down at
// once, so that a campaign that is killed loses nothing. Run by bench/peers.sh. Imports node:*, stats.mjs and the files of this folder.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { coreClass, FOREIGN_MAX, random, rejection, shuffled } from '../lib/stats.mjs';
import { CONTENDERS, RAIL_CONTENDERS } from './contenders.mjs';
import { buildName, describeMachine, probeNs, runContender, waitForQuiet } from './host.mjs';
import { readRuns, writeSection } from './summary.mjs';

const USAGE = `usage: bench/peers.sh [options]
  --rounds N      rounds of this session in all (default 9)
  --minutes N     begin no run after this time
  --only REGEX    only contenders whose names match, and what they are compared with is up to you
  --quick         only the sizes of the targets (8 B, 64 KiB, 1 MiB, 64 MiB)
  --rails         the rails of namespaces instead of loopback (needs root)
  --fresh         a new session, although the last one is not finished
  --summarise     measure nothing: make the section of bench/RESULTS.md from what is there
  --raw FILE      with --summarise, another session's raw.jsonl too; may be repeated
  --dry           leave bench/RESULTS.md alone: print the section
  --out FOLDER    where raw.jsonl is kept (default out/peers)
  --list          name the contenders
  --no-install, --no-build   (for peers.sh) install no packages; do not build dist`;

const SIZES = {
  full: { latency: [8, 1024, 8192, 65536, 1048576, 8388608, 67108864], bandwidth: [8, 1024, 8192, 65536, 1048576, 8388608, 67108864] },
  quick: { latency: [8, 65536, 1048576], bandwidth: [8, 65536, 1048576, 67108864] },
};
const TIMEOUT_S = { full: 40, quick: 25 };
const QUIET_MS_MAX = 12_000;
/** A run that does not count is done once more in its place. */
const ATTEMPTS_MAX = 2;
/** Before anything is known of how long a run takes. */
const RUN_S_EXPECTED = 7;

function readOptions() {
  const number = (text, name) => {
    const value = Number(text);
    if (!(value > 0)) throw new Error(`--${name} ${text}: expected a number above 0`);
    return value;
  };
  const flag = { type: 'boolean', default: false };
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '9' },
      minutes: { type: 'string', default: '100000' },
      only: { type: 'string', default: '' },
      out: { type: 'string', default: 'out/peers' },
      raw: { type: 'string', multiple: true, default: [] },
      quick: flag,
      rails: flag,
      fresh: flag,
      summarise: flag,
      dry: flag,
      list: flag,
      help: flag,
      'no-install': flag,
      'no-build': flag,
    },
  });
  return { ...values, rounds: number(values.rounds, 'rounds'), minutes: number(values.minutes, 'minutes'), only: new RegExp(values.only) };
}

/** Goes on with the last session where it is of the same kind and code, and not finished; else begins one. */
function openSession(options) {
  const file = join(options.out, options.rails ? 'session-rails.json' : 'session.json');
  const kind = { quick: options.quick, only: options.only.source, build: buildName() };
  if (!options.fresh && existsSync(file)) {
    const last = JSON.parse(readFileSync(file, 'utf8'));
    if (Object.entries(kind).every(([key, value]) => last[key] === value) && last.roundsDone < options.rounds) return { ...last, file };
  }
  const now = new Date();
  const name = `${now.toISOString().slice(0, 19).replace(/[-:]/g, '')}-${process.pid}`;
  return { name, seed: now.getTime() % 2 ** 31, ...kind, roundsDone: 0, file };
}

function keep(session) {
  const { file, ...content } = session;
  writeFileSync(file, `${JSON.stringify(content)}\n`);
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.round(seconds) % 60).padStart(2, '0')}`;

/** The order of a round, the same when it is resumed. */
const orderOf = (session, round, names) => shuffled(names, random(session.seed + round * 7919));

async function measureOne(name, contender, context) {
  const { session, round, machine, raw, sizes, timeoutS, signal } = context;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const isQuiet = await waitForQuiet(QUIET_MS_MAX);
    const beforeNs = await probeNs();
    const own = {
      latency: contender.sizes?.latency ?? sizes.latency,
      bandwidth: contender.sizes?.bandwidth ?? sizes.bandwidth,
    };
    const result = await runContender(contender, { ...own, timeoutS, signal });
    if (signal.aborted) return undefined;
    const run = {
      session: session.name,
      round,
      contender: name,
      attempt,
      placed: contender.placed ?? true,
      ...result,
      beforeNs,
      afterNs: await probeNs(),
      isQuiet,
      build: buildName(),
      at: new Date().toISOString(),
      machine,
    };
    appendFileSync(raw, `${JSON.stringify(run)}\n`);
    const why = rejection(run);
    const place = `${coreClass(run.beforeNs)}/${coreClass(run.afterNs)}`;
    const foreign = `${Math.round(run.foreign * 100)} % foreign`;
    const verdict = why === undefined ? 'counts' : `does not count: ${why}${run.why === undefined ? '' : ` (${run.why})`}`;
    console.log(`  ${name.padEnd(22)} ${run.wallS.toFixed(1).padStart(5)} s  ${place.padEnd(9)} ${foreign.padStart(12)}  ${verdict}`);
    // A contender that cannot run here will not run at the second attempt either.
    if (why === undefined || why === 'failed') return run;
  }
  return undefined;
}

async function campaign(options) {
  mkdirSync(options.out, { recursive: true });
  const raw = join(options.out, 'raw.jsonl');
  const session = openSession(options);
  const table = options.rails ? RAIL_CONTENDERS : CONTENDERS;
  const names = Object.keys(table).filter((name) => options.only.test(name));
  if (names.length === 0) throw new Error(`no contender matches ${options.only}`);
  const kind = options.quick ? 'quick' : 'full';
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => abort.abort());
  const context = { session, raw, machine: describeMachine(), sizes: SIZES[kind], timeoutS: TIMEOUT_S[kind], signal: abort.signal };
  const startMs = performance.now();
  const spentS = () => (performance.now() - startMs) / 1000;
  const mostS = options.minutes * 60;
  const isOver = () => abort.signal.aborted || spentS() >= mostS;
  let runs = 0;
  const left = () => {
    const each = runs === 0 ? RUN_S_EXPECTED : spentS() / runs;
    const more = (options.rounds - session.roundsDone) * names.length - doneInRound;
    return Math.min(each * Math.max(0, more), mostS - spentS());
  };
  let doneInRound = 0;
  console.log(`session ${session.name}: ${names.length} contenders, rounds ${session.roundsDone + 1} to ${options.rounds}`);
  while (session.roundsDone < options.rounds && !isOver()) {
    const round = session.roundsDone;
    const known = new Set(readRuns([raw]).flatMap((run) => (run.session === session.name && run.round === round ? [run.contender] : [])));
    const order = orderOf(session, round, names).filter((name) => !known.has(name));
    doneInRound = names.length - order.length;
    keep(session);
    console.log(`round ${round + 1} of ${options.rounds}, ${clock(spentS())} gone, about ${clock(left())} to go`);
    for (const name of order) {
      if (isOver()) break;
      await measureOne(name, table[name], { ...context, round });
      runs++;
      doneInRound++;
      if (runs % 8 === 0) console.log(`  (${clock(spentS())} gone, about ${clock(left())} to go)`);
    }
    if (doneInRound < names.length || abort.signal.aborted) break;
    doneInRound = 0;
    session.roundsDone++;
    keep(session);
  }
  console.log(`${session.roundsDone} of ${options.rounds} rounds done (at most ${FOREIGN_MAX * 100} % foreign CPU counts)`);
}

async function main() {
  let options;
  try {
    options = readOptions();
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  if (options.help) return console.log(USAGE);
  if (options.list) {
    for (const [name, { text }] of Object.entries({ ...CONTENDERS, ...RAIL_CONTENDERS })) console.log(`${name.padEnd(26)} ${text}`);
    return;
  }
  if (!options.summarise) await campaign(options);
  await writeSection([join(options.out, 'raw.jsonl'), ...options.raw], { isDry: options.dry });
}

await main();
