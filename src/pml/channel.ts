// Channels between members of which one has died, or is a successor: what the other side has, and whether what is sent leaves (tap.ts,
// succession.ts). Data and its arithmetic.
import { MultirailError } from '../errors.ts';
import { serialDiff } from '../util/serial.ts';

/** What was received under a number: a successor that sends it again must send the same. */
export interface Digest {
  readonly seq: number;
  readonly bytes: number;
  /** Over the tag and the payload. */
  readonly crc: number;
}

/** What the other side of a channel lacks of one context. */
export interface Need {
  /** The lowest number that it has not seen. */
  readonly nextIn: number;
  /** Lower numbers of which it has not got the data. */
  readonly holes: ReadonlySet<number>;
  readonly digests: ReadonlyMap<number, Digest>;
}

/** States of a channel to a peer that is not simply there. A peer without one is. */
export const CHANNEL_STATES = {
  HELD: 'The peer has died and its successor is not known: what is sent to it is only logged, and what is awaited from it goes on waiting.',
  AWAITED: 'Its SYNC has not come: what is sent to it is only logged.',
  REPLAYING: 'It has said what it has: sends of which it has the data are numbered and compared, and do not leave.',
  LIVE: 'Every number that leaves is new to it.',
} as const;
export type ChannelState = keyof typeof CHANNEL_STATES;

export const CHANNEL_EDGES: Readonly<Record<ChannelState, readonly ChannelState[]>> = {
  // → AWAITED never: the successor is another peer, with a channel of its own. → LIVE never.
  HELD: [],
  // → HELD by its death. → REPLAYING by its SYNC.
  AWAITED: ['REPLAYING', 'HELD'],
  // → LIVE when every number that it has is passed.
  REPLAYING: ['LIVE', 'HELD'],
  LIVE: ['HELD'],
};

export class Channel {
  state: ChannelState;
  needs: ReadonlyMap<number, Need> = new Map();

  constructor(state: ChannelState) {
    this.state = state;
  }

  /** The one door between states of a channel. */
  move(to: ChannelState): void {
    if (!CHANNEL_EDGES[this.state].includes(to)) throw new MultirailError('ERR_INTERNAL', `no edge ${this.state} -> ${to} of a channel`);
    this.state = to;
  }

  /** The other side has asked for the message of that number. */
  wants(ctx: number, seq: number): boolean {
    const need = this.needs.get(ctx);
    return need === undefined || serialDiff(seq, need.nextIn) >= 0 || need.holes.has(seq);
  }
}
