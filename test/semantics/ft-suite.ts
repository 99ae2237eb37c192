// The suite of process failure over given transports, by ranks in one process: the launcher tells all of a death, or one, whose word is
// passed on. test/system/ft-job.test.ts has it with a process for each rank.
import { describe as group, test } from 'vitest';
import type { BtlComponent } from '../../src/btl/btl.ts';
import { playFtCase } from '../support/ft-worlds.ts';
import { FT_CASES } from './cases/ft.ts';

const CASE_LIMIT_MS = 10_000;

/** `unavailable`: why it cannot run here. */
export function ftSuite(component: BtlComponent, unavailable?: string): void {
  for (const notices of ['all', 'one'] as const) {
    group(`process failure over ${component.name}, told to ${notices}`, () => {
      for (const one of FT_CASES) {
        const why = one.processes === true ? 'not applicable: blocking calls need a process for each rank' : unavailable;
        if (why !== undefined) test.skip(`${one.name} (${why})`, () => undefined);
        else test(one.name, { timeout: CASE_LIMIT_MS }, () => playFtCase(one, [component], notices));
      }
    });
  }
}
