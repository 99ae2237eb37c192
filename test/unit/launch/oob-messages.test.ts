// Encoding of the out-of-band messages: what goes in comes out, bytes that are not a message are refused, and the code for it is
// what is made of the definition today.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import * as fc from 'fast-check';
import protobuf from 'protobufjs';
import { pbjs } from 'protobufjs-cli';
import { describe, expect, test } from 'vitest';
import { decodeEnvelope, encodeEnvelope } from '../../../src/launch/oob/envelope.ts';
import {
  boundedText,
  encodeJson,
  MESSAGE_BYTES_MAX,
  type OobBodies,
  type OobKind,
  proofEquals,
  proofOfLauncher,
  proofOfRank,
  TEXT_BYTES_MAX,
} from '../../../src/launch/oob/messages.ts';

const FOLDER = new URL('../../../src/launch/oob/', import.meta.url);

const DEFINITION = fileURLToPath(new URL('oob.proto', FOLDER));

const bytes = (...values: number[]) => Uint8Array.from(values);

const EXAMPLES: { [K in OobKind]: OobBodies[K] } = {
  challenge: { version: 1, nonce: bytes(1, 2, 3), jobId: 'job' },
  hello: {
    version: 1,
    jobId: 'job',
    rank: 3,
    size: 4,
    incarnation: Number.MAX_SAFE_INTEGER,
    pid: 4711,
    hostId: 'host/1',
    nonce: bytes(9),
    received: 7,
    lifeline: true,
    join: 'standby',
    proof: bytes(0, 255),
  },
  welcome: { received: 12, proof: bytes(5), number: 9, size: 8 },
  refused: { reason: 'WHY', text: 'a sentence' },
  ping: {},
  ack: {},
  modexPut: { json: bytes(0x7b, 0x7d) },
  modexPart: { packed: bytes(1, 2, 3), last: true, count: 9 },
  modexUpdate: { rank: 2, json: bytes(0x32) },
  barrierEnter: { name: 'ü', tolerant: true },
  barrierDone: { name: '', dead: [1, 5] },
  barrierAsk: { name: 'finalize' },
  barrierMissing: { name: 'finalize', ranks: [0, 7] },
  standbyState: { rank: 4, waiting: false, place: 2 },
  standbyCall: { rank: 4, call: bytes(1, 8) },
  processJoined: { number: 9, incarnation: Number.MAX_SAFE_INTEGER, json: bytes(0x7b, 0x7d) },
  standbysEnd: {},
  collectiveFailed: { modex: true, name: '', rank: 0, text: 'gone' },
  abort: { rank: 1, code: -3, reason: 'why', stack: 'at x\nat y' },
  processExit: { rank: 0, code: 0, signal: '', finalized: false, lost: false, replaced: false },
  unreachable: { rank: 3, forMs: 10_000, final: true },
  railEvent: { json: bytes(0x30) },
  finalized: {},
  waitsAsk: { reason: 'SIGUSR2' },
  waitsRequest: { id: 3 },
  waitsReport: { id: 3, json: bytes(0x7b, 0x7d) },
  telemetry: {
    atUs: 2 ** 50,
    aliveMs: 12,
    turns: 7,
    retainedBytes: 0,
    takesFaults: true,
    rails: [
      {
        peer: 1,
        rail: 0,
        state: 'UP',
        epoch: 3,
        reason: '',
        outstandingBytes: 5,
        windowBytes: 6,
        measuredBytesPerSecond: 7,
        counters: [1, 2 ** 52],
        name: { key: 'eth0~eth1', transport: 'tcp', standby: true, bandwidthBytesPerSecond: 1.25e8, latencyUs: 0.5 },
      },
    ],
    moves: [{ peer: 1, rail: 0, from: 'UP', to: 'DOWN', reason: 'reset: why', atUs: 9 }],
    movesDropped: 1,
    counters: { bytesResent: 65536, restarts: 0 },
  },
  railFault: { action: 'pull', peer: 1, rail: 2 },
};

/** Buffers and plain views with the same bytes are the same here. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, item) => (item?.type === 'Buffer' ? item.data : item instanceof Uint8Array ? [...item] : item)));

/** The text of proto.js: what pbjs makes of a definition, short, since each rank reads it. */
async function codecOf(definition: string): Promise<string> {
  const left = ['create', 'verify', 'delimited', 'typeurl', 'service', 'comments', 'beautify'].map((part) => `--no-${part}`);
  const args = ['--target', 'static-module', '--wrap', 'esm', '--dependency', 'protobufjs/minimal.js', ...left, definition];
  const text = await promisify((done: (error: Error | null, text?: string) => void) => pbjs.main(args, done))();
  const { code } = await transform(text as string, { minify: true, format: 'esm', lineLimit: 160, legalComments: 'none' });
  return `// Made by protobufjs-cli from oob.proto: UPDATE_PROTO=1 npx vitest run --project unit test/unit/launch\n${code}`;
}

describe('oob messages', () => {
  for (const kind of Object.keys(EXAMPLES) as OobKind[]) {
    test(`${kind} comes back as it was`, () => {
      const envelope = decodeEnvelope(encodeEnvelope(5, 2 ** 52, kind, EXAMPLES[kind]));
      expect(plain(envelope)).toEqual(plain({ sequence: 5, acknowledged: 2 ** 52, kind, body: EXAMPLES[kind] }));
    });
  }

  test('the bytes are those of whoever reads the definition', () => {
    const type = protobuf.loadSync(DEFINITION).lookupType('multirail.oob.v1.Envelope');
    for (const [kind, body] of Object.entries(EXAMPLES) as [OobKind, OobBodies[OobKind]][]) {
      const bytes = type.encode(type.fromObject({ sequence: 5, acknowledged: 2 ** 52, [kind]: body })).finish();
      expect(Buffer.from(encodeEnvelope(5, 2 ** 52, kind, body))).toEqual(bytes);
    }
  });

  test('an exit by a signal has no code, which is not code 0', () => {
    const envelope = decodeEnvelope(
      encodeEnvelope(1, 0, 'processExit', { rank: 1, signal: 'SIGKILL', finalized: false, lost: false, replaced: false }),
    );
    expect(envelope.body).not.toHaveProperty('code');
  });

  test('random bytes are refused by ERR_PROTOCOL or are a whole envelope, and nothing else happens', async () => {
    await fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (input) => {
        try {
          expect(EXAMPLES).toHaveProperty(decodeEnvelope(input).kind);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_PROTOCOL' });
        }
      }),
    );
  });

  test('a number beyond 2^53 is refused', () => {
    // Field 1 (sequence) as the largest varint, then an empty ping.
    const input = Buffer.from('08ffffffffffffffffff017200', 'hex');
    expect(() => decodeEnvelope(input)).toThrow(expect.objectContaining({ code: 'ERR_PROTOCOL' }));
  });

  test('a message larger than its bound is not encoded', () => {
    const json = new Uint8Array(MESSAGE_BYTES_MAX);
    expect(() => encodeEnvelope(1, 0, 'modexPut', { json })).toThrow(expect.objectContaining({ code: 'ERR_OOB' }));
    expect(() => encodeJson('x'.repeat(100), 100, 'it')).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    expect(() => encodeJson(undefined, 100, 'it')).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    expect(Buffer.byteLength(boundedText('€'.repeat(TEXT_BYTES_MAX)))).toBeLessThanOrEqual(TEXT_BYTES_MAX);
  });

  test('a proof covers every claim, both nonces, the secret and the direction', () => {
    const secret = Buffer.alloc(32, 1);
    const hello = EXAMPLES.hello;
    const proof = proofOfRank(secret, bytes(1), hello);
    expect(proofEquals(proof, proofOfRank(Buffer.alloc(32, 1), bytes(1), { ...hello }))).toBe(true);
    const others = [
      proofOfRank(Buffer.alloc(32, 2), bytes(1), hello),
      proofOfRank(secret, bytes(2), hello),
      proofOfRank(secret, bytes(1), { ...hello, nonce: bytes(8) }),
      proofOfRank(secret, bytes(1), { ...hello, rank: 2 }),
      proofOfRank(secret, bytes(1), { ...hello, jobId: 'other' }),
      proofOfRank(secret, bytes(1), { ...hello, incarnation: 1 }),
      proofOfRank(secret, bytes(1), { ...hello, received: 8 }),
      proofOfRank(secret, bytes(1), { ...hello, join: 'index' }),
      proofOfRank(secret, bytes(1), { ...hello, join: '' }),
      proofOfLauncher(secret, bytes(1), hello, { received: hello.received, number: 9, size: 8 }),
    ];
    for (const other of others) expect(proofEquals(proof, other)).toBe(false);
    expect(proofEquals(proof, proof.subarray(1))).toBe(false);
    // What a process that joins later is given is covered, too.
    const given = { received: 7, number: 9, size: 8 };
    const welcome = proofOfLauncher(secret, bytes(1), hello, given);
    for (const other of [
      { ...given, received: 8 },
      { ...given, number: 10 },
      { ...given, size: 9 },
    ])
      expect(proofEquals(welcome, proofOfLauncher(secret, bytes(1), hello, other))).toBe(false);
  });

  test('proto.js is what protobufjs-cli makes of oob.proto', async () => {
    const made = await codecOf(DEFINITION);
    const file = new URL('proto.js', FOLDER);
    if (process.env.UPDATE_PROTO === '1') writeFileSync(file, made);
    expect(readFileSync(file, 'utf8') === made, 'write it again by UPDATE_PROTO=1').toBe(true);
  });
});
