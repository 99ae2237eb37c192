// The process that serves the channel of a job without our launcher: what rank 0 tells it of a rank that the starter says is gone reaches the
// others as a launcher's notice does.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newIncarnation } from '../../src/launch/meeting/identity.ts';
import type { ServerAnswer } from '../../src/launch/meeting/main.ts';
import type { ServerSettings } from '../../src/launch/meeting/serve.ts';
import { OobClient } from '../../src/launch/oob/client.ts';
import { type BuiltCode, buildCode } from '../support/helpers.ts';

let code: BuiltCode;
beforeAll(async () => {
  code = await buildCode([]);
});
afterAll(() => code?.dispose());

test('a rank that is gone, as rank 0 was told: the others hear it, also from an engine of their own, and once', async () => {
  const secret = randomBytes(32);
  const settings: ServerSettings = {
    jobId: 'job',
    size: 3,
    secret: secret.toString('base64'),
    listen: [['127.0.0.1:0']],
    reconnectTimeoutMs: 60_000,
    joinTimeoutMs: 60_000,
    exitGraceMs: 60_000,
    waitsJsonFile: '',
  };
  const server = spawn(process.execPath, [join(code.folder, 'rendezvous.mjs')], { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  server.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  server.stdin.write(`${JSON.stringify(settings)}\n`);
  const [answer] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
  const { urls } = JSON.parse(answer) as ServerAnswer & { urls: string[] };
  const clients = [0, 1, 2].map(
    (rank) =>
      new OobClient({
        urls,
        secret,
        jobId: 'job',
        rank,
        size: 3,
        incarnation: newIncarnation(),
        hostId: 'host',
        reconnectTimeoutMs: 60_000,
        lifeline: true,
      }),
  );
  try {
    await Promise.all(clients.map((client) => client.hello()));
    const [zero, , two] = clients;
    const heard: unknown[] = [];
    zero.on('exit', (rank, info) => heard.push([0, rank, info]));
    two.on('exit', (rank, info) => heard.push([2, rank, info]));
    const gone = { code: undefined, signal: '', finalized: false, lost: false };
    // Rank 2 has it from the starter before the server says it.
    two.processGone(1);
    two.processGone(2);
    two.processGone(7);
    expect(heard).toEqual([[2, 1, gone]]);
    const told = once(zero, 'exit');
    // Two in one write, and numbers of which none is a rank.
    server.stdin.write('{"gone":1}\n{"gone":1}\n{"gone":-1}\n{"gone":"2"}\n{"gone":3}\n');
    await told;
    // The server goes on: it does not count rank 1 any more.
    expect(await Promise.all([zero.barrier('after', { tolerant: true }), two.barrier('after', { tolerant: true })])).toEqual([[1], [1]]);
    expect(heard).toEqual([
      [2, 1, gone],
      [0, 1, gone],
    ]);
    expect(said.match(/rank 1 \(pid \d+\) has ended without finalize\(\), says what started it\n/g)).toHaveLength(1);
  } finally {
    await Promise.all(clients.map((client) => client.close(0)));
    server.kill('SIGKILL');
  }
});
