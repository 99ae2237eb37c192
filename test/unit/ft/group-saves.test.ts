// Copies at a holder whose images come in another order than the words that announce them.
import { describe, expect, it } from 'vitest';
import { CORE_KINDS_END } from '../../../src/ft/groups/group-core.ts';
import { type CopyEnd, GroupSaves } from '../../../src/ft/groups/group-saves.ts';

const OWNER = 1;
const BYTES = 8;
const COPY = CORE_KINDS_END;
const COMMITTED = CORE_KINDS_END + 2;

/** Rank 2 of the groups {0, 1} and {2, 3}, as a holder of rank 1; its images end when the test says so. */
function holder() {
  const underWay = new Map<number, (end: CopyEnd) => void>();
  const said: number[][] = [];
  const inUse = new Set<Uint8Array>();
  let announced = -1;
  const saves = new GroupSaves({
    memory: {
      get bytes() {
        return inUse.size * BYTES;
      },
      bytesMax: 1024,
      hasRoom: () => true,
      take: (bytes) => {
        const memory = new Uint8Array(bytes);
        inUse.add(memory);
        return memory;
      },
      give: (memory) => {
        if (!inUse.delete(memory)) throw new Error('memory was given back twice');
      },
    },
    warn: () => {},
    send: (_to, words) => said.push([...words]),
    sendImage: () => {},
    takeImage: (_from, _room, _crc, ended) => underWay.set(announced, ended),
    stop: () => {},
    ended: () => {},
    committedOf: () => {},
  });
  saves.form([0, 0, 1, 1], 2);
  return {
    announce: (k: number) => {
      announced = k;
      saves.handle(OWNER, [COPY, k, BYTES, 0, k]);
    },
    land: (k: number, end: CopyEnd = 'whole') => underWay.get(k)?.(end),
    commit: (k: number) => saves.handle(OWNER, [COMMITTED, k]),
    images: () => saves.entries.filter(({ owner }) => owner === OWNER).map(({ k }) => k),
    memories: () => inUse.size,
    said,
  };
}

describe('copies of another group', () => {
  it('the committed one and the next are kept', () => {
    const { announce, land, commit, images, memories } = holder();
    announce(1);
    land(1);
    commit(1);
    announce(2);
    expect(images()).toEqual([1]);
    land(2);
    expect(images()).toEqual([1, 2]);
    commit(2);
    expect(images()).toEqual([2]);
    expect(memories()).toBe(1);
  });

  it('one that comes when a newer one is committed is not kept', () => {
    const { announce, land, commit, images, memories, said } = holder();
    announce(2);
    announce(4);
    land(4);
    commit(4);
    announce(5);
    land(2);
    expect(images()).toEqual([4]);
    land(5);
    expect(images()).toEqual([4, 5]);
    expect(memories()).toBe(2);
    expect(said).toHaveLength(3);
  });

  it('one that was given up, and comes behind the next one, is not kept', () => {
    const { announce, land, commit, images, memories } = holder();
    announce(4);
    land(4);
    commit(4);
    announce(5);
    announce(6);
    land(6);
    land(5);
    expect(images()).toEqual([4, 6]);
    expect(memories()).toBe(2);
  });

  it('one that was given up, and comes before the next one, makes room for it', () => {
    const { announce, land, commit, images, memories } = holder();
    announce(4);
    land(4);
    commit(4);
    announce(5);
    announce(6);
    land(5);
    land(6);
    expect(images()).toEqual([4, 6]);
    expect(memories()).toBe(2);
  });

  it('the committed one that is sent again is kept, however late', () => {
    const { announce, land, commit, images } = holder();
    commit(4);
    announce(4);
    announce(5);
    land(5);
    land(4);
    expect(images().sort()).toEqual([4, 5]);
  });
});
