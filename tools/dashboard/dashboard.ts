// The dashboard of one job, put together: the model that watches the job, and the page's server and the file of events where they are
// wanted. `multirail run` and `multirail lab` start it before the job, and hand its observer to the launcher.

import type { RailFault } from '../../src/launch/oob/telemetry.ts';
import type { JobObserver } from '../../src/launch/watch/observer.ts';
import { newToken } from './access.ts';
import { InterposerControl, JoinedControl, ProcessControl, type RailControl } from './control.ts';
import { EventsFile } from './events-file.ts';
import type { WaitsView } from './messages.ts';
import { JobModel } from './model.ts';
import { DashboardServer } from './server.ts';

/** How often ranks report unless the user says otherwise. */
export const TELEMETRY_MS = 250;

export interface DashboardOptions {
  jobId: string;
  /** Processes, those that stand by among them. */
  size: number;
  spares: number;
  survivesFailures: boolean;
  command: readonly string[];
  version: string;
  /** How often the ranks report (parameter mpi_telemetry_ms). */
  intervalMs: number;
  /** Port of the page, 0 = any free one; undefined = no page. */
  port: number | undefined;
  /** By default a random one. */
  token?: string;
  /** Events as JSON lines go here. */
  eventsFile?: string;
  /** What breaks and mends rails, beside the ranks' fault interposers where they have any. */
  control?: (model: JobModel) => RailControl;
  /** Tells a rank to break or mend a rail: RunningJob.railFault. */
  orderFault: (rank: number, fault: RailFault) => void;
  /** Kills a process of a job that survives it: RunningJob.kill. */
  orderKill: (rank: number) => void;
  /** Asks for a report of who waits for whom; it comes back by Dashboard.waits(). */
  askWaits?: () => void;
  /** Lines for people. */
  say: (text: string) => void;
  pageFolder?: string;
}

export interface Dashboard {
  readonly observer: JobObserver;
  /** Address of the page; undefined without one. */
  readonly url: string | undefined;
  waits(report: WaitsView): void;
  /** The job is over. */
  ended(exitCode: number, failure: string | undefined): void;
  close(): Promise<void>;
}

/** Throws before anything is started when the port or the file cannot be had. */
export async function startDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { jobId, size, spares, survivesFailures, command, version, intervalMs } = options;
  const startedMs = performance.now();
  const now = () => performance.now() - startedMs;
  const model = new JobModel({ jobId, size, spares, survivesFailures, command, version, intervalMs, now, startedAtMs: Date.now() });
  const file = options.eventsFile === undefined ? undefined : new EventsFile(options.eventsFile, options.say);
  file?.follow(model.log);
  const controls = [
    new InterposerControl(model, options.orderFault),
    ...(options.control === undefined ? [] : [options.control(model)]),
    new ProcessControl(model, options.orderKill),
  ];
  let server: DashboardServer | undefined;
  try {
    if (options.port !== undefined) server = await openServer(options, model, options.port, new JoinedControl(controls));
  } catch (error) {
    await file?.close();
    throw error;
  }
  return {
    observer: model,
    url: server?.url,
    waits: (report) => server?.feed.waits(report),
    ended: (exitCode, failure) => model.ended(exitCode, failure),
    close: async () => {
      await Promise.all([server?.close(), file?.close()]);
    },
  };
}

async function openServer(options: DashboardOptions, model: JobModel, port: number, control: RailControl): Promise<DashboardServer> {
  const server = new DashboardServer({
    model,
    port,
    token: options.token ?? newToken(),
    control,
    ...(options.askWaits === undefined ? {} : { askWaits: options.askWaits }),
    ...(options.pageFolder === undefined ? {} : { pageFolder: options.pageFolder }),
  });
  await server.open();
  return server;
}
