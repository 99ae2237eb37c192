// What a watcher of a job is told at the launcher, and the one place where the out-of-band channel's events become that.
import type { AbortInfo, ExitInfo, RankInfo } from '../oob/member.ts';
import type { OobServer } from '../oob/server.ts';
import type { Telemetry } from '../oob/telemetry.ts';

/** The end of a process as its launcher judges it. */
export interface ObservedExit extends ExitInfo {
  /** It has died, and the others go on (parameter ft). */
  died?: boolean;
}

/** Every method is called from the launcher's event loop, and must not throw. */
export interface JobObserver {
  /** The rank's process exists. */
  spawned?(rank: number, pid: number): void;
  /** It is in the job. */
  joined?(rank: number, info: RankInfo): void;
  telemetry?(rank: number, report: Telemetry): void;
  /** A RailEvent of src/mpi/runtime.ts, as JSON. */
  railEvent?(rank: number, event: unknown): void;
  /** So many events of rails, and reports of who waits, did not get here: they came faster than they were taken (relay.ts). */
  eventsLeftOut?(count: number): void;
  finalized?(rank: number): void;
  exited?(rank: number, exit: ObservedExit): void;
  /** A process waits to be called in, or has taken a place: its rank in the communicator that it was called into. */
  standby?(rank: number, isWaiting: boolean, place: number): void;
  aborted?(info: AbortInfo): void;
}

export function watchServer(server: OobServer, observer: JobObserver): void {
  server.on('joined', (rank, info) => observer.joined?.(rank, info));
  server.on('telemetry', (rank, report) => observer.telemetry?.(rank, report));
  server.on('railEvent', (rank, event) => observer.railEvent?.(rank, event));
  server.on('finalized', (rank) => observer.finalized?.(rank));
  server.on('standby', (rank, isWaiting, place) => observer.standby?.(rank, isWaiting, place));
  server.on('abort', (info) => observer.aborted?.(info));
}
