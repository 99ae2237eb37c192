// The program of `multirail ft campaign 001` and `ft table 001`: the matrix product of paper 001. A master scatters the rows of A, broadcasts B,
// all compute their rows of C, and the master gathers them: nothing is sent in between, so a fault comes to light at the gather at the earliest.
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { run } from '../../src/ft/recover/run.ts';
import type { Runtime } from '../../src/mpi/runtime.ts';

const MASTER = 0;

export interface ProductTask {
  /** Rows of A that each rank computes, and so its steps. */
  readonly rows: number;
  /** So often each row is computed: work without more memory. */
  readonly passes: number;
  /** Saves of both replicas in that folder, every so many steps. */
  readonly saves: { readonly folder: string; readonly everySteps: number } | undefined;
  /** Where the master, and of two the lead, tells what it has come to: lines of JSON. */
  readonly file: string;
}

/** What the master tells. */
export type ProductWord =
  | { readonly kind: 'begins'; readonly atMs: number; readonly save: number | undefined }
  | { readonly kind: 'gathered'; readonly atMs: number }
  | { readonly kind: 'ended'; readonly atMs: number; readonly isRight: boolean };

/** Whole numbers, so that the product is exact. */
const elementOfA = (i: number, k: number): number => ((i * 7 + k * 3) % 11) - 5;
const elementOfB = (k: number, j: number): number => ((k * 5 + j * 2) % 13) - 6;

function filled(rows: number, order: number, element: (i: number, j: number) => number): Float64Array {
  return Float64Array.from({ length: rows * order }, (_, at) => element(Math.floor(at / order), at % order));
}

/** One row of C. An index beyond the matrix finds and leaves nothing, as any other wrong index may. */
function multiply(a: Float64Array, b: Float64Array, c: Float64Array, row: number, order: number): void {
  for (let j = 0; j < order; j++) c[row * order + j] = 0;
  for (let k = 0; k < order; k++) {
    const factor = a[row * order + k];
    for (let j = 0; j < order; j++) c[row * order + j] += factor * b[k * order + j];
  }
}

/** Digest of A × B, computed in this process. */
function productDigest(order: number): string {
  const a = filled(order, order, elementOfA);
  const b = filled(order, order, elementOfB);
  const c = new Float64Array(order * order);
  for (let row = 0; row < order; row++) multiply(a, b, c, row, order);
  return digestOf(c);
}

const digestOf = (c: Float64Array): string => createHash('sha256').update(c).digest('hex');

interface Steps {
  /** The state of a rank lies in these. */
  protect(name: string, view: Float64Array | Int32Array): void;
  next(): Promise<void>;
}

async function product(
  mpi: Runtime,
  { rows, passes }: ProductTask,
  isRestored: boolean,
  steps: Steps,
  tell: (word: ProductWord) => void,
): Promise<Float64Array | undefined> {
  const { world, inject } = mpi;
  const { rank, size } = world;
  const order = rows * size;
  const a = new Float64Array(rows * order);
  const b = new Float64Array(order * order);
  const c = new Float64Array(rows * order);
  // The row that comes next, and the one behind the last.
  const index = Int32Array.of(0, rows);
  const arrays = { A: a, B: b, C: c, index };
  for (const [name, array] of Object.entries(arrays)) steps.protect(name, array);
  if (!isRestored) {
    if (rank === MASTER) b.set(filled(order, order, elementOfB));
    await world.scatter(rank === MASTER ? filled(order, order, elementOfA) : null, a, MASTER);
    await world.bcast(b, MASTER);
  }
  while (index[0] < index[1]) {
    const row = index[0];
    inject?.point(row / rows, arrays);
    for (let pass = 0; pass < passes; pass++) multiply(a, b, c, row, order);
    index[0]++;
    await steps.next();
  }
  inject?.point(0.99, arrays);
  const all = rank === MASTER ? new Float64Array(order * order) : null;
  await world.gather(c, all, MASTER);
  tell({ kind: 'gathered', atMs: Date.now() });
  if (all === null) return undefined;
  inject?.point(1, { ...arrays, result: all });
  return all;
}

/** A rank of one of the jobs. */
export async function productAsRank(mpi: Runtime, task: ProductTask): Promise<void> {
  const isTeller = mpi.rank === MASTER && mpi.replica?.isLead !== false;
  const tell = (word: ProductWord): void => {
    if (isTeller) appendFileSync(task.file, `${JSON.stringify(word)}\n`);
  };
  const { saves } = task;
  let result: Float64Array | undefined;
  if (saves === undefined) {
    tell({ kind: 'begins', atMs: Date.now(), save: undefined });
    result = await product(mpi, task, false, { protect: () => undefined, next: async () => undefined }, tell);
    if (result !== undefined) await mpi.replica?.validate(result);
  } else {
    const options = {
      levels: [{ level: 'memory' }, { level: 'disk', folder: saves.folder }],
      everySteps: [1_000_000, saves.everySteps],
      validate: false,
    } as const;
    result = await run(mpi, options, async (job) => {
      tell({ kind: 'begins', atMs: Date.now(), save: job.recovery?.save });
      const steps: Steps = { protect: (name, view) => job.protect(name, view), next: () => job.next() };
      const made = await product(mpi, task, job.recovery?.save !== undefined, steps, tell);
      if (made !== undefined) await job.validate(made);
      return made;
    });
  }
  if (isTeller)
    tell({ kind: 'ended', atMs: Date.now(), isRight: digestOf(result as Float64Array) === productDigest(task.rows * mpi.size) });
  await mpi.finalize();
}
