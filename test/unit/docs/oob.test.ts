// docs/internals/OOB.md says what src/launch does: the definition of its messages, the proofs, the bounds, and who sends what.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { encodeEnvelope } from '../../../src/launch/oob/envelope.ts';
import {
  HANDSHAKE_BYTES_MAX,
  MESSAGE_BYTES_MAX,
  MODEX_BYTES_MAX,
  NAME_BYTES_MAX,
  OOB_PATH,
  OOB_VERSION,
  proofOfLauncher,
  proofOfRank,
  RAIL_EVENT_BYTES_MAX,
  TEXT_BYTES_MAX,
  WAITS_BYTES_MAX,
} from '../../../src/launch/oob/messages.ts';
import { OUTBOX_BYTES_MAX, OUTBOX_MESSAGES_MAX } from '../../../src/launch/oob/session.ts';

const OOB_MD = new URL('../../../docs/internals/OOB.md', import.meta.url);
const OOB_JSON = new URL('../../../docs/internals/golden/oob.json', import.meta.url);

const OOB_PROTO = readFileSync(new URL('../../../src/launch/oob/oob.proto', import.meta.url), 'utf8');

const SECRET = Uint8Array.from({ length: 32 }, (_, i) => i);
const SERVER_NONCE = new Uint8Array(32).fill(0x20);
const HELLO = {
  version: OOB_VERSION,
  jobId: 'job "1"',
  rank: 1,
  size: 2,
  incarnation: 1_700_000_000_000_000,
  pid: 4711,
  hostId: 'böot/4026531840',
  nonce: new Uint8Array(32).fill(0x40),
  received: 0,
  lifeline: false,
  join: '' as const,
};

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** In lines of 32 bytes. */
const lines = (bytes: Uint8Array): string => hex(bytes).replace(/(.{64})(?=.)/g, '$1\n');

function renderGolden(): string {
  const proof = proofOfRank(SECRET, SERVER_NONCE, HELLO);
  return [
    '```text',
    `secret            ${hex(SECRET)}`,
    `Challenge.nonce   ${hex(SERVER_NONCE)}`,
    `Hello.nonce       ${hex(HELLO.nonce)}`,
    `Hello             version=${HELLO.version} job_id=${HELLO.jobId} rank=${HELLO.rank} size=${HELLO.size}`,
    `                  incarnation=${HELLO.incarnation} pid=${HELLO.pid} host_id=${HELLO.hostId} received=${HELLO.received} lifeline=${HELLO.lifeline}`,
    `Hello.proof       ${hex(proof)}`,
    'Welcome.received  3',
    `Welcome.proof     ${hex(proofOfLauncher(SECRET, SERVER_NONCE, HELLO, { received: 3, number: 0, size: 0 }))}`,
    '```',
    '',
    'The whole envelope of that Hello, and a Ping that acknowledges message 5:',
    '',
    '```text',
    lines(encodeEnvelope(0, 0, 'hello', { ...HELLO, proof })),
    '',
    lines(encodeEnvelope(0, 5, 'ping', {})),
    '```',
  ].join('\n');
}

/** The same for programs. */
function goldenJson(): unknown {
  const proof = proofOfRank(SECRET, SERVER_NONCE, HELLO);
  const { nonce, join: _, ...claims } = HELLO;
  return {
    secret: hex(SECRET),
    challengeNonce: hex(SERVER_NONCE),
    helloNonce: hex(nonce),
    claims,
    helloProof: hex(proof),
    hello: hex(encodeEnvelope(0, 0, 'hello', { ...HELLO, proof })),
    welcomeReceived: 3,
    welcomeProof: hex(proofOfLauncher(SECRET, SERVER_NONCE, HELLO, { received: 3, number: 0, size: 0 })),
    ping: hex(encodeEnvelope(0, 5, 'ping', {})),
  };
}

/** What stands between two marks. */
function marked(text: string, name: string): { before: string; inside: string; after: string } {
  const [before, rest] = text.split(`<!-- ${name}: begin (written by test/unit/docs/oob.test.ts) -->\n`);
  const [inside, after] = rest.split(`\n<!-- ${name}: end -->`);
  return { before, inside, after };
}

function put(text: string, name: string, inside: string): string {
  const { before, after } = marked(text, name);
  return `${before}<!-- ${name}: begin (written by test/unit/docs/oob.test.ts) -->\n\n${inside}\n\n<!-- ${name}: end -->${after}`;
}

const definition = `\`\`\`protobuf\n${OOB_PROTO.trim()}\n\`\`\``;

if (process.env.UPDATE_GOLDEN === '1') {
  writeFileSync(OOB_JSON, `${JSON.stringify(goldenJson(), null, 2)}\n`);
  writeFileSync(OOB_MD, put(put(readFileSync(OOB_MD, 'utf8'), 'definition', definition), 'golden', renderGolden()));
}

const text = readFileSync(OOB_MD, 'utf8');

describe('docs/internals/OOB.md', () => {
  test('carries the whole of oob.proto', () => {
    expect(marked(text, 'definition').inside.trim()).toBe(definition);
  });

  test('its golden proofs are those of the code', () => {
    expect(marked(text, 'golden').inside.trim()).toBe(renderGolden());
    expect(JSON.parse(readFileSync(OOB_JSON, 'utf8'))).toEqual(goldenJson());
  });

  test('lists every body of an envelope with its number', () => {
    const bodies = [...(/oneof body \{([^}]*)\}/.exec(OOB_PROTO)?.[1] ?? '').matchAll(/(\w+) \w+ = (\d+);/g)].map(([, name, number]) => [
      number,
      name,
    ]);
    expect(bodies.length).toBeGreaterThan(20);
    const rows = [...text.matchAll(/^\| (\d+) \| (\w+) \| (?:rank|server|either) \|/gm)].map(([, number, name]) => [number, name]);
    expect(rows).toEqual(bodies);
  });

  test('says every variable that multirail run sets, and every reason of a refusal', () => {
    const launcher = readFileSync(new URL('../../../src/launch/run/rank-starter.ts', import.meta.url), 'utf8');
    const set = [...launcher.matchAll(/env\.(MULTIRAIL_\w+) = /g)].map(([, name]) => name);
    expect(set.length).toBeGreaterThan(6);
    expect(set.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
    const admission = readFileSync(new URL('../../../src/launch/oob/admission.ts', import.meta.url), 'utf8');
    const reasons = [...admission.matchAll(/\['([A-Z_]{5,})', /g)].map(([, name]) => name);
    expect(reasons.length).toBeGreaterThan(5);
    const rows = [
      ...text
        .split('## 3. ')[1]
        .split('\n## ')[0]
        .matchAll(/^\| `([A-Z_]{5,})` \|/gm),
    ].map(([, name]) => name);
    expect(rows).toEqual([...new Set(reasons)]);
  });

  test('its bounds are those of the code', () => {
    const number = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, value >= 10_000 ? ' ' : '');
    const bounds = [
      HANDSHAKE_BYTES_MAX,
      MESSAGE_BYTES_MAX,
      MODEX_BYTES_MAX,
      RAIL_EVENT_BYTES_MAX,
      WAITS_BYTES_MAX,
      TEXT_BYTES_MAX,
      NAME_BYTES_MAX,
      OUTBOX_MESSAGES_MAX,
    ];
    const section = text.split('## 10. Bounds')[1];
    for (const bound of bounds) expect(section).toContain(number(bound));
    expect(section).toContain(`${OUTBOX_BYTES_MAX / 1024 / 1024} MiB`);
    expect(text).toContain(`GET ${OOB_PATH}`);
    expect(text).toContain(`Version ${OOB_VERSION}.`);
  });
});
