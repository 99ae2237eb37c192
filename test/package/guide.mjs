// A stranger's test: does what docs/guide/first-steps.md, recipes.md and when-processes-die.md say, in an empty folder outside the checkout, and nothing else.
//   node test/package/guide.mjs      packs a tarball and uses it; run.mjs does this with the tarball that it has packed
// The blocks of a page are used in order: one in `js` is written to the file that the text before it names, every line of one in `sh` is
// run, and one in `console` is run line by line after its `$`, with the expected output below. There `…` stands for any text.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { ROOT, scratch, strangersEnv, Tally } from './checks.mjs';

/** The one command that is not run: its work is done, since this test begins with the tarball. */
const MAKES_TARBALL = '(cd multirail && npm ci && npm pack)';

/** Blocks of a page, with the name of the file that the text before each names. */
function blocksOf(page) {
  const text = readFileSync(join(ROOT, 'docs/guide', page), 'utf8');
  return [...text.matchAll(/([^\n]*)\n\n```(\w+)\n([\s\S]*?)\n```/g)].map(([, before, language, body]) => ({
    file: /\bas `([\w.-]+\.mjs)`:$/.exec(before)?.[1],
    language,
    lines: body.split('\n'),
    body,
  }));
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Does one page in `folder`. `cd` lasts until the end of the page. */
function follow(tally, page, folder, env) {
  let cwd = folder;
  let commands = 0;
  const runs = (line) => {
    const entered = /^cd (\S+)$/.exec(line);
    if (entered !== null) {
      cwd = join(cwd, entered[1]);
      return '';
    }
    if (line === MAKES_TARBALL) return '';
    commands++;
    const done = spawnSync('bash', ['-c', line], { cwd, env, encoding: 'utf8', timeout: 120_000 });
    const said = `${done.stdout}${done.stderr}`;
    if (done.status !== 0) throw new Error(`${line}: exit code ${done.status}${done.error ? `, ${done.error.message}` : ''}\n${said}`);
    return said;
  };
  for (const { file, language, lines, body } of blocksOf(page)) {
    if (language === 'js' && file !== undefined) writeFileSync(join(cwd, file), `${body}\n`);
    if (language === 'sh') tally.check(`${page}: ${lines[0]} …`, () => lines.forEach(runs));
    if (language !== 'console') continue;
    tally.check(`${page}: ${lines[0]}`, () => {
      const said = runs(lines[0].slice(2)).split('\n');
      for (const wanted of lines.slice(1)) {
        const pattern = new RegExp(`^${wanted.split('…').map(escaped).join('.*')}$`);
        if (!said.some((line) => pattern.test(line))) throw new Error(`"${wanted}" is not among what came out:\n${said.join('\n')}`);
      }
    });
  }
  return { cwd, commands };
}

/** Follows the guide from an empty folder. */
export function checkGuide(tally, tarball, folder) {
  const checkout = join(folder, 'multirail');
  mkdirSync(checkout);
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  copyFileSync(tarball, join(checkout, `multirail-${version}.tgz`));
  const env = strangersEnv(process.env.PATH, folder);
  const { cwd, commands } = follow(tally, 'first-steps.md', folder, env);
  const more = follow(tally, 'recipes.md', cwd, env).commands;
  const deaths = follow(tally, 'when-processes-die.md', cwd, env).commands;
  tally.check(`${commands + more + deaths} commands of the guide were run`, () => {
    if (commands < 8 || more < 4 || deaths < 5)
      throw new Error(
        `${commands} of first-steps.md, ${more} of recipes.md and ${deaths} of when-processes-die.md: the pages are not read as they are meant`,
      );
  });
}

if (process.argv[1] !== undefined && basename(process.argv[1]) === 'guide.mjs') {
  const { pack } = await import('./checks.mjs');
  process.chdir(ROOT);
  const tally = new Tally('guide');
  const folder = scratch();
  mkdirSync(join(folder, 'tarball'));
  checkGuide(tally, pack(join(folder, 'tarball')).tarball, folder);
  tally.end();
}
