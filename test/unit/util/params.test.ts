// The table of parameters: where values come from, earlier names, and what is refused.
import { describe, expect, test } from 'vitest';
import { OLD_PARAM_NAMES, PARAM_GROUPS, PARAMS, ParamTable } from '../../../src/params.ts';

describe('parameters', () => {
  test('every row is in one group, and no name is there twice', () => {
    const names = Object.values(PARAM_GROUPS).flatMap((rows) => Object.keys(rows));
    expect(names.length).toBeGreaterThan(100);
    expect(new Set(names).size).toBe(names.length);
    expect(names.sort()).toEqual(Object.keys(PARAMS).sort());
  });

  test('an argument wins over the environment, which wins over the default', () => {
    const env = { MULTIRAIL_MCA_btl_tcp_links: '3', OTHER: '1' };
    expect(new ParamTable({}, {}).int('btl_tcp_links')).toBe(1);
    expect(new ParamTable({}, env).int('btl_tcp_links')).toBe(3);
    expect(new ParamTable({ btl_tcp_links: '2' }, env).int('btl_tcp_links')).toBe(2);
  });

  test('a name of before sets the parameter, and says so once', () => {
    for (const [before, now] of Object.entries(OLD_PARAM_NAMES)) {
      expect(before in PARAMS).toBe(false);
      expect(now in PARAMS).toBe(true);
    }
    const params = new ParamTable({ btl_tcp_bandwidth_mbps: '77' }, { MULTIRAIL_MCA_btl_tcp_standby: 'eth9' });
    expect(params.int('btl_tcp_bandwidth_mbytes_per_s')).toBe(77);
    expect(params.list('btl_tcp_if_standby')).toEqual(['eth9']);
    expect(params.warnings).toEqual([
      'parameter btl_tcp_standby (environment MULTIRAIL_MCA_btl_tcp_standby) is called btl_tcp_if_standby now; the old name goes with the next release',
      'parameter btl_tcp_bandwidth_mbps (argument) is called btl_tcp_bandwidth_mbytes_per_s now; the old name goes with the next release',
    ]);
    expect(new ParamTable({ btl_tcp_links: '2' }).warnings).toEqual([]);
  });

  test('both names at once are refused, whichever comes first; one of each source is not', () => {
    const both = { btl_tcp_standby: 'eth1', btl_tcp_if_standby: 'eth2' };
    expect(() => new ParamTable(both)).toThrow(/ERR_CONFIG.*set it once/);
    expect(() => new ParamTable(Object.fromEntries(Object.entries(both).reverse()))).toThrow(/set it once/);
    const params = new ParamTable({ btl_tcp_if_standby: 'eth2' }, { MULTIRAIL_MCA_btl_tcp_standby: 'eth1' });
    expect(params.list('btl_tcp_if_standby')).toEqual(['eth2']);
  });

  test('an unknown name, and a value out of range, are refused with what is expected', () => {
    expect(() => new ParamTable({ nope: '1' })).toThrow('unknown parameter "nope" (argument); multirail info --all lists them');
    expect(() => new ParamTable({ bml_rail_timeout_ms: '5' })).toThrow('expected a whole number of ms from 20 to 600000');
    expect(() => new ParamTable({ toString: '1' })).toThrow('unknown parameter');
  });
});
