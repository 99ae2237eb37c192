// The program of the simulated saves: cells in a ring, each of which takes what its left neighbour was into its own state. There are as many as
// ranks at the start; fewer ranks have several each. What an image holds, and what an undisturbed run comes to.
import type { ImagePart, Piece } from '../../src/ft/checkpoint/slots.ts';
import { OracleError } from './oracle.ts';

export interface Cell {
  readonly number: number;
  readonly state: number;
}

/** What one rank has saved. */
export interface Image {
  readonly rank: number;
  readonly step: number;
  readonly cells: readonly Cell[];
  /** The save for which it was made, and its attempt: no two images are the same, as no two real ones are, which have the time in them. */
  readonly made: string;
}

const CELL_BYTES = 8;
const bytesOf = (images: readonly Image[]): number => images.reduce((sum, { cells }) => sum + CELL_BYTES * cells.length, 0);
export const imagesOf = ({ memory }: Piece): readonly Image[] => memory as readonly Image[];

/** `parts`: where they are not the one image of their owner. */
export function pieceOf(images: readonly Image[], parts?: readonly ImagePart[]): Piece {
  const crc = images.reduce((sum, { step, cells }) => cells.reduce((one, { state }) => (one * 31 + state) >>> 0, sum ^ step), 0);
  return { bytes: bytesOf(images), crc: crc >>> 0, memory: images, ...(parts === undefined ? {} : { parts }) };
}

/** What a cell is after a step. */
function mixed(state: number, left: number, step: number, cell: number): number {
  let x = (state ^ Math.imul(left + 0x9e3779b9, 0x85ebca6b) ^ Math.imul(step * 31 + cell + 1, 0xc2b2ae35)) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) >>> 0;
  return (x ^ (x >>> 13)) >>> 0;
}

export class Ring {
  readonly cells: number;
  readonly steps: number;
  /** States of the undisturbed run, by step and cell. */
  private readonly reference: number[][] = [];

  constructor(cells: number, steps: number) {
    this.cells = cells;
    this.steps = steps;
    let states = Array.from({ length: cells }, (_, cell) => cell + 1);
    this.reference.push(states);
    for (let step = 0; step < steps; step++) {
      const before = states;
      states = before.map((state, cell) => mixed(state, before[this.leftOf(cell)], step, cell));
      this.reference.push(states);
    }
  }

  leftOf(cell: number): number {
    return (cell + this.cells - 1) % this.cells;
  }

  rightOf(cell: number): number {
    return (cell + 1) % this.cells;
  }

  /** What that rank of so many begins with. */
  initial(rank: number, size: number): Image {
    const [from, to] = [rank, rank + 1].map((one) => Math.floor((one * this.cells) / size));
    const cells = Array.from({ length: to - from }, (_, i) => ({ number: from + i, state: this.reference[0][from + i] }));
    return { rank, step: 0, cells, made: '' };
  }

  /** What all images together come to in the hands of that rank. Images of one save are of one step. */
  restored(rank: number, images: readonly Image[]): Image {
    return { rank, step: Math.max(0, ...images.map(({ step }) => step)), cells: images.flatMap(({ cells }) => cells), made: '' };
  }

  /** A step further: `left` has the states of the left neighbours, by cell. */
  advanced({ rank, step, cells }: Image, left: (cell: number) => number): Image {
    const next = cells.map(({ number, state }) => ({ number, state: mixed(state, left(number), step, number) }));
    return { rank, step: step + 1, cells: next, made: '' };
  }

  /** Every cell is what an undisturbed run has at that step. */
  isRight({ step, cells }: Image): boolean {
    return cells.every(({ number, state }) => state === this.reference[step][number]);
  }

  /** These are all cells, each once. */
  checkWhole(images: readonly Image[], what: string): void {
    const numbers = images.flatMap(({ cells }) => cells.map(({ number }) => number)).sort((a, b) => a - b);
    if (numbers.length !== this.cells || numbers.some((number, i) => number !== i))
      throw new OracleError(`F7: ${what} has the cells ${numbers.join(' ')} of ${this.cells}`);
  }
}
