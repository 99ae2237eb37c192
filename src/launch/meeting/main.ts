// The process that serves the out-of-band channel of a job without a launcher of multirail. Rank 0 starts it and hands it its settings as
// one line on standard input; it answers with one line on standard output. It is a separate process because rank 0 may compute for minutes
// without its event loop, and may die. It ends when every rank is over: a rank that is gone is noticed (oob/server.ts), one that never came
// is given up after the time to join. Signals to the job's processes are for the ranks, and are not obeyed here.
import { writeSync } from 'node:fs';
import { MultirailError } from '../../errors.ts';
import { OobServer } from '../oob/server.ts';
import { WaitsGatherer } from '../watch/waits-gather.ts';

/** What rank 0 hands over, as JSON in one line. */
export interface ServerSettings {
  jobId: string;
  size: number;
  /** Base64. */
  secret: string;
  /** The first of each list that can be listened on is taken. */
  listen: string[][];
  reconnectTimeoutMs: number;
  joinTimeoutMs: number;
  exitGraceMs: number;
  waitsJsonFile: string;
}

/** The answer, as JSON in one line. */
export type ServerAnswer = { urls: string[] } | { error: string };

const SETTINGS_BYTES_MAX = 64 * 1024;

/** Standard error is what rank 0 has: it may be gone, which is no reason to end. */
function say(text: string): void {
  try {
    writeSync(2, `multirail: ${text}\n`);
  } catch {
    // Nobody reads it any more.
  }
}

/** The first line of standard input. What follows is nothing but the end, which is rank 0's. */
function readSettings(): Promise<ServerSettings> {
  return new Promise((resolve, reject) => {
    let text = '';
    const take = (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\n');
      if (end < 0 && text.length <= SETTINGS_BYTES_MAX) return;
      process.stdin.off('data', take);
      try {
        resolve(JSON.parse(text.slice(0, end)) as ServerSettings);
      } catch (error) {
        reject(error as Error);
      }
    };
    process.stdin.setEncoding('utf8').on('data', take);
    process.stdin.once('end', () => reject(new MultirailError('ERR_INIT', 'rank 0 ended before it said what to serve')));
  });
}

async function open(settings: ServerSettings): Promise<OobServer> {
  let failure: unknown;
  for (const listen of settings.listen) {
    const server = new OobServer({
      jobId: settings.jobId,
      size: settings.size,
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

function answer(text: ServerAnswer): void {
  writeSync(1, `${JSON.stringify(text)}\n`);
}

async function main(): Promise<void> {
  process.title = `multirail rendezvous of pid ${process.ppid}`;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const) process.on(signal, () => undefined);
  const settings = await readSettings();
  let server: OobServer;
  try {
    server = await open(settings);
  } catch (error) {
    answer({ error: (error as Error).message });
    process.exit(1);
  }
  const gatherer = new WaitsGatherer(server, { say, jsonFile: settings.waitsJsonFile });
  server.on('waitsAsked', (rank, reason) => gatherer.gather(`rank ${rank}: ${reason}`));
  server.on('waitsReport', (rank, id, json) => gatherer.take(rank, id, json));
  // After an abort every rank ends in some way: that is no news.
  let aborted = false;
  server.on('lost', (_rank, text) => {
    if (!aborted) say(text);
  });
  server.on('abort', (info) => {
    if (aborted) return;
    aborted = true;
    say(`rank ${info.rank} aborted the job with code ${info.code & 0xff || 1}: ${info.reason}`);
    server.broadcastAbort(info);
  });
  server.on('ended', () => {
    // Not at once: this is called from the midst of the server, and whoever is left is still to be told.
    if (server.isOver) setImmediate(() => process.exit(0));
  });
  // The pipe to rank 0 is closed by its kernel when it is gone, however that came about.
  process.stdin.on('close', () => {
    if (!server.isFinalized(0) && !aborted) say(`rank 0 (pid ${server.info(0)?.pid ?? 'unknown'}) has ended without finalize()`);
    server.processExited(0, { code: undefined, signal: '' });
  });
  process.stdin.resume();
  answer({ urls: [...server.urls] });
}

main().catch((error: Error) => {
  say(`the out-of-band channel cannot be served: ${error.message}`);
  process.exit(1);
});
