// `multirail ft campaign 000|004`: plays the jobs of a campaign (tools/ft/campaign-000.ts, campaign-004.ts) one after the other, and says what
// became of each. The ranks of these jobs run the same command, with the job that they are part of.
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { MultirailError } from '../../src/errors.ts';
import { requireScheme } from '../../src/ft/plan/scheme.ts';
import { RANKS_MAX, runJob } from '../../src/launch/run/launcher.ts';
import { init } from '../../src/mpi/init.ts';
import { type CampaignInput, type CampaignOutcome, type CampaignRun, campaign000, campaignRuns, runLine } from '../ft/campaign-000.ts';
import { type ProductTask, productAsRank } from '../ft/campaign-001-rank.ts';
import { campaign002AsRank, type RankTask } from '../ft/campaign-002-rank.ts';
import {
  campaign004,
  type PeriodsInput,
  type PeriodsOutcome,
  type PeriodsPlayed,
  type PeriodsRun,
  periodsLine,
  periodsRuns,
} from '../ft/campaign-004.ts';
import { campaign004AsRank } from '../ft/campaign-004-rank.ts';
import { campaignAsRank, undisturbed } from '../ft/campaign-rank.ts';
import type { Finding } from '../ft/papers.ts';

export interface CampaignOptions {
  np: number;
  spares?: number | undefined;
  df: number;
  sd: number;
  sets: string;
  runs: number;
  seed: number;
}

/** `mnf`, `worst`, or sets of ranks: `0,1,2,8`, or several: `0,1;4,5`. */
export function parseSets(text: string): CampaignInput['sets'] {
  if (text === 'mnf' || text === 'worst') return text;
  return text.split(';').map((set) => set.split(',').map((rank) => (/^\d+$/.test(rank.trim()) ? Number(rank) : Number.NaN)));
}

/** A rank of one of the jobs. */
export async function beCampaignRank(paper: string, text: string): Promise<void> {
  if (paper === '002')
    return await campaign002AsRank(await init(), JSON.parse(text) as RankTask, (line) => void process.stdout.write(`${line}\n`));
  if (paper === '001') return await productAsRank(await init(), JSON.parse(text) as ProductTask);
  const { run, file } = JSON.parse(text) as { run: unknown; file: string };
  if (paper === '004') await campaign004AsRank(await init(), run as PeriodsRun, file);
  else await campaignAsRank(await init(), run as CampaignRun, file);
}

interface JobSpec {
  readonly paper: '000' | '004';
  readonly run: unknown;
  readonly ranks: number;
  readonly spares: number;
  readonly folder: string;
}

/** What a job says. */
export interface Listened {
  readonly stream: Writable;
  said(): string;
}

export function listen(): Listened {
  let said = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      said += chunk;
      done();
    },
  });
  return { stream, said: () => said };
}

/** What a campaign ends with when a signal was passed on to one of its jobs. */
export function toldToEnd(): MultirailError {
  return new MultirailError('ERR_ABORTED', 'the campaign was told to end');
}

/** The words that start a rank of a job. */
export function rankCommand(paper: string, task: unknown): string[] {
  return [realpathSync(process.argv[1]), 'ft', 'campaign', paper, '--as-rank', JSON.stringify(task)];
}

/** Plays one job; `outcome` is what its rank 0 has written, undefined when it came to no end. */
async function playJob<T>({ paper, run, ranks, spares, folder }: JobSpec): Promise<{ outcome: T | undefined; said: string }> {
  // Next to it ranks may leave words for each other.
  const file = join(mkdtempSync(join(folder, 'job-')), 'outcome.json');
  const listener = listen();
  const { exitCode, wasTold } = await runJob({
    size: ranks,
    spares,
    command: rankCommand(paper, { run, file }),
    // Without spares the job would not survive anything either.
    mca: { ft: 'on' },
    stdinTo: 'none',
    stdout: listener.stream,
    stderr: listener.stream,
    forwardSignals: true,
  });
  if (wasTold) throw toldToEnd();
  const outcome = exitCode === 0 && existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : undefined;
  return { outcome, said: listener.said() };
}

/** A folder for the time of a campaign. */
export async function inFolder<T>(play: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'multirail-campaign-'));
  try {
    return await play(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Plays the campaign of periods; `say` gets a line for each job as soon as it has ended. */
export async function playPeriods(input: PeriodsInput, say: (text: string) => void): Promise<Finding> {
  const { ranks, failures } = input;
  if (ranks + failures > RANKS_MAX)
    throw new MultirailError('ERR_ARG', `-n ${ranks} with ${failures} that stand by: expected at most ${RANKS_MAX} processes`);
  const runs = periodsRuns(input);
  return await inFolder(async (folder) => {
    const played: PeriodsPlayed[] = [];
    for (const run of runs) {
      const { outcome, said } = await playJob<PeriodsOutcome>({ paper: '004', run, ranks, spares: failures, folder });
      played.push({ run, outcome });
      say(periodsLine({ run, outcome }));
      if (outcome === undefined) say(said.trimEnd());
    }
    return campaign004(input, played);
  });
}

/** Plays the campaign; `say` gets a line for each job as soon as it has ended. */
export async function playCampaign(options: CampaignOptions, say: (text: string) => void): Promise<Finding> {
  const scheme = { domains: options.np, duplication: options.df, depth: options.sd };
  requireScheme(scheme);
  const input: CampaignInput = { scheme, sets: parseSets(options.sets), runs: options.runs, seed: options.seed };
  const runs = campaignRuns(input);
  const most = Math.max(...runs.map(({ failed }) => failed.length));
  const spares = options.spares ?? most;
  if (spares < most) throw new MultirailError('ERR_ARG', `--spares ${spares}: ${most} ranks die in a job, expected at least as many`);
  if (options.np + spares > RANKS_MAX)
    throw new MultirailError('ERR_ARG', `-n ${options.np} with ${spares} that stand by: expected at most ${RANKS_MAX} processes`);
  const expected = undisturbed(options.np, runs[0].steps);
  return await inFolder(async (folder) => {
    const played: { run: CampaignRun; outcome: CampaignOutcome | undefined }[] = [];
    for (const [i, run] of runs.entries()) {
      const { outcome, said } = await playJob<CampaignOutcome>({ paper: '000', run, ranks: run.scheme.domains, spares, folder });
      played.push({ run, outcome });
      say(runLine(i + 1, runs.length, run, outcome));
      if (outcome === undefined) say(said.trimEnd());
    }
    return campaign000(input, played, expected);
  });
}
