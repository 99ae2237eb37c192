// Golden bytes of images: reads docs/internals/golden/image.json, makes the images that it describes, and renders them for
// docs/internals/IMAGE.md. Used by the test of the format, and by the fuzz tests.
import { readFileSync } from 'node:fs';
import { type EncodedImage, encodeImage, type NewSection } from '../../src/ft/image/encode.ts';
import type { SectionKind } from '../../src/ft/image/format.ts';
import { crc32cJs } from '../../src/util/crc32c.ts';
import { bytesOf, GOLDEN_DIR } from './golden.ts';

export interface GoldenImage {
  name: string;
  header: { save: number; epoch: number; rank: number; size: number; step: number; wallTimeMs: number; jobId: string };
  sections: { kind: SectionKind; name: string; element?: string; data: string }[];
  /** CRC32C of the whole image, as a manifest names it. */
  crc: string;
  hex: string;
}

export const IMAGE_MD = new URL('../../docs/internals/IMAGE.md', import.meta.url);
export const goldenImages = (): { about: string; images: GoldenImage[] } =>
  JSON.parse(readFileSync(new URL('image.json', GOLDEN_DIR), 'utf8'));

/** All parts, one after the other. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

export function encodeGolden({ header, sections }: Pick<GoldenImage, 'header' | 'sections'>): EncodedImage {
  const list = sections.map(({ data, ...section }): NewSection => ({ ...section, bytes: bytesOf(data) }));
  return encodeImage({ ...header, jobId: bytesOf(header.jobId) }, list, crc32cJs);
}

/** Golden bytes are few, and those of padding all zeros: lines of zeros only are shown once. */
function hexDump(hex: string): string {
  const lines: string[] = [];
  let skipped = false;
  for (let at = 0; at < hex.length; at += 32) {
    const line = hex.slice(at, at + 32);
    const isZero = /^0+$/.test(line) && line.length === 32 && at > 0 && at + 32 < hex.length;
    if (isZero && /^0+$/.test(hex.slice(at - 32, at))) {
      if (!skipped) lines.push('*');
      skipped = true;
      continue;
    }
    skipped = false;
    lines.push(`${(at / 2).toString(16).padStart(4, '0')}  ${(line.match(/.{1,8}/g) as string[]).join(' ')}`);
  }
  return lines.join('\n');
}

/** The golden part of docs/internals/IMAGE.md. */
export function renderImages(): string {
  return goldenImages()
    .images.map(({ name, header, sections, crc, hex }) => {
      const fields = Object.entries(header).map(([key, value]) => `${key}=${value}`);
      const listed = sections.map(
        ({ kind, name: own, element, data }) => `${kind} "${own}"${element === undefined ? '' : ` ${element}`} ${data}`,
      );
      return `**${name}**\n\n\`\`\`text\n${[fields.join(' '), ...listed, `crc32c of the whole: ${crc}`, hexDump(hex)].join('\n')}\n\`\`\`\n`;
    })
    .join('\n');
}
