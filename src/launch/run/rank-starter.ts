// Starts the processes of a job, on this host or on others: where each goes, its environment, and how it gets the secret.

import { MultirailError } from '../../errors.ts';
import { PARAM_ENV_PREFIX, type ParamTable, takesOver } from '../../params.ts';
import { processName, shadowOf } from '../../util/replica-names.ts';
import { type MeetingRecord, RECORD_VERSION } from '../meeting/file.ts';
import { hostId } from '../meeting/identity.ts';
import { loopbackAddress, ownAddresses, urlOf } from '../oob/addresses.ts';
import { type HostSlots, isHere, localPlaces, placeReplicas, type RankPlace } from './hostfile.ts';
import { hintOf, LocalRank, type RankChild, type RankSpec, SECRET_FD, type StdioMode } from './rank-child.ts';
import { RemoteHost } from './remote-host.ts';
import type { RunOptions } from './run-options.ts';

type UsedOptions = Pick<
  RunOptions,
  | 'replicas'
  | 'replicaPlace'
  | 'rankCommand'
  | 'rankEnv'
  | 'cwd'
  | 'env'
  | 'exportEnv'
  | 'stdinTo'
  | 'stdin'
  | 'stdout'
  | 'stderr'
  | 'prefix'
  | 'agentProgram'
  | 'hosts'
  | 'places'
>;

export interface RankStarterOptions extends UsedOptions {
  /** Program and arguments, as they are run. */
  command: readonly string[];
  mca: Readonly<Record<string, string>>;
  params: ParamTable;
  /** Processes of the start. */
  size: number;
  jobId: string;
  secret: Uint8Array;
  /** Where the out-of-band channel listens. */
  urls(): readonly string[];
  say(text: string): void;
}

export class RankStarter {
  private readonly options: RankStarterOptions;
  private readonly slots: readonly HostSlots[];
  /** By process number. */
  private readonly places: RankPlace[];
  private readonly hosts = new Map<string, RemoteHost>();

  /** Throws ERR_ARG when there are more ranks than slots. */
  constructor(options: RankStarterOptions) {
    this.options = options;
    this.slots = options.hosts ?? [{ host: 'localhost', slots: options.size }];
    const { replicas = 1, replicaPlace, places } = options;
    this.places = places === undefined ? placeReplicas(this.slots, this.ranks, replicaPlace, replicas) : localPlaces(places);
  }

  /** Processes of the start that are on this host. */
  get sizeHere(): number {
    return this.places.filter(isHere).length;
  }

  /** No other host takes part. */
  get isAllHere(): boolean {
    return this.places.every(isHere);
  }

  /** All hosts at once: each takes a while to answer. */
  async openHosts(): Promise<void> {
    const { agentProgram, params, say } = this.options;
    const names = [...new Set(this.places.filter((place) => !isHere(place)).map(({ host }) => host))];
    if (names.length === 0) return;
    if (agentProgram === undefined) throw new MultirailError('ERR_ARG', 'ranks on other hosts need agentProgram');
    const agentCommand = params.string('plm_rsh_agent').split(/\s+/).filter(Boolean);
    const node = params.string('plm_rsh_node') || process.execPath;
    const open = async (host: string) => {
      this.hosts.set(host, await RemoteHost.open({ host, agentCommand, node, program: agentProgram, log: say }));
    };
    const failed = (await Promise.allSettled(names.map(open))).find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** By number: the host of each process. */
  get placed(): string[] {
    return this.places.map(({ host }) => host);
  }

  /** Hosts to which there is no connection any more. */
  get lostHosts(): string[] {
    return [...this.hosts].filter(([, { isGone }]) => isGone).map(([host]) => host);
  }

  /**
   * Finds a place for a process that is started instead of a dead one: on its host, or, where that is gone, on the one with most free slots.
   * Returns the name of another host, undefined for this one. ERR_LAUNCH: all hosts are gone.
   */
  placeAgain(number: number, dead: number, isLiving: (number: number) => boolean): string | undefined {
    const before = this.places[dead];
    const { lostHosts } = this;
    const isGone = (host: string): boolean => lostHosts.includes(host);
    const free = ({ host, slots }: HostSlots): number =>
      slots - this.places.filter((place, other) => place.host === host && other !== dead && isLiving(other)).length;
    let { host } = before;
    if (isGone(host)) {
      const left = this.slots.filter((one) => !isGone(one.host)).sort((a, b) => free(b) - free(a));
      if (left.length === 0) throw new MultirailError('ERR_LAUNCH', 'all hosts of the job are gone');
      host = left[0].host;
    }
    const here = this.places.filter((place) => place.host === host);
    this.places[number] = host === before.host ? before : { host, localRank: here.length, localSize: here.length + 1 };
    return this.hosts.has(host) ? host : undefined;
  }

  /** Starts a process in its place. `more`: further environment. ERR_LAUNCH: it cannot be started. */
  async start(rank: number, more: Readonly<Record<string, string>>): Promise<{ child: RankChild; isHere: boolean }> {
    const { rankCommand, command, cwd, secret, stderr, say } = this.options;
    const spec: RankSpec = {
      rank,
      command: [...(rankCommand?.(rank) ?? []), ...command],
      cwd,
      env: { ...this.environment(rank), ...more },
      secret,
      stdin: this.stdinMode(rank),
      stdout: this.stdoutMode(rank),
      stderr: this.outputMode(stderr),
    };
    const remote = this.hosts.get(this.places[rank].host);
    try {
      const child =
        remote === undefined
          ? await LocalRank.start(spec, (error) => say(`rank ${rank}: ${error.message}`))
          : await this.startThere(remote, spec);
      return { child, isHere: remote === undefined };
    } catch (error) {
      const text = `cannot start rank ${rank}: ${(error as Error).message}${hintOf(error)}`;
      throw new MultirailError('ERR_LAUNCH', text, { rank, cause: error });
    }
  }

  close(): void {
    for (const host of this.hosts.values()) host.close();
  }

  /** Where processes that are started by hand find this job. */
  meetingRecord(): MeetingRecord {
    const { jobId, secret, urls } = this.options;
    const known = this.urlsFor('');
    const reached = this.isEverywhere ? [...known, ...ownAddresses().map((address) => urlOf(address, this.port))] : [...urls()];
    return { version: RECORD_VERSION, jobId, urls: reached, hostId: hostId(), secret: Buffer.from(secret).toString('base64') };
  }

  /** There the environment is that of the host; what the job needs of this one is named. */
  private startThere(remote: RemoteHost, spec: RankSpec): Promise<RankChild> {
    const { exportEnv, params } = this.options;
    const env: Record<string, string | undefined> = {};
    for (const [name, value] of Object.entries(spec.env)) if (name.startsWith('MULTIRAIL_')) env[name] = value;
    for (const [name, value] of Object.entries(exportEnv ?? {})) env[name] = value ?? spec.env[name];
    const node = params.string('plm_rsh_node');
    const command = node === '' ? spec.command : spec.command.map((word) => (word === process.execPath ? node : word));
    // Its input, if it has any, is copied: there is no other way to another host.
    const stdin = spec.stdin === 'inherit' ? 'pipe' : spec.stdin;
    return remote.start({ ...spec, command, env, stdin });
  }

  private environment(rank: number): Record<string, string | undefined> {
    const { mca, size, jobId, rankEnv } = this.options;
    const env: Record<string, string | undefined> = { ...(this.options.env ?? process.env) };
    const { host, localRank, localSize } = this.places[rank];
    for (const [name, value] of Object.entries(mca)) env[PARAM_ENV_PREFIX + name] = value;
    env.MULTIRAIL_RANK = String(rank);
    env.MULTIRAIL_SIZE = String(size);
    env.MULTIRAIL_LOCAL_RANK = String(localRank);
    env.MULTIRAIL_LOCAL_SIZE = String(localSize);
    env.MULTIRAIL_JOB_ID = jobId;
    env.MULTIRAIL_OOB = this.urlsFor(host).join(',');
    env.MULTIRAIL_SECRET_FD = String(SECRET_FD);
    env.MULTIRAIL_LAUNCHER_PID = String(process.pid);
    return { ...env, ...rankEnv?.(rank) };
  }

  private get isEverywhere(): boolean {
    return /^ws:..(\[::\]|0\.0\.0\.0):/.test(this.options.urls()[0]);
  }

  private get port(): number {
    return Number(new URL(this.options.urls()[0]).port);
  }

  private urlsFor(host: string): string[] {
    if (!this.isEverywhere) return [...this.options.urls()];
    const loopback = urlOf(loopbackAddress(), this.port);
    return this.hosts.has(host) ? ownAddresses().map((address) => urlOf(address, this.port)) : [loopback];
  }

  /** Ranks of the program: fewer than processes where each rank is several. */
  private get ranks(): number {
    return this.options.size / (this.options.replicas ?? 1);
  }

  /** The rank that this process is a further replica of, which does the same as the first one; undefined: it is the first one. */
  shadowOf(number: number): number | undefined {
    return shadowOf(number, this.options.size, this.options.replicas ?? 1);
  }

  /** What the process is called in sentences. */
  nameOf(number: number): string {
    return processName(number, this.options.size, this.options.replicas ?? 1);
  }

  /** What a process is called in front of its lines. */
  labelOf(number: number): string {
    const shadowOf = this.shadowOf(number);
    if (shadowOf === undefined) return String(number);
    return number < 2 * this.ranks ? `${shadowOf} shadow` : `${shadowOf} shadow 2`;
  }

  private stdinMode(rank: number): StdioMode {
    const target = this.options.stdinTo ?? 0;
    // What is read of an input is not there a second time.
    const replicas = this.options.replicas ?? 1;
    if (rank >= this.options.size || target === 'none' || (target !== 'all' && target !== rank % this.ranks)) return 'ignore';
    // One reader may have our input itself, a terminal included; several need copies.
    return target === 'all' || this.options.stdin !== undefined || replicas > 1 ? 'pipe' : 'inherit';
  }

  private stdoutMode(rank: number): StdioMode {
    // Of two replicas either may have the place of the lead at the end.
    if (takesOver(this.options.params)) return 'pipe';
    return this.shadowOf(rank) !== undefined ? 'ignore' : this.outputMode(this.options.stdout);
  }

  private outputMode(sink: RunOptions['stdout']): StdioMode {
    return this.options.prefix === false && sink === undefined ? 'inherit' : 'pipe';
  }
}
