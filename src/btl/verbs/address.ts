// What a process publishes about itself for verbs rails, and which pairs of ports make rails.
import { MultirailError } from '../../errors.ts';
import type { RailAttributes, RailPlan } from '../btl.ts';

/** A port of an RDMA device, as its owner publishes it. */
export interface PublishedPort {
  /** `rxe0:1`: device and port. */
  name: string;
  link: 'infiniband' | 'ethernet';
  /**
   * Ports of one fabric reach each other. InfiniBand: the subnet prefix; Ethernet (RoCE): the IP network of the GID, `10.9.0.0/24`, and
   * `10.9.0.1/32` where only the address is known, since the port is down.
   */
  fabric: string;
  /** 32 hexadecimal digits. */
  gid: string;
  lid: number;
  /** Largest payload of a packet: 1 to 5, for 256 to 4096 bytes (ibv_mtu). */
  mtu: number;
  bandwidthMBps: number;
  /** Where this process takes the connections over which queue pairs are agreed upon. */
  at: { host: string; port: number }[];
}

export interface VerbsAddress {
  incarnation: number;
  /** Bytes of a receive buffer, and how many of them a rail has. */
  bufferBytes: number;
  buffers: number;
  ports: PublishedPort[];
}

export interface VerbsPlanDetail {
  /** Names of the two ports: what is published of them may change. */
  localPort: string;
  remotePort: string;
  bufferBytes: number;
  buffers: number;
}

/** Rail header in front of every packet header (verbs-hdr.ts), and the longest packet header. */
export const OVERHEAD_BYTES = 32 + 4096;
export const BUFFER_BYTES_MIN = 8192;
export const BUFFER_BYTES_MAX = 16 * 1024 * 1024;
export const BUFFERS_MIN = 32;
export const BUFFERS_MAX = 8192;
const PORTS_MAX = 64;
const LATENCY_US = 2;
/** A request, its completion and what is decided between them cost some microseconds: at 25 GB/s it still takes 10. */
const ONE_SIDED_BYTES = 256 * 1024;
/** Longer messages are worth a rendezvous, which copies nothing. */
const EAGER_BYTES_MAX = 16 * 1024;

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 256;
const isWhole = (value: unknown, low: number, high: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high;

function isPort(json: unknown): json is PublishedPort {
  const port = (typeof json === 'object' && json !== null ? json : {}) as Partial<Record<keyof PublishedPort, unknown>>;
  return (
    [port.name, port.fabric].every(isText) &&
    (port.link === 'infiniband' || port.link === 'ethernet') &&
    isText(port.gid) &&
    /^[0-9a-f]{32}$/.test(port.gid) &&
    isWhole(port.lid, 0, 0xffff) &&
    isWhole(port.mtu, 1, 5) &&
    isWhole(port.bandwidthMBps, 1, 1e9) &&
    Array.isArray(port.at) &&
    port.at.length <= PORTS_MAX &&
    port.at.every((place) => isText(place?.host) && isWhole(place.port, 1, 65_535))
  );
}

/** ERR_PROTOCOL when that is no address of ours. */
export function checkAddress(json: unknown): VerbsAddress {
  const a = (typeof json === 'object' && json !== null ? json : {}) as Partial<Record<keyof VerbsAddress, unknown>>;
  const sound =
    isWhole(a.incarnation, 0, Number.MAX_SAFE_INTEGER) &&
    isWhole(a.bufferBytes, BUFFER_BYTES_MIN, BUFFER_BYTES_MAX) &&
    isWhole(a.buffers, BUFFERS_MIN, BUFFERS_MAX) &&
    Array.isArray(a.ports) &&
    a.ports.length <= PORTS_MAX &&
    a.ports.every(isPort);
  if (!sound) throw new MultirailError('ERR_PROTOCOL', `not an address of the verbs transport: ${JSON.stringify(json)?.slice(0, 500)}`);
  return a as VerbsAddress;
}

export interface PlanOptions {
  windowMinBytes: number;
  pipelineBytes: number;
  getBytesMax: number;
  exclusivity: number;
  role: RailAttributes['role'];
}

/**
 * The rails between two ranks: of each fabric the first port of the one with the first of the other, the second with the second, and so
 * on. `isLower`: ours is the lower rank, whose ports come first in keys and in the order of the fabrics.
 */
export function planRails(local: VerbsAddress, remote: VerbsAddress, isLower: boolean, options: PlanOptions): RailPlan[] {
  const [low, high] = isLower ? [local, remote] : [remote, local];
  const bufferBytes = Math.min(local.bufferBytes, remote.bufferBytes);
  const buffers = Math.min(local.buffers, remote.buffers);
  const plans: RailPlan[] = [];
  const networks = [...low.ports, ...high.ports].filter(({ link }) => link === 'ethernet').map(({ fabric }) => fabric);
  const fabricOf = ({ link, fabric }: PublishedPort): string =>
    `${link} ${link === 'ethernet' ? (networks.find((network) => network !== fabric && isWithin(fabric, network)) ?? fabric) : fabric}`;
  for (const fabric of new Set(low.ports.map(fabricOf))) {
    const [ours, theirs] = [low, high].map(({ ports }) => [...ports.keys()].filter((i) => fabricOf(ports[i]) === fabric));
    for (let k = 0; k < Math.min(ours.length, theirs.length); k++) {
      const pair = [low.ports[ours[k]], high.ports[theirs[k]]];
      const detail: VerbsPlanDetail = {
        localPort: pair[isLower ? 0 : 1].name,
        remotePort: pair[isLower ? 1 : 0].name,
        bufferBytes,
        buffers,
      };
      plans.push({
        key: `verbs:${pair[0].name}-${pair[1].name}`,
        attributes: {
          bandwidthMBps: Math.min(pair[0].bandwidthMBps, pair[1].bandwidthMBps),
          latencyUs: LATENCY_US,
          exclusivity: options.exclusivity,
          role: options.role,
          canPut: true,
          canGet: true,
          // The device of the peer acknowledges, whatever its process does.
          liveness: 'self',
          frameBytesMax: bufferBytes - OVERHEAD_BYTES,
          eagerBytesMax: Math.min(EAGER_BYTES_MAX, bufferBytes - OVERHEAD_BYTES),
          oneSidedBytes: ONE_SIDED_BYTES,
          pipelineBytes: options.pipelineBytes,
          getBytesMax: options.getBytesMax,
          windowMinBytes: options.windowMinBytes,
          startRateMBps: Math.min(pair[0].bandwidthMBps, pair[1].bandwidthMBps),
        },
        detail,
      });
    }
  }
  return plans;
}

/** Whether these two reach each other as they are now: what is published of a port may change after rails were planned. */
export function inOneFabric(a: Pick<PublishedPort, 'link' | 'fabric'>, b: Pick<PublishedPort, 'link' | 'fabric'>): boolean {
  if (a.link !== b.link) return false;
  return a.fabric === b.fabric || (a.link === 'ethernet' && (isWithin(a.fabric, b.fabric) || isWithin(b.fabric, a.fabric)));
}

/** A single address (`10.9.0.1/32`, or 32 hexadecimal digits and `/128`) lies in that network. */
function isWithin(whole: string, network: string): boolean {
  const [address, bits] = bitsOf(whole);
  const [prefix, prefixBits] = bitsOf(network);
  return bits === address.length && prefix.length === address.length && address.startsWith(prefix.slice(0, prefixBits));
}

/** The bits of the address of an Ethernet fabric, as text, and how many of them count. */
function bitsOf(fabric: string): [string, number] {
  const [address, bits] = fabric.split('/');
  const bytes = address.includes('.') ? address.split('.').map(Number) : [...Buffer.from(address, 'hex')];
  return [bytes.map((byte) => byte.toString(2).padStart(8, '0')).join(''), Number(bits)];
}
