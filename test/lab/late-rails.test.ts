// Cables that are out when the ranks start: the rail is made when the cable is put in, and carries; a job whose only cable is out waits.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Lab, labUnavailable, sleep } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { expectAudited, type LabJob, startLabJob, usedAgainAfterMs } from './lab-job.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) console.log(`skipped: cables that are out at the start: ${unavailable}`);

let code: BuiltCode;
beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['lab-launch.mjs', 'lab-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

describe.skipIf(unavailable !== undefined)('a cable that is out when the ranks start', () => {
  test('of two rails: the job goes on over the other one, and both sides add the rail when the cable is in', async () => {
    await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
    for (const node of [0, 1]) await lab.cableCut(node, 1);
    const job: LabJob = startLabJob(lab, code, { btl: 'self,tcp' }, { seconds: 8, bytes: 64 * 1024, window: 8 });
    await job.exchanging;
    await sleep(1000);
    const healedAt = Date.now();
    await lab.healAll();
    const { code: exitCode, records, output } = await job.ended;
    expect(exitCode, output.slice(-3000)).toBe(0);
    expectAudited(records);
    for (const { rank, railEvents } of records) {
      const added = railEvents.filter(({ type }) => type === 'added');
      expect(
        added.map(({ key }) => key),
        `rank ${rank} is told of the rail`,
      ).toEqual(['tcp:mr1-mr1#0']);
      expect(added[0].at, `rank ${rank}: not before the cable is in`).toBeGreaterThanOrEqual(healedAt);
    }
    expect(usedAgainAfterMs(records[0], 'tcp:mr1-mr1#0', healedAt)).toBeLessThan(Number.POSITIVE_INFINITY);
  }, 90_000);

  test('of one rail: the job waits for the cable, says so, and runs', async () => {
    await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }] });
    for (const node of [0, 1]) await lab.cableCut(node, 0);
    const job: LabJob = startLabJob(lab, code, { btl: 'self,tcp' }, { seconds: 4, bytes: 64 * 1024, window: 8 });
    await sleep(3000);
    await lab.healAll();
    const { code: exitCode, records, output } = await job.ended;
    expect(exitCode, output.slice(-3000)).toBe(0);
    expectAudited(records);
    for (const rank of [0, 1]) expect(output).toContain(`rank ${rank} has no rail to rank ${1 - rank} yet and waits for one`);
  }, 90_000);
});
