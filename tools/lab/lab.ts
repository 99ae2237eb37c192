// The link lab: a network of real kernels, and the ways in which it breaks. Every node is a network namespace, every rail an Ethernet
// between them (a bridge in a wire namespace), and nothing else connects the nodes. test/lab/README.md says for each fault at which layer
// it strikes and what TCP sees.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chooseCongestionControl } from './available.ts';
import { checkCount, checkDelay, checkPositive, checkRate, labelled, range } from './checks.ts';
import { Flapping } from './flap.ts';
import type { ForwarderPort } from './forwarder.ts';
import { Impairments } from './impairments.ts';
import {
  address4,
  address6,
  blackholeLine,
  cableLines,
  congestionControlSetting,
  DEFAULT_HOLD_MS,
  forgetNeighboursLine,
  MAX_NODES,
  MAX_RAILS,
  NODE_SETTINGS,
  nodeInterface,
  nodeUpLines,
  type RailPlan,
  type RailSpec,
  returnRouteLine,
  shapeLine,
  stealRouteLines,
  switchLines,
  WIRE_SETTINGS,
  wirePort,
  wireUpLines,
} from './plan.ts';
import { nextLabName, Reaper, sweepStaleLabs } from './reaper.ts';
import { type ExecResult, LabError, run, runBatch, runOk, sleep, ToolSession, waitUntil } from './run.ts';
import { signalAll } from './signal.ts';

export { labUnavailable } from './available.ts';
export { type ForwarderPort, findForwarder } from './forwarder.ts';
export type { RailSpec } from './plan.ts';
export { labNamespaces, sweepStaleLabs } from './reaper.ts';
export { type ExecResult, LabError, sleep, waitUntil } from './run.ts';

export interface LabOptions {
  /** Number of nodes, 1 to 32. */
  nodes: number;
  /** One entry per rail, 1 to 8. */
  rails: readonly RailSpec[];
  /** Seed of what forwarders do by chance: the same frames in the same order meet the same. A whole number from 0; default 1. */
  seed?: number;
  /** How TCP on the nodes finds its rate, by the kernel's name: cubic, bbr, reno. Default cubic; where the kernel has none, its default. */
  congestionControl?: string | undefined;
}

/** What one node's port on one rail has carried since create(), counted at the switch, in bytes of Ethernet frames. */
export interface PortCounters {
  readonly node: number;
  readonly rail: number;
  /** Left the node: counted where it enters the switch, before any fault of the wire. */
  readonly sentBytes: number;
  readonly sentPackets: number;
  /** Reached the node: counted behind the rate limit and behind every fault. */
  readonly deliveredBytes: number;
  readonly deliveredPackets: number;
}

export interface LinkState {
  /** The interface is administratively up. */
  readonly adminUp: boolean;
  /** The other end of the cable is up. What an interface that is itself down would see is not known to it: false. */
  readonly carrier: boolean;
  readonly index: number;
  /** Index of the cable's other end. */
  readonly peerIndex: number;
}

export interface FlapOptions {
  /** false: the carrier goes and comes. true: frames vanish and pass in turn while the carrier stays. Default false. */
  silent?: boolean;
}

export interface FlapHandle {
  /** How often the rail has gone so far. */
  readonly cycles: number;
  /** Ends the flapping and heals the rail. Throws what a cycle threw. */
  stop(): Promise<void>;
}

interface IpLink {
  ifname: string;
  ifindex: number;
  link_index?: number;
  flags: string[];
  operstate: string;
  stats64?: Record<'rx' | 'tx', { bytes: number; packets: number }>;
}

/** How long destroy() waits for the exit events of processes that it has killed. */
const EXIT_TIMEOUT_MS = 5000;

export class Lab {
  /** Common part of the namespaces' names. */
  readonly name: string;
  readonly nodeCount: number;
  readonly rails: readonly RailPlan[];
  /** How TCP on the nodes finds its rate. */
  readonly congestionControl: string;
  private readonly reaper: Reaper;
  private readonly processes = new Set<ChildProcess>();
  private readonly flaps = new Map<number, Flapping>();
  private readonly impairments: readonly Impairments[];
  /** What each rail is shaped to now. */
  private readonly shapes: RailPlan[];
  /** Nodes whose processes are stopped. */
  private readonly halted = new Set<number>();
  /** Told when the forwarder of a rail has died and what it did is undone. */
  onForwarderLost: ((rail: number, why: string) => void) | undefined;
  private destroying: Promise<void> | undefined;

  private constructor(name: string, nodeCount: number, rails: readonly RailPlan[], seed: number, congestionControl: string) {
    this.name = name;
    this.nodeCount = nodeCount;
    this.rails = rails;
    this.congestionControl = congestionControl;
    this.shapes = [...rails];
    const namespaces = range(nodeCount).map((node) => this.namespace(node));
    this.impairments = rails.map((_, rail) => {
      const place = { rail, namespaces, wireNamespace: this.wireNamespace, seed: seed * MAX_RAILS + rail };
      return new Impairments(place, (why) => this.onForwarderLost?.(rail, why));
    });
    this.reaper = new Reaper(this.namespaces());
  }

  /** Builds the lab and returns when every link has carrier. Removes labs of dead runs first. */
  static async create({ nodes, rails, seed = 1, congestionControl }: LabOptions): Promise<Lab> {
    checkCount('nodes', nodes, MAX_NODES);
    checkCount('rails', rails.length, MAX_RAILS);
    if (!Number.isSafeInteger(seed * MAX_RAILS) || seed < 0) throw new LabError(`a seed is a whole number from 0, not ${seed}`);
    const plans = rails.map(({ mbit = 1000, queueMs = 25 }) => ({
      mbit: checkRate(mbit),
      queueMs: checkPositive('queueMs', queueMs),
    }));
    const control = chooseCongestionControl(congestionControl);
    await sweepStaleLabs();
    const lab = new Lab(nextLabName(), nodes, plans, seed, control);
    try {
      await lab.build();
    } catch (error) {
      await lab.destroy();
      throw error;
    }
    return lab;
  }

  private async build(): Promise<void> {
    const nodes = range(this.nodeCount);
    const wire = this.wireNamespace;
    await runBatch(
      'ip',
      undefined,
      this.namespaces().map((namespace) => `netns add ${namespace}`),
    );
    const nodeSettings = [...NODE_SETTINGS, congestionControlSetting(this.congestionControl)];
    await Promise.all([
      this.writeSettings(wire, WIRE_SETTINGS),
      ...nodes.map((node) => this.writeSettings(this.namespace(node), nodeSettings)),
    ]);
    await runBatch(
      'ip',
      undefined,
      cableLines(
        nodes.map((node) => this.namespace(node)),
        wire,
        this.rails,
      ),
    );
    const allRails = this.rails.map((_, rail) => rail);
    await Promise.all([
      runBatch('ip', wire, [...switchLines(this.rails), ...allRails.flatMap((rail) => wireUpLines(this.nodeCount, rail))]),
      runBatch(
        'tc',
        wire,
        allRails.flatMap((rail) => this.shapeLines(rail)),
      ),
      ...nodes.map((node) =>
        runBatch('ip', this.namespace(node), ['link set lo up', ...allRails.flatMap((rail) => nodeUpLines(node, rail))]),
      ),
    ]);
    await this.waitForCarrier(allRails);
  }

  /** Each network namespace has its own /proc/sys/net: the one of the process that opens it. */
  private async writeSettings(namespace: string, settings: readonly string[]): Promise<void> {
    const script = 'cd /proc/sys/net && while [ $# -gt 0 ]; do echo "$2" > "$1" || exit; shift 2; done';
    await runOk([
      'ip',
      'netns',
      'exec',
      namespace,
      'sh',
      '-c',
      script,
      'lab-settings',
      ...settings.flatMap((setting) => setting.split('=')),
    ]);
  }

  // ---- what is where

  private get wireNamespace(): string {
    return `${this.name}-wire`;
  }

  /** The network namespace of a node, as `ip netns` knows it. */
  namespace(node: number): string {
    this.checkNode(node);
    return `${this.name}-n${node}`;
  }

  /** All namespaces of this lab, the wire's included. */
  namespaces(): string[] {
    return [...range(this.nodeCount).map((node) => this.namespace(node)), this.wireNamespace];
  }

  interfaceName(rail: number): string {
    this.checkRail(rail);
    return nodeInterface(rail);
  }

  address(node: number, rail: number, family: 4 | 6 = 4): string {
    this.checkNode(node);
    this.checkRail(rail);
    return family === 4 ? address4(node, rail) : address6(node, rail);
  }

  // ---- processes

  /** Starts a process on a node. It is killed at the latest when the lab is destroyed, with all its children. */
  spawn(node: number, argv: readonly string[], options: SpawnOptions = {}): ChildProcess {
    if (this.destroying) throw new LabError(`${this.name} is destroyed`);
    const child = spawn('ip', ['netns', 'exec', this.namespace(node), ...argv], options);
    this.processes.add(child);
    child.once('exit', () => this.processes.delete(child));
    // Without this a process that cannot start would take the test run down; the caller may listen as well.
    child.on('error', () => this.processes.delete(child));
    return child;
  }

  /** Runs a command on a node to its end. A non-zero exit code is a result, not an error. */
  async exec(node: number, argv: readonly string[], options: { input?: string; timeoutMs?: number } = {}): Promise<ExecResult> {
    return run(['ip', 'netns', 'exec', this.namespace(node), ...argv], { timeoutMs: 30_000, ...options });
  }

  // ---- looking

  /** Counters of every port, node by node within rail by rail. */
  async counters(): Promise<PortCounters[]> {
    const ports = new Map((await this.links(this.wireNamespace, true)).map((link) => [link.ifname, link.stats64]));
    return this.rails.flatMap((_, rail) =>
      range(this.nodeCount).map((node) => {
        const stats = ports.get(wirePort(node, rail));
        if (!stats) throw new LabError(`no counters of ${wirePort(node, rail)} in ${this.wireNamespace}`);
        return {
          node,
          rail,
          sentBytes: stats.rx.bytes,
          sentPackets: stats.rx.packets,
          deliveredBytes: stats.tx.bytes,
          deliveredPackets: stats.tx.packets,
        };
      }),
    );
  }

  /** What every port carried within the next `windowMs`, and how long that window really was. */
  async throughput(windowMs: number): Promise<{ windowMs: number; ports: PortCounters[] }> {
    const startMs = performance.now();
    const before = await this.counters();
    await sleep(windowMs);
    const endMs = performance.now();
    const after = await this.counters();
    const ports = after.map((port, i) => ({
      node: port.node,
      rail: port.rail,
      sentBytes: port.sentBytes - before[i].sentBytes,
      sentPackets: port.sentPackets - before[i].sentPackets,
      deliveredBytes: port.deliveredBytes - before[i].deliveredBytes,
      deliveredPackets: port.deliveredPackets - before[i].deliveredPackets,
    }));
    return { windowMs: endMs - startMs, ports };
  }

  /** What the node itself sees of its link on this rail. */
  async linkState(node: number, rail: number): Promise<LinkState> {
    this.checkRail(rail);
    const link = (await this.links(this.namespace(node))).find(({ ifname }) => ifname === nodeInterface(rail));
    if (!link) throw new LabError(`${this.namespace(node)} has no ${nodeInterface(rail)}`);
    return {
      adminUp: link.flags.includes('UP'),
      carrier: link.flags.includes('LOWER_UP'),
      index: link.ifindex,
      peerIndex: link.link_index ?? 0,
    };
  }

  /** Everything that a heal must restore, as sorted text lines: addresses, routes and links of the nodes, ports and queues of the wire. */
  async snapshot(): Promise<string[]> {
    const wire = this.wireNamespace;
    const parts = await Promise.all([
      ...range(this.nodeCount).flatMap((node) => {
        const namespace = this.namespace(node);
        return [
          labelled(`${namespace} address`, runOk(['ip', '-n', namespace, '-o', 'address', 'show'])),
          labelled(`${namespace} route4`, runOk(['ip', '-n', namespace, '-4', 'route', 'show', 'table', 'all'])),
          labelled(`${namespace} route6`, runOk(['ip', '-n', namespace, '-6', 'route', 'show', 'table', 'all'])),
          labelled(`${namespace} link`, runOk(['ip', '-n', namespace, '-o', '-d', 'link', 'show'])),
        ];
      }),
      labelled('wire link', runOk(['ip', '-n', wire, '-o', 'link', 'show', 'type', 'veth'])),
      labelled('wire qdisc', runOk(['tc', '-n', wire, 'qdisc', 'show'])),
    ]);
    return parts.flat().sort();
  }

  private async forgetNeighbours(node: number, rail: number): Promise<void> {
    const argv = ['ip', '-n', this.namespace(node), ...forgetNeighboursLine(rail).split(' ')];
    const { code, stdout, stderr } = await run(argv);
    // Under traffic new neighbours come while the old ones go, and `ip` gives up after ten rounds. What was to be forgotten is.
    if (code !== 0 && !stdout.includes('Flush not complete')) throw new LabError(`exit ${code}: ${stderr.trim()}`, argv.join(' '));
  }

  private async links(namespace: string, withStatistics = false): Promise<IpLink[]> {
    const text = await runOk(['ip', '-n', namespace, '-json', ...(withStatistics ? ['-statistics'] : []), 'link', 'show']);
    return JSON.parse(text) as IpLink[];
  }

  /** Both ends of every cable of these rails: the kernel may report the two a moment apart. */
  private async waitForCarrier(rails: readonly number[]): Promise<void> {
    const interfaces = new Set(
      rails.flatMap((rail) => [nodeInterface(rail), ...range(this.nodeCount).map((node) => wirePort(node, rail))]),
    );
    const isUp = async (namespace: string) =>
      (await this.links(namespace)).every(({ ifname, operstate }) => !interfaces.has(ifname) || operstate === 'UP');
    await waitUntil(`carrier everywhere in ${this.name} on rails ${rails.join(', ')}`, async () =>
      (await Promise.all(this.namespaces().map(isUp))).every(Boolean),
    );
  }

  // ---- faults. Each returns when the kernel has done it; each may be called again, and on top of others.

  /** The node's own interface is set down: addresses of IPv6 and all its routes go with it. The other nodes keep their carrier. */
  async ownPortDown(node: number, rail: number): Promise<void> {
    this.checkRail(rail);
    await runBatch('ip', this.namespace(node), [`link set ${nodeInterface(rail)} down`]);
  }

  /** The interfaces of all other nodes are set down. The node keeps its carrier and sees silence. */
  async peerPortDown(node: number, rail: number): Promise<void> {
    this.checkNode(node);
    const others = range(this.nodeCount).filter((other) => other !== node);
    await Promise.all(others.map((other) => this.ownPortDown(other, rail)));
  }

  /** The node's cable is pulled: it loses its carrier, keeps addresses and routes. The other nodes keep their carrier. */
  async cableCut(node: number, rail: number): Promise<void> {
    this.checkNode(node);
    this.checkRail(rail);
    await runBatch('ip', this.wireNamespace, [`link set ${wirePort(node, rail)} down`]);
  }

  /**
   * The wire goes. By default every node loses its carrier, as when the switch loses power; with `carrier: 'kept'` the
   * ports are taken out of the bridge, as when the line between two switches is cut: every node keeps it.
   */
  async wireCut(rail: number, { carrier = 'lost' }: { carrier?: 'lost' | 'kept' } = {}): Promise<void> {
    this.checkRail(rail);
    const change = carrier === 'lost' ? 'down' : 'nomaster';
    await runBatch(
      'ip',
      this.wireNamespace,
      range(this.nodeCount).map((node) => `link set ${wirePort(node, rail)} ${change}`),
    );
    if (carrier === 'kept') await this.impairments[rail].cut(true);
  }

  /** Frames vanish in the wire in both directions; what was queued there is lost too. Every node keeps its carrier. */
  async blackhole(rail: number): Promise<void> {
    this.checkRail(rail);
    await runBatch(
      'tc',
      this.wireNamespace,
      range(this.nodeCount).map((node) => blackholeLine(node, rail)),
    );
  }

  /** What `fromNode` sends vanishes as it enters the wire; what the others send to it arrives. Every node keeps its carrier. */
  async oneWay(rail: number, fromNode: number): Promise<void> {
    this.checkNode(fromNode);
    this.checkRail(rail);
    await this.impairments[rail].change({ isMute: true }, fromNode);
  }

  /**
   * So many percent of the frames vanish, each by chance, as they enter the wire: of what `fromNode` sends, or without it of what every
   * node sends. 0 ends it. Every node keeps its carrier. Without a forwarder the kernel's random numbers decide, and they have no seed.
   */
  async loss(rail: number, percent: number, fromNode?: number): Promise<void> {
    this.checkImpaired(rail, fromNode, percent);
    await this.impairments[rail].change({ lossPercent: percent }, fromNode);
  }

  /**
   * Every frame takes so much longer, each way; with a spread, it swings by chance up to so much less or more, and frames stay in order. 0 ends it, and what was
   * under way stays so. ERR_SUPPORT without the forwarder, as for the next two.
   */
  async delay(rail: number, delayMs: number, spreadMs = 0): Promise<void> {
    this.checkImpaired(rail, undefined);
    checkDelay(delayMs);
    checkDelay(spreadMs);
    await this.impairments[rail].change({ delayMs, spreadMs });
  }

  /** So many percent of the frames are held for `holdMs` more, and others overtake them. 0 ends it. */
  async reorder(rail: number, percent: number, holdMs = DEFAULT_HOLD_MS): Promise<void> {
    this.checkImpaired(rail, undefined, percent);
    checkDelay(holdMs);
    await this.impairments[rail].change({ reorderPercent: percent, holdMs });
  }

  /**
   * In so many percent of the frames one bit flips, of what TCP's, UDP's or ICMP's checksum covers: the receiver's kernel drops them. A
   * frame without such a checksum is dropped on the way. Of what `fromNode` sends, or of what every node sends. 0 ends it.
   */
  async flip(rail: number, percent: number, fromNode?: number): Promise<void> {
    this.checkImpaired(rail, fromNode, percent);
    await this.impairments[rail].change({ flipPercent: percent }, fromNode);
  }

  /** What the forwarder of a rail has done, by node; undefined where none runs. */
  async forwarderStats(rail: number): Promise<ForwarderPort[] | undefined> {
    this.checkRail(rail);
    return await this.impairments[rail].stats();
  }

  /** The process that forwards for a rail; undefined where none does. */
  forwarderPid(rail: number): number | undefined {
    this.checkRail(rail);
    return this.impairments[rail].forwarderPid;
  }

  /** The rail becomes slow (or quick): its ports take this rate from now on, with a queue of so many bytes, or as long as the rail's was. */
  async throttle(rail: number, mbit: number, queueBytes?: number): Promise<void> {
    this.checkRail(rail);
    const queue = queueBytes === undefined ? {} : { queueBytes: checkPositive('queueBytes', queueBytes) };
    this.shapes[rail] = { ...this.rails[rail], mbit: checkRate(mbit), ...queue };
    await runBatch('tc', this.wireNamespace, this.shapeLines(rail));
  }

  /**
   * The node's route to the rail's subnet, IPv4 and IPv6, leaves by another rail's interface: source address of this rail,
   * cable of the other. Sockets bound to the interface (SO_BINDTODEVICE) are not moved, those bound to the address are.
   */
  async stealRoute(node: number, rail: number, viaRail = (rail + 1) % this.rails.length): Promise<void> {
    this.checkRail(rail);
    this.checkRail(viaRail);
    if (viaRail === rail)
      throw new LabError(`stealRoute: rail ${rail} cannot steal its own route; expected another rail, in a lab of two rails or more`);
    await runBatch('ip', this.namespace(node), stealRouteLines(node, rail, viaRail));
  }

  /** The rail goes and comes, half of `periodMs` each, until stopped, healed or destroyed. */
  flap(rail: number, periodMs: number, { silent = false }: FlapOptions = {}): FlapHandle {
    this.checkRail(rail);
    checkPositive('periodMs', periodMs);
    if (this.flaps.has(rail)) throw new LabError(`rail ${rail} of ${this.name} is flapping already`);
    const ports = range(this.nodeCount);
    // One process for all cycles: starting one takes longer than the half of a short period.
    const session = new ToolSession(silent ? 'tc' : 'ip', this.wireNamespace);
    const down = () => ports.map((node) => (silent ? blackholeLine(node, rail) : `link set ${wirePort(node, rail)} down`));
    const up = () => (silent ? this.shapeLines(rail) : wireUpLines(this.nodeCount, rail));
    const flap = new Flapping(
      periodMs / 2,
      () => session.run(down()),
      () => session.run(up()),
      () => session.end(),
    );
    this.flaps.set(rail, flap);
    return {
      get cycles() {
        return flap.cycles;
      },
      stop: () => this.heal(rail),
    };
  }

  /** Every process on the node is killed, and its links stay as they are: the kernel of the host lives, and says so for the dead. */
  async kill(node: number): Promise<void> {
    await signalAll(this.namespace(node), 'KILL');
  }

  /**
   * The host is gone without a word: its cables are out, and its processes are stopped where they are. The other nodes keep their carrier.
   * healAll() plugs it in again and lets it go on; heal() of a rail plugs in that rail alone.
   */
  async halt(node: number): Promise<void> {
    this.checkNode(node);
    // The cables first: nothing that a process still does may reach the others.
    await this.allRails((rail) => this.cableCut(node, rail));
    await signalAll(this.namespace(node), 'STOP');
    this.halted.add(node);
  }

  /** Runs one fault, or one heal, on every rail at the same time: `lab.allRails((rail) => lab.blackhole(rail))`. */
  async allRails(fault: (rail: number) => Promise<void>): Promise<void> {
    await Promise.all(this.rails.map((_, rail) => fault(rail)));
  }

  // ---- healing

  /**
   * Ends every fault of this rail: ports and interfaces up, rate, addresses, routes as at the start, neighbours forgotten.
   * Returns when all its links have carrier. Routes of *other* rails that were stolen towards this one stay stolen.
   */
  async heal(rail: number): Promise<void> {
    this.checkRail(rail);
    const flapError = await this.flaps.get(rail)?.stop();
    this.flaps.delete(rail);
    await this.restoreWire(rail);
    await Promise.all(
      range(this.nodeCount).flatMap((node) => [
        runBatch('ip -4', this.namespace(node), [returnRouteLine(rail, 4)]),
        runBatch('ip -6', this.namespace(node), [returnRouteLine(rail, 6)]),
        runBatch('ip', this.namespace(node), nodeUpLines(node, rail)),
      ]),
    );
    await this.waitForCarrier([rail]);
    // Last: what a node asked before its peers were back would be remembered as a failure.
    await Promise.all(range(this.nodeCount).map((node) => this.forgetNeighbours(node, rail)));
    if (flapError !== undefined) throw flapError;
  }

  async healAll(): Promise<void> {
    await this.allRails((rail) => this.heal(rail));
    for (const node of this.halted) await signalAll(this.namespace(node), 'CONT');
    this.halted.clear();
  }

  private async restoreWire(rail: number): Promise<void> {
    this.shapes[rail] = this.rails[rail];
    await Promise.all([
      runBatch('ip', this.wireNamespace, wireUpLines(this.nodeCount, rail)),
      runBatch('tc', this.wireNamespace, this.shapeLines(rail)),
      this.impairments[rail].clear(),
    ]);
  }

  private shapeLines(rail: number): string[] {
    return range(this.nodeCount).map((node) => shapeLine(node, rail, this.shapes[rail]));
  }

  // ---- the end

  /** Kills every process in the lab and removes its namespaces. May be called again; returns when nothing is left. */
  destroy(): Promise<void> {
    this.destroying ??= this.tearDown();
    return this.destroying;
  }

  private async tearDown(): Promise<void> {
    await Promise.all([...this.flaps.values(), ...this.impairments].map((one) => one.stop()));
    // The reaper kills them; their exits are awaited so that the caller's own handlers have run when this returns.
    const exits = [...this.processes].map((child) => once(child, 'exit', { signal: AbortSignal.timeout(EXIT_TIMEOUT_MS) }));
    const exited = Promise.allSettled(exits);
    await this.reaper.reap();
    await exited;
  }

  /** `await using lab = await Lab.create(…)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy();
  }

  private checkNode(node: number): void {
    if (!Number.isInteger(node) || node < 0 || node >= this.nodeCount) throw new LabError(`no node ${node} in a lab of ${this.nodeCount}`);
  }

  private checkImpaired(rail: number, node: number | undefined, percent = 0): void {
    this.checkRail(rail);
    if (node !== undefined) this.checkNode(node);
    if (!(percent >= 0 && percent <= 100)) throw new LabError(`a share of frames is 0 to 100 percent, not ${percent}`);
  }

  private checkRail(rail: number): void {
    if (!Number.isInteger(rail) || rail < 0 || rail >= this.rails.length)
      throw new LabError(`no rail ${rail} in a lab of ${this.rails.length}`);
  }
}
