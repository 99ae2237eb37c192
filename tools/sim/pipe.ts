// One direction of one simulated rail: a FIFO with bandwidth, latency and jitter, which can be held, turned into a hole, or severed.
// Parcels are copied when their last byte leaves.
//
//   push() → queue ─ transmit (bandwidth) ─► capture(): copied ─ travel (latency, jitter; never overtaking) ─► Nic.arrive()
//
// Its path may be bad without being broken (Path). Then it behaves as TCP does over such a path: the pipe itself sends again what is lost,
// and until then everything behind it waits.
import { drawLoss, RETRANSMIT_TIMEOUT_MS } from '../../src/util/loss.ts';
import type { Prng } from '../../src/util/prng.ts';
import type { Nic, Parcel, WireItem } from './wire.ts';

export interface PipeSpec {
  /** Bandwidth in bytes per millisecond: 1000 is 1 MB/s. */
  bytesPerMs: number;
  latencyUs: number;
  /** Up to so much more, drawn for each piece. */
  jitterUs: number;
  /** Frames travel in pieces: at most so many bytes each, and up to so many pieces however small the frame is. */
  cellBytesMax: number;
  cellsMax: number;
  payloadDamagePer10k: number;
  headerDamagePer10k: number;
  /** One-sided writes under way at a cut may land up to so much later; 0 = they are lost with the rest. */
  lateOneSidedUsMax: number;
}

/** open: carries. held: everything waits. hole: everything vanishes as soon as it has left. */
export type Flow = 'open' | 'held' | 'hole';
/** What a cut does to what is queued or travelling. */
export type CutFate = 'lost' | 'delivered' | 'half';

/** How the path is; a path that gets better lets go of what waits for a retransmission only when that is due. */
export interface Path {
  /** Everything is lost; nobody is told. */
  dark: boolean;
  /** What was lost in the dark is missed as soon as it is light again, by what follows; else by the retransmission time-out. */
  missesAtOnce: boolean;
  /** Of 10,000 packets so many are lost. */
  lossPer10k: number;
  /** No more than this gets through, in bytes per millisecond. */
  bytesPerMs: number;
}

/** What stands at the head of the queue until it is sent again. */
interface Standing {
  readonly parcel: Parcel;
  readonly inTheDark: boolean;
  timeoutUs: number;
}

interface Travelling {
  item: WireItem;
  parcel: Parcel;
  gone: boolean;
}

/** The network that a pipe is part of, as far as the pipe uses it. */
export interface PipeNetwork {
  readonly nowUs: number;
  readonly tracing: boolean;
  at(atUs: number, run: () => void): void;
  note(text: string): void;
  /** Whether a hook lets it pass. */
  passes(stage: 'leave' | 'arrive', pipe: Pipe, item: WireItem): boolean;
  isSilent(rank: number): boolean;
  nic(rank: number, linkNo: number): Nic | undefined;
  link(a: number, b: number, linkNo: number): { readonly refusing: ReadonlySet<number>; from(rank: number): Pipe };
}

export class Pipe {
  readonly from: number;
  readonly to: number;
  readonly linkNo: number;
  readonly spec: PipeSpec;
  readonly prng: Prng;
  extraUs = 0;
  corruptNext: 'header' | 'payload' | null = null;
  dropCounts = false;
  /** Packet type of the frame that is leaving, and of the one that is arriving (kept by the fabric's hooks). */
  readonly packetTypes: [number, number] = [0, 0];
  flow: Flow = 'open';
  readonly path: Path = { dark: false, missesAtOnce: false, lossPer10k: 0, bytesPerMs: Number.POSITIVE_INFINITY };
  /** Grows whenever it gets dark. */
  darkNo = 0;
  private standing: Standing | null = null;
  /** Sent again, and through: it is not lost a second time. */
  private repeated: Parcel | null = null;
  /** When the parcel on the wire began, and what of it was left then. */
  private wireSinceUs = 0;
  private wireBytes = 0;
  /** The sending side's kernel has sent something again. */
  onResent: () => void = () => undefined;
  private readonly fabric: PipeNetwork;
  private queue: Parcel[] = [];
  private head = 0;
  /** The parcel on the wire just now; `token` tells its event from that of one that a cut took away. */
  private transmitting = false;
  private token = 0;
  private stalledUntilUs = 0;
  private lastArrivalUs = 0;
  private travelling: Travelling[] = [];

  constructor(fabric: PipeNetwork, from: number, to: number, linkNo: number, spec: PipeSpec, prng: Prng) {
    this.fabric = fabric;
    this.from = from;
    this.to = to;
    this.linkNo = linkNo;
    this.spec = spec;
    this.prng = prng;
  }

  private get name(): string {
    return `${this.from}>${this.to}/${this.linkNo}`;
  }

  push(parcel: Parcel): void {
    this.queue.push(parcel);
    this.transmitNext();
  }

  setFlow(flow: Flow): void {
    this.flow = flow;
    this.transmitNext();
  }

  stallUntil(us: number): void {
    this.stalledUntilUs = Math.max(this.stalledUntilUs, us);
    this.fabric.at(us, () => this.transmitNext());
  }

  /** The sending process is dead: nothing that is still its own leaves. */
  dropQueue(): void {
    this.queue = [];
    this.head = 0;
    this.transmitting = false;
    this.standing = null;
    this.token += 1;
  }

  private transmitNext(): void {
    if (this.transmitting || this.flow === 'held' || this.fabric.nowUs < this.stalledUntilUs) return;
    // What belongs to a stream that has ended or lost a piece takes no time on the wire.
    while (this.head < this.queue.length && isDead(this.queue[this.head])) this.head += 1;
    if (this.head === this.queue.length) {
      this.queue = [];
      this.head = 0;
      return;
    }
    const parcel = this.queue[this.head];
    if (this.standing !== null) {
      if (this.standing.parcel === parcel) return;
      // That stream is over: another connection has a clock of its own.
      this.standing = null;
    }
    this.transmitting = true;
    this.wireBytes = parcel.bytes;
    this.onWire(parcel);
  }

  private onWire(parcel: Parcel): void {
    const token = ++this.token;
    this.wireSinceUs = this.fabric.nowUs;
    const wireUs = Math.ceil((this.wireBytes * 1000) / this.rate);
    this.fabric.at(this.fabric.nowUs + wireUs, () => {
      if (token !== this.token) return;
      this.transmitting = false;
      // Held meanwhile: its last byte did not get away; it is sent again later.
      if (this.flow !== 'held' && (isDead(parcel) || !this.isLost(parcel))) {
        this.shift();
        this.leave(parcel);
      }
      this.transmitNext();
    });
  }

  private shift(): void {
    this.head += 1;
    if (this.head > 1024 && this.head * 2 > this.queue.length) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
  }

  // --- a bad path

  private get rate(): number {
    return Math.min(this.spec.bytesPerMs, this.path.bytesPerMs);
  }

  setPath(change: Partial<Path>): void {
    const { path } = this;
    const wasDark = path.dark;
    const leftBytes = this.wireBytes - ((this.fabric.nowUs - this.wireSinceUs) * this.rate) / 1000;
    const isRate = change.bytesPerMs !== undefined && change.bytesPerMs !== path.bytesPerMs;
    Object.assign(path, change);
    if (path.dark && !wasDark) this.darkNo += 1;
    if (isRate && this.transmitting) {
      this.wireBytes = Math.max(1, leftBytes);
      this.onWire(this.queue[this.head]);
    }
    const { standing } = this;
    if (wasDark && !path.dark && path.missesAtOnce && standing?.inTheDark) this.repeatIn(standing, this.roundTripUs);
  }

  /** The path is as it was built, and nothing waits any more. */
  heal(): void {
    this.setPath({ dark: false, missesAtOnce: false, lossPer10k: 0, bytesPerMs: Number.POSITIVE_INFINITY });
    this.standing = null;
    this.transmitNext();
  }

  private get roundTripUs(): number {
    return 2 * (this.spec.latencyUs + this.extraUs);
  }

  /** What has just left is lost. */
  private isLost(parcel: Parcel): boolean {
    const { path, prng } = this;
    if (!path.dark && path.lossPer10k === 0) return false;
    if (parcel.conn === null) {
      if (!path.dark && !prng.chance(path.lossPer10k, 10_000)) return false;
      this.shift();
      this.loseLoose(parcel);
      return true;
    }
    const timeoutUs = RETRANSMIT_TIMEOUT_MS * 1000;
    if (path.dark) {
      this.repeatIn({ parcel, inTheDark: true, timeoutUs }, timeoutUs);
      return true;
    }
    if (this.repeated === parcel) return false;
    const isFollowed = this.queue.length - this.head > 1 || this.travelling.length > 0;
    const { stallMs, isRepaired } = drawLoss(prng, parcel.bytes, path.lossPer10k, isFollowed);
    if (stallMs === 0 && !isRepaired) return false;
    this.repeated = parcel;
    this.repeatIn({ parcel, inTheDark: false, timeoutUs }, stallMs > 0 ? stallMs * 1000 : this.roundTripUs);
    return true;
  }

  /** It belongs to no connection yet, or to none any more: an attempt to connect is lost, the end of a connection is said again. */
  private loseLoose(parcel: Parcel): void {
    const item = parcel.capture();
    if (this.fabric.tracing && item !== null) this.fabric.note(`lost ${this.name} ${describe(item)}`);
    if (item?.kind !== 'close' && item?.kind !== 'helloRefused') return;
    this.fabric.at(this.fabric.nowUs + RETRANSMIT_TIMEOUT_MS * 1000, () => this.push(parcel));
  }

  private repeatIn(from: Standing, us: number): void {
    const standing = { ...from };
    this.standing = standing;
    if (this.fabric.tracing) this.fabric.note(`stand ${this.name} ${us}`);
    this.fabric.at(this.fabric.nowUs + us, () => {
      if (this.standing !== standing) return;
      this.onResent();
      if (this.path.dark) {
        const timeoutUs = standing.timeoutUs * 2;
        return this.repeatIn({ ...standing, inTheDark: true, timeoutUs }, timeoutUs);
      }
      this.standing = null;
      this.transmitNext();
    });
  }

  private leave(parcel: Parcel): void {
    if (isDead(parcel)) return;
    const item = parcel.capture();
    if (item === null) return;
    if (this.flow === 'hole' || this.fabric.isSilent(this.from) || this.fabric.isSilent(this.to)) {
      if (this.fabric.tracing) this.fabric.note(`vanish ${this.name} ${describe(item)}`);
      if (parcel.conn) parcel.conn.gap = true;
      return;
    }
    if (!this.fabric.passes('leave', this, item)) {
      if (parcel.conn) parcel.conn.gap = true;
      return;
    }
    // A hook has cut the rail: what went ahead of this piece is lost, so this one is, too.
    if (isDead(parcel)) return;
    this.travel(parcel, item);
  }

  private travel(parcel: Parcel, item: WireItem): void {
    this.harm(item);
    const wishUs = this.fabric.nowUs + this.spec.latencyUs + this.extraUs + this.prng.between(0, this.spec.jitterUs);
    this.lastArrivalUs = Math.max(this.lastArrivalUs, wishUs);
    const record: Travelling = { item, parcel, gone: false };
    this.travelling.push(record);
    this.fabric.at(this.lastArrivalUs, () => {
      if (record.gone) return;
      this.travelling.shift();
      this.land(parcel, item);
    });
  }

  /** The end of the way. What a hook takes out takes the rest of its stream with it. */
  private land(parcel: Parcel, item: WireItem): void {
    if (this.fabric.passes('arrive', this, item)) return this.arrive(item);
    const { conn } = parcel;
    if (conn === null) return;
    conn.gap = true;
    for (const record of this.travelling) if (record.parcel.conn === conn) record.gone = true;
    this.travelling = this.travelling.filter((record) => !record.gone);
  }

  private arrive(item: WireItem): void {
    const { fabric } = this;
    if (fabric.tracing) fabric.note(`arrive ${this.name} ${describe(item)}`);
    const back = fabric.link(this.from, this.to, this.linkNo).from(this.to);
    const nic = fabric.nic(this.to, this.linkNo);
    const refused = fabric.link(this.from, this.to, this.linkNo).refusing.has(this.to);
    if (item.kind === 'hello') {
      // The kernel answers for its process: at once, and whether the process runs or not.
      const { epoch } = item;
      if (nic === undefined || refused) {
        const text = nic === undefined ? 'no process listens' : 'connection refused';
        back.push({ conn: null, bytes: 24, capture: () => ({ kind: 'helloRefused', epoch, text, highestEpoch: undefined }) });
        return;
      }
      back.push({ conn: null, bytes: 24, capture: () => ({ kind: 'kernelAck', epoch }) });
    }
    if (nic !== undefined) nic.arrive(this.linkNo, this.from, item);
    else if (item.kind === 'cell' || item.kind === 'probe') {
      const { epoch } = item;
      back.push({ conn: null, bytes: 24, capture: () => ({ kind: 'close', epoch }) });
    }
  }

  private harm(item: WireItem): void {
    if ('report' in item && this.dropCounts) item.report = null;
    if (item.kind === 'count' && this.dropCounts) return;
    if (item.kind !== 'cell') return;
    if (item.first && (this.corruptNext === 'header' || this.prng.chance(this.spec.headerDamagePer10k, 10_000))) {
      if (this.corruptNext === 'header') this.corruptNext = null;
      item.headerDamaged = true;
      if (item.header && item.header.length > 0) item.header[this.prng.below(item.header.length)] ^= 0x10;
    }
    if (item.chunk.length > 0 && (this.corruptNext === 'payload' || this.prng.chance(this.spec.payloadDamagePer10k, 10_000))) {
      if (this.corruptNext === 'payload') this.corruptNext = null;
      item.payloadDamaged = true;
      item.chunk[this.prng.below(item.chunk.length)] ^= 0x10;
    }
  }

  /** The cable is cut: from now on a hole; what was queued or travelling meets its fate. */
  sever(fate: CutFate): void {
    const queued = this.queue.slice(this.head).filter((parcel) => !isDead(parcel));
    this.dropQueue();
    const travelling = this.travelling;
    this.travelling = [];
    for (const record of travelling) record.gone = true;
    const all: { parcel: Parcel; item: WireItem | null }[] = [
      ...travelling.map(({ parcel, item }) => ({ parcel, item })),
      ...queued.map((parcel) => ({ parcel, item: null })),
    ];
    let kept = 0;
    if (fate === 'delivered') kept = all.length;
    if (fate === 'half') kept = this.halfWay(all);
    for (const [i, { parcel, item }] of all.entries()) {
      if (i < kept) {
        const captured = item ?? parcel.capture();
        if (captured === null) continue;
        if (item === null) this.harm(captured);
        const record: Travelling = { item: captured, parcel, gone: false };
        this.travelling.push(record);
        this.lastArrivalUs = Math.max(this.lastArrivalUs, this.fabric.nowUs + this.prng.between(0, this.spec.latencyUs));
        this.fabric.at(this.lastArrivalUs, () => {
          if (record.gone) return;
          this.travelling.shift();
          this.land(parcel, captured);
        });
      } else {
        this.losePiece(parcel, item);
      }
    }
    this.flow = 'hole';
  }

  private losePiece(parcel: Parcel, item: WireItem | null): void {
    if (parcel.conn) parcel.conn.gap = true;
    if (this.spec.lateOneSidedUsMax === 0) return;
    // A one-sided write may sit in some queue of the network and land long after the sender has given it up.
    const captured = item ?? parcel.capture();
    if (captured?.kind !== 'put') return;
    const lateUs = this.fabric.nowUs + this.prng.between(1, this.spec.lateOneSidedUsMax);
    this.fabric.note(`late ${this.name} ${describe(captured)} at ${lateUs}`);
    this.fabric.at(lateUs, () => this.arrive(captured));
  }

  /** Where a cut falls: within a frame when one is there that travels in several pieces, else anywhere. */
  private halfWay(all: readonly { item: WireItem | null }[]): number {
    const inside: number[] = [];
    for (let i = 0; i < all.length; i++) {
      const item = all[i].item;
      if (item === null || (item.kind === 'cell' && !item.last)) inside.push(i + 1);
    }
    return inside.length > 0 ? this.prng.pick(inside) : this.prng.between(0, all.length);
  }
}

function isDead(parcel: Parcel): boolean {
  return parcel.conn !== null && (parcel.conn.ended || parcel.conn.gap);
}

export function describe(item: WireItem): string {
  const base = `${item.kind} e${item.epoch}`;
  switch (item.kind) {
    case 'cell':
      return `${base} #${item.number}${item.first ? ' first' : ''}${item.last ? ' last' : ''} ${item.chunk.length}/${item.payloadBytes}${
        item.headerDamaged || item.payloadDamaged ? ' damaged' : ''
      } c${item.report?.count ?? '-'}`;
    case 'count':
      return `${base} c${item.report?.count ?? '-'}`;
    case 'put':
    case 'getData':
      return `${base} #${item.number} ${item.chunk.length}${item.last ? ' last' : ''}`;
    case 'nack':
    case 'bye':
      return `${base} #${item.number}`;
    case 'probe':
    case 'probeAnswer':
      return `${base} ${item.probeId}`;
    default:
      return base;
  }
}
