// Builds the binaries that the packages carry, multirail's into native/prebuilds and those of node-rdma into native/rdma/prebuilds: one per
// processor and C library.
//   node native/scripts/prebuilds.mjs            all that can be built here
//   node native/scripts/prebuilds.mjs x64-glibc  only these
//   MULTIRAIL_PREBUILD_APT=0                     installs no Debian packages
// Each is built in a scratch folder, so that the binary in native/build stays. Ends with 1 when one was refused by its checks or the
// one of this machine could not be built; what is missing for the others is said and is no failure.
// Runs prebuildify, and apt-get where it is root.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headersFolder, verbsHeadersMissing, verbsInclude } from './headers.mjs';

const NATIVE = dirname(dirname(fileURLToPath(import.meta.url)));
const SCRATCH = join(dirname(NATIVE), '.cache', 'prebuilds');
/** The headers of libibverbs and what of the kernel's they need: the same for every processor. */
const VERBS_HEADERS = ['infiniband', 'rdma'];
const PACKAGES = [
  { folder: NATIVE, works: "addon.crc32c(Buffer.from('123456789'), 0, 9, 0) === 0xe3069283" },
  { folder: join(NATIVE, 'rdma'), works: 'addon.abi === 1', needsVerbs: true },
].map((one) => ({ ...one, name: JSON.parse(readFileSync(join(one.folder, 'package.json'), 'utf8')).name }));
/** What Node 20 itself asks for; a binary must not ask for more. */
const GLIBC_MAX = [2, 28];

const TARGETS = [
  { arch: 'x64', libc: 'glibc', compiler: 'g++', strip: 'strip', packages: ['g++', 'make'], machine: 'X86-64' },
  {
    arch: 'x64',
    libc: 'musl',
    compiler: 'g++',
    strip: 'strip',
    packages: ['g++', 'make', 'musl-dev'],
    machine: 'X86-64',
    musl: '/usr/include/x86_64-linux-musl',
    muslLibraries: '/usr/lib/x86_64-linux-musl',
    kernel: '/usr/include',
    asm: '/usr/include/x86_64-linux-gnu/asm',
  },
  {
    arch: 'arm64',
    libc: 'glibc',
    compiler: 'aarch64-linux-gnu-g++',
    strip: 'aarch64-linux-gnu-strip',
    packages: ['g++-aarch64-linux-gnu', 'make'],
    machine: 'AArch64',
  },
  {
    arch: 'arm64',
    libc: 'musl',
    compiler: 'aarch64-linux-gnu-g++',
    strip: 'aarch64-linux-gnu-strip',
    packages: ['g++-aarch64-linux-gnu', 'make'],
    machine: 'AArch64',
    // Of another architecture than this Debian, so it is unpacked beside and not installed.
    unpacked: { packages: ['musl', 'musl-dev'], architecture: 'arm64' },
    musl: join(SCRATCH, 'unpacked-arm64', 'usr/include/aarch64-linux-musl'),
    muslLibraries: join(SCRATCH, 'unpacked-arm64', 'lib/aarch64-linux-musl'),
    kernel: '/usr/aarch64-linux-gnu/include',
    asm: '/usr/aarch64-linux-gnu/include/asm',
  },
];

const output = (command, ...args) => spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
const present = (command) => output(command, '--version').status === 0;

/** Fetches packages of another architecture by apt, with lists and cache of its own, and unpacks them; the system stays as it is. */
function unpack({ packages, architecture }) {
  const folder = join(SCRATCH, `unpacked-${architecture}`);
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
  for (const step of [['update'], ['download', ...packages]]) spawnSync('apt-get', [...options, '-qq', ...step], { cwd, stdio: 'inherit' });
  for (const file of readdirSync(cwd)) spawnSync('dpkg-deb', ['-x', join(cwd, file), folder], { stdio: 'inherit' });
  rmSync(apt, { recursive: true, force: true });
}

/** Debian packages are taken where this is root on Debian. Answers what is still missing. */
function provide(target) {
  const paths = [target.musl, target.kernel].filter((path) => path !== undefined);
  const lacks = () => [...(present(target.compiler) ? [] : [target.compiler]), ...paths.filter((path) => !existsSync(path))];
  if (lacks().length === 0) return [];
  if (process.getuid() !== 0 || !present('apt-get') || process.env.MULTIRAIL_PREBUILD_APT === '0') return lacks();
  const name = `${target.arch}-${target.libc}`;
  if (!present(target.compiler) || !target.unpacked) {
    console.log(`${name}: installing the Debian packages ${target.packages.join(', ')}`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...target.packages], { env, stdio: 'inherit' });
  }
  if (target.unpacked && !existsSync(target.musl)) {
    console.log(
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
    link: script(join(folder, 'musl-link'), `exec ${target.compiler} -nostdlib "$@" -L${target.muslLibraries} -lc -lgcc`),
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
  console.log(
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

function build(one, target) {
  const folder = join(SCRATCH, `${one.name}-${target.arch}-${target.libc}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const part of ['package.json', 'binding.gyp', 'src']) cpSync(join(one.folder, part), join(folder, part), { recursive: true });
  const tools = target.musl ? muslCompiler(target, folder) : { compiler: target.compiler, link: target.compiler };
  const env = {
    ...process.env,
    CC: tools.compiler,
    CXX: tools.compiler,
    LINK: tools.link,
    PREBUILD_LIBC: target.libc,
    ...(one.needsVerbs ? { RDMA_INCLUDE: verbsAlone } : {}),
    npm_config_nodedir: headers.folder,
    npm_config_loglevel: 'warn',
  };
  const bin = createRequire(import.meta.url).resolve('prebuildify/bin.js');
  const args = [bin, '--napi', '--strip', '--tag-libc', '--platform', 'linux', '--arch', target.arch, '--strip-bin', target.strip];
  const made = spawnSync(process.execPath, [...args, '--cwd', folder, '--out', one.folder], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const path = join(one.folder, 'prebuilds', `linux-${target.arch}`, `${one.name}.${target.libc}.node`);
  if (made.status !== 0 || !existsSync(path)) return 'the build failed';
  const wrong = check(target, path, one.works);
  if (wrong !== undefined) rmSync(path);
  else rmSync(folder, { recursive: true, force: true });
  return wrong;
}

if (process.platform !== 'linux') {
  console.error(`prebuilds: the native part is for Linux, this is ${process.platform}`);
  process.exit(1);
}
const headers = headersFolder(join(dirname(NATIVE), '.cache'));
if (headers.missing !== undefined) {
  console.error(`prebuilds: ${headers.missing}`);
  process.exit(1);
}
const withoutVerbs = verbsHeadersMissing();
const verbsAlone = withoutVerbs === undefined ? verbsHeadersAlone() : undefined;
const wanted = process.argv.slice(2);
const outcomes = [];
for (const target of TARGETS) {
  const name = `${target.arch}-${target.libc}`;
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const lacking = provide(target);
  for (const one of PACKAGES) {
    const why = lacking.length > 0 ? `no ${lacking.join(', no ')}` : one.needsVerbs ? withoutVerbs : undefined;
    const wrong = why === undefined ? build(one, target) : undefined;
    outcomes.push(
      `${one.name} linux-${name}: ${why !== undefined ? `not built: ${why}` : wrong === undefined ? 'built' : `refused: ${wrong}`}`,
    );
    const isNeeded = target.arch === process.arch && target.libc === 'glibc' && !one.needsVerbs;
    if (wrong !== undefined || (why !== undefined && isNeeded)) process.exitCode = 1;
  }
}
console.log(['prebuilds:', ...outcomes.map((line) => `  ${line}`)].join('\n'));
