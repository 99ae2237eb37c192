// The soak, short: its ranks over real links that its schedule breaks, and a mistake that its audit must find. The test runs bench/soak.sh
// as it is.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { soakSchedule } from '../../bench/soak/schedule.ts';
import { Prng } from '../../src/util/prng.ts';
import { labUnavailable } from '../../tools/lab/lab.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) console.log(`skipped: the soak: ${unavailable}`);

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const LIMIT_MS = 90_000;
const MINUTES = 0.17;

/** In so few seconds a schedule may hold nothing but holes that are over before anybody has noticed: one with a pulled cable is taken. */
function drawSeed(): number {
  for (let seed = Date.now() % 100_000; ; seed++) {
    const steps = soakSchedule({ prng: new Prng(`${seed}/faults`), durationMs: MINUTES * 60_000, nodes: 4, rails: 3 });
    if (steps.some(({ kind }) => kind === 'pull')) return seed;
  }
}

function soak(...args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn('bash', ['bench/soak.sh', 'traffic', '--name', 'soak-test', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const timer = setTimeout(() => child.kill('SIGTERM'), LIMIT_MS);
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}

describe.skipIf(unavailable !== undefined)('bench/soak.sh traffic', () => {
  test('four ranks over three rails that are broken: nothing lost', async () => {
    const seed = String(drawSeed());
    console.log(`soak of seed ${seed}`);
    const { code, output } = await soak('--minutes', String(MINUTES), '--ranks', '4', '--seed', seed);
    expect(code, output).toBe(0);
    expect(output).toMatch(new RegExp(`soak PASSED \\(memory not judged: too short\\): seed ${seed}, \\d+ rounds`));
    expect(output).toMatch(/rails lost \/ up[^|]*\| [1-9]/);
  });

  test('a bit that is flipped at a sender ends it with rank, round and seed', async () => {
    const { code, output } = await soak('--minutes', '0.5', '--ranks', '2', '--seed', '5', '--no-faults', '--plant', 'flip');
    expect(code, output).toBe(1);
    expect(output).toMatch(/WRONG: rank 0, round \d+, seed 5: .*message \d+ of 1 to 0, tag \d+.*: its bytes are not those that were sent/);
    expect(output).toContain('soak FAILED: seed 5');
  });
});
