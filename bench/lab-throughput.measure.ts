// Healthy throughput over two real links of 1 Gbit/s against one of them, in interleaved rounds, and delivery gaps of repeated
// faults. Prints medians; see bench/lab.sh.
import { afterAll, beforeAll, test } from 'vitest';
import { Lab, labUnavailable, sleep } from '../test/lab/lab.ts';
import { expectAudited, megabytesPerSecond, startLabJob, usedAgainAfterMs, worstGapMs } from '../test/lab/lab-job.ts';
import { type BuiltCode, buildCode } from '../test/system/helpers.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) throw new Error(`the lab cannot be used here: ${unavailable}`);
const rounds = Number(process.env.MULTIRAIL_LAB_ROUNDS ?? 5);

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['lab-launch.mjs', 'lab-rank.mjs']);
});
afterAll(() => code?.dispose());

const TRAFFIC = { seconds: 5, bytes: 1024 * 1024, window: 16 };
const CASES: Record<string, Record<string, string>> = {
  'one rail, TCP': { btl: 'self,tcp', btl_tcp_if_include: 'mr0' },
  'two rails, TCP + TCP': { btl: 'self,tcp' },
  'one rail, WebSocket': { btl: 'self,ws', btl_ws_if_include: 'mr0' },
  'two rails, TCP + WebSocket': { btl: 'self,tcp,ws', btl_tcp_if_include: 'mr1', btl_ws_if_include: 'mr0' },
};

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

test('throughput of two rails against one', async () => {
  const figures: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const [name, mca] of Object.entries(CASES)) {
      await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
      const { records, output } = await startLabJob(lab, code, mca, TRAFFIC).ended;
      if (records.length !== 2) throw new Error(output);
      expectAudited(records);
      const rate = megabytesPerSecond(records[1], records[0].startedAt + 1500, records[0].stopAt - 500);
      figures[name] ??= [];
      figures[name].push(rate);
      console.log(`round ${round + 1}: ${name}: ${rate.toFixed(1)} MB/s`);
    }
  }
  for (const [name, rates] of Object.entries(figures)) console.log(`${name}: median ${median(rates).toFixed(1)} MB/s of ${rates.length}`);
  const ratio = (a: string, b: string) => median(figures[a].map((rate, round) => rate / figures[b][round])).toFixed(3);
  console.log(`TCP + TCP / TCP: ${ratio('two rails, TCP + TCP', 'one rail, TCP')}`);
  console.log(`TCP + WebSocket / TCP: ${ratio('two rails, TCP + WebSocket', 'one rail, TCP')}`);
});

test.skipIf(process.env.MULTIRAIL_LAB_GAPS === '0')('gaps and returns of repeated faults', async () => {
  const faults: Record<string, (lab: Lab) => Promise<unknown>> = {
    'own port down': (lab) => lab.ownPortDown(0, 0),
    "peer's port down": (lab) => lab.peerPortDown(0, 0),
    blackhole: (lab) => lab.blackhole(0),
    'one way': (lab) => lab.oneWay(0, 0),
  };
  const gaps: Record<string, number[]> = {};
  const returns: Record<string, number[]> = {};
  await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
  const names = Object.keys(faults);
  const seconds = 3 + rounds * names.length * 3.5 + 2;
  const job = startLabJob(lab, code, { btl: 'self,tcp' }, { seconds, bytes: 256 * 1024, window: 16 });
  await sleep(2500);
  const windows: { name: string; faultAt: number; healedAt: number; endAt: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const faultAt = Date.now();
      await faults[name](lab);
      await sleep(1500);
      await lab.healAll();
      const healedAt = Date.now();
      await sleep(2000);
      windows.push({ name, faultAt, healedAt, endAt: Date.now() });
    }
  }
  const { records, output } = await job.ended;
  if (records.length !== 2) throw new Error(output);
  expectAudited(records);
  for (const window of windows) {
    gaps[window.name] ??= [];
    returns[window.name] ??= [];
    gaps[window.name].push(Math.max(...records.map((record) => worstGapMs(record, window.faultAt, window.endAt))));
    returns[window.name].push(usedAgainAfterMs(records[0], 'tcp:mr0-mr0#0', window.healedAt));
  }
  for (const name of names) {
    console.log(
      `${name}: gap median ${median(gaps[name])} ms, worst ${Math.max(...gaps[name])} ms; rail in use again after median ${median(returns[name])} ms, worst ${Math.max(...returns[name])} ms (${gaps[name].length} faults)`,
    );
  }
});
