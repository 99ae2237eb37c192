// Whole jobs that die: all ranks of examples/ft-heat.mjs are killed in one moment that a seed chooses, and the same job is started again. It must
// go on from its newest save on disk, and end with the plate of an undisturbed run. Under starters other than `multirail run`, which
// ft-saves.test.ts has. After a build:
//   node test/system/ft-whole.mjs [--starter srun|mpirun|env] [--jobs 5] [--seed N]
// For srun: sudo test/launchers/slurm.sh node test/system/ft-whole.mjs --starter srun
// Exit codes: 0 all is well, 1 a job failed.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { playKilled } from '../support/killed-job.mjs';

const HEAT = fileURLToPath(new URL('../../examples/ft-heat.mjs', import.meta.url));
const { values } = parseArgs({
  options: {
    starter: { type: 'string', default: 'env' },
    jobs: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

/** Why the second start is not well; undefined: it is. */
function judge({ stdout, stderr, hung }) {
  if (hung) return 'it hung';
  if (stderr.includes('the undisturbed plate has')) return 'the plate is another one than the undisturbed one';
  const line = /sha256 [0-9a-f]{64}: recovered from 0 failures .*/.exec(stdout)?.[0];
  if (line === undefined) return 'it printed no result';
  return / resumed from step \d+ on disk/.test(line) ? undefined : `it has not gone on from the disk: ${line}`;
}

/** A save is complete. */
const hasSave = (folder) => readdirSync(folder, { recursive: true }).some((name) => name.endsWith('COMMIT.json'));

let failed = 0;
for (let job = 0; job < Number(values.jobs); job++) {
  const seed = Number(values.seed) + job;
  const folder = mkdtempSync(join(tmpdir(), 'multirail-whole-'));
  const play = (killsMax) =>
    playKilled({
      starter: values.starter,
      ranks: 4,
      spares: 0,
      mca: { ft_job: 'plate' },
      program: [HEAT, '--seconds', '4', '--steps', '100', '--every', '5', '--verbose', '--folder', folder],
      seed,
      mtbfMs: 800,
      killsMax,
      killsAll: true,
      mayStrike: () => hasSave(folder),
      limitMs: 60_000,
    });
  try {
    const died = await play(1);
    const again = await play(0);
    const why = died.kills === 4 ? judge(again) : `${died.kills} of 4 ranks were killed`;
    if (why !== undefined) {
      failed++;
      console.error(`${died.stderr}\n${again.stdout}\n${again.stderr}`);
    }
    const step = /resumed from step (\d+)/.exec(again.stdout)?.[1];
    console.log(`${values.starter}, seed ${seed}: ${why ?? `4 ranks killed at once, resumed from step ${step}, the plate is right`}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
console.log(`${Number(values.jobs) - failed} jobs are well, ${failed} are not`);
process.exitCode = failed > 0 ? 1 : 0;
