// What the tcp and ws modules share beyond base/: listeners per interface, the plan of rails, dialling from a local address, checks of
// routes, addresses and carriers, liveness of native rails. The subclasses bring the transport itself (listen, dial).
import { MultirailError } from '../../errors.ts';
import type { Poller } from '../../native/poller.ts';
import type { ByteStream } from '../base/byte-stream.ts';
import type { Dialing } from '../base/dial-attempt.ts';
import { isLoopbackAddress, type LivenessClaim } from '../base/handshake.ts';
import type { StreamEndpoint } from '../base/stream-endpoint.ts';
import { type InboundCheck, noSecretReason, StreamModule } from '../base/stream-module.ts';
import { ADDED_FRAME_BYTES_MIN, type BtlContext, type RailAttributes, type RailPlan, type RailReason } from '../btl.ts';
import { type LocalInterface, readInterfaces, readNames, selectIdle, selectInterfaces } from './interfaces.ts';
import { type DialTarget, type IpModuleConfig, type IpRailDetail, LINKS_MAX, type Listener, linksOf } from './ip-config.ts';
import { type LinkChange, LinkMonitor } from './link-monitor.ts';
import { LivenessWatch } from './liveness-watch.ts';
import {
  type AddressPair,
  checkAddresses,
  type InterfacePair,
  type PublishedAddresses,
  type PublishedInterface,
  pairInterfaces,
  pairLater,
  rankAddresses,
} from './pairing.ts';
import { type Egress, RouteProbe, readRouteTables } from './route.ts';

const FRAME_PAYLOAD_BYTES_MAX = ADDED_FRAME_BYTES_MIN;
const EXCLUSIVITY = 100;
/** Between ranks of one host only the processors limit a rail: it need not begin as if it were a cable. */
const SAME_HOST_MBPS = 4000;
/** How often the interfaces and the route tables are read again. Cheap: two small files and one system call. */
const LOOK_AGAIN_MS = 1000;
/** The same while no rail carries anything and the kernel tells of changes by itself: then it is only a cross-check. */
const LOOK_AGAIN_IDLE_MS = 5000;
const LOOK_AFTER_CHANGE_MS = 100;
/** Interfaces that share no subnet make a rail only when nothing has come for so long: their partners may be about to come. */
const SETTLED_MS = 3000;
/** Policy rules are not in the route tables: `ip` is asked again this often even when nothing is seen to change. */
const ASK_ROUTES_AGAIN_MS = 60_000;

/** Another rank as its addresses are now. */
interface IpPeer {
  remote: PublishedAddresses;
  hostId: string;
}

interface ListenFailure {
  text: string;
  /** It will be over by itself. */
  isPassing: boolean;
}

export abstract class IpModule extends StreamModule {
  protected readonly config: IpModuleConfig;
  private readonly readTable: () => LocalInterface[];
  private readonly readNames: () => string[];
  private readonly routes: RouteProbe;
  /** By `interface address`. */
  private readonly listeners = new Map<string, Listener>();
  private published: PublishedAddresses;
  private interfaces: LocalInterface[] = [];
  private lookedAt = Number.NEGATIVE_INFINITY;
  private lookSoonAt = Number.POSITIVE_INFINITY;
  private askRoutesAgainAt = 0;
  private routeTables = '';
  private looking = false;
  /** Streams that were opened for a rail since its last epoch began. */
  private readonly dials = new Map<StreamEndpoint, number>();
  private monitor: LinkMonitor | undefined = undefined;
  private liveness: LivenessWatch | undefined = undefined;
  private addressChanged = false;
  private readonly peers = new Map<number, IpPeer>();
  /** Addresses have changed: they may make more rails. The second time is that of pairs that share no subnet. */
  private pairNow = false;
  private pairSettledAt = Number.POSITIVE_INFINITY;
  /** Rails that a check condemned outside progress(), with the stream that was looked at. */
  private condemned: { endpoint: StreamEndpoint; stream: ByteStream; reason: RailReason }[] = [];

  constructor(context: BtlContext, config: IpModuleConfig, readTable?: () => LocalInterface[], names?: () => string[]) {
    super(context);
    this.config = config;
    this.readTable = readTable ?? readInterfaces;
    // A table of a test's own says all that there is.
    this.readNames = names ?? (readTable === undefined ? readNames : () => []);
    this.routes = new RouteProbe(context.poller?.native);
    this.published = { interfaces: [], links: config.links, incarnation: context.incarnation };
  }

  protected abstract listen(address: string, port: number, onStream: (stream: ByteStream) => void): Promise<Listener>;
  protected abstract dialStream(target: DialTarget): ByteStream;
  /** Set when rails have sockets of their own to ask the kernel about; then they judge their liveness themselves. */
  protected get railPoller(): Poller | undefined {
    return undefined;
  }

  address(): PublishedAddresses {
    return this.published;
  }

  incarnationOf(remote: unknown): number | undefined {
    return (remote as PublishedAddresses).incarnation;
  }

  async open(): Promise<void> {
    this.watchKernel();
    this.interfaces = this.readTable();
    const failures: ListenFailure[] = [];
    const interfaces: PublishedInterface[] = [];
    for (const found of selectInterfaces(this.interfaces, this.config)) {
      const opened = await this.listenOn(found, failures);
      if (opened.addresses.length > 0) interfaces.push(opened);
    }
    const idle = selectIdle(this.readNames(), this.interfaces, this.config);
    if (interfaces.length === 0 && idle.length === 0) {
      const why =
        failures.length > 0
          ? failures.map(({ text }) => text).join('; ')
          : 'no interface that is up is left by the include and exclude lists';
      throw new MultirailError('ERR_INIT', `btl ${this.name} of rank ${this.context.rank} cannot listen anywhere: ${why}`);
    }
    // An address that is still being checked for duplicates is tried again at the next look: that is nothing to warn of.
    for (const { text, isPassing } of failures) this.note(text, isPassing ? 'debug' : 'warn');
    this.published = { ...this.published, interfaces, ...(idle.length === 0 ? {} : { idle }) };
  }

  /** The kernel tells of links where there is the native part, and of connections where rails have sockets of their own. */
  private watchKernel(): void {
    const { poller, rank, params } = this.context;
    const wake = (): void => this.due();
    if (poller !== undefined) {
      try {
        this.monitor = new LinkMonitor(poller, wake);
      } catch (error) {
        this.note(`link events are not to be had: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const { railPoller } = this;
    if (railPoller === undefined) return;
    const openBeside = (endpoint: StreamEndpoint, stream: ByteStream): ByteStream => {
      const { sameHost, localInterface } = endpoint.plan.detail as IpRailDetail;
      const { remoteAddress, remotePort, localAddress } = stream;
      return this.dialStream({ host: remoteAddress, port: remotePort, localAddress, device: sameHost ? '' : localInterface });
    };
    this.liveness = new LivenessWatch({ rank, params, poller: railPoller, openBeside, wake });
  }

  isUnanswered(stream: ByteStream): boolean {
    return this.liveness?.isUnanswered(stream) === true;
  }

  epochBegan(endpoint: StreamEndpoint): void {
    this.dials.delete(endpoint);
    this.liveness?.epochBegan(endpoint);
  }

  protected override admitLiveness(stream: ByteStream, claim: LivenessClaim): string | undefined {
    if (this.liveness === undefined) return super.admitLiveness(stream, claim);
    const endpoint = this.endpoints.find((each) => each.peer === claim.rank && each.rail === claim.rail);
    return this.liveness.admit(endpoint, stream, claim, this.now, this.aliveMs);
  }

  protected checkRemote(remote: unknown): void {
    checkAddresses(remote, this.name);
  }

  plan(peer: number, local: unknown, remote: unknown, peerHostId: string): RailPlan[] {
    const ours = local as PublishedAddresses;
    const theirs = checkAddresses(remote, this.name);
    const sameHost = peerHostId === this.context.hostId;
    this.peers.set(peer, { remote: theirs, hostId: peerHostId });
    const pairs = this.context.rank < peer ? pairInterfaces(ours, theirs, sameHost) : pairInterfaces(theirs, ours, sameHost);
    return this.plansOf(peer, pairs, linksOf(ours, theirs));
  }

  private plansOf(peer: number, pairs: readonly InterfacePair[], links: number): RailPlan[] {
    return pairs.flatMap((pair) => Array.from({ length: links }, (_, link) => this.planOf(peer, pair, link)));
  }

  private planOf(peer: number, pair: InterfacePair, link: number): RailPlan {
    const { lower, upper, sameHost, linkLocal } = pair;
    const weAreLower = this.context.rank < peer;
    const detail: IpRailDetail = {
      localInterface: (weAreLower ? lower : upper).name,
      remoteInterface: (weAreLower ? upper : lower).name,
      sameHost,
      linkLocal,
    };
    const attributes: RailAttributes = {
      bandwidthMBps: this.config.bandwidthMBps,
      latencyUs: this.config.latencyUs,
      exclusivity: EXCLUSIVITY,
      role: lower.standby || upper.standby ? 'standby' : 'active',
      canPut: false,
      canGet: false,
      liveness: this.railPoller === undefined ? 'siblings' : 'self',
      frameBytesMax: FRAME_PAYLOAD_BYTES_MAX,
      ...(sameHost ? { startRateMBps: SAME_HOST_MBPS } : {}),
    };
    return { key: `${this.name}:${lower.name}-${upper.name}#${link}`, attributes, detail };
  }

  mayComeLater(_peer: number, local: unknown, remote: unknown, peerHostId: string): string | undefined {
    const sameHost = peerHostId === this.context.hostId;
    const sides = [
      ['here', local as PublishedAddresses],
      ['there', checkAddresses(remote, this.name)],
    ] as const;
    const waits = sides.flatMap(([where, { interfaces, idle = [] }]) => {
      const hasOne = interfaces.some(({ loopback, addresses }) => (sameHost || !loopback) && addresses.length > 0);
      return hasOne || idle.length === 0 ? [] : [`${idle.join(', ')} ${where} has no carrier or no address`];
    });
    return waits.length === 0 ? undefined : waits.join(', and ');
  }

  override remoteAddressChanged(peer: number, remote: unknown): void {
    super.remoteAddressChanged(peer, remote);
    const known = this.peers.get(peer);
    if (known === undefined) return;
    known.remote = remote as PublishedAddresses;
    this.addressesCame();
  }

  override forgetPeer(peer: number): boolean {
    if (!super.forgetPeer(peer)) return false;
    this.peers.delete(peer);
    for (const endpoint of this.dials.keys()) if (endpoint.peer === peer) this.dials.delete(endpoint);
    return true;
  }

  private addressesCame(): void {
    this.pairNow = true;
    this.pairSettledAt = this.now + SETTLED_MS;
    this.due();
  }

  /** Rails of interfaces that came after the start. The lower rank plans them, and the other one hears of them by the handshake. */
  private pairAddresses(isSettled: boolean): number {
    let made = 0;
    for (const [peer, { remote, hostId }] of this.peers) {
      if (this.context.rank >= peer) continue;
      const details = this.endpoints.filter((endpoint) => endpoint.peer === peer).map(({ plan }) => plan.detail as IpRailDetail);
      const pairs = pairLater(this.published, remote, hostId === this.context.hostId, {
        takenLower: new Set(details.map(({ localInterface }) => localInterface)),
        takenUpper: new Set(details.map(({ remoteInterface }) => remoteInterface)),
        isSettled,
      });
      for (const plan of this.plansOf(peer, pairs, linksOf(this.published, remote))) {
        this.upcalls.onRailPlanned(this, peer, plan, remote);
        made++;
      }
    }
    return made;
  }

  /** The handshake has told which peer it is; whether the connection came in by the interface of this rail is looked at after this. */
  planAdded(peer: number, key: string): { plan: RailPlan; remote: unknown } | undefined {
    const known = this.peers.get(peer);
    const [, names, linkText] = /^[a-z]+:(.*)#(\d{1,2})$/.exec(key) ?? [];
    const link = Number(linkText);
    if (known === undefined || names === undefined || link >= LINKS_MAX) return undefined;
    const { remote, hostId } = known;
    const sameHost = hostId === this.context.hostId;
    if (sameHost && this.endpoints.some((endpoint) => endpoint.peer === peer)) return undefined;
    for (const upper of this.published.interfaces) {
      const name = names.endsWith(`-${upper.name}`) ? names.slice(0, -upper.name.length - 1) : '';
      if (name === '' || (upper.loopback && !sameHost)) continue;
      // What the other side published may come after its handshake: the acceptor does not need it.
      const lower = remote.interfaces.find((found) => found.name === name) ?? { name, loopback: false, standby: false, addresses: [] };
      const plan = this.planOf(peer, { lower, upper, sameHost, linkLocal: false }, link);
      if (plan.key === key) return { plan, remote };
    }
    return undefined;
  }

  dial(endpoint: StreamEndpoint): Dialing {
    const dialing: Dialing = { stream: undefined, failure: undefined, cancelled: false };
    const detail = endpoint.plan.detail as IpRailDetail;
    const local = this.published.interfaces.find((found) => found.name === detail.localInterface);
    const remote = (endpoint.remote as PublishedAddresses).interfaces.find((found) => found.name === detail.remoteInterface);
    const chosen = local && remote ? this.nextAddresses(endpoint, rankAddresses(local, remote, detail.linkLocal)) : undefined;
    const ends = `${detail.localInterface} here to ${detail.remoteInterface} of rank ${endpoint.peer}`;
    if (chosen === undefined) {
      dialing.failure = { kind: 'carrier', text: `no common address family is left from ${ends}` };
      return dialing;
    }
    if (!detail.sameHost && this.monitor?.hasCarrier(detail.localInterface) === false) {
      dialing.failure = { kind: 'carrier', text: `${detail.localInterface} has no carrier` };
      return dialing;
    }
    const to = chosen.remote.address;
    const from = chosen.local.address;
    if (this.context.secret === undefined && !isLoopbackAddress(to)) {
      dialing.failure = noSecretReason(to);
      return dialing;
    }
    const zone = chosen.local.linkLocal && chosen.local.family === 6 ? `%${detail.localInterface}` : '';
    const target: DialTarget = {
      host: to + zone,
      port: chosen.remote.port,
      localAddress: from + zone,
      device: detail.sameHost ? '' : detail.localInterface,
    };
    const open = (): void => {
      if (dialing.cancelled || this.closed) return;
      try {
        this.adopt(dialing, this.dialStream(target));
      } catch (error) {
        dialing.failure = { kind: 'error', text: `${ends}: ${error instanceof Error ? error.message : String(error)}` };
        this.due();
      }
    };
    if (!this.config.routeCheck || detail.sameHost || chosen.local.linkLocal) {
      open();
      return dialing;
    }
    this.withEgress(to, from, (egress) => {
      const text = this.wrongEgress(egress, detail.localInterface, to, from);
      if (text === undefined) {
        open();
        return;
      }
      dialing.failure = { kind: 'route', text };
      this.due();
    });
    return dialing;
  }

  /** Looks the route up: at once where the kernel can be asked, or there would be no rail within a blocking call. */
  private withEgress(remote: string, local: string, then: (egress: Egress) => void): void {
    const now = this.routes.egressNow(remote, local);
    if (now !== undefined) then(now);
    else void this.routes.egress(remote, local, this.now).then(then);
  }

  /**
   * The best addresses, and with every second stream that is opened for a rail that does not come up another pair. After a fault the
   * kernel asks for a neighbour that it could not resolve only once a second, but for each of its addresses by itself: asked in turn,
   * one of them is likely to be asked for soon after the link is back.
   */
  private nextAddresses(endpoint: StreamEndpoint, ranked: readonly AddressPair[]): AddressPair | undefined {
    const dials = this.dials.get(endpoint) ?? 0;
    this.dials.set(endpoint, dials + 1);
    const others = ranked.length - 1;
    if (others < 1 || dials % 2 === 0) return ranked[0];
    return ranked[1 + (((dials - 1) / 2) % others)];
  }

  protected checkInbound(stream: ByteStream): InboundCheck {
    const check: InboundCheck = { done: true, failure: undefined };
    const remote = stream.remoteAddress;
    const owner = this.ownerOf(stream.localAddress);
    const ownAddress = this.ownerOf(remote) !== undefined;
    if (!this.config.routeCheck || owner === undefined || ownAddress || isLoopbackAddress(remote) || stream.localAddress.includes('%')) {
      return check;
    }
    check.done = false;
    this.withEgress(remote, stream.localAddress, (egress) => {
      check.failure = this.wrongEgress(egress, owner, remote, stream.localAddress);
      check.done = true;
      this.due();
    });
    return check;
  }

  protected override wrongInterface(endpoint: StreamEndpoint, stream: ByteStream): string | undefined {
    const detail = endpoint.plan.detail as IpRailDetail;
    const owner = this.ownerOf(stream.localAddress);
    if (!this.config.routeCheck || detail.sameHost || owner === undefined || owner === detail.localInterface) return undefined;
    return `it came in by ${owner} of rank ${this.context.rank}, the rail belongs to ${detail.localInterface}`;
  }

  protected progressModule(now: number): number {
    let made = 0;
    if (this.addressChanged) {
      this.addressChanged = false;
      this.upcalls.onAddressChanged(this);
      this.addressesCame();
      made++;
    }
    if (this.pairNow || now >= this.pairSettledAt) {
      const isSettled = now >= this.pairSettledAt;
      this.pairNow = false;
      if (isSettled) this.pairSettledAt = Number.POSITIVE_INFINITY;
      made += this.pairAddresses(isSettled);
    }
    while (this.condemned.length > 0) {
      const { endpoint, stream, reason } = this.condemned.shift() as (typeof this.condemned)[0];
      if (endpoint.liveStream === stream) made += endpoint.drop(reason);
    }
    if (this.monitor?.pending === true) made += this.linksChanged(this.monitor.take());
    if (!this.isResting) this.liveness?.seeStarts(now);
    // A callback here would be a new closure in each poll of a rank that waits.
    if (this.liveness !== undefined)
      for (const { endpoint, reason } of this.liveness.progress(now, this.aliveMs)) made += endpoint.drop(reason);
    if (now >= this.lookAgainAt) {
      // open() has looked just now.
      const first = this.lookedAt === Number.NEGATIVE_INFINITY;
      this.lookedAt = now;
      this.lookSoonAt = Number.POSITIVE_INFINITY;
      if (!first) made += this.lookAgain();
    }
    return made;
  }

  private get lookAgainAt(): number {
    const idle = this.monitor !== undefined && this.liveness?.activeRails === 0;
    return Math.min(this.lookSoonAt, this.lookedAt + (idle ? LOOK_AGAIN_IDLE_MS : LOOK_AGAIN_MS));
  }

  protected moduleDeadline(): number {
    if (this.addressChanged || this.pairNow || this.condemned.length > 0) return 0;
    const at = Math.min(this.lookAgainAt, this.pairSettledAt);
    if (!this.isResting) this.liveness?.seeStarts(this.now);
    return Math.min(at, this.liveness?.nextDeadline() ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Rails of an interface that lost its carrier or its address end at once, and those of one that got it back are dialled at once. A
   * rail between ranks of one host does not leave by its interface, so only the loss of its address concerns it.
   */
  private linksChanged(changes: readonly LinkChange[]): number {
    let made = 0;
    if (changes.length > 0) this.routes.forget();
    for (const change of changes) {
      for (const endpoint of this.endpoints) {
        const { localInterface, sameHost } = endpoint.plan.detail as IpRailDetail;
        if (localInterface !== change.name) continue;
        const lost = change.kind === 'link' ? !change.up && !sameHost : change.removed && this.isFrom(endpoint, change.address);
        const back = change.kind === 'link' ? change.up : !change.removed;
        if (lost) {
          const what = change.kind === 'link' ? 'its carrier' : `its address ${change.address}`;
          made += endpoint.drop({ kind: 'carrier', text: `${localInterface} has lost ${what}` });
        } else if (back && endpoint.epoch === 0) {
          endpoint.dialAgain();
          this.upcalls.onReachable(endpoint);
          made++;
        }
      }
    }
    // What else follows from it (listeners, routes, addresses to publish) is seen to soon, but not before frames have changed rail: the
    // kernel lists no links while it is still busy taking one down, and keeps us waiting meanwhile.
    if (changes.length > 0) this.lookSoonAt = this.now + LOOK_AFTER_CHANGE_MS;
    return made;
  }

  private isFrom(endpoint: StreamEndpoint, address: string): boolean {
    return endpoint.liveStream?.localAddress.split('%')[0] === address.split('%')[0];
  }

  protected async closeListeners(): Promise<void> {
    this.liveness?.close();
    this.monitor?.close();
    await Promise.all([...this.listeners.values()].map((listener) => listener.close()));
    this.listeners.clear();
  }

  /** Interfaces and routes as they are now: rails whose address is gone end, new addresses are listened on. */
  private lookAgain(): number {
    let made = this.monitor === undefined ? 0 : this.linksChanged(this.monitor.compare());
    this.interfaces = this.readTable();
    for (const endpoint of this.endpoints) {
      const stream = endpoint.liveStream;
      if (stream === undefined || stream.localAddress === '' || this.ownerOf(stream.localAddress) !== undefined) continue;
      const { localInterface } = endpoint.plan.detail as IpRailDetail;
      const text = `${localInterface} has lost its carrier or its address ${stream.localAddress}`;
      made += endpoint.drop({ kind: 'carrier', text });
    }
    if (!this.looking) {
      this.looking = true;
      const done = (): void => {
        this.looking = false;
      };
      void Promise.all([this.listenOnNew(), this.checkRoutes()]).then(done, done);
    }
    return made;
  }

  /** Listens on addresses that came since, of interfaces that are new too, and publishes them. Interfaces that are down keep their old ones. */
  private async listenOnNew(): Promise<void> {
    const selected = selectInterfaces(this.interfaces, this.config);
    let changed = false;
    const interfaces: PublishedInterface[] = [];
    for (const known of this.published.interfaces) {
      const present = selected.find((found) => found.name === known.name);
      const addresses = (list: readonly { address: string }[]): string =>
        list
          .map((entry) => entry.address)
          .sort()
          .join();
      if (present === undefined || addresses(present.addresses) === addresses(known.addresses)) {
        interfaces.push(known);
        continue;
      }
      const opened = await this.listenOn(present, []);
      // An address that cannot be bound yet (IPv6 still being checked for duplicates) is tried again at the next look.
      if (opened.addresses.length === 0 || addresses(opened.addresses) === addresses(known.addresses)) {
        interfaces.push(known);
        continue;
      }
      interfaces.push(opened);
      changed = true;
      for (const old of known.addresses) {
        if (opened.addresses.some((entry) => entry.address === old.address)) continue;
        const key = `${known.name} ${old.address}`;
        void this.listeners.get(key)?.close();
        this.listeners.delete(key);
      }
    }
    for (const found of selected) {
      if (this.published.interfaces.some(({ name }) => name === found.name)) continue;
      const opened = await this.listenOn(found, []);
      if (opened.addresses.length === 0) continue;
      interfaces.push(opened);
      changed = true;
    }
    if (!changed || this.closed) return;
    this.published = { ...this.published, interfaces };
    this.addressChanged = true;
    this.due();
  }

  private async listenOn(found: LocalInterface, failures: ListenFailure[]): Promise<PublishedInterface> {
    const { name, loopback } = found;
    const published: PublishedInterface = { name, loopback, standby: this.config.standby(name, found.addresses), addresses: [] };
    for (const entry of found.addresses) {
      const key = `${name} ${entry.address}`;
      let listener = this.listeners.get(key);
      if (listener === undefined) {
        const zone = entry.linkLocal && entry.family === 6 ? `%${name}` : '';
        try {
          listener = await this.listenInRange(entry.address + zone);
        } catch (error) {
          const isPassing = entry.family === 6 && (error as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL';
          failures.push({
            text: `cannot listen on ${entry.address} of ${name}: ${error instanceof Error ? error.message : String(error)}`,
            isPassing,
          });
          continue;
        }
        if (this.closed) {
          await listener.close();
          continue;
        }
        this.listeners.set(key, listener);
      }
      published.addresses.push({ ...entry, port: listener.port });
    }
    return published;
  }

  private async listenInRange(address: string): Promise<Listener> {
    const { portMin, portRange } = this.config;
    const onStream = (stream: ByteStream): void => this.accept(stream);
    if (portMin === 0) return this.listen(address, 0, onStream);
    for (let port = portMin; ; port++) {
      try {
        return await this.listen(address, port, onStream);
      } catch (error) {
        const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
        if (!taken || port + 1 >= portMin + portRange || port === 65535) throw error;
      }
    }
  }

  /** Live rails whose packets have come to leave by another interface are condemned. */
  private async checkRoutes(): Promise<void> {
    if (!this.config.routeCheck) return;
    const askAnyway = this.now >= this.askRoutesAgainAt;
    const tables = await readRouteTables();
    if (tables === this.routeTables && !askAnyway) return;
    this.routeTables = tables;
    this.askRoutesAgainAt = this.now + ASK_ROUTES_AGAIN_MS;
    for (const endpoint of this.endpoints) {
      const stream = endpoint.liveStream;
      const detail = endpoint.plan.detail as IpRailDetail;
      // Link-local addresses carry their interface: the tables have no say in it.
      if (stream === undefined || detail.sameHost || stream.localAddress.includes('%')) continue;
      const { remoteAddress, localAddress } = stream;
      const egress =
        this.routes.egressNow(remoteAddress, localAddress) ?? (await this.routes.egress(remoteAddress, localAddress, this.now));
      const text = this.wrongEgress(egress, detail.localInterface, stream.remoteAddress, stream.localAddress);
      if (text === undefined) continue;
      this.condemned.push({ endpoint, stream, reason: { kind: 'route', text } });
      this.due();
    }
  }

  private wrongEgress(egress: Egress, wanted: string, to: string, from: string): string | undefined {
    if (egress.kind === 'unknown') return undefined;
    if (egress.kind === 'none') return `no route to ${to} from ${from}, which belongs to ${wanted}: ${egress.text}`;
    if (egress.device === wanted) return undefined;
    return `packets to ${to} from ${from} would leave by ${egress.device}, the rail belongs to ${wanted}`;
  }

  /** The interface that has this address now. */
  private ownerOf(address: string): string | undefined {
    const plain = address.split('%')[0];
    return this.interfaces.find((found) => found.addresses.some((entry) => entry.address === plain))?.name;
  }
}
