// Builds the native part from source, by node-gyp, for the Node that runs this.
//   node native/scripts/build.mjs                 builds afresh; ends with 1 when it cannot
//   node native/scripts/build.mjs --if-possible   as a step of `npm install` in the repository: builds what changed, or says why
//                                                 not and ends with 0, since everything but the native path works without
// May import: Node, headers.mjs.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headersFolder } from './headers.mjs';

const NATIVE = dirname(dirname(fileURLToPath(import.meta.url)));
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

/** Why the native part cannot be built here, or undefined. */
function missing() {
  if (process.platform !== 'linux') return `the native part is for Linux, this is ${process.platform}`;
  if (ifPossible && process.env.MULTIRAIL_NATIVE === '0') return 'switched off by MULTIRAIL_NATIVE=0';
  const compiler = (process.env.CXX ?? 'g++').split(' ')[0];
  if (!works(compiler, '--version')) return `no C++ compiler (${compiler})`;
  if (!works('make', '--version')) return 'no make';
  if (!works(process.env.PYTHON ?? 'python3', '--version')) return 'no python3, which node-gyp needs';
  if (nodeGyp() === undefined) return 'node-gyp is not installed';
  return undefined;
}

function build() {
  const why = missing();
  if (why !== undefined) return why;
  const headers = headersFolder(join(ROOT, '.cache'));
  if (headers.missing !== undefined) return headers.missing;
  const steps = ifPossible ? ['configure', 'build'] : ['rebuild'];
  console.log(`native part: ${ifPossible ? 'building' : 'rebuilding'} with the headers in ${headers.source}`);
  for (const step of steps) {
    const args = [nodeGyp(), '-C', NATIVE, step, '--release', '--loglevel=warn', `--nodedir=${headers.folder}`];
    const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    if (status !== 0) return `node-gyp ${step} failed`;
  }
  if (!existsSync(join(NATIVE, 'build', 'Release', 'multirail.node'))) return 'node-gyp made no binary';
  return undefined;
}

const why = build();
if (why === undefined) {
  console.log('native part: built');
} else if (ifPossible) {
  console.log(`native part: not built: ${why}. A prebuilt binary is used where there is one; without any, multirail runs on plain Node.`);
} else {
  console.error(`native part: not built: ${why}`);
  process.exitCode = 1;
}
