// A small world for src/ulfm alone: processes, channels that keep the order of each pair and nothing else, deaths between any two messages,
// and news of them that comes as late as it likes. All of it is drawn from a seed. The programs are those of the simulator: they call
// agreements in two series, make communicators of their decisions, succeed the dead, revoke, and leave at the end.

import { EVIDENCE } from '../../../src/ulfm/knowledge.ts';
import type { AgreementListener } from '../../../src/ulfm/states.ts';
import { OPERATION } from '../../../src/ulfm/values.ts';
import { Prng } from '../../../src/util/prng.ts';
import { FIRST_ID, type UlfmProcess, UlfmPrograms } from '../../../tools/sim/ulfm-programs.ts';

export { FIRST_ID };

export interface SmallWorldOptions {
  seed: number;
  members: number;
  /** Processes beyond the members, which may succeed them. */
  spares?: number;
  /** Of the communicator's first members; the program's series is repeated by successors. */
  succeeds?: boolean;
  /** Every message takes exactly this long, and so does nothing else: for counting. */
  fixedDelay?: number;
  listener?: AgreementListener;
  trace?: (line: string) => void;
}

interface Process extends UlfmProcess {
  /** The depth of the longest chain of messages that has reached it. */
  depth: number;
}

interface Event {
  at: number;
  order: number;
  run: () => void;
}

export class SmallWorld extends UlfmPrograms<Process> {
  readonly options: SmallWorldOptions;
  now = 0;
  deepest = 0;
  private readonly heap: Event[] = [];
  private order = 0;
  private readonly lastArrival = new Map<number, number>();
  private readonly delays: readonly number[];
  private readonly newsDelays: readonly number[];
  private readonly lost = new Set<number>();

  constructor(options: SmallWorldOptions) {
    super(new Prng(options.seed).split('small world'), options.members);
    this.options = options;
    const { members, spares = 0 } = options;
    this.delays = this.prng.pick([[1], [1, 10], [1, 10, 100, 1000], [1, 1, 1, 1, 5000], [100]]);
    this.newsDelays = this.prng.pick([[1], [1, 100], [1, 10, 100, 1000, 10_000], [10_000], [1, 50_000]]);
    for (let number = 0; number < members + spares; number++)
      this.processes.push({ ...this.makeProgram(number, () => this.processes[number], options.listener), depth: 0 });
    this.begin(options.succeeds === true);
  }

  // ---------------------------------------------------------------- time

  at(delay: number, run: () => void): void {
    const event = { at: this.now + delay, order: this.order++, run };
    const { heap } = this;
    let i = heap.length;
    heap.push(event);
    for (; i > 0; ) {
      const parent = (i - 1) >>> 1;
      if (isSooner(heap[parent], event)) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = event;
  }

  private next(): Event | undefined {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isSooner(heap[child + 1], heap[child])) child++;
      if (isSooner(last, heap[child])) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = last;
    return top;
  }

  /** Runs until nothing is left to happen. */
  run(eventsMax = 2_000_000): void {
    for (let events = 0; ; events++) {
      const event = this.next();
      if (event === undefined) return;
      if (events > eventsMax) throw new Error('the world does not come to rest');
      this.now = event.at;
      event.run();
    }
  }

  // ---------------------------------------------------------------- processes

  protected post(process: Process, to: number, bytes: Uint8Array): void {
    const { number } = process;
    const pair = number * 65_536 + to;
    const delay = this.options.fixedDelay ?? this.prng.pick(this.delays) * this.prng.between(1, 3);
    const arrival = Math.max(this.lastArrival.get(pair) ?? 0, this.now + delay);
    this.lastArrival.set(pair, arrival);
    const depth = process.depth + 1;
    this.at(arrival - this.now, () => {
      const target = this.processes[to];
      // What was under way when its sender died has arrived, or never will.
      if (!process.isAlive && this.prng.chance(1, 2)) {
        this.lost.add(pair);
      }
      if (this.lost.has(pair) || !target.isAlive) return;
      target.depth = Math.max(target.depth, depth);
      this.deepest = Math.max(this.deepest, depth);
      this.trace(`process ${to} gets type ${bytes[1]}${bytes[3] & 1 ? ' direct' : ''} of ${number}`);
      this.act(target, () => target.core.handleMessage(number, bytes));
    });
  }

  kill(number: number): void {
    const process = this.processes[number];
    if (!process.isAlive || process.hasLeft) return;
    this.trace(`process ${number} dies`);
    process.isAlive = false;
    this.oracle.kill(number);
    this.spreadNews(number);
  }

  /** A process is declared dead while it lives: the others hear of it, and at some time it does. */
  declare(number: number): void {
    const process = this.processes[number];
    if (!process.isAlive || process.hasLeft) return;
    this.trace(`process ${number} is declared dead`);
    this.oracle.declared.add(number);
    this.spreadNews(number);
    this.at(this.prng.pick(this.newsDelays), () => this.tell(process, number));
  }

  private spreadNews(number: number): void {
    for (const other of this.processes) {
      if (other.number !== number) this.at(this.prng.pick(this.newsDelays) * this.prng.between(1, 3), () => this.tell(other, number));
    }
  }

  private tell(process: Process, number: number): void {
    this.act(process, () => {
      process.core.handleNotice({ serial: 0, number, incarnation: 1, evidence: EVIDENCE.ENDED, text: 'it was killed' });
    });
  }

  /** Says BYE to everybody: it comes behind all that was sent before it. */
  leave(process: Process): void {
    if (!process.isAlive || process.hasLeft) return;
    this.trace(`process ${process.number} leaves`);
    process.hasLeft = true;
    this.oracle.left.add(process.number);
    for (const other of this.processes) {
      if (other === process) continue;
      const pair = process.number * 65_536 + other.number;
      const arrival = Math.max(this.lastArrival.get(pair) ?? 0, this.now + this.prng.pick(this.delays));
      this.at(arrival - this.now, () => this.act(other, () => other.core.handleLeft(process.number)));
    }
  }

  protected rendezvousWith({ core }: Process, id: number): number[] {
    return [...core.membersOf(id).keys()].filter(() => this.prng.chance(1, 16));
  }

  protected trace(line: string): void {
    this.options.trace?.(`${this.now} ${line}`);
  }
}

function isSooner(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** One random run. */
export function runSmallWorld(seed: number, options: Partial<SmallWorldOptions> = {}): SmallWorld {
  const prng = new Prng(seed).split('plan');
  const members = options.members ?? prng.pick([1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 9, 16]);
  const succeeds = prng.chance(1, 3);
  const spares = succeeds || prng.chance(1, 2) ? prng.between(1, 4) : 0;
  const world = new SmallWorld({ seed, members, spares, succeeds, ...options });
  const calls = prng.between(1, 4);
  const kinds = succeeds
    ? [OPERATION.AGREE]
    : [OPERATION.AGREE, OPERATION.AGREE, OPERATION.SHRINK, OPERATION.REPLACE_SOME, OPERATION.REPLACE_ALL];
  const operations = Array.from({ length: calls }, () => prng.pick(kinds));
  const recoveries = Array.from({ length: prng.between(0, 3) }, () => (succeeds ? OPERATION.REPLACE_SOME : OPERATION.AGREE));
  for (const process of world.processes.slice(0, members)) world.program(process, operations, recoveries);
  // Deaths: at some time, or after so many messages, several in a row.
  const deaths = prng.pick([0, 1, 1, 1, 2, 2, 3, members]);
  for (let i = 0; i < deaths; i++) {
    const number = prng.chance(2, 3) ? prng.below(Math.min(3, members)) : prng.below(members + spares);
    if (prng.chance(1, 8)) world.at(prng.pick([0, 10, 200, 3000]), () => world.declare(number));
    else if (prng.chance(1, 3)) world.at(prng.below(prng.pick([5, 50, 1000, 40_000])), () => world.kill(number));
    else world.processes[number].sendsLeft = prng.below(prng.pick([members, 4 * members, 12 * members]));
  }
  if (prng.chance(1, 4)) {
    const id = FIRST_ID;
    const process = prng.pick(world.processes.slice(0, members));
    world.at(prng.below(prng.pick([10, 1000])), () => world.revoke(process, id));
  }
  world.run();
  world.oracle.checkEnd((number, id) => world.processes[number].ids.has(id));
  return world;
}
