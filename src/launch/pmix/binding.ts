// What the addon in native/pmix offers, and what can be said of PMIx on this machine: which library would be used, or why none is.
import { loadAddon } from '../../native/load.ts';
import type { ParamTable } from '../../params.ts';
import type { Env } from '../starters/env.ts';
import { findStarter } from '../starters/index.ts';

/** Raised with every change of the surface below: a binary of another number is not used. */
const PMIX_ABI = 1;

/** The end of a call, or an event (`id` is 0). */
export interface PmixMessage {
  id: number;
  /** 0 = success; else a negative number of PMIx, and its name. */
  status: number;
  statusText: string;
  /** init(): the name of the job and this process's rank. An event: the process that it is about. */
  nspace?: string;
  rank?: number;
  /** get(): the value, where it is a number, a boolean (0 or 1) or a text. init(): the status of the registration for events. */
  value?: number | string;
  /** get(): PMIx's number for the type of any other value. */
  type?: number;
}

/**
 * PMIx's client. No call waits: each is given a number, not 0, and a message with that number follows. Calls without an answer keep the
 * event loop alive; waiting for events does not. Throws ERR_INVALID_ARG on misuse, and ERR_PMIX when no client has been started by this thread.
 */
export interface PmixBinding {
  readonly abi: number;
  /** Loads the library by name or path. Returns the version that it says it is. Throws ERR_PMIX, saying why, when it cannot be used. */
  open(name: string): string;
  /** Makes this thread the one that messages go to. Once in a process. Throws ERR_PMIX when no library is open, or at a second call. */
  start(listener: (message: PmixMessage) => void): void;
  /** PMIx_Init. Events about the ends of processes follow from then on, until finalize(). */
  init(id: number): void;
  /** PMIx_Put, for all processes; at most 511 bytes of key and 65,535 of text. */
  put(id: number, key: string, text: string): void;
  commit(id: number): void;
  /** PMIx_Fence over all processes of the job. With `collect`, what was committed is at hand everywhere afterwards. */
  fence(id: number, collect: boolean): void;
  /** PMIx_Get: what that rank has put, or what is known of the whole job (-1). Waits for it, unless `isOptional`. */
  get(id: number, rank: number, key: string, isOptional: boolean): void;
  /** PMIx_Abort: the starter ends all processes of the job. */
  abort(id: number, code: number, text: string): void;
  finalize(id: number): void;
}

export type PmixLibrary = { binding: PmixBinding; library: string; version: string } | { missing: string };

/** The addon with the library open, or why PMIx cannot be used. Opens it; nothing is said to a server. */
export function openPmix(params: ParamTable): PmixLibrary {
  if (!params.bool('ess_pmix')) return { missing: 'switched off by ess_pmix = false' };
  const { binding, reason } = loadAddon<PmixBinding>('pmix', PMIX_ABI);
  if (binding === undefined) return { missing: `there is no native part for PMIx: ${reason}` };
  const library = params.string('ess_pmix_library');
  try {
    return { binding, library, version: binding.open(library) };
  } catch (error) {
    return { missing: `the library of PMIx cannot be loaded (Debian package libpmix2): ${(error as Error).message}` };
  }
}

/** The starter that started this process. The library of PMIx is looked for only where PMIx would be the way. */
export const starterHere = (env: Env, params: ParamTable) =>
  findStarter(env, () => {
    const found = openPmix(params);
    return 'missing' in found ? found.missing : undefined;
  });
