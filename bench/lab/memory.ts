// Memory of one process with many peers that are idle: real connections from other processes, which hold many ranks each. A smaller
// run is subtracted, so that what every process costs anyway does not count. Imports the lab, the files of this folder.
import { Lab } from '../../tools/lab/lab.ts';
import { program } from './job.ts';
import type { MemoryJobSpec, MemoryLine, MemorySample } from './memory-protocol.ts';
import { lineSplitter } from './protocol.ts';
import { type CommonOptions, Report } from './report.ts';
import { digits } from './stats.ts';

export interface MemoryOptions extends CommonOptions {
  peers: number;
  basePeers: number;
  rails: number;
  hosts: number;
}

const TARGET_KIB = 64;

export async function memory(options: MemoryOptions): Promise<number> {
  const { peers, basePeers, rails, hosts, mca, minutes } = options;
  if (basePeers >= peers) throw new Error('--base-peers must be less than --peers');
  const report = new Report('memory', options);
  const runs = new Map<number, Map<string, MemorySample>>();
  for (const count of [basePeers, peers]) {
    report.say(`${count} peers, ${count * rails} connections …`);
    const spec = { peers: count, rails, hosts: Math.min(hosts, count), mca: { btl: 'self,tcp', btl_tcp_if_include: 'lo', ...mca } };
    const samples = await runJob(options, spec, (minutes * 60_000) / 2, (text) => report.say(`   ${text}`));
    for (const [stage, sample] of samples) report.figure({ peers: count, stage, ...sample });
    runs.set(count, samples);
  }
  const rows: string[][] = [];
  for (const [stage, text] of [
    ['connected', 'connected, never used'],
    ['used', 'idle again after 64 B and 1 MiB both ways'],
  ] as const) {
    const [small, large] = [runs.get(basePeers)?.get(stage), runs.get(peers)?.get(stage)];
    if (small === undefined || large === undefined) {
      rows.push([text, '–', '–', '–', '–', '–', '–', '–', report.verdict(false)]);
      continue;
    }
    const perPeer = (field: keyof MemorySample) => (large[field] - small[field]) / (peers - basePeers) / 1024;
    const isGood = perPeer('rssBytes') <= TARGET_KIB && perPeer('jsBytes') <= TARGET_KIB && large.railsUp === peers * rails;
    rows.push([
      text,
      digits(perPeer('rssBytes')),
      digits(perPeer('privateBytes')),
      digits(perPeer('jsBytes')),
      digits(perPeer('arrayBufferBytes')),
      digits(perPeer('socketBytes')),
      digits(perPeer('sockstatBytes')),
      digits(large.cpuPercent, 2),
      `≤ ${TARGET_KIB}: ${report.verdict(isGood)}`,
    ]);
  }
  report.text(
    `One process, ${peers} peers with ${rails} rails each (${peers * rails} connections) from ${hosts} processes over loopback; growth per peer ` +
      `over a process with ${basePeers} peers, in KiB, after garbage collection. V8’s young generation grows with what a process ` +
      'allocates in a second, however many peers it has: both processes begin with one of full size (--min-semi-space-size=16). ' +
      'JavaScript: heapUsed + external (which holds the array buffers). ' +
      'Kernel, both ends of all connections together, not part of the target: memory in the buffers of this namespace by ss -m, and the TCP ' +
      'memory of the whole machine by /proc/net/sockstat.',
    '',
  );
  report.table(
    ['state', 'RSS', 'private', 'JavaScript', 'of it array buffers', 'kernel, ss', 'kernel, sockstat', 'CPU % in all', 'target KiB'],
    rows,
  );
  const whole = runs.get(peers)?.get('used');
  const start = runs.get(peers)?.get('start');
  if (whole !== undefined && start !== undefined)
    report.text(`The whole process: RSS ${mib(start.rssBytes)} before init(), ${mib(whole.rssBytes)} at the end.`);
  return report.end();
}

const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

async function runJob(
  { congestionControl }: MemoryOptions,
  spec: MemoryJobSpec,
  timeoutMs: number,
  say: (text: string) => void,
): Promise<Map<string, MemorySample>> {
  await using lab = await Lab.create({ nodes: 1, rails: [{}], congestionControl });
  const child = lab.spawn(0, [process.execPath, program('lab-memory-job'), JSON.stringify(spec)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const samples = new Map<string, MemorySample>();
  child.stdout?.setEncoding('utf8').on(
    'data',
    lineSplitter((line) => {
      const message = JSON.parse(line) as MemoryLine;
      if (message.type === 'sample') samples.set(message.stage, message.sample);
      say(
        message.type === 'sample'
          ? `${message.stage}: RSS ${mib(message.sample.rssBytes)}, rails up ${message.sample.railsUp}`
          : message.text,
      );
    }),
  );
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  if (isLate) throw new Error(`the run with ${spec.peers} peers did not end within ${Math.round(timeoutMs / 1000)} s`);
  if (code !== 0) throw new Error(`the run with ${spec.peers} peers ended with code ${code}`);
  return samples;
}
