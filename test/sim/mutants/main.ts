// `npm run sim:mutants`: plants each mistake, searches for it from seed 0 of the profile that should find it (or by the scenario), prints
// the result, and writes the table in docs/internals/SIMULATION.md. With `--only NAME,NAME` it plants those alone, with `--profile NAME` it
// searches by that profile instead; the document then stays as it is. Exit codes: 0 each was found, 1 one was not, 2 the command line makes
// no sense.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Profile, PROFILES as SOUND } from '../../../tools/sim/campaign.ts';
import { document, type Row } from './document.ts';
import { buildFolder, loadWith, planted, UNGUARDED } from './plant.ts';
import { type FoundBy, PLANTED } from './table.ts';

const SEEDS_MAX = 20_000;
const LIMIT_MS = 300_000;
/** A mistake may keep a run from ever ending: its process is stopped after so long by the clock. */
const STOP_MS = 1_800_000;

interface Outcome {
  found: boolean;
  seeds: number;
  seconds: number;
  how: string;
}

function passes(run: () => void): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}

async function look(name: string, by: FoundBy): Promise<Outcome> {
  const { folder, dispose } = buildFolder();
  try {
    const { PROFILES, SCENARIOS } = await loadWith('simulator', [planted(name).guard === undefined ? name : name + UNGUARDED], folder);
    // Time of the processor: the machine may be busy with other things.
    const spentMs = (): number => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000 - startedMs;
    };
    let startedMs = 0;
    startedMs = spentMs();
    const outcome = (found: boolean, seeds: number, how: string): Outcome => ({
      found,
      seeds,
      seconds: spentMs() / 1000,
      how,
    });
    if ('scenario' in by) {
      const scenario = SCENARIOS.find((each) => each.name === by.scenario);
      if (scenario === undefined) throw new Error(`no scenario is called ${by.scenario}`);
      try {
        scenario.run({});
      } catch (error) {
        return outcome(true, 0, String(error));
      }
      return outcome(false, 0, '');
    }
    for (let seed = 0; seed < SEEDS_MAX; seed++) {
      // What a world has promised itself keeps it in memory until the event loop has had a turn.
      if (seed % 50 === 49) await new Promise((resolve) => setImmediate(resolve));
      if (spentMs() > LIMIT_MS) return outcome(false, seed, '');
      try {
        PROFILES[by.profile](seed, {});
      } catch (error) {
        if (passes(() => SOUND[by.profile](seed, {}))) return outcome(true, seed + 1, String(error));
        console.log(`seed ${seed} of ${by.profile} fails without any mistake, too, and says nothing of ${name}`);
      }
    }
    return outcome(false, SEEDS_MAX, '');
  } finally {
    dispose();
  }
}

/** In a process of its own, which is ended when it does not end. */
function lookApart(name: string, profile: string | undefined): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ['--look', name, ...(profile === undefined ? [] : ['--profile', profile])]);
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      resolve({ found: true, seeds: Number.NaN, seconds: STOP_MS / 1000, how: 'a run that does not end' });
    }, STOP_MS);
    child.on('message', (outcome: Outcome) => {
      clearTimeout(timer);
      resolve(outcome);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      clearTimeout(timer);
      if (code !== 0) reject(new Error(`${name}: the process that looked for it ended with code ${code}`));
    });
  });
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: 'string' }, look: { type: 'string' }, workers: { type: 'string', default: '1' }, profile: { type: 'string' } },
  });
  if (values.look !== undefined) {
    const by = values.profile === undefined ? planted(values.look).found[0] : { profile: values.profile as Profile, within: SEEDS_MAX };
    process.send?.(await look(values.look, by));
    process.disconnect?.();
    return 0;
  }
  const all = values.only === undefined ? PLANTED : values.only.split(',').map(planted);
  const isWhole = values.only === undefined && values.profile === undefined;
  const rows = new Map<string, Row>();
  let missed = 0;
  const waiting = [...all];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { name, sentence, found, guard } = next;
      const by: FoundBy = values.profile === undefined ? found[0] : { profile: values.profile as Profile, within: SEEDS_MAX };
      const outcome = await lookApart(name, values.profile);
      const seeds = 'profile' in by ? (outcome.found ? String(outcome.seeds) : `not in ${outcome.seeds}`) : '';
      const row: Row = {
        name,
        sentence: guard === undefined ? sentence : `${sentence} Guarded: ${guard.because}`,
        seeds,
        by: `${'profile' in by ? by.profile : `scenario "${by.scenario}"`}${guard === undefined ? '' : ', without the guard'}`,
        seconds: outcome.seconds.toFixed(1),
      };
      rows.set(name, row);
      if (!outcome.found) missed++;
      console.log(`${outcome.found ? 'found ' : 'MISSED'} ${name} · ${row.sentence} · ${seeds} · ${row.by} · ${row.seconds} s`);
      if (!isWhole) console.log(`       ${outcome.how}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, work));
  if (isWhole && missed === 0) document(all.map(({ name }) => rows.get(name) as Row));
  console.log(`${all.length - missed} of ${all.length} planted mistakes were found`);
  return missed === 0 ? 0 : 1;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    console.error(String(error));
    process.exitCode = 2;
  },
);
