// The runtime: start-up errors, events and channels, what its end does to calls under way, and two worlds in one process.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, expect, describe as group, test } from 'vitest';
import type { BtlComponent } from '../../../src/btl/btl.ts';
import { selfComponent } from '../../../src/btl/self/component.ts';
import { tcpComponent } from '../../../src/btl/tcp/component.ts';
import { wsComponent } from '../../../src/btl/ws/component.ts';
import { MultirailError } from '../../../src/errors.ts';
import { ANY_SOURCE } from '../../../src/mpi/constants.ts';
import { createRuntime, type Runtime, type RuntimeOob } from '../../../src/mpi/runtime.ts';
import type { PeerEvent } from '../../../src/mpi/views.ts';
import { ParamTable } from '../../../src/params.ts';
import { LOOPBACK_PARAMS, MemoryOobHub, makeRuntimes, SMALL_PARAMS } from '../../support/p2p-worlds.ts';

const open: Runtime[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((runtime) => runtime.finalize({ timeoutMs: 3000 }).catch(() => undefined)));
});

async function pair(components: readonly BtlComponent[] = [tcpComponent], more: Record<string, string> = {}) {
  const params = new ParamTable({ ...SMALL_PARAMS, ...LOOPBACK_PARAMS, ...more });
  const { runtimes, hub } = await makeRuntimes(2, params, () => components);
  open.push(...runtimes);
  return { runtimes, hub, a: runtimes[0].world, b: runtimes[1].world };
}

async function codeOf(promise: PromiseLike<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof MultirailError ? error.code : String(error);
  }
  return 'none';
}

function job(rank: number, size: number, oob: RuntimeOob | undefined) {
  const secret = new TextEncoder().encode('the secret of this test');
  return { rank, size, localRank: rank, localSize: size, jobId: 'unit', incarnation: 5 + rank, hostId: 'h', secret, oob };
}

group('start-up', () => {
  test('a world of one needs no channel', async () => {
    const runtime = await createRuntime(job(0, 1, undefined), { modules: [selfComponent] });
    const data = new Uint8Array(2);
    await Promise.all([runtime.world.send(Uint8Array.of(4, 5), 0), runtime.world.recv(data, 0)]);
    expect([...data]).toEqual([4, 5]);
    expect(runtime.rails()).toMatchObject([{ peer: 0, rail: 0, key: 'self', transport: 'self', state: 'UP' }]);
    await runtime.finalize();
    await runtime.finalize();
  });

  test('no rail in common: both ranks, what each has, and what was left out', async () => {
    const hub = new MemoryOobHub(2);
    const params = new ParamTable(LOOPBACK_PARAMS);
    const without = { params, modules: [selfComponent, wsComponent], excluded: { tcp: 'for a reason' } };
    const ended = await Promise.allSettled([
      createRuntime(job(0, 2, hub.client(0)), { params, modules: [selfComponent, tcpComponent] }),
      createRuntime(job(1, 2, hub.client(1)), without),
    ]);
    for (const [rank, result] of ended.entries()) {
      const { reason } = result as PromiseRejectedResult;
      expect(reason).toMatchObject({ code: 'ERR_INIT', rank });
      expect(reason.message).toMatch(/no transport in common/);
      expect(reason.message).toMatch(/rank 0 has self, tcp/i);
      expect(reason.message).toMatch(/rank 1 has self, ws, and not tcp \(for a reason\)/i);
    }
  });

  test('a transport that does not open is left out, and others go on', async () => {
    const broken: BtlComponent = {
      ...wsComponent,
      create: (context) => {
        const module = wsComponent.create(context);
        module.open = () => Promise.reject(new MultirailError('ERR_INIT', 'no such thing here'));
        return module;
      },
    };
    const { runtimes, a, b } = await pair([broken, tcpComponent]);
    await Promise.all([a.send(new Uint8Array(9), 1), b.recv(new Uint8Array(9), 0)]);
    expect(new Set(runtimes[0].rails().map(({ transport }) => transport))).toEqual(new Set(['self', 'tcp']));
  });

  test('another version and a damaged entry are refused by name', async () => {
    for (const [entry, text] of [
      [{ version: 99 }, /rank 1 runs another version .* 99/],
      [{ version: 1, btl: {} }, /entry of rank 1 is damaged/],
      [null, /rank 1 published no address entry/],
    ] as const) {
      const hub = new MemoryOobHub(2);
      const other = hub.client(1).modex(entry);
      const starting = createRuntime(job(0, 2, hub.client(0)), {
        params: new ParamTable(LOOPBACK_PARAMS),
        modules: [selfComponent, tcpComponent],
      });
      await expect(starting).rejects.toThrow(text);
      await other;
    }
  });
});

group('addresses that are published again', () => {
  const address = { address: '127.0.0.1', family: 4, prefix: 8, port: 1, linkLocal: false };
  const face = { name: 'lo', loopback: true, standby: false, addresses: [address] };
  const faces = (...interfaces: unknown[]) => ({ interfaces, links: 1 });

  test.each<[string, (entry: Record<string, unknown>) => unknown]>([
    ['no entry', () => null],
    ['of another version', (entry) => ({ ...entry, version: 99 })],
    ['of another process', (entry) => ({ ...entry, incarnation: 1e9 })],
    ['of another host', (entry) => ({ ...entry, hostId: 'elsewhere' })],
    ['no transports', (entry) => ({ ...entry, btl: 5 })],
    ...[
      5,
      null,
      'text',
      [],
      {},
      { interfaces: 5, links: 1 },
      { interfaces: [], links: 0 },
      faces(5),
      faces(null),
      faces({}),
      faces({ ...face, name: 5 }),
      faces({ ...face, name: 'x'.repeat(65) }),
      faces({ ...face, loopback: 'yes' }),
      faces({ ...face, addresses: 5 }),
      faces({ ...face, addresses: [5] }),
      ...[5, null, 'no address', '127.0.0.1%lo', '::1'].map((bad) => faces({ ...face, addresses: [{ ...address, address: bad }] })),
      ...[0, 5].map((bad) => faces({ ...face, addresses: [{ ...address, address: 'none', family: bad }] })),
      ...[-1, 33, 1.5, '8'].map((bad) => faces({ ...face, addresses: [{ ...address, prefix: bad }] })),
      ...[0, 65_536, '80'].map((bad) => faces({ ...face, addresses: [{ ...address, port: bad }] })),
      { ...faces(face), incarnation: 'x' },
      Object.fromEntries([['interfaces', Array.from({ length: 257 }, () => face)]]),
    ].map((tcp): [string, (entry: Record<string, unknown>) => unknown] => [
      `tcp: ${JSON.stringify(tcp)?.slice(0, 90)}`,
      (entry) => ({ ...entry, btl: { ...(entry.btl as object), tcp } }),
    ]),
  ])('are ignored where they cannot be right: %s', async (_name, change) => {
    const lines: string[] = [];
    const hub = new MemoryOobHub(2);
    const params = new ParamTable(LOOPBACK_PARAMS);
    const modules = [selfComponent, tcpComponent];
    const runtimes = await Promise.all([
      createRuntime(job(0, 2, hub.client(0)), { params, modules, log: (_level, text) => lines.push(text) }),
      createRuntime(job(1, 2, hub.client(1)), { params, modules }),
    ]);
    open.push(...runtimes);
    // Before rank 0 has dialled: it would dial what was published last.
    hub.client(1).updateModex(change(hub.entryOf(1)));
    const data = new Uint8Array(4);
    await Promise.all([runtimes[0].world.send(Uint8Array.of(1, 2, 3, 4), 1), runtimes[1].world.recv(data, 0)]);
    expect([...data]).toEqual([1, 2, 3, 4]);
    expect(lines.filter((line) => line.includes('new address of rank 1 is ignored'))).toHaveLength(1);
  });
});

group('the end', () => {
  test('calls under way and calls afterwards end with ERR_FINALIZED', async () => {
    const { runtimes, a } = await pair();
    const waiting = [a.recv(new Uint8Array(1), 1), a.probe(1), a.mprobe(), a.messages().next()];
    const codes = Promise.all(waiting.map(codeOf));
    const left = Promise.all(runtimes.map((runtime) => runtime.finalize()));
    expect(await codes).toEqual(['ERR_FINALIZED', 'ERR_FINALIZED', 'ERR_FINALIZED', 'ERR_FINALIZED']);
    expect(await codeOf(a.send(new Uint8Array(1), 1))).toBe('ERR_FINALIZED');
    expect(() => a.irecv(new Uint8Array(1))).toThrow(/ERR_FINALIZED/);
    await left;
    expect(await codeOf(a.recvObject())).toBe('ERR_FINALIZED');
  });

  test('finalize() that cannot come to its end names what is not delivered', async () => {
    const { runtimes, a, hub } = await pair();
    a.issend(new Uint8Array(10), 1, 77);
    await expect(runtimes[0].finalize({ timeoutMs: 150 })).rejects.toThrow(/ERR_FINALIZE_TIMEOUT: .*rank 1: 1 messages pending: .*tag 77/);
    hub.exited(0, { code: 1 });
  });

  test('messages that nobody received: finalize() rejects and names them by rank and tag, and is over all the same', async () => {
    const { runtimes, a, b } = await pair();
    const other = await Promise.all([a.dup(), b.dup()]);
    other[0].setName('the other one');
    a.isend(new Uint8Array(100_000), 1, 77);
    other[0].issend(new Uint8Array(10), 1, 78);
    a.isend(new Uint8Array(100_000), 1, 79);
    await b.recv(new Uint8Array(100_000), 0, 79);
    const [first, second] = await Promise.allSettled(runtimes.map((runtime) => runtime.finalize()));
    expect(second.status).toBe('fulfilled');
    const { reason } = first as PromiseRejectedResult;
    expect(reason).toMatchObject({ code: 'ERR_UNDELIVERED', rank: 0 });
    expect(reason.message).toMatch(/2 messages of rank 0 were never received: /);
    expect(reason.message).toMatch(/100000 bytes to rank 1 with tag 77(;|$)/);
    expect(reason.message).toMatch(/10 bytes to rank 1 with tag 78 on the other one/);
    expect(reason.message).not.toMatch(/79/);
  });

  test('a send that was given up and never received is no reason for finalize() to fail: its user was told', async () => {
    const { runtimes, a } = await pair();
    expect(await codeOf(a.send(new Uint8Array(100_000), 1, 77, { timeoutMs: 5 }))).toBe('ERR_TIMEOUT');
    await Promise.all(runtimes.map((runtime) => runtime.finalize()));
  });

  test('a message to oneself that was never received, too', async () => {
    const { runtimes, a } = await pair();
    a.issend(new Uint8Array(10), 0, 5);
    const [first] = await Promise.allSettled(runtimes.map((runtime) => runtime.finalize()));
    expect((first as PromiseRejectedResult).reason.message).toMatch(
      /ERR_UNDELIVERED: 1 message of rank 0 was never received: 10 bytes to rank 0 with tag 5$/,
    );
  });

  test('a short message that nobody received is named by its receiver, in one line', async () => {
    const lines: string[] = [];
    const hub = new MemoryOobHub(2);
    const params = new ParamTable({ ...SMALL_PARAMS, ...LOOPBACK_PARAMS });
    const log = (level: string, text: string) => level === 'warn' && lines.push(text);
    const runtimes = await Promise.all(
      [0, 1].map((rank) => createRuntime(job(rank, 2, hub.client(rank)), { params, modules: [selfComponent, tcpComponent], log })),
    );
    for (let i = 0; i < 10; i++) await runtimes[0].world.send(new Uint8Array(3), 1, i);
    await runtimes[1].world.recv(new Uint8Array(3), 0, 4);
    await Promise.all(runtimes.map((runtime) => runtime.finalize()));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^9 messages never received: 3 bytes from rank 0 with tag 0; .* tag 8; and 1 more$/);
  });

  test('a peer that left is told from one that is dead, and its receives end', async () => {
    const { runtimes, b } = await pair();
    const posted = b.irecv(new Uint8Array(1), 0);
    const probing = codeOf(b.probe(0));
    const leaving = runtimes[0].finalize();
    await expect(posted).rejects.toThrow(/rank 0 has left the job/);
    expect(await probing).toBe('ERR_PROC_FAILED');
    expect(await codeOf(b.send(new Uint8Array(1), 0))).toBe('ERR_PROC_FAILED');
    await runtimes[1].finalize();
    await leaving;
  });

  test('what was sent before finalize() arrives, however late it is received', async () => {
    const { runtimes, a, b } = await pair();
    const sent = a.isend(new Uint8Array(50_000).fill(3), 1);
    const left = runtimes[0].finalize();
    const data = new Uint8Array(50_000);
    await b.recv(data, 0);
    await sent;
    expect(data.every((byte) => byte === 3)).toBe(true);
    await runtimes[1].finalize();
    await left;
  });

  test('abort() tells the launcher, ends the other ranks’ requests, and the process', async () => {
    const hub = new MemoryOobHub(2);
    const exits: number[] = [];
    const options = {
      params: new ParamTable(LOOPBACK_PARAMS),
      modules: [selfComponent, tcpComponent],
      exit: (code: number) => exits.push(code),
    };
    const runtimes = await Promise.all([0, 1].map((rank) => createRuntime(job(rank, 2, hub.client(rank)), options)));
    open.push(...runtimes);
    const waiting = runtimes[1].world.recv(new Uint8Array(1), 0);
    await runtimes[0].abort(7, 'enough');
    await expect(waiting).rejects.toThrow(/ERR_ABORT: .*rank 0 aborted the job: enough/);
    expect([exits, hub.aborts]).toEqual([[7], [{ rank: 0, code: 7, reason: 'enough' }]]);
    hub.exited(1);
  });
});

group('events and views', () => {
  test('a dead peer: the event counts lost messages, the channel publishes it', async () => {
    const { runtimes, hub } = await pair();
    const events: PeerEvent[] = [];
    const published: unknown[] = [];
    const listen = (message: unknown) => published.push(message);
    subscribe('multirail:peer:failed', listen);
    runtimes[0].on('peer', (event) => events.push(event));
    // Nothing has left yet: the rails are not up in the same turn.
    void runtimes[0].world.isend(new Uint8Array(5), 1);
    void runtimes[0].world.isend(new Uint8Array(5), 1);
    hub.exited(1, { code: 3 });
    while (events.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    unsubscribe('multirail:peer:failed', listen);
    expect(events).toMatchObject([{ type: 'failed', rank: 0, peer: 1, error: { code: 'ERR_PROC_FAILED' } }]);
    expect(events[0].error.message).toMatch(/it exited with code 3/);
    expect(published).toEqual(events);
    hub.exited(0);
  });

  test('operations are published when they begin and when they end, the same object, with how long they took', async () => {
    const { a, b } = await pair();
    const begun: object[] = [];
    const ended: Record<string, unknown>[] = [];
    const onStart = (trace: unknown) => {
      expect((trace as { durationMs?: number }).durationMs).toBeUndefined();
      begun.push(trace as object);
    };
    const onEnd = (trace: unknown) => ended.push(trace as Record<string, unknown>);
    subscribe('multirail:operation:start', onStart);
    subscribe('multirail:operation:end', onEnd);
    // Short and at once; long, by rendezvous; from anybody; an object of collectives; one that fails.
    await Promise.all([a.send(new Uint8Array(5), 1, 8), b.recv(new Uint8Array(9), ANY_SOURCE)]);
    const long = new Uint8Array(1 << 20);
    await Promise.all([a.ssend(long, 1, 9), b.recv(new Uint8Array(1 << 20), 0, 9)]);
    await Promise.all([a.bcast(new Uint8Array(4), 1), b.bcast(new Uint8Array(4), 1)]);
    const late = b.recv(new Uint8Array(2), 0, 10).catch((error: { code: string }) => error.code);
    await a.send(new Uint8Array(3), 1, 10);
    expect(await late).toBe('ERR_TRUNCATE');
    unsubscribe('multirail:operation:start', onStart);
    unsubscribe('multirail:operation:end', onEnd);
    await Promise.all([a.send(new Uint8Array(5), 1, 8), b.recv(new Uint8Array(9), 0)]);
    expect(ended).toHaveLength(8);
    expect(new Set(ended)).toEqual(new Set(begun));
    for (const { durationMs } of ended) expect(durationMs).toBeGreaterThanOrEqual(0);
    const seen = ended.map(({ operation, rank, comm, peer, root, tag, bytes, error }) => {
      const code = (error as { code: string } | undefined)?.code;
      return [operation, rank, comm, peer, root, tag, bytes, code].map((value) => value ?? '-').join(' ');
    });
    expect(seen.sort()).toEqual(
      [
        'send 0 world 1 - 8 5 -',
        'recv 1 world 0 - 8 5 -',
        `ssend 0 world 1 - 9 ${1 << 20} -`,
        `recv 1 world 0 - 9 ${1 << 20} -`,
        'bcast 0 world - 1 - - -',
        'bcast 1 world - 1 - - -',
        'recv 1 world 0 - 10 - ERR_TRUNCATE',
        'send 0 world 1 - 10 3 -',
      ].sort(),
    );
  });

  test('sends and receives are published while somebody listens', async () => {
    const { a, b } = await pair();
    const seen: string[] = [];
    const onSend = (message: unknown) => seen.push(`send ${JSON.stringify(message)}`);
    const onRecv = (message: unknown) => seen.push(`recv ${JSON.stringify(message)}`);
    subscribe('multirail:send', onSend);
    subscribe('multirail:recv', onRecv);
    await Promise.all([a.send(new Uint8Array(5), 1, 8), b.recv(new Uint8Array(9), 0)]);
    unsubscribe('multirail:send', onSend);
    unsubscribe('multirail:recv', onRecv);
    await Promise.all([a.send(new Uint8Array(5), 1, 8), b.recv(new Uint8Array(9), 0)]);
    expect(seen).toEqual([
      'send {"rank":0,"comm":"world","dest":1,"tag":8,"bytes":5}',
      'recv {"rank":1,"comm":"world","source":0,"tag":8,"bytes":5}',
    ]);
  });

  test('counters and rails show what was done', async () => {
    const { runtimes, a, b } = await pair([tcpComponent], { btl_tcp_links: '2' });
    await Promise.all([a.send(new Uint8Array(100_000), 1), b.recv(new Uint8Array(100_000))]);
    expect(runtimes[0].counters().pml).toMatchObject({ messagesSent: 1, messagesRndv: 1, bytesSent: 100_000 });
    expect(runtimes[1].counters().pml).toMatchObject({ messagesReceived: 1, bytesReceived: 100_000 });
    const rails = runtimes[0].rails().filter(({ peer }) => peer === 1);
    expect(rails.map(({ rail }) => rail)).toEqual([0, 1]);
    expect(rails.reduce((sum, { counters }) => sum + counters.payloadBytesSent, 0)).toBe(100_000);
  });

  test('listeners may call the communicator', async () => {
    const { runtimes, a, b } = await pair();
    const waiting = b.irecv(new Uint8Array(1), 0);
    const called = new Promise<void>((resolve) => {
      runtimes[0].on('peer', () => {
        // A call from inside a listener is an ordinary call.
        expect(a.iprobe()).toBeUndefined();
        resolve();
      });
    });
    expect(waiting.cancel()).toBe(true);
    runtimes[0].emit('peer', { type: 'failed', rank: 0, peer: 1, error: new MultirailError('ERR_PROC_FAILED', 'x'), lostMessages: 0 });
    await called;
  });
});

group('two worlds in one process', () => {
  test('they do not meet', async () => {
    const one = await pair();
    const two = await pair();
    const first = new Uint8Array(1);
    const second = new Uint8Array(1);
    await Promise.all([one.a.send(Uint8Array.of(1), 1), two.a.send(Uint8Array.of(2), 1), two.b.recv(second, 0), one.b.recv(first, 0)]);
    expect([first[0], second[0]]).toEqual([1, 2]);
  });
});
