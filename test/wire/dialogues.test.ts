// docs/internals/golden/dialogues.json: written by dialogues.ts, and played to multirail's endpoint and to the Python peer.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PACKET } from '../../src/pml/hdr.ts';
import { type Case, CaseContext } from '../../tools/wire-suite/case.ts';
import { type Control, localControl, spawnControl } from '../../tools/wire-suite/control.ts';
import { EndpointDriver } from '../../tools/wire-suite/endpoint/driver.ts';
import { packetBytesOf, type Rail } from '../../tools/wire-suite/rail.ts';
import { Session } from '../../tools/wire-suite/session.ts';
import { type Dialogue, makeDialogues } from './dialogues.ts';

const URL_OF_FILE = new URL('../../docs/internals/golden/dialogues.json', import.meta.url);
const PYTHON = new URL('../../examples/python-peer/', import.meta.url).pathname;

if (process.env.UPDATE_GOLDEN === '1') writeFileSync(URL_OF_FILE, `${JSON.stringify(makeDialogues(), null, 2)}\n`);
const golden = JSON.parse(readFileSync(URL_OF_FILE, 'utf8')) as ReturnType<typeof makeDialogues>;

test('the file is what the encoders make', () => {
  expect(golden).toEqual(makeDialogues());
});

/** Frames of the file, with the counters of the rail kept in step. */
function say(rail: Rail, hex: string): void {
  const bytes = new Uint8Array(Buffer.from(hex, 'hex'));
  const view = new DataView(bytes.buffer);
  if (bytes[1] === 1 || bytes[1] === 6) rail.sentFrames = view.getUint32(12, true);
  rail.toldFrames = view.getUint32(16, true);
  rail.write(bytes);
}

/** RESTARTNACK may leave context and number out. */
function comparable(packet: string, type: number): string {
  return type === PACKET.RNDVRESTARTNACK
    ? `${packet.slice(0, 72)}${'0'.repeat(8)}${packet.slice(80, 88)}${'0'.repeat(8)}${packet.slice(96)}`
    : packet;
}

async function play(control: Control, dialogue: Dialogue): Promise<string[]> {
  const one: Case = { name: dialogue.name, group: 'rendezvous', needs: [], clauses: ['RV-2'], run: async () => undefined };
  const t = new CaseContext(one, control, { transport: 'tcp', limitMs: 5000, quietMs: 20 }, await control.run('describe', {}));
  const session = await Session.begin(t, { unexpectedBytesMax: golden.unexpectedBytesMax });
  const requests: number[] = [];
  for (const { source, tag, ctx, bytes } of dialogue.receives) requests.push(await session.recv(source, tag, bytes, ctx));
  let rail: Rail | undefined;
  try {
    for (const step of dialogue.steps) {
      if (step.step === 'connect') {
        rail?.drop();
        rail = await session.connect(0, step.epoch, { autoCount: false });
        continue;
      }
      if (rail === undefined) throw new Error('a dialogue begins with connect');
      const live = rail;
      if (step.step === 'say') say(live, step.hex);
      else if (step.step === 'hear') {
        const arrival = await session.expect('RV-2', PACKET[step.name as keyof typeof PACKET], step.name);
        const type = arrival.packet.type;
        expect(comparable(Buffer.from(packetBytesOf(arrival.packet)).toString('hex'), type), step.name).toBe(comparable(step.packet, type));
      } else if (step.step === 'hearOwn') {
        const heard = () => live.own.some(({ kind, frameNumber }) => kind === step.kind && frameNumber === step.frameNumber);
        expect(await session.until(heard), `${step.name} ${step.frameNumber}`).toBe(true);
      } else {
        const state = await session.done('RV-2', requests[step.request], dialogue.name);
        expect(state).toMatchObject({ tag: step.tag, bytes: step.bytes, sha256: step.sha256 });
        expect(state.error).toBe(step.error);
      }
    }
    await session.settle();
    session.nothingElse('RV-2');
    return t.findings.filter(({ ok }) => !ok).map(({ clause, text }) => `${clause}: ${text}`);
  } finally {
    for (const cleanup of t.cleanups.reverse()) await cleanup();
  }
}

describe('our endpoint', () => {
  test.each(golden.dialogues)('$name', async (dialogue) => {
    const control = localControl(new EndpointDriver({ version: 'test' }));
    expect(await play(control, dialogue)).toEqual([]);
    await control.close();
  });
});

describe('the Python peer', () => {
  const why =
    spawnSync('python3', ['-c', 'assert __import__("sys").version_info >= (3, 8)']).status === 0
      ? undefined
      : 'there is no python3 of 3.8 or later';
  if (why !== undefined) console.log(`skipped: golden dialogues with the Python peer: ${why}`);

  test.skipIf(why !== undefined).each(golden.dialogues)('$name', async (dialogue) => {
    const control = spawnControl('python3', [`${PYTHON}peer.py`]);
    try {
      expect(await play(control, dialogue)).toEqual([]);
    } finally {
      await control.close();
    }
  });

  test.skipIf(why !== undefined)('golden packets, frames and handshake as its own code sees them', () => {
    const done = spawnSync('python3', [`${PYTHON}check_golden.py`], { encoding: 'utf8' });
    expect(done.stderr).toBe('');
    expect(done.stdout).toMatch(/^\d{2} golden vectors hold\n$/);
  });
});
