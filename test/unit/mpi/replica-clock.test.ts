// The processor time of replicas on other hosts: who is asked, who answers, and what is not believed.
import { createSocket, type Socket } from 'node:dgram';
import { afterEach, expect, it } from 'vitest';
import { ClockMemory } from '../../../src/mpi/replica/clock/clock-memory.ts';
import { type ClockAddress, type ClockReading, ClockSocket, checkClockAddress } from '../../../src/mpi/replica/clock/clock-socket.ts';

const LOOPBACK = ['127.0.0.1'];
const SECRET = new Uint8Array(32).fill(7);
const opened: { close(): void }[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
});

interface Process {
  readonly socket: ClockSocket;
  readonly address: ClockAddress;
  reading: ClockReading;
  readonly answers: [from: number, question: number, ms: number, calls: number][];
  ends: number;
}

async function process(self: number, secret = SECRET, addresses = LOOPBACK): Promise<Process> {
  const socket = new ClockSocket({
    self,
    secret,
    addresses,
    read: () => made.reading,
    onAnswer: (from, question, { ms, calls }) => made.answers.push([from, question, ms, calls]),
    onEnd: () => made.ends++,
  });
  opened.push(socket);
  const made: Process = { socket, address: await socket.open(), reading: { ms: 0, calls: 0 }, answers: [], ends: 0 };
  return made;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** A socket in between: what comes to it is kept, and goes on by hand. */
async function between(to: ClockAddress): Promise<{ socket: Socket; port: number; seen: Buffer[]; pass(bytes: Uint8Array): void }> {
  const socket = createSocket('udp4');
  const seen: Buffer[] = [];
  socket.on('message', (bytes, from) => {
    if (from.port !== to.port) seen.push(bytes);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  opened.push(socket);
  return { socket, port: socket.address().port, seen, pass: (bytes) => socket.send(bytes, to.port, '127.0.0.1') };
}

it('is told by the one that is asked, with the number of the question', async () => {
  const [asks, asked] = [await process(0), await process(4)];
  asks.socket.know(4, asked.address);
  asked.reading = { ms: 1234.5, calls: 17 };
  asks.socket.ask(4, 1);
  await until(() => asks.answers.length === 1);
  asked.reading = { ms: 2000, calls: Number.POSITIVE_INFINITY };
  asks.socket.ask(4, 2);
  await until(() => asks.answers.length === 2);
  expect(asks.answers).toEqual([
    [4, 1, 1234.5, 17],
    [4, 2, 2000, Number.POSITIVE_INFINITY],
  ]);
  expect(asked.answers).toEqual([]);
});

it('is asked at all addresses of a process until one of them answers', async () => {
  const [asks, asked] = [await process(0), await process(4)];
  // Nobody is at the first one.
  asks.socket.know(4, { ...asked.address, addresses: ['127.0.0.1', '192.0.2.1', '127.0.0.1'] });
  asks.socket.ask(4, 1);
  await until(() => asks.answers.length > 0);
  asks.socket.ask(4, 2);
  await until(() => asks.answers.length > 1);
  // The second copy of the first question has an answer as well, to a question that is over.
  expect(asks.answers.map(([, question]) => question)).toEqual([1, 2]);
});

it('is not believed of a stranger, of another process, of another job, or twice', async () => {
  const [asks, asked, stranger] = [await process(0), await process(4), await process(4, new Uint8Array(32).fill(8))];
  // A stranger gets no answer, and gives none that counts.
  stranger.socket.know(4, asked.address);
  stranger.socket.ask(4, 1);
  stranger.socket.end(4);
  asks.socket.know(4, stranger.address);
  asks.socket.ask(4, 1);
  const middle = await between(asked.address);
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(80), Buffer.alloc(1400, 1)]) middle.pass(bytes);
  // Behind all of that, one that is right.
  asks.socket.know(4, { ...asked.address, port: middle.port });
  asks.socket.ask(4, 2);
  await until(() => middle.seen.length === 1);
  const [question] = middle.seen;
  // Whoever changes it, or sends it to another process, has no proof.
  for (const at of [5, 8, 12, 16, 40, 79]) {
    const changed = Buffer.from(question);
    changed[at] ^= 1;
    middle.pass(changed);
  }
  asks.socket.know(4, asked.address);
  asks.socket.ask(4, 3);
  await until(() => asks.answers.length === 1);
  expect([asks.answers[0].slice(0, 2), asked.ends, stranger.answers, stranger.ends]).toEqual([[4, 3], 0, [], 0]);
});

it('has one that was told to leave end itself, at the word of those that know its key', async () => {
  const [lead, shadow] = [await process(0), await process(8)];
  lead.socket.know(8, shadow.address);
  lead.socket.end(8);
  await until(() => shadow.ends === 1);
  expect(lead.ends).toBe(0);
});

it('keeps few questions that nobody answers', async () => {
  const asks = await process(0);
  const silent = await between({ port: 1, addresses: LOOPBACK, salt: '' });
  asks.socket.know(4, { port: silent.port, addresses: LOOPBACK, salt: 'salt' });
  for (let question = 1; question <= 1000; question++) asks.socket.ask(4, question);
  const { others } = asks.socket as unknown as { others: Map<number, { questions: Map<string, number> }> };
  expect([...(others.get(4)?.questions.values() ?? [])]).toEqual([993, 994, 995, 996, 997, 998, 999, 1000]);
});

it('lies where both threads see it', () => {
  const buffers = ClockMemory.make(2);
  const [here, there] = [new ClockMemory(buffers), new ClockMemory(buffers)];
  here.calls[0] = 5;
  expect(there.calls[0]).toBe(5);
  there.write(1, 3, { ms: 10, calls: 7 });
  expect([here.read(1, 4), here.read(1, 3), here.read(1, 2), here.read(0, 1)]).toEqual([
    undefined,
    { ms: 10, calls: 7 },
    { ms: 10, calls: 7 },
    undefined,
  ]);
});

it.each([
  [undefined],
  ['text'],
  [{ port: 0, addresses: [], salt: '' }],
  [{ port: 70_000, addresses: [], salt: '' }],
  [{ port: 5, addresses: 'a', salt: '' }],
  [{ port: 5, addresses: [1], salt: '' }],
  [{ port: 5, addresses: Array.from({ length: 9 }, () => 'a'), salt: '' }],
  [{ port: 5, addresses: [] }],
])('is not asked at %j', (address) => {
  expect(checkClockAddress(address)).toBeUndefined();
});
