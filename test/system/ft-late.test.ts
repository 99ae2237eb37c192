// Ranks that come to a save one long after the other. What a rank has sent waits at a peer that computes: that is no message that nobody receives, and the
// time that a save gives to messages begins when all have come to it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, startNode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['ft-late-rank.ts']);
}, 60_000);
afterAll(() => code?.dispose());

const STARTS = {
  'coordinated recovery': ['coordinated', '--mca', 'ft', 'on'],
  'asynchronous recovery': ['asynchronous', '--mca', 'ft', 'on'],
  'recovery by groups': ['groups', '--mca', 'ft', 'on'],
  replicas: ['coordinated', '--replicas', '2'],
} as const;

test.each(
  Object.entries(STARTS).flatMap(([name, [recovery, ...words]]) =>
    ['promises', 'blocking'].map((calls) => ({ name, recovery, words, calls })),
  ),
)(
  '$name, $calls: a rank computes for longer than ft_quiet_ms before it receives',
  { timeout: 30_000 },
  async ({ recovery, words, calls }) => {
    const ranks = recovery === 'groups' ? '4' : '2';
    const run = [code.cli, 'run', '-n', ranks, ...words, '--mca', 'ft_quiet_ms', '100', code.fixture('ft-late-rank.ts'), recovery, calls];
    const { code: status, stdout, stderr } = await startNode(run, { timeoutMs: 25_000 }).ended;
    expect(status, stderr).toBe(0);
    expect(stdout).toContain('rank 1 ends with 2 2 2 2');
  },
);
