// What a program has registered as its state, and the image of it: arrays are copied with their checksum on the way, values are serialised.
import { createHash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { MultirailError } from '../../errors.ts';
import { copyCrc32c, crc32c } from '../../native/crc32c.ts';
import { cloneByValue } from '../../util/clone-by-value.ts';
import { RECORD_BYTES_MAX as ONCE_BYTES_MAX } from '../events/format.ts';
import type { DecodedSection } from '../image/decode.ts';
import { encodeImage, type NewSection } from '../image/encode.ts';
import { aligned, ELEMENTS, ENTRY_BYTES, HEADER_BYTES, type ImageHeader, JOB_ID_BYTES, TRAILER_BYTES } from '../image/format.ts';

/** How a value is saved and taken back. */
export interface ValueAccessors<V> {
  /** Gives the value, which is saved by structured clone. */
  save: () => V;
  /** Takes back what save() gave. */
  restore: (value: V) => void;
}

type Entry =
  | { readonly kind: 'array'; readonly view: ArrayBufferView }
  | { readonly kind: 'value'; readonly accessors: ValueAccessors<unknown> };

const elementOf = (view: ArrayBufferView): string =>
  view instanceof Uint8Array
    ? 'Uint8Array'
    : (ELEMENTS.find(({ name }) => name === Object.prototype.toString.call(view).slice(8, -1))?.name ?? '');

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength);

/** Values of once() that were made after the save, as they were recorded. */
export interface RecordedOnces {
  nextOnce(name: string): Uint8Array | undefined;
  /** False: it is too long. */
  noteOnce(name: string, value: Uint8Array): boolean;
  /** Values that are too long must not be. */
  readonly isFull: boolean;
}

/** Makes values of once() where more than one process has to have the same. */
export interface OnceMaker {
  once<V>(make: () => V): V;
}

/** Values of once(): all in one section of this name. */
export const ONCE_SECTION = 'once';
const ONCE_MAX = 65_536;

function requireName(name: string): void {
  if (typeof name !== 'string' || name === '')
    throw new MultirailError('ERR_ARG', `name of what is saved: ${String(name)}, expected a text`);
}

/** What stands for the name of a job in the header of an image. */
export function jobIdOf(name: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(name).digest().subarray(0, JOB_ID_BYTES));
}

export class Registry {
  private readonly rank: number;
  /** By kind and name, in the order in which they were registered. */
  private readonly entries = new Map<string, Entry & { readonly name: string }>();
  /** What once() has given, by name, as it is saved. */
  private readonly made = new Map<string, Uint8Array>();
  /** What this run of the program begins with. */
  private readonly sections: ReadonlyMap<string, DecodedSection> | undefined;
  private readonly recorded: RecordedOnces | undefined;
  private readonly maker: OnceMaker | undefined;
  private readonly clone: (value: unknown) => Uint8Array;

  /** `sections`: of the image that is restored. `maker`: of a replica, whose images are compared with those of its twins. */
  constructor(rank: number, sections: readonly DecodedSection[] | undefined, recorded?: RecordedOnces, maker?: OnceMaker) {
    this.rank = rank;
    this.maker = maker;
    this.clone =
      maker === undefined ? (value) => new Uint8Array(serialize(value)) : (value) => cloneByValue(new Uint8Array(serialize(value)));
    this.recorded = recorded;
    this.sections = sections && new Map(sections.map((section) => [`${section.kind}/${section.name}`, section]));
    const made = this.sections?.get(`determinants/${ONCE_SECTION}`);
    if (made !== undefined) for (const [name, value] of deserialize(made.data) as Map<string, Uint8Array>) this.made.set(name, value);
  }

  once<V>(name: string, make: () => V): V {
    requireName(name);
    if (typeof make !== 'function') throw new MultirailError('ERR_ARG', `once('${name}', …): expected a function that makes the value`);
    let bytes = this.made.get(name) ?? this.again(name);
    if (bytes === undefined) {
      if (this.made.size >= ONCE_MAX)
        throw new MultirailError(
          'ERR_ARG',
          `once('${name}', …): ${ONCE_MAX} values were made by once() already; expected a name for each place in the program, and not for each step`,
        );
      const value = this.maker === undefined ? make() : this.maker.once(make);
      try {
        bytes = this.clone(value);
      } catch (cause) {
        throw new MultirailError(
          'ERR_ARG',
          `once('${name}', …): what the function gave cannot be cloned (${(cause as Error).message}): expected a value, not a promise or a function`,
          { cause },
        );
      }
      if (this.recorded?.noteOnce(name, bytes) === false && this.recorded.isFull)
        throw new MultirailError(
          'ERR_ARG',
          `once('${name}', …): what the function gave has ${bytes.length} bytes, and no more than ${ONCE_BYTES_MAX} can be recorded (determinism: 'recorded'): make long values of a short one`,
        );
      this.made.set(name, bytes);
    }
    return deserialize(bytes) as V;
  }

  /** The value that a predecessor has made after the save. */
  private again(name: string): Uint8Array | undefined {
    const bytes = this.recorded?.nextOnce(name);
    if (bytes !== undefined) this.made.set(name, bytes);
    return bytes;
  }

  protect(name: string, view: ArrayBufferView): void {
    if (!ArrayBuffer.isView(view) || elementOf(view) === '')
      throw new MultirailError(
        'ERR_ARG',
        `protect('${name}', …): expected a typed array, a Buffer or a DataView; protectValue() is for other values`,
      );
    this.add(name, { kind: 'array', view });
    const section = this.sectionOf('array', name);
    if (section === undefined) return;
    if (section.element !== elementOf(view) || section.bytes !== view.byteLength)
      throw this.mismatch(
        `array "${name}" is a ${section.element} of ${section.bytes} bytes in the save, and the program has registered a ${elementOf(view)} of ${view.byteLength} bytes`,
      );
    bytesOf(view).set(section.data);
  }

  protectValue<V>(name: string, accessors: ValueAccessors<V>): void {
    if (typeof accessors?.save !== 'function' || typeof accessors.restore !== 'function')
      throw new MultirailError('ERR_ARG', `protectValue('${name}', …): expected { save, restore }, two functions`);
    this.add(name, { kind: 'value', accessors: accessors as ValueAccessors<unknown> });
    const section = this.sectionOf('value', name);
    if (section !== undefined) accessors.restore(deserialize(section.data) as V);
  }

  /** The state of another process that does the same, by the image of it, becomes that of the program in the middle of its run. */
  takeBack(sections: readonly DecodedSection[]): void {
    for (const { kind, name, data } of sections) {
      const entry = this.entries.get(`${kind}/${name}`);
      if (entry?.kind === 'array') bytesOf(entry.view).set(data);
      else if (entry?.kind === 'value') entry.accessors.restore(deserialize(data));
      else if (kind === 'determinants' && name === ONCE_SECTION)
        for (const [one, value] of deserialize(data) as Map<string, Uint8Array>) this.made.set(one, value);
    }
  }

  private add(name: string, entry: Entry): void {
    const key = `${entry.kind}/${name}`;
    requireName(name);
    if (this.entries.has(`array/${name}`) || this.entries.has(`value/${name}`))
      throw new MultirailError('ERR_ARG', `"${name}" is registered twice: expected each name once in a run of the program`);
    this.entries.set(key, { ...entry, name });
  }

  private sectionOf(kind: 'array' | 'value', name: string): DecodedSection | undefined {
    if (this.sections === undefined) return undefined;
    const section = this.sections.get(`${kind}/${name}`);
    if (section === undefined) throw this.mismatch(`the save has no ${kind} "${name}", which the program registers`);
    return section;
  }

  private mismatch(text: string): MultirailError {
    return new MultirailError(
      'ERR_CHECKPOINT',
      `rank ${this.rank}: ${text}: start the program that has made the save, or choose another name of the job (ft_job)`,
      { rank: this.rank },
    );
  }

  /** What the image has and the program has not registered, as an error; undefined when all is there. */
  get missing(): MultirailError | undefined {
    const names = [...(this.sections?.keys() ?? [])]
      .filter((key) => !this.entries.has(key) && /^(array|value)\//.test(key))
      .map((key) => `"${key.slice(key.indexOf('/') + 1)}"`);
    return names.length === 0 ? undefined : this.mismatch(`the save has ${names.join(', ')}, which the program does not register`);
  }

  /** The image of what is registered, and of what else there is to save. `take` gives memory of that length. */
  capture(
    header: ImageHeader,
    take: (bytes: number) => Uint8Array,
    others: readonly Omit<NewSection, 'crc'>[] = [],
  ): { memory: Uint8Array; crc: number } {
    const sources: Omit<NewSection, 'crc'>[] = [...this.entries.values()].map((entry) => {
      if (entry.kind === 'array') return { kind: entry.kind, name: entry.name, element: elementOf(entry.view), bytes: bytesOf(entry.view) };
      return { kind: entry.kind, name: entry.name, bytes: this.clone(entry.accessors.save()) };
    });
    if (this.made.size > 0) sources.push({ kind: 'determinants', name: ONCE_SECTION, bytes: this.clone(this.made) });
    sources.push(...others);
    const encoder = new TextEncoder();
    const namesAt = HEADER_BYTES + ENTRY_BYTES * sources.length;
    const payloadAt = aligned(sources.reduce((sum, { name }) => sum + encoder.encode(name).length, namesAt));
    const total = sources.reduce((sum, { bytes }) => sum + aligned(bytes.length), payloadAt) + TRAILER_BYTES;
    const memory = take(total);
    let at = payloadAt;
    const sections = sources.map(({ bytes, ...source }): NewSection => {
      const place = memory.subarray(at, at + bytes.length);
      const crc = copyCrc32c(place, bytes);
      memory.fill(0, at + bytes.length, at + aligned(bytes.length));
      at += aligned(bytes.length);
      return { ...source, bytes: place, crc };
    });
    const { parts, crc } = encodeImage(header, sections, crc32c);
    memory.set(parts[0], 0);
    memory.set(parts[parts.length - 1], total - TRAILER_BYTES);
    return { memory, crc };
  }
}
