// How two sides agree upon their queue pairs, over the companion connection whose handshake began the epoch: each sends its own
// description, connects its queue pair to the other's, and says that it can receive. Afterwards the companion carries nothing.
import { randomBytes } from 'node:crypto';
import { MultirailError } from '../../errors.ts';
import { assert } from '../../util/assert.ts';
import { EMPTY_BYTES } from '../../util/iov.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import {
  encodeFrameHeader,
  FRAME_COUNT,
  FRAME_DATA,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  HANDSHAKE_LIMITS,
  newFrameHeader,
} from '../base/frame-hdr.ts';
import type { FramerHandler, StreamFramer } from '../base/stream-framer.ts';
import type { RailReason } from '../btl.ts';
import type { VerbsPlanDetail } from './address.ts';
import type { BufferedPair } from './queue-pair.ts';
import { decodeSetup, encodeSetup, type Setup } from './verbs-hdr.ts';

const PSN_MASK = 0xffffff;

/**
 * SETUP: the queue pair exists; what the peer's is has not come.
 * CONNECTED: it can send and receive, and the peer was told; the peer has not said so yet.
 * LIVE: both can.
 */
type SetupState = 'SETUP' | 'CONNECTED' | 'LIVE';
const EDGES: Readonly<Record<SetupState, readonly SetupState[]>> = { SETUP: ['CONNECTED'], CONNECTED: ['LIVE'], LIVE: [] };

export interface SetupOwner {
  readonly isOver: boolean;
  becameLive(): void;
  setupFailed(reason: RailReason): void;
}

export class PairSetup implements FramerHandler {
  state: SetupState = 'SETUP';
  private readonly owner: SetupOwner;
  private readonly pair: BufferedPair;
  private readonly stream: ByteStream;
  private readonly framer: StreamFramer;
  private readonly detail: VerbsPlanDetail;
  private readonly psn = randomBytes(4).readUInt32LE() & PSN_MASK;
  private peerIsReady = false;

  constructor(owner: SetupOwner, pair: BufferedPair, stream: ByteStream, framer: StreamFramer, detail: VerbsPlanDetail) {
    this.owner = owner;
    this.pair = pair;
    this.stream = stream;
    this.framer = framer;
    this.detail = detail;
    framer.limits = HANDSHAKE_LIMITS;
    framer.handler = this;
  }

  /** Makes the queue pair and tells the peer of it. */
  begin(): void {
    try {
      this.pair.open();
    } catch (error) {
      this.failed('error', `no queue pair: ${(error as Error).message}`);
      return;
    }
    this.write(FRAME_DATA, encodeSetup(this.pair.setup(this.psn)));
  }

  /** Reads what has come; true when the peer has closed the connection. */
  look(): boolean {
    this.stream.poll(this.framer, 4096);
    return this.stream.status === 'closed' && this.stream.inboundBytes === 0;
  }

  frame(header: FrameHeader, packetHeader: Uint8Array): void {
    if (this.owner.isOver) return;
    if (header.kind === FRAME_DATA && this.state === 'SETUP') this.connectTo(packetHeader);
    else if (header.kind === FRAME_COUNT && !this.peerIsReady) {
      this.peerIsReady = true;
      this.goLive();
    } else this.damage('an unexpected frame');
  }

  placePayload(): null {
    this.damage('a placed frame');
    return null;
  }

  damage(text: string): void {
    this.failed('damaged', `on the companion connection: ${text}`);
  }

  private connectTo(bytes: Uint8Array): void {
    let peer: Setup;
    try {
      peer = decodeSetup(bytes);
      const { buffers, bufferBytes } = this.detail;
      if (peer.buffers !== buffers || peer.bufferBytes !== bufferBytes) {
        throw new MultirailError(
          'ERR_PROTOCOL',
          `the peer has ${peer.buffers} buffers of ${peer.bufferBytes} bytes; expected ${buffers} of ${bufferBytes}`,
        );
      }
    } catch (error) {
      this.damage((error as Error).message);
      return;
    }
    try {
      this.pair.connect(peer, this.psn);
    } catch (error) {
      this.failed('error', `the queue pair cannot be connected: ${(error as Error).message}`);
      return;
    }
    this.move('CONNECTED');
    this.write(FRAME_COUNT, EMPTY_BYTES);
    this.goLive();
  }

  private goLive(): void {
    if (this.state !== 'CONNECTED' || !this.peerIsReady) return;
    this.move('LIVE');
    this.owner.becameLive();
  }

  private write(kind: number, packet: Uint8Array): void {
    const bytes = new Uint8Array(FRAME_HEADER_BYTES + packet.length);
    bytes.set(packet, FRAME_HEADER_BYTES);
    encodeFrameHeader({ ...newFrameHeader(kind), packetHeaderBytes: packet.length }, bytes, 0);
    this.stream.write([bytes]);
  }

  private move(to: SetupState): void {
    assert(EDGES[this.state].includes(to), `setup of a queue pair: no edge ${this.state} -> ${to}`);
    this.state = to;
  }

  private failed(kind: RailReason['kind'], text: string): void {
    this.owner.setupFailed({ kind, text });
  }
}
