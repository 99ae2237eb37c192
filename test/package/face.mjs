// The face of the built package: the names that it exports, as values and as types, and its declarations, which hold only what a user can get
// hold of and are short enough to be read. Run by the part `build` of `npm test` on dist, and by the part `package` on the tarball.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { demand, ROOT, Tally } from './checks.mjs';

/** Lines of declarations, without comments and blank lines. */
const LINES_MAX = 1500;

/**
 * Every name of the package. A class is a value where a program may test for it by `instanceof`, or has calls of its own (Request.waitAll(),
 * Op.create()); what only the library makes, and nobody need tell apart, is a type.
 */
const EXPORTS = {
  Agreement: 'type',
  ANY_SOURCE: 'value',
  ANY_TAG: 'value',
  BufferPart: 'type',
  CallOptions: 'type',
  CollectiveCounters: 'type',
  Communicator: 'value',
  Comparison: 'type',
  CONGRUENT: 'value',
  Counts: 'type',
  EngineCounters: 'type',
  ERROR_CODES: 'value',
  ErrorCode: 'type',
  ErrorDetails: 'type',
  Group: 'value',
  IDENT: 'value',
  IN_PLACE: 'value',
  init: 'value',
  InitOptions: 'type',
  InPlace: 'type',
  Message: 'type',
  MessageBuffer: 'type',
  MultirailError: 'value',
  Op: 'value',
  OpFunction: 'type',
  OpOptions: 'type',
  Params: 'type',
  PeerEvent: 'type',
  PersistentRequest: 'value',
  PmlCounters: 'type',
  PROC_NULL: 'value',
  RailCounters: 'type',
  RailEvent: 'type',
  RailInfo: 'type',
  RailLine: 'type',
  RailState: 'type',
  RankWaits: 'type',
  ReceivedMessage: 'type',
  FreeOptions: 'type',
  ReplaceOptions: 'type',
  Request: 'value',
  RequestsError: 'value',
  ResultRequest: 'type',
  RequestState: 'type',
  RootBuffer: 'type',
  Runtime: 'type',
  Injector: 'type',
  Replica: 'type',
  ReplicaCounters: 'type',
  RuntimeCounters: 'type',
  RuntimeEvents: 'type',
  SIMILAR: 'value',
  StandbyPool: 'type',
  StandbyPoolEvents: 'type',
  Status: 'value',
  SyncOptions: 'type',
  TAG_UB: 'value',
  TypedArray: 'type',
  UNDEFINED: 'value',
  UNEQUAL: 'value',
  Vector: 'value',
  vector: 'value',
  Wait: 'type',
};

/** Every name of `multirail/ft`. */
const FT_EXPORTS = {
  fileStore: 'value',
  FtJob: 'type',
  FtOptions: 'type',
  Giver: 'type',
  Image: 'type',
  imageArray: 'value',
  ImageSection: 'type',
  imageValue: 'value',
  JobRecovery: 'type',
  RecoveryTotal: 'type',
  LevelSpec: 'type',
  Line: 'type',
  memoryStore: 'value',
  plan: 'value',
  Plan: 'type',
  PlanCopies: 'type',
  PlanGroups: 'type',
  PlanInput: 'type',
  PlannedCopies: 'type',
  PlannedLevel: 'type',
  PlannedPattern: 'type',
  PlannedPeriod: 'type',
  ProcessPlace: 'type',
  PutOptions: 'type',
  readImage: 'value',
  recoveryLine: 'value',
  run: 'value',
  S3Options: 'type',
  s3Store: 'value',
  Scheme: 'type',
  Store: 'type',
  StoreEntry: 'type',
  tolerance: 'value',
  Tolerance: 'type',
  ValueAccessors: 'type',
};

/** What once was public and is for the library alone. */
const PLUMBING = {
  Communicator: ['progress', 'wait', 'now', 'cancel', 'giveUp', 'statusOf', 'onReceived', 'deserted', 'memberGone', 'scope', 'hasBegun'],
  Request: ['end', 'endAt', 'owner'],
  Op: ['kernelFor'],
  Vector: ['views', 'arrayName'],
  Runtime: ['start'],
};

const sorted = (names) => [...names].sort();
const isEqual = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

/** A declaration file, and every one that it imports of the package. */
function declarationFiles(file, found = new Map()) {
  if (found.has(file)) return found;
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2022, true);
  found.set(file, source);
  for (const { moduleSpecifier } of source.statements) {
    if (moduleSpecifier === undefined || !moduleSpecifier.text.startsWith('.')) continue;
    const path = join(dirname(file), moduleSpecifier.text.replace(/\.js$/, '.d.ts').replace(/\.cjs$/, '.d.cts'));
    demand(existsSync(path), `${file} imports ${moduleSpecifier.text}, which is not there`);
    declarationFiles(path, found);
  }
  return found;
}

/** Lines that hold something other than comments. */
function linesOf({ text }) {
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, true, ts.LanguageVariant.Standard, text);
  const lines = new Set();
  const lineAt = (position) => text.slice(0, position).split('\n').length;
  while (scanner.scan() !== ts.SyntaxKind.EndOfFileToken) lines.add(lineAt(scanner.getTokenStart()));
  return lines.size;
}

function declaredNames(source) {
  return source.statements.flatMap((statement) => {
    if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.text);
    return ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement) ? [] : [statement.name.text];
  });
}

/** Checks of one entry of the package in this folder. `isImported`: it is there for import alone. */
async function checkEntry(tally, folder, entry, table, isImported = false) {
  const dist = (name) => join(folder, 'dist', name);
  const declarations = dist(`${entry}.d.${isImported ? 'ts' : 'cts'}`);
  const files = declarationFiles(declarations);
  const source = files.get(declarations);
  const exported = new Map(
    source.statements
      .filter(ts.isExportDeclaration)
      .flatMap((statement) => statement.exportClause.elements)
      .map((element) => [element.name.text, element.isTypeOnly ? 'type' : 'value']),
  );
  tally.check(`${entry}: the names that the declarations export are those of the table`, () => {
    demand(isEqual(exported.keys(), Object.keys(table)), `exported: ${sorted(exported.keys()).join(', ')}`);
    for (const [name, kind] of exported) demand(table[name] === kind, `${name} is exported as a ${kind}`);
    return `${exported.size} names`;
  });
  const values = Object.keys(table).filter((name) => table[name] === 'value');
  const imported = await import(pathToFileURL(dist(`${entry}.js`)).href);
  const required = isImported ? imported : createRequire(dist(`${entry}.cjs`))(dist(`${entry}.cjs`));
  tally.check(`${entry}: what is a value in the table, and nothing else, is there at run time, imported and required`, () => {
    demand(isEqual(Object.keys(imported), values), `imported: ${sorted(Object.keys(imported)).join(', ')}`);
    demand(isEqual(Object.keys(required), values), `required: ${sorted(Object.keys(required)).join(', ')}`);
    return `${values.length} values`;
  });
  tally.check(`${entry}: the declarations name only what is exported`, () => {
    const inner = [...files.values()].flatMap(declaredNames).filter((name) => !exported.has(name));
    demand(inner.length === 0, `not exported, and yet declared: ${inner.join(', ')}`);
  });
  tally.check(`${entry}: the declarations have fewer than ${LINES_MAX} lines without comments and blank ones`, () => {
    const lines = [...files.values()].reduce((sum, one) => sum + linesOf(one), 0);
    demand(lines < LINES_MAX, `${lines} lines in ${files.size} files`);
    return `${lines} lines, ${files.size} file${files.size === 1 ? '' : 's'}`;
  });
  tally.check(`${entry}: every parameter has a name, and none stands for a list of arguments`, () => {
    const bad = [];
    const look = (node) => {
      if (ts.isParameter(node) && (node.dotDotDotToken !== undefined || !/^[a-z]\w*$/i.test(node.name.getText()))) bad.push(node.getText());
      ts.forEachChild(node, look);
    };
    for (const one of files.values()) look(one);
    demand(bad.length === 0, bad.join(', '));
  });
  if (!isImported)
    tally.check(`${entry}: the declarations for import are those for require()`, () => {
      const text = readFileSync(dist(`${entry}.d.ts`), 'utf8');
      demand(text === `export * from './${entry}.cjs';\n`, `${entry}.d.ts is ${text.slice(0, 200)}`);
    });
  tally.check(`${entry}: TypeScript has no complaint about them`, () => {
    const options = {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
    };
    const program = ts.createProgram([dist(`${entry}.d.ts`)], options);
    const said = ts.getPreEmitDiagnostics(program).filter(({ file }) => file === undefined || files.has(file.fileName));
    demand(said.length === 0, said.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' ')).join('\n'));
  });
  return { source, imported, required };
}

/** Checks of the package in this folder. */
export async function checkFace(tally, folder) {
  const { source, imported, required } = await checkEntry(tally, folder, 'index', EXPORTS);
  const ft = await checkEntry(tally, folder, 'ft', FT_EXPORTS);
  await checkEntry(tally, folder, 'wasm', { runWasm: 'value', WasmOptions: 'type' }, true);
  tally.check('errors of multirail/ft are MultirailErrors of multirail, imported and required', () => {
    for (const [main, { fileStore }] of [
      [imported, ft.imported],
      [required, ft.required],
    ]) {
      try {
        fileStore('');
      } catch (error) {
        demand(error instanceof main.MultirailError && error.code === 'ERR_ARG', `${error}`);
        continue;
      }
      demand(false, "fileStore('') did not throw");
    }
  });
  const dist = (name) => join(folder, 'dist', name);
  tally.check('functions keep their names, and none is given its name while the program runs', () => {
    // A class that speaks of itself in a static member has an underscore in front: esbuild keeps its own name for the code around it.
    for (const name of ['Communicator', 'Request', 'MultirailError'])
      demand([name, `_${name}`].includes(imported[name].name), `${name} is called ${imported[name].name}`);
    // What esbuild's keepNames leaves in the code. It runs for every closure that a message needs.
    for (const file of readdirSync(dist('.')).filter((each) => /\.c?js$/.test(each)))
      demand(!readFileSync(dist(file), 'utf8').includes(',"name",{value:'), `dist/${file} names functions at run time`);
  });
  tally.check('no plumbing is declared, nor is there at run time under a name that once was public', () => {
    for (const [name, members] of Object.entries(PLUMBING)) {
      const declared = source.statements.find((statement) => ts.isClassDeclaration(statement) && statement.name.text === name);
      const names = new Set(declared.members.map((member) => member.name?.getText()));
      for (const member of members) demand(!names.has(member), `${name}.${member} is declared`);
    }
    // Those that moved to the desk of a communicator are gone from it.
    for (const member of PLUMBING.Communicator) {
      demand(!(member in imported.Communicator.prototype), `Communicator.prototype.${member} is there`);
    }
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tally = new Tally('build');
  await checkFace(tally, ROOT);
  tally.end();
}
