// How a rank on which a collective failed tells the others: short notices on the service context of the runtime, apart from everything
// else, so that nobody waits for messages that will not come. And how what is left of such a collective is taken out of the way.
import { ERROR_CODES, type ErrorCode, MultirailError } from '../../errors.ts';
import type { RecvRequest } from '../../pml/records.ts';
import { EMPTY_IOV, Iov } from '../../util/iov.ts';
import { ANY_SOURCE } from '../constants.ts';
import { COLLECTIVE, ctxOf, SERVICE_ID } from '../contexts.ts';
import { type Asked, type FailureNews, type LocalProcess, mismatchError, type Question, type Scope, type Told } from './scope.ts';
import { agree, describeCode, type Signature } from './signature.ts';

const CTX = ctxOf(SERVICE_ID, COLLECTIVE);
const TAG = 0;
const NOTICE_BYTES_MAX = 2048;
/** Bytes of the text in the JSON: what else a notice holds is short. */
const TEXT_BYTES_MAX = 1600;
/** Bytes of the description of a call. */
const CALL_BYTES_MAX = 700;
/** Collectives of one context of which the rest is taken away; that of older ones stays where it is. */
const DRAINS_MAX = 256;
/** Notices for collectives that have not begun here; older ones go first. */
const EARLY_MAX = 1024;

/** Says that a collective has failed. */
interface Notice {
  ctx: number;
  tag: number;
  code: ErrorCode;
  text: string;
  peer?: number | undefined;
  /** The error is that of the earlier collective with this tag: it is told herewith. */
  late?: number | undefined;
}

export class FailureNotices implements FailureNews {
  private readonly proc: LocalProcess;
  private readonly buffer = new Uint8Array(NOTICE_BYTES_MAX);
  private isListening = false;
  private readonly early = new Map<string, Told>();
  private readonly questions = new Map<string, Asked>();
  /** Receives into nothing, by context and tag. */
  private readonly drains = new Map<number, Map<number, RecvRequest>>();

  constructor(proc: LocalProcess) {
    this.proc = proc;
  }

  /** Tells that process that the collective with this context and tag has failed here. */
  tell(world: number, ctx: number, tag: number, error: MultirailError, late = -1): void {
    const notice: Notice = {
      ctx,
      tag,
      code: error.code,
      text: fitText(error.message.slice(error.code.length + 2), TEXT_BYTES_MAX),
      peer: error.peer,
      ...(late === -1 ? {} : { late }),
    };
    this.send(world, notice);
  }

  private send(world: number, notice: Notice | Question): void {
    this.proc.pml.isend(world, CTX, TAG, new Iov([new TextEncoder().encode(JSON.stringify(notice))]));
    this.proc.engine.schedule();
  }

  /** Asks that process whether it makes the same call; `met`: it does not. It answers, to everybody, only if it does not. */
  ask(world: number, { ctx }: Scope, tag: number, signature: Signature, met: boolean): void {
    this.send(world, { ctx, tag, signature: signature.code, call: fitText(String(signature), CALL_BYTES_MAX), met });
  }

  /** Somebody has told, or asked, of calls that have not begun here. */
  get hasNews(): boolean {
    return this.early.size > 0 || this.questions.size > 0;
  }

  /** The error that was told of a collective that begins only now. */
  take(ctx: number, tag: number): Told | undefined {
    this.listen();
    if (this.early.size === 0) return undefined;
    const key = `${ctx}/${tag}`;
    const told = this.early.get(key);
    this.early.delete(key);
    return told;
  }

  /** The question that was asked about a collective that begins only now. */
  takeQuestion(ctx: number, tag: number): Asked | undefined {
    if (this.questions.size === 0) return undefined;
    const key = `${ctx}/${tag}`;
    const asked = this.questions.get(key);
    this.questions.delete(key);
    return asked;
  }

  /** From the first collective on: programs without any have nothing posted. */
  private listen(): void {
    if (this.isListening) return;
    this.isListening = true;
    this.proc.watchCalls();
    const { pml } = this.proc;
    // A notice is nothing that anybody waits for.
    for (;;) {
      const request = pml.irecvInBackground(ANY_SOURCE, CTX, TAG, new Iov([this.buffer]), this.onNotice);
      if (!request.done) return;
      this.read(request);
    }
  }

  private readonly onNotice = (request: RecvRequest): void => {
    this.isListening = false;
    // The runtime is being finalized.
    if (request.error !== undefined) return;
    this.read(request);
    this.listen();
  };

  private read(request: RecvRequest): void {
    const notice = decode(this.buffer.subarray(0, request.receivedBytes));
    if (notice === undefined) return;
    if ('signature' in notice) return this.answer({ ...notice, from: request.matchedSource });
    const { ctx, tag, code, text, peer } = notice;
    const error = new MultirailError(code, `${text} (rank ${request.matchedSource} of the world has told)`, {
      rank: this.proc.rank,
      ...(peer === undefined ? {} : { peer }),
    });
    const late = notice.late ?? -1;
    const running = this.proc.findOperation(ctx, tag);
    if (running === undefined && this.proc.hasBegun(ctx, tag)) {
      // It ended well here: nobody was told by it of the earlier one either.
      if (code === 'ERR_COLLECTIVE_MISMATCH') this.endedWell(ctx, late === -1 ? tag : late, error);
      // What others have sent for it by then is of no use.
      return this.drain(ctx, tag);
    }
    if (late !== -1) this.proc.scopeOf(ctx)?.ledger.failed(late);
    if (running !== undefined) return running.fail(error, false, late);
    const key = `${ctx}/${tag}`;
    if (this.early.has(key)) return;
    this.early.set(key, { error, late });
    // Whoever has sent for it already waits for that to be taken.
    if (this.proc.scopeOf(ctx) !== undefined) this.drain(ctx, tag);
    if (this.early.size > EARLY_MAX) for (const [oldest] of this.early) return void this.early.delete(oldest);
  }

  /** That collective has ended here, and it turns out that others made another call: the first after it that runs, or the next, ends with it. */
  private endedWell(ctx: number, tag: number, error: MultirailError): void {
    const scope = this.proc.scopeOf(ctx);
    const entry = scope?.ledger.find(tag);
    if (scope === undefined || entry === undefined || entry.failed) return;
    entry.failed = true;
    const running = this.proc.runningAfter(ctx, entry.order);
    if (running === undefined) scope.ledger.late = { error, tag };
    else running.fail(error, true, tag);
  }

  private answer(asked: Asked): void {
    const { proc } = this;
    const { ctx, tag, from } = asked;
    const scope = proc.scopeOf(ctx);
    const running = proc.findOperation(ctx, tag);
    const own = running?.signature ?? scope?.ledger.find(tag)?.signature;
    if (own === undefined && !proc.hasBegun(ctx, tag)) {
      const key = `${ctx}/${tag}`;
      if (!this.questions.has(key)) this.questions.set(key, asked);
      if (this.questions.size > EARLY_MAX) for (const [oldest] of this.questions) return void this.questions.delete(oldest);
      return;
    }
    const where = running?.scope ?? scope;
    if (where === undefined || (!asked.met && (own === undefined || agree(own.code, asked.signature)))) return;
    const ownCall = own === undefined || agree(own.code, asked.signature) ? 'another one' : String(own);
    const error = mismatchError(where, [where.members.indexOf(from), asked.call], [where.rank, ownCall]);
    if (running !== undefined) return running.fail(error, true);
    for (const world of where.members) if (world !== proc.rank) this.tell(world, ctx, tag, error);
    this.endedWell(ctx, tag, error);
    // What ranks of the other call have sent for this one is taken by nobody else, and they wait for that when they leave.
    this.drain(ctx, tag);
  }

  // ---------------------------------------------------------------- what is left

  /** From now on everything that comes for that collective is received into nothing, so that nobody waits for it to be taken. */
  drain(ctx: number, tag: number): void {
    let byTag = this.drains.get(ctx);
    if (byTag === undefined) {
      byTag = new Map();
      this.drains.set(ctx, byTag);
    }
    if (byTag.has(tag)) return;
    this.postDrain(byTag, ctx, tag);
    if (byTag.size > DRAINS_MAX) for (const oldest of byTag.values()) return void this.proc.cancel(oldest);
  }

  private postDrain(byTag: Map<number, RecvRequest>, ctx: number, tag: number): void {
    const { pml } = this.proc;
    const onDone = ({ error, cancelled }: RecvRequest): void => {
      byTag.delete(tag);
      // Its truncation is what was wanted; with any other error, or cancelled, the context is gone.
      const hasTaken = error === undefined || error.code === 'ERR_TRUNCATE';
      if (hasTaken && !cancelled) this.postDrain(byTag, ctx, tag);
    };
    for (;;) {
      const request = pml.irecvInBackground(ANY_SOURCE, ctx, tag, EMPTY_IOV, onDone);
      if (request.done) continue;
      byTag.set(tag, request);
      return;
    }
  }

  /** Receives of that kind that are posted on the context. */
  drainsOn(ctx: number): number {
    return this.drains.get(ctx)?.size ?? 0;
  }

  /** The context is gone. */
  forget(ctx: number): void {
    for (const request of this.drains.get(ctx)?.values() ?? []) this.proc.cancel(request);
    this.drains.delete(ctx);
  }
}

/** As much of the text as fits into a notice, cut between code points: its escapes and its bytes beyond ASCII count as they travel. */
function fitText(text: string, bytesMax: number): string {
  let bytes = 0;
  let at = 0;
  for (const point of text) {
    bytes += Buffer.byteLength(JSON.stringify(point)) - 2;
    if (bytes > bytesMax) return `${text.slice(0, at)}…`;
    at += point.length;
  }
  return text;
}

/** Whatever came: a notice that says which collective has failed counts, even if the rest of it cannot be read. */
function decode(bytes: Uint8Array): Notice | Question | undefined {
  const json = new TextDecoder().decode(bytes);
  let given: Partial<Notice & Question> | null;
  try {
    given = JSON.parse(json) as Partial<Notice & Question> | null;
  } catch {
    const head = /^\{"ctx":(\d+),"tag":(\d+),"code":"(\w+)"/.exec(json);
    given = head === null ? null : { ctx: Number(head[1]), tag: Number(head[2]), code: head[3] as ErrorCode };
  }
  if (typeof given !== 'object' || given === null) return undefined;
  const { ctx, tag, code, text, peer, late, signature, call, met } = given;
  if (!isWhole(ctx) || !isWhole(tag)) return undefined;
  if (isWhole(signature))
    return { ctx, tag, signature, call: typeof call === 'string' ? call : describeCode(signature), met: met === true };
  return {
    ctx,
    tag,
    code: code !== undefined && Object.hasOwn(ERROR_CODES, code) ? code : 'ERR_INTERNAL',
    text: typeof text === 'string' ? text : 'the collective has failed there, and the text of its error could not be read',
    peer: isWhole(peer) ? peer : undefined,
    late: isWhole(late) ? late : undefined,
  };
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
