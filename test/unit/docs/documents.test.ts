// What a test can check in documents: tables have rows, links lead somewhere, file maps are those of their folders, what is cited is
// defined, parameters and codes exist, code can be compiled, and figures say at which commit they were measured.
import { spawnSync } from 'node:child_process';
import { dirname, posix } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../../src/errors.ts';
import * as ftChannels from '../../../src/ft/recover/channels.ts';
import * as channels from '../../../src/mpi/channels.ts';
import { OLD_PARAM_NAMES, PARAMS } from '../../../src/params.ts';
import { CLAUSES } from '../../../tools/wire-suite/clauses.ts';
import { anchorsOf, blocksOf, DOCUMENTS, exists, filesBelow, proseOf, ROOT, read, tablesOf } from '../../support/documents.ts';

const CODE = filesBelow('', (name) => /\.(ts|mts|mjs|js|cc|h|c|py|sh|pml)$/.test(name));

/** `path:line: text` for every match in these files that is not sound. */
function wrong(
  files: readonly string[],
  pattern: RegExp,
  isSound: (match: RegExpExecArray, file: string, line: string) => boolean,
): string[] {
  const found: string[] = [];
  for (const file of files) {
    read(file)
      .split('\n')
      .forEach((line, at) => {
        for (const match of line.matchAll(pattern)) {
          if (!isSound(match as RegExpExecArray, file, line)) found.push(`${file}:${at + 1}: ${match[0]}`);
        }
      });
  }
  return found;
}

test('there are documents to look at', () => {
  expect(DOCUMENTS.length).toBeGreaterThan(25);
  expect(CODE.length).toBeGreaterThan(400);
});

describe('tables and links', () => {
  test('every table has rows, and every row as many cells as the others', () => {
    const tables = DOCUMENTS.flatMap(tablesOf);
    expect(tables.length).toBeGreaterThan(60);
    expect(tables.filter(({ rows }) => rows.length === 0).map(({ document, line }) => `${document}:${line}`)).toEqual([]);
    const uneven = tables.filter(({ rows }) => new Set(rows.map((row) => row.length)).size > 1);
    expect(uneven.map(({ document, line }) => `${document}:${line}`)).toEqual([]);
  });

  test('every relative link leads to a file, and to a heading of it', () => {
    const dead: string[] = [];
    let links = 0;
    for (const document of DOCUMENTS) {
      proseOf(document).forEach((line, at) => {
        for (const [, target] of line.matchAll(/\]\(([^)\s]+)\)/g)) {
          if (/^[a-z]+:/.test(target)) continue;
          links++;
          const [path, anchor] = target.split('#');
          const file = path === '' ? document : posix.normalize(posix.join(posix.dirname(document), path));
          if (!exists(file)) dead.push(`${document}:${at + 1}: ${target}`);
          else if (anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor)) {
            dead.push(`${document}:${at + 1}: ${target} (no such heading)`);
          }
        }
      });
    }
    expect(links).toBeGreaterThan(100);
    expect(dead).toEqual([]);
  });
});

describe('file maps', () => {
  /** Names in the first column of a table of files: `a.ts`, `b.ts`, `folder/`, `cases/*.ts`. */
  const mapped = (document: string): string[] =>
    tablesOf(document)
      .flatMap(({ rows }) => rows.map(([first]) => first))
      .flatMap((cell) => [...cell.matchAll(/[`[]([\w*./-]+)[`\]]/g)].map(([, name]) => name))
      .filter((name) => /^[\w*.-]+(\/|\/[\w*.-]+)*$/.test(name) && /\.\w+$|\/$/.test(name))
      // What lies elsewhere is named from the root, and is checked with the other paths.
      .filter((name) => !/^(src|tools|test|docs)\//.test(name));

  test.each([
    'src/pml/README.md',
    'src/bml/README.md',
    'src/btl/README.md',
    'src/ulfm/README.md',
    'tools/sim/README.md',
    'tools/wire-suite/README.md',
    'examples/python-peer/README.md',
    'docs/internals/model/README.md',
    'examples/README.md',
    'test/lab/README.md',
    'test/vm/README.md',
  ])('%s names every file of its folder, and no other', (document) => {
    const folder = dirname(document);
    const names = mapped(document);
    expect(names.length).toBeGreaterThan(0);
    // A folder with a map of its own is not named file by file.
    const files = filesBelow(folder, () => true)
      .filter((path) => dirname(path) === folder || !exists(`${dirname(path)}/README.md`))
      .map((path) => path.slice(folder.length + 1));
    const covers = (name: string, file: string): boolean =>
      name.endsWith('/') ? file.startsWith(name) : new RegExp(`^${name.replace(/[.]/g, '\\.').replace(/\*/g, '[^/]*')}$`).test(file);
    expect(
      names.filter((name) => !files.some((file) => covers(name, file))),
      'named, and not there',
    ).toEqual([]);
    expect(
      files.filter((file) => !/(^|\/)README\.md$|\.pyc$/.test(file) && !names.some((name) => covers(name, file))),
      'there, and not named',
    ).toEqual([]);
  });
});

describe('what is cited is defined', () => {
  const everything = [...DOCUMENTS, ...CODE].filter((file) => !file.startsWith('test/unit/docs/'));
  const PROTOCOL = read('docs/internals/PROTOCOL.md');
  const sections = (text: string): Set<string> => new Set([...text.matchAll(/^## (\d+)\. /gm)].map(([, number]) => number));

  test('rules of the contract (B1 to B9) are those at the head of btl.ts', () => {
    const defined = new Set([...read('src/btl/btl.ts').matchAll(/^\/\/ {2}(B\d) [a-z-]+ /gm)].map(([, name]) => name));
    expect([...defined]).toEqual(Array.from({ length: 9 }, (_, i) => `B${i + 1}`));
    expect(wrong(everything, /\bB\d\b/g, ([name]) => defined.has(name))).toEqual([]);
  });

  test('invariants (I1, …) are listed by number, the first nine with the rules that were modelled, all of them with the simulator', () => {
    const listed = (document: string): string[] => [...read(document).matchAll(/^\| (I\d+) \|/gm)].map(([, name]) => name);
    const first = listed('docs/internals/model/DESIGN.md');
    expect(first).toEqual(Array.from({ length: 9 }, (_, i) => `I${i + 1}`));
    const defined = new Set([...first, ...listed('docs/internals/SIMULATION.md')]);
    expect(wrong(everything, /\bI\d+\b/g, ([name]) => defined.has(name))).toEqual([]);
  });

  test('weaknesses of the first text (W1, …) are those of docs/internals/model/README.md, and DESIGN is cited by the models alone', () => {
    const text = read('docs/internals/model/README.md');
    const defined = new Set([...text.matchAll(/^\*\*(W\d+)\. /gm)].map(([, name]) => name));
    expect(defined.size).toBe(9);
    expect(wrong(everything, /\bW\d\b/g, ([name]) => defined.has(name))).toEqual([]);
    expect(exists('docs/internals/model/DESIGN.md')).toBe(true);
    expect(wrong(everything, /\bDESIGN\b/g, (_, file) => file.startsWith('docs/internals/model/'))).toEqual([]);
  });

  test('sections: §N is one of PROTOCOL.md, or of the document that says it', () => {
    const own = new Map(DOCUMENTS.map((document) => [document, sections(read(document))]));
    const protocol = sections(PROTOCOL);
    expect(protocol.size).toBeGreaterThan(15);
    // Of a text that is not ours, the citation names it.
    const others = /(RFC|MPI-?\d|MPI|Core Specification|Standard)[^§]*$/;
    const bad = wrong(everything, /§ ?(\d+)/g, ([, number], file, line) => {
      if (others.test(line.slice(0, line.indexOf(`§${number}`)))) return true;
      return (own.get(file)?.has(number) ?? false) || protocol.has(number);
    });
    expect(bad).toEqual([]);
  });

  test('rules by number say whose they are, and exist', () => {
    const rules = [...(PROTOCOL.split('\n## 11. ')[1] ?? '').split('\n## ')[0].matchAll(/^(\d+)\. /gm)].map(([, number]) => number);
    expect(rules).toEqual(Array.from({ length: 9 }, (_, i) => String(i + 1)));
    const files = everything.filter((file) => !file.startsWith('docs/internals/model/') && file !== 'docs/internals/PROTOCOL.md');
    const bad = wrong(files, /\brules? (\d+)\b/g, ([text, number], _, line) => {
      return /§ ?11,? $|section 11,? $/.test(line.slice(0, line.indexOf(text)).replace(/\($/, '')) && rules.includes(number);
    });
    expect(bad).toEqual([]);
  });

  test('clauses of the wire suite exist', () => {
    const families = [...new Set(CLAUSES.map(({ id }) => id.split('-')[0]))].join('|');
    const known = new Set<string>(CLAUSES.map(({ id }) => id));
    const files = everything.filter((file) => !file.startsWith('tools/wire-suite/clauses'));
    expect(wrong(files, new RegExp(`\\b(?:${families})-\\d+\\b`, 'g'), ([id], _, line) => known.has(id) || /MPI/.test(line))).toEqual([]);
  });

  test('holes and rows that scenarios stand for are those of docs/internals/model/HOLES.md', () => {
    const text = read('docs/internals/model/HOLES.md');
    const rows = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, number]) => number);
    const holes = rows(/^\| (\d+) \|/gm);
    const bfo = rows(/^\| 9\.(\d+) \|/gm);
    expect([holes.length, bfo.length]).toEqual([22, 15]);
    const scenarios = filesBelow('test/sim/scenarios', (name) => name.endsWith('.ts'))
      .map(read)
      .join('\n');
    const named = (pattern: RegExp): string[] => [...new Set([...scenarios.matchAll(pattern)].map(([, number]) => number))];
    const inOrder = (list: string[]): string[] => list.sort((a, b) => Number(a) - Number(b));
    expect(inOrder(named(/['"`]hole (\d+) /g))).toEqual(holes);
    expect(inOrder(named(/['"`]bfo 9\.(\d+) /g))).toEqual(bfo);
  });

  test('the segment of sm rails is laid out as the head of segment.ts says', () => {
    const lines = read('src/btl/sm/segment.ts')
      .split('\nexport ')[0]
      .split('\n')
      .filter((line) => line.startsWith('//   '))
      .map((line) => line.slice(5));
    expect(lines.length).toBeGreaterThan(10);
    const block = blocksOf('docs/internals/PROTOCOL.md').find(({ text }) => text.startsWith(lines[0]));
    expect(block?.text.split('\n').filter((line) => line !== '')).toEqual(lines);
    const [magic, version] = [/SEGMENT_MAGIC = (\w+);/, /SEGMENT_VERSION = (\d+);/].map(
      (line) => line.exec(read('src/btl/sm/segment.ts'))?.[1],
    );
    expect(PROTOCOL).toContain(`Magic is \`${magic}\`, version ${version}:`);
  });

  test('documents that code cites are there', () => {
    const bad = wrong(everything, /\bdocs\/[\w/-]+\.(?:md|json|sh|pml|svg)\b/g, ([path]) => exists(path));
    expect(bad).toEqual([]);
  });
});

describe('names', () => {
  test('every parameter that a document or an example names exists', () => {
    const prefixes = [...new Set(Object.keys(PARAMS).map((name) => name.split('_')[0]))].filter((prefix) => prefix !== 'btl');
    const pattern = new RegExp(`\`((?:btl|${prefixes.join('|')})_[a-z0-9_]+)\`|--mca ((?:[a-z]+_)?[a-z_0-9]+) `, 'g');
    // Names of others: Open MPI's array in the glossary.
    const foreign = new Set(['btl_send']);
    const bad = wrong(DOCUMENTS, pattern, ([, quoted, option], document) => {
      const name = quoted ?? option;
      // Where names of before are told, and in what was written then.
      if (/^(docs\/reference\/parameters|CHANGELOG)\.md$/.test(document) && name in OLD_PARAM_NAMES) return true;
      return name in PARAMS || foreign.has(name);
    });
    expect(bad).toEqual([]);
  });

  test('every error code that a document names exists, and every code is thrown somewhere', () => {
    expect(wrong(DOCUMENTS, /\bERR_[A-Z_]+\b/g, ([name]) => name in ERROR_CODES || name === 'ERR_')).toEqual([]);
    const sources = ['src', 'tools']
      .flatMap((folder) => filesBelow(folder, (name) => name.endsWith('.ts')))
      .filter((file) => file !== 'src/errors.ts');
    const text = sources.map(read).join('\n');
    expect(Object.keys(ERROR_CODES).filter((code) => !text.includes(`'${code}'`))).toEqual([]);
  });

  test('every diagnostics channel stands in docs/guide/dashboard.md', () => {
    const names = Object.values({ ...channels, ...ftChannels }).map((one) => one.name as string);
    const section = read('docs/guide/dashboard.md').split('\n## Diagnostics channels')[1] ?? '';
    expect([...section.matchAll(/^\| `(multirail:[\w:]+)` \|/gm)].map(([, name]) => name).sort()).toEqual(names.sort());
  });

  test('the parts of npm test are those that docs/internals/HACKING.md names', () => {
    const table = read('test/run.mjs').split('const parts = {')[1].split('\n};')[0];
    const parts = [...table.matchAll(/^ {2}(\w+): (?:async )?\(\) =>/gm)].map(([, name]) => name);
    const named = /MULTIRAIL_TEST_ONLY="[^"]*" npm test +# some parts: ([\w ]+)/
      .exec(read('docs/internals/HACKING.md'))?.[1]
      .trim()
      .split(' ');
    expect(named?.sort()).toEqual(parts.sort());
  });
});

describe('code in documents', () => {
  const blocks = DOCUMENTS.flatMap(blocksOf).filter(({ language }) => /^(js|mjs|javascript|ts|typescript)$/.test(language));
  const place = ({ document, line }: { document: string; line: number }): string => `${document}:${line}`;

  test('parses, as the oldest Node that is supported reads it', () => {
    expect(blocks.length).toBeGreaterThan(4);
    const scripts = blocks.filter(({ language }) => !language.startsWith('t'));
    // All in one process: to start one for each block takes longer than the rest of this file.
    const check = `const vm = require('node:vm');
      const texts = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
      console.log(JSON.stringify(texts.map((text) => {
        try { new vm.SourceTextModule(text); return ''; } catch (error) { return String(error); }
      })));`;
    const input = JSON.stringify(scripts.map(({ text }) => text));
    const done = spawnSync(process.execPath, ['--experimental-vm-modules', '--no-warnings', '-e', check], { input, encoding: 'utf8' });
    const errors = JSON.parse(done.stdout) as string[];
    const bad = errors.flatMap((error, i) => (error === '' ? [] : [`${place(scripts[i])}: ${error}`]));
    // What a newer Node would take, Node 20 does not.
    for (const block of scripts) if (/\b(await )?using \w+ =/.test(block.text)) bad.push(`${place(block)}: \`using\` needs Node 24`);
    expect(errors.length).toBe(scripts.length);
    expect(bad).toEqual([]);
  });

  test('compiles under strict, where it is a whole program', { timeout: 120_000 }, () => {
    const programs = blocks.filter(({ text }) => /^import .* from 'multirail(\/ft)?';$/m.test(text));
    expect(programs.length).toBeGreaterThan(3);
    const config = ts.parseJsonConfigFileContent(
      ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile).config as object,
      ts.sys,
      ROOT,
    ).options;
    const options: ts.CompilerOptions = {
      ...config,
      noEmit: true,
      strict: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: { multirail: [`${ROOT}src/index.ts`], 'multirail/ft': [`${ROOT}src/ft/index.ts`] },
    };
    const virtual = new Map(programs.map((block, i) => [`${ROOT}test/unit/docs/block-${i}.ts`, block]));
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile, getSourceFile } = host;
    host.fileExists = (name) => virtual.has(name) || fileExists.call(host, name);
    host.readFile = (name) => virtual.get(name)?.text ?? readFile.call(host, name);
    host.getSourceFile = (name, target, onError) => {
      const block = virtual.get(name);
      return block === undefined ? getSourceFile.call(host, name, target, onError) : ts.createSourceFile(name, block.text, target, true);
    };
    const program = ts.createProgram([...virtual.keys()], options, host);
    const complaints: string[] = [];
    for (const [name, block] of virtual) {
      const file = program.getSourceFile(name);
      for (const { messageText, start } of [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]) {
        const line = file === undefined || start === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line;
        complaints.push(`${block.document}:${block.line + line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
      }
    }
    expect(complaints).toEqual([]);
  });
});

describe('figures', () => {
  const MEASURED = /measured at [0-9a-f]{7,40}\b/;

  test('what is between marks of figures says at which commit it was measured', () => {
    const marks = DOCUMENTS.flatMap((document) =>
      [...read(document).matchAll(/<!-- figures:begin[^>]*-->([\s\S]*?)<!-- figures:end -->/g)].map(([, text]) => ({ document, text })),
    );
    expect(marks.length).toBeGreaterThan(0);
    expect(marks.filter(({ text }) => !MEASURED.test(text)).map(({ document }) => document)).toEqual([]);
  });

  test('so does every section of bench/RESULTS.md that has a table of figures', () => {
    const bad = read('bench/RESULTS.md')
      .split(/^(?=## )/m)
      .slice(1)
      .filter((section) => /^\|[^\n]*\d[^\n]*\|$/m.test(section) && !MEASURED.test(section))
      .map((section) => section.slice(0, section.indexOf('\n')));
    // What bench/measure.sh writes says it once, at the head of the file.
    const head = read('bench/RESULTS.md').split(/^## /m)[0];
    const generated = new Set(['## Failover', '## Latency', '## Bandwidth', '## Both ways at once', '## Message rate']);
    expect(MEASURED.test(head)).toBe(true);
    expect(bad.filter((heading) => !generated.has(heading))).toEqual([]);
  });
});
