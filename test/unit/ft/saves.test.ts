// The protocol of saves without a network: states, slots, holders, recovery plans; and what a program registers.
import { describe, expect, it } from 'vitest';
import { dealtOut, isOwnEach, takenOver } from '../../../src/ft/checkpoint/grouping.ts';
import { Placement } from '../../../src/ft/checkpoint/placement.ts';
import { inventoryOf, planRecovery } from '../../../src/ft/checkpoint/recovery-plan.ts';
import { SaveCore, VOTE } from '../../../src/ft/checkpoint/save-core.ts';
import { SAVE_EDGES, SAVE_STATES } from '../../../src/ft/checkpoint/save-states.ts';
import type { Piece } from '../../../src/ft/checkpoint/slots.ts';
import { decodeImage } from '../../../src/ft/image/decode.ts';
import { wholePattern } from '../../../src/ft/plan/pattern.ts';
import { Ledger, toleranceNow } from '../../../src/ft/recover/ledger.ts';
import { ImageMemory } from '../../../src/ft/recover/memory.ts';
import { settingsOf } from '../../../src/ft/recover/options.ts';
import { Periods } from '../../../src/ft/recover/periods.ts';
import { Registry } from '../../../src/ft/recover/registry.ts';
import { crc32c } from '../../../src/native/crc32c.ts';

const piece = (crc: number): Piece => ({ bytes: 8, crc, memory: undefined });

/** Cores of so many ranks, each a domain, that have met. */
function met(size: number, duplication: number, depth: number): SaveCore[] {
  const placement = new Placement([...Array(size).keys()], duplication, depth);
  return Array.from({ length: size }, (_, rank) => {
    const core = new SaveCore({ rank, depth });
    core.placement = placement;
    core.meet();
    core.restore(0, undefined, undefined);
    core.handleDecision(VOTE.COMMIT, []);
    core.actions.length = 0;
    return core;
  });
}

/** One save of all, up to their votes. Returns the AND of the votes. */
function save(cores: readonly SaveCore[], isLost = (_from: number, _to: number) => false): number {
  for (const core of cores) {
    core.begin();
    core.handleQuiet(false);
  }
  const spread = cores.map((core) => {
    core.handleCopied(piece(100 * core.k + core.rank));
    return core.actions.splice(0);
  });
  const votes = new Map<number, number>();
  const note = (core: SaveCore): void => {
    for (const action of core.actions.splice(0)) if (action.kind === 'vote') votes.set(core.rank, action.flag);
  };
  for (const [owner, actions] of spread.entries()) {
    for (const action of actions) {
      if (action.kind === 'vote') votes.set(owner, action.flag);
      if (action.kind !== 'spread') continue;
      for (const to of action.to) {
        if (isLost(owner, to)) continue;
        cores[to].handleCopy({ ...action.slot.name, owner, attempt: cores[owner].attempt }, action.slot.own as Piece);
        note(cores[to]);
      }
    }
  }
  return cores.reduce<number>((flag, { rank }) => flag & (votes.get(rank) ?? 0), VOTE.COMMIT);
}

/** Pieces of their own memory, as real ones are. */
const kept = (name: string): Piece => ({ bytes: 8, crc: 0, memory: name });

describe('the ledger', () => {
  it('what may be lost now counts real hosts, whatever positions they hold', () => {
    const three = new Placement(['a', 'a', 'b', 'b', 'c', 'c'], 1, 1);
    expect(toleranceNow(three, ['a', 'a', 'b', 'b', 'c', 'c'])).toBe(1);
    // A successor of rank 2 runs on host c, which holds the copies of that position: one host has both.
    expect(toleranceNow(three, ['a', 'a', 'c', 'b', 'c', 'c'])).toBe(0);
    // On one host it is processes.
    expect(toleranceNow(new Placement([0, 1, 2, 3, 4, 5, 6], 2, 2), Array(7).fill('a'))).toBe(2);
    expect(toleranceNow(new Placement([0, 1], 0, 1), ['a', 'b'])).toBe(0);
  });

  it('time in steps that were lost is of no use', () => {
    const ledger = new Ledger();
    ledger.placed(new Placement([0, 1], 1, 1), ['a', 'a']);
    expect(ledger.report(false, 0)).toMatchObject({ ftUsefulMs: 0, ftToleranceLeft: 0 });
    ledger.addStep(100);
    const useful = ledger.copied();
    ledger.addStep(50);
    ledger.committed(64, 5.4, useful);
    ledger.abandoned();
    expect(ledger.report(true, 3)).toMatchObject({
      ftSavesCommitted: 1,
      ftSavesAbandoned: 1,
      ftSavesNotStored: 3,
      ftSaveBytes: 64,
      ftSaveMs: 5,
      ftUsefulMs: 150,
      ftToleranceLeft: 1,
    });
    ledger.recovered({ failures: 2, inPlace: 0, lostSteps: 4 }, true, 'all');
    expect(ledger.report(true, 3)).toMatchObject({ ftRecoveries: 1, ftFailures: 2, ftLostSteps: 4, ftUsefulMs: 100 });
    // Others go back, and what this rank has done stays of use.
    ledger.addStep(10);
    ledger.recoveredInPlace({ failures: 3, inPlace: 1, lostSteps: 6 });
    expect(ledger.report(true, 3)).toMatchObject({
      ftRecoveries: 1,
      ftRecoveriesInPlace: 1,
      ftFailures: 3,
      ftLostSteps: 6,
      ftUsefulMs: 110,
    });
    ledger.recovered({ failures: 4, inPlace: 2, lostSteps: 9 }, false, 'in place');
    expect(ledger.report(true, 3)).toMatchObject({ ftRecoveries: 2, ftRecoveriesInPlace: 2, ftFailures: 4, ftUsefulMs: 0 });
  });
});

describe('fewer ranks than have saved', () => {
  const line = { epoch: 0, k: 1 };
  const entry = (owner: number) => ({ ...line, owner, bytes: 100 + owner, crc: 0 });

  it('parts of those that were left out go to the rank that gives them, behind its own', () => {
    // 1 and 2 of four are gone; 3 has the image of 2, and 0 that of 1.
    const transfers = [
      { ...entry(1), giver: 0 },
      { ...entry(2), giver: 3 },
    ];
    const taken = takenOver([0, 1, 2, 3].map(entry), transfers, [0, undefined, undefined, 1], 2);
    expect(taken.map((list) => list.map(({ owner }) => owner))).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  it('images in a store are dealt out to those that see them', () => {
    const all = dealtOut([5, 6, 7, 8], () => true, 3);
    expect(all?.map((list) => list.map(({ rank }) => rank))).toEqual([[0, 3], [1], [2]]);
    expect(isOwnEach(all ?? [])).toBe(false);
    expect(dealtOut([5, 6, 7], (rank) => rank === 1, 2)?.map((list) => list.map(({ rank }) => rank))).toEqual([[], [0, 1, 2]]);
    expect(dealtOut([5, 6], (_, image) => image === 0, 2)).toBeUndefined();
  });

  it('what there was before stays until the fewer have committed the line again, and comes back when one dies first', () => {
    const before = new Placement([0, 1, 2], 1, 1);
    const after = new Placement([0, 1], 1, 1);
    const core = new SaveCore({ rank: 2, depth: 1 });
    core.placement = before;
    core.meet();
    core.restore(0, undefined, undefined);
    core.handleDecision(VOTE.COMMIT, []);
    core.begin();
    core.handleQuiet(false);
    core.handleCopied(kept('own'));
    core.handleCopy({ epoch: 0, k: 0, owner: 1, attempt: 1 }, kept('held'));
    core.handleDecision(VOTE.COMMIT, []);
    core.handleDeath(1);
    core.handleDecision(0, [1]);
    const regroup = (): void => {
      core.meet();
      core.regroup(1, after, { epoch: 0, k: 0 }, kept('both'));
      core.restore(core.epoch + 1, { epoch: 0, k: 0 }, undefined);
    };
    regroup();
    expect([core.rank, core.slots.newest?.own?.memory]).toEqual([1, 'both']);
    // Rank 0 dies before it has all: the slots are those of before, and only what was made since is given back.
    core.handleDeath(0);
    core.handleDecision(0, [0]);
    core.slots.released.splice(0);
    core.meet();
    expect([core.rank, core.placement, core.slots.newest?.own?.memory]).toEqual([2, before, 'own']);
    expect(core.slots.released.map(({ memory }) => memory)).toEqual(['both']);
    core.slots.released.splice(0);
    core.actions.splice(0);
    core.regroup(1, after, { epoch: 0, k: 0 }, { ...kept('own'), parts: [] });
    core.restore(core.epoch + 1, { epoch: 0, k: 0 }, undefined);
    core.handleCopy({ epoch: core.epoch, k: 0, owner: 0, attempt: 0 }, kept('theirs'));
    core.handleDecision(VOTE.COMMIT, []);
    expect([core.rank, core.placement]).toEqual([1, after]);
    // Its own image is still in use.
    expect(core.slots.released.map(({ memory }) => memory)).toEqual(['held']);
  });
});

describe('saves', () => {
  it('every state has a sentence, and every edge leads to a state', () => {
    expect(Object.keys(SAVE_EDGES)).toEqual(Object.keys(SAVE_STATES));
    for (const to of Object.values(SAVE_EDGES).flat()) expect(SAVE_STATES[to].endsWith('.')).toBe(true);
  });

  it('a save is committed when all have voted for it, and the oldest slot is free only then', () => {
    const cores = met(4, 1, 2);
    for (let k = 0; k < 4; k++) {
      expect(save(cores)).toBe(VOTE.COMMIT);
      for (const core of cores) core.handleDecision(VOTE.COMMIT, []);
      expect(cores[0].slots.committed.map(({ name }) => name.k)).toEqual([k - 1, k].filter((one) => one >= 0));
    }
    expect(cores[0].slots.released.length).toBe(2 * 2);
  });

  it('a rank without the copy that it is to hold does not vote; a save that is abandoned leaves its number to the next', () => {
    const cores = met(3, 1, 1);
    expect(save(cores, (from) => from === 1)).toBe(0);
    for (const core of cores) if (core.state !== 'VOTING') core.refuse();
    for (const core of cores) core.handleDecision(0, []);
    expect(cores.map(({ state, k, attempt }) => [state, k, attempt])).toEqual([0, 1, 2].map(() => ['ABANDONED', 0, 2]));
    // The copy comes late, for a save that does not exist.
    cores[2].begin();
    cores[2].handleQuiet(false);
    expect(cores[2].handleCopy({ epoch: 0, k: 0, owner: 1, attempt: 1 }, piece(1))).toBe(false);
    expect(cores[2].handleCopy({ epoch: 0, k: 0, owner: 1, attempt: 2 }, piece(1))).toBe(true);
  });

  it('whoever knows of a death votes no wherever its program is, once', () => {
    const [idle, saving] = met(3, 1, 1);
    saving.begin();
    for (const core of [idle, saving]) {
      core.handleDeath(2);
      core.handleDeath(2);
      expect(core.actions.splice(0)).toEqual([{ kind: 'vote', flag: 0 }]);
      // It came too late for this decision: the next one is about it.
      core.handleDecision(0, []);
      expect(core.actions.splice(0).filter(({ kind }) => kind === 'vote')).toEqual([{ kind: 'vote', flag: 0 }]);
      core.handleDecision(0, [2]);
      expect(core.actions.splice(0).at(-1)).toEqual({ kind: 'recover', failed: [2] });
      expect(core.begin()).toBe(false);
    }
  });

  it('the recovery line is the newest save that can be read whole, and what was restored is spread again', () => {
    const cores = met(4, 1, 2);
    for (let k = 0; k < 3; k++) {
      save(cores);
      for (const core of cores) core.handleDecision(VOTE.COMMIT, []);
    }
    const { placement } = cores[0];
    // Save 2 of rank 1 lies at one other rank; both are lost, so save 1 is the line.
    const [holder] = placement.holders(1, 2);
    const inventories = cores.map((core, rank) => (rank === 1 || rank === holder ? [] : inventoryOf(rank, core.slots)));
    const plan = planRecovery(inventories, placement);
    expect(plan).toMatchObject({ line: { epoch: 0, k: 1 }, differs: false });
    expect(plan.transfers.map(({ owner, giver, crc }) => [owner, giver, crc])).toEqual(
      [1, holder].sort().map((owner) => [owner, placement.holders(owner, 1)[0], 100 + owner]),
    );
    const survivor = cores.find(({ rank }) => rank !== 1 && rank !== holder) as SaveCore;
    survivor.handleDeath(1);
    survivor.handleDecision(0, [1, holder]);
    survivor.meet();
    survivor.actions.length = 0;
    survivor.restore(1, plan.line, undefined);
    expect(survivor.slots.committed.map(({ name }) => name.k)).toEqual([1]);
    expect(survivor.actions[0]).toMatchObject({ kind: 'spread', slot: { name: { epoch: 1, k: 1 } } });
  });

  it('no save is left when too many are lost', () => {
    const cores = met(3, 1, 1);
    save(cores);
    for (const core of cores) core.handleDecision(VOTE.COMMIT, []);
    const { placement } = cores[0];
    const lost = [0, ...placement.holders(0, 0)];
    const inventories = cores.map((core, rank) => (lost.includes(rank) ? [] : inventoryOf(rank, core.slots)));
    expect(planRecovery(inventories, placement)).toEqual({ line: undefined, transfers: [], differs: false });
  });

  it('the formula does not speak of a successor that has no copies yet', () => {
    const cores = met(3, 1, 1);
    save(cores);
    for (const core of cores) core.handleDecision(VOTE.COMMIT, []);
    const { placement } = cores[0];
    // Rank 0 is succeeded and has got its image; then the rank dies whose copy the dead one held.
    const [owner] = placement.owners(0, 0);
    const inventories = cores.map(({ rank, slots }) => (rank === owner ? [] : inventoryOf(rank, slots)));
    inventories[0] = inventories[0].filter((entry) => entry.owner === 0);
    expect(planRecovery(inventories, placement)).toEqual({ line: undefined, transfers: [], differs: false });
  });

  it('copies go to other hosts, and holders know whose they hold', () => {
    const placement = new Placement(['a', 'a', 'b', 'b', 'c'], 1, 2);
    for (let k = 0; k < 4; k++) {
      for (let rank = 0; rank < 5; rank++) {
        for (const holder of placement.holders(rank, k)) {
          expect(placement.domainOf(holder)).not.toBe(placement.domainOf(rank));
          expect(placement.owners(holder, k)).toContain(rank);
        }
      }
    }
  });
});

describe('what a program registers', () => {
  const header = { save: 3, epoch: 1, rank: 1, size: 4, step: 30, wallTimeMs: 5, jobId: new Uint8Array(16) };

  it('comes back bit by bit, with the checksum that was computed while copying', () => {
    const registry = new Registry(1, undefined);
    const plate = Float64Array.from({ length: 40_000 }, (_, i) => Math.sin(i));
    let step = 30;
    registry.protect('plate', plate);
    registry.protect('bytes', Buffer.from('abc'));
    registry.protectValue('step', {
      save: () => step,
      restore: (value) => {
        step = value;
      },
    });
    const { memory, crc } = registry.capture(header, (bytes) => new Uint8Array(bytes).fill(7));
    expect(crc).toBe(crc32c(memory));
    const again = new Registry(1, decodeImage(memory, crc32c).sections);
    const restored = new Float64Array(40_000);
    step = 0;
    again.protect('plate', restored);
    expect(again.missing?.message).toContain('"bytes", "step"');
    again.protect('bytes', Buffer.alloc(3));
    again.protectValue('step', {
      save: () => step,
      restore: (value: number) => {
        step = value;
      },
    });
    expect(again.missing).toBeUndefined();
    expect([step, Buffer.compare(Buffer.from(restored.buffer), Buffer.from(plate.buffer))]).toEqual([30, 0]);
  });

  it('does not fit: another length, another name, a name twice', () => {
    const first = new Registry(1, undefined);
    first.protect('plate', new Float64Array(4));
    const { sections } = decodeImage(first.capture(header, (bytes) => new Uint8Array(bytes)).memory, crc32c);
    expect(() => new Registry(1, sections).protect('plate', new Float64Array(5))).toThrow(/ERR_CHECKPOINT: rank 1: .*32 bytes.*40 bytes/);
    expect(() => new Registry(1, sections).protect('other', new Float64Array(4))).toThrow(/ERR_CHECKPOINT.*no array "other"/);
    expect(() => first.protect('plate', new Float64Array(4))).toThrow(/ERR_ARG.*twice/);
    expect(() => first.protect('list', [1] as unknown as Float64Array)).toThrow(/ERR_ARG.*typed array/);
  });

  it('once() gives what was made, from the save too, and a clone each time', () => {
    const imageOf = (registry: Registry) => decodeImage(registry.capture(header, (bytes) => new Uint8Array(bytes)).memory, crc32c).sections;
    const first = new Registry(1, undefined);
    let calls = 0;
    const make = () => ({ seed: ++calls, list: new Map([['a', 1]]) });
    const value = first.once('seed', make);
    value.seed = 100;
    expect(first.once('seed', make)).toEqual({ seed: 1, list: new Map([['a', 1]]) });
    const sections = imageOf(first);
    first.once('later', make);
    const second = new Registry(1, sections);
    expect(second.once('seed', make)).toEqual({ seed: 1, list: new Map([['a', 1]]) });
    expect(calls).toBe(2);
    // Made after the save: it is made again.
    expect(second.once('later', make).seed).toBe(3);
    // A program that does not ask for it yet keeps it for its next save.
    const third = new Registry(1, sections);
    expect(third.missing).toBeUndefined();
    expect(new Registry(1, imageOf(third)).once('seed', make).seed).toBe(1);
    expect(() => first.once('', make)).toThrow(/ERR_ARG: name/);
    expect(() => first.once('x', 1 as never)).toThrow(/ERR_ARG: once\('x', …\): expected a function/);
    expect(() => first.once('x', () => Promise.resolve(1))).toThrow(/ERR_ARG.*cannot be cloned/);
    const failing = () => {
      throw new RangeError('no clock');
    };
    expect(() => first.once('x', failing)).toThrow(RangeError);
    expect(first.once('x', () => 5)).toBe(5);
    for (let i = 0; i < 65_536 - 3; i++) first.once(`n${i}`, () => 0);
    expect(() => first.once('one more', () => 0)).toThrow(/ERR_ARG.*65536 values/);
  });

  it('memory is used again only when nothing reads from it, and stays under its bound', () => {
    const memory = new ImageMemory(1000, 1);
    const first = memory.take(600);
    expect(() => memory.take(600)).toThrow(/ERR_CHECKPOINT.*ft_memory_bytes_max/);
    memory.use(first);
    memory.give(first);
    expect(memory.hasRoom(600)).toBe(false);
    memory.done(first);
    expect(memory.take(600)).toBe(first);
    memory.give(first);
    expect(memory.take(900).length).toBe(900);
    expect(memory.bytes).toBe(900);
  });

  it('options that make no sense are refused by name', () => {
    expect(() => settingsOf({ depth: 0 })).toThrow(/ERR_ARG: depth = 0/);
    expect(() => settingsOf({ levels: [] })).toThrow(/ERR_ARG: levels/);
    expect(() => settingsOf({ everySteps: [1, 2] })).toThrow(/ERR_ARG: everySteps/);
    expect(() => settingsOf({ saves: 1 } as never)).toThrow(/ERR_ARG: option saves/);
  });

  it('fixed periods: multiples of them, whatever step the program begins in', () => {
    const fixed = new Periods(settingsOf({ everySteps: [5] }));
    expect([4, 5, 6].map((step) => fixed.dueAt(step))).toEqual([undefined, 0, 0]);
    fixed.saved(0, 5, [fixed.measured]);
    expect([9, 10].map((step) => fixed.dueAt(step))).toEqual([undefined, 0]);
    fixed.begin(12, { periods: [7], failures: 1, elapsedSeconds: 1 });
    expect([14, 15].map((step) => fixed.dueAt(step))).toEqual([undefined, 0]);
  });

  /** What a rank has measured: of a step, and of a save of each level: what it keeps the program from, and how long it takes. */
  const took = (step: number, ...saves: [number, number][]): number[] => [step, ...saves.flat()];

  it('planned periods are the same at all ranks: the dearest measurement counts', () => {
    const planned = new Periods(settingsOf({ mtbfSeconds: [100] }));
    expect(planned.dueAt(1)).toBe(0);
    planned.addStep(0.1);
    // Young: sqrt(2 * 100 * 0.5) = 10 s.
    planned.addSave(0, 0.5, 0.5);
    planned.saved(0, 1, [took(Number.NaN, [Number.NaN, Number.NaN]), planned.measured, took(0.05, [0.25, 4])]);
    expect(planned.current).toEqual([100]);
    expect([100, 101].map((step) => planned.dueAt(step))).toEqual([undefined, 0]);
    // Less than a tenth is no change; more is one.
    planned.saved(0, 101, [took(0.105, [0.5, 0.5])]);
    expect(planned.current).toEqual([100]);
    planned.saved(0, 101, [took(0.2, [0.5, 0.5])]);
    expect(planned.current).toEqual([50]);
    // Never beyond 0.27 of the time between failures, and not shorter than a save takes.
    planned.saved(0, 201, [took(0.1, [20, 20])]);
    expect(planned.current).toEqual([270]);
    planned.saved(0, 301, [took(0.1, [0.05, 9])]);
    expect(planned.current).toEqual([90]);
    // A successor has measured nothing, and saves when the others do.
    const successor = new Periods(settingsOf({ mtbfSeconds: [100] }));
    successor.begin(300, { periods: [90], failures: 1, elapsedSeconds: 1 });
    expect([389, 390].map((step) => successor.dueAt(step))).toEqual([undefined, 0]);
  });

  it('two levels: the pattern of paper 002 in whole numbers, each level measured first', () => {
    const levels = [{ level: 'memory' as const }, { level: 'disk' as const, folder: '/nowhere' }];
    const planned = new Periods(settingsOf({ levels, mtbfSeconds: [720, 3600] }));
    // The first save is one of the highest level, the next one of memory.
    expect(planned.dueAt(1)).toBe(1);
    planned.saved(1, 1, [took(1, [Number.NaN, Number.NaN], [Number.NaN, Number.NaN])]);
    planned.saved(0, 2, [took(1, [Number.NaN, Number.NaN], [6, 6])]);
    expect(planned.current).toEqual([1, 1]);
    // Row 2 of its table 3: N1 = 5.48, W = 207.8 s, P1 = 37.95 s; in whole numbers 6 saves of memory for each of the disk.
    planned.saved(0, 3, [took(1, [1, 1], [6, 6])]);
    const { counts, periodSeconds } = wholePattern({ mtbfSeconds: [720, 3600], costSeconds: [1, 6] });
    expect(planned.current).toEqual([Math.round(periodSeconds[0]), Math.round(periodSeconds[0]) * counts[0]]);
    expect(planned.current[1] / planned.current[0]).toBe(6);
    // What was measured may say that a disk is cheaper: it is taken for as dear as memory.
    planned.saved(1, 300, [took(1, [4, 4], [2, 2])]);
    expect(planned.current[1] % planned.current[0]).toBe(0);
    expect(() => settingsOf({ levels, mtbfSeconds: [3600, 720] })).toThrow(/ERR_ARG: mtbfSeconds\[1\] = 720 s is below/);
  });

  it('without any period, the failures of the job are one from the third on', () => {
    const periods = new Periods(settingsOf({}));
    expect(periods.dueAt(1000)).toBeUndefined();
    periods.begin(0, { periods: [0], failures: 2, elapsedSeconds: 20 });
    expect(periods.dueAt(1000)).toBeUndefined();
    periods.begin(10, { periods: [0], failures: 3, elapsedSeconds: 30 });
    expect([10, 11].map((step) => periods.dueAt(step))).toEqual([undefined, 0]);
    // A failure in 10 s, saves of 0.05 s: 1 s.
    periods.saved(0, 11, [took(0.1, [0.05, 0.05])]);
    expect(periods.current).toEqual([10]);
  });
});
