// The suite of process failure over connections of TCP, by ranks in one process: the launcher tells all of a death, or one, whose word is
// passed on. test/system/ft-job.test.ts has it with a process for each rank.
import { describe as group, test } from 'vitest';
import { tcpComponent } from '../../src/btl/tcp/component.ts';
import { playFtCase } from '../support/ft-worlds.ts';
import { FT_CASES } from './cases/ft.ts';

const CASE_LIMIT_MS = 10_000;

for (const notices of ['all', 'one'] as const) {
  group(`process failure over tcp, told to ${notices}`, () => {
    for (const one of FT_CASES) {
      if (one.processes === true) test.skip(`${one.name} (not applicable: blocking calls need a process for each rank)`, () => undefined);
      else test(one.name, { timeout: CASE_LIMIT_MS }, () => playFtCase(one, [tcpComponent], notices));
    }
  });
}
