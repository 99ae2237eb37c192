// Interfaces that come after the start become rails on both sides, and both programs are told; a job that starts without any interface
// waits for one. Interfaces here are addresses of the loopback device under different names, on two hosts as far as the ranks know.
import { afterEach, expect, describe as group, test, vi } from 'vitest';
import type { BtlComponent } from '../../../src/btl/btl.ts';
import { wrapFault } from '../../../src/btl/interpose/fault.ts';
import { selfComponent } from '../../../src/btl/self/component.ts';
import type { LocalInterface } from '../../../src/btl/tcp/interfaces.ts';
import { TcpModule } from '../../../src/btl/tcp/module.ts';
import { WsModule } from '../../../src/btl/ws/module.ts';
import { createRuntime, type Runtime } from '../../../src/mpi/runtime.ts';
import type { RailEvent } from '../../../src/mpi/views.ts';
import { ParamTable } from '../../../src/params.ts';
import { MemoryOobHub } from '../../support/p2p-worlds.ts';

const open: Runtime[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((runtime) => runtime.finalize({ timeoutMs: 3000 }).catch(() => undefined)));
});

/** `host` and `net` make 127.NET.0.HOST in a network of its own. */
function face(net: number, host: number, name = `x${net}`): LocalInterface {
  return { name, loopback: false, addresses: [{ address: `127.${net}.0.${host}`, family: 4, prefix: 24, linkLocal: false }] };
}

class Job {
  readonly tables: LocalInterface[][];
  readonly events: RailEvent[] = [];
  readonly lines: string[] = [];
  readonly runtimes: Runtime[] = [];
  readonly hub: MemoryOobHub;
  private readonly transport: 'tcp' | 'ws';
  private readonly names: string[];

  constructor(tables: LocalInterface[][], transport: 'tcp' | 'ws' = 'tcp', names: string[] = []) {
    this.tables = tables;
    this.transport = transport;
    this.names = names;
    this.hub = new MemoryOobHub(tables.length);
  }

  async start(more: Record<string, string> = {}, native?: false, faults = false): Promise<this> {
    const params = new ParamTable({ btl_tcp_route_check: 'false', btl_ws_route_check: 'false', ...more });
    const size = this.tables.length;
    const started = this.tables.map((_, rank) => {
      const component: BtlComponent = {
        name: this.transport,
        description: 'of the test',
        unavailable: () => undefined,
        create: (given) => {
          const Module = this.transport === 'tcp' ? TcpModule : WsModule;
          const make = (context: typeof given) =>
            new Module(
              context,
              () => this.tables[rank],
              () => this.names,
            );
          return faults ? wrapFault(make, given, '') : make(given);
        },
      };
      const secret = new TextEncoder().encode('the secret of this test');
      const place = { rank, size, localRank: 0, localSize: 1, jobId: 'added', incarnation: 5 + rank, hostId: `host ${rank}`, secret };
      return createRuntime(
        { ...place, oob: this.hub.client(rank) },
        {
          params,
          modules: [selfComponent, component],
          log: (level, text) => this.lines.push(`${rank} ${level} ${text}`),
          ...(native === false ? { native } : {}),
        },
      );
    });
    this.runtimes.push(...(await Promise.all(started)));
    open.push(...this.runtimes);
    for (const runtime of this.runtimes) runtime.on('rail', (event) => this.events.push(event));
    return this;
  }

  rails(rank: number, peer = 1 - rank): string[] {
    return this.runtimes[rank]
      .rails()
      .filter((rail) => rail.peer === peer)
      .map(({ rail, key, state }) => `${rail} ${key} ${state}`);
  }

  async until(holds: () => void): Promise<void> {
    await vi.waitFor(holds, { timeout: 12_000, interval: 20 });
  }

  async exchange(bytes = 5): Promise<void> {
    const [a, b] = this.runtimes.map(({ world }) => world);
    const sent = Uint8Array.from({ length: bytes }, (_, i) => i);
    const into = new Uint8Array(bytes);
    await Promise.all([a.send(sent, 1), b.recv(into, 0)]);
    expect(Buffer.compare(into, sent)).toBe(0);
    await Promise.all([b.send(sent, 0), a.recv(into, 1)]);
  }

  added(): string[] {
    return this.events
      .filter(({ type }) => type === 'added')
      .map(({ rank, rail, key }) => `${rank} ${rail} ${key}`)
      .sort();
  }
}

group.each([
  ['tcp', undefined],
  ['tcp', false],
  ['ws', undefined],
] as const)('interfaces that come later, %s, native %s', (transport, native) => {
  test('an interface that comes up on both sides is a rail, and both are told', async () => {
    const job = await new Job([[face(1, 1)], [face(1, 2)]], transport).start({}, native);
    await job.exchange();
    expect(job.rails(0)).toEqual([`0 ${transport}:x1-x1#0 UP`]);
    job.tables[1] = [face(1, 2), face(2, 2)];
    await new Promise((resolve) => setTimeout(resolve, 300));
    job.tables[0] = [face(1, 1), face(2, 1)];
    await job.until(() => expect(job.added()).toEqual([`0 1 ${transport}:x2-x2#0`, `1 1 ${transport}:x2-x2#0`]));
    for (const rank of [0, 1]) expect(job.rails(rank)).toEqual([`0 ${transport}:x1-x1#0 UP`, `1 ${transport}:x2-x2#0 UP`]);
    await job.exchange(3_000_000);
    for (const { counters, key } of job.runtimes[0].rails()) if (key !== 'self') expect(counters.payloadBytesSent).toBeGreaterThan(0);
  });

  test('a job that starts without an interface says so, waits, and goes on', async () => {
    const job = await new Job([[face(1, 1)], []], transport, ['x1', 'y9']).start({}, native);
    expect(job.lines.filter((line) => line.includes('has no rail to rank')).sort()).toEqual([
      `0 warn rank 0 has no rail to rank 1 yet and waits for one for up to 60000 ms (pml_peer_timeout_ms): ${transport}: x1, y9 there has no carrier or no address`,
      `1 warn rank 1 has no rail to rank 0 yet and waits for one for up to 60000 ms (pml_peer_timeout_ms): ${transport}: x1, y9 here has no carrier or no address`,
    ]);
    const [a, b] = job.runtimes.map(({ world }) => world);
    const into = new Uint8Array(100_000);
    const messages = Promise.all([a.send(new Uint8Array(100_000).fill(7), 1), b.recv(into, 0), b.send(new Uint8Array(3), 0)]);
    const back = a.recv(new Uint8Array(3), 1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    job.tables[1] = [face(1, 2)];
    await messages;
    await back;
    expect(into.every((byte) => byte === 7)).toBe(true);
    expect(job.added()).toEqual([`0 0 ${transport}:x1-x1#0`, `1 0 ${transport}:x1-x1#0`]);
  });
});

group('interfaces that come later', () => {
  test('several at once, in another order on each side: every number stands for one rail', async () => {
    const job = await new Job([[face(1, 1)], [face(1, 2)]]).start();
    await job.exchange();
    for (const net of [2, 3, 4, 5]) {
      job.tables[0] = [...job.tables[0], face(net, 1)];
      job.tables[1] = [...job.tables[1], face(7 - net + 0, 2)];
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
    await job.until(() => {
      expect(job.rails(0).filter((line) => line.endsWith('UP')).length).toBe(5);
      expect(job.rails(1).filter((line) => line.endsWith('UP')).length).toBe(5);
    });
    expect([...job.rails(1)].sort()).toEqual([...job.rails(0)].sort());
    expect(new Set(job.rails(0)).size).toBe(5);
    await job.exchange(2_000_000);
  });

  test('interfaces that share no subnet wait a while for better partners, and make a rail then', async () => {
    const job = await new Job([[face(1, 1)], [face(1, 2)]]).start();
    await job.exchange();
    job.tables[0] = [face(1, 1), face(2, 1)];
    job.tables[1] = [face(1, 2), face(9, 2)];
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(job.rails(0)).toHaveLength(1);
    await job.until(() => expect(job.added()).toEqual(['0 1 tcp:x2-x9#0', '1 1 tcp:x2-x9#0']));
  });

  test('a rail that was added is lost and comes back like any other, and finalize() says BYE on it', async () => {
    const job = await new Job([[face(1, 1)], [face(1, 2)]]).start({ bml_redial_min_ms: '10' });
    await job.exchange();
    job.tables[0] = [face(1, 1), face(2, 1)];
    job.tables[1] = [face(1, 2), face(2, 2)];
    await job.until(() => expect(job.added()).toHaveLength(2));
    const types = () => job.events.filter(({ rank, rail }) => rank === 0 && rail === 1).map(({ type }) => type);
    job.tables[0] = [face(1, 1)];
    await job.until(() => expect(types()).toContain('lost'));
    await job.exchange();
    job.tables[0] = [face(1, 1), face(2, 1)];
    await job.until(() => expect(types()).toContain('restored'));
    expect(types().filter((type) => type === 'added')).toHaveLength(1);
    await job.exchange(500_000);
    await Promise.all(job.runtimes.map((runtime) => runtime.finalize()));
  });

  test('behind the fault interposer too', async () => {
    const job = await new Job([[face(1, 1)], []], 'tcp', ['x1']).start({ mpi_preconnect: 'all' }, undefined, true);
    job.tables[1] = [face(1, 2)];
    await job.until(() => expect(job.added()).toHaveLength(2));
    await job.exchange();
  });

  test('who waits in vain is told after the peer timeout what was waited for', async () => {
    const job = await new Job([[face(1, 1)], []], 'tcp', ['x1']).start({ pml_peer_timeout_ms: '400' });
    const [a, b] = job.runtimes.map(({ world }) => world);
    const ends = await Promise.allSettled([a.recv(new Uint8Array(1), 1), b.send(new Uint8Array(70_000), 0)]);
    for (const end of ends) {
      expect((end as PromiseRejectedResult).reason).toMatchObject({ code: 'ERR_PROC_UNREACHABLE' });
      expect((end as PromiseRejectedResult).reason.message).toMatch(/no interface came up on either side/);
    }
  });

  test('without an interface that could come up there is nothing to wait for', async () => {
    await expect(new Job([[face(1, 1)], []]).start()).rejects.toThrow(/ERR_INIT/);
    await expect(new Job([[face(1, 1)], []], 'tcp', ['lo', 'docker0']).start()).rejects.toThrow(/ERR_INIT/);
    const typo = { btl_tcp_if_include: 'x7' };
    await expect(new Job([[face(1, 1)], [face(1, 2)]], 'tcp', ['x1']).start(typo)).rejects.toThrow(/ERR_INIT/);
  });
});
