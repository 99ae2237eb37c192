// The files of the page, read once from the package: dist/dashboard, which the build makes from tools/dashboard/page.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MultirailError } from '../../src/errors.ts';

export interface PageFile {
  type: string;
  body: Buffer;
}

const FILES: readonly { path: string; file: string; type: string }[] = [
  { path: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { path: '/page.js', file: 'page.js', type: 'text/javascript; charset=utf-8' },
  { path: '/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
  { path: '/icon.svg', file: 'icon.svg', type: 'image/svg+xml' },
];

/** By path of the URL. Throws ERR_SUPPORT when the page was not built. */
export function readPageFiles(folder = findPageFolder()): Map<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const { path, file, type } of FILES) {
    try {
      files.set(path, { type, body: readFileSync(join(folder, file)) });
    } catch (error) {
      throw new MultirailError('ERR_SUPPORT', `the dashboard's page is not built (${join(folder, file)}): run npm run build`, {
        cause: error,
      });
    }
  }
  return files;
}

/** Beside the bundle, or in the dist of the package that this file is part of. */
function findPageFolder(): string {
  const own = dirname(fileURLToPath(import.meta.url));
  for (let folder = own; ; folder = dirname(folder)) {
    for (const candidate of [join(folder, 'dashboard'), join(folder, 'dist', 'dashboard')]) {
      if (existsSync(join(candidate, 'page.js'))) return candidate;
    }
    if (folder === dirname(folder)) return join(own, 'dashboard');
  }
}
