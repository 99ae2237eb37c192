// How a lost rail is noticed with the native part, and that it is used again: two nodes, two rails of 1 Gbit/s, one of them broken in every
// way the lab knows, while bulk data goes one way and small messages the other. There is one job per kind of fault, audited by content. The
// gaps are printed here; bench/lab.sh failover judges them on a quiet machine. MULTIRAIL_LIVENESS_ROUNDS sets how often each fault is
// repeated (2).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { Lab, labUnavailable, sleep } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';
import { expectAudited, type RankRecord, startLabJob, usedAgainAfterMs, worstGapMs } from './lab-job.ts';

const unavailable = labUnavailable() ?? loadNative().reason;
if (unavailable !== undefined) console.log(`skipped: liveness over real links: ${unavailable}`);

let code: BuiltCode;
beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['lab-launch.mjs', 'lab-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

const ROUNDS = Number(process.env.MULTIRAIL_LIVENESS_ROUNDS ?? 2);
const WARM_UP_MS = 1000;
const FAULT_MS = Number(process.env.MULTIRAIL_LIVENESS_FAULT_MS ?? 600);
const RETURN_MS = 1100;
/** On a busy machine what makes and heals faults takes seconds: the job is told when they are over. */
const JOB_SECONDS_MAX = 30 + ROUNDS * 10;
const KEY = 'tcp:mr0-mr0#0';
/** Longer than any fault lasts. */
const SILENT_LATE_MS = 10_000;
/** Gaps are looked at from a little before the fault on: its command takes a few milliseconds. */
const BEFORE_MS = 10;

interface Fault {
  name: string;
  begin: (lab: Lab) => Promise<unknown>;
  /** How one side, or both, finds the loss; the other side may hear of it first. */
  by: string;
}
const CARRIER = 'carrier: mr0 has lost its carrier';
const SILENCE = "the peer's kernel acknowledged nothing";
/**
 * The other side, which has found it, says so: over the rail that is left, or by closing the connection where that still gets through
 * (one direction is open, or not yet shut: the two ports of a black hole are shut one after the other). Linux closes with RST rather
 * than FIN what came in and was not read, and answers with RST what comes in after the close (RFC 2525, 2.17).
 */
const TOLD = ['fenced: the peer lost it', 'closed: the peer closed the connection', 'closed: read ECONNRESET', 'closed: write ECONNRESET'];
/** A port that is down takes its routes with it, and the kernel may tell of these first. */
const NO_ROUTE = 'route: no route to ';
const FAULTS: Fault[] = [
  { name: 'own port down', begin: (lab) => lab.ownPortDown(0, 0), by: CARRIER },
  { name: "peer's port down", begin: (lab) => lab.peerPortDown(0, 0), by: CARRIER },
  { name: 'cable cut', begin: (lab) => lab.cableCut(0, 0), by: CARRIER },
  { name: "peer's cable cut", begin: (lab) => lab.cableCut(1, 0), by: CARRIER },
  { name: 'black hole', begin: (lab) => lab.blackhole(0), by: SILENCE },
  { name: 'one direction, from node 0', begin: (lab) => lab.oneWay(0, 0), by: SILENCE },
  { name: 'one direction, from node 1', begin: (lab) => lab.oneWay(0, 1), by: SILENCE },
];

const only = process.env.MULTIRAIL_LIVENESS_FAULTS;
/** Some of those that a carrier tells of, and some that only silence does. */
const DRAWN = [CARRIER, SILENCE].flatMap((how) =>
  drawTests(
    `liveness, ${how}`,
    FAULTS.filter(({ by }) => by === how),
  ),
);
describe.skipIf(unavailable !== undefined).each(only === undefined ? DRAWN : FAULTS.filter(({ name }) => only.split(',').includes(name)))(
  '$name',
  ({ name, begin, by }) => {
    let records: RankRecord[] = [];
    let reasons: string[] = [];
    /** When each fault began and ended and what each rank saw of it, for the message of a test that fails. */
    let course = '';
    const bulkGaps: number[] = [];
    const smallGaps: number[] = [];
    const returns: number[] = [];

    beforeAll(
      async () => {
        await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
        // The kernels alone are to notice: what a rail holds would be late sooner. The side that keeps its carrier sees silence, and on a busy
        // machine it may do so before the other side is told of its own port: where a carrier is to tell, silence has to wait.
        const job = startLabJob(
          lab,
          code,
          { btl: 'self,tcp', bml_stall_timeout_ms: '0', ...(by === CARRIER && { btl_tcp_silent_ms: String(SILENT_LATE_MS) }) },
          { seconds: JOB_SECONDS_MAX, bytes: 64 * 1024, window: 16, gapMs: 5 },
        );
        await job.exchanging;
        await sleep(WARM_UP_MS);
        const windows: { faultAt: number; healedAt: number }[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          // Not in step with the beats.
          await sleep((round * 37) % 300);
          const faultAt = Date.now();
          await begin(lab);
          await sleep(FAULT_MS);
          await lab.healAll();
          windows.push({ faultAt, healedAt: Date.now() });
          await sleep(RETURN_MS);
        }
        job.stop();
        const ended = await job.ended;
        records = ended.records;
        expect(ended.code, ended.output.slice(-3000)).toBe(0);
        for (const { faultAt, healedAt } of windows) {
          bulkGaps.push(worstGapMs(records[1], faultAt - BEFORE_MS, faultAt + FAULT_MS));
          smallGaps.push(worstGapMs(records[0], faultAt - BEFORE_MS, faultAt + FAULT_MS));
          returns.push(usedAgainAfterMs(records[0], KEY, healedAt));
        }
        reasons = records.flatMap(({ railEvents }) => railEvents.filter(({ type }) => type === 'lost').map(({ reason }) => reason));
        course = JSON.stringify([windows, ...records.map(({ railEvents }) => railEvents)]);
        console.log(
          `${name}: bulk gaps ${bulkGaps.join(' ')} ms, small ${smallGaps.join(' ')} ms, in use again after ${returns.join(' ')} ms`,
        );
        if (process.env.MULTIRAIL_LIVENESS_VERBOSE) console.log(reasons.join('\n'), course, ended.output.slice(-2000));
      },
      90_000 + ROUNDS * 15_000,
    );

    test('nothing is lost, doubled, reordered or damaged, and the fault was noticed each time', () => {
      expectAudited(records);
      expect(records[0].railEvents.filter(({ type }) => type === 'lost').length).toBeGreaterThanOrEqual(ROUNDS);
    });

    test('the kernels tell of it, and no time-out of ours', () => {
      expect(
        reasons.filter((reason) => !reason.includes(by) && !TOLD.includes(reason) && !(by === CARRIER && reason.startsWith(NO_ROUTE))),
        course,
      ).toEqual([]);
      expect(reasons.filter((reason) => reason.includes(by)).length, course).toBeGreaterThanOrEqual(ROUNDS);
    });

    test('delivery goes on over the other rail while the fault lasts', () => {
      expect(Math.max(...bulkGaps, ...smallGaps)).toBeLessThan(FAULT_MS);
    });

    test('the rail is in use again within a second of its return', () => {
      expect(Math.max(...returns), course).toBeLessThanOrEqual(1000);
    });
  },
);
