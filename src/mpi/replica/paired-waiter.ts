// Blocking calls of a process that is one of two replicas: what they wait for ends in bursts, whose order the lead decides, and the shadow ends
// each call where the lead has ended it.

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
  private readonly pml: LeadPml | ShadowPml;

  constructor(engine: Engine, driver: Driver, spinUs: number, pml: LeadPml | ShadowPml) {
    super(engine, driver, spinUs);
    this.owner = engine;
    this.pml = pml;
  }

  override wait(request: Awaited, deadlineMs = Number.POSITIVE_INFINITY): boolean {
    const { pml, owner } = this;
    const call = pml.beginCall();
    let isOver = false;
    const awaited: Awaited = {
      get done() {
        // Nothing of the program runs in the middle of a turn.
        if (request.done || owner.isRunning) return request.done;
        pml.turn(call);
        if (!pml.isLead && !request.done) {
          isOver = (pml as ShadowPml).takeOver(call);
          if (!isOver) (pml as ShadowPml).mustNotLook();
        }
        pml.flush();
        return request.done || isOver;
      },
      isOver: () => request.isOver?.() === true,
    };
    // The time of the lead counts for both.
    const inTime = super.wait(awaited, pml.isLead ? deadlineMs : Number.POSITIVE_INFINITY);
    if (!inTime && pml instanceof LeadPml) return !pml.noteOver(call, () => request.done);
    return inTime && (!isOver || request.done);
  }

  /** As a call that polls the rails once. */
  look(): void {
    this.lookFor(() => NOTHING);
  }

  /** Polls the rails once, and finds a message or not. */
  probe(source: number, ctx: number, tag: number, takes: boolean): Envelope | undefined {
    const { pml } = this;
    let envelope: Envelope | undefined;
    const found = this.lookFor((lead) => {
      envelope = lead.find(source, ctx, tag, takes);
      return envelope === undefined ? NOTHING : [envelope.source, envelope.tag, envelope.signature, envelope.messageBytes];
    });
    return pml.isLead || found.length === 0 ? envelope : (pml as ShadowPml).lookedUp(ctx, found);
  }

  /** The program takes a receive back, and learns at once whether it could be. */
  cancel(request: RecvRequest): boolean {
    const { pml } = this;
    if (pml instanceof LeadPml) return pml.cancel(request);
    const isCancelled = this.obey(pml.beginCall())[0] === 1;
    if (isCancelled) (pml as ShadowPml).cancelled(request);
    return isCancelled;
  }

  private lookFor(find: (lead: LeadPml) => Found): Found {
    const { pml, owner } = this;
    const call = pml.beginCall();
    if (!(pml instanceof LeadPml)) return this.obey(call);
    lookOnce(owner);
    const hasEnded = pml.turnForLook(call);
    const found = find(pml);
    pml.noteLook(found.length === 0 && hasEnded ? SOMETHING : found);
    return found;
  }

  /** What the lead has found in this place. */
  private obey(call: number): Found {
    const { pml, owner } = this;
    const shadow = pml as ShadowPml;
    let found: Found | undefined;
    super.wait({
      get done() {
        if (found !== undefined || owner.isRunning) return found !== undefined;
        while (shadow.turn(call)) {}
        shadow.flush();
        found = shadow.takeLook();
        return found !== undefined;
      },
    });
    return found as unknown as Found;
  }
}
