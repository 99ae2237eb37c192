// Method: the end of a rank against an engine and a server that a test plays: who is waited for, for how long, and what is said of those that
// do not come.
import { describe, expect, test } from 'vitest';
import { leaveTogether, linesOf } from '../../../src/mpi/leaving.ts';
import type { Engine } from '../../../src/progress/engine.ts';
import { ranksText } from '../../../src/util/rank-list.ts';

/** An engine that is drained at once, has met nobody, and has left when all are drained. */
function fakeEngine() {
  let isLeft = false;
  const engine = {
    onDepartureStep: undefined as (() => void) | undefined,
    beginFinalize: () => undefined,
    isLeft: () => isLeft,
    isDrained: true,
    everyoneDrained: () => {
      isLeft = true;
      engine.onDepartureStep?.();
    },
    notLeftPeers: () => [],
    endingOf: () => undefined,
    meet: () => undefined,
  };
  return engine as unknown as Engine;
}

/** A server whose barrier ends when told to; it counts those that are missing down, one each time it is asked. */
function fakeServer(missing: () => number[]) {
  let done: (dead: number[]) => void = () => undefined;
  const server = {
    isConnected: true,
    barrier: () => new Promise<number[]>((resolve) => (done = resolve)),
    missingAt: async () => missing(),
  };
  return { server, end: () => done([]) };
}

const OTHERS = [1, 2, 3, 4, 5, 6, 7, 8, 9];

describe('for how long', () => {
  test('while others still leave, the limit begins anew', async () => {
    let left = OTHERS;
    const { server, end } = fakeServer(() => {
      left = left.slice(1);
      if (left.length === 0) end();
      return left;
    });
    const limit = { timeoutMs: 200, whileNobodyLeaves: true };
    // Nine looks, a quarter of the limit apart: more than twice the limit.
    expect(await leaveTogether(fakeEngine(), OTHERS, [], server, limit)).toEqual([]);
    expect(left).toEqual([]);
  });

  test('when nobody leaves, it is over, and those that are missing share a line', async () => {
    const { server } = fakeServer(() => [1, 3, 4, 5, 9]);
    const limit = { timeoutMs: 100, whileNobodyLeaves: true };
    expect(await leaveTogether(fakeEngine(), OTHERS, [], server, limit)).toEqual(['ranks 1, 3 to 5, 9: they have not left the job']);
  });

  test('a limit that somebody has set is one of time', async () => {
    let left = 1000;
    const { server } = fakeServer(() => Array.from({ length: left-- }, (_, rank) => rank + 1));
    const lines = await leaveTogether(fakeEngine(), OTHERS, [], server, { timeoutMs: 100, whileNobodyLeaves: false });
    expect(lines).toEqual(['ranks 1 to 1000: they have not left the job']);
  });
});

describe('in words', () => {
  test('ranks are listed in stretches', () => {
    expect(ranksText([3])).toBe('rank 3');
    expect(ranksText([4, 3])).toBe('ranks 3, 4');
    expect(ranksText([248, 122, 124, ...Array.from({ length: 122 }, (_, i) => 126 + i)])).toBe('ranks 122, 124, 126 to 248');
    expect(ranksText(Array.from({ length: 100 }, (_, i) => 2 * i))).toMatch(/^ranks 0, 2, .*, 38 and 80 more$/);
  });

  test('what is not the same for all has a line each, and there are not many', () => {
    const pending = (rank: number) => ({ rank, text: `1 messages pending: ${rank}` });
    const gone = [1, 2].map((rank) => ({ rank, text: 'it has not left the job' }));
    expect(linesOf([pending(7), ...gone])).toEqual(['rank 7: 1 messages pending: 7', 'ranks 1, 2: they have not left the job']);
    expect(linesOf(gone.slice(1))).toEqual(['rank 2: it has not left the job']);
    const lines = linesOf(Array.from({ length: 50 }, (_, rank) => pending(rank)));
    expect(lines).toHaveLength(17);
    expect(lines.at(-1)).toBe('and 34 more like these');
  });
});
