// What a process publishes about itself for shared-memory rails, and whether two such addresses make a rail.
import { MultirailError } from '../../errors.ts';
import type { RailPlan } from '../btl.ts';
import { READ_BYTES_PER_TURN } from './single-copy.ts';

/** Above TCP, which is left to its own while memory carries. */
const EXCLUSIVITY = 200;
const BANDWIDTH_MBPS = 10_000;
const LATENCY_US = 1;
const FRAME_BYTES_MAX = 256 * 1024;
/** Shorter ones of exported memory are through the ring in the time that asking for them takes. */
const EXPORTED_BYTES_MIN = 64 * 1024;

export interface SmAddress {
  pid: number;
  /** The name of the listening socket, without the leading zero byte of the abstract namespace. */
  name: string;
  /** Kernel and namespaces: a rail needs equal ones, since sockets, descriptors and process numbers go over it. */
  boot: string;
  net: string;
  pidNamespace: string;
  userNamespace: string;
  ringBytes: number;
  eagerBytesMax: number;
  /** This process may, and wants to, read the memory of others. */
  singleCopy: boolean;
}

export interface SmPlanDetail {
  ringBytes: number;
  /** Each of the two may, and wants to, read the memory of the other. */
  singleCopy: boolean;
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 256;
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;

/** ERR_PROTOCOL when that is no address of ours. */
export function checkAddress(json: unknown): SmAddress {
  const a = (typeof json === 'object' && json !== null ? json : {}) as Partial<Record<keyof SmAddress, unknown>>;
  const texts = [a.name, a.boot, a.net, a.pidNamespace, a.userNamespace];
  const { ringBytes } = a;
  if (!texts.every(isText) || !isCount(a.pid) || !isCount(ringBytes) || !isCount(a.eagerBytesMax) || typeof a.singleCopy !== 'boolean') {
    throw new MultirailError('ERR_PROTOCOL', `not an address of the sm transport: ${JSON.stringify(json)}`);
  }
  // A ring must be one that our own parameter could have asked for.
  if ((ringBytes & (ringBytes - 1)) !== 0 || ringBytes < RING_BYTES_MIN || ringBytes > RING_BYTES_MAX) {
    throw new MultirailError(
      'ERR_PROTOCOL',
      `an sm address with a ring of ${ringBytes} bytes; expected a power of two from ${RING_BYTES_MIN} to ${RING_BYTES_MAX}`,
    );
  }
  return a as SmAddress;
}

export const RING_BYTES_MIN = 256 * 1024;
export const RING_BYTES_MAX = 64 * 1024 * 1024;

/** The one rail between two processes of one host; none where they cannot share a socket and memory. */
export function planRails(local: SmAddress, remote: SmAddress): RailPlan[] {
  const together =
    local.boot === remote.boot &&
    local.net === remote.net &&
    local.pidNamespace === remote.pidNamespace &&
    local.userNamespace === remote.userNamespace;
  if (!together) return [];
  const ringBytes = Math.min(local.ringBytes, remote.ringBytes);
  const frameBytesMax = Math.min(FRAME_BYTES_MAX, ringBytes / 4);
  const detail: SmPlanDetail = { ringBytes, singleCopy: local.singleCopy && remote.singleCopy };
  return [
    {
      key: 'sm#0',
      attributes: {
        bandwidthMBps: BANDWIDTH_MBPS,
        latencyUs: LATENCY_US,
        exclusivity: EXCLUSIVITY,
        role: 'active',
        canPut: false,
        canGet: true,
        // The kernel closes the socket of a process that dies; one that is stopped or computes is not dead.
        liveness: 'self',
        isSteady: true,
        frameBytesMax,
        eagerBytesMax: Math.min(local.eagerBytesMax, remote.eagerBytesMax, frameBytesMax),
        // Until the trial on the connection knows better.
        getBytesMin: Number.POSITIVE_INFINITY,
        getExportedBytesMin: EXPORTED_BYTES_MIN,
        // In smaller pieces what is said of each would take as long as it does itself, in a program that has just begun.
        oneSidedBytes: READ_BYTES_PER_TURN,
      },
      detail,
    },
  ];
}
