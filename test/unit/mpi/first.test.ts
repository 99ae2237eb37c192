import { expect, test } from 'vitest';
import { tcpComponent } from '../../../src/btl/tcp/component.ts';
import { realFixture, simFixture } from '../../conformance/p2p-worlds.ts';

for (const [name, fixture] of [['tcp', realFixture([tcpComponent], { btl_tcp_links: '2' })], ['sim', simFixture({ seed: 'x', rails: [{}, {}] })]] as const)
test(`first ${name}`, async () => {
  const world = await fixture.world(2);
  const [a, b] = world.comms;
  const data = new Uint8Array(100_000).map((_, i) => i);
  const got = new Uint8Array(100_000);
  const r = b.recv(got, 0, 5);
  await a.send(data, 1, 5);
  expect((await r).bytes).toBe(100_000);
  expect(Buffer.compare(data, got)).toBe(0);
  await Promise.all([a.send(new Uint8Array([1]), 0, 0), a.recv(new Uint8Array(1), 0, 0)]);
  console.log(world.runtimes[0].rails().map((r) => [r.peer, r.key, r.state]));
  await world.teardown();
}, 5000);
