#!/usr/bin/env node
// Ranks under Debian 13's Open MPI 5, PRRTE and PMIx 5, in a root file system of Debian 13 that mmdebstrap makes from this machine's own Debian
// mirror (the one that apt is configured with), with this machine's Node and this checkout bound into it.
//
//   npm run test:pmix                                  everything: a minute once the file system is there
//   node test/launchers/debian13.mjs hosts             only the cases whose names have that word
//   node test/launchers/debian13.mjs -- COMMAND ARG …  a command in it instead, in the checkout
//
// It needs root on Debian, ip, and mmdebstrap (which it installs, unless MULTIRAIL_TEST_APT=0). The file system stays in .cache/debian13. What it
// mounts is in a namespace that ends with it. Exits with 77 and says why where it cannot be done; the last line is
// "pmix: N passed, N failed, N skipped".
import { spawn, spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { makeDebian13 } from '../../tools/lab/debian13.mjs';
import { bundle } from '../support/bundle.mjs';
import { makeHosts, netnsMissing } from './netns-hosts.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const PACKAGES = ['openmpi-bin', 'libpmix2t64', 'libstdc++6', 'iproute2', 'procps'];
const BASE = join(ROOT, '.cache', 'debian13');
const CANNOT = 77;
const JOB_LIMIT_MS = 90_000;
/** The suites: their script has a limit of its own for a job, and says what hangs. */
const SUITES_LIMIT_MS = 150_000;

function cannot(text) {
  console.error(`skipped: Debian 13's Open MPI: ${text}`);
  process.exit(CANNOT);
}

const run = (command, args, options = {}) => spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, ...options });
const has = (command) => run('sh', ['-c', `command -v ${command}`]).status === 0;

function makeBase() {
  try {
    makeDebian13(BASE, PACKAGES);
  } catch (error) {
    cannot(error.message);
  }
}

/** What a command in the file system sees: its own /tmp, this machine's devices and named network namespaces, Node and the checkout. */
const MOUNTS = [
  'mount --bind "$1" "$1"',
  'mount -t proc proc "$1/proc"',
  'mount --rbind /sys "$1/sys"',
  'mount --rbind /dev "$1/dev"',
  'mount -t tmpfs -o mode=1777 tmp "$1/tmp"',
  'mkdir -p "$1/run/netns" "$1$3"',
  '[ ! -d /run/netns ] || mount --rbind /run/netns "$1/run/netns"',
  'mount --rbind "$3" "$1$3"',
  'touch "$1/usr/local/bin/node"',
  'mount --bind "$2" "$1/usr/local/bin/node"',
  'root=$1 cd=$3',
  'shift 3',
  'exec chroot "$root" /bin/sh -c \'cd "$1" && shift && exec "$@"\' sh "$cd" "$@"',
].join('\n');
const ENV = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/tmp', LANG: 'C.UTF-8', NO_COLOR: '1' };

function inside(command, env = {}, stdio = ['ignore', 'pipe', 'pipe']) {
  const args = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private', 'sh', '-ec', MOUNTS, 'sh'];
  return spawn('unshare', [...args, BASE, realpathSync(process.execPath), ROOT, ...command], { env: { ...ENV, ...env }, stdio });
}

function ended(command, env = {}, limitMs = JOB_LIMIT_MS) {
  return new Promise((resolve, reject) => {
    const child = inside(command, env);
    const out = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        out[name] += text;
      });
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, ...out });
    });
  });
}

if (process.platform !== 'linux' || process.getuid?.() !== 0) cannot('needs root on Linux');
if (!has('apt-get')) cannot("needs Debian's apt-get");
for (const command of ['unshare', 'nsenter', 'mount', 'chroot']) if (!has(command)) cannot(`needs ${command}`);
makeBase();
const words = process.argv.slice(2);
if (words[0] === '--') {
  const code = await new Promise((resolve) => inside(words.slice(1), {}, 'inherit').on('close', resolve));
  process.exit(code ?? 1);
}

const MPIRUN = ['mpirun', '--allow-run-as-root', '--oversubscribe'];
const PRTERUN = ['prterun', '--allow-run-as-root', '--map-by', ':oversubscribe'];
/** What makes PRRTE tell the others of a rank that it has lost. */
const TELLING = ['--runtime-options', 'recoverable,notifyerrors'];
const code = await bundle([join(ROOT, 'test/system/fixtures/joining-rank.mjs')]);
const rank = (...args) => ['node', code.pathOf('joining-rank'), ...args];
const ranksIn = (text) => [...text.matchAll(/rank (\d+): of (\d+)/g)].map(([, one, size]) => `${one}/${size}`).sort();
const all = (size) => Array.from({ length: size }, (_, one) => `${one}/${size}`);

function expect(holds, what, ran) {
  if (!holds) throw new Error(`${what}; exit code ${ran.code}\n${ran.stdout}\n${ran.stderr}`);
}

function expectRing(ran, size) {
  expect(ran.code === 0 && ranksIn(ran.stdout).join() === all(size).join(), `a ring of ${size} ranks`, ran);
}

/** Milliseconds from the end of rank 1 to each survivor's error. */
function tellingTimes(ran, survivors) {
  const endedMs = Number(/rank 1: ends at (\d+)/.exec(ran.stdout)?.[1]);
  const told = [...ran.stdout.matchAll(/rank \d+: told at (\d+): ERR_PROC_FAILED about 1\n/g)].map(([, at]) => Number(at) - endedMs);
  expect(told.length === survivors && told.every((ms) => ms >= 0), `${survivors} survivors are told`, ran);
  return told;
}

const byStarter = (ran) => /rank 1 \(pid \d+\) has ended without finalize\(\), says what started it/.test(ran.stderr);

let hosts;
function onHosts(...options) {
  const mca = ['--prtemca', 'plm_ssh_agent', hosts.agent, '--prtemca', 'prte_if_include', hosts.subnet];
  return [...MPIRUN, ...mca, '-H', 'a:2,b:2', ...options];
}

const CASES = {
  'mpirun: four ranks find each other': async () => expectRing(await ended([...MPIRUN, '-n', '4', ...rank('ring')]), 4),
  'prterun: four ranks, of which nothing but PMIx says how many': async () =>
    expectRing(await ended([...PRTERUN, '-n', '4', ...rank('ring')]), 4),
  'mpirun: a job of one is a job': async () => expectRing(await ended([...MPIRUN, '-n', '1', ...rank('ring')]), 1),
  'info says what was found': async () => {
    const ran = await ended([...PRTERUN, '-n', '1', 'node', code.pathOf('cli'), 'info']);
    expect(
      /^PMIx +on: libpmix\.so\.2 \(OpenPMIx 5\..*\), by PMIX_NAMESPACE, PMIX_RANK, PMIX_SERVER_URI/m.test(ran.stdout),
      'PMIx is on',
      ran,
    );
  },
  'prterun without the library: no world of one': async () => {
    const ran = await ended([...PRTERUN, '-n', '2', ...rank('ring')], { MULTIRAIL_MCA_ess_pmix: 'false' });
    expect(ran.code === 1 && /PMIx cannot be used: switched off by ess_pmix = false/.test(ran.stderr), 'it is refused', ran);
  },
  'one throws, all end': async () => {
    const ran = await ended([...MPIRUN, '-n', '3', ...rank('throw')]);
    expect(
      ran.code === 1 && /rank 1 of 3 \(pid \d+\): unhandled rejection:\n.*TypeError: this rank is wrong/.test(ran.stderr),
      'the stack',
      ran,
    );
  },
  'abort() ends all with its code': async () => {
    const ran = await ended([...MPIRUN, '-n', '3', ...rank('abort')]);
    expect(ran.code === 7 && /rank 1.* aborted the job with code 7: enough/.test(ran.stderr), 'code 7', ran);
  },
  'a killed rank, told by the event': async () => {
    const ran = await ended([...MPIRUN, ...TELLING, '-n', '3', ...rank('told')]);
    const told = tellingTimes(ran, 2);
    expect(byStarter(ran), 'the starter told rank 0', ran);
    return `told after ${told.join(' and ')} ms`;
  },
  "a killed rank, with Open MPI's own option for fault tolerance": async () => {
    const ran = await ended([...MPIRUN, '--with-ft', 'ulfm', '-n', '3', ...rank('told')]);
    const told = tellingTimes(ran, 2);
    expect(byStarter(ran), 'the starter told rank 0', ran);
    return `told after ${told.join(' and ')} ms`;
  },
  'a killed rank, where the starter says nothing: told by its lifeline': async () => {
    const ran = await ended([...MPIRUN, '--enable-recovery', '-n', '3', ...rank('told')]);
    const told = tellingTimes(ran, 2);
    expect(!byStarter(ran), 'the starter says nothing', ran);
    return `told after ${told.join(' and ')} ms`;
  },
  'rank 0 is killed, and the others go on': async () => {
    const ran = await ended([...MPIRUN, ...TELLING, '-n', '3', ...rank('killed', '0')]);
    for (const one of [1, 2]) {
      for (const text of ['receive: ERR_PROC_FAILED about 0', 'send: ERR_PROC_FAILED about 0', 'left'])
        expect(ran.stdout.includes(`rank ${one}: ${text}\n`), `rank ${one}: ${text}`, ran);
    }
  },
  'hosts: four ranks on two, and nothing has to be said': async () => expectRing(await ended([...onHosts(), ...rank('ring')]), 4),
  'hosts: a killed rank, told by the event': async () => {
    const ran = await ended([...onHosts(...TELLING), ...rank('told')]);
    const told = tellingTimes(ran, 3);
    expect(byStarter(ran), 'the starter told rank 0', ran);
    return `told after ${told.join(', ')} ms`;
  },
  'the suites of semantics under mpirun': async () => {
    const script = ['node', 'test/launchers/semantics.mjs', 'mpirun', '-n', '4', '--jobs', '0', '--report', '/tmp/report.json'];
    const ran = await ended(script, { MULTIRAIL_TEST_CTX_ROUNDS: '50' }, SUITES_LIMIT_MS);
    expect(ran.code === 0 && /semantics: \d+ passed, 0 failed/.test(ran.stdout), 'all pass', ran);
    return /semantics: (.*)/.exec(ran.stdout)[1];
  },
};

const totals = { passed: 0, failed: 0, skipped: 0 };
function say(outcome, name, note = '') {
  totals[outcome]++;
  console.log(`${outcome}: ${name}${note === '' ? '' : ` (${note})`}`);
}

const noHosts = netnsMissing();
try {
  if (noHosts === undefined) hosts = makeHosts('10.213.6');
  for (const [name, body] of Object.entries(CASES)) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    if (name.startsWith('hosts') && noHosts !== undefined) {
      say('skipped', name, noHosts);
      continue;
    }
    try {
      say('passed', name, (await body()) ?? '');
    } catch (error) {
      say('failed', name, error.message);
    }
  }
} finally {
  hosts?.remove();
  code.dispose();
}
console.log(`pmix: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed === 0 && totals.passed > 0 ? 0 : 1;
