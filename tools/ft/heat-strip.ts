// A strip of the heated plate of `multirail ft campaign 002`: the explicit scheme of paper 002, several sweeps in a step. A strip has so many rows of
// its neighbours above and below as a step has sweeps, so one exchange of rows is enough for a step, and each row has the same bits whoever computes it.

export const CELLS = 128;
/** Sweeps of a step, and rows of each neighbour. Even, so that the result is where the state was. */
export const SWEEPS = 16;
const HOT = 100;

/** `rows` of its own with those of the neighbours above and below; the plate is hot at its left edge. */
export function strip(rows: number): Float64Array {
  const plate = new Float64Array((rows + 2 * SWEEPS) * CELLS);
  for (let row = 0; row < rows + 2 * SWEEPS; row++) plate[row * CELLS] = HOT;
  return plate;
}

/** Rows of a strip, from the first to before the last; those of its own begin with SWEEPS. */
export const part = (plate: Float64Array, from: number, to: number): Float64Array => plate.subarray(from * CELLS, to * CELLS);
export const ownRows = (plate: Float64Array): Float64Array => part(plate, SWEEPS, plate.length / CELLS - SWEEPS);

function sweep(now: Float64Array, next: Float64Array, from: number, to: number): void {
  for (let row = from; row < to; row++) {
    const first = row * CELLS;
    const last = first + CELLS - 1;
    next[first] = now[first];
    next[last] = now[last];
    for (let at = first + 1; at < last; at++) next[at] = (now[at - CELLS] + now[at + CELLS] + now[at - 1] + now[at + 1]) / 4;
  }
}

/**
 * One step of the strip's own rows, in `now`; `scratch` is as long, and was made by strip(), too. Where there is a neighbour its rows must be
 * there; without one the edge of the plate is there, which never changes.
 */
export function relax(now: Float64Array, scratch: Float64Array, hasAbove: boolean, hasBelow: boolean): void {
  const rows = now.length / CELLS;
  for (let done = 0; done < SWEEPS; done++) {
    const [from, to] = done % 2 === 0 ? [now, scratch] : [scratch, now];
    sweep(from, to, hasAbove ? done + 1 : SWEEPS, rows - (hasBelow ? done + 1 : SWEEPS));
  }
}
