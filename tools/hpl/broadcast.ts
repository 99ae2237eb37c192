// A panel on its way along a row of processes. It moves in the background: the update calls look() between its pieces.
//   ring            each process passes it on to the next
//   ring-modified   the first of the others, which factors the next panel, gets it first and passes nothing on; HPL's default
import type { Request } from '../../src/mpi/request.ts';
import { type Messages, TAG } from './messages.ts';
import type { BroadcastName } from './problem.ts';

/** From whom the process at `place` after the root (0) gets the panel, and to whom it gives it, as places. */
export function broadcastRoute(name: BroadcastName, place: number, size: number): { from: number | undefined; to: number[] } {
  const next = place + 1 < size ? [place + 1] : [];
  if (name === 'ring' || size <= 2) return { from: place === 0 ? undefined : place - 1, to: next };
  if (place === 0) return { from: undefined, to: [1, 2] };
  if (place === 1) return { from: 0, to: [] };
  return { from: place === 2 ? 0 : place - 1, to: next };
}

export class PanelBroadcast {
  private readonly messages: Messages;
  private readonly part: Float64Array<ArrayBuffer>;
  private readonly to: readonly number[];
  private receive: Request | undefined;
  private sends: Request[] = [];

  /** `ranks`: the process row; `me` and `root` are places in it. The root's part holds the panel already. */
  constructor(
    messages: Messages,
    name: BroadcastName,
    ranks: readonly number[],
    me: number,
    root: number,
    part: Float64Array<ArrayBuffer>,
  ) {
    this.messages = messages;
    this.part = part;
    const size = ranks.length;
    const { from, to } = broadcastRoute(name, (me - root + size) % size, size);
    const rankOf = (place: number) => ranks[(place + root) % size];
    this.to = to.map(rankOf);
    if (from === undefined) this.passOn();
    else this.receive = messages.irecv(part, rankOf(from), TAG.panel);
  }

  private passOn(): void {
    this.receive = undefined;
    this.sends = this.to.map((rank) => this.messages.isend(this.part, rank, TAG.panel));
  }

  /** Looks once at the rails, and passes the panel on when it has come. True when nothing is left to look after. */
  look(): boolean {
    if (this.receive?.test() === true) this.passOn();
    // One look serves all rails.
    const open = this.sends.find((request) => !request.done);
    open?.test();
    return this.receive === undefined && this.sends.every((request) => request.done);
  }

  /** The panel is here, and on its way to those behind. */
  async arrived(): Promise<void> {
    if (this.receive === undefined) return;
    await this.messages.wait(this.receive);
    this.passOn();
  }

  /** Nobody reads its memory any more. */
  async sent(): Promise<void> {
    await this.messages.waitAll(this.sends);
  }
}
