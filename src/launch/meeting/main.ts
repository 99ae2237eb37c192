// The process that serves the out-of-band channel of a job without a launcher of multirail. Rank 0 starts it and hands it its settings as
// one line on standard input; it answers with one line on standard output. Further lines are news of ranks that the starter has told rank 0. It is a separate process because rank 0 may compute for minutes
// without its event loop, and may die. It ends when every rank is over: a rank that is gone is noticed (oob/server.ts), one that never came
// is given up after the time to join. Signals to the job's processes are for the ranks, and are not obeyed here.
import { writeSync } from 'node:fs';
import { MultirailError } from '../../errors.ts';
import { type ServedJob, type ServerSettings, serveJob } from './serve.ts';

/** What follows the settings, each as JSON in one line. */
export interface ServerNews {
  /** The starter says that the process of this rank is gone. */
  gone: number;
}

/** The answer, as JSON in one line. */
export type ServerAnswer = { urls: string[] } | { error: string };

const LINE_BYTES_MAX = 64 * 1024;

/** Standard error is what rank 0 has: it may be gone, which is no reason to end. */
function say(text: string): void {
  try {
    writeSync(2, `multirail: ${text}\n`);
  } catch {
    // Nobody reads it any more.
  }
}

/** The lines of standard input, the first of which is the settings. A line without end is not one of rank 0's: it is left out. */
function readLines(onLine: (line: string) => void): void {
  let text = '';
  process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      onLine(line);
    }
    if (text.length > LINE_BYTES_MAX) text = '';
  });
}

/** Resolves with the settings. `onNews` gets what follows, from the next turn of the event loop on. */
function readSettings(onNews: (news: ServerNews) => void): Promise<ServerSettings> {
  return new Promise((resolve, reject) => {
    let isFirst = true;
    readLines((line) => {
      try {
        const value = JSON.parse(line) as ServerSettings & ServerNews;
        if (isFirst) resolve(value);
        else setImmediate(onNews, value);
      } catch (error) {
        reject(error as Error);
      }
      isFirst = false;
    });
    process.stdin.once('end', () => reject(new MultirailError('ERR_INIT', 'rank 0 ended before it said what to serve')));
  });
}

function answer(text: ServerAnswer): void {
  writeSync(1, `${JSON.stringify(text)}\n`);
}

async function main(): Promise<void> {
  process.title = `multirail rendezvous of pid ${process.ppid}`;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const) process.on(signal, () => undefined);
  let takeNews: ((news: ServerNews) => void) | undefined;
  const settings = await readSettings((news) => takeNews?.(news));
  let served: ServedJob;
  try {
    served = await serveJob(settings, say);
  } catch (error) {
    answer({ error: (error as Error).message });
    process.exit(1);
  }
  const { server } = served;
  void served.over.then(() => process.exit(0));
  takeNews = ({ gone }) => {
    if (!Number.isInteger(gone) || gone < 0 || gone >= server.size) return;
    if (!server.hasEnded(gone) && !server.isFinalized(gone) && !served.isAborted)
      say(`rank ${gone} (pid ${server.info(gone)?.pid ?? 'unknown'}) has ended without finalize(), says what started it`);
    server.processExited(gone, { code: undefined, signal: '' });
  };
  // The pipe to rank 0 is closed by its kernel when it is gone, however that came about.
  process.stdin.on('close', () => {
    if (!server.hasEnded(0) && !server.isFinalized(0) && !served.isAborted)
      say(`rank 0 (pid ${server.info(0)?.pid ?? 'unknown'}) has ended without finalize()`);
    server.processExited(0, { code: undefined, signal: '' });
  });
  process.stdin.resume();
  answer({ urls: [...server.urls] });
}

main().catch((error: Error) => {
  say(`the out-of-band channel cannot be served: ${error.message}`);
  process.exit(1);
});
