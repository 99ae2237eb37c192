// A rank of the campaign of bad links: audited traffic, with a record of what was delivered when, told to the campaign over its control
// socket. Rank 0 is told to go, to pause and to stop. Argument: JSON of GraySpec.
// Imports the product's public face, lab-protocol, gray-protocol, gray-rank-traffic.
import { connect } from 'node:net';
import { init } from '../../src/index.ts';
import { type FromGrayRank, GRAY_TRAFFICS, type GrayBytes, type GrayRail, type GraySpec, type ToGrayRank } from './gray-protocol.ts';
import { type GrayContext, GrayDeliveries, Pace, runGrayTraffic } from './gray-rank-traffic.ts';
import { lineSplitter, nowMs } from './protocol.ts';

const RAILS_UP_TIMEOUT_MS = 20_000;

const spec = JSON.parse(process.argv[2]) as GraySpec;
const mpi = await init();
const { rank, size } = mpi;
const control = connect(spec.control);
control.setEncoding('utf8');
// The campaign is gone: nobody wants the rest.
control.on('error', () => process.exit(1));
const say = (message: FromGrayRank) => control.write(`${JSON.stringify(message)}\n`);
say({ type: 'hello', rank, pid: process.pid });

const pace = new Pace();
control.on(
  'data',
  lineSplitter((line) => pace[(JSON.parse(line) as ToGrayRank).type]()),
);
mpi.on('rail', (event) => {
  if (event.peer !== rank) say({ type: 'rail', at: nowMs(), event: event.type, key: event.key, peer: event.peer, reason: event.reason });
});

const railsToPeers = () => mpi.rails().filter(({ peer }) => peer !== rank);
const deadline = nowMs() + RAILS_UP_TIMEOUT_MS;
while (railsToPeers().filter(({ state }) => state === 'UP').length < spec.rails * (size - 1)) {
  if (nowMs() > deadline) {
    const states = railsToPeers().map(({ key, state, lastReason }) => `${key} ${state} ${lastReason ?? ''}`);
    throw new Error(
      `rank ${rank}: ${spec.rails} rails to each rank were to come up, but: ${states.join('; ') || 'there is none'}; set btl_tcp_if_include or btl_ws_if_include to the rails of the lab`,
    );
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
}

const deliveries = new GrayDeliveries(spec.gapMinMs, GRAY_TRAFFICS[spec.traffic].streams);
function report(): void {
  const byRail = new Map<number, GrayRail>();
  let handed = 0;
  for (const { key, state, counters } of railsToPeers()) {
    const rail = Number(/mr(\d+)-/.exec(key)?.[1]);
    const sum = byRail.get(rail) ?? { rail, up: 0, of: 0, framesReceived: 0 };
    byRail.set(rail, sum);
    sum.up += state === 'UP' ? 1 : 0;
    sum.of++;
    sum.framesReceived += counters.framesReceived;
    handed += counters.payloadBytesSent;
  }
  const { pml } = mpi.counters();
  const bytes: GrayBytes = {
    delivered: deliveries.bytes,
    sentAgain: pml.bytesResent + pml.bytesHedged,
    beyondOnce: handed - pml.bytesSent,
  };
  const { lastAt, messages } = deliveries;
  say({ type: 'report', at: nowMs(), lastAt, messages, bytes, gaps: deliveries.takeGaps(), rails: [...byRail.values()] });
}

const onPaused = () => say({ type: 'paused', at: nowMs() });
const context: GrayContext = { mpi, deliveries, pace, errors: [], plant: spec.plant, onPaused };
report();
say({ type: 'ready', at: nowMs() });
const reporting = setInterval(report, spec.reportEveryMs);
const { sent, received } = await runGrayTraffic(spec.traffic, context);
clearInterval(reporting);
report();
const counters = { ...mpi.counters().pml } as unknown as Record<string, number>;
await mpi.finalize();
say({ type: 'done', sent, received, errors: context.errors, counters });
control.end();
