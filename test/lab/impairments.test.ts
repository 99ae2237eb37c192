// Rails that are bad without being down, each measured with real packets: numbered datagrams with their times, streams of known bytes, and
// the switch's counters. The tests assert nothing about times except what the rail itself is told to take.
import type { ChildProcess } from 'node:child_process';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findForwarder, Lab, labNamespaces, labUnavailable, type PortCounters, sleep, waitUntil } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode, isAlive, startNode } from '../support/helpers.ts';

const PROBE = fileURLToPath(new URL('lab-probe.mjs', import.meta.url));
const PEER = fileURLToPath(new URL('lab-peer.mjs', import.meta.url));
const PORT = 7100;
const FRAME_BYTES_MAX = 1514;
const MS = 1e6;
const unavailable = labUnavailable();
const found = findForwarder();
const noForwarder = unavailable ?? ('missing' in found ? `the lab's forwarder: ${found.missing}` : undefined);
if (noForwarder) console.warn(`skipped: ${noForwarder}`);

/** A datagram that came: its number, when it was sent and received in nanoseconds, and whether its bytes are whole. */
type Came = [number: number, sentNs: number, receivedNs: number, isWhole: boolean];

const port = (ports: PortCounters[], node: number, rail: number) => ports.find((one) => one.node === node && one.rail === rail)!;

async function start(lab: Lab, node: number, file: string, ...words: (string | number)[]): Promise<ChildProcess> {
  const argv = [process.execPath, file, ...words.map(String)];
  const child = lab.spawn(node, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  expect(String(await once(child.stdout!, 'data'))).toBe('ready\n');
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Sends them from one node to the other and returns when the last has been sent. */
async function send(lab: Lab, rail: number, fromNode: number, count: number, perMs: number, bytes = 200): Promise<void> {
  const words = ['source', lab.address(fromNode, rail), lab.address(1 - fromNode, rail), PORT, count, perMs, bytes];
  const source = lab.spawn(fromNode, [process.execPath, PROBE, ...words.map(String)], { stdio: ['ignore', 'ignore', 'inherit'] });
  expect(await once(source, 'exit')).toEqual([0, null]);
}

/** What came since it was asked last. */
async function report(sink: ChildProcess): Promise<Came[]> {
  let text = '';
  const take = (part: Buffer) => {
    text += part;
  };
  sink.stdout!.on('data', take);
  sink.stdin!.write('\n');
  await waitUntil('the report of the sink', () => text.endsWith('\n'));
  sink.stdout!.off('data', take);
  return JSON.parse(text) as Came[];
}

/** Waits until so many have come; all of them, in the order of their coming. */
async function allThatCome(sink: ChildProcess, count: number): Promise<Came[]> {
  const came: Came[] = [];
  await waitUntil(`${count} datagrams to come`, async () => {
    came.push(...(await report(sink)));
    return came.length >= count;
  });
  return came;
}

const delays = (came: readonly Came[]) => came.map(([, sentNs, receivedNs]) => (receivedNs - sentNs) / MS).sort((a, b) => a - b);
const isInOrder = (came: readonly Came[]) => came.every(([number], i) => i === 0 || number > came[i - 1][0]);
/** Six standard deviations of that many throws, as a share. */
const spread = (share: number, throws: number) => 6 * Math.sqrt((share * (1 - share)) / throws);

describe.skipIf(unavailable !== undefined)(`impaired rails${unavailable === undefined ? '' : ` (skipped: ${unavailable})`}`, () => {
  let lab: Lab;
  let pristine: string[];
  const lost: string[] = [];
  beforeAll(async () => {
    lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
    lab.onForwarderLost = (rail, why) => lost.push(`${rail}: ${why}`);
    pristine = await lab.snapshot();
  });
  afterEach(async () => {
    await lab.healAll();
    expect(await lab.snapshot()).toEqual(pristine);
    expect(lab.forwarderPid(0)).toBeUndefined();
    expect(lost.splice(0)).toEqual([]);
  });
  afterAll(() => lab?.destroy());

  /** Share of what a node sends meanwhile that the other one does not get, by the counters of the switch. */
  async function lostShare(rail: number, fromNode: number, count: number): Promise<number> {
    const before = await lab.counters();
    await send(lab, rail, fromNode, count, 10);
    const after = await lab.counters();
    const sent = port(after, fromNode, rail).sentPackets - port(before, fromNode, rail).sentPackets;
    const delivered = port(after, 1 - fromNode, rail).deliveredPackets - port(before, 1 - fromNode, rail).deliveredPackets;
    expect(sent).toBeGreaterThanOrEqual(count);
    return 1 - delivered / sent;
  }

  it('loss: the share that was asked for, both ways or one, each frame by chance, and none afterwards', async () => {
    expect(await lostShare(0, 0, 500)).toBe(0);
    await lab.loss(0, 20);
    for (const fromNode of [0, 1]) expect(Math.abs((await lostShare(0, fromNode, 3000)) - 0.2)).toBeLessThan(spread(0.2, 3000));
    expect(await lostShare(1, 0, 500)).toBe(0);
    await lab.loss(0, 50, 1);
    await lab.loss(0, 0, 0);
    expect(await lostShare(0, 0, 500)).toBe(0);
    expect(Math.abs((await lostShare(0, 1, 3000)) - 0.5)).toBeLessThan(spread(0.5, 3000));
    // A muted node loses all, and the loss is still there for the other.
    await lab.loss(0, 50);
    await lab.oneWay(0, 0);
    expect(await lostShare(0, 0, 100)).toBe(1);
    expect(Math.abs((await lostShare(0, 1, 3000)) - 0.5)).toBeLessThan(spread(0.5, 3000));
    await lab.heal(0);
    expect(await lostShare(0, 0, 500)).toBe(0);
  });

  it('loss: frames are lost, not packets of segmentation offload, on a connection that was there before too', async () => {
    const peers = [await start(lab, 1, PEER, 'tcp-sink', lab.address(1, 0), PORT)];
    peers.push(await start(lab, 0, PEER, 'tcp-source', lab.address(0, 0), lab.address(1, 0), PORT));
    /** Bytes of an average packet that node 0 sends, once there are many of them. */
    const packetBytes = async () => {
      let mean = 0;
      await waitUntil('a stream', async () => {
        const sent = port((await lab.throughput(100)).ports, 0, 0);
        mean = sent.sentBytes / sent.sentPackets;
        return sent.sentBytes > 200_000;
      });
      return mean;
    };
    expect(await packetBytes()).toBeGreaterThan(2 * FRAME_BYTES_MAX);
    await lab.loss(0, 0.1);
    expect(await packetBytes()).toBeLessThanOrEqual(FRAME_BYTES_MAX);
    await lab.heal(0);
    for (const peer of peers) await end(peer);
  });

  it('a silent flap of 10 ms is one: it goes and comes that often', async () => {
    const sink = await start(lab, 1, PROBE, 'sink', lab.address(1, 0), PORT);
    await send(lab, 0, 0, 10, 1);
    const flap = lab.flap(0, 10, { silent: true });
    await waitUntil('a few cycles', () => flap.cycles > 5);
    const [firstCycle, startMs] = [flap.cycles, performance.now()];
    await send(lab, 0, 0, 3000, 4);
    // Orders of magnitude only: the machine may have others to serve.
    const cycles = flap.cycles - firstCycle;
    const cycleMs = (performance.now() - startMs) / cycles;
    expect(cycleMs).toBeGreaterThan(9);
    expect(cycleMs).toBeLessThan(100);
    await flap.stop();
    const numbers = (await report(sink)).map(([number]) => number);
    const gaps = numbers.filter((number, i) => i > 0 && number > numbers[i - 1] + 4).length;
    expect(gaps).toBeGreaterThan(cycles / 4);
    expect(numbers.length).toBeGreaterThan(300);
    expect(numbers.length).toBeLessThan(2700);
    await end(sink);
  });

  it('a tiny rate with a full queue: what the queue has no room for is lost, the rest is as late as the queue is long', async () => {
    const sink = await start(lab, 1, PROBE, 'sink', lab.address(1, 0), PORT);
    await send(lab, 0, 0, 1, 1);
    await allThatCome(sink, 1);
    await lab.throttle(0, 0.064, 8 << 10);
    await send(lab, 0, 0, 60, 20, 1000);
    // A burst of 2 KiB and a queue of 8 KiB, in frames of 1,042 bytes; and that the sender was at it for a moment.
    const came = await allThatCome(sink, 8);
    await sleep(300);
    came.push(...(await report(sink)));
    expect(came.length).toBeLessThan(20);
    expect(isInOrder(came)).toBe(true);
    expect(delays(came).at(-1)).toBeGreaterThan(600);
    await end(sink);
  });

  describe.skipIf(noForwarder !== undefined)(`by the forwarder${noForwarder === undefined ? '' : ` (skipped: ${noForwarder})`}`, () => {
    let sink: ChildProcess;
    beforeAll(async () => {
      sink = await start(lab, 1, PROBE, 'sink', lab.address(1, 0), PORT);
    });
    afterAll(() => end(sink));

    /** Sends them to the sink, all of which come. */
    async function probe(count: number, perMs: number): Promise<Came[]> {
      await send(lab, 0, 0, count, perMs);
      const came = await allThatCome(sink, count);
      expect(came).toHaveLength(count);
      expect(came.every(([, , , isWhole]) => isWhole)).toBe(true);
      return came;
    }

    it('delay: never less than was asked for, both ways, in order, none lost; and gone when it is healed', async () => {
      await probe(50, 1);
      await lab.delay(0, 100);
      const late = await probe(200, 1);
      expect(delays(late)[0]).toBeGreaterThanOrEqual(100);
      expect(delays(late)[20]).toBeLessThan(500);
      expect(isInOrder(late)).toBe(true);
      const other = await start(lab, 0, PROBE, 'sink', lab.address(0, 0), PORT);
      await send(lab, 0, 1, 20, 1);
      expect(delays(await allThatCome(other, 20))[0]).toBeGreaterThanOrEqual(100);
      await end(other);
      // The other rail is left alone.
      expect((await lab.forwarderStats(0))?.[0].taken).toBeGreaterThanOrEqual(200);
      expect(await lab.forwarderStats(1)).toBeUndefined();
      await lab.delay(0, 0);
      expect(lab.forwarderPid(0)).toBeUndefined();
      expect(delays(await probe(100, 1))[0]).toBeLessThan(100);
    });

    it('delay with a spread: each its own, in order', async () => {
      await probe(5, 1);
      await lab.delay(0, 60, 40);
      const came = await probe(400, 0.5);
      const all = delays(came);
      expect(all[0]).toBeGreaterThanOrEqual(20);
      expect(all[0]).toBeLessThan(60);
      expect(all.at(-1)).toBeGreaterThan(70);
      expect(isInOrder(came)).toBe(true);
    });

    it('reordering: the share that was asked for is overtaken, none is lost', async () => {
      await lab.reorder(0, 20, 10);
      const came = await probe(1500, 4);
      let highest = -1;
      const overtaken = came.filter(([number]) => {
        const isLate = number < highest;
        highest = Math.max(highest, number);
        return isLate;
      });
      expect(Math.abs(overtaken.length / came.length - 0.2)).toBeLessThan(spread(0.2, 1500) + 0.02);
      expect(delays(overtaken)[0]).toBeGreaterThanOrEqual(10);
      const [from0] = (await lab.forwarderStats(0))!;
      expect(from0.held).toBeGreaterThanOrEqual(overtaken.length);
    });

    /** Segments or datagrams that a node has dropped for their checksum. */
    async function checksumErrors(node: number, protocol: 'Tcp' | 'Udp'): Promise<number> {
      const text = (await lab.exec(node, ['cat', '/proc/net/snmp'])).stdout;
      const [names, values] = text.split('\n').filter((line) => line.startsWith(`${protocol}:`));
      return Number(values.split(' ')[names.split(' ').indexOf('InCsumErrors')]);
    }

    it('flips: the share that was asked for, and the checksum tells every one of them', async () => {
      await probe(10, 1);
      await lab.flip(0, 20, 0);
      const before = await checksumErrors(1, 'Udp');
      await send(lab, 0, 0, 2000, 4);
      let errors = 0;
      const came: Came[] = [];
      await waitUntil('every datagram to come or to be dropped', async () => {
        came.push(...(await report(sink)));
        errors = (await checksumErrors(1, 'Udp')) - before;
        // A bit of the port or the length may be the one: then it is dropped before its checksum is looked at.
        return came.length + errors > 1980;
      });
      expect(came.every(([, , , isWhole]) => isWhole)).toBe(true);
      expect(Math.abs(1 - came.length / 2000 - 0.2)).toBeLessThan(spread(0.2, 2000));
      const stats = (await lab.forwarderStats(0))!;
      expect(stats[0].flipped).toBeGreaterThanOrEqual(2000 - came.length);
      expect(stats[1].flipped).toBe(0);
      const last = (await report(sink)).length;
      expect(came.length + last + stats[0].flipped).toBeLessThanOrEqual(stats[0].taken);
    });

    it('flips: a stream is whole in spite of them', async () => {
      await lab.flip(0, 5);
      const before = await checksumErrors(1, 'Tcp');
      const bytes = 400_000;
      const taker = await start(lab, 1, PROBE, 'stream-sink', lab.address(1, 0), PORT + 1);
      const line = once(taker.stdout!, 'data');
      const words = ['stream-source', lab.address(0, 0), lab.address(1, 0), PORT + 1, bytes];
      lab.spawn(0, [process.execPath, PROBE, ...words.map(String)], { stdio: ['ignore', 'ignore', 'inherit'] });
      expect(JSON.parse(String(await line))).toEqual([bytes, true]);
      expect((await checksumErrors(1, 'Tcp')) - before).toBeGreaterThan(0);
      const [from0, from1] = (await lab.forwarderStats(0))!;
      expect(from0.flipped).toBeGreaterThan(0);
      expect(from0.noRoom + from0.missed + from1.noRoom + from1.missed).toBe(0);
    });

    it('works with the other faults: a loss, a mute node, a black hole, cables that are pulled', async () => {
      await lab.delay(0, 5);
      // Before anything is lost the nodes learn each other's addresses: a question that is lost is asked again a second later.
      await probe(5, 1);
      await lab.loss(0, 30, 0);
      await send(lab, 0, 0, 2000, 10);
      await sleep(100);
      expect(Math.abs(1 - (await report(sink)).length / 2000 - 0.3)).toBeLessThan(spread(0.3, 2000));
      await lab.loss(0, 0);
      const silent = async (what: () => Promise<void>) => {
        await lab.delay(0, 5);
        await probe(5, 1);
        await what();
        await send(lab, 0, 0, 20, 2);
        await sleep(50);
        expect(await report(sink)).toEqual([]);
        await lab.heal(0);
      };
      await silent(() => lab.oneWay(0, 0));
      await silent(() => lab.blackhole(0));
      await silent(() => lab.wireCut(0, { carrier: 'kept' }));
      await silent(() => lab.cableCut(1, 0));
      await probe(50, 1);
    });

    it('what is on its way when the rail is healed is delivered, at once', async () => {
      await probe(5, 1);
      await lab.delay(0, 9000);
      await send(lab, 0, 0, 30, 5);
      expect(await report(sink)).toEqual([]);
      await lab.heal(0);
      const came = await allThatCome(sink, 30);
      expect(isInOrder(came)).toBe(true);
      expect(delays(came).at(-1)).toBeLessThan(9000);
    });

    it('a forwarder that dies is told, and the rail goes on without what it did', async () => {
      await probe(5, 1);
      await lab.loss(0, 20);
      await lab.delay(0, 200);
      process.kill(lab.forwarderPid(0)!, 'SIGKILL');
      await waitUntil('the lab to notice', () => lost.length > 0);
      expect(lost.splice(0)).toEqual(['0: it ended with SIGKILL']);
      expect(lab.forwarderPid(0)).toBeUndefined();
      // The loss is the kernel's now.
      expect(Math.abs((await lostShare(0, 0, 3000)) - 0.2)).toBeLessThan(spread(0.2, 3000));
      await lab.loss(0, 0);
      await report(sink);
      expect(delays(await probe(50, 1))[0]).toBeLessThan(200);
      // Another one can be started.
      await lab.delay(0, 50);
      expect(delays(await probe(20, 1))[0]).toBeGreaterThanOrEqual(50);
    });
  });
});

describe.skipIf(noForwarder !== undefined)(`the forwarder${noForwarder === undefined ? '' : ` (skipped: ${noForwarder})`}`, () => {
  it('draws the same from the same seed', async () => {
    /** Numbers that came through a rail that loses half of them, and of which node 0 sends nothing else. */
    const through = async (seed: number): Promise<number[]> => {
      await using lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }], seed });
      const quiet = 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip neighbour replace "$1" lladdr "$2" dev mr0 nud permanent';
      for (const node of [0, 1]) {
        const argv = ['sh', '-c', quiet, 'quiet', lab.address(1 - node, 0), `02:77:00:00:00:0${2 - node}`];
        expect((await lab.exec(node, argv)).code).toBe(0);
      }
      const sink = await start(lab, 1, PROBE, 'sink', lab.address(1, 0), PORT);
      await lab.delay(0, 1);
      await lab.loss(0, 50);
      await send(lab, 0, 0, 300, 4);
      await sleep(200);
      return (await report(sink)).map(([number]) => number);
    };
    const [first, same, other] = await Promise.all([through(5), through(5), through(6)]);
    expect(first.length).toBeGreaterThan(50);
    expect(first.length).toBeLessThan(250);
    expect(same).toEqual(first);
    expect(other).not.toEqual(first);
  });

  let code: BuiltCode;
  beforeAll(async () => {
    code = await buildCode([]);
  });
  afterAll(() => code.dispose());

  it('by words: told in status, ended by restore; and kill -9 of its keeper leaves nothing behind', async () => {
    const name = `impaired-${process.pid}`;
    const lab = (command: string, ...words: string[]) => startNode([code.cli, 'lab', command, '--name', name, ...words]).ended;
    expect((await lab('up', '--rails', '1gbit,100mbit', '-n', '2', '--seed', '7')).code).toBe(0);
    expect((await lab('delay', '0', '30', '10')).stdout).toBe('rail 0 takes 30 ms longer each way, and swings by 10 ms\n');
    expect((await lab('flip', '1', '5')).stdout).toBe('rail 1 flips a bit in 5 % of its frames\n');
    type Status = { keeperPid: number; name: string; faults: string[][]; forwarders: (object[] | null)[] };
    const status = async () => JSON.parse((await lab('status', '--json')).stdout) as Status;
    expect((await lab('restore', '1')).code).toBe(0);
    const { keeperPid, name: labName, forwarders, faults } = await status();
    expect(forwarders.map((ports) => ports?.length)).toEqual([2, undefined]);
    expect(faults).toEqual([['rail 0 takes 30 ms longer each way, and swings by 10 ms'], []]);
    const pids = execFileSync('ip', ['netns', 'pids', `${labName}-wire`], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number);
    expect(pids).toHaveLength(1);
    // Whoever looks is told of its death.
    process.kill(pids[0], 'SIGKILL');
    let said: string[] = [];
    await waitUntil('the lab to say so', async () => {
      said = (await status()).faults[0];
      return said[0].includes('its forwarder is gone');
    });
    expect(said).toEqual(['rail 0 is without delay, reordering and flips, since its forwarder is gone: it ended with SIGKILL']);
    await lab('delay', '0', '30');
    const [again] = execFileSync('ip', ['netns', 'pids', `${labName}-wire`], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number);
    expect(again).toBeGreaterThan(0);
    process.kill(keeperPid, 'SIGKILL');
    await waitUntil('everything to be gone', () => !labNamespaces().some((one) => one.startsWith(`${labName}-`)) && !isAlive(again));
  });
});
