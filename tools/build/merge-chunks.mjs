// Makes one file of the chunks that a rank always loads together. esbuild makes a chunk of whatever the same entries share, which are some twenty
// for the library; each module costs a rank 0.6 ms of processor time at its start. Used by tsup.config.ts.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { build } from 'esbuild';

/** @type {import('./merge-chunks.d.mts').mergeChunks} */
export async function mergeChunks(outputs, merges) {
  const paths = Object.keys(outputs);
  const folder = dirname(paths[0]);
  /** The file that holds a chunk from now on. */
  const places = new Map();
  for (const { entry, into, withEntry } of merges) {
    const root = paths.find((path) => outputs[path].entryPoint === entry);
    if (root === undefined) throw new Error(`${entry} is no entry of this build`);
    const chunks = [...neededBy(root, outputs)].filter((path) => !places.has(basename(path)) && (withEntry || path !== root));
    await makeOneFile(chunks, join(folder, into), places, outputs);
    for (const path of chunks) places.set(basename(path), into);
  }
  for (const path of paths) if (places.has(basename(path))) rmSync(path);
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (name.endsWith('.js')) writeFileSync(path, withPlaces(readFileSync(path, 'utf8'), places));
  }
}

/** The file, and what it imports by statements, directly or not. */
function neededBy(path, outputs, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  for (const { path: to, kind } of outputs[path].imports) if (kind === 'import-statement' && to in outputs) neededBy(to, outputs, found);
  return found;
}

async function makeOneFile(chunks, outfile, places, outputs) {
  // An entry exports again what its chunks do.
  const names = chunks.flatMap((path) => (outputs[path].entryPoint === undefined ? outputs[path].exports : []));
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  if (twice.length > 0) throw new Error(`${outfile}: several chunks export ${twice.join(', ')}: give them names of their own`);
  await build({
    stdin: { contents: chunks.map((path) => `export * from './${basename(path)}';`).join('\n'), resolveDir: dirname(outfile) },
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: 'warning',
    // Between chunks esbuild leaves imports without names; package.json says which files do something when they are loaded, and these are none of them.
    logOverride: { 'ignored-bare-import': 'silent' },
    plugins: [
      {
        name: 'chunks',
        setup({ onResolve }) {
          onResolve({ filter: /.*/ }, ({ path, kind }) => {
            const place = places.get(basename(path));
            if (place !== undefined) return { path: `./${place}`, external: true };
            return kind === 'dynamic-import' ? { path, external: true } : undefined;
          });
        },
      },
    ],
  });
}

/** Imports of chunks become imports of where they are now: the names of chunks end in a hash, and are nowhere else. */
function withPlaces(text, places) {
  const moved = text.replace(/"\.\/([^"\n]+\.js)"/g, (found, name) => (places.has(name) ? `"./${places.get(name)}"` : found));
  const seen = new Set();
  return moved.replace(/import"([^"\n]+)";/g, (found, name) => {
    if (seen.has(name)) return '';
    seen.add(name);
    return found;
  });
}
