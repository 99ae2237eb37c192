// Requests of point-to-point calls: persistent requests that begin again, arguments that are not buffers, signals that many share.
import { afterEach, expect, describe as group, test, vi } from 'vitest';
import { selfComponent } from '../../../src/btl/self/component.ts';
import type { Communicator } from '../../../src/mpi/communicator.ts';
import { Request } from '../../../src/mpi/request.ts';
import { createRuntime, type Runtime } from '../../../src/mpi/runtime.ts';
import type { Engine } from '../../../src/progress/engine.ts';

const open: Runtime[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((runtime) => runtime.finalize({ timeoutMs: 3000 }).catch(() => undefined)));
});

/** A world of one, over `self`. */
async function alone(): Promise<{ runtime: Runtime; comm: Communicator }> {
  const job = {
    rank: 0,
    size: 1,
    localRank: 0,
    localSize: 1,
    jobId: 'unit',
    incarnation: 5,
    hostId: 'h',
    secret: undefined,
    oob: undefined,
  };
  const runtime = await createRuntime(job, { modules: [selfComponent] });
  open.push(runtime);
  return { runtime, comm: runtime.world };
}

const afterTurns = () => new Promise<'pending'>((resolve) => setTimeout(() => resolve('pending'), 20));
const codeOf = (promise: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(promise).then(
    () => 'none',
    (error) => error.code ?? String(error),
  );

group('a persistent receive that is cancelled and begins again in the same turn', () => {
  for (const [name, wait] of [
    ['a promise', (request: Request) => request.promise()],
    ['waitAll', (request: Request) => Request.waitAll([request])],
    ['waitAny', (request: Request) => Request.waitAny([request])],
    ['waitSome', (request: Request) => Request.waitSome([request])],
  ] as const) {
    test(`does not settle ${name} before a message has come`, async () => {
      const { comm } = await alone();
      const buffer = new Uint8Array(2);
      const request = comm.recvInit(buffer, 0, 5);
      request.start();
      expect(request.cancel()).toBe(true);
      request.start();
      const waiting = wait(request);
      expect(await Promise.race([waiting, afterTurns()])).toBe('pending');
      expect(request.state).toBe('ACTIVE');
      await comm.send(Uint8Array.of(7, 8), 0, 5);
      await waiting;
      expect([...buffer]).toEqual([7, 8]);
    });
  }

  test('ends the promise of its first start with ERR_CANCELLED', async () => {
    const { comm } = await alone();
    const request = comm.recvInit(new Uint8Array(2), 0, 5).start();
    const first = codeOf(request.promise());
    const listed = codeOf(Request.waitAll([request]));
    request.cancel();
    request.start();
    expect(await Promise.race([first, afterTurns()])).toBe('ERR_CANCELLED');
    expect(await Promise.race([listed, afterTurns()])).toBe('ERR_IN_STATUS');
    const second = request.promise();
    await comm.send(Uint8Array.of(1, 2), 0, 5);
    expect((await second).bytes).toBe(2);
  });
});

group('arguments', () => {
  test('what is no buffer is ERR_BUFFER, also at the first call', async () => {
    const { comm } = await alone();
    for (const wrong of [undefined, null, 5, 'text', {}] as never[]) {
      expect(await codeOf(comm.send(wrong, 0)), String(wrong)).toBe('ERR_BUFFER');
      expect(await codeOf(comm.recv(wrong, 0)), String(wrong)).toBe('ERR_BUFFER');
      expect(() => comm.isend(wrong, 0), String(wrong)).toThrow(/ERR_BUFFER/);
    }
  });
});

group('many messages', () => {
  test('undelivered() names as many as there are', async () => {
    const { runtime } = await alone();
    // So many that they cannot be the arguments of one call.
    const lines = new Array<string>(300_000).fill('send');
    const { pml } = (runtime as unknown as { engine: Engine }).engine;
    vi.spyOn(pml, 'undelivered').mockReturnValueOnce(lines);
    expect(runtime.undelivered().length).toBe(lines.length);
  });
});

group('a signal', () => {
  test('that many receives share warns of no leak, ends each of them, and is let go', async () => {
    const { comm } = await alone();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    try {
      const control = new AbortController();
      const requests = Array.from({ length: 50 }, (_, tag) => comm.irecv(new Uint8Array(4), 0, tag, { signal: control.signal }));
      for (let tag = 0; tag < 50; tag += 2) comm.isend(new Uint8Array(4), 0, tag);
      await Request.waitAll(requests.filter((_, tag) => tag % 2 === 0));
      control.abort();
      const codes = await Promise.all(requests.map(codeOf));
      expect(codes).toEqual(requests.map((_, tag) => (tag % 2 === 0 ? 'none' : 'ERR_ABORTED')));
      await afterTurns();
      expect(warnings).toEqual([]);
    } finally {
      process.off('warning', onWarning);
    }
  });
});
