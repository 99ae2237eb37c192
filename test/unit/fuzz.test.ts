// The short run of the fuzz targets (test/fuzz/fuzz-targets.ts). The long one is `node test/fuzz/long.mjs`.
import fc from 'fast-check';
import { test } from 'vitest';
import { TARGETS } from '../fuzz/fuzz-targets.ts';

for (const { name, property } of TARGETS) {
  test(`fuzz: ${name}`, () => {
    fc.assert(property() as fc.IProperty<unknown>, { numRuns: 1500, endOnFailure: false });
  });
}
