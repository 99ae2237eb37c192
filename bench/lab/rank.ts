// A measured rank: audited traffic between two ranks, with a record of what was delivered when, told to the measurement over its
// control socket. Rank 0 sends, rank 1 receives (and answers, in a ping-pong). Argument: JSON of RankSpec.
// Imports the product's public face, lab-protocol, lab-rank-traffic.
import { connect } from 'node:net';
import { init } from '../../src/index.ts';
import { type FromRank, lineSplitter, nowMs, type RankSpec, type ToRank } from './protocol.ts';
import { Deliveries, runTraffic, type TrafficContext } from './rank-traffic.ts';

const REPORT_EVERY_MS = 10;
const RAILS_UP_TIMEOUT_MS = 20_000;

const spec = JSON.parse(process.argv[2]) as RankSpec;
const mpi = await init();
const { rank } = mpi;
const peer = 1 - rank;
const control = connect(spec.control);
control.setEncoding('utf8');
// The measurement is gone: nobody wants the rest.
control.on('error', () => process.exit(1));
const say = (message: FromRank) => control.write(`${JSON.stringify(message)}\n`);
say({ type: 'hello', rank, pid: process.pid });

const deliveries = new Deliveries(spec.gapMinMs);
let resolveStopped = () => {};
const stopped = new Promise<void>((resolve) => {
  resolveStopped = resolve;
});
const onRow: TrafficContext['onRow'] = (row) => say({ type: 'row', row });
const tick = () => {
  if (nowMs() - reportedAt >= REPORT_EVERY_MS) report();
};
const context: TrafficContext = { mpi, peer, spec, deliveries, errors: [], isStopping: false, stopped, onRow, tick };
control.on(
  'data',
  lineSplitter((line) => {
    const message = JSON.parse(line) as ToRank;
    if (message.type === 'stop') {
      context.isStopping = true;
      resolveStopped();
    } else {
      // A program that computes and does not come back to the library: nothing of this process runs meanwhile.
      const until = nowMs() + message.ms;
      while (nowMs() < until);
      say({ type: 'computed', at: nowMs() });
    }
  }),
);
mpi.on('rail', (event) => {
  if (event.peer === peer) say({ type: 'rail', at: nowMs(), event: event.type, key: event.key, reason: event.reason });
});

const railsToPeer = () => mpi.rails().filter((rail) => rail.peer === peer);
const deadline = nowMs() + RAILS_UP_TIMEOUT_MS;
while (railsToPeer().filter((rail) => rail.state === 'UP').length < spec.rails) {
  if (nowMs() > deadline) {
    const states = railsToPeer().map(({ key, state, lastReason }) => `${key} ${state} ${lastReason ?? ''}`);
    throw new Error(`rank ${rank}: ${spec.rails} rails were to come up, but: ${states.join('; ') || 'there is none'}`);
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
}

const before = new Map<string, { frames: number; payload: number }>();
let reportedAt = 0;
function report(): void {
  reportedAt = nowMs();
  const rails = railsToPeer().map(({ key, state, counters, measuredMBps }) => {
    const last = before.get(key) ?? { frames: 0, payload: 0 };
    before.set(key, { frames: counters.framesReceived, payload: counters.payloadBytesReceived });
    return {
      key,
      state,
      framesReceived: counters.framesReceived - last.frames,
      payloadBytesReceived: counters.payloadBytesReceived - last.payload,
      measuredMBps,
      troubles: counters.downs + counters.suspicions,
    };
  });
  say({ type: 'report', at: reportedAt, delivered: deliveries.count, lastAt: deliveries.lastAt, gaps: deliveries.takeGaps(), rails });
}

report();
say({ type: 'ready', at: nowMs() });
// An idle rank is measured as it is, without a reporter that wakes it up.
const reporting = !spec.traffic.startsWith('idle') && spec.traffic !== 'throughput';
const timer = reporting ? setInterval(report, REPORT_EVERY_MS) : undefined;
const { sent, received } = await runTraffic(context);
clearInterval(timer);
report();
const counters = { ...mpi.counters().pml } as unknown as Record<string, number>;
const rails = railsToPeer().map(({ key, state, counters: { downs, suspicions, payloadBytesSent, payloadBytesReceived }, ...rail }) => ({
  key,
  state,
  downs,
  suspicions,
  payloadBytesSent,
  payloadBytesReceived,
  measuredMBps: rail.measuredMBps,
  lastReason: rail.lastReason,
}));
await mpi.finalize();
say({ type: 'done', sent, received, errors: context.errors, counters, rails });
control.end();
