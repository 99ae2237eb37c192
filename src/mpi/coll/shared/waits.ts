// The calls of one process that wait for memory which other processes write: polled whenever the rails are, and woken by a bell. A bell is a
// ring on a shared-memory rail, or a message without content where there is no such rail.
import type { WatchedWords } from '../../../btl/btl.ts';
import type { NativeBinding } from '../../../native/binding.ts';
import type { Pml } from '../../../pml/pml.ts';
import type { RecvRequest } from '../../../pml/records.ts';
import type { MemoryWaits } from '../../../progress/engine.ts';
import { type MemoryWatch, LOOKS as WATCHED_LOOKS, LOOKS_PER_YIELD as WATCHED_LOOKS_PER_YIELD } from '../../../progress/memory-watch.ts';
import { EMPTY_IOV } from '../../../util/iov.ts';
import { ANY_SOURCE } from '../../constants.ts';
import { COLLECTIVE, ctxOf, SERVICE_ID } from '../../contexts.ts';
import type { MemoryCall } from '../scope.ts';
import type { MemoryHost, PendingMemoryCall, SharedCalls } from './call-memory.ts';

const BELL_CTX = ctxOf(SERVICE_ID, COLLECTIVE);
/** That of notices is 0. */
const BELL_TAG = 1;
/** How often it is looked whether what is waited for can come at all, and in how many of these looks the kernel is asked. */
const LOOK_MS = 100;
const LOOKS_PER_KERNEL = 5;
/**
 * A blocking call looks at the words this often before it looks at the rails: with a processor for each rank without a pause; with more ranks
 * than processors it gives the processor away after each look, since the rank that it waits for may need it.
 */
const LOOKS = 1000;
const YIELDS = 100;
/** Looks between two looks at the rails. */
const LOOKS_PER_POLL = 100;
const YIELDS_PER_POLL = 10;
/** So many looks are of this process's own code, once that is compiled; behind them the native part looks. */
const OWN_LOOKS = 100;

/** What the calls use of the process. */
export interface WaitsHost {
  readonly engine: { readonly pml: Pick<Pml, 'isend' | 'irecvInBackground'>; poll(): number; schedule(): void };
  readonly native: NativeBinding | undefined;
  /** Looks at words in the native part. */
  readonly watch: Pick<MemoryWatch, 'beginsCold' | 'wait' | 'hasChanged'> | undefined;
  /** Rings on a rail to that rank; false when there is none that can. */
  ring(world: number): boolean;
  /** More ranks than processors are on this host. */
  isCrowded(): boolean;
}

export class CollectiveWaits implements MemoryWaits, MemoryHost {
  private readonly host: WaitsHost;
  readonly native: NativeBinding | undefined;
  private readonly waiting: SharedCalls[] = [];
  private isParked = false;
  private isListening = false;
  private nowMs = 0;
  private lookedMs = Number.NEGATIVE_INFINITY;
  private looks = 0;
  private crowded: boolean | undefined;

  constructor(host: WaitsHost) {
    this.host = host;
    this.native = host.native;
  }

  add(memory: SharedCalls): void {
    memory.isKnown = true;
    this.waiting.push(memory);
    this.listen();
  }

  get isWaiting(): boolean {
    return this.waiting.length > 0;
  }

  get wantsSpin(): boolean {
    const { waiting } = this;
    for (let i = 0; i < waiting.length; i++) if (waiting[i].hasCalls) return true;
    return false;
  }

  get isCrowded(): boolean {
    this.crowded ??= this.host.isCrowded();
    return this.crowded;
  }

  /** Calls that wait. For people. */
  *pending(): Generator<PendingMemoryCall> {
    for (const memory of this.waiting) yield* memory.pending();
  }

  // ---------------------------------------------------------------- by the engine

  progress(nowMs: number): number {
    const { waiting } = this;
    this.nowMs = nowMs;
    if (this.isParked) this.unpark();
    let work = 0;
    for (let i = waiting.length - 1; i >= 0; i--) {
      const memory = waiting[i];
      if (memory.poll()) work++;
      if (memory.isWaiting) continue;
      memory.isKnown = false;
      waiting.splice(i, 1);
    }
    if (work > 0) return work;
    if (nowMs - this.lookedMs >= LOOK_MS) {
      this.lookedMs = nowMs;
      const alsoProcesses = ++this.looks % LOOKS_PER_KERNEL === 0;
      for (const memory of [...waiting]) memory.lookSlowly(alsoProcesses);
    } else if (this.wantsSpin && this.isCrowded) this.native?.yieldCpu();
    return 0;
  }

  park(): boolean {
    this.isParked = true;
    for (const memory of this.waiting) {
      if (memory.sleep()) continue;
      this.unpark();
      return false;
    }
    return true;
  }

  watch(watched: WatchedWords): boolean {
    if (this.isParked) return false;
    const { waiting } = this;
    for (let i = 0; i < waiting.length; i++) if (!waiting[i].watch(watched)) return false;
    return true;
  }

  private unpark(): void {
    this.isParked = false;
    for (const memory of this.waiting) memory.awake();
  }

  nextDeadline(): number {
    return this.waiting.length === 0 ? Number.POSITIVE_INFINITY : Math.max(this.nowMs, this.lookedMs + LOOK_MS);
  }

  // ---------------------------------------------------------------- by blocking calls

  /** For a short while, looks at the words alone: most often what is waited for comes at once. */
  spin(call: MemoryCall): void {
    const { native } = this;
    const { engine, watch } = this.host;
    const gives = this.isCrowded && native !== undefined;
    const looks = gives ? YIELDS : LOOKS;
    const perPoll = gives ? YIELDS_PER_POLL : LOOKS_PER_POLL;
    const watchedLooks = gives ? YIELDS_PER_POLL : WATCHED_LOOKS;
    const ownLooks = watch === undefined ? looks : gives || watch.beginsCold() ? 0 : OWN_LOOKS;
    for (let i = 1; i <= looks && !call.done && call.awaitsMemory; i++) {
      if (call.pollMemory()) continue;
      if (i > ownLooks && watch?.wait(watchedLooks, gives ? 1 : WATCHED_LOOKS_PER_YIELD) === true) {
        i += watchedLooks;
        if (!watch.hasChanged || !call.pollMemory()) engine.poll();
      } else if (i % perPoll === 0) engine.poll();
      else if (gives) native.yieldCpu();
    }
  }

  // ---------------------------------------------------------------- the bell

  ring(world: number): void {
    const { host } = this;
    if (host.ring(world)) return;
    host.engine.pml.isend(world, BELL_CTX, BELL_TAG, EMPTY_IOV);
    host.engine.schedule();
  }

  /** Rings that come as messages have done their work by making a turn. */
  private listen(): void {
    if (this.isListening) return;
    this.isListening = true;
    const onDone = ({ error }: RecvRequest): void => {
      this.isListening = false;
      // The runtime is being finalized.
      if (error === undefined) this.listen();
    };
    for (;;) {
      const request = this.host.engine.pml.irecvInBackground(ANY_SOURCE, BELL_CTX, BELL_TAG, EMPTY_IOV, onDone);
      if (!request.done) return;
      if (request.error !== undefined) {
        this.isListening = false;
        return;
      }
    }
  }
}
