// `multirail info`: what is there and what would be used: transports, interfaces, addresses, parameters, launcher.
import { type Command, InvalidArgumentError } from 'commander';
import { crc32cBackend } from '../../src/btl/base/crc32c.ts';
import { knownComponents, selectComponents } from '../../src/btl/registry.ts';
import { type LocalInterface, readInterfaces, selectInterfaces } from '../../src/btl/tcp/interfaces.ts';
import { socketOptionsOf } from '../../src/btl/tcp/module.ts';
import { describeDevices, type RdmaPortInfo } from '../../src/btl/verbs/describe.ts';
import { openPmix, starterHere } from '../../src/launch/pmix/binding.ts';
import { alone } from '../../src/launch/starters/index.ts';
import { pmix } from '../../src/launch/starters/pmix.ts';
import type { Meeting } from '../../src/launch/starters/starter.ts';
import { NATIVE_COMBINE_MIN } from '../../src/mpi/coll/native-kernels.ts';
import { LOOK_MS, ownProcess } from '../../src/mpi/ft/process-watch.ts';
import type { NativeBinding } from '../../src/native/binding.ts';
import { loadNative } from '../../src/native/load.ts';
import {
  PARAM_ENV_PREFIX,
  PARAMS,
  type ParamLevel,
  type ParamName,
  type ParamSpec,
  ParamTable,
  survivesFailures,
} from '../../src/params.ts';
import { describeHost, type MachineInfo, machineInfo } from '../bench/machine.ts';
import { chooseAlgebra } from '../hpl/blas.ts';
import { collectiveLines, collectivesOf } from './info-collectives.ts';
import { mcaOption, messageOf } from './run.ts';

interface TransportInfo {
  name: string;
  description: string;
  isOn: boolean;
  /** Why it is on or off. */
  reason: string;
  /** What carries its bytes, and how. */
  carriedBy: string;
}

interface InterfaceInfo {
  name: string;
  addresses: string[];
  isLoopback: boolean;
  /** Transports that would make rails of it, with the addresses that they would use. */
  usedBy: { transport: string; addresses: string[] }[];
  use: string;
}

interface ParamInfo {
  name: string;
  level: ParamLevel;
  kind: ParamSpec['kind'];
  value: number | boolean | string;
  default: number | boolean | string;
  unit?: string;
  min?: number;
  max?: number;
  choices?: readonly string[];
  origin: string;
  text: string;
}

export interface Info {
  version: string;
  machine: MachineInfo;
  nativePart: string;
  crc32c: string;
  /** What combines the arrays of reductions. */
  reductions: string;
  /** What `multirail hpl` computes with, and why. */
  linearAlgebra: string;
  transports: TransportInfo[];
  /** Why no transport can be used; undefined when at least one can. */
  transportError: string | undefined;
  interfaces: InterfaceInfo[];
  /** Why the interfaces cannot be listed; undefined when they can. */
  interfacesError: string | undefined;
  /** Ports of RDMA devices, and what cannot be told of them. */
  rdmaPorts: RdmaPortInfo[];
  rdmaReasons: string[];
  launcher: string;
  /** The library of PMIx, whether this process goes by it, and why. */
  pmix: string;
  /** What becomes of a job when a process of it dies, and how others know. */
  failures: string;
  params: ParamInfo[];
  /** Parameters that were given by a name of before. */
  paramWarnings: string[];
}

type Env = Readonly<Record<string, string | undefined>>;

function transportsOf(params: ParamTable): { transports: TransportInfo[]; error: string | undefined } {
  const asked = params.string('btl');
  let error: string | undefined;
  let on = new Set<string>();
  let reasons = new Map<string, string>();
  try {
    const { components, unavailable } = selectComponents(params);
    on = new Set(components.map(({ name }) => name));
    reasons = new Map(unavailable.map(({ name, reason }) => [name, reason]));
  } catch (caught) {
    error = messageOf(caught);
  }
  const transports = knownComponents().map(({ name, description, unavailable }) => {
    const isOn = on.has(name);
    const why = reasons.get(name) ?? unavailable(params);
    const reason = isOn ? `named by btl = "${asked}"` : (why ?? `not named by btl = "${asked}"`);
    return { name, description, isOn, reason, carriedBy: carriedBy(name, params) };
  });
  return { transports, error };
}

/** How the death of a process of this host is known to others of it. */
function evidenceOf(): string {
  const { binding } = loadNative();
  const handle = binding?.processWatch(process.pid) ?? -1;
  if (handle >= 0) {
    binding?.close(handle);
    return 'processes of one host watch each other by handles of the kernel (pidfd), in blocking calls too';
  }
  if (ownProcess() === undefined) return 'deaths are known by the launcher and by the rails alone, since there is no /proc';
  const why = binding === undefined ? 'there is no native part' : 'this kernel gives no handles of processes (pidfd)';
  return `processes of one host look for each other in /proc every ${LOOK_MS} ms, since ${why}`;
}

function failuresOf(params: ParamTable): string {
  if (!survivesFailures(params)) return `a process that dies ends its job; with --mca ft on the others go on: ${evidenceOf()}`;
  const spares = params.int('ft_spares');
  const standing = spares === 0 ? '' : `, and of its processes ${spares} stand${spares === 1 ? 's' : ''} by`;
  return `the others go on when a process dies (ft)${standing}: ${evidenceOf()}`;
}

/** The native part, or why it is not used, in one line. */
function nativePartOf(): string {
  const native = loadNative();
  return native.binding === undefined ? `not used: ${native.reason}` : `loaded from ${native.path}`;
}

function reductionsOf(): string {
  if (loadNative().binding === undefined) return 'loops in JavaScript, since there is no native part';
  return `loops of the native part from ${NATIVE_COMBINE_MIN} elements on, in JavaScript below`;
}

/** In an environment of its own: what is set for the library is the ranks' matter. */
function linearAlgebraOf(): string {
  try {
    const { description, reason } = chooseAlgebra('auto', { ...process.env });
    return `${description} (${reason})`;
  } catch (error) {
    return `none: ${messageOf(error)}`;
  }
}

function carriedBy(transport: string, params: ParamTable): string {
  if (transport === 'ws') return 'the sockets of Node';
  if (transport !== 'tcp') return '';
  const { binding } = loadNative();
  if (binding === undefined) return 'the sockets of Node, since there is no native part; congestion control as the system has it';
  if (!params.bool('btl_tcp_native')) return 'the sockets of Node (btl_tcp_native); congestion control as the system has it';
  const near = congestionOf(binding, params, true);
  const far = congestionOf(binding, params, false);
  return `the native part; congestion control ${near === far ? near : `${near} between ranks of one host, ${far} elsewhere`}`;
}

/** What a socket with these parameters has in the end: an unknown name leaves the system's. */
function congestionOf(native: NativeBinding, params: ParamTable, near: boolean): string {
  try {
    const fd = native.tcpListen('127.0.0.1', 0, 1, socketOptionsOf(params, near));
    try {
      return native.congestionOf(fd);
    } finally {
      native.close(fd);
    }
  } catch (error) {
    return `unknown (${messageOf(error)})`;
  }
}

/** The interfaces, or why they cannot be listed. */
function interfacesOf(params: ParamTable, transports: readonly TransportInfo[]): InterfaceInfo[] | string {
  let all: LocalInterface[];
  try {
    all = readInterfaces();
  } catch (error) {
    return messageOf(error);
  }
  const family = params.string('btl_tcp_disable_family');
  const filters = {
    tcp: {
      include: params.list('btl_tcp_if_include'),
      exclude: params.list('btl_tcp_if_exclude'),
      disabledFamily: family === '4' ? 4 : family === '6' ? 6 : 0,
    },
    ws: { include: params.list('btl_ws_if_include'), exclude: params.list('btl_ws_if_exclude'), disabledFamily: 0 },
  } as const;
  const selected = Object.entries(filters)
    .filter(([name]) => transports.some((transport) => transport.name === name && transport.isOn))
    .map(([transport, filter]) => ({ transport, interfaces: selectInterfaces(all, filter) }));
  const areSpares = params.string('bml_spare_rails') === 'needed' && transports.some(({ name, isOn }) => name === 'sm' && isOn);
  return all.map((found) => {
    const usedBy = selected.flatMap(({ transport, interfaces }) => {
      const used = interfaces.find(({ name }) => name === found.name);
      return used === undefined ? [] : [{ transport, addresses: used.addresses.map(({ address }) => address) }];
    });
    const addresses = found.addresses.map(({ address, prefix }) => `${address}/${prefix}`);
    return { name: found.name, addresses, isLoopback: found.loopback, usedBy, use: useOf(found, usedBy, areSpares) };
  });
}

/** `areSpares`: shared memory carries what goes from one rank of this host to another. */
function useOf(found: LocalInterface, usedBy: InterfaceInfo['usedBy'], areSpares: boolean): string {
  if (usedBy.length === 0) return 'not used (see btl, btl_tcp_if_include and btl_tcp_if_exclude)';
  const names = usedBy.map(({ transport }) => transport).join(' and ');
  if (!found.loopback) return `${names} to ranks on other hosts`;
  return `${names} between ranks on this host${areSpares ? ', made when shared memory fails (bml_spare_rails)' : ''}`;
}

/** Which starter started this process as a rank, how that shows, where its ranks meet, and where their secret comes from. */
export function launcherOf(env: Env, params = new ParamTable({}, env)): string {
  const { starter, seen } = starterHere(env, params);
  if (starter === alone) return `none (${seen} is set): init() makes a world of one; multirail run -n N starts ranks here`;
  try {
    const { rank, size, meeting } = starter.place(env);
    return `${starter.name} (by ${seen}): rank ${rank}${size === undefined ? '' : ` of ${size}`}; ${meetingText(meeting)}${secretText(env, meeting)}`;
  } catch (error) {
    return `${starter.name} (by ${seen}), but init() would fail: ${messageOf(error)}`;
  }
}

/** What was found of PMIx, and whether init() would use it. */
export function pmixOf(env: Env, params: ParamTable): string {
  const found = openPmix(params);
  if ('missing' in found) return `off: ${found.missing}`;
  const { starter, seen } = starterHere(env, params);
  const library = `${found.library} (${found.version})`;
  if (starter.name === pmix.name) return `on: ${library}, by ${seen}`;
  const why = pmix.seen(env) === undefined ? 'PMIX_NAMESPACE, PMIX_RANK and PMIX_SERVER_URI… are not set' : `${starter.name} comes first`;
  return `not used here, since ${why}; found ${library}`;
}

function meetingText(meeting: Meeting): string {
  switch (meeting.by) {
    case 'launcher':
      return `the launcher is at ${meeting.urls.join(', ')}`;
    case 'pmi':
      return 'rank 0 says in the key-value space of PMI-1 where the ranks meet';
    case 'pmix':
      return meeting.byHand === undefined
        ? 'rank 0 says in the key-value space of PMIx where the ranks meet'
        : `${meetingText(meeting.byHand)}; PMIx tells of the ends of ranks`;
    case 'address':
      return `the ranks meet at ${meeting.host}:${meeting.port} (${meeting.rule})`;
    case 'file':
      return `the file ${meeting.path} says where the ranks meet (${meeting.rule})`;
    case 'host':
      return `the ranks meet on this host (${meeting.rule})`;
    case 'nobody':
      return 'there is nobody to meet';
  }
}

function secretText(env: Env, meeting: Meeting): string {
  if (meeting.by === 'pmix' && meeting.byHand !== undefined) return secretText(env, meeting.byHand);
  if (meeting.by === 'launcher' || meeting.by === 'nobody') return '';
  if (env.MULTIRAIL_SECRET_FILE !== undefined && env.MULTIRAIL_SECRET_FILE !== '') return ', with the secret of MULTIRAIL_SECRET_FILE';
  if (meeting.by === 'address') return ', without a secret: on loopback only (MULTIRAIL_SECRET_FILE is not set)';
  return ', and what the secret is';
}

function paramsOf(params: ParamTable): ParamInfo[] {
  return Object.entries<ParamSpec>(PARAMS).map(([name, spec]) => {
    const key = name as ParamName;
    const value = spec.kind === 'int' ? params.int(key) : spec.kind === 'bool' ? params.bool(key) : params.string(key);
    return {
      name,
      level: spec.level,
      kind: spec.kind,
      value,
      default: spec.default,
      ...(spec.kind === 'int' ? { unit: spec.unit, min: spec.min, max: spec.max } : {}),
      ...(spec.kind === 'string' && spec.choices !== undefined ? { choices: spec.choices } : {}),
      origin: params.origins.get(name) ?? 'default',
      text: spec.text,
    };
  });
}

export function collectInfo(version: string, mca: Readonly<Record<string, string>>, env: Env): Info {
  const params = new ParamTable(mca, env);
  const { transports, error } = transportsOf(params);
  const interfaces = interfacesOf(params, transports);
  const rdma = describeDevices(params);
  return {
    version,
    machine: machineInfo(),
    nativePart: nativePartOf(),
    crc32c: crc32cBackend,
    reductions: reductionsOf(),
    linearAlgebra: linearAlgebraOf(),
    transports,
    transportError: error,
    interfaces: typeof interfaces === 'string' ? [] : interfaces,
    interfacesError: typeof interfaces === 'string' ? interfaces : undefined,
    rdmaPorts: rdma.ports,
    rdmaReasons: rdma.reasons,
    launcher: launcherOf(env, params),
    pmix: pmixOf(env, params),
    failures: failuresOf(params),
    params: paramsOf(params),
    paramWarnings: params.warnings,
  };
}

/** Who sets a parameter, and how its part of the list is called. */
const LEVELS: Readonly<Record<ParamLevel, string>> = {
  user: 'for users: what a program or a network may ask for',
  tuner: 'for tuning: sizes, thresholds and times, well as they are on most machines',
  developer: 'for work on multirail: what its tests and its authors turn',
};

const shown = (value: number | boolean | string): string => (value === '' ? '(empty)' : String(value));

function paramLines(param: ParamInfo): string[] {
  const range =
    param.min !== undefined && param.max !== undefined
      ? `, ${param.min} to ${param.max} ${param.unit}`
      : param.choices === undefined
        ? ''
        : `, one of ${param.choices.join(', ')}`;
  const unit = param.unit === undefined ? '' : ` ${param.unit}`;
  const set = param.origin === 'default' ? '' : ` [${param.origin}]`;
  return [`  ${param.name} = ${shown(param.value)}${unit}${set}`, `      ${param.text} Default ${shown(param.default)}${range}.`];
}

export function infoLines(info: Info, all: boolean): string[] {
  const lines = [`multirail ${info.version}`, `Machine      ${describeHost(info.machine)}`, `Native part  ${info.nativePart}`];
  lines.push(
    `Checksums    CRC32C by ${info.crc32c}`,
    `Reductions   ${info.reductions}`,
    `Algebra      ${info.linearAlgebra}`,
    `Launcher     ${info.launcher}`,
    `PMIx         ${info.pmix}`,
    `Failures     ${info.failures}`,
    '',
    'Transports',
  );
  for (const { name, description, isOn, reason, carriedBy } of info.transports) {
    lines.push(`  ${name.padEnd(6)} ${(isOn ? 'on' : 'off').padEnd(4)} ${description} (${reason})`);
    if (isOn && carriedBy !== '') lines.push(`              over ${carriedBy}`);
  }
  if (info.transportError !== undefined) lines.push(`  none can be used: ${info.transportError}`);
  lines.push('', 'Interfaces');
  if (info.interfaces.length === 0) lines.push(`  ${info.interfacesError ?? 'none is up'}`);
  for (const { name, addresses, use } of info.interfaces) lines.push(`  ${name.padEnd(12)} ${use}`, `      ${addresses.join('  ')}`);
  if (info.rdmaPorts.length > 0 || info.transports.some(({ name, isOn }) => name === 'verbs' && isOn)) {
    lines.push('', 'RDMA ports');
    for (const port of info.rdmaPorts) {
      lines.push(`  ${port.name.padEnd(12)} ${port.state.padEnd(7)} ${port.use}`);
      lines.push(`      ${port.bandwidthMBps} MB/s  LID ${port.lid}  GID ${port.gidIndex} ${port.gid}`);
    }
    for (const reason of info.rdmaReasons) lines.push(`  ${reason}`);
  }
  const changed = info.params.filter(({ origin }) => origin !== 'default');
  lines.push(
    '',
    all ? 'Parameters (--mca NAME VALUE, or the environment variable MULTIRAIL_MCA_NAME)' : 'Parameters that are not at their default',
  );
  if (all) {
    for (const [level, title] of Object.entries(LEVELS)) {
      lines.push('', `  -- ${title} --`);
      for (const param of info.params) if (param.level === level) lines.push(...paramLines(param));
    }
  } else for (const param of changed) lines.push(...paramLines(param));
  for (const text of info.paramWarnings) lines.push(`  warning: ${text}`);
  if (!all && changed.length === 0) lines.push('  none');
  if (!all) lines.push('', 'multirail info --all lists every parameter with its default, range and meaning.');
  return lines;
}

function ranksOf(text: string): number {
  const ranks = Number(text);
  if (Number.isSafeInteger(ranks) && ranks >= 1 && ranks <= 65_536) return ranks;
  throw new InvalidArgumentError('expected a number of ranks from 1 to 65536');
}

export function register(program: Command): void {
  program
    .command('info')
    .description('show what is there and what would be used: transports, interfaces, parameters, launcher')
    .option('--all', 'show every parameter, with default, unit, range and meaning', false)
    .option('--collectives', 'show which algorithm each collective would take on --ranks ranks, and what it costs', false)
    .option('-n, --ranks <number>', 'ranks for --collectives', ranksOf, 4)
    .option('--json', 'print JSON', false)
    .addOption(mcaOption())
    .addHelpText('after', `\nParameters are read from ${PARAM_ENV_PREFIX}NAME too.`)
    .action((options: { all: boolean; collectives: boolean; ranks: number; json: boolean; mca: Record<string, string> }) => {
      if (options.collectives) {
        const list = collectivesOf(new ParamTable(options.mca, process.env), options.ranks);
        const text = options.json ? JSON.stringify(list, undefined, 1) : collectiveLines(list, options.ranks).join('\n');
        process.stdout.write(`${text}\n`);
        return;
      }
      const info = collectInfo(program.version() ?? 'unknown', options.mca, process.env);
      const text = options.json ? JSON.stringify(info, undefined, 1) : infoLines(info, options.all).join('\n');
      process.stdout.write(`${text}\n`);
    });
}
