// What a bench leaves in files: its figures as JSON, and its pictures.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes a file, and makes its folder where it is missing. */
export function writeWhole(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

export function writeFigures(file: string, figures: unknown): void {
  writeWhole(file, `${JSON.stringify(figures, undefined, 1)}\n`);
}
