// The C++ has the form of .clang-format; and under sanitizers: the plain C++ tests with AddressSanitizer and UndefinedBehaviorSanitizer, and
// again with ThreadSanitizer; then the addons that need no other headers, built with AddressSanitizer, under the tests in test/unit/native.
//   node native/scripts/test.mjs            everything
//   node native/scripts/test.mjs plain      only the C++ tests
//   node native/scripts/test.mjs format     only the form; clang-format -i mends it
// Prints what it ran, what it could not run and why, and ends with the line "native: N passed, N failed, N skipped".
// Runs clang-format, g++, node-gyp and vitest.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { headersFolder, pmixHeadersMissing, pmixInclude, verbsHeadersMissing, verbsInclude } from './headers.mjs';
import { copySources, NATIVE, PARTS } from './parts.mjs';

const ROOT = dirname(NATIVE);
const SCRATCH = join(ROOT, '.cache', 'native-test');
const require = createRequire(import.meta.url);
const compiler = process.env.CXX ?? 'g++';

/** What of each part is tested without Node, and the programs in its folder `test` that do it; those of `common` lie in native/test. */
const PLAIN = {
  common: { units: [], programs: ['errno'] },
  addon: {
    units: [
      'net/socket',
      'net/unix',
      'net/tcp-info',
      'net/netlink',
      'net/route',
      'shm/segment',
      'shm/doorbell',
      'shm/cma',
      'shm/watch',
      'shm/shared-call',
      'crc/crc32c',
      'crc/crc-fold',
      'crc/copy-crc',
      'crc/frames',
      'combine/combine',
    ],
    programs: ['crc', 'copy-crc', 'frames', 'shm', 'shared-call', 'net', 'combine'],
  },
  blas: { units: ['blas'], programs: ['blas'] },
  rdma: { units: ['objects', 'device', 'work'], programs: ['objects', 'device'] },
  impair: { units: ['wire'], programs: ['wire'] },
  pmix: { units: ['client', 'library'], programs: ['abi', 'client'] },
};
/** Programs that look at headers which their part is built without. */
const HEADERS_MISSING = { abi: pmixHeadersMissing };
const COMMON = { key: 'common', folder: NATIVE };
const SANITIZERS = [
  { name: 'address,undefined', env: { ASAN_OPTIONS: 'detect_leaks=1', UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1' } },
  { name: 'thread', env: { TSAN_OPTIONS: 'halt_on_error=1' } },
];
const FLAGS = [
  '-std=c++17',
  '-g',
  '-O1',
  '-fno-exceptions',
  '-fno-rtti',
  '-fno-omit-frame-pointer',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-pthread',
];

const totals = { passed: 0, failed: 0, skipped: 0 };

function say(outcome, what, note = '') {
  totals[outcome]++;
  console.log(`${outcome}: ${what}${note === '' ? '' : ` (${note})`}`);
}

function run(command, args, options = {}) {
  return spawnSync(command, args, { encoding: 'utf8', timeout: 300_000, maxBuffer: 64 * 1024 * 1024, ...options });
}

const words = (done) => `${done.stdout ?? ''}${done.stderr ?? ''}${done.error ?? ''}`.trim();

/** Whether this compiler and kernel can run programs with that sanitizer; else why not. */
function sanitizerMissing(sanitizer) {
  const probe = join(SCRATCH, 'probe');
  const built = run(compiler, ['-x', 'c++', '-', `-fsanitize=${sanitizer.name}`, '-o', probe], { input: 'int main() { return 0; }' });
  if (built.status !== 0) return `${compiler} has no -fsanitize=${sanitizer.name}`;
  const ran = run(probe, [], { env: { ...process.env, ...sanitizer.env } });
  return ran.status === 0 ? undefined : `programs with it do not start here: ${words(ran).split('\n')[0]}`;
}

/** Whether the C++ has the form that .clang-format says. */
function formatTest() {
  const what = 'the form of the C++';
  if (run('clang-format', ['--version']).status !== 0) return say('skipped', what, 'clang-format is not installed');
  const folders = [
    join(NATIVE, 'test'),
    join(NATIVE, 'common'),
    ...PARTS.flatMap(({ folder }) => [join(folder, 'src'), join(folder, 'test')]),
  ];
  const files = folders
    .filter(existsSync)
    .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, name)))
    .filter((file) => /\.(cc|h)$/.test(file));
  const done = run('clang-format', ['--dry-run', '--Werror', '--style=file', ...files]);
  if (done.status !== 0) console.log(words(done));
  return say(done.status === 0 ? 'passed' : 'failed', what, `${files.length} files`);
}

function plainTests() {
  for (const sanitizer of SANITIZERS) {
    const missing = sanitizerMissing(sanitizer);
    for (const part of [COMMON, ...PARTS]) {
      const why = missing ?? (part.needsVerbs ? verbsHeadersMissing() : undefined);
      if (why === undefined) plainPart(part, sanitizer);
      else for (const program of PLAIN[part.key].programs) say('skipped', `${program}-test with ${sanitizer.name}`, why);
    }
  }
}

function plainPart(part, sanitizer) {
  const { units, programs } = PLAIN[part.key];
  const folder = join(SCRATCH, sanitizer.name.replace(',', '-'), part.key);
  mkdirSync(folder, { recursive: true });
  const pmix = part.key === 'pmix' ? pmixInclude().flatMap((path) => ['-isystem', path]) : [];
  const include = [`-I${NATIVE}`, ...(part.needsVerbs ? [`-I${verbsInclude}`] : []), ...pmix];
  const flags = [...FLAGS, ...include, `-fsanitize=${sanitizer.name}`, '-fno-sanitize-recover=all', '-D_GNU_SOURCE'];
  const objects = [];
  let broken;
  for (const unit of units) {
    const object = join(folder, `${unit.replace('/', '-')}.o`);
    const built = run(compiler, [...flags, '-c', join(part.folder, 'src', `${unit}.cc`), '-o', object]);
    if (built.status !== 0) broken = words(built);
    objects.push(object);
  }
  for (const program of programs) {
    const what = `${program}-test with ${sanitizer.name}`;
    const why = HEADERS_MISSING[program]?.();
    if (why !== undefined) {
      say('skipped', what, why);
      continue;
    }
    const path = join(folder, `${program}-test`);
    const built = run(compiler, [...flags, join(part.folder, 'test', `${program}-test.cc`), ...objects, '-o', path]);
    if (broken !== undefined || built.status !== 0) {
      console.log(broken ?? words(built));
      say('failed', what, 'it does not compile');
      continue;
    }
    const ran = run(path, [], { env: { ...process.env, ...sanitizer.env } });
    console.log(words(ran));
    say(ran.status === 0 ? 'passed' : 'failed', what);
  }
}

/** The addons with AddressSanitizer: Node itself has none, so its library is loaded first, and leaks of Node are not looked for. */
function addonTests() {
  const what = 'test/unit/native with address,undefined';
  const library = words(run(compiler, ['-print-file-name=libasan.so']));
  if (!existsSync(library)) return say('skipped', what, `${compiler} has no libasan.so`);
  const headers = headersFolder(join(ROOT, '.cache'));
  if (headers.missing !== undefined) return say('skipped', what, headers.missing);
  let nodeGyp;
  let vitest;
  try {
    nodeGyp = require.resolve('node-gyp/bin/node-gyp.js');
    vitest = join(dirname(require.resolve('vitest/package.json')), 'vitest.mjs');
  } catch (error) {
    return say('skipped', what, String(error.message).split('\n')[0]);
  }
  const scratch = join(SCRATCH, 'sources');
  rmSync(scratch, { recursive: true, force: true });
  const flags = '-fsanitize=address,undefined -fno-sanitize-recover=all -g -fno-omit-frame-pointer';
  const env = { ...process.env, CXXFLAGS: flags, LDFLAGS: flags };
  const folders = {};
  for (const part of PARTS.filter(({ key }) => ['addon', 'blas', 'pmix'].includes(key))) {
    folders[part.key] = copySources(part, scratch);
    const args = [nodeGyp, '-C', folders[part.key], 'rebuild', '--loglevel=warn', `--nodedir=${headers.folder}`];
    const built = run(process.execPath, args, { env });
    if (built.status === 0) continue;
    console.log(words(built));
    return say('failed', what, `${part.name}: it does not compile`);
  }
  const ran = run(process.execPath, [vitest, 'run', '--project', 'unit', '--testTimeout=120000', 'test/unit/native'], {
    cwd: ROOT,
    env: {
      ...process.env,
      LD_PRELOAD: library,
      ASAN_OPTIONS: 'detect_leaks=0',
      UBSAN_OPTIONS: 'print_stacktrace=1',
      // node-gyp-build looks there for the binaries of the packages multirail-native, multirail-blas and multirail-pmix.
      MULTIRAIL_NATIVE_PREBUILD: folders.addon,
      MULTIRAIL_NATIVE_EXPECT: folders.addon,
      MULTIRAIL_BLAS_PREBUILD: folders.blas,
      MULTIRAIL_PMIX_PREBUILD: folders.pmix,
    },
  });
  console.log(words(ran).split('\n').slice(-40).join('\n'));
  return say(ran.status === 0 ? 'passed' : 'failed', what);
}

function sanitizerTests(withAddons) {
  const what = 'the native tests';
  if (process.platform !== 'linux') return say('skipped', what, `the native part is for Linux, this is ${process.platform}`);
  if (run(compiler, ['--version']).status !== 0) return say('skipped', what, `no C++ compiler (${compiler})`);
  plainTests();
  if (withAddons) addonTests();
}

mkdirSync(SCRATCH, { recursive: true });
const only = process.argv[2];
if (only !== 'plain') formatTest();
if (only !== 'format') sanitizerTests(only !== 'plain');
console.log(`native: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 ? 1 : 0;
