// The simulated network: virtual time, an event heap, and one link (two one-way FIFO pipes) per rail and pair of ranks, with the controls
// that break them. It has no clock, no timers and no chance except the seed: the same calls give the same trace.
//
//   world                      fabric                              SimBtl (one per process)
//   advanceTo(ms) ──────────►  events in order of (time, number)
//                              pipe: transmit → travel → arrive ─► arrive(): inbox, wake()
//   module.progress()  ───────────────────────────────────────►  inbox → upcalls; frames → pipe.push()
//
// Time is kept in whole microseconds; milliseconds are that number divided by 1000, at the edges only.
import type { RailReason } from '../../src/btl/btl.ts';
import { assert } from '../../src/util/assert.ts';
import { Prng } from '../../src/util/prng.ts';
import { type CutFate, type Path, Pipe, type PipeNetwork, type PipeSpec } from './pipe.ts';
import type { Nic, WireItem } from './wire.ts';

/** A rail as it exists between every two ranks. Times in microseconds. */
export interface RailSpec extends PipeSpec {
  liveness: 'self' | 'siblings';
  /** How long a rail that checks itself takes to find out, at least and at most. */
  detectUsMin: number;
  detectUsMax: number;
  canPut: boolean;
  canGet: boolean;
  /** Length of a put or get; 0: that of a fragment. */
  oneSidedBytes: number;
  /** Memory registered for the other side at once; and how often (in 10 000) registering is refused. */
  pipelineBytes: number;
  registerRefusedPer10k: number;
  /** Payloads that wait can be copied, so that their memory is given back before they leave. */
  letsGo: boolean;
  role: 'active' | 'standby';
  exclusivity: number;
  /** It is whole or gone, as memory is: see RailAttributes. */
  isSteady: boolean;
  frameBytesMax: number;
  /** How often (in 10 000 sends) a burst of BUSY begins, and how long one lasts at most. */
  busyPer10k: number;
  busyUsMax: number;
}

export const RAIL_DEFAULTS: RailSpec = {
  bytesPerMs: 1_000_000,
  latencyUs: 20,
  jitterUs: 10,
  cellBytesMax: 64 * 1024,
  cellsMax: 4,
  payloadDamagePer10k: 0,
  headerDamagePer10k: 0,
  lateOneSidedUsMax: 0,
  liveness: 'self',
  detectUsMin: 20_000,
  detectUsMax: 200_000,
  canPut: false,
  canGet: false,
  oneSidedBytes: 0,
  pipelineBytes: Number.POSITIVE_INFINITY,
  registerRefusedPer10k: 0,
  letsGo: true,
  role: 'active',
  exclusivity: 100,
  isSteady: false,
  frameBytesMax: 16 * 1024 * 1024,
  busyPer10k: 0,
  busyUsMax: 2000,
};

/** Rails between two ranks at most. */
export const LINKS_MAX = 64;

export interface FabricOptions {
  seed: number | string;
  ranks: number;
  rails: readonly Partial<RailSpec>[];
  /** Pairs of ranks between which there are links (default: all). */
  isLinked?: (low: number, high: number) => boolean;
  /** One line for everything that happens, virtual time first. */
  trace?: (line: string) => void;
}

interface Event {
  atUs: number;
  number: number;
  run: () => void;
}

/** One rail between two ranks: two pipes, and what both hosts know of it. */
export class SimLink {
  readonly low: number;
  readonly high: number;
  readonly linkNo: number;
  readonly spec: RailSpec;
  readonly pipes: readonly [Pipe, Pipe];
  readonly prng: Prng;
  /** Ranks whose own liveness check is blind to what happens here. */
  readonly blind = new Set<number>();
  /** Ranks whose kernel refuses connections on this rail. */
  readonly refusing = new Set<number>();
  /** Ranks whose rail, when it ends, tells the other side nothing. */
  readonly mute = new Set<number>();

  constructor(fabric: Fabric, low: number, high: number, linkNo: number, spec: RailSpec, prng: Prng) {
    this.low = low;
    this.high = high;
    this.linkNo = linkNo;
    this.spec = spec;
    this.prng = prng;
    this.pipes = [
      new Pipe(fabric, low, high, linkNo, spec, prng.split('up')),
      new Pipe(fabric, high, low, linkNo, spec, prng.split('down')),
    ];
  }

  get name(): string {
    return `${this.low}-${this.high}/${this.linkNo}`;
  }

  /** The pipe that leaves `rank`. */
  from(rank: number): Pipe {
    assert(rank === this.low || rank === this.high, `rank ${rank} is not on link ${this.name}`);
    return this.pipes[rank === this.low ? 0 : 1];
  }
}

/** Which links a fault control means: all that agree in what is given. */
export interface LinkSelector {
  linkNo?: number;
  /** One rank: all its links. */
  rank?: number;
  /** Exactly the links between two ranks. */
  between?: readonly [number, number];
}

/** Where a piece of a frame, or another item, is looked at by a hook. */
export interface PacketSighting {
  /** 'leave': its last byte leaves the sender. 'arrive': it is about to be handed to the other host. */
  readonly stage: 'leave' | 'arrive';
  readonly link: SimLink;
  readonly from: number;
  readonly to: number;
  readonly item: WireItem;
  /** Packet type of the frame that it is a piece of (byte 1 of the packet header), 0 for anything else. */
  readonly type: number;
  /** The packet header, with the first piece of a frame only. */
  readonly header: Uint8Array | null;
}

/** What a hook looks for; what is left out fits everything. */
export interface PacketFilter {
  stage?: 'leave' | 'arrive';
  kind?: WireItem['kind'];
  type?: number;
  from?: number;
  to?: number;
  linkNo?: number;
  /** The piece of a frame: its first, its last, or one that is followed by another of the same frame. */
  piece?: 'first' | 'last' | 'inner';
}

/** 'lose': it is gone, and with it the rest of its stream. */
export type PacketAnswer = 'pass' | 'lose' | undefined;

/** A hook of a scripted scenario. `hits` counts what fitted, whether the action did something or not. */
export interface PacketHook {
  readonly filter: PacketFilter;
  readonly action: (sighting: PacketSighting, hit: number) => PacketAnswer;
  hits: number;
}

export class Fabric implements PipeNetwork {
  readonly options: FabricOptions;
  readonly prng: Prng;
  nowUs = 0;
  /** Set while a trace is wanted; building lines costs more than the simulation. */
  readonly tracing: boolean;
  private readonly heap: Event[] = [];
  private eventNumber = 0;
  /** By place(low, high, linkNo), in the order in which they are listed. */
  private readonly linkTable = new Map<number, SimLink>();
  private readonly nics = new Map<number, Nic>();
  private readonly pausedRanks = new Set<number>();
  private readonly killedRanks = new Set<number>();
  private readonly silentRanks = new Set<number>();
  /** What no sound peer does, in the order in which it was done. */
  readonly breaches: string[] = [];
  /** Memory of requests that are done: it is the user's, and no rail reads or writes it any more. */
  readonly givenBack = new Set<ArrayBufferLike>();

  constructor(options: FabricOptions) {
    this.options = options;
    this.prng = new Prng(options.seed);
    this.tracing = options.trace !== undefined;
    for (let low = 0; low < options.ranks; low++) {
      for (let high = low + 1; high < options.ranks; high++) {
        if (options.isLinked?.(low, high) === false) continue;
        options.rails.forEach((rail, linkNo) => {
          const spec = { ...RAIL_DEFAULTS, ...rail };
          const link = new SimLink(this, low, high, linkNo, spec, this.prng.split(`link ${low}-${high}/${linkNo}`));
          this.linkTable.set(this.place(low, high, linkNo), link);
        });
      }
    }
  }

  private place(a: number, b: number, linkNo: number): number {
    return (a * this.options.ranks + b) * LINKS_MAX + linkNo;
  }

  private nicAt(rank: number, linkNo: number): Nic | undefined {
    return this.nics.get(this.place(rank, 0, linkNo));
  }

  // --- scheduler: called by the world that owns the time

  get nowMs(): number {
    return this.nowUs / 1000;
  }

  /** When the next event is due; Infinity when nothing is under way. */
  nextEventMs(): number {
    return this.heap.length === 0 ? Number.POSITIVE_INFINITY : this.heap[0].atUs / 1000;
  }

  /** Runs everything that is due up to then, in order, and stops there. */
  advanceTo(ms: number): void {
    const toUs = Math.round(ms * 1000);
    assert(toUs >= this.nowUs, `time runs forward: ${toUs} us after ${this.nowUs} us`);
    while (this.heap.length > 0 && this.heap[0].atUs <= toUs) {
      const event = this.popEvent();
      this.nowUs = event.atUs;
      event.run();
    }
    this.nowUs = toUs;
  }

  /** For pipes and modules. Events at the same time run in the order in which they were made. */
  at(atUs: number, run: () => void): void {
    const heap = this.heap;
    const event = { atUs: Math.max(atUs, this.nowUs), number: this.eventNumber++, run };
    let i = heap.length;
    heap.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(event, heap[parent])) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = event;
  }

  private popEvent(): Event {
    const heap = this.heap;
    const first = heap[0];
    const moved = heap.pop() as Event;
    const n = heap.length;
    if (n === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= n) break;
      if (child + 1 < n && before(heap[child + 1], heap[child])) child += 1;
      if (!before(heap[child], moved)) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = moved;
    return first;
  }

  breach(text: string): void {
    this.breaches.push(text);
    this.note(`breach: ${text}`);
  }

  /** A rail is about to read or write these. */
  touches(memory: readonly Uint8Array[], what: string): void {
    if (this.givenBack.size === 0) return;
    for (const part of memory) if (this.givenBack.has(part.buffer)) this.breach(`${what} in memory that was given back to its user`);
  }

  note(text: string): void {
    this.options.trace?.(`${this.nowUs} ${text}`);
  }

  // --- hooks of scripted scenarios

  private readonly hooks: PacketHook[] = [];

  /** At every sighting that fits: runs `action`, which may cut, hold or change links, and says what becomes of the item. */
  onPacket(filter: PacketFilter, action: PacketHook['action']): PacketHook {
    const hook: PacketHook = { filter, action, hits: 0 };
    this.hooks.push(hook);
    return hook;
  }

  /** For pipes. True when the item passes. */
  passes(stage: 'leave' | 'arrive', pipe: Pipe, item: WireItem): boolean {
    if (this.hooks.length === 0) return true;
    const at = stage === 'leave' ? 0 : 1;
    if (item.kind === 'cell' && item.header !== null) pipe.packetTypes[at] = item.header[1] ?? 0;
    const type = item.kind === 'cell' ? pipe.packetTypes[at] : 0;
    const link = this.link(pipe.from, pipe.to, pipe.linkNo);
    const header = item.kind === 'cell' ? item.header : null;
    const sighting: PacketSighting = { stage, link, from: pipe.from, to: pipe.to, item, type, header };
    let passes = true;
    for (const hook of this.hooks) {
      if (fits(hook.filter, sighting) && hook.action(sighting, ++hook.hits) === 'lose') passes = false;
    }
    if (!passes) this.note(`hook loses ${link.name} from ${pipe.from} ${item.kind} type ${type}`);
    return passes;
  }

  // --- hosts and processes

  /** A process takes its place on the network; a later one of the same rank replaces it. */
  attach(rank: number, linkNos: readonly number[], nic: Nic): void {
    this.killedRanks.delete(rank);
    this.silentRanks.delete(rank);
    for (const linkNo of linkNos) this.nics.set(this.place(rank, 0, linkNo), nic);
  }

  nic(rank: number, linkNo: number): Nic | undefined {
    return this.killedRanks.has(rank) ? undefined : this.nicAt(rank, linkNo);
  }

  /** The host answers nothing at all: its links are as if cut behind it. */
  isSilent(rank: number): boolean {
    return this.silentRanks.has(rank);
  }

  isPaused(rank: number): boolean {
    return this.pausedRanks.has(rank);
  }

  isKilled(rank: number): boolean {
    return this.killedRanks.has(rank);
  }

  /** The process gets no turn (it computes, or was stopped); its kernel and its cards live on. */
  pause(rank: number): void {
    this.note(`pause ${rank}`);
    this.pausedRanks.add(rank);
  }

  resume(rank: number): void {
    this.note(`resume ${rank}`);
    if (this.pausedRanks.delete(rank)) for (const nic of this.nicsOf(rank)) nic.resumed();
  }

  /** The process is dead. With `host: 'up'` its kernel closes its connections, with 'down' there is only silence. */
  kill(rank: number, host: 'up' | 'down' = 'up'): void {
    if (this.killedRanks.has(rank)) return;
    this.note(`kill ${rank} host ${host}`);
    for (const nic of this.nicsOf(rank)) nic.killed();
    for (const link of this.links({ rank })) {
      const conn = this.nicAt(rank, link.linkNo)?.conn(link.linkNo, link.low === rank ? link.high : link.low);
      const pipe = link.from(rank);
      pipe.dropQueue();
      if (conn) {
        conn.ended = true;
        if (host === 'up') pipe.push({ conn: null, bytes: 1, capture: () => ({ kind: 'close', epoch: conn.epoch }) });
      }
    }
    this.killedRanks.add(rank);
    if (host === 'down') {
      this.silentRanks.add(rank);
      for (const link of this.links({ rank })) this.armDetection(link, 'silent', 'the host went down');
    }
  }

  private nicsOf(rank: number): Set<Nic> {
    const found = new Set<Nic>();
    for (let linkNo = 0; linkNo < LINKS_MAX; linkNo++) {
      const nic = this.nicAt(rank, linkNo);
      if (nic !== undefined) found.add(nic);
    }
    return found;
  }

  // --- links and their faults

  link(a: number, b: number, linkNo: number): SimLink {
    const link = this.linkTable.get(this.place(Math.min(a, b), Math.max(a, b), linkNo));
    assert(link !== undefined, `no link ${linkNo} between ranks ${a} and ${b}`);
    return link;
  }

  links(which: LinkSelector = {}): SimLink[] {
    return [...this.linkTable.values()].filter(
      (link) =>
        (which.linkNo === undefined || link.linkNo === which.linkNo) &&
        (which.rank === undefined || link.low === which.rank || link.high === which.rank) &&
        (which.between === undefined || (link.low === Math.min(...which.between) && link.high === Math.max(...which.between))),
    );
  }

  /**
   * Both directions are severed. What was under way is lost, or still delivered, or delivered up to a point within a frame.
   * The streams of this moment never go on, not even after mend(): both sides need a new epoch.
   */
  cut(link: SimLink, options: { inFlight?: CutFate } = {}): void {
    const fate = options.inFlight ?? 'lost';
    this.note(`cut ${link.name} ${fate}`);
    for (const pipe of link.pipes) {
      pipe.sever(fate);
      const conn = this.nicAt(pipe.from, link.linkNo)?.conn(link.linkNo, pipe.to);
      if (conn) conn.gap = true;
    }
    this.armDetection(link, 'carrier', 'the cable was cut');
  }

  /**
   * Nothing comes through from `fromRank`, and nobody is told. With `lossy: false`, as with TCP, what is sent is kept and
   * sent again after mend(); with `lossy: true` it vanishes, and the stream that lost something never goes on.
   */
  blackhole(link: SimLink, fromRank: number, options: { lossy?: boolean } = {}): void {
    this.note(`blackhole ${link.name} from ${fromRank}${options.lossy ? ' lossy' : ''}`);
    link.from(fromRank).setFlow(options.lossy ? 'hole' : 'held');
    this.armDetection(link, 'silent', 'nothing comes through');
  }

  /** Both directions carry again. */
  mend(link: SimLink): void {
    this.note(`mend ${link.name}`);
    for (const pipe of link.pipes) pipe.setFlow('open');
  }

  /**
   * The path from `fromRank` gets worse, or better: nothing is lost for good, since the stream repairs itself, and nobody is told. A rail
   * that checks itself finds out when it is dark for long.
   */
  impair(link: SimLink, fromRank: number, change: Partial<Path>): void {
    const pipe = link.from(fromRank);
    const wasDark = pipe.path.dark;
    if (this.tracing) this.note(`impair ${link.name} from ${fromRank} ${JSON.stringify(change)}`);
    pipe.setPath(change);
    if (!pipe.path.dark || wasDark || link.spec.liveness !== 'self') return;
    // Nothing is acknowledged in either direction.
    const { darkNo } = pipe;
    for (const { from, to } of link.pipes) {
      const conn = this.nic(from, link.linkNo)?.conn(link.linkNo, to);
      if (!conn) continue;
      this.at(this.nowUs + link.prng.between(link.spec.detectUsMin, link.spec.detectUsMax), () => {
        const nic = this.nic(from, link.linkNo);
        if (!pipe.path.dark || pipe.darkNo !== darkNo || nic?.conn(link.linkNo, to) !== conn || conn.ended) return;
        this.note(`notice ${link.name} at ${from} epoch ${conn.epoch} dark`);
        nic.lost(link.linkNo, to, { kind: 'silent', text: `rail ${link.name}: nothing comes through` });
      });
    }
  }

  /** The paths of both directions are as they were built. */
  healPath(link: SimLink): void {
    for (const pipe of link.pipes) pipe.heal();
  }

  /** The pipe from `fromRank` stands still for a while; the liveness checks take it for slow, not dead. */
  stall(link: SimLink, fromRank: number, us: number): void {
    this.note(`stall ${link.name} from ${fromRank} ${us}`);
    link.from(fromRank).stallUntil(this.nowUs + us);
  }

  /** From now on everything from `fromRank` takes so much longer. */
  skew(link: SimLink, fromRank: number, extraUs: number): void {
    this.note(`skew ${link.name} from ${fromRank} ${extraUs}`);
    link.from(fromRank).extraUs = extraUs;
  }

  /** The next frame from `fromRank` arrives damaged. */
  corruptNext(link: SimLink, fromRank: number, part: 'header' | 'payload'): void {
    this.note(`corrupt ${link.name} from ${fromRank} ${part}`);
    link.from(fromRank).corruptNext = part;
  }

  /** Counts from `fromRank` are left out of what it sends: delivered, but never reported. */
  dropCounts(link: SimLink, fromRank: number, on = true): void {
    this.note(`dropCounts ${link.name} from ${fromRank} ${on}`);
    link.from(fromRank).dropCounts = on;
  }

  /** Connections to `rank` on this rail are refused by its kernel. */
  refuseConnections(link: SimLink, rank: number, on = true): void {
    this.note(`refuse ${link.name} at ${rank} ${on}`);
    if (on) link.refusing.add(rank);
    else link.refusing.delete(rank);
  }

  /** Only the other side finds out by itself when something breaks; `rank` is blind, and hears no close from it either. */
  onlyOtherSideNotices(link: SimLink, rank: number, on = true): void {
    this.note(`blind ${link.name} at ${rank} ${on}`);
    const other = rank === link.low ? link.high : link.low;
    if (on) {
      link.blind.add(rank);
      link.mute.add(other);
    } else {
      link.blind.delete(rank);
      link.mute.delete(other);
    }
  }

  /** Links that go down and come back stay up from their next return on. */
  endFlaps(): void {
    this.flapsAreOver = true;
  }
  private flapsAreOver = false;

  /** Cut now, mended after `downUs`, `times` times, `upUs` apart. */
  flap(link: SimLink, times: number, downUs: number, upUs: number, options: { inFlight?: CutFate } = {}): void {
    if (times < 1 || this.flapsAreOver) return;
    this.cut(link, options);
    this.at(this.nowUs + downUs, () => {
      this.mend(link);
      this.at(this.nowUs + upUs, () => this.flap(link, times - 1, downUs, upUs, options));
    });
  }

  /** True while both directions carry and both hosts answer. */
  isSound(link: SimLink): boolean {
    return link.pipes.every((pipe) => pipe.flow === 'open') && !this.silentRanks.has(link.low) && !this.silentRanks.has(link.high);
  }

  /**
   * A rail that checks itself will find out, each side at its own time: if by then its stream has a gap, or the link still
   * does not carry. Called again when an epoch begins on a link that is not sound.
   */
  armDetection(link: SimLink, kind: RailReason['kind'], text: string): void {
    if (link.spec.liveness !== 'self') return;
    for (const pipe of link.pipes) {
      const rank = pipe.from;
      const conn = this.nic(rank, link.linkNo)?.conn(link.linkNo, pipe.to);
      if (!conn || link.blind.has(rank)) continue;
      const delayUs = link.prng.between(link.spec.detectUsMin, link.spec.detectUsMax);
      this.at(this.nowUs + delayUs, () => {
        const nic = this.nic(rank, link.linkNo);
        const back = this.nic(pipe.to, link.linkNo)?.conn(link.linkNo, rank);
        const lossBehind = back !== null && back !== undefined && back.epoch === conn.epoch && back.gap;
        if (!nic || conn.ended || nic.conn(link.linkNo, pipe.to) !== conn) return;
        // The other side has ended this epoch, or its process is another: whatever is sent is answered by nobody.
        const deserted = !back || back.ended || back.epoch !== conn.epoch;
        if (!conn.gap && !lossBehind && !deserted && this.isSound(link)) return;
        this.note(`notice ${link.name} at ${rank} epoch ${conn.epoch} ${kind}`);
        nic.lost(link.linkNo, pipe.to, { kind, text: `rail ${link.name}: ${text}` });
      });
    }
  }
}

function fits(filter: PacketFilter, { stage, link, from, to, item, type }: PacketSighting): boolean {
  if (filter.stage !== undefined && filter.stage !== stage) return false;
  if (filter.type !== undefined && filter.type !== type) return false;
  if (filter.kind !== undefined && filter.kind !== item.kind) return false;
  if (filter.from !== undefined && filter.from !== from) return false;
  if (filter.to !== undefined && filter.to !== to) return false;
  if (filter.linkNo !== undefined && filter.linkNo !== link.linkNo) return false;
  if (filter.piece === undefined) return true;
  if (!('last' in item)) return false;
  if (filter.piece === 'inner') return !item.last;
  if (filter.piece === 'last') return item.last;
  return item.kind !== 'cell' || item.first;
}

function before(a: Event, b: Event): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.number < b.number);
}
