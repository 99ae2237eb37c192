// Runs the suite against one endpoint.
import { PROTOCOL_VERSION } from '../../src/btl/base/handshake.ts';
import { MultirailError } from '../../src/errors.ts';
import { type Case, type CaseResult, type ClauseVerdict, type Group, judge, runCase, type SuiteConfig } from './case.ts';
import { DIALLING_CASES } from './cases/dialling.ts';
import { END_CASES } from './cases/end.ts';
import { FRAMING_CASES } from './cases/framing.ts';
import { HANDSHAKE_CASES } from './cases/handshake.ts';
import { LIVENESS_CASES } from './cases/liveness.ts';
import { MATCHING_CASES } from './cases/matching.ts';
import { RENDEZVOUS_CASES } from './cases/rendezvous.ts';
import { CREDIT_CASES, RESTART_CASES } from './cases/restart.ts';
import { SENDING_CASES, SENDING_RESTART_CASES } from './cases/sending.ts';
import type { Control } from './control.ts';
import { type Description, DRIVER_VERSION } from './convention.ts';

export const CASES: readonly Case[] = [
  ...HANDSHAKE_CASES,
  ...FRAMING_CASES,
  ...LIVENESS_CASES,
  ...MATCHING_CASES,
  ...RENDEZVOUS_CASES,
  ...RESTART_CASES,
  ...CREDIT_CASES,
  ...SENDING_CASES,
  ...SENDING_RESTART_CASES,
  ...DIALLING_CASES,
  ...END_CASES,
];

export interface SuiteOptions {
  transport?: 'tcp' | 'ws';
  groups?: readonly Group[];
  /** Part of a case's name. */
  only?: string;
  /** Stop after so many cases with failures. */
  failuresMax?: number;
  limitMs?: number;
  quietMs?: number;
  onCase?: (result: CaseResult) => void;
}

export interface SuiteReport {
  endpoint: Description;
  transport: string;
  results: CaseResult[];
  clauses: ClauseVerdict[];
  ms: number;
}

/** Plays every case that fits, one after the other, each in a job of its own. The control is left open. */
export async function runSuite(control: Control, options: SuiteOptions = {}): Promise<SuiteReport> {
  const { transport = 'tcp', groups, only, failuresMax = Number.POSITIVE_INFINITY, limitMs = 5000, quietMs = 30 } = options;
  const endpoint = await control.run('describe', {});
  if (endpoint.driver !== DRIVER_VERSION || !Array.isArray(endpoint.features) || !Array.isArray(endpoint.transports))
    throw new MultirailError(
      'ERR_ARG',
      `the driver speaks version ${endpoint.driver} of the convention; expected version ${DRIVER_VERSION}`,
    );
  if (endpoint.protocol !== PROTOCOL_VERSION)
    throw new MultirailError(
      'ERR_ARG',
      `"${endpoint.name}" implements protocol version ${endpoint.protocol}; this suite tests version ${PROTOCOL_VERSION}`,
    );
  if (!endpoint.transports.includes(transport))
    throw new MultirailError('ERR_ARG', `"${endpoint.name}" has no transport ${transport}: it has ${endpoint.transports.join(', ')}`);
  const config: SuiteConfig = { transport, limitMs, quietMs };
  const results: CaseResult[] = [];
  const beganMs = performance.now();
  let failed = 0;
  for (const one of CASES) {
    if (groups !== undefined && !groups.includes(one.group)) continue;
    if (only !== undefined && !one.name.includes(only)) continue;
    const result = await runCase(one, control, config, endpoint);
    results.push(result);
    options.onCase?.(result);
    if (result.findings.some(({ ok }) => !ok) && ++failed >= failuresMax) break;
  }
  return { endpoint, transport, results, clauses: judge(results), ms: performance.now() - beganMs };
}
