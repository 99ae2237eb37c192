// The suite of process failure over shared memory, by ranks in one process, whose collectives go through memory that they share until a member
// dies or the communicator is revoked.
import { describe as group, test } from 'vitest';
import { smComponent } from '../../src/btl/sm/component.ts';
import { loadNative } from '../../src/native/load.ts';
import { playFtCase } from '../support/ft-worlds.ts';
import { FT_CASES } from './cases/ft.ts';

const CASE_LIMIT_MS = 10_000;
const noNative = loadNative().reason;

for (const notices of ['all', 'one'] as const) {
  group(`process failure over sm, told to ${notices}`, () => {
    for (const one of FT_CASES) {
      if (noNative !== undefined) test.skip(`${one.name} (${noNative})`, () => undefined);
      else if (one.processes === true)
        test.skip(`${one.name} (not applicable: blocking calls need a process for each rank)`, () => undefined);
      else test(one.name, { timeout: CASE_LIMIT_MS }, () => playFtCase(one, [smComponent], notices));
    }
  });
}
