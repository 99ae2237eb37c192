// Listeners and connection attempts over the native part; they hand NativeStreams to the module.
import { constants } from 'node:os';
import { POLL_IN, type SocketOptions } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';
import type { Listener } from './ip-config.ts';
import { NativeStream } from './native-stream.ts';

const BACKLOG = 511;
/** Connections taken in one turn, so that a flood of strangers does not hold up the rails. */
const ACCEPTS_MAX = 16;
/** How long no connection is taken after the kernel had no descriptor or memory for one. */
const ACCEPT_PAUSE_MS = 100;
const { EAGAIN, ECONNABORTED, EINTR } = constants.errno;

/** A listening socket that hands on what it accepts. */
export class NativeListener implements Listener, PollTarget {
  readonly port: number;
  private readonly poller: Poller;
  private readonly onStream: (stream: NativeStream) => void;
  private fd: number;
  private pause: NodeJS.Timeout | undefined = undefined;

  /** Throws as tcpListen does. */
  constructor(poller: Poller, address: string, port: number, options: SocketOptions, onStream: (stream: NativeStream) => void) {
    this.poller = poller;
    this.onStream = onStream;
    this.fd = poller.native.tcpListen(address, port, BACKLOG, options);
    this.port = poller.native.socketName(this.fd).port;
    poller.add(this.fd, this);
    // A rank that listens waits for others, as with node:net.
    poller.keepAlive(true);
  }

  onReady(): void {
    for (let i = 0; i < ACCEPTS_MAX && this.fd >= 0 && this.pause === undefined; i++) {
      const fd = this.poller.native.accept(this.fd);
      if (fd >= 0) this.onStream(new NativeStream(this.poller, fd, false));
      else if (fd === -EAGAIN) return;
      // Anything else but a connection that went away concerns the next one too: without a pause the event loop would spin on it.
      else if (fd !== -ECONNABORTED && fd !== -EINTR) this.rest();
    }
  }

  private rest(): void {
    this.poller.change(this.fd, 0);
    this.pause = setTimeout(() => {
      this.pause = undefined;
      if (this.fd >= 0) this.poller.change(this.fd, POLL_IN);
    }, ACCEPT_PAUSE_MS);
    this.pause.unref();
  }

  async close(): Promise<void> {
    if (this.fd < 0) return;
    clearTimeout(this.pause);
    this.poller.remove(this.fd);
    this.poller.native.close(this.fd);
    this.fd = -1;
  }
}

/** Where a native connection goes, and from where. */
export interface NativeTarget {
  host: string;
  port: number;
  localAddress: string;
}

/**
 * Begins to connect. Where the process may not bind to a device it goes on without, and `onUnbound` hears why: the local address
 * alone then says which interface is meant.
 */
export function connectNative(
  poller: Poller,
  target: NativeTarget,
  options: SocketOptions,
  onUnbound: (text: string) => void,
): NativeStream {
  const { native } = poller;
  const open = (given: SocketOptions): number => native.tcpConnect(target.host, target.port, target.localAddress, given);
  let fd: number;
  try {
    fd = open(options);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EPERM' || options.device === undefined || options.device === '') throw error;
    onUnbound(`connections are not bound to ${options.device}: ${(error as Error).message}`);
    fd = open({ ...options, device: '' });
  }
  return new NativeStream(poller, fd, true);
}
