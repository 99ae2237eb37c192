// Liveness connections: who may open one, what happens to it, when beats go out and when a rail is given up. The streams, the sockets and
// what the kernel says of them are the test's; handshake frames, keys and the watch are the real ones.
import { constants } from 'node:os';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ByteStream } from '../../../src/btl/base/byte-stream.ts';
import { FRAME_CHALLENGE, FRAME_HEADER_BYTES, FRAME_HELLO, FRAME_LIVENESS, FRAME_PROOF } from '../../../src/btl/base/frame-hdr.ts';
import {
  AcceptorHandshake,
  DialerHandshake,
  type HandshakeIdentity,
  type LivenessClaim,
  livenessFrame,
  provesLiveness,
  welcomeFrame,
} from '../../../src/btl/base/handshake.ts';
import type { StreamEndpoint } from '../../../src/btl/base/stream-endpoint.ts';
import { newRailByteCounters, type RailReason } from '../../../src/btl/btl.ts';
import { LinkMonitor, type LinkPoller } from '../../../src/btl/tcp/link-monitor.ts';
import { LivenessWatch } from '../../../src/btl/tcp/liveness-watch.ts';
import type { NetlinkEvent } from '../../../src/native/binding.ts';
import { TCP_INFO } from '../../../src/native/binding.ts';
import type { Poller, PollTarget } from '../../../src/native/poller.ts';
import { ParamTable } from '../../../src/params.ts';
import { SECRET } from '../../support/harness.ts';

const nonce = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
const body = (frame: Uint8Array): Uint8Array => frame.subarray(FRAME_HEADER_BYTES);
const identity = (rank: number): HandshakeIdentity => ({ rank, incarnation: 100 + rank, jobId: 'job', secret: SECRET });

/** Both sides' keys of an epoch whose nonces are filled with these. */
function keys(dialerFill: number, acceptorFill: number, epoch = 4): [Uint8Array, Uint8Array] {
  const dialer = new DialerHandshake(identity(0), 1, 2, 'tcp:a-b#0', epoch, nonce(dialerFill));
  const acceptor = new AcceptorHandshake(identity(1), nonce(acceptorFill));
  const challenge = acceptor.take(FRAME_HELLO, body(dialer.hello()));
  if (challenge.kind !== 'send') throw new Error(challenge.kind);
  dialer.take(FRAME_CHALLENGE, body(challenge.bytes));
  expect(acceptor.take(FRAME_PROOF, body(dialer.proof())).kind).toBe('proved');
  return [dialer.epochKey(), acceptor.epochKey()];
}

function claimOf(frame: Uint8Array): LivenessClaim {
  const step = new AcceptorHandshake(identity(1), nonce(7)).take(FRAME_LIVENESS, body(frame));
  if (step.kind !== 'liveness') throw new Error(step.kind);
  return step.claim;
}

describe('the LIVENESS frame', () => {
  const said = { rank: 0, rail: 2, epoch: 4, number: 1 };

  test('both sides of a handshake have one key, and another handshake has another', () => {
    const [ours, theirs] = keys(1, 2);
    expect(theirs).toEqual(ours);
    for (const other of [keys(1, 3), keys(3, 2), keys(1, 2, 5)]) expect(other[0]).not.toEqual(ours);
  });

  test('proves itself by the key, in every field', () => {
    const [key] = keys(1, 2);
    const frame = livenessFrame(said, key);
    expect(claimOf(frame)).toMatchObject(said);
    expect(provesLiveness(claimOf(frame), key)).toBe(true);
    expect(provesLiveness(claimOf(frame), keys(1, 3)[0])).toBe(false);
    for (let at = 4; at < body(frame).length; at++) {
      const changed = frame.slice();
      changed[FRAME_HEADER_BYTES + at] ^= 1;
      expect(provesLiveness(claimOf(changed), key), `byte ${at}`).toBe(false);
    }
  });

  test('of another length or version, or in the middle of a handshake, it is closed on', () => {
    const frame = livenessFrame(said, nonce(1));
    const take = (bytes: Uint8Array) => new AcceptorHandshake(identity(1), nonce(7)).take(FRAME_LIVENESS, bytes);
    expect(take(body(frame).subarray(1))).toMatchObject({ kind: 'close' });
    const other = body(frame).slice();
    other[0]++;
    expect(take(other)).toMatchObject({ kind: 'close' });
    const acceptor = new AcceptorHandshake(identity(1), nonce(7));
    acceptor.take(FRAME_HELLO, body(new DialerHandshake(identity(0), 1, 2, 'k', 1, nonce(1)).hello()));
    expect(acceptor.take(FRAME_LIVENESS, body(frame))).toMatchObject({ kind: 'close' });
  });
});

/** What the kernel says of one descriptor. */
interface Socket {
  acked: number;
  unacked: number;
  sent: number;
  inbound: number[];
  open: boolean;
}

const DATA_FD = 10;
const BEAT_FD = 11;

/** A watch over one rail, with the test for a kernel. `rank` 0 dials. */
class Rig {
  now = 1000;
  sockets = new Map<number, Socket>();
  targets = new Map<number, PollTarget>();
  opened: { stream: FakeStream }[] = [];
  lost: RailReason[] = [];
  lostAt = 0;
  probes = 0;
  key = nonce(5);
  endpoint = {
    peer: 1,
    rail: 2,
    epoch: 4,
    plan: { key: 'tcp:a-b#0' },
    counters: newRailByteCounters(),
    outstandingBytes: 0,
    epochKey: this.key,
    liveStream: { descriptor: DATA_FD },
    probe: () => this.probes++,
  };
  watch: LivenessWatch;

  constructor(rank: number) {
    this.endpoint.peer = 1 - rank;
    this.socket(DATA_FD);
    const native = {
      tcpInfo: (fd: number, out: Float64Array): number => {
        const socket = this.sockets.get(fd);
        if (socket === undefined) return -constants.errno.EBADF;
        out.fill(0);
        out[TCP_INFO.ackedBytes] = socket.acked;
        out[TCP_INFO.unackedSegments] = socket.unacked;
        out[TCP_INFO.rttUs] = 50;
        return 0;
      },
      send: (fd: number): number => {
        const socket = this.sockets.get(fd) as Socket;
        socket.sent++;
        socket.unacked++;
        return 1;
      },
      recv: (fd: number): number => this.sockets.get(fd)?.inbound.shift() ?? -constants.errno.EAGAIN,
      closeReset: (fd: number): void => {
        (this.sockets.get(fd) as Socket).open = false;
      },
    };
    const poller = {
      native,
      add: (fd: number, target: PollTarget) => this.targets.set(fd, target),
      remove: (fd: number) => this.targets.delete(fd),
    } as unknown as Poller;
    this.watch = new LivenessWatch({
      rank,
      params: new ParamTable(),
      poller,
      openBeside: () => {
        const stream = new FakeStream();
        this.opened.push({ stream });
        return stream as unknown as ByteStream;
      },
      wake: () => {},
    });
    this.watch.epochBegan(this.endpoint as unknown as StreamEndpoint);
  }
  socket(fd: number): Socket {
    const socket: Socket = { acked: 0, unacked: 0, sent: 0, inbound: [], open: true };
    this.sockets.set(fd, socket);
    return socket;
  }
  turn(ms = 1): void {
    this.now += ms;
    this.watch.seeStarts(this.now);
    for (const { reason } of this.watch.progress(this.now, this.now)) {
      this.lost.push(reason);
      this.lostAt = this.now;
    }
  }
  /** Turns exactly when they are asked for; the kernels acknowledge after `ackMs`, if at all. */
  run(ms: number, ackMs = 1): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.watch.seeStarts(this.now);
      const at = Math.max(this.now + 1, Math.min(end, this.watch.nextDeadline()));
      this.now += Math.min(at - this.now, ackMs);
      if (ackMs !== Number.POSITIVE_INFINITY) this.ack();
      this.turn(Math.max(0, at - this.now));
    }
  }
  /** A beat of the peer comes in: its process takes its turns. */
  hear(): void {
    this.sockets.get(BEAT_FD)?.inbound.push(1);
    this.targets.get(BEAT_FD)?.onReady(1);
    this.turn();
  }
  ack(): void {
    for (const socket of this.sockets.values()) {
      socket.acked += socket.unacked;
      socket.unacked = 0;
    }
  }
  admit(claim: { rank?: number; rail?: number; epoch?: number; number?: number } = {}, key = this.key, stream = new FakeStream()) {
    const frame = livenessFrame({ rank: this.endpoint.peer, rail: 2, epoch: 4, number: 1, ...claim }, key);
    if (!this.sockets.has(stream.fd)) this.socket(stream.fd);
    const endpoint = this.endpoint as unknown as StreamEndpoint;
    return { stream, refusal: this.watch.admit(endpoint, stream as unknown as ByteStream, claimOf(frame), this.now, this.now) };
  }
}

class FakeStream {
  status = 'connecting';
  fd = BEAT_FD;
  written: Uint8Array[] = [];
  inbound: Uint8Array[] = [];
  onEvent = (): void => {};
  write(chunks: Uint8Array[]): void {
    this.written.push(...chunks);
  }
  poll(reader: { push(chunk: Uint8Array): void }): void {
    for (const chunk of this.inbound.splice(0)) reader.push(chunk);
  }
  detach(): number {
    this.status = 'closed';
    return this.fd;
  }
  destroy(): void {
    this.status = 'closed';
  }
}

describe("the acceptor's side", () => {
  let rig: Rig;
  beforeEach(() => {
    rig = new Rig(1);
    rig.turn();
  });

  test('it does not dial, and takes the connection that proves itself', () => {
    rig.run(3000);
    expect(rig.opened).toEqual([]);
    const { stream, refusal } = rig.admit();
    expect(refusal).toBeUndefined();
    expect(stream.written).toEqual([welcomeFrame()]);
    rig.turn();
    expect(rig.sockets.get(BEAT_FD)?.sent).toBe(1);
  });

  test('forged, stale, repeated, or of a rail that is not there: refused without a word', () => {
    for (const [claim, key, why] of [
      [{}, nonce(6), /key of this epoch/],
      [{ epoch: 3 }, rig.key, /not the live epoch/],
      [{ epoch: 5 }, rig.key, /not the live epoch/],
    ] as const) {
      const { stream, refusal } = rig.admit(claim, key);
      expect(refusal).toMatch(why);
      expect(stream.written).toEqual([]);
    }
    expect(rig.admit({ number: 2 }).refusal).toBeUndefined();
    expect(rig.admit({ number: 2 }).refusal).toMatch(/seen before/);
    expect(rig.admit({ number: 1 }).refusal).toMatch(/seen before/);
    const claim = claimOf(livenessFrame({ rank: 0, rail: 9, epoch: 4, number: 1 }, rig.key));
    expect(rig.watch.admit(undefined, new FakeStream() as unknown as ByteStream, claim, 0, 0)).toMatch(/no such rail/);
  });

  test('a later attempt replaces a connection that only the dialer saw break', () => {
    rig.admit({ number: 1 });
    const stream = new FakeStream();
    stream.fd = 12;
    rig.socket(12);
    expect(rig.admit({ number: 2 }, rig.key, stream).refusal).toBeUndefined();
    expect(rig.sockets.get(BEAT_FD)?.open).toBe(false);
    expect([...rig.targets.keys()]).toEqual([12]);
  });

  test('the end of the epoch closes the connection, and a new epoch begins without one', () => {
    rig.admit();
    rig.endpoint.epoch = 0;
    rig.turn(2000);
    expect(rig.sockets.get(BEAT_FD)?.open).toBe(false);
    expect(rig.targets.size).toBe(0);
    expect(rig.watch.railCount).toBe(0);
    expect(rig.watch.activeRails).toBe(0);
    expect(rig.watch.nextDeadline()).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("the dialer's side", () => {
  test('dials at once, greets with the key, and beats after the welcome', () => {
    const rig = new Rig(0);
    rig.turn();
    expect(rig.opened.length).toBe(1);
    const [{ stream }] = rig.opened;
    stream.status = 'open';
    rig.turn(20);
    expect(provesLiveness(claimOf(stream.written[0]), rig.key)).toBe(true);
    rig.socket(BEAT_FD);
    // A beat may come in right behind the welcome.
    stream.inbound.push(Uint8Array.of(...welcomeFrame(), 0x2e));
    rig.turn(20);
    rig.turn();
    expect(rig.sockets.get(BEAT_FD)?.sent).toBe(1);
    expect(rig.targets.has(BEAT_FD)).toBe(true);
  });

  test('no answer, and a peer that closes: tried again with another number, after a pause, and the rail goes on', () => {
    const rig = new Rig(0);
    rig.run(5000);
    expect(rig.opened.length).toBeGreaterThan(2);
    expect(rig.opened.length).toBeLessThan(10);
    const before = rig.opened.length + 1;
    while (rig.opened.length < before) rig.run(10);
    const { stream } = rig.opened[before - 1];
    stream.status = 'open';
    rig.run(30);
    expect(claimOf(stream.written[0]).number).toBe(1);
    stream.status = 'closed';
    rig.run(4000);
    expect(rig.opened.length).toBe(before);
    while (rig.opened.length === before) rig.run(10);
    const again = rig.opened[before].stream;
    again.status = 'open';
    rig.run(30);
    expect(claimOf(again.written[0]).number).toBe(2);
    // An idle rail without a liveness connection is asked by a frame of its own.
    expect(rig.probes).toBeGreaterThan(3);
    expect(rig.lost).toEqual([]);
  });
});

describe('an open rail', () => {
  let rig: Rig;
  let beats: Socket;
  let data: Socket;
  beforeEach(() => {
    rig = new Rig(1);
    rig.turn();
    rig.admit();
    rig.turn();
    beats = rig.sockets.get(BEAT_FD) as Socket;
    data = rig.sockets.get(DATA_FD) as Socket;
  });

  test('idle: about a beat a second, and nothing is lost', () => {
    rig.run(2000);
    const before = beats.sent;
    rig.run(10_000);
    expect(beats.sent - before).toBeGreaterThanOrEqual(9);
    expect(beats.sent - before).toBeLessThanOrEqual(11);
    expect(rig.lost).toEqual([]);
  });

  test('idle, with acknowledgements delayed by 40 ms: no second beat, nothing lost', () => {
    rig.run(2000, 40);
    const before = beats.sent;
    rig.run(10_000, 40);
    expect(beats.sent - before).toBeLessThanOrEqual(11);
    expect(rig.lost).toEqual([]);
  });

  test('traffic that begins is beaten with at once, and for a second after it', () => {
    rig.run(3000);
    rig.hear();
    rig.endpoint.outstandingBytes = 100;
    rig.watch.seeStarts(rig.now);
    expect(rig.watch.nextDeadline()).toBeLessThanOrEqual(rig.now);
    const before = beats.sent;
    rig.run(500);
    rig.hear();
    rig.run(500);
    expect(beats.sent - before).toBeGreaterThanOrEqual(45);
    rig.endpoint.outstandingBytes = 0;
    rig.run(1200);
    const after = beats.sent;
    rig.run(3000);
    expect(beats.sent - after).toBeLessThanOrEqual(4);
  });

  test('a black hole under traffic: lost within the limit and one beat, and the reason names the rail', () => {
    rig.endpoint.outstandingBytes = 100;
    data.unacked = 3;
    rig.run(500);
    data.unacked = 3;
    const from = rig.now;
    rig.run(200, Number.POSITIVE_INFINITY);
    expect(rig.lost.length).toBe(1);
    expect(rig.lost[0]).toMatchObject({ kind: 'silent', text: /rail tcp:a-b#0 to rank 0: .* acknowledged nothing for \d+ ms/ });
    expect(rig.lostAt - from).toBeGreaterThan(60);
    expect(rig.lostAt - from).toBeLessThanOrEqual(20 + 75 + 2);
    expect(beats.open).toBe(false);
  });

  test('a peer that reads no beats gets fewer of them', () => {
    rig.endpoint.outstandingBytes = 100;
    rig.run(60_000);
    expect(beats.sent).toBeLessThan(500);
    rig.hear();
    const before = beats.sent;
    rig.run(1000);
    expect(beats.sent - before).toBeGreaterThanOrEqual(45);
    expect(rig.lost).toEqual([]);
  });

  test('a black hole of an idle rail is found by the next beat', () => {
    rig.run(3000);
    rig.run(1700, Number.POSITIVE_INFINITY);
    expect(rig.lost.length).toBe(1);
  });

  test('a connection that breaks while the epoch lives is let go, and the data connection is watched', () => {
    beats.inbound.push(0);
    rig.targets.get(BEAT_FD)?.onReady(1);
    rig.turn();
    expect(beats.open).toBe(false);
    rig.run(3000);
    expect(rig.lost).toEqual([]);
    rig.endpoint.outstandingBytes = 100;
    data.unacked = 1;
    rig.run(600, Number.POSITIVE_INFINITY);
    expect(rig.lost.length).toBe(1);
  });

  test('a minute in which this process took no turn, then a turn: nothing is lost by it', () => {
    rig.endpoint.outstandingBytes = 100;
    rig.run(500);
    const before = beats.sent;
    beats.unacked = 1;
    rig.turn(60_000);
    expect(rig.lost).toEqual([]);
    expect(beats.sent).toBe(before + 1);
    rig.run(500);
    expect(rig.lost).toEqual([]);
  });
});

describe('link monitor', () => {
  let events: NetlinkEvent[] = [];
  let links: { index: number; name: string; up: boolean; carrier: boolean }[] = [];
  const closed: number[] = [];
  const poller = {
    native: {
      netlinkOpen: () => 3,
      netlinkRead: () => events.splice(0),
      links: () => links,
      close: (fd: number) => closed.push(fd),
    },
    add: () => {},
    remove: () => {},
  } as unknown as LinkPoller;
  let monitor: LinkMonitor;
  const link = (up: boolean, carrier: boolean, removed = false): NetlinkEvent => ({
    type: 'link',
    index: 2,
    name: 'eth0',
    up,
    carrier,
    removed,
  });
  const take = () => {
    monitor.onReady();
    return monitor.take();
  };
  beforeEach(() => {
    events = [];
    links = [
      { index: 1, name: 'lo', up: true, carrier: true },
      { index: 2, name: 'eth0', up: true, carrier: true },
    ];
    monitor = new LinkMonitor(poller, () => {});
  });

  test('changes only, in order', () => {
    events = [link(true, true), link(true, false), link(true, false), link(true, true)];
    expect(take()).toEqual([
      { kind: 'link', name: 'eth0', up: false },
      { kind: 'link', name: 'eth0', up: true },
    ]);
    expect(monitor.take()).toEqual([]);
  });
  test('down by the administrator and removed are down', () => {
    events = [link(false, true)];
    expect(take()).toEqual([{ kind: 'link', name: 'eth0', up: false }]);
    expect(monitor.hasCarrier('eth0')).toBe(false);
    events = [link(true, true), link(true, true, true)];
    expect(take().map((change) => change.kind === 'link' && change.up)).toEqual([true, false]);
    expect(monitor.hasCarrier('wlan0')).toBe(true);
  });
  test('addresses carry the name of their interface', () => {
    events = [
      { type: 'address', index: 2, address: '10.0.0.1', removed: true },
      { type: 'address', index: 77, address: '10.0.0.2', removed: false },
    ];
    expect(take()).toEqual([{ kind: 'address', name: 'eth0', address: '10.0.0.1', removed: true }]);
  });
  test('what was lost, or came late, is found by a direct look', () => {
    links = [{ index: 1, name: 'lo', up: true, carrier: true }];
    expect(monitor.compare()).toEqual([{ kind: 'link', name: 'eth0', up: false }]);
    expect(monitor.compare()).toEqual([]);
    links = [...links, { index: 9, name: 'eth0', up: true, carrier: true }];
    events = [{ type: 'overrun' }];
    expect(take()).toEqual([{ kind: 'link', name: 'eth0', up: true }]);
  });
  test('closed once', () => {
    monitor.close();
    monitor.close();
    expect(closed).toEqual([3]);
    expect(take()).toEqual([]);
    expect(monitor.compare()).toEqual([]);
  });
});
