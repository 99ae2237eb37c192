// One contender over rails between two network namespaces, which it makes and removes: veth pairs shaped by tbf at both ends, and one
// unshaped for the launcher. Needs root.
//   node rails.mjs tcp|mptcp|mr-one|mr-all MBIT,MBIT,...
// Imports node:*.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';

const [kind, rates] = process.argv.slice(2);
const mbits = rates.split(',').map(Number);
const PAIR = join(import.meta.dirname, '../.cache/bin/pair');
const A = 'mrpeers-a';
const B = 'mrpeers-b';
const JOIN_ATTEMPTS = 3;

function run(...words) {
  const { status, stderr } = spawnSync(words[0], words.slice(1), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${words.join(' ')}: ${stderr.trim()}`);
}
const ip = (line) => run('ip', ...line.split(' '));

function removeNamespaces() {
  for (const name of [A, B]) spawnSync('ip', ['netns', 'del', name], { stdio: 'ignore' });
}

/** Rail i is r<i> at both ends, 10.78.<i>.1 in A and 10.78.<i>.2 in B; job0, 10.78.99.0/24, is for the launcher. */
function makeNamespaces() {
  removeNamespaces();
  for (const name of [A, B]) {
    ip(`netns add ${name}`);
    ip(`-n ${name} link set lo up`);
  }
  const links = [
    ...mbits.map((mbit, i) => ({ dev: `r${i}`, subnet: `10.78.${i}`, mbit, index: 10 + i })),
    { dev: 'job0', subnet: '10.78.99', index: 30 },
  ];
  for (const { dev, subnet, mbit, index } of links) {
    // Equal indexes at both ends would make the kernel report carriers late.
    ip(`link add name ${dev} index ${index} netns ${A} type veth peer name ${dev} index ${index + 100} netns ${B}`);
    [A, B].forEach((name, end) => {
      // IPv4 alone: addresses of IPv6 take a second before they can be listened on.
      ip(`-n ${name} link set ${dev} addrgenmode none`);
      ip(`-n ${name} addr add ${subnet}.${end + 1}/24 dev ${dev}`);
      ip(`-n ${name} link set ${dev} up`);
      if (mbit !== undefined) run('tc', '-n', name, ...`qdisc add dev ${dev} root tbf rate ${mbit}mbit burst 256k latency 20ms`.split(' '));
    });
  }
}

async function contender(...words) {
  const child = spawn(words[0], words.slice(1), { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${kind} ended with ${code}`);
}

/** B announces the addresses of its further rails, and A connects to each. */
function allowPaths() {
  for (const name of [A, B]) ip(`-n ${name} mptcp limits set subflow 8 add_addr_accepted 8`);
  mbits.slice(1).forEach((_, i) => {
    ip(`-n ${B} mptcp endpoint add 10.78.${i + 1}.2 dev r${i + 1} signal`);
  });
}

/** How many further paths were joined since the namespace was made. */
function joinedPaths() {
  const { stdout } = spawnSync('ip', ['netns', 'exec', A, 'cat', '/proc/net/netstat'], { encoding: 'utf8' });
  const [names, values] = stdout.split('\n').filter((line) => line.startsWith('MPTcpExt:'));
  return Number(values?.split(' ')[names.split(' ').indexOf('MPJoinSynAckRx')] ?? 0);
}

const CONTENDERS = {
  tcp: () => contender(PAIR, 'block', '--unpinned', '--namespaces', A, B, '10.78.0.2'),
  async mptcp() {
    for (let attempt = 0; ; attempt++) {
      allowPaths();
      // A run in which a path did not join is one of TCP: it prints nothing, and another is made.
      const child = spawn(PAIR, ['block', '--unpinned', '--mptcp', '--namespaces', A, B, '10.78.0.2'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let text = '';
      child.stdout.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      const [code] = await once(child, 'close');
      if (code !== 0) throw new Error(`mptcp ended with ${code}`);
      const joined = joinedPaths();
      if (joined >= mbits.length - 1) return process.stdout.write(text);
      if (attempt === JOIN_ATTEMPTS - 1) throw new Error(`${joined} of ${mbits.length - 1} further paths joined, ${JOIN_ATTEMPTS} times`);
      makeNamespaces();
    }
  },
  'mr-one': () => multirail('r0'),
  'mr-all': () => multirail(mbits.map((_, i) => `r${i}`).join(',')),
};

function multirail(interfaces) {
  const options = ['--oob-listen', '10.78.99.1', '--mca', 'btl', 'self,tcp', '--mca', 'btl_tcp_if_include', interfaces];
  const inNamespace = ['sh', '-c', `if [ "$MULTIRAIL_RANK" = 1 ]; then exec ip netns exec ${B} "$@"; fi; exec "$@"`, 'rank'];
  const program = [process.execPath, join(import.meta.dirname, 'multirail-promise.mjs')];
  const launcher = [process.execPath, 'dist/cli.js', 'run', '-n', '2', '--no-prefix', ...options, '--', ...inNamespace, ...program];
  return contender('ip', 'netns', 'exec', A, ...launcher);
}

const open = CONTENDERS[kind];
if (open === undefined || mbits.some((mbit) => !(mbit > 0))) {
  console.error('usage: node rails.mjs tcp|mptcp|mr-one|mr-all MBIT,MBIT,...');
  process.exit(2);
}
try {
  makeNamespaces();
  await open();
} finally {
  removeNamespaces();
}
