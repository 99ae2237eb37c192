// What a collective is given: the ranks that make it, and what it uses of the process that it runs in, of the news that such processes
// tell each other, and of the other collectives under way. Whoever makes a Scope answers to these; collectives know no more of them.
import { MultirailError } from '../../errors.ts';
import type { NativeBinding } from '../../native/binding.ts';
import type { MessageLayer } from '../../pml/message-layer.ts';
import type { RecvRequest } from '../../pml/records.ts';
import type { MemoryPool } from '../../util/memory-pool.ts';
import type { Tuning } from './choice.ts';
import type { KnownRegions, ScratchElements } from './memory.ts';
import type { NativeKernels } from './native-kernels.ts';
import type { KnownSignatures, Ledger, Signature } from './signature.ts';

/** Ranks that run a collective together, and the context that it talks on. */
export interface Scope {
  readonly proc: LocalProcess;
  /** For messages. */
  readonly name: string;
  /** World rank of each rank. */
  readonly members: readonly number[];
  readonly rank: number;
  readonly size: number;
  readonly ctx: number;
  readonly tuning: Tuning;
  /** Buffers that were looked at. */
  readonly known: KnownRegions;
  readonly signatures: KnownSignatures;
  /** What was begun on the context. */
  readonly ledger: Ledger;
  /** Undefined where collectives go by messages: the ranks are on several hosts, or are told to. */
  readonly shared: CallMemory | undefined;
}

/** Makes and maps memory that processes of one host share: the native part. */
export type SharedMemorySource = Pick<NativeBinding, 'memoryCreate' | 'memoryMap' | 'memoryUnmap'>;

/** The process that a collective runs in. */
export interface LocalProcess {
  /** World rank. */
  readonly rank: number;
  readonly pml: Pick<MessageLayer, 'isend' | 'irecv' | 'irecvInBackground' | 'iprobe' | 'peer' | 'comparesBytes'>;
  readonly engine: {
    schedule(): void;
    readonly pml: { nextOpened(): number };
    /** Why nothing can come from that world rank any more. */
    endingOf(rank: number): { readonly ended: MultirailError; readonly failure: MultirailError | undefined } | undefined;
  };
  /** Undefined without the native part. */
  readonly nativeKernels: NativeKernels | undefined;
  /** Collectives that are under way. */
  readonly operations: Set<RunningCall>;
  readonly failures: FailureNews;
  /** Scratch memory, and elements in such memory, of collectives that have ended. */
  readonly scratch: MemoryPool;
  readonly spare: ScratchElements[];
  readonly counters: CollectiveCounters;
  /** Processes that failed or left. */
  readonly membersGone: number;
  /** Every process hears of every death, whether it has to do with the dead one or not. */
  readonly hearsOfDeaths: boolean;
  cancel(request: RecvRequest): boolean;
  /** From the first collective on: calls that do not move are looked at, all of them together. */
  watchCalls(): void;
  /** The ranks that make collective calls on that context; undefined when it is of no communicator. */
  scopeOf(ctx: number): Scope | undefined;
  /** A collective with that tag has begun here, on the communicator that uses this context for them. */
  hasBegun(ctx: number, tag: number): boolean;
  findOperation(ctx: number, tag: number): RunningCall | undefined;
  /** Why a call of these ranks cannot go well from the start: one of them is known to be dead, where failures are told. */
  failureOf?(scope: Scope): MultirailError | undefined;
  /** The first that runs of the collectives that were begun after that many others. */
  runningAfter(ctx: number, order: number): RunningCall | undefined;
}

/** A collective that is under way, as others see it (operation.ts). */
export interface RunningCall {
  readonly scope: Scope;
  readonly tag: number;
  readonly name: string;
  readonly signature: Signature;
  /** Calls that had begun before it on its context. */
  readonly order: number;
  readonly isRunning: boolean;
  /** A message of that world rank is of another call. */
  meet(world: number, code: number): void;
  /** A member is gone. */
  check(): void;
  /** Asks those that it waits for whether they make the same call, if it does not move. */
  askAround(): void;
  /** Ends it, unless it has ended. `isOwn`: this rank has found the error, and tells everybody. `lateTag`: of the earlier call that it is of. */
  fail(error: MultirailError, isOwn: boolean, lateTag?: number): void;
  /** Its communicator was revoked, which is told to everybody. */
  revoked(error: MultirailError): void;
}

/** A collective that may go through memory that its ranks share (shared/call-memory.ts). */
export interface MemoryCall extends RunningCall {
  /** Bits of its signature; 0 when calls are not checked. */
  readonly code: number;
  readonly done: boolean;
  readonly error: MultirailError | undefined;
  readonly awaitsMemory: boolean;
  /** When it came to the memory, as requests count it (records.ts of the PML). */
  openedAs: number;
  memory: CallMemory | undefined;
  /** Goes on, if the memory holds what is waited for. Returns false if not. */
  pollMemory(): boolean;
}

/** That memory, as a call sees it. */
export interface CallMemory {
  /** Whether what the call waits for is there. A call that finds out why it cannot come has failed. */
  look(call: MemoryCall): boolean;
  /** Ranks that it waits for. */
  missing(call: MemoryCall): readonly number[];
  /** A member is gone: fails the call if it waits for it. */
  check(call: MemoryCall): void;
  /** The call has ended. */
  leave(call: MemoryCall): void;
}

/** How processes tell each other that a collective has failed (failures.ts). */
export interface FailureNews {
  tell(world: number, ctx: number, tag: number, error: MultirailError, late?: number): void;
  ask(world: number, scope: Scope, tag: number, signature: Signature, met: boolean): void;
  /** Somebody has told, or asked, of calls that have not begun here. */
  readonly hasNews: boolean;
  take(ctx: number, tag: number): Told | undefined;
  takeQuestion(ctx: number, tag: number): Asked | undefined;
  drain(ctx: number, tag: number): void;
}

/** What another rank has told of a collective; `late`: the error is that of the earlier one with this tag, -1 for none. */
export interface Told {
  error: MultirailError;
  late: number;
}

/** Asks whether a rank makes the same call, which it says only if it does not. */
export interface Question {
  ctx: number;
  tag: number;
  /** The call of the asker. */
  signature: number;
  call: string;
  /** A message of another call has come from there: the asker waits for the answer. */
  met: boolean;
}

/** A question for a collective that has not begun here, and the world rank that asks. */
export interface Asked extends Question {
  from: number;
}

/** What the collectives of this process have done. */
export interface CollectiveCounters {
  collectives: number;
  messages: number;
  bytes: number;
  /** How often a rank had to wait for others. */
  rounds: number;
  /** Those of `collectives` that the native part has made in one step, in memory that the ranks share. */
  atOnce: number;
}

type Party = readonly [rank: number, call: string];

/** Two ranks of a communicator have made calls that do not belong together: the lower rank is named first, by whoever finds it. */
export function mismatchError({ proc, name, members }: Pick<Scope, 'proc' | 'name' | 'members'>, a: Party, b: Party): MultirailError {
  const [first, second] = a[0] <= b[0] ? [a, b] : [b, a];
  const peer = members[members[a[0]] === proc.rank ? b[0] : a[0]];
  return new MultirailError(
    'ERR_COLLECTIVE_MISMATCH',
    `on ${name} rank ${first[0]} has called ${first[1]} where rank ${second[0]} has called ${second[1]}: all ranks must make the same call`,
    { rank: proc.rank, ...(peer === undefined ? {} : { peer }) },
  );
}
