// What a shadow knows of the messages of its rank, so that it can take the place of its lead: the numbers of what the lead has sent and received, and
// copies of what it has sent. The shadow itself has no messages: it counts along. Peers are the leads of their ranks, whoever has their places now.
// Pure.

import { FlowTable } from '../../pml/flow-table.ts';
import type { MessageLog } from '../../pml/message-log.ts';
import { LOGGED } from '../../pml/message-log.ts';
import type { Envelope, LoggedMessage } from '../../pml/records.ts';
import type { FlowCut } from '../../pml/succession.ts';
import type { Iov } from '../../util/iov.ts';
import { serialAdd, serialDiff } from '../../util/serial.ts';
import type { Word } from './digest.ts';

/** What the program has received from one peer on one context. */
interface Taken {
  /** The lowest number that it has not. */
  nextIn: number;
  /** Higher ones that it has. */
  readonly taken: Set<number>;
  /** Those of them that only a matched probe has taken: their data are not here. */
  readonly probed: Map<number, Envelope>;
  /** Something has changed since it was told last. */
  isNews: boolean;
}

class Flows extends FlowTable<Taken> {
  protected newFlowIn(): Taken {
    return { nextIn: 0, taken: new Set(), probed: new Map(), isNews: false };
  }
}

/** In place of a peer: all of them. */
export const ALL = -1;

/** Messages of that peer on that context that are not asked for any more. */
export interface TakenNumbers {
  /** Or ALL. */
  readonly peer: number;
  readonly ctx: number;
  /** Those with lower numbers; undefined: all, since the context is over. */
  readonly below: number | undefined;
}

/** Copies of what was sent to that peer, and is not asked for any more, go. */
export function dropTaken(log: MessageLog, peer: number, { ctx, below }: Omit<TakenNumbers, 'peer'>): void {
  log.dropTaken(peer, (of, seq) => of === ctx && (below === undefined || serialDiff(seq, below) < 0));
}

/** `below` as it travels: all is 0, and numbers come with one added. */
export function encodeBelow(below: number | undefined): number {
  return below === undefined ? 0 : below + 1;
}

export function decodeBelow(number: number): number | undefined {
  return number === 0 ? undefined : number - 1;
}

/** The lowest number of which the data are not here. */
function lowestOf({ nextIn, probed }: Taken): number {
  let lowest = nextIn;
  for (const seq of probed.keys()) if (serialDiff(seq, lowest) < 0) lowest = seq;
  return lowest;
}

export class ShadowStreams {
  readonly log: MessageLog;
  private readonly peers = new Map<number, Flows>();
  /** Contexts that have come to their ends since it was told last. */
  private over: number[] = [];

  constructor(log: MessageLog) {
    this.log = log;
  }

  private flows(peer: number): Flows {
    let flows = this.peers.get(peer);
    if (flows === undefined) {
      flows = new Flows();
      this.peers.set(peer, flows);
    }
    return flows;
  }

  /** The program has sent it. Returns its copy, if somebody has to wait for its match. */
  sent({ dest, ctx, tag, sync }: Omit<Word, 'digest'>, buffer: Iov, signature: number): LoggedMessage | undefined {
    const flow = this.flows(dest).flowOut(ctx);
    const { nextSeq: seq } = flow;
    flow.nextSeq = serialAdd(seq, 1);
    const answer = this.log.add(dest, ctx, tag, seq, signature, sync, buffer, false);
    return sync && answer === LOGGED ? this.log.newest(dest) : undefined;
  }

  /** The program has received that message. */
  received(peer: number, ctx: number, seq: number): void {
    const flow = this.flows(peer).flowIn(ctx);
    // A matched probe had taken it: the number is passed.
    if (!flow.probed.delete(seq)) this.pass(flow, seq);
    flow.isNews = true;
  }

  /** A matched probe has taken it, and its data are not here. */
  probed(peer: number, envelope: Envelope): void {
    const flow = this.flows(peer).flowIn(envelope.ctx);
    this.pass(flow, envelope.seq);
    flow.probed.set(envelope.seq, envelope);
  }

  private pass(flow: Taken, seq: number): void {
    if (seq !== flow.nextIn) {
      flow.taken.add(seq);
      return;
    }
    do flow.nextIn = serialAdd(flow.nextIn, 1);
    while (flow.taken.delete(flow.nextIn));
  }

  /** Nothing comes on that context any more. */
  contextOver(ctx: number): void {
    let wasUsed = false;
    for (const flows of this.peers.values()) {
      wasUsed ||= flows.flowsIn.has(ctx) || flows.flowsOut.has(ctx);
      flows.dropFlows(ctx);
    }
    if (wasUsed) this.over.push(ctx);
  }

  /** Contexts that have come to their ends since it was told last. */
  get overCount(): number {
    return this.over.length;
  }

  /** What is not asked for any more of peers, since it was told last. */
  news(): TakenNumbers[] {
    const list: TakenNumbers[] = this.over.map((ctx) => ({ peer: ALL, ctx, below: undefined }));
    this.over = [];
    for (const [peer, { flowsIn }] of this.peers) {
      for (const [ctx, flow] of flowsIn) {
        if (!flow.isNews) continue;
        flow.isNews = false;
        list.push({ peer, ctx, below: lowestOf(flow) });
      }
    }
    return list;
  }

  // ---------------------------------------------------------------- the place of the lead is taken

  /** The numbers, as the message layer goes on with them. `numberOf`: who has the place of that peer now. */
  flowCuts(numberOf: (peer: number) => number): FlowCut[] {
    const cuts: FlowCut[] = [];
    for (const [rank, flows] of this.peers) {
      for (const ctx of new Set([...flows.flowsIn.keys(), ...flows.flowsOut.keys()])) {
        const { nextIn, taken } = flows.flowIn(ctx);
        cuts.push({ peer: numberOf(rank), ctx, nextOut: flows.flowOut(ctx).nextSeq, nextIn, taken });
      }
    }
    return cuts;
  }

  /** Messages that matched probes have taken, and of which the data are not here. */
  get probedEnvelopes(): Envelope[] {
    const list: Envelope[] = [];
    for (const { flowsIn } of this.peers.values()) for (const { probed } of flowsIn.values()) list.push(...probed.values());
    return list;
  }
}
