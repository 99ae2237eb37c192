// A process joins its job once, in its main thread.
import { expect, test } from 'vitest';
import { joinOnce } from '../../../src/launch/meeting/once.ts';

const rank = (own: number) => ({ MULTIRAIL_RANK: String(own), MULTIRAIL_SIZE: '3', MULTIRAIL_RENDEZVOUS: 'host:1' });

test('the same rank twice is an error that says what was done; it may try again after a failure', () => {
  const first = joinOnce(rank(0), false);
  expect(() => joinOnce(rank(0), false)).toThrow(/^ERR_INIT: init\(\) was called twice: this process is rank 0 of 3/);
  first.undo();
  const second = joinOnce(rank(0), false);
  second.left();
  expect(() => joinOnce(rank(0), false)).toThrow(/^ERR_INIT: init\(\) was called again after finalize\(\)/);
});

test('environments given by hand place several ranks in one process, and as many worlds of one as are asked for', () => {
  joinOnce(rank(1), false);
  joinOnce(rank(2), false);
  joinOnce({}, false);
  joinOnce({}, false);
  const own = joinOnce({}, true);
  expect(() => joinOnce({}, true)).toThrow(/called twice: this process is rank 0 of 1/);
  own.undo();
});

test('a worker thread is told that the main thread joins; a world of one may be asked for', () => {
  for (const env of [{}, rank(0)]) {
    expect(() => joinOnce(env, true, false)).toThrow(/^ERR_INIT: init\(\) was called in a worker thread: a rank is a whole process/);
  }
  expect(() => joinOnce(rank(0), false, false)).toThrow(/worker thread/);
  joinOnce({}, false, false);
});
