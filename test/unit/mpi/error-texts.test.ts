// Texts of errors that people meet when arguments do not fit: each says what was given, what was expected, and what to do.
import { afterAll, beforeAll, expect, describe as group, test } from 'vitest';
import { selfComponent } from '../../../src/btl/self/component.ts';
import type { MultirailError } from '../../../src/errors.ts';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { Op } from '../../../src/mpi/op.ts';
import { createRuntime, type Runtime } from '../../../src/mpi/runtime.ts';

let runtime: Runtime;
let comm: Communicator;

beforeAll(async () => {
  const place = { rank: 0, size: 1, localRank: 0, localSize: 1, jobId: 'unit', incarnation: 5, hostId: 'h' };
  runtime = await createRuntime({ ...place, secret: undefined, oob: undefined }, { modules: [selfComponent] });
  comm = runtime.world;
});
afterAll(() => runtime.finalize());

/** What a call throws, or rejects with. */
async function errorOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    return (error as MultirailError).message;
  }
  return 'no error';
}

group('an error says what was given, what was expected, and what to do', () => {
  test.each<[string, () => unknown, string]>([
    [
      'a communicator is compared to its group',
      () => comm.compare(comm.group as never),
      'ERR_COMM: other is an object of class Group; expected a Communicator, such as mpi.world (a Group has a compare() of its own)',
    ],
    [
      'no values to scatter',
      () => comm.scatterObject(null),
      'ERR_COUNT: values is null; expected an array with one value for each of the ranks, 1 in all',
    ],
    [
      'too many values',
      () => comm.alltoallObject(['a', 'b']),
      'ERR_COUNT: values has 2 entries; expected 1, one for each rank of the communicator',
    ],
    [
      'no buffers',
      () => comm.alltoallw('text' as never, []),
      'ERR_COUNT: sends is "text"; expected an array with one buffer for each of the ranks, 1 in all',
    ],
    [
      'too many counts',
      () => comm.gatherv(new Uint8Array(1), new Uint8Array(3), [1, 1, 1]),
      'ERR_COUNT: counts has 3 entries; expected 1, one for each rank of the communicator',
    ],
    [
      'no displacements',
      () => comm.gatherv(new Uint8Array(1), new Uint8Array(3), [1], []),
      'ERR_COUNT: displs has 0 entries; expected 1, one for each rank of the communicator, or null where the parts follow one another',
    ],
    [
      'arrays of two classes',
      () => comm.allreduce(new Uint8Array(3), new Float64Array(3)),
      'ERR_BUFFER: send is a Uint8Array and recv a Float64Array; expected two arrays of the same class: a reduction combines element by element',
    ],
    [
      'bytes and an array',
      () => comm.scan(new ArrayBuffer(24), new Float64Array(3), Op.MAX),
      'ERR_BUFFER: send is a buffer of bytes and recv a Float64Array; expected two arrays of the same class: a reduction combines element by element',
    ],
    [
      'a persistent request that is under way',
      () => {
        const request = comm.recvInit(new Uint8Array(1), 0, 1).start();
        try {
          request.start();
        } finally {
          request.cancel();
        }
      },
      'ERR_REQUEST: start() was called while the request is under way; expected one that has ended: await it, or call waitSync(), first',
    ],
    [
      'a message that is received twice',
      async () => {
        comm.isend(new Uint8Array(1), 0, 2);
        const message = await comm.mprobe(0, 2);
        await message.recvBytes();
        await message.recv(new Uint8Array(1));
      },
      'ERR_REQUEST: this Message was received before; expected one that was not: each is received once, and mprobe() takes the next',
    ],
    [
      'elements of no length',
      async () => (await comm.sendrecv(new Uint8Array(1), 0, 3, new Uint8Array(1), 0, 3)).count('Float64Array' as never),
      'ERR_ARG: type is "Float64Array"; expected a class of typed arrays, such as Float64Array, or the bytes of one element',
    ],
    [
      'a group without the rank that calls',
      () => comm.createGroup(comm.group.exclude([0])),
      'ERR_GROUP: group lacks rank 0 of the world, which calls createGroup(); expected one with it: only the ranks of the group make this call',
    ],
  ])('%s', async (_, call, text) => {
    expect(await errorOf(call)).toBe(text);
  });
});
