// Groups of ranks that go back together: who is in which, what a group goes back to, and how its save goes, with its turns.
import { expect, test } from 'vitest';
import { CALL, type GroupSaveAction, GroupSaveCore, VERDICT } from '../../../src/ft/groups/group-core.ts';
import { hasBelow } from '../../../src/ft/groups/group-lacks.ts';
import { GroupLives } from '../../../src/ft/groups/group-lives.ts';
import { type GroupMeetingHost, type GroupMember, meetGroups } from '../../../src/ft/groups/group-meeting.ts';
import { type GroupSaveHost, GroupSaveSteps } from '../../../src/ft/groups/group-save-steps.ts';
import { blocks, firstStep, type GroupEntry, type GroupView, membersOf, numbered, planGroups } from '../../../src/ft/groups/groups.ts';

test('groups are blocks of ranks, or follow names', () => {
  expect(blocks(2, 5)).toEqual([0, 0, 0, 1, 1]);
  expect(blocks(3, 3)).toEqual([0, 1, 2]);
  expect(() => blocks(4, 3)).toThrow(/groups = 4, and there are 3 ranks/);
  expect(numbered(['b', 'a', 'b'])).toEqual([0, 1, 0]);
  expect(membersOf([0, 1, 0], 0)).toEqual([0, 2]);
});

test('groups save in different steps', () => {
  expect([0, 1, 2, 3].map((group) => firstStep(group, 4, 8))).toEqual([8, 2, 4, 6]);
  expect([0, 1].map((group) => firstStep(group, 2, 1))).toEqual([1, 1]);
});

const entry = (owner: number, k: number): GroupEntry => ({ owner, k, step: 10 * k, bytes: 8, crc: 1 });
const view = (mode: GroupView['mode'], entries: GroupEntry[], committed: number[]): GroupView => ({ mode, entries, committed });
const GROUPS = [0, 0, 1, 1];

test('a group that lost a rank goes back to the newest save of which all images are there', () => {
  // Rank 1 is new; its copies are at rank 3. Save 2 was not committed, but is complete; of save 3 an image is missing.
  const views = [
    view('runs', [entry(0, 1), entry(0, 2), entry(0, 3)], [1, 0]),
    view('new', [], []),
    view('runs', [entry(2, 0)], [1, 0]),
    view('runs', [entry(3, 0), entry(1, 1), entry(1, 2)], [-1, -1]),
  ];
  const plan = planGroups(views, GROUPS);
  expect([...plan.failing]).toEqual([0]);
  expect(plan.lines).toEqual([2, 0]);
  expect(plan.steps[0]).toBe(20);
  expect(plan.transfers).toEqual([{ ...entry(1, 2), giver: 3 }]);
  expect(plan.lost).toBeUndefined();
});

test('a group begins from the beginning where nothing was committed, and is lost where an image of what was is', () => {
  const none = [view('runs', [], [-1, -1]), view('new', [], []), view('runs', [], [-1, -1]), view('runs', [], [-1, -1])];
  expect(planGroups(none, GROUPS)).toMatchObject({ lines: [-1, -1], lost: undefined });
  const lost = [view('runs', [entry(0, 1)], [1, -1]), view('new', [], []), view('runs', [], [-1, -1]), view('again', [], [0, -1])];
  expect(planGroups(lost, GROUPS)).toMatchObject({ lost: 0 });
  expect([...planGroups(lost, GROUPS).failing].sort()).toEqual([0, 1]);
});

/** Ranks of two groups, whose messages are carried in order. */
class Ranks {
  readonly cores = GROUPS.map((group, rank) => new GroupSaveCore(rank, membersOf(GROUPS, group), group, [0, 2]));
  readonly done: [rank: number, kind: string][] = [];

  settle(): void {
    for (let moved = true; moved; ) {
      moved = false;
      for (const [rank, core] of this.cores.entries()) {
        for (const action of core.actions.splice(0)) {
          moved = true;
          this.obey(rank, action);
        }
      }
    }
  }

  private obey(rank: number, action: GroupSaveAction): void {
    if (action.kind === 'send') this.cores[action.to].handle(rank, action.words);
    else this.done.push([rank, action.kind]);
  }

  arrive(rank: number, kind: number = CALL.SAVE, step = 4, isLoud = false, k = 0): void {
    this.cores[rank].arrive(kind, { call: 1, step, isLoud, k, measured: [rank, Number.NaN] });
    this.settle();
  }

  upToCopied(ranks: readonly number[]): void {
    for (const rank of ranks) this.arrive(rank);
    for (const rank of ranks) this.cores[rank].cut(false);
    this.settle();
    for (const rank of ranks) this.cores[rank].copied(true);
    this.settle();
  }
}

test('groups spread their images one after the other', () => {
  const ranks = new Ranks();
  ranks.upToCopied([2, 3]);
  ranks.upToCopied([0, 1]);
  expect(ranks.cores.map(({ state }) => state)).toEqual(['WAITING', 'WAITING', 'SPREADING', 'SPREADING']);
  expect(ranks.cores[2].measured).toEqual([3, Number.NaN]);
  for (const rank of [2, 3]) ranks.cores[rank].spread(true);
  ranks.settle();
  expect(ranks.cores.map(({ state }) => state)).toEqual(['SPREADING', 'SPREADING', 'IDLE', 'IDLE']);
  ranks.cores[0].spread(true);
  ranks.cores[1].spread(false);
  ranks.settle();
  expect(ranks.done.filter(([, kind]) => kind !== 'spread')).toEqual([
    [2, 'committed'],
    [3, 'committed'],
    [0, 'abandoned'],
    [1, 'abandoned'],
  ]);
});

test('ranks that come to other calls, and messages that are left, are told to all of the group', () => {
  const ranks = new Ranks();
  ranks.arrive(0);
  ranks.arrive(1, CALL.END);
  expect(ranks.cores[0].verdict).toEqual({ code: VERDICT.UNLIKE, rank: 1 });
  ranks.arrive(0);
  ranks.arrive(1, CALL.SAVE, 4, true);
  expect(ranks.cores[1].verdict).toEqual({ code: VERDICT.LOUD, rank: 1 });
  ranks.arrive(0);
  ranks.arrive(1);
  ranks.cores[0].cut(true);
  ranks.cores[1].cut(false);
  ranks.settle();
  expect(ranks.cores[1].verdict).toEqual({ code: VERDICT.LOUD, rank: 0 });
});

test('a look comes to nothing, unless another group needs the save', () => {
  const ranks = new Ranks();
  for (const rank of [2, 3]) ranks.arrive(rank, CALL.LOOK);
  expect(ranks.cores[3].verdict?.code).toBe(VERDICT.NOTHING);
  ranks.cores[0].need(1);
  ranks.settle();
  for (const rank of [2, 3]) ranks.arrive(rank, CALL.LOOK);
  expect(ranks.cores[3].state).toBe('CUTTING');
});

test('a death in a save leaves nothing of it', () => {
  const ranks = new Ranks();
  ranks.upToCopied([0, 1]);
  for (const core of ranks.cores) core.interrupt();
  expect(ranks.cores.map(({ state }) => state)).toEqual(['IDLE', 'IDLE', 'IDLE', 'IDLE']);
  ranks.upToCopied([2, 3]);
  expect(ranks.cores[2].state).toBe('SPREADING');
});

test('a save has a number above all that its ranks have tried', () => {
  const ranks = new Ranks();
  ranks.arrive(0, CALL.SAVE, 4, false, 1);
  ranks.arrive(1, CALL.SAVE, 4, false, 3);
  expect(ranks.cores.slice(0, 2).map(({ state, k }) => [state, k])).toEqual([
    ['CUTTING', 3],
    ['CUTTING', 3],
  ]);
});

test('a rank that waits until saves are open passes by what its group is behind', () => {
  const group = { isOpen: false, lives: 1, core: { state: 'IDLE' }, committed: undefined };
  const host = { group, isOver: false, attempts: 1, isAhead: true };
  const steps = new GroupSaveSteps(host as unknown as GroupSaveHost).save(false, true);
  const waits = steps.next();
  expect(waits.done).toBe(false);
  group.isOpen = true;
  host.isAhead = false;
  expect(steps.next()).toEqual({ done: true, value: -1 });
});

/** A member that has saved nothing. */
const memberOf = (mode: GroupMember['mode'], groups: readonly number[]): GroupMember => ({
  ...{ mode, entries: [], committed: [-1, -1], groups },
  ...{ life: 0, isWhole: true, places: groups.length },
});

/** Seven messages have left, and all have come. */
const STREAMS = {
  sentTo: () => new Map([[20, 7]]),
  hasTaken: () => true,
  stopTo: () => undefined,
  isDrained: () => true,
  has: () => true,
};

test('a rank ends its run when those that go on have stopped sending to it', () => {
  const done: string[] = [];
  const views = (['runs', 'new', 'runs', 'runs'] as const).map((mode) => memberOf(mode, GROUPS));
  const host = {
    rank: 0,
    isRunning: true,
    lives: new GroupLives(),
    streams: STREAMS,
    group: { groups: GROUPS },
    mayRestart: true,
    *exchange() {
      yield* [];
      return views;
    },
    listen: () => undefined,
    endRun: () => void done.push('ends'),
    *tellSent(told: ReadonlyMap<number, unknown>, from: readonly number[]) {
      done.push(`tells ${[...told.keys()]}; hears ${from}`);
      yield* [];
      return [];
    },
    *fetch() {
      yield* [];
      return true;
    },
    image: () => undefined,
    *tell() {
      yield* [];
      return [1, 1, 0, 1];
    },
    goBack: (_: unknown, why: string) => {
      done.push(why);
      return 'back';
    },
  };
  expect(meetGroups(host as unknown as GroupMeetingHost<void, GroupMember>).next()).toEqual({ done: true, value: 'back' });
  expect(done).toEqual(['tells ; hears 2,3', 'ends', 'tells ; hears ', 'rank 2 could not take its image']);
});

test.each([
  [true, 'tells ; hears 1'],
  [false, 'the log of rank 1 in its last save lacks what rank 0 asks for (ft_log_bytes_max)'],
])('where the log of an image had been given up, all go back unless nobody asks for what it lacks (has all: %s)', (hasAll, last) => {
  const done: string[] = [];
  const words: number[] = [];
  const host = {
    rank: 0,
    isRunning: true,
    lives: new GroupLives(),
    streams: { ...STREAMS, has: (from: number, below: ReadonlyMap<number, number>) => hasAll && from === 1 && below.get(20) === 3 },
    group: { groups: [0, 1], settle: () => undefined },
    mayRestart: true,
    *exchange() {
      yield* [];
      return [memberOf('runs', [0, 1]), memberOf('new', [0, 1])];
    },
    listen: () => undefined,
    *tellSent(told: ReadonlyMap<number, unknown>, from: readonly number[]) {
      done.push(`tells ${[...told.keys()]}; hears ${from}`);
      yield* [];
      return from.map((one) => [one, new Map([[20, 3]])] as const);
    },
    *fetch() {
      yield* [];
      return true;
    },
    image: () => undefined,
    *tell(word: number) {
      yield* [];
      words.push(word);
      return words.length === 1 ? [word, 2] : [word, 1];
    },
    goOn: () => undefined,
    settled: () => undefined,
    *synchronise() {
      yield* [];
    },
    open: () => undefined,
    goBack: (_: unknown, why: string) => {
      done.push(why);
      return 'back';
    },
  };
  expect(meetGroups(host as unknown as GroupMeetingHost<void, GroupMember>).next().value).toBe(hasAll ? 'in place' : 'back');
  expect(done.at(-1)).toBe(last);
  expect(words).toEqual([1, hasAll ? 1 : 0]);
});

test('an image has all below the numbers that another rank lacks, or it has not', () => {
  const flows = [
    { peer: 1, ctx: 20, nextIn: 3 },
    { peer: 2, ctx: 20, nextIn: 9 },
  ];
  expect(hasBelow(flows, 1, new Map([[20, 3]]))).toBe(true);
  expect(hasBelow(flows, 1, new Map([[20, 4]]))).toBe(false);
  expect(hasBelow(flows, 1, new Map([[21, 1]]))).toBe(false);
  expect(hasBelow(flows, 1, new Map([[21, 0]]))).toBe(true);
});

test('what was sent to a life of a member counts for as long as that one is in it', () => {
  const lives = new GroupLives();
  lives.end([1, 2, 3], () => 0, STREAMS);
  lives.begin();
  // Rank 1 has begun again, in a recovery that this process did not come to the end of; rank 3 is another process.
  lives.replaced(3);
  lives.met((rank) => (rank === 1 ? 1 : 0));
  expect([1, 2, 3].map((rank) => lives.sentBefore(rank)?.get(20))).toEqual([undefined, 7, undefined]);
});

test('a life that began when the run here was over was sent nothing', () => {
  const lives = new GroupLives();
  lives.end([1, 2], () => 0, STREAMS);
  expect(lives.stopFor(1, 0, STREAMS).get(20)).toBe(7);
  // Rank 1 has begun again since then, and its group goes back once more; this one has not begun.
  expect(lives.stopFor(1, 1, STREAMS)).toEqual(new Map());
  expect(lives.stopFor(2, 0, STREAMS).get(20)).toBe(7);
  lives.begin();
  expect(lives.stopFor(1, 1, STREAMS).get(20)).toBe(7);
});
