// Messages of the service context that are received in the background, for as long as somebody listens.
import type { RecvRequest } from '../../pml/records.ts';
import type { Engine } from '../../progress/engine.ts';
import { Iov } from '../../util/iov.ts';
import { ANY_SOURCE } from '../constants.ts';
import { CREATION, ctxOf, SERVICE_ID } from '../contexts.ts';

/** Between processes themselves, whatever communicators they have in common. */
export const BACKGROUND_CTX = ctxOf(SERVICE_ID, CREATION);

/**
 * Takes all messages with that tag, one after the other; `bytes` are valid until `take` returns. What this returns ends it.
 *
 * @param bytesMax Length of the longest one.
 */
export function listen(engine: Engine, tag: number, bytesMax: number, take: (source: number, bytes: Uint8Array) => void): () => void {
  const { pml } = engine;
  const buffer = new Uint8Array(bytesMax);
  let posted: RecvRequest | undefined;
  let isOver = false;
  const read = ({ error, cancelled, matchedSource, receivedBytes }: RecvRequest): boolean => {
    if (isOver || cancelled || error !== undefined) return false;
    take(matchedSource, buffer.subarray(0, receivedBytes));
    return true;
  };
  const post = (): void => {
    for (;;) {
      if (isOver) return;
      posted = pml.irecvInBackground(ANY_SOURCE, BACKGROUND_CTX, tag, new Iov([buffer]), (done) => {
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
