// Plans of pulls and restores: what is meant, and what is refused before anything runs.
import { expect, describe as group, test } from 'vitest';
import { knownComponents } from '../../../src/btl/registry.ts';
import {
  checkActions,
  isBadMode,
  parsePullMode,
  parseRailActions,
  pulledAt,
  pulledText,
  pulledWord,
  takeRailsInHand,
} from '../../../tools/bench/rail-actions.ts';

group('plans', () => {
  test('are put in order of time; lists and repeated options are the same', () => {
    const expected = [
      { kind: 'pull', rail: 1, atMs: 500 },
      { kind: 'pull', rail: undefined, atMs: 1500 },
      { kind: 'restore', rail: 1, atMs: 2000 },
      { kind: 'restore', rail: 0, atMs: 2500 },
    ];
    expect(parseRailActions(['*@1.5s', '1@500ms'], ['1@2s', '0@2500ms'], 3000)).toEqual(expected);
    expect(parseRailActions(['1@500ms, *@1.5s'], ['1@2s,0@2500ms'], 3000)).toEqual(expected);
    expect(parseRailActions([], [], 3000)).toEqual([]);
  });

  test.each([
    [['1'], [], 'expected RAIL@TIME'],
    [['1@2'], [], 'expected RAIL@TIME'],
    [['1@2s@3s'], [], 'expected RAIL@TIME'],
    [['x@2s'], [], 'expected RAIL@TIME'],
    [['-1@2s'], [], 'expected RAIL@TIME'],
    [['1@-2s'], [], 'expected RAIL@TIME'],
    [['1@9s'], [], 'the run is over after 6000 ms'],
    [['1@1s', '1@2s'], [], 'it is pulled already'],
    [[], ['1@2s'], 'it is not pulled'],
    [[], ['*@2s'], 'no rail is pulled'],
    [['1@2s'], ['1@1s'], 'it is not pulled'],
  ])('pull %j restore %j is refused: %s', (pulls, restores, text) => {
    expect(() => parseRailActions(pulls, restores, 6000)).toThrow(text);
  });

  test('which rails are pulled when', () => {
    const actions = parseRailActions(['1@1s', '*@3s'], ['1@2s', '0@4s'], 6000);
    expect([0, 1000, 1999, 2000, 3000, 4000].map((atMs) => pulledAt(actions, 2, atMs))).toEqual([
      [false, false],
      [false, true],
      [false, true],
      [false, false],
      [true, true],
      [false, true],
    ]);
  });

  test('a rail that does not exist, and a plan that leaves none, are refused', () => {
    const plan = (...pulls: string[]) => parseRailActions(pulls, [], 6000);
    expect(() => checkActions(plan('2@1s'), 2)).toThrow('there are rails 0 to 1');
    expect(() => checkActions(plan('0@1s'), 1)).toThrow('every one of the 1 rails is pulled at the end');
    expect(() => checkActions(plan('*@1s'), 3)).toThrow('every one of the 3 rails');
    expect(() => checkActions(plan('0@1s'), 2)).not.toThrow();
    expect(() => checkActions([], 1)).not.toThrow();
  });
});

test('the hand takes all transports but self, and gives them back', () => {
  const before = [...knownComponents()];
  const hand = takeRailsInHand();
  const during = [...knownComponents()];
  expect(during.map(({ name }) => name)).toEqual(before.map(({ name }) => name));
  expect(during.map((component, i) => component === before[i])).toEqual(before.map(({ name }) => name === 'self'));
  hand.release();
  expect(knownComponents()).toEqual(before);
});

test('what a pull does: the rail dies, or goes bad', () => {
  const good = ['silent', 'error', 'lossy:5', 'lossy:0.01', 'lossy:99#a seed', 'slow:8000'] as const;
  for (const mode of good) expect(parsePullMode(mode)).toBe(mode);
  expect(good.map(isBadMode)).toEqual([false, false, true, true, true, true]);
  expect(good.map(pulledWord)).toEqual(['pulled', 'pulled', 'lossy', 'lossy', 'lossy', 'slow']);
  expect(pulledText('lossy:5')).toBe('made lossy 5');
  for (const mode of ['', 'gone', 'lossy', 'lossy:0', 'lossy:100', 'lossy:x', 'slow', 'slow:999', 'slow:1k', 'silent:1'])
    expect(parsePullMode(mode), mode).toBeUndefined();
});
