// The long run of deaths: jobs of `multirail run` whose ranks are killed at random moments, until so many kills have been carried out of each
// program: examples/ft-farm.mjs, which goes on without the dead; a ring that calls standbys in; examples/ft-heat.mjs, which goes back to its
// saves, with standbys, in blocking calls, and with fewer ranks; examples/ft-farm-log.mjs, which takes what comes first, in both forms; one long
// job under --respawn, in which each death is made up for, and whose memory is printed; and row 5 of `multirail ft campaign 002`, 10 runs of each
// recovery. Every job has to end within its time, with exit code 0 and the right result at every rank that is left. After a build:
//   node test/system/ft-long.mjs [--kills 500] [--seed N] [--only farm|ring|respawn|campaign|heat|heat-sync|heat-fewer|farm-log|farm-log-sync]
//     [--mtbf 500ms] [--limit 60]
//     [--mca 'NAME VALUE']… [--starter run|srun|mpirun|env] [--asynchronous [--groups N]]
// With --asynchronous only the dead go back: heat and farm-log, both forms, with saves and logs; how many failures were recovered from in which way is counted.
// With --groups, which is of heat in both forms, the living ranks of its group go back with a dead one.
// Under other starters than run the programs are those that say when they begin to work: heat and heat-sync. test/launchers/slurm.sh brings up
// a Slurm for srun:  sudo test/launchers/slurm.sh node test/system/ft-long.mjs --starter srun --only heat --kills 20
// Seeds are printed: --seed with the number of a job that failed, and --kills 1, plays its kills again. Exit codes: 0 all is well, 1 a
// job failed, 2 the command line makes no sense.
import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { OTHER_STARTERS, playKilled } from '../support/killed-job.mjs';
import { endAfter, playRespawn } from '../support/respawn-play.mjs';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const CLI = at('../../dist/cli.js');
const RANKS = 4;
/** At most so many kills in one job: one rank is left. */
const KILLS_MAX = RANKS - 1;
/** After so many jobs that failed, no more of that program is tried. */
const FAILURES_MAX = 5;

/** The long job under --respawn. */
const RESPAWN = 'respawn';
/** Both recoveries with the same deaths. */
const CAMPAIGN = 'campaign';
/** A death under respawn, from the kill to the next one, within so many seconds. */
const RESPAWN_S_MAX = 8;

const HEAT = [at('../../examples/ft-heat.mjs'), '--seconds', '2', '--steps', '100', '--every', '5', '--verbose'];
/** The plate is compared with the undisturbed one by the program: another one is exit code 1. */
function judgeHeat({ stdout, stderr, kills }) {
  const lines = stdout.trim().split('\n').filter(Boolean);
  const wrong = lines.find((line) => !/^(\[\d+\] )?sha256 [0-9a-f]{64}: recovered from \d failures /.test(line));
  if (wrong !== undefined) return `it printed "${wrong}"`;
  if (stderr.includes('the undisturbed plate has')) return 'the plate is another one than the undisturbed one';
  // Whoever is killed when all is agreed has no line. Exit codes of other starters tell nothing: there is no other sign that all is well.
  return lines.length > 0 || (kills > 0 && starter === 'run') ? undefined : 'it printed nothing';
}

const FARM_LOG = [at('../../examples/ft-farm-log.mjs'), '--seconds', '2', '--tasks', '160', '--rounds', '32'];
/** The results, and who has them, are compared by the program. */
function judgeFarmLog({ stdout, kills }) {
  const lines = stdout.trim().split('\n').filter(Boolean);
  const wrong = lines.find((line) => !/^(\[\d+\] )?sha256 [0-9a-f]{64}: recovered from \d failures .*; tasks by rank: /.test(line));
  if (wrong !== undefined) return `it printed "${wrong}"`;
  // Whoever is killed when all is agreed has no line.
  return lines.length > 0 || kills > 0 ? undefined : 'it printed nothing';
}

/** How a job is started, and what is wrong with its output; undefined: nothing. */
const PROGRAMS = {
  farm: {
    spares: 0,
    program: [at('../../examples/ft-farm.mjs'), '--seconds', '2', '--tasks', '80'],
    judge: ({ stdout }) => {
      // The number of primes below 80,000. A master that dies behind its line is followed by one that says the same.
      const lines = stdout.trim().split('\n');
      const wrong = lines.find((line) => !/^\[\d+\] 7837 primes in 80 tasks; /.test(line));
      return wrong === undefined ? undefined : `it printed "${wrong}"`;
    },
  },
  ring: {
    spares: KILLS_MAX,
    program: [at('fixtures/ft-ring.mjs'), '100', '20'],
    judge: ({ stdout, kills }) => {
      const places = new Set([...stdout.matchAll(/is rank (\d+) of 4: 100 rounds, every token right/g)].map(([, rank]) => rank));
      // Whoever is killed when all is agreed has no line, and nobody takes his place any more.
      return places.size >= RANKS - kills && places.size > 0 ? undefined : `${places.size} of ${RANKS} ranks told their result`;
    },
  },
  heat: { spares: KILLS_MAX, program: HEAT, judge: judgeHeat, tellsItsBeginning: true },
  'heat-sync': { spares: KILLS_MAX, program: [...HEAT, '--sync'], judge: judgeHeat, tellsItsBeginning: true },
  'farm-log': { spares: KILLS_MAX, program: FARM_LOG, judge: judgeFarmLog },
  'farm-log-sync': { spares: KILLS_MAX, program: [...FARM_LOG, '--sync'], judge: judgeFarmLog },
  'heat-fewer': { spares: 0, program: [...HEAT, '--shrink'], judge: judgeHeat },
};

function wrongUse(text) {
  console.error(`ft-long: ${text}`);
  process.exit(2);
}

const MUST_BE_SOME = ['kills', 'limit'];

function options() {
  try {
    const { values } = parseArgs({
      options: {
        kills: { type: 'string', default: '500' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        only: { type: 'string' },
        mtbf: { type: 'string', default: '500ms' },
        limit: { type: 'string', default: '60' },
        mca: { type: 'string', multiple: true, default: [] },
        starter: { type: 'string', default: 'run' },
        asynchronous: { type: 'boolean', default: false },
        groups: { type: 'string', default: '0' },
      },
    });
    for (const name of ['kills', 'seed', 'limit', 'groups'])
      if (!/^\d+$/.test(values[name]) || (MUST_BE_SOME.includes(name) && Number(values[name]) === 0))
        wrongUse(`--${name} ${values[name]}: expected a whole number${MUST_BE_SOME.includes(name) ? ', 1 or more' : ''}`);
    if (values.only !== undefined && ![RESPAWN, CAMPAIGN].includes(values.only) && PROGRAMS[values.only] === undefined)
      wrongUse(`--only ${values.only}: expected ${[...Object.keys(PROGRAMS), RESPAWN, CAMPAIGN].join(' or ')}`);
    if (!['run', ...OTHER_STARTERS].includes(values.starter))
      wrongUse(`--starter ${values.starter}: expected run or ${OTHER_STARTERS.join(' or ')}`);
    const [, count, unit] = /^(\d+)(ms|s)$/.exec(values.mtbf) ?? wrongUse(`--mtbf ${values.mtbf}: expected a time, as 500ms or 2s`);
    const mtbfMs = Number(count) * (unit === 's' ? 1000 : 1);
    return {
      ...values,
      mtbfMs,
      kills: Number(values.kills),
      seed: Number(values.seed),
      groups: Number(values.groups),
      limitMs: 1000 * Number(values.limit),
    };
  } catch (error) {
    return wrongUse(error.message);
  }
}

const { kills: wanted, seed: firstSeed, only, mtbf, mtbfMs, limitMs, mca, starter, asynchronous, groups } = options();
/** Name and value: a value may have an equals sign. */
const settings = mca.map((one) => /^([^ =]+)[ =]+(.*)$/s.exec(one)?.slice(1) ?? wrongUse(`--mca '${one}': expected 'NAME VALUE'`));

/** Programs of run() that can do it either way. */
const BOTH_WAYS = ['heat', 'heat-sync', 'farm-log', 'farm-log-sync'];
if (asynchronous && only !== undefined && !BOTH_WAYS.includes(only))
  wrongUse(`--only ${only} --asynchronous: expected ${BOTH_WAYS.join(' or ')}`);

/** Programs that can be told to go back by groups. */
const GROUPED = ['heat', 'heat-sync'];
if (groups > 0 && !asynchronous) wrongUse('--groups: needs --asynchronous');
if (groups > 0 && only !== undefined && !GROUPED.includes(only)) wrongUse(`--only ${only} --groups: expected ${GROUPED.join(' or ')}`);

/** Failures that a job has recovered from, as its rank 0 says: of all ranks, and those after which only the dead went back. */
function recoveriesOf({ stdout }) {
  const [, failures = 0, inPlace = 0] = /recovered from (\d+) failures \((\d+) asynchronous\)/.exec(stdout) ?? [];
  return { failures: Number(failures), inPlace: Number(inPlace) };
}

/** Runs one job to its end, or ends it when its time is over. */
function play({ spares, program }, seed) {
  if (starter !== 'run') {
    const named = Object.fromEntries(settings);
    return playKilled({ starter, ranks: RANKS, spares, mca: named, program, seed, mtbfMs, killsMax: KILLS_MAX, limitMs });
  }
  const words = spares > 0 ? ['--spares', String(spares)] : ['--mca', 'ft', 'on'];
  const plan = `random:seed=${seed},mtbf=${mtbf},max=${KILLS_MAX}`;
  const more = settings.flatMap((setting) => ['--mca', ...setting]);
  const child = spawn(process.execPath, [CLI, 'run', '-n', String(RANKS), ...words, ...more, '--kill', plan, ...program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'])
    child[name].setEncoding('utf8').on('data', (text) => {
      said[name] += text;
    });
  return new Promise((resolve) => {
    let hung = false;
    endAfter(child, limitMs, () => {
      hung = true;
    });
    child.on('close', (code, signal) => {
      const kills = said.stderr.match(/--kill: killing /g)?.length ?? 0;
      resolve({ ...said, kills, hung, ended: signal ?? `exit code ${code}`, code });
    });
  });
}

function faultOf(program, run) {
  if (run.hung) return `it had not ended after ${limitMs / 1000} s`;
  // Other starters say with their exit code that ranks were killed.
  if (starter !== 'run') return program.judge(run);
  // 3: the job was over before the first kill.
  if (run.code !== 0 && !(run.code === 3 && run.kills === 0)) return run.ended;
  return program.judge(run);
}

const percentile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
let failures = 0;
for (const [name, program] of Object.entries(PROGRAMS)) {
  if (only !== undefined && only !== name) continue;
  if (starter !== 'run' && program.tellsItsBeginning !== true) continue;
  if (asynchronous && !BOTH_WAYS.includes(name)) continue;
  if (groups > 0 && !GROUPED.includes(name)) continue;
  const way = ['--recovery', asynchronous ? 'asynchronous' : 'coordinated', ...(groups > 0 ? ['--groups', String(groups)] : [])];
  const played = BOTH_WAYS.includes(name) ? { ...program, program: [...program.program, ...way] } : program;
  const byKills = Array(KILLS_MAX + 1).fill(0);
  const seconds = [];
  const failed = [];
  const all = { failures: 0, inPlace: 0 };
  let kills = 0;
  let idle = 0;
  for (let seed = firstSeed; kills < wanted; seed++) {
    const startedMs = performance.now();
    const run = await play(played, seed);
    const tookS = (performance.now() - startedMs) / 1000;
    const fault = faultOf(program, run);
    kills += run.kills;
    const recoveries = recoveriesOf(run);
    all.failures += recoveries.failures;
    all.inPlace += recoveries.inPlace;
    byKills[run.kills]++;
    seconds.push(tookS);
    console.log(
      `${fault === undefined ? 'ok    ' : 'FAILED'} ${name} seed ${seed}: ${run.kills} kills (${kills} of ${wanted}), ${tookS.toFixed(1)} s${asynchronous ? `, ${recoveries.inPlace} of ${recoveries.failures} recoveries in place` : ''}${fault === undefined ? '' : `: ${fault}`}`,
    );
    if (fault !== undefined) {
      failed.push(seed);
      console.log(`${run.stdout}${run.stderr}`.replace(/^/gm, '       '));
    }
    idle = run.kills === 0 ? idle + 1 : 0;
    if (failed.length === FAILURES_MAX) break;
    if (idle === 20) {
      failed.push('none');
      console.log(`FAILED ${name}: 20 jobs in turn were over before the first kill: --mtbf ${mtbf} is too long for them`);
      break;
    }
  }
  const sorted = seconds.toSorted((a, b) => a - b);
  console.log(
    `${name}: ${kills} kills in ${seconds.length} jobs (${byKills.map((jobs, i) => `${jobs} with ${i}`).join(', ')}), seeds from ${firstSeed}, ` +
      `${percentile(sorted, 0.5).toFixed(1)} s each by the median, ${sorted.at(-1).toFixed(1)} s the longest; ` +
      (failed.length === 0 ? 'all well' : `FAILED: seeds ${failed.join(', ')}`),
  );
  if (asynchronous)
    console.log(`${name}: recovered from ${all.failures} failures, after ${all.inPlace} of them in place; after the others all went back`);
  failures += failed.length;
}

const MIB = 1024 * 1024;
const mib = (bytes) => `${(bytes / MIB).toFixed(1)} MiB`;

/** First, last and most of what was sampled, and the growth by each death since the first tenth, when all code is loaded and compiled. */
function memoryLine(name, samples, kills) {
  const settled = Math.floor(samples.length / 10);
  const growth = (samples.at(-1) - samples[settled]) / Math.max(1, kills * (1 - settled / samples.length));
  return `  memory of ${name}: ${mib(samples[0])} first, ${mib(samples[settled])} after a tenth, ${mib(samples.at(-1))} last, ${mib(Math.max(...samples))} most, ${(growth / 1024).toFixed(1)} KiB for each death`;
}

if (starter === 'run' && !asynchronous && (only === undefined || only === RESPAWN)) {
  const startedMs = performance.now();
  const words = [
    CLI,
    'run',
    '-n',
    String(RANKS),
    '--respawn',
    String(wanted),
    '--node-arg=--expose-gc',
    ...settings.flatMap((setting) => ['--mca', ...setting]),
  ];
  const run = await playRespawn({
    words: [...words, at('fixtures/ft-respawn-rank.mjs')],
    ranks: RANKS,
    kills: wanted,
    seed: firstSeed,
    limitMs: Math.max(limitMs, 1000 * RESPAWN_S_MAX * wanted),
  });
  const isWell = run.problems.length === 0;
  const tookS = (performance.now() - startedMs) / 1000;
  console.log(
    `${isWell ? 'ok    ' : 'FAILED'} ${RESPAWN} seed ${firstSeed}: ${run.killed} kills in ${run.recoveries} recoveries of one job of ${RANKS} ranks, ${tookS.toFixed(1)} s` +
      (isWell ? '' : `: ${run.problems.slice(0, 8).join('; ')}`),
  );
  if (run.rss.length > 0) {
    const lines = { 'process 0, which outlives all': 'process', 'what process 0 has in use': 'inUse', 'the launcher': 'launcher' };
    for (const [name, key] of Object.entries(lines)) {
      const samples = run.rss.map((one) => one[key]);
      console.log(memoryLine(name, samples, run.killed));
    }
  }
  if (!isWell) {
    console.log(`${run.stdout}${run.stderr}`.split('\n').slice(-60).join('\n').replace(/^/gm, '       '));
    failures++;
  }
}

if (starter === 'run' && !asynchronous && (only === undefined || only === CAMPAIGN)) {
  const words = [CLI, 'ft', 'campaign', '002', '--rows', '5', '--seed', String(firstSeed)];
  const child = spawn(process.execPath, words, { stdio: 'inherit' });
  const code = await new Promise((resolve) => child.on('close', resolve));
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${CAMPAIGN} seed ${firstSeed}`);
  if (code !== 0) failures++;
}
process.exitCode = failures === 0 ? 0 : 1;
