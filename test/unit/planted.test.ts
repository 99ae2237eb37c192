// Planted mistakes are edits of the source, found by its words: each text must still be there, once. What they do is tested where they are
// played.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PLANTED } from '../sim/mutants/table.ts';
import { PLANTED_INSIDE } from '../wire/planted.ts';

test('every edit of a planted mistake finds its place in the source', () => {
  const lost: string[] = [];
  for (const { name, edits } of [...PLANTED_INSIDE, ...PLANTED]) {
    for (const { file, find } of edits) {
      const places = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8').split(find).length - 1;
      if (places !== 1) lost.push(`${name}: ${places} places in ${file} for ${find}`);
    }
  }
  expect(lost).toEqual([]);
});
