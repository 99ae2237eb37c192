// What `multirail info` says, from invented environments.
import { expect, test } from 'vitest';
import { loadNative } from '../../../src/native/load.ts';
import { PARAMS } from '../../../src/params.ts';
import { commandLine, pairMca } from '../../../tools/cli/bench.ts';
import { collectInfo, infoLines, launcherOf } from '../../../tools/cli/info.ts';

test('transports that are off say why', () => {
  const { transports, transportError } = collectInfo('1.2.3', { btl: 'self,tcp' }, {});
  expect(transportError).toBeUndefined();
  expect(transports.map(({ name, isOn }) => [name, isOn])).toEqual([
    ['self', true],
    ['sm', false],
    ['verbs', false],
    ['tcp', true],
    ['ws', false],
  ]);
  expect(transports.at(-1)?.reason).toBe('not named by btl = "self,tcp"');
});

test('every parameter is listed with default, range and meaning; changed ones with their origin', () => {
  const info = collectInfo('1.2.3', { btl_tcp_links: '2' }, { MULTIRAIL_MCA_pml_frag_bytes: '64k' });
  const all = infoLines(info, true).join('\n');
  for (const [name, { text }] of Object.entries(PARAMS)) {
    expect(all).toMatch(new RegExp(`^  ${name} = `, 'm'));
    expect(all).toContain(text);
  }
  // By who sets them: users first.
  const place = (text: string) => all.indexOf(text);
  expect(place('for users')).toBeLessThan(place('\n  btl_tcp_links = '));
  expect(place('\n  btl_tcp_links = ')).toBeLessThan(place('for tuning'));
  expect(place('for tuning')).toBeLessThan(place('\n  bml_window_ms = '));
  expect(place('for work on multirail')).toBeLessThan(place('\n  btl_fault = '));
  const some = infoLines(info, false).join('\n');
  expect(some).toContain('btl_tcp_links = 2 connections [argument]');
  expect(some).toContain('pml_frag_bytes = 65536 bytes [environment MULTIRAIL_MCA_pml_frag_bytes]');
  expect(some).not.toContain('bml_window_ms');
});

test('an interface that is excluded is shown as not used', () => {
  const info = collectInfo('1.2.3', { btl: 'self,tcp', btl_tcp_if_include: 'no-such-interface' }, {});
  for (const found of info.interfaces) expect(found.use).toMatch(/^not used/);
});

test('what loopback is for, where shared memory carries what goes from rank to rank of this host', () => {
  const useWith = (mca: Record<string, string>) => collectInfo('1.2.3', mca, {}).interfaces.find(({ isLoopback }) => isLoopback)?.use;
  expect(useWith({ btl: 'self,tcp' })).toBe('tcp between ranks on this host');
  if (loadNative().binding === undefined) return;
  expect(useWith({ btl: 'self,sm,tcp' })).toBe('tcp between ranks on this host, made when shared memory fails (bml_spare_rails)');
  expect(useWith({ btl: 'self,sm,tcp', bml_spare_rails: 'always' })).toBe('tcp between ranks on this host');
});

test('the launcher', () => {
  const ours = { MULTIRAIL_RANK: '1', MULTIRAIL_SIZE: '4', MULTIRAIL_JOB_ID: 'job', MULTIRAIL_OOB: 'ws://127.0.0.1:1/x' };
  expect(launcherOf(ours)).toBe('multirail run (by MULTIRAIL_RANK): rank 1 of 4; the launcher is at ws://127.0.0.1:1/x');
  expect(launcherOf({ MULTIRAIL_RANK: '1' })).toMatch(/^multirail run .*but init\(\) would fail: MULTIRAIL_SIZE is not set/);
  expect(launcherOf({})).toMatch(/^none/);
  expect(launcherOf({ RANK: '0', WORLD_SIZE: '2' })).toMatch(
    /^torchrun style \(by RANK, WORLD_SIZE\), but init\(\) would fail: MASTER_ADDR and MASTER_PORT are not set/,
  );
  // A batch script, which is no task of srun.
  expect(launcherOf({ SLURM_PROCID: '0', SLURM_NTASKS: '4' })).toMatch(/^none/);
  expect(launcherOf({ RANK: '2', WORLD_SIZE: '3', MASTER_ADDR: 'node7', MASTER_PORT: '29500' })).toBe(
    'torchrun style (by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT): rank 2 of 3; the ranks meet at node7:29500 (MASTER_ADDR and MASTER_PORT), ' +
      'without a secret: on loopback only (MULTIRAIL_SECRET_FILE is not set)',
  );
});

test('--mca takes NAME VALUE and NAME=VALUE', () => {
  expect(pairMca(['btl', 'self,tcp', 'btl_tcp_links=2'])).toEqual({ btl: 'self,tcp', btl_tcp_links: '2' });
  expect(() => pairMca(['btl'])).toThrow(/^ERR_ARG/);
  expect(() => pairMca(['no_such_parameter', '1'])).toThrow(/^ERR_CONFIG/);
});

test('command lines are shown as one types them', () => {
  expect(commandLine(['bench', 'bw', '--pull', '1@2s', 'a b'])).toBe('multirail bench bw --pull 1@2s "a b"');
});
