// Runs the N ranks of a job, on this machine or by ssh on others: environment, secret, input and output, signals, exit codes, and the end
// of all ranks when one fails. Whatever happens, no process is left behind.
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { MultirailError } from '../../errors.ts';
import { PARAM_ENV_PREFIX, type ParamTable, survivesFailures } from '../../params.ts';
import { OWN_FAILURE_CODE, TOLD_TO_END_CODE } from '../../util/exit-codes.ts';
import { loopbackAddress, ownAddresses, urlOf } from '../oob/addresses.ts';
import type { AbortInfo } from '../oob/member.ts';
import { OobServer } from '../oob/server.ts';
import type { RailFault } from '../oob/telemetry.ts';
import type { WaitsReport } from '../oob/waits.ts';
import { type JobObserver, watchServer } from '../watch/observer.ts';
import { WaitsGatherer } from '../watch/waits-gather.ts';
import { resolveCommand } from './command.ts';
import { RankGuard } from './guard.ts';
import { type HostSlots, isHere, placeRanks, type RankPlace } from './hostfile.ts';
import { type JobResult, UNMET_KILLS_CODE } from './job-result.ts';
import { checkKills, Killer, type KillPlan } from './kill-plan.ts';
import { LinePrefixer, pumpInput } from './output.ts';
import { hintOf, LocalRank, type RankChild, type RankSpec, SECRET_FD } from './rank-child.ts';
import { RemoteHost } from './remote-host.ts';
import { processesOf, Workers } from './workers.ts';

export const RANKS_MAX = 4096;
/** How long a dead rank's last words are waited for before its end is judged. */
const LAST_WORDS_MS = 200;
/** How long output is waited for after the last process has ended. */
const OUTPUT_DRAIN_MS = 1000;
const FORWARDED_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
/** Who waits for whom is printed, besides that the ranks get the signal. */
const WAITS_SIGNAL = 'SIGUSR2';

export interface RunOptions {
  size: number;
  /** So many further processes stand by to take the places of ranks that die; with more than none, the parameter ft is on. */
  spares?: number;
  /** Program and arguments. Programs that end in .js, .mjs, .cjs, .ts, .mts, .cts run in Node, others as they are. */
  command: readonly string[];
  nodeArgs?: readonly string[];
  /** Parameters, as --mca NAME VALUE. */
  mca?: Readonly<Record<string, string>>;
  /** Environment that the ranks inherit; by default this process's. */
  env?: Readonly<Record<string, string | undefined>>;
  cwd?: string;
  /** Which rank gets the standard input. */
  stdinTo?: number | 'all' | 'none';
  /** Input instead of this process's own. */
  stdin?: Readable;
  stdout?: Writable;
  stderr?: Writable;
  /** `[rank] ` before each line (default). Without it, and without `stdout`/`stderr`, ranks write to ours directly. */
  prefix?: boolean;
  /** A rank's failure ends the job (default, unless the parameter ft is on); else the others get a notice and go on. */
  abortOnFailure?: boolean;
  /** Ranks to kill, and when. */
  kill?: KillPlan;
  /** Between SIGTERM and SIGKILL. */
  killGraceMs?: number;
  /** Pass this process's signals on to the ranks. */
  forwardSignals?: boolean;
  /** Words in front of a rank's command, such as `ip netns exec NAME`. The wrapper must keep descriptor 3 open. */
  rankCommand?: (rank: number) => readonly string[];
  /** Further environment of one rank; wins over everything. */
  rankEnv?: (rank: number) => Readonly<Record<string, string>>;
  /** Addresses for the out-of-band channel; by default loopback, or with other hosts every address of this one. */
  oobListen?: readonly string[];
  /** Hosts and their slots, filled in order; without them all ranks run here. */
  hosts?: readonly HostSlots[];
  /** This command's program, which runs as the agent on other hosts, at the same path. */
  agentProgram?: string;
  /** Variables of the environment for ranks on other hosts, beside MULTIRAIL_*; with a value, or with that here. */
  exportEnv?: Readonly<Record<string, string | undefined>>;
  onRailEvent?: (rank: number, event: unknown) => void;
  /** Gets each report of who waits for whom: those that are printed, and those of RunningJob.askWaits(). */
  onWaits?: (report: WaitsReport) => void;
  /** By default a new one. */
  jobId?: string;
  /** Is told everything that happens in the job. */
  observer?: JobObserver;
}

export interface RunningJob {
  readonly jobId: string;
  /** Process ids by rank. */
  readonly pids: readonly number[];
  readonly oobUrls: readonly string[];
  readonly result: Promise<JobResult>;
  /** Sends a signal to every living rank's process group. */
  signal(signal: NodeJS.Signals): void;
  /** Ends the job: SIGTERM, then SIGKILL after the grace. */
  end(reason: string, exitCode?: number): void;
  /** Asks a rank to break or mend one of its rails; it obeys where the parameter btl_fault is set. */
  railFault(rank: number, fault: RailFault): void;
  /** SIGKILL to the process of that number and all that it has started, as when its machine fails. */
  kill(rank: number): void;
  /** Asks the ranks what they wait for, at most once a second; the report comes to RunOptions.onWaits, and is not printed. */
  askWaits(reason: string): void;
}

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
  private readonly places: readonly RankPlace[];
  private readonly hosts = new Map<string, RemoteHost>();
  private server: OobServer;
  private readonly ranks: RankProcess[] = [];
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
    this.mca = processes.mca;
    this.params = processes.params;
    this.size = processes.size;
    this.workers = new Workers(processes.size, processes.spares);
    this.stdout = options.stdout ?? process.stdout;
    this.stderr = options.stderr ?? process.stderr;
    this.result = new Promise((resolve) => {
      this.resolveResult = resolve;
    });
    const { kill } = options;
    if (kill !== undefined) checkKills(kill, size - (spares === 0 ? this.workers.spares : 0), this.size);
    this.places = placeRanks(options.hosts ?? [{ host: 'localhost', slots: this.size }], this.size);
    this.server = this.makeServer(options.oobListen ?? (this.places.every(isHere) ? [loopbackAddress()] : ['::']));
  }

  get oobUrls(): readonly string[] {
    return this.server.urls;
  }

  private makeServer(listen: readonly string[]): OobServer {
    return new OobServer({
      jobId: this.jobId,
      size: this.size,
      spares: this.workers.spares,
      secret: this.secret,
      knowsProcesses: true,
      reconnectTimeoutMs: this.params.int('oob_reconnect_timeout_ms'),
      listen,
      log: (text) => this.say(text),
    });
  }

  private async openServer(): Promise<void> {
    try {
      await this.server.open();
    } catch (error) {
      await this.server.close();
      // A kernel without IPv6.
      if (this.options.oobListen !== undefined || this.places.every(isHere)) throw error;
      this.server = this.makeServer(['0.0.0.0']);
      await this.server.open();
    }
  }

  async start(): Promise<void> {
    await this.openServer();
    this.server.on('abort', (info) => this.onAbort(info));
    this.server.on('lost', (rank, text) => this.onLost(rank, text));
    this.server.on('standby', (rank, isWaiting, place) => this.workers.set(rank, isWaiting ? undefined : place));
    if (this.options.kill !== undefined) {
      this.killer = new Killer(this.options.kill, {
        numberOf: (rank) => this.workers.numberOf(rank),
        isLiving: (number) => this.ranks[number]?.exited === false && !this.server.isFinalized(number),
        working: () => this.workers.numbers,
        strike: (number) => this.ranks[number].child.kill('SIGKILL'),
        say: (text) => this.say(text),
      });
      this.server.on('met', () => this.killer?.begin());
    }
    const gatherer = new WaitsGatherer(this.server, {
      say: (text) => this.say(text),
      jsonFile: this.params.string('mpi_waits_json_file'),
      onReport: (report) => this.options.onWaits?.(report),
    });
    this.server.on('waitsAsked', (rank, reason) => gatherer.gather(`rank ${rank}: ${reason}`));
    this.server.on('waitsReport', (rank, id, json) => gatherer.take(rank, id, json));
    this.gatherer = gatherer;
    this.server.on('railEvent', (rank, event) => this.options.onRailEvent?.(rank, event));
    if (this.options.observer !== undefined) watchServer(this.server, this.options.observer);
    this.watchSinks();
    if (this.options.forwardSignals === true) this.catchSignals();
    this.guard = new RankGuard((text) => this.say(text));
    try {
      await this.openHosts();
      for (let rank = 0; rank < this.size; rank++) await this.spawnRank(rank);
    } catch (error) {
      this.end(`rank ${this.ranks.length} could not be started`, 1);
      await this.finish();
      throw error;
    }
    this.feedInput();
    if (this.state === JOB.STARTING) this.moveTo(JOB.RUNNING);
    void this.finish();
  }

  signal(signal: NodeJS.Signals): void {
    for (const { child } of this.ranks) child.kill(signal);
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
    if (rank < this.size) this.server.railFault(rank, fault);
  }

  kill(rank: number): void {
    this.ranks[rank]?.child.kill('SIGKILL');
  }

  askWaits(reason: string): void {
    this.gatherer?.gather(reason, { printed: false });
  }

  // --- start

  /** All hosts at once: each takes a while to answer. */
  private async openHosts(): Promise<void> {
    const names = [...new Set(this.places.filter((place) => !isHere(place)).map(({ host }) => host))];
    if (names.length === 0) return;
    const { agentProgram } = this.options;
    if (agentProgram === undefined) throw new MultirailError('ERR_ARG', 'ranks on other hosts need agentProgram');
    const agentCommand = this.params.string('plm_rsh_agent').split(/\s+/).filter(Boolean);
    const node = this.params.string('plm_rsh_node') || process.execPath;
    const open = async (host: string) => {
      const remote = await RemoteHost.open({ host, agentCommand, node, program: agentProgram, log: (text) => this.say(text) });
      this.hosts.set(host, remote);
    };
    const failed = (await Promise.allSettled(names.map(open))).find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  private async spawnRank(rank: number): Promise<void> {
    const spec: RankSpec = {
      rank,
      command: [...(this.options.rankCommand?.(rank) ?? []), ...this.command],
      cwd: this.options.cwd,
      env: this.rankEnvironment(rank),
      secret: this.secret,
      stdin: this.stdinMode(rank),
      stdout: this.outputMode(this.options.stdout),
      stderr: this.outputMode(this.options.stderr),
    };
    const remote = this.hosts.get(this.places[rank].host);
    let child: RankChild;
    try {
      child =
        remote === undefined
          ? await LocalRank.start(spec, (error) => this.say(`rank ${rank}: ${error.message}`))
          : await this.startThere(remote, spec);
    } catch (error) {
      throw new MultirailError('ERR_LAUNCH', `cannot start rank ${rank}: ${(error as Error).message}${hintOf(error)}`, {
        rank,
        cause: error,
      });
    }
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
      if (remote === undefined) this.guard?.gone(process.pid);
      return this.judge(process);
    });
    if (remote === undefined) this.guard?.add(process.pid);
    this.options.observer?.spawned?.(rank, process.pid);
    this.ranks.push(process);
    this.pids.push(process.pid);
    this.routeOutput(child.stdout, this.stdout, rank);
    this.routeOutput(child.stderr, this.stderr, rank);
    // A rank that failed while others were being spawned ends the job: this one too.
    if (this.state === JOB.ENDING) child.kill('SIGTERM');
  }

  /** There the environment is that of the host; what the job needs of this one is named. */
  private startThere(remote: RemoteHost, spec: RankSpec): Promise<RankChild> {
    const env: Record<string, string | undefined> = {};
    for (const [name, value] of Object.entries(spec.env)) if (name.startsWith('MULTIRAIL_')) env[name] = value;
    for (const [name, value] of Object.entries(this.options.exportEnv ?? {})) env[name] = value ?? spec.env[name];
    const node = this.params.string('plm_rsh_node');
    const command = node === '' ? spec.command : spec.command.map((word) => (word === process.execPath ? node : word));
    // Its input, if it has any, is copied: there is no other way to another host.
    const stdin = spec.stdin === 'inherit' ? 'pipe' : spec.stdin;
    return remote.start({ ...spec, command, env, stdin });
  }

  private rankEnvironment(rank: number): Record<string, string | undefined> {
    const env: Record<string, string | undefined> = { ...(this.options.env ?? process.env) };
    const { host, localRank, localSize } = this.places[rank];
    for (const [name, value] of Object.entries(this.mca)) env[PARAM_ENV_PREFIX + name] = value;
    env.MULTIRAIL_RANK = String(rank);
    env.MULTIRAIL_SIZE = String(this.size);
    env.MULTIRAIL_LOCAL_RANK = String(localRank);
    env.MULTIRAIL_LOCAL_SIZE = String(localSize);
    env.MULTIRAIL_JOB_ID = this.jobId;
    env.MULTIRAIL_OOB = this.urlsFor(host).join(',');
    env.MULTIRAIL_SECRET_FD = String(SECRET_FD);
    env.MULTIRAIL_LAUNCHER_PID = String(process.pid);
    return { ...env, ...this.options.rankEnv?.(rank) };
  }

  private urlsFor(host: string): string[] {
    const [first] = this.server.urls;
    if (!/^ws:..(\[::\]|0\.0\.0\.0):/.test(first)) return [...this.server.urls];
    const port = Number(new URL(first).port);
    const loopback = urlOf(loopbackAddress(), port);
    return this.hosts.has(host) ? ownAddresses().map((address) => urlOf(address, port)) : [loopback];
  }

  private stdinMode(rank: number): 'ignore' | 'inherit' | 'pipe' {
    const target = this.options.stdinTo ?? 0;
    if (target === 'none' || (target !== 'all' && target !== rank)) return 'ignore';
    // One reader may have our input itself, a terminal included; several need copies.
    return target === 'all' || this.options.stdin !== undefined ? 'pipe' : 'inherit';
  }

  private outputMode(sink: Writable | undefined): 'inherit' | 'pipe' {
    return this.options.prefix === false && sink === undefined ? 'inherit' : 'pipe';
  }

  private feedInput(): void {
    const targets = this.ranks.map(({ child }) => child.stdin).filter((stream) => stream !== null);
    if (targets.length > 0) this.undo.push(pumpInput(this.options.stdin ?? process.stdin, targets));
  }

  private routeOutput(source: Readable | null, sink: Writable, rank: number): void {
    if (source === null) return;
    const lines = this.options.prefix === false ? source : source.pipe(new LinePrefixer(`[${rank}] `));
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
        for (const { child } of this.ranks) for (const stream of [child.stdout, child.stderr]) stream?.unpipe().resume();
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
    const text = `rank ${info.rank} (pid ${this.pids[info.rank]}) aborted the job with code ${code}: ${info.reason}`;
    this.say(`${text}; ending the job`);
    this.server.broadcastAbort(info);
    this.end(text, code);
  }

  private onLost(rank: number, text: string): void {
    this.say(`${text}; ending that rank`);
    this.ranks[rank]?.child.kill('SIGKILL');
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
    const name = `rank ${rank} (pid ${process.pid}${process.child.host === undefined ? '' : ` on ${process.child.host}`})`;
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
    if (died) {
      this.say(`${text}; the other ranks go on`);
      this.died++;
      this.diedCode ||= exitCode;
      return;
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
    await Promise.all(this.ranks.map((process) => process.judged));
    clearTimeout(this.killTimer);
    this.judgeDeaths(this.killer?.end());
    // Output may be held open by a process that left its group; it is not waited for without end.
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, OUTPUT_DRAIN_MS);
    });
    await Promise.race([Promise.all(this.ranks.map(({ child }) => child.closed)), timeout]);
    clearTimeout(timer);
    for (const { child } of this.ranks) child.release();
    for (const host of this.hosts.values()) host.close();
    this.guard?.done();
    for (const undo of this.undo) undo();
    await this.server.close();
    this.moveTo(JOB.ENDED);
    const ranks = this.ranks.map(({ rank, pid, code, signal }) => {
      const joined = this.server.info(rank) !== undefined;
      return { rank, pid, code, signal, joined, finalized: this.server.isFinalized(rank) };
    });
    this.resolveResult({
      jobId: this.jobId,
      exitCode: this.exitCode,
      ranks,
      failure: this.failure,
      deaths: this.deaths,
      wasTold: this.wasTold,
    });
  }

  /** With the parameter ft on: what the deaths of ranks mean for the job, now that it is over. */
  private judgeDeaths(unmet: string | undefined): void {
    if (this.state === JOB.ENDING) return;
    const ended = this.ranks.filter(({ rank, code }) => code === 0 && !this.server.standsBy(rank)).length;
    if (this.died > 0 && ended === 0 && this.exitCode === 0) {
      this.failure = `${this.died} ranks died, and no other came to its end`;
      this.exitCode = this.diedCode;
    } else if (this.died > 0 && this.exitCode === 0) {
      const isIdle = (rank: number): boolean => this.ranks[rank].code === 0 && this.server.standsBy(rank);
      this.say(`${this.died} of ${this.size} ${this.workers.summary(isIdle)}`);
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
