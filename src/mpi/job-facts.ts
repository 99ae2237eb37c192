// What follows from the facts of a job: how many of its processes stand by, and how the end of one is put in words.
import { MultirailError } from '../errors.ts';
import { EVIDENCE, EVIDENCE_TEXTS, type Evidence } from '../ulfm/knowledge.ts';
import { PROCESSES_MAX } from '../ulfm/limits.ts';
import type { ExitNotice, RuntimeJob } from './runtime-options.ts';

/** This process has joined after the start. */
export const isLate = ({ rank, size }: Pick<RuntimeJob, 'rank' | 'size'>): boolean => rank >= size;

/** How many of the processes of the start stand by. One that has joined later hears who waits. */
export function checkSpares({ rank, size }: Pick<RuntimeJob, 'rank' | 'size'>, spares: number): number {
  if (isLate({ rank, size })) return 0;
  if (size > PROCESSES_MAX)
    throw new MultirailError('ERR_INIT', `a job of ${size} processes: it may have at most ${PROCESSES_MAX}`, { rank });
  if (spares < size || size === 1) return size === 1 ? 0 : spares;
  throw new MultirailError(
    'ERR_CONFIG',
    `ft_spares = ${spares} in a job of ${size} processes: at least one of them has to work; start more, or let fewer stand by`,
    { rank },
  );
}

export function evidenceOf({ lost, replaced }: ExitNotice): Evidence {
  if (replaced === true) return EVIDENCE.REPLACED;
  return lost ? EVIDENCE.LIFELINE : EVIDENCE.ENDED;
}

export function describeExit({ code, signal, lost, replaced }: ExitNotice): string {
  if (replaced === true) return EVIDENCE_TEXTS[EVIDENCE.REPLACED];
  if (lost) return 'it was not heard of any more';
  if (signal !== '') return `it was killed by ${signal}`;
  return code === 0 || code === undefined ? 'it ended without finalize()' : `it exited with code ${code}`;
}

/** There is no way to that rank yet, as if its last rail were lost: its messages wait, and so does whoever waits for them. */
export function noRailYet(rank: number, peer: number, timeoutMs: number, text: string): string {
  return `rank ${rank} has no rail to rank ${peer} yet and waits for one for up to ${timeoutMs} ms (pml_peer_timeout_ms): ${text}`;
}

/** Said to a program that has ended without finalize(). */
export const FORGOTTEN =
  `the program has nothing left to do, and has not called finalize(): this process (pid ${process.pid}) stays, since other ranks may need it. ` +
  'End the program with `await mpi.finalize()`';
