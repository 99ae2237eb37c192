// Cases, what they find, and how they are run.
import { isLoopbackAddress } from '../../src/btl/base/handshake.ts';
import { MultirailError } from '../../src/errors.ts';
import { CLAUSES, type ClauseId } from './clauses.ts';
import type { Control } from './control.ts';
import type { Description, Feature } from './convention.ts';

export type Group =
  | 'handshake'
  | 'framing'
  | 'matching'
  | 'rendezvous'
  | 'restart'
  | 'credit'
  | 'sending'
  | 'dialling'
  | 'end'
  | 'websocket';

/** One scenario. It names every clause that it checks; what it finds on the way about others (every frame is looked at) counts too. */
export interface Case {
  name: string;
  group: Group;
  needs: readonly Feature[];
  clauses: readonly ClauseId[];
  /** Only over this transport. */
  transport?: 'tcp' | 'ws';
  /** Only where tester and endpoint share a machine. */
  nearOnly?: boolean;
  run(t: CaseContext): Promise<void>;
}

export interface Finding {
  clause: ClauseId;
  ok: boolean;
  text: string;
}

/** Ends a case whose next steps would make no sense any more. */
class CaseEnded extends Error {}

export interface SuiteConfig {
  transport: 'tcp' | 'ws';
  /** How long an expected thing is waited for, and how long nothing may happen where nothing is expected. */
  limitMs: number;
  quietMs: number;
}

/** What a case is given: verdicts, and the driver. */
export class CaseContext {
  readonly findings: Finding[] = [];
  readonly control: Control;
  readonly config: SuiteConfig;
  readonly endpoint: Description;
  /** To be undone whatever happened, the last first. */
  readonly cleanups: (() => void | Promise<void>)[] = [];
  private readonly main: ClauseId;

  constructor(one: Case, control: Control, config: SuiteConfig, endpoint: Description) {
    this.main = one.clauses[0];
    this.control = control;
    this.config = config;
    this.endpoint = endpoint;
  }

  check(clause: ClauseId, ok: boolean, text: string): boolean {
    this.findings.push({ clause, ok, text });
    return ok;
  }

  /** As check(), and the case ends when it does not hold. */
  must(clause: ClauseId, ok: boolean, text: string): void {
    if (!this.check(clause, ok, text)) throw new CaseEnded(text);
  }

  /** The case cannot go on, because of this: `throw t.fail(…)`. */
  fail(clause: ClauseId, text: string): Error {
    this.check(clause, false, text);
    return new CaseEnded(text);
  }

  /** Something went wrong that no clause was waiting for. */
  broke(text: string): void {
    this.check(this.main, false, text);
  }

  defer(cleanup: () => void | Promise<void>): void {
    this.cleanups.push(cleanup);
  }
}

export interface CaseResult {
  case: Case;
  /** Undefined: it was run. */
  skipped: string | undefined;
  findings: Finding[];
  ms: number;
}

export async function runCase(one: Case, control: Control, config: SuiteConfig, endpoint: Description): Promise<CaseResult> {
  const skipped = skipReason(one, control, config, endpoint);
  if (skipped !== undefined) return { case: one, skipped, findings: [], ms: 0 };
  const beganMs = performance.now();
  const t = new CaseContext(one, control, config, endpoint);
  try {
    await one.run(t);
  } catch (error) {
    if (!(error instanceof CaseEnded)) {
      // A driver that is gone ends the suite: no case after this one could say anything.
      if (error instanceof MultirailError && error.code === 'ERR_INIT') throw error;
      t.broke(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }
  for (const cleanup of t.cleanups.reverse()) await cleanup();
  return { case: one, skipped: undefined, findings: t.findings, ms: performance.now() - beganMs };
}

function skipReason(one: Case, control: Control, config: SuiteConfig, endpoint: Description): string | undefined {
  if (one.nearOnly === true && !isLoopbackAddress(control.localAddress)) return 'only over loopback';
  if (one.transport !== undefined && one.transport !== config.transport) return `only over ${one.transport}`;
  const lacking = one.needs.filter((feature) => !endpoint.features.includes(feature));
  return lacking.length === 0 ? undefined : `the endpoint has not the feature ${lacking.join(', ')}`;
}

export type Verdict = 'passed' | 'failed' | 'skipped' | 'untestable';

export interface ClauseVerdict {
  id: ClauseId;
  section: string;
  says: string;
  verdict: Verdict;
  /** Checks that held and that did not. */
  held: number;
  failures: { case: string; text: string }[];
  /** Why it was skipped, or cannot be tested. */
  reason: string | undefined;
}

/** One verdict per clause of the document. */
export function judge(results: readonly CaseResult[]): ClauseVerdict[] {
  return CLAUSES.map(({ id, section, says, untestable }) => {
    const failures: { case: string; text: string }[] = [];
    let held = 0;
    for (const { case: one, findings } of results) {
      for (const finding of findings) {
        if (finding.clause !== id) continue;
        if (finding.ok) held++;
        else failures.push({ case: one.name, text: finding.text });
      }
    }
    const common = { id, section, says, held, failures };
    if (failures.length > 0) return { ...common, verdict: 'failed' as const, reason: undefined };
    if (held > 0) return { ...common, verdict: 'passed' as const, reason: undefined };
    if (untestable !== undefined) return { ...common, verdict: 'untestable' as const, reason: untestable };
    const skips = results
      .filter(({ case: one, skipped }) => skipped !== undefined && one.clauses.includes(id))
      .map(({ skipped }) => skipped);
    return { ...common, verdict: 'skipped' as const, reason: skips[0] ?? 'no case that checks it was run' };
  });
}
