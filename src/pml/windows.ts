// Windows of a message whose sender puts: registered memory of the receiver, offered by PUT packets, per rail. A long message is offered
// piece by piece, so that its first bytes move while the rest is being registered, and what has come is no longer held. Data and its
// arithmetic; what is sent, and when, is in receiver.ts and sender.ts.
import type { Registration } from '../btl/btl.ts';
import type { RangeSet } from '../util/range-set.ts';
import { WINDOWS_MAX } from './hdr.ts';

/** The other side's registered memory, reachable over one epoch of one rail. */
export interface RemoteWindow {
  readonly number: number;
  readonly rail: number;
  readonly railEpoch: number;
  readonly key: Uint8Array;
  readonly from: number;
  readonly to: number;
}

/** Memory that this side registered for the other, reachable over one epoch of one rail. */
export interface LocalWindow {
  readonly number: number;
  readonly rail: number;
  readonly railEpoch: number;
  /** Undefined: the rail has no window from here on, which the other side is told, since it waits for one. */
  readonly registration: Registration | undefined;
  readonly from: number;
  readonly to: number;
  /** PUT that offers it: delivered, or under way. */
  told: boolean;
  telling: boolean;
  /** Its PUT was on a rail at least once: the other side may write there. */
  offered: boolean;
}

interface OfferedRail {
  readonly rail: number;
  readonly epoch: number;
  ended: boolean;
}

/** The receiver's side: what of its buffer it offered in this epoch, and what of that is still registered. */
export class WindowOffers {
  windows: LocalWindow[] = [];
  /** Rails that were offered a window, in this epoch. */
  rails: OfferedRail[] = [];
  /** Everything below was offered, or needed no offer. */
  to = 0;
  /** Length of the last piece that was offered; the first and the last piece may be shorter. */
  pieceBytes = 0;
  private nextNumber = 1;
  /** Windows below were offered in older epochs. */
  private firstNumber = 1;

  /** What a FIN for that range of that window is worth: all of a closed window is counted already, and of others nothing may be said. */
  judgeFin(number: number, from: number, to: number): 'counts' | 'late' | 'wrong' {
    const window = this.windows.find((one) => one.number === number);
    if (window === undefined) return number >= this.firstNumber && number < this.nextNumber ? 'late' : 'wrong';
    const isWritable = window.registration !== undefined && window.offered;
    return isWritable && window.from <= from && to <= window.to ? 'counts' : 'wrong';
  }

  /** Where the next piece begins: at the first byte that is neither received nor offered; -1 when every byte is. */
  nextFrom(received: RangeSet, takeBytes: number): number {
    const from = received.firstMissing(this.to, takeBytes);
    if (from === -1) this.to = takeBytes;
    return from;
  }

  /** Another piece is due: less than one piece of what was offered has yet to come. */
  isDue(received: RangeSet, takeBytes: number): boolean {
    return this.to < takeBytes && received.missingBytes(0, this.to) <= this.pieceBytes;
  }

  /** Rails on which the sender shall wait for its windows. */
  announced(): { rail: number; epoch: number }[] {
    return this.rails.slice(0, WINDOWS_MAX).map(({ rail, epoch }) => ({ rail, epoch }));
  }

  /** Adds what a rail answered to being asked for memory of [from, to). */
  add(rail: number, epoch: number, registration: Registration | undefined, from: number, to: number): void {
    const known = this.on(rail, epoch);
    if (registration === undefined) {
      if (known === undefined || known.ended) return;
      known.ended = true;
    } else if (known === undefined) this.rails.push({ rail, epoch, ended: false });
    this.windows.push({
      number: this.nextNumber++,
      rail,
      railEpoch: epoch,
      registration,
      from,
      to,
      told: false,
      telling: false,
      offered: false,
    });
  }

  /** The rail refused memory before: it is not asked again in this epoch. */
  hasEnded(rail: number, epoch: number): boolean {
    return this.on(rail, epoch)?.ended === true;
  }

  private on(rail: number, epoch: number): OfferedRail | undefined {
    return this.rails.find((one) => one.rail === rail && one.epoch === epoch);
  }

  /** Windows in which nothing more can land: every byte of theirs was counted, and each is sent once in an epoch. */
  takeReceived(received: RangeSet): LocalWindow[] {
    const isReceived = ({ registration, from, to }: LocalWindow): boolean => registration !== undefined && received.contains(from, to);
    if (!this.windows.some(isReceived)) return [];
    const gone = this.windows.filter(isReceived);
    this.windows = this.windows.filter((window) => !isReceived(window));
    return gone;
  }

  /** All of them, and a new start (numbers go on: those of an older epoch may still be on their way). */
  takeAll(): LocalWindow[] {
    const all = this.windows;
    this.windows = [];
    this.rails = [];
    this.to = 0;
    this.firstNumber = this.nextNumber;
    return all;
  }
}

/** What the receiver offered on one epoch of one rail. */
class PutTarget {
  readonly rail: number;
  readonly epoch: number;
  private readonly windows: RemoteWindow[] = [];
  /** Everything below was offered: what has no window there goes by FRAG. */
  private offeredTo = 0;
  private ended = false;

  constructor(rail: number, epoch: number) {
    this.rail = rail;
    this.epoch = epoch;
  }

  add(window: RemoteWindow): void {
    if (window.key.length === 0) {
      this.ended = true;
      return;
    }
    this.windows.push(window);
    this.offeredTo = Math.max(this.offeredTo, window.to);
  }

  drop(window: RemoteWindow): void {
    const at = this.windows.indexOf(window);
    if (at !== -1) this.windows.splice(at, 1);
  }

  /** The window that holds this byte; the last ones first, since a message goes from its beginning to its end. */
  at(offset: number): RemoteWindow | undefined {
    for (let i = this.windows.length - 1; i >= 0; i--) {
      const window = this.windows[i];
      if (window.from <= offset && offset < window.to) return window;
    }
    return undefined;
  }

  /** A window for this byte is still to come. */
  isAwaited(offset: number): boolean {
    return !this.ended && offset >= this.offeredTo;
  }
}

const NO_TARGETS: readonly PutTarget[] = [];

/** The sender's side: where it may put, in this epoch of a message. */
export class PutTargets {
  /** Undefined until the first one: most messages never have any. */
  private numbers: Set<number> | undefined = undefined;
  private targets: readonly PutTarget[] = NO_TARGETS;

  /** False when a PUT of that number was here before. */
  offer(window: RemoteWindow): boolean {
    this.numbers ??= new Set();
    if (this.numbers.has(window.number)) return false;
    this.numbers.add(window.number);
    this.announce(window.rail, window.railEpoch).add(window);
    return true;
  }

  /** A PUT for that rail will come, unless it has overtaken its announcement. */
  announce(rail: number, epoch: number): PutTarget {
    const known = this.on(rail, epoch);
    if (known !== undefined) return known;
    const target = new PutTarget(rail, epoch);
    this.targets = [...this.targets, target];
    return target;
  }

  on(rail: number, epoch: number): PutTarget | undefined {
    for (const target of this.targets) if (target.rail === rail && target.epoch === epoch) return target;
    return undefined;
  }

  clear(): void {
    this.targets = NO_TARGETS;
    this.numbers = undefined;
  }
}
