// Debian's source packages, fetched with a private deb-src line that touches nothing of the machine's own lists. Nothing of them is kept in this
// repository: they are unpacked in a folder below .cache.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute } from './mpich-suite.mjs';

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

/** Fetches the archive of a source package into `cache`, once. Gives its file, or why there is none. */
async function fetchArchive(cache, name) {
  const archive = () => readdirSync(cache).find((file) => file.startsWith(`${name}_`) && /\.orig\.tar\.[a-z0-9]+$/.test(file));
  mkdirSync(cache, { recursive: true });
  if (archive() === undefined) {
    sourceLists(join(cache, 'apt/parts'));
    for (const folder of ['apt/lists/partial', 'apt/cache/archives/partial']) mkdirSync(join(cache, folder), { recursive: true });
    const settings = {
      'Dir::Etc::sourcelist': '/dev/null',
      'Dir::Etc::sourceparts': join(cache, 'apt/parts'),
      'Dir::State::lists': join(cache, 'apt/lists'),
      'Dir::Cache': join(cache, 'apt/cache'),
      'APT::Sandbox::User': 'root',
    };
    const own = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
    for (const args of [['update'], ['source', '--download-only', '--tar-only', '--only-source', name]]) {
      const { code, output } = await execute('apt-get', [...own, ...args], { cwd: cache, timeoutMs: 300_000 });
      if (code !== 0) return { why: `Debian's sources of ${name} could not be fetched: ${output.trim().split('\n').at(-1)}` };
    }
  }
  return { file: archive() };
}

/**
 * A source package of Debian, as its authors published it (without Debian's patches), unpacked in `cache`; fetched if it is not there. `part`: the
 * folder in it that is needed. Gives the folder, or the reason why it cannot be had.
 */
export async function debianSource(cache, name, part = '') {
  const { file, why } = await fetchArchive(cache, name);
  if (file === undefined) return { why };
  const archive = join(cache, file);
  const listed = await execute('tar', ['tf', archive]);
  const top = listed.output.split('\n')[0].split('/')[0];
  const folder = join(cache, top, part);
  if (existsSync(folder)) return { folder };
  const { code, output } = await execute('tar', ['xf', archive, ...(part === '' ? [] : [`${top}/${part}`])], { cwd: cache });
  return code === 0 ? { folder } : { why: `${archive} could not be unpacked: ${output}` };
}
