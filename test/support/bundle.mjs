// Bundles the command line and the programs that it starts by esbuild, since there is no build step before the tests. Each bundle is in a
// separate folder below .cache/, so that packages are still found. The measurements in namespaces use it too.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const nameOf = (file) => basename(file).replace(/\.[cm]?[jt]s$/, '');

/** Bundles programs for Node into a folder: entry points as esbuild takes them, and more of its options. */
export async function bundleInto(folder, entryPoints, options = {}) {
  await build({
    entryPoints,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    // As in the package: what is imported when it is needed is not loaded before.
    splitting: true,
    target: 'node20',
    // As in the package, packages too: a rank that looks for them in their folders takes half as long again to start. Bundled CommonJS asks
    // for Node's modules by require(), which an ES module has to make first.
    external: ['node-gyp-build', 'bufferutil', 'utf-8-validate', 'esbuild', 'vitest'],
    banner: { js: "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
    sourcemap: 'linked',
    // Programs that run over the built package, too.
    alias: { 'multirail/ft': join(ROOT, 'src/ft/index.ts'), multirail: join(ROOT, 'src/index.ts') },
    logLevel: 'warning',
    ...options,
  });
}

/** The command line (`cli`), the server of the out-of-band channel, and these programs (paths), each found by the name of its file. */
export async function bundle(programs) {
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.cache', 'system-'));
  await bundleInto(folder, {
    cli: join(ROOT, 'tools/cli/main.ts'),
    rendezvous: join(ROOT, 'src/launch/meeting/main.ts'),
    'replica-clock': join(ROOT, 'src/mpi/replica/clock/main.ts'),
    ...Object.fromEntries(programs.map((file) => [nameOf(file), file])),
  });
  return {
    folder,
    pathOf: (name) => join(folder, `${nameOf(name)}.mjs`),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  };
}
