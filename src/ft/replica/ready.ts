// What has ended at a lead and waits for its burst, and how a shadow is told of it. Pure.
import type { MultirailError } from '../../errors.ts';
import type { Envelope, RecvRequest, SendRequest } from '../../pml/records.ts';
import { Iov } from '../../util/iov.ts';
import { bytesOf } from './digest.ts';
import type { Own } from './paired-pml.ts';
import { type Ended, INLINE_BYTES_MAX } from './wire.ts';

export interface Ready {
  readonly own: Own;
  readonly inner: SendRequest | RecvRequest | undefined;
  readonly error: MultirailError | undefined;
  readonly envelope: Envelope | undefined;
  /** A value; of a result in which one of three replicas differed, the bytes of the other two. */
  readonly bytes: Uint8Array | undefined;
}

export function readyOf(own: Own, { inner, error, envelope, bytes }: Partial<Omit<Ready, 'own'>>): Ready {
  return { own, inner, error, envelope, bytes };
}

/** How it has ended, with a copy of what has come; longer ones follow as messages of their own. */
export function endedOf({ own, inner, error, envelope, bytes }: Ready): { readonly ended: Ended; readonly data: Uint8Array | undefined } {
  const { number: request, pattern } = own;
  const failure = error && { code: error.code, text: error.message.slice(error.code.length + 2), peer: error.peer };
  let ended: Ended = {
    request,
    pattern,
    source: -1,
    tag: -1,
    seq: -1,
    signature: 0,
    cancelled: false,
    error: failure,
    bytes: 0,
    data: undefined,
    isBulk: false,
  };
  let data: Uint8Array | undefined = bytes;
  if (inner?.kind === 'recv') {
    const { matchedSource: source, matchedTag: tag, matchedSeq: seq, matchedSignature: signature, cancelled, receivedBytes } = inner;
    ended = { ...ended, source, tag, seq, signature, cancelled, bytes: receivedBytes };
    if (receivedBytes > 0) data = bytesOf(new Iov(inner.buffer.slice(0, receivedBytes)));
  } else if (envelope !== undefined) {
    const { source, tag, seq, signature, messageBytes } = envelope;
    ended = { ...ended, source, tag, seq, signature, bytes: messageBytes };
  }
  const isBulk = (data?.length ?? 0) > INLINE_BYTES_MAX;
  return { ended: { ...ended, data: isBulk ? undefined : data, isBulk, bytes: data?.length ?? ended.bytes }, data };
}
