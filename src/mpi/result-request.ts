// A request whose call gives something besides its end.
import { Request } from './request.ts';
import type { Inner, RequestOwner } from './request-owner.ts';

/** What has been started, and what it has given. */
export interface ResultInner<T> {
  readonly result: T | undefined;
}

/** A request of a call that gives something: the verdict of iagree(), the communicator of ishrink(). */
export class ResultRequest<T> extends Request {
  private readonly call: ResultInner<T>;

  /** @internal */
  constructor(owner: RequestOwner, call: Inner & ResultInner<T>) {
    super(owner, call);
    this.call = call;
  }

  /** What the call has given; undefined while it is under way, and when it failed. */
  get result(): T | undefined {
    return this.call.result;
  }
}
