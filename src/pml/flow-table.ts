// The numbers of the messages between this process and one peer, by context.

/** Messages to one peer on one context. */
export interface FlowOut {
  nextSeq: number;
}

/** `In`: what is known of the messages from that peer on one context. */
export abstract class FlowTable<In> {
  readonly flowsOut = new Map<number, FlowOut>();
  readonly flowsIn = new Map<number, In>();
  private lastOutCtx = -1;
  private lastOut: FlowOut | undefined = undefined;
  private lastInCtx = -1;
  private lastIn: In | undefined = undefined;

  /** Of a context on which nothing has come. */
  protected abstract newFlowIn(): In;

  flowOut(ctx: number): FlowOut {
    // Programs stay on one communicator for long: the last flow is asked for again.
    if (ctx === this.lastOutCtx) return this.lastOut as FlowOut;
    let flow = this.flowsOut.get(ctx);
    if (flow === undefined) {
      flow = { nextSeq: 0 };
      this.flowsOut.set(ctx, flow);
    }
    this.lastOutCtx = ctx;
    this.lastOut = flow;
    return flow;
  }

  flowIn(ctx: number): In {
    if (ctx === this.lastInCtx) return this.lastIn as In;
    let flow = this.flowsIn.get(ctx);
    if (flow === undefined) {
      flow = this.newFlowIn();
      this.flowsIn.set(ctx, flow);
    }
    this.lastInCtx = ctx;
    this.lastIn = flow;
    return flow;
  }

  /** Its numbers of that context are those of another peer from now on. */
  moveFlows(ctx: number, successor: FlowTable<In>): void {
    const flowIn = this.flowsIn.get(ctx);
    const flowOut = this.flowsOut.get(ctx);
    this.dropFlows(ctx);
    successor.dropFlows(ctx);
    if (flowIn !== undefined) successor.flowsIn.set(ctx, flowIn);
    if (flowOut !== undefined) successor.flowsOut.set(ctx, flowOut);
  }

  /** The sequences of a context that is gone; returns those of what came in. */
  dropFlows(ctx: number): In | undefined {
    const flow = this.flowsIn.get(ctx);
    this.flowsIn.delete(ctx);
    this.flowsOut.delete(ctx);
    this.lastOutCtx = -1;
    this.lastInCtx = -1;
    return flow;
  }
}
