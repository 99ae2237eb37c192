// Replacement, told step by step: standbys that die, that are busy, that are called by two ways or not at all by the one who should.
import { describe, expect, test } from 'vitest';
import { Bitmap } from '../../../src/ulfm/bitmap.ts';
import type { Replacement } from '../../../src/ulfm/replace.ts';
import { Standbys } from '../../../src/ulfm/standbys.ts';
import { OPERATION } from '../../../src/ulfm/values.ts';
import { encodeService, SERVICE } from '../../../src/ulfm/wire.ts';
import { Desk, ID } from './desk.ts';

/** So many members, and standbys behind them. */
class StandbyDesk extends Desk {
  private readonly members: number;
  readonly ended: Replacement[][] = [];

  constructor(members: number, spares: number, waits: (number: number) => boolean = () => false) {
    let next = 100;
    super(members, members + spares, { offer: () => ({ newId: next++ }) }, {}, (number) => ({ awaitsStandbys: () => waits(number) }));
    this.members = members;
    for (const core of this.cores) {
      this.ended.push([]);
      for (let number = members; number < members + spares; number++) core.standbys.set(number, true);
    }
    for (let number = members; number < members + spares; number++) {
      this.isCreating[number] = true;
      this.cores[number].standBy();
    }
  }

  get living(): number[] {
    return [...this.cores.keys()].filter((number) => !this.dead.has(number));
  }

  replaceAll(id = ID, operation: 4 | 8 = OPERATION.REPLACE_ALL): void {
    for (const number of this.living.filter((each) => each < this.members)) this.do(number, (core) => core.beginReplace(id, operation));
  }

  /** A process joins; everybody has heard of it, and then that it waits. */
  join(number: number): void {
    while (this.cores.length <= number) {
      this.addCore(this.cores.length);
      this.ended.push([]);
    }
    for (const core of this.cores) for (const other of [number, ...this.living]) core.addProcess(other, 1);
    this.isCreating[number] = true;
    for (const other of this.living) this.cores[other].standbys.set(number, true);
    this.cores[number].standBy();
  }

  /** Communicators whose call waits there since this was asked last. */
  awaiting(number: number): number[] {
    return this.cores[number].replacements.awaiting.splice(0);
  }

  die(number: number, how: 'lost' | 'under way' = 'lost'): void {
    this.kill(number, how);
    for (const other of this.living) this.tell(other, number);
  }

  /** Delivers everything, and lets standbys answer; returns what became of each. */
  settle(): string[] {
    const events: string[] = [];
    for (let isBusy = true; isBusy; ) {
      this.letters = this.letters.filter(({ to }) => !this.dead.has(to));
      this.deliverAll();
      isBusy = false;
      for (const number of this.living) {
        const core = this.cores[number];
        this.ended[number].push(...core.replacements.ended.splice(0));
        for (const event of core.standby?.events.splice(0) ?? []) {
          events.push(`${number} ${event.kind} ${event.id}`);
          if (event.kind === 'called') this.do(number, () => core.answerCall(event.id));
          isBusy = true;
        }
      }
    }
    return events;
  }

  /** Members of what the last call has made, which is the same at those; undefined: nothing. */
  made(...numbers: readonly number[]): readonly number[] | undefined {
    const [first, ...others] = numbers.map((number) => this.ended[number].at(-1));
    expect(first).toBeDefined();
    for (const other of others) expect(other?.made).toEqual(first?.made);
    return first?.made?.members;
  }
}

describe('replacement', () => {
  test('a standby is called in directly and by the server, joins once, and the pool is smaller everywhere', () => {
    const desk = new StandbyDesk(3, 2);
    desk.die(1);
    desk.replaceAll();
    expect(desk.settle()).toEqual(['3 called 100', '3 joined 100']);
    expect(desk.made(0, 2)).toEqual([0, 3, 2]);
    expect(desk.cores[0].epochOf(100)).toBe(1);
    expect(desk.cores[3].epochOf(100)).toBe(1);
    for (const number of [0, 2]) expect(desk.cores[number].standbys.ready).toEqual([4]);
    const [{ to, bytes }] = desk.cores[0].serverCalls;
    expect(to).toBe(3);
    const { ignored } = desk.cores[3].counters;
    desk.do(3, (core) => core.handleMessage(0, bytes));
    // Also when the communicator is long gone.
    desk.do(3, (core) => core.free(100, true));
    desk.do(3, (core) => core.handleMessage(0, bytes));
    expect(desk.cores[3].counters.ignored).toBe(ignored + 2);
    expect([desk.settle(), desk.cores[3].standby?.state]).toEqual([[], 'WORKING']);
  });

  test('one that dies before it has answered is replaced by the next one', () => {
    const desk = new StandbyDesk(3, 2);
    desk.die(1);
    desk.replaceAll();
    desk.deliverAll();
    expect(desk.cores[3].standby?.state).toBe('CALLED');
    desk.die(3);
    expect(desk.settle()).toEqual(['4 called 101', '4 joined 101']);
    expect(desk.made(0, 2)).toEqual([0, 4, 2]);
  });

  test('when the last one dies so, all members get the same: too few', () => {
    const desk = new StandbyDesk(3, 1);
    desk.die(1);
    desk.replaceAll();
    desk.deliverAll();
    desk.die(3);
    expect(desk.settle()).toEqual([]);
    expect(desk.made(0, 2)).toBeUndefined();
    expect(desk.ended[0][0].value).toEqual(desk.ended[2][0].value);
    desk.replaceAll(ID, OPERATION.REPLACE_SOME);
    desk.settle();
    expect(desk.made(0, 2)).toEqual([0, 2]);
  });

  test('one that has a place already says so, and is left out from then on', () => {
    const desk = new StandbyDesk(5, 2);
    const halves = { 50: [0, 1, 2], 51: [1, 3, 4] };
    for (const [id, members] of Object.entries(halves))
      for (const number of members) desk.do(number, (core) => core.open(Number(id), members));
    desk.die(1);
    for (const number of [0, 2]) desk.do(number, (core) => core.beginReplace(50, OPERATION.REPLACE_ALL));
    desk.settle();
    expect(desk.made(0, 2)).toEqual([0, 5, 2]);
    // The word of it has not come to the others.
    for (const number of [3, 4]) desk.do(number, (core) => core.beginReplace(51, OPERATION.REPLACE_ALL));
    expect(desk.settle()).toEqual(['6 called 102', '6 joined 102']);
    expect(desk.made(3, 4)).toEqual([6, 3, 4]);
    expect(desk.cores[5].membersOf(101)).toEqual([5, 3, 4]);
  });

  test('one that was called in by an attempt that failed is called again before it is known to wait', () => {
    const desk = new StandbyDesk(4, 2);
    desk.die(1);
    desk.replaceAll();
    desk.deliverAll();
    expect(desk.cores[4].standby?.state).toBe('CALLED');
    // The server tells everybody that process 4 has been called in; the next death comes before it has answered.
    for (const number of [0, 2, 3]) desk.cores[number].standbys.set(4, false);
    desk.die(3);
    expect(desk.cores[0].standbys.ready).toEqual([5]);
    desk.settle();
    expect(desk.made(0, 2)).toEqual([0, 4, 2, 5]);
    // What is told of it later changes nothing: it has a place.
    for (const waits of [true, false, true]) desk.cores[0].standbys.set(4, waits);
    expect(desk.cores[0].standbys.ready).toEqual([]);
  });

  test('one that waits goes before one that was called in, and the lowest number to the lowest rank', () => {
    const dead = new Set<number>();
    const pool = new Standbys((number) => dead.has(number));
    for (const number of [7, 4, 5, 6]) expect(pool.set(number, true)).toBe(true);
    expect(pool.set(4, false)).toBe(true);
    expect(pool.set(4, false)).toBe(false);
    const choose = (failed: number[], excluded: number[] = []) =>
      pool.choose(OPERATION.REPLACE_ALL, failed, (number) => excluded.includes(number)).map(({ rank, number }) => `${rank}:${number}`);
    expect(choose([1, 2])).toEqual(['1:5', '2:6']);
    dead.add(6);
    expect(choose([0, 1, 2])).toEqual(['0:4', '1:5', '2:7']);
    expect(choose([0, 1, 2], [4])).toEqual([]);
    expect(pool.choose(OPERATION.REPLACE_SOME, [0, 1, 2], (number) => number === 4)).toHaveLength(2);
    pool.place(4);
    expect(choose([0, 1, 2])).toEqual([]);
    expect(choose([0])).toEqual(['0:5']);
  });

  test('one that is called by others says so at once, whatever becomes of the first call', () => {
    const desk = new StandbyDesk(2, 1);
    const call = (id: number, origin: number, q: number): Uint8Array =>
      encodeService({ type: SERVICE.CALLED_IN, id, from: 0, origin, q, epoch: 1, members: [0, 2], newcomers: Bitmap.of(2, [1]) });
    for (const [id, origin, q] of [
      [60, 10, 0],
      [61, 11, 5],
      [62, 10, 1],
    ])
      desk.do(2, (core) => core.handleMessage(0, call(id, origin, q)));
    // 62 is the next attempt of those that have made the first call, so that one has failed.
    expect(desk.cores[2].standby?.events).toEqual([
      { kind: 'called', id: 60 },
      { kind: 'called', id: 62 },
    ]);
    expect(desk.list().filter((line) => line.includes('STATE'))).toEqual(['2>0 STATE']);
  });

  test('the next member calls when the one is gone that should have', () => {
    const desk = new StandbyDesk(4, 2);
    desk.die(1);
    desk.replaceAll();
    desk.deliverAll(({ type }) => type !== 'CALLED_IN');
    expect(desk.cores[4].standby?.state).toBe('WAITING');
    desk.die(0);
    // Two places are empty now: the first attempt comes to nothing, and the second one has a successor for each.
    const events = desk.settle();
    expect(events.slice(-2).sort()).toEqual(['4 joined 101', '5 joined 101']);
    expect(desk.made(2, 3)).toEqual([4, 5, 2, 3]);
  });

  test('where nobody has failed it is a copy, and nobody is called', () => {
    const desk = new StandbyDesk(2, 1);
    desk.replaceAll();
    expect(desk.settle()).toEqual([]);
    expect(desk.made(0, 1)).toEqual([0, 1]);
    expect(desk.sent.CALLED_IN).toBeUndefined();
  });

  test('calls that make no sense are refused', () => {
    const desk = new StandbyDesk(2, 1);
    const call = { type: SERVICE.CALLED_IN, id: 60, from: 0, origin: 2, q: 0, epoch: 1, members: [0, 2], newcomers: Bitmap.of(2, [1]) };
    const take = (number: number, source: number, bytes: Uint8Array) => () => desk.cores[number].handleMessage(source, bytes);
    expect(take(1, 0, encodeService(call))).toThrow(/which has never stood by/);
    expect(take(2, 1, encodeService(call))).toThrow(/process 1 says that it is process 0/);
    expect(take(2, 0, encodeService({ ...call, members: [0, 1] }))).toThrow(/where it has no place/);
    expect(take(2, 0, encodeService({ ...call, newcomers: Bitmap.of(2, [0]) }))).toThrow(/where it has no place/);
    expect(desk.cores[2].standby?.state).toBe('WAITING');
  });
});

describe('too few stand by, and more are on their way', () => {
  /** Members that would wait, and a standby for one of the two that die. */
  function waiting(waits: (number: number) => boolean): StandbyDesk {
    const desk = new StandbyDesk(4, 2, waits);
    desk.die(5);
    desk.die(1);
    desk.die(2);
    desk.replaceAll();
    desk.settle();
    return desk;
  }

  test('all members wait; each agrees again by itself, and one that has come takes its place', () => {
    const desk = waiting(() => true);
    for (const number of [0, 3]) expect([desk.awaiting(number), desk.ended[number]]).toEqual([[ID], []]);
    // They look again in vain, one after the other, and wait again.
    for (const number of [0, 3]) desk.do(number, (core) => core.resumeReplace(ID));
    desk.settle();
    for (const number of [0, 3]) expect(desk.awaiting(number)).toEqual([ID]);
    desk.join(6);
    desk.do(3, (core) => core.resumeReplace(ID));
    expect(desk.settle()).toEqual([]);
    desk.do(0, (core) => core.resumeReplace(ID));
    expect(desk.settle()).toEqual(['4 called 102', '6 called 102', '4 joined 102', '6 joined 102']);
    expect(desk.made(0, 3)).toEqual([0, 4, 6, 3]);
    for (const number of [0, 3, 4, 6]) expect(desk.cores[number].epochOf(102)).toBe(1);
    expect(desk.ended[0].at(-1)?.made?.epoch).toBe(1);
    // Nobody waits any more.
    desk.do(0, (core) => core.resumeReplace(ID));
    expect(desk.settle()).toEqual([]);
  });

  test('one member that would not wait is enough: it ends alike at all', () => {
    const desk = waiting((number) => number !== 3);
    expect(desk.made(0, 3)).toBeUndefined();
    for (const number of [0, 3]) expect([desk.awaiting(number), desk.ended[number].length]).toEqual([[], 1]);
  });

  test('one whose time is over ends it for all at the next look', () => {
    let isOver = false;
    const desk = waiting((number) => number !== 0 || !isOver);
    isOver = true;
    for (const number of [0, 3]) desk.do(number, (core) => core.resumeReplace(ID));
    desk.settle();
    expect(desk.made(0, 3)).toBeUndefined();
    // The next recovery counts on from the same epoch.
    expect(desk.cores[0].epochOf(ID)).toBe(0);
  });

  test('one of those that wait dies: the others go on, and the decision names it', () => {
    const desk = waiting(() => true);
    desk.join(6);
    desk.join(7);
    desk.die(3);
    desk.do(0, (core) => core.resumeReplace(ID));
    desk.settle();
    expect(desk.made(0)).toEqual([0, 4, 6, 7]);
  });

  test('replace with as many as there are does not wait', () => {
    const desk = new StandbyDesk(4, 1, () => true);
    desk.die(1);
    desk.die(2);
    desk.replaceAll(ID, OPERATION.REPLACE_SOME);
    desk.settle();
    expect(desk.made(0, 3)).toEqual([0, 4, 3]);
  });
});
