// A request as the program sees it: a send, a receive, a collective, or one of its own (generalized), once or again and again.
import type { PersistentRequest, Request } from '../mpi/request.ts';
import type { Comm } from './comm.ts';

/** What its end puts into a status. */
export interface End {
  readonly source: number;
  readonly tag: number;
  readonly bytes: number;
  readonly cancelled: boolean;
}

export interface ReqOptions {
  readonly comm: Comm | undefined;
  readonly kind: 'send' | 'recv' | 'other';
  readonly inner: Request | undefined;
  /** Called once with the bytes received, when it has ended. */
  readonly after?: ((bytes: number) => void) | undefined;
  /** Of a persistent one, at each start. */
  readonly before?: (() => void) | undefined;
  readonly persistent?: boolean;
}

export class Req {
  readonly comm: Comm | undefined;
  readonly kind: 'send' | 'recv' | 'other';
  inner: Request | undefined;
  after: ((bytes: number) => void) | undefined;
  readonly before: (() => void) | undefined;
  readonly persistent: boolean;
  handle = 0;
  /** Of a persistent one: started and not yet told to have ended. */
  active: boolean;
  /** MPI_Request_free was called while it was under way. */
  isFreed = false;
  /** Its data were unpacked. */
  isUnpacked = false;
  /** Of a send that MPI_Cancel was called for. */
  cancelAsked = false;
  generalized: Generalized | undefined;
  /** The send beside a receive, of MPI_Isendrecv. */
  also: Request | undefined;
  partitioned: Partitioned | undefined;

  constructor({ comm, kind, inner, after, before, persistent = false }: ReqOptions) {
    this.comm = comm;
    this.kind = kind;
    this.inner = inner;
    this.after = after;
    this.before = before;
    this.persistent = persistent;
    this.active = !persistent;
  }

  /** Starts a persistent one. */
  start(): void {
    this.before?.();
    this.active = true;
    this.isUnpacked = false;
    if (this.partitioned === undefined) (this.inner as PersistentRequest | undefined)?.start();
    else this.partitioned.start();
  }

  /** It has ended; looks at no rail. */
  get done(): boolean {
    if (this.generalized !== undefined) return this.generalized.isComplete;
    if (this.partitioned !== undefined && !this.partitioned.isWhole) return false;
    if (this.also !== undefined && this.also.state === 'ACTIVE') return false;
    return this.inner === undefined || this.inner.state !== 'ACTIVE';
  }
}

/** What the program has said of a request of its own. */
export interface Generalized {
  readonly query: number;
  readonly free: number;
  readonly cancel: number;
  readonly extra: number;
  isComplete: boolean;
}

/** A message in parts (MPI-4.1, chapter 4): it leaves when all are ready. */
export interface Partitioned {
  readonly partitions: number;
  isWhole: boolean;
  start(): void;
  ready(partition: number): void;
}
