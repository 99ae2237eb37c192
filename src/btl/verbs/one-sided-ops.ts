// Puts and gets under way on one queue pair, and the memory that they hold registered.
import type { OneSidedOp, Registration } from '../btl.ts';
import { cutToRequests, type OneSidedRequest } from './one-sided.ts';
import type { LocalPort } from './ports.ts';
import { type BufferedPair, POST_BATCH } from './queue-pair.ts';
import type { Rdma } from './rdma.ts';
import { decodeWindow, encodeWindow, WINDOW_PIECES_MAX, type Window } from './verbs-hdr.ts';

interface OpUnderWay {
  op: OneSidedOp;
  lastRequest: number;
  leases: Rdma.Lease[];
}

export class OneSidedOps {
  private readonly rdma: typeof Rdma;
  private readonly port: LocalPort;
  private readonly pair: BufferedPair;
  private readonly list: OpUnderWay[] = [];
  private lastKey: Uint8Array | undefined = undefined;
  private lastWindow: Window | undefined = undefined;

  constructor(rdma: typeof Rdma, port: LocalPort, pair: BufferedPair) {
    this.rdma = rdma;
    this.port = port;
    this.pair = pair;
  }

  /** The requests of an operation, or what is wrong with the peer's key. */
  cut(op: OneSidedOp): OneSidedRequest[] | string {
    // Many in turn are of the same window.
    if (op.remoteKey !== this.lastKey) {
      this.lastKey = op.remoteKey;
      this.lastWindow = decodeWindow(op.remoteKey);
    }
    if (this.lastWindow === undefined) {
      return `the peer's key for its memory has ${op.remoteKey.length} bytes that name none; expected a list of addresses and lengths: run the same version of multirail on all ranks`;
    }
    return (
      cutToRequests(op, this.lastWindow, this.port.messageBytesMax, this.rdma.PIECES_MAX) ??
      'the peer gave a key for less memory than it speaks of'
    );
  }

  /** Stages the requests of an operation, and has them posted by `post` when many are; answers with why that cannot be. */
  start(op: OneSidedOp, requests: readonly OneSidedRequest[], post: () => void): string | undefined {
    const { cache } = this.port.device;
    const leases: Rdma.Lease[] = [];
    try {
      for (const { pieces } of requests) for (const piece of pieces) leases.push(cache.acquire(piece));
    } catch (error) {
      for (const lease of leases) cache.release(lease);
      return `${op.bytes} bytes cannot be registered (${(error as Error).message}); raise the limit on locked memory (ulimit -l)`;
    }
    const opcode = op.kind === 'put' ? this.rdma.OPCODE.WRITE : this.rdma.OPCODE.READ;
    let lease = 0;
    for (const [i, request] of requests.entries()) {
      const { length } = request.pieces;
      this.pair.stageOneSided(opcode, request, leases.slice(lease, lease + length), i === requests.length - 1);
      lease += length;
      if (this.pair.staged >= POST_BATCH) post();
    }
    this.list.push({ op, lastRequest: this.pair.lastRequest, leases });
    return undefined;
  }

  /** The oldest operation, if it is done: its last request has completed. */
  takeDone(): OneSidedOp | undefined {
    return this.list.length > 0 && this.list[0].lastRequest <= this.pair.retired ? this.take() : undefined;
  }

  /** The oldest operation, done or not. */
  take(): OneSidedOp | undefined {
    const under = this.list.shift();
    if (under === undefined) return undefined;
    for (const lease of under.leases) this.port.device.cache.release(lease);
    return under.op;
  }
}

/**
 * Memory that the peer may reach. Not kept for the next message: after deregister() nothing may land there, whatever the peer still has
 * under way. Throws what the device says, a limit on locked memory mostly.
 */
export function registerWindow(rdma: typeof Rdma, port: LocalPort, memory: readonly Uint8Array[]): Registration | undefined {
  if (memory.length === 0 || memory.length > WINDOW_PIECES_MAX) return undefined;
  const access = rdma.ACCESS.LOCAL_WRITE | rdma.ACCESS.REMOTE_WRITE | rdma.ACCESS.REMOTE_READ;
  const regions: Rdma.Region[] = [];
  const close = (): void => {
    for (const region of regions) region.close();
  };
  try {
    for (const piece of memory) regions.push(port.device.domain.register(piece, access));
  } catch (error) {
    close();
    throw error;
  }
  const pieces = regions.map(({ address, rkey }, i) => ({ address, rkey, bytes: memory[i].length }));
  return { key: encodeWindow({ pieces }), deregister: close };
}
