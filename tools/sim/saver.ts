// What a process of the simulated saves has and says: its saver, and the messages of its program and of its saves.
import type { FormerView } from '../../src/ft/checkpoint/former.ts';
import type { CopyName, SaveCore } from '../../src/ft/checkpoint/save-core.ts';
import type { ImagePart, Piece, SaveName } from '../../src/ft/checkpoint/slots.ts';
import { type Image, imagesOf } from './save-program.ts';
import type { SimUlfmProcess } from './ulfm-world.ts';

/** Messages of programs and of saves, by communicator. */
export type Message =
  | ({ readonly kind: 'cells'; readonly id: number } & Begun)
  | { readonly kind: 'step'; readonly id: number; readonly step: number; readonly cell: number; readonly state: number }
  | { readonly kind: 'ready'; readonly id: number; readonly attempt: number }
  | ({ readonly kind: 'copy'; readonly name: CopyName } & Packed)
  | ({ readonly kind: 'inventory'; readonly id: number } & View)
  | ({ readonly kind: 'image'; readonly id: number } & Packed);

/** What a rank begins with, where ranks are fewer than cells. */
export interface Begun {
  readonly step: number;
  readonly cells: readonly number[];
}

/** A piece in a message. No images: it could not be made. */
export interface Packed {
  readonly images: readonly Image[] | undefined;
  readonly parts: readonly ImagePart[] | undefined;
}
export const packed = (piece: Piece): Packed => ({ images: imagesOf(piece), parts: piece.parts });

/** What a member tells the others when they meet. */
export interface View extends FormerView {
  readonly epoch: number;
}

type Phase = 'standby' | 'restoring' | 'running' | 'saving' | 'ending' | 'ended' | 'recovering' | 'without spares';

/** One process with its saves. What has come is kept by communicator: it may come before the communicator does. */
export interface Saver {
  readonly process: SimUlfmProcess;
  core: SaveCore | undefined;
  phase: Phase;
  id: number;
  members: readonly number[];
  rank: number;
  memory: Image;
  /** With whom it has committed what its slots hold. */
  membership: FormerView['membership'];
  /** The newest save that it has committed with all others: it has all of it as long as nothing newer is committed. */
  committed: SaveName | undefined;
  /** Committed saves that must be readable here, oldest first: what slots have is compared with it. */
  readable: SaveName[];
  /** What was readable before others than those who made it began with the line; undefined once they have committed it. */
  readableBefore: SaveName[] | undefined;
  /** A save is due, and one is still under way. */
  isDue: boolean;
  /** It begins when it knows who has which cells. */
  awaitsCells: boolean;
  /** The step whose messages have gone out. */
  sentStep: number;
  readonly steps: Map<string, number>;
  readonly ready: Map<string, Set<number>>;
  /** Who has which cells, where ranks are fewer than cells. */
  readonly owners: Map<number, Map<number, Begun>>;
  readonly views: Map<number, Map<number, View>>;
  readonly images: Map<number, Packed>;
  readonly copies: ({ readonly name: CopyName } & Packed)[];
}

/** One that stands by. */
export const newSaver = (process: SimUlfmProcess, id: number): Saver => ({
  process,
  core: undefined,
  phase: 'standby',
  id,
  members: [],
  rank: -1,
  memory: { rank: -1, step: 0, cells: [], made: '' },
  membership: undefined,
  committed: undefined,
  readable: [],
  readableBefore: undefined,
  isDue: false,
  awaitsCells: false,
  sentStep: -1,
  steps: new Map(),
  ready: new Map(),
  owners: new Map(),
  views: new Map(),
  images: new Map(),
  copies: [],
});
