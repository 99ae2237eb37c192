// Point to point in a round of the soak: what is sent to whom is drawn by all ranks alike, so that each knows what must come.
// Imports the product's public face, soak-talk, soak-audit, the generator.
import { deepStrictEqual } from 'node:assert';
import { ANY_SOURCE, ANY_TAG, type Communicator, MultirailError, Request } from '../../src/index.ts';
import type { Prng } from '../../src/util/prng.ts';
import { AuditError } from './audit.ts';
import { drawBytes, TAGS_OF_PART, type Talk } from './talk.ts';

/** `tag`: the first of TAGS_OF_PART tags that are this part's own. */
export type MessagePart = (talk: Talk, prng: Prng, tag: number) => Promise<void>;

const PERSISTENT_STARTS = 3;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Drawn {
  source: number;
  dest: number;
  tag: number;
  bytes: number;
  synchronous: boolean;
}

/** Any to any, all at once, to oneself too; receives before the messages or after them; every way to wait. */
const exchange: MessagePart = async (talk, prng, tag) => {
  const { comm, rank, size, own } = talk;
  const drawn: Drawn[] = Array.from({ length: size * prng.between(2, 5) }, () => ({
    source: prng.below(size),
    dest: prng.below(size),
    tag: tag + prng.below(TAGS_OF_PART - 1),
    bytes: drawBytes(prng),
    synchronous: prng.chance(1, 4),
  }));
  const isLate = prng.chance(1, 3);
  const way = prng.below(4);
  const mine = drawn.filter(({ dest }) => dest === rank);
  const receive = () => mine.map(({ source, tag: its, bytes }) => ({ buffer: talk.incoming(bytes), source, tag: its, bytes }));
  const post = (list: ReturnType<typeof receive>) => list.map(({ buffer, source, tag: its }) => comm.irecv(buffer, source, its));
  let expected = isLate ? [] : receive();
  let receives = post(expected);
  const sends: Request[] = [];
  for (const { source, dest, tag: its, bytes, synchronous } of drawn) {
    if (source !== rank) continue;
    const buffer = talk.outgoing(dest, its, bytes);
    const send = () => (synchronous ? comm.issend(buffer, dest, its) : comm.isend(buffer, dest, its));
    // Twice only what leaves at once: nothing will ever receive the other one.
    const isFit = bytes > 32 && dest !== rank && (own.plant !== 'twice' || (!synchronous && bytes <= 4096));
    sends.push(...planted(talk, send, buffer, isFit && rank === 1 && !own.isPlanted));
  }
  if (isLate) {
    await turn();
    expected = receive();
    receives = post(expected);
  }
  // One that nobody sends to is taken back.
  const vain = comm.irecv(talk.incoming(8), ANY_SOURCE, tag + TAGS_OF_PART - 1);
  const all = [...receives, ...sends];
  if (way === 0) await Request.waitAll(all);
  else if (way === 1) for (let left = all.length; left > 0; left--) await Request.waitAny(all);
  else if (way === 2) for (let left = all.length; left > 0; ) left -= (await Request.waitSome(all)).indices.length;
  else while (Request.testAll(all) === undefined) await turn();
  expected.forEach(({ buffer, source, tag: its, bytes }, i) => {
    const status = receives[i].status;
    if (status === undefined) throw new AuditError(`a request that was waited for has no status: ${bytes} bytes of rank ${source}`);
    talk.arrived(buffer, status, source, its, bytes);
  });
  if (!vain.cancel()) throw new AuditError('a receive for which nobody has sent could not be cancelled');
  const code = await vain.promise().then(
    () => 'well',
    (error: unknown) => (error instanceof MultirailError ? error.code : String(error)),
  );
  if (code !== 'ERR_CANCELLED') throw new AuditError(`a cancelled receive ended with ${code}`);
};

/** A mistake, where one is to be made: the audit must find it. */
function planted(talk: Talk, send: () => Request, buffer: Buffer, isHere: boolean): Request[] {
  const { own } = talk;
  if (!isHere) return [send()];
  switch (own.plant) {
    case 'flip':
      own.isPlanted = true;
      buffer[buffer.length - 1] ^= 1;
      return [send()];
    case 'twice':
      own.isPlanted = true;
      return [send(), send()];
    case 'swap':
      own.isPlanted = true;
      buffer.writeUInt32LE(buffer.readUInt32LE(0) + 1, 0);
      return [send()];
    case 'lose':
      own.isPlanted = true;
      return [];
    default:
      return [send()];
  }
}

/** All to one, which takes them as they come: by wildcards, by probes, as a stream. */
const fanIn: MessagePart = async (talk, prng, tag) => {
  const { comm, rank, size } = talk;
  const root = prng.below(size);
  const lengths = Array.from({ length: size }, () => Array.from({ length: prng.between(1, 4) }, () => drawBytes(prng)));
  const way = prng.below(5);
  if (rank !== root) {
    await Promise.all(lengths[rank].map((bytes) => comm.send(talk.outgoing(root, tag, bytes), root, tag)));
    return;
  }
  const next = new Array<number>(size).fill(0);
  const due = (source: number): number => {
    const bytes = lengths[source]?.[next[source]++];
    if (bytes === undefined) throw new AuditError(`one message more than it has sent came of rank ${source}, tag ${tag}`);
    return bytes;
  };
  const total = lengths.reduce((sum, list, source) => (source === root ? sum : sum + list.length), 0);
  const longest = Math.max(...lengths.flat());
  const taken = talk.incoming(longest);
  if (way === 0) {
    let left = total;
    if (left === 0) return;
    for await (const { data, status } of comm.messages(ANY_SOURCE, tag)) {
      talk.arrived(Buffer.from(data.buffer, data.byteOffset, data.length), status, status.source, tag, due(status.source));
      if (--left === 0) break;
    }
    return;
  }
  for (let left = total; left > 0; left--) {
    if (way === 1) {
      const status = await comm.recv(taken, ANY_SOURCE, tag);
      talk.arrived(taken, status, status.source, tag, due(status.source));
    } else if (way === 2) {
      const { source, bytes } = await comm.probe(ANY_SOURCE, tag);
      talk.arrived(taken, await comm.recv(taken.subarray(0, bytes), source, tag), source, tag, due(source));
    } else if (way === 3) {
      const message = await comm.mprobe(ANY_SOURCE, tag);
      talk.arrived(taken, await message.recv(taken), message.status.source, tag, due(message.status.source));
    } else {
      let message = comm.improbe(ANY_SOURCE, tag);
      for (; message === undefined; message = comm.improbe(ANY_SOURCE, tag)) await turn();
      talk.arrived(taken, await message.recv(taken), message.status.source, tag, due(message.status.source));
    }
  }
};

const right = ({ rank, size }: Talk, by: number) => (rank + by) % size;
const left = ({ rank, size }: Talk, by: number) => (rank + size - by) % size;

/** Round the ring, a send and a receive at once. */
const ring: MessagePart = async (talk, prng, tag) => {
  const { comm } = talk;
  const by = prng.below(talk.size);
  for (let step = prng.between(1, 4); step > 0; step--) {
    const bytes = drawBytes(prng);
    const [to, from] = [right(talk, by), left(talk, by)];
    const out = talk.outgoing(to, tag, bytes);
    if (prng.chance(1, 3)) {
      talk.arrived(out, await comm.sendrecvReplace(out, to, tag, from, tag), from, tag, bytes);
    } else {
      const into = talk.incoming(bytes);
      talk.arrived(into, await comm.sendrecv(out, to, tag, into, from, tag), from, tag, bytes);
    }
  }
};

/** Persistent requests, started again and again. */
const persistent: MessagePart = async (talk, prng, tag) => {
  const { comm } = talk;
  const by = prng.below(talk.size);
  const bytes = drawBytes(prng);
  const [to, from] = [right(talk, by), left(talk, by)];
  const [out, into] = [talk.incoming(bytes), talk.incoming(bytes)];
  const send = prng.chance(1, 2) ? comm.ssendInit(out, to, tag) : comm.sendInit(out, to, tag);
  const receive = comm.recvInit(into, from, tag);
  for (let start = 0; start < PERSISTENT_STARTS; start++) {
    talk.refill(out, to, tag);
    Request.startAll([receive, send]);
    const [status] = await Request.waitAll([receive, send]);
    talk.arrived(into, status, from, tag, bytes);
  }
};

/** Values by structured clone, with large memory beside them. */
const objects: MessagePart = async (talk, prng, tag) => {
  const { comm, round } = talk;
  const by = prng.below(talk.size);
  const [to, from] = [right(talk, by), left(talk, by)];
  for (let i = prng.between(1, 3); i > 0; i--) {
    const length = prng.pick([0, 3, 1000, 30_000]);
    const value = (source: number, dest: number, number: number) => ({
      name: [round, source, dest, number, i],
      map: new Map([['length', length]]),
      numbers: Float64Array.from({ length }, (_, k) => k * (source + 1) + number),
    });
    const sent = comm.sendObject(value(talk.rank, to, talk.ledger.nextSent(to, tag)), to, tag);
    talk.noteSent(to);
    const { data, status } = await comm.recvObject(from, tag);
    deepStrictEqual(data, value(from, talk.rank, talk.ledger.nextReceived(from, tag)), `the value of rank ${from} is another`);
    if (status.source !== from || status.tag !== tag) throw new AuditError(`a value of rank ${status.source} with tag ${status.tag} came`);
    talk.noteReceived(from, status.bytes + length * 8);
    await sent;
  }
};

/** Two by two, with the event loop at rest, while a collective that was begun before goes on. */
const blocking: MessagePart = async (talk, prng, tag) => {
  const { comm, rank, size } = talk;
  const begun = [new Int32Array(500), new Int32Array(500)];
  const requests = begun.map((result, i) => comm.iallreduce(new Int32Array(500).fill(rank + i), result));
  const peer = rank ^ 1;
  const isSynchronous = prng.chance(1, 3);
  const isProbed = prng.chance(1, 3);
  for (let i = prng.between(1, 3); i > 0; i--) {
    const [bytes, back] = [drawBytes(prng), drawBytes(prng)];
    const all = drawBytes(prng);
    if (peer < size) {
      if (rank < peer) {
        sendSync(comm, talk.outgoing(peer, tag, bytes), peer, tag, isSynchronous);
        receiveSync(talk, peer, tag, back, isProbed);
      } else {
        receiveSync(talk, peer, tag, bytes, isProbed);
        sendSync(comm, talk.outgoing(peer, tag, back), peer, tag, isSynchronous);
      }
    }
    const [to, from] = [right(talk, 1), left(talk, 1)];
    const into = talk.incoming(all);
    if (i % 2 === 0) {
      talk.arrived(into, comm.sendrecvSync(talk.outgoing(to, tag, all), to, tag, into, from, tag), from, tag, all);
    } else {
      const receive = comm.irecv(into, from, tag);
      const [status] = Request.waitAllSync([receive, comm.isend(talk.outgoing(to, tag, all), to, tag)]);
      talk.arrived(into, status, from, tag, all);
    }
  }
  for (const [i, request] of requests.entries()) {
    request.waitSync();
    const due = (size * (size - 1)) / 2 + i * size;
    if (begun[i].some((value) => value !== due))
      throw new AuditError(`an allreduce beside blocking calls gave ${begun[i][0]}, due is ${due}`);
    talk.own.collectives++;
  }
  await turn();
};

function sendSync(comm: Communicator, buffer: Buffer, dest: number, tag: number, isSynchronous: boolean): void {
  if (isSynchronous) comm.ssendSync(buffer, dest, tag);
  else comm.sendSync(buffer, dest, tag);
}

function receiveSync(talk: Talk, source: number, tag: number, bytes: number, isProbed: boolean): void {
  const { comm } = talk;
  if (isProbed) {
    const found = comm.probeSync(source, tag);
    if (found.bytes !== bytes) throw new AuditError(`probed ${found.bytes} bytes of rank ${source} with tag ${tag}, due are ${bytes}`);
  }
  const into = talk.incoming(bytes);
  talk.arrived(into, comm.recvSync(into, source, tag), source, tag, bytes);
}

/** Any tag of any rank: only when nothing else is under way. */
const anything: MessagePart = async (talk, prng, tag) => {
  const { comm, rank, size } = talk;
  const drawn = Array.from({ length: prng.between(1, 2 * size) }, () => ({
    source: prng.below(size),
    tag: tag + prng.below(TAGS_OF_PART),
    bytes: prng.below(2000),
  }));
  const root = prng.below(size);
  await comm.barrier();
  const mine = drawn.filter(({ source }) => source === rank);
  const sends = mine.map(({ tag: its, bytes }) => comm.isend(talk.outgoing(root, its, bytes), root, its));
  if (rank === root) {
    const into = talk.incoming(2000);
    for (let count = drawn.length; count > 0; count--) {
      const status = await comm.recv(into, ANY_SOURCE, ANY_TAG);
      // Those of one rank come in their order, whatever their tags are.
      const at = drawn.findIndex(({ source }) => source === status.source);
      if (at < 0) throw new AuditError(`a message too many of rank ${status.source}, tag ${status.tag}`);
      const [{ source, tag: its, bytes }] = drawn.splice(at, 1);
      talk.arrived(into, status, source, its, bytes);
    }
  }
  await Request.waitAll(sends);
  await comm.barrier();
};

/** Those that call no collective and do not block may go on at the same time. */
export const MESSAGE_PARTS: Readonly<Record<string, MessagePart>> = { exchange, fanIn, ring, persistent, objects };
export const LONE_PARTS: Readonly<Record<string, MessagePart>> = { anything };
export const BLOCKING_PARTS: Readonly<Record<string, MessagePart>> = { blocking };
