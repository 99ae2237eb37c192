// /metrics: read by a strict checker in both formats, which is itself checked against text that breaks the rules.
import { describe, expect, test } from 'vitest';
import { RAIL_COUNTERS, SAVE_COUNTERS } from '../../../src/launch/oob/telemetry.ts';
import { PML_COUNTERS } from '../../../src/pml/counters.ts';
import { formatFor, metricsText, snakeCase } from '../../../tools/dashboard/metrics.ts';
import { parseExposition, sampleValue } from './exposition.ts';
import { countersOf, makeModel, makeRunningModel, railReport, report, TestClock } from './telemetry-examples.ts';

describe('metrics', () => {
  test.each(['prometheus', 'openmetrics'] as const)('%s: a running job', (format) => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    clock.ms = 1000;
    model.telemetry(
      0,
      report(1000, [railReport(1, 1, { state: 'DOWN', counters: countersOf({ downs: 1, payloadBytesSent: 2_000_000 }) })]),
    );
    const families = parseExposition(metricsText(model, format), format);
    const total = format === 'prometheus' ? '_total' : '';
    const rail = { rank: 0, peer: 1, rail: 1, transport: 'tcp' };
    expect(sampleValue(families, 'multirail_rail_up', rail)).toBe(0);
    expect(sampleValue(families, 'multirail_rail_up', { ...rail, rail: 0 })).toBe(1);
    expect(sampleValue(families, 'multirail_rail_state', { ...rail, state: 'DOWN' })).toBe(1);
    expect(sampleValue(families, 'multirail_rail_state', { ...rail, state: 'UP' })).toBe(0);
    expect(sampleValue(families, `multirail_rail_payload_sent_bytes${total}`, rail)).toBe(2_000_000);
    expect(sampleValue(families, `multirail_rail_downs${total}`, rail)).toBe(1);
    expect(sampleValue(families, `multirail_pml_messages_sent${total}`, { rank: 1 })).toBe(7);
    expect(sampleValue(families, `multirail_events${total}`, { type: 'rank-joined', rank: 0 })).toBe(1);
    expect(sampleValue(families, 'multirail_rank_report_age_seconds', { rank: 1 })).toBeCloseTo(0.25);
    expect(sampleValue(families, 'multirail_job_running', {})).toBe(1);
    const labels = families.get('multirail_rail_up')?.samples.map((sample) => Object.keys(sample.labels).join());
    expect(new Set(labels)).toEqual(new Set(['rank,peer,rail,transport']));
  });

  test('every counter of rails and of the PML is there, with its sentence', () => {
    const model = makeModel(new TestClock());
    model.telemetry(0, report(0, [railReport(1, 0)], { counters: Object.fromEntries(Object.keys(PML_COUNTERS).map((name) => [name, 1])) }));
    const families = parseExposition(metricsText(model, 'prometheus'), 'prometheus');
    const helps = [...families.values()].map(({ help }) => help);
    for (const sentence of [...Object.values(RAIL_COUNTERS), ...Object.values(PML_COUNTERS)]) {
      expect(
        helps.filter((help) => help === sentence),
        sentence,
      ).toHaveLength(1);
    }
  });

  test('saves are there where a program runs under run(), with the share of time that was of use', () => {
    const model = makeModel(new TestClock());
    expect(metricsText(model, 'prometheus')).not.toContain('multirail_ft_');
    const values = Object.fromEntries(Object.keys(SAVE_COUNTERS).map((name) => [name, 2]));
    model.telemetry(0, report(0, [], { counters: { ...values, ftUsefulMs: 750, ftElapsedMs: 1000 } }));
    const families = parseExposition(metricsText(model, 'prometheus'), 'prometheus');
    expect(sampleValue(families, 'multirail_ft_saves_committed_total', { rank: 0 })).toBe(2);
    expect(sampleValue(families, 'multirail_ft_tolerance_left', { rank: 0 })).toBe(2);
    expect(sampleValue(families, 'multirail_ft_useful_ratio', { rank: 0 })).toBe(0.75);
    const helps = [...families.values()].map(({ help }) => help);
    for (const { text } of Object.values(SAVE_COUNTERS)) expect(helps.filter((help) => help === text)).toHaveLength(1);
  });

  test('a job that has ended, and names with every odd character', () => {
    const clock = new TestClock();
    const odd = 'a "quoted" \\ back\\nslash\nand a line';
    const model = makeModel(clock, { jobId: odd });
    model.ended(0, undefined);
    const families = parseExposition(metricsText(model, 'prometheus'), 'prometheus');
    expect(families.get('multirail_job_info')?.samples[0].labels.job).toBe(odd);
    expect(sampleValue(families, 'multirail_job_running', {})).toBe(0);
  });

  test('which format is wanted', () => {
    expect(formatFor(undefined)).toBe('prometheus');
    expect(formatFor('text/plain;version=0.0.4;q=0.5,*/*;q=0.1')).toBe('prometheus');
    expect(formatFor('application/openmetrics-text;version=1.0.0;q=0.8,text/plain')).toBe('openmetrics');
    expect(snakeCase('framesInDoubt')).toBe('frames_in_doubt');
  });

  test.each([
    ['a sample without its family', 'a_total 1\n'],
    ['TYPE without HELP', '# TYPE a gauge\na 1\n'],
    ['an unknown type', '# HELP a x\n# TYPE a thing\na 1\n'],
    ['a counter without _total', '# HELP a x\n# TYPE a counter\na 1\n'],
    ['the same sample twice', '# HELP a x\n# TYPE a gauge\na{b="1"} 1\na{b="1"} 2\n'],
    ['a quote that is not escaped', '# HELP a x\n# TYPE a gauge\na{b="1"2"} 1\n'],
    ['a value that is none', '# HELP a x\n# TYPE a gauge\na one\n'],
    ['no end of the line', '# HELP a x\n# TYPE a gauge\na 1'],
    ['a family without samples', '# HELP a x\n# TYPE a gauge\n'],
    ['a family twice', '# HELP a x\n# TYPE a gauge\na 1\n# HELP a x\n# TYPE a gauge\na{b="2"} 1\n'],
  ])('the checker refuses %s', (_name, text) => {
    expect(() => parseExposition(text, 'prometheus')).toThrow();
  });
});
