// What the calls of one program share: its memory, its objects, the state of MPI, and what becomes of errors.
import type { Group } from '../mpi/group.ts';
import type { Message } from '../mpi/message.ts';
import type { Op } from '../mpi/op.ts';
import type { Runtime } from '../mpi/runtime.ts';
import * as abi from './abi.ts';
import type { Comm } from './comm.ts';
import { fail, MpiError, mpiErrorOf, ProgramEnd, sentenceOf } from './errors.ts';
import { Handles } from './handles.ts';
import type { LinearMemory } from './linear-memory.ts';
import type { Req } from './req.ts';
import { predefined } from './types/construct.ts';
import type { Datatype } from './types/datatype.ts';
import { checkReach, pack, unpack } from './types/pack.ts';
import type { WasmTable } from './webassembly.ts';

/** Whether MPI_Init was called, and MPI_Finalize. */
export type MpiState = 'BEFORE' | 'ACTIVE' | 'FINALIZED';

/** A call of mpi.h: numbers in, an error code (or what it gives) out. */
export type Call = (...args: number[]) => number | undefined;
export type Calls = Record<string, Call>;

/** An operation that MPI_Op_create has made. */
export interface UserOp {
  readonly fn: number;
  readonly commute: boolean;
  /** Its function takes a count of MPI_Count. */
  readonly wide: boolean;
  /** What the library is given for it, by what it combines. */
  readonly byType: Map<Datatype, Op>;
}

export interface Errhandler {
  /** Index in the program's table of functions. */
  readonly fn: number;
  isFreed: boolean;
  uses: number;
}

export interface Keyval {
  readonly owner: 'comm' | 'type' | 'win';
  readonly copy: number;
  readonly remove: number;
  readonly extra: number;
  /** C of MPI-1 has another order of nothing; kept so that a free takes effect when the last attribute is gone. */
  isFreed: boolean;
}

/** A message that a matched probe has taken. */
export interface Matched {
  readonly comm: Comm;
  readonly message: Message;
}

const EMPTY = new Uint8Array(0);
/**
 * Looks in vain after which a call waits a little for something to happen. A program may compute between two looks: where each rank has a processor
 * for itself only what else there is (V8's compilers) gets a turn.
 */
const IDLE_LOOKS = 4096;
const CROWDED_IDLE_LOOKS = 64;
const IDLE_MS = 0.05;

/** What a receive comes into, and what is to be done when it is there. */
export interface Incoming {
  readonly buffer: Uint8Array;
  readonly after: ((bytes: number) => void) | undefined;
}

export class Machine {
  readonly runtime: Runtime;
  memory!: LinearMemory;
  table!: WasmTable;
  malloc!: (bytes: number) => number;
  release!: (at: number) => void;
  /** Combines long doubles: operation, whether they are complex, two addresses, count. */
  longDoubles!: (operation: number, isComplex: number, from: number, into: number, count: number) => void;
  state: MpiState = 'BEFORE';
  threadLevel: number = abi.THREAD_SINGLE;
  readonly comms = new Handles<Comm>(1);
  readonly groups = new Handles<Group>(2);
  readonly types = new Handles<Datatype>(3);
  readonly requests = new Handles<Req>(4);
  readonly ops = new Handles<UserOp>(5);
  readonly infos = new Handles<Map<string, string>>(6);
  readonly errhandlers = new Handles<Errhandler>(7);
  readonly messages = new Handles<Matched>(8);
  readonly keyvals = new Handles<Keyval>(9);
  /** Texts of the codes that the program has made, and their classes. */
  readonly userCodes = new Map<number, { errorClass: number; text: string }>();
  lastUsedCode: number = abi.LAST_CODE;
  /** The communicator of the call that runs: its error handler is the one that counts. */
  private current: Comm | undefined;
  /** The call that runs has counts of MPI_Count. */
  wide = false;
  private lastError: MpiError | undefined;
  callName = '';
  world!: Comm;
  self!: Comm;
  private idleLooks = 0;
  /** What has come out of a function of the program that a call has called: the program goes on nowhere after that. */
  private thrown: unknown;
  /** Where pointers to handles and codes are put for functions of the program. */
  private spare = 0;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
    for (const [handle, type] of predefined()) this.types.fix(handle, type);
    this.types.fix(abi.DATATYPE_NULL, undefined as unknown as Datatype);
  }

  // ---------------------------------------------------------------- objects

  /** The communicator of that handle; errors of this call are errors on it. */
  comm(handle: number): Comm {
    const comm = this.comms.find(handle);
    if (comm === undefined || comm.isFreed)
      return fail('COMM', handle === abi.COMM_NULL ? 'the communicator is MPI_COMM_NULL' : `there is no communicator 0x${hex(handle)}`);
    this.current = comm;
    return comm;
  }

  intra(handle: number): Comm {
    const comm = this.comm(handle);
    return comm.remote === undefined ? comm : fail('COMM', 'the call is not for intercommunicators');
  }

  /** Errors of this call are errors on that communicator. */
  blame(comm: Comm | undefined): void {
    this.current = comm ?? this.current;
  }

  addComm(comm: Comm): number {
    comm.handle = this.comms.add(comm);
    return comm.handle;
  }

  group(handle: number): Group {
    return (
      this.groups.find(handle) ??
      fail('GROUP', handle === abi.GROUP_NULL ? 'the group is MPI_GROUP_NULL' : `there is no group 0x${hex(handle)}`)
    );
  }

  type(handle: number): Datatype {
    const type = this.types.find(handle);
    if (type === undefined)
      return fail('TYPE', handle === abi.DATATYPE_NULL ? 'the datatype is MPI_DATATYPE_NULL' : `there is no datatype 0x${hex(handle)}`);
    return type;
  }

  /** A type that data may be moved with. */
  committed(handle: number): Datatype {
    const type = this.type(handle);
    return type.isCommitted ? type : fail('TYPE', 'the datatype was not committed: MPI_Type_commit');
  }

  addType(type: Datatype): number {
    type.handle = this.types.add(type);
    return type.handle;
  }

  // ---------------------------------------------------------------- arguments

  /** An array of counts, as the call that runs has them. */
  counts(at: number, count: number): number[] {
    return this.wide ? this.memory.longs(at, count) : this.memory.ints(at, count);
  }

  setCount(at: number, value: number): void {
    if (this.wide) this.memory.setLong(at, value);
    else this.memory.setInt(at, value > 0x7fff_ffff ? abi.UNDEFINED : value);
  }

  /** A place in bytes: MPI_Aint, or MPI_Count. */
  setPlace(at: number, value: number): void {
    if (this.wide) this.memory.setLong(at, value);
    else this.memory.setInt(at, value);
  }

  /** Rank of a receiver in the communicator that messages go by. */
  dest(comm: Comm, rank: number): number {
    if (rank === abi.PROC_NULL) return -2;
    const { remote } = comm;
    if (rank < 0 || rank >= comm.peers) fail('RANK', `the rank is ${rank}; expected 0 to ${comm.peers - 1}, or MPI_PROC_NULL`);
    return remote === undefined ? rank : rank + remote.offset;
  }

  source(comm: Comm, rank: number): number {
    return rank === abi.ANY_SOURCE ? -1 : this.dest(comm, rank);
  }

  sendTag(tag: number): number {
    return tag >= 0 ? tag : fail('TAG', `the tag is ${tag}; expected 0 or more`);
  }

  recvTag(tag: number): number {
    if (tag === abi.ANY_TAG) return -1;
    return tag >= 0 ? tag : fail('TAG', `the tag is ${tag}; expected 0 or more, or MPI_ANY_TAG`);
  }

  private bytesOf(count: number, type: Datatype): number {
    return count < 0 ? fail('COUNT', `the count is ${count}; expected 0 or more`) : count * type.size;
  }

  /** What is sent: the memory itself where it is one piece, else a copy. */
  outgoing(at: number, count: number, type: Datatype): Uint8Array {
    const bytes = this.bytesOf(count, type);
    if (bytes === 0) return EMPTY;
    const from = at >>> 0;
    if (type.isContiguous || (count === 1 && type.isDense)) return this.piece(from + type.trueLb, bytes);
    const packed = this.allocate(bytes);
    pack(this.memory, from, count, type, packed);
    return packed;
  }

  /** Where a message comes: the memory itself where it is one piece, else memory beside it, unpacked by `after`. */
  incoming(at: number, count: number, type: Datatype): Incoming {
    const bytes = this.bytesOf(count, type);
    if (bytes === 0) return NOTHING;
    const to = at >>> 0;
    if (type.isContiguous || (count === 1 && type.isDense)) return { buffer: this.piece(to + type.trueLb, bytes), after: undefined };
    checkReach(this.memory, to, count, type);
    const buffer = this.allocate(bytes);
    return {
      buffer,
      after: (received) => {
        unpack(this.memory, to, count, type, received === bytes ? buffer : buffer.subarray(0, received));
      },
    };
  }

  private piece(at: number, bytes: number): Uint8Array {
    return at > 0 ? this.memory.view(at, bytes) : fail('BUFFER', 'the buffer is NULL');
  }

  allocate(bytes: number): Uint8Array<ArrayBuffer> {
    try {
      return new Uint8Array(bytes);
    } catch {
      return fail('NO_MEM', `there is no memory for ${bytes} bytes`);
    }
  }

  /** Memory in the program's own memory, for the time of `use`. */
  withMemory<T>(bytes: number, use: (at: number) => T): T {
    const at = this.malloc(bytes) >>> 0;
    if (at === 0) fail('NO_MEM', `the program has no memory left for ${bytes} bytes`);
    try {
      this.memory.check(at, bytes, 'the memory');
      return use(at);
    } finally {
      this.release(at);
    }
  }

  /** Calls a function of the program. */
  callback(fn: number, ...args: number[]): number {
    const target = fn < this.table.length ? this.table.get(fn) : null;
    if (target === null) return fail('ARG', `there is no function ${fn} in the program`);
    const { wide, callName, current } = this;
    const result = this.within(target, args);
    this.wide = wide;
    this.callName = callName;
    this.current = current;
    return result;
  }

  private within(target: (...args: number[]) => number, args: readonly number[]): number {
    try {
      return target(...args);
    } catch (error) {
      this.thrown ??= error;
      throw error;
    }
  }

  /** A look has found nothing: whoever looks again and again leaves the processor to others now and then. */
  idle(): void {
    if (++this.idleLooks % (this.runtime.isCrowded ? CROWDED_IDLE_LOOKS : IDLE_LOOKS) === 0) this.runtime.progressSync(IDLE_MS);
  }

  // ---------------------------------------------------------------- statuses

  setStatus(at: number, source: number, tag: number, bytes: number, cancelled = false): void {
    if (at === 0) return;
    const { memory } = this;
    memory.setInt(at, source);
    memory.setInt(at + 4, tag);
    memory.setLong(at + 12, bytes);
    memory.setInt(at + 20, cancelled ? 1 : 0);
  }

  emptyStatus(at: number): void {
    this.setStatus(at, abi.ANY_SOURCE, abi.ANY_TAG, 0);
    if (at !== 0) this.memory.setInt(at + 8, 0);
  }

  /** The rank that the program knows a sender by. */
  rankOf(comm: Comm, source: number): number {
    if (source < 0) return abi.PROC_NULL;
    return comm.remote === undefined ? source : source - comm.remote.offset;
  }

  // ---------------------------------------------------------------- errors

  /** A call as it is imported: what it throws becomes an error code, or ends the job, as the error handler says. */
  guard(name: string, call: Call, { early = false, wide = false } = {}): Call {
    const run = (args: number[]): number => {
      this.callName = name;
      this.current = undefined;
      this.wide = wide;
      try {
        if (!early && this.state !== 'ACTIVE') this.outsideOfMpi(name);
        return call(...args) ?? 0;
      } catch (error) {
        return this.raise(error);
      }
    };
    if (!wide) return (...args) => run(args);
    return (...args) => run(args.map(Number));
  }

  private outsideOfMpi(name: string): never {
    const when = this.state === 'BEFORE' ? 'before MPI_Init' : 'after MPI_Finalize';
    throw new ProgramEnd(1, `${name} was called ${when}`);
  }

  /** Hands an error to the error handler of its communicator. Returns the code that the call ends with. */
  raise(error: unknown): number {
    // The library has wrapped what a function of the program threw: its exit(), its crash.
    if (this.thrown !== undefined) throw this.thrown;
    if (error instanceof ProgramEnd) throw error;
    const wrong = mpiErrorOf(error);
    this.lastError = wrong;
    const { current } = this;
    if (current !== undefined) return this.handle(current, wrong.code, wrong.message);
    // Errors that belong to no communicator are those of MPI_COMM_SELF; programs from before MPI 4.0 set the handler of the world.
    const own = this.self === undefined || this.self.errhandler === abi.ERRORS_ARE_FATAL ? this.world : this.self;
    if (own === undefined) throw new ProgramEnd(wrong.code, `${this.callName}: ${wrong.message}`);
    return this.handle(own, wrong.code, wrong.message);
  }

  /** What the last error of its code was about, for MPI_Error_string. */
  note(error: MpiError): void {
    this.lastError = error;
  }

  /** As raise(), of an error that the call has found in a request. */
  raiseCode(code: number, comm?: Comm): number {
    const last = this.lastError;
    this.blame(comm);
    return this.raise(last?.code === code ? last : new MpiError(code, ''));
  }

  handle(comm: Comm, code: number, text: string): number {
    const { errhandler } = comm;
    if (errhandler === abi.ERRORS_RETURN) return code;
    const own = this.errhandlers.find(errhandler);
    if (own === undefined) {
      const sentence = this.textOf(code);
      throw new ProgramEnd(code, `${this.callName}: ${sentence}${text === '' || sentence.includes(text) ? '' : `: ${text}`}`);
    }
    const at = this.spareMemory();
    this.memory.setInt(at, comm.handle);
    this.memory.setInt(at + 4, code);
    this.callback(own.fn, at, at + 4, 0);
    return code;
  }

  /** Eight bytes of the program's memory. */
  spareMemory(): number {
    if (this.spare === 0) this.spare = this.malloc(64) >>> 0;
    this.memory.check(this.spare, 64, 'the memory');
    return this.spare;
  }

  classOf(code: number): number {
    return this.userCodes.get(code)?.errorClass ?? (sentenceOf(code) === undefined ? fail('ARG', `${code} is no error code`) : code);
  }

  /** What MPI_Error_string says. */
  textOf(code: number): string {
    const own = this.userCodes.get(code);
    if (own !== undefined) return own.text;
    const sentence = sentenceOf(code);
    if (sentence === undefined) return fail('ARG', `${code} is no error code`);
    const last = this.lastError;
    return last?.code === code ? `${sentence} (${last.message})` : sentence;
  }
}

const NOTHING: Incoming = { buffer: EMPTY, after: undefined };

export const hex = (value: number): string => (value >>> 0).toString(16);
