// Messages that were never received, in words: for the warning of the rank that has them, and for the error of the rank that sent them.
import { MultirailError } from '../errors.ts';
import type { Unreceived } from '../pml/owed-records.ts';
import { isObjectContext, isUserContext } from './contexts.ts';
import type { ProcessState } from './process-state.ts';

/** Messages that an error or a warning names one by one. */
const MESSAGES_NAMED_MAX = 8;

const counted = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

function describeMessages(proc: ProcessState, direction: 'to' | 'from', messages: readonly Unreceived[]): string {
  const lines = messages.slice(0, MESSAGES_NAMED_MAX).map(({ peer, ctx, tag, bytes }) => {
    const { comm, call } = proc.describe(ctx, tag);
    const hidden = isObjectContext(ctx) ? 'memory of an object' : (call ?? 'a part of a collective');
    const what = isUserContext(ctx) ? `tag ${tag}` : hidden;
    return `${bytes} bytes ${direction} rank ${peer} with ${what}${comm === 'world' ? '' : ` on ${comm}`}`;
  });
  const more = messages.length - lines.length;
  return `${lines.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

/** Messages that came here and that nobody asked for: their senders cannot know. Undefined when there are none. */
export function unreceivedHere(proc: ProcessState): string | undefined {
  const messages = proc.engine.pml.unreceived().filter(({ ctx }) => isUserContext(ctx));
  if (messages.length === 0) return undefined;
  return `${counted(messages.length, 'message')} never received: ${describeMessages(proc, 'from', messages)}`;
}

/** The error of a rank whose messages were never received; undefined when all were. */
export function undeliveredFrom(proc: ProcessState): MultirailError | undefined {
  const { neverReceived } = proc.engine.pml;
  if (neverReceived.length === 0) return undefined;
  const { rank } = proc;
  const text = `${counted(neverReceived.length, 'message')} of rank ${rank} ${neverReceived.length === 1 ? 'was' : 'were'} never received`;
  return new MultirailError('ERR_UNDELIVERED', `${text}: ${describeMessages(proc, 'to', neverReceived)}`, { rank });
}
