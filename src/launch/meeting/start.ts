// How rank 0 starts the process that serves the out-of-band channel (main.ts).
import type { Writable } from 'node:stream';
import { MultirailError } from '../../errors.ts';
import { programFile } from '../../native/program-file.ts';
import type { ServerAnswer, ServerNews } from './main.ts';
import type { ServerSettings } from './serve.ts';

const ANSWER_BYTES_MAX = 64 * 1024;

export interface Server {
  urls: string[];
  /** The process of that rank is gone: the starter has said so. */
  tellGone(rank: number): void;
}

/** Resolves once the server listens. It ends by itself, also when this process is killed. */
export async function startServer(settings: ServerSettings): Promise<Server> {
  // Few ranks start a process.
  const { spawn } = await import('node:child_process');
  const program = programFile('rendezvous', 'where rank 0 of a job under a starter needs it to run it as a process');
  const child = spawn(process.execPath, [...process.execArgv.filter(isForLoading), program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A session of its own: Ctrl-C in a terminal is for the ranks, which may want to talk about it.
    detached: true,
    env: withoutJob(process.env),
  });
  const input = child.stdin as Writable;
  input.on('error', () => undefined);
  const said = new Promise<string>((resolve, reject) => {
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\n') || text.length > ANSWER_BYTES_MAX) resolve(text.split('\n', 1)[0]);
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`it exited with code ${code}`)));
  });
  input.write(`${JSON.stringify(settings)}\n`);
  let answer: ServerAnswer;
  try {
    answer = JSON.parse(await said) as ServerAnswer;
  } catch (error) {
    throw new MultirailError('ERR_INIT', `the process that serves the out-of-band channel did not start: ${(error as Error).message}`, {
      rank: 0,
      cause: error,
    });
  }
  // The pipe stays open for as long as this process lives: its end is the word that rank 0 is gone.
  child.unref();
  child.stdout.destroy();
  (input as Writable & { unref?: () => void }).unref?.();
  if ('error' in answer) throw new MultirailError('ERR_INIT', answer.error, { rank: 0 });
  const tell = (news: ServerNews) => input.write(`${JSON.stringify(news)}\n`);
  return { urls: answer.urls, tellGone: (rank) => void tell({ gone: rank }) };
}

/** Loaders and strips of types are needed there too; an inspector's port is taken already. */
function isForLoading(argument: string, index: number, all: readonly string[]): boolean {
  const loading = /^--(import|require|loader|experimental-(loader|strip-types|transform-types))\b|^-r$/;
  return (
    loading.test(argument) ||
    (index > 0 && !argument.startsWith('-') && /^(--import|--require|--loader|--experimental-loader|-r)$/.test(all[index - 1]))
  );
}

/** The server is no rank: a descriptor or a place in the environment means nothing to it. */
function withoutJob(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PMI_FD: _fd, PMIX_NAMESPACE: _namespace, PMIX_RANK: _rank, NODE_OPTIONS: _options, ...rest } = env;
  return rest;
}
