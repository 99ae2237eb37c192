// Method: processors from the texts of /proc and /sys that a test makes up, and the question of who is crowded from lists of ranks.
import { describe, expect, test } from 'vitest';
import { checkProcessors, isCrowded, ownProcessors } from '../../../src/mpi/processors.ts';

/** Files by path; all others do not exist. */
const reader = (files: Record<string, string>) => (path: string) => {
  const text = files[path];
  if (text === undefined) throw new Error(`ENOENT: ${path}`);
  return text;
};
const STATUS = { '/proc/self/status': 'Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,6\nThreads:\t11\n' };

describe('what a process may use', () => {
  test('its affinity mask, as the kernel lists it', () => {
    expect(ownProcessors(reader(STATUS), 64)).toEqual({ cpus: '0-3,6' });
  });

  test('without /proc, as many as Node says', () => {
    expect(ownProcessors(reader({}), 8)).toEqual({ cpus: '0-7' });
  });

  test('the tightest limit of its control group and those above it, version 2', () => {
    const files = {
      ...STATUS,
      '/proc/self/cgroup': '0::/jobs/one\n',
      '/sys/fs/cgroup/jobs/one/cpu.max': 'max 100000\n',
      '/sys/fs/cgroup/jobs/cpu.max': '150000 100000\n',
    };
    expect(ownProcessors(reader(files), 64)).toEqual({ cpus: '0-3,6', limit: 1.5 });
  });

  test('in a container the own group is the topmost', () => {
    const files = { ...STATUS, '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '200000 100000\n' };
    expect(ownProcessors(reader(files), 64)).toEqual({ cpus: '0-3,6', limit: 2 });
  });

  test('version 1; a quota of -1 is no limit', () => {
    const files = {
      ...STATUS,
      '/proc/self/cgroup': '4:memory:/m\n2:cpu,cpuacct:/a/b\n0::/\n',
      '/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us': '-1\n',
      '/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us': '50000\n',
      '/sys/fs/cgroup/cpu/a/cpu.cfs_period_us': '100000\n',
    };
    expect(ownProcessors(reader(files), 64)).toEqual({ cpus: '0-3,6', limit: 0.5 });
  });

  test('here, it is what another rank would believe', () => {
    const own = ownProcessors();
    expect(checkProcessors(JSON.parse(JSON.stringify(own)))).toEqual(own);
  });
});

test('what another rank published is looked at before it is believed', () => {
  expect(checkProcessors({ cpus: '0-1', limit: 0.5, more: 1 })).toEqual({ cpus: '0-1', limit: 0.5 });
  expect(checkProcessors({ cpus: '0-1', limit: -1 })).toEqual({ cpus: '0-1' });
  for (const value of [undefined, null, 3, {}, { cpus: 4 }, { cpus: '' }, { cpus: 'x' }, { cpus: '0,'.repeat(20_000) }]) {
    expect(checkProcessors(value)).toBeUndefined();
  }
});

describe('who is crowded', () => {
  const same = (n: number, cpus: string) => Array.from({ length: n }, () => ({ cpus }));

  test('as many ranks as processors are not, one more is', () => {
    expect(isCrowded({ cpus: '0-1' }, same(1, '0-1'))).toBe(false);
    expect(isCrowded({ cpus: '0-1' }, same(2, '0-1'))).toBe(true);
    expect(isCrowded({ cpus: '0-2' }, same(2, '0-2'))).toBe(false);
  });

  test('ranks that are bound to a processor each are not; two on one are', () => {
    expect(isCrowded({ cpus: '0' }, [{ cpus: '1' }])).toBe(false);
    expect(isCrowded({ cpus: '0' }, [{ cpus: '1' }, { cpus: '0' }])).toBe(true);
  });

  test('who may use several counts for a part on each', () => {
    expect(isCrowded({ cpus: '0-1' }, [{ cpus: '0-3' }, { cpus: '0-3' }])).toBe(false);
    expect(isCrowded({ cpus: '0-1' }, [{ cpus: '0-3' }, { cpus: '0-3' }, { cpus: '0-3' }])).toBe(true);
  });

  test('a limit of the control group counts', () => {
    expect(isCrowded({ cpus: '0-7', limit: 2 }, same(1, '0-7'))).toBe(false);
    expect(isCrowded({ cpus: '0-7', limit: 2 }, same(2, '0-7'))).toBe(true);
    expect(isCrowded({ cpus: '0-7', limit: 0.5 }, [])).toBe(true);
  });

  test('a rank that published nothing is taken to be like this one', () => {
    expect(isCrowded({ cpus: '0-1' }, [undefined, undefined])).toBe(true);
  });

  test('no more ranks are asked than it takes', () => {
    let asked = 0;
    function* others() {
      for (;;) {
        asked++;
        yield { cpus: '0-1' };
      }
    }
    expect(isCrowded({ cpus: '0-1' }, others())).toBe(true);
    expect(asked).toBe(2);
    expect(isCrowded({ cpus: '0-7' }, others(), 7)).toBe(false);
    expect(asked).toBe(2);
  });
});
