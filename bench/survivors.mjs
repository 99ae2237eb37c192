#!/usr/bin/env node
// What the ranks of a large job see when the rail that carries everything is pulled, and later one of them is killed: each passes a checked
// message around a ring and adds up until a call fails; then the living shrink, check their sum, and the first of them prints what all saw.
//   node dist/cli.js run -n 128 --mca ft on --mca btl_fault pull:0:error@40s --kill 77@120s bench/survivors.mjs [--pause MS] [--bytes N]
// Run by hand, after `npm run build`; the times have to leave all ranks time to start, and to pass messages before and after the pull.
import { parseArgs } from 'node:util';
import { init, Op } from 'multirail';
import { median } from './lib/stats.mjs';

const { values } = parseArgs({ options: { pause: { type: 'string', default: '250' }, bytes: { type: 'string', default: '65536' } } });
const pauseMs = Number(values.pause);
const length = Number(values.bytes);
const TAG = 5;

const mpi = await init();
const { world } = mpi;
const lost = {};
const lostAtMs = [];
const deaths = [];
mpi.on('rail', ({ type, key, reason }) => {
  if (type !== 'lost') return;
  const what = `${key.split(/[:#]/)[0]} ${reason.split(':')[0]}`;
  lost[what] = (lost[what] ?? 0) + 1;
  lostAtMs.push(Date.now());
});
mpi.on('peer', ({ peer, error }) => deaths.push({ peer, code: error.code, atMs: Date.now() }));

const passed = { before: 0, after: 0, wrong: 0 };

/** A message to the right, one from the left, and a sum of all; throws what a call throws. */
async function step(comm, round) {
  const { rank, size } = comm;
  const left = (rank + size - 1) % size;
  const own = new Uint8Array(length).fill((rank + round) & 0xff);
  const from = new Uint8Array(length);
  await Promise.all([comm.recv(from, left, TAG), comm.send(own, (rank + 1) % size, TAG)]);
  if (from.some((byte) => byte !== ((left + round) & 0xff))) passed.wrong++;
  const sum = new Float64Array(1);
  await comm.allreduce(Float64Array.of(rank + round), sum, Op.SUM);
  if (sum[0] !== (size * (size - 1)) / 2 + size * round) passed.wrong++;
  passed[lostAtMs.length === 0 ? 'before' : 'after']++;
}

let failure;
for (let round = 0; failure === undefined; round++) {
  try {
    await step(world, round);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  } catch (error) {
    failure = { code: error.code, atMs: Date.now() };
    await world.revoke();
  }
}
const { flag, failed } = await world.agree(0);
const living = await world.shrink();
const shrunkMs = Date.now() - failure.atMs;
for (let round = 0; round < 3; round++) await step(living, round);

const carried = {};
for (const { transport, counters } of mpi.rails()) carried[transport] = (carried[transport] ?? 0) + counters.payloadBytesSent;
const own = { rank: world.rank, passed, lost, lostAtMs, deaths, failure, shrunkMs, failed: [...failed.worldRanks], flag, carried };
const all = await living.gatherObject(own);
if (all !== null) {
  const tally = (of) => {
    const counts = new Map();
    for (const text of all.flatMap(of)) counts.set(text, (counts.get(text) ?? 0) + 1);
    return [...counts].map(([text, count]) => `${text} (${count} ranks)`).join('; ');
  };
  const range = (of) => {
    const list = all.flatMap(of).sort((a, b) => a - b);
    return list.length === 0 ? 'none' : `${list[0]} to ${list.at(-1)}, median ${median(list)}`;
  };
  const firstMs = Math.min(...all.flatMap(({ deaths: told }) => told.map(({ atMs }) => atMs)));
  const bytesOf = (transport) => all.reduce((sum, { carried: by }) => sum + (by[transport] ?? 0), 0);
  console.log(
    [
      `${living.size} of ${world.size} ranks are left; a shrunken communicator of the same size at ${tally(() => [`${living.size}`])}`,
      `steps passed before the pull, a rank: ${range(({ passed: { before } }) => [before])}; after it: ${range(({ passed: { after } }) => [after])}`,
      `messages and sums that were wrong: ${all.reduce((sum, { passed: { wrong } }) => sum + wrong, 0)}`,
      `rails lost, a rank: ${range(({ lostAtMs: times }) => [times.length])}; why: ${tally(({ lost: by }) => Object.keys(by))}`,
      `MB sent: ${['sm', 'tcp'].map((transport) => `${transport} ${(bytesOf(transport) / 1e6).toFixed(0)}`).join(', ')}`,
      `told of a death: ${tally(({ deaths: told }) => told.map(({ peer, code }) => `process ${peer}, ${code}`))}`,
      `ms from the first that heard of it to the last: ${Math.max(...all.flatMap(({ deaths: told }) => told.map(({ atMs }) => atMs))) - firstMs}`,
      `calls ended with: ${tally(({ failure: { code } }) => [code])}; ms after the first word of the death: ${range(({ failure: { atMs } }) => [atMs - firstMs])}`,
      `agreed on as failed: ${tally(({ failed: list }) => [`ranks ${list}`])}`,
      `ms from the failed call to the shrunken communicator: ${range(({ shrunkMs: ms }) => [ms])}`,
    ].join('\n'),
  );
}
await mpi.finalize();
