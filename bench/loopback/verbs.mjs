// Bandwidth and latency over verbs beside perftest's ib_write_bw and ib_send_lat, interleaved in one run, between two soft-RoCE devices of
// the guest of test/vm. Prints a table for bench/RESULTS.md, and what a message costs in calls.
//   node bench/loopback/verbs.mjs [--rounds 5] [--sizes 65536,1048576,8388608]
// The guest is emulated and JavaScript runs some ten times slower in it: its figures compare ways of using the device, and are no speeds.
// Needs what node test/vm/run.mjs needs. Imports node:*, test/vm/vm.mjs, stats.mjs.
import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { median } from '../lib/stats.mjs';

const LATENCY_ITERATIONS = 300;
const RANK = 'export MULTIRAIL_MCA_btl_verbs_if_include=rxe$MULTIRAIL_RANK; exec node dist/cli.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    sizes: { type: 'string', default: '65536,1048576,8388608' },
    guest: { type: 'boolean', default: false },
  },
});
const SIZES = values.sizes.split(',').map(Number);

const iterationsOf = (bytes) => Math.max(16, Math.min(400, Math.floor((128 << 20) / bytes)));

/** Sometimes it hangs instead of giving up. */
const PERFTEST_TIMEOUT_S = 50;

function shell(script) {
  const done = spawnSync('bash', ['-c', script], { encoding: 'utf8', timeout: 120_000 });
  if (done.status !== 0) throw new Error(`${script}\n${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** The last line of figures of a perftest program: server on rxe1, client on rxe0. */
function perftest(program, args) {
  // Now and then perftest gives up (a retransmission too many in a guest whose host is busy): once more, then.
  for (let tries = 0; tries < 3; tries++) {
    const figures = tryPerftest(program, args);
    if (figures !== undefined) return figures;
    process.stderr.write(`${program} ${args} came to no end; once more\n`);
  }
  throw new Error(`${program} ${args} came to no end, three times over`);
}

function tryPerftest(program, args) {
  const limited = `timeout -s KILL ${PERFTEST_TIMEOUT_S} ${program}`;
  const out = shell(`${limited} -d rxe1 -x 1 ${args} > /dev/null 2>&1 & sleep 1.5; ${limited} -d rxe0 -x 1 ${args} 10.9.0.2 || true; wait`);
  const line = out.split('\n').findLast((text) => /^\s*\d+\s+\d+\s/.test(text));
  return line?.trim().split(/\s+/).map(Number);
}

function bench(test, args) {
  const out = shell(`node dist/cli.js run -n 2 --mca btl self,verbs -- bash -c '${RANK} bench ${test} ${args}'`);
  const line = out.split('\n').findLast((text) => /^(\[0\] )?\s*\d+\s+[\d.]+/.test(text));
  if (line === undefined) throw new Error(out);
  return line.replace('[0] ', '').trim().split(/\s+/).map(Number);
}

function measure() {
  const figures = {};
  const note = (name, value) => {
    figures[name] ??= [];
    figures[name].push(value);
    process.stderr.write(`${name}: ${value.toFixed(2)}\n`);
  };
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const bytes of SIZES) {
      const n = iterationsOf(bytes);
      // perftest counts MiB, and says MB.
      note(`ib_write_bw ${bytes}`, perftest('ib_write_bw', `-s ${bytes} -n ${n}`)[3] * 1.048576);
      note(`multirail bw ${bytes}`, bench('bw', `--sizes ${bytes} --window 8 --iterations ${Math.ceil(n / 8)} --warmup 2`)[1]);
    }
    note('ib_send_lat -e 8', perftest('ib_send_lat', `-e -s 8 -n ${LATENCY_ITERATIONS}`)[4]);
    note('multirail latency 8', bench('latency', `--sizes 8 --iterations ${LATENCY_ITERATIONS} --warmup 50`)[1]);
  }
  console.log('| | perftest | multirail | ratio within each round, median |');
  console.log('| --- | ---: | ---: | ---: |');
  const row = (title, theirs, ours) => {
    const ratios = figures[ours].map((value, i) => value / figures[theirs][i]);
    console.log(
      `| ${title} | ${median(figures[theirs]).toFixed(1)} | ${median(figures[ours]).toFixed(1)} | ${median(ratios).toFixed(2)} |`,
    );
  };
  for (const bytes of SIZES) row(`bandwidth ${bytes} B, MB/s`, `ib_write_bw ${bytes}`, `multirail bw ${bytes}`);
  row('latency 8 B, us', 'ib_send_lat -e 8', 'multirail latency 8');
  console.log(shell('node dist/cli.js run -n 2 --mca btl self,verbs test/vm/fixtures/count-rank.mjs'));
}

if (values.guest) measure();
else {
  const { runInVm, whyNot } = await import('../../test/vm/vm.mjs');
  const why = whyNot();
  if (why !== undefined) {
    console.error(`verbs cannot be measured here: ${why}`);
    process.exitCode = 1;
  } else
    process.exitCode = await runInVm(['node', 'bench/loopback/verbs.mjs', '--guest', '--rounds', values.rounds, '--sizes', values.sizes], {
      timeoutS: 1800,
      mtu: 9000,
    });
}
