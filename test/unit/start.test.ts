// What a rank has to compile when it imports the library: only what every job needs.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** What only some jobs ask for, or what init() loads. */
const LATER = [
  /^src\/ulfm\/(ulfm|agreement|replace|wire)\.ts$/,
  /^src\/mpi\/ft\/(fault-tolerance|logged-streams|recovery-series|held-objects|helping)\.ts$/,
  /^src\/(ft\/replica\/(lead|shadow)|mpi\/replica\/(replica-process|inject|paired-series))\.ts$/,
  /^src\/btl\/interpose\/fault\.ts$/,
  /^src\/launch\/oob\/(envelope\.ts|proto\.js|client\.ts|server\.ts)$/,
  /^node_modules\//,
];
/** Of source without comments and white space. */
const BYTES_MAX = 800_000;

test('an import of the library loads nothing that a job has to ask for', async () => {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/index.ts'],
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['bufferutil', 'utf-8-validate'],
    minifyWhitespace: true,
    minifySyntax: true,
    metafile: true,
    write: false,
    logLevel: 'error',
  });
  const { outputs } = metafile;
  const loaded = new Set<string>();
  const load = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    for (const { path: to, kind } of outputs[path].imports) if (kind === 'import-statement' && to in outputs) load(to);
  };
  load('dist/index.js');
  const sources = [...loaded].flatMap((path) =>
    Object.entries(outputs[path].inputs).flatMap(([source, { bytesInOutput }]) => (bytesInOutput > 0 ? [source] : [])),
  );
  expect(sources).toContain('src/pml/pml.ts');
  for (const pattern of LATER) {
    expect(sources.filter((source) => pattern.test(source))).toEqual([]);
    expect(Object.keys(metafile.inputs).some((source) => pattern.test(source))).toBe(true);
  }
  expect([...loaded].reduce((sum, path) => sum + outputs[path].bytes, 0)).toBeLessThan(BYTES_MAX);
});
