// What the package shows to whoever imports it, read from the declarations that TypeScript makes of src: every name that an entry (src/index.ts,
// src/ft/index.ts) exports, with its members, parameters and docstrings. Classes that lie in several files (Communicator) are one class here, and what is private,
// protected or @internal is left out. The declarations of the package, its reference and their tests are made from this.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The entries of the package, by the name of their files in dist. */
const PACKAGE = 'multirail';
export const ENTRIES = { index: 'src/index.ts', ft: 'src/ft/index.ts', wasm: 'src/wasm/index.ts' };

/** Declarations of src, one file at a time, as TypeScript writes them. */
class Declarations {
  constructor(root, entry) {
    const config = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config;
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [entry] }, ts.sys, root);
    this.root = root;
    this.program = ts.createProgram([join(root, entry), join(root, ENTRIES.index)], {
      ...options,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
    });
    this.files = new Map();
  }

  /** Parsed. */
  file(path) {
    let found = this.files.get(path);
    if (found !== undefined) return found;
    const take = (_name, text) => {
      found = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);
    };
    const { diagnostics } = this.program.emit(this.program.getSourceFile(join(this.root, path)), take, undefined, true);
    if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, diagnosticsHost(this.root)));
    this.files.set(path, found);
    return found;
  }
}

const diagnosticsHost = (root) => ({
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => root,
  getNewLine: () => '\n',
});

/** A docstring: its sentences, the meaning of each parameter, and how the call fails. */
function parseDoc(node) {
  const ranges = ts.getLeadingCommentRanges(node.getSourceFile().text, node.getFullStart()) ?? [];
  const range = ranges.filter(({ pos }) => node.getSourceFile().text.startsWith('/**', pos)).at(-1);
  const doc = { text: '', params: {}, throws: [], isInternal: false };
  if (range === undefined) return doc;
  const lines = node
    .getSourceFile()
    .text.slice(range.pos + 3, range.end - 2)
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd());
  const blocks = [['']];
  for (const line of lines) {
    if (line.trimStart().startsWith('@')) blocks.push([]);
    blocks.at(-1).push(line);
  }
  doc.text = blocks[0].join('\n').trim();
  for (const block of blocks.slice(1)) {
    const text = block
      .map((line) => line.trim())
      .join(' ')
      .trim();
    const [, tag, rest] = /^@(\w+)\s*([\s\S]*)$/.exec(text);
    if (tag === 'param') doc.params[/^\w+/.exec(rest)[0]] = rest.replace(/^\w+\s*/, '');
    else if (tag === 'throws') doc.throws.push(rest);
    else if (tag === 'internal') doc.isInternal = true;
    else throw new Error(`${node.getSourceFile().fileName}: @${tag} is no tag that the reference knows`);
  }
  return doc;
}

/** TypeScript writes the type of an object over several lines. */
// What a user gets is never abstract: only the library makes it.
const lineOf = (node) =>
  node
    .getText()
    .replace(/^abstract /, '')
    .replace(/\s*\n\s*/g, ' ')
    .replace(/; }/g, ' }');

const has = (node, kind) => node.modifiers?.some((modifier) => modifier.kind === kind) ?? false;
const isHidden = (node) => has(node, ts.SyntaxKind.PrivateKeyword) || has(node, ts.SyntaxKind.ProtectedKeyword);

const genericsOf = ({ typeParameters }) =>
  typeParameters === undefined ? '' : `<${typeParameters.map((one) => one.getText()).join(', ')}>`;

class Surface {
  constructor(root, entry) {
    this.entry = entry;
    this.declarations = new Declarations(root, entry);
    /** Name and node of what is declared, in the order in which the entry exports it. */
    this.items = [];
    /** Names of packages and of Node, by what is imported of them. */
    this.imports = new Map();
    this.exports = new Map();
    for (const { name, target, isType } of this.exportsOf(entry)) this.exports.set(name, { ...target, isType });
    /** What the package's first entry exports, for the others: they name it and do not export it again. */
    this.first = new Map();
    if (entry !== ENTRIES.index) for (const { name, target } of this.exportsOf(ENTRIES.index)) this.first.set(name, target.file);
    for (const [name, { file, isType }] of this.exports) this.items.push(this.itemOf(name, this.declarationOf(name, file), isType));
    this.checkReferences();
  }

  /** What the entry exports: the name, and where it is declared. */
  exportsOf(file) {
    return this.declarations.file(file).statements.flatMap((statement) => {
      if (!ts.isExportDeclaration(statement)) throw new Error(`${file}: the entry only exports what other files declare`);
      return statement.exportClause.elements.map((element) => ({
        name: element.name.text,
        isType: statement.isTypeOnly || element.isTypeOnly,
        target: this.locate((element.propertyName ?? element.name).text, this.resolve(file, statement)),
      }));
    });
  }

  resolve(file, { moduleSpecifier }) {
    return moduleSpecifier.text.startsWith('.') ? join(dirname(file), moduleSpecifier.text) : undefined;
  }

  declarationOf(name, file) {
    return this.declarations.file(file).statements.find((statement) => {
      if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.some((one) => one.name.text === name);
      return statement.name?.text === name;
    });
  }

  /** The file that declares a name which is used in this one; undefined for what is global, and for what a package has. */
  locate(name, file) {
    if (this.declarationOf(name, file) !== undefined) return { file, name };
    for (const statement of this.declarations.file(file).statements) {
      if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) continue;
      const bindings = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings : statement.exportClause;
      const element = bindings?.elements?.find((one) => one.name.text === name);
      if (element === undefined) continue;
      const from = this.resolve(file, statement);
      if (from !== undefined) return this.locate((element.propertyName ?? element.name).text, from);
      this.imports.set(name, statement.moduleSpecifier.text);
    }
    return undefined;
  }

  itemOf(name, node, isType) {
    const doc = parseDoc(node);
    const item = { name, isType, doc, file: node.getSourceFile().fileName, node };
    if (ts.isClassDeclaration(node)) return { ...item, kind: 'class', ...this.classOf(node) };
    if (ts.isInterfaceDeclaration(node)) {
      // What one has of another would be missing.
      if (node.heritageClauses !== undefined) throw new Error(`${item.file}: ${name} extends another interface; write its members out`);
      const head = `interface ${name}${genericsOf(node)}`;
      return { ...item, kind: 'interface', head, members: node.members.map((member) => this.memberOf(member)) };
    }
    const text = node.getText().replace(/^export (declare )?/, '');
    if (ts.isFunctionDeclaration(node)) return { ...item, kind: 'function', ...callOf(node), text: text.replace(/;$/, '') };
    if (ts.isVariableStatement(node)) return { ...item, kind: 'const', text: text.replace(/;$/, '') };
    return { ...item, kind: 'type', isType: true, text: text.replace(/;$/, '') };
  }

  /** A class with the members of those that it extends, unless they are classes that the entry exports too, or are not ours. */
  classOf(node) {
    const own = this.membersOf(node);
    const extended = this.isExtended(node);
    const members = own.members.map((member) => {
      if (member.kind !== 'constructor' || !member.doc.isInternal) return member;
      return { ...member, text: `${extended ? 'protected' : 'private'} constructor()`, params: [] };
    });
    const shown = members.filter((member) => member.kind === 'constructor' || !member.doc.isInternal);
    const clauses = [
      ...(own.base === undefined ? [] : [`extends ${own.base}`]),
      ...(own.interfaces.length === 0 ? [] : [`implements ${own.interfaces.join(', ')}`]),
    ];
    return { head: ['class', `${node.name.text}${genericsOf(node)}`, ...clauses].join(' '), members: shown, isOpaque: own.isOpaque };
  }

  membersOf(node) {
    const clause = (token) => node.heritageClauses?.find((one) => one.token === token)?.types ?? [];
    const interfaces = clause(ts.SyntaxKind.ImplementsKeyword)
      .filter((one) => this.locate(one.expression.getText(), node.getSourceFile().fileName) === undefined)
      .map((one) => one.getText());
    const [extended] = clause(ts.SyntaxKind.ExtendsKeyword);
    const members = node.members.filter((member) => !isHidden(member)).map((member) => this.memberOf(member));
    // TypeScript says of a private constructor only that it is one.
    const sealed = node.members.find((member) => ts.isConstructorDeclaration(member) && isHidden(member));
    if (sealed !== undefined) members.push({ ...this.memberOf(sealed), doc: { ...parseDoc(sealed), isInternal: true } });
    const isOpaque = node.members.some((member) => isHidden(member) && !ts.isConstructorDeclaration(member));
    if (extended === undefined) return { members, interfaces, base: undefined, isOpaque };
    const place = this.locate(extended.expression.getText(), node.getSourceFile().fileName);
    if (place === undefined || this.exports.has(place.name)) return { members, interfaces, base: extended.getText(), isOpaque };
    const below = this.membersOf(this.declarationOf(place.name, place.file));
    const isOverridden = ({ name, isStatic }) => members.some((own) => own.name === name && own.isStatic === isStatic);
    return {
      members: [...below.members.filter((member) => !isOverridden(member)), ...members],
      interfaces: [...below.interfaces, ...interfaces],
      base: below.base,
      isOpaque: isOpaque || below.isOpaque,
    };
  }

  isExtended({ name }) {
    return [...this.exports].some(([other, { file }]) => {
      const node = this.declarationOf(other, file);
      return (
        ts.isClassDeclaration(node) &&
        node.heritageClauses?.some((one) => one.types.some((type) => type.expression.getText() === name.text))
      );
    });
  }

  memberOf(node) {
    const kind = ts.isConstructorDeclaration(node)
      ? 'constructor'
      : ts.isMethodDeclaration(node) || ts.isMethodSignature(node)
        ? 'method'
        : ts.isGetAccessorDeclaration(node)
          ? 'getter'
          : ts.isSetAccessorDeclaration(node)
            ? 'setter'
            : 'property';
    const name = kind === 'constructor' ? 'constructor' : node.name.getText();
    const isStatic = has(node, ts.SyntaxKind.StaticKeyword);
    const text = lineOf(node).replace(/;$/, '');
    const type = node.type && lineOf(node.type);
    return { name, kind, isStatic, text, type, doc: parseDoc(node), node, ...(node.parameters === undefined ? {} : callOf(node)) };
  }

  /** Whatever a declaration names must be exported too, or be global: nobody could name it otherwise. */
  checkReferences() {
    const inner = new Set();
    const look = (node, item) => {
      if (ts.isImportTypeNode(node)) throw new Error(`${item.file}: the type of something in ${item.name} is not written out`);
      const named = ts.isTypeReferenceNode(node) ? node.typeName : ts.isTypeQueryNode(node) ? node.exprName : undefined;
      if (named !== undefined && ts.isIdentifier(named)) {
        const place = this.locate(named.text, node.getSourceFile().fileName);
        const isMissing = place !== undefined && !this.exports.has(place.name);
        if (isMissing && this.first.get(place.name) === place.file) this.imports.set(place.name, PACKAGE);
        else if (isMissing) inner.add(`${item.name} names ${place.name}`);
      }
      ts.forEachChild(node, (child) => look(child, item));
    };
    for (const item of this.items) {
      for (const member of item.members ?? []) if (!/^(private|protected) constructor\(\)$/.test(member.text)) look(member.node, item);
      for (const clause of item.kind === 'class' ? (item.node.heritageClauses ?? []) : []) {
        for (const type of clause.types) for (const argument of type.typeArguments ?? []) look(argument, item);
      }
      if (item.members === undefined) look(item.node, item);
    }
    if (inner.size > 0) throw new Error(`${this.entry} does not export what its declarations name: ${[...inner].join('; ')}`);
  }
}

function callOf(node) {
  const params = node.parameters.map((one) => ({
    name: one.name.getText(),
    type: one.type === undefined ? 'any' : lineOf(one.type),
    isOptional: one.questionToken !== undefined,
    text: lineOf(one),
  }));
  return { params, returns: node.type && lineOf(node.type) };
}

/** The call that a member is another form of: `sendSync`, `isend` and `sendInit` are forms of `send`. */
export function baseOf(name, names) {
  const without = name.replace(/(Sync|Init)$/, '');
  if (without !== name && names.has(without)) return without;
  const rest = /^i([a-z]\w*)$/.exec(name)?.[1];
  return rest !== undefined && names.has(rest) ? rest : undefined;
}

/** What is said once, of the promise, holds for the other forms of a call: parameters that they share, and errors. */
function fillForms(members) {
  const byName = new Map(members.map((member) => [`${member.isStatic} ${member.name}`, member]));
  for (const member of members) {
    const names = new Set(members.filter(({ isStatic }) => isStatic === member.isStatic).map(({ name }) => name));
    const base = baseOf(member.name, names);
    member.base = base;
    if (base === undefined) continue;
    const { doc } = byName.get(`${member.isStatic} ${base}`);
    const hasOptions = member.params.some(({ name }) => name === 'options');
    const isTimedOnly = member.params.some(({ type }) => type === 'SyncOptions');
    const inherited = doc.throws.flatMap((text) => {
      const [, ending] = /^ERR_TIMEOUT, ERR_ABORTED(:.*)$/.exec(text) ?? [];
      if (ending === undefined) return [text];
      if (!hasOptions) return [];
      return [isTimedOnly ? `ERR_TIMEOUT${ending}` : text];
    });
    const params = Object.fromEntries(member.params.flatMap(({ name }) => (name in doc.params ? [[name, doc.params[name]]] : [])));
    member.full = { ...member.doc, params: { ...params, ...member.doc.params }, throws: [...member.doc.throws, ...inherited] };
  }
}

/** Everything that an entry exports, in its order: `{ items, imports }`. */
export function readSurface(root = ROOT, entry = ENTRIES.index) {
  const { items, imports } = new Surface(root, entry);
  for (const { members } of items) if (members !== undefined) fillForms(members);
  return { items, imports };
}

/** Public members and names without a docstring. */
export function undocumented({ items }) {
  return items.flatMap(({ name, doc, members = [] }) => [
    ...(doc.text === '' ? [name] : []),
    ...members.filter((member) => member.doc.text === '' && !member.doc.isInternal).map((member) => `${name}.${member.name}`),
  ]);
}
