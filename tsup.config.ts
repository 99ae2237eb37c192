import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Options } from 'tsup';
import { writeDeclarations } from './tools/api/declarations.mjs';
import { mergeChunks } from './tools/build/merge-chunks.mjs';
import { buildPage } from './tools/dashboard/build-page.mjs';

// Bundled CommonJS asks for Node's modules by require(), which an ES module has to make first.
const REQUIRE = "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);";

/** The licenses of the packages that are in a bundle travel with it. */
const licenses: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'licenses',
  setup(build) {
    build.initialOptions.metafile = true;
    build.onEnd(({ metafile }) => {
      const inputs = Object.values(metafile?.outputs ?? {}).flatMap((output) =>
        Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
      );
      const folders = inputs.flatMap((path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? []);
      // Many have the same text: it is there once, behind the names of all of them.
      const namesByText = new Map<string, string[]>();
      for (const folder of [...new Set(folders)].sort()) {
        const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
        const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
        namesByText.set(text, [...(namesByText.get(text) ?? []), `${name} ${version} (${license})`]);
      }
      const texts = [...namesByText].map(([text, names]) => `${names.join('\n')}\n\n${text}\n`);
      if (!existsSync('dist')) mkdirSync('dist');
      writeFileSync(
        'dist/LICENSES.txt',
        `Packages that are part of the bundles in this folder.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`,
      );
    });
  },
};

/** What the build of ES modules has written. */
let outputs: Parameters<typeof mergeChunks>[0] = {};
const keepOutputs: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'keep-outputs',
  setup(build) {
    build.onEnd(({ metafile }) => {
      outputs = metafile?.outputs ?? {};
    });
  },
};

/**
 * Node's modules are asked for directly in the library's ES module. Import statements for them are a tenth of the processor time
 * of an import of the library: each becomes a job of the loader of ES modules, and all that it exports is looked up, what loads on first use included.
 */
const builtins: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'builtins',
  setup(build) {
    const library = join(process.cwd(), 'src');
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (!path.startsWith(library)) return undefined;
      const contents = readFileSync(path, 'utf8').replace(
        /^import \{([^}]*)\} from '(node:[^']+)';$/gm,
        (_, names: string, module: string) => {
          const values = names
            .split(',')
            .map((name) => name.trim())
            .filter((name) => name !== '' && !name.startsWith('type '));
          return `const { ${values.map((name) => name.replace(' as ', ': ')).join(', ')} } = process.getBuiltinModule('${module}');`;
        },
      );
      return { contents, loader: 'ts' };
    });
  },
};

/**
 * protobufjs asks for `long` and does without where it is not there: numbers of the out-of-band channel are plain numbers, and a class for
 * more, with a module of WebAssembly, would be started in each rank.
 */
const noLong: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'no-long',
  setup(build) {
    build.onResolve({ filter: /^long$/ }, () => ({ path: 'long', namespace: 'no-long' }));
    build.onLoad({ filter: /.*/, namespace: 'no-long' }, () => ({ contents: 'module.exports = null;' }));
  },
};

/**
 * CommonJS bundles share no code. MultirailError of `multirail/ft` is the one of `multirail` all the same, so that `instanceof` means something.
 */
const oneErrorClass: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'one-error-class',
  setup(build) {
    build.onResolve({ filter: /\/errors\.ts$/ }, ({ importer }) => {
      if (!/\/src\/ft\//.test(importer)) return undefined;
      return { path: './index.cjs', external: true };
    });
  },
};

// Packages that are not dependencies in package.json are bundled, so that an application installs little and a rank starts fast: ws as a
// package of its own took almost half of the processor time of an import. Names are left as they are, so that stacks can be read, and lines
// are short enough that a place in them says something. Names are not shortened and then given back (esbuild's keepNames), because that
// calls Object.defineProperty() each time a function comes into being: a message of 8 B over shared memory took four to six times as long.
const shared = {
  target: 'node20',
  platform: 'node',
  splitting: true,
  // What ws uses where somebody has installed it.
  external: ['bufferutil', 'utf-8-validate'],
} satisfies Options;
const readable: NonNullable<Options['esbuildOptions']> = (options) => {
  options.minifyWhitespace = true;
  options.minifySyntax = true;
  options.lineLimit = 160;
};

export default defineConfig(() => {
  rmSync('dist', { recursive: true, force: true });
  return [
    {
      ...shared,
      // One build, so that the command and the library share their code. The rendezvous is the process that rank 0 starts where a starter
      // has started the ranks: it is looked for beside the library, as is the thread of a replica whose others are on other hosts.
      entry: {
        index: 'src/index.ts',
        ft: 'src/ft/index.ts',
        wasm: 'src/wasm/index.ts',
        cli: 'tools/cli/main.ts',
        rendezvous: 'src/launch/meeting/main.ts',
        'replica-clock': 'src/mpi/replica/clock/main.ts',
      },
      format: 'esm',
      banner: { js: REQUIRE },
      esbuildOptions: readable,
      esbuildPlugins: [licenses, keepOutputs, builtins, noLong],
      onSuccess: async () => {
        await mergeChunks(outputs, [
          // Users import index.js: it exports what they may use, and nothing else.
          { entry: 'src/index.ts', into: 'library.js', withEntry: false },
          // What each rank loads in init().
          { entry: 'src/launch/oob/client.ts', into: 'channel.js', withEntry: true },
        ]);
        await buildPage('dist/dashboard');
        cpSync('src/wasm/c', 'dist/wasm', { recursive: true });
        writeDeclarations('dist', process.cwd());
      },
    },
    {
      ...shared,
      entry: { index: 'src/index.ts', ft: 'src/ft/index.ts' },
      format: 'cjs',
      splitting: false,
      esbuildPlugins: [oneErrorClass, noLong],
      // Where import.meta is used, __filename is asked first.
      esbuildOptions: (options, context) => {
        readable(options, context);
        options.logOverride = { 'empty-import-meta': 'silent' };
      },
    },
  ];
});
