// Rails that are bad without being down, each measured with real packets: numbered datagrams with their times, and the switch's counters.
// Nothing is asserted on how long anything takes beyond what the rail itself is told to take.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Lab, labUnavailable, type PortCounters, waitUntil } from '../../src/lab/lab.ts';

const PROBE = fileURLToPath(new URL('lab-probe.mjs', import.meta.url));
const PEER = fileURLToPath(new URL('lab-peer.mjs', import.meta.url));
const PORT = 7100;
const FRAME_BYTES_MAX = 1514;
const unavailable = labUnavailable();
if (unavailable) console.warn(`skipped: ${unavailable}`);

describe.skipIf(unavailable !== undefined)('impaired rails', () => {
  let lab: Lab;
  let pristine: string[];
  beforeAll(async () => {
    lab = await Lab.create({ nodes: 2, rails: [{ mbit: 1000 }, { mbit: 1000 }] });
    pristine = await lab.snapshot();
  });
  afterEach(async () => {
    await lab.healAll();
    expect(await lab.snapshot()).toEqual(pristine);
  });
  afterAll(() => lab?.destroy());

  const port = (ports: PortCounters[], node: number, rail: number) => ports.find((one) => one.node === node && one.rail === rail)!;

  /** Sends them from one node to the other and returns when the last has been sent. */
  async function send(rail: number, fromNode: number, count: number, perMs: number, bytes = 200): Promise<void> {
    const words = ['source', lab.address(fromNode, rail), lab.address(1 - fromNode, rail), PORT, count, perMs, bytes];
    const source = lab.spawn(fromNode, [process.execPath, PROBE, ...words.map(String)], { stdio: ['ignore', 'ignore', 'inherit'] });
    expect(await once(source, 'exit')).toEqual([0, null]);
  }

  /** Share of what a node sends meanwhile that the other one does not get, by the counters of the switch. */
  async function lostShare(rail: number, fromNode: number, count: number): Promise<number> {
    const before = await lab.counters();
    await send(rail, fromNode, count, 10);
    // Whatever the rail holds back passes within this.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const after = await lab.counters();
    const sent = port(after, fromNode, rail).sentPackets - port(before, fromNode, rail).sentPackets;
    const delivered = port(after, 1 - fromNode, rail).deliveredPackets - port(before, 1 - fromNode, rail).deliveredPackets;
    expect(sent).toBeGreaterThanOrEqual(count);
    return 1 - delivered / sent;
  }

  it('loss: the share that was asked for, both ways or one, each frame by chance, and none afterwards', async () => {
    expect(await lostShare(0, 0, 500)).toBe(0);
    await lab.loss(0, 20);
    // Six standard deviations of 3,000 throws.
    const spread = (percent: number) => 6 * Math.sqrt(((percent / 100) * (1 - percent / 100)) / 3000);
    for (const fromNode of [0, 1]) expect(Math.abs((await lostShare(0, fromNode, 3000)) - 0.2)).toBeLessThan(spread(20));
    expect(await lostShare(1, 0, 500)).toBe(0);
    await lab.loss(0, 50, 1);
    await lab.loss(0, 0, 0);
    expect(await lostShare(0, 0, 500)).toBe(0);
    expect(Math.abs((await lostShare(0, 1, 3000)) - 0.5)).toBeLessThan(spread(50));
    // A muted node loses all, and the loss is still there for the other.
    await lab.loss(0, 50);
    await lab.oneWay(0, 0);
    expect(await lostShare(0, 0, 100)).toBe(1);
    expect(Math.abs((await lostShare(0, 1, 3000)) - 0.5)).toBeLessThan(spread(50));
    await lab.heal(0);
    expect(await lostShare(0, 0, 500)).toBe(0);
  });

  it('loss: frames are lost, not packets of segmentation offload, on a connection that was there before too', async () => {
    const start = async (node: number, ...words: string[]) => {
      const peer = lab.spawn(node, [process.execPath, PEER, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
      await once(peer.stdout!, 'data');
      return peer;
    };
    const peers = [await start(1, 'tcp-sink', lab.address(1, 0), String(PORT))];
    peers.push(await start(0, 'tcp-source', lab.address(0, 0), lab.address(1, 0), String(PORT)));
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
    for (const peer of peers) {
      peer.kill('SIGKILL');
      await once(peer, 'exit');
    }
  });

  it('a silent flap of 10 ms is one: it goes and comes that often', async () => {
    const sink = lab.spawn(1, [process.execPath, PROBE, 'sink', lab.address(1, 0), String(PORT)], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(sink.stdout!, 'data');
    await send(0, 0, 10, 1);
    const flap = lab.flap(0, 10, { silent: true });
    await waitUntil('a few cycles', () => flap.cycles > 5);
    const [firstCycle, startMs] = [flap.cycles, performance.now()];
    await send(0, 0, 3000, 4);
    // Orders of magnitude only: the machine may have others to serve.
    const cycleMs = (performance.now() - startMs) / (flap.cycles - firstCycle);
    expect(cycleMs).toBeGreaterThan(9);
    expect(cycleMs).toBeLessThan(40);
    await flap.stop();
    let text = '';
    sink.stdout!.on('data', (part: Buffer) => {
      text += part;
    });
    sink.stdin!.write('\n');
    await waitUntil('the report of the sink', () => text.endsWith('\n'));
    sink.kill('SIGKILL');
    const numbers = (JSON.parse(text) as [number][]).map(([number]) => number);
    const gaps = numbers.filter((number, i) => i > 0 && number > numbers[i - 1] + 4).length;
    expect(gaps).toBeGreaterThan(3000 / 4 / 40 / 2);
    expect(numbers.length).toBeGreaterThan(300);
    expect(numbers.length).toBeLessThan(2700);
  });
});
