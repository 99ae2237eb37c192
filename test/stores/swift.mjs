#!/usr/bin/env node
// Saves in a bucket of a real server: OpenStack Swift with its S3 interface, from Debian 13, in a root file system that mmdebstrap makes from this
// machine's own Debian mirror. What every store must do is asked of it, and a job that is killed as a whole goes on from a save in the bucket.
//
//   npm run test:s3                       half a minute once the file system is there
//   node test/stores/swift.mjs --serve    only starts the server, says where it is, and waits for Ctrl-C
//
// It needs root on Debian, and mmdebstrap (which it installs, unless MULTIRAIL_TEST_APT=0). The file system stays in .cache/debian13-swift; what runs
// in it is in namespaces that end with this script. Exits with 77 and says why where it cannot be done; the last line is
// "s3: N passed, N failed, N skipped".
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { s3Store } from '../../dist/ft.js';
import { makeDebian13 } from '../../tools/lab/debian13.mjs';
import { demand, Tally } from '../package/checks.mjs';
import { freePort } from '../support/free-port.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const PACKAGES = ['swift-proxy', 'swift-account', 'swift-container', 'swift-object', 'memcached'];
const BASE = join(ROOT, '.cache', 'debian13-swift');
/** In the file system: what this run's server is told, and where it keeps objects. */
const PLACE = '/srv/multirail';
const KEY = 'test:tester';
const SECRET = 'testing';
const BUCKET = 'saves';
const CANNOT = 77;
const START_LIMIT_MS = 60_000;
const PART_LIMIT_MS = 180_000;

function cannot(text) {
  console.error(`skipped: a real S3 server: ${text}`);
  console.log('s3: 0 passed, 0 failed, 1 skipped');
  process.exit(CANNOT);
}

/** The three servers that keep things; objects are files with extended attributes, so their folder is on a disk. */
const KEEPERS = ['account', 'container', 'object'];

const defaults = (port) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = root
swift_dir = ${PLACE}
devices = ${PLACE}/devices
mount_check = false
log_address = /dev/null
`;

function configure(ports) {
  const folder = join(BASE, PLACE);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'devices', 'd1'), { recursive: true });
  const write = (name, text) => writeFileSync(join(folder, name), text);
  write('swift.conf', '[swift-hash]\nswift_hash_path_suffix = multirail\nswift_hash_path_prefix = multirail\n');
  for (const kind of KEEPERS)
    write(
      `${kind}.conf`,
      `${defaults(ports[kind])}[pipeline:main]\npipeline = ${kind}-server\n[app:${kind}-server]\nuse = egg:swift#${kind}\n`,
    );
  const filters = ['catch_errors', 'proxy-logging', 'cache', 's3api', 'tempauth', 'slo'];
  const eggs = { 'proxy-logging': 'proxy_logging', cache: 'memcache' };
  const settings = {
    cache: `memcache_servers = 127.0.0.1:${ports.memcached}`,
    s3api: 'location = us-east-1',
    tempauth: 'user_test_tester = testing .admin',
  };
  write(
    'proxy.conf',
    [
      `${defaults(ports.proxy)}[pipeline:main]\npipeline = ${filters.join(' ')} proxy-server\n[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true`,
      ...filters.map((name) => `[filter:${name}]\nuse = egg:swift#${eggs[name] ?? name}\n${settings[name] ?? ''}`),
      '',
    ].join('\n'),
  );
  const rings = KEEPERS.flatMap((kind) => [
    `swift-ring-builder ${kind}.builder create 4 1 1`,
    `swift-ring-builder ${kind}.builder add r1z1-127.0.0.1:${ports[kind]}/d1 1`,
    `swift-ring-builder ${kind}.builder rebalance`,
  ]);
  const servers = [...KEEPERS, 'proxy'].map((kind) => `swift-${kind}-server ${PLACE}/${kind}.conf &`);
  const memcached = `memcached -l 127.0.0.1 -p ${ports.memcached} -u root &`;
  // The first server that ends ends all.
  write(
    'start.sh',
    ['set -e', `cd ${PLACE}`, ...rings.map((line) => `${line} >rings.log`), memcached, ...servers, 'wait -n', 'exit 1', ''].join('\n'),
  );
}

const MOUNTS = `mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" bash ${PLACE}/start.sh`;

async function startServer() {
  const ports = Object.fromEntries(await Promise.all([...KEEPERS, 'proxy', 'memcached'].map(async (kind) => [kind, await freePort()])));
  configure(ports);
  const child = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', MOUNTS, 'sh', BASE], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-4000)));
  process.on('exit', () => child.kill('SIGKILL'));
  const endpoint = `http://127.0.0.1:${ports.proxy}`;
  const endsAt = Date.now() + START_LIMIT_MS;
  for (;;) {
    if (child.exitCode !== null || Date.now() > endsAt) throw new Error(`the server has not started:\n${said}`);
    try {
      if ((await fetch(endpoint)).status > 0) return { endpoint, said: () => said };
    } catch {
      await delay(200);
    }
  }
}

/** Signed as all requests are. */
async function makeBucket(endpoint) {
  const { AwsClient } = await import('aws4fetch');
  const client = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, region: 'us-east-1', service: 's3' });
  const answer = await client.fetch(`${endpoint}/${BUCKET}`, { method: 'PUT' });
  if (!answer.ok) throw new Error(`the bucket cannot be made: ${answer.status} ${await answer.text()}`);
}

const tally = new Tally('s3');

function check(title, isRight, text) {
  tally.check(title, () => demand(isRight, text));
}

/** What is asked of every store, by the tests of all of them. */
function askStore(env) {
  const args = ['vitest', 'run', '--project', 'unit', 'test/unit/ft/stores.test.ts', '--reporter=json', '-t', 'a real server'];
  const { stdout, stderr } = spawnSync('npx', args, {
    cwd: ROOT,
    env,
    encoding: 'utf8',
    timeout: PART_LIMIT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  let cases = [];
  try {
    cases = JSON.parse(stdout.slice(stdout.indexOf('{')))
      .testResults.flatMap((file) => file.assertionResults)
      .filter(({ status }) => status !== 'skipped' && status !== 'pending');
  } catch {
    // Said below.
  }
  check('the tests of stores ran', cases.length > 0, `${stdout}\n${stderr}`);
  for (const { fullName, status, failureMessages } of cases) check(fullName, status === 'passed', failureMessages.join('\n'));
}

const HEAT = [
  'dist/cli.js',
  'run',
  '-n',
  '4',
  '--mca',
  'ft',
  'on',
  '--mca',
  'ft_job',
  'plate',
  'examples/ft-heat.mjs',
  '--seconds',
  '6',
  '--every',
  '10',
  '--bucket',
];

function startHeat(env, endpoint) {
  const child = spawn(process.execPath, [...HEAT, `${endpoint}/${BUCKET}`], {
    cwd: ROOT,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  const limit = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), PART_LIMIT_MS);
  child.on('close', () => clearTimeout(limit));
  const ended = new Promise((resolve) => child.on('close', (code) => resolve({ code, said })));
  return { child, ended };
}

/** Everything is killed at once when there is a save in the bucket; the same command goes on from it. */
async function restartJob(env, endpoint) {
  const store = s3Store({ endpoint, bucket: BUCKET });
  const first = startHeat(env, endpoint);
  const endsAt = Date.now() + START_LIMIT_MS;
  let keys = [];
  while (Date.now() < endsAt && first.child.exitCode === null && !keys.some((key) => key.endsWith('/COMMIT.json'))) {
    keys = (await store.list('')).map(({ key }) => key);
    await delay(50);
  }
  process.kill(-first.child.pid, 'SIGKILL');
  const { said } = await first.ended;
  check(
    'a job saves into the bucket while it runs',
    keys.some((key) => key.endsWith('/COMMIT.json')),
    `${keys.join('\n')}\n${said}`,
  );
  const again = await startHeat(env, endpoint).ended;
  check(
    'killed as a whole and started again, it goes on from the bucket, and its result is right',
    again.code === 0 && /resumed from step [1-9]\d* in the bucket/.test(again.said),
    again.said,
  );
}

if (process.getuid?.() !== 0) cannot('needs root');
try {
  makeDebian13(BASE, PACKAGES);
} catch (error) {
  cannot(error.message);
}
const { endpoint } = await startServer();
process.env.AWS_ACCESS_KEY_ID = KEY;
process.env.AWS_SECRET_ACCESS_KEY = SECRET;
await makeBucket(endpoint);
if (process.argv.includes('--serve')) {
  console.log(`${endpoint}, bucket ${BUCKET}; AWS_ACCESS_KEY_ID=${KEY} AWS_SECRET_ACCESS_KEY=${SECRET}`);
  await new Promise((resolve) => process.once('SIGINT', resolve));
  process.exit(0);
}
const env = { ...process.env, MULTIRAIL_TEST_S3: endpoint };
askStore(env);
await restartJob(env, endpoint);
tally.end();
process.exit();
