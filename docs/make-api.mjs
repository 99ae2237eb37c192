// Writes the reference of the calls: the pages of docs/reference/ that have the marks `api:begin` and `api:end`. What stands above the marks is
// written by hand; what stands between them comes from the docstrings of what src/index.ts and src/ft/index.ts export. `--check`: only says whether all is
// current.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { baseOf, ENTRIES, readSurface } from '../tools/api/surface.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'docs/reference');
const BEGIN = '<!-- api:begin, written by npm run docs -->';
const END = '<!-- api:end -->';
const LINES_MAX = 600;

/**
 * The pages in reading order: what each is about, and what it holds, which is names that the entries export, and members of the
 * Communicator, whose calls are too many for one page. Every name and member stands on exactly one page.
 */
const PAGES = [
  {
    page: 'launching.md',
    about: 'A program becomes a rank: `init()`, and how ranks are started from a program',
    holds: ['init', 'InitOptions'],
  },
  {
    page: 'point-to-point.md',
    about: 'Messages from one rank to another: send, receive, probe; what can be a buffer',
    calls: ['send', 'ssend', 'recv', 'sendrecv', 'sendrecvReplace', 'probe', 'mprobe'],
    holds: [
      'Message',
      'Status',
      'CallOptions',
      'SyncOptions',
      'MessageBuffer',
      'BufferPart',
      'vector',
      'Vector',
      'ANY_SOURCE',
      'ANY_TAG',
      'PROC_NULL',
      'TAG_UB',
      'UNDEFINED',
    ],
  },
  {
    page: 'requests.md',
    about: 'Calls that were started: to await, test, cancel and start again, alone or together',
    holds: ['Request', 'RequestState', 'PersistentRequest', 'RequestsError'],
  },
  {
    page: 'collective-calls.md',
    about: 'Collectives on buffers: barrier, broadcast, gather, scatter, reduce, scan',
    calls: [
      'barrier',
      'bcast',
      'reduce',
      'allreduce',
      'gather',
      'gatherv',
      'scatter',
      'scatterv',
      'allgather',
      'allgatherv',
      'alltoall',
      'alltoallv',
      'alltoallw',
      'reduceScatter',
      'reduceScatterBlock',
      'scan',
      'exscan',
    ],
    holds: ['RootBuffer', 'Counts', 'IN_PLACE', 'InPlace'],
  },
  {
    page: 'operations.md',
    about: 'What a reduction combines elements by: the operations of MPI, and your own',
    holds: ['Op', 'OpOptions', 'OpFunction', 'TypedArray'],
  },
  {
    page: 'objects.md',
    about: 'Values instead of buffers, by structured clone: messages, streams of messages, collectives',
    calls: [
      'sendObject',
      'recvObject',
      'messages',
      'bcastObject',
      'gatherObject',
      'allgatherObject',
      'scatterObject',
      'alltoallObject',
      'reduceObject',
      'allreduceObject',
    ],
    holds: ['ReceivedMessage'],
  },
  {
    page: 'communicators.md',
    about: 'Groups of ranks that talk apart from all others: how they are made and freed',
    holds: ['Communicator', 'FreeOptions', 'Group', 'Comparison', 'IDENT', 'CONGRUENT', 'SIMILAR', 'UNEQUAL'],
  },
  {
    page: 'failures.md',
    about: 'Processes die and the others go on: revoke, agree, shrink, replace, who has failed',
    calls: ['revoke', 'agree', 'shrink', 'replace', 'repair', 'getFailed', 'ackFailed'],
    holds: ['Agreement', 'ReplaceOptions', 'ResultRequest', 'StandbyPool', 'StandbyPoolEvents'],
  },
  {
    page: 'runtime.md',
    about: 'The rank itself: its rails, counters and events, what it waits for, and its end',
    holds: [
      'Runtime',
      'RuntimeEvents',
      'RailEvent',
      'PeerEvent',
      'RailInfo',
      'RailState',
      'RailCounters',
      'Injector',
      'Replica',
      'ReplicaCounters',
      'RuntimeCounters',
      'CollectiveCounters',
      'EngineCounters',
      'PmlCounters',
      'RankWaits',
      'Wait',
      'RailLine',
    ],
  },
  {
    page: 'checkpoints.md',
    about: 'Saves, from `multirail/ft`: surviving failures, how often and how many copies',
    holds: [
      'run',
      'FtOptions',
      'LevelSpec',
      'ProcessPlace',
      'FtJob',
      'JobRecovery',
      'RecoveryTotal',
      'ValueAccessors',
      'plan',
      'PlanInput',
      'PlanGroups',
      'PlanCopies',
      'Plan',
      'PlannedLevel',
      'PlannedPeriod',
      'PlannedPattern',
      'PlannedCopies',
      'tolerance',
      'Scheme',
      'Tolerance',
      'recoveryLine',
      'Line',
      'Giver',
    ],
  },
  {
    page: 'wasm.md',
    about: 'Programs of C and C++ that call MPI, from `multirail/wasm`',
    holds: ['runWasm', 'WasmOptions'],
  },
  {
    page: 'images.md',
    about: 'Images of saves, from `multirail/ft`: places for them, and how they are read',
    holds: [
      'fileStore',
      's3Store',
      'S3Options',
      'memoryStore',
      'Store',
      'StoreEntry',
      'PutOptions',
      'readImage',
      'imageArray',
      'imageValue',
      'Image',
      'ImageSection',
    ],
  },
  {
    page: 'errors.md',
    about: 'Every error code, once, and which calls end with it',
    holds: ['MultirailError', 'ErrorDetails', 'ErrorCode', 'ERROR_CODES'],
  },
  { page: 'parameters.md', about: 'Every parameter, with its default, range and meaning', holds: ['Params'] },
];

/** Written by hand, and listed after the others. */
const OTHERS = [
  { page: 'collectives.md', about: 'How collectives behave, which algorithms they use, and what those cost' },
  { page: 'mpi.md', about: 'What has which name here, for those who know MPI or mpi4py' },
];

const surface = { items: Object.values(ENTRIES).flatMap((entry) => readSurface(ROOT, entry).items) };
const items = new Map(surface.items.map((item) => [item.name, item]));
const communicator = items.get('Communicator');
const pageOf = new Map(PAGES.flatMap(({ page, holds }) => holds.map((name) => [name, page])));

/** The constants of a file of src, as they are when it runs. */
async function valuesOf(path) {
  const [{ text }] = buildSync({ entryPoints: [join(ROOT, path)], bundle: true, write: false, format: 'esm', platform: 'node' }).outputFiles;
  return import(`data:text/javascript;base64,${Buffer.from(text).toString('base64')}`);
}
const { ERROR_CODES } = await valuesOf('src/errors.ts');
const { PARAM_GROUPS, OLD_PARAM_NAMES } = await valuesOf('src/params.ts');

// ---------------------------------------------------------------- pieces of Markdown

const anchorOf = (name) => name.toLowerCase();
const inCell = (text) => text.replaceAll('|', '\\|').replace(/\s*\n\s*/g, ' ');

/** The types of a union; what stands in brackets is not taken apart. */
function alternatives(type) {
  const parts = [''];
  let depth = 0;
  for (const word of type.split(' | ')) {
    if (parts.at(-1) === '') parts[parts.length - 1] = word;
    else if (depth > 0) parts[parts.length - 1] += ` | ${word}`;
    else parts.push(word);
    depth += (word.match(/[<({[]/g) ?? []).length - (word.match(/(?<!=)[>)}\]]/g) ?? []).length;
  }
  return parts;
}

/** A type in a table: names that the reference has lead to their pages. */
function typeCell(type, from) {
  const parts = alternatives(type).map((part) => {
    const page = pageOf.get(part);
    if (page === undefined) return `\`${part.replaceAll('|', '\\|')}\``;
    return `[\`${part}\`](${page === from ? '' : page}#${anchorOf(part)})`;
  });
  return parts.join(' \\| ');
}

/** Codes of errors lead to their row of the table. */
const withCodes = (text, from) =>
  text.replace(/`?\b(ERR_[A-Z_]+)\b`?/g, (_, code) => `[\`${code}\`](${from === 'errors.md' ? '' : 'errors.md'}#${code.toLowerCase()})`);

const table = (head, rows) => [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...rows.map((row) => `| ${row.join(' | ')} |`), ''];

const paragraph = (text) => [...text.split('\n'), ''];

function paramsTable({ params = [], doc, full = doc }, from) {
  if (params.length === 0) return [];
  return table(
    ['parameter', 'type', 'meaning'],
    params.map(({ name, type, isOptional }) => [
      `\`${name}${isOptional ? '?' : ''}\``,
      typeCell(type, from),
      inCell(full.params[name]),
    ]),
  );
}

/** How a call fails: the codes, and when. */
function errorsList({ doc, full = doc }, from) {
  if (full.throws.length === 0) return [];
  return ['Errors:', ...full.throws.map((text) => `- ${withCodes(text, from)}`), ''];
}

/** One call with its other forms: `send`, `sendSync`, `isend`, `sendInit`. */
function callSection(member, members, level, from, name = member.name) {
  const forms = members.filter(({ base, isStatic }) => base === member.name && isStatic === member.isStatic);
  const signatures = [member, ...forms].map(({ text }) => text);
  return [
    `${'#'.repeat(level)} ${name}`,
    '',
    '```ts',
    ...signatures,
    '```',
    '',
    ...paragraph(member.doc.text),
    ...paramsTable(member, from),
    ...errorsList(member, from),
    ...(forms.length === 0 ? [] : ['Other forms:', ...forms.map((form) => `- \`${form.name}\`: ${formText(form, from)}`), '']),
  ];
}

/** What is different in a form: its own sentences and errors. */
function formText({ doc }, from) {
  const own = doc.throws.map((text) => withCodes(text, from));
  return [doc.text.replace(/\s*\n\s*/g, ' '), ...own].join(' ');
}

function membersTable(members, from) {
  return table(
    ['member', 'type', 'meaning'],
    members.map(({ name, type, text, isStatic, doc }) => [
      `\`${isStatic ? 'static ' : ''}${name}${text.includes(`${name}?`) ? '?' : ''}\``,
      typeCell(type ?? '', from),
      inCell(doc.text),
    ]),
  );
}

const isCall = ({ kind }) => kind === 'constructor' || kind === 'method';

function itemSection(item, from, isCalledElsewhere = () => false) {
  const { name, kind, doc, members } = item;
  const head = [`## ${name}`, ''];
  if (kind === 'class' || kind === 'interface') {
    const shown = members.filter((member) => !member.doc.isInternal && !isCalledElsewhere(member));
    const fields = shown.filter((member) => !isCall(member) && member.kind !== 'setter');
    const calls = shown.filter((member) => isCall(member) && member.base === undefined);
    const title = (member) => {
      if (member.kind === 'constructor') return `new ${name}`;
      return member.isStatic ? `${name}.${member.name}` : member.name;
    };
    return [
      ...head,
      ...paragraph(doc.text),
      ...(fields.length === 0 ? [] : membersTable(fields, from)),
      ...calls.flatMap((member) => callSection(member, members, 3, from, title(member))),
    ];
  }
  const code = ['```ts', item.text.replace(/^(.*)\n[\s\S]*$/, '$1 …'), '```', ''];
  if (kind === 'function') return [...head, ...code, ...paragraph(doc.text), ...paramsTable(item, from), ...errorsList(item, from)];
  return [...head, ...(name === 'ERROR_CODES' ? [] : code), ...paragraph(doc.text)];
}

/** Codes that no call names, and where they are met. */
const NO_CALL = {
  ERR_LAUNCH: 'no call: `multirail run`, when it cannot start the ranks',
  ERR_PROTOCOL: 'no call: the reasons of rails, and warnings',
  ERR_RAIL: 'no call: the reasons of rails, and warnings',
  ERR_INTERNAL: 'any call, when the library itself is wrong',
};

/** Every code once, with the calls that name it. */
function errorsTable() {
  const calls = surface.items.flatMap(({ name, doc, members = [] }) => [
    ...(doc.throws.length > 0 ? [{ name, throws: doc.throws }] : []),
    ...members.map((member) => ({
      name: name === 'Communicator' ? member.name : `${name}.${member.name}`,
      throws: member.base === undefined ? member.doc.throws : [],
      form: member.base === undefined ? [] : member.doc.throws,
    })),
  ]);
  const names = (code) => {
    const named = (texts) => (texts ?? []).some((text) => new RegExp(`\\b${code}\\b`).test(text));
    const found = calls.filter(({ throws }) => named(throws)).map(({ name }) => `\`${name}\``);
    if (found.length > 10) return 'most calls';
    if (calls.some(({ form }) => named(form))) found.push('`…Sync` forms');
    return found.length > 0 ? found.join(', ') : NO_CALL[code];
  };
  return table(
    ['code', 'meaning', 'named by'],
    Object.entries(ERROR_CODES).map(([code, text]) => [`<a id="${code.toLowerCase()}"></a>\`${code}\``, inCell(text), names(code)]),
  );
}

/** Who sets a parameter: how its part of the page is called. */
const LEVELS = {
  user: ['For users', 'What a program or a network may ask for.'],
  tuner: ['For tuning', 'Sizes, thresholds and times; they are well as they are on most machines.'],
  developer: ['For work on multirail', 'What its tests and its authors turn. Programs leave these alone.'],
};

function paramsTables() {
  const shown = ({ kind, default: value }) => (value === '' ? 'empty' : kind === 'int' ? String(value) : `\`${value}\``);
  const range = ({ kind, min, max, choices }) => {
    if (kind === 'int') return ` From ${min} to ${max}.`;
    return choices === undefined ? '' : ` One of ${choices.join(', ')}.`;
  };
  const tables = Object.entries(LEVELS).flatMap(([level, [title, sentence]]) => [
    `## ${title}`,
    '',
    sentence,
    '',
    ...Object.entries(PARAM_GROUPS).flatMap(([group, rows]) => {
      const own = Object.entries(rows).filter(([, spec]) => spec.level === level);
      if (own.length === 0) return [];
      return [
        `### ${group}, ${title.toLowerCase()}`,
        '',
        ...table(
          ['parameter', 'default', 'unit', 'what it does'],
          own.map(([name, spec]) => [`\`${name}\``, shown(spec), spec.kind === 'int' ? spec.unit : spec.kind, inCell(spec.text + range(spec))]),
        ),
      ];
    }),
  ]);
  const names = Object.entries(OLD_PARAM_NAMES).map(([before, now]) => [`\`${before}\``, `\`${now}\``]);
  return [...tables, '## Names of before', '', 'They go on working for one release, with a warning.', '', ...table(['before', 'now'], names)];
}

function bodyOf({ page, calls = [], holds }) {
  const byName = new Map(communicator.members.map((member) => [member.name, member]));
  const elsewhere = new Set(PAGES.flatMap((one) => one.calls ?? []));
  const isElsewhere = ({ name, base }) => elsewhere.has(base ?? name);
  return [
    ...calls.flatMap((name) => callSection(byName.get(name), communicator.members, 2, page)),
    ...(page === 'parameters.md' ? paramsTables() : []),
    ...holds.flatMap((name) => itemSection(items.get(name), page, name === 'Communicator' ? isElsewhere : undefined)),
    ...(page === 'errors.md' ? errorsTable() : []),
  ];
}

/** The list of the pages, in reading order. */
const listOf = () =>
  table(
    ['page', 'what it holds'],
    [...PAGES, ...OTHERS].map(({ page, about }) => [`[${page}](${page})`, about]),
  );

// ---------------------------------------------------------------- pages

const problems = [];
const places = new Map();
for (const { page, calls = [], holds } of PAGES) {
  for (const name of [...holds, ...calls.map((call) => `Communicator.${call}`)]) places.set(name, [...(places.get(name) ?? []), page]);
}
for (const name of items.keys()) if (!places.has(name)) problems.push(`${name} is on no page: name it in PAGES of docs/make-api.mjs`);
const callNames = new Set(communicator.members.map(({ name }) => name));
for (const [name, pages] of places) {
  if (pages.length > 1) problems.push(`${name} is on more than one page: ${pages.join(', ')}`);
  const [owner, call] = name.split('.');
  const isThere = call === undefined ? items.has(name) : callNames.has(call) && baseOf(call, callNames) === undefined;
  if (!isThere) problems.push(`${pages[0]}: there is no ${call === undefined ? name : `${owner}.${call}`}`);
}
if (problems.length === 0) {
  const isCheck = process.argv.includes('--check');
  for (const one of [{ page: 'README.md', isList: true }, ...PAGES]) {
    const path = join(FOLDER, one.page);
    const place = `docs/reference/${one.page}`;
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
    if (begin < 0 || end < begin) {
      problems.push(`${place} has no place for what is written into it: it needs the lines ${BEGIN} and ${END}`);
      continue;
    }
    const body = (one.isList ? listOf() : bodyOf(one)).join('\n').replace(/\n{3,}/g, '\n\n');
    const wanted = `${text.slice(0, begin + BEGIN.length)}\n\n${body}\n${text.slice(end)}`.replace(/\n{3,}/g, '\n\n');
    const lines = wanted.split('\n').length - 1;
    if (lines >= LINES_MAX) problems.push(`${place} has ${lines} lines, and may have ${LINES_MAX - 1}: move some of it to another page`);
    if (wanted === text) continue;
    if (isCheck) problems.push(`${place} is not what the docstrings say: npm run docs`);
    else writeFileSync(path, wanted);
  }
}
for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exitCode = 1;
