// Programs of C and C++ as ranks of ours, built unedited from their authors' sources, which MULTIRAIL_C_SOURCES names: each job must pass its
// own check, and must say the same, to the digit, whether its rails are pulled or not; natively built by MPICH, where that is installed, too.
//
//   MULTIRAIL_C_SOURCES=folder node test/wasm/c-long.mjs [--only CoMD,HPCG]
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { KINDS, overTwoRails, railsLost } from './c-build.mjs';
import { buildProgram, lackOf, PROGRAMS } from './c-programs.mjs';
import { execute } from './mpich-suite.mjs';

const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const TIME_MS = 600_000;
/** Ranks pull one rail after the other at random, and put it back. */
const PULLS = 'random:seed=1,every=500ms,heal=200ms,kinds=silent+error';
const count = { passed: 0, failed: 0, skipped: 0 };

/** Runs a job in a folder of its own. Gives what it says, and what of it is to be the same each time. */
async function play(kind, top, job, name, more = []) {
  const folder = join(top, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const [command, args] = KINDS[kind].start(job.ranks, join(top, job.program), job.args(top), more);
  const beganMs = performance.now();
  const { code, output } = await execute(command, args, { cwd: folder, timeoutMs: TIME_MS });
  const seconds = (performance.now() - beganMs) / 1000;
  const results = job.results?.(output, folder);
  const isRight = code === 0 && job.isRight(output, folder) && results?.length !== 0;
  return { output, isRight, seconds, results };
}

/** Counts a run: it is to be right, and to have these results, where any are given. */
function judge(what, { output, isRight, seconds, results }, expected, problem) {
  const differs = expected?.findIndex((line, i) => line !== results[i]) ?? -1;
  const isSame = differs < 0 && (expected === undefined || expected.length === results.length);
  const isWell = isRight && isSame && problem === undefined;
  count[isWell ? 'passed' : 'failed']++;
  const same = expected === undefined ? '' : `, ${expected.length} results ${isSame ? 'equal to the digit' : 'DIFFER'}`;
  const said = isRight ? 'right' : 'WRONG';
  console.log(`${isWell ? 'ok' : 'NOT OK'}  ${what}: ${problem ?? said}${same}, ${seconds.toFixed(1)} s`);
  if (!isRight) console.log(output.slice(-2000));
  else if (!isSame) console.log(`  ${expected[differs]}\n  ${results[differs]}`);
}

async function playProgram(program, lacks) {
  const ours = await buildProgram('multirail', program);
  const isCompared = lacks === undefined && program.jobs.some(({ results }) => results !== undefined);
  const native = isCompared ? await buildProgram('mpich', program) : undefined;
  for (const [i, job] of program.jobs.entries()) {
    const title = `${program.name}, ${job.what}, ${job.ranks} ranks`;
    judge(title, await play('multirail', ours, job, `whole-${i}`));
    if (job.results === undefined) continue;
    // Sums of doubles are put together in another order in shared memory than by messages.
    const rails = await play('multirail', ours, job, `rails-${i}`, overTwoRails());
    judge(`${title}, two rails`, rails);
    const events = join(ours, 'events.jsonl');
    const pulled = await play('multirail', ours, job, `pulled-${i}`, [...overTwoRails(PULLS), '--events', events]);
    const lost = railsLost(events);
    judge(`${title}, ${lost} rails lost`, pulled, rails.results, lost > 0 ? undefined : 'no rail was lost, so this proves nothing');
    if (native === undefined) count.skipped++;
    else judge(`${title}, by MPICH`, await play('mpich', native, job, `native-${i}`), job.hasDigitsOfNative ? rails.results : undefined);
  }
}

const lacks = await KINDS.mpich.lacks();
if (lacks !== undefined) console.log(`skipped: the same natively: ${lacks}`);
const asked = options.only === '' ? PROGRAMS : PROGRAMS.filter(({ name }) => options.only.split(',').includes(name));
for (const program of asked) {
  const lack = lackOf(program);
  if (lack !== undefined) {
    console.log(`skipped: ${program.name}: ${lack}`);
    count.skipped += program.jobs.length;
    continue;
  }
  try {
    await playProgram(program, lacks);
  } catch (error) {
    console.log(`NOT OK  ${program.name}: ${error.message}`);
    count.failed++;
  }
}
console.log(`c-long: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exit(count.failed === 0 && asked.length > 0 ? 0 : 1);
