// Ranks of one host that share memory make no rails over tcp, until shared memory fails between two of them.
import { afterAll, beforeAll, expect, describe as group, test } from 'vitest';
import { loadNative } from '../../src/native/load.ts';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

const { reason } = loadNative();
if (reason !== undefined) console.info(`skipped: rails on demand: ${reason}`);

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['spares-rank.ts', 'rails-rank.mjs']);
}, 60_000);
afterAll(() => code?.dispose());

const RANKS = 4;

group.skipIf(reason !== undefined)('rails on demand', () => {
  test('none is made while shared memory carries, and all messages arrive over tcp when it fails', async () => {
    const {
      code: exitCode,
      stdout,
      stderr,
    } = await startNode([code.cli, 'run', '-n', String(RANKS), code.fixture('spares-rank.ts')], {
      timeoutMs: 90_000,
    }).ended;
    expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
    expect(stdout.match(/barriers connections 0 /g)?.length).toBe(RANKS);
    expect(stdout.match(/audited 180 in/g)?.length).toBe(RANKS);
    console.log(stdout.trim());
  }, 100_000);

  test('with bml_spare_rails = always, and behind the fault interposer, all rails are made at the first contact', async () => {
    for (const [name, value] of [
      ['bml_spare_rails', 'always'],
      ['btl_fault', 'manual'],
    ]) {
      const ran = await startNode([code.cli, 'run', '-n', '2', '--mca', name, value, code.fixture('rails-rank.mjs'), 'all'], {
        timeoutMs: 60_000,
      }).ended;
      expect(ran.code, ran.stderr).toBe(0);
      expect(ran.stdout.match(/states of tcp UP/g)?.length, `${name}: ${ran.stdout}`).toBe(2);
    }
  }, 130_000);
});
