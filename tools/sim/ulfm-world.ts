// The simulated world of src/ulfm: each process has the production engine, PML and BML and its own core of src/ulfm, whose service messages
// are messages of the PML over simulated rails. A simulated detector tells of deaths, as late and to as few as the run has drawn; the
// rest hears it by the flood. Programs (ulfm-programs.ts) run on top, with traffic of their own on each communicator.
import { ANY } from '../../src/pml/match.ts';
import type { RecvRequest } from '../../src/pml/records.ts';
import { EVIDENCE, type Notice } from '../../src/ulfm/knowledge.ts';
import type { AgreementListener } from '../../src/ulfm/states.ts';
import { SERVICE, SERVICE_NAMES, serviceBytesMax } from '../../src/ulfm/wire.ts';
import { Iov } from '../../src/util/iov.ts';
import type { Prng } from '../../src/util/prng.ts';
import { OracleError, type PostedReceive, type SentMessage } from './oracle.ts';
import { FIRST_ID, type UlfmProcess, UlfmPrograms } from './ulfm-programs.ts';
import { World, type WorldOptions } from './world.ts';

export { FIRST_ID };

/** As ctxOf(SERVICE_ID, OBJECT) of src/mpi. */
export const SERVICE_CTX = 6;
/** The user's messages of that communicator. */
export const ctxOf = (id: number): number => 4 * id;
/** A process that is paused gets what its user wanted meanwhile, so much later at most. */
const RESUME_EVERY_US = 1000;

/** Who hears of a death by a word that does not come over rails, each with a sentence. The others hear it by the flood alone. */
export const DETECTORS = {
  server: 'The server of the job tells everybody.',
  dyingServer: 'The server tells everybody until it dies itself; then kernels tell those of the same host.',
  host: 'Kernels tell those of the same host; if none of them lives, somebody finds all addresses refused.',
  few: 'One living process finds out.',
} as const;
export type Detector = keyof typeof DETECTORS;

export interface UlfmWorldOptions extends WorldOptions {
  members: number;
  detector: Detector;
  /** How many processes a host has. */
  hostSize: number;
  /** The longest that word of a death takes, in microseconds: drawn for each word. */
  newsUs: readonly number[];
  /** When the server dies. */
  serverDiesUs: number;
  keepsDecisions: boolean;
  /** So many of the processes, the last ones, join after the start. */
  joiners?: number;
  /** Calls of replace() may wait for those. */
  mayWait?: boolean;
  /** The user leaves as soon as its program is over: there is no traffic then. */
  leavesEarly: boolean;
  listener?: AgreementListener;
}

export interface SimUlfmProcess extends UlfmProcess {
  /** What waits until the process gets a turn again. */
  readonly backlog: (() => void)[];
  /** The receive that is posted for the service messages of each process. */
  readonly listening: Map<number, RecvRequest>;
  /** Its program is over. */
  isDone: boolean;
}

/** At a service message: which kind, and where. */
export interface ServiceSighting {
  readonly type: number;
  readonly from: number;
  readonly to: number;
}

export class UlfmWorld extends UlfmPrograms<SimUlfmProcess> {
  readonly world: World;
  readonly options: UlfmWorldOptions;
  /** Receives of the application. */
  readonly posted: PostedReceive[] = [];
  readonly contexts = new Set<number>();
  /** The faults are over: nobody dies any more. */
  isQuiet = false;
  /** Called at each death. */
  readonly onDeath: (() => void)[] = [];
  deaths = 0;
  /** Deaths of which the word went to too few, or may have been lost with those that had it. */
  private readonly wordBy = new Map<number, readonly number[]>();
  /** Types of the service messages of each pair, by their sequence number. */
  private readonly types = new Map<number, number[]>();
  /** With whom a rendezvous was under way when a communicator was revoked here. */
  private readonly rendezvous: { number: number; id: number; other: number }[] = [];
  /** The longest service message that there can be. */
  private readonly messageBytesMax: number;
  private serial = 0;

  constructor(prng: Prng, options: UlfmWorldOptions) {
    super(prng, options.members);
    this.options = options;
    this.world = new World({
      ...options,
      services: new Set([SERVICE_CTX, ...(options.services ?? [])]),
      // Whoever leaves takes no service messages any more.
      ...(options.leavesEarly ? { leavesUnreceived: true as const } : {}),
      onPeerFailed: (rank, peer) => this.onPeerFailed(rank, peer),
      onTurn: (rank) => this.stopListening(this.processes[rank]),
      onPeerLeft: (rank, peer) => this.act(this.processes[rank], () => this.processes[rank].core.handleLeft(peer)),
    });
    this.messageBytesMax = serviceBytesMax(options.ranks);
    for (let number = 0; number < options.ranks; number++) {
      const process: SimUlfmProcess = {
        ...this.makeProgram(number, () => process, options.listener),
        backlog: [],
        listening: new Map(),
        isDone: false,
      };
      this.processes.push(process);
    }
    for (const process of this.processes)
      for (const { rank } of this.world.processes[process.number].engine.pml.peers) this.listen(process, rank);
    this.mayWait = options.mayWait === true;
    this.begin(options.keepsDecisions, options.joiners);
  }

  at(delay: number, run: () => void): void {
    const { fabric } = this.world;
    fabric.at(fabric.nowUs + delay, run);
  }

  protected trace(line: string): void {
    const { fabric } = this.world;
    if (fabric.tracing) fabric.note(line);
  }

  // ---------------------------------------------------------------- messages

  /**
   * Takes the service messages of each process by a receive of its own. With one receive for all, a message that is long, or finds no
   * credit, and whose sender dies in the middle of it would keep the word of this very death from being heard.
   */
  private listen(process: SimUlfmProcess, source: number): void {
    const { pml } = this.world.processes[process.number].engine;
    const buffer = new Uint8Array(this.messageBytesMax);
    const take = ({ error, receivedBytes, cancelled }: RecvRequest): boolean => {
      if (cancelled) return false;
      if (error === undefined) this.take(process, source, buffer.slice(0, receivedBytes));
      else if (!this.world.isParted(process.number, source))
        throw new OracleError(`process ${process.number} lost a service message of ${source}: ${error.message}`);
      // As the production code does: what came behind a long one is heard by nobody.
      else pml.dropUnexpected(source, SERVICE_CTX);
      // Nothing comes any more from one that has left, or is dead; and this process may have said BYE to it.
      return error === undefined && !pml.peer(source).leaving;
    };
    const next = (): void => {
      for (;;) {
        const request = pml.irecvInBackground(source, SERVICE_CTX, 0, new Iov([buffer]), (done) => {
          if (take(done)) next();
        });
        if (!request.done) {
          process.listening.set(source, request);
          return;
        }
        if (!take(request)) return;
      }
    };
    next();
  }

  private take(process: SimUlfmProcess, source: number, message: Uint8Array): void {
    this.trace(`process ${process.number} gets ${SERVICE_NAMES[message[1]]}${message[3] & 1 ? ' direct' : ''} of ${source}`);
    this.act(process, () => process.core.handleMessage(source, message));
  }

  protected post({ number }: SimUlfmProcess, to: number, bytes: Uint8Array): void {
    const { engine } = this.world.processes[number];
    const request = engine.pml.isend(to, SERVICE_CTX, 0, new Iov([bytes]));
    engine.schedule();
    // It has left, or failed: nothing went out.
    if (request.done && request.error !== undefined) return;
    const pair = number * this.options.ranks + to;
    const types = this.types.get(pair);
    if (types === undefined) this.types.set(pair, [bytes[1]]);
    else types.push(bytes[1]);
  }

  /** What kind of service message that is, by its place in the sequence of its pair. */
  typeOf(from: number, to: number, seq: number): number | undefined {
    return this.types.get(from * this.options.ranks + to)?.[seq];
  }

  /** As soon as the process gets a turn: it may be paused. */
  override act(process: SimUlfmProcess, run: () => void): void {
    const { number, backlog } = process;
    if (!this.world.fabric.isPaused(number) && backlog.length === 0) return super.act(process, run);
    backlog.push(run);
    if (backlog.length === 1) this.resumeLater(process);
  }

  /** Behind what it has been given to do and has not done: it may not have opened yet what was made. */
  protected override endCreation(process: SimUlfmProcess): void {
    if (process.backlog.length === 0) super.endCreation(process);
    else process.backlog.push(() => super.endCreation(process));
  }

  private resumeLater(process: SimUlfmProcess): void {
    this.at(RESUME_EVERY_US, () => {
      if (this.world.fabric.isPaused(process.number)) return this.resumeLater(process);
      for (const run of process.backlog.splice(0)) super.act(process, run);
    });
  }

  // ---------------------------------------------------------------- deaths

  /** The process is dead from this moment on, wherever in its work it is. */
  kill(number: number, host: 'up' | 'down' = 'up'): void {
    const process = this.processes[number];
    if (!process.isAlive || process.hasLeft || this.isQuiet || this.absent.has(number)) return;
    this.die(process, host);
    this.oracle.kill(number);
    this.spreadNews(number);
  }

  private die(process: SimUlfmProcess, host: 'up' | 'down'): void {
    process.isAlive = false;
    this.deaths++;
    // In the middle of a turn of the engine: what it has given to a rail before is on its way, or lost there.
    this.at(0, () => this.world.kill(process.number, host));
  }

  /** A process is declared dead while it lives: it hears of it at some time, and ends itself. */
  declare(number: number): void {
    const process = this.processes[number];
    if (!process.isAlive || process.hasLeft || this.isQuiet || this.absent.has(number)) return;
    this.trace(`process ${number} is declared dead, and lives`);
    this.oracle.declared.add(number);
    for (const other of this.processes) this.world.expectDeath(other.number, number);
    this.spreadNews(number);
    this.at(this.prng.pick(this.options.newsUs), () => {
      // Whoever has left and waits for the others to do so hears it as well.
      if (process.isAlive && process.hasLeft) this.die(process, 'up');
      else this.tell(process, number, EVIDENCE.HOST_SILENT);
    });
  }

  protected override onOwnDeath(process: SimUlfmProcess): void {
    if (!process.isAlive) return;
    this.trace(`process ${process.number} ends itself: ${process.core.ownDeath?.text}`);
    this.die(process, 'up');
  }

  /** The engine has given a peer up: because it was told here, or because that one refuses us, as one does with the dead. */
  private onPeerFailed(rank: number, peer: number): void {
    const { core } = this.processes[rank];
    if (core.knowledge.isFailed(peer) || this.world.isDead(peer) || this.absent.has(rank)) return;
    const notice = { serial: 0, number: rank, incarnation: 1, evidence: EVIDENCE.PEER_FAILED, text: `process ${peer} refused it` };
    this.act(this.processes[rank], () => void core.handleNotice(notice));
  }

  protected override onDeaths({ number }: SimUlfmProcess, notices: readonly Notice[]): void {
    for (const notice of notices) this.world.tellFailed(number, notice.number);
  }

  private tell(process: SimUlfmProcess, number: number, evidence: number): void {
    const serial = evidence === EVIDENCE.ENDED ? ++this.serial : 0;
    this.act(process, () => void process.core.handleNotice({ serial, number, incarnation: 1, evidence, text: 'it was killed' }));
  }

  private tellLater(others: readonly SimUlfmProcess[], number: number, evidence: number): void {
    for (const other of others)
      this.at(this.prng.pick(this.options.newsUs) * this.prng.between(1, 3), () => this.tell(other, number, evidence));
  }

  /** The server is there, and hears of deaths. */
  protected override get isServed(): boolean {
    const { detector, serverDiesUs } = this.options;
    return detector === 'server' || (detector === 'dyingServer' && this.world.fabric.nowUs < serverDiesUs);
  }

  override joinJob(): void {
    if (!this.isQuiet) super.joinJob();
  }

  protected override takeOld(process: SimUlfmProcess, number: number): void {
    super.takeOld(process, number);
    this.world.tellFailed(process.number, number);
  }

  private spreadNews(number: number): void {
    const { detector, hostSize } = this.options;
    for (const react of this.onDeath) react();
    // Those that have not joined are no processes yet: their engines must not wait for it at the end.
    for (const other of this.absent) this.at(0, () => this.world.tellFailed(other, number));
    const others = this.processes.filter((other) => other.number !== number && other.isAlive && !this.absent.has(other.number));
    if (others.length === 0) return;
    const { isServed } = this;
    if (isServed) this.processOver(number);
    const host = Math.floor(number / hostSize);
    const near = detector === 'few' ? [] : others.filter((other) => Math.floor(other.number / hostSize) === host);
    const [told, evidence] = isServed
      ? ([others, EVIDENCE.ENDED] as const)
      : near.length > 0
        ? ([near, EVIDENCE.PIDFD] as const)
        : ([[this.prng.pick(others)], EVIDENCE.REFUSED] as const);
    this.wordBy.set(
      number,
      told.map((process) => process.number),
    );
    this.tellLater(told, number, evidence);
  }

  /**
   * In the quiet phase. One death alone must be known by the flood, if anybody who was told lives. Where more have died, the word may have
   * been lost with those who passed it on: then those whose rails are refused find out, as they would. Whoever leaves takes no part in the
   * flood any more, and hears of it from the server.
   */
  rescueNews(): void {
    for (const process of this.processes) if (process.isAlive && process.hasLeft) this.tellWhoHasLeft(process);
    const isAlone = this.wordBy.size === 1;
    for (const [number, told] of this.wordBy) {
      if (isAlone && told.some((each) => this.willPassOn(each, number))) continue;
      const others = this.processes.filter((other) => other.isAlive && !other.core.knowledge.isFailed(number));
      this.tellLater(others, number, EVIDENCE.REFUSED);
    }
  }

  private tellWhoHasLeft({ number }: SimUlfmProcess): void {
    for (const dead of this.wordBy.keys()) this.world.tellFailed(number, dead);
  }

  /** That process has told others of the death, or will: where everybody leaves early, it may have left before the word comes to it. */
  private willPassOn(number: number, dead: number): boolean {
    const { isAlive, hasLeft, core } = this.processes[number];
    return isAlive && !hasLeft && (!this.options.leavesEarly || core.knowledge.isFailed(dead));
  }

  // ---------------------------------------------------------------- leaving

  leave(process: SimUlfmProcess): void {
    if (!process.isAlive || process.hasLeft) return;
    process.isDone = true;
    if (!this.options.leavesEarly) return;
    this.trace(`process ${process.number} leaves`);
    process.hasLeft = true;
    this.oracle.left.add(process.number);
    this.processOver(process.number);
    if (this.isQuiet) this.tellWhoHasLeft(process);
    this.world.finalize(process.number);
  }

  /**
   * Whoever leaves goes on taking service messages, and drops them, until it has said BYE to their sender: two that leave would otherwise
   * wait for each other's.
   */
  private stopListening({ number, hasLeft, listening }: SimUlfmProcess): void {
    if (!hasLeft || listening.size === 0) return;
    const { pml } = this.world.processes[number].engine;
    for (const [source, request] of listening) {
      if (!pml.peer(source).leaving) continue;
      pml.cancel(request);
      listening.delete(source);
    }
  }

  // ---------------------------------------------------------------- traffic and revocation

  protected override onOpened(_process: SimUlfmProcess, id: number): void {
    this.contexts.add(ctxOf(id));
  }

  /** A message between two members, and, mostly, its receive. Returns whether there was one. */
  sendSomething(prng: Prng, bytes: number): boolean {
    const source = prng.pick(this.processes);
    const ids = [...source.ids].filter((id) => this.mayTalk(source, id));
    if (ids.length === 0) return false;
    const id = prng.pick(ids);
    const dest = this.processes[prng.pick(source.core.membersOf(id))];
    if (source.core.knowledge.isGone(dest.number)) return false;
    const tag = prng.below(3);
    const message = this.world.isend(source.number, dest.number, ctxOf(id), tag, bytes, prng.chance(1, 8));
    this.sends.push({ message, id });
    if (prng.chance(1, 8) || !dest.ids.has(id) || !this.mayTalk(dest, id)) return true;
    const from = prng.chance(1, 3) ? ANY : source.number;
    this.posted.push(this.world.irecv(dest.number, from, ctxOf(id), prng.chance(1, 3) ? ANY : tag, 12_000));
    return true;
  }
  private readonly sends: { message: SentMessage; id: number }[] = [];

  private mayTalk({ number, isAlive, hasLeft, core, ids, backlog }: SimUlfmProcess, id: number): boolean {
    return isAlive && !hasLeft && backlog.length === 0 && !this.world.fabric.isPaused(number) && ids.has(id) && !core.isRevoked(id);
  }

  protected rendezvousWith({ number, core }: SimUlfmProcess, id: number): Iterable<number> {
    const ranks = new Set<number>();
    const members = core.membersOf(id);
    for (const { message } of this.sends) {
      if (message.ctx !== ctxOf(id) || message.matchedBy?.done === true) continue;
      if (message.source === number && !message.done) ranks.add(members.indexOf(message.dest));
      if (message.dest === number && message.matchedBy !== undefined) ranks.add(members.indexOf(message.source));
    }
    // A process that was a member in an older generation has no rank any more.
    ranks.delete(-1);
    ranks.delete(members.indexOf(number));
    for (const rank of ranks) this.rendezvous.push({ number, id, other: members[rank] });
    return ranks;
  }

  protected override onRevoked({ number }: SimUlfmProcess, id: number): void {
    this.trace(`process ${number} has ${id} revoked`);
    this.world.revoke(number, ctxOf(id));
  }

  /** I19: whoever was declared dead has heard of it and ended itself. */
  checkDeclared(): void {
    for (const { number, isAlive, hasLeft } of this.processes) {
      if (isAlive && !hasLeft && this.oracle.declared.has(number))
        throw new OracleError(`I19: process ${number} was declared dead, and lives on`);
    }
  }

  /** I24: nothing of a revoked communicator is under way between those that live, and who had a rendezvous has an answer. */
  checkRevoked(): void {
    const isOut = (number: number) => !this.processes[number].isAlive || this.processes[number].hasLeft;
    for (const { message, id } of this.sends) {
      const { source, dest, done, index } = message;
      if (done || isOut(source) || isOut(dest)) continue;
      if ([source, dest].every((number) => this.processes[number].ids.has(id) && this.processes[number].core.isRevoked(id)))
        throw new OracleError(`I24: send ${index} from ${source} to ${dest} is under way on communicator ${id}, which is revoked`);
    }
    for (const { rank, ctx, done } of this.posted) {
      if (!done && !isOut(rank) && this.world.oracle.isRevoked(rank, ctx))
        throw new OracleError(`I24: a receive of process ${rank} is under way on communicator ${ctx / 4}, which is revoked there`);
    }
    for (const { number, id, other } of this.rendezvous) {
      const { core } = this.processes[number];
      if (isOut(number) || isOut(other) || core.hasHeardRevoke(id, core.membersOf(id).indexOf(other))) continue;
      throw new OracleError(`I24: process ${number} had a rendezvous with ${other} on communicator ${id}, and no answer to its revocation`);
    }
  }

  // ---------------------------------------------------------------- the end

  get isFinished(): boolean {
    return this.unfinished.length === 0 && this.oracle.isFinished;
  }

  get isKnown(): boolean {
    for (const _ of this.oracle.unknownDeaths()) return false;
    return true;
  }

  /** Messages of one type, for reports. */
  sentOf(type: keyof typeof SERVICE): number {
    return this.sent[SERVICE[type]] ?? 0;
  }
}
