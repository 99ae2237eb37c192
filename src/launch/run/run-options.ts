// What a job of `multirail run` is started with, and what can be done with it while it runs.
import type { Readable, Writable } from 'node:stream';
import type { RailFault } from '../oob/telemetry.ts';
import type { WaitsReport } from '../oob/waits.ts';
import type { JobObserver } from '../watch/observer.ts';
import type { HostSlots, ReplicaPlace } from './hostfile.ts';
import type { JobResult } from './job-result.ts';
import type { KillPlan } from './kill-plan.ts';

export interface RunOptions {
  size: number;
  /** So many further processes stand by to take the places of ranks that die; with more than none, the parameter ft is on. */
  spares?: number;
  /** For each process that dies another one is started, which stands by: at most so many. With more than none, the parameter ft is on. */
  respawn?: number;
  /** So many processes are each rank, and compare what they send: 1, which is the default, 2 or 3. The output of all but the first one is dropped. */
  replicas?: number;
  /** Where the processes of a rank run; by default on different hosts, where there are such. */
  replicaPlace?: ReplicaPlace;
  /** In this file processes that are started by hand find the job, and its secret (ft_join); only its owner can read it. */
  rendezvous?: string;
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
  /** The host of each process by number, of those with slots; by default slots are filled in order. */
  places?: readonly string[];
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
  /** Process ids by number. */
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
