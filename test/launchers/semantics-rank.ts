// One rank of the suites of semantics in which every rank is a process: all ranks go through the cases in step, each plays its part, and
// rank 0 says in TAP how each case ended. semantics.mjs starts it, under any starter.
//   semantics-rank.mjs STARTER JOB REPORT [ONLY]     the number of the job (semantics-cases.ts); a file for the verdicts as JSON; cases
//                                                     whose names match this expression, and no others
import { writeFileSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, init, MultirailError, type Runtime, UNDEFINED } from '../../src/index.ts';
import type { P2pWorld } from '../support/p2p-worlds.ts';
import { jobs, type RankCase } from './semantics-cases.ts';

const CASE_LIMIT_MS = 30_000;
/** A rank whose case has ended waits so long for the others. */
const GATHER_LIMIT_MS = CASE_LIMIT_MS + 15_000;
/** How long what is left of a case may take to be delivered. */
const DRAIN_LIMIT_MS = 10_000;

/** How a case ended at one rank; null = well. `stuck`: it has not ended, or has left messages, and nothing can be run behind it. */
type Verdict = { text: string; stuck: boolean } | null;

interface Outcome {
  suite: string;
  name: string;
  outcome: 'passed' | 'failed' | 'not applicable';
  reason?: string;
  errors?: { rank: number; text: string }[];
  ms?: number;
}

/** A world that a case gets: the own rank of a communicator of its own ranks. */
class RankWorld implements P2pWorld {
  readonly comms: Communicator[];
  readonly runtimes: Runtime[];
  private readonly control: Communicator;

  constructor(runtime: Runtime, comm: Communicator, control: Communicator) {
    this.runtimes = [runtime];
    this.comms = [comm];
    this.control = control;
  }

  get hub(): never {
    throw new Error('ranks that are processes have no hub: the case needs the mark oneProcess');
  }

  sleep(ms: number): Promise<void> {
    return sleep(ms);
  }

  readonly meet = (): Promise<void> => this.control.barrier();

  readonly share = <T>(own: T): Promise<T[]> => this.control.allgatherObject(own);

  async teardown(): Promise<void> {}
}

class Conductor {
  private readonly mpi: Runtime;
  /** Apart from everything that cases do. */
  private readonly control: Communicator;
  private readonly isOneHost: boolean;
  private readonly canBlock: string | undefined;
  /** By number of ranks; null: this rank is in none. */
  private worlds = new Map<number, RankWorld | null>();
  readonly outcomes: Outcome[] = [];
  failed = 0;

  private constructor(mpi: Runtime, control: Communicator, isOneHost: boolean, canBlock: string | undefined) {
    this.mpi = mpi;
    this.control = control;
    this.isOneHost = isOneHost;
    this.canBlock = canBlock;
  }

  static async start(mpi: Runtime): Promise<Conductor> {
    const control = await mpi.world.dup();
    control.setName('control');
    const near = await control.splitType('shared');
    await control.barrier();
    let refusal: string | undefined;
    try {
      control.barrierSync();
    } catch (error) {
      if (!(error instanceof MultirailError) || error.code !== 'ERR_SUPPORT') throw error;
      refusal = error.message;
    }
    const refusals = await control.allgatherObject(refusal);
    return new Conductor(
      mpi,
      control,
      near?.size === mpi.world.size,
      refusals.find((text) => text !== undefined),
    );
  }

  private reasonAgainst(one: RankCase): string | undefined {
    if (one.notApplicable !== undefined) return one.notApplicable;
    if (!one.anySize && one.ranks > this.mpi.world.size) return `it takes ${one.ranks} ranks`;
    if (!this.isOneHost && one.oneHost !== undefined) return `the ranks are on several hosts: ${one.oneHost}`;
    if (one.suite === 'blocking') return this.canBlock;
    return undefined;
  }

  /** A world of so many ranks with this one in it: as many side by side as there is room for. All ranks call it. */
  private async worldOf(one: RankCase): Promise<RankWorld | null> {
    const { world } = this.mpi;
    const size = one.anySize ? world.size : one.ranks;
    const known = this.worlds.get(size);
    if (known !== undefined) return known;
    const group = Math.floor(world.rank / size);
    const isIn = (group + 1) * size <= world.size;
    const comm = size === world.size ? world : await this.control.split(isIn ? group : UNDEFINED);
    const made = comm === null ? null : new RankWorld(this.mpi, comm, await comm.dup());
    this.worlds.set(size, made);
    return made;
  }

  /** Runs a case on all ranks; false when nothing can be run behind it. */
  async run(one: RankCase): Promise<boolean> {
    const { suite, name } = one;
    const reason = this.reasonAgainst(one);
    if (reason !== undefined) {
      this.outcomes.push({ suite, name, outcome: 'not applicable', reason });
      return true;
    }
    const world = await this.worldOf(one);
    await this.control.barrier();
    const startedMs = performance.now();
    const verdict = world === null ? null : await this.play(one, world);
    const verdicts = await this.gathered(one, verdict);
    const ms = Math.round(performance.now() - startedMs);
    const errors = verdicts.flatMap((verdict, rank) => (verdict === null ? [] : [{ rank, text: verdict.text }]));
    this.outcomes.push({ suite, name, outcome: errors.length === 0 ? 'passed' : 'failed', ...(errors.length > 0 ? { errors } : {}), ms });
    if (errors.length === 0) return true;
    this.failed++;
    // Messages and meetings of the case that failed are left in them.
    this.worlds = new Map();
    return !verdicts.some((verdict) => verdict?.stuck);
  }

  /** The verdicts of all ranks. One that hangs in a blocking call has no time limit of its own: the others end the job then. */
  private async gathered(one: RankCase, verdict: Verdict): Promise<Verdict[]> {
    if (verdict !== null) process.stderr.write(`# ${one.suite}: ${one.name}: rank ${this.mpi.world.rank}: ${verdict.text}\n`);
    const timer = setTimeout(() => {
      const text = `"${one.suite}: ${one.name}" has ended at rank ${this.mpi.world.rank}, and not at all others after ${GATHER_LIMIT_MS} ms`;
      void this.mpi.abort(1, text);
    }, GATHER_LIMIT_MS);
    const verdicts = await this.control.allgatherObject(verdict);
    clearTimeout(timer);
    return verdicts;
  }

  private async play(one: RankCase, world: RankWorld): Promise<Verdict> {
    const ended = (async (): Promise<Verdict> => {
      try {
        await one.run(world, this.mpi);
        await this.nothingLeft(world.comms[0]);
        return null;
      } catch (error) {
        const text = error instanceof Error ? (error.stack ?? String(error)) : String(error);
        return { text, stuck: !(await this.clears()) };
      }
    })();
    const stop = new AbortController();
    const late = sleep(CASE_LIMIT_MS, undefined, { signal: stop.signal }).then(
      (): Verdict => ({ text: `no end after ${CASE_LIMIT_MS} ms; ${this.whatIsOpen()}`, stuck: true }),
      (): Verdict => null,
    );
    const verdict = await Promise.race([ended, late]);
    stop.abort();
    return verdict;
  }

  private whatIsOpen(): string {
    return JSON.stringify({ waits: this.mpi.waits(), undelivered: this.mpi.undelivered() });
  }

  /** All that was sent is delivered, sooner or later. */
  private async clears(): Promise<boolean> {
    const untilMs = performance.now() + DRAIN_LIMIT_MS;
    while (this.mpi.undelivered().length > 0 || this.mpi.counters().engine.retainedBytes > 0) {
      if (performance.now() > untilMs) return false;
      await sleep(1);
    }
    return true;
  }

  /** As the suites look when they close a world: nothing is under way, and nothing is kept. */
  private async nothingLeft(comm: Communicator): Promise<void> {
    if (!(await this.clears())) throw new Error(`something is left: ${this.whatIsOpen()}`);
    const message = comm.iprobe();
    if (message !== undefined) throw new Error(`a message is left: tag ${message.tag} of rank ${message.source}`);
  }
}

/** The lines of one outcome, by the Test Anything Protocol. */
function tapOf({ suite, name, outcome, reason, errors, ms }: Outcome, number: number): string {
  const title = `${number} - ${suite}: ${name}`.replaceAll('#', '\\#');
  if (outcome === 'not applicable') return `ok ${title} # SKIP ${reason}`;
  if (outcome === 'passed') return `ok ${title} # ${ms} ms`;
  const told = (errors ?? []).map(({ rank, text }) => `# rank ${rank}: ${text.replaceAll('\n', '\n#   ')}`);
  return [`not ok ${title}`, ...told].join('\n');
}

const [starter, jobText, reportPath, only] = process.argv.slice(2);
const all = jobs();
const job = all[Number(jobText)];
if (job === undefined) throw new Error(`no job ${jobText}; expected 0 to ${all.length - 1}`);
const cases = only === undefined ? job.cases : job.cases.filter(({ name }) => new RegExp(only).test(name));
const mpi = await init({ params: { ...job.limits, ...job.params } });
const { rank, size } = mpi.world;
const say = (text: string) => {
  if (rank === 0) process.stdout.write(`${text}\n`);
};
const startedMs = performance.now();
const conductor = await Conductor.start(mpi);
say(
  `TAP version 14\n1..${cases.length}\n# job ${jobText} of ${all.length}: ${size} ranks under ${starter}, ${JSON.stringify({ ...job.limits, ...job.params })}`,
);
let goesOn = true;
for (const [i, one] of cases.entries()) {
  goesOn = await conductor.run(one);
  say(tapOf(conductor.outcomes[i], i + 1));
  if (!goesOn) break;
}
if (!goesOn) say(`Bail out! ${cases.length - conductor.outcomes.length} cases were not run: the last one has left something behind`);
const count = (outcome: Outcome['outcome']) => conductor.outcomes.filter((one) => one.outcome === outcome).length;
const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
say(`# ${count('passed')} passed, ${count('failed')} failed, ${count('not applicable')} not applicable in ${seconds} s`);
if (rank === 0) {
  const notRun = cases.length - conductor.outcomes.length;
  writeFileSync(reportPath, JSON.stringify({ starter, ranks: size, jobs: all.length, notRun, outcomes: conductor.outcomes }));
}
process.exitCode = conductor.failed > 0 ? 1 : 0;
// What has not ended will not end: no rank leaves by finalize(), which would wait for it.
if (!goesOn) process.exit(1);
await mpi.finalize();
