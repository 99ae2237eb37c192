// The house rules as a test: which folder may import which, what the pure layers must not touch, and what no file contains. A rule that
// turns out wrong is changed here, with its reason; a file that breaks a rule is fixed.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

function filesUnder(folder: string, endings: readonly string[]): string[] {
  let entries: ReturnType<typeof readdirSync> | string[];
  try {
    entries = readdirSync(join(ROOT, folder), { recursive: true }) as string[];
  } catch {
    return [];
  }
  return (entries as string[])
    .filter((name) => endings.some((ending) => name.endsWith(ending)) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort();
}

const CODE = ['.ts', '.mts', '.mjs', '.js'];
const LIBRARY = filesUnder('src', ['.ts']);
const TOOLS = filesUnder('tools', ['.ts']);
const SOURCES = [...LIBRARY, ...TOOLS];
const TESTS = filesUnder('test', CODE);
const OTHERS = [...filesUnder('examples', CODE), ...filesUnder('bench', CODE)];
const texts = new Map<string, string>();
function textOf(file: string): string {
  let text = texts.get(file);
  if (text === undefined) {
    text = readFileSync(join(ROOT, file), 'utf8');
    texts.set(file, text);
  }
  return text;
}

/** The code without its comments and without the insides of its strings, line by line as before. */
function codeOf(file: string): string {
  return textOf(file).replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, (found) =>
    found[0] === '/' ? found.replace(/[^\n]/g, ' ') : found[0] + found.slice(1, -1).replace(/[^\n]/g, '_') + found[0],
  );
}

interface Import {
  from: string;
  to: string;
}

/** Every import of a file: `to` is a path under the root, or the name of a package. */
function importsOf(file: string): Import[] {
  const list: Import[] = [];
  const pattern = /(?:^|\n)\s*(?:import|export)\b[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/g;
  const text = textOf(file).replace(/(^|\n)\s*\/\/[^\n]*/g, '$1');
  for (const match of text.matchAll(pattern)) {
    const name = match[1] ?? match[2];
    list.push({ from: file, to: name.startsWith('.') ? normalize(join(dirname(file), name)) : name });
  }
  return list;
}

const allImports = SOURCES.flatMap(importsOf);

/**
 * Who may import whom, lowest first; the first entry that fits a file is its layer. A lower layer never imports a higher one, and
 * the parts of btl know only what they stand on.
 */
const LAYERS: readonly { layer: string; files: RegExp; may: readonly string[] }[] = [
  { layer: 'errors', files: /^src\/errors\.ts$/, may: [] },
  { layer: 'param-spec', files: /^src\/param-spec\.ts$/, may: [] },
  // How a program of WebAssembly is told, for whoever starts one and whoever runs it.
  { layer: 'wasm-file', files: /^src\/wasm-file\.ts$/, may: [] },
  // Rows of the table of parameters, beside what they rule.
  { layer: 'param-rows', files: /^src\/(?:[a-z]+\/)+params\.ts$/, may: ['param-spec'] },
  { layer: 'util', files: /^src\/util\//, may: ['errors'] },
  { layer: 'native', files: /^src\/native\//, may: ['errors', 'util'] },
  // The contract names the poller's type: whoever fills it is handed one. Its counters begin as numbers that may grow.
  { layer: 'contract', files: /^src\/btl\/btl\.ts$/, may: ['errors', 'native', 'util'] },
  { layer: 'params', files: /^src\/params\.ts$/, may: ['errors', 'contract', 'param-spec', 'param-rows'] },
  { layer: 'btl/base', files: /^src\/btl\/base\//, may: ['errors', 'util', 'contract', 'native'] },
  { layer: 'btl/interpose', files: /^src\/btl\/interpose\//, may: ['errors', 'util', 'contract'] },
  { layer: 'btl/self', files: /^src\/btl\/self\//, may: ['errors', 'util', 'contract'] },
  { layer: 'btl/tcp', files: /^src\/btl\/tcp\//, may: ['errors', 'util', 'contract', 'native', 'btl/base'] },
  { layer: 'btl/ws', files: /^src\/btl\/ws\//, may: ['errors', 'util', 'contract', 'btl/base', 'btl/tcp'] },
  { layer: 'btl/verbs', files: /^src\/btl\/verbs\//, may: ['errors', 'util', 'contract', 'native', 'btl/base', 'btl/tcp'] },
  { layer: 'btl/other', files: /^src\/btl\/[^/]+\//, may: ['errors', 'util', 'contract', 'native', 'btl/base'] },
  {
    layer: 'registry',
    files: /^src\/btl\/[^/]+\.ts$/,
    may: ['errors', 'contract', 'btl/self', 'btl/tcp', 'btl/ws', 'btl/verbs', 'btl/other'],
  },
  { layer: 'bml', files: /^src\/bml\//, may: ['errors', 'util', 'contract'] },
  { layer: 'pml', files: /^src\/pml\//, may: ['errors', 'util', 'contract', 'bml'] },
  // Failures and agreement: events in, messages out. Its driver is above it: src/mpi, and the simulator.
  { layer: 'ulfm', files: /^src\/ulfm\//, may: ['errors', 'util'] },
  // Saves: periods and copies, the bytes of an image, and the places where images lie.
  { layer: 'ft/plan', files: /^src\/ft\/plan\//, may: ['errors', 'util'] },
  { layer: 'ft/image', files: /^src\/ft\/image\//, may: ['errors', 'util'] },
  { layer: 'ft/store', files: /^src\/ft\/store\//, may: ['errors', 'util', 'params', 'ft/image', 'native'] },
  // Copies of what is sent, for the tap of the PML.
  { layer: 'ft/events', files: /^src\/ft\/events\//, may: ['errors', 'util', 'pml'] },
  // Replicas that compare what they send, in place of the PML.
  { layer: 'ft/replica', files: /^src\/ft\/replica\//, may: ['errors', 'util', 'pml'] },
  { layer: 'ft/log', files: /^src\/ft\/log\//, may: ['util', 'pml'] },
  // The protocol of saves, without what it is driven by.
  { layer: 'ft/checkpoint', files: /^src\/ft\/checkpoint\//, may: ['errors', 'util', 'ft/plan'] },
  // What ranks that go back by groups do, without what it is driven by.
  {
    layer: 'ft/groups',
    files: /^src\/ft\/groups\/(?:groups|group-(?:core|saves|save-steps|lives|lacks|meeting))\.ts$/,
    may: ['errors', 'util', 'pml', 'ft/checkpoint'],
  },
  { layer: 'progress', files: /^src\/progress\//, may: ['errors', 'util', 'contract', 'native', 'params', 'bml', 'pml'] },
  // The simulator runs the layers above the transports for real, and the self transport; no real network.
  {
    layer: 'sim',
    files: /^tools\/sim\//,
    may: [
      'errors',
      'util',
      'contract',
      'params',
      'bml',
      'pml',
      'ulfm',
      'ft/plan',
      'ft/image',
      'ft/checkpoint',
      'ft/groups',
      'ft/log',
      'ft/events',
      'ft/replica',
      'progress',
      'btl/self',
      'btl/interpose',
    ],
  },
  // What started this process, as its environment says it.
  { layer: 'launch/starters', files: /^src\/launch\/starters\//, may: ['errors'] },
  // The library of PMIx, and the promises over it.
  { layer: 'launch/pmix', files: /^src\/launch\/pmix\//, may: ['errors', 'native', 'params', 'launch/starters'] },
  // What the server tells of processes that join is the series that agreements rest on.
  { layer: 'launch/oob', files: /^src\/launch\/oob\//, may: ['errors', 'util', 'ulfm'] },
  { layer: 'launch/watch', files: /^src\/launch\/watch\//, may: ['launch/oob'] },
  // Rank 0 asks the loader of the native part where this package's files are.
  // What processes are called is said alike by whoever serves the channel.
  {
    layer: 'launch/meeting',
    files: /^src\/launch\/meeting\//,
    may: ['errors', 'util', 'native', 'params', 'launch/starters', 'launch/pmix', 'launch/oob', 'launch/watch'],
  },
  // Deaths by plan are drawn by a seed. Where later processes may join is said as ranks say it to each other.
  {
    layer: 'launch/run',
    files: /^src\/launch\/run\//,
    may: ['errors', 'util', 'wasm-file', 'params', 'launch/oob', 'launch/watch', 'launch/starters', 'launch/meeting', 'ulfm'],
  },
  {
    layer: 'launch',
    files: /^src\/launch\/[^/]+\.ts$/,
    may: ['errors', 'util', 'params', 'launch/starters', 'launch/pmix', 'launch/oob', 'launch/meeting'],
  },
  {
    layer: 'mpi',
    files: /^src\/mpi\//,
    may: [
      'errors',
      'util',
      'contract',
      'native',
      'params',
      'registry',
      'btl/interpose',
      'btl/base',
      'bml',
      'pml',
      'ulfm',
      // Of two replicas each keeps copies of what it sends.
      'ft/log',
      'ft/replica',
      'progress',
      'launch',
    ],
  },
  // Namespaces and links of this machine; knows nothing of messages. Of the native part, only where its binaries lie.
  { layer: 'lab', files: /^tools\/lab\//, may: ['errors', 'native'] },
  {
    layer: 'bench',
    files: /^tools\/(bench|hpl)\//,
    may: ['errors', 'util', 'contract', 'native', 'params', 'btl/base', 'registry', 'btl/interpose', 'mpi', 'launch', 'lab', 'ft/recover'],
  },
  // A program of ranks, as a user would write it, and the plate that two of them have.
  { layer: 'ft/campaign', files: /^tools\/ft\/(campaign-((001|002|004)-)?rank|plate)\.ts$/, may: ['ft/recover', 'mpi', 'ft/commands'] },
  // The papers as commands: tables, figures, plans, and what a folder of saves holds.
  {
    layer: 'ft/commands',
    files: /^tools\/ft\//,
    may: ['errors', 'util', 'native', 'ft/plan', 'ft/image', 'ft/store', 'ft/checkpoint', 'ft/groups', 'bench'],
  },
  // The suite speaks to a wire: encoders, and nothing that behaves. Our endpoint in it is the real thing, without launcher.
  {
    layer: 'wire-suite/endpoint',
    files: /^tools\/wire-suite\/endpoint\//,
    may: [
      'errors',
      'util',
      'contract',
      'native',
      'params',
      'registry',
      'btl/base',
      'pml',
      'progress',
      'launch',
      'mpi',
      'wire-suite/convention',
    ],
  },
  { layer: 'wire-suite/convention', files: /^tools\/wire-suite\/(convention|pattern)\.ts$/, may: [] },
  {
    layer: 'wire-suite',
    files: /^tools\/wire-suite\//,
    may: ['errors', 'util', 'contract', 'btl/base', 'btl/tcp', 'pml', 'wire-suite/convention'],
  },
  // Types that the dashboard's server and its page share; the page runs in a browser, and is built by itself.
  { layer: 'dashboard/messages', files: /^tools\/dashboard\/messages\.ts$/, may: [] },
  { layer: 'dashboard/page', files: /^tools\/dashboard\/page\//, may: ['dashboard/messages'] },
  { layer: 'dashboard', files: /^tools\/dashboard\//, may: ['errors', 'bml', 'pml', 'launch', 'dashboard/messages'] },
  {
    layer: 'cli',
    files: /^tools\/cli\//,
    may: [
      'errors',
      'dashboard',
      // What can be pulled in a lab is said in the page's own words.
      'dashboard/messages',
      'util',
      'contract',
      'params',
      'registry',
      'btl/base',
      'btl/tcp',
      'btl/verbs',
      'btl/interpose',
      'native',
      'bml',
      'pml',
      'ulfm',
      'sim',
      'launch',
      'mpi',
      'lab',
      'bench',
      'ft/campaign',
      'ft/plan',
      'ft/commands',
      'wire-suite',
      'wire-suite/endpoint',
    ],
  },
  {
    layer: 'index',
    files: /^src\/index\.ts$/,
    may: ['errors', 'contract', 'params', 'registry', 'bml', 'pml', 'progress', 'launch', 'mpi'],
  },
  // The loop around a program: it is given a runtime, and drives the protocol of saves over its communicators.
  {
    layer: 'ft/recover',
    files: /^src\/ft\/(?:recover|groups)\//,
    may: ['ft/log', 'ft/events', 'errors', 'util', 'native', 'mpi', 'ft/plan', 'ft/image', 'ft/store', 'ft/checkpoint', 'ft/groups'],
  },
  // Programs of C and C++ as ranks: what they import, over the calls of a communicator.
  { layer: 'wasm', files: /^src\/wasm\//, may: ['errors', 'wasm-file', 'mpi'] },
  { layer: 'ft/index', files: /^src\/ft\/index\.ts$/, may: ['errors', 'ft/plan', 'ft/image', 'ft/store', 'ft/recover'] },
];
/** Whether a path is a file of ours, and no package. */
const isOwn = (path: string) => path.startsWith('src/') || path.startsWith('tools/');
const layerOf = (file: string) => LAYERS.find(({ files }) => files.test(file));

describe('imports', () => {
  test('every source file belongs to a layer', () => {
    expect(SOURCES.filter((file) => layerOf(file) === undefined)).toEqual([]);
  });

  test('no layer imports a higher one', () => {
    const wrong: string[] = [];
    for (const { from, to } of allImports) {
      if (!isOwn(to)) continue;
      const importer = layerOf(from);
      const imported = layerOf(to);
      if (importer === undefined || imported === undefined || importer === imported) continue;
      // Who may import a folder may import the rooms in it.
      if (importer.may.some((name) => imported.layer === name || imported.layer.startsWith(`${name}/`))) continue;
      wrong.push(`${from} (${importer.layer}) imports ${to} (${imported.layer})`);
    }
    expect(wrong).toEqual([]);
  });

  test('the library imports nothing from the tools', () => {
    expect(TOOLS.length).toBeGreaterThan(100);
    expect(LIBRARY.flatMap(importsOf).filter(({ to }) => to.startsWith('tools/'))).toEqual([]);
  });

  test('what lies behind the doors of the PML is looked at by tests only', () => {
    expect(
      inFiles(
        [...LIBRARY, ...TOOLS].filter((file) => file !== 'src/pml/pml.ts'),
        /\binternals\b/,
      ),
    ).toEqual([]);
  });

  test('no files import each other in a circle, not even types', () => {
    const circles: string[] = [];
    const seen = new Set<string>();
    const visit = (file: string, way: readonly string[]): void => {
      const at = way.indexOf(file);
      if (at !== -1) circles.push([...way.slice(at), file].join(' -> '));
      if (seen.has(file)) return;
      seen.add(file);
      for (const { to } of importsOf(file)) if (SOURCES.includes(to)) visit(to, [...way, file]);
    };
    for (const file of SOURCES) visit(file, []);
    expect(circles).toEqual([]);
  });

  test('nothing is imported in a circle between files of different layers', () => {
    for (const { layer, may } of LAYERS) {
      for (const below of may) {
        expect(LAYERS.find((one) => one.layer === below)?.may, `${layer} and ${below} may import each other`).not.toContain(layer);
      }
    }
  });

  test('the wire suite knows encoders and arithmetic, and nothing that behaves', () => {
    const allowed = new Set([
      'src/btl/base/crc32c.ts',
      'src/btl/base/frame-hdr.ts',
      'src/btl/base/handshake.ts',
      'src/btl/tcp/pairing.ts',
      'src/errors.ts',
      'src/pml/hdr.ts',
    ]);
    const tester = allImports.filter(({ from }) => from.startsWith('tools/wire-suite/') && !from.startsWith('tools/wire-suite/endpoint/'));
    expect(tester.length).toBeGreaterThan(50);
    const wrong = tester.filter(({ to }) => isOwn(to) && !to.startsWith('tools/wire-suite/') && !allowed.has(to));
    expect(wrong).toEqual([]);
    expect(tester.filter(({ to }) => to.startsWith('tools/wire-suite/endpoint/'))).toEqual([]);
  });

  test('relative imports end in .ts, those of Node begin with node:', () => {
    const builtins = /^(assert|buffer|child_process|crypto|dns|events|fs|http|https|net|os|path|process|stream|tls|url|util|v8|zlib)(\/|$)/;
    // Code that a tool makes of oob.proto.
    const made = 'src/launch/oob/proto.js';
    const wrong = allImports.filter(({ to }) => (isOwn(to) ? !/\.(ts|json|css)$/.test(to) && to !== made : builtins.test(to)));
    expect(wrong).toEqual([]);
  });

  test('packages are dependencies of the package, or bundled into it', () => {
    const { dependencies, devDependencies, workspaces } = JSON.parse(textOf('package.json')) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
      workspaces: string[];
    };
    // Packages of our own that lie in this repository: only their types are imported.
    const own = workspaces.map((folder) => (JSON.parse(textOf(`${folder}/package.json`)) as { name: string }).name);
    const wrong = allImports.filter(({ to }) => {
      if (isOwn(to) || to.startsWith('node:')) return false;
      const name = to.startsWith('@') ? to.split('/').slice(0, 2).join('/') : to.split('/')[0];
      // The build bundles what is no dependency, so that who installs the package needs it no more.
      return !(name in dependencies) && !(name in devDependencies) && !own.includes(name);
    });
    expect(wrong).toEqual([]);
  });

  test('no source file is an orphan: it is reached from an entry point, or is the simulator and used by tests', () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const { to } of importsOf(file)) if (SOURCES.includes(to)) visit(to);
    };
    for (const entry of [
      'src/index.ts',
      'src/ft/index.ts',
      'src/wasm/index.ts',
      'tools/cli/main.ts',
      'src/launch/meeting/main.ts',
      'tools/dashboard/page/main.ts',
    ])
      visit(entry);
    for (const { to } of TESTS.flatMap(importsOf)) if (to.startsWith('tools/sim/')) visit(to);
    expect(SOURCES.filter((file) => !reached.has(file) && !file.endsWith('.d.ts'))).toEqual([]);
  });
});

/** What must not occur in the code of these files. */
const CLOCKS = /\bDate\b|\bperformance\b|\bhrtime\b/;
const TIMERS = /\bset(Timeout|Interval|Immediate)\b|\bqueueMicrotask\b|\bnextTick\b/;
const CHANCE = /\bMath\.random\b|\brandomBytes\b|\brandomUUID\b|\bgetRandomValues\b/;
const ASYNC = /\bPromise\b|\basync\b|\bawait\b|\bthen\(/;
const PRINTS = /\bconsole\.|\bprocess\.(stdout|stderr)\b/;

const linesWith = (file: string, pattern: RegExp): string[] =>
  codeOf(file)
    .split('\n')
    .flatMap((line, i) => (pattern.test(line) ? [`${file}:${i + 1}: ${textOf(file).split('\n')[i].trim()}`] : []));
const inFiles = (files: readonly string[], pattern: RegExp): string[] => files.flatMap((file) => linesWith(file, pattern));
const under = (...folders: string[]) =>
  SOURCES.filter((file) => folders.some((folder) => file.startsWith(`src/${folder}/`) || file.startsWith(`tools/${folder}/`)));

describe('purity', () => {
  test('PML, BML, ULFM, plans, images and the protocol of saves know no clock, timer, chance, promise, Node module or output', () => {
    const groups = SOURCES.filter((file) => layerOf(file)?.layer === 'ft/groups');
    expect(inFiles(groups, ASYNC)).toEqual([]);
    const files = [
      ...under('pml', 'bml', 'ulfm', 'ft/plan', 'ft/image', 'ft/checkpoint', 'ft/log', 'ft/events', 'ft/replica', 'util'),
      ...groups,
    ];
    for (const pattern of [CLOCKS, TIMERS, CHANCE, PRINTS, /\bprocess\b|\bglobalThis\b|\brequire\b/])
      expect(inFiles(files, pattern)).toEqual([]);
    expect(
      inFiles(under('pml', 'bml', 'ulfm', 'ft/plan', 'ft/image', 'ft/checkpoint', 'ft/log', 'ft/events', 'ft/replica'), ASYNC),
    ).toEqual([]);
    expect(allImports.filter(({ from, to }) => files.includes(from) && !isOwn(to))).toEqual([]);
  });

  test('the simulator knows no real clock, timer or chance', () => {
    // campaign.ts runs many worlds for a given time of the wall clock: it stands outside of them.
    const worlds = under('sim').filter((file) => file !== 'tools/sim/campaign.ts');
    for (const pattern of [CLOCKS, TIMERS, CHANCE]) expect(inFiles(worlds, pattern)).toEqual([]);
    const allowed = ['node:fs', 'node:path'];
    expect(allImports.filter(({ from, to }) => worlds.includes(from) && to.startsWith('node:') && !allowed.includes(to))).toEqual([]);
  });

  test('the engine reads time in clock.ts and sets timers in driver.ts only', () => {
    expect(
      inFiles(
        under('progress').filter((file) => !file.endsWith('/clock.ts')),
        CLOCKS,
      ),
    ).toEqual([]);
    expect(
      inFiles(
        under('progress').filter((file) => !file.endsWith('/driver.ts')),
        TIMERS,
      ),
    ).toEqual([]);
  });

  test('transports are told the time: they read no clock', () => {
    // sm times two ways to copy once, with a stopwatch that its component hands in: what is read is a speed, not a time. A verbs rail that
    // leaves waits a moment for its device, by the clock that its component hands in.
    const files = under('btl').filter((file) => !/^src\/btl\/(sm|verbs)\/component\.ts$/.test(file));
    expect(inFiles(files, CLOCKS)).toEqual([]);
  });

  test('only commands, launcher and benchmarks print', () => {
    // init.ts is where a rank's warnings leave the library, and where an exit without finalize() is told; the two of wasm are commands.
    const files = SOURCES.filter(
      (file) =>
        !/^(src\/launch|tools\/(cli|bench|hpl))\//.test(file) &&
        file !== 'src/mpi/init.ts' &&
        file !== 'src/wasm/host.ts' &&
        file !== 'src/wasm/run.ts',
    );
    expect(inFiles(files, PRINTS)).toEqual([]);
  });
});

/** Files longer than FILE_LINES_MAX, with the reason. */
const FILE_LINES_MAX = 600;
const LONG_FILES: Readonly<Record<string, string>> = {
  'src/mpi/point-to-point.ts': 'public calls of one class, half of it their docstrings',
  'src/mpi/communicator.ts': 'public calls of one class, half of it their docstrings',
  'src/mpi/request.ts': 'public calls of one class, half of it their docstrings',
  'src/mpi/runtime.ts': 'public calls of one class, half of it their docstrings',
  'tools/sim/sim-endpoint.ts': 'one endpoint, as strict as the contract allows',
  'tools/wire-suite/cases/framing.ts': 'a list of cases',
  'tools/wire-suite/cases/handshake.ts': 'a list of cases',
  'tools/wire-suite/cases/sending.ts': 'a list of cases',
  'test/contract/suite.ts': 'one suite as a function: a list of cases',
  'test/sim/scenarios/holes-more.ts': 'a list of scenarios',
  'test/wire/mutants.ts': 'a list of broken endpoints',
  'test/wire/planted.ts': 'a table',
};

describe('files', () => {
  const all = [...SOURCES, ...TESTS, ...OTHERS];

  test('every file opens with a comment that says what lives in it', () => {
    // Configuration of a tool opens with its imports.
    const own = all.filter((file) => !file.endsWith('.config.ts'));
    expect(own.filter((file) => !/^(#![^\n]*\n)?\s*(\/\/|\/\*)/.test(textOf(file)))).toEqual([]);
  });

  test(`no file has more than ${FILE_LINES_MAX} lines without a reason`, () => {
    const lines = (file: string) => textOf(file).split('\n').length - 1;
    expect(all.filter((file) => lines(file) > FILE_LINES_MAX && LONG_FILES[file] === undefined)).toEqual([]);
    expect(Object.keys(LONG_FILES).filter((file) => !all.includes(file))).toEqual([]);
  });

  test('names are kebab-case', () => {
    expect(
      all.filter((file) => !/^[a-z0-9-]+(\.(test|measure|d|config))?\.(ts|mts|mjs|js)$/.test(file.split('/').at(-1) as string)),
    ).toEqual([]);
  });

  test('syntax that can be erased: no enum, namespace or parameter property', () => {
    expect(inFiles(all, /^\s*(export\s+)?(declare\s+)?(const\s+)?(enum|namespace)\s+\w/)).toEqual([]);
    expect(inFiles(all, /constructor\((?:[^)]*,)?\s*(?:private|public|protected|readonly)\s+\w/)).toEqual([]);
  });

  test('no head lists what its file may import: the table of layers is the one place that says it', () => {
    const lists = new RegExp(`^\\s*(//|\\*|#).*\\b${'May ' + 'import'}\\b`, 'm');
    expect(all.filter((file) => lists.test(textOf(file)))).toEqual([]);
  });

  test('every entry of the table of layers has files', () => {
    // An alternative that no folder answers to is a rule about nothing.
    const folders = [
      ...LAYERS.map(({ files }) => files.source)
        .join(' ')
        .matchAll(/\\\/\(([a-z|]+)\)\\\//g),
    ].flatMap(([, names]) => names.split('|'));
    expect(folders).toContain('hpl');
    expect(folders.filter((name) => under(name).length === 0)).toEqual([]);
    expect(LAYERS.filter(({ files }) => !SOURCES.some((file) => files.test(file))).map(({ layer }) => layer)).toEqual([]);
  });

  test('nothing is left for later', () => {
    const later = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].join('|')})\\b`);
    expect(all.filter((file) => later.test(textOf(file)))).toEqual([]);
  });

  test('no path of a machine', () => {
    const paths = new RegExp(`(^|[\\s'"\`(=:])/(${['wo' + 'rk', 'ro' + 'ot'].join('|')})(/|['"\`)\\s]|$)`, 'm');
    const documents = [
      ...filesUnder('docs', ['.md', '.json', '.pml', '.sh']),
      ...filesUnder('src', ['.md', '.proto']),
      ...filesUnder('tools', ['.md']),
    ];
    for (const name of ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'package.json']) {
      if (readdirSync(ROOT).includes(name)) documents.push(name);
    }
    expect([...all, ...documents].filter((file) => paths.test(textOf(file)))).toEqual([]);
  });

  test('no test is switched off or alone', () => {
    const wrong: string[] = [];
    for (const file of TESTS) {
      wrong.push(...linesWith(file, /\.only\b\s*\(/));
      // A skipped test says why: with a reason as its argument, or in its name.
      const lines = textOf(file).split('\n');
      for (const line of linesWith(file, /\.skip\b\s*\(/)) {
        const text = lines[Number(line.split(':')[1]) - 1];
        if (!/\.skip\(\s*(`[^`]*\$\{|[a-z]|'[^']{10,})/.test(text)) wrong.push(line);
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe('C++', () => {
  const LINES_MAX = 600;
  // What was built, and the copy that node-rdma's package travels with, is nobody's to mend.
  const all = filesUnder('native', ['.cc', '.h']).filter((file) => !/\/build\/|^native\/rdma\/common\//.test(file));

  test(`every file opens with a comment that says what lives in it, and has at most ${LINES_MAX} lines`, () => {
    expect(all.length).toBeGreaterThan(60);
    expect(all.filter((file) => !textOf(file).startsWith('//'))).toEqual([]);
    expect(all.filter((file) => textOf(file).split('\n').length - 1 > LINES_MAX)).toEqual([]);
  });

  test('Node is known to bindings and entries only, so that all else is tested without it', () => {
    // The poller is the event loop's own.
    const may = /-binding\.cc$|\/addon\.cc$|\/env\.h$|^native\/addon\/src\/os\/poller\.cc$|^native\/common\//;
    const knows = /^#include [<"](node_api\.h|.*\b(napi-args|exports|env|uv-abi)\.h)[>"]/m;
    expect(all.filter((file) => knows.test(textOf(file)) && !may.test(file))).toEqual([]);
  });
});

test('this test looks at something', () => {
  expect(SOURCES.length).toBeGreaterThan(60);
  expect(allImports.length).toBeGreaterThan(300);
  expect(relative(ROOT, import.meta.filename)).toBe('test/tidy.test.ts');
});
