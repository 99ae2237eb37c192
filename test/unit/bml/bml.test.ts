// The BML: which rails carry what, dialling and its pauses, the judgement of silence (B7), and what is measured.
import { describe, expect, test } from 'vitest';
import type { RailAttributes } from '../../../src/btl/btl.ts';
import { FakeRails } from './fake-rails.ts';

describe('sets', () => {
  test('eager by latency, stripes by bandwidth, one-sided by ability', () => {
    const f = new FakeRails([
      { latencyUs: 30, bandwidthMBps: 1000, canGet: true },
      { latencyUs: 10, bandwidthMBps: 100, canPut: true },
      { latencyUs: 20, bandwidthMBps: 500, canPut: true, canGet: true },
    ]);
    f.turn();
    f.up(0, 1, 2);
    const sets = () => [f.peer.eager, f.peer.send, f.peer.put, f.peer.get].map((set) => f.indexes(set));
    expect(sets()).toEqual([
      [1, 2, 0],
      [0, 2, 1],
      [2, 1],
      [0, 2],
    ]);
    f.down(2);
    expect(sets()).toEqual([[1, 0], [0, 1], [1], [0]]);
  });

  test('read is what every rail of the stripe set can read, and finds neither too short nor too long', () => {
    const f = new FakeRails([
      { canGet: true, canPut: true, getBytesMin: 100 },
      { canGet: true, canPut: true, getBytesMax: 1000 },
      { canGet: true, canPut: true, pipelineBytes: 5000 },
      { canPut: false },
    ]);
    const read = () => [99, 100, 1000, 1001, 5000, 5001].filter((bytes) => f.peer.isReadWorth(bytes));
    f.turn();
    expect(f.peer.putsAll).toBe(false);
    f.up(2);
    expect(f.peer.putsAll).toBe(true);
    expect(read()).toEqual([99, 100, 1000, 1001, 5000]);
    f.up(0);
    expect(read()).toEqual([100, 1000, 1001, 5000]);
    f.up(1);
    expect(read()).toEqual([100, 1000]);
    f.up(3);
    expect(read()).toEqual([]);
    expect(f.peer.putsAll).toBe(false);
  });

  test('a message in memory that the receiver may have mapped is read from another length on, where the rail says so', () => {
    const f = new FakeRails([
      { canGet: true, getBytesMin: Number.POSITIVE_INFINITY, getExportedBytesMin: 500 },
      { canGet: true, getBytesMin: 1000 },
    ]);
    const read = (isExported: boolean) => [499, 500, 999, 1000].filter((bytes) => f.peer.isReadWorth(bytes, isExported));
    f.turn();
    f.up(0);
    expect([read(false), read(true)]).toEqual([[], [500, 999, 1000]]);
    f.up(1);
    expect([read(false), read(true)]).toEqual([[], [1000]]);
  });

  test('standby rails and lower exclusivity carry only while nothing better is up', () => {
    const f = new FakeRails([{ role: 'standby' }, {}, { exclusivity: 5 }, { exclusivity: 9, role: 'standby' }]);
    f.turn();
    f.up(0);
    expect(f.indexes(f.peer.send)).toEqual([0]);
    f.up(1);
    expect(f.indexes(f.peer.send)).toEqual([1]);
    f.up(3);
    expect(f.indexes(f.peer.send)).toEqual([1]);
    f.up(2);
    expect(f.indexes(f.peer.send)).toEqual([2]);
    f.down(2);
    f.down(1);
    expect(f.indexes(f.peer.send)).toEqual([3]);
  });

  test('a rail that only connected carries nothing before its probe was answered', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.connected(0);
    expect(f.states()).toBe('PROBING');
    expect(f.peer.eager).toEqual([]);
    expect(f.endpoints[0].probes).toHaveLength(1);
    f.up(0);
    expect(f.states()).toBe('UP');
  });

  test('a lost rail is out of every set before anything else happens', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    f.bml.fence(f.peer, 0, 1, { kind: 'fenced', text: 'test' });
    expect(f.indexes(f.peer.eager)).toEqual([1]);
    expect(f.endpoints[0].fences).toHaveLength(1);
    expect(f.bml.deadEpochs(f.peer)).toEqual([{ rail: 0, epoch: 1 }]);
    expect(f.bml.isLive(f.peer, 0, 1)).toBe(false);
  });

  test('a fence of an older epoch leaves the newer one alone', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.up(0);
    f.down(0);
    f.run(100);
    f.up(0);
    const live = f.rails[0].epoch;
    f.bml.fence(f.peer, 0, live - 1, { kind: 'fenced', text: 'test' });
    expect(f.states()).toBe('UP');
    expect(f.bml.isLive(f.peer, 0, live)).toBe(true);
  });

  test('an epoch that was fenced before it connected is fenced again and never carries', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.bml.fence(f.peer, 0, 5, { kind: 'fenced', text: 'test' });
    f.connected(0, 5);
    expect(f.rails[0].epoch).toBe(0);
    expect(f.endpoints[0].fences).toHaveLength(2);
  });
});

describe('dialling', () => {
  test('the lower rank dials, the higher one waits', () => {
    const lower = new FakeRails([{}], { rank: 0 }, 1);
    const higher = new FakeRails([{}], { rank: 1 }, 0);
    lower.turn();
    higher.turn();
    expect(lower.endpoints[0].dialled).toEqual([1]);
    expect(higher.endpoints[0].dialled).toEqual([]);
    higher.connected(0, 1);
    expect(higher.states()).toBe('PROBING');
  });

  describe('a higher rank that needs the peer first', () => {
    const asking = (rails: Partial<RailAttributes>[] = [{}]) => new FakeRails(rails, { rank: 1 }, 0, true);
    const answer = (f: FakeRails, rail: number, kind: 'asked' | 'refused') =>
      f.bml.handleConnectFailed(f.endpoints[rail], f.endpoints[rail].dialled.at(-1) as number, { kind, text: 'test' }, undefined, f.nowMs);

    test('asks over one rail, that of the class which carries first, and no more once the peer has answered', () => {
      const f = asking([{ exclusivity: 100 }, { exclusivity: 200 }, { exclusivity: 200 }]);
      for (let i = 0; i < 20; i++) f.turn();
      expect(f.endpoints.map(({ dialled }) => dialled.length)).toEqual([0, 1, 0]);
      answer(f, 1, 'asked');
      for (let i = 0; i < 500; i++) f.turn();
      expect(f.endpoints.map(({ dialled }) => dialled.length)).toEqual([0, 1, 0]);
      expect(f.states()).toBe('DOWN DOWN DOWN');
    });

    test('asks over the others in turn while it is not heard, with pauses', () => {
      const f = asking([{}, {}]);
      const tried: number[] = [];
      for (let i = 0; i < 400; i++) {
        const before = f.endpoints.map(({ dialled }) => dialled.length);
        f.turn();
        const rail = f.endpoints.findIndex(({ dialled }, at) => dialled.length > before[at]);
        if (rail === -1) continue;
        tried.push(rail);
        answer(f, rail, 'refused');
      }
      expect(tried.slice(0, 6)).toEqual([0, 1, 0, 1, 0, 1]);
      expect(tried.length).toBeLessThan(100);
    });

    test('uses no number up: the epoch is the peer’s to choose, and its connection ends the asking', () => {
      const f = asking([{}, {}]);
      f.turn();
      expect(f.rails[0].state).toBe('CONNECTING');
      f.connected(0, 1);
      expect(f.states()).toBe('PROBING DOWN');
      expect(f.rails[0].attempt).toBe(undefined);
      for (let i = 0; i < 100; i++) f.turn();
      expect(f.endpoints[1].dialled).toEqual([]);
    });

    test('the peer that is asked dials again without waiting for the rest of its pause', () => {
      const f = new FakeRails([{}]);
      while (f.endpoints[0].dialled.length < 8) {
        f.turn();
        if (f.rails[0].attempt !== undefined) answer(f, 0, 'refused');
      }
      const { nextDialMs } = f.rails[0];
      f.bml.handleAsked(f.peer, 0, f.nowMs);
      expect(f.rails[0].nextDialMs).toBeLessThan(nextDialMs);
    });
  });

  test('pauses double up to their maximum, with less than 25 % of jitter, and are over after a success', () => {
    const f = new FakeRails([{}]);
    const at: number[] = [];
    let known = 0;
    for (let i = 0; i < 400; i++) {
      f.turn();
      if (f.endpoints[0].dialled.length === known) continue;
      known = f.endpoints[0].dialled.length;
      at.push(f.nowMs);
      f.bml.handleConnectFailed(f.endpoints[0], f.endpoints[0].dialled.at(-1) as number, { kind: 'error', text: 'no' }, undefined, f.nowMs);
    }
    const pauses = at.slice(1).map((time, i) => time - at[i]);
    for (const [i, pause] of pauses.entries()) {
      const wanted = Math.min(400, 50 * 2 ** i);
      expect(pause).toBeGreaterThanOrEqual(wanted * 0.75);
      // A turn takes 10 ms.
      expect(pause).toBeLessThanOrEqual(wanted + 20);
    }
    expect(f.endpoints[0].dialled).toEqual([...f.endpoints[0].dialled].sort((a, b) => a - b));
    f.run(400);
    f.up(0);
    f.down(0);
    const before = f.endpoints[0].dialled.length;
    f.run(60);
    expect(f.endpoints[0].dialled.length).toBe(before + 1);
  });

  test('a port that comes and goes every 10 ms is dialled ever more rarely beside a rail that carries', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    f.run(200);
    const flapFor = (turns: number) => {
      const before = f.endpoints[0].dialled.length;
      for (let i = 0; i < turns; i++) {
        const dialled = f.endpoints[0].dialled.length;
        f.bml.handleReachable(f.endpoints[0], f.nowMs);
        f.turn();
        if (f.endpoints[0].dialled.length === dialled) continue;
        f.connected(0);
        f.down(0, 'carrier');
      }
      return f.endpoints[0].dialled.length - before;
    };
    f.down(0, 'carrier');
    // Back at once after the first loss, then 50 ms from attempt to attempt, then held for 100, 200, 400 and 1000 ms.
    expect(flapFor(1)).toBe(1);
    expect(flapFor(100)).toBeLessThanOrEqual(6);
    expect(flapFor(300)).toBeLessThanOrEqual(3);
    // Without a rail beside it there is nothing to spare.
    f.down(1);
    f.bml.handleReachable(f.endpoints[0], f.nowMs);
    const before = f.endpoints[0].dialled.length;
    f.turn();
    expect(f.endpoints[0].dialled.length).toBe(before + 1);
  });

  test('a stale epoch is gone above at once', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.bml.handleConnectFailed(f.endpoints[0], 1, { kind: 'refused', text: 'STALE_EPOCH' }, 41, f.nowMs);
    f.run(100);
    expect(f.endpoints[0].dialled).toEqual([1, 42]);
  });

  test('a number far above uses no numbers up, and one below says where to go on', () => {
    const f = new FakeRails([{}]);
    const staleAt = (highest: number) => {
      const epoch = f.endpoints[0].dialled.at(-1) as number;
      f.bml.handleConnectFailed(f.endpoints[0], epoch, { kind: 'refused', text: 'STALE_EPOCH' }, highest, f.nowMs);
      f.run(600);
      return f.endpoints[0].dialled.at(-1) as number;
    };
    f.turn();
    expect(staleAt(0xffff_ffff)).toBe(1 + 2 ** 20 + 1);
    expect(staleAt(0xffff_ffff)).toBe(2 ** 21 + 3);
    // The peer never admitted any of these.
    expect(staleAt(7)).toBe(8);
    f.up(0);
    f.down(0);
    f.run(600);
    expect(f.endpoints[0].dialled.at(-1)).toBe(9);
    // Never below an epoch that is over here.
    expect(staleAt(3)).toBe(9);
  });

  test('an attempt without an answer is given up', () => {
    const f = new FakeRails([{}]);
    f.run(6000);
    expect(f.endpoints[0].cancelled).toBeGreaterThan(0);
    expect(f.rails[0].lastReason?.kind).toBe('timeout');
  });

  test('a rail whose first probe is not answered, while a sibling says that the peer polls, goes down again', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(1);
    f.connected(0);
    f.run(5000);
    expect(f.endpoints[0].probes.length).toBeGreaterThan(2);
    expect(f.endpoints[0].fences[0].reason.kind).toBe('timeout');
    expect(f.moves.filter((move) => move.startsWith('0')).slice(0, 3)).toEqual([
      '0 DOWN>CONNECTING',
      '0 CONNECTING>PROBING',
      '0 PROBING>DOWN',
    ]);
  });

  test('a peer that begins to compute while a rail comes up loses it not: it would have lost the rail on its own side, where it is up', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(1);
    f.connected(0);
    f.peerPolls = false;
    f.run(10_000);
    expect(f.endpoints.flatMap(({ fences }) => fences)).toEqual([]);
    expect(f.states()).toMatch(/^PROBING /);
    f.peerPolls = true;
    f.answering.add(0);
    f.run(200);
    expect(f.states()).toBe('UP UP');
    expect(f.endpoints.flatMap(({ fences }) => fences)).toEqual([]);
  });

  test('a first probe that nobody answers on the only rail is left to a handshake beside it', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.connected(0);
    f.run(5000);
    expect(f.states()).toBe('PROBING');
    expect(f.endpoints[0].dialled.length).toBeGreaterThan(1);
    const newer = f.endpoints[0].dialled.at(-1) as number;
    f.down(0, 'replaced');
    f.up(0);
    expect(f.rails[0]).toMatchObject({ state: 'UP', epoch: newer, highestDead: newer - 1 });
  });

  test('a flapping rail is held down for longer each time, up to the maximum', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    const pauses: number[] = [];
    for (let i = 0; i < 8; i++) {
      f.down(0);
      const lostAt = f.nowMs;
      const dialled = f.endpoints[0].dialled.length;
      while (f.endpoints[0].dialled.length === dialled) f.turn();
      pauses.push(f.nowMs - lostAt);
      f.up(0);
    }
    expect(pauses[0]).toBeLessThanOrEqual(60);
    expect(pauses[7]).toBeGreaterThanOrEqual(1000);
    expect(pauses[7]).toBeLessThanOrEqual(1010);
    for (let i = 3; i < 8; i++) expect(pauses[i]).toBeGreaterThanOrEqual(pauses[i - 1]);
    f.run(11_000);
    f.down(0);
    const dialled = f.endpoints[0].dialled.length;
    f.run(60);
    expect(f.endpoints[0].dialled.length).toBe(dialled + 1);
  });

  test('the time without a peer begins again with every rail that comes up, however short, and with everything that gets through', () => {
    const rails = new FakeRails([{}]);
    rails.run(500);
    expect(rails.peer.unreachableSinceAliveMs).toBeLessThan(100);
    // Up and lost between two looks at the time.
    rails.up(0);
    rails.down(0);
    rails.turn();
    expect(rails.peer.unreachableSinceAliveMs).toBe(rails.aliveMs);
    rails.run(500);
    expect(rails.aliveMs - rails.peer.unreachableSinceAliveMs).toBe(500);
    // The peer has the rail in its tables and sends over it; here its first probe is never answered.
    rails.answering.delete(0);
    rails.connected(0);
    rails.run(100);
    expect(rails.aliveMs - rails.peer.unreachableSinceAliveMs).toBe(600);
    rails.endpoints[0].counters.framesReceived++;
    rails.turn();
    expect(rails.states()).toBe('PROBING');
    expect(rails.peer.unreachableSinceAliveMs).toBe(rails.aliveMs);
    rails.run(200);
    expect(rails.aliveMs - rails.peer.unreachableSinceAliveMs).toBe(200);
  });
  test('a peer that left is dialled no more', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.bml.closePeer(f.peer);
    expect(f.endpoints[0].cancelled).toBe(1);
    const { length } = f.endpoints[0].dialled;
    f.run(1000);
    expect(f.endpoints[0].dialled).toHaveLength(length);
  });
});

describe('silence', () => {
  test('a rail that is silent while its sibling delivers is suspected, passed over, and fenced', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    f.answering.delete(0);
    f.endpoints[0].outstandingBytes = 100;
    f.run(280);
    expect(f.states()).toBe('SUSPECT UP');
    expect(f.indexes(f.peer.send)).toEqual([1]);
    f.run(400);
    expect(f.endpoints[0].fences[0].reason.kind).toBe('silent');
    expect(f.rails[0].isCarrying).toBe(false);
    expect(f.rails[1].state).toBe('UP');
  });

  test('a suspect rail on which something gets through is up again', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    f.answering.delete(0);
    f.endpoints[0].outstandingBytes = 100;
    f.run(280);
    expect(f.rails[0].state).toBe('SUSPECT');
    f.bml.handleReport(f.endpoints[0], f.rails[0].epoch, 10_000, f.peerAliveMs, f.aliveMs);
    expect(f.rails[0].state).toBe('UP');
    expect(f.endpoints[0].fences).toEqual([]);
  });

  test('a peer that computes loses no rail, however long; its rails are dialled beside', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    f.peerPolls = false;
    for (const endpoint of f.endpoints) endpoint.outstandingBytes = 100;
    f.run(30_000);
    expect(f.states()).toBe('SUSPECT SUSPECT');
    expect(f.endpoints.flatMap(({ fences }) => fences)).toEqual([]);
    expect(f.endpoints[0].dialled.length).toBeGreaterThan(2);
    expect(f.indexes(f.peer.send)).toEqual([0, 1]);
    f.peerPolls = true;
    f.run(300);
    for (const endpoint of f.endpoints) endpoint.outstandingBytes = 0;
    f.run(300);
    expect(f.states()).toBe('UP UP');
  });

  test('the answered handshake of a newer epoch ends the silent one', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.up(0);
    f.peerPolls = false;
    f.endpoints[0].outstandingBytes = 100;
    f.run(2000);
    const newer = f.endpoints[0].dialled.at(-1) as number;
    expect(newer).toBeGreaterThan(1);
    f.down(0, 'replaced');
    f.peerPolls = true;
    f.connected(0, newer);
    f.answerProbes(0);
    expect(f.rails[0]).toMatchObject({ state: 'UP', epoch: newer, highestDead: newer - 1 });
  });

  test('the acceptor of a silent rail does not dial', () => {
    const f = new FakeRails([{}], { rank: 1 }, 0);
    f.connected(0, 1);
    f.answering.add(0);
    f.answerProbes(0);
    f.peerPolls = false;
    f.endpoints[0].outstandingBytes = 100;
    f.run(5000);
    expect(f.states()).toBe('SUSPECT');
    expect(f.endpoints[0].dialled).toEqual([]);
  });

  test('a pause of our own is not the silence of the other side', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    for (const endpoint of f.endpoints) endpoint.outstandingBytes = 100;
    for (let i = 0; i < 5; i++) {
      f.turn(60_000);
      // What had come in is read in the same turn.
      for (const rail of [0, 1]) f.bml.handleReport(f.endpoints[rail], f.rails[rail].epoch, 1000 * (i + 1), f.peerAliveMs, f.aliveMs);
    }
    expect(f.states()).toBe('UP UP');
    expect(f.endpoints.flatMap(({ fences }) => fences)).toEqual([]);
  });

  test('idle rails are probed about every period, and a dead idle rail is found', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    f.run(10_000);
    for (const endpoint of f.endpoints) {
      expect(endpoint.probes.length).toBeGreaterThanOrEqual(8);
      expect(endpoint.probes.length).toBeLessThanOrEqual(14);
    }
    f.answering.delete(0);
    f.run(2000);
    expect(f.endpoints[0].fences[0]?.reason.kind).toBe('silent');
    expect(f.rails[1].state).toBe('UP');
  });

  test('a rail that checks itself is left alone', () => {
    const f = new FakeRails([{ liveness: 'self' }, {}]);
    f.turn();
    f.up(0, 1);
    const { length } = f.endpoints[0].probes;
    f.answering.delete(0);
    f.endpoints[0].outstandingBytes = 100;
    f.run(5000);
    expect(f.rails[0].state).toBe('UP');
    expect(f.endpoints[0].probes).toHaveLength(length);
  });

  test('an old answer, of another epoch or another question, proves nothing', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.connected(0);
    const [probe] = f.endpoints[0].probes;
    f.bml.handleProbeAnswered(f.endpoints[0], 99, probe, f.nowMs, f.aliveMs);
    f.bml.handleProbeAnswered(f.endpoints[0], 1, probe + 1, f.nowMs, f.aliveMs);
    expect(f.states()).toBe('PROBING');
    f.bml.handleProbeAnswered(f.endpoints[0], 1, probe, f.nowMs, f.aliveMs);
    expect(f.states()).toBe('UP');
  });
});

describe('measuring', () => {
  /** `perTurn` bytes are delivered every 10 ms, with more outstanding all the time or not. */
  function deliver(f: FakeRails, rail: number, turns: number, perTurn: number, keptBusy = true): void {
    for (let i = 0; i < turns; i++) {
      f.turn();
      f.endpoints[rail].outstandingBytes = keptBusy ? f.endpoints[rail].windowBytes : 0;
      f.bml.handleDelivered(f.endpoints[rail], perTurn, f.nowMs, f.aliveMs);
    }
  }

  test('the window follows what a busy rail delivers, within its bounds', () => {
    const f = new FakeRails([{}, {}, {}]);
    f.turn();
    f.up(0, 1, 2);
    deliver(f, 0, 40, 100_000);
    // 10 000 bytes per millisecond, for 20 ms.
    expect(f.endpoints[0].windowBytes).toBeGreaterThan(150_000);
    expect(f.endpoints[0].windowBytes).toBeLessThan(250_000);
    deliver(f, 1, 40, 100);
    expect(f.endpoints[1].windowBytes).toBe(64 * 1024);
    deliver(f, 2, 40, 10_000_000);
    expect(f.endpoints[2].windowBytes).toBe(1024 * 1024);
    expect(f.rails[0].deliveredBytes).toBe(40 * 100_000);
  });

  test('a rail may ask for a larger least window, and never gets more than the largest', () => {
    const f = new FakeRails([{}, { windowMinBytes: 300_000 }, { windowMinBytes: 5_000_000 }, { windowMinBytes: 1000 }]);
    const windows = () => f.endpoints.map(({ windowBytes }) => windowBytes);
    const least = [64 * 1024, 300_000, 1024 * 1024, 64 * 1024];
    expect(windows()).toEqual(least);
    f.turn();
    f.up(0, 1, 2, 3);
    for (const rail of least.keys()) deliver(f, rail, 40, 100);
    expect(windows()).toEqual(least);
  });

  test('fragments grow with the rail, as long as one takes no longer than pml_frag_us, and shrink with it', () => {
    const f = new FakeRails([{}, {}]);
    f.turn();
    f.up(0, 1);
    const [fast, slow] = f.rails;
    expect(fast.fragScale).toBe(1);
    // 40 000 bytes per millisecond: 10 000 in 250 us, which is two times the grid of 4096 and not four times.
    deliver(f, 0, 40, 400_000);
    expect(fast.fragScale).toBe(2);
    deliver(f, 0, 40, 40_000_000);
    expect(fast.fragScale).toBe(4);
    deliver(f, 0, 400, 10_000);
    expect(fast.fragScale).toBe(1);
    deliver(f, 1, 40, 10_000);
    expect(slow.fragScale).toBe(1);
  });

  test('a slower rail is followed down slowly, and a rail with little traffic is not taken for a slow one', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.up(0);
    deliver(f, 0, 40, 100_000);
    const { rate } = f.rails[0];
    deliver(f, 0, 20, 10, false);
    expect(f.rails[0].rate).toBe(rate);
    deliver(f, 0, 4, 10_000);
    expect(f.rails[0].rate).toBeLessThan(rate);
    expect(f.rails[0].rate).toBeGreaterThan(rate / 4);
    deliver(f, 0, 100, 10_000);
    expect(f.rails[0].rate).toBeLessThan(rate / 5);
  });

  test('BUSY takes the room away until onWritable', () => {
    const f = new FakeRails([{}]);
    f.turn();
    f.up(0);
    expect(f.rails[0].hasRoom).toBe(true);
    f.bml.handleBusy(f.rails[0]);
    expect(f.rails[0].hasRoom).toBe(false);
    f.bml.handleWritable(f.endpoints[0]);
    expect(f.rails[0].hasRoom).toBe(true);
    f.endpoints[0].outstandingBytes = f.endpoints[0].windowBytes;
    expect(f.rails[0].hasRoom).toBe(false);
  });
});
