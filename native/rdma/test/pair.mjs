// Two devices of one host and a queue pair on each, connected to each other: what the tests of this folder work with. Imports node-rdma.
import { ACCESS, COMPLETION_WORDS, openDevice, QP_STATE, REQUEST_WORDS, SEND_FLAG, writeRequest } from '../index.js';

export const PORT = 1;
const ROCE_V2 = 'RoCE v2';
const ALL_ACCESS = ACCESS.LOCAL_WRITE | ACCESS.REMOTE_WRITE | ACCESS.REMOTE_READ;
const POLL_MAX = 32;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One side: device, domain, queue, memory. */
export class End {
  constructor(name, bytes) {
    this.device = openDevice(name);
    this.domain = this.device.allocDomain();
    this.queue = this.device.createCompletionQueue(256);
    this.memory = new Uint8Array(bytes);
    this.region = this.domain.register(this.memory, ALL_ACCESS);
    // The last one of its type is the routable one: the first is made of the interface's hardware address.
    this.gid = this.device.gids(PORT).findLast(({ type }) => type === ROCE_V2);
    this.requests = new Uint32Array(64 * REQUEST_WORDS);
    this.completions = new Uint32Array(POLL_MAX * COMPLETION_WORDS);
  }

  makePair(options = {}) {
    this.pair = this.domain.createQueuePair({ sendQueue: this.queue, sendRequests: 64, receiveRequests: 64, ...options });
    this.pair.modify({
      state: QP_STATE.INIT,
      pkeyIndex: 0,
      port: PORT,
      access: ACCESS.REMOTE_WRITE | ACCESS.REMOTE_READ,
    });
    return this.pair;
  }

  connectTo(other, { timeout = 14, retryCount = 2, rnrRetry = 7, rnrTimer = 12 } = {}) {
    const { mtu } = this.device.queryPort(PORT);
    this.pair.modify({
      state: QP_STATE.RTR,
      mtu,
      remoteNumber: other.pair.number,
      receivePsn: 7,
      readsAsTarget: 4,
      rnrTimer,
      address: { gid: other.gid.gid, gidIndex: this.gid.index, hopLimit: 64, port: PORT },
    });
    this.pair.modify({ state: QP_STATE.RTS, timeout, retryCount, rnrRetry, sendPsn: 7, readsAsInitiator: 4 });
  }

  /** Posts one request; throws when the device refuses it. */
  send(request) {
    writeRequest(this.requests, 0, { flags: SEND_FLAG.SIGNALED, ...request });
    if (this.pair.postSend(this.requests, 1) !== 1) throw new Error(`post refused: ${this.requests[9]}`);
  }

  receive(request) {
    writeRequest(this.requests, 0, request);
    if (this.pair.postReceive(this.requests, 1) !== 1) throw new Error(`post refused: ${this.requests[9]}`);
  }

  /** The next completion; throws when none comes in time. */
  async completion(timeoutMs = 20_000) {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const found = this.queue.poll(this.completions.subarray(0, COMPLETION_WORDS));
      if (found > 0) {
        const [idLow, idHigh, status, opcode, bytes, immediate, number] = this.completions;
        return { id: idHigh * 2 ** 32 + idLow, status, opcode, bytes, immediate, number };
      }
      if (performance.now() > until) throw new Error(`no completion within ${timeoutMs} ms`);
      await pause(1);
    }
  }

  close() {
    for (const part of [this.pair, this.region, this.queue, this.domain, this.device]) part?.close();
  }
}

export function connectedEnds(bytes = 1 << 20, options = {}) {
  const ends = [new End('rxe0', bytes), new End('rxe1', bytes)];
  for (const end of ends) end.makePair(options.pair);
  ends[0].connectTo(ends[1], options.connection);
  ends[1].connectTo(ends[0], options.connection);
  return ends;
}
