// node-rdma: libibverbs for Node.js. Objects that own what the library made, and nothing that decides: no connection management, no
// retries, no buffers of its own. Imports binding.js, cache.js,
// constants.js, node:fs.
import { readdirSync, readFileSync } from 'node:fs';
import { loadAddon } from './binding.js';
import { REQUEST_WORDS } from './constants.js';

export { RegionCache } from './cache.js';
export * from './constants.js';

const { addon, reason } = loadAddon();

/** libibverbs, or this package's own binary, is not there. */
export class RdmaUnavailableError extends Error {
  code = 'ERR_RDMA_UNAVAILABLE';
}

/** Why verbs cannot be used in this process, in one line; undefined when they can. Devices need not be there. */
export function unavailable() {
  return addon === undefined ? reason : (addon.unavailable() ?? undefined);
}

function lib() {
  const why = unavailable();
  if (why !== undefined) throw new RdmaUnavailableError(why);
  return addon;
}

/** The devices of this host; empty where there are none. */
export function devices() {
  return lib().devices();
}

/** Memory of whole pages outside of V8's heap, for buffers that are registered for long. Freed by the collector. */
export function memory(bytes) {
  return new Uint8Array(lib().memory(bytes), 0, bytes);
}

/** How many objects of each kind exist in this thread. */
export function live() {
  return lib().live();
}

export function openDevice(name) {
  return new Device(name, lib().openDevice(name));
}

/** What all objects have in common: a number, and an end. Closing twice is no error; what is closed refuses every other call. */
class Handle {
  #id;
  constructor(id) {
    this.#id = id;
  }
  get id() {
    return this.#id;
  }
  get closed() {
    return this.#id === 0;
  }
  close() {
    if (this.#id === 0) return;
    const id = this.#id;
    this.#id = 0;
    addon.close(id);
  }
  [Symbol.dispose ?? Symbol.for('nodejs.dispose')]() {
    this.close();
  }
}

export class Device extends Handle {
  constructor(name, id) {
    super(id);
    this.name = name;
  }
  query() {
    return addon.queryDevice(this.id);
  }
  queryPort(port) {
    return addon.queryPort(this.id, port);
  }
  /** The GID at that index, or undefined where the table has none. */
  gid(port, index) {
    const gid = new Uint8Array(16);
    if (addon.queryGid(this.id, port, index, gid) !== 0 || gid.every((byte) => byte === 0)) return undefined;
    return gid;
  }
  /** Every GID of a port with its type ("IB/RoCE v1", "RoCE v2") and network interface, as the kernel lists them. */
  gids(port) {
    const { gids: count } = this.queryPort(port);
    const base = `/sys/class/infiniband/${this.name}/ports/${port}`;
    const entry = (folder, index) => {
      try {
        return readFileSync(`${base}/gid_attrs/${folder}/${index}`, 'utf8').trim();
      } catch {
        return '';
      }
    };
    const list = [];
    for (let index = 0; index < count; index++) {
      const gid = this.gid(port, index);
      if (gid !== undefined) list.push({ index, gid, type: entry('types', index), netdev: entry('ndevs', index) });
    }
    return list;
  }
  /** Readable when an event waits; for a poller. Belongs to the device. */
  get asyncFd() {
    return addon.asyncFd(this.id);
  }
  /** The next asynchronous event, acknowledged; undefined when there is none. `of` is a port, or the id of a queue or queue pair. */
  nextEvent() {
    const into = new Int32Array(2);
    return addon.asyncEvent(this.id, into) ? { type: into[0], of: into[1] } : undefined;
  }
  allocDomain() {
    return new Domain(addon.allocPd(this.id));
  }
  createChannel() {
    return new CompletionChannel(addon.createChannel(this.id));
  }
  createCompletionQueue(depth, channel) {
    return new CompletionQueue(addon.createCq(this.id, depth, channel?.id ?? 0));
  }
}

/** A protection domain. */
export class Domain extends Handle {
  /** Registers the memory of a typed array, which is kept alive until the region is closed, and must not be transferred meanwhile. */
  register(view, access) {
    const bytes = view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    return new Region(addon.register(this.id, bytes, access), bytes);
  }
  createQueuePair({
    sendQueue,
    receiveQueue = sendQueue,
    sendRequests = 64,
    receiveRequests = 64,
    sendPieces = 1,
    receivePieces = 1,
    inlineBytes = 0,
    signalAll = false,
  }) {
    return new QueuePair(
      addon.createQp(
        this.id,
        sendQueue.id,
        receiveQueue.id,
        sendRequests,
        receiveRequests,
        sendPieces,
        receivePieces,
        inlineBytes,
        signalAll,
      ),
    );
  }
}

/** Memory that a device may reach. */
export class Region extends Handle {
  constructor({ id, lkey, rkey, address }, bytes) {
    super(id);
    this.lkey = lkey;
    this.rkey = rkey;
    this.address = address;
    this.bytes = bytes;
  }
  close() {
    super.close();
    this.bytes = undefined;
  }
}

export class CompletionChannel extends Handle {
  get fd() {
    return addon.channelFd(this.id);
  }
  /** Takes and acknowledges the events that wait; answers how many. */
  takeEvents() {
    return addon.channelEvents(this.id);
  }
}

export class CompletionQueue extends Handle {
  /** Fills `words` (COMPLETION_WORDS each) and answers how many completions there were. */
  poll(words) {
    return addon.poll(this.id, words);
  }
  /** The channel gets one event at the next completion. What came before is not told: poll once more after this. */
  requestNotify(solicitedOnly = false) {
    addon.notify(this.id, solicitedOnly);
  }
}

/** A reliable-connected queue pair. */
export class QueuePair extends Handle {
  constructor({ id, number, sendRequests, receiveRequests, inlineBytes }) {
    super(id);
    this.number = number;
    this.sendRequests = sendRequests;
    this.receiveRequests = receiveRequests;
    this.inlineBytes = inlineBytes;
  }
  /** Changes what the object names, and nothing else. */
  modify(attributes) {
    addon.modifyQp(this.id, attributes);
  }
  query() {
    return addon.queryQp(this.id);
  }
  /** Posts the first `count` requests of `words`; answers how many the device took. errorOf() says why the next one was refused. */
  postSend(words, count) {
    return addon.postSend(this.id, words, count);
  }
  postReceive(words, count) {
    return addon.postReceive(this.id, words, count);
  }
}

const ERROR_WORD = 9;

/** The error number that a post left in the request at that index. */
export function errorOf(words, index) {
  return words[index * REQUEST_WORDS + ERROR_WORD];
}

/** Writes one send or receive request into `words` at that index. Pieces: [region, offset, bytes]. */
export function writeRequest(words, index, { opcode = 0, flags = 0, id = 0, remoteAddress = 0n, rkey = 0, immediate = 0, pieces = [] }) {
  const at = index * REQUEST_WORDS;
  words.fill(0, at, at + REQUEST_WORDS);
  words[at] = opcode;
  words[at + 1] = flags;
  words[at + 2] = id % 2 ** 32;
  words[at + 3] = Math.floor(id / 2 ** 32);
  words[at + 4] = Number(BigInt.asUintN(32, remoteAddress));
  words[at + 5] = Number(remoteAddress >> 32n);
  words[at + 6] = rkey;
  words[at + 7] = immediate;
  words[at + 8] = pieces.length;
  for (const [i, [region, offset, bytes]] of pieces.entries()) {
    const piece = at + 12 + 5 * i;
    words[piece] = region.id;
    words[piece + 1] = offset % 2 ** 32;
    words[piece + 2] = Math.floor(offset / 2 ** 32);
    words[piece + 3] = bytes;
  }
}

/** Names of the network devices that carry verbs, without libibverbs: what the kernel shows. */
export function devicesOfKernel() {
  try {
    return readdirSync('/sys/class/infiniband');
  } catch {
    return [];
  }
}
