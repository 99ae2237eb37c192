// How an epoch and its saves end, and what a run of the program begins with.
import type { MultirailError } from '../../errors.ts';
import type { Grouping } from '../checkpoint/grouping.ts';
import type { SaveName } from '../checkpoint/slots.ts';
import type { decodeImage } from '../image/decode.ts';
import type { History } from './meeting.ts';
import type { Known } from './periods.ts';

/**
 * How an epoch ends: `failed` when what was restored could not be spread again; `back` when the members have met already to recover in place,
 * and cannot; `again` when this rank goes back with its group, and the others do not.
 */
export type EpochEnd =
  | { readonly kind: 'ended' | 'recover' | 'back' | 'again' }
  | { readonly kind: 'failed'; readonly error: MultirailError };

/** How the save that is under way has ended. */
export type SaveEnd = { readonly committed: SaveName | undefined; readonly error: MultirailError | undefined };

/** What a run of the program begins with. */
export interface Restored {
  readonly epoch: number;
  /** Nobody has run the program before, as far as is known. */
  readonly isFirst: boolean;
  /** Undefined: from the beginning. */
  readonly save: number | undefined;
  readonly level: string | undefined;
  readonly step: number;
  /** What all together know of the failures so far. */
  readonly history: History;
  /** In place: those of the image, for helpers. */
  readonly bytes?: Uint8Array | undefined;
  /** Undefined: nothing is restored where it was. */
  readonly sections: ReturnType<typeof decodeImage>['sections'] | undefined;
  /** The images of the save that each rank has now; undefined: there is no save. */
  readonly grouping: Grouping | undefined;
  readonly known: Known;
  /** This process has the place of a dead one, and nobody else goes back. */
  readonly isInPlace: boolean;
  /** The job was told to end, and the others have stopped behind that save. */
  readonly isLast: boolean;
}
