// An auditor that cannot fail is worth nothing: each fault that it should find is planted here, and it must name the fault.
import { beforeEach, expect, describe as group, test } from 'vitest';
import { crc32c } from '../../../src/btl/base/crc32c.ts';
import { type AuditFindings, StreamAudit, StreamHash, type StreamTotals } from '../../../tools/bench/audit.ts';
import { decodeHeader, encodeHeader, HEADER_BYTES, MessagePattern } from '../../../tools/bench/message.ts';

const BYTES = 4096;
const COUNT = 40;
const pattern = new MessagePattern('7', BYTES);

let sent: StreamHash;

function message(index: number, length = BYTES): Uint8Array<ArrayBuffer> {
  const payload = pattern.payload(index, length - HEADER_BYTES);
  const bytes = new Uint8Array(length);
  encodeHeader({ kind: 'data', index, length, payloadCrc: crc32c(payload) }, bytes.subarray(0, HEADER_BYTES));
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

const end = (messages: number) => encodeHeader({ kind: 'end', index: messages, length: messages, payloadCrc: 0 });

/** A whole stream as the sender made it: COUNT messages and the end. */
let stream: Uint8Array<ArrayBuffer>[];

beforeEach(() => {
  sent = new StreamHash();
  stream = [];
  for (let i = 0; i < COUNT; i++) {
    stream.push(message(i));
    sent.add(i, BYTES, crc32c(stream[i].subarray(HEADER_BYTES)));
  }
  stream.push(end(COUNT));
});

function audited(messages: readonly Uint8Array[], totals: StreamTotals | null = sent.totals()): AuditFindings {
  const audit = new StreamAudit(pattern);
  for (const bytes of messages) audit.take(bytes);
  return audit.finish(totals ?? undefined);
}

group('the auditor of a stream', () => {
  test('passes a stream that is whole', () => {
    const findings = audited(stream);
    expect(findings).toMatchObject({ problems: [], lost: 0, doubled: 0, reordered: 0, damaged: 0 });
    expect(findings.received).toEqual({ messages: COUNT, bytes: COUNT * BYTES, hash: sent.totals().hash });
  });

  test('names lost messages', () => {
    stream.splice(10, 2);
    stream.splice(20, 1);
    const { lost, problems } = audited(stream);
    expect(lost).toBe(3);
    expect(problems).toContain('3 messages lost (10-11, 22)');
    expect(problems).toContain('the hashes of the two sides differ');
  });

  test('a message lost at the very end is lost too', () => {
    stream.splice(COUNT - 1, 1);
    expect(audited(stream).problems).toContain(`1 message lost (${COUNT - 1})`);
  });

  test('names doubled messages, also one that comes after the end', () => {
    stream.splice(5, 0, stream[4]);
    expect(audited(stream)).toMatchObject({ doubled: 1, lost: 0, problems: expect.arrayContaining(['1 message doubled (4)']) });
    stream.splice(5, 1);
    expect(audited([...stream, stream[0]]).problems).toEqual(
      expect.arrayContaining(['1 message doubled (0)', '1 message came after the end of the stream']),
    );
  });

  test('names reordered messages', () => {
    [stream[8], stream[9]] = [stream[9], stream[8]];
    const findings = audited(stream);
    expect(findings).toMatchObject({ reordered: 1, lost: 0, doubled: 0, damaged: 0 });
    expect(findings.problems).toEqual(['1 message reordered (8 after 9)', 'the hashes of the two sides differ']);
  });

  test.each([
    ['first byte of the payload', HEADER_BYTES],
    ['last byte', BYTES - 1],
  ])('one flipped bit: %s', (_where, at) => {
    stream[17][at] ^= 1;
    expect(audited(stream)).toMatchObject({ damaged: 1, problems: expect.arrayContaining(['1 message damaged (17)']) });
  });

  test('a damaged header is damage, and its message is missing', () => {
    stream[17][9] ^= 4;
    expect(audited(stream)).toMatchObject({ damaged: 1, lost: 1 });
  });

  test('a fragment of an earlier message in a later one shows', () => {
    stream[17].set(stream[16].subarray(1024, 2048), 1024);
    expect(audited(stream)).toMatchObject({ damaged: 1 });
  });

  test('a fragment in the wrong place of its own message shows', () => {
    const moved = stream[17].slice(1024, 2048);
    stream[17].copyWithin(1024, 2048, 3072);
    stream[17].set(moved, 2048);
    expect(audited(stream)).toMatchObject({ damaged: 1 });
  });

  test('content that was wrong before it was sent, checksum and all, shows', () => {
    stream[3] = message(3);
    stream[3].fill(0, HEADER_BYTES);
    encodeHeader(
      { kind: 'data', index: 3, length: BYTES, payloadCrc: crc32c(stream[3].subarray(HEADER_BYTES)) },
      stream[3].subarray(0, HEADER_BYTES),
    );
    expect(audited(stream)).toMatchObject({ damaged: 1 });
  });

  test('a message that was cut short is damaged', () => {
    stream[17] = stream[17].subarray(0, BYTES - 1);
    expect(audited(stream)).toMatchObject({ damaged: 1, problems: expect.arrayContaining([expect.stringContaining('bytes sent')]) });
  });

  test('no end, no report, nothing at all: each is a reason to fail', () => {
    expect(audited(stream.slice(0, COUNT)).problems).toEqual(['the end of the stream did not come']);
    expect(audited(stream, null).problems).toEqual(['the sender did not report what it has sent']);
    expect(audited([end(0)], new StreamHash().totals()).problems).toEqual(['no message was received at all: nothing was shown']);
  });

  test('a sender that reports other messages than it announced', () => {
    sent.add(COUNT, BYTES, 1);
    expect(audited(stream).problems).toContain(`the stream announced ${COUNT} messages, the sender reports ${COUNT + 1}`);
  });

  test('without contents, headers and lengths are still looked at', () => {
    const audit = new StreamAudit(undefined);
    stream[3].fill(0, HEADER_BYTES);
    stream.splice(20, 1);
    for (const bytes of stream) audit.take(bytes);
    expect(audit.finish(undefined)).toMatchObject({ damaged: 0, lost: 1 });
  });
});

group('messages', () => {
  test('a header is read back as it was written', () => {
    const header = { kind: 'data', index: 2 ** 40 + 3, length: 1048576, payloadCrc: 0xdeadbeef } as const;
    expect(decodeHeader(encodeHeader(header))).toEqual(header);
    expect(decodeHeader(encodeHeader(header).subarray(0, 31))).toBeUndefined();
  });

  test('neighbours have other contents everywhere, and both sides the same', () => {
    const again = new MessagePattern('7', BYTES);
    expect(Buffer.compare(again.payload(123, BYTES), pattern.payload(123, BYTES))).toBe(0);
    for (let at = 0; at < BYTES; at += 64) {
      expect(Buffer.compare(pattern.payload(123, BYTES).subarray(at, at + 64), pattern.payload(124, BYTES).subarray(at, at + 64))).not.toBe(
        0,
      );
    }
  });
});
