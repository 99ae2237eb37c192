// A few cores of src/ulfm whose messages lie on a desk until the test says which of them arrives: for stories that are told step by step.

import type { OpenOptions } from '../../../src/ulfm/communicator.ts';
import { EVIDENCE } from '../../../src/ulfm/knowledge.ts';
import type { AgreementListener } from '../../../src/ulfm/states.ts';
import { type Decision, Ulfm, type UlfmOptions } from '../../../src/ulfm/ulfm.ts';
import { OPERATION, type Operation, type Value } from '../../../src/ulfm/values.ts';
import { SERIES, type SERVICE, SERVICE_NAMES, type SeriesNumber } from '../../../src/ulfm/wire.ts';

export const ID = 2;

export interface Letter {
  from: number;
  to: number;
  type: string;
  isDirect: boolean;
  bytes: Uint8Array;
}

export class Desk {
  readonly cores: Ulfm[] = [];
  /** Not delivered, in the order in which they were sent. */
  letters: Letter[] = [];
  /** How many were sent, by type. */
  readonly sent: Record<string, number> = {};
  readonly decided: Decision[][] = [];
  readonly dead = new Set<number>();
  readonly isCreating: boolean[] = [];

  private readonly options: Partial<UlfmOptions>;
  private readonly optionsOf: (number: number) => Partial<UlfmOptions>;

  /** So many processes, of which the first `members` are in communicator ID. `optionsOf`: further options of one of them. */
  constructor(
    members: number,
    processes = members,
    options: Partial<UlfmOptions> = {},
    open: OpenOptions = {},
    optionsOf: (number: number) => Partial<UlfmOptions> = () => ({}),
  ) {
    this.options = options;
    this.optionsOf = optionsOf;
    for (let number = 0; number < processes; number++) this.addCore(number);
    for (const core of this.cores) for (let number = 0; number < processes; number++) core.addProcess(number, 1);
    const ranks = Array.from({ length: members }, (_, rank) => rank);
    for (const rank of ranks) this.do(rank, (core) => core.open(ID, ranks, open));
  }

  /** A further process, which nobody knows yet. */
  protected addCore(number: number): void {
    let made = 0;
    const { options } = this;
    const listener: AgreementListener | undefined = options.listener;
    this.isCreating.push(false);
    this.cores.push(
      new Ulfm({
        self: number,
        incarnation: 1,
        offer: () => ({ newId: 1000 * (number + 1) + made++, successions: [] }),
        rendezvousWith: () => [],
        isCreating: () => this.isCreating[number],
        ...options,
        ...this.optionsOf(number),
        ...(listener === undefined ? {} : { listener }),
      }),
    );
    this.decided.push([]);
  }

  /** Lets one process do something, and lays what it sends on the desk. */
  do<T>(number: number, run: (core: Ulfm) => T): T | undefined {
    if (this.dead.has(number)) return undefined;
    const core = this.cores[number];
    const result = run(core);
    for (const { to, bytes } of core.messages.splice(0)) {
      const type = SERVICE_NAMES[bytes[1]];
      this.sent[type] = (this.sent[type] ?? 0) + 1;
      this.letters.push({ from: number, to, type, isDirect: (bytes[3] & 1) !== 0, bytes });
    }
    this.decided[number].push(...core.decisions.splice(0));
    return result;
  }

  call(number: number, flag = 0xffff_ffff, operation: Operation = OPERATION.AGREE, series: SeriesNumber = SERIES.PROGRAM, id = ID): void {
    this.do(number, (core) => core.begin(id, series, { operation, flag }));
  }

  callAll(flag?: number, operation?: Operation): void {
    for (let number = 0; number < this.cores.length; number++) this.call(number, flag, operation);
  }

  /** Delivers the first letter that fits; there must be one. */
  deliver(type: keyof typeof SERVICE, from: number, to: number): void {
    const at = this.letters.findIndex((letter) => letter.type === type && letter.from === from && letter.to === to);
    if (at < 0) throw new Error(`no ${type} from ${from} to ${to} lies on the desk: ${this.list().join(', ')}`);
    const [letter] = this.letters.splice(at, 1);
    this.do(to, (core) => core.handleMessage(from, letter.bytes));
  }

  /** Delivers in the order of sending until none is left that fits. */
  deliverAll(fits: (letter: Letter) => boolean = () => true): void {
    for (let at = this.letters.findIndex(fits); at >= 0; at = this.letters.findIndex(fits)) {
      const [{ from, to, bytes }] = this.letters.splice(at, 1);
      this.do(to, (core) => core.handleMessage(from, bytes));
    }
  }

  /** Everybody sends one message in a round, and it arrives at its end. Returns how many rounds there were. */
  deliverInRounds(): number {
    for (let rounds = 0; ; rounds++) {
      if (this.letters.length === 0) return rounds;
      const busy = new Set<number>();
      const [now, later]: [Letter[], Letter[]] = [[], []];
      for (const letter of this.letters) (busy.has(letter.from) ? later : now).push(letter) && busy.add(letter.from);
      this.letters = later;
      for (const { from, to, bytes } of now) this.do(to, (core) => core.handleMessage(from, bytes));
    }
  }

  /** The process is dead; what it has sent may still arrive, unless it is `lost`. */
  kill(number: number, lost: 'lost' | 'under way' = 'lost'): void {
    this.dead.add(number);
    if (lost === 'lost') this.letters = this.letters.filter(({ from }) => from !== number);
  }

  tell(number: number, dead: number): void {
    this.do(number, (core) => core.handleNotice({ serial: 1, number: dead, incarnation: 1, evidence: EVIDENCE.ENDED, text: 'it ended' }));
  }

  tellAll(dead: number): void {
    for (let number = 0; number < this.cores.length; number++) if (number !== dead) this.tell(number, dead);
  }

  list(): string[] {
    return this.letters.map(({ from, to, type, isDirect }) => `${from}>${to} ${type}${isDirect ? ' direct' : ''}`);
  }

  /** What lies on the desk, without the news of deaths. */
  agreementLetters(): string[] {
    return this.list().filter((line) => !line.includes('FAILED'));
  }

  valuesOf(number: number): Value[] {
    return this.decided[number].map(({ value }) => value);
  }

  get agreementMessages(): number {
    return ['STATE', 'PROPOSE', 'ACK', 'DECIDE'].reduce((sum, type) => sum + (this.sent[type] ?? 0), 0);
  }

  resetCounts(): void {
    for (const type of Object.keys(this.sent)) delete this.sent[type];
  }
}
