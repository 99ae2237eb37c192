// The package as others get it, with one package manager: the npm of this Node. It is the part `package` of `npm test`; matrix.mjs does the
// same with all package managers.
//   MULTIRAIL_PACKAGE_KEEP=1   leaves the project that it makes, and says where
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import {
  barePath,
  checkInstalled,
  checkPlanted,
  checkRdmaPackage,
  checkSize,
  checkTarball,
  checkTypes,
  ownNpm,
  pack,
  ROOT,
  run,
  scratch,
  strangersEnv,
  Tally,
} from './checks.mjs';
import { checkFace } from './face.mjs';
import { checkGuide } from './guide.mjs';

// What plants mistakes takes the working directory for the checkout.
process.chdir(ROOT);
const tally = new Tally('package');
const folder = scratch();
const inside = (name) => {
  mkdirSync(join(folder, name));
  return join(folder, name);
};

let packed;
tally.check('npm pack', () => {
  packed = pack(inside('tarball'));
});
// After that, which installs the headers of libibverbs where they may be installed.
checkRdmaPackage(tally, inside('rdma'));
if (packed !== undefined) {
  const unpacked = inside('unpacked');
  checkTarball(tally, packed, unpacked);
  await checkPlanted(tally, unpacked, folder);
  const project = inside('project');
  writeFileSync(join(project, 'package.json'), '{ "name": "application", "version": "1.0.0", "private": true }\n');
  const env = strangersEnv(barePath(join(folder, 'bin'), process.execPath), inside('home'));
  const node = [process.execPath];
  const npm = ownNpm();
  const isInstalled = tally.check('npm install of the tarball, with no compiler', () => {
    // Where npm is a command of its own, it is found by its place, since it is not among the commands of the bare PATH.
    const path = npm.length === 1 ? { ...env, PATH: `${env.PATH}:${dirname(run('sh', ['-c', 'command -v npm']).trim())}` } : env;
    run(npm[0], [...npm.slice(1), 'install', '--no-audit', '--no-fund', packed.tarball], { cwd: project, env: path });
  });
  if (isInstalled) {
    checkSize(tally, project);
    const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
    const binaries = join(unpacked, 'package/native/addon/prebuilds');
    let hasBinary = false;
    try {
      hasBinary = readdirSync(join(binaries, `linux-${process.arch}`)).includes(`multirail-native.${libc}.node`);
    } catch {
      // There is no folder for this processor.
    }
    const multirail = [...node, join(project, 'node_modules/multirail/dist/cli.js')];
    const start = checkInstalled(tally, { project, multirail, env, hasBinary });
    checkTypes(tally, { project, start, node });
    checkGuide(tally, packed.tarball, inside('guide'));
    await checkFace(tally, join(project, 'node_modules/multirail'));
  }
}
tally.end();
