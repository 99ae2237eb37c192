// `npm test` on a machine to which nothing was added by hand: in the root file system of a fresh Debian 12, made by mmdebstrap or
// debootstrap, with only Node and npm put into it, from a clean clone of the last commit.
//   node test/package/fresh-debian.mjs                      all parts of `npm test`
//   node test/package/fresh-debian.mjs unit package         only these
//   node test/package/fresh-debian.mjs -- COMMAND ARG …     a command in the clone instead
//   MULTIRAIL_FRESH_LIMIT_S=600                             ends it after that many seconds
// It needs root on Debian. The file system stays in .cache/fresh-debian as a tarball of packages only; what a run unpacks and installs is in
// a folder that is removed with it, and its mounts and processes are in namespaces that end with it.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, '.cache', 'fresh-debian');
const BASE = join(CACHE, 'bookworm.tar');
const MIRROR = 'http://deb.debian.org/debian';

function fail(text) {
  console.error(`fresh-debian: ${text}`);
  process.exit(1);
}

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { stdio: 'inherit', ...options });
  if (done.error !== undefined) fail(`${command}: ${done.error.message}`);
  return done.status ?? 1;
}

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;

/** The tarball of a Debian with apt and what is required, and nothing else. Made once. */
function makeBase() {
  if (existsSync(BASE)) return;
  mkdirSync(CACHE, { recursive: true });
  if (!has('mmdebstrap') && !has('debootstrap')) {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    if (run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'mmdebstrap'], { env }) !== 0)
      fail('needs mmdebstrap or debootstrap');
  }
  const made = `${BASE}.part.tar`;
  const suites = ['bookworm', 'bookworm-updates'].map((suite) => `deb ${MIRROR} ${suite} main`);
  const sources = [...suites, 'deb http://deb.debian.org/debian-security bookworm-security main'];
  if (has('mmdebstrap')) {
    const args = ['--variant=minbase', '--mode=root', '--include=ca-certificates', 'bookworm', made, ...sources];
    if (run('mmdebstrap', args) !== 0) fail('mmdebstrap could not make the file system');
  } else {
    const folder = join(CACHE, 'bootstrap');
    rmSync(folder, { recursive: true, force: true });
    if (run('debootstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', folder, MIRROR]) !== 0)
      fail('debootstrap failed');
    writeFileSync(join(folder, 'etc/apt/sources.list'), `${sources.join('\n')}\n`);
    if (run('tar', ['cf', made, '-C', folder, '.']) !== 0) fail('cannot keep the file system');
    rmSync(folder, { recursive: true, force: true });
  }
  renameSync(made, BASE);
}

/** Node and npm of this machine: one program, one folder of JavaScript. */
function putNode(root) {
  const node = realpathSync(process.execPath);
  copyFileSync(node, join(root, 'usr/local/bin/node'));
  const npm = [join(dirname(node), '../lib/node_modules/npm'), '/usr/share/npm'].find((folder) =>
    existsSync(join(folder, 'bin/npm-cli.js')),
  );
  if (npm === undefined) fail(`there is no npm beside ${node}`);
  mkdirSync(join(root, 'usr/local/lib/node_modules'), { recursive: true });
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true });
  for (const name of ['npm', 'npx']) {
    writeFileSync(join(root, 'usr/local/bin', name), `#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/${name}-cli.js "$@"\n`, {
      mode: 0o755,
    });
  }
}

/** How this machine reaches the network: names, certificates, proxies of apt. */
function putNetwork(root) {
  for (const path of ['etc/resolv.conf', 'etc/hosts', 'etc/ssl/certs/ca-certificates.crt']) {
    if (existsSync(`/${path}`)) writeFileSync(join(root, path), '', { flag: 'a' });
    if (existsSync(`/${path}`)) copyFileSync(`/${path}`, join(root, path));
  }
  for (const name of existsSync('/etc/apt/apt.conf.d') ? readdirSync('/etc/apt/apt.conf.d') : []) {
    if (/proxy/i.test(name)) copyFileSync(join('/etc/apt/apt.conf.d', name), join(root, 'etc/apt/apt.conf.d', name));
  }
}

function main() {
  if (process.platform !== 'linux' || process.getuid() !== 0) fail('needs root on Linux');
  if (!has('apt-get')) fail("needs Debian's apt-get");
  makeBase();
  const root = join(CACHE, `root-${process.pid}`);
  mkdirSync(root, { recursive: true });
  let status = 1;
  try {
    if (run('tar', ['xpf', BASE, '-C', root]) !== 0) fail('cannot unpack the file system');
    mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
    putNode(root);
    putNetwork(root);
    if (run('git', ['clone', '-q', '--no-hardlinks', ROOT, join(root, 'multirail')]) !== 0) fail('cannot clone the checkout');
    const words = process.argv.slice(2);
    const isCommand = words[0] === '--';
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const body = isCommand
      ? words.slice(1).map(quoted).join(' ')
      : `npm install --no-audit --no-fund && MULTIRAIL_TEST_ONLY=${quoted(words.join(' '))} npm test`;
    // A user's shell in it: nothing of this checkout's environment but the way to the network.
    const keep = Object.entries(process.env).filter(([name]) =>
      /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|npm_config_registry)$/i.test(name),
    );
    const env = Object.fromEntries([
      ...keep,
      ['HOME', '/srv'],
      ['PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      ['LANG', 'C.UTF-8'],
    ]);
    const mounts = [
      // A root file system has to be a mount of its own for those who make overlays over it.
      'mount --bind "$1" "$1"',
      'mount -t proc proc "$1/proc"',
      'mount --rbind /sys "$1/sys"',
      'mount --rbind /dev "$1/dev"',
      'mount -t tmpfs -o mode=1777 tmp "$1/tmp"',
      'mount -t tmpfs -o mode=755 run "$1/run"',
      `exec chroot "$1" /bin/sh -c "$2"`,
    ];
    const inside = ['sh', '-ec', mounts.join('\n'), 'sh', root, `cd /multirail && ${body}`];
    const limit = process.env.MULTIRAIL_FRESH_LIMIT_S;
    const timeout = limit === undefined ? {} : { timeout: Number(limit) * 1000, killSignal: 'SIGKILL' };
    status = run('unshare', ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private', ...inside], { env, ...timeout });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  process.exitCode = status;
}

main();
