// Context ids: the same one is never given twice, what comes before its communicator waits, what comes after it is dropped, nothing stays.
import { describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { ContextTable, ctxOf, USER } from '../../../src/mpi/contexts.ts';
import { ANY } from '../../../src/pml/match.ts';
import { Iov } from '../../../src/util/iov.ts';
import { MemPair } from '../../support/mem-pair.ts';
import { pattern } from '../../support/pattern.ts';

function pairWithTables(): { pair: MemPair; tables: ContextTable[] } {
  const pair = new MemPair();
  return { pair, tables: [0, 1].map((rank) => new ContextTable(pair.engines[rank].pml, rank)) };
}
function expectClean(pair: MemPair): void {
  pair.advance(50);
  expect(pair.leftovers()).toEqual([]);
}

const ctx = (id: number): number => ctxOf(id, USER);

describe('context ids', () => {
  test('no two ranks give the same, none comes twice, and all fit the wire', () => {
    const { pair } = pairWithTables();
    const seen = new Set<number>();
    for (let rank = 0; rank < 3; rank++) {
      const table = new ContextTable(pair.engines[0].pml, rank);
      for (let i = 0; i < 1000; i++) seen.add(table.allocate());
    }
    expect(seen.size).toBe(3000);
    expect(Math.min(...seen)).toBeGreaterThan(1);
    expect(ctxOf(Math.max(...seen), 3)).toBeLessThan(2 ** 32);
    const last = new ContextTable(pair.engines[0].pml, 8191);
    const CREATIONS = 2 ** 30 / 8192 - 2;
    for (let i = 0; i < CREATIONS; i++) seen.add(last.allocate());
    expect(seen.size).toBe(3000 + CREATIONS);
    expect(ctxOf(Math.max(...[...seen].slice(-1)), 3)).toBe(2 ** 32 - 1);
    expect(() => last.allocate()).toThrow(/ERR_COMM.*no context id is left/);
  });

  test('a message that is there before its communicator waits for it', () => {
    const { pair, tables } = pairWithTables();
    const id = tables[0].allocate();
    for (const table of tables) table.beginCreation();
    tables[0].open(id);
    tables[0].endCreation(false);
    pair.send(0, pattern(10), 1, false, ctx(id));
    tables[1].open(id);
    tables[1].endCreation(false);
    const into = new Uint8Array(10);
    expect(pair.engines[1].pml.irecv(0, ctx(id), 1, new Iov([into])).done).toBe(true);
    expect(into).toEqual(pattern(10));
    expect(tables[1].counts()).toEqual({ live: 3, abandoned: 0, early: 0 });
    expectClean(pair);
  });

  test('under logs one may come at any time before its communicator is made, and none once it was freed', () => {
    const { pair, tables } = pairWithTables();
    const id = tables[0].loggedId(tables[0].nextLogged, 0);
    const ended = new Set<number>();
    for (const table of tables) table.mayCome = (asked) => asked >= 65_536 * 8192 && !ended.has(asked);
    pair.send(0, pattern(10), 1, false, ctx(id));
    // Another one is made meanwhile.
    tables[1].beginCreation();
    tables[1].endCreation(false);
    tables[1].open(id);
    const into = new Uint8Array(10);
    expect(pair.engines[1].pml.irecv(0, ctx(id), 1, new Iov([into])).done).toBe(true);
    expect(into).toEqual(pattern(10));
    tables[1].close(id);
    ended.add(id);
    const { dropped } = { dropped: pair.engines[1].pml.counters.freedContextDropped };
    pair.send(0, pattern(10), 1, false, ctx(id));
    expect(pair.engines[1].pml.counters.freedContextDropped).toBe(dropped + 1);
  });

  test('no id under logs is given otherwise, and a successor gives the same ones', () => {
    const { tables } = pairWithTables();
    const [own, successor] = tables;
    const first = own.nextLogged;
    const ids = [0, 1, 2].map((made) => own.loggedId(first + made, 7));
    expect([0, 1, 2].map((made) => successor.loggedId(first + made, 7))).toEqual(ids);
    expect(own.nextLogged).toBe(first + 3);
    own.mayCome = () => false;
    let highest = 0;
    expect(() => {
      for (;;) highest = own.allocate();
    }).toThrow(/ERR_COMM.*no context id is left/);
    expect(highest).toBeLessThan(Math.min(...ids));
    expect(() => own.loggedId(2 ** 30 / 8192, 7)).toThrow(/ERR_COMM.*no context id is left/);
  });

  test('one that nobody has received when it is freed is dropped, and its credit given back', () => {
    const { pair, tables } = pairWithTables();
    const id = tables[0].allocate();
    for (const table of tables) table.open(id);
    pair.send(0, pattern(10), 1, false, ctx(id));
    for (const table of tables) {
      expect(table.isQuiet(id, 0)).toBe(true);
      table.close(id);
    }
    const { pml } = pair.engines[1];
    expect(pml.counters.freedContextDropped).toBe(1);
    expect(pml.peer(0).heldBytes).toBe(0);
    expectClean(pair);
  });

  test('it is not quiet while a receive is posted, or a message is under way', () => {
    const { pair, tables } = pairWithTables();
    const id = tables[0].allocate();
    for (const table of tables) table.open(id);
    const posted = pair.engines[1].pml.irecv(ANY, ctx(id), 1, new Iov([new Uint8Array(20_000)]));
    expect(tables[1].isQuiet(id, 0)).toBe(false);
    expect(tables[1].isQuiet(id, 1)).toBe(true);
    pair.send(0, pattern(20_000), 2, false, ctx(id));
    expect(tables[0].isQuiet(id, 0)).toBe(false);
    pair.engines[1].pml.cancel(posted);
    pair.recv(1, new Uint8Array(20_000), 2, 0, ctx(id));
    for (const table of tables) expect(table.isQuiet(id, 0)).toBe(true);
  });

  test('a late copy finds neither context nor sequence: it is dropped, gives no credit, and leaves nothing', () => {
    for (const whileCreating of [false, true]) {
      const { pair, tables } = pairWithTables();
      const [sender, receiver] = pair.engines.map((engine) => engine.pml);
      const id = tables[0].allocate();
      for (const table of tables) table.open(id);
      pair.send(0, pattern(10), 1, false, ctx(id));
      pair.recv(1, new Uint8Array(10), 1, 0, ctx(id));
      for (const table of tables) table.close(id);
      const peer = receiver.peer(0);
      const { releasedBytes } = peer;
      if (whileCreating) tables[1].beginCreation();
      // The sender has forgotten its sequence too: what it sends now looks as the copy would.
      tables[0].open(id);
      pair.send(0, pattern(10), 1, false, ctx(id));
      expect(tables[1].counts().early).toBe(whileCreating ? 1 : 0);
      if (whileCreating) tables[1].endCreation(false);
      expect(tables[1].counts()).toEqual({ live: 2, abandoned: 0, early: 0 });
      expect([peer.heldBytes, peer.releasedBytes - releasedBytes]).toEqual([0, 0]);
      expect([peer.flowsIn.size, receiver.counters.freedContextDropped]).toEqual([0, 1]);
      tables[0].close(id);
      expect(sender.peer(1).flowsOut.size).toBe(0);
    }
  });

  test('an abandoned one keeps its sequences: what comes is dropped with its credit, receives end', () => {
    const { pair, tables } = pairWithTables();
    const id = tables[0].allocate();
    for (const table of tables) table.open(id);
    const posted = pair.engines[1].pml.irecv(0, ctx(id), 1, new Iov([new Uint8Array(10)]));
    tables[1].abandon(id, new MultirailError('ERR_COMM', 'freed'));
    expect(posted.error?.message).toMatch(/freed/);
    pair.send(0, pattern(10), 1, false, ctx(id));
    const peer = pair.engines[1].pml.peer(0);
    expect([peer.heldBytes, peer.releasedBytes > 0]).toEqual([0, true]);
    expect(tables[1].counts().abandoned).toBe(1);
  });
});
