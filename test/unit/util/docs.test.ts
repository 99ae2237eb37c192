// Documents that repeat what the code says must say the same: the parameters in docs/reference/parameters.md, the states and edges in
// docs/internals/PROTOCOL.md, and the places that documents name.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { RAIL_EDGES, RAIL_STATES } from '../../../src/bml/rail.ts';
import { REFUSALS } from '../../../src/btl/base/handshake.ts';
import { FORMULAS } from '../../../src/mpi/coll/formulas.ts';
import { PARAMS, type ParamSpec } from '../../../src/params.ts';
import { PACKET } from '../../../src/pml/hdr.ts';
import { RECV_EDGES, RECV_STATES, SEND_EDGES, SEND_STATES } from '../../../src/pml/states.ts';
import { EVENT_TYPES } from '../../../tools/dashboard/messages.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8');
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );

function shownDefault(spec: ParamSpec): string {
  if (spec.kind !== 'int') return spec.default === '' ? 'empty' : `\`${spec.default}\``;
  return String(spec.default);
}
const unitOf = (spec: ParamSpec): string => (spec.kind === 'int' ? spec.unit : spec.kind);

describe('docs/reference/parameters.md', () => {
  const rows = rowsOf(read('docs/reference/parameters.md'))
    .filter((row) => row.length === 4)
    .filter(([name]) => /^`[a-z_]+`$/.test(name));

  test('has every parameter once, with its default and unit, and no other', () => {
    const wanted = Object.entries(PARAMS as Record<string, ParamSpec>).map(([name, spec]) => [
      `\`${name}\``,
      shownDefault(spec),
      unitOf(spec),
    ]);
    const byName = (a: string[], b: string[]) => (a[0] < b[0] ? -1 : 1);
    expect(rows.map((row) => row.slice(0, 3)).sort(byName)).toEqual(wanted.sort(byName));
  });
});

describe('docs/guide/dashboard.md', () => {
  test('has every type of event with its sentence, and no other', () => {
    const section = read('docs/guide/dashboard.md').split('## Events')[1];
    const shown = rowsOf(section).filter(([name]) => /^`[a-z-]+`$/.test(name));
    expect(shown.map(([name, text]) => [name.slice(1, -1), text])).toEqual(Object.entries(EVENT_TYPES));
  });
});

describe('docs/internals/PROTOCOL.md', () => {
  const rows = rowsOf(read('docs/internals/PROTOCOL.md'));

  test.each([
    ['sender', SEND_STATES, SEND_EDGES],
    ['receiver', RECV_STATES, RECV_EDGES],
    ['rail', RAIL_STATES, RAIL_EDGES],
  ])('%s: every state with its sentence, every edge, and no other', (side, states, edges) => {
    for (const [state, sentence] of Object.entries(states)) {
      expect(
        rows.some(([name, text]) => name === state && text === sentence),
        `${state} with its sentence`,
      ).toBe(true);
    }
    const section = read('docs/internals/PROTOCOL.md')
      .split(new RegExp(`### ${side[0].toUpperCase()}${side.slice(1)}\\b`))[1]
      .split(/\n##/)[0];
    const shown = rowsOf(section)
      .filter(([from, to]) => from in states && to in states)
      .map(([from, to]) => `${from} > ${to}`);
    const real = Object.entries(edges).flatMap(([from, list]) => (list as readonly string[]).map((to) => `${from} > ${to}`));
    expect(shown.sort()).toEqual(real.sort());
  });

  test('numbers of packets and refusals', () => {
    for (const [name, number] of [...Object.entries(PACKET), ...Object.entries(REFUSALS)]) {
      expect(
        rows.some((row) => row[0] === String(number) && row[1] === name),
        `${number} ${name}`,
      ).toBe(true);
    }
  });
});

describe('docs/reference/collectives.md', () => {
  test('has every algorithm with its formulas, and no other', () => {
    const rows = rowsOf(read('docs/reference/collectives.md')).filter((row) => row.length === 5 && row[1].startsWith('`'));
    const wanted = Object.entries(FORMULAS).flatMap(([call, algorithms]) =>
      Object.entries(algorithms).map(([name, { messages, bytes, rounds }]) => [call, `\`${name}\``, messages, bytes, rounds]),
    );
    expect(rows).toEqual(wanted);
  });
});

test('files that documents name exist', () => {
  const missing: string[] = [];
  const documents = (readdirSync(new URL('docs/', ROOT), { recursive: true }) as string[])
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`);
  expect(documents.length).toBeGreaterThan(15);
  for (const folder of ['src/pml', 'src/bml', 'src/btl', 'tools/sim']) documents.push(`${folder}/README.md`);
  for (const name of documents) {
    for (const [, path] of read(name).matchAll(/`((?:src|tools|test|docs|examples|bench)\/[\w./-]+)`/g)) {
      if (!existsSync(new URL(path, ROOT))) missing.push(`${name}: ${path}`);
    }
  }
  expect(missing).toEqual([]);
});
