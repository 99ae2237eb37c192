// Makes broken endpoints out of multirail's sound one: a relay between tester and endpoint that repairs what a sound endpoint would refuse,
// or spoils what it says. Frames can be changed one by one, in either direction, and handshakes be carried out by other rules.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { FRAME_CHALLENGE, FRAME_HELLO, FRAME_LIVENESS, FRAME_PROOF, FRAME_WELCOME } from '../../src/btl/base/frame-hdr.ts';
import { type HandshakeIdentity, handshakeFrame, refuseFrame } from '../../src/btl/base/handshake.ts';
import { HEADER_BYTES_MAX } from '../../src/btl/btl.ts';
import type { Control } from '../../tools/wire-suite/control.ts';
import type { CommandName, Commands, StartCommand } from '../../tools/wire-suite/convention.ts';
import {
  challengeFrame,
  Dialer,
  HandshakeConnection,
  type HelloFields,
  isProof,
  makeChallenge,
  viewChallenge,
  viewHello,
} from '../../tools/wire-suite/handshake.ts';
import { FRAME_PAYLOAD_BYTES_MAX, sealHeader } from '../../tools/wire-suite/rail.ts';
import type { RawFrame, WireStream } from '../../tools/wire-suite/wire.ts';

/** One frame as it stands in the stream, sound or not, with its fields at hand. */
export class FrameBytes {
  bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
  get view(): DataView {
    return new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
  }
  get kind(): number {
    return this.bytes[1];
  }
  get packetHeaderBytes(): number {
    return this.view.getUint16(4, true);
  }
  get packetType(): number {
    return this.kind === 1 && this.packetHeaderBytes >= 2 ? this.bytes[41] : 0;
  }
  /** The packet header, to be changed in place. */
  get packet(): DataView {
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + 40, this.packetHeaderBytes);
  }
  seal(): this {
    sealHeader(this.bytes, this.packetHeaderBytes);
    return this;
  }
  /** The same frame with another packet, and no payload. */
  withPacket(packet: Uint8Array): FrameBytes {
    const bytes = new Uint8Array(40 + packet.length);
    bytes.set(this.bytes.subarray(0, 40));
    bytes.set(packet, 40);
    const frame = new FrameBytes(bytes);
    frame.view.setUint16(2, 0, true);
    frame.view.setUint16(4, packet.length, true);
    frame.view.setUint32(8, 0, true);
    frame.view.setUint32(32, 0, true);
    return frame.seal();
  }
}

/** What becomes of a frame: itself, changed in place, others, or nothing. `back` sends to where it came from. */
export type Change = (frame: FrameBytes, back: (bytes: Uint8Array) => void) => readonly FrameBytes[];

/** Frames are cut by their lengths alone; what cannot be cut is passed on as it is. */
class Cutter {
  private held = new Uint8Array(0);
  private readonly change: Change;

  constructor(change: Change) {
    this.change = change;
  }

  push(chunk: Uint8Array, forward: (bytes: Uint8Array) => void, back: (bytes: Uint8Array) => void): void {
    this.held = new Uint8Array(Buffer.concat([this.held, chunk]));
    while (this.held.length >= 40) {
      const frame = new FrameBytes(this.held);
      const payloadBytes = frame.view.getUint32(8, true);
      const bytes = 40 + frame.packetHeaderBytes + payloadBytes;
      if (frame.packetHeaderBytes > HEADER_BYTES_MAX || payloadBytes > FRAME_PAYLOAD_BYTES_MAX) {
        forward(this.held);
        this.held = new Uint8Array(0);
        return;
      }
      if (this.held.length < bytes) return;
      const whole = new FrameBytes(this.held.slice(0, bytes));
      this.held = this.held.slice(bytes);
      for (const out of this.change(whole, back)) forward(out.bytes);
    }
  }

  /** What is left when the stream ends. */
  rest(): Uint8Array {
    return this.held;
  }
}

/** Rules of a handshake that the relay carries out in the endpoint's place. */
export interface Rules {
  anyProof?: boolean;
  anyVersion?: boolean;
  anyJob?: boolean;
  constantNonce?: boolean;
  wrongMac?: boolean;
  /** Claims are put right before the endpoint sees them. */
  claims?: (hello: HelloFields, connections: number) => Partial<HelloFields>;
  refuseEarly?: boolean;
  noDeadline?: boolean;
  anyLiveness?: boolean;
  bytesAfterProof?: boolean;
  /** As a dialer: */
  anyAcceptor?: boolean;
  believesEarly?: boolean;
  epochAlways?: number;
}

export interface Broken {
  /** Frames from the tester to the endpoint, and from the endpoint to the tester, of live rails and handshakes. */
  toEndpoint?: () => Change;
  toTester?: () => Change;
  /** Chunks from the tester, before anything is cut. */
  chunks?: () => (chunk: Uint8Array) => Uint8Array | undefined;
  rules?: Rules;
  start?: (command: StartCommand) => Partial<StartCommand>;
  entry?: (entry: Record<string, unknown>) => void;
  answer?: (name: CommandName, answer: Record<string, unknown>) => void;
}

type Address = { interfaces: { addresses: { port: number }[] }[] };

/** The driver of an endpoint that is broken in this way. */
export class BrokenControl implements Control {
  readonly localAddress = '127.0.0.1';
  readonly remoteAddress = '127.0.0.1';
  private readonly control: Control;
  private readonly broken: Broken;
  private readonly servers: Server[] = [];
  private readonly sockets = new Set<Socket>();

  constructor(control: Control, broken: Broken) {
    this.control = control;
    this.broken = broken;
  }

  async run<N extends CommandName>(name: N, args: Commands[N]['in']): Promise<Commands[N]['out']> {
    if (name === 'stop') this.closeRelays();
    if (name !== 'start') {
      const answer = await this.control.run(name, args);
      this.broken.answer?.(name, answer as Record<string, unknown>);
      return answer;
    }
    return (await this.start(structuredClone(args) as StartCommand)) as Commands[N]['out'];
  }

  private async start(asked: StartCommand): Promise<Commands['start']['out']> {
    const command = { ...asked, ...this.broken.start?.(asked) };
    const dials = command.rank < command.peer.rank;
    const theirs = (command.peer.entry as { btl: Record<string, Address> }).btl[command.transport];
    if (dials)
      for (const one of theirs.interfaces) for (const address of one.addresses) address.port = await this.relay(address.port, command);
    const answer = structuredClone(await this.control.run('start', command));
    const entry = answer.entry as Record<string, unknown> & { btl: Record<string, Address> };
    if (!dials) {
      for (const one of entry.btl[command.transport].interfaces) {
        for (const address of one.addresses) address.port = await this.relay(address.port, command);
      }
    }
    this.broken.entry?.(entry);
    return answer;
  }

  private closeRelays(): void {
    for (const server of this.servers) server.close();
    for (const socket of this.sockets) socket.destroy();
    this.servers.length = 0;
    this.sockets.clear();
  }

  async close(): Promise<void> {
    this.closeRelays();
    await this.control.close();
  }

  private relay(port: number, command: StartCommand): Promise<number> {
    let connections = 0;
    const server = createServer({ allowHalfOpen: false, pauseOnConnect: true }, (near) => {
      const far = connect({ port, host: '127.0.0.1' });
      for (const socket of [near, far]) {
        this.sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => undefined);
      }
      const dials = command.rank < command.peer.rank;
      // `near` dialled: the tester, or the endpoint when that is the lower rank.
      const pipe = () => this.pipe(dials ? far : near, dials ? near : far);
      const { rules } = this.broken;
      near.on('close', () => far.destroy());
      // The sound side behind the relay gives up in time.
      if (rules?.noDeadline !== true && rules?.believesEarly !== true) far.on('close', () => near.destroySoon());
      if (rules === undefined) pipe();
      else void this.handshake(near, far, command, rules, ++connections).catch(() => near.destroy());
      far.resume();
      near.resume();
    });
    this.servers.push(server);
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
  }

  private pipe(tester: Socket, endpoint: Socket): void {
    const filter = this.broken.chunks?.();
    this.oneWay(tester, endpoint, this.broken.toEndpoint?.(), filter);
    this.oneWay(endpoint, tester, this.broken.toTester?.());
  }

  private oneWay(from: Socket, to: Socket, change?: Change, filter?: (chunk: Uint8Array) => Uint8Array | undefined): void {
    const cutter = change === undefined ? undefined : new Cutter(change);
    from.on('data', (data: Buffer) => {
      const chunk = filter === undefined ? data : filter(data);
      if (chunk === undefined) return;
      if (cutter === undefined) to.write(chunk);
      else
        cutter.push(
          chunk,
          (bytes) => void to.write(bytes),
          (bytes) => void from.write(bytes),
        );
    });
  }

  // ---------------------------------------------------------------- handshakes by other rules

  private async handshake(near: Socket, far: Socket, command: StartCommand, rules: Rules, connections: number): Promise<void> {
    const dials = command.rank < command.peer.rank;
    const secret = command.secret === null ? undefined : new Uint8Array(Buffer.from(command.secret, 'hex'));
    const identities: { endpoint: HandshakeIdentity; tester: HandshakeIdentity } = {
      endpoint: { rank: command.rank, incarnation: command.incarnation, jobId: command.jobId, secret },
      tester: {
        rank: command.peer.rank,
        incarnation: (command.peer.entry as { incarnation: number }).incarnation,
        jobId: command.jobId,
        secret,
      },
    };
    const [a, b] = [new HandshakeConnection(streamOf(near)), new HandshakeConnection(streamOf(far))];
    const isLive = dials ? await relayDialer(a, b, identities, rules) : await relayAcceptor(a, b, identities, rules, connections);
    if (!isLive) {
      near.end();
      far.destroy();
      return;
    }
    for (const connection of [a, b]) connection.stream.onBytes = () => undefined;
    near.removeAllListeners('data');
    far.removeAllListeners('data');
    this.pipe(dials ? far : near, dials ? near : far);
    for (const [connection, to] of [
      [a, far],
      [b, near],
    ] as const) {
      for (let frame = connection.reader.next(); frame !== undefined; frame = connection.reader.next()) to.write(frame.bytes);
    }
  }
}

const HANDSHAKE_MS = 3000;
const FOR_EVER_MS = 60_000;

async function frameOf(connection: HandshakeConnection, limitMs = HANDSHAKE_MS): Promise<RawFrame> {
  const answer = await connection.next(limitMs);
  if (answer.kind !== 'frame') throw new Error(answer.kind);
  return answer.frame;
}

interface Identities {
  endpoint: HandshakeIdentity;
  tester: HandshakeIdentity;
}

/** Plays the acceptor to the tester by these rules, and the right dialer to the endpoint. */
async function relayAcceptor(
  tester: HandshakeConnection,
  endpoint: HandshakeConnection,
  { endpoint: own, tester: theirs }: Identities,
  rules: Rules,
  connections: number,
): Promise<boolean> {
  const limitMs = rules.noDeadline ? FOR_EVER_MS : HANDSHAKE_MS;
  const { header, packetHeader: helloBody } = await frameOf(tester, limitMs);
  if (header.kind === FRAME_LIVENESS && rules.anyLiveness) {
    tester.write(handshakeFrame(FRAME_WELCOME, new Uint8Array(0)));
    await new Promise((resolve) => setTimeout(resolve, FOR_EVER_MS));
  }
  if (header.kind !== FRAME_HELLO) return false;
  const version = new DataView(helloBody.buffer, helloBody.byteOffset).getUint32(0, true);
  if (version !== 2 && !rules.anyVersion) {
    tester.write(refuseFrame('BAD_VERSION', ''));
    return false;
  }
  const hello = viewHello(helloBody);
  if (hello === undefined) return false;
  const right = new Dialer(theirs, hello).helloBody.slice(56, 88);
  if (!Buffer.from(hello.jobDigest).equals(right) && !rules.anyJob) {
    tester.write(refuseFrame('BAD_JOB', ''));
    return false;
  }
  if (rules.refuseEarly && hello.rank !== theirs.rank) {
    tester.write(refuseFrame('UNKNOWN_RANK', ''));
    return false;
  }
  const challenge = makeChallenge(own, helloBody, rules.constantNonce ? new Uint8Array(32) : undefined);
  if (rules.wrongMac) challenge[79] ^= 1;
  tester.write(challengeFrame(challenge));
  const proof = await frameOf(tester, limitMs);
  if (proof.header.kind !== FRAME_PROOF) return false;
  if (!isProof(theirs, helloBody, challenge, proof.packetHeader) && !rules.anyProof) return false;
  if (!rules.bytesAfterProof && tester.reader.next() !== undefined) return false;
  const dialer = new Dialer(theirs, { ...hello, ...rules.claims?.(hello, connections) });
  endpoint.write(dialer.hello());
  const back = await frameOf(endpoint);
  if (back.header.kind !== FRAME_CHALLENGE) return false;
  endpoint.write(dialer.proof(back.packetHeader));
  const verdict = await frameOf(endpoint);
  tester.write(verdict.bytes);
  return verdict.header.kind === FRAME_WELCOME;
}

/** Plays the dialer to the tester by these rules, and the right acceptor to the endpoint. */
async function relayDialer(
  endpoint: HandshakeConnection,
  tester: HandshakeConnection,
  { endpoint: own, tester: theirs }: Identities,
  rules: Rules,
): Promise<boolean> {
  const first = await frameOf(endpoint);
  const hello = viewHello(first.packetHeader);
  if (hello === undefined) return false;
  const claimed = { ...hello, ...(rules.epochAlways === undefined ? {} : { epoch: rules.epochAlways }) };
  const dialer = new Dialer(own, claimed, rules.constantNonce ? new Uint8Array(32) : undefined);
  tester.write(dialer.hello());
  const answer = await frameOf(tester);
  const isChallenge = answer.header.kind === FRAME_CHALLENGE;
  if (!isChallenge && !rules.believesEarly) return false;
  const isRight = isChallenge && dialer.isProvedBy(answer.packetHeader) && viewChallenge(answer.packetHeader)?.rank === theirs.rank;
  if (isChallenge && !isRight && !rules.anyAcceptor) return false;
  const ours = makeChallenge(theirs, first.packetHeader);
  endpoint.write(challengeFrame(ours));
  const proof = await frameOf(endpoint);
  if (!isProof(own, first.packetHeader, ours, proof.packetHeader)) return false;
  if (!isChallenge) {
    endpoint.write(answer.bytes);
    await new Promise((resolve) => setTimeout(resolve, 20));
    return false;
  }
  tester.write(dialer.proof(answer.packetHeader));
  const verdict = await frameOf(tester);
  endpoint.write(verdict.bytes);
  return verdict.header.kind === FRAME_WELCOME;
}

function streamOf(socket: Socket): WireStream {
  const stream: WireStream = {
    onBytes: () => undefined,
    onClosed: () => undefined,
    write: (bytes) => void socket.write(bytes),
    destroy: () => void socket.destroy(),
    end: () => void socket.end(),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
  };
  socket.on('data', (chunk: Buffer) => stream.onBytes(chunk));
  socket.on('close', () => stream.onClosed());
  socket.on('end', () => stream.onClosed());
  return stream;
}
