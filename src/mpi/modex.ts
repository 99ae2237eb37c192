// What each rank publishes at start-up, and the rails that follow from two such entries.
import type { BtlEndpoint, BtlModule, RailPlan } from '../btl/btl.ts';
import { MultirailError } from '../errors.ts';
import { checkProcessors, type Processors } from './processors.ts';

export const MODEX_VERSION = 1;

/** One JSON entry per rank. */
export interface ModexEntry {
  version: number;
  incarnation: number;
  hostId: string;
  unexpectedBytesMax: number;
  /** Absent where nothing is known of them. */
  processors?: Processors;
  /** Address of each transport that is open, by name. */
  btl: Record<string, unknown>;
  /** Transports that were asked for and do not work there, with the reason. */
  excluded: Record<string, string>;
  /** What those on its host know its process by; published where the parameter ft is on. */
  process?: unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The entry of another rank, looked at before it is believed. */
export function checkEntry(rank: number, value: unknown): ModexEntry {
  if (!isObject(value)) throw new MultirailError('ERR_INIT', `rank ${rank} published no address entry`, { peer: rank });
  if (value.version !== MODEX_VERSION) {
    throw new MultirailError(
      'ERR_INIT',
      `rank ${rank} runs another version of multirail: its address entry has version ${String(value.version)}, here it is ${MODEX_VERSION}`,
      { peer: rank },
    );
  }
  const { incarnation, hostId, unexpectedBytesMax, btl, excluded, process } = value;
  if (
    !Number.isSafeInteger(incarnation) ||
    typeof hostId !== 'string' ||
    !Number.isSafeInteger(unexpectedBytesMax) ||
    (unexpectedBytesMax as number) < 0 ||
    !isObject(btl)
  ) {
    throw new MultirailError('ERR_INIT', `the address entry of rank ${rank} is damaged`, { peer: rank });
  }
  const processors = checkProcessors(value.processors);
  return {
    version: MODEX_VERSION,
    incarnation: incarnation as number,
    hostId,
    unexpectedBytesMax: unexpectedBytesMax as number,
    ...(processors === undefined ? {} : { processors }),
    btl,
    excluded: isObject(excluded) ? (excluded as Record<string, string>) : {},
    ...(process === undefined ? {} : { process }),
  };
}

/** A later entry of the same rank. Only its addresses may differ: another process of that rank does not take its place. */
export function checkUpdate(rank: number, value: unknown, first: ModexEntry | undefined): ModexEntry {
  const entry = checkEntry(rank, value);
  if (first === undefined) throw new MultirailError('ERR_PROTOCOL', `rank ${rank} is not in this job`, { peer: rank });
  if (entry.incarnation !== first.incarnation || entry.hostId !== first.hostId) {
    throw new MultirailError(
      'ERR_PROTOCOL',
      `it is of process ${entry.incarnation} on host ${entry.hostId}, and rank ${rank} is process ${first.incarnation} on host ${first.hostId}`,
      { peer: rank },
    );
  }
  return entry;
}

/** Both ends must number the rails alike, whatever order their parameters name the transports in. */
export function inFixedOrder(modules: readonly BtlModule[]): BtlModule[] {
  return [...modules].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** A transport that reaches the own rank, and no other. */
export const SELF = 'self';

/**
 * Endpoints of all rails to `peer`, numbered in the order of the plan. ERR_INIT when there is no rail, unless a transport says that there may
 * be one later, and what it waits for: `waiting` is told.
 */
export function makeRails(
  rank: number,
  peer: number,
  modules: readonly BtlModule[],
  own: ModexEntry,
  remote: ModexEntry,
  waiting?: (text: string) => void,
): BtlEndpoint[] {
  const endpoints: BtlEndpoint[] = [];
  for (const { module, plan } of planRails(rank, peer, modules, own, remote)) {
    endpoints.push(module.endpoint(peer, endpoints.length, plan, remote.btl[module.name]));
  }
  if (endpoints.length === 0) mayWait(rank, peer, modules, own, remote, waiting);
  return endpoints;
}

/** ERR_INIT when there is no rail to `peer`, and will be none; `waiting` as for makeRails(). Makes none. */
export function mustHaveRail(
  rank: number,
  peer: number,
  modules: readonly BtlModule[],
  own: ModexEntry,
  remote: ModexEntry,
  waiting: (text: string) => void,
): void {
  if (planRails(rank, peer, modules, own, remote).length === 0) mayWait(rank, peer, modules, own, remote, waiting);
}

function planRails(
  rank: number,
  peer: number,
  modules: readonly BtlModule[],
  own: ModexEntry,
  remote: ModexEntry,
): { module: BtlModule; plan: RailPlan }[] {
  const rails: { module: BtlModule; plan: RailPlan }[] = [];
  for (const module of inFixedOrder(modules)) {
    if ((module.name === SELF) !== (peer === rank) || !Object.hasOwn(remote.btl, module.name)) continue;
    try {
      for (const plan of module.plan(peer, own.btl[module.name], remote.btl[module.name], remote.hostId)) rails.push({ module, plan });
    } catch (cause) {
      throw new MultirailError('ERR_INIT', `the ${module.name} address that rank ${peer} published cannot be used`, { rank, peer, cause });
    }
  }
  return rails;
}

/** There is no rail: throws ERR_INIT, or tells what is waited for. */
function mayWait(
  rank: number,
  peer: number,
  modules: readonly BtlModule[],
  own: ModexEntry,
  remote: ModexEntry,
  waiting?: (text: string) => void,
): void {
  const reasons: string[] = [];
  for (const module of peer === rank || waiting === undefined ? [] : inFixedOrder(modules)) {
    if (!Object.hasOwn(remote.btl, module.name)) continue;
    const reason = module.mayComeLater?.(peer, own.btl[module.name], remote.btl[module.name], remote.hostId);
    if (reason !== undefined) reasons.push(`${module.name}: ${reason}`);
  }
  if (reasons.length === 0) throw noRail(rank, peer, own, remote);
  waiting?.(reasons.join('; '));
}

function noRail(rank: number, peer: number, own: ModexEntry, remote: ModexEntry): MultirailError {
  const common = Object.keys(own.btl).filter((name) => name !== SELF && name in remote.btl);
  const why =
    peer === rank
      ? `the transport ${SELF} is missing`
      : common.length > 0
        ? `both have ${common.join(', ')}, but no pair of their addresses fits (are the interface lists of both right?)`
        : 'they have no transport in common';
  return new MultirailError(
    'ERR_INIT',
    `rank ${rank} and rank ${peer} have no rail in common: ${why}. Rank ${rank} has ${describe(own)}; rank ${peer} has ${describe(remote)}`,
    { rank, peer },
  );
}

function describe(entry: ModexEntry): string {
  const has = Object.keys(entry.btl).join(', ') || 'no transport';
  const excluded = Object.entries(entry.excluded).map(([name, reason]) => `${name} (${reason})`);
  return excluded.length === 0 ? has : `${has}, and not ${excluded.join(', ')}`;
}
