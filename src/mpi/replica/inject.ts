// Faults on purpose: bits that flip, replicas that are caught in a loop, processes that end. A plan names the rank, the replica and the moment;
// without a plan nothing of this is there.
import { MultirailError } from '../../errors.ts';
import { type Place, REPLICA_NAMES, type ReplicaName } from '../../ft/replica/pairs.ts';
import type { ParamTable } from '../../params.ts';
import type { Iov } from '../../util/iov.ts';
import { Prng } from '../../util/prng.ts';
import type { RuntimeJob } from '../runtime-options.ts';

/** One fault. */
export interface PlannedFault {
  readonly kind: 'flip' | 'stall' | 'exit';
  readonly rank: number;
  readonly replica: ReplicaName;
  /** When: before the digest of the message of that number is made, or when the program says that so much of its work is done. */
  readonly send: number | undefined;
  readonly at: number | undefined;
  /** What is flipped there: the name that the program gives it. */
  readonly buffer: string | undefined;
  readonly bits: number;
  readonly seed: number;
  readonly code: number;
}

const KEYS: readonly string[] = ['rank', 'replica', 'send', 'at', 'buffer', 'bits', 'seed', 'code'];
const USAGE =
  'expected KIND:KEY=VALUE,… with KIND flip, stall or exit, rank=R, replica=lead, shadow or shadow2 (the second one of three replicas), send=N or at=P%, and buffer=NAME, bits=N, seed=S, code=N as they are needed; several are separated by semicolons';

function bad(text: string): MultirailError {
  return new MultirailError('ERR_CONFIG', `ft_inject ${JSON.stringify(text)}: ${USAGE}`);
}

/**
 * Reads a plan.
 * @throws ERR_CONFIG: it makes no sense.
 */
export function parseFaults(text: string): PlannedFault[] {
  return text
    .split(';')
    .filter((part) => part !== '')
    .map((part) => {
      const [, kind, rest] = /^(flip|stall|exit):(.+)$/.exec(part) ?? [];
      if (kind === undefined) throw bad(part);
      const given = new Map(rest.split(',').map((pair) => pair.split('=', 2) as [string, string]));
      for (const [key, value] of given) if (!KEYS.includes(key) || value === undefined || value === '') throw bad(part);
      const whole = (key: string, least: number): number | undefined => {
        const value = given.get(key);
        if (value === undefined) return undefined;
        if (!/^\d{1,9}$/.test(value) || Number(value) < least) throw bad(part);
        return Number(value);
      };
      const replica = REPLICA_NAMES.find((name) => name === (given.get('replica') ?? 'lead'));
      const at = given.get('at');
      const percent = at === undefined ? undefined : Number(/^(\d{1,3}(?:\.\d+)?)%$/.exec(at)?.[1] ?? Number.NaN);
      const send = whole('send', 1);
      const rank = whole('rank', 0);
      const isMoment = (send === undefined) !== (percent === undefined) && !(Number.isNaN(percent) || (percent ?? 0) > 100);
      const hasBuffer = kind !== 'flip' || send !== undefined || given.has('buffer');
      if (rank === undefined || replica === undefined || !isMoment || !hasBuffer) throw bad(part);
      return {
        kind: kind as PlannedFault['kind'],
        rank,
        replica,
        send,
        at: percent === undefined ? undefined : percent / 100,
        buffer: given.get('buffer'),
        bits: whole('bits', 1) ?? 1,
        seed: whole('seed', 0) ?? 0,
        code: whole('code', 1) ?? 1,
      };
    });
}

/** Flips bits of these bytes, drawn by the seed. */
export function flipBits(views: readonly Uint8Array[], bits: number, seed: number): void {
  const bytes = views.reduce((sum, { length }) => sum + length, 0);
  if (bytes === 0) return;
  const prng = new Prng(seed).split('flip');
  for (let left = bits; left > 0; left--) {
    let at = prng.below(bytes);
    for (const view of views) {
      if (at < view.length) {
        view[at] ^= 1 << prng.below(8);
        break;
      }
      at -= view.length;
    }
  }
}

/** The faults of this process, as a program of an experiment sees them. */
export class Injector {
  private left: PlannedFault[];
  private readonly say: (text: string) => void;

  /** @internal */
  constructor(faults: readonly PlannedFault[], say: (text: string) => void) {
    this.left = [...faults];
    this.say = say;
  }

  /**
   * The program has come to this point: faults that are due happen now.
   *
   * @param done How much of its work is done, from 0 to 1.
   * @param arrays What may be flipped, by the names that plans use.
   */
  point(done: number, arrays: Readonly<Record<string, ArrayBufferView>> = {}): void {
    for (const fault of this.take(({ at }) => at !== undefined && at <= done)) {
      const { buffer, byteOffset, byteLength } = arrays[fault.buffer ?? ''] ?? new Uint8Array(0);
      this.strike(fault, [new Uint8Array(buffer, byteOffset, byteLength)]);
    }
  }

  /** @internal Before a message is digested. */
  readonly beforeSend = (message: number, buffer: Iov): void => {
    for (const fault of this.take(({ send }) => send === message)) this.strike(fault, buffer.views);
  };

  private take(isDue: (fault: PlannedFault) => boolean): PlannedFault[] {
    const due = this.left.filter(isDue);
    if (due.length > 0) this.left = this.left.filter((fault) => !due.includes(fault));
    return due;
  }

  private strike(fault: PlannedFault, views: readonly Uint8Array[]): void {
    const { kind, rank, replica, bits, seed, code } = fault;
    this.say(`injected: ${kind} at the ${replica === 'shadow2' ? 'second shadow' : replica} of rank ${rank}`);
    if (kind === 'flip') return flipBits(views, bits, seed);
    if (kind === 'exit') process.exit(code);
    for (;;) {
      // In a loop, for as long as it is let.
    }
  }
}

/** The faults that are planned for this process; undefined where none are. */
export function injectorOf(
  job: Pick<RuntimeJob, 'rank'>,
  place: Place | undefined,
  params: ParamTable,
  say: (text: string) => void,
): Injector | undefined {
  const plan = params.string('ft_inject');
  if (plan === '') return undefined;
  const rank = place?.rank ?? job.rank;
  const replica = place === undefined ? 'lead' : REPLICA_NAMES[Math.floor(job.rank / place.ranks)];
  const faults = parseFaults(plan);
  if (place === undefined && faults.some(({ send }) => send !== undefined))
    throw new MultirailError(
      'ERR_CONFIG',
      'ft_inject: messages are counted where ranks have two replicas (multirail run --replicas 2); say at=P% instead of send=N',
    );
  if (place !== undefined && params.int('ft_replicas') < 3 && faults.some(({ replica: struck }) => struck === 'shadow2'))
    throw new MultirailError('ERR_CONFIG', 'ft_inject: replica=shadow2 is the third of three replicas (multirail run --replicas 3)');
  return new Injector(
    faults.filter((fault) => fault.rank === rank && fault.replica === replica),
    say,
  );
}
