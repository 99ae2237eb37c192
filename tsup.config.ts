import { defineConfig } from 'tsup';
import { buildPage } from './src/dashboard/build-page.mjs';

export default defineConfig([
  { entry: { index: 'src/index.ts' }, format: ['esm', 'cjs'], dts: true, sourcemap: true, target: 'node20', platform: 'node', clean: true },
  {
    entry: { cli: 'src/cli/main.ts' },
    format: ['esm'],
    sourcemap: true,
    target: 'node20',
    platform: 'node',
    banner: { js: '#!/usr/bin/env node' },
    // After the other build has cleaned the folder.
    onSuccess: () => buildPage('dist/dashboard'),
  },
  // The process that rank 0 starts where an engine has started the ranks: it is looked for beside the library.
  { entry: { rendezvous: 'src/launch/rendezvous-main.ts' }, format: ['esm'], sourcemap: true, target: 'node20', platform: 'node' },
]);
