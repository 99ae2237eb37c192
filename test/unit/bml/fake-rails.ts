// A BML over endpoints that only record what they were told: a test plays the transports and the clock.
import { Bml } from '../../../src/bml/bml.ts';
import type { BmlOptions } from '../../../src/bml/options.ts';
import type { BmlPeer } from '../../../src/bml/peer.ts';
import type { Rail, RailState } from '../../../src/bml/rail.ts';
import { type BtlEndpoint, type BtlModule, newRailByteCounters, OK, type RailAttributes, type RailReason } from '../../../src/btl/btl.ts';

export const BML_OPTIONS: BmlOptions = {
  rank: 0,
  crowd: 1,
  railTimeoutMs: 400,
  stallTimeoutMs: 0,
  trialMinMs: 50,
  trialMaxMs: 1200,
  probeIdleMs: 1000,
  redialMinMs: 50,
  redialMaxMs: 400,
  connectTimeoutMs: 600,
  holdsSpares: true,
  flapWindowMs: 10_000,
  flapHoldMaxMs: 1000,
  windowMinBytes: 64 * 1024,
  windowMaxBytes: 1024 * 1024,
  windowMs: 20,
  fragBytes: 4096,
  fragBytesMax: 16384,
  fragUs: 250,
};

export class FakeEndpoint implements BtlEndpoint {
  readonly module = {} as BtlModule;
  readonly peer: number;
  readonly rail: number;
  readonly plan;
  readonly counters = newRailByteCounters();
  readonly byeDelivered = false;
  epoch = 0;
  outstandingBytes = 0;
  windowBytes = 0;
  dialled: number[] = [];
  cancelled = 0;
  probes: number[] = [];
  fences: { epoch: number; reason: RailReason }[] = [];

  constructor(peer: number, rail: number, attributes: Partial<RailAttributes>) {
    this.peer = peer;
    this.rail = rail;
    this.plan = {
      key: `fake#${rail}`,
      detail: undefined,
      attributes: {
        bandwidthMBps: 100,
        latencyUs: 10,
        exclusivity: 1,
        role: 'active' as const,
        canPut: false,
        canGet: false,
        liveness: 'siblings' as const,
        frameBytesMax: 65_536,
        ...attributes,
      },
    };
  }

  connect(epoch: number): void {
    this.dialled.push(epoch);
  }
  cancelConnect(): void {
    this.cancelled++;
  }
  send = () => OK as typeof OK;
  flush(): void {}
  revokeSink(): void {}
  fence(epoch: number, reason: RailReason): void {
    this.fences.push({ epoch, reason });
  }
  probe(probeId: number): void {
    this.probes.push(probeId);
  }
  bye(): void {}
}

/** One peer and its rails. Time moves in turns of 10 ms, unless a test makes this process sleep. */
export class FakeRails {
  nowMs = 0;
  aliveMs = 0;
  readonly bml: Bml;
  readonly peer: BmlPeer;
  readonly endpoints: FakeEndpoint[];
  readonly moves: string[] = [];
  /** Which rails answer probes, and how far the peer's alive time has come. */
  answering = new Set<number>();
  peerAliveMs = 0;
  peerPolls = true;
  /** The rails on which anything that was sent arrives and is counted. */
  private answered: number[];
  private readonly received: number[];
  private readonly fencedAt: number[];

  constructor(rails: Partial<RailAttributes>[], options: Partial<BmlOptions> = {}, peerRank = 1, asks = false) {
    this.bml = new Bml({ ...BML_OPTIONS, ...options }, (rail: Rail, from: RailState, to: RailState) =>
      this.moves.push(`${rail.index} ${from}>${to}`),
    );
    this.endpoints = rails.map((attributes, rail) => new FakeEndpoint(peerRank, rail, attributes));
    this.answered = rails.map(() => 0);
    this.received = rails.map(() => 0);
    this.fencedAt = rails.map(() => 0);
    this.peer = this.bml.addPeer(peerRank, this.endpoints, 0, 0, asks);
  }

  get rails(): Rail[] {
    return this.peer.rails;
  }
  states(): string {
    return this.rails.map(({ state }) => state).join(' ');
  }
  indexes(set: readonly Rail[]): number[] {
    return set.map(({ index }) => index);
  }

  connected(rail: number, epoch = this.endpoints[rail].dialled.at(-1) ?? 1): void {
    this.endpoints[rail].epoch = epoch;
    this.bml.handleConnected(this.endpoints[rail], epoch, this.nowMs, this.aliveMs);
  }
  /** Up, and answering from now on. */
  up(...list: number[]): void {
    for (const rail of list) {
      this.answering.add(rail);
      this.connected(rail);
      this.answerProbes(rail);
    }
  }
  down(rail: number, kind: RailReason['kind'] = 'closed'): void {
    const endpoint = this.endpoints[rail];
    const { epoch } = endpoint;
    endpoint.epoch = 0;
    endpoint.outstandingBytes = 0;
    this.bml.handleRailDown(endpoint, epoch, { kind, text: 'by the test' }, this.nowMs);
  }

  /** So many bytes that were outstanding have arrived and are counted. */
  delivered(rail: number, bytes: number): void {
    const endpoint = this.endpoints[rail];
    this.bml.handleDelivered(endpoint, bytes, this.nowMs, this.aliveMs);
    this.received[rail] += bytes;
    this.bml.handleReport(endpoint, endpoint.epoch, this.received[rail], this.peerAliveMs, this.aliveMs);
  }

  answerProbes(rail: number): void {
    const endpoint = this.endpoints[rail];
    // A peer that computes answers them later.
    if (!this.peerPolls && endpoint.epoch !== 0) return;
    const fresh = endpoint.probes.slice(this.answered[rail]);
    this.answered[rail] = endpoint.probes.length;
    if (endpoint.epoch === 0 || !this.answering.has(rail)) return;
    for (const id of fresh) {
      this.received[rail] += 40;
      this.bml.handleReport(endpoint, endpoint.epoch, this.received[rail], this.peerAliveMs, this.aliveMs);
      this.bml.handleProbeAnswered(endpoint, endpoint.epoch, id, this.nowMs, this.aliveMs);
    }
  }

  /** `sleepMs`: one turn that takes so long, as after SIGSTOP or a long computation here. */
  turn(ms = 10): void {
    this.nowMs += ms;
    this.aliveMs += Math.min(ms, 50);
    if (this.peerPolls) this.peerAliveMs += ms;
    for (const rail of this.rails.keys()) {
      this.answerProbes(rail);
      const endpoint = this.endpoints[rail];
      const fence = endpoint.fences[this.fencedAt[rail]];
      this.fencedAt[rail] = endpoint.fences.length;
      // The module's own onRailDown follows a fence in its next progress().
      if (fence !== undefined && endpoint.epoch !== 0 && endpoint.epoch <= fence.epoch) this.down(rail, fence.reason.kind);
    }
    this.bml.handleTime(this.nowMs, this.aliveMs);
  }
  run(ms: number): void {
    for (let left = ms; left > 0; left -= 10) this.turn();
  }
}
