// The endpoint of a shared-memory rail: that of a stream, plus reads of the peer's memory.
import { StreamEndpoint } from '../base/stream-endpoint.ts';
import { DOWN, type OneSidedOp, type Registration, type SendResult } from '../btl.ts';
import type { SmLink } from './sm-link.ts';

export class SmEndpoint extends StreamEndpoint {
  /** The link that the module made last; it knows itself whether it is over. */
  memoryLink: SmLink | undefined = undefined;

  register(memory: readonly Uint8Array[]): Registration | undefined {
    return this.memoryLink?.register(memory);
  }

  get(op: OneSidedOp): SendResult {
    const answer = this.memoryLink?.get(op, this.windowBytes) ?? DOWN;
    this.module.due();
    return answer;
  }
}
