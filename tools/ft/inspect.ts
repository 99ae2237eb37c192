// `multirail ft inspect FILE|FOLDER`: what an image holds, which saves a folder has, whether they are whole, and what could be restored.
import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { MultirailError } from '../../src/errors.ts';
import { checkSection, checkTrailer, decodeHead, headBytes, type ImageHead } from '../../src/ft/image/decode.ts';
import { aligned, HEADER_BYTES, TRAILER_BYTES } from '../../src/ft/image/format.ts';
import { decodeManifest, type Manifest } from '../../src/ft/image/manifest.ts';
import { fileStore } from '../../src/ft/store/file-store.ts';
import { commitKey, imageKey, storedSaves } from '../../src/ft/store/saves.ts';
import { crc32c } from '../../src/native/crc32c.ts';
import { columns, type Finding } from './papers.ts';
import { sizeText } from './plan-report.ts';

const PIECE_BYTES = 8 * 1024 * 1024;

/** A sound image. */
interface CheckedImage extends ImageHead {
  bytes: number;
  /** CRC32C of the whole file. */
  crc: number;
}

async function readExactly(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, at + done);
    if (bytesRead === 0) throw new MultirailError('ERR_CORRUPT', `the file ended at byte ${at + done}: somebody is writing to it`);
    done += bytesRead;
  }
}

/** Reads an image piece by piece, however long it is. Throws ERR_CORRUPT where it is damaged. */
export async function checkImageFile(path: string): Promise<CheckedImage> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const first = new Uint8Array(Math.min(HEADER_BYTES, size));
    await readExactly(file, first, 0);
    const headPart = new Uint8Array(headBytes(first, size, crc32c));
    await readExactly(file, headPart, 0);
    const head = decodeHead(headPart, size, crc32c);
    let crc = crc32c(headPart);
    const piece = new Uint8Array(PIECE_BYTES);
    for (const section of head.sections) {
      let own = 0;
      for (let at = 0; at < section.bytes; at += PIECE_BYTES) {
        const part = piece.subarray(0, Math.min(PIECE_BYTES, section.bytes - at));
        await readExactly(file, part, section.offset + at);
        own = crc32c(part, own);
        crc = crc32c(part, crc);
      }
      const padding = piece.subarray(0, aligned(section.bytes) - section.bytes);
      await readExactly(file, padding, section.offset + section.bytes);
      crc = crc32c(padding, crc);
      checkSection(section, own, padding);
    }
    const trailer = new Uint8Array(TRAILER_BYTES);
    await readExactly(file, trailer, size - TRAILER_BYTES);
    checkTrailer(trailer, head, size, crc32c);
    return { ...head, bytes: size, crc: crc32c(trailer, crc) };
  } finally {
    await file.close();
  }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const hex32 = (value: number): string => value.toString(16).padStart(8, '0');

function imageLines(path: string, { header, sections, bytes, crc }: CheckedImage): string[] {
  const { save, epoch, rank, size, step, wallTimeMs, jobId } = header;
  return [
    `${path}: image of rank ${rank} of ${size}, save ${save} of recovery epoch ${epoch}, at step ${step}`,
    `  made ${new Date(wallTimeMs).toISOString()}, job ${hex(jobId)}, ${sizeText(bytes)}, crc32c ${hex32(crc)}`,
    ...columns([
      ['  section', 'kind', 'class', 'offset', 'bytes', 'crc32c'],
      ...sections.map(({ name, kind, kindNumber, element, offset, bytes: length, crc: own }) => [
        `  ${name}`,
        kind ?? `unknown (${kindNumber})`,
        element === '' ? '-' : element,
        String(offset),
        String(length),
        hex32(own),
      ]),
    ]),
    '  all lengths and checksums are right',
  ];
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function inspectFile(path: string): Promise<Finding> {
  if (basename(path) === 'COMMIT.json') {
    const manifest = decodeManifest(await readFile(path));
    return { lines: [manifestLine(path, manifest)], data: manifest, problems: [] };
  }
  const image = await checkImageFile(path);
  const data = { ...image, header: { ...image.header, jobId: hex(image.header.jobId) } };
  return { lines: imageLines(path, image), data, problems: [] };
}

function manifestLine(what: string, { k, epoch, size, step, files, multirail, node }: Manifest): string {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return `${what}: save ${k} of recovery epoch ${epoch}, at step ${step}, ${size} images, ${sizeText(bytes)}; written by multirail ${multirail} on Node ${node}`;
}

interface SaveReport {
  job: string;
  epoch: number;
  k: number;
  isCommitted: boolean;
  step: number | undefined;
  images: number;
  bytes: number;
  problems: string[];
}

/** The folder of the store, and the job and save that the path points at, where it points below the store. */
async function storeOf(path: string): Promise<{ top: string; job?: string; place?: string }> {
  const isSave = (name: string): boolean => /^\d+-\d+$/.test(name);
  if (isSave(basename(path))) return { top: dirname(dirname(path)), job: basename(dirname(path)), place: basename(path) };
  const keys = (await fileStore(path).list('')).map(({ key }) => key.split('/'));
  if (keys.some(([first, file]) => isSave(first) && file !== undefined && /^rank-\d+\.mrck$|^COMMIT\.json$/.test(file)))
    return { top: dirname(path), job: basename(path) };
  return { top: path };
}

async function inspectFolder(path: string): Promise<Finding> {
  const { top, job: only, place } = await storeOf(path);
  const store = fileStore(top);
  const names = only === undefined ? [...new Set((await store.list('')).map(({ key }) => key.split('/')[0]))] : [only];
  const saves: SaveReport[] = [];
  for (const job of names) {
    for (const save of await storedSaves(store, job)) {
      if (place !== undefined && place !== `${save.epoch}-${save.k}`) continue;
      const images = save.entries.filter(({ key }) => key.endsWith('.mrck'));
      const bytes = images.reduce((sum, image) => sum + image.bytes, 0);
      const report: SaveReport = {
        job,
        epoch: save.epoch,
        k: save.k,
        isCommitted: save.isCommitted,
        step: undefined,
        images: images.length,
        bytes,
        problems: [],
      };
      saves.push(report);
      if (!save.isCommitted) continue;
      try {
        const manifest = decodeManifest(await store.get(commitKey(job, save)));
        report.step = manifest.step;
        await checkAgainst(manifest, (rank) => join(top, imageKey(job, save, rank)), report.problems);
        if (manifest.k !== save.k || manifest.epoch !== save.epoch)
          report.problems.push(`its manifest is that of save ${manifest.k} of epoch ${manifest.epoch}`);
      } catch (error) {
        report.problems.push(messageOf(error));
      }
    }
  }
  if (saves.length === 0)
    throw new MultirailError(
      'ERR_CHECKPOINT',
      `${path} has no saves: expected the folder of a store, of a job in it (NAME), or of a save (NAME/EPOCH-K)`,
    );
  const stateOf = ({ isCommitted, problems }: SaveReport): string => {
    if (!isCommitted) return 'never committed';
    return problems.length === 0 ? 'whole' : 'DAMAGED';
  };
  const lines = columns([
    ['job', 'epoch', 'save', 'step', 'images', 'size', 'state'],
    ...saves.map((save) => [
      save.job,
      String(save.epoch),
      String(save.k),
      save.step === undefined ? '-' : String(save.step),
      String(save.images),
      sizeText(save.bytes),
      stateOf(save),
    ]),
  ]);
  for (const job of names) {
    const own = saves.filter((save) => save.job === job);
    const best = own.find(({ isCommitted, problems }) => isCommitted && problems.length === 0);
    if (own.length > 0)
      lines.push(
        best === undefined
          ? `${job}: nothing could be restored`
          : `${job}: save ${best.k} of epoch ${best.epoch} could be restored, at step ${best.step}`,
      );
  }
  const problems = saves.flatMap(({ job, epoch, k, problems: own }) => own.map((text) => `${job}, save ${k} of epoch ${epoch}: ${text}`));
  return { lines, data: { saves }, problems };
}

async function checkAgainst(manifest: Manifest, pathOf: (rank: number) => string, problems: string[]): Promise<void> {
  for (const { rank, bytes, crc } of manifest.files) {
    try {
      const image = await checkImageFile(pathOf(rank));
      const { header } = image;
      if (
        header.rank !== rank ||
        header.size !== manifest.size ||
        header.save !== manifest.k ||
        header.epoch !== manifest.epoch ||
        image.bytes !== bytes ||
        image.crc !== crc
      )
        problems.push(`the image of rank ${rank} is another one than the manifest names`);
    } catch (error) {
      problems.push(`rank ${rank}: ${messageOf(error)}`);
    }
  }
}

/** Looks at an image, a manifest, or a folder of saves, and checks all of it. */
export async function inspect(given: string): Promise<Finding> {
  const path = resolve(given);
  const state = await stat(path).catch((cause) => {
    throw new MultirailError('ERR_ARG', `${given}: ${messageOf(cause)}`, { cause });
  });
  if (state.isDirectory()) return inspectFolder(path);
  try {
    return await inspectFile(path);
  } catch (error) {
    if (!(error instanceof MultirailError) || error.code !== 'ERR_CORRUPT') throw error;
    return { lines: [], data: { path }, problems: [`${given}: ${error.message}`] };
  }
}
