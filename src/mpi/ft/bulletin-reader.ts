// A process's side of the bulletin: a socket of the native poller, which blocking calls look at, too. Where it does not stand, it is
// dialled again every second. What it says, the channel says as well: without it nothing is lost but time.
import { constants } from 'node:os';
import { type BulletinAsk, decodeRecord, RECORD_BYTES } from '../../launch/oob/bulletin.ts';
import type { OobClient } from '../../launch/oob/client.ts';
import type { ExitInfo } from '../../launch/oob/member.ts';
import { POLL_IN, POLL_OUT } from '../../native/binding.ts';
import type { Poller } from '../../native/poller.ts';
import { assert } from '../../util/assert.ts';

/** States of the connection. */
export const BULLETIN_STATES = {
  AWAY: 'No connection, since the server is not there or has ended it.',
  CONNECTING: 'The kernel connects.',
  ASKED: 'The request is sent, and the head of the answer has not come whole.',
  OPEN: 'Records come.',
  CLOSED: 'Over for good.',
} as const;
export type BulletinState = keyof typeof BULLETIN_STATES;

const BULLETIN_EDGES: Readonly<Record<BulletinState, readonly BulletinState[]>> = {
  AWAY: ['CONNECTING', 'CLOSED'],
  CONNECTING: ['ASKED', 'AWAY', 'CLOSED'],
  ASKED: ['OPEN', 'AWAY', 'CLOSED'],
  OPEN: ['AWAY', 'CLOSED'],
  CLOSED: [],
};

const HEAD_END = Buffer.from('\r\n\r\n');
const HEAD_BYTES_MAX = 4096;
const READ_BYTES = 4096;
const REDIAL_MS = 1000;
const { EAGAIN, EINTR } = constants.errno;

export class BulletinReader {
  state: BulletinState = 'AWAY';
  private readonly poller: Poller;
  private readonly ask: () => BulletinAsk | undefined;
  private readonly onExit: (number: number, exit: ExitInfo) => void;
  private readonly into = new Uint8Array(READ_BYTES);
  private fd = -1;
  private asked: BulletinAsk | undefined;
  private rest: Buffer = Buffer.alloc(0);
  private serial = 0;
  private timer: NodeJS.Timeout | undefined;

  /** `ask` gives what to say to the server where it is now; undefined: it is away. `onExit` is called from within the poller. */
  constructor(poller: Poller, ask: () => BulletinAsk | undefined, onExit: (number: number, exit: ExitInfo) => void) {
    this.poller = poller;
    this.ask = ask;
    this.onExit = onExit;
  }

  /** Connects, where it does not yet, and the server is there. */
  dial(): void {
    if (this.state !== 'AWAY') return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asked = this.ask();
    if (this.asked === undefined) return this.later();
    const { host, port } = this.asked;
    try {
      this.fd = this.poller.native.tcpConnect(host, port, '', {});
    } catch {
      return this.later();
    }
    this.move('CONNECTING');
    this.poller.add(this.fd, { onReady: () => this.ready() }, POLL_OUT);
  }

  close(): void {
    if (this.state === 'CLOSED') return;
    this.hangUp();
    clearTimeout(this.timer);
    this.move('CLOSED');
  }

  private move(to: BulletinState): void {
    assert(BULLETIN_EDGES[this.state].includes(to), `bulletin: no edge ${this.state} -> ${to}`);
    this.state = to;
  }

  private later(): void {
    this.timer = setTimeout(() => this.dial(), REDIAL_MS);
    this.timer.unref();
  }

  private hangUp(): void {
    if (this.fd < 0) return;
    this.poller.remove(this.fd);
    this.poller.native.close(this.fd);
    this.fd = -1;
    this.move('AWAY');
  }

  private ended(): void {
    this.hangUp();
    this.later();
  }

  private ready(): void {
    if (this.state === 'CONNECTING') this.connected();
    else this.read();
  }

  private connected(): void {
    const { native } = this.poller;
    const { request } = this.asked as BulletinAsk;
    // The first bytes of a connection find room.
    if (native.connectResult(this.fd) < 0 || native.send(this.fd, request, 0, request.length) !== request.length) return this.ended();
    this.move('ASKED');
    this.rest = Buffer.alloc(0);
    this.serial = 0;
    this.poller.change(this.fd, POLL_IN);
  }

  private read(): void {
    const { into } = this;
    for (;;) {
      const got = this.poller.native.recv(this.fd, into, 0, into.length);
      if (got === -EAGAIN || got === -EINTR) return;
      if (got <= 0) return this.ended();
      this.rest = Buffer.concat([this.rest, into.subarray(0, got)]);
      if (!this.takeHead() || !this.takeRecords()) return this.ended();
      // Whoever was told may have closed it.
      if (this.fd < 0) return;
    }
  }

  /** False: it is no answer to the request. */
  private takeHead(): boolean {
    if (this.state !== 'ASKED') return true;
    const end = this.rest.indexOf(HEAD_END);
    if (end === -1) return this.rest.length <= HEAD_BYTES_MAX;
    if (!/^HTTP\/1\.[01] 200 /.test(this.rest.toString('latin1', 0, 13))) return false;
    this.rest = this.rest.subarray(end + HEAD_END.length);
    this.move('OPEN');
    return true;
  }

  /** False: a record is not the server's. */
  private takeRecords(): boolean {
    while (this.state === 'OPEN' && this.rest.length >= RECORD_BYTES) {
      const record = decodeRecord((this.asked as BulletinAsk).key, ++this.serial, this.rest.subarray(0, RECORD_BYTES));
      if (record === undefined) return false;
      this.rest = this.rest.subarray(RECORD_BYTES);
      this.onExit(record.number, record.exit);
    }
    return true;
  }
}

/** What is needed of the channel. One of a test's own need not have it. */
export type BulletinChannel = Partial<Pick<OobClient, 'askBulletin' | 'ended'>>;

/**
 * The bulletin of that channel, to be dialled. What it tells is told as if the channel had told it, from within `later`, which runs it behind
 * what the rails have brought. Undefined without the native part, without which there are no blocking calls.
 */
export function followBulletin(
  poller: Poller | undefined,
  oob: BulletinChannel | undefined,
  later: (told: () => void) => void,
): BulletinReader | undefined {
  if (poller === undefined || oob === undefined) return undefined;
  const onExit = (number: number, exit: ExitInfo): void => later(() => oob.ended?.(number, exit));
  return new BulletinReader(poller, () => oob.askBulletin?.(), onExit);
}
