// Runs the N ranks of a job, on this machine or by ssh on others: environment, secret, input and output, signals, exit codes, and the end
// of all ranks when one fails. Whatever happens, no process is left behind.
import { randomBytes } from 'node:crypto';
import { availableParallelism, constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { MultirailError } from '../../errors.ts';
import { type ParamTable, survivesFailures, takesOver } from '../../params.ts';
import { crowdFactor } from '../../util/crowd.ts';
import { OWN_FAILURE_CODE, TOLD_TO_END_CODE } from '../../util/exit-codes.ts';
import { removeRecord, writeRecord } from '../meeting/file.ts';
import { loopbackAddress } from '../oob/addresses.ts';
import type { AbortInfo } from '../oob/member.ts';
import { OobServer } from '../oob/server.ts';
import type { RailFault } from '../oob/telemetry.ts';
import { watchServer } from '../watch/observer.ts';
import { WaitsGatherer } from '../watch/waits-gather.ts';
import { resolveCommand } from './command.ts';
import { RankGuard } from './guard.ts';
import { JobReplicas } from './job-replicas.ts';
import { type JobResult, UNMET_KILLS_CODE } from './job-result.ts';
import { checkKills, Killer } from './kill-plan.ts';
import { LinePrefixer, pumpInput } from './output.ts';
import type { RankChild } from './rank-child.ts';
import { RankStarter } from './rank-starter.ts';
import type { RunningJob, RunOptions } from './run-options.ts';
import { StartGate } from './start-gate.ts';
import { processesOf, Workers } from './workers.ts';

export const RANKS_MAX = 4096;
/** How long a dead rank's last words are waited for before its end is judged. */
const LAST_WORDS_MS = 200;
/** How long output is waited for after the last process has ended. */
const OUTPUT_DRAIN_MS = 1000;
const FORWARDED_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
/** How long those are waited for that were started by hand, when all others have ended. */
const GUESTS_WAIT_MS = 2000;
/** Who waits for whom is printed, besides that the ranks get the signal. */
const WAITS_SIGNAL = 'SIGUSR2';

export type { RunningJob, RunOptions } from './run-options.ts';

/** States of a job. */
const JOB = {
  STARTING: 0, // ranks are being spawned
  RUNNING: 1, // all are spawned
  ENDING: 2, // the verdict stands; whoever still lives was told to end
  ENDED: 3, // every process is gone, and its output is out
} as const;
type JobState = (typeof JOB)[keyof typeof JOB];
const JOB_EDGES: Record<JobState, readonly JobState[]> = {
  [JOB.STARTING]: [JOB.RUNNING, JOB.ENDING],
  [JOB.RUNNING]: [JOB.ENDING, JOB.ENDED],
  [JOB.ENDING]: [JOB.ENDED],
  [JOB.ENDED]: [],
};

interface RankProcess {
  rank: number;
  child: RankChild;
  pid: number;
  exited: boolean;
  /** Why its end is not known. */
  lost: string | undefined;
  code: number | undefined;
  signal: NodeJS.Signals | undefined;
  /** Its end has been judged. */
  judged: Promise<void>;
}

export const newJobId = (): string => randomBytes(8).toString('hex');

/** Runs a job to its end. */
export async function runJob(options: RunOptions): Promise<JobResult> {
  return await (await startJob(options)).result;
}

/** Starts a job; resolves once every rank is spawned. */
export async function startJob(options: RunOptions): Promise<RunningJob> {
  const job = new LocalJob(options);
  await job.start();
  return job;
}

class LocalJob implements RunningJob {
  readonly jobId: string;
  readonly pids: number[] = [];
  readonly result: Promise<JobResult>;
  private readonly options: RunOptions;
  private readonly command: string[];
  /** Processes that are started: ranks, and those that stand by. */
  private readonly size: number;
  private readonly mca: Readonly<Record<string, string>>;
  private readonly params: ParamTable;
  private readonly secret = randomBytes(32);
  private readonly starter: RankStarter;
  private server: OobServer;
  /** By number. */
  private readonly ranks = new Map<number, RankProcess>();
  private readonly respawnsMax: number;
  private respawned = 0;
  private haveStandbysEnded = false;
  /** All have told each other their addresses: before that nobody can do without anybody. */
  private haveMet = false;
  private readonly stdout: Writable;
  private readonly stderr: Writable;
  private readonly forwarded = new Set<NodeJS.Signals>();
  private readonly undo: (() => void)[] = [];
  private guard: RankGuard | undefined;
  private gatherer: WaitsGatherer | undefined;
  private state: JobState = JOB.STARTING;
  private exitCode = 0;
  private failure: string | undefined;
  /** With the parameter ft on: ranks that died, and the code that the first of them stands for. */
  private died = 0;
  private diedCode = 0;
  /** With it off, too; but not those that this launcher has killed. */
  private deaths = 0;
  private hasKilled = false;
  private wasTold = false;
  private killer: Killer | undefined;
  private readonly workers: Workers;
  private readonly replicas: JobReplicas;
  private interrupts = 0;
  private killTimer: NodeJS.Timeout | undefined;
  private resolveResult!: (result: JobResult) => void;

  constructor(options: RunOptions) {
    const { size, spares = 0 } = options;
    if (!Number.isInteger(spares) || spares < 0 || size + spares > RANKS_MAX) {
      throw new MultirailError(
        'ERR_ARG',
        `number of spares ${spares}: expected a whole number, 0 or more, and at most ${RANKS_MAX} processes together with the ranks`,
      );
    }
    if (!Number.isInteger(size) || size < 1 || size > RANKS_MAX) {
      throw new MultirailError('ERR_ARG', `number of ranks ${size}: expected a whole number from 1 to ${RANKS_MAX}`);
    }
    if (typeof options.stdinTo === 'number' && !(Number.isInteger(options.stdinTo) && options.stdinTo >= 0 && options.stdinTo < size)) {
      throw new MultirailError('ERR_ARG', `standard input for rank ${options.stdinTo}, but ranks go from 0 to ${size - 1}`);
    }
    this.options = options;
    this.jobId = options.jobId ?? newJobId();
    this.command = resolveCommand(options.command, {
      ...(options.nodeArgs === undefined ? {} : { nodeArgs: options.nodeArgs }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const processes = processesOf(options);
    if (processes.size > RANKS_MAX) throw new MultirailError('ERR_ARG', `${processes.size} processes: expected at most ${RANKS_MAX}`);
    this.mca = processes.mca;
    this.params = processes.params;
    this.size = processes.size;
    this.workers = new Workers(processes.size, processes.spares);
    const { replicas = 1 } = options;
    this.replicas = new JobReplicas({
      replicas,
      ranks: size,
      takesOver: takesOver(this.params),
      isLiving: (number) => this.ranks.get(number)?.exited === false,
      say: (text) => this.say(text),
    });
    this.stdout = options.stdout ?? process.stdout;
    this.stderr = options.stderr ?? process.stderr;
    this.result = new Promise((resolve) => {
      this.resolveResult = resolve;
    });
    const { kill } = options;
    if (kill !== undefined) checkKills(kill, size - (spares === 0 ? this.workers.spares : 0), this.size);
    this.respawnsMax = this.params.int('ft_respawn');
    this.starter = new RankStarter({
      ...options,
      command: this.command,
      mca: this.mca,
      params: this.params,
      size: this.size,
      jobId: this.jobId,
      secret: this.secret,
      urls: () => this.server.urls,
      say: (text) => this.say(text),
    });
    if (options.rendezvous !== undefined && !processes.survivesFailures)
      throw new MultirailError(
        'ERR_ARG',
        '--rendezvous needs a job that processes can join: give it --mca ft on, --spares or --respawn, too',
      );
    this.server = this.makeServer(options.oobListen ?? (this.starter.isAllHere ? [loopbackAddress()] : ['::']));
  }

  get oobUrls(): readonly string[] {
    return this.server.urls;
  }

  private makeServer(listen: readonly string[]): OobServer {
    return new OobServer({
      jobId: this.jobId,
      size: this.size,
      spares: this.workers.spares,
      takesJoins: survivesFailures(this.params),
      secret: this.secret,
      knowsProcesses: true,
      crowd: this.crowd,
      reconnectTimeoutMs: this.params.int('oob_reconnect_timeout_ms'),
      listen,
      log: (text) => this.say(text),
    });
  }

  /** Ranks of other hosts do not take processors of this one. */
  private get crowd(): number {
    return crowdFactor(this.starter.sizeHere, availableParallelism());
  }

  private async openServer(): Promise<void> {
    try {
      await this.server.open();
    } catch (error) {
      await this.server.close();
      // A kernel without IPv6.
      if (this.options.oobListen !== undefined || this.starter.isAllHere) throw error;
      this.server = this.makeServer(['0.0.0.0']);
      await this.server.open();
    }
  }

  async start(): Promise<void> {
    await this.openServer();
    this.server.on('abort', (info) => this.onAbort(info));
    this.server.on('lost', (rank, text) => this.onLost(rank, text));
    this.server.on('added', (rank) => this.workers.addStandby(rank));
    this.server.on('ended', (rank) => this.guestEnded(rank));
    this.server.on('standby', (rank, isWaiting, place) => this.workers.set(rank, isWaiting ? undefined : place));
    if (this.options.kill !== undefined) {
      this.killer = new Killer(this.options.kill, {
        numberOf: (rank) => this.workers.numberOf(rank),
        isLiving: (number) => this.ranks.get(number)?.exited === false && !this.server.isFinalized(number),
        working: () => this.workers.numbers,
        strike: (number) => this.kill(number),
        say: (text) => this.say(text),
      });
    }
    this.server.on('met', () => {
      this.haveMet = true;
      this.killer?.begin();
    });
    const gatherer = new WaitsGatherer(this.server, {
      say: (text) => this.say(text),
      jsonFile: this.params.string('mpi_waits_json_file'),
      replicas: this.options.replicas ?? 1,
      onReport: (report) => this.options.onWaits?.(report),
    });
    this.server.on('waitsAsked', (rank, reason) => gatherer.gather(`${this.starter.nameOf(rank)}: ${reason}`));
    this.server.on('waitsReport', (rank, id, json) => gatherer.take(rank, id, json));
    this.gatherer = gatherer;
    this.server.on('railEvent', (rank, event) => this.options.onRailEvent?.(rank, event));
    const { rendezvous } = this.options;
    if (rendezvous !== undefined) {
      writeRecord(rendezvous, this.starter.meetingRecord());
      this.undo.push(() => removeRecord(rendezvous));
    }
    if (this.options.observer !== undefined) watchServer(this.server, this.options.observer);
    this.watchSinks();
    if (this.options.forwardSignals === true) this.catchSignals();
    this.guard = new RankGuard((text) => this.say(text));
    try {
      await this.starter.openHosts();
      await this.spawnAll();
    } catch (error) {
      this.end(`rank ${this.ranks.size} could not be started`, 1);
      await this.finish();
      throw error;
    }
    this.feedInput();
    if (this.state === JOB.STARTING) this.moveTo(JOB.RUNNING);
    void this.finish();
  }

  signal(signal: NodeJS.Signals): void {
    for (const { child } of this.ranks.values()) child.kill(signal);
  }

  end(reason: string, exitCode = 1): void {
    if (this.state === JOB.ENDING || this.state === JOB.ENDED) return;
    this.moveTo(JOB.ENDING);
    this.failure = reason;
    this.exitCode = exitCode;
    this.signal('SIGTERM');
    // A stopped or stubborn process hears only SIGKILL.
    this.killTimer = setTimeout(() => this.killAll(), this.options.killGraceMs ?? 1000);
  }

  private killAll(): void {
    this.hasKilled = true;
    this.signal('SIGKILL');
  }

  railFault(rank: number, fault: RailFault): void {
    if (rank < this.server.size) this.server.railFault(rank, fault);
  }

  kill(rank: number): void {
    this.ranks.get(rank)?.child.kill('SIGKILL');
  }

  askWaits(reason: string): void {
    this.gatherer?.gather(reason, { printed: false });
  }

  // --- start

  private async spawnAll(): Promise<void> {
    const gate = this.starter.isAllHere ? new StartGate(availableParallelism()) : undefined;
    const pass = (rank: number) => gate?.leave(rank);
    this.server.on('joined', pass).on('ended', pass);
    try {
      for (let rank = 0; rank < this.size; rank++) {
        await gate?.enter(rank);
        await this.spawnRank(rank);
      }
    } finally {
      this.server.off('joined', pass).off('ended', pass);
      gate?.close();
    }
  }

  private async spawnRank(rank: number, more: Readonly<Record<string, string>> = {}): Promise<void> {
    const { child, isHere } = await this.starter.start(rank, more);
    const process: RankProcess = {
      rank,
      child,
      pid: child.pid,
      exited: false,
      lost: undefined,
      code: undefined,
      signal: undefined,
      judged: Promise.resolve(),
    };
    process.judged = child.ended.then(({ code, signal, lost }) => {
      process.exited = true;
      process.code = code;
      process.signal = signal;
      process.lost = lost;
      if (isHere) this.guard?.gone(process.pid);
      return this.judge(process);
    });
    if (isHere) this.guard?.add(process.pid);
    this.options.observer?.spawned?.(rank, process.pid);
    this.ranks.set(rank, process);
    this.pids[rank] = process.pid;
    this.routeOutput(this.replicas.output(rank, child.stdout), this.stdout, rank);
    this.routeOutput(child.stderr, this.stderr, rank);
    // A rank that failed while others were being spawned ends the job: this one too.
    if (this.state === JOB.ENDING) child.kill('SIGTERM');
  }

  /** Starts a process that stands by, in place of one that has died: on the same host, or where there is room. */
  private async respawn({ rank: dead }: RankProcess): Promise<void> {
    const { respawnsMax } = this;
    const isAtWork = (number: number): boolean => this.ranks.get(number)?.exited === false && !this.server.isFinalized(number);
    // Where nobody is at work any more, nobody will call it in.
    if (respawnsMax === 0 || this.state !== JOB.RUNNING || !this.workers.numbers.some(isAtWork)) return;
    if (this.respawned === respawnsMax)
      return this.endStandbys(`${respawnsMax} processes were started in place of others, which is the most (--respawn)`);
    this.respawned++;
    try {
      const number = this.server.reserve();
      this.workers.addStandby(number);
      try {
        const isLiving = (other: number): boolean => this.ranks.get(other)?.exited === false;
        const host = this.starter.placeAgain(number, dead, isLiving);
        await this.spawnRank(number, { MULTIRAIL_MCA_ft_join: 'standby' });
        this.say(
          `process ${number} (pid ${this.pids[number]}${host === undefined ? '' : ` on ${host}`}) is started in place of process ${dead}, and will stand by`,
        );
      } catch (error) {
        this.server.processExited(number, { code: undefined, signal: '' });
        throw error;
      }
    } catch (error) {
      this.endStandbys(`no process can be started in place of process ${dead}: ${(error as Error).message}`);
    }
  }

  private endStandbys(why: string): void {
    if (!this.haveStandbysEnded) this.say(`${why}; no more will be`);
    this.haveStandbysEnded = true;
    this.server.endStandbys();
  }

  private feedInput(): void {
    const targets = [...this.ranks.values()].map(({ child }) => child.stdin).filter((stream) => stream !== null);
    if (targets.length > 0) this.undo.push(pumpInput(this.options.stdin ?? process.stdin, targets));
  }

  private routeOutput(source: Readable | null, sink: Writable, rank: number): void {
    if (source === null) return;
    const lines = this.options.prefix === false ? source : source.pipe(new LinePrefixer(`[${this.starter.labelOf(rank)}] `));
    lines.pipe(sink, { end: false });
  }

  private watchSinks(): void {
    for (const sink of new Set([this.stdout, this.stderr])) {
      const listenersMax = sink.getMaxListeners();
      // One pipe per rank and stream ends in each of these.
      sink.setMaxListeners(listenersMax + 2 * this.size + 2);
      const failed = (error: Error) => {
        const brokenPipe = (error as NodeJS.ErrnoException).code === 'EPIPE';
        this.end(`the output cannot be written: ${error.message}`, brokenPipe ? 128 + constants.signals.SIGPIPE : 1);
        // Nobody reads it any more; what the ranks still write is read and dropped, so that none blocks on it.
        for (const { child } of this.ranks.values()) for (const stream of [child.stdout, child.stderr]) stream?.unpipe().resume();
      };
      sink.on('error', failed);
      this.undo.push(() => {
        sink.off('error', failed);
        sink.setMaxListeners(listenersMax);
      });
    }
  }

  private catchSignals(): void {
    for (const signal of FORWARDED_SIGNALS) {
      const handler = () => {
        if (signal === 'SIGINT' && ++this.interrupts > 1) {
          this.end('interrupted twice', 128 + constants.signals.SIGINT);
          this.killAll();
          return;
        }
        // The launcher hears it also where all ranks are in blocking calls.
        if (signal === WAITS_SIGNAL && this.params.bool('mpi_waits_on_signal')) this.gatherer?.gather(WAITS_SIGNAL);
        this.forwarded.add(signal);
        this.wasTold ||= signal === 'SIGINT' || signal === 'SIGTERM' || signal === 'SIGHUP';
        this.signal(signal);
      };
      process.on(signal, handler);
      this.undo.push(() => process.off(signal, handler));
    }
  }

  // --- events

  private onAbort(info: AbortInfo): void {
    const code = info.code & 0xff || 1;
    if (this.state === JOB.ENDING || this.state === JOB.ENDED) return;
    const text = `${this.starter.nameOf(info.rank)} (pid ${this.pids[info.rank]}) aborted the job with code ${code}: ${info.reason}`;
    this.say(`${text}; ending the job`);
    this.server.broadcastAbort(info);
    this.end(text, code);
  }

  private onLost(rank: number, text: string): void {
    const process = this.ranks.get(rank);
    this.say(process === undefined ? `${text}; it was started by hand, and the others go on` : `${text}; ending that rank`);
    process?.child.kill('SIGKILL');
  }

  /** One that was started by hand: nobody here waits for it. */
  private guestEnded(rank: number): void {
    if (this.ranks.has(rank) || rank < this.size) return;
    const finalized = this.server.isFinalized(rank);
    this.options.observer?.exited?.(rank, { code: undefined, signal: '', finalized, lost: !finalized, died: !finalized });
  }

  /** Says what the end of one rank means for the others. */
  private async judge(process: RankProcess): Promise<void> {
    const { rank, code, signal, lost } = process;
    await this.server.drained(rank, LAST_WORDS_MS);
    this.server.processExited(rank, { code, signal: signal ?? '' });
    const isOurs = this.state === JOB.ENDING && (signal === 'SIGTERM' || (signal === 'SIGKILL' && this.hasKilled));
    const isDeath = (signal !== undefined && !isOurs) || lost !== undefined || code === OWN_FAILURE_CODE;
    const died = isDeath && survivesFailures(this.params);
    const finalized = this.server.isFinalized(rank);
    this.options.observer?.exited?.(rank, { code, signal: signal ?? '', finalized, lost: lost !== undefined, died });
    if (isDeath) this.deaths++;
    if (code === TOLD_TO_END_CODE) this.wasTold = true;
    if (this.state === JOB.ENDING || this.state === JOB.ENDED) return;
    const name = `${this.starter.nameOf(rank)} (pid ${process.pid}${process.child.host === undefined ? '' : ` on ${process.child.host}`})`;
    if (code === 0) {
      if (this.server.info(rank) !== undefined && !this.server.isFinalized(rank)) {
        this.say(`warning: ${name} exited with code 0 but without finalize(); its peers may miss messages`);
      }
      return;
    }
    const how =
      code === TOLD_TO_END_CODE ? 'was told to end' : signal === undefined ? `exited with code ${code}` : `was killed by ${signal}`;
    const text = lost === undefined ? `${name} ${how}` : `${name}: ${lost}`;
    const exitCode = signal === undefined ? (code ?? 1) : 128 + constants.signals[signal];
    if (this.haveMet && this.replicas.survives(rank, text, isDeath && !finalized)) return;
    if (died) {
      this.say(`${text}; the other ranks go on`);
      this.died++;
      this.diedCode ||= exitCode;
      return await this.respawn(process);
    }
    if (this.options.abortOnFailure === false || survivesFailures(this.params)) {
      this.say(`${text}; the other ranks go on`);
      this.failure ??= text;
      if (this.exitCode === 0) this.exitCode = exitCode;
      return;
    }
    // Whoever sent the signal through us knows why the ranks end.
    const expected = signal !== undefined && this.forwarded.has(signal);
    this.say(expected ? `${signal} was passed on to the ranks; ending the job` : `${text}; ending the job`);
    this.end(text, exitCode);
  }

  // --- end

  private async finish(): Promise<void> {
    // Whoever is judged may have another one started.
    for (let known = -1; known !== this.ranks.size; ) {
      known = this.ranks.size;
      await Promise.all([...this.ranks.values()].map((process) => process.judged));
    }
    clearTimeout(this.killTimer);
    this.judgeDeaths(this.killer?.end());
    // Output may be held open by a process that left its group; it is not waited for without end.
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, OUTPUT_DRAIN_MS);
    });
    const closed = Promise.all([...this.ranks.values()].map(({ child }) => child.closed));
    await Promise.race([closed.then(() => this.replicas.drained()), timeout]);
    clearTimeout(timer);
    const { lostHosts, placed } = this.starter;
    for (const { child } of this.ranks.values()) child.release();
    this.starter.close();
    // Processes that were started by hand leave with the others.
    await this.server.allGone(GUESTS_WAIT_MS);
    this.guard?.done();
    for (const undo of this.undo) undo();
    await this.server.close();
    this.moveTo(JOB.ENDED);
    const ranks = [...this.ranks.values()].map(({ rank, pid, code, signal }) => {
      const joined = this.server.info(rank) !== undefined;
      return { rank, pid, code, signal, joined, finalized: this.server.isFinalized(rank) };
    });
    this.resolveResult({
      jobId: this.jobId,
      exitCode: this.exitCode,
      ranks,
      failure: this.failure,
      deaths: this.deaths,
      lostHosts,
      placed,
      leads: this.replicas.leads,
      wasTold: this.wasTold,
    });
  }

  /** With the parameter ft on: what the deaths of ranks mean for the job, now that it is over. */
  private judgeDeaths(unmet: string | undefined): void {
    if (this.state === JOB.ENDING) return;
    const ended = [...this.ranks.values()].filter(({ rank, code }) => code === 0 && !this.server.standsBy(rank)).length;
    if (this.died > 0 && ended === 0 && this.exitCode === 0) {
      this.failure = `${this.died} ranks died, and no other came to its end`;
      this.exitCode = this.diedCode;
    } else if (this.died > 0 && this.exitCode === 0) {
      const isIdle = (rank: number): boolean => this.ranks.get(rank)?.code === 0 && this.server.standsBy(rank);
      this.say(`${this.died} of ${this.ranks.size} ${this.workers.summary(isIdle)}`);
    }
    if (unmet === undefined) return;
    this.say(`--kill: ${unmet}`);
    if (this.exitCode !== 0) return;
    this.failure = `--kill: ${unmet}`;
    this.exitCode = UNMET_KILLS_CODE;
  }

  private moveTo(next: JobState): void {
    if (!JOB_EDGES[this.state].includes(next)) throw new MultirailError('ERR_INTERNAL', `job: no edge from state ${this.state} to ${next}`);
    this.state = next;
  }

  private say(text: string): void {
    if (!this.stderr.destroyed) this.stderr.write(`multirail: ${text}\n`);
  }
}
