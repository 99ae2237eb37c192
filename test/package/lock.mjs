// Checks that package-lock.json names every package that some platform would install. `npm ci` of npm 11 refuses a lock file that leaves
// one out, and npm leaves out those that the registry did not have when the file was written: packages for a single platform, in a mirror
// that nobody ever asked for them.
//   node test/package/lock.mjs           says what is missing, and ends with 1
//   node test/package/lock.mjs --write   adds it: version and platform are in the lock file and in the package's name
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const LOCK = fileURLToPath(new URL('../../package-lock.json', import.meta.url));

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64', 'wasm32'];
const LIBRARIES = { gnu: 'glibc', gnueabihf: 'glibc', musl: 'musl', musleabihf: 'musl' };

/** What such packages say in their own package.json, read from the name: `@rollup/rollup-linux-arm64-musl`. */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const has = (known) => known.filter((word) => words.includes(word));
  const [os, cpu, libc] = [has(SYSTEMS), has(PROCESSORS), has(Object.keys(LIBRARIES)).map((word) => LIBRARIES[word])];
  return { cpu, os, libc: os[0] === 'linux' ? libc : [] };
}

/** The entries that are missing, by their places in the lock file. */
export function missingEntries(lock) {
  const missing = {};
  for (const [place, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      // Where Node looks for it from there: in the package's own folder, or in any above.
      const folders = place.split('/node_modules/').map((_, i, all) => all.slice(0, i + 1).join('/node_modules/'));
      const places = [...folders.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`];
      if (places.some((at) => lock.packages[at] !== undefined)) continue;
      if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`${name}: no entry, and ${version} is not one version`);
      const { cpu, os, libc } = platformOf(name);
      if (cpu.length === 0 && os.length === 0) throw new Error(`${name}: no entry, and its name says no platform`);
      missing[`node_modules/${name}`] = {
        version,
        cpu,
        ...(entry.dev ? { dev: true } : {}),
        ...(libc.length > 0 ? { libc } : {}),
        optional: true,
        os,
      };
    }
  }
  return missing;
}

function main() {
  const lock = JSON.parse(readFileSync(LOCK, 'utf8'));
  const missing = missingEntries(lock);
  const places = Object.keys(missing);
  if (places.length === 0) return;
  if (process.argv.includes('--write')) {
    const all = Object.entries({ ...lock.packages, ...missing });
    lock.packages = Object.fromEntries(all.sort(([a], [b]) => a.localeCompare(b, 'en')));
    writeFileSync(LOCK, `${JSON.stringify(lock, null, 2)}\n`);
    console.log(`added ${places.length} packages`);
    return;
  }
  console.log(`package-lock.json lacks ${places.length} packages (node test/package/lock.mjs --write adds them):`);
  for (const place of places) console.log(`  ${place}@${missing[place].version}`);
  process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
