// All parameters of multirail in one table, put together from the rows next to the code that they control, and the values that a process
// has. They are set in Open MPI's style: `--mca NAME VALUE` on the command line of `multirail run`, or MULTIRAIL_MCA_NAME=VALUE in the
// environment; the command line wins. `multirail info --all` prints this table.

import { BML_PARAMS } from './bml/params.ts';
import { STREAM_PARAMS } from './btl/base/params.ts';
import type { Params } from './btl/btl.ts';
import { FAULT_PARAMS } from './btl/interpose/params.ts';
import { BTL_PARAMS } from './btl/params.ts';
import { SM_PARAMS } from './btl/sm/params.ts';
import { TCP_PARAMS } from './btl/tcp/params.ts';
import { VERBS_PARAMS } from './btl/verbs/params.ts';
import { WS_PARAMS } from './btl/ws/params.ts';
import { MultirailError } from './errors.ts';
import { OOB_PARAMS } from './launch/oob/params.ts';
import { PMIX_PARAMS } from './launch/pmix/params.ts';
import { RUN_PARAMS } from './launch/run/params.ts';
import { COLL_PARAMS } from './mpi/coll/params.ts';
import { FT_PARAMS } from './mpi/ft/params.ts';
import { MPI_PARAMS } from './mpi/params.ts';
import { KIB, MIB, type ParamSpec } from './param-spec.ts';
import { PML_PARAMS } from './pml/params.ts';
import { PROGRESS_PARAMS } from './progress/params.ts';

export type { ParamLevel, ParamSpec } from './param-spec.ts';

/** The rows by what they rule, in the order in which they are shown. */
export const PARAM_GROUPS = {
  'Which transports': BTL_PARAMS,
  'Messages (PML)': PML_PARAMS,
  'Rails (BML)': BML_PARAMS,
  'Shared memory': SM_PARAMS,
  'InfiniBand and RoCE': VERBS_PARAMS,
  TCP: TCP_PARAMS,
  WebSocket: WS_PARAMS,
  'All stream transports': STREAM_PARAMS,
  Collectives: COLL_PARAMS,
  Faults: FAULT_PARAMS,
  'Other hosts': RUN_PARAMS,
  Waiting: PROGRESS_PARAMS,
  Runtime: MPI_PARAMS,
  'Process failure': FT_PARAMS,
  'Out-of-band channel': OOB_PARAMS,
  PMIx: PMIX_PARAMS,
} as const satisfies Record<string, Record<string, ParamSpec>>;

export const PARAMS = {
  ...BTL_PARAMS,
  ...PML_PARAMS,
  ...BML_PARAMS,
  ...SM_PARAMS,
  ...VERBS_PARAMS,
  ...TCP_PARAMS,
  ...WS_PARAMS,
  ...STREAM_PARAMS,
  ...COLL_PARAMS,
  ...FAULT_PARAMS,
  ...RUN_PARAMS,
  ...PROGRESS_PARAMS,
  ...MPI_PARAMS,
  ...FT_PARAMS,
  ...OOB_PARAMS,
  ...PMIX_PARAMS,
} as const satisfies Record<string, ParamSpec>;

/** Names that parameters had before 0.3; each goes on working for one release, with a warning. */
export const OLD_PARAM_NAMES: Readonly<Record<string, keyof typeof PARAMS>> = {
  btl_tcp_bandwidth_mbps: 'btl_tcp_bandwidth_mbytes_per_s',
  btl_verbs_timeout: 'btl_verbs_ack_timeout_exponent',
  btl_tcp_standby: 'btl_tcp_if_standby',
};

export type ParamName = keyof typeof PARAMS;

export const PARAM_ENV_PREFIX = 'MULTIRAIL_MCA_';

function parseParam(name: string, spec: ParamSpec, text: string): number | boolean | string {
  switch (spec.kind) {
    case 'int': {
      const match = /^(\d+)([kmg]?)$/i.exec(text.trim());
      const scale = { '': 1, k: KIB, m: MIB, g: 1024 * MIB }[(match?.[2] ?? '').toLowerCase()] ?? Number.NaN;
      const value = match ? Number(match[1]) * scale : Number.NaN;
      if (!Number.isSafeInteger(value) || value < spec.min || value > spec.max) {
        throw new MultirailError(
          'ERR_CONFIG',
          `${name} = "${text}": expected a whole number of ${spec.unit} from ${spec.min} to ${spec.max} (k, m, g allowed)`,
        );
      }
      return value;
    }
    case 'bool':
      if (/^(1|true|yes|on)$/i.test(text)) return true;
      if (/^(0|false|no|off)$/i.test(text)) return false;
      throw new MultirailError('ERR_CONFIG', `${name} = "${text}": expected true or false`);
    case 'string':
      if (spec.choices !== undefined && !spec.choices.includes(text)) {
        throw new MultirailError('ERR_CONFIG', `${name} = "${text}": expected one of ${spec.choices.join(', ')}`);
      }
      return text;
    case 'list':
      return text;
  }
}

/** Values of all parameters: defaults, then the environment, then `overrides`. Unknown names throw ERR_CONFIG. */
export class ParamTable implements Params {
  private readonly values = new Map<string, number | boolean | string>();
  /** Where each value that is not a default came from. */
  readonly origins = new Map<string, string>();
  /** What whoever set these values should know, in sentences: parameters that were set by a name that they no longer have. */
  readonly warnings: string[] = [];

  constructor(overrides: Readonly<Record<string, string>> = {}, env: Readonly<Record<string, string | undefined>> = {}) {
    for (const [name, spec] of Object.entries(PARAMS)) this.values.set(name, spec.default);
    for (const [variable, text] of Object.entries(env)) {
      if (variable.startsWith(PARAM_ENV_PREFIX) && text !== undefined)
        this.set(variable.slice(PARAM_ENV_PREFIX.length), text, `environment ${variable}`);
    }
    for (const [name, text] of Object.entries(overrides)) this.set(name, text, 'argument');
  }

  private set(given: string, text: string, origin: string): void {
    const name = this.newNameOf(given, origin);
    const spec = Object.hasOwn(PARAMS, name) ? (PARAMS as Record<string, ParamSpec>)[name] : undefined;
    if (spec === undefined) {
      throw new MultirailError('ERR_CONFIG', `unknown parameter "${name}" (${origin}); multirail info --all lists them`);
    }
    const before = this.origins.get(name);
    if (before !== undefined && before.split(' ')[0] === origin.split(' ')[0]) {
      throw new MultirailError('ERR_CONFIG', `${given} (${origin}) is parameter ${name}, which is set already (${before}): set it once`);
    }
    this.values.set(name, parseParam(name, spec, text));
    this.origins.set(name, origin);
  }

  private newNameOf(given: string, origin: string): string {
    const name = Object.hasOwn(OLD_PARAM_NAMES, given) ? OLD_PARAM_NAMES[given] : undefined;
    if (name === undefined) return given;
    this.warnings.push(`parameter ${given} (${origin}) is called ${name} now; the old name goes with the next release`);
    return name;
  }

  /** Somebody has set it: what it holds is not the default. */
  isSet(name: ParamName): boolean {
    return this.origins.has(name);
  }

  private value(name: string): number | boolean | string {
    const value = this.values.get(name);
    if (value === undefined) throw new MultirailError('ERR_CONFIG', `unknown parameter "${name}"`);
    return value;
  }

  int(name: ParamName): number {
    return this.value(name) as number;
  }
  bool(name: ParamName): boolean {
    return this.value(name) as boolean;
  }
  string(name: ParamName): string {
    return this.value(name) as string;
  }
  list(name: ParamName): string[] {
    return (this.value(name) as string)
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  }
}

/** Processes may die and the others go on: asked for, or implied by processes that stand by or take the places of the dead. */
export function survivesFailures(params: ParamTable): boolean {
  return params.bool('ft') || params.int('ft_spares') > 0 || params.int('ft_respawn') > 0 || params.string('ft_join') !== 'none';
}

/** Of two replicas the shadow takes the place of its lead when that dies. */
export function takesOver(params: ParamTable): boolean {
  return params.int('ft_replicas') === 2 && params.bool('ft_takeover');
}
