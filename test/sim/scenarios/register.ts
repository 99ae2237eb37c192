// Makes a test of every scenario. A failing one is run once more with a trace, and its last lines are shown.
import { expect, it } from 'vitest';
import type { ScenarioCase } from '../../../tools/sim/scenario.ts';

const TRACE_LINES = 60;

export function registerScenarios(cases: readonly ScenarioCase[]): void {
  expect(new Set(cases.map(({ name }) => name)).size, 'names are unique').toBe(cases.length);
  for (const { name, run } of cases) {
    it(name, () => {
      try {
        run({});
      } catch (error) {
        const lines: string[] = [];
        try {
          run({ trace: (line) => void lines.push(line) });
        } catch {
          // The same failure, this time with its trace.
        }
        const text = error instanceof Error ? error.message : String(error);
        throw new Error(`${text}\n${lines.slice(-TRACE_LINES).join('\n')}`, { cause: error });
      }
    });
  }
}
