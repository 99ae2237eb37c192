// Messages whose communicator was revoked while they were under way. No packet says so: a receiver takes what comes into nothing, and answers
// what nobody will receive, so every message comes to its end. A send keeps its buffer until then, since its receiver may not have heard of
// the revocation, and complete a receive with what is in that memory.
import type { MultirailError } from '../errors.ts';
import type { PmlCore } from './core.ts';
import type { Receiver } from './receiver.ts';
import { SendMessage } from './records.ts';

export function revokeMessages(core: PmlCore, receiver: Receiver, ctx: number, error: MultirailError): void {
  for (const { sends, recvs } of core.peers.values()) {
    for (const message of sends) {
      if (message.ctx !== ctx || !(message instanceof SendMessage)) continue;
      const { request } = message;
      if (request === undefined || request.done) continue;
      request.error ??= error;
      request.isForsaken = true;
    }
    for (const message of recvs) if (message.ctx === ctx) receiver.revoke(message, error);
  }
}
