// The frame of an eager message: its header and payload in one memory, used again for other lengths; the order of streams.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PmlCore } from '../../../src/pml/core.ts';
import { PACKED_PAYLOAD_BYTES_MAX } from '../../../src/pml/frame-memory.ts';
import { PmlFrame, type SendMessage } from '../../../src/pml/records.ts';
import { Iov } from '../../../src/util/iov.ts';
import { MemPair } from '../../support/mem-pair.ts';

test('a packed payload stands behind the header, in bytes and in words, whatever the frame held before', () => {
  const frame = new PmlFrame();
  fc.assert(
    fc.property(fc.constantFrom(32, 40, 48, 56, 400), fc.nat(PACKED_PAYLOAD_BYTES_MAX), fc.nat(3), (headerBytes, payloadBytes, parts) => {
      const view = frame.headerView(headerBytes);
      for (let i = 0; i < headerBytes; i++) view.setUint8(i, (i * 3 + payloadBytes) & 0xff);
      expect(frame.header.length).toBe(headerBytes);
      expect([...frame.header]).toEqual(Array.from({ length: headerBytes }, (_, i) => (i * 3 + payloadBytes) & 0xff));
      // A long header leaves no room: such a packet has no payload to be packed.
      if (headerBytes > 60) return;
      const data = Uint8Array.from({ length: payloadBytes }, (_, i) => (i * 7 + headerBytes) & 0xff);
      const cut = Math.floor(payloadBytes / (parts + 1));
      const views = Array.from({ length: parts + 1 }, (_, i) => data.subarray(i * cut, i === parts ? payloadBytes : (i + 1) * cut));
      frame.packPayload(new Iov(views));
      expect(frame.packed).toBe(true);
      expect(frame.payloadBytes).toBe(payloadBytes);
      expect(Buffer.concat(frame.payload)).toEqual(Buffer.from(data));
      const whole = new Uint8Array(frame.headerWords.buffer, 0, headerBytes + payloadBytes);
      expect([...whole.subarray(0, headerBytes)]).toEqual([...frame.header]);
      expect([...whole.subarray(headerBytes)]).toEqual([...data]);
    }),
  );
});

test('a message that is restarted stands before the younger ones again', () => {
  const pair = new MemPair(1);
  const core: PmlCore = pair.engines[0].pml.internals.core;
  const peer = pair.engines[0].pml.peer(1);
  const buffers = [1, 2, 3].map(() => new Uint8Array(9000));
  for (const buffer of buffers) pair.send(0, buffer, 1);
  const messages = [...peer.sends] as SendMessage[];
  expect(messages.length).toBe(3);
  for (const message of messages) core.queueStream(message);
  expect([...peer.streams]).toEqual(messages);
  // The oldest leaves the queue when a rail is lost, and comes back when the receiver has said what it lacks.
  peer.streams.shift();
  messages[0].streamQueued = false;
  core.queueStream(messages[0]);
  expect([...peer.streams]).toEqual(messages);
});
