// Finds the interface by which packets leave: the native part asks the kernel; without it `ip route get`, where that program exists, which
// also knows policy rules; otherwise /proc/net. Two rails over one cable would count it twice and die together.
import { readFile } from 'node:fs/promises';
import type { NativeBinding } from '../../native/binding.ts';
import { addressBits } from './interfaces.ts';

/** `device`: the interface. `none`: the kernel has no route. `unknown`: it could not be found out, and nothing is refused for that. */
export type Egress = { kind: 'device'; device: string } | { kind: 'none'; text: string } | { kind: 'unknown' };

const CACHE_MS = 1000;
const CACHE_ENTRIES_MAX = 1024;
/** Programs started at the same time; the others wait. */
const ASKING_MAX = 4;
const IP_TIMEOUT_MS = 2000;

/** What the kernel says when there is no way to an address. */
const NO_WAY: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EACCES', 'ENETDOWN', 'ENONET']);

const RTF_UP = 0x1;
const RTF_REJECT = 0x200;
const RTF_LOCAL = 0x80000000;

/** What is sent to an address of this network namespace does not leave by the interface that has the address, but by this one. */
const LOOPBACK_DEVICE = 'lo';

/** Reads the answer of `ip -j route get`, or of an `ip` that knows no JSON. */
export function parseRouteGet(output: string): Egress {
  try {
    const routes = JSON.parse(output) as { dev?: unknown; type?: unknown }[];
    const route = Array.isArray(routes) ? routes[0] : undefined;
    if (route !== undefined) {
      if (route.type === 'unreachable' || route.type === 'blackhole' || route.type === 'prohibit') {
        return { kind: 'none', text: String(route.type) };
      }
      return typeof route.dev === 'string' ? { kind: 'device', device: route.dev } : { kind: 'unknown' };
    }
  } catch {
    // Not JSON: the words are the same.
  }
  const match = /\bdev (\S+)/.exec(output);
  return match === null ? { kind: 'unknown' } : { kind: 'device', device: match[1] };
}

/** What `ip` says on its error output when there is no route, as against when it could not ask. */
export function parseRouteError(text: string): Egress {
  const line = text.trim().split('\n')[0] ?? '';
  return /unreachable|no route/i.test(line) ? { kind: 'none', text: line } : { kind: 'unknown' };
}

export interface TableRoute {
  device: string;
  network: bigint;
  prefix: number;
  metric: number;
  reject: boolean;
  /** The route is in the local table: an address of this network namespace itself. */
  local: boolean;
}

/** /proc/net/route: addresses are the bytes of the network order, read as a number of this (little-endian) machine. */
export function parseIpv4Routes(text: string): TableRoute[] {
  const routes: TableRoute[] = [];
  for (const line of text.split('\n').slice(1)) {
    const [device, destination, , flagsText, , , metric, mask] = line.trim().split(/\s+/);
    if (mask === undefined) continue;
    const swap = (hex: string): bigint => BigInt(`0x${(hex.match(/../g) ?? []).reverse().join('')}`);
    const flags = Number.parseInt(flagsText, 16);
    if ((flags & RTF_UP) === 0) continue;
    const prefix = swap(mask).toString(2).replace(/0+$/, '').length;
    routes.push({ device, network: swap(destination), prefix, metric: Number(metric), reject: (flags & RTF_REJECT) !== 0, local: false });
  }
  return routes;
}

/**
 * The IPv4 addresses that are of this machine, out of /proc/net/fib_trie. /proc/net/route shows the main table only, and they stand in the
 * local one, which the kernel asks first: without it the default route would answer for 127.0.0.1, and the subnet of an interface for the
 * interface's own address. The other tables of the file ("Main:", "Id 100:") may have entries of this type too, but which packets ask
 * those is up to the policy rules.
 */
export function parseIpv4Local(text: string): TableRoute[] {
  const routes: TableRoute[] = [];
  let isLocalTable = false;
  let network = 0n;
  for (const line of text.split('\n')) {
    if (/^\S/.test(line)) {
      isLocalTable = line.startsWith('Local:');
      continue;
    }
    if (!isLocalTable) continue;
    // A leaf of the trie is `|-- ADDRESS`; below it stands a line for each prefix: `/32 host LOCAL`. The inner nodes (`+--`) say nothing.
    const leaf = /^\s*\|-- (\S+)/.exec(line);
    if (leaf !== null) network = addressBits(leaf[1])?.bits ?? 0n;
    const prefix = /^\s*\/(\d+) \S+ LOCAL\b/.exec(line);
    if (prefix !== null)
      routes.push({ device: LOOPBACK_DEVICE, network, prefix: Number(prefix[1]), metric: 0, reject: false, local: true });
  }
  return routes;
}

/** /proc/net/ipv6_route: destination, its prefix, source, its prefix, next hop, metric, counters, flags, device. */
export function parseIpv6Routes(text: string): TableRoute[] {
  const routes: TableRoute[] = [];
  for (const line of text.split('\n')) {
    const [destination, prefix, , , , metric, , , flagsText, device] = line.trim().split(/\s+/);
    if (device === undefined) continue;
    const flags = Number.parseInt(flagsText, 16);
    if ((flags & RTF_UP) === 0 && (flags & RTF_REJECT) === 0) continue;
    const local = (flags & RTF_LOCAL) !== 0;
    routes.push({
      // An entry of the local table names the interface that has the address.
      device: local ? LOOPBACK_DEVICE : device,
      network: BigInt(`0x${destination}`),
      prefix: Number.parseInt(prefix, 16),
      metric: Number.parseInt(metric, 16),
      reject: (flags & RTF_REJECT) !== 0,
      local,
    });
  }
  return routes;
}

/** The local table before the main one, as the kernel does; in a table the longest prefix, then the lowest metric. */
function isBetter(a: TableRoute, b: TableRoute): boolean {
  if (a.local !== b.local) return a.local;
  return a.prefix > b.prefix || (a.prefix === b.prefix && a.metric < b.metric);
}

/** By which interface packets to this address leave, by tables of its family. */
export function lookUpRoute(routes: readonly TableRoute[], address: string): Egress {
  const parsed = addressBits(address);
  if (parsed === undefined) return { kind: 'unknown' };
  const width = parsed.family === 4 ? 32 : 128;
  let best: TableRoute | undefined;
  for (const route of routes) {
    const shift = BigInt(width - route.prefix);
    if (parsed.bits >> shift !== route.network >> shift) continue;
    if (best === undefined || isBetter(route, best)) best = route;
  }
  if (best === undefined || best.reject) return { kind: 'none', text: 'no entry in the route table' };
  return { kind: 'device', device: best.device };
}

/** Both route tables of this network namespace as text: when it is unchanged, so are the routes of the main table. */
export async function readRouteTables(): Promise<string> {
  const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  const [v4, v6] = await Promise.all([read('/proc/net/route'), read('/proc/net/ipv6_route')]);
  // The IPv6 table also counts references and uses, which change all the time.
  const stable = v6.split('\n').map((line) =>
    line
      .trim()
      .split(/\s+/)
      .filter((_, i) => i !== 6 && i !== 7)
      .join(' '),
  );
  return `${v4}\n${stable.join('\n')}`;
}

/** Asks and caches. One per module. */
export class RouteProbe {
  private readonly cache = new Map<string, { at: number; answer: Promise<Egress> }>();
  private asking = 0;
  private readonly queue: (() => void)[] = [];
  private ipMissing = false;
  private readonly native: NativeBinding | undefined;
  private readonly ipProgram: string;

  /** `ipProgram`: what stands for `ip`, for a test of what happens where there is none. */
  constructor(native?: NativeBinding, ipProgram = 'ip') {
    this.native = native;
    this.ipProgram = ipProgram;
  }

  /**
   * As egress(), at once: asked of the kernel by the native part. Undefined without it. A blocking call has no event loop in which a
   * promise could settle.
   */
  egressNow(remote: string, local: string): Egress | undefined {
    if (this.native === undefined) return undefined;
    try {
      return { kind: 'device', device: this.native.routeDevice(remote, local) };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return NO_WAY.has(code ?? '') ? { kind: 'none', text: message } : { kind: 'unknown' };
    }
  }

  /** The interface by which packets to `remote` from `local` leave. `now` in milliseconds is only for the cache. */
  egress(remote: string, local: string, now: number): Promise<Egress> {
    const key = `${remote} from ${local}`;
    const known = this.cache.get(key);
    if (known !== undefined && now - known.at < CACHE_MS) return known.answer;
    if (this.cache.size >= CACHE_ENTRIES_MAX) this.cache.clear();
    const answer = this.ask(remote.split('%')[0], local.split('%')[0]);
    this.cache.set(key, { at: now, answer });
    // A route that is not there may come any moment, and somebody waits for it.
    void answer.then(({ kind }) => {
      if (kind === 'none' && this.cache.get(key)?.answer === answer) this.cache.delete(key);
    });
    return answer;
  }

  /** Links or addresses have changed: what was answered before says nothing any more. */
  forget(): void {
    this.cache.clear();
  }

  private async ask(remote: string, local: string): Promise<Egress> {
    if (!this.ipMissing) {
      if (this.asking >= ASKING_MAX) await new Promise<void>((resolve) => this.queue.push(resolve));
      this.asking++;
      const answer = await this.askIp(remote, local);
      this.asking--;
      this.queue.shift()?.();
      if (answer !== undefined) return answer;
      this.ipMissing = true;
    }
    const read = (path: string): Promise<string> => readFile(path, 'utf8');
    try {
      if (remote.includes(':')) return lookUpRoute(parseIpv6Routes(await read('/proc/net/ipv6_route')), remote);
      const [main, local] = await Promise.all([read('/proc/net/route'), read('/proc/net/fib_trie')]);
      return lookUpRoute([...parseIpv4Local(local), ...parseIpv4Routes(main)], remote);
    } catch {
      return { kind: 'unknown' };
    }
  }

  /** Undefined when there is no `ip` program. */
  private async askIp(remote: string, local: string): Promise<Egress | undefined> {
    // Seldom needed: with the native part the kernel is asked directly.
    const { execFile } = await import('node:child_process');
    const env = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`, LC_ALL: 'C' };
    return new Promise((resolve) => {
      execFile(this.ipProgram, ['-j', 'route', 'get', remote, 'from', local], { env, timeout: IP_TIMEOUT_MS }, (error, stdout, stderr) => {
        if (error === null) resolve(parseRouteGet(stdout));
        else resolve(error.code === 'ENOENT' ? undefined : parseRouteError(stderr));
      });
    });
  }
}
