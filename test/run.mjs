// Runs every part of the tests, times and counts them, and ends with one plain line. Used by `npm test` and .ci/run.
// A part that cannot run here says why and counts as skipped; a part that fails is shown whole and does not stop the others.
import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import process from 'node:process';

const root = new URL('..', import.meta.url).pathname;
const cache = join(root, '.cache');
mkdirSync(cache, { recursive: true });
const isRoot = process.getuid?.() === 0;
const mayInstall = isRoot && process.env.MULTIRAIL_TEST_APT !== '0';
const only = (process.env.MULTIRAIL_TEST_ONLY ?? process.argv.slice(2).join(' ')).split(/[\s,]+/).filter(Boolean);
// Of the big matrices (cases of semantics again while rails break, planted mistakes, faults of the lab, files on another Node), and of the
// files that take long, a part is run each time, drawn by a seed.
const sample = {
  share: Number(process.env.MULTIRAIL_TEST_SHARE ?? 0.1),
  seed: process.env.MULTIRAIL_TEST_SAMPLE_SEED ?? String(randomInt(1_000_000)),
};
process.env.MULTIRAIL_TEST_SHARE = String(sample.share);
process.env.MULTIRAIL_TEST_SAMPLE_SEED = sample.seed;
const totals = { passed: 0, failed: 0, skipped: 0 };
const rows = [];

function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const given = { cwd: root, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024, ...options };
    const child = execFile(command, args, given, (error, stdout, stderr) => {
      const status = child.exitCode;
      resolve({ status, signal: child.signalCode, stdout, stderr, error: status === null ? error : undefined });
    });
  });
}

async function has(command) {
  return (await run('sh', ['-c', `command -v ${command}`])).status === 0;
}

/** Debian packages for commands or files that are missing; says which. Returns why it could not, or undefined. */
function needDebian(wanted) {
  // One at a time: dpkg has a lock, and parts run next to each other.
  installing = installing.then(() => install(wanted));
  return installing;
}

/** The step of `npm pack` installs packages, too, in a process of its own. */
const APT_WAITS = ['-o', 'DPkg::Lock::Timeout=300'];

let installing = Promise.resolve();

async function install(wanted) {
  const missing = [];
  for (const one of wanted) if (one.file === undefined ? !(await has(one.command)) : !existsSync(one.file)) missing.push(one);
  if (missing.length === 0) return undefined;
  const names = missing.map(({ name }) => name);
  if (!mayInstall) return `needs Debian's ${names.join(', ')} (${isRoot ? 'MULTIRAIL_TEST_APT=0 forbids installing' : 'not root'})`;
  console.log(`installing Debian packages: ${names.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  let done = await run('apt-get', [...APT_WAITS, 'install', '-y', '--no-install-recommends', ...names], { env });
  if (done.status !== 0) {
    await run('apt-get', ['update'], { env });
    done = await run('apt-get', [...APT_WAITS, 'install', '-y', '--no-install-recommends', ...names], { env });
  }
  return done.status === 0 ? undefined : `could not install ${names.join(', ')}: ${String(done.stderr).trim().split('\n').pop()}`;
}

/** What failed, said once more at the end, where whoever sees only the end of the output finds it. */
const failures = [];

function count(name, startedMs, passed, failed, skipped, note = '') {
  if (failed > 0 && !failures.some((line) => line.startsWith(`${name}: `))) failures.push(`${name}: ${note || 'see its output above'}`);
  totals.passed += passed;
  totals.failed += failed;
  totals.skipped += skipped;
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
  rows.push({ part: name, passed, failed, skipped, seconds, note });
  console.log(`== ${name}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds} s${note ? ` (${note})` : ''}`);
}

/** One command that either passes or fails. */
async function single(name, command, args, options = {}) {
  const startedMs = Date.now();
  const done = await run(command, args, { timeout: 600_000, ...options });
  const ok = done.status === 0;
  if (!ok) console.log(`${done.stdout ?? ''}\n${done.stderr ?? ''}\n${done.error ?? ''}`);
  count(name, startedMs, ok ? 1 : 0, ok ? 0 : 1, 0);
  return done;
}

/** A script of ours that ends with the line "NAME: N passed, N failed, N skipped". */
function counted(name, startedMs, done, left = 0) {
  const line = new RegExp(`${name}: (\\d+) passed, (\\d+) failed, (\\d+) skipped`).exec(done.stdout ?? '');
  if (done.status !== 0 || line === null) console.log(`${done.stdout ?? ''}\n${done.stderr ?? ''}\n${done.error ?? ''}`.slice(-20_000));
  for (const text of (done.stdout ?? '').split('\n')) if (/skipped:/.test(text)) console.log(text);
  for (const [, what] of (done.stdout ?? '').matchAll(/^ *FAILED +(.+(?:\n {6,}\S.*)*)/gm)) failures.push(`${name}: ${what}`);
  const [passed, failed, skipped] = line === null ? [0, 1, 0] : line.slice(1).map(Number);
  count(name, startedMs, passed, failed === 0 && done.status !== 0 ? 1 : failed, skipped + left);
}

/** Enough of a message to know what was expected; the whole of it is above. */
function beginning(message) {
  const lines = message.split('\n').slice(0, 12);
  return lines.map((line) => `    ${line.slice(0, 300)}`).join('\n');
}

/** One vitest project, counted from its JSON report; reasons of skipped tests are printed by the tests themselves. */
async function vitest(project, { node = process.execPath, label = project, options = [], left = 0, timeoutMs = 1_800_000 } = {}) {
  const startedMs = Date.now();
  const report = join(cache, `report-${label.replace(/\W+/g, '-')}.json`);
  rmSync(report, { force: true });
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    project,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...options,
  ];
  const done = await run(node, args, { timeout: timeoutMs, env: { ...process.env, CI: 'true', NO_COLOR: '1' } });
  const output = `${done.stdout ?? ''}${done.stderr ?? ''}`;
  for (const line of new Set(output.split('\n').filter((text) => /skipped:|not applicable:/.test(text)))) console.log(line);
  if (!existsSync(report)) {
    console.log(output.split('\n').slice(-80).join('\n'));
    return count(label, startedMs, 0, 1, 0, `no report: ${done.error?.message ?? `exit code ${done.status}, signal ${done.signal}`}`);
  }
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  for (const file of testResults) {
    const where = relative(root, file.name);
    for (const test of file.assertionResults) {
      if (test.status !== 'failed') continue;
      failures.push(
        `${label}: ${where}: ${test.fullName} (${Math.round(test.duration ?? 0)} ms)\n${beginning(test.failureMessages.join('\n'))}`,
      );
    }
  }
  // A file that could not be loaded has no tests to fail.
  const broken = testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  let failed = numFailedTests + broken;
  // An error outside of any test (an unhandled rejection) fails the run and no test.
  if (failed === 0 && done.status !== 0) failed = 1;
  if (failed > 0) console.log(output.slice(-30_000));
  count(label, startedMs, numPassedTests, failed, numPendingTests + numTodoTests + left);
}

/** What tests in network namespaces need. Where it is missing they are left out, each by itself, and say so. */
const NAMESPACES = [
  { command: 'ip', name: 'iproute2' },
  { command: 'unshare', name: 'util-linux' },
];

/** What programs of C are compiled with. */
const CLANG = [
  { command: 'clang', name: 'clang' },
  { command: 'wasm-ld', name: 'lld' },
  { file: '/usr/lib/wasm32-wasi/libc.a', name: 'wasi-libc' },
  { file: '/usr/share/doc/libclang-rt-dev-wasm32', name: 'libclang-rt-dev-wasm32' },
  { file: '/usr/share/doc/libc++-dev-wasm32', name: 'libc++-dev-wasm32' },
];

/** How often the long files of a part have their turn: every third time. */
const TURNS = 3;

/** Files that take long, of parts with many such; the longest first, so that those with the same turn take as long as the others. */
const LONG_FILES = {
  system: [
    ...['ft-replicas', 'bench-runs', 'ft-replica-votes', 'ft-farm-log', 'hpl', 'ft-looks', 'ft-logs', 'ft-cli', 'coll-job', 'waits'],
    ...['ft-groups', 'shared-coll', 'ft-saves', 'ft-late', 'conformance-cli', 'looks', 'robust', 'ft-joins', 'ft-strikes', 'crowd'],
  ],
  semantics: ['coll-mixed', 'ft-in-place', 'p2p-tcp-net', 'coll-ws', 'p2p-mixed', 'ft-outcomes', 'coll-tcp-net'],
  launchers: ['slurm', 'hosts', 'semantics'],
  lab: ['lab-tool', 'impairments', 'lab-selftest', 'partition', 'soak', 'lab-dashboard', 'liveness-alarms', 'late-rails', 'ft-hosts'],
};

/** Those of these files of a part that have no turn with this seed, where each has one in so many runs. */
function withoutTurn(part, files, turns) {
  if (sample.share >= 1) return [];
  const left = files.filter((_, i) => (i + Number(sample.seed)) % turns !== 0);
  console.log(`skipped: ${part}: ${left.length} files have no turn with seed ${sample.seed}: ${left.join(' ')}`);
  return left;
}

/** What leaves out the long files that have no turn; each counts as skipped. */
function turnsOf(part) {
  const files = LONG_FILES[part].map((name) => `test/${part}/${name}.test.ts`);
  const missing = files.filter((file) => !existsSync(join(root, file)));
  if (missing.length > 0) throw new Error(`there is no ${missing.join(', ')}`);
  const left = withoutTurn(part, files, TURNS);
  return { options: left.map((file) => `--exclude=${file}`), left: left.length };
}

const parts = {
  types: () => single('types', 'npm', ['run', '-s', 'typecheck']),
  lint: () => single('lint', 'npx', ['biome', 'check', '.']),
  docs: () => single('docs', process.execPath, ['docs/make-api.mjs', '--check']),
  build: async () => {
    const startedMs = Date.now();
    const built = await run('npx', ['tsup', '--silent'], { timeout: 600_000 });
    // What it exports and declares.
    counted('build', startedMs, built.status === 0 ? await run(process.execPath, ['test/package/face.mjs'], { timeout: 120_000 }) : built);
  },
  package: async () => {
    const startedMs = Date.now();
    counted('package', startedMs, await run(process.execPath, ['test/package/run.mjs'], { timeout: 600_000 }));
  },
  unit: async () => {
    // Without it the kernels of OpenBLAS are left out, and say so.
    const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';
    const why = await needDebian([{ file: `/usr/lib/${triplet}/libopenblas.so.0`, name: 'libopenblas0-pthread' }]);
    if (why !== undefined) console.log(`skipped: linear algebra by OpenBLAS: ${why}`);
    await needDebian(NAMESPACES);
    await vitest('unit');
  },
  native: async () => {
    const startedMs = Date.now();
    const why = await needDebian([{ command: 'g++', name: 'g++' }]);
    // Without them the test of node-rdma, and that of the form, are left out, and say so.
    await needDebian([{ file: '/usr/include/infiniband/verbs.h', name: 'libibverbs-dev' }]);
    await needDebian([{ command: 'clang-format', name: 'clang-format' }]);
    // With them, what native/pmix writes out of PMIx's structures is compared with PMIx's own.
    const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';
    await needDebian([{ file: `/usr/lib/${triplet}/pmix2/include/pmix.h`, name: 'libpmix-dev' }]);
    if (why !== undefined) {
      console.log(`skipped: the native part under sanitizers: ${why}`);
      return count('native', startedMs, 0, 0, 1, why);
    }
    const env = { ...process.env, CI: 'true', NO_COLOR: '1' };
    counted('native', startedMs, await run(process.execPath, ['native/scripts/test.mjs'], { timeout: 300_000, env }));
  },
  sim: () => vitest('sim'),
  contract: () => vitest('contract'),
  semantics: () => vitest('semantics', turnsOf('semantics')),
  wire: () => vitest('wire'),
  system: async () => {
    await needDebian(NAMESPACES);
    await vitest('system', turnsOf('system'));
  },
  launchers: async () => {
    // Each is left out by itself, and says so, where it cannot be installed. Slurm is unpacked into an overlay that goes away.
    for (const wanted of [
      { command: 'ip', name: 'iproute2' },
      { command: 'mount', name: 'mount' },
      { command: 'pgrep', name: 'procps' },
      { command: 'ssh', name: 'openssh-client' },
      { command: 'mpiexec.mpich', name: 'mpich' },
      // MPICH brings a mpirun too.
      { command: 'mpirun.openmpi', name: 'openmpi-bin' },
    ]) {
      await needDebian([wanted]);
    }
    await vitest('launchers', turnsOf('launchers'));
  },
  dashboard: async () => {
    // Under any of its names it will do; where none is there, and none may be installed, the tests say so and are skipped.
    const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
    const found = await Promise.all(names.map(has));
    const why = found.includes(true) ? undefined : await needDebian([{ command: 'chromium', name: 'chromium' }]);
    if (why !== undefined) console.log(`skipped: the dashboard's page in a browser: ${why}`);
    await vitest('dashboard');
  },
  wasm: async () => {
    const why = await needDebian(CLANG);
    if (why !== undefined) console.log(`skipped: programs of C: ${why}`);
    await vitest('wasm');
  },
  mpich: async () => {
    const startedMs = Date.now();
    const why = mayInstall
      ? await needDebian(CLANG)
      : `needs Debian's source package of MPICH (${isRoot ? 'MULTIRAIL_TEST_APT=0 forbids it' : 'not root'})`;
    if (why !== undefined) {
      console.log(`skipped: MPICH's own tests as programs of WebAssembly: ${why}`);
      return count('mpich', startedMs, 0, 0, 1, why);
    }
    const options = ['--share', String(sample.share), '--seed', sample.seed];
    counted('mpich', startedMs, await run(process.execPath, ['test/wasm/mpich.mjs', ...options], { timeout: 3_600_000 }));
  },
  lab: async () => {
    const why = await needDebian([{ command: 'ip', name: 'iproute2' }]);
    if (why !== undefined) console.log(`skipped: lab: ${why}`);
    await vitest('lab', turnsOf('lab'));
  },
  vm: async () => {
    const startedMs = Date.now();
    const why = await needDebian([
      { command: 'g++', name: 'g++' },
      { command: 'make', name: 'make' },
      { file: '/usr/include/infiniband/verbs.h', name: 'libibverbs-dev' },
    ]);
    if (why !== undefined) {
      console.log(`skipped: verbs was not exercised: ${why}`);
      return count('vm', startedMs, 0, 0, 1, why);
    }
    // The guest has a limit of its own, which tells more of what was going on; before it, packages are installed and a kernel is fetched.
    // Of its files one has its turn each time.
    const files = readdirSync(join(root, 'test/vm'))
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => `test/vm/${file}`);
    const left = withoutTurn('vm', files, files.length);
    const drawn = left.length === 0 ? [] : files.filter((file) => !left.includes(file));
    const done = await run(process.execPath, ['test/vm/run.mjs', ...drawn], { timeout: 2_400_000 });
    counted('vm', startedMs, done, left.length);
  },
  model: async () => {
    const startedMs = Date.now();
    const why = await needDebian([
      { command: 'spin', name: 'spin' },
      { command: 'gcc', name: 'gcc' },
    ]);
    if (why !== undefined) {
      console.log(`skipped: the Promela models were not checked: ${why}`);
      return count('model', startedMs, 0, 0, 1, why);
    }
    const turn = sample.share < 1 ? [sample.seed] : [];
    const done = await run('bash', ['docs/internals/model/check.sh', '--quick', ...turn], { timeout: 1_200_000 });
    const line = /model: (\d+) checks? as expected, (\d+) not/.exec(done.stdout ?? '');
    const left = /skipped: model: (\d+) .*/.exec(done.stdout ?? '');
    if (left !== null) console.log(left[0]);
    if (done.status !== 0 || line === null) console.log(`${done.stdout ?? ''}\n${done.stderr ?? ''}`);
    const failed = line === null ? 1 : Number(line[2]);
    count('model', startedMs, line === null ? 0 : Number(line[1]), failed === 0 && done.status !== 0 ? 1 : failed, Number(left?.[1] ?? 0));
  },
  node24: async () => {
    const startedMs = Date.now();
    const prefix = join(cache, 'node24');
    const binary = join(prefix, 'node_modules/node/bin/node');
    if (!existsSync(binary))
      await run('npm', ['install', '--prefix', prefix, '--no-save', '--no-audit', '--no-fund', 'node@24'], { timeout: 240_000 });
    const version = existsSync(binary) ? (await run(binary, ['-p', 'process.version'])).stdout?.trim() : undefined;
    if (!version?.startsWith('v24')) {
      console.log('skipped: unit and smoke tests on Node 24: the npm package node@24 could not be installed');
      return count('node24', startedMs, 0, 0, 1, 'no Node 24');
    }
    // Each of so many parts of the files has its turn, by the seed.
    const shards = Math.max(1, Math.round(1 / sample.share));
    const shard = `--shard=${(Number(sample.seed) % shards) + 1}/${shards}`;
    console.log(`Node ${version}: unit tests (${shard}), and the ring of four ranks from the built package`);
    await vitest('unit', { node: binary, label: `unit on ${version}`, options: [shard] });
    await single(`ring on ${version}`, binary, ['dist/cli.js', 'run', '-n', '4', 'examples/ring.mjs'], { timeout: 60_000 });
  },
};

/**
 * A machine without a compiler has no native part, no way to OpenBLAS or PMIx and no forwarder of the lab after `npm install`: where root may
 * install one, the tests are of the whole product.
 */
async function nativePart() {
  const isBuilt = (folder, binary) =>
    [`build/Release/${binary}`, `prebuilds/linux-${process.arch}`].some((path) => existsSync(join(root, folder, path)));
  const isOff = process.env.MULTIRAIL_NATIVE === '0';
  const missing = [
    ...(isOff || isBuilt('native/addon', 'multirail.node') ? [] : ['addon']),
    ...(isOff || isBuilt('native/blas', 'blas.node') ? [] : ['blas']),
    ...(isBuilt('native/impair', 'impair.node') ? [] : ['impair']),
    ...(isOff || isBuilt('native/pmix', 'pmix.node') ? [] : ['pmix']),
  ];
  if (process.platform !== 'linux' || missing.length === 0) return;
  const why = await needDebian([
    { command: 'g++', name: 'g++' },
    { command: 'make', name: 'make' },
    { command: 'python3', name: 'python3' },
  ]);
  const done = why === undefined ? await run(process.execPath, ['native/scripts/build.mjs', ...missing]) : undefined;
  if (done?.status !== 0)
    console.log(`skipped: the native part (${missing.join(', ')}): ${why ?? String(done.stderr).trim().split('\n').pop()}`);
}

/**
 * One after the other, most of them, since they keep two processors busy; with the guest beside it the part system took longer than both after
 * each other. Jobs in a lab, and those that other starters start, wait most of the time: what computes goes next to them.
 */
const plan = [
  [['types'], ['build', 'lint', 'docs']],
  [['package'], ['native']],
  ...['unit', 'sim', 'semantics'].map((name) => [[name]]),
  [['system']],
  [['wasm']],
  [['mpich']],
  [['launchers'], ['contract', 'wire']],
  [['lab'], ['model', 'dashboard', 'node24']],
  [['vm']],
];
const unplanned = Object.keys(parts).filter((name) => !plan.flat(2).includes(name));
if (unplanned.length > 0) throw new Error(`no place in the plan for ${unplanned.join(', ')}`);

const unknown = only.filter((name) => !(name in parts));
if (unknown.length > 0) {
  console.log(`there is no part ${unknown.join(', ')}; the parts are ${Object.keys(parts).join(' ')}`);
  process.exit(2);
}
console.log(`multirail tests on Node ${process.version}, ${isRoot ? 'root' : 'not root'}`);
console.log(`of big matrices a sample of ${sample.share * 100} %, seed ${sample.seed} (MULTIRAIL_TEST_SHARE=1 runs all)`);
const withoutNative = ['types', 'lint', 'docs', 'build', 'package', 'model'];
if (only.length === 0 || only.some((name) => !withoutNative.includes(name))) await nativePart();
for (const lanes of plan) {
  await Promise.all(
    lanes.map(async (lane) => {
      for (const name of lane) if (only.length === 0 || only.includes(name)) await parts[name]();
    }),
  );
}
console.log('');
console.table(rows);
for (const line of failures) console.log(`FAILED ${line}`);
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 ? 1 : 0;
