// Counts that pass 2^31: V8 keeps the code that it has compiled for them, and each count of bytes of a rail, a peer and a message layer begins as one.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { newRailByteCounters } from '../../../src/btl/btl.ts';
import { newPmlCounters } from '../../../src/pml/counters.ts';
import { WIDE_ZERO } from '../../../src/util/wide-zero.ts';

const PROGRAM = `
%ZERO%
class Link { bytes = zero; add(n) { this.bytes += n; return this.bytes > 1e15; } }
const link = new Link();
const run = (times, n) => { for (let i = 0; i < times; i++) if (link.add(n)) throw new Error(); };
for (let i = 0; i < 50; i++) run(20000, 3);
console.log('HOT');
for (let i = 0; i < 50; i++) run(20000, 30000);
console.log('WIDE', link.bytes > 2 ** 31);
`;

/** Bailouts of add() behind the warm-up, in a process whose counts begin with that. */
function bailouts(zero: string): number {
  const { stdout } = spawnSync(process.execPath, ['--trace-deopt', '--trace-opt', '-e', PROGRAM.replace('%ZERO%', zero)], {
    encoding: 'utf8',
  });
  const wide = stdout.slice(stdout.indexOf('HOT'));
  expect(stdout).toContain('HOT');
  expect(stdout).toMatch(/completed (optimizing|compiling)/);
  expect(wide).toContain('WIDE true');
  return wide.split('\n').filter((line) => /bailout/.test(line) && /<JSFunction (add|run)/.test(line)).length;
}

test('a count that begins with it passes 2^31 without a loss of compiled code, and one that begins with 0 does not', () => {
  const source = readFileSync(new URL('../../../src/util/wide-zero.ts', import.meta.url), 'utf8');
  const lines = source.split('\n').filter((line) => /^(export )?const /.test(line));
  expect(lines).toHaveLength(2);
  const wide = `${lines.join('\n').replace('export ', '')}\nconst zero = WIDE_ZERO;`;
  expect(bailouts('const zero = 0;')).toBeGreaterThan(0);
  expect(bailouts(wide)).toBe(0);
});

test('it is 0 to everybody else', () => {
  expect(WIDE_ZERO).toBe(0);
  expect(JSON.stringify(newRailByteCounters())).toContain('"bytesSent":0,');
  expect(newPmlCounters().bytesReceived).toBe(0);
});
