// Two replicas of each rank, as jobs: an unchanged program has the same results, and what is flipped, stalled or ended is found.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltCode, buildCode, type Ran, startNode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode(['replica-rank.mjs']);
});
afterAll(() => code?.dispose());

const run = (options: string): Promise<Ran> =>
  startNode([code.cli, 'run', '-n', '3', ...options.split(' ').filter(Boolean), code.fixture('replica-rank.mjs')], { timeoutMs: 90_000 })
    .ended;
const results = ({ stdout }: Ran): Record<string, unknown>[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))))
    .sort((a, b) => a.rank - b.rank);

test.each(['', '--mca ft_compare sha256', '--mca ft_compare full', '--mca btl self,tcp'])(
  'an unchanged program has the same results %s',
  async (more) => {
    const [alone, pairs] = [await run(''), await run(`--replicas 2 ${more}`)];
    expect([alone.code, pairs.code, pairs.stderr]).toEqual([0, 0, '']);
    const [plain, replicated] = [results(alone), results(pairs)];
    expect(replicated.length).toBe(3);
    for (const [rank, result] of replicated.entries()) {
      expect(result).toMatchObject({ rank, size: 3, orders: 20, chances: 3, timedOut: 'ERR_TIMEOUT', role: 'lead' });
      expect(result.work).toBe(plain[rank].work);
    }
  },
);

test.each(['lead', 'shadow'])('a bit that flips in a message of the %s is found before it leaves', async (replica) => {
  const ran = await run(`--replicas 2 --inject flip:rank=1,replica=${replica},at=50%,buffer=work,seed=3`);
  expect(ran.code).toBe(76);
  expect(ran.stdout).toBe('');
  expect(ran.stderr).toMatch(
    /ERR_DIVERGED: the replicas of rank 1 \(processes 1 and 4\) differ: message \d+, of 800 bytes to rank \d with tag \d+, differs, first at byte \d+; crc32c [0-9a-f]{8} at the lead, [0-9a-f]{8} at the shadow; nothing of it has left; the last event in common is message \d+/,
  );
});

test('a job whose replicas differ is started again, and the fault does not come again', async () => {
  const ran = await run('--replicas 2 --on-diverged relaunch:2 --inject flip:rank=2,replica=shadow,send=3');
  expect(ran.code).toBe(0);
  expect(ran.stderr).toContain('the job was started again 1 time and ends with exit code 0');
  expect(results(ran).length).toBe(3);
});

test('a replica that ends ends the job; one that is in a loop is late', async () => {
  expect((await run('--replicas 2 --inject exit:rank=0,replica=shadow,at=30%,code=9')).code).toBe(9);
  for (const replica of ['lead', 'shadow']) {
    const ran = await run(`--replicas 2 --inject stall:rank=1,replica=${replica},at=30%`);
    expect(ran.code).toBe(76);
    expect(ran.stderr).toMatch(
      new RegExp(`the replicas of rank 1 .* differ: the ${replica} is late: it has used 1\\.\\d+ s of a processor`),
    );
  }
});

test('what does not go together is refused', async () => {
  expect((await run('--replicas 2 --spares 1')).stderr).toContain('--replicas does not go together');
  expect((await run('--on-diverged relaunch')).stderr).toContain('--on-diverged needs --replicas 2');
  expect((await run('--inject flop:rank=1')).code).toBe(2);
});
