// The single copy: reading the other process's memory in place (process_vm_readv) instead of through the ring: whether the kernel permits
// it, whether it pays here, and the reads that are under way. `plan()` needs the same answer on both sides, so each publishes what it knows
// of the kernel's rules (`readFacts`). Every connection tries the permission: each side reads a proof from the other's private memory and
// writes the outcome into the segment. A side that cannot be read offers no windows (`register` returns undefined), and its messages use
// the ring.
import { readFileSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import type { NativeBinding } from '../../native/binding.ts';
import { type CompletionStatus, DELIVERED, type OneSidedOp, type RailReason, REFUSED } from '../btl.ts';
import { AttachedMemory, type Place } from './exported-memory.ts';
import { PROOF_BYTES, type Segment } from './segment.ts';

/** Read in one turn at most, so that other rails are served, and so that a fence finds reads that are not done. */
export const READ_BYTES_PER_TURN = 512 * 1024;
const SAMPLE_BYTES = 64 * 1024;
/**
 * The sample is read in pieces, each for the first time, and the fastest of each kind counts: one piece in which the processor was taken
 * away would decide for the life of the process.
 */
const SAMPLE_PIECES = 4;
const PAGE_BYTES = 4096;
/** The ring has to be worse by this factor: it needs no permission and no second process's memory. */
const RING_WORSE_FACTOR = 1.15;
const CAP_SYS_PTRACE = 19;
const EPERM = -constants.errno.EPERM;
const ENOSYS = -constants.errno.ENOSYS;

export type SingleCopyMode = 'auto' | 'always' | 'never';

// ---------------------------------------------------------------- may it?

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Whether this process may expect to read the memory of another one of its user: yama's rule, and that nothing blocks the call. */
export function mayReadOthers(native: NativeBinding): boolean {
  const probe = new Uint8Array(PAGE_BYTES).fill(7);
  const into = new Uint8Array(PAGE_BYTES);
  if (native.processRead(process.pid, native.addressOf(probe), into, 0, PROOF_BYTES) !== PROOF_BYTES) return false;
  // 0: any process of the same user; 1: children only; 2: administrators only; 3: nobody. No such file: as 0.
  const scope = text('/proc/sys/kernel/yama/ptrace_scope');
  if (scope === '' || scope === '0') return true;
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(text('/proc/self/status'))?.[1] ?? '0';
  return scope !== '3' && ((BigInt(`0x${effective}`) >> BigInt(CAP_SYS_PTRACE)) & 1n) === 1n;
}

/** What must be equal for two processes to share memory, a socket and process numbers. */
export function placeOfProcess(): { boot: string; net: string; pid: string; user: string } {
  return {
    boot: text('/proc/sys/kernel/random/boot_id'),
    net: link('/proc/self/ns/net'),
    pid: link('/proc/self/ns/pid'),
    user: link('/proc/self/ns/user'),
  };
}

// ---------------------------------------------------------------- does it pay?

/** So many of the peers that are met first get a sample of memory to measure with. */
const FIRST_SAMPLES = 8;

/**
 * Whether this rank gives that peer a sample. `peers`: those of this host, in the order in which they were met. Neighbours measure with each
 * other; the last one of an odd number with the one before it. Rails are made when they are first used, so two ranks may know different
 * ones, and each needs somebody to measure with: the first peers get a sample, too, as many as the trees of collectives have neighbours.
 */
export function givesSample(rank: number, peers: readonly number[], peer: number): boolean {
  if (peers.indexOf(peer) < FIRST_SAMPLES) return true;
  const ranks = [rank, ...peers].sort((a, b) => a - b);
  const [low, high] = [rank, peer].map((one) => ranks.indexOf(one)).sort((a, b) => a - b);
  return high === low + 1 && (low % 2 === 0 || high === ranks.length - 1);
}

/** One per module: from which message length on the single copy is the better way, as found on the first connection. */
export class SingleCopyChoice {
  readonly mode: SingleCopyMode;
  private readonly bytesMin: number;
  private readonly native: NativeBinding;
  private readonly now: () => number;
  /** Private memory that others read on trial: the proof stands at its beginning. */
  private readonly sample = new Uint8Array(SAMPLE_BYTES);
  private readonly scratch = new Uint8Array(SAMPLE_BYTES);
  /** Messages of at least so many bytes are read in place; Infinity = none. */
  getBytesMin: number;
  isDecided: boolean;

  constructor(native: NativeBinding, mode: SingleCopyMode, bytesMin: number, proof: Uint8Array, now: () => number) {
    this.native = native;
    this.mode = mode;
    this.bytesMin = bytesMin;
    this.now = now;
    this.sample.set(proof.subarray(0, PROOF_BYTES));
    this.getBytesMin = mode === 'always' ? bytesMin : Number.POSITIVE_INFINITY;
    this.isDecided = mode !== 'auto';
  }

  /** What the other side needs for its trial. A sample costs memory at both ends, so it is given to one peer or two. */
  tell(segment: Segment, withSample: boolean): void {
    const { words, doubles, own, memory, ringBytes } = segment;
    new Uint8Array(memory, own.proofAt, PROOF_BYTES).set(this.sample.subarray(0, PROOF_BYTES));
    const address = this.native.addressOf(this.sample);
    doubles[own.proofAddressF64] = address;
    if (withSample && this.mode === 'auto') {
      const bytes = Math.min(SAMPLE_BYTES, ringBytes / 4);
      for (let at = PROOF_BYTES; at < bytes; at += 64) this.sample[at] = at;
      // The reader of the ring looks only where a record ends, and the word there is set to zero first.
      new Uint8Array(memory, own.ringAt + ringBytes / 2, bytes).fill(0xa5);
      doubles[own.sampleAddressF64] = address;
      words[own.sampleBytes] = bytes;
    }
    Atomics.store(words, own.told, 1);
  }

  /** Tries to read the peer, once its facts stand; true when the trial is over. */
  tryPeer(segment: Segment, peerPid: number): boolean {
    const { words, doubles, own, peer, memory } = segment;
    if (Atomics.load(words, peer.told) === 0) return false;
    const { scratch } = this;
    const read = this.native.processRead(peerPid, addressIn(doubles[peer.proofAddressF64]), scratch, 0, PROOF_BYTES);
    const proof = new Uint8Array(memory, peer.proofAt, PROOF_BYTES);
    const works = read === PROOF_BYTES && proof.every((byte, i) => byte === scratch[i]);
    Atomics.store(words, own.canRead, works ? 1 : 2);
    if (works && !this.isDecided) this.measure(segment, peerPid);
    return true;
  }

  private measure(segment: Segment, peerPid: number): void {
    const { words, doubles, peer, memory, ringBytes } = segment;
    const bytes = words[peer.sampleBytes];
    if (bytes <= 0 || bytes > Math.min(SAMPLE_BYTES, ringBytes / 4) || bytes % SAMPLE_PIECES !== 0) return;
    const mapped = new Uint8Array(memory, peer.ringAt + ringBytes / 2, bytes);
    const { scratch, now } = this;
    // In use the pages of the ring are mapped already; a first touch here must not be counted against it.
    for (let at = 0; at < bytes; at += PAGE_BYTES) scratch[at] = mapped[at];
    const address = addressIn(doubles[peer.sampleAddressF64]);
    const piece = bytes / SAMPLE_PIECES;
    let ringMs = Number.POSITIVE_INFINITY;
    let readMs = Number.POSITIVE_INFINITY;
    for (let at = 0; at < bytes; at += piece) {
      const start = now();
      scratch.set(mapped.subarray(at, at + piece), at);
      const copied = now();
      const read = this.native.processRead(peerPid, address + at, scratch, at, piece);
      const end = now();
      if (read !== piece) return;
      ringMs = Math.min(ringMs, copied - start);
      readMs = Math.min(readMs, end - copied);
    }
    this.isDecided = true;
    if (ringMs > readMs * RING_WORSE_FACTOR) this.getBytesMin = this.bytesMin;
  }
}

/** An address that the peer wrote: whatever it is, the native part gets a number that it takes. */
function addressIn(value: number): number {
  return Number.isSafeInteger(value) && value > 0 ? value : 1;
}

// ---------------------------------------------------------------- windows and reads

const KEY_BYTES = 24;

/** The key of a window: process, address, length. */
export function windowKey(pid: number, address: number, bytes: number): Uint8Array {
  const key = new Uint8Array(KEY_BYTES);
  const view = new DataView(key.buffer);
  view.setUint32(0, pid, true);
  view.setFloat64(8, address, true);
  view.setFloat64(16, bytes, true);
  return key;
}

/** Address of that range of the window; undefined when the key is not one of `pid`, or the range lies outside of it. */
export function addressInWindow(key: Uint8Array, pid: number, offset: number, bytes: number): number | undefined {
  if (key.length !== KEY_BYTES) return undefined;
  const view = new DataView(key.buffer, key.byteOffset, KEY_BYTES);
  const address = view.getFloat64(8, true);
  const room = view.getFloat64(16, true);
  if (view.getUint32(0, true) !== pid || !Number.isSafeInteger(address) || address <= 0 || !Number.isSafeInteger(room)) return undefined;
  if (!(offset >= 0) || !(bytes >= 0) || offset + bytes > room) return undefined;
  return address + offset;
}

interface Read {
  op: OneSidedOp;
  /** In the peer's private memory, or in a piece that it exports. */
  from: number | Place;
  /** Bytes that have come, and where the next one goes. */
  done: number;
  view: number;
  viewAt: number;
}

/** Gets of one rail epoch: carried out in order, a part of them in every turn, by calls that return when the bytes are here. */
export class Reads {
  private readonly native: NativeBinding;
  private readonly pid: number;
  private readonly attached: AttachedMemory;
  readonly waiting: Read[] = [];

  constructor(native: NativeBinding, pid: number) {
    this.native = native;
    this.pid = pid;
    this.attached = new AttachedMemory(native, pid);
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  add(op: OneSidedOp, from: number | Place): void {
    this.waiting.push({ op, from, done: 0, view: 0, viewAt: 0 });
  }

  /** The oldest read, taken out. */
  shift(): OneSidedOp | undefined {
    return this.waiting.shift()?.op;
  }

  /**
   * Reads on. `complete` is called for each read that is over, and told whether it was to be one of exported memory; it returns false when the
   * epoch ended meanwhile. A reason is why the epoch must end: the peer's memory is not what it said.
   */
  run(complete: (op: OneSidedOp, status: CompletionStatus, isMapped: boolean) => boolean): RailReason | undefined {
    let budget = READ_BYTES_PER_TURN;
    while (this.waiting.length > 0 && budget > 0) {
      const read = this.waiting[0];
      const { op } = read;
      const isMapped = typeof read.from !== 'number';
      while (read.done < op.bytes && budget > 0) {
        const view = op.local[read.view];
        const wanted = Math.min(view.length - read.viewAt, op.bytes - read.done, budget);
        if (wanted > 0) {
          const bytes = this.read(read, view, wanted);
          if (bytes === EPERM || bytes === ENOSYS) {
            this.waiting.shift();
            if (!complete(op, REFUSED, isMapped)) return undefined;
            break;
          }
          if (bytes <= 0) {
            return {
              kind: 'error',
              text: `process ${this.pid} could not be read (errno ${-bytes}) at byte ${op.remoteOffset + read.done}`,
            };
          }
          read.done += bytes;
          read.viewAt += bytes;
          budget -= bytes;
        }
        if (read.viewAt === view.length) {
          read.view++;
          read.viewAt = 0;
        }
      }
      if (read.done === op.bytes && this.waiting[0] === read) {
        this.waiting.shift();
        if (!complete(op, DELIVERED, isMapped)) return undefined;
      }
    }
    return undefined;
  }

  /** Bytes that have come, or a negative errno: EPERM too where a piece cannot be mapped. */
  private read({ from, done, viewAt }: Read, view: Uint8Array, bytes: number): number {
    if (typeof from === 'number') return this.native.processRead(this.pid, from + done, view, viewAt, bytes);
    const memory = this.attached.at(from);
    if (memory === undefined) return EPERM;
    view.set(new Uint8Array(memory, from.offset + done, bytes), viewAt);
    return bytes;
  }

  /** The epoch is over. */
  close(): void {
    this.attached.close();
  }
}
