// Blocking calls of a process that is one of two replicas: what they wait for ends in bursts, whose order the lead decides, and the shadow ends
// each call where the lead has ended it. A shadow may become a lead in the middle of a call.

import { LeadPml } from '../../ft/replica/lead.ts';
import { type Found, NOTHING } from '../../ft/replica/paired-pml.ts';
import type { ShadowPml } from '../../ft/replica/shadow.ts';
import type { Envelope, RecvRequest } from '../../pml/records.ts';
import { type Awaited, BlockingWaiter } from '../../progress/blocking.ts';
import type { Driver, Engine } from '../../progress/engine.ts';
import { lookOnce } from '../../progress/look-once.ts';

/** What a look finds where it has come by something. */
const SOMETHING: Found = [1];

export class PairedWaiter extends BlockingWaiter {
  private readonly owner: Engine;
  /** The layer of this process as it is now. */
  private readonly layer: () => LeadPml | ShadowPml;

  constructor(engine: Engine, driver: Driver, spinUs: number, layer: () => LeadPml | ShadowPml) {
    super(engine, driver, spinUs);
    this.owner = engine;
    this.layer = layer;
  }

  override wait(request: Awaited, deadlineMs = Number.POSITIVE_INFINITY): boolean {
    const { owner, layer } = this;
    const call = layer().beginCall();
    const wasLead = layer().isLead;
    let isOver = false;
    const awaited: Awaited = {
      get done() {
        // Nothing of the program runs in the middle of a turn.
        if (request.done || owner.isRunning) return request.done;
        const pml = layer();
        pml.turn(call);
        if (!pml.isLead && !request.done) {
          isOver = (pml as ShadowPml).takeOver(call);
          if (!isOver) (pml as ShadowPml).mustNotLook();
        }
        pml.flush();
        return request.done || isOver;
      },
      isOver: () => request.isOver?.() === true || (!wasLead && layer().isLead && this.now() >= deadlineMs),
    };
    // The time of the lead counts for both; of one that has become the lead, its own.
    const inTime = super.wait(awaited, wasLead ? deadlineMs : Number.POSITIVE_INFINITY);
    const pml = layer();
    if (!(pml instanceof LeadPml)) return inTime && (!isOver || request.done);
    const isLate = wasLead ? !inTime : !request.done && this.now() >= deadlineMs;
    return isLate ? !pml.noteOver(call, () => request.done) : inTime && (!isOver || request.done);
  }

  /** As a call that polls the rails once. */
  look(): void {
    this.lookFor(() => NOTHING);
  }

  /** Polls the rails once, and finds a message or not. */
  probe(source: number, ctx: number, tag: number, takes: boolean): Envelope | undefined {
    let envelope: Envelope | undefined;
    let isOwn = false;
    const found = this.lookFor((lead) => {
      isOwn = true;
      envelope = lead.find(source, ctx, tag, takes);
      return envelope === undefined ? NOTHING : foundOf(envelope);
    });
    return isOwn || found.length === 0 ? envelope : (this.layer() as ShadowPml).found(ctx, found, takes);
  }

  /** The program takes a receive back, and learns at once whether it could be. */
  cancel(request: RecvRequest): boolean {
    const pml = this.layer();
    const found = pml instanceof LeadPml ? undefined : this.obey(pml.beginCall());
    if (found === undefined) return (this.layer() as LeadPml).cancel(request);
    if (found[0] === 1) (pml as ShadowPml).cancelled(request);
    return found[0] === 1;
  }

  private lookFor(find: (lead: LeadPml) => Found): Found {
    const { owner } = this;
    const call = this.layer().beginCall();
    const obeyed = this.layer().isLead ? undefined : this.obey(call);
    if (obeyed !== undefined) return obeyed;
    const pml = this.layer() as LeadPml;
    lookOnce(owner);
    const hasEnded = pml.turnForLook(call);
    const found = find(pml);
    pml.noteLook(found.length === 0 && hasEnded ? SOMETHING : found);
    return found;
  }

  /** What the lead has found in this place; undefined: this process has become the lead. */
  private obey(call: number): Found | undefined {
    const { layer, owner } = this;
    let found: Found | undefined;
    super.wait({
      get done() {
        if (found !== undefined) return true;
        if (owner.isRunning) return false;
        const pml = layer();
        if (pml.isLead) return true;
        const shadow = pml as ShadowPml;
        while (shadow.turn(call)) {}
        shadow.flush();
        found = shadow.takeLook();
        return found !== undefined;
      },
    });
    return found;
  }
}

/** What a look says of a message. */
export function foundOf({ source, tag, signature, messageBytes, seq }: Envelope): Found {
  return [source, tag, signature, messageBytes, seq];
}
