// Runs the audited lab job (test/system/fixtures/lab-rank.mjs) on the nodes of a lab and reads what its ranks recorded.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Lab } from '../../tools/lab/lab.ts';
import type { BuiltCode } from '../support/helpers.ts';

/** What one rank of the job records. Times are Date.now(). */
export interface RankRecord {
  rank: number;
  startedAt: number;
  stopAt: number;
  sent: number;
  received: number;
  errors: string[];
  /** [20 ms bin, bytes delivered in it]. */
  bins: [number, number][];
  /** Intervals above gapMs (50 unless told) without a delivery. */
  gaps: [number, number][];
  /** Per rail: [time, payload bytes given to it in the 20 ms before]. */
  railUse: Record<string, [number, number][]>;
  railEvents: { at: number; type: string; rail: number; key: string; reason: string }[];
  counters: Record<string, number>;
  rails: { key: string; state: string; lastReason?: string }[];
}

export interface LabJob {
  readonly output: () => string;
  /** Both ranks have received something, so their rails are up; also resolves when the job ends without that. */
  readonly exchanging: Promise<void>;
  /** Ends the traffic before its `seconds` are over: what a test does in between takes as long as the machine makes it. */
  readonly stop: () => void;
  readonly ended: Promise<{ code: number; records: RankRecord[]; output: string }>;
}

export function startLabJob(
  lab: Lab,
  code: BuiltCode,
  mca: Record<string, string>,
  args: { seconds: number; bytes: number; window: number; gapMs?: number; compute?: { rank: number; atMs: number; ms: number } },
  program = 'lab-rank.mjs',
): LabJob {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-lab-'));
  const spec = {
    program: code.fixture(program),
    namespaces: [lab.namespace(0), lab.namespace(1)],
    oobListen: lab.rails.map((_, rail) => lab.address(0, rail)),
    mca,
    args: [JSON.stringify({ ...args, folder })],
  };
  const child = lab.spawn(0, [process.execPath, code.fixture('lab-launch.mjs'), JSON.stringify(spec)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let begun = (): void => {};
  const exchanging = new Promise<void>((resolve) => {
    begun = resolve;
  });
  child.stdout?.on('data', (data) => {
    output += data;
    if (output.match(/exchanging/g)?.length === 2) begun();
  });
  child.stderr?.on('data', (data) => {
    output += data;
  });
  // Bounded: a job that hangs is a failure, not a hung test run.
  const timer = setTimeout(() => child.kill('SIGKILL'), (args.seconds + 45) * 1000);
  const ended = new Promise<{ code: number; records: RankRecord[]; output: string }>((resolve) => {
    child.on('close', (exitCode, signal) => {
      clearTimeout(timer);
      begun();
      const files = [0, 1].map((rank) => join(folder, `rank-${rank}.json`)).filter((file) => existsSync(file));
      const records = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as RankRecord);
      rmSync(folder, { recursive: true, force: true });
      resolve({ code: exitCode ?? (signal === null ? -1 : 128), records, output });
    });
  });
  // The folder is gone when the job has ended by itself.
  const stop = (): void => {
    if (existsSync(folder)) writeFileSync(join(folder, 'stop'), '');
  };
  return { output: () => output, exchanging, stop, ended };
}

/** Nothing lost, doubled, reordered or damaged, in either direction. */
export function expectAudited(records: RankRecord[]): void {
  expect(records.map((record) => record.rank)).toEqual([0, 1]);
  for (const record of records) expect(record.errors, `rank ${record.rank}`).toEqual([]);
  expect(records[1].received).toBe(records[0].sent);
  expect(records[0].received).toBe(records[1].sent);
  expect(records[0].sent).toBeGreaterThan(100);
}

/** The longest time without a delivery at that rank within [from, to], in milliseconds. */
export function worstGapMs(record: RankRecord, from: number, to: number): number {
  let worst = 0;
  for (const [a, b] of record.gaps) worst = Math.max(worst, Math.min(b, to) - Math.max(a, from));
  return worst;
}

export function megabytesPerSecond(record: RankRecord, from: number, to: number): number {
  let bytes = 0;
  for (const [bin, count] of record.bins) if (bin * 20 >= from && bin * 20 < to) bytes += count;
  return bytes / 1e6 / ((to - from) / 1000);
}

/** When that rail carried payload again after `since`, in milliseconds from then; Infinity when it never did. */
export function usedAgainAfterMs(record: RankRecord, key: string, since: number): number {
  const use = record.railUse[key]?.find(([at]) => at >= since);
  return use === undefined ? Number.POSITIVE_INFINITY : use[0] - since;
}
