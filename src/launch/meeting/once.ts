// A process joins its job once, in its main thread. What was joined is kept for the whole process, even where two copies of this package
// (an ES module and a CommonJS one) are loaded.
import { isMainThread } from 'node:worker_threads';
import { MultirailError } from '../../errors.ts';
import { ParamTable } from '../../params.ts';
import { starterHere } from '../pmix/binding.ts';
import type { Env } from '../starters/env.ts';

type Stage = 'joined' | 'left';

/** This process joins a job that runs already, whatever its starter says of ranks. */
export const joinsLater = (params: ParamTable): boolean => params.string('ft_join') === 'standby';

/** Its number is not known before it has joined. */
const LATER = { rank: 0, size: undefined, jobKey: 'joins later', meeting: { by: 'launcher' } } as const;

const REGISTRY = Symbol.for('multirail.jobs-joined');

function registry(): Map<string, Stage> {
  const holder = globalThis as { [REGISTRY]?: Map<string, Stage> };
  holder[REGISTRY] ??= new Map();
  return holder[REGISTRY];
}

export interface JoinedOnce {
  /** init() failed: it may be called again. */
  undo(): void;
  /** finalize() is over. */
  left(): void;
}

/**
 * Notes that this process joins the job of that environment. Throws ERR_INIT, saying what was done, when it has joined it before, or when this
 * is a worker thread. An environment that is given by hand may place several ranks in one process, each of them once.
 */
export function joinOnce(env: Env, isOwn: boolean, isMain = isMainThread, params = new ParamTable({}, env)): JoinedOnce {
  const { rank, size, jobKey, meeting } = joinsLater(params) ? LATER : starterHere(env, params).starter.place(env);
  if (!isMain && (isOwn || meeting.by !== 'nobody')) {
    throw new MultirailError(
      'ERR_INIT',
      'init() was called in a worker thread: a rank is a whole process, and its main thread joins the job. Call init() there, and hand the data ' +
        'to and from the workers (a world of one in a worker: init({ env: {} }))',
      { rank },
    );
  }
  const joined = registry();
  const key = isOwn ? 'own' : `${jobKey} ${rank}`;
  // Worlds of one that are asked for by hand have nothing in common.
  if (!isOwn && meeting.by === 'nobody') return { undo: () => undefined, left: () => undefined };
  const stage = joined.get(key);
  if (stage !== undefined) {
    const what =
      stage === 'joined'
        ? `init() was called twice: this process is rank ${rank}${size === undefined ? '' : ` of ${size}`} already. Keep the runtime that the first call gave, and hand it on`
        : `init() was called again after finalize(): a process joins its job once. Call finalize() only at the end of the program`;
    throw new MultirailError('ERR_INIT', what, { rank });
  }
  joined.set(key, 'joined');
  return { undo: () => void joined.delete(key), left: () => void joined.set(key, 'left') };
}
