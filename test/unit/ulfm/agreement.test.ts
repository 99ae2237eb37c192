// Agreements told step by step: how many messages and hops one takes, what happens when its leader dies at a bad moment, and what else can
// come in between. The random runs are in small-world.test.ts.
import { describe, expect, test } from 'vitest';
import { Bitmap } from '../../../src/ulfm/bitmap.ts';
import { AGREEMENT_EDGES, AGREEMENT_STATES, type AgreementState, moveAgreement } from '../../../src/ulfm/states.ts';
import { Gathered, OPERATION, type Value, verdictOf } from '../../../src/ulfm/values.ts';
import { encodeService, SERIES, SERVICE } from '../../../src/ulfm/wire.ts';
import { Desk, ID } from './desk.ts';
import { FIRST_ID, SmallWorld } from './small-world.ts';

const sizes = [...Array.from({ length: 64 }, (_, i) => i + 1), 1024];

describe('without deaths', () => {
  test.each(sizes)('%d members: 4(n - 1) messages, and chains of 4 log2 n', (members) => {
    const world = new SmallWorld({ seed: members, members, fixedDelay: 1 });
    const decided: Value[] = [];
    for (const process of world.processes) {
      world.at(0, () => world.call(process, FIRST_ID, SERIES.PROGRAM, OPERATION.AGREE, ({ value }) => decided.push(value)));
    }
    world.run();
    expect(decided.length).toBe(members);
    expect(world.agreementMessages).toBe(4 * (members - 1));
    expect(world.deepest).toBe(4 * Math.floor(Math.log2(members)));
    expect(world.deepest).toBeLessThanOrEqual(4 * Math.ceil(Math.log2(members)));
    for (const { flag, failed } of decided) expect([flag, failed.isEmpty]).toEqual([decided[0].flag, true]);
  });

  test.each(sizes)('%d members that send one message at a time: 4 log2 n rounds', (members) => {
    const desk = new Desk(members);
    desk.callAll();
    const rounds = desk.deliverInRounds();
    expect(rounds).toBeLessThanOrEqual(4 * Math.ceil(Math.log2(members)));
    if (Number.isInteger(Math.log2(members))) expect(rounds).toBe(4 * Math.log2(members));
    expect(desk.decided.every((list) => list.length === 1)).toBe(true);
  });

  test('the flag is the AND of all, and what is acknowledged is what all have acknowledged', () => {
    const desk = new Desk(5);
    for (let number = 0; number < 5; number++) desk.call(number, 0xffff_ffff ^ (1 << number));
    desk.deliverAll();
    for (let number = 0; number < 5; number++) expect(desk.valuesOf(number).map(({ flag }) => flag)).toEqual([0xffff_ffe0]);
  });

  test('a member that calls late holds the others up, and nothing is lost', () => {
    const desk = new Desk(4);
    for (const number of [0, 1, 3]) desk.call(number);
    desk.deliverAll();
    expect(desk.decided.map((list) => list.length)).toEqual([0, 0, 0, 0]);
    desk.call(2, 6);
    desk.deliverAll();
    expect([0, 1, 2, 3].map((number) => desk.valuesOf(number)[0].flag)).toEqual([6, 6, 6, 6]);
  });

  test('calls wait for the one before them, and the two series for nobody', () => {
    const desk = new Desk(2);
    for (const flag of [7, 5]) desk.call(0, flag);
    desk.call(0, 1, OPERATION.AGREE, SERIES.RECOVERY);
    for (const flag of [3, 4]) desk.call(1, flag);
    desk.deliverAll();
    expect(desk.decided[1].map(({ q, value }) => [q, value.flag])).toEqual([
      [0, 3],
      [1, 4],
    ]);
    desk.call(1, 1, OPERATION.AGREE, SERIES.RECOVERY);
    desk.deliverAll();
    expect(desk.decided[0].map(({ series, q }) => [series, q])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
    ]);
  });

  test('a decision is kept until the next one of its series', () => {
    const desk = new Desk(2);
    desk.callAll();
    desk.deliverAll();
    // A STATE that comes again is answered.
    const again = encodeService({
      type: SERVICE.STATE,
      series: SERIES.PROGRAM,
      isDirect: true,
      id: ID,
      q: 0,
      generation: 0,
      view: 0,
      from: 1,
      gathered: gathered(2, 1),
    });
    desk.do(0, (core) => core.handleMessage(1, again));
    expect(desk.list()).toEqual(['0>1 DECIDE direct']);
    desk.deliverAll();
    desk.callAll();
    desk.deliverAll();
    desk.do(0, (core) => core.handleMessage(1, again));
    expect(desk.list()).toEqual([]);
    expect(desk.cores[0].counters.ignored).toBe(1);
  });

  test('members that make different calls hear so, all of them', () => {
    const desk = new Desk(3);
    desk.call(0);
    desk.call(1, 1, OPERATION.SHRINK);
    desk.call(2);
    desk.deliverAll();
    for (let number = 0; number < 3; number++) {
      const [value] = desk.valuesOf(number);
      expect([verdictOf(value).isMismatch, value.newId]).toEqual([true, 0]);
    }
  });
});

function gathered(size: number, rank: number): Gathered {
  const state = new Gathered(size);
  state.add(rank, { operation: OPERATION.AGREE, flag: 1, acked: new Bitmap(size) }, new Bitmap(size), undefined);
  return state;
}

describe('deaths', () => {
  test('the leader tells one, which tells the world and dies: the others decide the same', () => {
    const desk = new Desk(4);
    for (let number = 0; number < 4; number++) desk.call(number, 15 ^ (1 << number));
    desk.deliver('STATE', 1, 0);
    desk.deliver('STATE', 3, 2);
    desk.deliver('STATE', 2, 0);
    desk.deliver('PROPOSE', 0, 1);
    desk.deliver('PROPOSE', 0, 2);
    desk.deliver('PROPOSE', 2, 3);
    desk.deliver('ACK', 1, 0);
    desk.deliver('ACK', 3, 2);
    desk.deliver('ACK', 2, 0);
    desk.deliver('DECIDE', 0, 1);
    desk.kill(0);
    desk.kill(1);
    expect(desk.valuesOf(1)[0].flag).toBe(0);
    desk.tell(3, 0);
    desk.tell(2, 0);
    desk.tell(2, 1);
    desk.tell(3, 1);
    desk.deliverAll();
    for (const number of [2, 3]) expect(desk.valuesOf(number)).toEqual(desk.valuesOf(1));
  });

  test('before anybody has locked, the value is made again, and names the dead', () => {
    const desk = new Desk(4);
    for (let number = 0; number < 4; number++) desk.call(number, 15 ^ (1 << number));
    desk.deliverAll(({ type }) => type === 'STATE');
    desk.kill(0);
    for (const number of [1, 2, 3]) desk.tell(number, 0);
    desk.deliverAll();
    for (const number of [1, 2, 3]) {
      const [value] = desk.valuesOf(number);
      expect([value.flag, [...value.failed]]).toEqual([1, [0]]);
      expect(verdictOf(value).hasUnacknowledged).toBe(true);
    }
  });

  test('a failure that all have acknowledged is no error', () => {
    const desk = new Desk(3);
    desk.kill(1);
    desk.tellAll(1);
    desk.deliverAll();
    expect(desk.cores[0].getFailed(ID)).toEqual([1]);
    desk.cores[0].ackFailed(ID);
    desk.cores[2].ackFailed(ID);
    desk.callAll();
    desk.deliverAll();
    const [value] = desk.valuesOf(2);
    expect([[...value.failed], verdictOf(value).hasUnacknowledged]).toEqual([[1], false]);
  });

  test('the first agreement after a death goes directly, in two round trips; the next one has a tree again', () => {
    for (const members of [8, 33]) {
      const desk = new Desk(members);
      desk.kill(5);
      desk.tellAll(5);
      desk.deliverAll();
      desk.resetCounts();
      desk.callAll();
      expect(desk.letters.every(({ isDirect }) => isDirect)).toBe(true);
      desk.deliverAll();
      expect(desk.agreementMessages).toBe(4 * (members - 2));
      desk.resetCounts();
      desk.callAll();
      expect(desk.letters.some(({ isDirect }) => isDirect)).toBe(false);
      expect(desk.deliverInRounds()).toBeLessThanOrEqual(4 * Math.ceil(Math.log2(members - 1)));
      expect(desk.agreementMessages).toBe(4 * (members - 2));
    }
  });

  test('what is lost with an inner node of the tree is said again', () => {
    const desk = new Desk(8);
    desk.callAll();
    // 7 and 5 hang below 6 and 4 below 0: 4 dies with what they have said.
    desk.deliverAll(({ to }) => to !== 0);
    desk.kill(4);
    desk.letters = desk.letters.filter(({ to }) => to !== 4);
    for (const number of [0, 1, 2, 3, 5, 6, 7]) desk.tell(number, 4);
    desk.deliverAll();
    for (const number of [0, 1, 2, 3, 5, 6, 7]) expect(desk.valuesOf(number).length).toBe(1);
  });

  test('a decision that goes down the tree and is lost with an inner node is asked for', () => {
    const desk = new Desk(8);
    desk.callAll();
    desk.deliverAll(({ type }) => type !== 'DECIDE');
    desk.kill(4);
    desk.deliverAll();
    expect([5, 6, 7].map((number) => desk.valuesOf(number).length)).toEqual([0, 0, 0]);
    for (const number of [5, 6, 7]) desk.tell(number, 4);
    desk.deliverAll(({ type }) => type !== 'FAILED');
    expect([5, 6, 7].map((number) => desk.valuesOf(number).length)).toEqual([1, 1, 1]);
  });

  test('a member that is told before it knows that it leads tells those that have asked it', () => {
    const desk = new Desk(3);
    desk.callAll();
    desk.deliverAll(({ type }) => type !== 'DECIDE');
    // 0 has decided and told 2 alone.
    desk.letters = desk.letters.filter(({ type, to }) => type === 'DECIDE' && to === 2);
    desk.kill(0, 'under way');
    const decision = desk.letters[0];
    desk.letters = [];
    // 2 has not got it yet, hears of the death and tells 1; then it comes to 1, which has not heard.
    desk.tell(2, 0);
    desk.deliverAll(({ type }) => type === 'STATE');
    expect(desk.valuesOf(1)).toEqual([]);
    desk.do(1, (core) => core.handleMessage(0, decision.bytes));
    desk.deliverAll(({ type }) => type === 'DECIDE');
    expect(desk.valuesOf(2)).toEqual(desk.valuesOf(1));
    expect(desk.valuesOf(2).length).toBe(1);
  });

  test('who has left has decided: nobody waits for it', () => {
    const desk = new Desk(3);
    desk.callAll();
    desk.deliverAll(({ type, to }) => type !== 'DECIDE' || to !== 2);
    desk.letters = [];
    desk.kill(0);
    for (const number of [1, 2]) desk.do(number, (core) => core.handleLeft(0));
    desk.deliverAll();
    expect(desk.valuesOf(2)).toEqual(desk.valuesOf(1));
    expect([...desk.valuesOf(2)[0].failed]).toEqual([]);
    expect(desk.cores[2].getFailed(ID)).toEqual([]);
  });

  test('a decision is the word of a death', () => {
    const desk = new Desk(3);
    desk.callAll();
    desk.kill(2);
    desk.tell(0, 2);
    desk.deliverAll(({ type }) => type !== 'FAILED');
    expect(desk.cores[1].knowledge.isFailed(2)).toBe(true);
    expect(desk.cores[1].deaths.map(({ number }) => number)).toEqual([2]);
  });

  test('whom a decision names ends itself', () => {
    const desk = new Desk(3);
    desk.callAll();
    desk.tell(0, 2);
    desk.deliverAll(({ to, type }) => to !== 2 && type !== 'FAILED');
    expect([...desk.valuesOf(1)[0].failed]).toEqual([2]);
    expect(desk.cores[2].ownDeath).toBeUndefined();
    desk.do(2, (core) => core.handleNotice({ serial: 1, number: 2, incarnation: 1, evidence: 8, text: 'decreed' }));
    expect(desk.cores[2].ownDeath?.text).toBe('decreed');
    // Nothing comes of it any more.
    desk.do(2, (core) => core.handleNotice({ serial: 2, number: 1, incarnation: 1, evidence: 1, text: 'it ended' }));
    expect(desk.cores[2].messages).toEqual([]);
  });
});

describe('what is made of a decision', () => {
  test('the new id is the one of the leader that put the value together, though another one decides', () => {
    const desk = new Desk(3);
    desk.callAll(1, OPERATION.SHRINK);
    desk.deliverAll(({ type }) => type !== 'ACK');
    desk.kill(0);
    for (const number of [1, 2]) desk.tell(number, 0);
    desk.letters = desk.letters.filter(({ to }) => to !== 0);
    desk.deliverAll();
    for (const number of [1, 2]) expect(desk.valuesOf(number)[0].newId).toBe(1000);
  });

  test('too few successors are the same for all', () => {
    const desk = new Desk(3, 3, {
      offer: (_id, _series, _operation, failed) => ({ newId: 77, successions: failed.slice(0, 1).map((rank) => ({ rank, number: 9 })) }),
    });
    for (const dead of [0, 2]) {
      desk.kill(dead);
      desk.tell(1, dead);
    }
    desk.call(1, 1, OPERATION.REPLACE_ALL);
    desk.call(1, 1, OPERATION.REPLACE_SOME);
    expect(desk.valuesOf(1).map((value) => verdictOf(value).lacksSuccessors)).toEqual([true, false]);
    expect(desk.valuesOf(1)[1].successions).toEqual([{ rank: 0, number: 9 }]);
  });

  test('messages for a communicator that is coming into being wait for it; others are late', () => {
    const desk = new Desk(2);
    desk.do(0, (core) => core.open(50, [0, 1]));
    desk.call(0, 3, OPERATION.AGREE, SERIES.PROGRAM, 50);
    desk.do(0, (core) => core.revoke(50));
    expect(desk.list()).toEqual(['0>1 REVOKE']);
    desk.isCreating[1] = true;
    desk.deliverAll();
    desk.do(1, (core) => core.open(50, [0, 1]));
    expect(desk.cores[1].isRevoked(50)).toBe(true);
    expect(desk.cores[1].revocations).toEqual([50]);
    desk.call(1, 6, OPERATION.AGREE, SERIES.PROGRAM, 50);
    desk.deliverAll();
    expect(desk.valuesOf(0).map(({ flag }) => flag)).toEqual([2]);
    // Freed by all: what still comes is dropped.
    desk.call(0, 3, OPERATION.AGREE, SERIES.PROGRAM, 50);
    desk.do(1, (core) => core.free(50, true));
    desk.isCreating[1] = false;
    desk.call(1, 1);
    desk.deliverAll();
    expect(desk.cores[1].counters.ignored).toBe(0);
    desk.do(0, (core) => core.open(60, [1, 0]));
    desk.call(0, 3, OPERATION.AGREE, SERIES.PROGRAM, 60);
    desk.deliverAll();
    expect(desk.cores[1].counters.ignored).toBe(1);
    desk.isCreating[1] = true;
    desk.do(0, (core) => core.revoke(60));
    desk.deliverAll();
    desk.cores[1].dropEarly();
    desk.do(1, (core) => core.open(60, [1, 0]));
    expect(desk.cores[1].isRevoked(60)).toBe(false);
  });

  test('a communicator that was freed alone still answers, and takes no calls', () => {
    const desk = new Desk(2);
    desk.callAll();
    desk.deliverAll(({ type }) => type !== 'DECIDE');
    desk.letters = [];
    desk.do(0, (core) => core.free(ID, false));
    expect(() => desk.call(0)).toThrow(/freed/);
    // (As after the death of a member between them.)
    desk.do(0, (core) => core.handleMessage(1, encodeService(ack(1))));
    desk.deliverAll();
    expect(desk.valuesOf(1)).toEqual(desk.valuesOf(0));
    expect(() => desk.cores[0].begin(99, 0, { operation: OPERATION.AGREE, flag: 1 })).toThrow(/^ERR_COMM/);
  });

  const ack = (from: number) => ({
    type: SERVICE.ACK,
    series: SERIES.PROGRAM,
    isDirect: true,
    id: ID,
    q: 0,
    generation: 0,
    view: 0,
    from,
    covers: Bitmap.of(2, [from]),
  });
});

describe('generations', () => {
  /** Three members of which 1 dies, and a standby, process 3, that takes its place by the first decision of the recoveries. */
  function recovered(calls: number): Desk {
    const desk = new Desk(
      3,
      4,
      { offer: (_i, _s, _o, failed) => ({ newId: 0, successions: failed.map((rank) => ({ rank, number: 3 })) }) },
      {
        keepsDecisions: true,
      },
    );
    for (let i = 0; i < calls; i++) {
      for (let number = 0; number < 3; number++) desk.call(number, 100 + i);
      desk.deliverAll();
    }
    desk.kill(1);
    desk.tell(0, 1);
    desk.tell(2, 1);
    desk.tell(3, 1);
    for (const number of [0, 2]) desk.call(number, 1, OPERATION.REPLACE_SOME, SERIES.RECOVERY);
    desk.deliverAll();
    return desk;
  }

  test('a successor is told what was decided before it, and takes part in what is not', () => {
    const desk = recovered(2);
    expect(desk.cores[0].membersOf(ID)).toEqual([0, 3, 2]);
    expect([desk.cores[0].generationOf(ID), desk.cores[2].generationOf(ID)]).toEqual([1, 1]);
    expect(desk.cores[0].getFailed(ID)).toEqual([]);
    desk.do(3, (core) => core.open(ID, [0, 3, 2], { generation: 1, next: [0, 1], keepsDecisions: true }));
    for (let i = 0; i < 3; i++) desk.call(3, 12);
    desk.deliverAll();
    // Its own contribution to the first two comes too late.
    expect(desk.valuesOf(3).map(({ flag }) => flag)).toEqual([100, 101]);
    desk.call(0, 5);
    desk.call(2, 7);
    desk.deliverAll();
    for (const number of [0, 2, 3]) expect(desk.valuesOf(number).at(-1)?.flag).toBe(4);
    // Everybody has them: nobody asks any more.
    for (const number of [0, 2, 3]) desk.cores[number].release(ID, SERIES.PROGRAM, 3);
  });

  test('what is under way is begun again, and words of the old generation are void', () => {
    const desk = recovered(0);
    desk.call(0, 5);
    desk.call(2, 7);
    // 2 has told 0, in the new generation; an old word of 2 comes late.
    const old = encodeService({
      type: SERVICE.STATE,
      series: SERIES.PROGRAM,
      isDirect: true,
      id: ID,
      q: 0,
      generation: 0,
      view: 0,
      from: 2,
      gathered: gathered(3, 2),
    });
    desk.do(0, (core) => core.handleMessage(2, old));
    expect(desk.cores[0].counters.ignored).toBe(1);
    desk.deliverAll();
    expect(desk.valuesOf(0).filter(({ operations }) => operations === OPERATION.AGREE)).toEqual([]);
    desk.do(3, (core) => core.open(ID, [0, 3, 2], { generation: 1, next: [0, 1], keepsDecisions: true }));
    desk.call(3, 4);
    desk.deliverAll();
    for (const number of [0, 2, 3]) expect(desk.valuesOf(number).at(-1)?.flag).toBe(4);
  });

  test('words of a generation that has not come here wait for it', () => {
    const desk = new Desk(3, 4, {
      offer: (_i, _s, _o, failed) => ({ newId: 0, successions: failed.map((rank) => ({ rank, number: 3 })) }),
    });
    desk.kill(1);
    for (const number of [0, 2, 3]) desk.tell(number, 1);
    desk.deliverAll();
    for (const number of [0, 2]) desk.call(number, 1, OPERATION.REPLACE_SOME, SERIES.RECOVERY);
    desk.deliverAll(({ type }) => type !== 'DECIDE');
    // 0 has decided; its decision is still on the way to 2, and the successor is faster.
    desk.do(3, (core) => core.open(ID, [0, 3, 2], { generation: 1, next: [0, 1] }));
    desk.do(3, (core) => core.revoke(ID));
    desk.call(3, 6);
    const early = encodeService({
      type: SERVICE.STATE,
      series: SERIES.PROGRAM,
      isDirect: true,
      id: ID,
      q: 0,
      generation: 1,
      view: 2,
      from: 1,
      gathered: gathered(3, 1),
    });
    desk.do(2, (core) => core.handleMessage(3, early));
    desk.deliverAll(({ type }) => type === 'REVOKE');
    expect(desk.cores[2].isRevoked(ID)).toBe(true);
    desk.call(0, 7);
    desk.call(2, 5);
    desk.deliverAll();
    for (const number of [0, 2, 3]) expect(desk.valuesOf(number).at(-1)?.flag).toBe(4);
  });
});

describe('what no sound peer sends', () => {
  test('is refused, with no state changed', () => {
    const desk = new Desk(3);
    const state = (changes: object) =>
      encodeService({
        type: SERVICE.STATE,
        series: SERIES.PROGRAM,
        isDirect: true,
        id: ID,
        q: 0,
        generation: 0,
        view: 0,
        from: 1,
        gathered: gathered(3, 1),
        ...changes,
      });
    const core = desk.cores[0];
    expect(() => core.handleMessage(2, state({}))).toThrow(/process 2 is rank 2 of communicator 2, and says that it is rank 1/);
    expect(() => core.handleMessage(2, encodeService({ type: SERVICE.REVOKE, id: ID, from: 1 }))).toThrow(/says that it is rank 1/);
    const failed = { type: SERVICE.FAILED, from: 1, serial: 0, number: 1, incarnation: 1, evidence: 1 } as const;
    expect(() => core.handleMessage(2, encodeService(failed))).toThrow(/process 2 says that it is process 1/);
    for (let q = 0; q < 1024; q++) core.handleMessage(1, state({ q }));
    expect(() => core.handleMessage(1, state({ q: 1024 }))).toThrow(/next here/);
    expect(core.messages).toEqual([]);
    // Not known to this version.
    const unknown = state({});
    unknown[1] = 200;
    core.handleMessage(1, unknown);
    expect(core.counters).toEqual({ ignored: 0, unknownTypes: 1 });
  });

  test('another value than the one that is locked means that the others have gone on without this process', () => {
    const desk = new Desk(3);
    desk.callAll();
    desk.deliverAll(({ type }) => type === 'STATE');
    desk.deliver('PROPOSE', 0, 1);
    const value = { operations: 1, generation: 0, flag: 5, newId: 0, failed: new Bitmap(3), acked: new Bitmap(3), successions: [] };
    const place = { series: SERIES.PROGRAM, isDirect: true, id: ID, q: 0, generation: 0, view: 0, from: 0 };
    desk.do(1, (core) => core.handleMessage(0, encodeService({ type: SERVICE.DECIDE, ...place, value })));
    expect(desk.cores[1].ownDeath?.text).toMatch(/the others have gone on without it: .*agreement 2\/0\/0 was decided otherwise/);
    expect(desk.decided[1]).toEqual([]);
  });
});

describe('the table of states', () => {
  test('every state has a sentence, and every edge leads to a state', () => {
    const states = Object.keys(AGREEMENT_STATES) as AgreementState[];
    for (const state of states) {
      expect(AGREEMENT_STATES[state]).toMatch(/^[A-Z].*\.$/);
      for (const to of AGREEMENT_EDGES[state]) expect(states).toContain(to);
    }
    expect(Object.keys(AGREEMENT_EDGES)).toEqual(states);
    // All but the first can be reached.
    expect(new Set(Object.values(AGREEMENT_EDGES).flat())).toEqual(new Set(states.slice(1)));
  });

  test('there is no way but along the edges', () => {
    const agreement = { state: 'DECIDED' as AgreementState, name: '2/0/0' };
    expect(() => moveAgreement(agreement, 'LOCKED', undefined)).toThrow(/agreement 2\/0\/0: no edge DECIDED -> LOCKED/);
    moveAgreement(agreement, 'FORGOTTEN', undefined);
    expect(agreement.state).toBe('FORGOTTEN');
  });
});
