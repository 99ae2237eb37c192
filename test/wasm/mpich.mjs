// MPICH's own tests as ranks of ours. The sources are Debian's source package `mpich`, of which nothing is kept in this
// repository. Each entry passes, or is in the list of those that do not apply, with its reason.
//
//   node test/wasm/mpich.mjs [--share 0.1] [--seed 1] [--folders pt2pt,coll] [--only REGEXP] [--patience 4] [--pulled] [--mca NAME=VALUE]
//
// Each entry has its time, four minutes at least; --patience: so many times as much, where others use the machine as well. With --pulled all goes
// over two rails of tcp, of which each rank pulls one after the other at random and puts it back; how many were lost is counted.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { overTwoRails, railsLost } from './c-build.mjs';
import { debianSource } from './debian-source.mjs';
import { notApplicable } from './mpich-not.mjs';
import { buildFolder, FOLDERS, pool, prepare, readSuite, runEntry } from './mpich-suite.mjs';

const CACHE = fileURLToPath(new URL('../../.cache/mpich', import.meta.url));
const { values: options } = parseArgs({
  options: {
    share: { type: 'string', default: '0.1' },
    seed: { type: 'string', default: '1' },
    folders: { type: 'string', default: FOLDERS.join(',') },
    only: { type: 'string', default: '' },
    patience: { type: 'string', default: '1' },
    width: { type: 'string', default: '2' },
    pulled: { type: 'boolean', default: false },
    mca: { type: 'string', multiple: true, default: [] },
  },
});

/** Entries of which a sample plays only those of so many ranks: 5 take one minute, and 10 three, on two processors and alone. */
const RANKS_MAX_IN_SAMPLE = { 'coll/nonblocking3': 4 };

/** Whether the seed draws this entry. */
function isDrawn({ id, ranks }, seed, share) {
  if (share < 1 && ranks > (RANKS_MAX_IN_SAMPLE[id] ?? Number.POSITIVE_INFINITY)) return false;
  let hash = 2166136261;
  for (const char of `${seed} ${id}`) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32 < share;
}

const { folder: suite, why } = await debianSource(CACHE, 'mpich', 'test/mpi');
if (suite === undefined) {
  console.log(`skipped: ${why}`);
  console.log('mpich: 0 passed, 0 failed, 1 skipped');
  process.exit(0);
}
const made = await prepare(suite, buildFolder(CACHE));
const pattern = new RegExp(options.only);
const all = readSuite(suite, options.folders.split(',')).filter(({ id }) => pattern.test(id));
const applicable = all.filter((entry) => notApplicable(entry) === undefined);
const drawn = applicable.filter((entry) => isDrawn(entry, options.seed, Number(options.share)));
const asked = options.mca.flatMap((pair) => ['--mca', pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]);
const pulls = `random:seed=${options.seed},every=1s,heal=200ms,kinds=silent+error`;
const mca = options.pulled ? [...overTwoRails(pulls), ...asked] : asked;

let passed = 0;
let failed = 0;
let lost = 0;
let entriesHit = 0;
await pool(drawn, Number(options.width), async (entry, number) => {
  const eventsFile = join(made.build, `events-${number}.jsonl`);
  const events = options.pulled ? ['--events', eventsFile] : [];
  const timeoutMs = entry.timeoutMs * Number(options.patience);
  const { verdict, output, ms } = await runEntry(made, { ...entry, timeoutMs }, [...mca, ...events]);
  const hits = options.pulled && verdict !== 'compile' ? railsLost(eventsFile) : 0;
  rmSync(eventsFile, { force: true });
  lost += hits;
  if (hits > 0) entriesHit++;
  if (verdict === 'passed') passed++;
  else failed++;
  if (verdict === 'passed')
    console.log(`passed ${entry.id}, ${entry.ranks} ranks, ${ms} ms${options.pulled ? `, ${hits} rails lost` : ''}`);
  else
    console.log(
      ` FAILED ${entry.id}, ${entry.ranks} ranks: ${verdict}\n${output
        .split('\n')
        .slice(0, 20)
        .map((line) => `      ${line}`)
        .join('\n')}`,
    );
});
const reasons = new Map();
for (const entry of all) reasons.set(notApplicable(entry), (reasons.get(notApplicable(entry)) ?? 0) + 1);
for (const [reason, number] of reasons) if (reason !== undefined) console.log(`does not apply: ${number} × ${reason}`);
if (options.pulled) {
  console.log(`pulled: ${lost} ends of rails lost in ${entriesHit} of ${drawn.length} entries`);
  if (lost === 0) {
    console.log(' FAILED no rail was lost: this proves nothing');
    failed++;
  }
}
const left = applicable.length - drawn.length;
if (left > 0) console.log(`skipped: ${left} of ${applicable.length} entries are not in the sample of seed ${options.seed}`);
console.log(`mpich: ${passed} passed, ${failed} failed, ${left > 0 ? 1 : 0} skipped`);
process.exit(failed > 0 ? 1 : 0);
