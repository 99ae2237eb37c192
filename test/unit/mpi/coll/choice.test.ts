// The rules that choose algorithms, their parameters, and what `multirail info --collectives` prints of them.
import { describe, expect, test } from 'vitest';
import { ALGORITHMS, type CollectiveName, chooseAlgorithm, type Shape, tuningOf } from '../../../../src/mpi/coll/choice.ts';
import { PARAMS, ParamTable } from '../../../../src/params.ts';
import { collectiveLines, collectivesOf } from '../../../../tools/cli/info-collectives.ts';

const tuning = (params: Record<string, string> = {}) => tuningOf(new ParamTable(params));
const choose = (name: CollectiveName, shape: Shape, params?: Record<string, string>) => chooseAlgorithm(name, shape, tuning(params));
const KIB = 1024;

describe('choice of algorithms', () => {
  test('by length and number of ranks, at the thresholds', () => {
    expect(choose('bcast', { size: 8, bytes: 64 * KIB - 1 })).toBe('binomial');
    expect(choose('bcast', { size: 8, bytes: 64 * KIB })).toBe('scatter_allgather');
    expect(choose('bcast', { size: 3, bytes: 64 * KIB })).toBe('binomial');
    const long = { bytes: 1024 * KIB, commute: true, units: 131_072 };
    expect(choose('allreduce', { size: 8, bytes: 8, commute: true, units: 1 })).toBe('recursive_doubling');
    expect(choose('allreduce', { size: 8, ...long })).toBe('rabenseifner');
    expect(choose('allreduce', { size: 7, ...long })).toBe('ring');
    expect(choose('allreduce', { size: 7, ...long, commute: false })).toBe('rabenseifner');
    expect(choose('allreduce', { ...long, size: 2, bytes: 2 * 1024 * KIB })).toBe('recursive_doubling');
    expect(choose('allreduce', { ...long, size: 2, bytes: 4 * 1024 * KIB })).toBe('rabenseifner');
    expect(choose('allgather', { size: 8, bytes: 100 })).toBe('recursive_doubling');
    expect(choose('allgather', { size: 7, bytes: 100 })).toBe('bruck');
    expect(choose('allgather', { size: 7, bytes: 64 * KIB })).toBe('ring');
    expect(choose('alltoall', { size: 8, bytes: 256 })).toBe('bruck');
    expect(choose('alltoall', { size: 7, bytes: 256 })).toBe('linear');
    expect(choose('alltoall', { size: 7, bytes: 32 * KIB })).toBe('pairwise');
    expect(choose('reduce_scatter', { size: 7, bytes: 32, commute: false, units: 8 })).toBe('reduce_scatterv');
  });

  test('thresholds are parameters, and an algorithm can be forced where it can be used', () => {
    expect(choose('bcast', { size: 4, bytes: 10 }, { coll_bcast_long_bytes: '10' })).toBe('scatter_allgather');
    const few = { size: 4, bytes: 16, commute: true, units: 2 };
    expect(choose('allreduce', few, { coll_allreduce_algorithm: 'ring' })).toBe('recursive_doubling');
    const enough = { ...few, units: 4 };
    expect(choose('allreduce', enough, { coll_allreduce_algorithm: 'ring' })).toBe('ring');
    expect(choose('allreduce', { ...enough, commute: false }, { coll_allreduce_algorithm: 'ring' })).toBe('recursive_doubling');
    expect(choose('allgather', { size: 6, bytes: 6 }, { coll_allgather_algorithm: 'recursive_doubling' })).toBe('bruck');
    expect(() => tuning({ coll_bcast_algorithm: 'carrier_pigeon' })).toThrow(/ERR_CONFIG.*binomial/);
  });

  test('ranks of one host share memory for what fits into it, unless another algorithm is forced', () => {
    const one = { size: 4, bytes: 64 * KIB, commute: true, units: 8192, isOneHost: true };
    for (const call of ['barrier', 'bcast', 'reduce', 'allreduce', 'allgather'] as const) {
      expect(choose(call, one), call).toBe('shared_memory');
      expect(choose(call, { ...one, isOneHost: false }), call).not.toBe('shared_memory');
      if (call !== 'barrier') expect(choose(call, { ...one, bytes: 64 * KIB + 8 }), call).not.toBe('shared_memory');
    }
    expect(choose('allreduce', { ...one, isOfUser: true })).not.toBe('shared_memory');
    expect(choose('alltoall', { ...one, bytes: 16 * KIB })).toBe('shared_memory');
    expect(choose('alltoall', { ...one, bytes: 16 * KIB + 1 })).toBe('linear');
    expect(choose('gather', one)).toBe('linear');
    expect(choose('bcast', one, { coll_bcast_algorithm: 'binomial' })).toBe('binomial');
    expect(choose('bcast', { ...one, isOneHost: false }, { coll_bcast_algorithm: 'shared_memory' })).toBe('scatter_allgather');
    expect(choose('bcast', { ...one, bytes: 9 }, { coll_shared_memory_bytes_max: '8' })).toBe('binomial');
    expect(choose('bcast', { ...one, size: 1 })).toBe('binomial');
    for (const [size, bytes] of [
      [16, 64 * KIB],
      [256, 240],
    ]) {
      expect(choose('barrier', { ...one, size, bytes: 0 })).toBe('shared_memory');
      expect(choose('allreduce', { ...one, size, bytes })).toBe('shared_memory');
      expect(choose('allreduce', { ...one, size: size + 1, bytes })).not.toBe('shared_memory');
    }
    expect(choose('bcast', { ...one, size: 16 })).toBe('shared_memory');
    expect(choose('bcast', { ...one, size: 17, bytes: 8 })).toBe('binomial');
    expect(choose('barrier', { ...one, size: 257 })).toBe('dissemination');
    expect(choose('barrier', { ...one, size: 17 }, { coll_shared_memory_short_ranks_max: '16' })).toBe('dissemination');
    expect(choose('bcast', { ...one, size: 17 }, { coll_shared_memory_ranks_max: '17' })).toBe('shared_memory');
    // Where all may, these may, too.
    const all = { coll_shared_memory_ranks_max: '17', coll_shared_memory_short_ranks_max: '2' };
    for (const call of ['barrier', 'bcast', 'allreduce'] as const)
      expect(choose(call, { ...one, size: 17 }, all), call).toBe('shared_memory');
  });

  test('every parameter of an algorithm names exactly the algorithms that there are', () => {
    for (const [call, algorithms] of Object.entries(ALGORITHMS)) {
      const spec = PARAMS[`coll_${call}_algorithm` as 'coll_bcast_algorithm'];
      expect([...(spec.choices ?? [])].sort(), call).toEqual(['auto', ...algorithms].sort());
    }
  });

  test('info prints rule, choices and formulas of each call', () => {
    const list = collectivesOf(new ParamTable({ coll_bcast_algorithm: 'chain', coll_shared_memory_ranks_max: '33' }), 33);
    expect(list.map(({ call }) => call)).toEqual(Object.keys(ALGORITHMS));
    const lines = collectiveLines(list, 33).join('\n');
    expect(lines).toMatch(/bcast: chain, as coll_bcast_algorithm says/);
    expect(lines).toMatch(
      /allreduce: on one host, up to coll_shared_memory_ranks_max ranks, through shared memory, up to coll_shared_memory_bytes_max, and up to coll_shared_memory_short_ranks_max ranks up to 240 bytes \(not those of Op.create\(\)\); else recursive doubling; from coll_allreduce_long_bytes on, with 2 ranks 256 times that, Rabenseifner/,
    );
    for (const { algorithms } of list) for (const { name } of algorithms) expect(lines).toContain(`  ${name}\n      messages `);
    const sum = list.find(({ call }) => call === 'allreduce');
    expect(sum?.choices[0]).toEqual({
      bytes: 8,
      algorithm: 'recursive_doubling',
      messages: 6,
      sentBytes: 48,
      rounds: 7,
      onOneHost: 'shared_memory',
    });
    expect(sum?.choices.at(-1)?.onOneHost).toBe('ring');
    const off = collectivesOf(new ParamTable({ coll_shared_memory: 'false' }), 33).find(({ call }) => call === 'allreduce');
    expect(off?.rule).toMatch(/^recursive doubling/);
    expect(off?.choices[0].onOneHost).toBe('recursive_doubling');
  });
});
