// Processes that join a running job, over real loopback sockets: numbers, who is told what and in which order, when they stand by, and who is
// refused with which reason.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { newIncarnation } from '../../../src/launch/meeting/identity.ts';
import { judgeHello } from '../../../src/launch/oob/admission.ts';
import { OobClient, type OobClientOptions } from '../../../src/launch/oob/client.ts';
import { type HelloBody, NONCE_BYTES, OOB_VERSION, proofOfRank } from '../../../src/launch/oob/messages.ts';
import { OobServer, type OobServerOptions } from '../../../src/launch/oob/server.ts';
import { PROCESSES_MAX } from '../../../src/ulfm/limits.ts';

const SECRET = randomBytes(32);
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function makeServer(size: number, options: Partial<OobServerOptions> = {}): Promise<OobServer> {
  const limits = { reconnectTimeoutMs: 10_000, exitGraceMs: 100, pingIntervalMs: 20 };
  const server = new OobServer({ jobId: 'job', size, secret: SECRET, knowsProcesses: true, takesJoins: true, ...limits, ...options });
  await server.open();
  cleanups.push(() => server.close());
  return server;
}

function makeClient({ urls }: OobServer, rank: number, size: number, options: Partial<OobClientOptions> = {}): OobClient {
  const named = { urls, secret: SECRET, jobId: 'job', rank, size, incarnation: newIncarnation(), hostId: `host of ${rank}` };
  const client = new OobClient({ ...named, reconnectTimeoutMs: 10_000, pingIntervalMs: 20, ...options });
  cleanups.push(() => client.close(0));
  return client;
}

/** A server and the processes of the start, which have met. */
async function makeJob(size: number, options: Partial<OobServerOptions> = {}): Promise<{ server: OobServer; clients: OobClient[] }> {
  const server = await makeServer(size, options);
  const clients = Array.from({ length: size }, (_, rank) => makeClient(server, rank, size));
  await Promise.all(clients.map((client) => client.hello()));
  await Promise.all(clients.map((client) => client.modex({ of: client.rank })));
  return { server, clients };
}

const newcomer = (server: OobServer, options: Partial<OobClientOptions> = {}): OobClient =>
  makeClient(server, 0, 0, { join: 'standby', lifeline: true, ...options });

/** What a process is told of others, in the order in which it hears it. */
function heardBy(client: OobClient): string[] {
  const heard: string[] = [];
  client.on('processJoined', (number, _, json) => void heard.push(`${number} joined: ${JSON.stringify(json)}`));
  client.on('standbyState', (number, isWaiting) => void heard.push(`${number} ${isWaiting ? 'waits' : 'works'}`));
  client.on('exit', (number, { replaced }) => void heard.push(`${number} ${replaced === true ? 'replaced' : 'ended'}`));
  return heard;
}

describe('a process that joins a running job', () => {
  test('gets the next number and all entries; the others hear of it, and then that it waits', async () => {
    const { server, clients } = await makeJob(2);
    const heard = clients.map(heardBy);
    const ready = clients.map((client) => once(client, 'standbyState'));
    const third = newcomer(server);
    await third.hello();
    expect([third.rank, third.size, third.isLate, third.jobId]).toEqual([2, 2, true, 'job']);
    const entries = await third.modex({ of: 'the third' });
    expect([0, 1, 2, 3].map((number) => entries.at(number))).toEqual([{ of: 0 }, { of: 1 }, { of: 'the third' }, undefined]);
    await Promise.all(ready);
    for (const one of heard) expect(one).toEqual(['2 joined: {"of":"the third"}', '2 waits']);

    // The next one hears of those that wait, and both are told of it.
    const told = heardBy(third);
    const fourth = newcomer(server);
    const toldFourth = heardBy(fourth);
    await fourth.hello();
    const all = await fourth.modex({ of: 'the fourth' });
    expect([fourth.rank, all.count, all.at(2)]).toEqual([3, 4, { of: 'the third' }]);
    await once(third, 'standbyState');
    expect(told).toEqual(['3 joined: {"of":"the fourth"}', '3 waits']);
    expect(toldFourth).toEqual(['2 waits']);
    expect(server.living()).toEqual([0, 1, 2, 3]);
  });

  test('waits for all that live to hear of it, and not for one that dies meanwhile', async () => {
    const { server, clients } = await makeJob(3);
    const [zero] = clients;
    const heard = heardBy(zero);
    // Rank 1 does not read, as when its event loop stands still; rank 2 dies without having read.
    const joined = once(zero, 'processJoined');
    const deaf = clients.slice(1).map((client) => client as unknown as { connection: { ws: { pause(): void; resume(): void } } });
    for (const { connection } of deaf) connection.ws.pause();
    const third = newcomer(server);
    await third.hello();
    await third.modex({});
    await joined;
    server.processExited(2, { code: undefined, signal: 'SIGKILL' });
    // Two rounds to the server and back: whatever was to come from it has come.
    for (let round = 0; round < 2; round++) await zero.missingAt('nothing');
    expect(heard).toEqual(['3 joined: {}', '2 ended']);
    const ready = once(zero, 'standbyState');
    deaf[0].connection.ws.resume();
    expect(await ready).toEqual([3, true]);
  });

  test('that comes before all of the start have met waits for them', async () => {
    const server = await makeServer(2);
    const early = newcomer(server);
    await early.hello();
    const entries = early.modex({ of: 'early' });
    const clients = [0, 1].map((rank) => makeClient(server, rank, 2));
    const heard = clients.map(heardBy);
    await Promise.all(clients.map((client) => client.hello()));
    const tables = await Promise.all(clients.map((client) => client.modex({ of: client.rank })));
    for (const table of tables) expect(table.count).toBe(2);
    expect((await entries).at(1)).toEqual({ of: 1 });
    await Promise.all(clients.map((client) => once(client, 'standbyState')));
    for (const one of heard) expect(one).toEqual(['2 joined: {"of":"early"}', '2 waits']);
  });

  test('and finds a start that fails is told so', async () => {
    const server = await makeServer(2);
    const early = newcomer(server);
    await early.hello();
    const entries = early.modex({});
    const zero = makeClient(server, 0, 2);
    await zero.hello();
    const failed = zero.modex({}).catch((error) => error.code as string);
    server.processExited(1, { code: 1, signal: '' });
    expect(await failed).toBe('ERR_PROC_FAILED');
    await expect(entries).rejects.toMatchObject({ code: 'ERR_PROC_FAILED', peer: 1 });
  });

  test('hears of deaths and changed addresses from before it came, and is heard of when it dies', async () => {
    const { server, clients } = await makeJob(3);
    clients[1].updateModex({ of: 'new 1' });
    await once(clients[0], 'modexUpdate');
    server.processExited(2, { code: undefined, signal: 'SIGKILL' });
    const third = newcomer(server);
    const told = heardBy(third);
    const updates: unknown[] = [];
    third.on('modexUpdate', (rank, json) => void updates.push([rank, json]));
    await third.hello();
    const entries = await third.modex({});
    expect([entries.at(1), entries.at(2)]).toEqual([{ of: 1 }, undefined]);
    await once(clients[0], 'standbyState');
    expect(told).toEqual(['2 ended']);
    expect(updates).toEqual([[1, { of: 'new 1' }]]);
    // The owner has not started it: its kernel ends its lifeline.
    const gone = once(clients[1], 'exit');
    await third.close(0);
    expect((await gone)[0]).toBe(3);
    // Its number is not used again.
    const fourth = newcomer(server);
    await fourth.hello();
    expect(fourth.rank).toBe(4);
  });

  test('takes the number that its owner has kept for it, once', async () => {
    const { server } = await makeJob(1);
    const kept = server.reserve();
    const guest = newcomer(server);
    await guest.hello();
    const own = newcomer(server, { rank: kept, lifeline: false });
    await own.hello();
    expect([kept, guest.rank, own.rank]).toEqual([1, 2, 1]);
    const second = newcomer(server, { rank: kept });
    await expect(second.hello()).rejects.toThrow(/RANK_TAKEN: number 1 is that of process \d+: a number is given to one process/);
  });

  test('keeps its number when its connection breaks before it has heard it', async () => {
    const { server } = await makeJob(1);
    const incarnation = newIncarnation();
    const first = newcomer(server, { incarnation, hostId: 'here' });
    await first.hello();
    const again = newcomer(server, { incarnation, hostId: 'here' });
    await again.hello();
    expect([first.rank, again.rank, server.size]).toEqual([1, 1, 2]);
  });

  test('counts at no barrier while it waits, and at each one when it works', async () => {
    const { server, clients } = await makeJob(2);
    const third = newcomer(server);
    await third.hello();
    await third.modex({});
    await Promise.all(clients.map((client) => client.barrier('one')));
    await third.standbyState(false, 1);
    const both = Promise.all(clients.map((client) => client.barrier('two')));
    await clients[0].missingAt('two').then((missing) => expect(missing).toContain(2));
    await third.barrier('two');
    await both;
  });
});

test('a process that comes back hears what has waited for it, however long that is', async () => {
  const server = await makeServer(2);
  const clients = [0, 1].map((rank) => makeClient(server, rank, 2));
  await Promise.all(clients.map((client) => client.hello()));
  const { connection } = clients[1] as unknown as { connection: { ws: { pause(): void }; terminate(): void } };
  connection.ws.pause();
  // Much more than a stranger may say follows the welcome at once.
  const entries = clients.map((client) => client.modex({ noise: randomBytes(96 * 1024).toString('base64') }));
  await entries[0];
  connection.terminate();
  expect((await entries[1]).count).toBe(2);
});

describe('a newer process of the same index', () => {
  test('stands by, and the older one is over, which it hears, too', async () => {
    const server = await makeServer(2, { knowsProcesses: false });
    const pod = (rank: number) => makeClient(server, rank, 2, { join: 'index', lifeline: true });
    const clients = [pod(0), pod(1)];
    await Promise.all(clients.map((client) => client.hello()));
    expect(clients.map((client) => [client.rank, client.isLate])).toEqual([
      [0, false],
      [1, false],
    ]);
    await Promise.all(clients.map((client) => client.modex({})));
    const heard = clients.map(heardBy);
    const again = pod(1);
    await again.hello();
    expect([again.rank, again.isLate]).toEqual([2, true]);
    await again.modex({});
    await once(clients[0], 'standbyState');
    expect(heard[0]).toEqual(['1 replaced', '2 joined: {}', '2 waits']);
    expect(heard[1]).toEqual(['1 replaced']);
    // A third one of that index replaces the second.
    const third = pod(1);
    await third.hello();
    await third.modex({});
    expect(third.rank).toBe(3);
    await once(clients[0], 'standbyState');
    expect(heard[0].slice(3)).toEqual(['2 replaced', '3 joined: {}', '3 waits']);
  });

  test('that is older is refused', async () => {
    const { server } = await makeJob(2);
    const old = makeClient(server, 1, 2, { join: 'index', incarnation: 1 });
    await expect(old.hello()).rejects.toThrow(/OLD_INCARNATION: incarnation 1 of rank 1, where incarnation \d+ has joined/);
  });
});

describe('who is refused', () => {
  test('a stranger, one of another job, and one of a job that takes nobody', async () => {
    const { server } = await makeJob(1);
    await expect(newcomer(server, { secret: randomBytes(32) }).hello()).rejects.toThrow(/BAD_PROOF/);
    await expect(newcomer(server, { jobId: 'other' }).hello()).rejects.toThrow(/WRONG_JOB/);
    const { server: closed } = await makeJob(1, { takesJoins: false });
    await expect(newcomer(closed).hello()).rejects.toThrow(
      /NO_JOINS: this job takes no processes after its start: start it with --mca ft on/,
    );
    expect([server.size, closed.size]).toEqual([1, 1]);
  });

  test('a number that was kept for nobody, a process that has ended, and one that comes when all have', async () => {
    const { server } = await makeJob(1);
    await expect(newcomer(server, { rank: 7 }).hello()).rejects.toThrow(/UNKNOWN_RANK: number 7 was kept for no process/);
    const incarnation = newIncarnation();
    const third = newcomer(server, { incarnation, hostId: 'here' });
    await third.hello();
    server.processExited(third.rank, { code: 0, signal: '' });
    await expect(newcomer(server, { incarnation, hostId: 'here' }).hello()).rejects.toThrow(/RANK_ENDED: rank 1 has ended/);
    server.processExited(0, { code: 0, signal: '' });
    await expect(newcomer(server).hello()).rejects.toThrow(/JOB_OVER: every process of this job has ended/);
  });

  test('one more than there are numbers', () => {
    const nonce = randomBytes(NONCE_BYTES);
    const claims = { jobId: 'job', rank: 0, size: 0, incarnation: 9, pid: 9, hostId: 'h', received: 0, lifeline: false };
    const hello: HelloBody = { ...claims, version: OOB_VERSION, nonce: randomBytes(NONCE_BYTES), join: 'standby' };
    const info = { incarnation: 1, pid: 1, hostId: 'h' };
    const members = (count: number) => Array.from({ length: count }, (_, rank) => ({ rank, index: rank, exit: undefined, info }));
    const job = { jobId: 'job', size: 1, secret: SECRET, takesJoins: true };
    const judge = (count: number) => judgeHello({ ...hello, proof: proofOfRank(SECRET, nonce, hello) }, nonce, job, members(count));
    expect(judge(PROCESSES_MAX - 1)).toEqual({ index: undefined, replaces: undefined });
    expect(judge(PROCESSES_MAX)).toEqual({
      refusal: ['JOB_FULL', expect.stringContaining('this job has given 8192 numbers to processes')],
    });
  });
});
