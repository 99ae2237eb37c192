// The one-sided clauses of the BTL contract suite (B2, B6): put, get, registration, fence, late writes.
import { expect } from 'vitest';
import { DELIVERED, IN_DOUBT, OK, type OneSidedOp, type Registration } from '../../src/btl/btl.ts';
import type { Pair } from '../support/btl-fixture.ts';
import { patternOf, type Side } from '../support/btl-recorder.ts';
import type { Clause } from './suite.ts';

/** Longer than a device that gets no answer goes on by itself. */
const IDLE_MS = 400;
const FENCED = { kind: 'fenced', text: 'fenced by the suite' } as const;

function opOf(kind: 'put' | 'get', local: Uint8Array[], remoteKey: Uint8Array, remoteOffset: number): OneSidedOp {
  return { kind, local, bytes: local.reduce((sum, part) => sum + part.length, 0), remoteKey, remoteOffset, railFrameNumber: 0 };
}

function statusOf(side: Side, op: OneSidedOp): number | undefined {
  for (const { model } of side.recorder.models()) if (model.ops.has(op)) return model.ops.get(op);
  return undefined;
}

/** Side a carries it out, and it completes as delivered. */
async function carryOut(pair: Pair, op: OneSidedOp): Promise<void> {
  const { a } = pair;
  expect(a.start(op)).toBe(OK);
  a.endpoints[0].flush();
  await pair.drive(() => statusOf(a, op) !== undefined, 'completed');
  expect(statusOf(a, op)).toBe(DELIVERED);
}

/** Puts are under way; the rail is cut; the sender has them in doubt; the target has not fenced. Returns the memory. */
async function cutUnderPuts(pair: Pair): Promise<Uint8Array> {
  const { a, b } = pair;
  const memory = new Uint8Array(1024 * 1024);
  const registration = b.endpoints[0].register?.([memory]);
  expect(registration).toBeDefined();
  for (let i = 0; i < 8; i++) {
    const op = opOf('put', [new Uint8Array(131_072).fill(0x40 + i)], registration?.key as Uint8Array, i * 131_072);
    expect(a.start(op)).toBe(OK);
  }
  a.endpoints[0].flush();
  await pair.drive(() => memory[0] !== 0, 'the first bytes land');
  pair.cut?.(0, 'lost');
  a.endpoints[0].fence(1, FENCED);
  a.progress(pair.now());
  expect(a.open).toBe(0);
  expect([...a.recorder.model(0, 1).ops.values()].filter((status) => status === IN_DOUBT).length).toBeGreaterThan(0);
  return memory;
}

/** A long put whose first bytes have landed, and whose last ones have not. */
async function putUnderWay(pair: Pair): Promise<{ op: OneSidedOp; memory: Uint8Array; registration: Registration }> {
  const { a, b } = pair;
  const bytes = pair.longPutBytes ?? 500_000;
  a.endpoints[0].windowBytes = Math.max(a.endpoints[0].windowBytes, bytes);
  const memory = new Uint8Array(bytes);
  const registration = b.endpoints[0].register?.([memory]) as Registration;
  const op = opOf('put', [new Uint8Array(bytes).fill(1)], registration.key, 0);
  expect(a.start(op)).toBe(OK);
  a.endpoints[0].flush();
  await pair.drive(() => memory[0] === 1, 'the first bytes land');
  expect(memory.at(-1)).toBe(0);
  return { op, memory, registration };
}

export function oneSidedClauses(clause: Clause): void {
  clause('one-sided: a put lands in scattered memory at its offset, and completes as delivered', async (pair, skip) => {
    const { a, b } = pair;
    if (!a.endpoints[0].plan.attributes.canPut) skip('the rail cannot put');
    const memory = new Uint8Array(100_000);
    const registration = b.endpoints[0].register?.([memory.subarray(0, 10), memory.subarray(20, 90_020)]);
    const source = patternOf(1, 80_000);
    const op = opOf('put', [source.subarray(0, 7), source.subarray(7)], registration?.key as Uint8Array, 5);
    await carryOut(pair, op);
    expect(Buffer.compare(memory.subarray(5, 10), source.subarray(0, 5))).toBe(0);
    expect(Buffer.compare(memory.subarray(20, 20 + 79_995), source.subarray(5))).toBe(0);
    expect(memory.subarray(10, 20).every((byte) => byte === 0)).toBe(true);
    expect(a.endpoints[0].outstandingBytes).toBe(0);
    // Users see what a rail carried: bytes that no frame carried count too.
    expect(a.endpoints[0].counters.payloadBytesSent).toBe(op.bytes);
  });

  clause('one-sided: a get brings the bytes, and completes as delivered', async (pair, skip) => {
    const { a, b } = pair;
    if (!a.endpoints[0].plan.attributes.canGet) skip('the rail cannot get');
    const memory = patternOf(2, 200_000);
    const registration = b.endpoints[0].register?.([memory]);
    const target = new Uint8Array(150_000);
    const op = opOf('get', [target.subarray(0, 1), target.subarray(1)], registration?.key as Uint8Array, 1000);
    await carryOut(pair, op);
    expect(Buffer.compare(target, memory.subarray(1000, 151_000))).toBe(0);
    expect(a.endpoints[0].counters.payloadBytesReceived).toBe(op.bytes);
  });

  clause('one-sided: memory of exportMemory() is read at any place of it, and other memory beside it', async (pair, skip) => {
    const { a, b } = pair;
    const { module } = b.endpoints[0];
    if (module.exportMemory === undefined) return skip('the transport exports no memory');
    const pieces = [module.exportMemory(200_000), module.exportMemory(100_000)] as Uint8Array[];
    for (const [i, piece] of pieces.entries()) piece.set(patternOf(3 + i, piece.length));
    const before = a.endpoints[0].counters.payloadBytesReceived;
    for (const window of [pieces[0].subarray(5, 150_005), pieces[1], pieces[0]]) {
      const registration = b.endpoints[0].register?.([window]);
      const target = new Uint8Array(90_000);
      const op = opOf('get', [target.subarray(0, 1), target.subarray(1)], registration?.key as Uint8Array, 1000);
      await carryOut(pair, op);
      expect(Buffer.compare(target, window.subarray(1000, 91_000))).toBe(0);
      registration?.deregister();
    }
    expect(a.endpoints[0].counters.payloadBytesReceived - before).toBe(270_000);
    for (const piece of pieces) module.dropMemory?.(piece);
    expect(pieces.map(({ length }) => length)).toEqual([0, 0]);
    expect(a.endpoints[0].outstandingBytes).toBe(0);
  });

  clause('one-sided: without a fence late writes do land after the sender has them in doubt', async (pair, skip) => {
    if (!pair.a.endpoints[0].plan.attributes.canPut) skip('the rail cannot put');
    if (pair.cut === undefined || !pair.hasLateWrites) return skip('the fixture has no late writes');
    const memory = await cutUnderPuts(pair);
    const before = memory.slice();
    await pair.settle(2000);
    expect(Buffer.compare(before, memory)).not.toBe(0);
  });

  clause('B6: with fence() at the target no late write ever lands', async (pair, skip) => {
    if (!pair.a.endpoints[0].plan.attributes.canPut) skip('the rail cannot put');
    if (pair.cut === undefined || !pair.hasLateWrites) return skip('the fixture has no late writes');
    const memory = await cutUnderPuts(pair);
    pair.b.endpoints[0].fence(1, FENCED);
    const before = memory.slice();
    await pair.settle(2000);
    expect(Buffer.compare(before, memory)).toBe(0);
  });

  clause('one-sided: a put under way goes on landing while neither process has a turn', async (pair, skip) => {
    if (!pair.a.endpoints[0].plan.attributes.canPut) skip('the rail cannot put');
    const { memory } = await putUnderWay(pair);
    const before = memory.slice();
    await pair.idle(IDLE_MS);
    expect(Buffer.compare(before, memory)).not.toBe(0);
  });

  clause(
    'B6: once fence() has returned at the target of a put nothing lands, though the writer goes on and knows of nothing',
    async (pair, skip) => {
      const { a, b } = pair;
      if (!a.endpoints[0].plan.attributes.canPut) skip('the rail cannot put');
      const { op, memory } = await putUnderWay(pair);
      b.endpoints[0].fence(1, FENCED);
      const before = memory.slice();
      expect(memory.at(-1)).toBe(0);
      const sent = pair.sentPackets?.(a) ?? -1;
      await pair.idle(IDLE_MS);
      expect(Buffer.compare(before, memory)).toBe(0);
      // It did go on, where that can be seen.
      expect(pair.sentPackets?.(a) ?? 0).toBeGreaterThan(sent);
      expect(statusOf(a, op)).toBeUndefined();
      await pair.drive(() => statusOf(a, op) !== undefined, 'completed');
      expect(statusOf(a, op)).toBe(IN_DOUBT);
      await pair.settle(IDLE_MS);
      expect(Buffer.compare(before, memory)).toBe(0);
    },
  );

  clause('one-sided: after deregister() nothing lands, and the next access ends the rail at its initiator', async (pair, skip) => {
    const { a } = pair;
    if (!a.endpoints[0].plan.attributes.canPut) skip('the rail cannot put');
    const { op, memory, registration } = await putUnderWay(pair);
    registration.deregister();
    const before = memory.slice();
    await pair.drive(() => statusOf(a, op) !== undefined, 'completed');
    expect(statusOf(a, op)).toBe(IN_DOUBT);
    expect(a.recorder.find('railDown')?.text).toBe('error');
    expect(Buffer.compare(before, memory)).toBe(0);
  });

  clause('B6: after fence() at the initiator no byte of a get lands', async (pair, skip) => {
    const { a, b } = pair;
    if (!a.endpoints[0].plan.attributes.canGet) skip('the rail cannot get');
    const memory = new Uint8Array(1_000_000).fill(3);
    const registration = b.endpoints[0].register?.([memory]);
    const target = new Uint8Array(1_000_000);
    const op = opOf('get', [target], registration?.key as Uint8Array, 0);
    a.start(op);
    a.endpoints[0].flush();
    await pair.drive(() => target[0] === 3, 'the first bytes land');
    a.endpoints[0].fence(1, FENCED);
    const before = target.slice();
    a.progress(pair.now());
    expect(statusOf(a, op)).toBe(IN_DOUBT);
    await pair.settle(500);
    expect(Buffer.compare(before, target)).toBe(0);
    expect(target.at(-1)).toBe(0);
  });
}
