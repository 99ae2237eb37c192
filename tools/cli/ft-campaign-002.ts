// `multirail ft campaign 002`: plays the jobs of tools/ft/campaign-002.ts one after the other, and kills their ranks when their time has come.
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
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
import type { RankTask, RankWord } from '../ft/campaign-002-rank.ts';
import type { Finding } from '../ft/papers.ts';
import type { PlateWork } from '../ft/plate.ts';
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

/** Processor time of the steps of all ranks; a rank that took a dead one's place tells of its own steps alone. */
class Work {
  private seconds = 0;
  private steps = 0;

  add({ seconds, steps }: PlateWork): void {
    this.seconds += seconds;
    this.steps += steps;
  }

  get stepSeconds(): number {
    return this.seconds / Math.max(1, this.steps);
  }
}

/** Who dies in a job, and what becomes of it. */
class Striker {
  private readonly work = new Work();
  private readonly run: RecoveriesRun;
  /** The process that has each place, and the one that was killed there last. */
  private readonly processes = new Map<number, number>();
  private readonly killed = new Map<number, number>();
  /** When the process was killed whose place nobody has taken yet. */
  private readonly killedMs = new Map<number, number>();
  /** Deaths that fell due while a place was empty: nobody dies in a restart, as in the paper's program and in its model. */
  private readonly waiting: PlannedDeath[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly failures: [number, number] = [0, 0];
  private readonly restartSeconds: number[] = [];
  private beganMs: number | undefined;
  private hasEnded = false;
  private ended: Pick<RecoveriesOutcome, 'wallSeconds' | 'inPlace' | 'lostSteps' | 'digest'> | undefined;

  constructor(run: RecoveriesRun) {
    this.run = run;
  }

  hear(word: RankWord, job: RunningJob): void {
    switch (word.kind) {
      case 'begins':
        this.begins(word.rank, word.process, word.atMs);
        this.strikeNext(job);
        return;
      case 'computes':
        // Once more, where all have begun again from the beginning.
        if (this.beganMs !== undefined) return;
        this.beganMs = word.atMs;
        for (const death of this.run.deaths)
          this.timers.push(setTimeout(() => this.due(death, job), Math.max(0, word.atMs + 1000 * death.atSeconds - Date.now())));
        return;
      case 'worked':
        this.work.add(word.work);
        return;
      case 'ended': {
        this.stop();
        const { inPlace, lostSteps, digest, atMs } = word;
        this.ended = { wallSeconds: (atMs - (this.beganMs as number)) / 1000, inPlace, lostSteps, digest };
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

  private due(death: PlannedDeath, job: RunningJob): void {
    this.waiting.push(death);
    this.strikeNext(job);
  }

  private strikeNext(job: RunningJob): void {
    if (this.hasEnded || this.killedMs.size > 0) return;
    const death = this.waiting.shift();
    if (death === undefined) return;
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
    const { ended, failures, restartSeconds, work } = this;
    return ended && { ...ended, stepWorkSeconds: work.stepSeconds, failures, restartSeconds };
  }

  stop(): void {
    this.hasEnded = true;
    for (const timer of this.timers) clearTimeout(timer);
  }
}

/** Plays the campaign; `say` gets a line for each job as soon as it has ended. */
export async function playRecoveries(input: RecoveriesInput, say: (text: string) => void): Promise<Finding> {
  checkRecoveries(input);
  const limitMs = LIMIT_MORE_MS + 1000 * LIMIT_FACTOR * workSeconds(input);
  return await inFolder(async (folder) => {
    let told: Pick<Undisturbed, 'steps' | 'wallSeconds' | 'digest'> | undefined;
    const work = new Work();
    const measured = await runPlate({ measuredSeconds: workSeconds(input) }, 0, limitMs, (word) => {
      if (word.kind === 'undisturbed') told = word.undisturbed;
      if (word.kind === 'worked') work.add(word.work);
    });
    if (!measured.isWell || told === undefined)
      throw new MultirailError('ERR_LAUNCH', `the undisturbed job came to no end:\n${measured.said.trimEnd()}`);
    const undisturbed: Undisturbed = { ...told, stepWorkSeconds: work.stepSeconds, processors: availableParallelism() };
    say(`undisturbed: ${undisturbed.steps} steps in ${undisturbed.wallSeconds.toFixed(2)} s`);
    const played: RecoveriesPlayed[] = [];
    for (const run of recoveriesRuns(input, undisturbed)) {
      const saves = join(folder, 'saves');
      rmSync(saves, { recursive: true, force: true });
      const striker = new Striker(run);
      const { said, isWell } = await runPlate({ run, folder: saves }, run.spares, limitMs, (word, job) => striker.hear(word, job));
      striker.stop();
      const one = { run, outcome: isWell ? striker.outcome : undefined };
      played.push(one);
      say(recoveriesLine(one, input.runs));
      if (one.outcome === undefined) say(said.trimEnd());
    }
    return campaign002(input, undisturbed, played);
  });
}
