// A campaign: many seeds in worker processes, with one line of progress, the first failures, and a file from which it resumes.
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Coverage } from './coverage.ts';
import { runDeath } from './death.ts';
import { runGroup } from './group.ts';
import { runImpaired } from './impaired.ts';
import { runLog } from './log.ts';
import { runReplica } from './replica.ts';
import { runSave } from './save.ts';
import { runStorm } from './storm.ts';
import { runStress } from './stress.ts';
import { runSeed, type SwarmOptions, type SwarmReport } from './swarm.ts';
import { runUlfm } from './ulfm.ts';

const runGiveup = (seed: number, options: SwarmOptions): SwarmReport => runSeed(seed, { ...options, givesUp: true });

/** Every third time ranks die, too. */
const runMeet = (seed: number, options: SwarmOptions): SwarmReport =>
  seed % 3 === 2 ? runDeath(seed, { ...options, meets: true }) : runSeed(seed, { ...options, meets: true });

/**
 * How the seed is played: swarm = anything may fail at any time; stress = faults strike at chosen frames; death = ranks die; storm = many
 * rails, and all of it at once; giveup = as swarm, and users give sends up; impaired = rails are bad without being down, and gaps are bounded; meet = as swarm and
 * death, and ranks are connected when one of them first needs the other;
 * ulfm = programs agree, revoke, shrink and replace while processes die;
 * save = a program saves its state in memory and goes back to it while processes die;
 * log = messages are logged, and standbys succeed processes that die while the others go on;
 * group = the same with groups of ranks, which save by themselves and go back together;
 * replica = two processes of each rank compare what they send before it leaves, and bits flip.
 */
export const PROFILES = {
  swarm: runSeed,
  stress: runStress,
  death: runDeath,
  storm: runStorm,
  giveup: runGiveup,
  impaired: runImpaired,
  meet: runMeet,
  ulfm: runUlfm,
  save: runSave,
  log: runLog,
  group: runGroup,
  replica: runReplica,
} as const satisfies Record<string, (seed: number, options: SwarmOptions) => SwarmReport>;
export type Profile = keyof typeof PROFILES;

export interface CampaignOptions {
  profile: Profile;
  from: number;
  to: number;
  workers: number;
  /** Ends the campaign after so many failures. */
  failuresMax: number;
  coverage: boolean;
  /** Where to go on after a stop; written every few seconds. */
  checkpoint?: string;
  onProgress?: (state: CampaignResult) => void;
}

export interface Failure {
  seed: number;
  message: string;
}

export interface CampaignResult {
  seeds: number;
  events: number;
  virtualMs: number;
  messages: number;
  faults: Record<string, number>;
  counters: Record<string, number>;
  failures: Failure[];
  coverage: Coverage | undefined;
  elapsedMs: number;
}

/** Seeds that a worker gets at a time. */
const BATCH = 50;
/** Each time workers wait for each other, which cost a tenth of the whole every 5 s. */
const CHECKPOINT_EVERY_MS = 60_000;
/** Set in the environment of the worker processes. */
export const WORKER_ENV = 'MULTIRAIL_SIM_WORKER';

interface Task {
  profile: Profile;
  from: number;
  to: number;
  coverage: boolean;
}

interface Report {
  from: number;
  seeds: number;
  events: number;
  virtualMs: number;
  messages: number;
  faults: Record<string, number>;
  counters: Record<string, number>;
  failures: Failure[];
  cells: [string, number][];
  edges: [string, number][];
}

function add(into: Record<string, number>, from: Readonly<Record<string, number | undefined>>): void {
  for (const [name, value] of Object.entries(from)) into[name] = (into[name] ?? 0) + (value ?? 0);
}

/** Plays seeds in this process. */
export function playSeeds(task: Task): Report {
  const coverage = task.coverage ? new Coverage() : undefined;
  const report: Report = {
    from: task.from,
    seeds: 0,
    events: 0,
    virtualMs: 0,
    messages: 0,
    faults: {},
    counters: {},
    failures: [],
    cells: [],
    edges: [],
  };
  const options: SwarmOptions = coverage === undefined ? {} : { coverage };
  for (let seed = task.from; seed < task.to; seed++) {
    try {
      const run = PROFILES[task.profile](seed, options);
      report.events += run.events;
      report.virtualMs += run.virtualMs;
      report.messages += run.messages;
      add(report.faults, run.faults);
      add(report.counters, run.counters);
    } catch (error) {
      report.failures.push({ seed, message: error instanceof Error ? error.message : String(error) });
    }
    report.seeds++;
  }
  if (coverage !== undefined) {
    report.cells = [...coverage.cells];
    report.edges = [...coverage.edges];
  }
  return report;
}

/** The life of a worker process: takes tasks from its parent until that lets it go. */
export function serveAsWorker(): void {
  const leave = (): never => process.exit(0);
  process.on('message', (task: Task) =>
    // The parent may be gone by then.
    process.send?.(playSeeds(task), undefined, undefined, (error) => {
      if (error !== null) leave();
    }),
  );
  process.on('disconnect', leave);
}

export function isWorker(): boolean {
  return process.env[WORKER_ENV] !== undefined && process.send !== undefined;
}

interface Checkpoint {
  profile: Profile;
  from: number;
  next: number;
  totals: Omit<CampaignResult, 'coverage'>;
}

function readCheckpoint(path: string | undefined, profile: Profile, from: number): Checkpoint | undefined {
  if (path === undefined || !existsSync(path)) return undefined;
  const saved = JSON.parse(readFileSync(path, 'utf8')) as Checkpoint;
  return saved.profile === profile && saved.from === from ? saved : undefined;
}

/**
 * Runs [from, to). `script` is the command line that a worker process starts with `sim`; it must call serveAsWorker() when isWorker(). Without one,
 * or with a single worker, everything runs in this process.
 */
export async function runCampaign(options: CampaignOptions, script?: string): Promise<CampaignResult> {
  const started = performance.now();
  const saved = readCheckpoint(options.checkpoint, options.profile, options.from);
  const result: CampaignResult = {
    ...(saved?.totals ?? { seeds: 0, events: 0, virtualMs: 0, messages: 0, faults: {}, counters: {}, failures: [], elapsedMs: 0 }),
    coverage: options.coverage ? new Coverage() : undefined,
  };
  const elapsedBefore = result.elapsedMs;
  let next = saved?.next ?? options.from;
  // Everything below this number is counted: batches end out of order.
  const underWay = new Set<number>();
  let writtenAt = 0;
  const take = (): Task | undefined => {
    if (next >= options.to || result.failures.length >= options.failuresMax) return undefined;
    const from = next;
    next = Math.min(options.to, from + BATCH);
    underWay.add(from);
    return { profile: options.profile, from, to: next, coverage: options.coverage };
  };
  const save = () => {
    if (options.checkpoint === undefined || underWay.size > 0) return;
    const { coverage: _, ...totals } = result;
    const text: Checkpoint = { profile: options.profile, from: options.from, next, totals };
    writeFileSync(`${options.checkpoint}.new`, JSON.stringify(text));
    renameSync(`${options.checkpoint}.new`, options.checkpoint);
    writtenAt = performance.now();
  };
  const gather = (report: Report) => {
    underWay.delete(report.from);
    result.seeds += report.seeds;
    result.events += report.events;
    result.virtualMs += report.virtualMs;
    result.messages += report.messages;
    add(result.faults, report.faults);
    add(result.counters, report.counters);
    result.failures.push(...report.failures);
    result.coverage?.merge(report);
    result.elapsedMs = elapsedBefore + performance.now() - started;
    options.onProgress?.(result);
  };
  /** From time to time the workers are let run dry, so that what is saved is whole. */
  const mayTake = () => options.checkpoint === undefined || performance.now() - writtenAt < CHECKPOINT_EVERY_MS || underWay.size === 0;

  if (script === undefined || options.workers <= 1) {
    for (let task = take(); task !== undefined; task = take()) {
      gather(playSeeds(task));
      // What a world has promised itself keeps it in memory until the event loop has had a turn.
      await new Promise((resolve) => setImmediate(resolve));
      if (performance.now() - writtenAt >= CHECKPOINT_EVERY_MS) save();
    }
    save();
    return result;
  }
  const children: ChildProcess[] = [];
  const idle: ChildProcess[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      const feed = () => {
        if (underWay.size === 0) save();
        while (idle.length > 0 && mayTake()) {
          const task = take();
          if (task === undefined) break;
          (idle.pop() as ChildProcess).send(task);
        }
        if (underWay.size === 0) resolve();
      };
      for (let i = 0; i < options.workers; i++) {
        const child = fork(script, ['sim'], { env: { ...process.env, [WORKER_ENV]: '1' } });
        children.push(child);
        idle.push(child);
        child.on('error', reject);
        child.on('exit', (code, signal) => reject(new Error(`a worker of the campaign ended with ${signal ?? `code ${code}`}`)));
        child.on('message', (report: Report) => {
          gather(report);
          idle.push(child);
          feed();
        });
      }
      feed();
    });
  } finally {
    for (const child of children) {
      child.removeAllListeners('exit');
      if (child.connected) child.disconnect();
    }
  }
  save();
  return result;
}
