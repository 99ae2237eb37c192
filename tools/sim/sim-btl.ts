// The BTL of the simulator: a BtlModule over the simulated fabric, one per simulated process, which keeps the same contract and passes the
// same suite as the real ones.
import type { BtlComponent, BtlContext, BtlEndpoint, RailPlan, RailReason, Upcalls } from '../../src/btl/btl.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { assert } from '../../src/util/assert.ts';
import { type Fabric, LINKS_MAX } from './fabric.ts';
import { SimEndpoint, type SimModule } from './sim-endpoint.ts';
import type { HelloItem, Nic, SimAddress, SimConn, WireItem } from './wire.ts';

export interface SimBtlOptions {
  name?: string;
  /** Rails of the fabric that this module has; default all. Several modules of a process share the fabric's rails out. */
  linkNos?: readonly number[];
}

export class SimBtl implements SimModule, Nic {
  readonly name: string;
  readonly fabric: Fabric;
  readonly upcalls: Upcalls;
  readonly rank: number;
  readonly secret: Uint8Array | undefined;
  readonly connectTimeoutUs: number;
  readonly ackFrames: number;
  readonly ackBytes: number;
  readonly ackDelayUs: number;
  readonly refusalsMax: number;
  aliveMs = 0;
  private readonly context: BtlContext;
  private readonly linkNos: readonly number[];
  private readonly endpoints = new Map<number, SimEndpoint>();
  private inbox: { linkNo: number; peer: number; item: WireItem }[] = [];
  private isOpen = false;
  private isDead = false;
  private inProgress = false;
  private upcallCount = 0;

  constructor(fabric: Fabric, context: BtlContext, options: SimBtlOptions = {}) {
    this.fabric = fabric;
    this.context = context;
    this.name = options.name ?? 'sim';
    this.rank = context.rank;
    this.secret = context.secret;
    this.linkNos = options.linkNos ?? fabric.options.rails.map((_, linkNo) => linkNo);
    this.upcalls = this.counting(context.upcalls);
    this.connectTimeoutUs = context.params.int('bml_connect_timeout_ms') * 1000;
    this.ackFrames = context.params.int('btl_base_ack_frames');
    this.ackBytes = context.params.int('btl_base_ack_bytes');
    this.ackDelayUs = context.params.int('btl_base_ack_delay_ms') * 1000;
    this.refusalsMax = context.params.int('btl_base_refusals_max');
  }

  /** Counts upcalls, and asserts that they are made in progress() only. */
  private counting(upcalls: Upcalls): Upcalls {
    const inside = (name: string) => {
      assert(this.inProgress, `${name} called up outside progress()`);
      this.upcallCount += 1;
    };
    return {
      wake: () => upcalls.wake(),
      log: (level, text) => upcalls.log(level, text),
      admit: (module, hello) => {
        inside('admit');
        return upcalls.admit(module, hello);
      },
      onConnected: (endpoint, epoch) => {
        inside('onConnected');
        this.noteUp('connected', endpoint, epoch);
        upcalls.onConnected(endpoint, epoch);
      },
      onConnectFailed: (endpoint, epoch, reason, highestEpoch) => {
        inside('onConnectFailed');
        this.noteUp(`connectFailed ${reason.kind}`, endpoint, epoch);
        if (highestEpoch === undefined) upcalls.onConnectFailed(endpoint, epoch, reason);
        else upcalls.onConnectFailed(endpoint, epoch, reason, highestEpoch);
      },
      onRailDown: (endpoint, epoch, reason) => {
        inside('onRailDown');
        this.noteUp(`railDown ${reason.kind}`, endpoint, epoch);
        upcalls.onRailDown(endpoint, epoch, reason);
      },
      onCompleted: (endpoint, epoch, frame, status) => {
        inside('onCompleted');
        this.noteUp(`completed ${status} #${frame.railFrameNumber}`, endpoint, epoch);
        upcalls.onCompleted(endpoint, epoch, frame, status);
      },
      onFrame: (endpoint, epoch, header, payload, sink) => {
        inside('onFrame');
        this.noteUp(`frame ${header.length}+${payload.length}`, endpoint, epoch);
        upcalls.onFrame(endpoint, epoch, header, payload, sink);
      },
      sinkFor: (endpoint, epoch, header, payloadBytes) => {
        inside('sinkFor');
        return upcalls.sinkFor(endpoint, epoch, header, payloadBytes);
      },
      onSinkDropped: (endpoint, epoch, sink) => {
        inside('onSinkDropped');
        upcalls.onSinkDropped(endpoint, epoch, sink);
      },
      onWritable: (endpoint) => {
        inside('onWritable');
        upcalls.onWritable(endpoint);
      },
      onProbeAnswered: (endpoint, epoch, probeId) => {
        inside('onProbeAnswered');
        upcalls.onProbeAnswered(endpoint, epoch, probeId);
      },
      onBye: (endpoint, epoch) => {
        inside('onBye');
        this.noteUp('bye', endpoint, epoch);
        upcalls.onBye(endpoint, epoch);
      },
      onReport: (endpoint, epoch, receivedBytes, peerAliveMs) => {
        inside('onReport');
        upcalls.onReport(endpoint, epoch, receivedBytes, peerAliveMs);
      },
      onOneSidedCompleted: (endpoint, epoch, op, status) => {
        inside('onOneSidedCompleted');
        this.noteUp(`oneSided ${op.kind} ${status} #${op.railFrameNumber}`, endpoint, epoch);
        upcalls.onOneSidedCompleted(endpoint, epoch, op, status);
      },
      onReachable: (endpoint) => upcalls.onReachable(endpoint),
      onRailPlanned: (module, peer, plan, remote) => upcalls.onRailPlanned(module, peer, plan, remote),
      onAddressChanged: (module) => upcalls.onAddressChanged(module),
    };
  }

  note(text: string): void {
    if (this.fabric.tracing) this.fabric.note(`rank ${this.rank} ${text}`);
  }

  private noteUp(what: string, endpoint: BtlEndpoint, epoch: number): void {
    if (this.fabric.tracing) this.note(`up ${what} to ${endpoint.peer} rail ${endpoint.rail} e${epoch}`);
  }

  wake(): void {
    if (this.isOpen && !this.isDead && !this.inProgress && !this.fabric.isPaused(this.rank)) this.context.upcalls.wake();
  }

  // --- BtlModule

  address(): SimAddress {
    return { sim: [...this.linkNos] };
  }

  plan(peer: number, _local: unknown, remote: unknown, _peerHostId: string): RailPlan[] {
    if (peer === this.rank) return [];
    const theirs = (remote as Partial<SimAddress> | undefined)?.sim;
    if (!Array.isArray(theirs)) return [];
    const common = [...this.linkNos].sort((a, b) => a - b).filter((linkNo) => theirs.includes(linkNo));
    return common.map((linkNo) => {
      const { spec } = this.fabric.link(this.rank, peer, linkNo);
      return {
        key: `sim${linkNo}`,
        attributes: {
          bandwidthMBps: Math.max(1, Math.floor(spec.bytesPerMs / 1000)),
          latencyUs: spec.latencyUs,
          exclusivity: spec.exclusivity,
          role: spec.role,
          canPut: spec.canPut,
          canGet: spec.canGet,
          oneSidedBytes: spec.oneSidedBytes,
          pipelineBytes: spec.pipelineBytes,
          liveness: spec.liveness,
          frameBytesMax: spec.frameBytesMax,
          ...(spec.isSteady ? { isSteady: true as const } : {}),
        },
        detail: { linkNo },
      };
    });
  }

  endpoint(peer: number, rail: number, plan: RailPlan, _remote: unknown): SimEndpoint {
    const { linkNo } = plan.detail as { linkNo: number };
    const name = peer * LINKS_MAX + linkNo;
    assert(!this.endpoints.has(name), `rail sim${linkNo} to rank ${peer} has an endpoint already`);
    const endpoint = new SimEndpoint(this, peer, rail, plan, this.fabric.link(this.rank, peer, linkNo));
    this.endpoints.set(name, endpoint);
    return endpoint;
  }

  remoteAddressChanged(): void {
    // The rails of the fabric are fixed: there is nothing to learn.
  }

  forgetPeer(peer: number): boolean {
    const theirs = [...this.endpoints].filter(([, endpoint]) => endpoint.peer === peer);
    if (this.inbox.some((come) => come.peer === peer) || !theirs.every(([, endpoint]) => endpoint.isIdle)) return false;
    // Whoever forgets a rail could never give back what is registered on it.
    for (const [name, { oneSided }] of theirs) {
      if (oneSided.registeredBytes > 0) this.fabric.breach(`rank ${this.rank} forgets a rail to rank ${peer} with memory registered on it`);
      this.endpoints.delete(name);
    }
    return true;
  }

  open(): Promise<void> {
    this.isOpen = true;
    this.fabric.attach(this.rank, this.linkNos, this);
    return Promise.resolve();
  }

  progress(_now: number, aliveMs: number): number {
    if (!this.isOpen || this.isDead || this.fabric.isPaused(this.rank) || this.inProgress) return 0;
    this.aliveMs = aliveMs;
    this.upcallCount = 0;
    this.inProgress = true;
    try {
      for (const endpoint of this.endpoints.values()) endpoint.begins();
      const inbox = this.inbox;
      this.inbox = [];
      for (const { linkNo, peer, item } of inbox) {
        if (item.kind === 'hello') this.takeHello(linkNo, peer, item);
        else this.endpoints.get(peer * LINKS_MAX + linkNo)?.handle(item);
      }
      for (const endpoint of this.endpoints.values()) endpoint.finishes();
    } finally {
      this.inProgress = false;
    }
    return this.upcallCount;
  }

  nextDeadline(): number {
    if (!this.isOpen || this.isDead || this.fabric.isPaused(this.rank)) return Number.POSITIVE_INFINITY;
    if (this.inbox.length > 0) return this.fabric.nowMs;
    let due = Number.POSITIVE_INFINITY;
    for (const endpoint of this.endpoints.values()) due = Math.min(due, endpoint.nextDeadlineUs());
    return due / 1000;
  }

  /** Memory that other ranks may reach just now. */
  get registeredBytes(): number {
    let bytes = 0;
    for (const { oneSided } of this.endpoints.values()) bytes += oneSided.registeredBytes;
    return bytes;
  }

  close(): Promise<void> {
    if (!this.isDead) for (const endpoint of this.endpoints.values()) endpoint.shutdown();
    this.isOpen = false;
    this.inbox = [];
    return Promise.resolve();
  }

  // --- handshake

  helloOf(endpoint: BtlEndpoint, epoch: number): HelloItem {
    const { rank, incarnation, jobId, secret } = this.context;
    const hello = { rank, incarnation, rail: endpoint.rail, key: endpoint.plan.key, epoch };
    return { kind: 'hello', epoch, hello, jobId, secret };
  }

  trusts(secret: Uint8Array | undefined): boolean {
    const own = this.secret ?? new Uint8Array(0);
    const other = secret ?? new Uint8Array(0);
    return own.length === other.length && own.every((byte, i) => byte === other[i]);
  }

  private takeHello(linkNo: number, peer: number, item: HelloItem): void {
    const pipe = this.fabric.link(this.rank, peer, linkNo).from(this.rank);
    const refuse = (text: string, highestEpoch?: number, code?: ErrorCode, isAsked = false) => {
      this.upcalls.log(isAsked ? 'debug' : 'warn', `rail sim${linkNo}: refused rank ${peer} epoch ${item.hello.epoch}: ${text}`);
      const common = { kind: 'helloRefused', epoch: item.epoch, text, highestEpoch } as const;
      const answer: WireItem = { ...common, ...(code === undefined ? {} : { code }), ...(isAsked ? { isAsked } : {}) };
      pipe.push({ conn: null, bytes: 96, capture: () => answer });
    };
    if (item.jobId !== this.context.jobId) return refuse('another job');
    if (!this.trusts(item.secret)) return refuse('the secret was not proved');
    const answer = this.upcalls.admit(this, item.hello);
    if (!answer.ok) {
      const code = answer.reason === 'PEER_FAILED' ? 'ERR_PROC_FAILED' : answer.reason === 'FINALIZED' ? 'ERR_FINALIZED' : undefined;
      return refuse(`${answer.reason}: ${answer.text}`, answer.highestEpoch, code, answer.reason === 'WILL_DIAL');
    }
    assert(
      answer.endpoint instanceof SimEndpoint && answer.endpoint.module === this,
      'admit() answered with an endpoint of another module',
    );
    const higher = answer.endpoint.accept(item.epoch);
    if (higher !== undefined) refuse('STALE_EPOCH: a newer epoch was seen', higher);
  }

  // --- Nic

  arrive(linkNo: number, peer: number, item: WireItem): void {
    if (!this.isOpen || this.isDead) return;
    if (this.endpoints.get(peer * LINKS_MAX + linkNo)?.oneSided.arrive(item)) return;
    this.inbox.push({ linkNo, peer, item });
    this.wake();
  }

  lost(linkNo: number, peer: number, reason: RailReason): void {
    this.endpoints.get(peer * LINKS_MAX + linkNo)?.lost(reason);
    this.wake();
  }

  conn(linkNo: number, peer: number): SimConn | null {
    return this.endpoints.get(peer * LINKS_MAX + linkNo)?.conn ?? null;
  }

  resumed(): void {
    this.wake();
  }

  killed(): void {
    this.isDead = true;
    this.inbox = [];
  }
}

/** The simulator's transport as a component, over a fabric that exists already. */
export function simComponent(fabric: Fabric, options: SimBtlOptions = {}): BtlComponent & { create(context: BtlContext): SimBtl } {
  return {
    name: options.name ?? 'sim',
    description: 'Simulated rails with virtual time, for the simulator and its tests.',
    unavailable: () => undefined,
    create: (context) => new SimBtl(fabric, context, options),
  };
}
