// Spare rails: which rails are made on demand, and what makes them.
import { describe, expect, test } from 'vitest';
import type { BmlOptions } from '../../../src/bml/options.ts';
import type { RailAttributes, RailReason } from '../../../src/btl/btl.ts';
import { FakeRails } from './fake-rails.ts';

const STEADY: Partial<RailAttributes> = { isSteady: true, exclusivity: 200, liveness: 'self' };
const TCP: Partial<RailAttributes> = { exclusivity: 100 };
/** Rail 0 is the steady one. */
const pair = (options: Partial<BmlOptions> = {}) => new FakeRails([STEADY, TCP, TCP], options);
/** As the higher rank, which is dialled. */
const dialled = (asks = false) => new FakeRails([STEADY, TCP, TCP], { rank: 1 }, 0, asks);
const fail = (f: FakeRails, rail: number, kind: RailReason['kind']) =>
  f.bml.handleConnectFailed(f.endpoints[rail], f.endpoints[rail].dialled.at(-1) as number, { kind, text: 'test' }, undefined, f.nowMs);
const dials = (f: FakeRails) => f.endpoints.map(({ dialled: epochs }) => epochs.length);

describe('which rails are spare', () => {
  test.each<[string, Partial<RailAttributes>[], string]>([
    ['those of a lower class', [TCP, STEADY, TCP], 'ON_DEMAND DOWN ON_DEMAND'],
    ['those that stand by', [STEADY, { ...TCP, role: 'standby', exclusivity: 300 }], 'DOWN ON_DEMAND'],
    ['none of the same class', [STEADY, { exclusivity: 200 }], 'DOWN DOWN'],
    ['none where the steady one is not of the best class', [STEADY, { exclusivity: 300 }], 'DOWN DOWN'],
    ['none where the steady one stands by', [{ ...STEADY, role: 'standby' }, TCP], 'DOWN DOWN'],
    ['none without a steady one', [{ exclusivity: 200 }, TCP], 'DOWN DOWN'],
    ['none where there is one rail', [STEADY], 'DOWN'],
  ])('%s', (_, rails, states) => {
    expect(new FakeRails(rails).states()).toBe(states);
    expect(new FakeRails(rails, { holdsSpares: false }).states()).toBe(rails.map(() => 'DOWN').join(' '));
  });
});

describe('the side that dials', () => {
  test('dials the steady one alone, for as long as it is there', () => {
    const f = pair();
    f.turn();
    f.up(0);
    f.run(20_000);
    expect(f.states()).toBe('UP ON_DEMAND ON_DEMAND');
    expect(dials(f)).toEqual([1, 0, 0]);
  });

  test('dials all of them in the next turn after a loss, and goes on as with other rails', () => {
    const f = pair();
    f.turn();
    f.up(0);
    f.down(0);
    expect(f.states()).toBe('DOWN DOWN DOWN');
    expect(f.moves.slice(-3)).toEqual(['0 UP>DOWN', '1 ON_DEMAND>DOWN', '2 ON_DEMAND>DOWN']);
    f.turn();
    expect(dials(f)).toEqual([1, 1, 1]);
    f.up(1, 2);
    f.run(500);
    f.up(0);
    expect(f.indexes(f.peer.send)).toEqual([0]);
    expect(f.states()).toBe('UP UP UP');
    f.down(1);
    f.run(300);
    expect(dials(f)[1]).toBeGreaterThan(1);
  });

  test('a fence is a loss, before the module has told', () => {
    const f = pair();
    f.turn();
    f.up(0);
    f.bml.fence(f.peer, 0, 1, { kind: 'fenced', text: 'test' });
    expect(f.states()).toBe('DOWN DOWN DOWN');
  });

  test('an epoch that ends before it has carried is a loss, too', () => {
    const f = pair();
    f.turn();
    f.connected(0);
    f.down(0, 'damaged');
    f.turn();
    expect(dials(f)).toEqual([1, 1, 1]);
  });

  test.each(['error', 'timeout', 'damaged', 'route'] as const)('an attempt that ends with %s makes them', (kind) => {
    const f = pair();
    f.turn();
    fail(f, 0, kind);
    f.turn();
    expect(dials(f).slice(1)).toEqual([1, 1]);
  });

  test.each(['busy', 'refused', 'closed'] as const)('the third attempt that ends with %s makes them', (kind) => {
    const f = pair();
    for (let attempt = 1; attempt <= 3; attempt++) {
      while (dials(f)[0] < attempt) f.turn();
      expect(f.states()).toBe('CONNECTING ON_DEMAND ON_DEMAND');
      fail(f, 0, kind);
    }
    f.turn();
    expect(dials(f)).toEqual([3, 1, 1]);
  });

  test('an attempt beside a live epoch that is not answered does not', () => {
    const f = pair();
    f.turn();
    f.up(0);
    f.bml.handleConnectFailed(f.endpoints[0], 1, { kind: 'busy', text: 'test' }, undefined, f.nowMs);
    f.run(100);
    expect(f.states()).toBe('UP ON_DEMAND ON_DEMAND');
  });

  test('the end of the peer makes nothing', () => {
    const f = pair();
    f.turn();
    f.up(0);
    f.bml.closePeer(f.peer);
    f.bml.fence(f.peer, 0, 1, { kind: 'peer-failed', text: 'test' });
    f.run(100);
    expect(f.states()).toBe('DOWN ON_DEMAND ON_DEMAND');
    f.bml.dropRails(f.peer);
    expect(f.peer.spares).toEqual([]);
  });

  test('a question over the steady rail is for that one, a question over a spare one for all', () => {
    const f = pair();
    f.turn();
    f.up(0);
    f.bml.handleAsked(f.peer, 0, f.nowMs);
    f.bml.handleAsked(f.peer, 77, f.nowMs);
    expect(f.states()).toBe('UP ON_DEMAND ON_DEMAND');
    f.bml.handleAsked(f.peer, 2, f.nowMs);
    f.turn();
    expect(f.states()).toBe('UP CONNECTING CONNECTING');
    // It asked because it wants to be dialled: there is nothing to ask it for.
    expect(f.peer.mustAsk).toBe(false);
  });

  test('one of two steady rails is enough', () => {
    const f = new FakeRails([STEADY, STEADY, TCP]);
    f.turn();
    f.up(0, 1);
    f.down(0);
    expect(f.states()).toBe('DOWN UP ON_DEMAND');
    f.down(1);
    expect(f.rails[2].state).toBe('DOWN');
  });
});

describe('the side that is dialled', () => {
  test('takes a spare rail whenever it is connected, and the others are on demand no more', () => {
    const f = dialled();
    f.connected(0, 1);
    f.answerProbes(0);
    f.up(1);
    expect(f.rails.map(({ state }) => state).slice(1)).toEqual(['UP', 'DOWN']);
    f.run(200);
    expect(dials(f)).toEqual([0, 0, 0]);
  });

  test('asks after a loss, over a spare rail, until it is heard', () => {
    const f = dialled();
    f.up(0);
    f.run(100);
    expect(dials(f)).toEqual([0, 0, 0]);
    f.down(0);
    f.turn();
    expect(dials(f)).toEqual([0, 1, 0]);
    fail(f, 1, 'timeout');
    f.run(60);
    expect(dials(f)).toEqual([0, 1, 1]);
    fail(f, 2, 'asked');
    f.run(1000);
    expect(dials(f)).toEqual([0, 1, 1]);
    f.connected(1, 1);
    expect(f.peer.mustAsk).toBe(false);
  });

  test('at the first contact it asks over the steady rail, and over spare ones only after that has failed', () => {
    const f = dialled(true);
    for (let attempt = 1; attempt <= 3; attempt++) {
      while (dials(f)[0] < attempt) f.turn();
      expect(dials(f).slice(1)).toEqual([0, 0]);
      fail(f, 0, 'busy');
    }
    f.turn();
    expect(dials(f)).toEqual([3, 1, 0]);
  });
});
