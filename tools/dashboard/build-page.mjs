// Bundles the dashboard's page into a folder: page.js and page.css by esbuild, index.html and icon.svg as they are. Used by tsup.config.ts, and
// by tests that need the page without a build.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const SOURCE = fileURLToPath(new URL('./page/', import.meta.url));

/** The license of what is bundled travels with it. */
function licenseOf(name) {
  const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  return `/*! This file contains ${name}:\n${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n*/`;
}

/** @param {string} folder It is made where it does not exist. */
export async function buildPage(folder) {
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: { page: join(SOURCE, 'main.ts') },
    outdir: folder,
    bundle: true,
    platform: 'browser',
    format: 'iife',
    target: ['chrome110', 'firefox115', 'safari16'],
    minify: true,
    banner: { js: licenseOf('uplot') },
    logLevel: 'warning',
  });
  for (const file of ['index.html', 'icon.svg']) copyFileSync(join(SOURCE, file), join(folder, file));
}
