// Cases of the point-to-point suite that need their own faults, or a peer that is gone.
import { strict as assert } from 'node:assert';
import { ANY_SOURCE } from '../../../src/mpi/constants.ts';
import type { PeerEvent, RailEvent, RailInfo } from '../../../src/mpi/views.ts';
import { arrived, audit, fails, fill, pairOf, until } from '../../support/p2p-audit.ts';
import type { P2pWorld } from '../../support/p2p-worlds.ts';
import type { P2pCase } from '../p2p-suite.ts';

/** All rails between the two ranks are up. They are made when they are first used. */
async function allUp(world: P2pWorld): Promise<void> {
  const { a, b, toA, toB } = pairOf(world);
  await Promise.all([a.send(new Uint8Array(1), toB, 3), b.recv(new Uint8Array(1), toA, 3)]);
  const isUp = (rails: readonly RailInfo[]): boolean =>
    rails.some(({ transport }) => transport !== 'self') && rails.every(({ state }) => state === 'UP');
  await until(world, () => world.runtimes.every((runtime) => isUp(runtime.rails())), 'all rails are up');
}

/** Ping-pong of both protocols; returns once it went through. */
async function talk(world: P2pWorld, seed: number): Promise<void> {
  const { a, b, toA, toB } = pairOf(world);
  for (const bytes of [100, 60_000, 1_000_000]) {
    const there = new Uint8Array(bytes);
    const back = new Uint8Array(bytes);
    await Promise.all([
      a.send(fill(bytes, seed), toB, 1),
      b.recv(there, toA, 1),
      b.send(fill(bytes, seed + 1), toA, 2),
      a.recv(back, toB, 2),
    ]);
    audit(there, seed, `${bytes} bytes there`);
    audit(back, seed + 1, `${bytes} bytes back`);
  }
}

/** Why they are not run with each rank in a process of its own. */
const BREAKS = 'it breaks and mends both ends of a rail at once; rails between processes are broken by tests of their own';

export const FAULT_CASES: readonly P2pCase[] = [
  {
    name: '88 both rails down in the middle of traffic, then one back',
    ranks: 2,
    needsFaults: true,
    oneProcess: BREAKS,
    run: async (world) => {
      await allUp(world);
      await talk(world, 1);
      const talking = talk(world, 3);
      world.faults?.cut('all');
      await world.sleep(300);
      world.faults?.mend(1);
      await talking;
      world.faults?.mend('all');
      await talk(world, 5);
    },
  },
  {
    name: '89 one direction of a rail is silent',
    ranks: 2,
    needsFaults: true,
    oneProcess: BREAKS,
    run: async (world) => {
      await allUp(world);
      world.faults?.cutOneWay(1);
      await talk(world, 1);
      await talk(world, 3);
      world.faults?.mend('all');
      await talk(world, 5);
    },
  },
  {
    name: '90 a rail is lost and restored several times: events say so, nothing is lost',
    ranks: 2,
    needsFaults: true,
    oneProcess: BREAKS,
    run: async (world) => {
      const events: RailEvent[] = [];
      world.runtimes[0].on('rail', (event) => events.push(event));
      await allUp(world);
      for (let round = 0; round < 3; round++) {
        const talking = talk(world, round * 10);
        world.faults?.cut(1);
        await talking;
        // A rail that carries nothing is found out when it is probed or used: keep it busy.
        let seed = 1000;
        while (events.filter(({ type, rail }) => type === 'lost' && rail === 1).length <= round) await talk(world, seed++);
        world.faults?.mend(1);
        await allUp(world);
      }
      await until(
        world,
        () => events.filter(({ type, rail }) => type === 'restored' && rail === 1).length >= 3,
        'three events of restoration',
      );
      assert(events.some(({ type }) => type === 'last' || type === 'degraded'));
      assert(events.every((event) => event.rank === 0 && event.peer === 1 && event.key !== ''));
    },
  },
  {
    name: '66 to 68, 94: a dead peer ends its own requests and nobody else’s',
    ranks: 3,
    calmOnly: 'the death of a process is told by the launcher',
    oneProcess: 'its rank is not killed, its death is told; ranks that are killed have tests of their own',
    run: async (world) => {
      const { comms, hub, runtimes } = world;
      const events: PeerEvent[] = [];
      for (const runtime of runtimes) runtime.on('peer', (event) => events.push(event));
      await comms[0].send(fill(10, 1), 1, 1);
      await comms[1].recv(new Uint8Array(10), 0, 1);
      const posted = comms[0].irecv(new Uint8Array(10), 2, 1);
      const probing = comms[0].probe(2, 1);
      const sending = comms[0].issend(fill(10, 1), 2, 1);
      const unawaited = comms[0].irecv(new Uint8Array(10), 2, 1);
      const wildcard = comms[0].irecv(new Uint8Array(10), ANY_SOURCE, 4);
      hub.exited(2, { signal: 'SIGKILL' });
      const error = await fails('ERR_PROC_FAILED', posted);
      assert.deepEqual([error.rank, error.peer], [0, 2]);
      assert.match(error.message, /SIGKILL/);
      await fails('ERR_PROC_FAILED', probing);
      await fails('ERR_PROC_FAILED', sending);
      assert.equal(unawaited.error?.code, 'ERR_PROC_FAILED');
      // A new call does not throw for a dead peer, awaiting it does.
      await fails('ERR_PROC_FAILED', comms[0].isend(fill(10, 1), 2, 1));
      await fails('ERR_PROC_FAILED', comms[0].recv(new Uint8Array(10), 2, 1));
      await Promise.all([comms[1].send(fill(10, 3), 0, 4), wildcard]);
      await until(world, () => events.length >= 2, 'both survivors were told');
      assert.deepEqual(events.map(({ rank, peer }) => `${rank} ${peer}`).sort(), ['0 2', '1 2']);
      // The dead rank lives on in this process: it is told what the launcher tells a survivor, and leaves.
      for (const rank of [0, 1]) hub.exitedFor(2, rank);
    },
  },
  {
    name: '66 nobody is left: receives and probes of any source end, and what had come before is received',
    ranks: 3,
    calmOnly: 'the death of a process is told by the launcher',
    oneProcess: 'its ranks are not killed, their death is told; ranks that are killed have tests of their own',
    run: async (world) => {
      const { comms, hub } = world;
      const [comm] = comms;
      await comms[1].send(fill(10, 1), 0, 1);
      await arrived(world, comm, 1, 1);
      const posted = comm.irecv(new Uint8Array(10), ANY_SOURCE, 4);
      const unawaited = comm.irecv(new Uint8Array(10), ANY_SOURCE, 5);
      const probing = comm.probe(ANY_SOURCE, 4);
      const taking = comm.mprobe(ANY_SOURCE, 4);
      const streaming = comm.messages(ANY_SOURCE, 4).next();
      hub.exitedFor(0, 1);
      await fails('ERR_PROC_FAILED', comm.recv(new Uint8Array(10), 1, 9));
      assert.equal(posted.done, false, 'rank 2 is alive');
      hub.exitedFor(0, 2);
      const error = await fails('ERR_PROC_FAILED', posted);
      assert.match(error.message, /no rank is left in world/);
      await fails('ERR_PROC_FAILED', probing);
      await fails('ERR_PROC_FAILED', taking);
      await fails('ERR_PROC_FAILED', streaming);
      assert.equal(unawaited.error?.code, 'ERR_PROC_FAILED');
      await fails('ERR_PROC_FAILED', comm.recv(new Uint8Array(10), ANY_SOURCE, 8));
      await fails('ERR_PROC_FAILED', comm.probe(ANY_SOURCE, 7));
      const data = new Uint8Array(10);
      assert.equal((await comm.probe()).source, 1);
      assert.equal((await comm.recv(data)).source, 1);
      audit(data, 1, 'what came before the death');
      for (const rank of [1, 2]) hub.exitedFor(rank, 0);
    },
  },
];
