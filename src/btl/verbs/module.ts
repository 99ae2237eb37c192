// The verbs module: opens devices, publishes their ports, and makes a queue pair for each rail epoch. Two sides meet over a TCP connection,
// the companion. It carries the handshake of all stream transports and then each side's description of its queue pair; on a live rail it
// carries nothing more, and its end tells of the peer's death, since the kernel closes it whatever kills the peer. On Ethernet it goes to
// the address of the port itself, so it uses the same wire.
import { MultirailError } from '../../errors.ts';
import type { SocketOptions } from '../../native/binding.ts';
import type { Poller, PollTarget } from '../../native/poller.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { Dialing } from '../base/dial-attempt.ts';
import type { Link } from '../base/link.ts';
import type { StreamEndpoint } from '../base/stream-endpoint.ts';
import type { StreamFramer } from '../base/stream-framer.ts';
import { type InboundCheck, StreamModule } from '../base/stream-module.ts';
import type { BtlContext, BtlEndpoint, Params, RailPlan } from '../btl.ts';
import { connectNative, NativeListener } from '../tcp/native-listen.ts';
import { checkAddress, inOneFabric, type PublishedPort, planRails, type VerbsAddress, type VerbsPlanDetail } from './address.ts';
import { VerbsEndpoint } from './endpoint.ts';
import { LocalPort, VerbsDevice } from './ports.ts';
import type { VerbsOptions } from './queue-pair.ts';
import { loadRdma, type Rdma } from './rdma.ts';
import { type VerbsHost, VerbsLink } from './verbs-link.ts';

const COMPANION_OPTIONS: SocketOptions = { congestion: '', notSentLowatBytes: 0, sendBufferBytes: 0, receiveBufferBytes: 0 };
/** A port that came up or went down is looked at again so often where the device does not tell. */
const LOOK_EVERY_MS = 1000;

/** Devices, or single ports of them (`mlx5_0:2`), by the parameters btl_verbs_if_include and btl_verbs_if_exclude. */
export function selectPorts(devices: readonly string[], params: Params): string[] {
  const include = params.list('btl_verbs_if_include');
  const exclude = params.list('btl_verbs_if_exclude');
  const names = (list: string[], device: string): boolean => list.some((entry) => entry.split(':')[0] === device);
  return devices.filter((device) => (include.length === 0 || names(include, device)) && !exclude.includes(device));
}

/** As selectPorts(), for one port of a device that was selected. */
export function isPortWanted(name: string, device: string, params: Params): boolean {
  const include = params.list('btl_verbs_if_include');
  if (params.list('btl_verbs_if_exclude').includes(name)) return false;
  return include.length === 0 || include.includes(device) || include.includes(name);
}

export class VerbsModule extends StreamModule implements VerbsHost {
  readonly name = 'verbs';
  /** What has come is known after a look at the completion queue. */
  protected override readonly mayRest = false;
  readonly verbs: VerbsOptions;
  readonly clock: () => number;
  /** These three stand once open() has succeeded. */
  rdma!: typeof Rdma;
  private poller!: Poller;
  private devices: VerbsDevice[] = [];
  private ports: LocalPort[] = [];
  /** By address of this host. */
  private readonly listeners = new Map<string, NativeListener>();
  private readonly links: VerbsLink[] = [];
  private readonly buffers: number;
  private readonly bufferBytes: number;
  private readonly dialsBegun = new Map<StreamEndpoint, number>();
  private lookAt = 0;

  constructor(context: BtlContext, clock: () => number) {
    super(context);
    const { params } = context;
    this.clock = clock;
    this.verbs = {
      timeout: params.int('btl_verbs_ack_timeout_exponent'),
      retryCount: params.int('btl_verbs_retry_count'),
      beatMs: params.int('btl_verbs_beat_ms'),
      readsMax: params.int('btl_verbs_reads_max'),
      inlineBytesMax: params.int('btl_verbs_inline_bytes'),
    };
    // Records stand at their number modulo the number of buffers, and at multiples of a cache line.
    this.buffers = 2 ** Math.floor(Math.log2(params.int('btl_verbs_buffers')));
    this.bufferBytes = Math.ceil(params.int('btl_verbs_buffer_bytes') / 64) * 64;
  }

  async open(): Promise<void> {
    const { params, poller } = this.context;
    const { rdma, reason } = loadRdma();
    if (rdma === undefined) throw new MultirailError('ERR_INIT', `verbs: ${reason}`);
    if (poller === undefined) throw new MultirailError('ERR_INIT', 'verbs: this process runs without the native part');
    this.rdma = rdma;
    this.poller = poller;
    const failures: string[] = [];
    const names = rdma.devices().map(({ name }) => name);
    for (const name of selectPorts(names, params)) {
      try {
        this.openDevice(name);
      } catch (error) {
        failures.push(`${name}: ${(error as Error).message}`);
      }
    }
    if (this.ports.length === 0) {
      const why = failures.length > 0 ? failures.join('; ') : 'no port of these devices has an address (GID)';
      throw new MultirailError('ERR_INIT', `verbs: none of ${names.join(', ')} can be used: ${why}`);
    }
    for (const text of failures) this.note(text);
    for (const host of new Set(this.ports.flatMap(({ hosts }) => hosts))) this.listenOn(host, failures);
    if (this.listeners.size === 0) throw new MultirailError('ERR_INIT', `verbs: ${failures.join('; ')}`);
    poller.keepAlive(true);
  }

  private openDevice(name: string): void {
    const { params } = this.context;
    const device = new VerbsDevice(this.rdma, name, params.int('btl_verbs_cache_bytes'));
    this.devices.push(device);
    for (let number = 1; number <= device.attributes.ports; number++) {
      if (!isPortWanted(`${name}:${number}`, name, params)) continue;
      const port = new LocalPort(this.rdma, device, number, params.int('btl_verbs_gid_index'));
      if (port.fabric !== '') this.ports.push(port);
    }
    const ringing: PollTarget = {
      onReady: () => {
        device.channelReady = true;
      },
    };
    const telling: PollTarget = {
      onReady: () => {
        device.eventsReady = true;
      },
    };
    this.poller.add(device.channel.fd, ringing);
    this.poller.add(device.handle.asyncFd, telling);
  }

  private listenOn(host: string, failures: string[]): void {
    try {
      this.listeners.set(host, new NativeListener(this.poller, host, 0, COMPANION_OPTIONS, (stream) => this.accept(stream)));
    } catch (error) {
      failures.push(`cannot listen on ${host}: ${(error as Error).message}`);
    }
  }

  address(): VerbsAddress {
    return {
      incarnation: this.context.incarnation,
      bufferBytes: this.bufferBytes,
      buffers: this.buffers,
      ports: this.ports.map((port) => this.publish(port)),
    };
  }

  private publish(port: LocalPort): PublishedPort {
    const { name, link, fabric, lid, mtu, bandwidthMBps, hosts } = port;
    const gid = Buffer.from(port.gid).toString('hex');
    const at = hosts.flatMap((host) => {
      const listener = this.listeners.get(host);
      return listener === undefined ? [] : [{ host, port: listener.port }];
    });
    return { name, link, fabric, gid, lid, mtu, bandwidthMBps, at };
  }

  incarnationOf(remote: unknown): number | undefined {
    return checkAddress(remote).incarnation;
  }

  plan(peer: number, local: unknown, remote: unknown): RailPlan[] {
    const { params } = this.context;
    return planRails(checkAddress(local), checkAddress(remote), this.identity.rank < peer, {
      exclusivity: params.int('btl_verbs_exclusivity'),
      windowMinBytes: params.int('btl_verbs_window_min_bytes'),
      pipelineBytes: params.int('btl_verbs_pipeline_bytes'),
      getBytesMax: params.int('btl_verbs_get_bytes_max'),
      role: params.bool('btl_verbs_standby') ? 'standby' : 'active',
    });
  }

  protected checkRemote(remote: unknown): void {
    checkAddress(remote);
  }

  override endpoint(peer: number, rail: number, plan: RailPlan, remote: unknown): BtlEndpoint {
    const endpoint = new VerbsEndpoint(this, peer, rail, plan, remote);
    this.endpoints.push(endpoint);
    return endpoint;
  }

  get inMemory(): boolean {
    return this.links.length > 0;
  }

  // --- connections

  dial(endpoint: StreamEndpoint): Dialing {
    const dialing: Dialing = { stream: undefined, failure: undefined, cancelled: false };
    const { localPort, remotePort } = endpoint.plan.detail as VerbsPlanDetail;
    const port = this.portOf(localPort);
    try {
      if (!port.isActive) {
        dialing.failure = { kind: 'carrier', text: `port ${port.name} is down` };
        this.due();
        return dialing;
      }
      const theirs = checkAddress(endpoint.remote).ports.find(({ name }) => name === remotePort);
      const at = theirs?.at ?? [];
      if (theirs !== undefined && !inOneFabric(port, theirs)) {
        const networks = `${port.fabric} and ${theirs.fabric}`;
        const text = `ports ${port.name} and ${remotePort} of rank ${endpoint.peer} have no addresses in one network any more: ${networks}`;
        dialing.failure = { kind: 'carrier', text };
        this.due();
        return dialing;
      }
      if (at.length === 0) throw new MultirailError('ERR_HANDSHAKE', `rank ${endpoint.peer} accepts no connections for port ${remotePort}`);
      const turn = this.dialsBegun.get(endpoint) ?? 0;
      this.dialsBegun.set(endpoint, turn + 1);
      const { host, port: tcpPort } = at[turn % at.length];
      const localAddress = port.link === 'ethernet' && port.hosts.length === 1 ? port.hosts[0] : '';
      const stream = connectNative(this.poller, { host, port: tcpPort, localAddress }, { ...COMPANION_OPTIONS }, () => {});
      this.adopt(dialing, stream);
    } catch (error) {
      dialing.failure = { kind: 'error', text: (error as Error).message };
      this.due();
    }
    return dialing;
  }

  private portOf(name: string): LocalPort {
    const port = this.ports.find((one) => one.name === name);
    if (port === undefined) throw new MultirailError('ERR_INTERNAL', `verbs: port ${name} was planned and is not open`);
    return port;
  }

  /** While the own port is down nothing can come of it, and on Ethernet the address says which port it is. */
  protected override accept(stream: ByteStream): void {
    const ports = this.ports.filter(({ hosts }) => hosts.includes(stream.localAddress));
    if (ports.length > 0 && ports.every(({ isActive }) => !isActive)) stream.destroy();
    else super.accept(stream);
  }

  protected checkInbound(): InboundCheck {
    return { done: true, failure: undefined };
  }

  protected override wrongInterface(endpoint: StreamEndpoint): string | undefined {
    const port = this.portOf((endpoint.plan.detail as VerbsPlanDetail).localPort);
    return port.isActive ? undefined : `port ${port.name} is down`;
  }

  override link(endpoint: StreamEndpoint, epoch: number, stream: ByteStream, framer: StreamFramer, now: number): Link {
    const port = this.portOf((endpoint.plan.detail as VerbsPlanDetail).localPort);
    const link = new VerbsLink(endpoint, this, port, epoch, stream, framer, now);
    if (link.end === undefined) this.links.push(link);
    (endpoint as VerbsEndpoint).pairLink = link;
    return link;
  }

  say(text: string, level: 'debug' | 'warn'): void {
    this.note(text, level);
  }

  forget(link: VerbsLink): void {
    const at = this.links.indexOf(link);
    if (at !== -1) this.links.splice(at, 1);
  }

  // --- turns, sleep

  protected progressModule(now: number): number {
    let made = 0;
    for (const device of this.devices) {
      if (device.channelReady) {
        device.channelReady = false;
        device.channel.takeEvents();
      }
      if (device.eventsReady) made += this.takeEvents(device);
    }
    if (now >= this.lookAt) {
      this.lookAt = now + LOOK_EVERY_MS;
      for (const port of this.ports) if (!port.isActive) made += this.lookAtPort(port);
    }
    return made;
  }

  /** What the device tells by itself. */
  private takeEvents(device: VerbsDevice): number {
    const { EVENT, nameOf } = this.rdma;
    device.eventsReady = false;
    let made = 0;
    for (let event = device.handle.nextEvent(); event !== undefined; event = device.handle.nextEvent()) {
      const { type, of } = event;
      const ports = this.ports.filter((port) => port.device === device);
      switch (type) {
        case EVENT.PORT_ACTIVE:
        case EVENT.PORT_ERR:
        case EVENT.LID_CHANGE:
        case EVENT.GID_CHANGE:
        case EVENT.CLIENT_REREGISTER:
          for (const port of ports) if (port.number === of) made += this.lookAtPort(port);
          break;
        case EVENT.DEVICE_FATAL:
          for (const port of ports) {
            port.isActive = false;
            made += this.dropRails(port, `device ${device.name} has failed`);
          }
          break;
        case EVENT.QP_FATAL:
        case EVENT.QP_REQ_ERR:
        case EVENT.QP_ACCESS_ERR:
          for (const link of [...this.links]) link.failedAt(of, `the device tells of ${nameOf(EVENT, type)}`);
          this.due();
          break;
        default:
          break;
      }
    }
    return made;
  }

  private lookAtPort(port: LocalPort): number {
    const wasActive = port.isActive;
    const changed = port.look();
    let made = 0;
    if (changed) {
      made++;
      const failures: string[] = [];
      for (const host of port.hosts) if (!this.listeners.has(host)) this.listenOn(host, failures);
      for (const text of failures) this.note(text);
      this.upcalls.onAddressChanged(this);
    }
    if (wasActive && !port.isActive) return made + this.dropRails(port, `port ${port.name} is down`);
    for (const endpoint of this.endpointsOf(port)) {
      const text = endpoint.pairLink?.lostAddress;
      if (text !== undefined) made += endpoint.drop({ kind: 'carrier', text });
      if (port.isActive && (changed || !wasActive)) {
        made++;
        this.upcalls.onReachable(endpoint);
      }
    }
    return made;
  }

  private endpointsOf(port: LocalPort): VerbsEndpoint[] {
    const isOf = ({ plan }: StreamEndpoint): boolean => (plan.detail as VerbsPlanDetail).localPort === port.name;
    return this.endpoints.filter(isOf) as VerbsEndpoint[];
  }

  private dropRails(port: LocalPort, text: string): number {
    let made = 0;
    for (const endpoint of this.endpointsOf(port)) made += endpoint.drop({ kind: 'carrier', text });
    return made;
  }

  protected moduleDeadline(): number {
    return this.ports.some((port) => !port.isActive) ? this.lookAt : Number.POSITIVE_INFINITY;
  }

  park(): boolean {
    if (this.closed) return true;
    for (const link of this.links) link.sleep();
    return !this.links.some((link) => link.hasNews());
  }

  protected async closeListeners(): Promise<void> {
    const { poller } = this;
    if (poller === undefined) return;
    for (const listener of this.listeners.values()) await listener.close();
    this.listeners.clear();
    for (const device of this.devices) {
      poller.remove(device.channel.fd);
      poller.remove(device.handle.asyncFd);
      device.close();
    }
    this.devices = [];
  }
}
