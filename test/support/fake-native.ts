// A kernel in memory behind the surface of the native part: TCP connections as pairs of byte queues, and level-triggered readiness. It is
// deterministic: things happen only in calls, and turn() is a turn of the event loop. Knobs make it as awkward as a test wants.
import { constants } from 'node:os';
import type { NativeBinding, SocketOptions } from '../../src/native/binding.ts';
import { POLL_ERR, POLL_HUP, POLL_IN, POLL_OUT } from '../../src/native/binding.ts';

const { EAGAIN, ECONNRESET, EPIPE, EADDRINUSE, EBADF } = constants.errno;

interface FakeSocket {
  /** Bytes that came in and were not read. */
  inbound: number[];
  other: FakeSocket | undefined;
  /** The peer will write no more. */
  eof: boolean;
  /** Set by a reset: answered once by the next call, as the kernel does. */
  error: number;
  wasReset: boolean;
  shut: boolean;
  connecting: 'no' | 'yes' | 'done';
  connectError: number;
  port: number;
  options: SocketOptions;
}

interface FakeListener {
  port: number;
  waiting: FakeSocket[];
  options: SocketOptions;
}

interface FakePoller {
  onReady: () => boolean;
  interest: Map<number, number>;
  keepsAlive: boolean;
  closed: boolean;
}

function newSocket(options: SocketOptions, port: number): FakeSocket {
  return {
    inbound: [],
    other: undefined,
    eof: false,
    error: 0,
    wasReset: false,
    shut: false,
    connecting: 'no',
    connectError: 0,
    port,
    options,
  };
}

export class FakeNative {
  /** Bytes that a peer's kernel takes before writes say EAGAIN. */
  bufferBytes = 64 * 1024;
  /** Bytes that one recv gives at most. */
  recvMax = Number.POSITIVE_INFINITY;
  /** Bytes that one send takes at most. */
  sendMax = Number.POSITIVE_INFINITY;
  /** tcpConnect throws EPERM when it is asked for a device. */
  refusesDevice = false;
  /** errno of the next connection attempts; 0 = they work. */
  connectError = 0;
  /** errno of accept(); 0 = it works. */
  acceptError = 0;
  /** Every tcpConnect and tcpListen, with its arguments. */
  readonly asked: { call: 'connect' | 'listen'; host: string; localHost: string; options: SocketOptions }[] = [];
  readonly calls = { recv: 0, recv2: 0, send: 0, sendv: 0, pollerSet: 0, accept: 0 };
  private readonly table = new Map<number, FakeSocket | FakeListener | FakePoller | 'event' | 'signalled'>();

  get binding(): NativeBinding {
    return this as unknown as NativeBinding;
  }

  /** Descriptors that are open, the pollers' included. */
  get open(): number {
    return this.table.size;
  }

  private add(value: FakeSocket | FakeListener | FakePoller | 'event'): number {
    // The lowest free number, as a kernel gives: a closed descriptor's number comes back at once.
    let fd = 100;
    while (this.table.has(fd)) fd++;
    this.table.set(fd, value);
    return fd;
  }

  socket(fd: number): FakeSocket {
    const found = this.table.get(fd);
    if (found === undefined || typeof found === 'string' || !('inbound' in found)) throw new Error(`descriptor ${fd} is no open socket`);
    return found;
  }

  /** Two connected descriptors. */
  pair(): [number, number] {
    const one = newSocket({}, 1);
    const two = newSocket({}, 2);
    one.other = two;
    two.other = one;
    return [this.add(one), this.add(two)];
  }

  /** The peer of this descriptor resets the connection: what came before can still be read. */
  reset(fd: number): void {
    const socket = this.socket(fd);
    socket.error = ECONNRESET;
    socket.wasReset = true;
    if (socket.other !== undefined) socket.other.other = undefined;
    socket.other = undefined;
  }

  /** Bits that are ready, as epoll would tell. */
  private ready(fd: number): number {
    const found = this.table.get(fd);
    if (found === undefined || found === 'event') return 0;
    if (found === 'signalled') return POLL_IN;
    if ('waiting' in found) return found.waiting.length > 0 ? POLL_IN : 0;
    if ('interest' in found) return 0;
    if (found.connecting !== 'no') return found.connecting === 'done' ? POLL_OUT | (found.connectError > 0 ? POLL_ERR | POLL_HUP : 0) : 0;
    if (found.wasReset) return POLL_IN | POLL_OUT | POLL_ERR | POLL_HUP;
    const writable = (found.other?.inbound.length ?? 0) < this.bufferBytes ? POLL_OUT : 0;
    return (found.inbound.length > 0 || found.eof ? POLL_IN : 0) | writable;
  }

  /** Connection attempts under way come to their end. */
  answerConnects(): void {
    for (const found of this.table.values())
      if (typeof found === 'object' && 'connecting' in found && found.connecting === 'yes') found.connecting = 'done';
  }

  /** One turn of the event loop: calls every poller that has something, again for as long as it says. Returns how many calls. */
  turn(callsMax = 1000): number {
    let calls = 0;
    for (const [, found] of [...this.table]) {
      if (typeof found !== 'object' || !('interest' in found)) continue;
      let again = this.isReady(found);
      while (again && !found.closed && calls < callsMax) {
        calls++;
        again = found.onReady();
      }
    }
    return calls;
  }

  private isReady(poller: FakePoller): boolean {
    for (const [fd, events] of poller.interest) if ((this.ready(fd) & (events | POLL_ERR | POLL_HUP)) !== 0) return true;
    return false;
  }

  keepsAlive(): boolean {
    return [...this.table.values()].some((found) => typeof found === 'object' && 'keepsAlive' in found && found.keepsAlive);
  }

  // --- sockets

  tcpListen(host: string, port: number, _backlog: number, options: SocketOptions): number {
    this.asked.push({ call: 'listen', host, localHost: '', options });
    for (const found of this.table.values()) {
      if (typeof found === 'object' && 'waiting' in found && found.port === port) {
        throw Object.assign(new Error('bind EADDRINUSE'), { code: 'EADDRINUSE', errno: -EADDRINUSE, syscall: 'bind' });
      }
    }
    const fd = this.add({ port, waiting: [], options });
    if (port === 0) (this.table.get(fd) as FakeListener).port = 20_000 + fd;
    return fd;
  }
  accept(fd: number): number {
    this.calls.accept++;
    if (this.acceptError !== 0) return -this.acceptError;
    const socket = (this.table.get(fd) as FakeListener).waiting.shift();
    return socket === undefined ? -EAGAIN : this.add(socket);
  }
  tcpConnect(host: string, port: number, localHost: string, options: SocketOptions): number {
    this.asked.push({ call: 'connect', host, localHost, options });
    if (this.refusesDevice && options.device) {
      throw Object.assign(new Error('setsockopt EPERM'), { code: 'EPERM', syscall: 'setsockopt' });
    }
    const socket = newSocket(options, 40_000);
    socket.connecting = 'yes';
    socket.connectError = this.connectError;
    const listener = [...this.table.values()].find((found) => typeof found === 'object' && 'waiting' in found && found.port === port);
    if (this.connectError === 0) {
      const accepted = newSocket(options, port);
      accepted.other = socket;
      socket.other = accepted;
      (listener as FakeListener | undefined)?.waiting.push(accepted);
    }
    return this.add(socket);
  }
  connectResult(fd: number): number {
    const socket = this.socket(fd);
    if (socket.connectError === 0) socket.connecting = 'no';
    return -socket.connectError;
  }
  socketName(fd: number): { address: string; port: number } {
    const found = this.table.get(fd);
    return { address: '127.0.0.1', port: typeof found === 'object' && 'port' in found ? found.port : 0 };
  }
  peerName(fd: number): { address: string; port: number } {
    return { address: '127.0.0.1', port: this.socket(fd).other?.port ?? 0 };
  }
  congestionOf(fd: number): string {
    return this.socket(fd).options.congestion ?? '';
  }

  send(fd: number, bytes: Uint8Array, offset: number, length: number): number {
    this.calls.send++;
    return this.put(fd, bytes.subarray(offset, offset + length), { left: this.sendMax });
  }
  sendv(fd: number, chunks: readonly Uint8Array[], from: number, skip: number): number {
    this.calls.sendv++;
    const room = { left: this.sendMax };
    let sent = 0;
    for (let i = from; i < Math.min(chunks.length, from + 1024); i++) {
      const chunk = i === from ? chunks[i].subarray(skip) : chunks[i];
      if (chunk.length === 0) continue;
      const taken = this.put(fd, chunk, room);
      if (taken < 0) return sent > 0 ? sent : taken;
      sent += taken;
      if (taken < chunk.length) break;
    }
    return sent;
  }
  private put(fd: number, bytes: Uint8Array, room: { left: number }): number {
    const socket = this.socket(fd);
    if (socket.error !== 0) {
      const { error } = socket;
      socket.error = 0;
      return -error;
    }
    if (socket.wasReset || socket.shut || socket.other === undefined) return -EPIPE;
    const n = Math.min(bytes.length, room.left, this.bufferBytes - socket.other.inbound.length);
    if (n <= 0) return -EAGAIN;
    room.left -= n;
    for (let i = 0; i < n; i++) socket.other.inbound.push(bytes[i]);
    return n;
  }

  recv(fd: number, bytes: Uint8Array, offset: number, length: number): number {
    this.calls.recv++;
    return this.take(fd, bytes.subarray(offset, offset + length), new Uint8Array(0));
  }
  recv2(fd: number, first: Uint8Array, offset: number, length: number, rest: Uint8Array): number {
    this.calls.recv2++;
    return this.take(fd, first.subarray(offset, offset + length), rest);
  }
  private take(fd: number, first: Uint8Array, rest: Uint8Array): number {
    const socket = this.socket(fd);
    if (socket.inbound.length === 0) {
      if (socket.error !== 0) {
        const { error } = socket;
        socket.error = 0;
        return -error;
      }
      return socket.eof || socket.wasReset ? 0 : -EAGAIN;
    }
    const n = Math.min(socket.inbound.length, first.length + rest.length, this.recvMax);
    const bytes = Uint8Array.from(socket.inbound.splice(0, n));
    first.set(bytes.subarray(0, Math.min(n, first.length)));
    if (n > first.length) rest.set(bytes.subarray(first.length));
    return n;
  }

  shutdownWrite(fd: number): number {
    const socket = this.socket(fd);
    socket.shut = true;
    if (socket.other !== undefined) socket.other.eof = true;
    return 0;
  }
  close(fd: number): void {
    const found = this.table.get(fd);
    if (found === undefined) throw new Error(`close of descriptor ${fd}, which is not open (${EBADF})`);
    for (const poller of this.table.values()) {
      if (typeof poller === 'object' && 'interest' in poller && poller.interest.has(fd))
        throw new Error(`descriptor ${fd} is closed while it is polled`);
    }
    this.table.delete(fd);
    if (typeof found !== 'object' || !('inbound' in found)) return;
    const { other } = found;
    if (other === undefined) return;
    other.other = undefined;
    // Unread bytes make it a reset.
    if (found.inbound.length > 0) {
      other.error = ECONNRESET;
      other.wasReset = true;
    } else {
      other.eof = true;
    }
  }

  // --- readiness and doorbells

  pollerOpen(onReady: () => boolean): number {
    return this.add({ onReady, interest: new Map(), keepsAlive: true, closed: false });
  }
  private poller(id: number): FakePoller {
    return this.table.get(id) as FakePoller;
  }
  pollerSet(id: number, fd: number, events: number): void {
    this.calls.pollerSet++;
    const { interest } = this.poller(id);
    if (!this.table.has(fd)) throw new Error(`descriptor ${fd} is polled and not open`);
    if (events < 0) interest.delete(fd);
    else interest.set(fd, events);
  }
  pollerWait(id: number, out: Int32Array): number {
    let found = 0;
    for (const [fd, events] of this.poller(id).interest) {
      const bits = this.ready(fd) & (events | POLL_ERR | POLL_HUP);
      if (bits === 0 || 2 * found + 1 >= out.length) continue;
      out[2 * found] = fd;
      out[2 * found + 1] = bits;
      found++;
    }
    return found;
  }
  pollerRef(id: number, keepsAlive: boolean): void {
    this.poller(id).keepsAlive = keepsAlive;
  }
  pollerClose(id: number): void {
    this.poller(id).closed = true;
    this.table.delete(id);
  }
  yieldCpu(): void {}
  eventOpen(): number {
    return this.add('event');
  }
  eventSignal(fd: number): void {
    this.table.set(fd, 'signalled');
  }
  eventClear(fd: number): boolean {
    const rang = this.table.get(fd) === 'signalled';
    this.table.set(fd, 'event');
    return rang;
  }
}
