// Writes the declarations of the package (dist/index.d.ts and dist/ft.d.ts, and the same for require()) from what the entries export: one file
// for each that a person can read, in which only what a user can get hold of is named.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRIES, readSurface } from './surface.mjs';

const COLUMNS_MAX = 120;
const INDENT = '  ';

const indented = (lines, indent) => lines.map((line) => (line === '' ? '' : indent + line));

function wrapped(text, columns, indent = '') {
  const lines = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || `${last} ${word}`.length > columns) lines.push(lines.length === 0 ? word : indent + word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function docLines({ text, params, throws }, indent) {
  const tags = [
    ...Object.entries(params).map(([name, meaning]) => `@param ${name} ${meaning}`),
    ...throws.map((line) => `@throws ${line}`),
  ].flatMap((line) => wrapped(line, COLUMNS_MAX, INDENT));
  const lines = [...text.split('\n'), ...(tags.length > 0 ? ['', ...tags] : [])];
  if (text === '' && tags.length === 0) return [];
  if (lines.length === 1 && lines[0].length <= COLUMNS_MAX) return [`${indent}/** ${lines[0]} */`];
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`];
}

/** A call whose line would be long has each parameter on a line of its own. */
function callLines({ text, params }, indent) {
  if (params === undefined || params.length < 2 || text.length + indent.length <= COLUMNS_MAX) {
    // TypeScript indents by four.
    return text.split('\n').map((line) => indent + line.replace(/^ +/, (spaces) => ' '.repeat(spaces.length / 2)));
  }
  const all = params.map((one) => one.text).join(', ');
  const at = text.indexOf(`(${all})`);
  return [
    `${indent}${text.slice(0, at)}(`,
    ...params.map((one) => `${indent}${INDENT}${one.text},`),
    `${indent})${text.slice(at + all.length + 2)}`,
  ];
}

/** A long union has each of its types on a line of its own. */
function typeLines(text) {
  const [head, union] = text.split(/ = (.*)/s);
  if (text.length <= COLUMNS_MAX || /[{(]/.test(union)) return [text];
  return [`${head} =`, ...union.split(' | ').map((one) => `${INDENT}| ${one}`)];
}

const isMade = ({ members }) => members.some(({ text }) => /^(private|protected) constructor\(\)$/.test(text));

function itemLines(item) {
  const { kind, doc, head, members } = item;
  if (kind === 'class' || kind === 'interface') {
    const body = members
      .filter((member) => kind !== 'class' || member.kind !== 'constructor' || !isMade(item))
      .flatMap((member) => [...docLines(member.full ?? member.doc, INDENT), ...closed(callLines(member, INDENT))]);
    const lines = [
      ...members.filter(({ text }) => /^(private|protected) constructor\(\)$/.test(text)).map(({ text }) => `${INDENT}${text};`),
      // No other object passes for one of this class, whatever it has.
      ...(item.isOpaque ? [`${INDENT}#private;`] : []),
      ...body,
    ];
    return [...docLines(doc, ''), `${kind === 'class' ? 'declare ' : ''}${head} {`, ...lines, '}'];
  }
  const text = kind === 'type' ? typeLines(item.text) : callLines({ ...item, text: `declare ${item.text}` }, '');
  return [...docLines(doc, ''), ...closed(text)];
}

const closed = (lines) => [...lines.slice(0, -1), `${lines.at(-1)};`];

/** The declarations as one text. */
export function declarationsOf(surface) {
  const imports = [...surface.imports].map(([name, from]) => `import type { ${name} } from '${from}';`).sort();
  const names = surface.items.map(({ name, isType }) => (isType ? `type ${name}` : name)).sort((a, b) => (plain(a) < plain(b) ? -1 : 1));
  return `${[
    '// What multirail exports. Written by the build from the docstrings and types of the sources.',
    ...imports,
    '',
    ...surface.items.flatMap((item) => [...itemLines(item), '']),
    'export {',
    ...indented(
      names.map((name) => `${name},`),
      INDENT,
    ),
    '};',
  ].join('\n')}\n`;
}

const plain = (name) => name.replace(/^type /, '').toLowerCase();

/** Entries that cannot be required. */
const IMPORTED_ALONE = ['wasm'];

/**
 * Writes them into the folder of the build, for import and for require(): they are there once. An ES module may import what a CommonJS module
 * exports, and not the other way round, so those of require() are the ones that hold them.
 */
export function writeDeclarations(folder, root) {
  mkdirSync(folder, { recursive: true });
  for (const [name, entry] of Object.entries(ENTRIES)) {
    const text = declarationsOf(readSurface(root, entry));
    if (IMPORTED_ALONE.includes(name)) writeFileSync(join(folder, `${name}.d.ts`), text);
    else {
      writeFileSync(join(folder, `${name}.d.cts`), text);
      writeFileSync(join(folder, `${name}.d.ts`), `export * from './${name}.cjs';\n`);
    }
  }
}
