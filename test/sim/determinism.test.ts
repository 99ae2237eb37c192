// The same seed gives the same trace: twice in one process, and under two versions of Node.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { PROFILES } from '../../tools/sim/campaign.ts';
import { IS_SAMPLED } from '../support/sample.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const SEEDS = [1, 2, 3, 5, 8, 13, 21, 34].slice(0, IS_SAMPLED ? 3 : undefined);

it('the same seed twice gives the same trace', () => {
  for (const play of Object.values(PROFILES)) {
    const hashes = SEEDS.map((seed) => play(seed, { hashTrace: true }).traceHash);
    expect(SEEDS.map((seed) => play(seed, { hashTrace: true }).traceHash)).toEqual(hashes);
    expect(new Set(hashes).size).toBe(SEEDS.length);
  }
});

it('Node 20 and Node 24 give the same trace', async ({ skip }) => {
  const run = promisify(execFile);
  const other = join(root, '.cache', 'node24', 'node_modules', 'node', 'bin', 'node');
  if (!existsSync(other)) {
    const npm = await run('npm', ['install', '--no-audit', '--no-fund', '--prefix', join(root, '.cache', 'node24'), 'node@24'], {
      timeout: 120_000,
    }).catch((error: Error) => error);
    if (!existsSync(other)) {
      const reason = `no second Node: npm could not install node@24${npm instanceof Error ? ` (${npm.message.split('\n')[0]})` : ''}`;
      console.log(`skipped: ${reason}`);
      skip(reason);
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'multirail-determinism-'));
  try {
    const script = join(folder, 'hashes.mjs');
    await build({
      stdin: {
        contents: `import { PROFILES } from './tools/sim/campaign.ts';
          for (const play of Object.values(PROFILES)) for (const seed of ${JSON.stringify(SEEDS)}) console.log(play(seed, { hashTrace: true }).traceHash);`,
        resolveDir: root,
        loader: 'ts',
      },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: script,
      logLevel: 'error',
    });
    const outputs = await Promise.all([process.execPath, other].map(async (node) => (await run(node, [script])).stdout));
    expect(outputs[0].trim().split('\n')).toHaveLength(Object.keys(PROFILES).length * SEEDS.length);
    expect(outputs[1]).toBe(outputs[0]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 200_000);
