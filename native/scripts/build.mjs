// Builds the native part, and BLAS for hpl, node-rdma, the lab's forwarder and PMIx beside it, from source, by node-gyp, for the Node that runs this.
//   node native/scripts/build.mjs                 builds all afresh; ends with 1 when it cannot
//   node native/scripts/build.mjs addon|blas|rdma|impair|pmix   only that one
//   node native/scripts/build.mjs --if-possible   as a step of `npm install` in the repository: builds what changed, or says why
//                                                 not and ends with 0, since everything but the native path works without
// node-rdma needs the headers of libibverbs (Debian: libibverbs-dev; RDMA_INCLUDE names another folder than /usr/include).
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { headersFolder, verbsHeadersMissing } from './headers.mjs';
import { NATIVE, PARTS } from './parts.mjs';

const ROOT = dirname(NATIVE);
const require = createRequire(import.meta.url);
const ifPossible = process.argv.includes('--if-possible');

const works = (command, ...args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

function nodeGyp() {
  try {
    return require.resolve('node-gyp/bin/node-gyp.js');
  } catch {
    // npm carries one, and names it to the scripts that it runs.
    return process.env.npm_config_node_gyp;
  }
}

/** Why that cannot be built here, or undefined. */
function missing({ name, folder, needsVerbs }) {
  if (process.platform !== 'linux') return `${name} is for Linux, this is ${process.platform}`;
  if (!existsSync(folder)) return 'its sources are not here';
  const noVerbs = needsVerbs ? verbsHeadersMissing() : undefined;
  if (noVerbs !== undefined) return noVerbs;
  if (ifPossible && process.env.MULTIRAIL_NATIVE === '0') return 'switched off by MULTIRAIL_NATIVE=0';
  const compiler = (process.env.CXX ?? 'g++').split(' ')[0];
  if (!works(compiler, '--version')) return `no C++ compiler (${compiler})`;
  if (!works('make', '--version')) return 'no make';
  if (!works(process.env.PYTHON ?? 'python3', '--version')) return 'no python3, which node-gyp needs';
  if (nodeGyp() === undefined) return 'node-gyp is not installed';
  return undefined;
}

function build(target) {
  const why = missing(target);
  if (why !== undefined) return why;
  const headers = headersFolder(join(ROOT, '.cache'));
  if (headers.missing !== undefined) return headers.missing;
  const steps = ifPossible ? ['configure', 'build'] : ['rebuild'];
  console.log(`${target.name}: ${ifPossible ? 'building' : 'rebuilding'} with the headers in ${headers.source}`);
  for (const step of steps) {
    const args = [nodeGyp(), '-C', target.folder, step, '--release', '--loglevel=warn', `--nodedir=${headers.folder}`];
    const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0) return `node-gyp ${step} failed`;
  }
  if (!existsSync(join(target.folder, 'build', 'Release', target.binary))) return 'node-gyp made no binary';
  return undefined;
}

const asked = process.argv.slice(2).filter((word) => !word.startsWith('-'));
for (const target of PARTS) {
  if (asked.length > 0 && !asked.includes(target.key)) continue;
  const why = build(target);
  if (why === undefined) console.log(`${target.name}: built`);
  else if (ifPossible)
    console.log(
      `${target.name}: not built: ${why}. A prebuilt binary is used where there is one; without any, multirail runs on without it.`,
    );
  else {
    console.error(`${target.name}: not built: ${why}`);
    // Few machines have the headers of libibverbs: without being asked for, node-rdma is no reason to fail.
    if (!target.needsVerbs || asked.includes(target.key)) process.exitCode = 1;
  }
}
