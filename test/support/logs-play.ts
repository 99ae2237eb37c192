// Plays jobs of the fixture ft-logs-rank.ts, and reads what its ranks have said.
import { type BuiltCode, startNode } from './helpers.ts';

export interface LogsPlay {
  readonly mode: string;
  /** PROCESS@STEP of each death. */
  readonly deaths: readonly string[];
  readonly spares: number;
  /** NAME=VALUE of each parameter. */
  readonly mca?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface LogsPlayed {
  readonly status: number | null;
  readonly stdout: string;
  readonly all: string;
  /** `RANK DIGEST` of each rank's end. */
  readonly digests: readonly string[];
  /** Rank, step and process of each run of the program. */
  readonly bodies: readonly (readonly number[])[];
  readonly total: { readonly failures: number; readonly inPlace: number; readonly lostSteps: number };
}

export async function playLogs(code: BuiltCode, { mode, deaths, spares, mca = [], env }: LogsPlay): Promise<LogsPlayed> {
  const standing = spares > 0 ? ['--spares', String(spares)] : ['--mca', 'ft', 'on'];
  const words = [code.cli, 'run', '-n', '4', ...standing, ...mca.flatMap((one) => ['--mca', ...one.split('=')])];
  const {
    code: status,
    stdout,
    stderr,
  } = await startNode([...words, code.fixture('ft-logs-rank.ts'), mode, ...deaths], {
    timeoutMs: 40_000,
    ...(env && { env }),
  }).ended;
  const all = `${stdout}\n${stderr}`;
  // Whoever had come to its end already may have to come to it again.
  const digests = [...new Set([...stdout.matchAll(/rank (\d) ends with (\w+)/g)].map(([, rank, digest]) => `${rank} ${digest}`))].sort();
  const bodies = [...stdout.matchAll(/body of rank (\d) begins in step (\d+) at process (\d+)/g)].map(([, ...words]) => words.map(Number));
  // Whoever came to the end last knows of all failures.
  const totals = [...stdout.matchAll(/after (\d+) failures, (\d+) in place, (\d+) steps again/g)].map(([, ...words]) => words.map(Number));
  const [failures, inPlace, lostSteps] = [0, 1, 2].map((at) => Math.max(...totals.map((total) => total[at])));
  return { status, stdout, all, digests, bodies, total: { failures, inPlace, lostSteps } };
}
