// MPICH's own tests as ranks of ours. The sources are Debian's source package `mpich`, fetched with a private deb-src line that touches nothing of the
// machine's own lists; nothing of it is kept in this repository. Each entry passes, or is in the list of those that do not apply, with its reason.
//
//   node test/wasm/mpich.mjs [--share 0.1] [--seed 1] [--folders pt2pt,coll] [--only REGEXP] [--mca NAME=VALUE]
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { notApplicable } from './mpich-not.mjs';
import { execute, FOLDERS, pool, prepare, readSuite, runEntry } from './mpich-suite.mjs';

const CACHE = fileURLToPath(new URL('../../.cache/mpich', import.meta.url));
const { values: options } = parseArgs({
  options: {
    share: { type: 'string', default: '0.1' },
    seed: { type: 'string', default: '1' },
    folders: { type: 'string', default: FOLDERS.join(',') },
    only: { type: 'string', default: '' },
    width: { type: 'string', default: '2' },
    mca: { type: 'string', multiple: true, default: [] },
  },
});

/** Debian's lists, as this machine has them, with the sources in place of the packages. */
function sourceLists(folder) {
  const parts = '/etc/apt/sources.list.d';
  mkdirSync(folder, { recursive: true });
  const lists = existsSync('/etc/apt/sources.list') ? ['/etc/apt/sources.list'] : [];
  for (const name of existsSync(parts) ? readdirSync(parts) : []) lists.push(join(parts, name));
  lists.forEach((file, i) => {
    const text = readFileSync(file, 'utf8');
    if (!/debian/.test(text)) return;
    if (file.endsWith('.sources')) writeFileSync(join(folder, `${i}.sources`), text.replace(/^Types:.*$/gm, 'Types: deb-src'));
    else
      writeFileSync(
        join(folder, `${i}.list`),
        text
          .split('\n')
          .filter((line) => /^deb .*debian/.test(line))
          .map((line) => line.replace(/^deb /, 'deb-src '))
          .join('\n'),
      );
  });
}

/** The folder of the tests, unpacked; fetched if it is not there. */
async function sources() {
  mkdirSync(CACHE, { recursive: true });
  const unpacked = () => readdirSync(CACHE).find((name) => /^mpich-[\d.]+$/.test(name));
  if (unpacked() === undefined) {
    sourceLists(join(CACHE, 'apt/parts'));
    for (const folder of ['apt/lists/partial', 'apt/cache/archives/partial']) mkdirSync(join(CACHE, folder), { recursive: true });
    const settings = {
      'Dir::Etc::sourcelist': '/dev/null',
      'Dir::Etc::sourceparts': join(CACHE, 'apt/parts'),
      'Dir::State::lists': join(CACHE, 'apt/lists'),
      'Dir::Cache': join(CACHE, 'apt/cache'),
      'APT::Sandbox::User': 'root',
    };
    const own = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    for (const args of [['update'], ['source', '--download-only', '--only-source', 'mpich']]) {
      const { code, output } = await execute('apt-get', [...own, ...args], { cwd: CACHE, timeoutMs: 300_000 });
      if (code !== 0) return { why: `Debian's sources of MPICH could not be fetched: ${output.trim().split('\n').at(-1)}` };
    }
    const archive = readdirSync(CACHE).find((name) => /^mpich_.*\.orig\.tar\./.test(name));
    const folder = archive.replace(/^mpich_(.*)\.orig\..*$/, 'mpich-$1');
    const { code, output } = await execute('tar', ['xf', archive, `${folder}/test/mpi`], { cwd: CACHE });
    if (code !== 0) return { why: `${archive} could not be unpacked: ${output}` };
  }
  return { suite: join(CACHE, unpacked(), 'test/mpi') };
}

/** Whether the seed draws this entry. */
function isDrawn(id, seed, share) {
  let hash = 2166136261;
  for (const char of `${seed} ${id}`) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32 < share;
}

const { suite, why } = await sources();
if (suite === undefined) {
  console.log(`skipped: ${why}`);
  console.log('mpich: 0 passed, 0 failed, 1 skipped');
  process.exit(0);
}
const made = await prepare(suite, join(CACHE, 'build'));
const pattern = new RegExp(options.only);
const all = readSuite(suite, options.folders.split(',')).filter(({ id }) => pattern.test(id));
const applicable = all.filter((entry) => notApplicable(entry) === undefined);
const drawn = applicable.filter(({ id }) => isDrawn(id, options.seed, Number(options.share)));
const mca = options.mca.flatMap((pair) => ['--mca', ...pair.split('=')]);
let passed = 0;
let failed = 0;
await pool(drawn, Number(options.width), async (entry) => {
  const { verdict, output, ms } = await runEntry(made, entry, mca);
  if (verdict === 'passed') passed++;
  else failed++;
  if (verdict === 'passed') console.log(`passed ${entry.id}, ${entry.ranks} ranks, ${ms} ms`);
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
const left = applicable.length - drawn.length;
if (left > 0) console.log(`skipped: ${left} of ${applicable.length} entries are not in the sample of seed ${options.seed}`);
console.log(`mpich: ${passed} passed, ${failed} failed, ${left > 0 ? 1 : 0} skipped`);
process.exit(failed > 0 ? 1 : 0);
