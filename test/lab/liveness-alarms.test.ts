// What must NOT count as a lost rail: a receiver that computes with full windows, a process that is stopped and goes on, a congested rail.
// The jobs run on two nodes with the native part, and are audited by content. bench/soak.sh measures what an idle process costs.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { Lab, labUnavailable, sleep } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';
import { drawTests } from '../support/sample.ts';
import { expectAudited, startLabJob } from './lab-job.ts';

const unavailable = labUnavailable() ?? loadNative().reason;
if (unavailable !== undefined) console.log(`skipped: false alarms over real links: ${unavailable}`);

let code: BuiltCode;
beforeAll(async () => {
  if (unavailable === undefined) code = await buildCode(['lab-launch.mjs', 'lab-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

/** Seconds of each disturbance. */
const SECONDS = Number(process.env.MULTIRAIL_ALARM_SECONDS ?? 5);

/** Of a process that may have ended, as the one that lists them has: then it is []. */
function commandOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Process ids of the ranks of a lab job, by rank, found by what they run. */
async function ranksOf(lab: Lab): Promise<number[]> {
  const pids: number[] = [];
  for (const node of [0, 1]) {
    const { stdout } = await lab.exec(node, ['ip', 'netns', 'pids', lab.namespace(node)]);
    for (const pid of stdout.split('\n').filter(Boolean)) {
      const command = commandOf(pid);
      if (command[0]?.endsWith('node') && command[1]?.includes('lab-rank')) pids[node] = Number(pid);
    }
  }
  return pids;
}

interface Alarm {
  name: string;
  args: { seconds: number; bytes: number; window: number; gapMs?: number; compute?: { rank: number; atMs: number; ms: number } };
  rails: { mbit: number; queueMs?: number }[];
  disturb: (lab: Lab) => Promise<void>;
}

async function stopped(lab: Lab, rank: number): Promise<void> {
  const pids = await ranksOf(lab);
  expect(pids.length).toBe(2);
  await sleep(1500);
  process.kill(pids[rank], 'SIGSTOP');
  await sleep(SECONDS * 1000);
  process.kill(pids[rank], 'SIGCONT');
}

const availableCores = Array.from({ length: availableParallelism() }, (_, core) => core);
const RAILS = [{ mbit: 1000 }, { mbit: 1000 }];
const TRAFFIC = { bytes: 256 * 1024, window: 16 };
const ALARMS: Alarm[] = [
  {
    name: 'a receiver that computes, with full windows',
    args: { seconds: SECONDS + 3, ...TRAFFIC, compute: { rank: 1, atMs: 1500, ms: SECONDS * 1000 } },
    rails: RAILS,
    disturb: async () => {},
  },
  {
    name: 'the receiver is stopped and goes on',
    args: { seconds: SECONDS + 4, ...TRAFFIC },
    rails: RAILS,
    disturb: (lab) => stopped(lab, 1),
  },
  {
    name: 'the sender is stopped and goes on',
    args: { seconds: SECONDS + 4, ...TRAFFIC },
    rails: RAILS,
    disturb: (lab) => stopped(lab, 0),
  },
  {
    name: 'a busy process on each core',
    args: { seconds: SECONDS + 3, ...TRAFFIC },
    rails: RAILS,
    disturb: async (lab) => {
      const hogs = availableCores.map(() => lab.spawn(0, ['sh', '-c', 'while :; do :; done'], { stdio: 'ignore' }));
      await sleep(SECONDS * 1000);
      for (const hog of hogs) hog.kill('SIGKILL');
    },
  },
  {
    name: 'rails of 100 Mbit/s with a queue of 50 ms, kept full',
    args: { seconds: SECONDS + 2, ...TRAFFIC },
    rails: [
      { mbit: 100, queueMs: 50 },
      { mbit: 100, queueMs: 50 },
    ],
    disturb: async () => {},
  },
];

const only = process.env.MULTIRAIL_ALARMS;
/** Each takes ten seconds. */
const drawn = only === undefined ? drawTests('alarms', ALARMS, 0.4) : ALARMS.filter(({ name }) => name.includes(only));
describe.skipIf(unavailable !== undefined)('no rail is lost', () => {
  test.each(drawn)(
    '$name',
    async ({ name, args, rails, disturb }) => {
      await using lab = await Lab.create({ nodes: 2, rails });
      const job = startLabJob(lab, code, { btl: 'self,tcp' }, args);
      await job.exchanging;
      await disturb(lab);
      const { code: exitCode, records, output } = await job.ended;
      expect(exitCode, output.slice(-3000)).toBe(0);
      expectAudited(records);
      const lost = records.flatMap((record) => record.railEvents.filter(({ type }) => type === 'lost'));
      console.log(`${name}: ${records[0].sent} messages, ${lost.length} rails lost`);
      expect(lost).toEqual([]);
      // The disturbance was one: for most of its time nothing was delivered.
      if (args.compute !== undefined || name.includes('stopped')) {
        const worst = Math.max(...records[1].gaps.map(([from, to]) => to - from));
        expect(worst).toBeGreaterThan(SECONDS * 800);
      }
    },
    60_000 + SECONDS * 3000,
  );
});
