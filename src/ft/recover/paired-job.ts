// The job of a program each of whose ranks is two or three processes: a save lies in a store, from which the job goes on when it is started again because
// the replicas differed. Where saves are validated the images are compared before one of them is stored, so a save has no fault in it that another
// replica has not, too; of three replicas one that differs goes on with the state of the others. Else each of two stores its own, and any save may
// hold the fault.
import { MultirailError } from '../../errors.ts';
import type { MessageBuffer } from '../../mpi/buffers.ts';
import type { Communicator } from '../../mpi/communicator.ts';
import type { PairedSeries } from '../../mpi/replica/paired-series.ts';
import { crc32c } from '../../native/crc32c.ts';
import type { SaveName } from '../checkpoint/slots.ts';
import { decodeImage } from '../image/decode.ts';
import { IMAGE_VERSION } from '../image/format.ts';
import type { Manifest, ManifestFile } from '../image/manifest.ts';
import { imageKey } from '../store/saves.ts';
import { type SaveTrace, saveChannel } from './channels.ts';
import {
  COME_TO,
  exchangeRows,
  exchangeRowsSync,
  mustWaitAgain,
  type Row,
  requireAlike,
  requireQuiet,
  requireRegistered,
} from './exchange.ts';
import { FtJob, type JobParts, NAMED_MAX } from './job.ts';
import type { Ledger } from './ledger.ts';
import { type StoreLevel, storeOf } from './options.ts';
import type { Periods } from './periods.ts';
import type { RecoveryTotal } from './recovery.ts';
import { writeCommit, writeImage } from './store-levels.ts';

/** How a job whose replicas have died comes to all of them again. */
export interface Renewal {
  /** Also where one has died with its host: there is room for it elsewhere. */
  readonly isForHosts: boolean;
  /** Ends the job, for whoever has started it to start it again. */
  end(text: string): Promise<never>;
}

/** What a job of replicas saves by. */
export interface PairedHost {
  /** Messages of saves. */
  readonly own: Communicator;
  readonly series: PairedSeries;
  readonly periods: Periods;
  readonly ledger: Ledger;
  readonly jobName: string;
  readonly jobId: Uint8Array;
  readonly quietMs: number;
  /** Name of the first save that is made. */
  readonly next: SaveName;
  /** How the job is started again with all of its replicas; undefined: it goes on without those that have died. */
  readonly renewal: Renewal | undefined;
  warn(text: string): void;
}

/** A save that is being made. */
interface Making {
  readonly name: SaveName;
  readonly level: number;
  readonly image: Uint8Array;
  readonly crc: number;
  readonly beganMs: number;
}

export class PairedJob extends FtJob {
  readonly total: RecoveryTotal = { failures: 0, inPlace: 0, lostSteps: 0 };
  readonly replaying = false;
  private readonly host: PairedHost;
  private steppedMs = performance.now();
  private nextName: SaveName;
  private isChecked: boolean;
  private memory = new Uint8Array(0);

  /** @internal */
  constructor(parts: JobParts, host: PairedHost) {
    super(parts, parts.comm);
    this.host = host;
    this.nextName = host.next;
    this.isChecked = parts.recovery === undefined;
  }

  get everySteps(): readonly number[] {
    return [...this.host.periods.current];
  }

  override get team(): Communicator {
    throw new MultirailError('ERR_SUPPORT', "job.team is for recovery 'asynchronous', and replicas do not go together with it");
  }

  override async validate(buffer: MessageBuffer): Promise<void> {
    await this.host.series.replica.validate(buffer);
  }

  // ---------------------------------------------------------------- saves

  async next(): Promise<void> {
    const level = this.endStep();
    if (!this.isChecked) this.checked(await exchangeRows(this.host.own, this.row(COME_TO.CHECK)));
    if (level !== undefined) await this.save(level);
    this.steppedMs = performance.now();
  }

  nextSync(): void {
    const level = this.endStep();
    if (!this.isChecked) this.checked(exchangeRowsSync(this.host.own, this.row(COME_TO.CHECK)));
    if (level !== undefined) this.saveSync(level);
    this.steppedMs = performance.now();
  }

  async checkpoint(options: { level?: 'memory' | 'disk' | 'store' } = {}): Promise<number> {
    const level = this.levelOf(options.level ?? 'memory');
    if (!this.isChecked) this.checked(await exchangeRows(this.host.own, this.row(COME_TO.CHECK)));
    return await this.save(level);
  }

  checkpointSync(options: { level?: 'memory' | 'disk' | 'store' } = {}): number {
    const level = this.levelOf(options.level ?? 'memory');
    if (!this.isChecked) this.checked(exchangeRowsSync(this.host.own, this.row(COME_TO.CHECK)));
    return this.saveSync(level);
  }

  /** @internal All have come to the end of the program. */
  async end(): Promise<void> {
    const { own } = this.host;
    requireAlike(await exchangeRows(own, this.row(COME_TO.END)), own.rank);
  }

  /** The level of the save that is due. */
  private endStep(): number | undefined {
    const { periods, ledger } = this.host;
    this.stepCount++;
    const ms = performance.now() - this.steppedMs;
    periods.addStep(ms / 1000);
    ledger.addStep(ms);
    return periods.dueAt(this.stepCount);
  }

  private row(kind: number, level = 0, isLoud = false, measured: readonly number[] = []): Row {
    const isWrong = kind !== COME_TO.END && !this.isChecked && this.registry.missing !== undefined;
    return { kind, step: this.stepCount, level, isLoud, isWrong, isDue: false, isTold: false, measured };
  }

  private checked(rows: readonly Row[]): void {
    requireRegistered(rows, this.host.own.rank, this.registry.missing);
    this.isChecked = true;
  }

  private agreed(rows: readonly Row[], messages: readonly string[]): void {
    requireQuiet(rows, this.host.own.rank, this.host.quietMs, () => messages);
  }

  private async save(level: number): Promise<number> {
    const { own, series, periods, quietMs } = this.host;
    const { replica } = series;
    const beganMs = performance.now();
    // What the lead has measured counts for both.
    const measured = await replica.once(() => periods.measured);
    let loud: readonly string[] = [];
    const come = async (): Promise<Row[]> => {
      loud = await series.whenQuiet(quietMs, NAMED_MAX);
      return await exchangeRows(own, this.row(COME_TO.SAVE, level, loud.length > 0, measured));
    };
    let rows = await come();
    if (mustWaitAgain(rows, own.rank)) rows = await come();
    this.agreed(rows, loud);
    // All that was sent before is here now, and nobody sends more before everybody has looked.
    const { left, nowMs } = await replica.once(() => ({ left: series.unreceived(NAMED_MAX), nowMs: Date.now() }));
    this.agreed(await exchangeRows(own, this.row(COME_TO.SAVE, level, left.length > 0)), left);
    let making = this.capture(level, nowMs, beganMs);
    if (this.settings.validate && (await replica.settle(making.image))) making = this.takeBack(making);
    const target = storeOf(this.settings, level);
    if (target === undefined) return this.made(making, rows);
    const isCommitted = await this.store(target, making);
    const k = this.made(making, rows);
    const { renewal } = this.host;
    if (renewal !== undefined) await this.renew(k, isCommitted, renewal);
    return k;
  }

  private saveSync(level: number): number {
    this.mustBeMemory(level);
    const { own, series, periods, quietMs } = this.host;
    const { replica } = series;
    const beganMs = performance.now();
    const measured = replica.onceSync(() => periods.measured);
    let loud: readonly string[] = [];
    const come = (): Row[] => {
      loud = series.waitQuiet(quietMs, NAMED_MAX);
      return exchangeRowsSync(own, this.row(COME_TO.SAVE, level, loud.length > 0, measured));
    };
    let rows = come();
    if (mustWaitAgain(rows, own.rank)) rows = come();
    this.agreed(rows, loud);
    const { left, nowMs } = replica.onceSync(() => ({ left: series.unreceived(NAMED_MAX), nowMs: Date.now() }));
    this.agreed(exchangeRowsSync(own, this.row(COME_TO.SAVE, level, left.length > 0)), left);
    let making = this.capture(level, nowMs, beganMs);
    if (this.settings.validate && replica.settleSync(making.image)) making = this.takeBack(making);
    return this.made(making, rows);
  }

  private capture(level: number, nowMs: number, beganMs: number): Making {
    const { own, jobId } = this.host;
    const name = this.nextName;
    const header = {
      save: name.k,
      epoch: name.epoch,
      rank: own.rank,
      size: own.size,
      step: this.stepCount,
      wallTimeMs: nowMs,
      jobId,
    };
    const { memory, crc } = this.registry.capture(header, (bytes) => {
      if (this.memory.length !== bytes) this.memory = new Uint8Array(bytes);
      return this.memory;
    });
    return { name, level, image: memory, crc, beganMs };
  }

  /** The image is that of the two other replicas: so is the state from now on. */
  private takeBack(making: Making): Making {
    const { image } = making;
    const { header, sections } = decodeImage(image, crc32c);
    this.stepCount = header.step;
    this.registry.takeBack(sections);
    this.host.warn(`process ${this.host.series.process} goes on with the state of the two other replicas, in save ${making.name.k}`);
    return { ...making, crc: crc32c(image) };
  }

  private made({ name, level, image, beganMs }: Making, rows: readonly Row[]): number {
    const { periods, ledger, own } = this.host;
    const durationMs = performance.now() - beganMs;
    periods.saved(
      level,
      this.stepCount,
      rows.map(({ measured }) => measured),
    );
    periods.addSave(level, durationMs / 1000, durationMs / 1000);
    ledger.committed(image.length, durationMs, ledger.copied());
    this.nextName = { ...name, k: name.k + 1 };
    if (saveChannel.hasSubscribers) {
      const { k, epoch } = name;
      const trace = { rank: own.rank, save: k, epoch, step: this.stepCount, level: this.settings.names[level], bytes: image.length };
      saveChannel.publish({ ...trace, durationMs } satisfies SaveTrace);
    }
    return name.k;
  }

  /** What has died cannot come back into a program that runs. It can when the job is started again, and no step is lost right behind a save. */
  private async renew(save: number, isCommitted: boolean, { isForHosts, end }: Renewal): Promise<void> {
    const { own, series } = this.host;
    const lacks = await series.replica.once(() => {
      const { replicas, withHosts } = series.lacking;
      return replicas - (isForHosts ? 0 : withHosts) > 0;
    });
    const told = await own.allgatherObject({ lacks, isCommitted });
    const lacking = told.flatMap((one, rank) => (one.lacks ? [rank] : []));
    if (lacking.length === 0 || !told.every((one) => one.isCommitted)) return;
    const who = lacking.length === 1 ? `rank ${lacking[0]} lacks a replica` : `ranks ${lacking.join(', ')} lack replicas`;
    await end(`${who}, and save ${save} is whole: the job is to be started again from there, with all of them`);
  }

  /**
   * Each rank has its image there, and then the manifest makes the save exist. What cannot be written is a warning: the job goes on. Returns whether it
   * exists, as far as this rank knows.
   */
  private async store(target: StoreLevel, making: Making): Promise<boolean> {
    const { own, series, warn } = this.host;
    const files = this.settings.validate ? await this.storeOne(target, making) : await this.storeBoth(target, making);
    const width = 3 * files.length;
    const all = new Float64Array(width * own.size);
    await own.allgather(Float64Array.from(files.flatMap(({ rank, bytes, crc }) => [rank, bytes, crc])), all);
    const told = Array.from(
      { length: all.length / 3 },
      (_, i): ManifestFile => ({ rank: all[3 * i], bytes: all[3 * i + 1], crc: all[3 * i + 2] }),
    );
    const isWhole = told.every(({ bytes }) => bytes >= 0);
    const isWriter =
      target.name === 'disk'
        ? Array.from({ length: own.rank }, (_, rank) => series.hostOf(rank)).every((host) => host !== series.hostOf(own.rank))
        : own.rank === 0;
    let why = '';
    if (isWhole && isWriter) {
      why = await series.replica.once(() => this.commit(target, making.name, told));
      if (why !== '' && series.replica.isLead) warn(`save ${making.name.k} is not committed at level ${target.name}: ${why}`);
    }
    // Behind it the save can be gone back to.
    await own.barrier();
    return isWhole && why === '';
  }

  private commit(target: StoreLevel, { epoch, k }: SaveName, files: readonly ManifestFile[]): Promise<string> {
    const manifest: Manifest = {
      k,
      epoch,
      size: files.length,
      step: this.stepCount,
      files: [...files].sort((a, b) => a.rank - b.rank),
      multirail: `image version ${IMAGE_VERSION}`,
      node: process.version,
    };
    return failureOf(() => writeCommit(target, this.host.jobName, manifest));
  }

  /** Both images are the same: the lead's is stored. A length of -1: it is not there. */
  private async storeOne(target: StoreLevel, { name, image, crc }: Making): Promise<ManifestFile[]> {
    const { own, series, jobName } = this.host;
    const why = await series.replica.once(() => failureOf(() => writeImage(target, jobName, name, own.rank, image)));
    if (why === '') return [{ rank: own.rank, bytes: image.length, crc }];
    if (series.replica.isLead) this.host.warn(`save ${name.k} is not at level ${target.name}: ${why}`);
    return [{ rank: own.rank, bytes: -1, crc: 0 }];
  }

  /** Each stores its own, by the number of its process; the lead looks at both. One whose other replica has died stores its own for both. */
  private async storeBoth(target: StoreLevel, { name, image }: Making): Promise<ManifestFile[]> {
    const { own, series, jobName } = this.host;
    const numbers = series.replica.isAlone ? [own.rank, own.rank + own.size] : [series.process];
    for (const number of numbers) {
      const why = await failureOf(() => writeImage(target, jobName, name, number, image));
      if (why !== '') this.host.warn(`save ${name.k} is not at level ${target.name}: ${why}`);
    }
    // The lead cannot see how it has gone at the shadow but by the bytes that lie there, once the shadow is through.
    await series.replica.validate(new Uint8Array(0));
    const look = async (rank: number): Promise<ManifestFile> => {
      try {
        const bytes = await target.store.get(imageKey(jobName, name, rank));
        return { rank, bytes: bytes.length, crc: crc32c(bytes) };
      } catch {
        return { rank, bytes: -1, crc: 0 };
      }
    };
    return await series.replica.once(async () => [await look(own.rank), await look(own.rank + own.size)]);
  }
}

/** Why it has failed; empty: it has not. */
async function failureOf(act: () => Promise<void>): Promise<string> {
  try {
    await act();
    return '';
  } catch (error) {
    return (error as Error).message || 'no reason is known';
  }
}
