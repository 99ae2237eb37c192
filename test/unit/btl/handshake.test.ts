// Method: the two state machines fed with each other's frames, and with recorded, reflected, cut and changed ones.
import { describe, expect, test } from 'vitest';
import {
  FRAME_CHALLENGE,
  FRAME_HEADER_BYTES,
  FRAME_HELLO,
  FRAME_PROOF,
  FRAME_REFUSE,
  FRAME_WELCOME,
} from '../../../src/btl/base/frame-hdr.ts';
import {
  AcceptorHandshake,
  type AcceptorStep,
  DialerHandshake,
  encodeHello,
  encodeRefuse,
  type HandshakeIdentity,
  isLoopbackAddress,
} from '../../../src/btl/base/handshake.ts';
import { SECRET } from '../../support/harness.ts';

const identity = (rank: number, more: Partial<HandshakeIdentity> = {}): HandshakeIdentity => ({
  rank,
  incarnation: 2 ** 50 + rank,
  jobId: 'job-1',
  secret: SECRET,
  ...more,
});
const nonce = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
const body = (frame: Uint8Array): Uint8Array => frame.subarray(FRAME_HEADER_BYTES);
const dialer = (more: Partial<HandshakeIdentity> = {}, fill = 1) =>
  new DialerHandshake(identity(0, more), 1, 3, 'tcp:eth0-eth1#0', 9, nonce(fill));
const acceptor = (more: Partial<HandshakeIdentity> = {}, fill = 2) => new AcceptorHandshake(identity(1, more), nonce(fill));
function sent(step: AcceptorStep): Uint8Array {
  if (step.kind !== 'send' && step.kind !== 'refuse') throw new Error(`nothing sent: ${JSON.stringify(step)}`);
  return body(step.bytes);
}

test('the good case: who it is comes out on the other side', () => {
  const d = dialer();
  const a = acceptor();
  expect(d.take(FRAME_CHALLENGE, sent(a.take(FRAME_HELLO, body(d.hello()))))).toEqual({ kind: 'challenged' });
  expect(d.peerIncarnation).toBe(2 ** 50 + 1);
  expect(a.take(FRAME_PROOF, body(d.proof()))).toEqual({
    kind: 'proved',
    hello: { rank: 0, incarnation: 2 ** 50, rail: 3, key: 'tcp:eth0-eth1#0', epoch: 9 },
  });
  expect(d.take(FRAME_WELCOME, new Uint8Array(0))).toEqual({ kind: 'welcomed' });
});

describe('refused', () => {
  test('an acceptor with another secret is found out by the dialer', () => {
    const d = dialer();
    const step = d.take(FRAME_CHALLENGE, sent(acceptor({ secret: nonce(9) }).take(FRAME_HELLO, body(d.hello()))));
    expect(step).toMatchObject({ kind: 'failed', reason: { kind: 'refused' } });
  });
  test('a dialer without the secret is closed on without a word', () => {
    const a = acceptor();
    a.take(FRAME_HELLO, body(dialer({ secret: nonce(9) }).hello()));
    expect(a.take(FRAME_PROOF, nonce(5))).toMatchObject({ kind: 'close' });
  });
  test('another job and another version are told', () => {
    expect(acceptor().take(FRAME_HELLO, body(dialer({ jobId: 'job-2' }).hello()))).toMatchObject({ kind: 'refuse', text: /^BAD_JOB/ });
    const hello = encodeHello({ rank: 0, incarnation: 1, rail: 0, key: 'k', epoch: 1 }, 'job-1', nonce(1), 99);
    const step = acceptor().take(FRAME_HELLO, hello);
    expect(step).toMatchObject({ kind: 'refuse', text: /^BAD_VERSION/ });
    expect(dialer().take(FRAME_REFUSE, sent(step))).toMatchObject({ kind: 'failed', reason: { kind: 'refused', text: /^BAD_VERSION/ } });
  });
  test('a recorded handshake fails on the fresh nonce', () => {
    const d = dialer();
    const a = acceptor({}, 2);
    d.take(FRAME_CHALLENGE, sent(a.take(FRAME_HELLO, body(d.hello()))));
    const recorded = { hello: body(d.hello()), proof: body(d.proof()) };
    const again = acceptor({}, 3);
    expect(again.take(FRAME_HELLO, recorded.hello)).toMatchObject({ kind: 'send' });
    expect(again.take(FRAME_PROOF, recorded.proof)).toMatchObject({ kind: 'close' });
  });
  test('a recorded challenge fails on the dialer’s nonce, a changed one on the mac', () => {
    const d = dialer({}, 1);
    const challenge = sent(acceptor().take(FRAME_HELLO, body(d.hello())));
    expect(dialer({}, 4).take(FRAME_CHALLENGE, challenge)).toMatchObject({ kind: 'failed' });
    challenge[8] ^= 1; // the incarnation
    expect(d.take(FRAME_CHALLENGE, challenge)).toMatchObject({ kind: 'failed' });
  });
  test('a reflected mac fails on the role', () => {
    const d = dialer();
    const a = acceptor();
    const challenge = sent(a.take(FRAME_HELLO, body(d.hello())));
    expect(a.take(FRAME_PROOF, challenge.subarray(challenge.length - 32))).toMatchObject({ kind: 'close' });
    // Our own rank answering us: a listener that mirrors our connection back.
    const mirror = new AcceptorHandshake(identity(0), nonce(7));
    expect(d.take(FRAME_CHALLENGE, sent(mirror.take(FRAME_HELLO, body(d.hello()))))).toMatchObject({
      kind: 'failed',
      reason: { text: /rank 0 answered where rank 1/ },
    });
  });
  test('a changed HELLO fails, whatever byte it is', () => {
    const hello = body(dialer().hello());
    for (let at = 4; at < hello.length; at++) {
      const d = dialer();
      const changed = new Uint8Array(hello);
      changed[at] ^= 1;
      const step = acceptor().take(FRAME_HELLO, changed);
      if (step.kind === 'send') expect(d.take(FRAME_CHALLENGE, body(step.bytes))).toMatchObject({ kind: 'failed' });
      else expect(['refuse', 'close']).toContain(step.kind);
    }
  });
  test('a stale epoch is believed after the proof only', () => {
    const refusal = encodeRefuse('STALE_EPOCH', 'too old', 77);
    expect(dialer().take(FRAME_REFUSE, refusal)).toMatchObject({ kind: 'failed', reason: { kind: 'damaged' } });
    const d = dialer();
    d.take(FRAME_CHALLENGE, sent(acceptor().take(FRAME_HELLO, body(d.hello()))));
    d.proof();
    expect(d.take(FRAME_REFUSE, refusal)).toMatchObject({ kind: 'failed', reason: { kind: 'refused' }, highestEpoch: 77 });
  });
  test('truncated, too long, out of turn', () => {
    const hello = body(dialer().hello());
    for (let length = 0; length < hello.length; length++) {
      expect(['close', 'refuse']).toContain(acceptor().take(FRAME_HELLO, hello.subarray(0, length)).kind);
    }
    expect(acceptor().take(FRAME_HELLO, new Uint8Array([...hello, 0]))).toMatchObject({ kind: 'close' });
    expect(acceptor().take(FRAME_PROOF, nonce(1))).toMatchObject({ kind: 'close' });
    expect(dialer().take(FRAME_WELCOME, new Uint8Array(0))).toMatchObject({ kind: 'failed' });
    expect(dialer().take(FRAME_CHALLENGE, nonce(1))).toMatchObject({ kind: 'failed' });
    expect(dialer().take(FRAME_REFUSE, new Uint8Array(3))).toMatchObject({ kind: 'failed' });
    expect(() => dialer().proof()).toThrow();
  });
  test('the text of a refusal is cut and cleaned', () => {
    const long = encodeRefuse('BAD_JOB', `a\u001b[31m${'x'.repeat(2000)}`);
    expect(long.length).toBeLessThanOrEqual(472);
    const step = dialer().take(FRAME_REFUSE, long);
    expect(step).toMatchObject({ kind: 'failed', reason: { text: /^BAD_JOB: a\?\[31mx+$/ } });
  });
});

test('without a secret the job id is the key', () => {
  const d = dialer({ secret: undefined });
  const a = acceptor({ secret: undefined });
  expect(d.take(FRAME_CHALLENGE, sent(a.take(FRAME_HELLO, body(d.hello()))))).toEqual({ kind: 'challenged' });
  expect(a.take(FRAME_PROOF, body(d.proof()))).toMatchObject({ kind: 'proved' });
});

test('loopback addresses', () => {
  for (const address of ['127.0.0.1', '127.9.8.7', '::1', '::ffff:127.0.0.1']) expect(isLoopbackAddress(address)).toBe(true);
  for (const address of ['10.0.0.1', '128.0.0.1', 'fe80::1', '127.0.0.1.example', '::ffff:10.0.0.1', ''])
    expect(isLoopbackAddress(address)).toBe(false);
});
