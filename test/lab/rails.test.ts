// Real links pulled under load: two nodes, two rails of 1 Gbit/s, TCP + TCP and TCP + WebSocket. One job per mix of rails goes through
// every kind of fault of the lab, one after the other: 2 s of fault, then healed, with time to come back. It is audited by content. No
// network is immune: the out-of-band channel is pulled with the rails.
//
// The required bounds are a worst delivery gap of 1 s, and the rail in use again within 2 s of its return. They are checked as counts of
// events within generous windows of time, on a machine that may be busy: a bound is a property here.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FlapHandle, Lab, labUnavailable, sleep } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';
import { expectAudited, type LabJob, megabytesPerSecond, type RankRecord, startLabJob, usedAgainAfterMs, worstGapMs } from './lab-job.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) console.log(`skipped: real links: ${unavailable}`);

let code: BuiltCode;
beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['lab-launch.mjs', 'lab-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

const WARM_UP_MS = 2500;
const FAULT_MS = 2000;
const RETURN_MS = 3000;
/** The faults take 48 s if all are drawn, and on a busy machine what makes and heals them takes time too: the job is told when they are over. */
const JOB_SECONDS_MAX = 150;
/** Fault by fault: what is done to rail 0, and whether the other rail can carry meanwhile. */
const FAULTS: { name: string; begin: (lab: Lab) => Promise<unknown> | FlapHandle; otherCarries: boolean; rails: number[] }[] = [
  // The first one, as long as the rail is between the addresses that are tried first: one that has come back between link-local addresses,
  // which name their interface, is not concerned by any route.
  { name: "leaves by the other's interface", begin: (lab) => lab.stealRoute(0, 0), otherCarries: true, rails: [0] },
  { name: 'own port down', begin: (lab) => lab.ownPortDown(0, 0), otherCarries: true, rails: [0] },
  { name: "peer's port down", begin: (lab) => lab.peerPortDown(0, 0), otherCarries: true, rails: [0] },
  { name: 'wire cut', begin: (lab) => lab.wireCut(0), otherCarries: true, rails: [0] },
  { name: 'blackhole', begin: (lab) => lab.blackhole(0), otherCarries: true, rails: [0] },
  { name: 'one direction, from node 0', begin: (lab) => lab.oneWay(0, 0), otherCarries: true, rails: [0] },
  { name: 'one direction, from node 1', begin: (lab) => lab.oneWay(0, 1), otherCarries: true, rails: [0] },
  { name: 'flapping every 200 ms', begin: (lab) => lab.flap(0, 200, { silent: true }), otherCarries: true, rails: [0] },
  {
    name: 'both rails, silently',
    begin: async (lab) => {
      await lab.blackhole(0);
      await lab.blackhole(1);
      return undefined;
    },
    otherCarries: false,
    rails: [0, 1],
  },
];

interface Window {
  name: string;
  faultAt: number;
  healedAt: number;
  endAt: number;
  otherCarries: boolean;
  rails: number[];
}

const MIXES = [
  { name: 'TCP + TCP', mca: { btl: 'self,tcp' }, keys: ['tcp:mr0-mr0#0', 'tcp:mr1-mr1#0'] },
  {
    name: 'TCP + WebSocket',
    mca: { btl: 'self,tcp,ws', btl_tcp_if_include: 'mr1', btl_ws_if_include: 'mr0' },
    keys: ['ws:mr0-mr0#0', 'tcp:mr1-mr1#0'],
  },
];

describe.skipIf(unavailable !== undefined).each(MIXES)('$name over two real links', ({ name: mix, mca, keys }) => {
  const faults = drawTests(`faults of ${mix}`, FAULTS);
  const windows: Window[] = [];
  let records: RankRecord[] = [];
  let output = '';

  beforeAll(async () => {
    await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
    const job: LabJob = startLabJob(lab, code, mca, { seconds: JOB_SECONDS_MAX, bytes: 256 * 1024, window: 16 });
    // Before that there is no rail that a fault could meet.
    await job.exchanging;
    await sleep(WARM_UP_MS);
    for (const fault of faults) {
      const faultAt = Date.now();
      const begun = await fault.begin(lab);
      await sleep(FAULT_MS);
      if (begun !== undefined) await (begun as FlapHandle).stop();
      await lab.healAll();
      const healedAt = Date.now();
      await sleep(RETURN_MS);
      windows.push({ name: fault.name, faultAt, healedAt, endAt: Date.now(), otherCarries: fault.otherCarries, rails: fault.rails });
    }
    job.stop();
    const ended = await job.ended;
    records = ended.records;
    output = ended.output;
    expect(ended.code, output.slice(-3000)).toBe(0);
    for (const window of windows) {
      const gaps = records.map((record) => worstGapMs(record, window.faultAt, window.endAt));
      const back = window.rails.map((rail) => usedAgainAfterMs(records[0], keys[rail], window.healedAt));
      console.log(`${window.name}: worst gap ${gaps.join(' and ')} ms, rail in use again after ${back.join(' and ')} ms`);
    }
  }, 240_000);

  test('nothing is lost, doubled, reordered or damaged', () => expectAudited(records));

  test.each(faults.map(({ name }) => name))('%s: the other rail goes on, and the rail comes back', (name) => {
    const window = windows.find((each) => each.name === name) as Window;
    // Every fault must really have been noticed, or it proves nothing; a rail that only flaps may ride it out on TCP's own resends.
    const noticed = records.some((record) =>
      record.railEvents.some(({ at, type }) => at >= window.faultAt && at <= window.endAt && (type === 'lost' || type === 'suspect')),
    );
    // All that the ranks saw of it, in milliseconds since the fault began, for the message of a test that fails.
    const seen = records.map(({ railEvents }) => railEvents.map(({ at, type, rail, reason }) => [at - window.faultAt, type, rail, reason]));
    expect(noticed, `the fault was noticed: ${JSON.stringify([window, ...seen])}`).toBe(true);
    for (const record of records) {
      const until = window.otherCarries ? window.endAt : window.faultAt;
      expect(worstGapMs(record, window.faultAt, until), `worst gap at rank ${record.rank}`).toBeLessThanOrEqual(1000);
      // With all rails gone the traffic resumes within 2 s of the return.
      if (!window.otherCarries) expect(worstGapMs(record, window.healedAt, window.endAt)).toBeLessThanOrEqual(2000);
    }
    for (const rail of window.rails)
      expect(usedAgainAfterMs(records[0], keys[rail], window.healedAt), `rail ${rail}`).toBeLessThanOrEqual(2000);
  });

  test('every byte after a fault is counted once: what was sent again is little', () => {
    const [sender] = records;
    expect(sender.counters.bytesResent).toBeLessThan(sender.counters.bytesSent / 4);
  });

  test('healthy traffic uses both rails', () => {
    const [sender, receiver] = records;
    const from = sender.startedAt + 1000;
    const to = windows[0].faultAt;
    for (const key of keys) {
      const bytes = (sender.railUse[key] ?? []).filter(([at]) => at > from && at < to).reduce((sum, [, count]) => sum + count, 0);
      expect(bytes, `payload over ${key}`).toBeGreaterThan(0);
    }
    console.log(`healthy: ${megabytesPerSecond(receiver, from, to).toFixed(1)} MB/s over both rails`);
  });
});
