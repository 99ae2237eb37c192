// The report of a failover run in words.
import { megabytesPerSecond } from './osu.ts';
import { pulledWord } from './rail-actions.ts';
import type { StreamReport } from './stream.ts';
import type { Phase } from './timeline.ts';

export const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;
export const megabytes = (rate: number): string => `${rate.toFixed(1)} MB/s`;
const count = (value: number): string => value.toLocaleString('en-US');
const shortHash = (hash: string | undefined): string => (hash === undefined ? 'none' : `${hash.slice(0, 16)}…`);

export const phaseRate = (phase: Phase): number =>
  phase.toMs > phase.fromMs ? megabytesPerSecond(phase.bytes, phase.toMs - phase.fromMs) : 0;

export function phaseName(phases: readonly Phase[], index: number, word = 'pulled'): string {
  const { pulled } = phases[index];
  if (pulled.length > 0) return `rail ${pulled.join(', ')} ${word}`;
  // Where nothing is pulled by plan, the rails may be broken all the same (btl_fault, real links).
  if (phases.length === 1) return 'whole run';
  return index === 0 ? 'healthy' : 'restored';
}

/** Last line, and the only one that counts. */
export function verdictLine(report: StreamReport): string {
  if (report.problems.length > 0) return `FAIL: ${report.problems.join('; ')}`;
  const { messages, bytes } = report.findings.received;
  const checked = report.spec.verify ? 'every message verified by content and order, hashes of both sides equal' : 'contents not verified';
  return `PASS: nothing lost, doubled or reordered (${count(messages)} messages, ${count(bytes)} bytes; ${checked})`;
}

export function reportLines(report: StreamReport): string[] {
  const { findings, receiverCounters, senderCounters } = report;
  const { sent, received } = findings;
  const lines = ['', 'Phases                        from        to          rate   worst gap'];
  report.phases.forEach((phase, i) => {
    const name = phaseName(report.phases, i, pulledWord(report.spec.mode)).padEnd(24);
    const gap = `${phase.worstGapMs.toFixed(1)} ms`;
    lines.push(
      `  ${name}${seconds(phase.fromMs).padStart(8)}  ${seconds(phase.toMs).padStart(8)}  ${megabytes(phaseRate(phase)).padStart(12)}  ${gap.padStart(10)}`,
    );
  });
  lines.push(`Worst gap between two deliveries: ${report.worstGapMs.toFixed(1)} ms, ended at ${seconds(report.worstGapEndMs)}`);
  for (const remark of report.remarks) lines.push(`Remark: ${remark}`);
  lines.push('', 'Audit                         sent        received');
  const row = (name: string, left: string, right: string) => lines.push(`  ${name.padEnd(16)}${left.padStart(18)}  ${right.padStart(18)}`);
  row('messages', sent === undefined ? 'no report' : count(sent.messages), count(received.messages));
  row('bytes', sent === undefined ? 'no report' : count(sent.bytes), count(received.bytes));
  row('hash', shortHash(sent?.hash), shortHash(received.hash));
  lines.push(`  lost ${findings.lost}, doubled ${findings.doubled}, reordered ${findings.reordered}, damaged ${findings.damaged}`);
  const dropped = receiverCounters.pml.envelopeDuplicates + receiverCounters.pml.fragDuplicates + receiverCounters.pml.fragStale;
  lines.push(`  duplicates dropped below the program: ${count(dropped)}`);
  if (senderCounters !== undefined) {
    const { envelopesResent, bytesResent, envelopesHedged, bytesHedged, restarts } = senderCounters.pml;
    lines.push(`  sent again: ${count(envelopesResent)} envelopes, ${count(bytesResent)} bytes; rendezvous restarted: ${count(restarts)}`);
    lines.push(`  sent over a second rail, since the first was late: ${count(envelopesHedged)} envelopes, ${count(bytesHedged)} bytes`);
  }
  return lines;
}
