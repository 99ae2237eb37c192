// How the ranks of a job under another starter find each other, and get a secret: rank 0 has the out-of-band channel served (main.ts) and
// says where; the others look there until they find it or the time to join is over.
//
//   meeting by   where rank 0 says it                    where the secret comes from
//   pmi, pmix    the key-value space of PMI-1, PMIx      MULTIRAIL_SECRET_FILE, otherwise random, in the key-value space
//   file         a file that all ranks can reach         MULTIRAIL_SECRET_FILE, otherwise random, in that file (mode 600)
//   host         a file in a private folder of this host the same
//   address      nowhere: every rank knows host and port MULTIRAIL_SECRET_FILE; on loopback also random, as `host`
import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { MultirailError } from '../../errors.ts';
import { type ParamTable, survivesFailures } from '../../params.ts';
import { addressesOf, isLoopback, loopbackAddress, ownAddresses, urlOf } from '../oob/addresses.ts';
import { OobClient } from '../oob/client.ts';
import type { JoinKind } from '../oob/messages.ts';
import type { Env } from '../starters/env.ts';
import { openPmiFd, PmiClient } from '../starters/pmi-client.ts';
import type { KnownPlace, Meeting } from '../starters/starter.ts';
import {
  decodeRecord,
  encodeRecord,
  fileForJob,
  type MeetingRecord,
  RECORD_VERSION,
  readRecord,
  removeRecord,
  writeRecord,
} from './file.ts';
import { hostId } from './identity.ts';
import { SECRET_BYTES, secretOfFile } from './secret.ts';
import { type Server, startServer } from './start.ts';

/** A record that is read may be that of an earlier job: nobody waits long for the address in it. */
const RECORD_TRY_MS = 3000;
const LOOK_AGAIN_MIN_MS = 20;
const LOOK_AGAIN_MAX_MS = 500;
const RECORD_KEY = 'multirail-meeting';

/** Everything that listens: both families, or IPv4 alone where the kernel has no IPv6. */
const EVERYWHERE = (port: number): string[][] => [[`[::]:${port}`], [`0.0.0.0:${port}`]];
const LOOPBACK = (port: number): string[][] => [[isIPv6(loopbackAddress()) ? `[::1]:${port}` : `127.0.0.1:${port}`]];

export const SECRET_HINT =
  'this job has no secret, and goes beyond loopback: put the same 32 random bytes into a file on every host (head -c 32 /dev/urandom), readable by ' +
  'its owner only, and set MULTIRAIL_SECRET_FILE to its path; or set MULTIRAIL_RENDEZVOUS to the path of a file on a file system that all hosts share';

export interface Met {
  oob: OobClient | undefined;
  secret: Uint8Array | undefined;
  jobId: string;
  /** After the job: tells the starter that this process may exit. */
  leave?: () => Promise<void>;
  /** Ends the job by the starter's own means. */
  abort?: (code: number, reason: string) => Promise<void>;
  /** Rank 0: the process of that rank is gone, as the starter says; its server tells the others. */
  tellGone?: (rank: number) => void;
}

/** Texts by key that the starter keeps for the job. */
export interface KeyValueSpace {
  put(key: string, text: string): Promise<void>;
  /** Collective; what was put before can be had afterwards. */
  barrier(): Promise<void>;
  get(key: string): Promise<string>;
}

export interface MeetOptions {
  place: KnownPlace;
  incarnation: number;
  env: Env;
  params: ParamTable;
  /** Of PMIx, where that is how the ranks meet. */
  space?: KeyValueSpace;
  /** This process may come after the start (oob.proto, Hello.join); then it serves nothing. */
  join?: JoinKind;
  log?: (text: string) => void;
}

/** Meets the other ranks. Throws ERR_INIT or ERR_OOB, naming what was tried, when they are not found in time. */
export async function meet(options: MeetOptions): Promise<Met> {
  const { place, env } = options;
  const { meeting } = place;
  const meeter = new Meeter(options);
  switch (meeting.by) {
    case 'pmi':
      return await meeter.byPmi(meeting.fd);
    case 'pmix':
      if (options.space === undefined) throw new MultirailError('ERR_INTERNAL', 'a job of PMIx without its key-value space');
      return await meeter.bySpace(options.space);
    case 'file':
      return await meeter.byFile(meeting.path, EVERYWHERE(0));
    case 'host':
      return await meeter.byFile(fileForJob(place.jobKey), LOOPBACK(0));
    case 'address':
      return await meeter.byAddress(meeting);
    case 'nobody':
      return { oob: undefined, secret: secretOfFile(env), jobId: randomBytes(8).toString('hex') };
    case 'launcher':
      throw new MultirailError('ERR_INTERNAL', 'a job that multirail run started is joined through its launcher');
  }
}

/** PMI-1 has no second beginning: a descriptor is joined once in a process. */
const descriptorsJoined = new Set<number>();

class Meeter {
  private readonly place: KnownPlace;
  private readonly options: MeetOptions;
  private readonly hostId = hostId();
  private readonly joinTimeoutMs: number;
  private readonly deadlineMs: number;
  private tellGone: ((rank: number) => void) | undefined;
  /** Rank 0 serves, unless somebody else does. */
  private readonly serves: boolean;

  constructor(options: MeetOptions) {
    this.options = options;
    this.place = options.place;
    this.joinTimeoutMs = options.params.int('oob_join_timeout_ms');
    this.deadlineMs = performance.now() + this.joinTimeoutMs;
    this.serves = this.place.rank === 0 && options.join !== 'standby' && !options.params.bool('oob_served');
  }

  async byPmi(fd: number): Promise<Met> {
    const { rank, size } = this.place;
    if (descriptorsJoined.has(fd)) {
      throw new MultirailError('ERR_INIT', 'init() was called before in this process: under PMI-1 a process can join its job once', {
        rank,
      });
    }
    descriptorsJoined.add(fd);
    const pmi = new PmiClient(openPmiFd(fd));
    await pmi.init();
    const ways = { leave: () => pmi.finalize(), abort: (code: number, reason: string) => pmi.abort(code, reason) };
    if (size === 1) return { oob: undefined, secret: undefined, jobId: randomBytes(8).toString('hex'), ...ways };
    return { ...(await this.bySpace(pmi)), ...ways };
  }

  async bySpace(space: KeyValueSpace): Promise<Met> {
    const { rank, size, localSize } = this.place;
    if (rank !== 0) {
      await space.barrier();
      return await this.join(decodeRecord(await space.get(RECORD_KEY)));
    }
    let record: MeetingRecord;
    try {
      record = await this.serve(localSize === size ? LOOPBACK(0) : EVERYWHERE(0), this.ownSecret());
    } catch (error) {
      // The others are on their way to the barrier, and learn there why there is nothing.
      await space.put(RECORD_KEY, encodeRecord(this.refusal(error as Error)));
      await space.barrier();
      throw error;
    }
    await space.put(RECORD_KEY, encodeRecord(record));
    await space.barrier();
    return await this.join(record);
  }

  async byFile(path: string, listen: string[][]): Promise<Met> {
    if (this.serves) {
      const record = await this.serve(listen, this.ownSecret());
      writeRecord(path, record);
      process.once('exit', () => removeRecord(path));
      return { ...(await this.join(record)), leave: async () => removeRecord(path) };
    }
    let last = `there is no ${path}`;
    for (let pauseMs = LOOK_AGAIN_MIN_MS; performance.now() < this.deadlineMs; pauseMs = Math.min(LOOK_AGAIN_MAX_MS, pauseMs * 2)) {
      const record = readRecord(path);
      if (record !== undefined) {
        try {
          return await this.join(record, Math.min(RECORD_TRY_MS, Math.max(100, this.deadlineMs - performance.now())));
        } catch (error) {
          last = (error as Error).message;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    throw this.inVain(`rank 0 says where in ${path}`, last);
  }

  async byAddress({ host, port, rule }: Meeting & { by: 'address' }): Promise<Met> {
    const { rank, jobKey } = this.place;
    const given = secretOfFile(this.options.env);
    if (given === undefined) {
      // Between processes of one host a file of the user's own serves as well as a secret that was dealt out before.
      const addresses = await this.resolve(host, rule);
      if (addresses.every(isLoopback) && !this.options.params.bool('oob_served'))
        return await this.byFile(fileForJob(`${jobKey}-${host}-${port}`), LOOPBACK(port));
      throw new MultirailError('ERR_INIT', `the job meets at ${host}:${port} (${rule}): ${SECRET_HINT}`, { rank });
    }
    if (this.serves) {
      const record = await this.serve(EVERYWHERE(port), given, `${host}:${port} (${rule})`);
      return await this.join(record);
    }
    try {
      const { oob, jobId } = await this.connect([urlOf(host, port)], given, undefined, this.joinTimeoutMs);
      return { oob, jobId, secret: given };
    } catch (error) {
      const whom = this.options.params.bool('oob_served') ? 'the rendezvous' : 'rank 0';
      throw this.inVain(`${whom} was looked for at ${host}:${port} (${rule})`, (error as Error).message);
    }
  }

  // --- parts

  private ownSecret(): Uint8Array {
    return secretOfFile(this.options.env) ?? randomBytes(SECRET_BYTES);
  }

  /** Names of pods and of nodes that boot come into being with time. */
  private async resolve(host: string, rule: string): Promise<string[]> {
    for (;;) {
      const addresses = await addressesOf(host);
      if (addresses.length > 0) return addresses;
      if (performance.now() >= this.deadlineMs) throw this.inVain(`the job meets at ${host} (${rule})`, `the name ${host} has no address`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MAX_MS));
    }
  }

  private inVain(where: string, last: string): MultirailError {
    const { rank, size } = this.place;
    const who = this.options.join === 'standby' ? 'a process that joins' : `rank ${rank} of ${size}`;
    const text = `${who} did not find its job within ${this.joinTimeoutMs} ms (oob_join_timeout_ms): ${where}; the last try: ${last}`;
    return new MultirailError('ERR_INIT', text, { rank });
  }

  private refusal(error: Error): MeetingRecord {
    return { version: RECORD_VERSION, jobId: '', urls: [], hostId: '', secret: '', error: error.message };
  }

  /** Rank 0: has the channel served. Loopback is the first address for ranks of this host, and none for others. */
  private async serve(listen: string[][], secret: Uint8Array, at?: string): Promise<MeetingRecord> {
    const { params } = this.options;
    const jobId = randomBytes(8).toString('hex');
    let server: Server;
    try {
      server = await startServer({
        jobId,
        size: this.place.size,
        spares: Math.min(params.int('ft_spares'), this.place.size - 1),
        takesJoins: survivesFailures(params),
        secret: Buffer.from(secret).toString('base64'),
        listen,
        reconnectTimeoutMs: params.int('oob_reconnect_timeout_ms'),
        joinTimeoutMs: this.joinTimeoutMs,
        exitGraceMs: params.int('oob_exit_grace_ms'),
        waitsJsonFile: params.string('mpi_waits_json_file'),
        replicas: params.int('ft_replicas'),
      });
    } catch (error) {
      if (at === undefined || !(error as Error).message.includes('EADDRINUSE')) throw error;
      throw new MultirailError(
        'ERR_INIT',
        `rank 0 cannot listen at ${at}, because another program does; name a free port in MULTIRAIL_RENDEZVOUS=host:port on all ranks`,
        { rank: 0, cause: error },
      );
    }
    const { urls } = server;
    this.tellGone = server.tellGone;
    const port = Number(new URL(urls[0]).port);
    const isEverywhere = !isLoopback(new URL(urls[0]).hostname.replace(/^\[|\]$/g, ''));
    const all = [urlOf(loopbackAddress(), port), ...(isEverywhere ? ownAddresses().map((address) => urlOf(address, port)) : [])];
    return { version: RECORD_VERSION, jobId, urls: all, hostId: this.hostId, secret: Buffer.from(secret).toString('base64') };
  }

  private async join(record: MeetingRecord, timeoutMs = this.joinTimeoutMs): Promise<Met> {
    const secret = Buffer.from(record.secret, 'base64');
    const isSameHost = record.hostId === this.hostId;
    const urls = record.urls.filter((url) => isSameHost || !isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, '')));
    if (urls.length === 0) {
      throw new MultirailError(
        'ERR_INIT',
        `rank 0 listens on loopback, and rank ${this.place.rank} is on another host or in another network namespace: set MULTIRAIL_RENDEZVOUS to an address of the host of rank 0, or to the path of a file that all ranks can reach`,
        { rank: this.place.rank },
      );
    }
    const { oob, jobId } = await this.connect(urls, secret, record.jobId, timeoutMs);
    const { tellGone } = this;
    return { oob, jobId, secret: Uint8Array.from(secret), ...(tellGone === undefined ? {} : { tellGone }) };
  }

  private async connect(urls: string[], secret: Uint8Array, jobId: string | undefined, joinTimeoutMs: number) {
    const { rank, size } = this.place;
    const { params, incarnation, log, join } = this.options;
    const oob = new OobClient({
      urls,
      secret,
      jobId,
      rank,
      size,
      incarnation,
      hostId: this.hostId,
      reconnectTimeoutMs: params.int('oob_reconnect_timeout_ms'),
      joinTimeoutMs,
      lifeline: true,
      ...(join === undefined ? {} : { join }),
      ...(log === undefined ? {} : { log }),
    });
    await oob.hello();
    return { oob, jobId: oob.jobId as string };
  }
}
