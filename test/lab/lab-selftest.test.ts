// Shows that the lab does what it says, with plain sockets and the switch's own counters: rates, each fault on its rail and direction only,
// carrier as README.md has it, healing exact, nothing left behind. Nothing is asserted about times: the test waits, with generous bounds,
// until a window of traffic looks as it must.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Lab, labNamespaces, labUnavailable, type PortCounters, sweepStaleLabs, waitUntil } from '../../tools/lab/lab.ts';
import { isAlive } from '../support/is-alive.mjs';

const LAB_DIR = fileURLToPath(new URL('.', import.meta.url));
const PEER = join(LAB_DIR, 'lab-peer.mjs');
const TCP_PORT = 7000;
const UDP_PORT = 7001;
const WINDOW_MS = 200;
const unavailable = labUnavailable();
if (unavailable) console.warn(`skipped: ${unavailable}`);

async function startPeer(lab: Lab, node: number, ...args: (string | number)[]): Promise<ChildProcess> {
  const peer = lab.spawn(node, [process.execPath, PEER, ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let isReady = false;
  peer.stdout?.on('data', () => {
    isReady = true;
  });
  await waitUntil(`${args.join(' ')} to start on node ${node}`, () => isReady);
  return peer;
}

/** TCP from node 0 to node 1. */
async function startTcp(lab: Lab, rail: number): Promise<void> {
  const to = lab.address(1, rail);
  await startPeer(lab, 1, 'tcp-sink', to, TCP_PORT);
  await startPeer(lab, 0, 'tcp-source', lab.address(0, rail), to, TCP_PORT);
}

async function startUdp(lab: Lab, rail: number, fromNode: number, family: 4 | 6 = 4): Promise<void> {
  const toNode = 1 - fromNode;
  const to = lab.address(toNode, rail, family);
  await startPeer(lab, toNode, 'udp-sink', to, UDP_PORT);
  await startPeer(lab, fromNode, 'udp-source', lab.address(fromNode, rail, family), to, UDP_PORT);
}

function port(ports: PortCounters[], node: number, rail: number): PortCounters {
  return ports.find((p) => p.node === node && p.rail === rail)!;
}

/** Waits until the ports, over one window, look as `looksRight` says. */
async function waitForWindow(
  lab: Lab,
  what: string,
  looksRight: (ports: PortCounters[], windowMs: number) => boolean,
  windowMs = WINDOW_MS,
) {
  let last: PortCounters[] = [];
  await waitUntil(
    what,
    async () => {
      const window = await lab.throughput(windowMs);
      last = window.ports;
      return looksRight(window.ports, window.windowMs);
    },
    20_000,
    0,
  ).catch((error: Error) => {
    throw new Error(`${error.message}\nlast window: ${JSON.stringify(last)}`);
  });
}

describe.skipIf(unavailable !== undefined)('link lab: rates', () => {
  const MBIT = 200;
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.create({ nodes: 2, rails: [{ mbit: MBIT }, { mbit: MBIT }] });
  });
  afterAll(() => lab?.destroy());

  /** Share of the rail's rate that reached node 1. */
  const share = (ports: PortCounters[], windowMs: number, rail: number) =>
    (port(ports, 1, rail).deliveredBytes * 8) / (MBIT * 1e3 * windowMs);

  it('one rail reaches its rate, and the other stays idle', async () => {
    await startTcp(lab, 0);
    await waitForWindow(lab, '90 % of the rate on rail 0', (ports, ms) => share(ports, ms, 0) >= 0.9 && share(ports, ms, 1) < 0.01, 500);
  });

  it('two rails reach their rates at the same time', async () => {
    await startTcp(lab, 1);
    await waitForWindow(lab, '90 % of both rates', (ports, ms) => share(ports, ms, 0) >= 0.9 && share(ports, ms, 1) >= 0.9, 500);
  });

  it('never exceeds its rate, and throttle() changes it until healed', async () => {
    // Long enough that the few tens of milliseconds by which a busy machine misreads the window do not count.
    const { windowMs, ports } = await lab.throughput(2500);
    expect(share(ports, windowMs, 0)).toBeLessThan(1.1);
    await lab.throttle(0, MBIT / 4);
    await waitForWindow(lab, 'a quarter of the rate on rail 0', (p, ms) => share(p, ms, 0) < 0.3 && share(p, ms, 1) > 0.5, 500);
    await lab.heal(0);
    await waitForWindow(lab, 'more than half of the rate on rail 0 again', (p, ms) => share(p, ms, 0) > 0.5, 500);
  });
});

describe.skipIf(unavailable !== undefined)('link lab: hosts', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.create({ nodes: 2, rails: [{}, {}] });
  }, 60_000);
  afterAll(() => lab?.destroy());

  const stateOf = (pid: number) => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  // `ip netns exec` becomes the program that it runs. A child of that is in the namespace, too.
  const sleeper = (node: number) => lab.spawn(node, ['sh', '-c', 'sleep 100 & wait'], { stdio: 'ignore' });
  const started = (node: number, programs: number) =>
    waitUntil(`sleepers on node ${node}`, async () => {
      const { stdout } = await lab.exec(node, ['sh', '-c', 'ip netns pids $0 | wc -l', lab.namespace(node)]);
      return Number(stdout) >= programs;
    });

  it('kill: every process of the node is gone, those of the other live, and the links stay', async () => {
    const pristine = await lab.snapshot();
    const [killed, other] = [sleeper(0), sleeper(1)];
    await Promise.all([started(0, 2), started(1, 2)]);
    const ended = once(killed, 'exit');
    await lab.kill(0);
    expect((await ended)[1]).toBe('SIGKILL');
    expect((await lab.exec(1, ['ip', 'netns', 'pids', lab.namespace(0)])).stdout).toBe('');
    expect(other.exitCode).toBeNull();
    expect(stateOf(other.pid!)).toBe('S');
    for (const node of [0, 1]) expect((await lab.linkState(node, 0)).carrier).toBe(true);
    other.kill('SIGKILL');
    expect(await lab.snapshot()).toEqual(pristine);
  });

  it('halt: the processes stand still and the cables are out, until all is healed', async () => {
    const pristine = await lab.snapshot();
    const [halted, other] = [sleeper(0), sleeper(1)];
    await Promise.all([started(0, 2), started(1, 2)]);
    await lab.halt(0);
    await waitUntil(
      'the carriers of node 0 to go',
      async () => !(await lab.linkState(0, 0)).carrier && !(await lab.linkState(0, 1)).carrier,
    );
    expect((await lab.linkState(1, 0)).carrier).toBe(true);
    const pids = (await lab.exec(1, ['ip', 'netns', 'pids', lab.namespace(0)])).stdout.split('\n').filter(Boolean).map(Number);
    expect(pids).toContain(halted.pid);
    expect(pids.map(stateOf)).toEqual(pids.map(() => 'T'));
    expect(stateOf(other.pid!)).toBe('S');
    await lab.heal(0);
    expect(stateOf(halted.pid!)).toBe('T');
    await lab.healAll();
    await waitUntil('the node to go on', () => pids.every((pid) => stateOf(pid) === 'S'));
    expect(await lab.snapshot()).toEqual(pristine);
    for (const child of [halted, other]) child.kill('SIGKILL');
  });
});

describe.skipIf(unavailable !== undefined)('link lab: faults', () => {
  let lab: Lab;
  let pristine: string[];
  beforeAll(async () => {
    lab = await Lab.create({ nodes: 2, rails: [{ mbit: 40 }, { mbit: 40 }] });
    pristine = await lab.snapshot();
    await Promise.all([0, 1].flatMap((rail) => [startTcp(lab, rail), startUdp(lab, rail, 0), startUdp(lab, rail, 1)]));
    await flows('before any fault');
  }, 60_000);
  afterAll(() => lab?.destroy());

  // Datagrams are sent at some 200 a second; the machine may be busy, so a tenth of that counts as flowing.
  const alive = (ports: PortCounters[], toNode: number, rail: number) => port(ports, toNode, rail).deliveredPackets >= WINDOW_MS / 50;
  const silent = (ports: PortCounters[], toNode: number, rail: number) => port(ports, toNode, rail).deliveredPackets === 0;
  const tcpFlows = (ports: PortCounters[], rail: number) => port(ports, 1, rail).deliveredBytes > 100_000;

  async function flows(when: string): Promise<void> {
    await waitForWindow(lab, `all traffic ${when}`, (p) =>
      [0, 1].every((rail) => tcpFlows(p, rail) && alive(p, 0, rail) && alive(p, 1, rail)),
    );
  }

  /** Rail 0 is silent towards these nodes, and alive towards the others; rail 1 is whole. */
  async function onlyRail0Silent(what: string, silentTowards: number[]): Promise<void> {
    await waitForWindow(lab, what, (p) => {
      const rail0 = [0, 1].every((node) => (silentTowards.includes(node) ? silent(p, node, 0) : alive(p, node, 0)));
      return rail0 && tcpFlows(p, 1) && alive(p, 0, 1) && alive(p, 1, 1);
    });
  }

  async function healed(what: string): Promise<void> {
    await lab.heal(0);
    expect(await lab.snapshot()).toEqual(pristine);
    await flows(`after healing ${what}`);
  }

  /** [admin up, carrier] on nodes 0 and 1. Link events may come a moment after the command. */
  async function expectLinks(...expected: [boolean, boolean][]): Promise<void> {
    const states = async () =>
      JSON.stringify(
        await Promise.all([0, 1].map(async (node) => (({ adminUp, carrier }) => [adminUp, carrier])(await lab.linkState(node, 0)))),
      );
    await waitUntil(`links ${JSON.stringify(expected)}`, async () => (await states()) === JSON.stringify(expected));
  }

  it('gives every cable two different interface indexes', async () => {
    for (const node of [0, 1]) {
      for (const rail of [0, 1]) {
        const { index, peerIndex, carrier } = await lab.linkState(node, rail);
        expect(peerIndex).toBeGreaterThan(0);
        expect(index).not.toBe(peerIndex);
        expect(carrier).toBe(true);
      }
    }
  });

  const cases: [string, () => Promise<void>, number[], [boolean, boolean], [boolean, boolean]][] = [
    ['ownPortDown', () => lab.ownPortDown(0, 0), [0, 1], [false, false], [true, true]],
    ['peerPortDown', () => lab.peerPortDown(0, 0), [0, 1], [true, true], [false, false]],
    ['cableCut', () => lab.cableCut(0, 0), [0, 1], [true, false], [true, true]],
    ['wireCut', () => lab.wireCut(0), [0, 1], [true, false], [true, false]],
    ['wireCut with the carrier kept', () => lab.wireCut(0, { carrier: 'kept' }), [0, 1], [true, true], [true, true]],
    ['blackhole', () => lab.blackhole(0), [0, 1], [true, true], [true, true]],
    ['oneWay from node 0', () => lab.oneWay(0, 0), [1], [true, true], [true, true]],
    ['oneWay from node 1', () => lab.oneWay(0, 1), [0], [true, true], [true, true]],
  ];
  for (const [name, fault, silentTowards, link0, link1] of cases) {
    it(`${name}: stops the bytes on its rail and direction only, and heals`, async () => {
      await fault();
      await expectLinks(link0, link1);
      await onlyRail0Silent(name, silentTowards);
      await healed(name);
    });
  }

  it('blackhole and oneWay lose frames that were really sent', async () => {
    await lab.oneWay(0, 0);
    await waitForWindow(lab, 'sent by node 0, delivered to nobody', (p) => port(p, 0, 0).sentPackets > 5 && silent(p, 1, 0));
    await lab.blackhole(0);
    await waitForWindow(lab, 'sent by node 1, delivered to nobody', (p) => port(p, 1, 0).sentPackets > 5 && silent(p, 0, 0));
    await healed('both at once');
  });

  it('stealRoute moves the packets to the other cable', async () => {
    await lab.stealRoute(0, 0);
    // Everything that node 0 sends, for either subnet, now enters by its port on rail 1; node 1 still answers on rail 0.
    await waitForWindow(
      lab,
      'rail 0 unused by node 0',
      (p) => silent(p, 1, 0) && port(p, 0, 0).sentBytes < 1000 && alive(p, 0, 0) && tcpFlows(p, 1),
    );
    const route6 = await lab.exec(0, ['ip', '-6', 'route', 'get', lab.address(1, 0, 6)]);
    expect(route6.stdout).toContain(`dev ${lab.interfaceName(1)}`);
    await healed('a stolen route');
  });

  it('heals what was broken in several ways at once', async () => {
    await lab.stealRoute(0, 0);
    await lab.ownPortDown(0, 0);
    await lab.wireCut(0, { carrier: 'kept' });
    await lab.blackhole(0);
    await lab.oneWay(0, 1);
    await lab.peerPortDown(0, 0);
    await onlyRail0Silent('five faults', [0, 1]);
    await healed('five faults');
  });

  it('all rails at once', async () => {
    await lab.allRails((rail) => lab.blackhole(rail));
    await waitForWindow(lab, 'silence', (p) => [0, 1].every((rail) => silent(p, 0, rail) && silent(p, 1, rail)));
    await lab.healAll();
    expect(await lab.snapshot()).toEqual(pristine);
    await flows('after healing all rails');
  });

  for (const silentFlap of [false, true]) {
    it(`flap ${silentFlap ? 'without' : 'with'} carrier loss goes and comes until stopped`, async () => {
      // With carrier loss ARP starts anew each time, and asks once a second: a rail that is up for less carries nothing.
      const flap = lab.flap(0, silentFlap ? 800 : 3000, { silent: silentFlap });
      await waitForWindow(lab, 'rail 0 silent', (p) => silent(p, 1, 0));
      await waitForWindow(lab, 'rail 0 alive again', (p) => alive(p, 1, 0));
      await waitUntil('two cycles', () => flap.cycles >= 2);
      await flap.stop();
      const cyclesAtStop = flap.cycles;
      expect(await lab.snapshot()).toEqual(pristine);
      await flows('after flapping');
      expect(flap.cycles).toBe(cyclesAtStop);
    });
  }

  it('IPv6 works before and after the interface was down', async () => {
    await startUdp(lab, 0, 0, 6);
    const received6 = async () => Number(/^Ip6InReceives\s+(\d+)/m.exec((await lab.exec(1, ['cat', '/proc/net/snmp6'])).stdout)![1]);
    const grows = async (what: string) => {
      const before = await received6();
      await waitUntil(what, async () => (await received6()) > before + 20);
    };
    await grows('IPv6 datagrams');
    await lab.ownPortDown(0, 0);
    await lab.heal(0);
    await grows('IPv6 datagrams after healing');
  });

  it('refuses nodes and rails that it does not have', async () => {
    await expect(lab.blackhole(2)).rejects.toThrow('no rail 2');
    await expect(lab.ownPortDown(2, 0)).rejects.toThrow('no node 2');
    await expect(Lab.create({ nodes: 0, rails: [{}] })).rejects.toThrow('nodes');
  });

  it('sets the congestion control of its nodes, whatever the system uses', async () => {
    const read = async (where: Lab) => (await where.exec(1, ['cat', '/proc/sys/net/ipv4/tcp_congestion_control'])).stdout.trim();
    expect(lab.congestionControl).toBe('cubic');
    expect(await read(lab)).toBe('cubic');
    // Some systems keep all but their own from network namespaces until they are told.
    writeFileSync('/proc/sys/net/ipv4/tcp_allowed_congestion_control', 'reno');
    await using afresh = await Lab.create({ nodes: 1, rails: [{}] });
    expect((await afresh.exec(0, ['cat', '/proc/sys/net/ipv4/tcp_congestion_control'])).stdout.trim()).toBe('cubic');
    await using other = await Lab.create({ nodes: 2, rails: [{}], congestionControl: 'reno' });
    expect(await read(other)).toBe('reno');
    await expect(Lab.create({ nodes: 1, rails: [{}], congestionControl: 'absent' })).rejects.toThrow(
      /no congestion control absent; it has .*reno/,
    );
  });
});

describe.skipIf(unavailable !== undefined)('link lab: three nodes', () => {
  it('mutes one sender only', async () => {
    await using lab = await Lab.create({ nodes: 3, rails: [{ mbit: 40 }] });
    const target = lab.address(2, 0);
    await startPeer(lab, 2, 'udp-sink', target, UDP_PORT);
    for (const node of [0, 1]) await startPeer(lab, node, 'udp-source', lab.address(node, 0), target, UDP_PORT);
    await lab.oneWay(0, 0);
    // Node 0 sends, and yet node 2 gets about what node 1 alone sends.
    await waitForWindow(lab, 'node 1 alone heard', (p) => {
      const [from0, from1] = [port(p, 0, 0).sentPackets, port(p, 1, 0).sentPackets];
      const heard = port(p, 2, 0).deliveredPackets;
      return from0 > 4 && from1 > 4 && heard > 4 && heard < from1 + from0 / 2;
    });
  });
});

describe.skipIf(unavailable !== undefined)('link lab: nothing is left behind', () => {
  it('destroy() takes namespaces and processes, grandchildren too', async () => {
    const lab = await Lab.create({ nodes: 2, rails: [{}] });
    const shell = lab.spawn(0, ['sh', '-c', 'trap "" TERM INT; sleep 600 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let printed = '';
    shell.stdout?.on('data', (data: Buffer) => {
      printed += data;
    });
    await waitUntil('the grandchild', () => printed.includes('\n'));
    expect(labNamespaces()).toEqual(expect.arrayContaining(lab.namespaces()));
    await lab.destroy();
    await lab.destroy();
    expect(labNamespaces().filter((name) => name.startsWith(`${lab.name}-`))).toEqual([]);
    await waitUntil('the grandchild to be gone', () => !isAlive(Number(printed)));
    expect(shell.signalCode).toBe('SIGKILL');
    expect(() => lab.spawn(0, ['true'])).toThrow('destroyed');
  });

  it('a build that fails leaves nothing', async () => {
    const before = labNamespaces().filter((name) => name.startsWith(`mrlab-${process.pid}-`));
    // More than tc can express: the lab is half built when this is refused.
    await expect(Lab.create({ nodes: 2, rails: [{ mbit: 1e-9 }] })).rejects.toThrow('tc');
    expect(labNamespaces().filter((name) => name.startsWith(`mrlab-${process.pid}-`))).toEqual(before);
  });

  /** The lab as JavaScript in a directory of its own, so that a program outside vitest can use it. */
  function compileLab(dir: string): void {
    writeFileSync(join(dir, 'package.json'), '{ "type": "module" }');
    buildSync({
      entryPoints: [fileURLToPath(new URL('../../tools/lab/lab.ts', import.meta.url))],
      outfile: join(dir, 'lab.js'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
    });
  }

  async function runProgram(ending: string): Promise<{ signal: NodeJS.Signals | null; code: number | null }> {
    const dir = mkdtempSync(join(tmpdir(), 'mrlab-selftest-'));
    try {
      compileLab(dir);
      const program = `import { Lab } from './lab.js';
        const lab = await Lab.create({ nodes: 2, rails: [{}] });
        lab.spawn(0, ['sleep', '600']);
        console.log(lab.name);
        ${ending}`;
      writeFileSync(join(dir, 'program.js'), program);
      const child = spawn(process.execPath, ['program.js'], { cwd: dir, stdio: ['ignore', 'pipe', 'ignore'] });
      let printed = '';
      child.stdout.on('data', (data: Buffer) => {
        printed += data;
        if (ending.includes('interrupt me') && printed.includes('\n')) child.kill('SIGINT');
      });
      const end = await new Promise<{ signal: NodeJS.Signals | null; code: number | null }>((resolve) =>
        child.once('exit', (code, signal) => resolve({ code, signal })),
      );
      const name = printed.trim();
      expect(name).toMatch(/^mrlab-\d+-1$/);
      await waitUntil(`${name} to be gone`, () => !labNamespaces().some((namespace) => namespace.startsWith(`${name}-`)));
      return end;
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }

  it('nor after process.exit without destroy', async () => {
    expect(await runProgram('process.exit(3)')).toEqual({ code: 3, signal: null });
  });
  it('nor after an uncaught error', async () => {
    expect(await runProgram('throw new Error("a test failed")')).toEqual({ code: 1, signal: null });
  });
  it('nor after SIGINT', async () => {
    expect(await runProgram('setInterval(() => {}, 1000); // interrupt me')).toEqual({ code: null, signal: 'SIGINT' });
  });
  it('nor after kill -9', async () => {
    expect(await runProgram('process.kill(process.pid, "SIGKILL")')).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('the sweep removes the lab of a process that is gone, and no other', async () => {
    await using living = await Lab.create({ nodes: 1, rails: [{}] });
    // A process that still lives while its lab is furnished: another test file's sweep may come by at any moment.
    const owner = spawn('sleep', ['600'], { stdio: 'ignore' });
    const stale = `mrlab-${owner.pid}-1-n0`;
    execFileSync('ip', ['netns', 'add', stale]);
    const sleeper = spawn('ip', ['netns', 'exec', stale, 'sleep', '600'], { stdio: 'ignore' });
    const slept = once(sleeper, 'exit');
    await waitUntil('the sleeper', () => execFileSync('ip', ['netns', 'pids', stale], { encoding: 'utf8' }).includes(String(sleeper.pid)));
    await sweepStaleLabs();
    expect(labNamespaces()).toContain(stale);
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    await sweepStaleLabs();
    await waitUntil('the stale lab to be gone', () => !labNamespaces().includes(stale));
    expect(labNamespaces()).toEqual(expect.arrayContaining(living.namespaces()));
    expect(await slept).toEqual([null, 'SIGKILL']);
  });
});
