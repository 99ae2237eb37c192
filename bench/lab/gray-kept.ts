// The cells of the campaign of bad links that are in bench/RESULTS.md, a line of JSON each: all of them take longer than a machine is quiet, so
// another run measures what is missing and writes the tables of all. Imports gray-record.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type CellFigures, cellName, fullName } from './gray-record.ts';

const KEPT_FILE = 'bench/lab/gray-cells.jsonl';

/** By full name. JSON has no NaN; what is null was one. */
export function readKept(): Map<string, CellFigures> {
  const text = existsSync(KEPT_FILE) ? readFileSync(KEPT_FILE, 'utf8') : '';
  const cells = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line, (_key, value: unknown) => (value === null ? Number.NaN : value)) as CellFigures);
  return new Map(cells.map((cell) => [fullName(cell), cell]));
}

/** The kept cells with these in place of those that they repeat. A cell that was cut short, or could not be run, replaces none. */
export function mergeKept(kept: ReadonlyMap<string, CellFigures>, cells: Iterable<CellFigures>): Map<string, CellFigures> {
  const merged = new Map(kept);
  for (const cell of cells) {
    const before = merged.get(fullName(cell));
    if (before === undefined || (cell.notRun === undefined && cell.faults >= before.faults)) merged.set(fullName(cell), cell);
  }
  return merged;
}

/** Writes them in an order that changes little when cells are added. */
export function writeKept(cells: ReadonlyMap<string, CellFigures>): void {
  const inOrder = [...cells.values()].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  const rounded = (_key: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
  writeFileSync(KEPT_FILE, inOrder.map((cell) => `${JSON.stringify(cell, rounded)}\n`).join(''));
}

const orderOf = (cell: CellFigures): string => [cell.topology, cell.transport, cell.traffic, cellName(cell)].join('/');
