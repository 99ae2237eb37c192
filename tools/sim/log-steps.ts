// What the processes of the profile `log` do, operation by operation, and what they must see: F8 and F9 of log-world.ts, and that a synchronous
// send ends only when its receive is there. A program waits for nothing but its own requests.
import { EVENT } from '../../src/ft/events/format.ts';
import type { Pml } from '../../src/pml/pml.ts';
import { ANY } from '../../src/pml/pml.ts';
import type { Envelope, RecvRequest, SendRequest } from '../../src/pml/records.ts';
import { Iov } from '../../src/util/iov.ts';
import {
  type AnyReceive,
  COLL_CTX,
  type Free,
  fillMessage,
  interpret,
  isLate,
  isReceive,
  mix,
  type Program,
  payloadOf,
  type Receive,
  readMessage,
  type Send,
  type WildOp,
} from './log-program.ts';
import type { newLogCounters, Pending, Worker } from './log-worker.ts';
import { OracleError } from './oracle.ts';
import { choiceKey, type Taken } from './wild-program.ts';

export interface StepsHost {
  /** Why the run is over: all go back, or a program does not repeat itself. */
  readonly over: string | undefined;
  readonly counters: ReturnType<typeof newLogCounters>;
  pmlOf(number: number): Pml;
  wake(number: number): void;
  /** Some time passes. */
  later(run: () => void): void;
  /** True every other time, by chance. */
  flip(): boolean;
  /** Its program may pass the save at which it is. */
  passes(worker: Worker): boolean;
  /** A program that does not repeat itself was caught, or is about to be believed. */
  diverged(): void;
  /** That process has gone back with its group, and repeats what it did; or is about to go back. */
  isLaterLife?(number: number): boolean;
  /** Messages between that worker and that rank are of this life of their group, and of no other; undefined: they are the same in every life. */
  lifeOf?(worker: Worker, rank: number): number | undefined;
}

export class Steps {
  private readonly host: StepsHost;
  private readonly program: Program;
  private readonly probed = new Map<Worker, Envelope>();
  /** By rank: the furthest place of a receive that was there, in any life of it. */
  private readonly furthest: number[];
  /** Of a wild program, by rank and place: what was taken or found there last, and what was seen. */
  private readonly choices = new Map<string, Taken | number>();
  private readonly seen = new Map<string, number>();

  constructor(host: StepsHost, program: Program) {
    this.host = host;
    this.program = program;
    this.furthest = program.ops.map(() => -1);
  }

  /** One operation; false when it has to wait. */
  step(worker: Worker): boolean {
    const { rank, place } = worker;
    const op = this.program.ops[rank][place];
    if (op.op === 'end' || ((op.op === 'save' || op.op === 'look') && !this.host.passes(worker))) return false;
    if (op.op === 'send') this.send(worker, op);
    else if (op.op === 'free') this.free(worker, op);
    else if (op.op === 'reply') this.send(worker, { ...op, op: 'send', to: worker.lastSource, sync: false });
    else if (op.op === 'any') {
      if (op.how === 'post') worker.posted.push(this.post(worker, this.fromAnybody(op), false));
      else if (!this.takeAny(worker, op)) return false;
    } else if (op.op === 'peek' || op.op === 'test' || op.op === 'waitAny') {
      if (!this.look(worker, op)) return false;
    } else if (op.op === 'post' || op.op === 'again') worker.posted.push(this.post(worker, op, op.op === 'again'));
    else if (isReceive(op)) {
      worker.current ??= op.op === 'probe' ? this.probe(worker, op) : this.post(worker, op, false);
      if (worker.current === undefined || !worker.current.request.done) return false;
      this.received(worker, worker.current);
      worker.current = undefined;
    } else if (op.op === 'join' && !this.joined(worker)) return false;
    if (worker.isOver) return false;
    worker.place++;
    return true;
  }

  private send(worker: Worker, { to, ctx, tag, bytes, sync }: Send): void {
    const { counters } = this.host;
    const { place, state, rank, members, number, drifts } = worker;
    const isCollective = ctx === COLL_CTX;
    const buffer = isCollective ? worker.memory.subarray(0, bytes) : new Uint8Array(bytes);
    fillMessage(buffer, this.valueNow(worker, to, payloadOf(state, place, tag)));
    const pml = this.host.pmlOf(number);
    const suppressed = worker.succession?.tap.counters.suppressed;
    const stalled = pml.counters.creditStalls;
    const request = pml.isend(members[to], ctx, tag, new Iov([buffer]), sync);
    if (worker.succession?.isReplaying === true) counters.stalledReplays += pml.counters.creditStalls - stalled;
    if (request.done) {
      if (request.error?.code === 'ERR_REPLAY' && drifts) {
        counters.divergences++;
        return this.host.diverged();
      }
      if (this.isLost(worker, request)) return;
      if (drifts && bytes > 0 && worker.succession?.tap.counters.suppressed !== suppressed)
        throw new OracleError(`rank ${rank} repeats another message than it sent, and nobody says so`);
      // The user may use the buffer again at once.
      if (!sync) buffer.fill(0xee);
      worker.isMemorySent ||= isCollective && to !== rank;
    } else if (isCollective) {
      // It is the sender's for longer where nothing is logged any more.
      worker.memory = new Uint8Array(worker.memory.length);
    }
    if (drifts && bytes > 0) return this.host.diverged();
    request.onDone = () => this.host.wake(number);
    worker.sends.push({ place, request, buffer, isAgain: false });
  }

  /** What a message that has this value in every life has in this one. */
  private valueNow(worker: Worker, rank: number, value: number): number {
    const life = this.host.lifeOf?.(worker, rank);
    return life === undefined ? value : mix(value, life);
  }

  /** All that was ever sent on it has come, here. Others may have yet to receive what this rank has sent. */
  private free(worker: Worker, { ctx }: Free): void {
    const { counters } = this.host;
    this.host.pmlOf(worker.number).releaseContext(ctx);
    worker.freed.add(ctx);
    counters.freed++;
    if (worker.succession?.isReplaying === true) counters.freedAgain++;
  }

  /** It ended with an error: its peer has died when this process had given its log up, and all will go back. (The log may be whole again by now.) */
  private isLost(worker: Worker, request: SendRequest | RecvRequest): boolean {
    const { error, kind } = request;
    if (error === undefined) return false;
    // The error names it: a request may have been for its predecessor.
    if (error.code !== 'ERR_PROC_FAILED' || error.peer === undefined || !worker.notHeld.has(error.peer))
      throw new OracleError(`rank ${worker.rank}: a ${kind} ended with ${error.message}`);
    worker.isOver = true;
    return true;
  }

  private post(worker: Worker, { from, ctx, tag, bytes }: Receive, again: boolean): Pending {
    const { counters } = this.host;
    const { ended, place, rank, number } = worker;
    const isCollective = ctx === COLL_CTX;
    const buffer = isCollective ? worker.memory.subarray(0, bytes) : new Uint8Array(bytes).fill(0xdd);
    if (isCollective && worker.isMemorySent) counters.inPlace++;
    if (isCollective) worker.isMemorySent = false;
    const isAgain = again && ended !== undefined;
    if (isAgain) {
      worker.ended = undefined;
      counters.persistent++;
    }
    const pml = this.host.pmlOf(number);
    const source = from === ANY ? ANY : worker.members[from];
    const request = pml.irecv(source, ctx, tag, new Iov([buffer]), isAgain ? ended : undefined);
    this.furthest[rank] = Math.max(this.furthest[rank], place);
    request.onDone = () => this.host.wake(number);
    this.host.wake(number);
    return { place, request, buffer, isAgain };
  }

  private probe(worker: Worker, { from, ctx, tag }: Receive): Pending | undefined {
    const { place, rank, number, recorder } = worker;
    const pml = this.host.pmlOf(number);
    if (from === ANY && !this.probed.has(worker)) worker.probing ??= recorder?.begin();
    const wanted = from === ANY ? (worker.probing?.source ?? ANY) : from;
    const source = wanted === ANY ? ANY : worker.members[wanted];
    let probed = this.probed.get(worker);
    if (probed === undefined) {
      probed = pml.improbe(source, ctx, tag);
      if (probed !== undefined && worker.probing !== undefined) {
        this.mustBeAsListed(worker, recorder?.match(worker.probing.receive, probed.source, probed.seq));
        this.choices.set(choiceKey(rank, place), { source: worker.members.indexOf(probed.source), seq: probed.seq });
        worker.probing = undefined;
      }
    }
    if (probed === undefined) return undefined;
    // Some time passes between the probe and its receive.
    if (!this.probed.has(worker) && this.host.flip()) {
      this.probed.set(worker, probed);
      this.host.later(() => this.host.wake(number));
      return undefined;
    }
    this.probed.delete(worker);
    const buffer = new Uint8Array(probed.messageBytes).fill(0xdd);
    this.furthest[rank] = Math.max(this.furthest[rank], place);
    const request = pml.imrecv(probed, new Iov([buffer]));
    request.onDone = () => this.host.wake(number);
    this.host.wake(number);
    return { place, request, buffer, isAgain: false };
  }

  /** Its program is told to go back: what a probe has taken is received into nothing, as in src/mpi, since its sender waits for an answer. */
  dropProbed(worker: Worker): void {
    const probed = this.probed.get(worker);
    if (probed !== undefined) this.host.pmlOf(worker.number).imrecv(probed, new Iov([]));
    this.probed.delete(worker);
  }

  private joined(worker: Worker): boolean {
    for (let first = worker.posted[0]; first !== undefined; first = worker.posted[0]) {
      if (!first.request.done) return false;
      worker.posted.shift();
      this.received(worker, first);
      if (worker.isOver) return false;
    }
    for (const { request, place } of worker.sends) {
      const send = this.program.ops[worker.rank][place] as Send;
      // Without a log a long way of a message that is received late ends late: a program would not wait for it here.
      if (!request.done && isLate(send)) continue;
      if (!request.done) return false;
      if (this.isLost(worker, request)) return false;
      this.checkMatched(worker, place, send);
    }
    worker.sends = worker.sends.filter(({ request }) => !request.done);
    const { rank, place, state } = worker;
    this.seen.set(choiceKey(rank, place), state);
    if (!worker.drifts && !this.program.isWild && state !== this.program.expected[rank][place])
      throw new OracleError(`F8: rank ${rank} has another state at ${place}`);
    return true;
  }

  /** A synchronous send has ended. */
  private checkMatched({ rank, number }: Worker, place: number, { to, sync }: Send): void {
    const receivedAt = this.program.receivedAt[rank][place] as number;
    // What an earlier life of this process has sent is not waited for again; and members that go back at the same time answer each other.
    if (this.host.isLaterLife?.(number) === true) return;
    // Who has gone back answers what it does not receive.
    if (this.host.over !== undefined) return;
    if (sync && this.furthest[to] < receivedAt)
      throw new OracleError(`F9: a synchronous send of rank ${rank} at ${place} ends before rank ${to} receives at ${receivedAt}`);
  }

  /** F9: what a rank sees is what it sees when nobody dies. */
  private received(worker: Worker, { place, request, buffer }: Pending): void {
    const { rank } = worker;
    if (this.isLost(worker, request)) return;
    const { receivedBytes } = request as RecvRequest;
    const value = readMessage(buffer, receivedBytes);
    if (value === undefined) throw new OracleError(`F9: rank ${rank} receives a damaged message at ${place}`);
    const expected = this.program.expected[rank][place];
    this.seen.set(choiceKey(rank, place), value);
    const { from } = this.program.ops[rank][place] as Receive;
    if (!this.program.isWild && value !== (receivedBytes === 0 ? expected : this.valueNow(worker, from, expected as number)))
      throw new OracleError(`F9: rank ${rank} receives ${value} at ${place}; expected ${expected}`);
    // The buffer is the user's again.
    buffer.fill(0xcc);
    worker.ended = request as RecvRequest;
    worker.state = mix(worker.state, this.program.isWild ? value : (expected as number));
  }

  // ---------------------------------------------------------------- outcomes

  private fromAnybody({ ctx, tag, bytes }: AnyReceive): Receive {
    return { op: 'receive', from: ANY, ctx, tag, bytes };
  }

  private mustBeAsListed({ rank }: Worker, wrong: Error | undefined): void {
    if (wrong !== undefined) throw new OracleError(`F11: rank ${rank}: ${wrong.message}`);
  }

  /** Blocking, or by a probe. */
  private takeAny(worker: Worker, op: AnyReceive): boolean {
    const receive = this.fromAnybody(op);
    worker.current ??= op.how === 'probe' ? this.probe(worker, receive) : this.post(worker, receive, false);
    const { current } = worker;
    if (current === undefined || !current.request.done) return false;
    this.received(worker, current);
    const taken = this.choices.get(choiceKey(worker.rank, worker.place)) as Taken;
    if (!worker.isOver) worker.lastSource = taken.source;
    worker.current = undefined;
    return true;
  }

  /** A receive from anybody, which is at that place of its program, has taken a message. */
  took(worker: Worker, request: RecvRequest, source: number, seq: number): void {
    const pending = [worker.current, ...worker.posted].find((one) => one?.request === request);
    this.choices.set(choiceKey(worker.rank, pending?.place ?? worker.place), { source, seq });
  }

  /** False: what was listed has not happened again yet. */
  private look(worker: Worker, op: WildOp): boolean {
    const { recorder, rank, place } = worker;
    if (op.op === 'waitAny' && worker.posted.length === 0) return true;
    const kind = op.op === 'peek' ? EVENT.FOUND : EVENT.ENDED;
    try {
      worker.listed ??= { values: recorder?.next(kind) };
    } catch (error) {
      throw new OracleError(`F11: ${(error as Error).message}`);
    }
    const { values } = worker.listed;
    const found = this.outcome(worker, op, values);
    if (found === 'not yet') return false;
    if (values === undefined) recorder?.note(kind, found === undefined ? undefined : [found]);
    worker.listed = undefined;
    if (op.op === 'waitAny') {
      const [ended] = worker.posted.splice(found as number, 1);
      this.choices.set(choiceKey(rank, place), found as number);
      worker.state = mix(worker.state, found as number);
      this.received(worker, ended);
      return !worker.isOver;
    }
    const outcome = found === undefined ? 0 : found + 1;
    this.choices.set(choiceKey(rank, place), outcome);
    worker.state = mix(worker.state, outcome);
    return true;
  }

  /** What is listed, once it is so, or what is so. */
  private outcome(worker: Worker, op: WildOp, values: readonly number[] | 'nothing' | undefined): number | undefined | 'not yet' {
    if (values === 'nothing') return undefined;
    const { posted, members, number } = worker;
    if (op.op === 'peek') {
      const from = values?.[0] ?? op.from;
      const envelope = this.host.pmlOf(number).iprobe(from === ANY ? ANY : members[from], op.ctx, op.tag);
      if (envelope === undefined) return values === undefined ? undefined : 'not yet';
      return members.indexOf(envelope.source);
    }
    if (values !== undefined) return posted[values[0]]?.request.done ? values[0] : 'not yet';
    if (op.op === 'test') return posted[0]?.request.done ? 0 : undefined;
    const index = posted.findIndex(({ request }) => request.done);
    return index < 0 ? 'not yet' : index;
  }

  /** F11: what everybody has seen in the end follows from what was taken and found in the end. */
  checkOutcomes(): void {
    const { program } = this;
    if (!program.isWild) return;
    let expected: readonly (readonly (number | undefined)[])[];
    try {
      ({ expected } = interpret(program.ranks, program.ops, this.choices));
    } catch (error) {
      throw new OracleError(`F11: ${(error as Error).message}`);
    }
    for (const [rank, list] of program.ops.entries()) {
      for (const [place, op] of list.entries()) {
        const seen = this.seen.get(choiceKey(rank, place));
        if (seen !== undefined && seen !== expected[rank][place])
          throw new OracleError(
            `F11: rank ${rank} has seen ${seen} at ${place} (${op.op}); from the outcomes follows ${expected[rank][place]}`,
          );
      }
    }
  }
}
