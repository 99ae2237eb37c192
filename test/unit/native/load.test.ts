// Finding and trying the binary: from the sources, from bundles of both kinds, switched off, and where there is no binary.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { NATIVE_ABI } from '../../../src/native/binding.ts';
import { loadNative, otherRuntime } from '../../../src/native/load.ts';
import { available, describeNative } from './native-fixture.ts';

const ROOT = join(import.meta.dirname, '../../..');
const inside = join(ROOT, '.cache', `load-test-${process.pid}`);
let outside = '';

beforeAll(async () => {
  outside = mkdtempSync(join(tmpdir(), 'multirail-load-'));
  for (const format of ['esm', 'cjs'] as const) {
    const name = format === 'esm' ? 'load.mjs' : 'load.cjs';
    for (const folder of [inside, outside]) {
      mkdirSync(folder, { recursive: true });
      await build({
        entryPoints: [join(ROOT, 'src/native/load.ts')],
        bundle: true,
        platform: 'node',
        format,
        outfile: join(folder, name),
        logLevel: 'error',
        // The CommonJS build has no import.meta.url; the source asks for __filename first.
        logOverride: { 'empty-import-meta': 'silent' },
      });
    }
  }
});
afterAll(() => {
  for (const folder of [inside, outside]) rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  delete process.env.MULTIRAIL_NATIVE;
});

/** What a bundle in `folder` answers, in a process of its own. */
function ask(folder: string, name: string, env: Record<string, string> = {}) {
  const code = `import(${JSON.stringify(join(folder, name))}).then(async (m) => {
    const answer = (m.loadNative ?? m.default.loadNative)();
    console.log(JSON.stringify({ abi: answer.binding?.abi, path: answer.path, reason: answer.reason }));
  })`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8', env: { ...process.env, ...env } });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as { abi?: number; path?: string; reason?: string };
}

describe('without the binary', () => {
  test('it is switched off by the environment, at any time', () => {
    process.env.MULTIRAIL_NATIVE = '0';
    expect(loadNative()).toEqual({ binding: undefined, reason: 'switched off by MULTIRAIL_NATIVE=0' });
    process.env.MULTIRAIL_NATIVE = '1';
    expect(loadNative()).toBe(available);
  });

  test('the reason names the platform when nothing was built for it', () => {
    const root = join(outside, 'empty');
    mkdirSync(join(root, 'native', 'addon'), { recursive: true });
    mkdirSync(join(root, 'dist'));
    writeFileSync(join(root, 'native', 'addon', 'package.json'), '{"name":"multirail-native"}');
    spawnSync('ln', ['-s', join(ROOT, 'node_modules'), join(root, 'node_modules')]);
    spawnSync('cp', [join(outside, 'load.mjs'), join(outside, 'load.cjs'), join(root, 'dist')]);
    for (const name of ['load.mjs', 'load.cjs']) {
      const { reason } = ask(join(root, 'dist'), name, { MULTIRAIL_NATIVE_PREBUILD: '' });
      expect(reason).toMatch(new RegExp(`^no prebuilt binary for ${process.platform}-${process.arch}`));
    }
  });

  test('a file that is no binary, and one of another interface, are reasons and not errors', () => {
    const root = join(outside, 'broken');
    const release = join(root, 'native', 'addon', 'build', 'Release');
    mkdirSync(release, { recursive: true });
    writeFileSync(join(root, 'native', 'addon', 'package.json'), '{"name":"multirail-native"}');
    spawnSync('ln', ['-s', join(ROOT, 'node_modules'), join(root, 'node_modules')]);
    spawnSync('cp', [join(outside, 'load.mjs'), root]);
    writeFileSync(join(release, 'multirail.node'), 'rubbish');
    expect(ask(root, 'load.mjs', { MULTIRAIL_NATIVE_PREBUILD: '' }).reason).toContain('does not load');
  });

  test('a bundle far from any package says where it looked', () => {
    expect(ask(outside, 'load.mjs').reason).toContain(`above ${outside}`);
  });
});

describeNative('with the binary', () => {
  test('it has the interface that the sources know, and the same answer every time', () => {
    expect(available.binding?.abi).toBe(NATIVE_ABI);
    expect(loadNative()).toBe(loadNative());
  });

  test('bundles of both kinds inside the package find it', () => {
    const { path } = available as { path: string };
    expect(ask(inside, 'load.mjs')).toMatchObject({ abi: NATIVE_ABI, path });
    expect(ask(inside, 'load.cjs')).toMatchObject({ abi: NATIVE_ABI, path });
  });

  test('it is the binary that the caller of these tests means', () => {
    const meant = process.env.MULTIRAIL_NATIVE_EXPECT ?? join(ROOT, 'native', 'addon');
    expect((available as { path: string }).path.startsWith(meant)).toBe(true);
  });
});

test('a runtime that is not Node is not given the native part, and is told why', () => {
  expect(otherRuntime(process.versions)).toBeUndefined();
  expect(otherRuntime({ node: '24.0.0', bun: '1.3.0' })).toMatch(/^Bun 1\.3\.0 has no event loop of libuv/);
  expect(otherRuntime({ node: '24.0.0', deno: '2.5.0' })).toMatch(/^Deno 2\.5\.0 has no event loop of libuv/);
});
