// `multirail ft campaign 002`: plays the jobs of tools/ft/campaign-002.ts one after the other, and kills their ranks when their time has come.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { MultirailError } from '../../src/errors.ts';
import { type RunningJob, startJob } from '../../src/launch/run/launcher.ts';
import {
  campaign002,
  checkRecoveries,
  PLATE_RANKS,
  type PlannedDeath,
  type RecoveriesInput,
  type RecoveriesOutcome,
  type RecoveriesPlayed,
  type RecoveriesRun,
  recoveriesLine,
  recoveriesRuns,
  type Undisturbed,
  workSeconds,
} from '../ft/campaign-002.ts';
import { type RankTask, type RankWord, struckFile } from '../ft/campaign-002-rank.ts';
import { JobClock } from '../ft/job-clock.ts';
import { type Finding, meanOf } from '../ft/papers.ts';
import { inFolder, rankCommand, toldToEnd } from './ft-campaign.ts';

/** A job that has not ended after so many times its work, and a minute, is ended. */
const LIMIT_FACTOR = 10;
const LIMIT_MORE_MS = 60_000;

interface Ended {
  readonly said: string;
  readonly isWell: boolean;
}

/** Runs one job; `hear` gets what its ranks tell. */
async function runPlate(task: RankTask, spares: number, limitMs: number, hear: (word: RankWord, job: RunningJob) => void): Promise<Ended> {
  let said = '';
  let rest = '';
  let job: RunningJob | undefined;
  const early: RankWord[] = [];
  const take = (word: RankWord): void => {
    if (job === undefined) early.push(word);
    else hear(word, job);
  };
  const listener = new Writable({
    write(chunk, _encoding, done) {
      rest += chunk;
      const lines = rest.split('\n');
      rest = lines.pop() as string;
      for (const line of lines) {
        const word = /^\[\d+\] campaign (\{.*\})$/.exec(line)?.[1];
        if (word === undefined) said += `${line}\n`;
        else take(JSON.parse(word) as RankWord);
      }
      done();
    },
  });
  const started = await startJob({
    size: PLATE_RANKS,
    spares,
    command: rankCommand('002', task),
    mca: { ft: 'on' },
    stdinTo: 'none',
    stdout: listener,
    stderr: listener,
    forwardSignals: true,
  });
  job = started;
  for (const word of early) hear(word, started);
  const timer = setTimeout(() => started.end(`the job has not ended after ${Math.round(limitMs / 1000)} s`), limitMs);
  try {
    const { exitCode, wasTold } = await started.result;
    if (wasTold) throw toldToEnd();
    return { said: said + rest, isWell: exitCode === 0 };
  } finally {
    clearTimeout(timer);
  }
}

/** Who dies in a job, and what becomes of it. */
class Striker {
  private readonly stepSeconds: number | undefined;
  private readonly deaths: readonly PlannedDeath[];
  private readonly struck: string;
  /** The process that has each place, and the one that was killed there last. */
  private readonly processes = new Map<number, number>();
  private readonly killed = new Map<number, number>();
  /** When the process was killed whose place nobody has taken yet. */
  private readonly killedMs = new Map<number, number>();
  private readonly failures: [number, number] = [0, 0];
  private readonly restartSeconds: number[] = [];
  private beganMs = 0;
  /** It runs from when the job begins to compute. */
  private clock: JobClock | undefined;
  private ended: Omit<RecoveriesOutcome, 'failures' | 'restartSeconds'> | undefined;

  /** `stepSeconds`: processor time of a step in the undisturbed job; `struck`: where it is noted which deaths have come. */
  constructor({ deaths }: RecoveriesRun, stepSeconds: number | undefined, struck: string) {
    this.stepSeconds = stepSeconds;
    this.deaths = deaths;
    this.struck = struck;
  }

  hear(word: RankWord, job: RunningJob): void {
    switch (word.kind) {
      case 'begins':
        this.begins(word.rank, word.process, word.atMs);
        return;
      case 'computes':
        // Once more, where all have begun again from the beginning.
        if (this.clock !== undefined) return;
        this.beganMs = word.atMs;
        this.clock = new JobClock(this.stepSeconds, word.atMs);
        return;
      case 'reached':
        this.strike(word.death, job);
        return;
      case 'pace':
        this.clock?.pace(word.rank, word.stepSeconds, Date.now());
        return;
      case 'ended': {
        const { inPlace, lostSteps, digest, atMs } = word;
        const clockSeconds = (this.clock as JobClock).secondsAt(atMs);
        this.ended = { wallSeconds: (atMs - this.beganMs) / 1000, clockSeconds, inPlace, lostSteps, digest };
      }
    }
  }

  private begins(rank: number, number: number, atMs: number): void {
    this.processes.set(rank, number);
    const sinceMs = this.killedMs.get(rank);
    if (sinceMs === undefined || number === this.killed.get(rank)) return;
    this.killedMs.delete(rank);
    this.restartSeconds.push((atMs - sinceMs) / 1000);
  }

  private strike(at: number, job: RunningJob): void {
    const death = this.deaths[at];
    writeFileSync(struckFile(this.struck, at), '');
    this.failures[death.level - 1]++;
    for (const rank of death.ranks) {
      const number = this.processes.get(rank) as number;
      this.killed.set(rank, number);
      this.killedMs.set(rank, Date.now());
      job.kill(number);
    }
  }

  /** When the job is over; undefined where its ranks have not come to the end. */
  get outcome(): RecoveriesOutcome | undefined {
    const { ended, failures, restartSeconds } = this;
    return ended && { ...ended, failures, restartSeconds };
  }
}

/** Plays the campaign; `say` gets a line for each job as soon as it has ended. */
export async function playRecoveries(input: RecoveriesInput, say: (text: string) => void): Promise<Finding> {
  checkRecoveries(input);
  const limitMs = LIMIT_MORE_MS + 1000 * LIMIT_FACTOR * workSeconds(input);
  return await inFolder(async (folder) => {
    let told: Pick<Undisturbed, 'steps' | 'wallSeconds' | 'digest'> | undefined;
    const paces: number[] = [];
    const measured = await runPlate({ measuredSeconds: workSeconds(input) }, 0, limitMs, (word) => {
      if (word.kind === 'undisturbed') told = word.undisturbed;
      if (word.kind === 'pace') paces.push(word.stepSeconds);
    });
    if (!measured.isWell || told === undefined)
      throw new MultirailError('ERR_LAUNCH', `the undisturbed job came to no end:\n${measured.said.trimEnd()}`);
    const stepWorkSeconds = paces.length === 0 ? undefined : meanOf(paces);
    const undisturbed: Undisturbed = { ...told, stepWorkSeconds };
    say(`undisturbed: ${undisturbed.steps} steps in ${undisturbed.wallSeconds.toFixed(2)} s`);
    const played: RecoveriesPlayed[] = [];
    for (const run of recoveriesRuns(input, undisturbed)) {
      const [saves, struck] = ['saves', 'struck'].map((name) => join(folder, name));
      for (const one of [saves, struck]) rmSync(one, { recursive: true, force: true });
      mkdirSync(struck);
      const striker = new Striker(run, undisturbed.stepWorkSeconds, struck);
      const { said, isWell } = await runPlate({ run, folder: saves, struck }, run.spares, limitMs, (word, job) => striker.hear(word, job));
      const one = { run, outcome: isWell ? striker.outcome : undefined };
      played.push(one);
      say(recoveriesLine(one, input.runs));
      if (one.outcome === undefined) say(said.trimEnd());
    }
    return campaign002(input, undisturbed, played);
  });
}
