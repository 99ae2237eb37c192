// The documents of this project as their tests see them: the list of documents, their lines, tables, blocks of code, links and headings.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const SKIPPED = new Set(['node_modules', '.git', '.cache', 'dist', 'out', 'build', 'prebuilds', 'coverage']);

/** Files below a folder of the tree, by their path from its root. */
export function filesBelow(folder: string, fits: (name: string) => boolean): string[] {
  const found: string[] = [];
  const visit = (path: string): void => {
    for (const entry of readdirSync(`${ROOT}${path}`, { withFileTypes: true })) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!SKIPPED.has(entry.name) && !entry.name.startsWith('.')) visit(inner);
      } else if (fits(entry.name)) found.push(inner);
    }
  };
  visit(folder);
  return found.sort();
}

export const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');
export const exists = (path: string): boolean => existsSync(`${ROOT}${path}`);

/** Every document, those of which a part is made from docstrings among them. */
export const DOCUMENTS = filesBelow('', (name) => name.endsWith('.md'));

export interface Block {
  document: string;
  /** Of the first line of its content, from 1. */
  line: number;
  language: string;
  text: string;
}

/** Fenced blocks of one document, in order. */
export function blocksOf(document: string): Block[] {
  const lines = read(document).split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const opened = /^\s*(```+)\s*([\w-]*)/.exec(lines[at]);
    if (opened === null) continue;
    const begin = at + 1;
    at = begin;
    while (at < lines.length && !lines[at].trim().startsWith(opened[1])) at++;
    blocks.push({ document, line: begin + 1, language: opened[2], text: lines.slice(begin, at).join('\n') });
  }
  return blocks;
}

/** The text without its blocks of code: lines keep their numbers. */
export function proseOf(document: string): string[] {
  let fence = '';
  return read(document)
    .split('\n')
    .map((line) => {
      const mark = /^\s*(```+)/.exec(line)?.[1];
      if (fence === '' && mark !== undefined) {
        fence = mark;
        return '';
      }
      if (fence === '') return line;
      if (mark !== undefined && mark.length >= fence.length) fence = '';
      return '';
    });
}

export interface Table {
  document: string;
  line: number;
  rows: string[][];
}

const isRule = (line: string): boolean => /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)+\|?\s*$/.test(line);

const cellsOf = (line: string): string[] =>
  line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());

/** Tables, each with its rows below the rule. */
export function tablesOf(document: string): Table[] {
  const lines = proseOf(document);
  const tables: Table[] = [];
  for (let at = 1; at < lines.length; at++) {
    if (!isRule(lines[at]) || !lines[at - 1].includes('|')) continue;
    const rows: string[][] = [];
    for (let row = at + 1; row < lines.length && lines[row].trim().startsWith('|'); row++) rows.push(cellsOf(lines[row]));
    tables.push({ document, line: at, rows });
  }
  return tables;
}

/** Headings as a page of the repository makes anchors of them. */
export function anchorsOf(document: string): Set<string> {
  const anchors = new Set<string>();
  const text = proseOf(document);
  for (const line of text) {
    for (const [, id] of line.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
    const heading = /^#{1,6}\s+(.*)$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*_]/g, (mark) => (mark === '_' ? '_' : ''));
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-');
    let unique = slug;
    for (let n = 1; anchors.has(unique); n++) unique = `${slug}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}
