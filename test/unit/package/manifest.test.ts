// What package.json and package-lock.json promise to people who install the package: every platform's packages are in the lock file, no
// registry is asked for one of this project's packages, and no address of one machine's registry is written down.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { missingEntries } from '../../package/lock.mjs';

const ROOT = new URL('../../../', import.meta.url);
const json = (path: string) => JSON.parse(readFileSync(new URL(path, ROOT), 'utf8'));

describe('the lock file', () => {
  test('names the packages of every platform, which `npm ci` of npm 11 insists on', () => {
    expect(missingEntries(json('package-lock.json'))).toEqual({});
  });

  test('an optional package without an entry is found, wherever it would be installed', () => {
    const lock = {
      packages: {
        '': { name: 'root' },
        'node_modules/tool': { dev: true, optionalDependencies: { 'tool-linux-arm64-musl': '1.2.3', 'tool-darwin-x64': '1.2.3' } },
        'node_modules/tool/node_modules/tool-darwin-x64': { version: '1.2.3' },
      },
    };
    expect(missingEntries(lock)).toEqual({
      'node_modules/tool-linux-arm64-musl': {
        version: '1.2.3',
        cpu: ['arm64'],
        dev: true,
        libc: ['musl'],
        optional: true,
        os: ['linux'],
      },
    });
  });

  test('is of this package.json, and names no registry', () => {
    const lock = json('package-lock.json');
    const { dependencies, devDependencies, workspaces } = json('package.json');
    expect(lock.packages['']).toMatchObject({ dependencies, devDependencies, workspaces });
    expect(readFileSync(new URL('package-lock.json', ROOT), 'utf8')).not.toMatch(
      /https?:\/\/(?!opencollective|github|www|tidelift)[^"]*\.tgz/,
    );
  });
});

describe('package.json', () => {
  test('no kind of dependency names a package of our own', () => {
    const manifest = json('package.json');
    const own = manifest.workspaces.map((folder: string) => json(`${folder}/package.json`).name);
    expect(own).toEqual(['node-rdma']);
    for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies', 'devDependencies'])
      for (const name of own) expect(Object.keys(manifest[kind] ?? {}), kind).not.toContain(name);
  });

  test('who installs the package needs two others', () => {
    expect(Object.keys(json('package.json').dependencies)).toEqual(['node-gyp-build']);
  });
});
