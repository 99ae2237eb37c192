// Builds the binaries that the packages carry, those of the native part into native/addon/prebuilds, and of each other part (parts.mjs) into
// its own folder of that name: one per processor and C library.
//   node native/scripts/prebuilds.mjs                all that can be built here
//   node native/scripts/prebuilds.mjs x64-glibc      only these
//   node native/scripts/prebuilds.mjs --for-package  as a step of `npm pack`: a missing one is an error, and all that is missing is named
//   MULTIRAIL_PREBUILDS=some                         a package with fewer binaries will do (the step of `npm pack` then only says so)
//   MULTIRAIL_PREBUILD_APT=0                         installs no Debian packages
// Each is built in a scratch folder, so that the binary in native/addon/build stays. One that was built from the same sources is kept. Ends with
// 1 when one was refused by its checks or the one of this machine could not be built; what is missing for the others is said and is no
// failure by itself. Runs prebuildify, and apt-get where it is root.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { headersFolder, verbsHeadersMissing, verbsInclude } from './headers.mjs';
import { copySources, NATIVE, PARTS, sourcesOf } from './parts.mjs';

const SCRATCH = join(dirname(NATIVE), '.cache', 'prebuilds');
/** The headers of libibverbs and what of the kernel's they need: the same for every processor. */
const VERBS_HEADERS = ['infiniband', 'rdma'];
/** What a binary of each part is tried with, once it is loaded. */
const WORKS = {
  addon: "addon.crc32c(Buffer.from('123456789'), 0, 9, 0) === 0xe3069283",
  blas: "addon.abi === 1 && typeof addon.dgemm === 'function'",
  rdma: 'addon.abi === 2',
  impair: "addon.abi === 1 && typeof addon.forward === 'function'",
  pmix: "addon.abi === 1 && typeof addon.start === 'function'",
};
const PACKAGES = PARTS.map((part) => ({
  ...part,
  works: WORKS[part.key],
  name: JSON.parse(readFileSync(join(part.folder, 'package.json'), 'utf8')).name,
}));
/** What Node 20 itself asks for; a binary must not ask for more. */
const GLIBC_MAX = [2, 28];

/**
 * Pages of arm64 may have 64 KiB, and the linker fills a file up to the end of one for the sake of memory that is read-only after relocation: of
 * 67 kB of a small part 40 are zeros. Their tables of addresses stay writable instead.
 */
const NO_PADDING = '-Wl,-z,norelro';

const MACHINES = { x64: 'X86-64', arm64: 'AArch64' };
const PROCESSORS = { x64: 'x86_64', arm64: 'aarch64' };

/** What builds for one processor and C library on this machine: its own compiler, or Debian's cross compiler. */
function targetOf(arch, libc) {
  const isOwn = arch === process.arch;
  const gnu = `${PROCESSORS[arch]}-linux-gnu`;
  const prefix = isOwn ? '' : `${gnu}-`;
  const target = {
    arch,
    libc,
    machine: MACHINES[arch],
    compiler: `${prefix}g++`,
    strip: `${prefix}strip`,
    packages: [isOwn ? 'g++' : `g++-${gnu.replace('_', '-')}`, 'make'],
  };
  if (libc === 'glibc') return target;
  const musl = `${PROCESSORS[arch]}-linux-musl`;
  if (isOwn) {
    const system = {
      musl: `/usr/include/${musl}`,
      muslLibraries: [`/usr/lib/${musl}`],
      kernel: '/usr/include',
      asm: `/usr/include/${gnu}/asm`,
    };
    return { ...target, ...system, packages: [...target.packages, 'musl-dev'] };
  }
  const unpackedAt = join(SCRATCH, `unpacked-${arch}`);
  return {
    ...target,
    // Of another architecture than this Debian, so it is unpacked beside and not installed.
    unpacked: { packages: ['musl', 'musl-dev'], architecture: arch === 'x64' ? 'amd64' : arch, folder: unpackedAt },
    musl: join(unpackedAt, 'usr/include', musl),
    muslLibraries: [join(unpackedAt, 'lib', musl), join(unpackedAt, 'usr/lib', musl)],
    kernel: `/usr/${gnu}/include`,
    asm: `/usr/${gnu}/include/asm`,
  };
}

const TARGETS = Object.keys(MACHINES).flatMap((arch) => [targetOf(arch, 'glibc'), targetOf(arch, 'musl')]);

const output = (command, ...args) => spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
const present = (command) => output(command, '--version').status === 0;

/** Fetches packages of another architecture by apt, with lists and cache of its own, and unpacks them; the system stays as it is. */
function unpack({ packages, architecture, folder }) {
  const apt = join(SCRATCH, `apt-${architecture}`);
  for (const part of ['lists/partial', 'cache/archives/partial', 'packages']) mkdirSync(join(apt, part), { recursive: true });
  writeFileSync(join(apt, 'status'), '');
  const settings = { 'APT::Architecture': architecture, 'APT::Architectures': architecture, 'APT::Sandbox::User': 'root' };
  Object.assign(settings, {
    'Dir::State::lists': join(apt, 'lists'),
    'Dir::State::status': join(apt, 'status'),
    'Dir::Cache': join(apt, 'cache'),
  });
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  const cwd = join(apt, 'packages');
  for (const step of [['update'], ['download', ...packages]])
    spawnSync('apt-get', [...options, '-qq', ...step], { cwd, stdio: ['ignore', 2, 2] });
  for (const file of readdirSync(cwd)) spawnSync('dpkg-deb', ['-x', join(cwd, file), folder], { stdio: ['ignore', 2, 2] });
  rmSync(apt, { recursive: true, force: true });
}

const mayInstall = () => process.getuid?.() === 0 && present('apt-get') && process.env.MULTIRAIL_PREBUILD_APT !== '0';

function install(why, packages) {
  console.error(`${why}: installing the Debian packages ${packages.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // Others may be installing something just now.
  const step = (...args) => spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=300', ...args], { env, stdio: ['ignore', 2, 2] }).status === 0;
  const take = () => step('install', '-y', '-qq', '--no-install-recommends', ...packages);
  if (!take() && step('update', '-qq')) take();
}

/** The headers of libibverbs, where they may be installed. Answers why they are not there. */
function provideVerbs() {
  if (verbsHeadersMissing() !== undefined && mayInstall()) install('node-rdma', ['libibverbs-dev']);
  return verbsHeadersMissing();
}

/** Debian packages are taken where this is root on Debian. Answers what is still missing. */
function provide(target) {
  const paths = [target.musl, target.kernel].filter((path) => path !== undefined);
  const lacks = () => [...(present(target.compiler) ? [] : [target.compiler]), ...paths.filter((path) => !existsSync(path))];
  if (lacks().length === 0) return [];
  if (!mayInstall()) return lacks();
  const name = `${target.arch}-${target.libc}`;
  if (!present(target.compiler) || !target.unpacked) install(name, target.packages);
  if (target.unpacked && !existsSync(target.musl)) {
    console.error(
      `${name}: unpacking (not installing) the Debian packages ${target.unpacked.packages.join(', ')} of ${target.unpacked.architecture}`,
    );
    unpack(target.unpacked);
  }
  return lacks();
}

function script(path, text) {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

/**
 * The compiler of a musl target. Debian's musl has no C++; none of its library is used here, so g++ with musl's headers does, and
 * gcc links against musl and nothing else.
 */
function muslCompiler(target, folder) {
  const kernel = join(folder, 'kernel-headers');
  mkdirSync(kernel);
  for (const part of ['linux', 'asm-generic']) symlinkSync(join(target.kernel, part), join(kernel, part));
  symlinkSync(target.asm, join(kernel, 'asm'));
  // All that libibverbs' header wants of the C++ library, and only for an unsigned number.
  const shim = join(folder, 'shim');
  mkdirSync(shim);
  writeFileSync(
    join(shim, 'limits'),
    'namespace std {\ntemplate <typename T> struct numeric_limits {\n' +
      '  static_assert(T(-1) > T(0), "unsigned only");\n  static constexpr T max() { return ~T(0); }\n};\n}\n',
  );
  const own = output(target.compiler, '-print-file-name=include').stdout.trim();
  const include = `-nostdinc -nostdinc++ -isystem ${target.musl} -isystem ${own} -isystem ${kernel} -isystem ${shim}`;
  return {
    compiler: script(join(folder, 'musl-g++'), `exec ${target.compiler} ${include} "$@"`),
    link: script(
      join(folder, 'musl-link'),
      `exec ${target.compiler} -nostdlib "$@" ${target.muslLibraries.map((path) => `-L${path}`).join(' ')} -lc -lgcc`,
    ),
  };
}

/** What is wrong with a binary, or undefined; prints what it asks of the system. */
function check(target, path, works) {
  const header = output('readelf', '-h', path).stdout;
  const needed = [...output('readelf', '-d', path).stdout.matchAll(/NEEDED.*\[(.*)\]/g)].map((match) => match[1]);
  const versions = [...output('readelf', '-V', path).stdout.matchAll(/GLIBC_(\d+)\.(\d+)/g)].map((match) => [
    Number(match[1]),
    Number(match[2]),
  ]);
  const floor = versions.sort((a, b) => a[0] - b[0] || a[1] - b[1]).at(-1);
  const symbols = output('readelf', '--dyn-syms', '-W', path).stdout;
  console.error(
    `${target.arch}-${target.libc}: ${statSync(path).size} bytes, needs ${needed.join(', ') || 'no library'}` +
      (floor === undefined ? '' : `, glibc ${floor.join('.')} or newer`),
  );
  if (!header.includes(target.machine)) return `it is not for ${target.machine}`;
  if (!/ napi_register_module_v1$/m.test(symbols)) return 'it exports no entry';
  if (needed.some((name) => /stdc\+\+|libgcc/.test(name))) return `it needs ${needed.join(', ')}`;
  // Without it a copy of the library would have been linked in, with a heap and an errno of its own.
  if (!needed.some((name) => name.startsWith('libc.'))) return 'it does not use the C library of the system';
  if (target.libc === 'musl' && floor !== undefined) return 'it needs glibc';
  if (target.libc === 'glibc' && floor === undefined) return 'it asks for no glibc';
  if (floor !== undefined && (floor[0] > GLIBC_MAX[0] || floor[1] > GLIBC_MAX[1])) return `it asks for glibc ${floor.join('.')}`;
  if (target.arch === process.arch && target.libc === 'glibc') {
    const tried = output(process.execPath, '-e', `const addon = require(${JSON.stringify(path)}); process.exit(${works} ? 0 : 1)`);
    if (tried.status !== 0) return `it does not load: ${tried.stderr.trim().split('\n').slice(0, 3).join(' ')}`;
  }
  return undefined;
}

/** The headers of libibverbs in a folder of their own, since beside them lie those of this machine's C library. */
function verbsHeadersAlone() {
  const folder = join(SCRATCH, 'rdma-include');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const part of VERBS_HEADERS) symlinkSync(join(verbsInclude, part), join(folder, part));
  return folder;
}

const pathOf = (one, target) => join(one.folder, 'prebuilds', `linux-${target.arch}`, `${one.name}.${target.libc}.node`);
const stampOf = (one, target) => join(SCRATCH, `${one.name}-${target.arch}-${target.libc}.json`);
const digest = (...contents) => contents.reduce((hash, content) => hash.update(content), createHash('sha256')).digest('hex');

/** Of everything that a binary is made from but the compiler: what was built from the same is kept. */
function sourcesDigest(one) {
  const scripts = ['prebuilds.mjs', 'headers.mjs', 'parts.mjs'].map((name) => join(NATIVE, 'scripts', name));
  const sources = sourcesOf(one).flatMap((name) => {
    const path = join(NATIVE, name);
    if (statSync(path).isFile()) return [path];
    const entries = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    return entries.map((entry) => join(entry.parentPath, entry.name));
  });
  const files = [...sources.sort(), ...scripts];
  return digest(...files.flatMap((file) => [`${relative(NATIVE, file)}\n`, readFileSync(file)]));
}

/** True when the binary that is there is the one that was built from these very sources. */
function isCurrent(one, target) {
  try {
    const { sources, binary } = JSON.parse(readFileSync(stampOf(one, target), 'utf8'));
    return sources === sourcesDigest(one) && binary === digest(readFileSync(pathOf(one, target)));
  } catch {
    return false;
  }
}

function build(one, target) {
  const folder = join(SCRATCH, `${one.name}-${target.arch}-${target.libc}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const sources = copySources(one, folder);
  const tools = target.musl ? muslCompiler(target, folder) : { compiler: target.compiler, link: target.compiler };
  const env = {
    ...process.env,
    CC: tools.compiler,
    CXX: tools.compiler,
    LINK: tools.link,
    PREBUILD_LIBC: target.libc,
    ...(target.arch === 'arm64' && one.key !== 'addon' ? { LDFLAGS: NO_PADDING } : {}),
    MAKEFLAGS: `-j${availableParallelism()}`,
    ...(one.needsVerbs ? { RDMA_INCLUDE: verbsHeadersAlone() } : {}),
    npm_config_nodedir: headers.folder,
    npm_config_loglevel: 'warn',
  };
  const bin = createRequire(import.meta.url).resolve('prebuildify/bin.js');
  const args = [bin, '--napi', '--strip', '--tag-libc', '--platform', 'linux', '--arch', target.arch, '--strip-bin', target.strip];
  // What the compiler says goes to standard error: `npm pack --json` has the other for itself.
  const made = spawnSync(process.execPath, [...args, '--cwd', sources, '--out', one.folder], { env, stdio: ['ignore', 2, 2] });
  const path = pathOf(one, target);
  if (made.status !== 0 || !existsSync(path)) return 'the build failed';
  const wrong = check(target, path, one.works);
  if (wrong !== undefined) {
    rmSync(path);
    return wrong;
  }
  writeFileSync(stampOf(one, target), JSON.stringify({ sources: sourcesDigest(one), binary: digest(readFileSync(path)) }));
  rmSync(folder, { recursive: true, force: true });
  return undefined;
}

const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const forPackage = process.argv.includes('--for-package');
const fewerWillDo = process.env.MULTIRAIL_PREBUILDS === 'some';
let headers;
let verbsReady;

/** Why this binary is not there afterwards; undefined when it is. */
function make(one, target, outcome) {
  if (isCurrent(one, target)) {
    outcome.text = 'unchanged';
    return;
  }
  // What was built from other sources, or by nobody knows whom, does not travel.
  rmSync(pathOf(one, target), { force: true });
  headers ??=
    process.platform === 'linux' ? headersFolder(join(dirname(NATIVE), '.cache')) : { missing: `this is ${process.platform}, not Linux` };
  if (one.needsVerbs) verbsReady ??= { missing: provideVerbs() };
  const lacking = headers.missing === undefined ? provide(target).map((what) => `no ${what}`) : [headers.missing];
  if (lacking.length === 0 && one.needsVerbs && verbsReady.missing !== undefined) lacking.push(verbsReady.missing);
  if (lacking.length > 0) {
    outcome.text = `not built: ${lacking.join(', ')}`;
    outcome.isMissing = true;
    return;
  }
  const wrong = build(one, target);
  outcome.text = wrong === undefined ? 'built' : `refused: ${wrong}`;
  outcome.isWrong = wrong !== undefined;
}

const outcomes = [];
for (const target of TARGETS) {
  const name = `${target.arch}-${target.libc}`;
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  for (const one of PACKAGES) {
    const outcome = {
      name: `${one.name} linux-${name}`,
      isNeeded: target.arch === process.arch && target.libc === 'glibc' && !one.needsVerbs,
    };
    make(one, target, outcome);
    outcomes.push(outcome);
  }
}
console.error(['prebuilds:', ...outcomes.map(({ name, text }) => `  ${name}: ${text}`)].join('\n'));
const missing = outcomes.filter(({ isMissing }) => isMissing);
const isFatal = forPackage ? !fewerWillDo : missing.some(({ isNeeded }) => isNeeded);
if (missing.length > 0 && forPackage) {
  console.error(
    `prebuilds: the package would have no binary for ${missing.map(({ name }) => name).join(', ')}. ` +
      (fewerWillDo
        ? 'MULTIRAIL_PREBUILDS=some: it is made all the same.'
        : 'On Debian, as root, what is missing is installed; else install what is named above, or say MULTIRAIL_PREBUILDS=some for a package that runs without the native part there.'),
  );
}
if (outcomes.some(({ isWrong }) => isWrong) || (missing.length > 0 && isFatal)) process.exitCode = 1;
