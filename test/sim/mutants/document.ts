// The table of planted mistakes in docs/internals/SIMULATION.md: written by `npm run sim:mutants`, read by the tests.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './plant.ts';

const FILE = join(ROOT, 'docs/internals/SIMULATION.md');
const BEGIN = '<!-- mutants: begin (written by `npm run sim:mutants`) -->';
const END = '<!-- mutants: end -->';

export interface Row {
  name: string;
  sentence: string;
  /** Seeds that were played until it was found; empty for a scenario. */
  seeds: string;
  /** Profile, or scenario. */
  by: string;
  seconds: string;
}

const HEAD = ['mutant', 'what is wrong with it', 'seeds', 'found by', 'seconds'];

function split(text: string): [string, string, string] {
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from < 0 || to < from) throw new Error(`${FILE} lacks the lines ${BEGIN} and ${END}`);
  return [text.slice(0, from + BEGIN.length), text.slice(from + BEGIN.length, to), text.slice(to)];
}

/** The rows that the document has. */
export function documented(): Row[] {
  const [, table] = split(readFileSync(FILE, 'utf8'));
  const lines = table.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) => {
    const [name, sentence, seeds, by, seconds] = line
      .slice(2, -2)
      .split(' | ')
      .map((cell) => cell.trim());
    return { name, sentence, seeds, by, seconds };
  });
}

export function document(rows: readonly Row[]): void {
  const [before, , after] = split(readFileSync(FILE, 'utf8'));
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const lines = rows.map(({ name, sentence, seeds, by, seconds }) => line([name, sentence, seeds, by, seconds]));
  writeFileSync(FILE, `${before}\n\n${[line(HEAD), line(HEAD.map(() => '---')), ...lines].join('\n')}\n\n${after}`);
}
