// The package as others get it, with every package manager on every Node that is supported, and `npm ci` of a clone with every npm, without
// a compiler on the PATH. It takes a quarter of an hour. The table at its end says what was tried.
//   node test/package/matrix.mjs              everything
//   node test/package/matrix.mjs yarn 22      only rows whose name contains one of these words
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { barePath, checkInstalled, checkTypes, measure, ownNpm, pack, ROOT, run, scratch, strangersEnv, Tally } from './checks.mjs';

const NODES = ['20.19', '22', '24'];
const CACHE = join(ROOT, '.cache/package-matrix');
const only = process.argv.slice(2);
const folder = scratch();
const inside = (name) => {
  mkdirSync(join(folder, name), { recursive: true });
  return join(folder, name);
};
const npm = ownNpm();

/** Packages that are tools here, kept in .cache: the npm that belongs to this Node fetches them. */
function tool(name, ...packages) {
  const prefix = join(CACHE, name);
  if (!existsSync(join(prefix, 'complete'))) {
    mkdirSync(prefix, { recursive: true });
    run(npm[0], [...npm.slice(1), 'install', '--prefix', prefix, '--no-save', '--no-audit', '--no-fund', ...packages]);
    writeFileSync(join(prefix, 'complete'), '');
  }
  return join(prefix, 'node_modules');
}

function nodeOf(version) {
  const modules = tool(`node-${version}`, `node-linux-${process.arch}@${version}`);
  const binary = join(modules, `node-linux-${process.arch}/bin/node`);
  const said = run(binary, ['-p', 'process.version']).trim();
  if (!said.startsWith(`v${version}`)) throw new Error(`node@${version} is ${said}`);
  return { version: said, binary };
}

const npmOf = (major) => (node) => [node, join(tool(`npm-${major}`, `npm@${major}`), 'npm/bin/npm-cli.js')];
const pnpm = (node) => [node, join(tool('pnpm', 'pnpm@10'), 'pnpm/bin/pnpm.cjs')];
const yarn1 = (node) => [node, join(tool('yarn1', 'yarn@1'), 'yarn/bin/yarn.js')];
const yarn4 = (node) => [node, join(tool('yarn4', '@yarnpkg/cli-dist@4'), '@yarnpkg/cli-dist/bin/yarn.js')];
const cliOf = (project) => join(project, 'node_modules/multirail/dist/cli.js');

/** Each manager: its command, how it adds a tarball, and what else its project needs. */
const MANAGERS = [
  { name: 'npm 10', command: npmOf(10), add: (tarball) => ['install', '--no-audit', '--no-fund', tarball], clone: true },
  { name: 'npm 11', command: npmOf(11), add: (tarball) => ['install', '--no-audit', '--no-fund', tarball], clone: true },
  {
    name: 'npm 12',
    command: npmOf(12),
    add: (tarball) => ['install', '--no-audit', '--no-fund', tarball],
    clone: true,
    nodes: ['22', '24'],
  },
  { name: 'pnpm 10', command: pnpm, add: (tarball) => ['add', tarball] },
  { name: 'yarn 1', command: yarn1, add: (tarball) => ['add', tarball] },
  {
    name: 'yarn 4, node_modules',
    command: yarn4,
    add: (tarball) => ['add', `multirail@${tarball}`],
    files: { 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: node-modules\nenableTelemetry: false\n' },
  },
  {
    name: 'yarn 4, Plug’n’Play',
    command: yarn4,
    add: (tarball) => ['add', `multirail@${tarball}`],
    files: { 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: pnp\nenableTelemetry: false\n' },
    isPnp: true,
  },
];

const tally = new Tally('matrix');
const rows = [];

function row(name, body) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) return;
  console.log(name);
  const before = { ...tally };
  const startedMs = Date.now();
  const notes = {};
  tally.check('is there', () => body(notes));
  const { passed, failed, skipped } = tally;
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(0);
  rows.push({
    what: name,
    passed: passed - before.passed,
    failed: failed - before.failed,
    skipped: skipped - before.skipped,
    seconds,
    ...notes,
  });
}

const { tarball } = pack(inside('tarball'));
for (const [i, wanted] of NODES.entries()) {
  for (const manager of MANAGERS) {
    if (manager.nodes !== undefined && !manager.nodes.includes(wanted)) continue;
    const label = `${manager.name} on Node ${wanted}`;
    const slug = label.replace(/\W+/g, '-');
    let node;
    const prepare = () => {
      node ??= nodeOf(wanted);
      return strangersEnv(
        barePath(join(inside(slug), `bin-${readdirSync(join(folder, slug)).length}`), node.binary),
        inside(`${slug}/home`),
      );
    };
    row(label, (notes) => {
      const env = prepare();
      const project = inside(`${slug}/project`);
      const command = manager.command(node.binary);
      writeFileSync(join(project, 'package.json'), '{ "name": "application", "version": "1.0.0", "private": true }\n');
      for (const [file, text] of Object.entries(manager.files ?? {})) writeFileSync(join(project, file), text);
      run(command[0], [...command.slice(1), ...manager.add(tarball)], { cwd: project, env });
      const multirail = manager.isPnp ? [...command, 'run', 'multirail'] : [node.binary, cliOf(project)];
      const start = checkInstalled(tally, { project, multirail, env });
      if (!manager.isPnp && i === 0 && manager.name !== 'pnpm 10') checkTypes(tally, { project, start, node: [node.binary] });
      notes.node = node.version;
      notes.manager = run(command[0], [...command.slice(1), '--version'], { cwd: project, env }).trim();
      if (!manager.isPnp) {
        const { bytes, packages } = measure(project);
        notes.installed = `${packages} packages, ${(bytes / 1e6).toFixed(1)} MB`;
      }
    });
    // Each npm once on the Node that it is at home on, and one of them on every Node.
    if (manager.clone && (i === 1 || manager.name === 'npm 11')) {
      row(`npm ci of a clone, ${label}`, (notes) => {
        const env = prepare();
        const clone = join(folder, slug, 'clone');
        run('git', ['clone', '-q', ROOT, clone]);
        const command = manager.command(node.binary);
        run(command[0], [...command.slice(1), 'ci', '--no-audit', '--no-fund'], { cwd: clone, env, timeout: 600_000 });
        const said = run(node.binary, ['dist/cli.js', 'info'], { cwd: clone, env });
        if (!/^Native part +/m.test(said)) throw new Error(said);
        notes.node = node.version;
        notes.manager = run(command[0], [...command.slice(1), '--version'], { cwd: clone, env }).trim();
      });
    }
  }
}
console.table(rows);
tally.end();
