// Processes that stand by help a successor without being called in: the messages of src/mpi/ft/helping-states.ts, by the service context, received in
// the background. In the eyes of ULFM a helper stands by all the while.
import type { Engine } from '../../progress/engine.ts';
import { Iov } from '../../util/iov.ts';
import { BACKGROUND_CTX, listen } from './background.ts';
import { decodeHelp, encodeHelp, HELP_BYTES, HelpersCall, HelpingRole, type HelpMessage } from './helping-states.ts';

/** Those below are of held-objects.ts. */
const TAG = { ASKING: 2 ** 21, ANSWERING: 2 ** 21 + 1 } as const;

function send(engine: Engine, to: number, tag: number, message: HelpMessage): void {
  const request = engine.pml.isend(to, BACKGROUND_CTX, tag, new Iov([encodeHelp(message)]));
  request.isForsaken = true;
  engine.schedule();
}

function hear(engine: Engine, tag: number, take: (from: number, message: HelpMessage) => void): () => void {
  return listen(engine, tag, HELP_BYTES, (from, bytes) => {
    const message = decodeHelp(bytes);
    if (message !== undefined) take(from, message);
  });
}

/** At a process that stands by: it says whether it comes. */
export function standByToHelp(
  engine: Engine,
  deathListeners: Set<(number: number) => void>,
  onBegin: (id: number, members: readonly number[]) => void,
): HelpingRole {
  const role = new HelpingRole((to, message) => send(engine, to, TAG.ANSWERING, message), onBegin);
  deathListeners.add((number) => role.handleDeath(number));
  hear(engine, TAG.ASKING, (from, message) => role.take(from, message));
  return role;
}

export interface RecruitHost {
  readonly engine: Engine;
  readonly deathListeners: Set<(number: number) => void>;
  /** Those that are asked, in this order. */
  readonly candidates: readonly number[];
}

let serials = 0;

/** Those that come to help. `begin` tells them with whom. */
export interface Recruits {
  readonly coming: readonly number[];
  begin(id: number, members: readonly number[]): void;
}

/**
 * Asks for helpers, and tells, from within a turn of the engine, of those that come, or after that time of those that have said so. What it
 * returns calls it off before that.
 */
export function recruit(
  { engine, deathListeners, candidates }: RecruitHost,
  wanted: number,
  limitMs: number,
  then: (recruits: Recruits) => void,
): () => void {
  let call: HelpersCall | undefined;
  const close = (): void => {
    clearTimeout(timer);
    deathListeners.delete(die);
    unlisten();
  };
  const look = (): void => {
    if (call?.isOver !== true) return;
    close();
    const { coming } = call;
    then({ coming, begin: (id, members) => call?.begin(id, members) });
  };
  const die = (number: number): void => {
    call?.handleDeath(number);
    look();
  };
  const unlisten = hear(engine, TAG.ANSWERING, (from, message) => {
    call?.take(from, message);
    look();
  });
  const timer = setTimeout(() => {
    call?.handleTimeout();
    look();
  }, limitMs);
  deathListeners.add(die);
  serials = (serials + 1) % 2 ** 30;
  call = new HelpersCall(serials, wanted, candidates, (to, message) => send(engine, to, TAG.ASKING, message));
  look();
  return () => {
    close();
    call.callOff();
  };
}
