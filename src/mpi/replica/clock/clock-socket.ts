// The processor time of processes on other hosts, asked for by datagrams. Whoever is asked answers from a thread of its own, so a program in a
// loop answers, too. A datagram that is lost is asked for again. All of them have one form, little-endian:
//
//   magic u32, version u8, kind u8, 0 u16, from u32, to u32, nonce 16 bytes, milliseconds f64, calls f64, proof 32 bytes
//
// The proof is an HMAC-SHA256 of what is before it, by the key of the process that is asked. An answer has the nonce of its question.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv4 } from 'node:net';

const MAGIC = 0x4b43524d;
const VERSION = 1;
const NONCE_AT = 16;
const NONCE_BYTES = 16;
const MS_AT = 32;
const CALLS_AT = 40;
const PROOF_AT = 48;
const DATAGRAM_BYTES = 80;
const KEY_BYTES = 32;
const ADDRESSES_MAX = 8;
/** Questions to a process that may still be answered. */
const QUESTIONS_MAX = 8;

export const CLOCK_KINDS = {
  /** How much have you used, and how far are you? */
  ASK: 1,
  ANSWER: 2,
  /** You were told to leave, and have not: you are killed. */
  END: 3,
} as const;

/** What a process says of its clock to those that may ask. */
export interface ClockAddress {
  readonly port: number;
  readonly addresses: readonly string[];
  /** Random; with the job's secret it makes the key. */
  readonly salt: string;
}

/** Milliseconds of processor time of a process, and calls that its program has begun; infinite when it has come to its end. */
export interface ClockReading {
  readonly ms: number;
  readonly calls: number;
}

export interface ClockSocketOptions {
  /** Number of this process. */
  readonly self: number;
  readonly secret: Uint8Array;
  /** Of this host, as others reach it. */
  readonly addresses: readonly string[];
  read(): ClockReading;
  /** `question`: the one that is answered. */
  onAnswer(from: number, question: number, reading: ClockReading): void;
  /** Another replica has told this process to end. */
  onEnd(): void;
}

interface Other {
  readonly address: ClockAddress;
  readonly key: Uint8Array;
  /** Nonces of questions that were not answered, oldest first. */
  readonly questions: Map<string, number>;
  /** Where the last answer came from. */
  at: string | undefined;
}

const keyOf = (secret: Uint8Array, salt: string): Uint8Array =>
  createHmac('sha256', secret)
    .update(JSON.stringify(['multirail-clock', salt]))
    .digest();

/** What another process says, looked at before it is believed. */
export function checkClockAddress(value: unknown): ClockAddress | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { port, addresses, salt } = value as Record<string, unknown>;
  if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535 || typeof salt !== 'string') return undefined;
  if (!Array.isArray(addresses) || addresses.length > ADDRESSES_MAX || !addresses.every((one) => typeof one === 'string')) return undefined;
  return { port: port as number, addresses: addresses as string[], salt };
}

export class ClockSocket {
  private readonly options: ClockSocketOptions;
  private readonly socket: Socket;
  private readonly salt = randomBytes(KEY_BYTES).toString('base64');
  private readonly key: Uint8Array;
  private readonly others = new Map<number, Other>();
  private readonly isOfV4: boolean;

  constructor(options: ClockSocketOptions) {
    this.options = options;
    this.key = keyOf(options.secret, this.salt);
    this.isOfV4 = options.addresses.some((address) => isIPv4(address));
    this.socket = createSocket(this.isOfV4 ? 'udp4' : 'udp6');
    this.socket.on('message', (bytes, from) => this.take(bytes, from));
  }

  /** Resolves once it can be asked. */
  async open(): Promise<ClockAddress> {
    const { socket } = this;
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind(0, () => {
        socket.off('error', reject);
        // A datagram that cannot be sent is lost like another one.
        socket.on('error', () => undefined);
        resolve();
      });
    });
    const addresses = this.options.addresses.filter((address) => isIPv4(address) === this.isOfV4).slice(0, ADDRESSES_MAX);
    return { port: socket.address().port, addresses, salt: this.salt };
  }

  /** That process can be asked. */
  know(number: number, address: ClockAddress): void {
    this.others.set(number, { address, key: keyOf(this.options.secret, address.salt), questions: new Map(), at: undefined });
  }

  ask(number: number, question: number): void {
    const other = this.others.get(number);
    if (other === undefined) return;
    const nonce = randomBytes(NONCE_BYTES);
    const { questions } = other;
    questions.set(nonce.toString('latin1'), question);
    if (questions.size > QUESTIONS_MAX) {
      // It was not answered from where the last answer came.
      other.at = undefined;
      for (const oldest of questions.keys()) {
        questions.delete(oldest);
        break;
      }
    }
    this.send(other, this.datagram(CLOCK_KINDS.ASK, number, nonce, other.key));
  }

  /** That process is to be killed: it was told to leave, and does not read. */
  end(number: number): void {
    const other = this.others.get(number);
    if (other !== undefined) this.send(other, this.datagram(CLOCK_KINDS.END, number, randomBytes(NONCE_BYTES), other.key));
  }

  close(): void {
    this.socket.close();
  }

  private send({ address, at }: Other, datagram: Uint8Array): void {
    for (const host of at === undefined ? address.addresses : [at]) this.socket.send(datagram, address.port, host);
  }

  private datagram(
    kind: number,
    to: number,
    nonce: Uint8Array,
    key: Uint8Array,
    { ms, calls }: ClockReading = { ms: 0, calls: 0 },
  ): Buffer {
    const bytes = Buffer.alloc(DATAGRAM_BYTES);
    bytes.writeUInt32LE(MAGIC, 0);
    bytes.writeUInt8(VERSION, 4);
    bytes.writeUInt8(kind, 5);
    bytes.writeUInt32LE(this.options.self, 8);
    bytes.writeUInt32LE(to, 12);
    bytes.set(nonce, NONCE_AT);
    bytes.writeDoubleLE(ms, MS_AT);
    bytes.writeDoubleLE(calls, CALLS_AT);
    bytes.set(proofOf(bytes, key), PROOF_AT);
    return bytes;
  }

  private take(bytes: Buffer, { address, port }: RemoteInfo): void {
    if (bytes.length !== DATAGRAM_BYTES || bytes.readUInt32LE(0) !== MAGIC || bytes.readUInt8(4) !== VERSION) return;
    if (bytes.readUInt32LE(12) !== this.options.self) return;
    const kind = bytes.readUInt8(5);
    const from = bytes.readUInt32LE(8);
    const other = this.others.get(from);
    const key = kind === CLOCK_KINDS.ANSWER ? other?.key : this.key;
    if (key === undefined || !timingSafeEqual(bytes.subarray(PROOF_AT), proofOf(bytes, key))) return;
    const nonce = bytes.subarray(NONCE_AT, NONCE_AT + NONCE_BYTES);
    if (kind === CLOCK_KINDS.ASK)
      this.socket.send(this.datagram(CLOCK_KINDS.ANSWER, from, nonce, this.key, this.options.read()), port, address);
    else if (kind === CLOCK_KINDS.END) this.options.onEnd();
    else if (other !== undefined) this.takeAnswer(from, other, nonce.toString('latin1'), bytes, address);
  }

  private takeAnswer(from: number, other: Other, nonce: string, bytes: Buffer, address: string): void {
    const question = other.questions.get(nonce);
    if (question === undefined) return;
    // Whatever was asked before it says nothing more.
    for (const [earlier, number] of other.questions) if (number <= question) other.questions.delete(earlier);
    other.at = address;
    this.options.onAnswer(from, question, { ms: bytes.readDoubleLE(MS_AT), calls: bytes.readDoubleLE(CALLS_AT) });
  }
}

const proofOf = (bytes: Uint8Array, key: Uint8Array): Uint8Array => createHmac('sha256', key).update(bytes.subarray(0, PROOF_AT)).digest();
