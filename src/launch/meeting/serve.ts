// The out-of-band channel of a job without a launcher of multirail, served in this process: by the one that rank 0 has started (main.ts), or by
// `multirail rendezvous`.
import { processName } from '../../util/replica-names.ts';
import { OobServer } from '../oob/server.ts';
import { WaitsGatherer } from '../watch/waits-gather.ts';

/** What rank 0 hands over, as JSON in one line; or what `multirail rendezvous` was told. */
export interface ServerSettings {
  jobId: string;
  size: number;
  /** So many of the highest ranks stand by at the start. */
  spares?: number;
  /** Processes may join after the start. */
  takesJoins?: boolean;
  /** Base64. */
  secret: string;
  /** The first of each list that can be listened on is taken. */
  listen: string[][];
  reconnectTimeoutMs: number;
  joinTimeoutMs: number;
  exitGraceMs: number;
  waitsJsonFile: string;
  /** Processes of each rank, where they are several. */
  replicas?: number;
}

export interface ServedJob {
  readonly server: OobServer;
  /** A rank has aborted the job: after that every rank ends in some way, which is no news. */
  readonly isAborted: boolean;
  /** Resolves when every rank is over. */
  readonly over: Promise<void>;
}

async function open(settings: ServerSettings, say: (text: string) => void): Promise<OobServer> {
  let failure: unknown;
  for (const listen of settings.listen) {
    const server = new OobServer({
      jobId: settings.jobId,
      size: settings.size,
      spares: settings.spares ?? 0,
      takesJoins: settings.takesJoins ?? false,
      secret: Buffer.from(settings.secret, 'base64'),
      listen,
      knowsProcesses: false,
      reconnectTimeoutMs: settings.reconnectTimeoutMs,
      joinTimeoutMs: settings.joinTimeoutMs,
      exitGraceMs: settings.exitGraceMs,
      log: say,
    });
    try {
      await server.open();
      return server;
    } catch (error) {
      failure = error;
      await server.close();
    }
  }
  throw failure;
}

/** Serves until every rank is over. Rejects with ERR_LAUNCH when nothing can be listened on. */
export async function serveJob(settings: ServerSettings, say: (text: string) => void): Promise<ServedJob> {
  const server = await open(settings, say);
  const job = { server, isAborted: false };
  const { size, replicas = 1 } = settings;
  const nameOf = (number: number): string => processName(number, size, replicas);
  const gatherer = new WaitsGatherer(server, { say, jsonFile: settings.waitsJsonFile, replicas });
  server.on('waitsAsked', (number, reason) => gatherer.gather(`${nameOf(number)}: ${reason}`));
  server.on('waitsReport', (rank, id, json) => gatherer.take(rank, id, json));
  server.on('lost', (_rank, text) => {
    if (!job.isAborted) say(text);
  });
  server.on('abort', (info) => {
    if (job.isAborted) return;
    job.isAborted = true;
    say(`${nameOf(info.rank)} aborted the job with code ${info.code & 0xff || 1}: ${info.reason}`);
    server.broadcastAbort(info);
  });
  const over = new Promise<void>((resolve) => {
    server.on('ended', () => {
      // Not at once: this is called from the midst of the server, and whoever is left is still to be told.
      if (server.isOver) setImmediate(resolve);
    });
  });
  return Object.assign(job, { over });
}
