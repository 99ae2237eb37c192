// Builds the simulator, or the endpoint of the wire suite, with one or more mistakes planted in it. Each mistake comes with a marker, so
// that a test can tell that a build has the mistake, and that nothing which leaves the checkout has it.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import type { Edit } from './edit.ts';
import { PLANTED, type Planted } from './table.ts';

/** The root of the checkout: from there this is run, bundled or not. */
export const ROOT = process.cwd();

const MARKER_PREFIX = 'multirail planted mistake: ';

export function marker(name: string): string {
  return `${MARKER_PREFIX}${name}`;
}

/** Behind the name of a guarded mistake: built with its guard taken away, too. */
export const UNGUARDED = ' without its guard';

/** What must occur in no file that is shipped: the marker of each mistake, and what all of them begin with. */
export function mutantMarkers(): string[] {
  return [MARKER_PREFIX, ...PLANTED.map(({ name }) => marker(name))];
}

export function planted(name: string): Planted {
  const found = PLANTED.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no mistake is called ${name}; there are ${PLANTED.map((one) => one.name).join(', ')}`);
  return found;
}

/** The text of a file with these edits made in it. */
export function applied(text: string, edits: readonly Edit[], name: string): string {
  let result = text;
  for (const { file, find, replace } of edits) {
    const count = result.split(find).length - 1;
    if (count !== 1) {
      throw new Error(`${name}: this text stands ${count} times in ${file}, expected once; has the code changed?\n${find}`);
    }
    result = result.replace(find, () => replace);
  }
  return result;
}

/** What is planted: a mistake of the table, by its name, or one of another table. */
export type Mistake = string | { readonly name: string; readonly edits: readonly Edit[] };

const nameOf = (mistake: Mistake): string => (typeof mistake === 'string' ? mistake : mistake.name);

/** A name of the table may say that the guard is gone, too. */
function resolved(mistake: Mistake): { name: string; edits: readonly Edit[] } {
  if (typeof mistake !== 'string') return mistake;
  const { name, edits, guard } = planted(mistake.replace(UNGUARDED, ''));
  return { name, edits: mistake.endsWith(UNGUARDED) ? [...edits, ...(guard?.edits ?? [])] : edits };
}

function planting(mistakes: readonly Mistake[]): Plugin {
  const byFile = new Map<string, { edits: Edit[]; names: Set<string> }>();
  const names = mistakes.map(nameOf);
  for (const mistake of mistakes) {
    const { name, edits } = resolved(mistake);
    for (const edit of edits) {
      const path = join(ROOT, edit.file);
      const entry = byFile.get(path) ?? { edits: [], names: new Set() };
      entry.edits.push(edit);
      entry.names.add(name);
      byFile.set(path, entry);
    }
  }
  return {
    name: 'planted-mistakes',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const entry = byFile.get(path);
        if (entry === undefined) return undefined;
        const text = applied(readFileSync(path, 'utf8'), entry.edits, names.join(' and '));
        const marks = [...entry.names]
          .map((name) => name.replace(UNGUARDED, ''))
          .map((name) => `(globalThis as Record<string, unknown>)[${JSON.stringify(marker(name))}] = true;`);
        return { contents: `${text}\n${marks.join('\n')}\n`, loader: 'ts' };
      });
    },
  };
}

/** What can be built with a mistake in it. */
const SUBJECTS = {
  simulator: { file: 'test/sim/mutants/subject.ts' },
  endpoint: { file: 'tools/wire-suite/endpoint/driver.ts' },
} as const;

interface Exports {
  simulator: typeof import('./subject.ts');
  endpoint: typeof import('../../../tools/wire-suite/endpoint/driver.ts');
}

/** Bundles a subject with these mistakes (none: as it is) into that file. */
export async function buildWith(subject: keyof Exports, mistakes: readonly Mistake[], outfile: string): Promise<void> {
  await build({
    entryPoints: [join(ROOT, SUBJECTS[subject].file)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
    // The code asks for its own place, which a CommonJS build has in another variable.
    logOverride: { 'empty-import-meta': 'silent' },
    plugins: [planting(mistakes)],
  });
}

/** A folder for builds, below .cache so that packages and the native part are still found. */
export function buildFolder(): { folder: string; dispose: () => void } {
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.cache', 'mutants-'));
  return { folder, dispose: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Builds it and loads it into this process. */
export async function loadWith<S extends keyof Exports>(subject: S, mistakes: readonly Mistake[], folder: string): Promise<Exports[S]> {
  const names = mistakes.map(nameOf);
  const outfile = join(folder, `${subject}-${names.length === 0 ? 'sound' : names.join('+').replaceAll(' ', '-')}.cjs`);
  await buildWith(subject, mistakes, outfile);
  return createRequire(outfile)(outfile) as Exports[S];
}
