// The peer of the campaign of bad links: gray-peer.c, the same traffic over Multipath TCP of the kernel, or over TCP where it has one rail.
// Imports the lab, gray-job, gray-protocol, lab-job, node: modules.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { type Lab, LabError, sleep } from '../../tools/lab/lab.ts';
import { GrayJob } from './gray-job.ts';
import { GRAY_TRAFFICS, type GrayTraffic } from './gray-protocol.ts';
import { JobError, openControl, program } from './job.ts';

const SOURCE = join('bench', 'lab', 'gray-peer.c');
/** Beside the programs of this measurement, with which it goes. */
const binary = () => join(dirname(program('gray-rank')), 'gray-peer');
const JOIN_ATTEMPTS = 3;
const JOIN_WAIT_MS = 2000;
const JOIN_LOOK_MS = 50;
/** Each job listens at ports of its own: one is there beside another, and those of the one before may not be free yet. */
let nextPort = 7700;
const PORTS_A_JOB = 4;
/** Connections of each traffic. */
const CONNECTIONS: Record<GrayTraffic, number> = { bulk: 1, small: 1, pingpong: 1, mixed: 2, allreduce: 4 };

/** Why there is no peer here, if there is none. Compiles it. */
export function whyNoPeers(): string | undefined {
  const { status, error, stderr } = spawnSync('gcc', ['-O2', '-pthread', '-o', binary(), SOURCE], { encoding: 'utf8' });
  if (error !== undefined) return 'it needs gcc (Debian packages gcc and libc6-dev)';
  if (status !== 0) return `gcc: ${stderr.trim()}`;
  if (spawnSync(binary(), ['probe']).status !== 0) return 'this kernel makes no Multipath TCP sockets';
  return undefined;
}

/** Every node announces the addresses of its further rails, and whoever connects to it joins by them. */
async function allowPaths(lab: Lab): Promise<void> {
  for (let node = 0; node < lab.nodeCount; node++) {
    const lines = lab.rails.flatMap((_, rail) =>
      rail === 0 ? [] : [`endpoint add ${lab.address(node, rail)} dev ${lab.interfaceName(rail)} signal`],
    );
    for (const line of ['limits set subflow 8 add_addr_accepted 8', 'endpoint flush', ...lines]) {
      const { code, stderr } = await lab.exec(node, ['ip', 'mptcp', ...line.split(' ')]);
      if (code !== 0) throw new LabError(stderr.trim(), `ip mptcp ${line}`);
    }
  }
}

/** Further paths that were joined on all nodes so far. */
async function joinedPaths(lab: Lab): Promise<number> {
  let total = 0;
  for (let node = 0; node < lab.nodeCount; node++) {
    const { stdout } = await lab.exec(node, ['cat', '/proc/net/netstat']);
    const [names, values] = stdout.split('\n').filter((line) => line.startsWith('MPTcpExt:'));
    total += Number(values?.split(' ')[names.split(' ').indexOf('MPJoinSynAckRx')] ?? 0);
  }
  return total;
}

/** A job over these rails: of Multipath TCP if they are several, and then all of them have joined. */
export async function startPeer({ lab, traffic, rails }: { lab: Lab; traffic: GrayTraffic; rails: readonly number[] }): Promise<GrayJob> {
  const isMultipath = rails.length > 1;
  if (isMultipath) await allowPaths(lab);
  const expected = CONNECTIONS[traffic] * (rails.length - 1);
  for (let attempt = 1; ; attempt++) {
    const before = isMultipath ? await joinedPaths(lab) : 0;
    const job = await spawnPeer(lab, traffic, isMultipath ? 'mptcp' : 'tcp', rails[0]);
    if (!isMultipath) return job;
    // Paths join when data flows.
    job.go();
    let joined = 0;
    for (let waitedMs = 0; joined < expected && waitedMs < JOIN_WAIT_MS; waitedMs += JOIN_LOOK_MS) {
      await sleep(JOIN_LOOK_MS);
      joined = (await joinedPaths(lab)) - before;
    }
    await job.pause();
    if (joined >= expected) return job;
    await job.kill();
    if (attempt === JOIN_ATTEMPTS) throw new JobError(`${joined} of ${expected} further paths of Multipath TCP joined, ${attempt} times`);
  }
}

async function spawnPeer(lab: Lab, traffic: GrayTraffic, protocol: 'tcp' | 'mptcp', rail: number): Promise<GrayJob> {
  const { folder, control, server } = await openControl();
  const namespaces = Array.from({ length: GRAY_TRAFFICS[traffic].ranks }, (_, node) => lab.namespace(node));
  nextPort = nextPort > 30_000 ? 7700 : nextPort + PORTS_A_JOB;
  const argv = [binary(), traffic, protocol, String(rail), String(nextPort), control, ...namespaces];
  const child = lab.spawn(0, argv, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  return await GrayJob.attach({ child, folder, server }, traffic);
}
