// Planted mistakes: the simulator must find each within a stated number of seeds, or by a named scenario; the code without it passes the
// same. Mistakes are planted in the simulator's build only, never in anything that is shipped.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROFILES } from '../../tools/sim/campaign.ts';
import { drawTests } from '../support/sample.ts';
import { documented } from './mutants/document.ts';
import { buildFolder, loadWith, marker, mutantMarkers, ROOT, UNGUARDED } from './mutants/plant.ts';
import { SCENARIOS } from './mutants/subject.ts';
import { type FoundBy, PLANTED } from './mutants/table.ts';

let builds: ReturnType<typeof buildFolder>;
beforeAll(() => {
  builds = buildFolder();
});
afterAll(() => builds.dispose());

type Build = Awaited<ReturnType<typeof loadWith<'simulator'>>>;

/** What is played: true when all of it passes. A seed that fails is named. */
function passes({ PROFILES, SCENARIOS }: Pick<Build, 'PROFILES' | 'SCENARIOS'>, by: FoundBy): number | true {
  if ('scenario' in by) {
    const scenario = SCENARIOS.find((each) => each.name === by.scenario);
    if (scenario === undefined) throw new Error(`no scenario is called ${by.scenario}`);
    try {
      scenario.run({});
    } catch {
      return 0;
    }
    return true;
  }
  const { profile, from = 0, within } = by;
  for (let seed = from; seed < within; seed++) {
    try {
      PROFILES[profile](seed, {});
    } catch {
      return seed;
    }
  }
  return true;
}

/** The same, as far as it was played. */
const upTo = (by: FoundBy, seed: number): FoundBy => ('scenario' in by ? by : { ...by, from: seed, within: seed + 1 });
const textOf = (by: FoundBy): string => ('scenario' in by ? by.scenario : `seeds ${by.from ?? 0} to ${by.within - 1} of ${by.profile}`);
const ALL = PLANTED.flatMap(({ name, found, guard }) => found.map((by) => ({ name, by, guard, what: textOf(by) })));

// A few seeds somewhere far behind find nothing any more when a change gives runs another course: those are played each time, since
// a sample would show it some day later. All of them: npm run sim:mutants.
const isNarrow = ({ by }: (typeof ALL)[number]): boolean => 'from' in by;
const DRAWN = drawTests(
  'planted mistakes in the simulator',
  ALL.filter((one) => !isNarrow(one)),
);
const CASES = [...DRAWN, ...ALL.filter(isNarrow)];

describe('mutants', () => {
  it.each(CASES.filter(({ guard }) => guard === undefined))(
    '$name is found by $what, and without it the same passes',
    async ({ name, by }) => {
      const found = passes(await loadWith('simulator', [name], builds.folder), by);
      console.log(`${name}: found at seed ${found} by ${textOf(by)}`);
      expect(found).not.toBe(true);
      expect(passes({ PROFILES, SCENARIOS }, upTo(by, Number(found)))).toBe(true);
    },
  );

  it.each(CASES.filter(({ guard }) => guard !== undefined))(
    '$name is made up for by its guard alone, and found by $what when that is gone too',
    async ({ name, by }) => {
      const found = passes(await loadWith('simulator', [name + UNGUARDED], builds.folder), by);
      console.log(`${name}: found at seed ${found} by ${textOf(by)}`);
      expect(found).not.toBe(true);
      expect(passes({ PROFILES, SCENARIOS }, upTo(by, Number(found)))).toBe(true);
      expect(passes(await loadWith('simulator', [name], builds.folder), upTo(by, Number(found)))).toBe(true);
    },
  );

  it('each build has the marker of its mistake and no other', async () => {
    await loadWith('simulator', [], builds.folder);
    for (const names of [[], ...[...new Set(CASES.map(({ name }) => name))].map((name) => [name])]) {
      const file = join(builds.folder, `simulator-${names.length === 0 ? 'sound' : names.join('+')}.cjs`);
      if (!existsSync(file)) await loadWith('simulator', names, builds.folder);
      const text = readFileSync(file, 'utf8');
      // A marker that is the beginning of another would be found in the other's build, too.
      const inIt = PLANTED.filter(({ name }) => text.includes(`${JSON.stringify(marker(name)).slice(0, -1)}"`)).map(({ name }) => name);
      expect(inIt).toEqual(names);
    }
  });

  it('none is in the package that was built', ({ skip }) => {
    const folder = join(ROOT, 'dist');
    if (!existsSync(folder)) skip('no package was built: npm run build');
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.length).toBeGreaterThan(3);
    for (const { parentPath, name } of files) {
      const text = readFileSync(join(parentPath, name), 'latin1');
      expect(
        mutantMarkers().filter((each) => text.includes(each)),
        name,
      ).toEqual([]);
    }
  });

  it('the table in docs/internals/SIMULATION.md has exactly these', () => {
    expect(documented().map(({ name, sentence }) => [name, sentence])).toEqual(
      PLANTED.map(({ name, sentence, guard }) => [name, guard === undefined ? sentence : `${sentence} Guarded: ${guard.because}`]),
    );
  });
});
