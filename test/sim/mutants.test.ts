// Planted mistakes: the simulator must find each within a stated number of seeds, or by a named scenario; the code without it passes the
// same. What is planted is in its build, and in nothing that is shipped.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROFILES } from '../../src/sim/campaign.ts';
import { documented } from './mutants/document.ts';
import { buildFolder, loadWith, marker, mutantMarkers, ROOT } from './mutants/plant.ts';
import { SCENARIOS } from './mutants/subject.ts';
import { PLANTED } from './mutants/table.ts';

let builds: ReturnType<typeof buildFolder>;
beforeAll(() => {
  builds = buildFolder();
});
afterAll(() => builds.dispose());

const CASES = PLANTED.flatMap(({ name, found }) =>
  found.map((by) => ({ name, by, by_: 'profile' in by ? `seeds ${by.from ?? 0} to ${by.within - 1} of ${by.profile}` : by.scenario })),
);

describe('mutants', () => {
  it.each(CASES)('$name is found by $by_, and without it the same passes', async ({ name, by }) => {
    const broken = await loadWith('simulator', [name], builds.folder);
    if ('scenario' in by) {
      const sound = SCENARIOS.find((each) => each.name === by.scenario);
      const same = broken.SCENARIOS.find((each) => each.name === by.scenario);
      if (sound === undefined || same === undefined) throw new Error(`no scenario is called ${by.scenario}`);
      sound.run({});
      expect(() => same.run({})).toThrow(/oracle|ERR_INTERNAL/);
      return;
    }
    const { profile, from = 0, within } = by;
    let found = -1;
    for (let seed = from; seed < within && found < 0; seed++) {
      try {
        broken.PROFILES[profile](seed, {});
      } catch {
        found = seed;
        PROFILES[profile](seed, {});
      }
    }
    console.log(`${name}: found at seed ${found} of ${profile}`);
    expect(found).toBeGreaterThanOrEqual(0);
  });

  it('each build has the marker of its mistake and no other', async () => {
    await loadWith('simulator', [], builds.folder);
    for (const names of [[], ...PLANTED.map(({ name }) => [name])]) {
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

  it('the table in docs/SIMULATION.md has exactly these', () => {
    expect(documented().map(({ name, sentence }) => [name, sentence])).toEqual(PLANTED.map(({ name, sentence }) => [name, sentence]));
  });
});
