// Runs the tests over real queue pairs: it brings the guest up once and runs in it the tests of node-rdma and the vitest project `vm`. It
// prints what it ran, what it could not run and why, and ends with the line "vm: N passed, N failed, N skipped".
//   node test/vm/run.mjs              everything
//   node test/vm/run.mjs FILE...      only these files of the project `vm`; also -t NAME, and other options of vitest
//   MULTIRAIL_VM_PULLS=50             that many pulls instead of 5 (test/vm/failover.test.ts)
//   MULTIRAIL_VM_CONNECTS=10000       that many connects instead of 150 (test/vm/leaks.test.ts)
//   MULTIRAIL_VM_FULL=1               the point-to-point suite again while rails break
// It needs dist, and the binaries of native/addon and native/rdma, and builds those that are missing.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { runInVm, whyNot } from './vm.mjs';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Of the whole run in the guest; one that is emulated takes some six minutes, and more on a machine that does other things. */
const TIMEOUT_S = 1500 + Number(process.env.MULTIRAIL_VM_PULLS ?? 5) * 12 + Number(process.env.MULTIRAIL_VM_CONNECTS ?? 150);
const args = process.argv.slice(2);

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
const totals = { passed: 0, failed: 0, skipped: 0 };

function make(what, present, command, ...args) {
  if (existsSync(join(ROOT, present))) return undefined;
  const done = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return done.status === 0 && existsSync(join(ROOT, present))
    ? undefined
    : `${what} could not be built: ${`${done.stdout}${done.stderr}`.trim().split('\n').pop()}`;
}

function notHere() {
  return (
    whyNot() ??
    make('dist', 'dist/cli.js', 'npx', 'tsup', '--silent') ??
    make('the native part', 'native/addon/build/Release/multirail.node', process.execPath, 'native/scripts/build.mjs', 'addon') ??
    make('node-rdma', 'native/rdma/build/Release/rdma.node', process.execPath, 'native/scripts/build.mjs', 'rdma')
  );
}

/** The TAP of node --test: only its own totals. */
function countTap(path) {
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const number = (name) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  const failed = number('fail') + number('cancelled');
  totals.passed += number('pass');
  totals.failed += failed;
  totals.skipped += number('skipped') + number('todo');
  if (number('tests') === 0) totals.failed++;
  if (failed > 0 || number('tests') === 0) console.log(text.slice(-20_000));
}

function countReport(path) {
  if (!existsSync(path)) {
    totals.failed++;
    console.log('failed: vitest wrote no report in the guest');
    return;
  }
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(readFileSync(path, 'utf8'));
  const broken = testResults.filter((file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'));
  totals.passed += numPassedTests;
  totals.failed += numFailedTests + broken.length;
  totals.skipped += numPendingTests + numTodoTests;
}

async function main() {
  const why = notHere();
  if (why !== undefined) {
    console.log(`skipped: verbs was not exercised: ${why}`);
    totals.skipped++;
    return;
  }
  const out = mkdtempSync(join(tmpdir(), 'multirail-vm-out-'));
  try {
    const vitest = ['node', 'node_modules/vitest/vitest.mjs', 'run', '--project', 'vm', '--reporter=default', '--reporter=json'];
    const steps = [
      ...(args.length > 0 ? [] : [`node --test --test-reporter=tap native/rdma/test/device.test.mjs > ${out}/device.tap`]),
      [...vitest, `--outputFile.json=${out}/vm.json`, ...args.map(quoted)].join(' '),
    ];
    const env = { CI: 'true', NO_COLOR: '1' };
    for (const [name, value] of Object.entries(process.env)) if (/^MULTIRAIL_(VM_|TEST_S)/.test(name)) env[name] = value;
    const status = await runInVm(['bash', '-c', steps.join('; ')], { devices: 4, timeoutS: TIMEOUT_S, write: [out], env, cwd: ROOT });
    if (args.length === 0) countTap(join(out, 'device.tap'));
    countReport(join(out, 'vm.json'));
    if (args.length === 0 && existsSync(join(out, 'vm.json'))) {
      // For docs/make-semantics.mjs.
      mkdirSync(join(ROOT, '.cache'), { recursive: true });
      copyFileSync(join(out, 'vm.json'), join(ROOT, '.cache/report-vm.json'));
    }
    if (status !== 0 && totals.failed === 0) totals.failed++;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

await main();
console.log(`vm: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 ? 1 : 0;
