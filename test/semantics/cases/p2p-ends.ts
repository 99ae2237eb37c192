// Cases of the point-to-point suite: calls that a timeout or a signal ends early, and what happens to their buffers. A buffer is
// overwritten as soon as its call has ended: anything that the library reads from it after that arrives damaged.
import { strict as assert } from 'node:assert';
import { vector } from '../../../src/mpi/buffers.ts';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import type { CallOptions } from '../../../src/mpi/constants.ts';
import { audit, fails, fill, inPair } from '../../support/p2p-audit.ts';
import type { P2pCase } from '../p2p-suite.ts';

/** Longer than the eager limit: short messages are copied at once, and their sends are over. */
const LENGTHS = [5000, 70_001, 1_500_000];

type Send = (comm: Communicator, data: Uint8Array<ArrayBuffer>, dest: number, tag: number, options: CallOptions) => PromiseLike<unknown>;
const SENDS: readonly [name: string, send: Send][] = [
  ['send', (comm, data, dest, tag, options) => comm.send(data, dest, tag, options)],
  ['ssend', (comm, data, dest, tag, options) => comm.ssend(data, dest, tag, options)],
  ['isend', (comm, data, dest, tag, options) => comm.isend(data, dest, tag, options)],
  ['issend', (comm, data, dest, tag, options) => comm.issend(data, dest, tag, options)],
  ['send of two pieces', (comm, data, dest, tag, options) => comm.send([data.subarray(0, 77), data.subarray(77)], dest, tag, options)],
  ['send of a vector', (comm, data, dest, tag, options) => comm.send(vector(data, 1, data.length, data.length), dest, tag, options)],
];

const REUSED = 0xee;

export const END_CASES: readonly P2pCase[] = [
  {
    name: 'a send that times out gives its buffer back at once, and its message arrives all the same',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          let tag = 0;
          for (const bytes of LENGTHS) {
            for (const [, send] of SENDS) {
              const data = fill(bytes, tag);
              await fails('ERR_TIMEOUT', send(comm, data, peer, tag, { timeoutMs: 5 }));
              data.fill(REUSED);
              tag++;
            }
          }
          await meet();
          await meet();
        },
        async ({ comm, peer, meet }) => {
          await meet();
          let tag = 0;
          for (const bytes of LENGTHS) {
            for (const [name] of SENDS) {
              const data = new Uint8Array(bytes);
              await comm.recv(data, peer, tag);
              audit(data, tag, `${name} of ${bytes} bytes`);
              tag++;
            }
          }
          await meet();
        },
      ),
  },
  {
    name: 'a signal ends sends whose data is on its way: every byte that arrives is the one that was sent',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          for (let round = 0; round < 12; round++) {
            await meet();
            const control = new AbortController();
            const data = fill(1_500_000, round);
            const sending = Promise.resolve(SENDS[round % SENDS.length][1](comm, data, peer, round, { signal: control.signal }));
            const ended = sending.then(
              () => data.fill(REUSED),
              (error) => {
                data.fill(REUSED);
                assert.equal(error.code, 'ERR_ABORTED', String(error));
              },
            );
            // At another moment each time.
            if (round % 3 > 0) for (let turn = 0; turn < round; turn++) await world.sleep(0.1);
            control.abort();
            await ended;
          }
        },
        async ({ comm, peer, meet }) => {
          for (let round = 0; round < 12; round++) {
            const data = new Uint8Array(1_500_000);
            const receiving = comm.irecv(data, peer, round);
            await meet();
            await receiving;
            audit(data, round, `round ${round}`);
          }
        },
      ),
  },
  {
    name: 'an object whose send times out arrives, with its large memory as it was',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          const memory = fill(300_000, 3);
          await fails('ERR_TIMEOUT', comm.sendObject({ memory, name: 'x'.repeat(9000) }, peer, 1, { timeoutMs: 5 }));
          memory.fill(REUSED);
          await meet();
          await meet();
        },
        async ({ comm, peer, meet }) => {
          await meet();
          const { data } = await comm.recvObject<{ memory: Uint8Array; name: string }>(peer, 1);
          audit(data.memory, 3, 'the memory of the object');
          assert.equal(data.name.length, 9000);
          await meet();
        },
      ),
  },
  {
    name: 'sendrecv() that times out ends both halves, and both buffers may be used again',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          const data = fill(100_000, 1);
          const into = new Uint8Array(10);
          await fails('ERR_TIMEOUT', comm.sendrecv(data, peer, 1, into, peer, 2, { timeoutMs: 5 }));
          data.fill(REUSED);
          await meet();
          // The receive was taken back: this message is for the next one.
          const { bytes } = await comm.recv(into, peer, 2);
          assert.equal(bytes, 10);
          audit(into, 2, 'the next message');
          await meet();
        },
        async ({ comm, peer, meet }) => {
          await meet();
          const data = new Uint8Array(100_000);
          await Promise.all([comm.send(fill(10, 2), peer, 2), comm.recv(data, peer, 1)]);
          audit(data, 1, 'what the exchange had sent');
          await meet();
        },
      ),
  },
  {
    name: 'sendrecv() whose receive is truncated settles when its send has ended, too',
    ranks: 2,
    run: (world) =>
      inPair(
        world,
        async ({ comm, peer, meet }) => {
          const data = fill(100_000, 1);
          let settled = false;
          const exchange = comm.sendrecv(data, peer, 1, new Uint8Array(4), peer, 2).finally(() => {
            settled = true;
            data.fill(REUSED);
          });
          const failed = fails('ERR_TRUNCATE', exchange);
          await meet();
          await world.sleep(20);
          assert.equal(settled, false, 'nobody has received what it sends');
          await meet();
          await failed;
        },
        async ({ comm, peer, meet }) => {
          await comm.send(fill(16, 5), peer, 2);
          await meet();
          await meet();
          const data = new Uint8Array(100_000);
          await comm.recv(data, peer, 1);
          audit(data, 1, 'what the exchange had sent');
        },
      ),
  },
  {
    name: 'an option that no call knows is an error',
    ranks: 1,
    run: async ({ comms: [comm], runtimes: [runtime] }) => {
      const wrong = { timeoutMS: 5 } as never;
      const data = new Uint8Array(4);
      for (const call of [
        () => comm.send(data, 0, 1, wrong),
        () => comm.ssend(data, 0, 1, wrong),
        () => comm.isend(data, 0, 1, wrong),
        () => comm.issend(data, 0, 1, wrong),
        () => comm.sendSync(data, 0, 1, wrong),
        () => comm.ssendSync(data, 0, 1, wrong),
        () => comm.recv(data, 0, 1, wrong),
        () => comm.irecv(data, 0, 1, wrong),
        () => comm.recvSync(data, 0, 1, wrong),
        () => comm.recvSync(data, 0, 1, { signal: new AbortController().signal } as never),
        () => comm.sendrecv(data, 0, 1, data, 0, 1, wrong),
        () => comm.sendrecvSync(data, 0, 1, data, 0, 1, wrong),
        () => comm.sendrecvReplace(data, 0, 1, 0, 1, wrong),
        () => comm.sendrecvReplaceSync(data, 0, 1, 0, 1, wrong),
        () => comm.probe(0, 1, wrong),
        () => comm.probeSync(0, 1, wrong),
        () => comm.mprobe(0, 1, wrong),
        () => comm.mprobeSync(0, 1, wrong),
        () => comm.sendObject(1, 0, 1, wrong),
        () => comm.sendObjectSync(1, 0, 1, wrong),
        () => comm.recvObject(0, 1, wrong),
        () => comm.recvObjectSync(0, 1, wrong),
        () => comm.messages(0, 1, wrong),
        () => comm.send(data, 0, 1, 7 as never),
        () => runtime.finalize(wrong),
      ]) {
        const error = await fails('ERR_ARG', call);
        assert.match(error.message, /options\.(timeoutMS|signal) is no option of this call; expected |options is 7/);
      }
      assert.equal(comm.iprobe(), undefined, 'nothing was sent');
    },
  },
];
