// Makes a root file system of Debian 13 from this machine's own Debian mirror, the one that apt is configured with: for what Debian 12 does not
// have, such as Open MPI 5. Plain JavaScript, since scripts that run unbuilt use it. Needs root on Debian, and mmdebstrap, which it installs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import process from 'node:process';

const SUITE = 'trixie';
const MAKE_LIMIT_MS = 1_200_000;

const run = (command, args, options = {}) => spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, ...options });

/** Where apt has this Debian from: the newer one is next to it. */
function mirror() {
  const own = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const targets = run('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', `Release: ${own}`, 'Origin: Debian']);
  const found = targets.stdout?.split('\n')[0];
  if (!found) throw new Error('apt has no lists of a Debian mirror (apt-get update)');
  return found;
}

function needMmdebstrap() {
  if (run('sh', ['-c', 'command -v mmdebstrap']).status === 0) return;
  if (process.env.MULTIRAIL_TEST_APT === '0') throw new Error('needs mmdebstrap (MULTIRAIL_TEST_APT=0 forbids installing)');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const done = run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'mmdebstrap'], { env });
  if (done.status !== 0) throw new Error(`mmdebstrap could not be installed: ${done.stderr.trim().split('\n').pop()}`);
}

/**
 * Made once, and put in place when it is whole.
 *
 * @param {string} folder One for each choice of packages.
 * @param {readonly string[]} packages Besides those that apt needs.
 * @throws Error: it cannot be made here; the message says why.
 */
export function makeDebian13(folder, packages) {
  if (existsSync(folder)) return;
  needMmdebstrap();
  console.log('making the root file system of Debian 13 (once; about a minute)');
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  const args = ['--quiet', '--mode=root', '--variant=apt', `--include=${packages.join(',')}`, SUITE, part, mirror()];
  const made = run('mmdebstrap', args, { timeout: MAKE_LIMIT_MS });
  if (made.error !== undefined) throw new Error(`mmdebstrap did not end well: ${made.error.message}`);
  if (made.status !== 0) throw new Error(`mmdebstrap failed: ${made.stderr.trim().split('\n').slice(-3).join(' ')}`);
  renameSync(part, folder);
}
