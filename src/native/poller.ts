// Readiness of every descriptor of one runtime, over the native part: the sockets of all rails, listeners, doorbells, netlink. There is one
// per runtime, in the modules' context. It makes no decisions: it sets what is ready and lets the engine run.
import { type NativeBinding, POLL_IN } from './binding.ts';

/** What stands behind a descriptor. `onReady` only notes what it is told; the work is done in progress(). */
export interface PollTarget {
  /** Readiness bits (POLL_IN, …). */
  onReady(events: number): void;
}

/** Pairs looked at in one call; what is ready beyond them is found by the next call, since readiness is level-triggered. */
const PAIRS_MAX = 128;
/** Up to this many data sockets are simply read in each pass, which is cheaper than asking first which are ready. */
const DIRECT_MAX = 2;
/** Of so many looks in a row one asks the kernel, where it is not the kernel that says what has come. */
const LOOKS_PER_KERNEL = 64;

export class Poller {
  readonly native: NativeBinding;
  private readonly id: number;
  private readonly targets: (PollTarget | undefined)[] = [];
  private readonly pairs = new Int32Array(PAIRS_MAX * 2);
  private hot = 0;
  private looks = 0;
  private closed = false;
  /** Set by the engine while rails in memory carry the traffic: sockets are then asked for seldom. */
  memoryFirst = false;

  /** `onReady` is called from the event loop, again and again while it returns true (microtasks run in between). */
  constructor(native: NativeBinding, onReady: () => boolean) {
    this.native = native;
    this.id = native.pollerOpen(onReady);
  }

  /** Streams may try to read without having been told that there is something. */
  get direct(): boolean {
    return this.hot <= DIRECT_MAX && !this.memoryFirst;
  }

  /** Watches a descriptor. `hot`: a data socket, which is worth reading at any time; others are only looked at when ready. */
  add(fd: number, target: PollTarget, events = POLL_IN, hot = false): void {
    this.targets[fd] = target;
    if (hot) this.hot++;
    this.native.pollerSet(this.id, fd, events);
  }

  change(fd: number, events: number): void {
    this.native.pollerSet(this.id, fd, events);
  }

  /** Before the descriptor is closed. */
  remove(fd: number, hot = false): void {
    if (this.targets[fd] === undefined) return;
    this.targets[fd] = undefined;
    if (hot) this.hot--;
    if (!this.closed) this.native.pollerSet(this.id, fd, -1);
  }

  /** Tells the targets what is ready now; returns how many were. timeoutMs > 0 sleeps in the kernel for at most that long. */
  look(timeoutMs = 0): number {
    if (this.closed) return 0;
    const { pairs } = this;
    const found = this.native.pollerWait(this.id, pairs, timeoutMs);
    for (let i = 0; i < found; i++) this.targets[pairs[2 * i]]?.onReady(pairs[2 * i + 1]);
    return Math.max(0, found);
  }

  /**
   * As look(), for whoever looks again and again. Where streams are read without being told that there is something, and where rails in memory
   * carry everything, the kernel is asked seldom.
   */
  lookSparingly(): void {
    if ((!this.direct && !this.memoryFirst) || ++this.looks % LOOKS_PER_KERNEL === 0) this.look();
  }

  /** Whether it keeps the process alive; it does from the start. */
  keepAlive(keepsAlive: boolean): void {
    if (!this.closed) this.native.pollerRef(this.id, keepsAlive);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.native.pollerClose(this.id);
  }
}
