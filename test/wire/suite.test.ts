// The wire suite against multirail's own endpoint, over every kind of stream that it has; and the table of clauses against the document.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import type { CaseResult, ClauseVerdict } from '../../tools/wire-suite/case.ts';
import { CLAUSES } from '../../tools/wire-suite/clauses.ts';
import { localControl } from '../../tools/wire-suite/control.ts';
import { EndpointDriver } from '../../tools/wire-suite/endpoint/driver.ts';
import { plain, toJson, toTap, toText } from '../../tools/wire-suite/report.ts';
import { CASES, runSuite, type SuiteReport } from '../../tools/wire-suite/run.ts';

async function play(transport: 'tcp' | 'ws', native: boolean): Promise<SuiteReport> {
  const control = localControl(new EndpointDriver({ version: 'test', native }));
  try {
    return await runSuite(control, { transport });
  } finally {
    await control.close();
  }
}

const failuresOf = (clauses: readonly ClauseVerdict[]): string[] =>
  clauses.flatMap(({ id, failures }) => failures.map(({ case: name, text }) => `${id} in "${name}": ${text}`));

/** Clauses that a case names and did not look at. */
const unlooked = (results: readonly CaseResult[]): string[] =>
  results.flatMap(({ case: one, skipped, findings }) => {
    if (skipped !== undefined) return [];
    const looked = new Set(findings.map(({ clause }) => clause));
    return one.clauses.filter((id) => !looked.has(id)).map((id) => `${one.name}: ${id}`);
  });

/** What only a WebSocket can show. */
const WS_CLAUSES = ['WS-1', 'WS-2', 'WS-3', 'WS-4', 'WS-5', 'WS-6'];

const skippedOf = (clauses: readonly ClauseVerdict[]): string[] =>
  clauses.filter(({ verdict }) => verdict === 'skipped').map(({ id }) => id);

describe('our own endpoint', () => {
  const native = loadNative();
  const why = native.binding === undefined ? native.reason : undefined;
  if (why !== undefined) console.log(`skipped: the wire suite over native TCP: ${why}`);

  test.skipIf(why !== undefined)('over TCP, with the native part', async () => {
    const { clauses, results } = await play('tcp', true);
    expect(failuresOf(clauses)).toEqual([]);
    expect(unlooked(results)).toEqual([]);
    expect(skippedOf(clauses)).toEqual(WS_CLAUSES);
  });

  test("over TCP of Node's own sockets", async () => {
    const report = await play('tcp', false);
    const { clauses, results } = report;
    expect(failuresOf(clauses)).toEqual([]);
    expect(unlooked(results)).toEqual([]);
    // Without the native part no liveness connections are taken.
    expect(skippedOf(clauses)).toEqual(['LV-1', 'LV-2', 'LV-3', ...WS_CLAUSES]);
    reportsSay(report);
  });

  test('over WebSocket', async () => {
    const { clauses, results } = await play('ws', false);
    expect(failuresOf(clauses)).toEqual([]);
    expect(unlooked(results)).toEqual([]);
    const verdicts = new Map(clauses.map(({ id, verdict }) => [id, verdict]));
    for (const id of ['WS-1', 'WS-2', 'FR-1', 'HS-1', 'MT-5', 'RV-7', 'SD-5', 'BY-4'] as const) expect(verdicts.get(id), id).toBe('passed');
  });
});

/** The three forms of one report. */
function reportsSay(report: SuiteReport): void {
  const json = toJson(report);
  expect(json.clauses.length).toBe(CLAUSES.length);
  expect(json.totals.passed + json.totals.failed + json.totals.skipped + json.totals.untestable).toBe(CLAUSES.length);
  expect(json.totals.failed).toBe(0);
  expect(JSON.parse(JSON.stringify(json)).endpoint.name).toBe('multirail');
  const tap = toTap(report).split('\n');
  expect(tap[1]).toBe(`1..${CLAUSES.length}`);
  expect(tap.filter((line) => /^ok \d+ - /.test(line)).length).toBe(CLAUSES.length);
  expect(tap.filter((line) => / # SKIP /.test(line)).length).toBe(json.totals.skipped + json.totals.untestable);
  expect(toText(report)).toContain(`clauses: ${json.totals.passed} passed, 0 failed`);
}

const BEGIN = '<!-- clauses: begin (written by test/wire/suite.test.ts) -->';
const END = '<!-- clauses: end -->';

/** The list of clauses as docs/internals/WIRE-SUITE.md shows it. */
function renderClauses(): string {
  const escaped = (text: string) => plain(text).replace(/\|/g, '\\|');
  const rows = CLAUSES.map(({ id, section, says, untestable }) => {
    const cases = CASES.filter(({ clauses }) => clauses.includes(id)).map(({ name }) => name);
    return `| ${id} | §${section} | ${escaped(says)} | ${untestable === undefined ? cases.slice(0, 3).join('; ') + (cases.length > 3 ? '; …' : '') : `not testable from outside: ${untestable}`} |`;
  });
  return ['| id | section | it says | cases |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

describe('the table of clauses', () => {
  const document = readFileSync(new URL('../../docs/internals/PROTOCOL.md', import.meta.url), 'utf8');
  /** Sections by number, each with its words only. */
  const sections = new Map<string, string>();
  for (const part of document.split(/^## /m).slice(1)) {
    const number = /^(\d+)\./.exec(part);
    if (number !== null) sections.set(number[1], part.replace(/\s+/g, ' '));
  }

  test.each(CLAUSES)('$id stands in the document, word for word', ({ section, says }) => {
    const text = says.replace(/\s+/g, ' ');
    expect(sections.get(section)?.includes(text), `§${section} does not say: ${text}`).toBe(true);
  });

  test('every clause is judged by a case, or says why it cannot be', () => {
    const judged = new Set(CASES.flatMap(({ clauses }) => clauses));
    expect(CLAUSES.filter(({ id, untestable }) => judged.has(id) === (untestable !== undefined)).map(({ id }) => id)).toEqual([]);
  });

  test('every section that binds an implementation has clauses', () => {
    const covered = new Set(CLAUSES.map(({ section }) => section));
    // 16 names reasons for people, 17 is the golden bytes.
    expect([...sections.keys()].filter((number) => !covered.has(number))).toEqual(['16', '17']);
  });

  test('names of cases are unique', () => {
    expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length);
  });

  test('docs/internals/WIRE-SUITE.md lists them', () => {
    const url = new URL('../../docs/internals/WIRE-SUITE.md', import.meta.url);
    const text = readFileSync(url, 'utf8');
    const [before, rest] = text.split(BEGIN);
    const after = rest.split(END)[1];
    const whole = `${before}${BEGIN}\n\n${renderClauses()}\n\n${END}${after}`;
    if (process.env.UPDATE_CLAUSES === '1') writeFileSync(url, whole);
    else expect(text === whole, 'the list is older than the table; write it anew with UPDATE_CLAUSES=1').toBe(true);
  });
});
