// One job of two ranks, the endpoint and the tester, for one case: starts it through the driver, connects rails in either role, makes
// packets, and waits for what must come.
import { randomBytes } from 'node:crypto';
import { FRAME_CHALLENGE, FRAME_HELLO, FRAME_LIVENESS, FRAME_PROOF, FRAME_WELCOME } from '../../src/btl/base/frame-hdr.ts';
import { type HandshakeIdentity, handshakeFrame, isLoopbackAddress, keyOfEpoch } from '../../src/btl/base/handshake.ts';
import { type PublishedAddresses, pairInterfaces } from '../../src/btl/tcp/pairing.ts';
import { ENVELOPE_CHARGE_BYTES, FLAG, newPacket, PACKET, PACKET_NAMES, type Packet, type PacketType } from '../../src/pml/hdr.ts';
import type { CaseContext } from './case.ts';
import type { ClauseId } from './clauses.ts';
import type { RequestState, StartCommand } from './convention.ts';
import {
  challengeFrame,
  Dialer,
  HandshakeConnection,
  type HelloFields,
  type HelloView,
  isProof,
  makeChallenge,
  viewChallenge,
  viewHello,
  viewRefuse,
} from './handshake.ts';
import { pattern, sha256 } from './pattern.ts';
import { type Arrival, type FrameSpec, Rail, type RailOwner } from './rail.ts';
import { DEFAULTS, ENDPOINT_INCARNATION, OWN_INCARNATION, ownInterface, type SessionOptions } from './session-options.ts';
import { dialTcp, dialWebSocket, listenTcp, type WireStream } from './wire.ts';

export const ANY = -1;

export type Payload = Uint8Array;
type Fields = Partial<Packet>;

/** A frame that comes in slowly: so often a byte of it, and so many at most. */
const DRIP_MS = 15;
const DRIPS_MAX = 400;

export class Session implements RailOwner {
  readonly t: CaseContext;
  readonly role: 'accept' | 'dial';
  readonly rank: number;
  readonly endpointRank: number;
  readonly endpointUnexpectedBytesMax: number;
  readonly identity: HandshakeIdentity;
  readonly start: StartCommand;
  /** Keys of the rails that both sides compute, by index. */
  keys: string[] = [];
  readonly rails: Rail[] = [];
  /** Packets that no case has asked for yet. */
  inbox: Arrival[] = [];
  /** Connections that came in (role `dial`) and were not taken. */
  private readonly inbound: WireStream[] = [];
  private readonly waiters = new Set<() => void>();
  private readonly nextSeqs = new Map<number, number>();
  private nextRequest = 1;
  private nextSlot = 1;
  private host = '127.0.0.1';
  private ports: number[] = [];

  private constructor(t: CaseContext, start: StartCommand, role: 'accept' | 'dial', identity: HandshakeIdentity) {
    this.t = t;
    this.start = start;
    this.role = role;
    this.rank = start.peer.rank;
    this.endpointRank = start.rank;
    this.endpointUnexpectedBytesMax = start.unexpectedBytesMax;
    this.identity = identity;
  }

  /** Starts the job. No rail is connected yet. */
  static async begin(t: CaseContext, options: SessionOptions = {}): Promise<Session> {
    const { role = 'accept', ownUnexpectedBytesMax = 1 << 20, ...given } = options;
    const endpointRank = role === 'accept' ? 1 : 0;
    const secret = given.secret === undefined ? randomBytes(32).toString('hex') : given.secret;
    const start: StartCommand = {
      ...DEFAULTS,
      jobId: `conformance-${randomBytes(4).toString('hex')}`,
      incarnation: ENDPOINT_INCARNATION,
      transport: t.config.transport,
      ...given,
      secret,
      rank: endpointRank,
      peer: { rank: 1 - endpointRank, entry: undefined },
    };
    const identity: HandshakeIdentity = {
      rank: 1 - endpointRank,
      incarnation: OWN_INCARNATION,
      jobId: start.jobId,
      secret: secret === null ? undefined : new Uint8Array(Buffer.from(secret, 'hex')),
    };
    const session = new Session(t, start, role, identity);
    await session.open(ownUnexpectedBytesMax);
    return session;
  }

  private async open(ownUnexpectedBytesMax: number): Promise<void> {
    const { t, start } = this;
    t.defer(() => this.close());
    const { control, endpoint } = t;
    const near = isLoopbackAddress(control.localAddress);
    const address = control.localAddress.replace(/^::ffff:/, '');
    // The acceptor of a pair never dials: a listener of ours shows that it does not.
    const { port, server } = await listenTcp(near ? '127.0.0.1' : address, (stream) => {
      this.inbound.push(stream);
      this.changed();
    });
    t.defer(() => void server.close());
    const own: PublishedAddresses = { interfaces: [ownInterface(near, address, port)], links: start.links };
    start.peer.entry = {
      version: 1,
      incarnation: this.identity.incarnation,
      hostId: near ? endpoint.hostId : `tester of ${endpoint.hostId}`,
      unexpectedBytesMax: ownUnexpectedBytesMax,
      btl: { [start.transport]: own },
      excluded: {},
    };
    const { entry } = await control.run('start', start);
    const theirs = this.checkEntry(entry);
    const pairs = this.role === 'accept' ? pairInterfaces(own, theirs, near) : pairInterfaces(theirs, own, near);
    t.must('AD-2', pairs.length > 0, 'the interfaces that both published make a pair');
    for (const { lower, upper } of pairs) {
      for (let link = 0; link < Math.min(own.links, theirs.links); link++) {
        this.keys.push(`${start.transport}:${lower.name}-${upper.name}#${link}`);
        const family = near ? 4 : lower.addresses[0].family;
        const target = upper.addresses.find((one) => one.family === family && !one.linkLocal) ?? upper.addresses[0];
        this.ports.push(target.port);
        if (this.role === 'accept') this.host = target.address;
      }
    }
  }

  private checkEntry(value: unknown): PublishedAddresses {
    const { t, start } = this;
    const entry = value as {
      version?: number;
      incarnation?: number;
      hostId?: string;
      unexpectedBytesMax?: number;
      btl?: Record<string, unknown>;
    };
    const shape = typeof entry === 'object' && entry !== null && entry.version === 1 && typeof entry.hostId === 'string';
    t.must(
      'AD-1',
      shape && typeof entry.btl === 'object',
      `the modex entry has a version, a hostId and addresses: ${JSON.stringify(value)}`,
    );
    t.check('AD-1', entry.incarnation === start.incarnation, `the entry says incarnation ${entry.incarnation}`);
    t.check('AD-1', entry.unexpectedBytesMax === start.unexpectedBytesMax, `the entry says unexpectedBytesMax ${entry.unexpectedBytesMax}`);
    const address = entry.btl?.[start.transport] as PublishedAddresses | undefined;
    const addressed = Array.isArray(address?.interfaces) && address.interfaces.every((one) => Array.isArray(one.addresses));
    t.must('AD-1', addressed, `the address of ${start.transport} is a list of interfaces: ${JSON.stringify(address)}`);
    return address as PublishedAddresses;
  }

  async close(): Promise<void> {
    for (const rail of this.rails) rail.drop();
    for (const stream of this.inbound) stream.destroy();
    await this.t.control.run('stop', {});
  }

  // ---------------------------------------------------------------- waiting

  changed(): void {
    for (const wake of [...this.waiters]) wake();
  }

  arrived(arrival: Arrival): void {
    this.inbox.push(arrival);
  }

  /** True once the condition holds; false when the time is over. */
  async until(condition: () => boolean, limitMs = this.t.config.limitMs): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    while (!condition()) {
      const left = deadline - performance.now();
      if (left <= 0) return false;
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.waiters.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, left);
        this.waiters.add(wake);
      });
    }
    return true;
  }

  /** The next packet of that type that fits; the case ends when none comes. */
  async expect(clause: ClauseId, type: PacketType, what: string, fits: (arrival: Arrival) => boolean = () => true): Promise<Arrival> {
    const find = () => this.inbox.find((one) => one.packet.type === type && fits(one));
    await this.until(() => find() !== undefined);
    const found = find();
    if (found === undefined) throw this.t.fail(clause, `no ${PACKET_NAMES[type]} came: ${what}${this.describeInbox()}`);
    this.inbox.splice(this.inbox.indexOf(found), 1);
    this.t.check(clause, true, what);
    return found;
  }

  private describeInbox(): string {
    const names = this.inbox.map(({ packet }) => PACKET_NAMES[packet.type]);
    const ended = this.rails.filter(({ closed }) => closed).map(({ index, epoch }) => `rail ${index} epoch ${epoch} is closed`);
    return [...(names.length > 0 ? [`; what came: ${names.join(', ')}`] : []), ...ended.map((text) => `; ${text}`)].join('');
  }

  /**
   * Long enough for everything that the endpoint owes to be here: it has answered two probes on each living rail, one after the other (what
   * is owed after a turn leaves before the next), and then a while has passed.
   */
  async settle(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      const asked = this.rails
        .filter(({ closed, isMidFrame }) => !closed && !isMidFrame)
        .map((rail) => ({ rail, probe: rail.probeFrame() }));
      for (const { rail, probe } of asked) rail.write(probe.bytes);
      await this.until(() => asked.every(({ rail, probe }) => rail.closed || rail.hasAnswered(probe.id)));
    }
    await sleep(this.t.config.quietMs);
  }

  /** Nothing of that type has come, although there was time. */
  async never(clause: ClauseId, type: PacketType, what: string, fits: (arrival: Arrival) => boolean = () => true): Promise<void> {
    await this.settle();
    const found = this.inbox.filter((one) => one.packet.type === type && fits(one));
    this.t.check(clause, found.length === 0, `${what}: ${found.length} times ${PACKET_NAMES[type]} came`);
  }

  /** Nothing waits in the inbox but what belongs to rails and credit. */
  nothingElse(clause: ClauseId): void {
    const left = this.inbox.filter(({ packet }) => packet.type !== PACKET.CREDIT && packet.type !== PACKET.RAILDOWN);
    const names = left.map(({ packet }) => PACKET_NAMES[packet.type]).join(', ');
    this.t.check(clause, left.length === 0, `nothing was sent that is not due${names === '' ? '' : `, but ${names}`}`);
  }

  async closes(clause: ClauseId, rail: Rail, what: string): Promise<void> {
    const closed = await this.until(() => rail.closed);
    this.t.must(clause, closed, `${what}: the rail epoch ends`);
  }

  /**
   * Writes the first `bytes` bytes of a frame, then a few more one by one, until the endpoint says that they come in (it need not say
   * so while nothing comes). Returns how much is written; the rest is the caller's.
   */
  async half(rail: Rail, whole: Uint8Array, bytes: number): Promise<number> {
    const enough = rail.peerReceivedBytes + bytes * 0.8;
    rail.begin(whole.subarray(0, bytes));
    let written = bytes;
    const deadline = performance.now() + this.t.config.limitMs;
    while (rail.peerReceivedBytes < enough && !rail.closed && performance.now() < deadline) {
      await this.until(() => rail.peerReceivedBytes >= enough || rail.closed, DRIP_MS);
      if (rail.peerReceivedBytes >= enough || written >= bytes + DRIPS_MAX) continue;
      rail.begin(whole.subarray(written, written + 1));
      written++;
    }
    this.t.must('CN-6', rail.peerReceivedBytes >= enough && !rail.closed, 'a frame that comes in slowly is reported while it comes');
    return written;
  }

  async stays(clause: ClauseId, rail: Rail, what: string): Promise<void> {
    await this.settle();
    this.t.must(clause, !rail.closed, `${what}: the rail lives`);
  }

  async counted(clause: ClauseId, rail: Rail, what: string, frames = rail.sentFrames): Promise<void> {
    const counted = await this.until(() => ((rail.peerCount - frames) | 0) >= 0 || rail.closed);
    this.t.must(clause, counted && !rail.closed, `${what}: counted (${rail.peerCount} of ${frames})`);
  }

  // ---------------------------------------------------------------- rails

  hello(rail: number, epoch: number, change: Partial<HelloFields> = {}): HelloFields {
    const { rank, incarnation } = this.identity;
    return { rank, incarnation, rail, key: this.keys[rail] ?? `${this.start.transport}:lo-lo#${rail}`, epoch, ...change };
  }

  dial(rail = 0): Promise<WireStream> {
    const port = this.ports[rail] ?? this.ports[0];
    return this.start.transport === 'ws' ? dialWebSocket(this.host, port) : dialTcp(this.host, port);
  }

  /** Where the endpoint listens for that rail. */
  target(rail = 0): { host: string; port: number } {
    return { host: this.host, port: this.ports[rail] ?? this.ports[0] };
  }

  async connection(rail = 0): Promise<HandshakeConnection> {
    const connection = new HandshakeConnection(await this.dial(rail));
    this.t.defer(() => connection.close());
    return connection;
  }

  /** Dials as far as CHALLENGE, which must be good. */
  async challenged(dialer: Dialer, connection: HandshakeConnection): Promise<Uint8Array> {
    const { t } = this;
    connection.write(dialer.hello());
    const answer = await connection.next(t.config.limitMs);
    const frame = answer.kind === 'frame' ? answer.frame : undefined;
    if (frame?.header.kind !== FRAME_CHALLENGE) {
      const refusal = frame === undefined ? answer.kind : `REFUSE ${viewRefuse(frame)?.reason}`;
      throw t.fail('HS-1', `HELLO is answered by CHALLENGE, and not by: ${refusal}`);
    }
    const { header, packetHeader } = frame;
    const zero = header.deliveredCount === 0 && header.aliveMs === 0 && header.receivedBytes === 0 && header.frameNumber === 0;
    t.check('HS-4', zero && header.flags === 0, 'CHALLENGE has zeros where handshake frames have them');
    const view = viewChallenge(packetHeader);
    if (view === undefined) throw t.fail('HS-1', `a CHALLENGE has 80 bytes, and not ${packetHeader.length}`);
    t.check('HS-1', view.rank === this.endpointRank && view.incarnation === this.start.incarnation, 'CHALLENGE says rank and incarnation');
    t.check('CV-2', view.zero === 0, 'CHALLENGE: the field called zero is 0');
    t.must('HS-3', dialer.isProvedBy(packetHeader), "the acceptor's MAC is right");
    return packetHeader;
  }

  /** Connects one rail epoch as its dialer. `ready`: also waits until both sides may send. */
  async connect(index = 0, epoch = 1, { ready = true, autoProbe = true, autoCount = true } = {}): Promise<Rail> {
    const { t } = this;
    const connection = new HandshakeConnection(await this.dial(index));
    t.defer(() => connection.close());
    const dialer = new Dialer(this.identity, this.hello(index, epoch));
    const challenge = await this.challenged(dialer, connection);
    connection.write(dialer.proof(challenge));
    const answer = await connection.next(t.config.limitMs);
    const frame = answer.kind === 'frame' ? answer.frame : undefined;
    if (frame?.header.kind !== FRAME_WELCOME || frame.packetHeader.length > 0) {
      const said = frame === undefined ? answer.kind : JSON.stringify(viewRefuse(frame));
      throw t.fail('HS-1', `PROOF of rail ${index}, epoch ${epoch} is answered by WELCOME, and not by: ${said}`);
    }
    const rail = new Rail(this, index, epoch, dialer.epochKey(challenge), connection.stream, connection.reader, { autoProbe, autoCount });
    this.rails.push(rail);
    if (ready) await this.ready(rail);
    return rail;
  }

  /** Dials that epoch to the end, and says how it was answered: a reason of REFUSE, or `welcome`, `closed`, … */
  async tryConnect(index: number, epoch: number, change: Partial<HelloFields> = {}): Promise<string> {
    const connection = await this.connection(index);
    const dialer = new Dialer(this.identity, this.hello(index, epoch, change));
    const challenge = await this.challenged(dialer, connection);
    connection.write(dialer.proof(challenge));
    const answer = await connection.next(this.t.config.limitMs);
    connection.close();
    if (answer.kind !== 'frame') return answer.kind;
    return answer.frame.header.kind === FRAME_WELCOME ? 'welcome' : (viewRefuse(answer.frame)?.reason ?? 'damaged');
  }

  /** Both probes are answered: both sides may send, and the endpoint has its rail UP. */
  async ready(rail: Rail): Promise<void> {
    const { t } = this;
    const answered = await this.until(() => rail.own.some(({ kind }) => kind === 3) || rail.closed);
    t.must('HS-13', answered && !rail.closed, 'the endpoint asks by PROBE before it sends');
    const { id, bytes } = rail.probeFrame();
    rail.write(bytes);
    const heard = await this.until(() => rail.hasAnswered(id) || rail.closed);
    t.must('PB-1', heard && !rail.closed, `PROBE ${id} is answered with its id`);
  }

  // ---------------------------------------------------------------- rails that the endpoint dials

  /** The next connection of the endpoint whose first frame is a HELLO; liveness connections are taken or left. */
  async accepted(
    clause: ClauseId,
    limitMs = this.t.config.limitMs,
  ): Promise<{ connection: HandshakeConnection; helloBody: Uint8Array; hello: HelloView }> {
    const { t } = this;
    const deadline = performance.now() + limitMs;
    for (;;) {
      await this.until(() => this.inbound.length > 0, deadline - performance.now());
      const stream = this.inbound.shift();
      if (stream === undefined) throw t.fail(clause, 'the endpoint dials');
      const connection = new HandshakeConnection(stream);
      t.defer(() => connection.close());
      const answer = await connection.next(Math.max(1, deadline - performance.now()));
      if (answer.kind !== 'frame') continue;
      const { header, packetHeader } = answer.frame;
      if (header.kind === FRAME_LIVENESS) {
        connection.write(handshakeFrame(FRAME_WELCOME, new Uint8Array(0)));
        continue;
      }
      const hello = header.kind === FRAME_HELLO ? viewHello(packetHeader) : undefined;
      if (hello === undefined) throw t.fail('DL-1', `the first frame of a dialer is a HELLO that can be read, and not kind ${header.kind}`);
      const zero = header.deliveredCount === 0 && header.aliveMs === 0 && header.receivedBytes === 0 && header.frameNumber === 0;
      t.check('HS-4', zero && header.flags === 0, 'HELLO has zeros where handshake frames have them');
      return { connection, helloBody: packetHeader.slice(), hello };
    }
  }

  /** Answers a HELLO by a right CHALLENGE and takes the PROOF, which must be right. */
  async proved(connection: HandshakeConnection, helloBody: Uint8Array): Promise<Uint8Array> {
    const { t, identity } = this;
    const challenge = makeChallenge(identity, helloBody);
    connection.write(challengeFrame(challenge));
    const answer = await connection.next(t.config.limitMs);
    const isRight =
      answer.kind === 'frame' &&
      answer.frame.header.kind === FRAME_PROOF &&
      isProof(identity, helloBody, challenge, answer.frame.packetHeader);
    t.must('HS-3', isRight, `CHALLENGE is answered by a right PROOF (${answer.kind})`);
    return challenge;
  }

  /** Takes the endpoint's next attempt to the end. */
  async accept(clause: ClauseId = 'DL-1'): Promise<Rail> {
    const { connection, helloBody, hello } = await this.accepted(clause);
    const challenge = await this.proved(connection, helloBody);
    connection.write(handshakeFrame(FRAME_WELCOME, new Uint8Array(0)));
    const epochKey = keyOfEpoch(this.identity, helloBody, challenge);
    const rail = new Rail(this, hello.rail, hello.epoch, epochKey, connection.stream, connection.reader);
    this.rails.push(rail);
    await this.ready(rail);
    return rail;
  }

  get waitingConnections(): number {
    return this.inbound.length;
  }

  // ---------------------------------------------------------------- packets

  private packet(type: PacketType, fields: Fields): Packet {
    return { ...newPacket(), type, creditLimit: 1 << 20, ...fields };
  }

  nextSeq(ctx: number): number {
    const seq = this.nextSeqs.get(ctx) ?? 0;
    this.nextSeqs.set(ctx, (seq + 1) >>> 0);
    return seq;
  }

  /** The next envelope of every context is the first again: what was made so far was never sent. */
  forgetSeqs(): void {
    this.nextSeqs.clear();
  }

  /** Envelopes take the next number of their context unless they are given one. */
  match(fields: Fields = {}): Packet {
    const ctx = fields.ctx ?? 0;
    return this.packet(PACKET.MATCH, { source: this.rank, ctx, seq: fields.seq ?? this.nextSeq(ctx), ...fields });
  }

  /** A rendezvous of a message of ours, with an id of its own. */
  rndv(messageBytes: number, fields: Fields = {}): Packet {
    const ctx = fields.ctx ?? 0;
    return this.packet(PACKET.RNDV, {
      source: this.rank,
      ctx,
      seq: fields.seq ?? this.nextSeq(ctx),
      flags: FLAG.CONTIG,
      messageBytes,
      senderSlot: this.nextSlot++,
      senderGeneration: 1,
      ...fields,
    });
  }

  frag(to: Arrival, from: number, fields: Fields = {}): Packet {
    const { receiverSlot, receiverGeneration, epoch } = to.packet;
    return this.packet(PACKET.FRAG, { receiverSlot, receiverGeneration, epoch, from, ...fields });
  }

  notify(rndv: Packet, ack: Arrival, epoch: number, fields: Fields = {}): Packet {
    const { senderSlot, senderGeneration, ctx, seq } = rndv;
    const { receiverSlot, receiverGeneration } = ack.packet;
    const ids = { senderSlot, senderGeneration, receiverSlot, receiverGeneration };
    return this.packet(PACKET.RNDVRESTARTNOTIFY, { ...ids, ctx, seq, source: this.rank, epoch, ...fields });
  }

  other(type: PacketType, fields: Fields): Packet {
    return this.packet(type, fields);
  }

  /** ACK of the tester to a rendezvous of the endpoint. */
  ack(rndv: Arrival, takeBytes: number, fields: Fields = {}): Packet {
    const { senderSlot, senderGeneration } = rndv.packet;
    return this.packet(PACKET.ACK, {
      senderSlot,
      senderGeneration,
      receiverSlot: this.nextSlot++,
      receiverGeneration: 1,
      takeBytes,
      ...fields,
    });
  }

  /** RESTARTACK or RESTARTNACK of the tester to a NOTIFY of the endpoint. */
  restartAnswer(type: PacketType, notify: Arrival, fields: Fields = {}): Packet {
    const { senderSlot, senderGeneration, receiverSlot, receiverGeneration, epoch, ctx, seq } = notify.packet;
    const ids = { senderSlot, senderGeneration, receiverSlot, receiverGeneration };
    return this.packet(type, { ...ids, epoch, ctx, seq, source: this.rank, ...fields });
  }

  charge(bytes: number): number {
    return bytes + ENVELOPE_CHARGE_BYTES;
  }

  // ---------------------------------------------------------------- the endpoint's application

  async recv(source: number, tag: number, bytes: number, ctx = 0): Promise<number> {
    const request = this.nextRequest++;
    await this.t.control.run('recv', { request, source, ctx, tag, bytes });
    return request;
  }

  async sendFrom(bytes: number, { tag = 0, ctx = 0, seed = 1, sync = false } = {}): Promise<number> {
    const request = this.nextRequest++;
    await this.t.control.run('send', { request, dest: this.rank, ctx, tag, bytes, seed, sync });
    return request;
  }

  test(request: number): Promise<RequestState> {
    return this.t.control.run('test', { request });
  }

  /** Waits for the end of a request. */
  async done(clause: ClauseId, request: number, what: string): Promise<RequestState> {
    const deadline = performance.now() + this.t.config.limitMs;
    for (let pauseMs = 1; ; pauseMs = Math.min(20, pauseMs * 2)) {
      const state = await this.test(request);
      if (state.done) return state;
      if (performance.now() > deadline) throw this.t.fail(clause, `${what}: the request ends`);
      await sleep(pauseMs);
    }
  }

  async notDone(clause: ClauseId, request: number, what: string): Promise<void> {
    const state = await this.test(request);
    this.t.check(clause, !state.done, `${what}: the request is not done`);
  }

  /** A receive must have ended with exactly these bytes. */
  async received(
    clause: ClauseId,
    request: number,
    expected: { tag?: number; data: Uint8Array; error?: string },
    what: string,
  ): Promise<void> {
    const { t } = this;
    const state = await this.done(clause, request, what);
    t.check(
      clause,
      state.error === expected.error,
      `${what}: ends ${expected.error ?? 'well'}${state.error === undefined ? '' : `, and not with ${state.error}`}`,
    );
    if (expected.tag !== undefined) t.check(clause, state.tag === expected.tag, `${what}: has tag ${expected.tag}, and not ${state.tag}`);
    t.check(clause, state.source === this.rank, `${what}: comes from rank ${this.rank}, and not ${state.source}`);
    const right = state.bytes === expected.data.length && state.sha256 === sha256(expected.data);
    t.check(clause, right, `${what}: has the ${expected.data.length} bytes that were sent, and not ${state.bytes} others`);
  }

  /** MATCH with the bytes of a pattern. */
  sendMatch(rail: Rail, tag: number, data: Payload, fields: Fields = {}, spec: FrameSpec = {}): Packet {
    const packet = this.match({ tag, ...fields });
    rail.send(packet, data, spec);
    return packet;
  }

  /** RNDV whose first `inline` bytes go with it, up to its ACK. */
  async rendezvous(
    rail: Rail,
    tag: number,
    messageBytes: number,
    inline = 0,
    seed = 1,
    clause: ClauseId = 'RV-2',
    fields: Fields = {},
  ): Promise<{ rndv: Packet; ack: Arrival }> {
    const rndv = this.rndv(messageBytes, { tag, ...fields });
    rail.send(rndv, pattern(seed, 0, inline));
    const ack = await this.expect(
      clause,
      PACKET.ACK,
      'RNDV is answered by ACK on the match',
      ({ packet }) => packet.senderSlot === rndv.senderSlot,
    );
    this.t.check(clause, ack.packet.senderGeneration === rndv.senderGeneration, 'ACK names the generation of the sender');
    return { rndv, ack };
  }

  sendFrag(rail: Rail, ack: Arrival, from: number, to: number, seed = 1, fields: Fields = {}, spec: FrameSpec = {}): void {
    rail.send(this.frag(ack, from, fields), pattern(seed, from, to), spec);
  }

  /** The connection is over; a new epoch of the rail follows. */
  async reconnect(rail: Rail, autoCount = true): Promise<Rail> {
    rail.drop();
    return this.connect(rail.index, rail.epoch + 1, { autoCount });
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
