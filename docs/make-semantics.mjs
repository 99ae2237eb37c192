// Writes docs/internals/SEMANTICS.md from the reports of the last run of the suites (test/run.mjs leaves them in .cache): which case of the
// list passed where, healthy and while rails break, and which does not apply, with its reason. Imports node:*.
//   MULTIRAIL_TEST_SHARE=1 MULTIRAIL_TEST_ONLY="semantics vm" npm test && node docs/make-semantics.mjs
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';

const root = new URL('..', import.meta.url).pathname;
const REPORTS = ['semantics', 'vm'].map((name) => join(root, `.cache/report-${name}.json`));

/** The list of cases, after MPICH's tests: number, name, and what it looks at. */
const CASES = [
  ['1', 'sendrecv1', 'all sizes, expected and unexpected'],
  ['2', 'sendrecv2, sendrecv3', 'large transfers head to head'],
  ['3', 'send_tests', 'the matrix of side, size, order, wildcards and mode'],
  ['4', 'anyall', 'both wildcards keep the order of each sender'],
  ['5', 'recv_any', 'value and source, every time'],
  ['6', 'precv_anysrc', 'persistent receives with wildcards'],
  ['7', 'huge_anysrc', 'large transfers into wildcards'],
  ['8', 'huge_dupcomm', 'one tag on several communicators at once'],
  ['9', 'huge_ssend', 'a large synchronous send'],
  ['10', 'huge_underflow', 'one byte into a huge receive'],
  ['11', 'sendall', 'everybody to everybody'],
  ['12', 'sendflood', 'eight ranks, many short messages'],
  ['13', 'many_isend, manylmt', 'many outstanding, short and long'],
  ['14', 'eagerdt', 'hundreds of short messages, none expected'],
  ['15', 'isendself, sendself', 'a rank with itself'],
  ['16', 'isendirecv, isendrecv, isendrecv_replace', 'both ways at once'],
  ['17', 'pssend', 'a persistent synchronous send waits for its match'],
  ['18', 'probe_unexp', 'probes see what arrives, whatever its protocol'],
  ['19', 'mprobe', 'a matched message belongs to its Message'],
  ['20', 'mprobe_self_free', 'a matched message of a communicator that is freed'],
  ['21', 'probenull, recvnull', 'PROC_NULL ends at once'],
  ['22', 'large_tag', 'tags up to TAG_UB'],
  ['23', 'large_message, big_count_status', 'more than 2 GiB'],
  ['24', 'cancelrecv', 'the middle of three receives'],
  ['25', 'cancelanysrc', 'a wildcard receive'],
  ['26', 'rcancel', 'several at once'],
  ['27', 'scancel_unmatch', 'a send keeps its place'],
  ['28', 'waittestnull, waitany_null, inactivereq', 'requests that are none'],
  ['29', 'rqstatus, rqfree', 'status by polling; requests that nobody keeps'],
  ['30', 'greq1', 'requests that the user makes'],
  ['31', 'truncmsg1', 'truncation, short and long'],
  ['32', 'truncmsg_mrecv', 'truncation of a matched probe'],
  ['33', 'truncmsg2', 'lengths that do not fit'],
  ['34', 'errinstat', 'the errors of each request'],
  ['35', 'proberank', 'arguments out of range'],
  ['36', 'allred', 'all types and operations'],
  ['37', 'allred2', 'IN_PLACE'],
  ['38', 'allred3, allred4', 'operations that do not commute'],
  ['39', 'allred5', 'more elements than ranks'],
  ['40', 'allred_float', 'the same bits on all ranks'],
  ['41', 'allredmany', 'a flood'],
  ['42', 'reduce, red3, red4', 'every root'],
  ['43', 'redscat, red_scat_block', 'reduceScatter'],
  ['44', 'scantst, exscan', 'prefixes'],
  ['45', 'bcasttest, bcastzerotype', 'roots, sizes, types, nothing'],
  ['46', 'gather, gatherv, scatter, scatterv, coll2 to coll7', 'parts to and from a root'],
  ['47', 'allgather, allgatherv', 'parts to everybody'],
  ['48', 'alltoall, alltoallv, alltoallw', 'parts of everybody to everybody; counts of 0'],
  ['49', 'coll12, opmax to opxor', 'MAXLOC, MINLOC, each operation per type'],
  ['50', 'longuser, uoplong', 'long vectors with operations of the user'],
  ['51', 'nonblocking', 'many outstanding, every wait and test, among messages'],
  ['52', 'ibarrier', 'progress by test alone'],
  ['53', 'p_order, p_inactive, p_bcast', 'persistent collectives'],
  ['54', 'coll_large', 'large buffers'],
  ['55', 'bcastlength, reduceop, noalias', 'misuse'],
  ['56', 'dup, dupic', 'contexts apart'],
  ['57', 'cmsplit, cmsplit2', 'stable order on ties'],
  ['58', 'commcreate1, comm_create_group', 'from groups'],
  ['59', 'ctxalloc, ctxsplit', 'context ids do not run out'],
  ['60', 'cmfree, cmfree2', 'free with pending traffic'],
  ['61', 'comm_idup', 'creation among messages, collectives and other creations'],
  ['62', 'cmsplit_type', 'by host'],
  ['63', 'commname, comm_info', 'names'],
  ['64', 'too_many_comms, cfree, ccreate1, manysplit, unmatched', 'misuse of communicators'],
];
const NUMBERS = new Set(CASES.map(([number]) => number));

/** Columns, by the name of the test file. */
const WHERE = [
  ['self', /-self\.test/],
  ['sm', /-sm\.test/],
  ['tcp', /-tcp\.test/],
  ['tcp (node:net)', /-tcp-net\.test/],
  ['ws', /-ws\.test/],
  ['mixed', /-mixed\.test/],
  ['simulator', /-sim\.test/],
  ['verbs', /-verbs\.test/],
];

/** `28 waittestnull…` is of case 28, `66 to 68, 94: …` of those four. */
function numbersOf(title) {
  const head = /^\d+(?:(?:, | to )\d+)*/.exec(title)?.[0] ?? '';
  return head.split(', ').flatMap((part) => {
    const [from, to = from] = part.split(' to ').map(Number);
    return Number.isNaN(from) ? [] : Array.from({ length: to - from + 1 }, (_, i) => String(from + i));
  });
}

const cells = new Map();
const columnsSeen = new Set();
const reasons = new Map();
const others = { passed: 0, failed: 0, notApplicable: 0 };

function cellOf(number, column) {
  const key = `${number} ${column}`;
  const cell = cells.get(key) ?? { healthy: 0, faults: 0, failed: 0, notApplicable: 0 };
  cells.set(key, cell);
  return cell;
}

function take({ name }, { ancestorTitles, title, status }) {
  const group = ancestorTitles.find((text) => / over /.test(text));
  const column = WHERE.find(([, pattern]) => pattern.test(basename(name)))?.[0];
  if (group === undefined || column === undefined || basename(name).startsWith('btl-')) return;
  columnsSeen.add(column);
  // Not drawn for that run: says nothing.
  if (/not in the sample of seed/.test(title)) return;
  const withFaults = /while rails break/.test(group);
  const numbers = numbersOf(title).filter((number) => NUMBERS.has(number));
  const outcome = status === 'passed' ? 'passed' : status === 'failed' ? 'failed' : 'notApplicable';
  if (numbers.length === 0) others[outcome]++;
  for (const number of numbers) {
    const cell = cellOf(number, column);
    if (outcome !== 'passed') cell[outcome]++;
    else cell[withFaults ? 'faults' : 'healthy']++;
    const reason = outcome === 'notApplicable' ? /\((.*)\)$/.exec(title)?.[1] : undefined;
    if (reason === undefined) continue;
    const known = reasons.get(`${number} ${reason}`) ?? { number, reason, columns: new Set() };
    known.columns.add(`${column}${withFaults ? ' with faults' : ''}`);
    reasons.set(`${number} ${reason}`, known);
  }
}

const missing = REPORTS.filter((path) => !existsSync(path));
for (const path of REPORTS) {
  if (!existsSync(path)) continue;
  for (const file of JSON.parse(readFileSync(path, 'utf8')).testResults) for (const result of file.assertionResults) take(file, result);
}
if (columnsSeen.size === 0) {
  console.log(`no report: run MULTIRAIL_TEST_ONLY="semantics vm" npm test first (${missing.join(', ')})`);
  process.exit(1);
}

const columns = WHERE.map(([column]) => column).filter((column) => columnsSeen.has(column));
function show(number, column) {
  const cell = cells.get(`${number} ${column}`);
  if (cell === undefined) return 'no test';
  if (cell.failed > 0) return `**${cell.failed} failed**`;
  if (cell.healthy + cell.faults === 0) return 'n/a';
  return cell.faults === 0 ? `${cell.healthy}` : `${cell.healthy} + ${cell.faults}`;
}
const sums = columns.map((column) => {
  const all = [...cells].filter(([key]) => key.slice(key.indexOf(' ') + 1) === column).map(([, cell]) => cell);
  const sum = (field) => all.reduce((total, cell) => total + cell[field], 0);
  return `${sum('healthy')} + ${sum('faults')}, ${sum('failed')} failed`;
});
/** What test/launchers/semantics.mjs left: one report per starter and number of ranks. */
function overLaunchers() {
  const cache = join(root, '.cache');
  const names = existsSync(cache) ? readdirSync(cache).filter((name) => /^report-launchers-.*\.json$/.test(name)) : [];
  const reports = names.sort().map((name) => JSON.parse(readFileSync(join(cache, name), 'utf8')));
  if (reports.length === 0) return { text: [], failed: 0 };
  const of = ({ outcomes }, outcome) => outcomes.filter((one) => one.outcome === outcome);
  const suites = [...new Set(reports.flatMap(({ outcomes }) => outcomes.map(({ suite }) => suite)))];
  const failed = reports.reduce((sum, report) => sum + of(report, 'failed').length + (report.isWell ? 0 : 1), 0);
  const passedIn = (report, suite) => {
    const all = report.outcomes.filter((one) => one.suite === suite);
    return all.length === 0 ? 'not run' : String(all.filter(({ outcome }) => outcome === 'passed').length);
  };
  const whys = new Map();
  for (const report of reports) {
    for (const { name, reason } of of(report, 'not applicable')) {
      const known = whys.get(`${name} ${reason}`) ?? { name, reason, where: [] };
      known.where.push(`${report.starter} -n ${report.ranks}`);
      whys.set(`${name} ${reason}`, known);
    }
  }
  const text = [
    '## With every rank in a process of its own',
    '',
    'The same cases, healthy, under starters that start jobs ([launching.md](../guide/launching.md#the-suites-of-semantics-under-each-starter)): each rank plays its part and no',
    'other. Blocking are the calls that end in `Sync`.',
    '',
    `| starter | ranks | ${suites.join(' | ')} | failed | not applicable |`,
    `| --- | --- | ${suites.map(() => '---').join(' | ')} | --- | --- |`,
    ...reports.map((report) => {
      const counts = suites.map((suite) => passedIn(report, suite)).join(' | ');
      const lost = of(report, 'failed').length;
      return `| ${report.starter} | ${report.ranks} | ${counts} | ${lost > 0 || !report.isWell ? `**${lost}**` : 0} | ${of(report, 'not applicable').length} |`;
    }),
    '',
    '| not run | reason | where |',
    '| --- | --- | --- |',
    ...[...whys.values()].map(
      ({ name, reason, where }) => `| ${name} | ${reason} | ${where.length === reports.length ? 'everywhere' : where.join(', ')} |`,
    ),
    '',
  ];
  return { text, failed };
}
const launchers = overLaunchers();

const failed = launchers.failed + [...cells.values()].reduce((total, cell) => total + cell.failed, 0) + others.failed;
const untested = CASES.filter(([number]) => columns.every((column) => !cells.has(`${number} ${column}`)));
const lines = [
  '# Semantics',
  '',
  'Written by `node docs/make-semantics.mjs` from the reports of the last run of the suites; the numbers are those of a list of cases after MPICH’s',
  'tests, of which the ideas are taken and no code. A cell says how many tests of the case passed: healthy `+` while rails are pulled, black-holed,',
  'stalled and flap at moments that a seed chooses. `n/a`: the case does not apply there, for the reason below.',
  '',
  `| | case | looks at | ${columns.join(' | ')} |`,
  `| --- | --- | --- | ${columns.map(() => '---').join(' | ')} |`,
  ...CASES.map(([number, name, what]) => `| ${number} | ${name} | ${what} | ${columns.map((column) => show(number, column)).join(' | ')} |`),
  `| | all | | ${sums.join(' | ')} |`,
  '',
  `Tests of our own in the same suites, without a number in the list or above 64: ${others.passed} passed, ${others.failed} failed, ${others.notApplicable} not applicable.`,
  '',
  ...launchers.text,
  '## What does not apply, and why',
  '',
  '| | reason | where |',
  '| --- | --- | --- |',
  ...[...reasons.values()]
    .sort((a, b) => a.number - b.number)
    .map(({ number, reason, columns: where }) => `| ${number} | ${reason.replace(/^not applicable[^:]*: /, '')} | ${[...where].join(', ')} |`),
  '',
];
writeFileSync(join(root, 'docs/internals/SEMANTICS.md'), lines.join('\n'));
for (const path of missing) console.log(`${basename(path)} is missing: its columns are left out`);
console.log(`docs/internals/SEMANTICS.md: ${CASES.length} cases, ${columns.length} columns, ${failed} failed, ${untested.length} without any test`);
process.exitCode = failed > 0 || untested.length > 0 ? 1 : 0;
