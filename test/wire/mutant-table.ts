// The table of broken endpoints in docs/internals/WIRE-SUITE.md, by chapter of PROTOCOL.md: made from the tables of this folder, never by hand.
import { readFileSync, writeFileSync } from 'node:fs';
import { CLAUSES } from '../../tools/wire-suite/clauses.ts';
import { PLANTED } from '../sim/mutants/table.ts';
import { ENGINE_MUTANTS, FRAMING_MUTANTS, HANDSHAKE_MUTANTS, MESSAGE_MUTANTS } from './mutants.ts';
import { PLANTED_INSIDE } from './planted.ts';

const FILE = new URL('../../docs/internals/WIRE-SUITE.md', import.meta.url);
const BEGIN = '<!-- mutants: begin (written by test/wire/mutants.test.ts) -->';
const END = '<!-- mutants: end -->';

interface Row {
  name: string;
  about: string;
  caughtBy: string;
  case: string;
}

/** Those that were planted for the simulator say there what is wrong with them. */
const aboutOf = (name: string, about: string): string => about || (PLANTED.find((one) => one.name === name)?.sentence ?? '');

const ROWS: readonly Row[] = [...HANDSHAKE_MUTANTS, ...FRAMING_MUTANTS, ...MESSAGE_MUTANTS, ...ENGINE_MUTANTS, ...PLANTED_INSIDE].map(
  ({ name, about, caughtBy, case: played }) => ({ name, about: aboutOf(name, about), caughtBy, case: played }),
);

const sectionOf = new Map<string, string>(CLAUSES.map(({ id, section }) => [id, section]));

function chapters(): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const { section, untestable } of CLAUSES) if (untestable === undefined) found.set(section, found.get(section) ?? []);
  for (const row of ROWS) found.get(sectionOf.get(row.caughtBy) ?? '')?.push(row);
  return new Map([...found].sort(([a], [b]) => Number(a) - Number(b)));
}

/** Chapters with fewer than that, and how many each has. */
export function chaptersWithFew(few: number): string[] {
  return [...chapters()].filter(([, rows]) => rows.length < few).map(([section, rows]) => `§${section}: ${rows.length}`);
}

export function mutantsByChapter(): string {
  const lines = ['| § | broken endpoint | what it does wrong | caught by | in the case |', '| --- | --- | --- | --- | --- |'];
  for (const [section, rows] of chapters())
    for (const row of rows) lines.push(`| ${section} | ${row.name} | ${row.about} | ${row.caughtBy} | ${row.case} |`);
  return lines.join('\n');
}

function split(): [string, string, string] {
  const text = readFileSync(FILE, 'utf8');
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from < 0 || to < from) throw new Error(`docs/internals/WIRE-SUITE.md lacks the lines ${BEGIN} and ${END}`);
  return [text.slice(0, from + BEGIN.length), text.slice(from + BEGIN.length, to), text.slice(to)];
}

export const documentedMutants = (): string => split()[1].trim();

export function documentMutants(): void {
  const [before, , after] = split();
  writeFileSync(FILE, `${before}\n\n${mutantsByChapter()}\n\n${after}`);
}
