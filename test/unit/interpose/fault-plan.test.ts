// Plans of the fault interposer: every action, every default, every mistake with a message that names it.
import { describe, expect, it } from 'vitest';
import { parseFaultPlan, parseRailSelector, RandomSchedule } from '../../../src/btl/interpose/fault-plan.ts';
import { MultirailError } from '../../../src/errors.ts';

describe('parseFaultPlan', () => {
  it('reads a plan of pulls and restores', () => {
    expect(parseFaultPlan('pull:1@2000ms,restore:1@4s')).toEqual({
      actions: [
        { kind: 'pull', which: { rail: 1 }, mode: 'silent', atMs: 2000 },
        { kind: 'restore', which: { rail: 1 }, atMs: 4000 },
      ],
    });
  });

  it('has a plan that does nothing by itself', () => {
    expect(parseFaultPlan('manual')).toEqual({ actions: [] });
    expect(parseFaultPlan('manual,pull:1@2s').actions).toHaveLength(1);
  });

  it('reads modes, selectors, durations and parts', () => {
    const { actions } = parseFaultPlan(
      ' pull:*/2:error@5 , busy:0@1s+20ms, stall:*@1s+2s, corrupt:key=a-b:1:header@7ms, pull:key=x:inside@0',
    );
    expect(actions).toEqual([
      { kind: 'pull', which: { peer: 2 }, mode: 'error', atMs: 5 },
      { kind: 'busy', which: { rail: 0 }, atMs: 1000, forMs: 20 },
      { kind: 'stall', which: {}, atMs: 1000, forMs: 2000 },
      { kind: 'corrupt', which: { key: 'a-b:1' }, part: 'header', atMs: 7 },
      { kind: 'pull', which: { key: 'x' }, mode: 'inside', atMs: 0 },
    ]);
  });

  it('reads rails that go bad, with what ends it', () => {
    const { actions } = parseFaultPlan('lossy:1:5@2s, lossy:*:0.5#a seed@10ms+3s, slow:key=x:1/2:8000@1s+1s, slow:0:125000@0');
    expect(actions).toEqual([
      { kind: 'lossy', which: { rail: 1 }, lossPer10k: 500, seed: '1', atMs: 2000 },
      { kind: 'lossy', which: {}, lossPer10k: 50, seed: 'a seed', atMs: 10 },
      { kind: 'restore', which: {}, atMs: 3010 },
      { kind: 'slow', which: { key: 'x:1', peer: 2 }, bytesPerS: 8000, atMs: 1000 },
      { kind: 'restore', which: { key: 'x:1', peer: 2 }, atMs: 2000 },
      { kind: 'slow', which: { rail: 0 }, bytesPerS: 125_000, atMs: 0 },
    ]);
  });

  it('reads random faults, with their options behind commas', () => {
    const plan = parseFaultPlan('pull:0@1s,random:seed=7,rate=4,heal=100ms,kinds=silent+busy');
    expect(plan.actions.length).toBe(1);
    expect(plan.random).toEqual({ seed: '7', everyMs: 250, healMs: 100, kinds: ['silent', 'busy'] });
    expect(parseFaultPlan('')).toEqual({ actions: [] });
  });

  for (const wrong of [
    'pull',
    'pull:1',
    'pull:x@1s',
    'pull:1:gently@1s',
    'pull:1@soon',
    'pull:1@1s+1s',
    'busy:1@1s',
    'corrupt:1@1s',
    'restore:1:error@1s',
    'lossy:1@1s',
    'lossy:1:0@1s',
    'lossy:1:100@1s',
    'slow:1@1s',
    'slow:1:999@1s',
    'slow:1:fast@1s',
    'random:rate=0',
    'random:kinds=all',
    'random:what=1',
    'explode:1@1s',
  ]) {
    it(`refuses "${wrong}"`, () => {
      expect(() => parseFaultPlan(wrong)).toThrow(MultirailError);
      expect(() => parseFaultPlan(wrong)).toThrow(/ERR_CONFIG: btl_fault: /);
    });
  }

  it('selectors', () => {
    expect(parseRailSelector('*')).toEqual({});
    expect(parseRailSelector('3/1')).toEqual({ rail: 3, peer: 1 });
    expect(() => parseRailSelector('-1')).toThrow(MultirailError);
  });
});

describe('RandomSchedule', () => {
  it('is the same for the same seed, runs forward, and restores every pull before the next fault', () => {
    const random = { seed: '5', everyMs: 100, healMs: 50, kinds: ['silent', 'error', 'busy', 'header', 'lossy', 'slow'] };
    const take = () => {
      const schedule = new RandomSchedule(random, { rail: 0 }, 'a rail');
      return Array.from({ length: 200 }, () => schedule.take());
    };
    const actions = take();
    expect(take()).toEqual(actions);
    for (let i = 1; i < actions.length; i++) {
      expect(actions[i].atMs).toBeGreaterThanOrEqual(actions[i - 1].atMs);
      if (['pull', 'lossy', 'slow'].includes(actions[i - 1].kind)) expect(actions[i].kind).toBe('restore');
    }
  });
});
