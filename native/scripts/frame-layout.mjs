// Writes native/addon/src/crc/frame-layout.h: the layout of a frame's header for C++, out of the constants of src/btl/base/frame-hdr.ts, where
// it is defined. A test (test/unit/native/crc-frames.test.ts) checks that the file is current.
//   node native/scripts/frame-layout.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NATIVE } from './parts.mjs';

const SOURCE = join(dirname(NATIVE), 'src/btl/base/frame-hdr.ts');
export const HEADER = join(NATIVE, 'addon/src/crc/frame-layout.h');

/** What that file has to be. */
export function frameLayout() {
  const found = readFileSync(SOURCE, 'utf8').matchAll(
    /^(?:export )?const (FRAME_VERSION|FRAME_MAGIC|FRAME_HEADER_BYTES|OFFSET_\w+) = (\w+);/gm,
  );
  const camel = (name) => name.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
  const lines = [...found].map(([, name, value]) => `constexpr size_t k${camel(name)} = ${value};`);
  return `// The layout of src/btl/base/frame-hdr.ts, out of which native/scripts/frame-layout.mjs writes this file.
#pragma once
#include <stddef.h>

namespace multirail {

${lines.join('\n')}

}  // namespace multirail
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(HEADER, frameLayout());
