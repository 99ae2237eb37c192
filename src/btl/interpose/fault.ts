// The fault interposer: a BtlModule around any BtlModule, which pulls rails, stalls, slows, refuses and corrupts them by plan
// (fault-plan.ts), by seed or by hand, and always keeps the BTL contract towards the layers above. The parameter btl_fault, `multirail
// bench --pull` and tests use it. Each rank wraps its own side: a pull swallows what is sent and refuses what comes, so a plan given to
// every rank works like a pulled cable. Where only one rank pulls, the other sees silence until it sends; then its rail is closed.
import { Prng } from '../../util/prng.ts';
import type { BtlComponent, BtlContext, BtlEndpoint, BtlModule, CrowdLimits, RailPlan, Upcalls } from '../btl.ts';
import { FaultEndpoint } from './fault-endpoint.ts';
import type { FaultHost } from './fault-entry.ts';
import { type FaultAction, type FaultPlan, type PullMode, parseFaultPlan, type RailSelector, RandomSchedule } from './fault-plan.ts';

/** Breaks and mends rails while a job runs. Safe to call at any time; what follows comes up in the next progress(). */
export interface FaultControl {
  pull(which: RailSelector, mode?: PullMode): void;
  restore(which: RailSelector): void;
  /** Every send is BUSY for so long. */
  busy(which: RailSelector, forMs: number): void;
  /** Nothing is sent for so long; where all rails are meant, nothing is handed up either, as if the process were busy. */
  stall(which: RailSelector, forMs: number): void;
  /** payload: the next frame with a payload that is sent is refused. header: the next frame that comes ends the rail. */
  corrupt(which: RailSelector, part: 'header' | 'payload'): void;
  /** So many of 10,000 packets that are sent are lost: the rail stops for retransmission time-outs. Until it is restored. */
  lossy(which: RailSelector, lossPer10k: number, seed?: string): void;
  /** What is sent leaves at so many bytes per second, behind what is under way. Until it is restored. */
  slow(which: RailSelector, bytesPerS: number): void;
}

export interface FaultModule extends BtlModule {
  readonly control: FaultControl;
  readonly inner: BtlModule;
}

/** What can be made lossy or slow is steady no more. */
function unsteady(plan: RailPlan): RailPlan {
  const { isSteady: _, ...attributes } = plan.attributes;
  return { ...plan, attributes };
}

class FaultBtl implements FaultModule, FaultHost {
  readonly inner: BtlModule;
  readonly upcalls: Upcalls;
  readonly railTimeoutMs: number;
  readonly connectTimeoutMs: number;
  now = 0;
  private readonly context: BtlContext;
  private readonly faultPlan: FaultPlan;
  private readonly outer = new Map<BtlEndpoint, FaultEndpoint>();
  private actions: FaultAction[];
  private readonly schedules = new Map<FaultEndpoint, RandomSchedule>();
  private startMs: number | undefined = undefined;
  private stalledUntilMs = 0;
  private upcallCount = 0;
  private isClosed = false;

  constructor(create: (context: BtlContext) => BtlModule, context: BtlContext, plan: FaultPlan) {
    this.context = context;
    this.upcalls = context.upcalls;
    this.faultPlan = plan;
    this.actions = [...plan.actions].sort((a, b) => a.atMs - b.atMs);
    this.railTimeoutMs = context.params.int('bml_rail_timeout_ms');
    this.connectTimeoutMs = context.params.int('bml_connect_timeout_ms');
    this.inner = create({ ...context, upcalls: this.shim() });
  }

  get name(): string {
    return this.inner.name;
  }

  readonly control: FaultControl = {
    pull: (which, mode = 'silent') => this.apply({ kind: 'pull', which, mode, atMs: 0 }),
    restore: (which) => this.apply({ kind: 'restore', which, atMs: 0 }),
    busy: (which, forMs) => this.apply({ kind: 'busy', which, atMs: 0, forMs }),
    stall: (which, forMs) => this.apply({ kind: 'stall', which, atMs: 0, forMs }),
    corrupt: (which, part) => this.apply({ kind: 'corrupt', which, part, atMs: 0 }),
    lossy: (which, lossPer10k, seed = '1') => this.apply({ kind: 'lossy', which, lossPer10k, seed, atMs: 0 }),
    slow: (which, bytesPerS) => this.apply({ kind: 'slow', which, bytesPerS, atMs: 0 }),
  };

  private matching(which: RailSelector): FaultEndpoint[] {
    return [...this.outer.values()].filter(
      ({ rail, peer, plan }) =>
        (which.rail === undefined || which.rail === rail) &&
        (which.peer === undefined || which.peer === peer) &&
        (which.key === undefined || which.key === plan.key),
    );
  }

  /** Names one end of a rail: each has chance of its own. */
  private label({ peer, rail, plan }: Pick<BtlEndpoint, 'peer' | 'rail' | 'plan'>): string {
    return `rank ${this.context.rank} peer ${peer} rail ${rail} ${plan.key}`;
  }

  private apply(action: FaultAction): void {
    const { which } = action;
    if (action.kind === 'stall' && which.rail === undefined && which.peer === undefined && which.key === undefined) {
      this.stalledUntilMs = this.now + action.forMs;
    }
    for (const endpoint of this.matching(which)) {
      switch (action.kind) {
        case 'pull':
          endpoint.pull(action.mode);
          break;
        case 'restore':
          endpoint.restore();
          break;
        case 'busy':
          endpoint.busy(action.forMs);
          break;
        case 'stall':
          endpoint.stall(action.forMs);
          break;
        case 'corrupt':
          endpoint.corrupt(action.part);
          break;
        case 'lossy':
          endpoint.goBad(action, new Prng(action.seed).split(this.label(endpoint)));
          break;
        case 'slow':
          endpoint.goBad(action, new Prng(0));
          break;
      }
    }
  }

  // --- FaultHost

  counted(): void {
    this.upcallCount += 1;
  }

  wake(): void {
    if (!this.isClosed) this.upcalls.wake();
  }

  // --- BtlModule

  address(): unknown {
    return this.inner.address();
  }

  plan(peer: number, local: unknown, remote: unknown, peerHostId: string): RailPlan[] {
    return this.inner.plan(peer, local, remote, peerHostId).map(unsteady);
  }

  endpoint(peer: number, rail: number, plan: RailPlan, remote: unknown): BtlEndpoint {
    const inner = this.inner.endpoint(peer, rail, plan, remote);
    const outer = new FaultEndpoint(this, inner, this);
    this.outer.set(inner, outer);
    const { random } = this.faultPlan;
    if (random !== undefined) {
      this.schedules.set(outer, new RandomSchedule(random, { rail, peer }, this.label(outer)));
    }
    return outer;
  }

  planAdded(peer: number, key: string): { plan: RailPlan; remote: unknown } | undefined {
    return this.inner.planAdded?.(peer, key);
  }

  mayComeLater(peer: number, local: unknown, remote: unknown, peerHostId: string): string | undefined {
    return this.inner.mayComeLater?.(peer, local, remote, peerHostId);
  }

  remoteAddressChanged(peer: number, remote: unknown): void {
    this.inner.remoteAddressChanged(peer, remote);
  }

  expectCrowd(limits: CrowdLimits): void {
    this.inner.expectCrowd?.(limits);
  }

  forgetPeer(peer: number): boolean {
    const outers = [...this.outer].filter(([, outer]) => outer.peer === peer);
    if (!outers.every(([, outer]) => outer.isIdle) || !this.inner.forgetPeer(peer)) return false;
    for (const [inner, outer] of outers) {
      this.outer.delete(inner);
      this.schedules.delete(outer);
    }
    return true;
  }

  open(): Promise<void> {
    return this.inner.open();
  }

  progress(now: number, aliveMs: number): number {
    if (this.isClosed) return 0;
    this.startMs ??= now;
    this.now = now;
    this.upcallCount = 0;
    this.applyDue(now - this.startMs);
    for (const endpoint of this.outer.values()) endpoint.begins();
    const isEnding = [...this.outer.values()].some((endpoint) => endpoint.isEnding);
    if (now < this.stalledUntilMs && !isEnding) return 0;
    this.inner.progress(now, aliveMs);
    for (const endpoint of this.outer.values()) endpoint.finishes();
    return this.upcallCount;
  }

  private applyDue(elapsedMs: number): void {
    while (this.actions.length > 0 && this.actions[0].atMs <= elapsedMs) this.apply(this.actions.shift() as FaultAction);
    for (const schedule of this.schedules.values()) while (schedule.nextMs <= elapsedMs) this.apply(schedule.take());
  }

  nextDeadline(): number {
    if (this.isClosed) return Number.POSITIVE_INFINITY;
    const isEnding = [...this.outer.values()].some((endpoint) => endpoint.isEnding);
    const startMs = this.startMs ?? this.now;
    let due = this.actions.length > 0 ? startMs + this.actions[0].atMs : Number.POSITIVE_INFINITY;
    for (const schedule of this.schedules.values()) due = Math.min(due, startMs + schedule.nextMs);
    if (this.now < this.stalledUntilMs && !isEnding) return Math.min(due, this.stalledUntilMs);
    for (const endpoint of this.outer.values()) due = Math.min(due, endpoint.nextDeadlineMs());
    return Math.min(due, this.inner.nextDeadline());
  }

  get needsEventLoop(): boolean {
    return this.inner.needsEventLoop === true;
  }

  get inMemory(): boolean {
    return this.inner.inMemory === true;
  }

  park(): boolean {
    return this.inner.park?.() ?? true;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.inner.close();
  }

  // --- between the inner module and the engine

  private shim(): Upcalls {
    const { upcalls } = this;
    const of = (inner: BtlEndpoint): FaultEndpoint => {
      const found = this.outer.get(inner);
      if (found === undefined) throw new Error(`${this.inner.name}: upcall for an endpoint that was not made by endpoint()`);
      return found;
    };
    return {
      wake: () => this.wake(),
      log: (level, text) => upcalls.log(level, text),
      onReachable: (inner) => upcalls.onReachable(of(inner)),
      onRailPlanned: (_module, peer, plan, remote) => upcalls.onRailPlanned(this, peer, plan, remote),
      onAddressChanged: () => upcalls.onAddressChanged(this),
      admit: (_module, hello) => {
        const pulled = [...this.outer.values()].some(({ peer, rail, isPulled }) => peer === hello.rank && rail === hello.rail && isPulled);
        if (pulled) return { ok: false, reason: 'UNAVAILABLE', text: 'the rail is pulled (fault interposer)' };
        this.counted();
        const answer = upcalls.admit(this, hello);
        return answer.ok ? { ok: true, endpoint: (answer.endpoint as FaultEndpoint).inner } : answer;
      },
      onConnected: (inner, epoch) => of(inner).innerConnected(epoch),
      onConnectFailed: (inner, epoch, reason, highestEpoch) => of(inner).innerConnectFailed(epoch, reason, highestEpoch),
      onRailDown: (inner, epoch, reason) => of(inner).innerRailDown(epoch, reason),
      onCompleted: (inner, epoch, frame, status) => of(inner).innerCompleted(epoch, frame, status),
      onOneSidedCompleted: (inner, epoch, op, status) => of(inner).innerCompleted(epoch, op, status),
      onFrame: (inner, epoch, header, payload, sink) => of(inner).innerFrame(epoch, header, payload, sink),
      sinkFor: (inner, epoch, header, payloadBytes) => of(inner).innerSinkFor(epoch, header, payloadBytes),
      onSinkDropped: (inner, epoch) => of(inner).innerSinkDropped(epoch),
      onWritable: (inner) => of(inner).innerWritable(),
      onProbeAnswered: (inner, epoch, probeId) => of(inner).innerProbeAnswered(epoch, probeId),
      onBye: (inner, epoch) => of(inner).innerBye(epoch),
      onReport: (inner, epoch, receivedBytes, peerAliveMs) => of(inner).innerReport(epoch, receivedBytes, peerAliveMs),
    };
  }
}

/** A module of `create` behind the interposer. It has to be made here, because a module's upcalls are given to it at its birth. */
export function wrapFault(create: (context: BtlContext) => BtlModule, context: BtlContext, plan: FaultPlan | string): FaultModule {
  return new FaultBtl(create, context, typeof plan === 'string' ? parseFaultPlan(plan) : plan);
}

/** The same for a component, as the registry uses it with the parameter btl_fault. */
export function wrapFaultComponent(
  component: BtlComponent,
  plan: FaultPlan | string,
): BtlComponent & { create(context: BtlContext): FaultModule } {
  const parsed = typeof plan === 'string' ? parseFaultPlan(plan) : plan;
  return {
    name: component.name,
    description: component.description,
    unavailable: (params) => component.unavailable(params),
    create: (context) => wrapFault((inner) => component.create(inner), context, parsed),
  };
}

export { parseFaultPlan, parseRailSelector } from './fault-plan.ts';
