// The package as others get it: made by `npm pack`, installed into an empty project outside the checkout, with no compiler on the PATH, and
// used there. run.mjs (one package manager) and matrix.mjs (all of them) use this file.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, normalize, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { headersFolder, verbsHeadersMissing } from '../../native/scripts/headers.mjs';
import { bundleInto } from '../support/bundle.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGES_MAX = 12;
const BYTES_MAX = 8_000_000;
/** What programs of C need comes on top: mpi.h, what is linked into them, the binding, its chapter and examples. */
const C_FILES = /^multirail\/(dist\/wasm[./]|docs\/(guide\/c-programs|reference\/wasm)\.md$|examples\/c\/)/;
const C_BYTES_MAX = 200_000;
const GLIBC_MINOR_MAX = 28;

/** Is a file ignored by this .gitignore? Understands what ours uses, and says so where it does not. */
function ignoredBy(text) {
  const patterns = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const tests = patterns.map((pattern) => {
    if (/[[\]!?\\]|\*\*|\s/.test(pattern)) throw new Error(`a pattern of .gitignore that this check does not understand: ${pattern}`);
    const isFolder = pattern.endsWith('/');
    const path = isFolder ? pattern.slice(0, -1) : pattern;
    // A pattern with a slash before its end holds from the top, any other at every depth.
    const start = path.includes('/') ? '^' : '(?:^|/)';
    const body = path
      .replace(/^\//, '')
      .replace(/[.+^${}()|]/g, '\\$&')
      .replaceAll('*', '[^/]*');
    // What lies in an ignored folder is ignored.
    return new RegExp(`${start}${body}${isFolder ? '/' : '(?:/|$)'}`);
  });
  return (file) => tests.some((test) => test.test(file));
}

/** Of the checks of one run. A check throws what is wrong, or calls skip(). */
export class Tally {
  constructor(name) {
    this.name = name;
    this.passed = 0;
    this.failed = 0;
    this.skipped = 0;
  }

  check(title, body) {
    try {
      const note = body();
      if (note?.skipped !== undefined) {
        this.skipped++;
        console.log(`  skipped: ${title}: ${note.skipped}`);
        return undefined;
      }
      this.passed++;
      console.log(`  ok       ${title}${typeof note === 'string' ? ` (${note})` : ''}`);
      return true;
    } catch (error) {
      this.failed++;
      console.log(`  FAILED   ${title}\n${String(error.message).replace(/^/gm, '           ')}`);
      return false;
    }
  }

  end() {
    console.log(`${this.name}: ${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`);
    process.exitCode = this.failed > 0 ? 1 : 0;
  }
}

/** Runs a command and throws with all that it said when it fails. */
export function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', timeout: 300_000, maxBuffer: 64 * 1024 * 1024, ...options });
  if (done.status !== 0) {
    const said = `${done.stdout ?? ''}${done.stderr ?? ''}`.trim().slice(-6000);
    throw new Error(`${[command, ...args].join(' ')}: exit code ${done.status}${done.error ? `, ${done.error.message}` : ''}\n${said}`);
  }
  return done.stdout;
}

export const demand = (isSo, text) => {
  if (!isSo) throw new Error(text);
};

/** A scratch folder outside of the checkout, which goes away with the process. */
export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-package-'));
  process.on('exit', () => {
    if (process.env.MULTIRAIL_PACKAGE_KEEP === '1') console.log(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** A folder with what a package manager and a job need of the system, and no compiler, make or Python. */
export function barePath(folder, node) {
  mkdirSync(folder, { recursive: true });
  symlinkSync(node, join(folder, 'node'));
  for (const name of ['sh', 'env', 'uname', 'sed', 'dirname', 'basename', 'readlink']) {
    const path = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
    if (path !== '') symlinkSync(path, join(folder, name));
  }
  return folder;
}

/** The environment of somebody who has never heard of this checkout. */
export function strangersEnv(path, home) {
  const env = { PATH: path, HOME: home, LANG: 'C.UTF-8', npm_config_userconfig: '/dev/null', NO_COLOR: '1' };
  // The way to the registry is this machine's own.
  for (const [name, value] of Object.entries(process.env)) {
    if (/^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|npm_config_registry)$/i.test(name)) env[name] = value;
  }
  return env;
}

const hasCompiler = () =>
  [process.env.CXX ?? 'g++', 'make', process.env.PYTHON ?? 'python3'].every((name) => spawnSync(name, ['--version']).status === 0);

/** The npm that belongs to this Node. */
export function ownNpm() {
  const besides = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js');
  if (existsSync(besides)) return [process.execPath, besides];
  const named = process.env.npm_execpath;
  return named !== undefined && /npm-cli\.js$/.test(named) ? [process.execPath, named] : ['npm'];
}

/** Makes the tarball, as `npm pack` in the checkout does. Only root gets cross compilers installed: else fewer binaries have to do. */
export function pack(folder, npm = ownNpm()) {
  const mayInstall = process.getuid?.() === 0 && process.env.MULTIRAIL_TEST_APT !== '0';
  const env = { ...process.env, ...(mayInstall ? {} : { MULTIRAIL_PREBUILD_APT: '0', MULTIRAIL_PREBUILDS: 'some' }) };
  run(npm[0], [...npm.slice(1), 'pack', '--pack-destination', folder], { env, timeout: 600_000 });
  const [name] = readdirSync(folder).filter((entry) => entry.endsWith('.tgz'));
  demand(name !== undefined, 'npm pack made no tarball');
  return { tarball: join(folder, name), isWhole: mayInstall };
}

const filesUnder = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();

/** What is in the tarball. */
export function checkTarball(tally, { tarball, isWhole }, folder) {
  run('tar', ['xzf', tarball, '-C', folder]);
  const top = join(folder, 'package');
  const files = filesUnder(top);
  const has = (pattern) => files.filter((file) => pattern.test(file));
  tally.check('the tarball has a binary of all four parts for x64 and arm64, glibc and musl', () => {
    const wanted = ['x64', 'arm64'].flatMap((arch) =>
      ['glibc', 'musl'].flatMap((libc) => [
        `native/addon/prebuilds/linux-${arch}/multirail-native.${libc}.node`,
        `native/blas/prebuilds/linux-${arch}/multirail-blas.${libc}.node`,
        `native/rdma/prebuilds/linux-${arch}/node-rdma.${libc}.node`,
        `native/impair/prebuilds/linux-${arch}/multirail-impair.${libc}.node`,
        `native/pmix/prebuilds/linux-${arch}/multirail-pmix.${libc}.node`,
      ]),
    );
    const there = has(/\.node$/);
    if (!isWhole) return { skipped: `cross compilers may not be installed here; ${there.length} of ${wanted.length} are there` };
    demand(JSON.stringify(there) === JSON.stringify(wanted.sort()), `wanted ${wanted.join(', ')}; there are ${there.join(', ')}`);
  });
  tally.check('no binary asks for a glibc newer than 2.28, and those for musl ask for none', () => {
    for (const file of has(/\.node$/)) {
      const text = readFileSync(join(top, file), 'latin1');
      const minors = [...text.matchAll(/GLIBC_2\.(\d+)/g)].map((match) => Number(match[1]));
      if (file.endsWith('.musl.node')) demand(minors.length === 0, `${file} asks for glibc`);
      else demand(minors.length > 0 && Math.max(...minors) <= GLIBC_MINOR_MAX, `${file} asks for glibc 2.${Math.max(...minors)}`);
    }
  });
  tally.check('no source maps, tests, caches, or packages of others in the tarball', () => {
    const strays = has(/\.map$|(^|\/)(node_modules|test|\.cache|build|__pycache__)\/|\.tgz$/);
    demand(strays.length === 0, strays.join(', '));
  });
  tally.check('what git is told to ignore does not travel, but for what was built', () => {
    const isIgnored = ignoredBy(readFileSync(join(ROOT, '.gitignore'), 'utf8'));
    const ignored = files.filter(isIgnored);
    demand(ignored.includes('dist/cli.js'), 'dist/cli.js does not count as ignored: .gitignore is not read as it should be');
    // There may be no git on this machine. Where there is, it has the last word about what .gitignore means.
    const probes = [
      ...files,
      'a/node_modules/b',
      'x.log',
      'a/b.log/c',
      // A file of that name, in a folder that nobody makes: after `npm start` there is a folder `out` at the top.
      'a/out',
      'out/a',
      'a/outer',
      'native/addon/build/a',
      'a/native/addon/build/b',
    ];
    const asked = spawnSync('git', ['-c', 'core.excludesFile=/dev/null', 'check-ignore', '--no-index', '--stdin'], {
      cwd: ROOT,
      encoding: 'utf8',
      input: probes.join('\n'),
    });
    if (asked.status === 0) {
      const differing = new Set(asked.stdout.split('\n').filter(Boolean));
      for (const file of probes.filter(isIgnored)) if (!differing.delete(file)) differing.add(file);
      demand(differing.size === 0, `git has another opinion of ${[...differing].join(', ')}`);
    }
    const strays = ignored.filter((file) => !/^dist\/|^native\/(addon|blas|rdma|impair|pmix)\/prebuilds\//.test(file));
    demand(strays.length === 0, strays.join(', '));
  });
  tally.check('every relative link in its documents leads to a file in it', () => {
    const dead = [];
    for (const file of has(/\.md$/)) {
      const text = readFileSync(join(top, file), 'utf8').replace(/```[\s\S]*?```|`[^`\n]*`/g, '');
      for (const [, link] of text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)) {
        if (/^[a-z]+:/.test(link)) continue;
        if (!existsSync(join(top, normalize(join(dirname(file), link))))) dead.push(`${file}: ${link}`);
      }
    }
    demand(dead.length === 0, dead.join('\n'));
  });
  tally.check('what its package.json names is in it', () => {
    const { main, module, types, bin, exports } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8'));
    const named = [main, module, types, ...Object.values(bin), ...JSON.stringify(exports).match(/\.\/[^"*]+\.\w+/g)];
    demand(named.length > 8, `only ${named.length} files are named`);
    for (const path of named) demand(existsSync(join(top, path)), `${path} is not there`);
  });
  const modules = join(ROOT, 'node_modules');
  tally.check('publint has no complaint', () => {
    const cli = join(modules, 'publint/src/cli.js');
    const said = run(process.execPath, [cli, 'run', tarball, '--strict'], { env: { ...process.env, NO_COLOR: '1' } });
    demand(!/Errors|Warnings|Suggestions/.test(said), said);
  });
  tally.check('attw has no complaint', () => {
    const cli = join(modules, '@arethetypeswrong/cli/dist/index.js');
    const ask = (...more) => run(process.execPath, [cli, tarball, '--no-emoji', '--no-color', ...more], { timeout: 120_000 });
    ask('--exclude-entrypoints', 'wasm');
    // What runs programs of C is an ES module alone, as what node --import takes.
    ask('--entrypoints', 'wasm', '--profile', 'esm-only');
  });
}

/** node-rdma has a package of its own, which has to bring all that it is built from. */
export function checkRdmaPackage(tally, folder, npm = ownNpm()) {
  const unpacked = join(folder, 'package');
  const isPacked = tally.check("node-rdma's own package holds what it is built from", () => {
    run(npm[0], [...npm.slice(1), 'pack', '--pack-destination', folder], { cwd: join(ROOT, 'native/rdma') });
    const [name] = readdirSync(folder).filter((entry) => entry.endsWith('.tgz'));
    run('tar', ['xzf', join(folder, name), '-C', folder]);
    const files = filesUnder(unpacked);
    for (const file of ['binding.gyp', 'index.js', 'src/addon.cc', 'common/napi-args.h'])
      demand(files.includes(file), `${file} is not there`);
    demand(!existsSync(join(ROOT, 'native/rdma/common')), 'the copy of native/common was left behind');
  });
  if (!isPacked) return;
  tally.check('node-rdma is built from its own package alone', () => {
    const headers = headersFolder(join(ROOT, '.cache'));
    const missing = verbsHeadersMissing() ?? headers.missing ?? (hasCompiler() ? undefined : 'no C++ compiler, make or python3');
    if (missing !== undefined) return { skipped: missing };
    const gyp = createRequire(join(ROOT, 'package.json')).resolve('node-gyp/bin/node-gyp.js');
    run(process.execPath, [gyp, '-C', unpacked, 'rebuild', '--loglevel=warn', `--nodedir=${headers.folder}`]);
    run(process.execPath, ['-e', `require(${JSON.stringify(join(unpacked, 'build/Release/rdma.node'))})`]);
  });
}

/**
 * Mistakes are planted in builds of the tests, each with a marker beside it. Every one is built here, so that the markers are those that
 * such a build has, and no file of the tarball has any.
 */
export async function checkPlanted(tally, unpacked, folder) {
  const loaded = join(folder, 'plant.mjs');
  // Inside the checkout, where its packages are found.
  const builds = mkdtempSync(join(ROOT, '.cache', 'package-planted-'));
  try {
    await bundleInto(builds, [join(ROOT, 'test/sim/mutants/plant.ts'), join(ROOT, 'test/sim/mutants/table.ts')], { sourcemap: false });
    const { buildWith, marker, mutantMarkers } = await import(pathToFileURL(join(builds, 'plant.mjs')).href);
    const { PLANTED } = await import(pathToFileURL(join(builds, 'table.mjs')).href);
    const unmarked = [];
    // Some of them, so that this check cannot pass for want of markers; of those that the part `sim` draws it looks at each build.
    const some = PLANTED.filter((_, i) => i % Math.ceil(PLANTED.length / 12) === 0);
    for (const { name } of some) {
      await buildWith('simulator', [name], loaded);
      if (!readFileSync(loaded, 'utf8').includes(marker(name))) unmarked.push(name);
    }
    tally.check('planted mistakes have their markers in a build, and no file of the tarball has one', () => {
      demand(PLANTED.length >= 10, `there are only ${PLANTED.length} mistakes`);
      demand(unmarked.length === 0, `no marker of ${unmarked.join(', ')} in its build`);
      for (const file of filesUnder(unpacked)) {
        const text = readFileSync(join(unpacked, file), 'latin1');
        for (const mark of mutantMarkers()) demand(!text.includes(mark), `${file} has ${mark}`);
      }
      return `${PLANTED.length} mistakes, ${some.length} of them built`;
    });
  } catch (error) {
    tally.check('the planted mistakes are built', () => demand(false, error.stack));
  } finally {
    rmSync(builds, { recursive: true, force: true });
  }
}

/** How much lies in node_modules, how much of it is for programs of C, and how many packages. */
export function measure(project) {
  const folder = join(project, 'node_modules');
  const files = filesUnder(folder).filter((file) => !/(^|\/)\.(package-lock\.json|yarn-|modules\.yaml|pnpm\/lock)/.test(file));
  const bytesOf = (list) => list.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  const bytes = bytesOf(files);
  const cBytes = bytesOf(files.filter((file) => C_FILES.test(file)));
  const packages = files.filter((file) => /(^|\/)node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(`node_modules/${file}`));
  return { bytes, cBytes, packages: packages.length };
}

export function checkSize(tally, project) {
  tally.check('what an application installs is small', () => {
    const { bytes, cBytes, packages } = measure(project);
    demand(packages > 0 && packages <= PACKAGES_MAX, `${packages} packages`);
    demand(cBytes > 0 && cBytes <= C_BYTES_MAX, `${cBytes} bytes for programs of C`);
    demand(bytes - cBytes <= BYTES_MAX, `${bytes - cBytes} bytes without what programs of C need`);
    return `${packages} packages, ${(bytes / 1e6).toFixed(1)} MB, of which ${(cBytes / 1000).toFixed(0)} kB are for programs of C`;
  });
}

/** Code blocks of README.md, word for word, that are whole programs. */
export function readmeBlocks() {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
  return [...text.matchAll(/^```(?:js|ts)\n([\s\S]*?)^```$/gm)]
    .map((match) => match[1])
    .filter((code) => code.includes("from 'multirail'"));
}

const COMMONJS = `const { init, ANY_SOURCE, Communicator, MultirailError } = require('multirail');
const { memoryStore, tolerance } = require('multirail/ft');
init().then(async (mpi) => {
  const { rank, size } = mpi.world;
  if (!(mpi.world instanceof Communicator)) throw new Error('the world is no Communicator');
  const byte = new Uint8Array(1);
  await Promise.all([mpi.world.send(Uint8Array.of(rank), (rank + 1) % size, 1), mpi.world.recv(byte, ANY_SOURCE, 1)]);
  try {
    await mpi.world.send(byte, size, 1);
  } catch (error) {
    if (!(error instanceof MultirailError)) throw error;
    console.log('from ' + byte[0] + ', ' + error.code);
  }
  try {
    tolerance({ domains: 0, duplication: 1, depth: 1 });
  } catch (error) {
    if (!(error instanceof MultirailError)) throw error;
    console.log('ft ' + error.code + ' ' + (await memoryStore().list('')).length);
  }
  await mpi.finalize();
});
`;

const TYPESCRIPT = `import { ANY_SOURCE, Communicator, init, MultirailError, Op, PersistentRequest, Request, Status } from 'multirail';
import type { CallOptions, ErrorCode, InitOptions, MessageBuffer, RailInfo, Runtime } from 'multirail';
import { fileStore, memoryStore, plan, readImage, recoveryLine, s3Store } from 'multirail/ft';
import type { Plan, PlanInput, Scheme, Store } from 'multirail/ft';

const options: InitOptions = {};
const mpi: Runtime = await init(options);
const world: Communicator = mpi.world;
const classes = [Communicator, PersistentRequest, Request, Status];
const buffer: MessageBuffer = new Float64Array(8);
const call: CallOptions = { timeoutMs: 1000 };
const request: Request = world.irecv(buffer, ANY_SOURCE, 3, call);
await world.send(new Float64Array(8), world.rank, 3);
const status: Status = await request;
const rails: readonly RailInfo[] = mpi.rails();
await world.allreduce(new Int32Array(2), new Int32Array(2), Op.SUM);
let code: ErrorCode | undefined;
try {
  await world.send(buffer, -7, 3);
} catch (error) {
  if (error instanceof MultirailError) code = error.code;
}
const input: PlanInput = { mtbfSeconds: [7200], costSeconds: [1] };
const planned: Plan = plan(input);
const scheme: Scheme = { domains: 12, duplication: 2, depth: 3 };
const stores: Store[] = [fileStore('saves'), memoryStore(), s3Store({ endpoint: 'http://127.0.0.1:1', bucket: 'saves' })];
try {
  readImage(new Uint8Array(8));
} catch (error) {
  if (!(error instanceof MultirailError) || error.code !== 'ERR_CORRUPT') throw error;
}
console.log(planned.levels[0].young.periodSeconds, recoveryLine(8, [0, 1, 2, 8], scheme)?.save, stores.length);
console.log(classes.length, status instanceof Status, status.count(Float64Array), rails.length >= 0, code);
await mpi.finalize();
`;

/**
 * Uses the installed package. `multirail` is the command that starts multirail there, which differs where the package manager has no
 * node_modules. Answers how such a command is started.
 */
export function checkInstalled(tally, { project, multirail, env, hasBinary = true }) {
  const at = { cwd: project, env };
  const start = (command, args) => run(command[0], [...command.slice(1), ...args], at);
  tally.check('multirail info says that the native part is loaded, and finds node-rdma and the addon for BLAS', () => {
    const said = start(multirail, ['info']);
    if (!hasBinary) return { skipped: 'the tarball has no binary for this machine' };
    demand(/^Native part +loaded from .*prebuilds/m.test(said), said);
    demand(!/node-rdma (is not|has no)|no native part for BLAS/.test(said), said);
  });
  for (const [i, block] of readmeBlocks().entries()) {
    tally.check(`block ${i + 1} of README.md runs on four ranks`, () => {
      if (!hasBinary && /Sync\(/.test(block)) return { skipped: 'blocking calls need the native part' };
      writeFileSync(join(project, `readme-${i + 1}.mjs`), block);
      const said = start(multirail, ['run', '-n', '4', `readme-${i + 1}.mjs`]);
      if (block.includes('hello from rank')) {
        for (const rank of [1, 2, 3]) demand(said.includes(`hello from rank ${rank} (17 bytes, tag 7)`), said);
      }
    });
  }
  tally.check('a CommonJS program', () => {
    writeFileSync(join(project, 'ring.cjs'), COMMONJS);
    const said = start(multirail, ['run', '-n', '2', 'ring.cjs']);
    demand(said.includes('from 1, ERR_RANK') && said.includes('from 0, ERR_RANK') && said.includes('ft ERR_ARG 0'), said);
  });
  return start;
}

/** The types, for a consumer that checks everything. Needs a project with node_modules. */
export function checkTypes(tally, { project, start, node }) {
  const types = join(project, 'node_modules/@types');
  if (!existsSync(types)) symlinkSync(join(ROOT, 'node_modules/@types'), types);
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  writeFileSync(join(project, 'consumer.mts'), TYPESCRIPT);
  for (const [i, block] of readmeBlocks().entries()) writeFileSync(join(project, `readme-${i + 1}.mts`), block);
  const sources = ['consumer.mts', ...readmeBlocks().map((_, i) => `readme-${i + 1}.mts`)];
  const common = ['--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--lib', 'es2023,esnext.disposable', '--types', 'node'];
  const compile = (...args) => run(process.execPath, [tsc, ...common, ...args, ...sources], { cwd: project });
  tally.check('strict TypeScript, module resolution of a bundler, and the blocks of README.md', () => {
    compile('--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler');
  });
  tally.check('strict TypeScript, module resolution of Node (NodeNext), and what it makes runs', () => {
    compile('--outDir', 'out', '--module', 'nodenext', '--moduleResolution', 'nodenext');
    const said = start(node, ['out/consumer.mjs']);
    demand(said.includes('4 true 8 true ERR_RANK') && said.includes('120 7 3'), said);
  });
}
