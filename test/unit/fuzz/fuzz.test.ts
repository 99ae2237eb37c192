// The short run of the fuzz targets (test/unit/fuzz/fuzz-targets.ts). The long one is `node test/unit/fuzz/long.mjs`.
import fc from 'fast-check';
import { test } from 'vitest';
import { TARGETS } from './fuzz-targets.ts';

for (const { name, property } of TARGETS) {
  test(`fuzz: ${name}`, () => {
    fc.assert(property() as fc.IProperty<unknown>, { numRuns: 1500, endOnFailure: false });
  });
}
