// The suite's outcome as text, as JSON and as TAP 14.
import type { ClauseVerdict, Verdict } from './case.ts';
import type { SuiteReport } from './run.ts';

/** The outcome as plain data: a stable shape, for programs. */
export interface JsonReport {
  format: 1;
  endpoint: { name: string; version: string; protocol: number; features: string[] };
  transport: string;
  seconds: number;
  totals: Record<Verdict, number>;
  clauses: ClauseVerdict[];
  cases: { name: string; group: string; skipped?: string; seconds: number; checks: number; failures: { clause: string; text: string }[] }[];
}

export function totalsOf(clauses: readonly ClauseVerdict[]): Record<Verdict, number> {
  const totals: Record<Verdict, number> = { passed: 0, failed: 0, skipped: 0, untestable: 0 };
  for (const { verdict } of clauses) totals[verdict]++;
  return totals;
}

const seconds = (ms: number): number => Math.round(ms) / 1000;

export function toJson({ endpoint, transport, results, clauses, ms }: SuiteReport): JsonReport {
  const { name, version, protocol, features } = endpoint;
  return {
    format: 1,
    endpoint: { name, version, protocol, features },
    transport,
    seconds: seconds(ms),
    totals: totalsOf(clauses),
    clauses,
    cases: results.map(({ case: one, skipped, findings, ms: took }) => ({
      name: one.name,
      group: one.group,
      ...(skipped === undefined ? {} : { skipped }),
      seconds: seconds(took),
      checks: findings.length,
      failures: findings.filter(({ ok }) => !ok).map(({ clause, text }) => ({ clause, text })),
    })),
  };
}

const titleOf = ({ section, says }: ClauseVerdict): string => `§${section} ${plain(says)}`;

/** A sentence of the document without its marks. */
export function plain(says: string): string {
  return says.replace(/[*`]/g, '');
}

/** One test point per clause. */
export function toTap(report: SuiteReport): string {
  const lines = ['TAP version 14', `1..${report.clauses.length}`];
  for (const [i, clause] of report.clauses.entries()) {
    const { id, verdict, reason, failures } = clause;
    // In a description # begins a directive.
    const point = `${verdict === 'failed' ? 'not ok' : 'ok'} ${i + 1} - ${id} ${titleOf(clause).replace(/#/g, '\\#')}`;
    lines.push(
      verdict === 'skipped' || verdict === 'untestable'
        ? `${point} # SKIP ${verdict === 'untestable' ? 'not testable from outside: ' : ''}${reason}`
        : point,
    );
    if (failures.length === 0) continue;
    lines.push('  ---', '  failures:');
    for (const { case: name, text } of failures) lines.push(`    - ${JSON.stringify(`${name}: ${text}`)}`);
    lines.push('  ...');
  }
  return `${lines.join('\n')}\n`;
}

const FAILURES_SHOWN_MAX = 5;

/** For people: what failed with every detail, what was not tested with its reason, what passed in a word. */
export function toText(report: SuiteReport): string {
  const { endpoint, transport, results, clauses, ms } = report;
  const lines: string[] = [`${endpoint.name} ${endpoint.version}, protocol version ${endpoint.protocol}, over ${transport}`, ''];
  const of = (verdict: Verdict) => clauses.filter((clause) => clause.verdict === verdict);
  for (const clause of of('failed')) {
    lines.push(`FAILED ${clause.id} ${titleOf(clause)}`);
    for (const { case: name, text } of clause.failures.slice(0, FAILURES_SHOWN_MAX)) lines.push(`    ${name}: ${text}`);
    const more = clause.failures.length - FAILURES_SHOWN_MAX;
    if (more > 0) lines.push(`    and ${more} more`);
  }
  for (const verdict of ['skipped', 'untestable'] as const) {
    const list = of(verdict);
    if (list.length === 0) continue;
    lines.push(verdict === 'skipped' ? 'not tested here:' : 'not testable from outside:');
    for (const clause of list) lines.push(`    ${clause.id} ${titleOf(clause)} (${clause.reason})`);
    lines.push('');
  }
  lines.push('held:', wrap(of('passed').map(({ id }) => id)));
  const totals = totalsOf(clauses);
  const played = results.filter(({ skipped }) => skipped === undefined).length;
  const checks = results.reduce((sum, { findings }) => sum + findings.length, 0);
  lines.push('', `${played} cases, ${checks} checks in ${(ms / 1000).toFixed(1)} s`);
  lines.push(
    `clauses: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped, ${totals.untestable} not testable from outside`,
  );
  return `${lines.join('\n')}\n`;
}

function wrap(words: readonly string[]): string {
  const lines: string[] = [''];
  for (const word of words) {
    if ((lines.at(-1) as string).length + word.length > 100) lines.push('');
    lines[lines.length - 1] += `${lines.at(-1) === '' ? '    ' : ' '}${word}`;
  }
  return lines.join('\n');
}
