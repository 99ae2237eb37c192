// The bulletin: records of ends, who may ask for them, and a process that reads them without the event loop.
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { BulletinBoard, bulletinAsk, decodeRecord, encodeRecord, RECORD_BYTES, recordKey } from '../../../src/launch/oob/bulletin.ts';
import type { ExitInfo, Member } from '../../../src/launch/oob/member.ts';
import { BulletinReader } from '../../../src/mpi/ft/bulletin-reader.ts';
import { loadNative } from '../../../src/native/load.ts';
import { Poller } from '../../../src/native/poller.ts';

const SECRET = new Uint8Array(32).fill(7);
const WHO = { jobId: 'job', rank: 1, incarnation: 42 };
const EXITS: ExitInfo[] = [
  { code: 0, signal: '', finalized: true, lost: false },
  { code: 255, signal: '', finalized: false, lost: false },
  { code: undefined, signal: 'SIGKILL', finalized: false, lost: false },
  { code: undefined, signal: '', finalized: false, lost: true, replaced: true },
];

describe('records', () => {
  const key = recordKey(SECRET, { ...WHO, nonce: new Uint8Array(32) });
  test('come out as they went in', () => {
    for (const [i, exit] of EXITS.entries()) {
      const record = Buffer.from(encodeRecord(key, i + 1, 1000 + i, exit));
      expect(record).toHaveLength(RECORD_BYTES);
      expect(decodeRecord(key, i + 1, record)).toEqual({ number: 1000 + i, exit });
    }
  });

  test('one is refused when any bit of it is changed, at another place in the row, and on another connection', () => {
    const record = Buffer.from(encodeRecord(key, 3, 5, EXITS[2]));
    for (let bit = 0; bit < RECORD_BYTES * 8; bit++) {
      const changed = Buffer.from(record);
      changed[bit >> 3] ^= 1 << (bit & 7);
      expect(decodeRecord(key, 3, changed), `bit ${bit}`).toBeUndefined();
    }
    expect(decodeRecord(key, 4, record)).toBeUndefined();
    expect(decodeRecord(recordKey(SECRET, { ...WHO, nonce: new Uint8Array(32).fill(1) }), 3, record)).toBeUndefined();
    expect(decodeRecord(key, 3, record.subarray(1))).toBeUndefined();
  });
});

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const memberOf = (rank: number, exit?: ExitInfo): Member =>
  ({ rank, exit, info: { incarnation: 41 + rank, pid: 1, hostId: '' } }) as unknown as Member;

async function makeBoard() {
  const members = [memberOf(0, EXITS[0]), memberOf(1), memberOf(2), memberOf(3, EXITS[1])];
  const proven: string[] = [];
  // Nobody has heard of process 3.
  const board = new BulletinBoard(
    { secret: SECRET, jobId: 'job' },
    members,
    (number) => number !== 3,
    ({ remoteAddress }) => proven.push(remoteAddress ?? ''),
  );
  closers.push(() => board.close());
  const port = await listening(createServer((request, response) => board.take(request, response)));
  return { board, members, port, proven };
}

/** First line of the answer to a request. */
async function answerTo(port: number, request: Uint8Array | string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  closers.push(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.write(request);
  return await new Promise((resolve) => socket.once('data', (data) => resolve(String(data).split('\r\n')[0])));
}

test('only a living process of the job is answered', async () => {
  const { members, port, proven } = await makeBoard();
  const ask = (who: Partial<typeof WHO>, secret = SECRET): Uint8Array =>
    bulletinAsk(secret, { ...WHO, ...who }, { host: '', port }).request;
  for (const stranger of [
    ask({}, new Uint8Array(32)),
    ask({ rank: 2 }),
    ask({ incarnation: 43 }),
    ask({ rank: 9 }),
    ask({ jobId: 'other' }),
    Buffer.from(String(Buffer.from(ask({}))).replace('rank=1', 'rank=0')),
    'GET /multirail-bulletin HTTP/1.0\r\n\r\n',
    'GET /multirail-bulletin?rank=1&nonce=zz&proof= HTTP/1.0\r\n\r\n',
  ])
    expect(await answerTo(port, stranger)).toMatch(/ 403 /);
  expect(await answerTo(port, 'GET /elsewhere HTTP/1.0\r\n\r\n')).toMatch(/ 426 /);
  expect(proven).toEqual([]);
  expect(await answerTo(port, ask({}))).toMatch(/ 200 /);
  expect(proven).toHaveLength(1);
  members[1].exit = EXITS[2];
  expect(await answerTo(port, ask({}))).toMatch(/ 403 /);
});

const { binding: native, reason } = loadNative();
if (native === undefined) console.log(`skipped: the bulletin is read by the native poller: ${reason}`);

describe.skipIf(native === undefined)('a process that reads it', () => {
  /** Looks as blocking calls do. The server of the test has its turns in between. */
  async function until(poller: Poller, isDone: () => boolean, looks = 2000): Promise<void> {
    for (let i = 0; i < looks && !isDone(); i++) {
      poller.look(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(isDone()).toBe(true);
  }

  function makeReader(port: number, told: [number, ExitInfo][]): { poller: Poller; reader: BulletinReader } {
    const poller = new Poller(native as NonNullable<typeof native>, () => false);
    const ask = () => bulletinAsk(SECRET, WHO, { host: '127.0.0.1', port });
    const reader = new BulletinReader(poller, ask, (number, exit) => told.push([number, exit]));
    closers.push(() => {
      reader.close();
      poller.close();
    });
    reader.dial();
    return { poller, reader };
  }

  test('is told of what was before, and of what comes, in that order, and of itself by the end', async () => {
    const { board, port } = await makeBoard();
    const told: [number, ExitInfo][] = [];
    const { poller, reader } = makeReader(port, told);
    await until(poller, () => told.length === 1);
    for (let number = 4; number < 204; number++) board.post(number, EXITS[number % 4]);
    board.post(3, EXITS[1]);
    await until(poller, () => told.length === 201);
    expect(told.map(([number]) => number)).toEqual([0, ...Array.from({ length: 200 }, (_, i) => 4 + i)]);
    expect(told[3][1]).toEqual(EXITS[2]);
    board.post(1, EXITS[2]);
    await until(poller, () => reader.state === 'AWAY');
  });

  test('a server that proves nothing is left, whatever it says, and nothing of it is told', async () => {
    for (const answer of ['HTTP/1.1 403 Forbidden\r\n\r\n', `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(RECORD_BYTES)}`, 'x'.repeat(5000)]) {
      const port = await listening(createTcpServer((socket) => socket.on('error', () => undefined).end(answer)));
      const told: [number, ExitInfo][] = [];
      const { poller, reader } = makeReader(port, told);
      await until(poller, () => reader.state === 'AWAY');
      expect(told).toEqual([]);
    }
  });
});
