// A client of PMI-1, the line protocol by which MPICH's hydra, Slurm's pmi2 plug-in and Flux let the processes of a job exchange short
// texts: one command, one reply, over an inherited descriptor (PMI_FD). Source: Balaji et al., "PMI: A Scalable Parallel Process-Management
// Interface for Extreme-Scale Systems" (EuroMPI 2010), and what hydra and Slurm answer.
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { MultirailError } from '../../errors.ts';

/** No reply of a starter is longer; more is not PMI. */
const LINE_BYTES_MAX = 64 * 1024;
/** Room for the number of a part in front of a value. */
const PARTS_MAX = 4096;

interface Waiter {
  command: string;
  expected: string;
  resolve: (reply: Map<string, string>) => void;
  reject: (error: Error) => void;
}

/** States of a client. */
const PMI = {
  NEW: 0, // nothing is said yet
  OPEN: 1, // the starter has answered init
  FINALIZED: 2, // finalize is answered: the starter expects nothing more of this process
  BROKEN: 3, // the connection ended, or said what is not PMI
} as const;
type PmiState = (typeof PMI)[keyof typeof PMI];
const PMI_EDGES: Record<PmiState, readonly PmiState[]> = {
  [PMI.NEW]: [PMI.OPEN, PMI.BROKEN],
  [PMI.OPEN]: [PMI.FINALIZED, PMI.BROKEN],
  [PMI.FINALIZED]: [],
  [PMI.BROKEN]: [],
};

/** The stream of PMI_FD. Throws ERR_INIT when the descriptor is no socket: then the variable was inherited from a rank, and this process is not one. */
export function openPmiFd(fd: number): Duplex {
  let isSocket = false;
  try {
    isSocket = fstatSync(fd).isSocket();
  } catch {
    // Not open at all.
  }
  if (!isSocket) {
    throw new MultirailError(
      'ERR_INIT',
      `PMI_FD=${fd} is not a socket in this process: a rank started it, or a wrapper that closes descriptors. Start a program that is not a rank without PMI_FD (env -u PMI_FD …)`,
    );
  }
  return new Socket({ fd, readable: true, writable: true });
}

export class PmiClient {
  private readonly stream: Duplex & { ref?: () => void; unref?: () => void };
  private state: PmiState = PMI.NEW;
  private buffered = '';
  private waiter: Waiter | undefined;
  private kvsName = '';
  private keyBytesMax = 0;
  private valueBytesMax = 0;

  constructor(stream: Duplex) {
    this.stream = stream;
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => this.take(text));
    stream.on('error', (error) => this.break(error.message));
    stream.on('close', () => this.break('the starter closed the connection'));
    // Only a command that waits for its reply keeps the process alive.
    this.stream.unref?.();
  }

  /** Says hello; learns the limits and the name of the job's key-value space. */
  async init(): Promise<void> {
    const reply = await this.command('cmd=init pmi_version=1 pmi_subversion=1', 'response_to_init');
    if (reply.get('pmi_version') !== '1') throw this.error(`the starter speaks version ${reply.get('pmi_version')}, not 1`);
    this.moveTo(PMI.OPEN);
    const maxes = await this.command('cmd=get_maxes', 'maxes');
    this.keyBytesMax = this.limit(maxes, 'keylen_max');
    this.valueBytesMax = this.limit(maxes, 'vallen_max');
    this.kvsName = (await this.command('cmd=get_my_kvsname', 'my_kvsname')).get('kvsname') ?? '';
    if (this.kvsName === '') throw this.error('the starter names no key-value space');
  }

  /** Stores a text under a key, in as many parts as the starter's limit on values asks for. Others see it after a barrier. */
  async put(key: string, text: string): Promise<void> {
    // Base64 for URLs: no blank and no equals sign, which have a meaning in the protocol. The limits include a final zero byte.
    const encoded = Buffer.from(text).toString('base64url');
    const partBytes = this.valueBytesMax - 8;
    const parts = Math.max(1, Math.ceil(encoded.length / partBytes));
    if (parts > PARTS_MAX) throw this.error(`a value of ${encoded.length} bytes needs more than ${PARTS_MAX} parts`);
    for (let part = 0; part < parts; part++) {
      const value = `${part === 0 ? `${parts}:` : ''}${encoded.slice(part * partBytes, (part + 1) * partBytes)}`;
      await this.command(`cmd=put kvsname=${this.kvsName} key=${this.partKey(key, part)} value=${value}`, 'put_result');
    }
  }

  /** What another rank has put before the last barrier. */
  async get(key: string): Promise<string> {
    const first = await this.getPart(key, 0);
    const match = /^(\d{1,4}):/.exec(first);
    const parts = Number(match?.[1] ?? 0);
    if (match === null || parts < 1 || parts > PARTS_MAX) throw this.error(`the value of ${key} was not put by this library`);
    let encoded = first.slice(match[0].length);
    for (let part = 1; part < parts; part++) encoded += await this.getPart(key, part);
    return Buffer.from(encoded, 'base64url').toString('utf8');
  }

  /** Collective over all processes of the job. */
  async barrier(): Promise<void> {
    await this.command('cmd=barrier_in', 'barrier_out');
  }

  /** The process is done, and may exit without the starter taking that for a failure. Never rejects: the job is over. */
  async finalize(): Promise<void> {
    if (this.state !== PMI.OPEN) return;
    try {
      await this.command('cmd=finalize', 'finalize_ack');
      this.moveTo(PMI.FINALIZED);
    } catch {
      // The starter is gone.
    }
    this.stream.destroy();
  }

  /** Ends the whole job by the starter's own means. There is no reply. Resolves when the command has left this process. */
  abort(code: number, reason: string): Promise<void> {
    if (this.state !== PMI.OPEN) return Promise.resolve();
    // Hydra prints the text; blanks would end it.
    const text = reason.replace(/[^\x21-\x7e]+/g, '_').slice(0, 200);
    return new Promise((resolve) => this.stream.write(`cmd=abort exitcode=${code} error_msg=${text}\n`, () => resolve()));
  }

  // --- the wire

  private partKey(key: string, part: number): string {
    const name = part === 0 ? key : `${key}-${part}`;
    if (name.length >= this.keyBytesMax) throw this.error(`the key ${name} is too long: at most ${this.keyBytesMax - 1} bytes`);
    return name;
  }

  private async getPart(key: string, part: number): Promise<string> {
    const reply = await this.command(`cmd=get kvsname=${this.kvsName} key=${this.partKey(key, part)}`, 'get_result');
    const value = reply.get('value');
    if (value === undefined) throw this.error(`nothing was put under ${key}`);
    return value;
  }

  private limit(maxes: Map<string, string>, name: string): number {
    const value = Number(maxes.get(name));
    if (!Number.isSafeInteger(value) || value < 32) throw this.error(`${name}=${maxes.get(name)} cannot be used`);
    return value;
  }

  private command(line: string, expected: string): Promise<Map<string, string>> {
    const command = /cmd=(\w+)/.exec(line)?.[1] ?? '';
    if (this.state === PMI.BROKEN || this.state === PMI.FINALIZED) return Promise.reject(this.error(`${command}: the connection is over`));
    if (this.waiter !== undefined) return Promise.reject(this.error(`${command} before the reply to ${this.waiter.command}`));
    return new Promise((resolve, reject) => {
      this.waiter = { command, expected, resolve, reject };
      this.stream.ref?.();
      this.stream.write(`${line}\n`);
    });
  }

  private take(text: string): void {
    this.buffered += text;
    for (;;) {
      const end = this.buffered.indexOf('\n');
      if (end < 0) break;
      const line = this.buffered.slice(0, end);
      this.buffered = this.buffered.slice(end + 1);
      this.reply(line);
    }
    if (this.buffered.length > LINE_BYTES_MAX) this.break('a reply without end');
  }

  private reply(line: string): void {
    const { waiter } = this;
    if (waiter === undefined) return this.break(`"${line.slice(0, 80)}", which nobody has asked for`);
    const fields = new Map<string, string>();
    for (const word of line.trim().split(/\s+/)) {
      const equals = word.indexOf('=');
      if (equals > 0) fields.set(word.slice(0, equals), word.slice(equals + 1));
    }
    this.waiter = undefined;
    this.stream.unref?.();
    const rc = fields.get('rc') ?? '0';
    if (fields.get('cmd') !== waiter.expected) waiter.reject(this.error(`${waiter.command} was answered by "${line.slice(0, 80)}"`));
    else if (rc !== '0') waiter.reject(this.error(`${waiter.command} failed: rc=${rc} ${fields.get('msg') ?? ''}`));
    else waiter.resolve(fields);
  }

  private break(text: string): void {
    if (this.state === PMI.FINALIZED || this.state === PMI.BROKEN) return;
    this.moveTo(PMI.BROKEN);
    const { waiter } = this;
    this.waiter = undefined;
    this.stream.destroy();
    waiter?.reject(this.error(`${waiter.command}: ${text}`));
  }

  private moveTo(next: PmiState): void {
    if (!PMI_EDGES[this.state].includes(next)) throw new MultirailError('ERR_INTERNAL', `PMI: no edge from state ${this.state} to ${next}`);
    this.state = next;
  }

  private error(text: string): MultirailError {
    return new MultirailError('ERR_INIT', `PMI-1 (PMI_FD): ${text}`);
  }
}
