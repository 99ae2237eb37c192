// A factorisation saved at a block boundary, and resumed: each rank writes its part of the matrix, and the panel that is on its way, into
// its own file. A small file that names the complete set is written last, so that the named files can always be read. All ranks must see
// the same folder.
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32c } from '../../src/btl/base/crc32c.ts';
import { MultirailError } from '../../src/errors.ts';
import { panelOf, panelView } from './panel.ts';
import type { Problem } from './problem.ts';

const VERSION = 1;
const INDEX = 'checkpoint.json';
const PIECE_BYTES = 16 << 20;

/** Which factorisation it is, and how far it has come. */
export interface CheckpointIndex {
  version: number;
  n: number;
  nb: number;
  p: number;
  q: number;
  seed: number;
  depth: 0 | 1;
  /** Blocks that are done. */
  block: number;
  /** Time that was computed for them. */
  seconds: number;
  folder: string;
}

/** What a rank's file holds, in this order. */
function partsOf(problem: Problem, block: number): Uint8Array[] {
  const { heap, a, lda, localColumns, options } = problem;
  const parts = [heap.view(a, lda * localColumns)];
  if (options.depth === 1 && block < problem.blocks) parts.push(panelView(problem, panelOf(problem, block, problem.panels[block % 2])));
  return parts.flatMap((part) => {
    const bytes = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    return Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, i) => bytes.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES));
  });
}

const fileOf = (folder: string, rank: number): string => join(folder, `rank-${rank}.part`);

/**
 * Collective: saves the state after `block` blocks below `folder`. When it resolves, resuming from there is possible; an older checkpoint in
 * the same folder is gone.
 */
export async function saveCheckpoint(problem: Problem, folder: string, block: number, seconds: number): Promise<void> {
  const { messages, options } = problem;
  const { rank } = messages.comm;
  const older = rank === 0 && existsSync(join(folder, INDEX)) ? readIndex(folder) : undefined;
  const name = `block-${block}${older?.folder === `block-${block}` ? '-again' : ''}`;
  const [again] = await messages.reduceAll([rank === 0 && name.endsWith('-again') ? 1 : 0], 'max');
  const set = join(folder, again === 1 ? `block-${block}-again` : `block-${block}`);
  mkdirSync(set, { recursive: true });
  writeParts(fileOf(set, rank), partsOf(problem, block));
  await messages.barrier();
  if (rank === 0) {
    const { n, nb, p, q, seed, depth } = options;
    const index: CheckpointIndex = { version: VERSION, n, nb, p, q, seed, depth, block, seconds, folder: name };
    writeFileSync(join(folder, `${INDEX}.new`), `${JSON.stringify(index)}\n`, { flush: true });
    renameSync(join(folder, `${INDEX}.new`), join(folder, INDEX));
    if (older !== undefined) rmSync(join(folder, older.folder), { recursive: true, force: true });
  }
  await messages.barrier();
}

function writeParts(file: string, parts: readonly Uint8Array[]): void {
  const fd = openSync(file, 'w');
  try {
    let crc = 0;
    for (const part of parts) {
      for (let done = 0; done < part.length; ) done += writeSync(fd, part, done);
      crc = crc32c(part, crc);
    }
    writeSync(fd, new Uint8Array(new Uint32Array([crc]).buffer));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Throws ERR_ARG when there is none, or one of another version. */
export function readIndex(folder: string): CheckpointIndex {
  let index: CheckpointIndex;
  try {
    index = JSON.parse(readFileSync(join(folder, INDEX), 'utf8')) as CheckpointIndex;
  } catch (cause) {
    throw new MultirailError('ERR_ARG', `there is no checkpoint in ${folder}: ${(cause as Error).message}`, { cause });
  }
  if (index.version !== VERSION)
    throw new MultirailError('ERR_ARG', `the checkpoint in ${folder} is of version ${index.version}, not ${VERSION}`);
  return index;
}

/** Fills the matrix, and the panel on its way, from the checkpoint. ERR_ARG when it is not of this problem, or is damaged. */
export function loadCheckpoint(problem: Problem, folder: string, index: CheckpointIndex): void {
  const { options, messages } = problem;
  for (const name of ['n', 'nb', 'p', 'q', 'seed', 'depth'] as const) {
    if (index[name] !== options[name])
      throw new MultirailError('ERR_ARG', `the checkpoint in ${folder} has ${name} = ${index[name]}, and this run has ${options[name]}`);
  }
  const file = fileOf(join(folder, index.folder), messages.comm.rank);
  const damaged = (what: string) => new MultirailError('ERR_ARG', `the checkpoint file ${file} ${what}`);
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (cause) {
    throw damaged(`cannot be read: ${(cause as Error).message}`);
  }
  try {
    const fill = (bytes: Uint8Array) => {
      for (let done = 0; done < bytes.length; ) {
        const count = readSync(fd, bytes, done, bytes.length - done, null);
        if (count === 0) throw damaged('ends too early');
        done += count;
      }
    };
    let crc = 0;
    for (const part of partsOf(problem, index.block)) {
      fill(part);
      crc = crc32c(part, crc);
    }
    const stored = new Uint32Array(1);
    fill(new Uint8Array(stored.buffer));
    if (stored[0] !== crc >>> 0) throw damaged('is damaged: its checksum is another');
  } finally {
    closeSync(fd);
  }
}
