// `multirail info --collectives`: which algorithm each collective would take, and what it costs.
import { ALGORITHMS, type CollectiveName, chooseAlgorithm, ruleOf, tuningOf } from '../../src/mpi/coll/choice.ts';
import { type Cost, type CostCase, FORMULAS } from '../../src/mpi/coll/formulas.ts';
import type { ParamTable } from '../../src/params.ts';

/** Lengths for which a choice is shown. */
const SHOWN_BYTES = [8, 1024, 16 * 1024, 64 * 1024, 1024 * 1024, 8 * 1024 * 1024];
const ELEMENT_BYTES = 8;

export interface CollectiveInfo {
  call: CollectiveName;
  rule: string;
  /** n is the length that the rule looks at: docs/reference/collectives.md. */
  algorithms: { name: string; messages: string; bytes: string; rounds: string }[];
  /**
   * For sums of numbers of 8 bytes, with root 0, by messages; messages, bytes and rounds of the rank that has most of them. `onOneHost`: the
   * algorithm where all ranks are on one host and btl has sm.
   */
  choices: { bytes: number; algorithm: string; messages: number; sentBytes: number; rounds: number; onOneHost: string }[];
}

export function collectivesOf(params: ParamTable, ranks: number): CollectiveInfo[] {
  const tuning = tuningOf(params);
  return (Object.keys(ALGORITHMS) as CollectiveName[]).map((call) => {
    const table = FORMULAS[call] as Record<string, { messages: string; bytes: string; rounds: string; cost(c: CostCase): Cost }>;
    const lengths = call === 'barrier' ? [0] : SHOWN_BYTES;
    const choices = lengths.map((bytes) => {
      const shape = { size: ranks, bytes, commute: true, units: bytes / ELEMENT_BYTES };
      const algorithm = chooseAlgorithm(call, shape, tuning);
      const costs = Array.from({ length: ranks }, (_, rank) =>
        table[algorithm].cost({
          size: ranks,
          rank,
          root: 0,
          bytes,
          unitBytes: ELEMENT_BYTES,
          segmentBytes: tuning.bcastSegmentBytes,
          commute: true,
        }),
      );
      const most = (of: (cost: Cost) => number): number => Math.max(...costs.map(of));
      const [messages, sentBytes, rounds] = [most((cost) => cost.messages), most((cost) => cost.bytes), most((cost) => cost.rounds)];
      const onOneHost = chooseAlgorithm(call, { ...shape, isOneHost: tuning.sharedMemory }, tuning);
      return { bytes, algorithm, messages, sentBytes: Math.round(sentBytes), rounds, onOneHost };
    });
    const algorithms = Object.entries(table).map(([name, { messages, bytes, rounds }]) => ({ name, messages, bytes, rounds }));
    return { call, rule: ruleOf(call, tuning), algorithms, choices };
  });
}

export function collectiveLines(list: readonly CollectiveInfo[], ranks: number): string[] {
  const lines = [
    `Collectives on P = ${ranks} ranks: rule, then for n bytes the algorithm and the most that one rank sends and waits`,
    '(v: rank counted from the root; lg: log2 P rounded up; L: rounded down; formulas in docs/reference/collectives.md)',
  ];
  for (const { call, rule, algorithms, choices } of list) {
    lines.push('', `${call}: ${rule}`);
    for (const { bytes, algorithm, messages, sentBytes, rounds, onOneHost } of choices) {
      const cost = `${String(messages).padStart(5)} messages ${String(sentBytes).padStart(10)} bytes ${String(rounds).padStart(5)} rounds`;
      const instead = onOneHost === algorithm ? '' : `; ${onOneHost} on one host`;
      lines.push(`  ${String(bytes).padStart(8)}  ${algorithm.padEnd(18)} ${cost}${instead}`);
    }
    for (const { name, messages, bytes, rounds } of algorithms) {
      lines.push(`  ${name}`, `      messages ${messages}`, `      bytes    ${bytes}`, `      rounds   ${rounds}`);
    }
  }
  return lines;
}
