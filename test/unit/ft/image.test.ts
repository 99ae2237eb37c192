// The format of images: golden bytes in both directions, every kind of damage refused by the part and the byte, and manifests.
// `UPDATE_GOLDEN=1 npx vitest run --project unit test/unit/ft/image.test.ts` writes the hex of the JSON file and the golden part of the document.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { MultirailError } from '../../../src/errors.ts';
import { decodeHead, decodeImage, headBytes } from '../../../src/ft/image/decode.ts';
import { encodeImage, type NewSection } from '../../../src/ft/image/encode.ts';
import { ENTRY, HEADER, HEADER_BYTES, type ImageHeader, writeU53 } from '../../../src/ft/image/format.ts';
import { decodeManifest, encodeManifest, type Manifest } from '../../../src/ft/image/manifest.ts';
import { imageArray, imageValue, readImage } from '../../../src/ft/store/read-image.ts';
import { crc32c } from '../../../src/native/crc32c.ts';
import { crc32cCombine, crc32cJs } from '../../../src/util/crc32c.ts';
import { Prng } from '../../../src/util/prng.ts';
import { GOLDEN_DIR, hexOf } from '../../support/golden.ts';
import { encodeGolden, goldenImages, IMAGE_MD, joined, renderImages } from '../../support/image-golden.ts';

const BEGIN = '<!-- golden: begin (written by test/unit/ft/image.test.ts) -->';
const END = '<!-- golden: end -->';

if (process.env.UPDATE_GOLDEN === '1') {
  const golden = goldenImages();
  for (const one of golden.images) {
    const { parts, crc } = encodeGolden(one);
    one.hex = hexOf(joined(parts));
    one.crc = crc.toString(16).padStart(8, '0');
  }
  writeFileSync(new URL('image.json', GOLDEN_DIR), `${JSON.stringify(golden, null, 2)}\n`);
  const text = readFileSync(IMAGE_MD, 'utf8');
  writeFileSync(IMAGE_MD, `${text.split(BEGIN)[0]}${BEGIN}\n\n${renderImages()}\n${END}${text.split(END)[1] ?? '\n'}`);
}

const GOLDEN = goldenImages().images;
const HEAD: ImageHeader = {
  save: 7,
  epoch: 1,
  rank: 2,
  size: 4,
  step: 300,
  wallTimeMs: 1_700_000_000_000,
  jobId: new Uint8Array(16).fill(9),
};
const SECTIONS: NewSection[] = [
  { kind: 'array', name: 'plate', element: 'Float64Array', bytes: new Uint8Array(new Float64Array([1, -2, 3]).buffer) },
  { kind: 'value', name: 'step', bytes: Uint8Array.of(1, 2, 3) },
];
const sound = (sections = SECTIONS): Uint8Array => joined(encodeImage(HEAD, sections, crc32c).parts);

/** The error that reading these bytes ends with. */
function refusal(bytes: Uint8Array): MultirailError {
  try {
    decodeImage(bytes, crc32c);
  } catch (error) {
    if (error instanceof MultirailError) return error;
    throw error;
  }
  throw new Error('the image was taken');
}

/** The sound image with something changed, and the checksums of header and table made right again. */
function forged(change: (view: DataView, bytes: Uint8Array) => void, sections = SECTIONS): Uint8Array {
  const bytes = sound(sections);
  const view = new DataView(bytes.buffer);
  const payloadAt = headBytes(bytes, bytes.length, crc32c);
  change(view, bytes);
  view.setUint32(HEADER.tableCrc, crc32c(bytes.subarray(HEADER_BYTES, payloadAt)), true);
  view.setUint32(HEADER.headerCrc, crc32c(bytes.subarray(0, HEADER.headerCrc)), true);
  return bytes;
}

describe('golden bytes', () => {
  test.each(GOLDEN.map((golden) => [golden.name, golden] as const))('%s', (_, golden) => {
    const { parts, bytes, crc } = encodeGolden(golden);
    const whole = joined(parts);
    expect(hexOf(whole)).toBe(golden.hex);
    expect([bytes, crc.toString(16).padStart(8, '0')]).toEqual([whole.length, golden.crc]);
    expect(crc32cJs(whole)).toBe(crc);
    const read = decodeImage(whole, crc32cJs);
    expect({ ...read.header, jobId: hexOf(read.header.jobId) }).toEqual(golden.header);
    const sections = read.sections.map(({ kind, name, element, data }) => ({
      kind,
      name,
      ...(element === '' ? {} : { element }),
      data: hexOf(data),
    }));
    expect(sections).toEqual(golden.sections);
    expect(read.sections.every(({ offset }) => offset % 64 === 0)).toBe(true);
  });

  test('are those of docs/internals/IMAGE.md', () => {
    const text = readFileSync(IMAGE_MD, 'utf8');
    expect(text.split(BEGIN)[1]?.split(END)[0]?.trim()).toBe(renderImages().trim());
  });
});

describe('a sound image', () => {
  test('is not copied: parts are the views that were handed in, and sections views of the image', () => {
    const { parts } = encodeImage(HEAD, SECTIONS, crc32c);
    for (const { bytes } of SECTIONS) expect(parts.some((part) => part === bytes)).toBe(true);
    const whole = joined(parts);
    for (const { data } of decodeImage(whole, crc32c).sections) expect(data.buffer).toBe(whole.buffer);
  });

  test('takes checksums that are known already', () => {
    const known = SECTIONS.map((section) => ({ ...section, crc: crc32c(section.bytes) }));
    expect(encodeImage(HEAD, known, crc32c).crc).toBe(encodeImage(HEAD, SECTIONS, crc32c).crc);
  });

  test('the checksum of two pieces follows from theirs', () => {
    const prng = new Prng('combine');
    for (const length of [0, 1, 7, 64, 1000, 65_537]) {
      const [first, second] = [prng.fill(new Uint8Array(prng.below(300))), prng.fill(new Uint8Array(length))];
      const whole = joined([first, second]);
      expect(crc32cCombine(crc32cJs(first), crc32cJs(second), length)).toBe(crc32cJs(whole));
    }
  });

  test('kinds of later versions are checked and skipped', () => {
    const bytes = forged((view) => {
      view.setUint32(HEADER_BYTES + 64 + ENTRY.kind, 99, true);
      view.setUint32(HEADER_BYTES + 64 + ENTRY.element, 77, true);
      view.setUint32(HEADER_BYTES + 64 + ENTRY.codec, 5, true);
    });
    expect(readImage(bytes).sections.map(({ kind, name }) => [kind, name])).toEqual([
      ['array', 'plate'],
      ['unknown', 'step'],
    ]);
    bytes[bytes.length - 16 - 64] ^= 1;
    expect(refusal(bytes).message).toMatch(/section "step"/);
  });

  test('gives its arrays and values to programs', async () => {
    const { serialize } = await import('node:v8');
    const value = { step: 12n, names: new Map([['a', [1, undefined]]]) };
    const bytes = sound([...SECTIONS.slice(0, 1), { kind: 'value', name: 'state', bytes: serialize(value) }]);
    // At an odd place in memory too.
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    for (const image of [readImage(bytes), readImage(shifted.subarray(3))]) {
      expect(imageArray(image.sections[0])).toEqual(new Float64Array([1, -2, 3]));
      expect(imageValue(image.sections[1])).toEqual(value);
      expect(() => imageValue(image.sections[0])).toThrow(/ERR_ARG/);
      expect(() => imageArray(image.sections[1])).toThrow(/ERR_ARG/);
    }
    const broken = readImage(sound()).sections[1];
    expect(() => imageValue(broken)).toThrow(/ERR_SUPPORT: value "step"/);
    const half = readImage(sound([{ kind: 'array', name: 'h', element: 'Float16Array', bytes: new Uint8Array(4) }])).sections[0];
    if ('Float16Array' in globalThis) expect(imageArray(half).constructor.name).toBe('Float16Array');
    else expect(() => imageArray(half)).toThrow(/ERR_SUPPORT: array "h" is a Float16Array/);
  });
});

describe('what is damaged', () => {
  test('every single flipped bit is found', () => {
    const bytes = sound();
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      bytes[bit >> 3] ^= 1 << (bit & 7);
      expect(refusal(bytes).code, `bit ${bit}`).toBe('ERR_CORRUPT');
      bytes[bit >> 3] ^= 1 << (bit & 7);
    }
    expect(decodeImage(bytes, crc32c).sections).toHaveLength(2);
  });

  test('every length that is cut off is found, and bytes after the end are', () => {
    const bytes = sound();
    for (let length = 0; length < bytes.length; length++) expect(refusal(bytes.subarray(0, length)).code).toBe('ERR_CORRUPT');
    for (const more of [1, 16, 64, 1000]) expect(refusal(joined([bytes, new Uint8Array(more)])).code).toBe('ERR_CORRUPT');
  });

  test('is named by part and byte', () => {
    const at = (place: number): string => {
      const bytes = sound();
      bytes[place] ^= 0x10;
      return refusal(bytes).message;
    };
    const payloadAt = headBytes(sound(), sound().length, crc32c);
    expect(at(0)).toMatch(/header, at byte 0: it does not begin with MRCKPT01/);
    expect(at(30)).toMatch(/header, at byte 92: its checksum/);
    expect(at(100)).toMatch(/section table, at byte 96/);
    expect(at(payloadAt + 5)).toMatch(new RegExp(`section "plate", at byte ${payloadAt}: the checksum of its 24 bytes`));
    expect(at(payloadAt + 30)).toMatch(new RegExp(`section "plate", at byte ${payloadAt + 30}: 16 where zero must be`));
    expect(at(sound().length - 1)).toMatch(/trailer, at byte \d+: it does not end with MRCE/);
    expect(refusal(sound().subarray(0, 50)).message).toMatch(/header, at byte 50: it ends there/);
  });

  test('lengths and places that lie are refused before anything is done by them, although all checksums are right', () => {
    const entry = HEADER_BYTES;
    const lies: [string, (view: DataView, bytes: Uint8Array) => void, RegExp][] = [
      ['a section beyond the end', (view) => writeU53(view, entry + ENTRY.bytes, 2 ** 52), /does not lie in the image/],
      ['a section of 2^63 bytes', (view) => view.setUint32(entry + ENTRY.bytes + 4, 0x80000000, true), /does not lie in the image/],
      ['a section that begins in the head', (view) => writeU53(view, entry + ENTRY.offset, 64), /does not lie in the image/],
      ['a name beyond the names', (view) => view.setUint32(entry + ENTRY.nameOffset, 5000, true), /its name is not among the names/],
      ['a name of no bytes', (view) => view.setUint32(entry + ENTRY.nameBytes, 0, true), /its name is not among the names/],
      ['a long name', (view) => view.setUint32(entry + ENTRY.nameBytes, 4_000_000_000, true), /its name is not among the names/],
      ['a name that is not UTF-8', (_, bytes) => bytes.fill(0xff, entry + 128, entry + 129), /not UTF-8/],
      ['65,537 sections', (view) => view.setUint32(HEADER.sections, 65_537, true), /do not make/],
      ['one section too many', (view) => view.setUint32(HEADER.sections, 3, true), /its name is not among the names|do not make/],
      ['no sections', (view) => view.setUint32(HEADER.sections, 0, true), /names/],
      ['a payload that is longer', (view) => writeU53(view, HEADER.payloadBytes, 2 ** 40), /do not make/],
      ['a payload that is shorter by no multiple', (view) => writeU53(view, HEADER.payloadBytes, 127), /do not make/],
      ['a number beyond 2^53', (view) => view.setUint32(HEADER.step + 4, 2 ** 31, true), /step is not below 2\^53/],
      ['a rank that is none', (view) => view.setUint32(HEADER.rank, 4, true), /rank 4 of 4/],
      ['a flag', (view) => view.setUint32(HEADER.flags, 1, true), /no flags/],
      ['a header of another length', (view) => view.setUint32(HEADER.headerBytes, 100, true), /a header has 96/],
      ['a class that is none', (view) => view.setUint32(entry + ENTRY.element, 14, true), /class 14/],
      ['an array without a class', (view) => view.setUint32(entry + ENTRY.element, 0, true), /class 0/],
      ['a value with a class', (view) => view.setUint32(entry + 64 + ENTRY.element, 9, true), /class 9/],
      ['elements that are not whole', (view) => writeU53(view, entry + ENTRY.bytes, 23), /not whole elements/],
      ['a codec', (view) => view.setUint32(entry + ENTRY.codec, 1, true), /codec 1/],
      ['something in the zeros', (_, bytes) => bytes.fill(1, entry + 50, entry + 51), /1 where zero must be/],
    ];
    for (const [name, lie, text] of lies) {
      const error = refusal(forged(lie));
      expect(error.code, name).toBe('ERR_CORRUPT');
      expect(error.message, name).toMatch(text);
    }
    const twice = [SECTIONS[0], { ...SECTIONS[0], name: 'plato' }];
    expect(refusal(forged((_, bytes) => bytes.set([0x65], entry + 128 + 9), twice)).message).toMatch(/"plate" occurs twice/);
  });

  test('a later version is not called damaged', () => {
    expect(refusal(forged((view) => view.setUint32(HEADER.version, 2, true)))).toMatchObject({ code: 'ERR_SUPPORT' });
  });

  test('a head that was read alone is held against the length of the whole', () => {
    const bytes = sound();
    const length = headBytes(bytes.subarray(0, 96), bytes.length, crc32c);
    expect(decodeHead(bytes.subarray(0, length), bytes.length, crc32c).sections).toHaveLength(2);
    expect(() => decodeHead(bytes.subarray(0, length - 1), bytes.length, crc32c)).toThrow(/ERR_CORRUPT/);
    expect(() => headBytes(bytes.subarray(0, 96), bytes.length + 64, crc32c)).not.toThrow();
    expect(() => decodeHead(bytes.subarray(0, length), bytes.length + 64, crc32c)).toThrow(/ERR_CORRUPT/);
  });
});

test('what is not an image is not written', () => {
  const one = SECTIONS[0];
  const wrong: [Partial<ImageHeader>, NewSection[], RegExp][] = [
    [{ rank: 4 }, [], /rank = 4/],
    [{ save: -1 }, [], /save = -1/],
    [{ step: 2 ** 53 }, [], /step = /],
    [{ jobId: new Uint8Array(15) }, [], /jobId has 15 bytes/],
    [{}, [{ ...one, element: 'Array' }], /its class Array/],
    [{}, [{ kind: 'array', name: 'x', bytes: new Uint8Array(1) }], /its class is missing/],
    [{}, [{ ...one, bytes: new Uint8Array(9) }], /not whole elements/],
    [{}, [{ kind: 'value', name: 'x', element: 'Int8Array', bytes: new Uint8Array(1) }], /no class/],
    [{}, [{ ...one, name: '' }], /0 bytes/],
    [{}, [{ ...one, name: '\ud800' }], /well-formed/],
    [{}, [one, one], /are called "plate"/],
  ];
  for (const [header, sections, text] of wrong) {
    const write = (): unknown => encodeImage({ ...HEAD, ...header }, sections, crc32c);
    expect(write).toThrow(text);
    expect(write).toThrow(/^ERR_ARG/);
  }
});

describe('a manifest', () => {
  const manifest: Manifest = {
    k: 3,
    epoch: 1,
    size: 2,
    step: 40,
    files: [
      { rank: 0, bytes: 100, crc: 1 },
      { rank: 1, bytes: 200, crc: 2 ** 32 - 1 },
    ],
    scheme: { domains: 2, duplication: 1, depth: 1 },
    multirail: '0.3.0',
    node: 'v20',
  };

  test('is read as it was written', () => {
    expect(decodeManifest(encodeManifest(manifest))).toEqual(manifest);
    const { scheme, ...rest } = manifest;
    expect(scheme).toBeDefined();
    expect(decodeManifest(encodeManifest(rest))).toEqual(rest);
  });

  test('is refused when anything in it is missing or wrong', () => {
    const text = (change: object): Uint8Array => new TextEncoder().encode(JSON.stringify({ version: 1, ...manifest, ...change }));
    const wrong: object[] = [
      { version: undefined },
      { k: -1 },
      { epoch: 2 ** 32 },
      { step: 1.5 },
      { size: 0, files: [] },
      { size: 3 },
      { files: {} },
      { files: [manifest.files[1], manifest.files[0]] },
      { files: [null, null] },
      { files: [manifest.files[0], { rank: 1, bytes: -1, crc: 0 }] },
      { scheme: { domains: 1 } },
      { scheme: 7 },
      { multirail: 3 },
      { node: undefined },
    ];
    for (const change of wrong) expect(() => decodeManifest(text(change)), JSON.stringify(change)).toThrow(/ERR_CORRUPT/);
    for (const bytes of [new Uint8Array(0), Uint8Array.of(0xff), new TextEncoder().encode('[1]'), new TextEncoder().encode('null')])
      expect(() => decodeManifest(bytes)).toThrow(/ERR_CORRUPT/);
    expect(() => decodeManifest(text({ version: 2 }))).toThrow(/ERR_SUPPORT/);
    expect(() => decodeManifest(new Uint8Array(9 * 1024 * 1024))).toThrow(/more than/);
  });
});
