// Writes docs/reference/API.md from the docstrings of what src/index.ts exports. `--check`: only says whether it is as the docstrings are.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const root = new URL('..', import.meta.url).pathname;
const page = join(root, 'docs/reference/API.md');
const done = spawnSync('npx', ['typedoc', '--logLevel', 'Warn'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
if (done.status !== 0) {
  console.log(done.stdout);
  process.exit(1);
}
const text = readFileSync(join(root, '.cache/api/README.md'), 'utf8').replace(
  '# multirail\n',
  '# API reference\n\nWritten by `npm run docs` from the docstrings; change those. How it is meant to be used: [README](../../README.md).\n',
);
if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
  console.log('docs/reference/API.md is not what the docstrings say: npm run docs');
  process.exit(1);
}
