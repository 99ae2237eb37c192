// Processes that stand by help a successor without being called in: the messages of src/mpi/ft/helping-states.ts, by the service context, received in
// the background. In the eyes of ULFM a helper stands by all the while.
import type { RecvRequest } from '../../pml/records.ts';
import type { Engine } from '../../progress/engine.ts';
import { Iov } from '../../util/iov.ts';
import { ANY_SOURCE } from '../constants.ts';
import { CREATION, ctxOf, SERVICE_ID } from '../contexts.ts';
import { decodeHelp, encodeHelp, HELP_BYTES, HelpersCall, HelpingRole, type HelpMessage } from './helping-states.ts';

const CTX = ctxOf(SERVICE_ID, CREATION);
/** Those below are of held-objects.ts. */
const TAG = { ASKING: 2 ** 21, ANSWERING: 2 ** 21 + 1 } as const;

function send(engine: Engine, to: number, tag: number, message: HelpMessage): void {
  const request = engine.pml.isend(to, CTX, tag, new Iov([encodeHelp(message)]));
  request.isForsaken = true;
  engine.schedule();
}

/** Takes all messages with that tag. What it returns ends it. */
function listen(engine: Engine, tag: number, take: (from: number, message: HelpMessage) => void): () => void {
  const { pml } = engine;
  const buffer = new Uint8Array(HELP_BYTES);
  let posted: RecvRequest | undefined;
  let isOver = false;
  const read = ({ error, cancelled, matchedSource, receivedBytes }: RecvRequest): boolean => {
    if (isOver || cancelled || error !== undefined) return false;
    const message = decodeHelp(buffer.subarray(0, receivedBytes));
    if (message !== undefined) take(matchedSource, message);
    return !isOver;
  };
  const post = (): void => {
    for (;;) {
      if (isOver) return;
      posted = pml.irecvInBackground(ANY_SOURCE, CTX, tag, new Iov([buffer]), (done) => {
        if (read(done)) post();
      });
      if (!posted.done || !read(posted)) return;
    }
  };
  post();
  return () => {
    isOver = true;
    if (posted !== undefined && !posted.done) pml.cancel(posted);
  };
}

/** At a process that stands by: it says whether it comes. */
export function standByToHelp(
  engine: Engine,
  deathListeners: Set<(number: number) => void>,
  onBegin: (id: number, members: readonly number[]) => void,
): HelpingRole {
  const role = new HelpingRole((to, message) => send(engine, to, TAG.ANSWERING, message), onBegin);
  deathListeners.add((number) => role.handleDeath(number));
  listen(engine, TAG.ASKING, (from, message) => role.take(from, message));
  return role;
}

export interface RecruitHost {
  readonly engine: Engine;
  readonly deathListeners: Set<(number: number) => void>;
  /** Those that are asked, in this order. */
  readonly candidates: readonly number[];
}

let serials = 0;

/** Asks for helpers; resolves with those that come, or after that time with those that have said so. `begin` tells them with whom. */
export function recruit(
  { engine, deathListeners, candidates }: RecruitHost,
  wanted: number,
  limitMs: number,
): Promise<{ readonly coming: readonly number[]; begin(id: number, members: readonly number[]): void }> {
  return new Promise((resolve) => {
    let call: HelpersCall | undefined;
    const look = (): void => {
      if (call?.isOver !== true) return;
      clearTimeout(timer);
      deathListeners.delete(die);
      unlisten();
      const { coming } = call;
      resolve({ coming, begin: (id, members) => call?.begin(id, members) });
    };
    const die = (number: number): void => {
      call?.handleDeath(number);
      look();
    };
    const unlisten = listen(engine, TAG.ANSWERING, (from, message) => {
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
  });
}
