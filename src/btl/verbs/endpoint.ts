// The endpoint of a verbs rail: that of a stream (the companion connection), plus one-sided work.
import { StreamEndpoint } from '../base/stream-endpoint.ts';
import { DOWN, type OneSidedOp, type Registration, type SendResult } from '../btl.ts';
import type { VerbsLink } from './verbs-link.ts';

export class VerbsEndpoint extends StreamEndpoint {
  /** The link that the module made last; it knows itself whether it is over. */
  pairLink: VerbsLink | undefined = undefined;

  register(memory: readonly Uint8Array[]): Registration | undefined {
    return this.pairLink?.register(memory);
  }

  put(op: OneSidedOp): SendResult {
    return this.start(op);
  }

  get(op: OneSidedOp): SendResult {
    return this.start(op);
  }

  private start(op: OneSidedOp): SendResult {
    const answer = this.pairLink?.start(op, this.windowBytes) ?? DOWN;
    this.module.due();
    return answer;
  }
}
