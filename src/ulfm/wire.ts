// The service messages of failures, revocation and agreement: layout, encode, decode. Little-endian, a header of 28 bytes, then what the
// type has. They travel as messages of the PML on the service context, so nothing here is repeated, ordered or checksummed. Every field is
// bounded before anything is made of it. docs/internals/ULFM.md states the same layouts, with golden bytes.
import { MultirailError } from '../errors.ts';
import { Bitmap, bitmapBytes } from './bitmap.ts';
import { IDS, PROCESSES_MAX } from './limits.ts';
import { Gathered, type Lock, OPERATIONS_ALL, replaces, type Succession, type Value } from './values.ts';

export const SERVICE_VERSION = 1;

/** Types of service messages. A number is never used for another one; one that is not known here is counted and dropped. */
export const SERVICE = {
  FAILED: 1,
  REVOKE: 2,
  REVOKED: 3,
  STATE: 4,
  PROPOSE: 5,
  ACK: 6,
  DECIDE: 7,
  CALLED_IN: 8,
} as const;
export type ServiceType = (typeof SERVICE)[keyof typeof SERVICE];

export const SERVICE_NAMES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(SERVICE).map(([name, type]) => [type, name]),
);

/** Series keep apart what no order binds: the program's own calls, and the saves and recoveries of a run. */
export const SERIES = { PROGRAM: 0, RECOVERY: 1 } as const;
export type SeriesNumber = (typeof SERIES)[keyof typeof SERIES];

export const SERVICE_FLAG = {
  /** Its sender passes the tree by: this goes straight to the leader, or comes straight from it. */
  DIRECT: 1,
  /** STATE: a lock follows. */
  LOCK: 2,
} as const;

export const HEADER_BYTES = 28;
export const OFFSET = {
  version: 0,
  type: 1,
  series: 2,
  flags: 3,
  id: 4,
  q: 8,
  generation: 12,
  view: 16,
  from: 20,
  bodyBytes: 24,
} as const;

const FAILED_BYTES = 20;
const CALL_BYTES = 16;
const MEMBER_BYTES = 4;
const CONTRIBUTION_BYTES = 8;
const LOCK_BYTES = 8;
const VALUE_BYTES = 20;
const SUCCESSION_BYTES = 8;

/** The header of each message. What a type does not use is zero. */
export interface ServiceHeader {
  type: number;
  series: number;
  isDirect: boolean;
  hasLock: boolean;
  /** Id of the communicator. */
  id: number;
  /** Which agreement of the series. */
  q: number;
  generation: number;
  /** Rank of the leader that the message is for, or comes from. */
  view: number;
  /** Rank of the sender in the communicator; its process number in FAILED and CALLED_IN. */
  from: number;
  bodyBytes: number;
}

/** Says that a process is dead. */
export interface FailedMessage {
  readonly type: typeof SERVICE.FAILED;
  readonly from: number;
  readonly serial: number;
  readonly number: number;
  readonly incarnation: number;
  readonly evidence: number;
}

export interface RevokeMessage {
  readonly type: typeof SERVICE.REVOKE | typeof SERVICE.REVOKED;
  readonly id: number;
  readonly from: number;
}

/** Tells a process that stands by that it is to be a member of a communicator, in the place of a dead one. */
export interface CalledInMessage {
  readonly type: typeof SERVICE.CALLED_IN;
  /** The communicator that has come into being. */
  readonly id: number;
  /** Process number of the sender. */
  readonly from: number;
  /** The communicator that was repaired, and which of its agreements decided it. */
  readonly origin: number;
  readonly q: number;
  /** Recovery epoch of the new one. */
  readonly epoch: number;
  /** Process numbers of its members, by rank. */
  readonly members: readonly number[];
  /** Ranks of those that are called in. */
  readonly newcomers: Bitmap;
}

/** What every message of an agreement says: which one, of which generation, and whose view it belongs to. */
export interface AgreementPlace {
  readonly series: SeriesNumber;
  readonly isDirect: boolean;
  readonly id: number;
  readonly q: number;
  readonly generation: number;
  readonly view: number;
  readonly from: number;
}

export interface StateMessage extends AgreementPlace {
  readonly type: typeof SERVICE.STATE;
  readonly gathered: Gathered;
}

export interface ProposeMessage extends AgreementPlace {
  readonly type: typeof SERVICE.PROPOSE;
  readonly value: Value;
}

export interface AckMessage extends AgreementPlace {
  readonly type: typeof SERVICE.ACK;
  readonly covers: Bitmap;
}

export interface DecideMessage extends AgreementPlace {
  readonly type: typeof SERVICE.DECIDE;
  readonly value: Value;
}

export type AgreementMessage = StateMessage | ProposeMessage | AckMessage | DecideMessage;
export type ServiceMessage = FailedMessage | RevokeMessage | CalledInMessage | AgreementMessage;

// ---------------------------------------------------------------- encode

function valueBytes({ failed, successions }: Value): number {
  return VALUE_BYTES + 2 * failed.bytes.length + SUCCESSION_BYTES * successions.length;
}

function bodyBytesOf(message: ServiceMessage): number {
  switch (message.type) {
    case SERVICE.FAILED:
      return FAILED_BYTES;
    case SERVICE.REVOKE:
    case SERVICE.REVOKED:
      return 0;
    case SERVICE.CALLED_IN:
      return CALL_BYTES + MEMBER_BYTES * message.members.length + message.newcomers.bytes.length;
    case SERVICE.STATE: {
      const { covers, lock } = message.gathered;
      return CONTRIBUTION_BYTES + 3 * covers.bytes.length + (lock === undefined ? 0 : LOCK_BYTES + valueBytes(lock.value));
    }
    case SERVICE.ACK:
      return message.covers.bytes.length;
    case SERVICE.PROPOSE:
    case SERVICE.DECIDE:
      return valueBytes(message.value);
  }
}

function putBitmap(bytes: Uint8Array, at: number, set: Bitmap): number {
  bytes.set(set.bytes, at);
  return at + set.bytes.length;
}

function putValue(bytes: Uint8Array, view: DataView, start: number, value: Value): void {
  view.setUint8(start, value.operations);
  view.setUint32(start + 4, value.generation, true);
  view.setUint32(start + 8, value.flag, true);
  view.setUint32(start + 12, value.newId, true);
  view.setUint32(start + 16, value.successions.length, true);
  let at = putBitmap(bytes, start + VALUE_BYTES, value.failed);
  at = putBitmap(bytes, at, value.acked);
  for (const { rank, number } of value.successions) {
    view.setUint32(at, rank, true);
    view.setUint32(at + 4, number, true);
    at += SUCCESSION_BYTES;
  }
}

/** The longest message in a job of so many processes. */
export function serviceBytesMax(processes: number): number {
  const set = bitmapBytes(processes);
  const value = VALUE_BYTES + 2 * set + SUCCESSION_BYTES * processes;
  const call = CALL_BYTES + MEMBER_BYTES * processes + set;
  return HEADER_BYTES + Math.max(FAILED_BYTES, call, CONTRIBUTION_BYTES + 3 * set + LOCK_BYTES + value);
}

export function encodeService(message: ServiceMessage): Uint8Array {
  const bodyBytes = bodyBytesOf(message);
  const bytes = new Uint8Array(HEADER_BYTES + bodyBytes);
  const view = new DataView(bytes.buffer);
  view.setUint8(OFFSET.version, SERVICE_VERSION);
  view.setUint8(OFFSET.type, message.type);
  view.setUint32(OFFSET.from, message.from, true);
  view.setUint32(OFFSET.bodyBytes, bodyBytes, true);
  if (message.type === SERVICE.FAILED) {
    view.setUint32(HEADER_BYTES, message.serial, true);
    view.setUint32(HEADER_BYTES + 4, message.number, true);
    view.setFloat64(HEADER_BYTES + 8, message.incarnation, true);
    view.setUint8(HEADER_BYTES + 16, message.evidence);
    return bytes;
  }
  view.setUint32(OFFSET.id, message.id, true);
  if (message.type === SERVICE.CALLED_IN) {
    const { origin, q, epoch, members, newcomers } = message;
    for (const [i, field] of [origin, q, epoch, members.length, ...members].entries()) view.setUint32(HEADER_BYTES + 4 * i, field, true);
    putBitmap(bytes, HEADER_BYTES + CALL_BYTES + MEMBER_BYTES * members.length, newcomers);
    return bytes;
  }
  if (!('series' in message)) return bytes;
  const lock = message.type === SERVICE.STATE ? message.gathered.lock : undefined;
  view.setUint8(OFFSET.series, message.series);
  view.setUint8(OFFSET.flags, (message.isDirect ? SERVICE_FLAG.DIRECT : 0) | (lock === undefined ? 0 : SERVICE_FLAG.LOCK));
  view.setUint32(OFFSET.q, message.q, true);
  view.setUint32(OFFSET.generation, message.generation, true);
  view.setUint32(OFFSET.view, message.view, true);
  if (message.type === SERVICE.ACK) putBitmap(bytes, HEADER_BYTES, message.covers);
  else if (message.type === SERVICE.STATE) {
    const { operations, flag, covers, dead, acked } = message.gathered;
    view.setUint8(HEADER_BYTES, operations);
    view.setUint32(HEADER_BYTES + 4, flag, true);
    let at = putBitmap(bytes, HEADER_BYTES + CONTRIBUTION_BYTES, covers);
    at = putBitmap(bytes, at, dead);
    at = putBitmap(bytes, at, acked);
    if (lock !== undefined) {
      view.setUint32(at, lock.generation, true);
      view.setUint32(at + 4, lock.rank, true);
      putValue(bytes, view, at + LOCK_BYTES, lock.value);
    }
  } else putValue(bytes, view, HEADER_BYTES, message.value);
  return bytes;
}

// ---------------------------------------------------------------- decode

function refuse(text: string): never {
  throw new MultirailError('ERR_PROTOCOL', text);
}

/** How a sentence names a message of that type. */
function described(type: number): string {
  return `${type === SERVICE.ACK ? 'an' : 'a'} ${SERVICE_NAMES[type] ?? `service message of type ${type}`}`;
}

function mustBeZero(bytes: Uint8Array, from: number, to: number, name: string): void {
  for (let at = from; at < to; at++) if (bytes[at] !== 0) refuse(`${name} with ${bytes[at]} at byte ${at}, which is always 0`);
}

/** What can be read without knowing the communicator. A type that is not known is handed on: nothing behind the version is looked at then. */
export function decodeServiceHeader(bytes: Uint8Array): ServiceHeader {
  if (bytes.length < HEADER_BYTES) refuse(`a service message of ${bytes.length} bytes: its header has ${HEADER_BYTES}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint8(OFFSET.version);
  if (version !== SERVICE_VERSION) refuse(`a service message of version ${version}, expected ${SERVICE_VERSION}`);
  const flags = view.getUint8(OFFSET.flags);
  const header: ServiceHeader = {
    type: view.getUint8(OFFSET.type),
    series: view.getUint8(OFFSET.series),
    isDirect: (flags & SERVICE_FLAG.DIRECT) !== 0,
    hasLock: (flags & SERVICE_FLAG.LOCK) !== 0,
    id: view.getUint32(OFFSET.id, true),
    q: view.getUint32(OFFSET.q, true),
    generation: view.getUint32(OFFSET.generation, true),
    view: view.getUint32(OFFSET.view, true),
    from: view.getUint32(OFFSET.from, true),
    bodyBytes: view.getUint32(OFFSET.bodyBytes, true),
  };
  if (SERVICE_NAMES[header.type] === undefined) return header;
  const name = described(header.type);
  if (header.bodyBytes !== bytes.length - HEADER_BYTES)
    refuse(`${name} that says ${header.bodyBytes} bytes behind its header, and has ${bytes.length - HEADER_BYTES}`);
  if (header.from >= PROCESSES_MAX) refuse(`${name} of ${header.from}, expected a number below ${PROCESSES_MAX}`);
  if (header.id >= IDS) refuse(`${name} of communicator ${header.id}, expected an id below 2^30`);
  if (header.type === SERVICE.FAILED) mustBeZero(bytes, OFFSET.id, OFFSET.q, name);
  if (header.type <= SERVICE.REVOKED || header.type === SERVICE.CALLED_IN) {
    mustBeZero(bytes, OFFSET.series, OFFSET.id, name);
    mustBeZero(bytes, OFFSET.q, OFFSET.from, name);
    return header;
  }
  const allowed = header.type === SERVICE.STATE ? SERVICE_FLAG.DIRECT | SERVICE_FLAG.LOCK : SERVICE_FLAG.DIRECT;
  if ((flags & ~allowed) !== 0) refuse(`${name} with flags ${flags}`);
  if (header.series > SERIES.RECOVERY) refuse(`${name} of series ${header.series}, expected 0 or 1`);
  return header;
}

/** Reads one body from front to back, and knows where it ends. */
class Reader {
  private at = HEADER_BYTES;
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  private readonly name: string;
  private readonly size: number;

  constructor(bytes: Uint8Array, name: string, size: number) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.name = name;
    this.size = size;
  }

  private take(count: number): number {
    const { at } = this;
    if (count > this.bytes.length - at)
      refuse(`${this.name} that ends at byte ${this.bytes.length}, where ${count} more are expected from ${at} on`);
    this.at += count;
    return at;
  }

  u8(): number {
    return this.view.getUint8(this.take(1));
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  f64(): number {
    return this.view.getFloat64(this.take(8), true);
  }

  zeros(count: number): void {
    const at = this.take(count);
    mustBeZero(this.bytes, at, at + count, this.name);
  }

  rank(what: string): number {
    const rank = this.u32();
    if (rank >= this.size) refuse(`${this.name} that names rank ${rank} as ${what}, of ${this.size}`);
    return rank;
  }

  bitmap(what: string, size = this.size): Bitmap {
    const count = bitmapBytes(size);
    const at = this.take(count);
    const set = new Bitmap(size, this.bytes.slice(at, at + count));
    if (set.isOverfull) refuse(`${this.name} whose set of ${what} goes beyond rank ${size - 1}`);
    return set;
  }

  operations(): number {
    const operations = this.u8();
    if (operations === 0 || operations > OPERATIONS_ALL) refuse(`${this.name} of operation ${operations}`);
    return operations;
  }

  value(generationMax: number): Value {
    const operations = this.operations();
    this.zeros(3);
    const generation = this.u32();
    if (generation > generationMax) refuse(`${this.name} of generation ${generationMax} with a value of ${generation}`);
    const flag = this.u32();
    const newId = this.u32();
    if (newId >= IDS) refuse(`${this.name} that makes communicator ${newId}, expected an id below 2^30`);
    const count = this.u32();
    const failed = this.bitmap('the failed');
    const acked = this.bitmap('the acknowledged');
    if (count > 0 && (!replaces(operations) || count > failed.count))
      refuse(`${this.name} with ${count} successors of ${failed.count} failed members`);
    const successions: Succession[] = [];
    for (let last = -1; successions.length < count; ) {
      const rank = this.rank('replaced');
      const number = this.u32();
      if (rank <= last || !failed.has(rank)) refuse(`${this.name} with a successor of rank ${rank}, which is not the next failed one`);
      if (number >= PROCESSES_MAX) refuse(`${this.name} with process ${number}, expected a number below ${PROCESSES_MAX}`);
      successions.push({ rank, number });
      last = rank;
    }
    return { operations, generation, flag, newId, failed, acked, successions };
  }

  /** Process numbers by rank, the sender's among them. */
  members(from: number): number[] {
    const count = this.u32();
    if (count === 0 || count > PROCESSES_MAX) refuse(`${this.name} of ${count} members, expected 1 to ${PROCESSES_MAX}`);
    const members: number[] = [];
    for (let i = 0; i < count; i++) members.push(this.u32());
    const wrong = members.find((number) => number >= PROCESSES_MAX);
    if (wrong !== undefined) refuse(`${this.name} with process ${wrong}, expected a number below ${PROCESSES_MAX}`);
    if (new Set(members).size !== count) refuse(`${this.name} that names a member twice`);
    if (!members.includes(from)) refuse(`${this.name} of process ${from}, which is not a member`);
    return members;
  }

  lock(generationMax: number): Lock {
    const generation = this.u32();
    if (generation > generationMax) refuse(`${this.name} of generation ${generationMax} with a lock of ${generation}`);
    return { generation, rank: this.rank('the leader of a lock'), value: this.value(generation) };
  }

  end(): void {
    if (this.at !== this.bytes.length) refuse(`${this.name} of ${this.bytes.length} bytes, expected ${this.at}`);
  }
}

/**
 * Reads what the header announces. `size`: of the communicator, which the caller has looked up (FAILED and CALLED_IN have none: any). Throws ERR_PROTOCOL
 * for whatever no sound peer sends; what it returns holds no memory of `bytes`.
 */
export function decodeServiceBody(header: ServiceHeader, bytes: Uint8Array, size: number): ServiceMessage {
  const { type, from, id, q, generation, view, isDirect } = header;
  const name = described(type);
  const reader = new Reader(bytes, name, size);
  if (type === SERVICE.FAILED) {
    const serial = reader.u32();
    const number = reader.u32();
    const incarnation = reader.f64();
    const evidence = reader.u8();
    reader.zeros(3);
    reader.end();
    if (number >= PROCESSES_MAX) refuse(`${name} about process ${number}, expected a number below ${PROCESSES_MAX}`);
    if (!Number.isSafeInteger(incarnation) || incarnation < 0) refuse(`${name} about incarnation ${incarnation}`);
    return { type, from, serial, number, incarnation, evidence };
  }
  if (type === SERVICE.CALLED_IN) {
    const origin = reader.u32();
    if (origin >= IDS) refuse(`${name} that replaces communicator ${origin}, expected an id below 2^30`);
    const call = { origin, q: reader.u32(), epoch: reader.u32(), members: reader.members(from) };
    const newcomers = reader.bitmap('those that are called in', call.members.length);
    reader.end();
    if (newcomers.count === 0 || newcomers.count === call.members.length)
      refuse(`${name} that calls ${newcomers.count} of ${call.members.length} members in`);
    return { type, id, from, ...call, newcomers };
  }
  if (from >= size) refuse(`${name} from rank ${from} of ${size}`);
  if (type === SERVICE.REVOKE || type === SERVICE.REVOKED) {
    reader.end();
    return { type, id, from };
  }
  if (view >= size) refuse(`${name} of the view of rank ${view} of ${size}`);
  const place = { series: header.series as SeriesNumber, isDirect, id, q, generation, view, from };
  switch (type) {
    case SERVICE.STATE: {
      const gathered = new Gathered(size);
      gathered.operations = reader.operations();
      reader.zeros(3);
      gathered.flag = reader.u32();
      gathered.covers.addAll(reader.bitmap('those that it covers'));
      gathered.dead.addAll(reader.bitmap('the dead'));
      gathered.acked.keepOnly(reader.bitmap('the acknowledged'));
      if (header.hasLock) gathered.lock = reader.lock(generation);
      reader.end();
      if (!gathered.covers.has(from)) refuse(`${name} that does not cover its sender, rank ${from}`);
      return { type, ...place, gathered };
    }
    case SERVICE.ACK: {
      const covers = reader.bitmap('those that it covers');
      reader.end();
      if (!covers.has(from)) refuse(`${name} that does not cover its sender, rank ${from}`);
      return { type, ...place, covers };
    }
    case SERVICE.PROPOSE:
    case SERVICE.DECIDE: {
      const value = reader.value(generation);
      reader.end();
      return { type, ...place, value };
    }
    default:
      throw new MultirailError('ERR_INTERNAL', `${name} has no body that is known here`);
  }
}
