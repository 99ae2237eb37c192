// The second implementation, examples/python-peer, under the suite: it was written from docs/internals/PROTOCOL.md alone.
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import type { ClauseId } from '../../tools/wire-suite/clauses.ts';
import { spawnControl } from '../../tools/wire-suite/control.ts';
import { runSuite } from '../../tools/wire-suite/run.ts';

const PEER = new URL('../../examples/python-peer/peer.py', import.meta.url).pathname;

/** Why it cannot be played here. */
function lacking(): string | undefined {
  const done = spawnSync('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], { encoding: 'utf8' });
  if (done.status !== 0) return 'there is no python3';
  const [major, minor] = done.stdout.trim().split('.').map(Number);
  return major === 3 && minor >= 8 ? undefined : `python3 is ${done.stdout.trim()}, which is older than 3.8`;
}

const why = lacking();
if (why !== undefined) console.log(`skipped: the Python peer under the wire suite: ${why}`);

/** What it says that it lacks, as its README has it. */
const LEFT_OUT = /^(DL|LV|RE|WS)-/;

test.skipIf(why !== undefined)('the Python peer fulfils every clause but those of who dials', async () => {
  const control = spawnControl('python3', [PEER]);
  try {
    const { clauses, endpoint, results } = await runSuite(control);
    expect(endpoint.name).toBe('python-peer');
    expect(clauses.flatMap(({ id, failures }) => failures.map(({ case: name, text }) => `${id} in "${name}": ${text}`))).toEqual([]);
    const skipped: ClauseId[] = clauses.filter(({ verdict }) => verdict === 'skipped').map(({ id }) => id);
    expect(skipped.filter((id) => !LEFT_OUT.test(id))).toEqual([]);
    expect(clauses.filter(({ verdict }) => verdict === 'passed').length).toBeGreaterThan(100);
    expect(results.reduce((sum, { findings }) => sum + findings.length, 0)).toBeGreaterThan(10_000);
  } finally {
    await control.close();
  }
});
