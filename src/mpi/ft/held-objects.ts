// Objects in the memory of processes that stand by (`ft_standby_holds`): what such a process holds for the others, and how they ask it. Requests,
// answers and the objects themselves are messages of the service context, received in the background: a process holds what it has while it waits
// to be called in, and afterwards, too.
//
//   request  op u8, 0 u8 × 3, serial u32, bytes u64 as a double, key           tag 0
//   answer   status u8, 0 u8 × 3, serial u32, bytes u64 as a double            tag 1
//   object   its bytes, of a PUT behind the answer READY, of others behind OK  tag 2 + serial
import { freemem } from 'node:os';
import { MultirailError } from '../../errors.ts';
import type { RecvRequest } from '../../pml/records.ts';
import type { Engine } from '../../progress/engine.ts';
import { Iov } from '../../util/iov.ts';
import { BACKGROUND_CTX, listen } from './background.ts';

const TAG = { REQUEST: 0, ANSWER: 1, OBJECT: 2 } as const;
const SERIALS = 2 ** 20;
const HEADER_BYTES = 16;
const KEY_BYTES_MAX = 1024;
/** More objects than that are not held by one process. */
const OBJECTS_MAX = 65_536;

const OP = { PUT: 1, GET: 2, LIST: 3, REMOVE: 4 } as const;
type Op = (typeof OP)[keyof typeof OP];
const STATUS = {
  /** It is done; an object follows where one was asked for. */
  OK: 0,
  /** There is room for the object of a PUT, which is to be sent. */
  READY: 1,
  NOT_THERE: 2,
  /** The answer says how many bytes are held. */
  NO_ROOM: 3,
} as const;

function encode(code: number, serial: number, bytes: number, key = ''): Uint8Array {
  const text = new TextEncoder().encode(key);
  const message = new Uint8Array(HEADER_BYTES + text.length);
  const view = new DataView(message.buffer);
  view.setUint8(0, code);
  view.setUint32(4, serial, true);
  view.setFloat64(8, bytes, true);
  message.set(text, HEADER_BYTES);
  return message;
}

interface Decoded {
  readonly code: number;
  readonly serial: number;
  readonly bytes: number;
  readonly key: string;
}

/** Undefined: it is no message of this protocol. */
function decode(message: Uint8Array): Decoded | undefined {
  if (message.length < HEADER_BYTES) return undefined;
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  const [serial, bytes] = [view.getUint32(4, true), view.getFloat64(8, true)];
  if (serial >= SERIALS || !Number.isSafeInteger(bytes) || bytes < 0) return undefined;
  return { code: view.getUint8(0), serial, bytes, key: new TextDecoder().decode(message.subarray(HEADER_BYTES)) };
}

function hear(engine: Engine, tag: number, bytesMax: number, take: (source: number, message: Decoded) => void): () => void {
  return listen(engine, tag, bytesMax, (source, bytes) => {
    const message = decode(bytes);
    if (message !== undefined) take(source, message);
  });
}

/** Receives an object of so many bytes; `then` is told whether it is whole. */
function receive(engine: Engine, source: number, serial: number, memory: Uint8Array, then: (isWhole: boolean) => void): void {
  const end = ({ error, cancelled, receivedBytes }: RecvRequest): void =>
    then(error === undefined && !cancelled && receivedBytes === memory.length);
  const request = engine.pml.irecvInBackground(source, BACKGROUND_CTX, TAG.OBJECT + serial, new Iov([memory]), end);
  if (request.done) end(request);
}

function send(engine: Engine, to: number, tag: number, parts: readonly Uint8Array[]): void {
  engine.pml.isend(to, BACKGROUND_CTX, tag, new Iov([...parts]));
  engine.schedule();
}

/** What this process holds for the others. */
export class HeldObjects {
  private readonly engine: Engine;
  private readonly bytesMax: number;
  private readonly objects = new Map<string, Uint8Array>();
  /** Of objects that are here or on their way. */
  private bytes = 0;

  /** `bytesMax` 0: half of what is free now, shared among so many processes of the host. */
  constructor(engine: Engine, bytesMax: number, here: number) {
    this.engine = engine;
    this.bytesMax = bytesMax > 0 ? bytesMax : Math.floor(freemem() / 2 / Math.max(1, here));
    hear(engine, TAG.REQUEST, HEADER_BYTES + KEY_BYTES_MAX, (source, request) => this.take(source, request));
  }

  private take(source: number, { code, serial, bytes, key }: Decoded): void {
    switch (code as Op) {
      case OP.PUT:
        return this.put(source, serial, bytes, key);
      case OP.GET:
        return this.give(source, serial, this.objects.get(key));
      case OP.LIST:
        return this.give(source, serial, new TextEncoder().encode(JSON.stringify(this.list(key))));
      case OP.REMOVE:
        this.remove(key);
        return this.answer(source, serial, STATUS.OK, 0);
    }
  }

  private answer(to: number, serial: number, status: number, bytes: number): void {
    send(this.engine, to, TAG.ANSWER, [encode(status, serial, bytes)]);
  }

  private put(source: number, serial: number, bytes: number, key: string): void {
    if (this.bytes + bytes > this.bytesMax || this.objects.size >= OBJECTS_MAX)
      return this.answer(source, serial, STATUS.NO_ROOM, this.bytes);
    this.bytes += bytes;
    const memory = new Uint8Array(bytes);
    receive(this.engine, source, serial, memory, (isWhole) => {
      if (!isWhole) {
        this.bytes -= bytes;
        return;
      }
      this.remove(key);
      this.objects.set(key, memory);
      this.answer(source, serial, STATUS.OK, 0);
    });
    this.answer(source, serial, STATUS.READY, bytes);
  }

  private give(to: number, serial: number, object: Uint8Array | undefined): void {
    if (object === undefined) return this.answer(to, serial, STATUS.NOT_THERE, 0);
    this.answer(to, serial, STATUS.OK, object.length);
    send(this.engine, to, TAG.OBJECT + serial, [object]);
  }

  list(prefix: string): [key: string, bytes: number][] {
    return [...this.objects].filter(([key]) => key.startsWith(prefix)).map(([key, { length }]) => [key, length]);
  }

  get(key: string): Uint8Array | undefined {
    return this.objects.get(key);
  }

  remove(key: string): void {
    this.bytes -= this.objects.get(key)?.length ?? 0;
    this.objects.delete(key);
  }
}

interface Pending {
  readonly number: number;
  readonly op: Op;
  readonly parts: readonly Uint8Array[];
  resolve(object: Uint8Array | undefined): void;
  reject(error: MultirailError): void;
}

/** What the clients of holders know of the job's processes. */
export interface HolderProcesses {
  readonly engine: Engine;
  /** Number of this process. */
  readonly rank: number;
  /** Processes that hold objects and live, as far as is known here: they stand by, or did so once. */
  holders(): number[];
  /** Those of them that stand by now. */
  standbys(): number[];
  readonly deathListeners: Set<(number: number) => void>;
  /** What this process holds itself. */
  readonly held: HeldObjects | undefined;
}

/** Asks the processes that hold objects. All of its promises end when it is closed. */
export class HolderClient {
  private readonly processes: HolderProcesses;
  private readonly pending = new Map<number, Pending>();
  private serial = 0;
  private readonly unlisten: () => void;

  constructor(processes: HolderProcesses) {
    this.processes = processes;
    processes.deathListeners.add(this.onDeath);
    this.unlisten = hear(processes.engine, TAG.ANSWER, HEADER_BYTES, (source, answer) => this.take(source, answer));
  }

  /** Processes that may have an object. */
  get holders(): number[] {
    return this.processes.holders();
  }

  /** Processes that are given objects. */
  get standbys(): number[] {
    return this.processes.standbys();
  }

  /** @throws ERR_STORE: that process has no room for it, or is gone. */
  async put(number: number, key: string, parts: readonly Uint8Array[]): Promise<void> {
    await this.ask(number, OP.PUT, key, parts);
  }

  /** Undefined: it has no object with this key. @throws ERR_STORE: it is gone. */
  async get(number: number, key: string): Promise<Uint8Array | undefined> {
    const { held, rank } = this.processes;
    return number === rank ? held?.get(key) : await this.ask(number, OP.GET, key);
  }

  /** @throws ERR_STORE: it is gone. */
  async list(number: number, prefix: string): Promise<[key: string, bytes: number][]> {
    const { held, rank } = this.processes;
    if (number === rank) return held?.list(prefix) ?? [];
    const text = await this.ask(number, OP.LIST, prefix);
    return JSON.parse(new TextDecoder().decode(text)) as [string, number][];
  }

  /** @throws ERR_STORE: it is gone. */
  async remove(number: number, key: string): Promise<void> {
    const { held, rank } = this.processes;
    if (number === rank) held?.remove(key);
    else await this.ask(number, OP.REMOVE, key);
  }

  close(): void {
    this.processes.deathListeners.delete(this.onDeath);
    this.unlisten();
    for (const [serial, { number }] of this.pending) this.fail(serial, `process ${number} is not asked any more: run() has ended`);
  }

  private ask(number: number, op: Op, key: string, parts: readonly Uint8Array[] = []): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.serial = (this.serial + 1) % SERIALS;
      this.pending.set(this.serial, { number, op, parts, resolve, reject });
      // Its death is told once, and may have been told between two questions of the same call.
      if (!this.processes.holders().includes(number)) return this.gone(this.serial, number);
      const bytes = parts.reduce((sum, { length }) => sum + length, 0);
      send(this.processes.engine, number, TAG.REQUEST, [encode(op, this.serial, bytes, key)]);
    });
  }

  private take(source: number, { code, serial, bytes }: Decoded): void {
    const pending = this.pending.get(serial);
    const { engine } = this.processes;
    if (pending === undefined || pending.number !== source) {
      // It waits for an object that nobody sends any more.
      if (code === STATUS.READY) send(engine, source, TAG.OBJECT + serial, []);
      return;
    }
    const { op, parts, resolve } = pending;
    if (code === STATUS.READY) return send(engine, source, TAG.OBJECT + serial, parts);
    if (code === STATUS.NO_ROOM)
      return this.fail(serial, `process ${source}, which stands by, holds ${bytes} bytes and has no room for more (ft_memory_bytes_max)`);
    if (code === STATUS.NOT_THERE || op === OP.PUT || op === OP.REMOVE) {
      this.pending.delete(serial);
      return resolve(undefined);
    }
    const memory = new Uint8Array(bytes);
    receive(engine, source, serial, memory, (isWhole) => {
      if (!isWhole) return this.gone(serial, source);
      if (this.pending.delete(serial)) resolve(memory);
    });
  }

  private readonly onDeath = (number: number): void => {
    for (const [serial, pending] of this.pending) if (pending.number === number) this.gone(serial, number);
  };

  private gone(serial: number, number: number): void {
    this.fail(serial, `process ${number}, which stood by, is gone`);
  }

  private fail(serial: number, text: string): void {
    const pending = this.pending.get(serial);
    this.pending.delete(serial);
    pending?.reject(new MultirailError('ERR_STORE', text, { rank: this.processes.rank }));
  }
}
