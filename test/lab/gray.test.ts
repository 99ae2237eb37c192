// Links that are bad without being down, short: faults drawn by a printed seed over real links, in jobs of all kinds of traffic. Nothing
// may be lost, doubled, reordered or damaged, nothing may stop for 10 s, and a job whose rails are bad must still end within 10 s. The
// campaign judges how long the gaps are. The test runs `bench/lab.sh gray --audit` as it is.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { labUnavailable } from '../../tools/lab/lab.ts';

const unavailable = labUnavailable();
if (unavailable !== undefined) console.log(`skipped: bad links: ${unavailable}`);

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const LIMIT_MS = 160_000;

function audit(...args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn('bash', ['bench/lab.sh', 'gray', '--audit', ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
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

describe.skipIf(unavailable !== undefined)('bad links', () => {
  test('faults of every kind, drawn: nothing is lost, and every job ends', async () => {
    const seed = String(Date.now() % 100_000);
    console.log(`bad links of seed ${seed}`);
    const { code, output } = await audit('--minutes', '0.6', '--seed', seed);
    expect(code, output).toBe(0);
    const [, faults, messages] = new RegExp(`gray audit PASSED: seed ${seed}, (\\d+) faults, (\\d+) messages`).exec(output) ?? [];
    // A run in which nothing happened proves nothing.
    expect(Number(faults), output).toBeGreaterThan(6);
    expect(Number(messages), output).toBeGreaterThan(100);
    expect(output.match(/ended in [\d.]+ s, with the last faults still there/g), output).toHaveLength(3);
  });

  test.each([
    ['flip', /WRONG: .*message 20: its bytes are not those that were sent/],
    ['lose', /WRONG: .*message 21 where 20 was due/],
  ])('a planted mistake is found: %s', async (plant, found) => {
    const { code, output } = await audit('--minutes', '0.05', '--seed', '5', '--plant', plant);
    expect(code, output).toBe(1);
    expect(output).toMatch(found);
    expect(output).toContain('gray audit FAILED: seed 5');
  });
});
