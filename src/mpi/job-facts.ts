// What follows from the facts of a job: how many of its processes stand by, and how the end of one is put in words.
import { MultirailError } from '../errors.ts';
import { PROCESSES_MAX } from '../ulfm/wire.ts';
import type { ExitNotice, RuntimeJob } from './runtime-options.ts';

/** How many of the processes of the start stand by. */
export function checkSpares({ rank, size }: Pick<RuntimeJob, 'rank' | 'size'>, spares: number): number {
  if (size > PROCESSES_MAX)
    throw new MultirailError('ERR_INIT', `a job of ${size} processes: it may have at most ${PROCESSES_MAX}`, { rank });
  if (spares < size || size === 1) return size === 1 ? 0 : spares;
  throw new MultirailError(
    'ERR_CONFIG',
    `ft_spares = ${spares} in a job of ${size} processes: at least one of them has to work; start more, or let fewer stand by`,
    { rank },
  );
}

export function describeExit({ code, signal, lost }: ExitNotice): string {
  if (lost) return 'it was not heard of any more';
  if (signal !== '') return `it was killed by ${signal}`;
  return code === 0 || code === undefined ? 'it ended without finalize()' : `it exited with code ${code}`;
}
