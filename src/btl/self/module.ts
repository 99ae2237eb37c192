// The self module: one rail from a rank to itself. A bounded queue, delivered in progress(); payloads are copied into sinks.
import type { BtlContext, BtlEndpoint, RailPlan } from '../btl.ts';
import { SelfEndpoint, type SelfOwner } from './endpoint.ts';

const FRAME_PAYLOAD_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024;

export class SelfModule implements SelfOwner {
  readonly name = 'self';
  readonly inMemory = true;
  readonly context: BtlContext;
  private readonly endpoints: SelfEndpoint[] = [];
  private closed = false;
  private dueNow = false;

  constructor(context: BtlContext) {
    this.context = context;
  }

  address(): unknown {
    return {};
  }

  plan(peer: number, _local: unknown, _remote: unknown, _peerHostId: string): RailPlan[] {
    if (peer !== this.context.rank) return [];
    return [
      {
        key: 'self',
        attributes: {
          bandwidthMBps: 10_000,
          latencyUs: 0,
          // Above all: whatever else could reach this rank, its own memory is nearer.
          exclusivity: 65_536,
          role: 'active',
          canPut: false,
          canGet: false,
          // Memory does not fall silent.
          liveness: 'self',
          frameBytesMax: FRAME_PAYLOAD_BYTES_MAX,
        },
        detail: undefined,
      },
    ];
  }

  endpoint(peer: number, rail: number, plan: RailPlan, _remote: unknown): BtlEndpoint {
    const endpoint = new SelfEndpoint(this, peer, rail, plan);
    this.endpoints.push(endpoint);
    return endpoint;
  }

  remoteAddressChanged(): void {}

  /** The own rank is over when the module is closed; of others it has nothing. */
  forgetPeer(peer: number): boolean {
    return peer !== this.context.rank;
  }

  async open(): Promise<void> {}

  /** An endpoint has something for progress(), which is asked for, but not from inside the down-call. */
  due(): void {
    if (this.dueNow || this.closed) return;
    this.dueNow = true;
    queueMicrotask(() => {
      if (!this.closed) this.context.upcalls.wake();
    });
  }

  progress(_now: number, aliveMs: number): number {
    // An endpoint has something to do only where it has said so.
    if (!this.dueNow || this.closed) return 0;
    this.dueNow = false;
    let made = 0;
    for (const endpoint of this.endpoints) made += endpoint.progress(aliveMs);
    return made;
  }

  nextDeadline(): number {
    return this.dueNow && !this.closed ? 0 : Number.POSITIVE_INFINITY;
  }

  /** Nothing comes but from this very process. */
  watch(): boolean {
    return !this.dueNow;
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}
