// The tables must be what programs that read OSU's output expect, to the character.
import { expect, describe as group, test } from 'vitest';
import { defaultRepeats, latencyUs, megabytesPerSecond, parseBytes, parseSizes, tableHead, tableRow } from '../../../tools/bench/osu.ts';

group('tables', () => {
  test('latency', () => {
    expect(tableHead('latency', { pairs: 1, window: 64 })).toEqual([
      '# multirail Latency Test (OSU scheme)',
      '# Size          Latency (us)',
    ]);
    expect(tableRow({ sizeBytes: 1, values: [0.9449] })).toBe('1                       0.94');
    expect(tableRow({ sizeBytes: 4194304, values: [1234.5678] })).toBe('4194304              1234.57');
  });

  test('bandwidth one way and both ways', () => {
    for (const name of ['bw', 'bibw'] as const) {
      expect(tableHead(name, { pairs: 1, window: 64 }).at(-1)).toBe('# Size      Bandwidth (MB/s)');
    }
  });

  test('message rate names pairs and window and has a third column', () => {
    expect(tableHead('rate', { pairs: 2, window: 32 }).slice(1)).toEqual([
      '# [ pairs: 2 ] [ window size: 32 ]',
      '# Size                  MB/s        Messages/s',
    ]);
    expect(tableRow({ sizeBytes: 8, values: [1.5, 187500] })).toBe('8                       1.50         187500.00');
  });
});

group('arithmetic', () => {
  test('latency is half a round trip, bandwidth is in units of 10^6 bytes', () => {
    expect(latencyUs(200, 1000)).toBe(100);
    expect(megabytesPerSecond(5_000_000, 1000)).toBe(5);
  });

  test('long messages are repeated less often', () => {
    expect(defaultRepeats('latency', 8192)).toEqual({ iterations: 1000, warmup: 100 });
    expect(defaultRepeats('latency', 8193)).toEqual({ iterations: 100, warmup: 10 });
    expect(defaultRepeats('bw', 1)).toEqual({ iterations: 100, warmup: 10 });
    expect(defaultRepeats('bw', 4194304)).toEqual({ iterations: 20, warmup: 2 });
  });
});

group('sizes', () => {
  test('by default all doublings from 1 byte to 4 MiB', () => {
    const sizes = parseSizes(undefined);
    expect([sizes.length, sizes[0], sizes.at(-1)]).toEqual([23, 1, 4 * 1024 * 1024]);
  });

  test('lists, units and doublings', () => {
    expect(parseSizes('0,8,64k,4m')).toEqual([0, 8, 65536, 4194304]);
    expect(parseSizes('3..20,1k')).toEqual([3, 6, 12, 1024]);
    expect(parseBytes('1G')).toBe(1024 ** 3);
  });

  test.each(['', 'x', '-1', '1..', '0..8', '8..4', '1..2..3', '2g', '1.5k', Array(65).fill('1').join(',')])('%j is refused', (text) => {
    expect(() => parseSizes(text)).toThrow(/^ERR_ARG/);
  });
});
