// The RDMA devices that this process has open, and their ports: state, addresses, and what is published about them.
import { isIPv4 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { inOneFabric, type PublishedPort } from './address.ts';
import type { Rdma } from './rdma.ts';

/** MB/s that one lane carries at the speeds that a port may state (InfiniBand specification 14.2.5.6; in 100 Mbit/s of data). */
const LANE_MBPS: Readonly<Record<number, number>> = {
  1: 250,
  2: 500,
  4: 1000,
  8: 1212,
  16: 1212,
  32: 3030,
  64: 6060,
  128: 12_120,
};
const LANES: Readonly<Record<number, number>> = { 1: 1, 2: 4, 4: 8, 8: 12, 16: 2 };

const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');

/** One open device with what all rails over it share. */
export class VerbsDevice {
  readonly name: string;
  readonly handle: Rdma.Device;
  readonly domain: Rdma.Domain;
  readonly channel: Rdma.CompletionChannel;
  readonly cache: Rdma.RegionCache;
  readonly attributes: Rdma.DeviceAttributes;
  /** Readable: completions, asynchronous events. */
  channelReady = false;
  eventsReady = false;

  constructor(rdma: typeof Rdma, name: string, idleBytesMax: number) {
    this.name = name;
    this.handle = rdma.openDevice(name);
    this.attributes = this.handle.query();
    this.domain = this.handle.allocDomain();
    this.channel = this.handle.createChannel();
    this.cache = new rdma.RegionCache(this.domain, rdma.ACCESS.LOCAL_WRITE, { idleBytesMax });
  }

  close(): void {
    this.cache.close();
    for (const object of [this.channel, this.domain, this.handle]) object.close();
  }
}

/** How a queue pair of a port is reached. */
export interface PortAddress {
  gid: Uint8Array;
  gidIndex: number;
  lid: number;
}

/** More than any rank of a GID. */
const AT_HOME = 8;

/** A port of one of them. */
export class LocalPort {
  readonly device: VerbsDevice;
  readonly number: number;
  readonly name: string;
  isActive = false;
  link: PublishedPort['link'] = 'infiniband';
  mtu = 1;
  lid = 0;
  messageBytesMax = 2 ** 30;
  gid: Uint8Array = new Uint8Array(16);
  gidIndex = 0;
  fabric = '';
  bandwidthMBps = 1;
  /** Addresses of this host over which the peer asks for a queue pair: on Ethernet, that of the port itself. */
  hosts: string[] = [];
  /** The fabric that was found first: the rails are planned for it. */
  private home = '';
  private readonly rdma: typeof Rdma;
  private readonly wantedGid: number;

  /** `gidIndex` -1: the best one. */
  constructor(rdma: typeof Rdma, device: VerbsDevice, number: number, gidIndex: number) {
    this.rdma = rdma;
    this.device = device;
    this.number = number;
    this.name = `${device.name}:${number}`;
    this.wantedGid = gidIndex;
    this.look();
  }

  /** Asks the device again; true when something changed of what is published. */
  look(): boolean {
    const { PORT_STATE, LINK_LAYER } = this.rdma;
    const before = JSON.stringify([this.link, this.mtu, this.lid, hex(this.gid), this.fabric, this.hosts]);
    const port = this.device.handle.queryPort(this.number);
    this.isActive = port.state === PORT_STATE.ACTIVE;
    this.link = port.linkLayer === LINK_LAYER.ETHERNET ? 'ethernet' : 'infiniband';
    this.mtu = Math.max(1, port.mtu);
    this.lid = port.lid;
    this.messageBytesMax = Math.max(4096, Math.min(2 ** 30, port.messageBytesMax));
    this.bandwidthMBps = (LANE_MBPS[port.speed] ?? 250) * (LANES[port.width] ?? 1);
    // An interface without carrier is not listed with its addresses: what was known of it stays.
    if (this.isActive || this.fabric === '') this.takeGid();
    return JSON.stringify([this.link, this.mtu, this.lid, hex(this.gid), this.fabric, this.hosts]) !== before;
  }

  /** Where rails of this port begin, as the peers know it. */
  get address(): PortAddress {
    return { gid: this.gid, gidIndex: this.gidIndex, lid: this.lid };
  }

  /** Why a rail that began there cannot go on; undefined when it can. Asks the device: its events may come later than what follows from them. */
  complaint({ gid, gidIndex, lid }: PortAddress): string | undefined {
    const { handle } = this.device;
    try {
      if (this.link === 'infiniband') return handle.queryPort(this.number).lid === lid ? undefined : `port ${this.name} has another LID`;
      const found = handle.gid(this.number, gidIndex);
      const isHeld = found !== undefined && hex(found) === hex(gid);
      return isHeld ? undefined : `port ${this.name} has lost its address ${addressOfGid(gid)}`;
    } catch {
      // A device that has failed answers nothing; that is told otherwise.
      return undefined;
    }
  }

  private takeGid(): void {
    const entries = this.device.handle.gids(this.number);
    const table = networkInterfaces();
    const places = entries
      .filter(({ index }) => this.wantedGid < 0 || index === this.wantedGid)
      .map((entry) => ({ entry, ...this.placeOf(entry, table) }));
    // Rails are planned once: another address of that network is as good as the one before, and one of another network is not.
    const { link, home } = this;
    const rank = (place: (typeof places)[0]): number =>
      gidRank(place.entry, link) + (home !== '' && inOneFabric({ link, fabric: place.fabric }, { link, fabric: home }) ? AT_HOME : 0);
    const [best] = places.sort((a, b) => rank(b) - rank(a));
    if (best === undefined) return;
    this.gid = best.entry.gid;
    this.gidIndex = best.entry.index;
    this.fabric = best.fabric;
    this.hosts = best.hosts;
    if (home === '') this.home = best.fabric;
  }

  private placeOf({ gid, netdev }: Rdma.GidEntry, table: NodeJS.Dict<NetworkInterfaceInfo[]>): { fabric: string; hosts: string[] } {
    if (this.link === 'infiniband') return { fabric: hex(gid.subarray(0, 8)), hosts: allHosts(table) };
    const address = addressOfGid(gid);
    const found = (table[netdev] ?? Object.values(table).flat()).find((entry) => entry?.address === address);
    // An interface that is down is not listed: its address is known, its network is not.
    if (found === undefined && !this.isActive) return { fabric: networkOf(`${address}/${isIPv4(address) ? 32 : 128}`), hosts: [address] };
    return {
      fabric: typeof found?.cidr === 'string' ? networkOf(found.cidr) : 'link-local',
      // A link-local address needs its link to be named: the companion takes another one.
      hosts: found === undefined || isLinkLocal(gid) ? allHosts(table) : [found.address],
    };
  }
}

/** RoCE v2 over IPv4 before IPv6 before what cannot be routed. */
function gidRank({ gid, type }: Rdma.GidEntry, link: PublishedPort['link']): number {
  if (link === 'infiniband') return 0;
  const isV4 = addressOfGid(gid) !== '' && isIPv4(addressOfGid(gid));
  return (type.includes('v2') ? 4 : 0) + (isV4 ? 2 : isLinkLocal(gid) ? 0 : 1);
}

const isLinkLocal = (gid: Uint8Array): boolean => gid[0] === 0xfe && (gid[1] & 0xc0) === 0x80;

/** A GID of RoCE is an IP address: the IPv4 one where it maps one. */
export function addressOfGid(gid: Uint8Array): string {
  const isMapped = gid.subarray(0, 10).every((byte) => byte === 0) && gid[10] === 0xff && gid[11] === 0xff;
  if (isMapped) return gid.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((gid[2 * i] << 8) | gid[2 * i + 1]).toString(16));
  // As Node writes it: the longest row of zeros is left out.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/** `10.9.0.1/24` is in `10.9.0.0/24`. */
export function networkOf(cidr: string): string {
  const [address, prefixText] = cidr.split('/');
  const prefix = Number(prefixText);
  const isV4 = isIPv4(address);
  const bytes = isV4 ? address.split('.').map(Number) : bytesOfIPv6(address);
  const kept = bytes.map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, prefix - 8 * i))) & 0xff);
  return `${isV4 ? kept.join('.') : hex(Uint8Array.from(kept))}/${prefix}`;
}

function bytesOfIPv6(address: string): number[] {
  const [head, tail] = address.split('::');
  const groups = (text: string | undefined): number[] =>
    text === undefined || text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = groups(tail);
  const all = [...before, ...new Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0), ...after];
  return all.flatMap((group) => [group >> 8, group & 0xff]);
}

function allHosts(table: NodeJS.Dict<NetworkInterfaceInfo[]>): string[] {
  const entries = Object.values(table).flatMap((list) => list ?? []);
  const outside = entries.filter((entry) => !entry.internal && !entry.address.startsWith('fe80:'));
  return (outside.length > 0 ? outside : entries.filter((entry) => entry.internal)).map(({ address }) => address);
}
