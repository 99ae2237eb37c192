// The plot and the words of a run, from an invented report: the SVG must be well-formed and say what happened.

import { PassThrough } from 'node:stream';
import { DOMParser } from 'linkedom';
import { expect, describe as group, test } from 'vitest';
import { newPmlCounters } from '../../../src/pml/counters.ts';
import { bar, LiveDisplay } from '../../../tools/bench/live-display.ts';
import { failoverPlot } from '../../../tools/bench/plot.ts';
import { parseRailActions } from '../../../tools/bench/rail-actions.ts';
import { reportLines, verdictLine } from '../../../tools/bench/report.ts';
import type { StreamReport, StreamView } from '../../../tools/bench/stream.ts';

const counters = () => ({
  pml: newPmlCounters(),
  collectives: { collectives: 0, messages: 0, bytes: 0, rounds: 0, atOnce: 0 },
  engine: { turns: 1, aliveMs: 1, retainedBytes: 0 },
});
const totals = { messages: 1000, bytes: 1_000_000_000, hash: 'ab'.repeat(32) };

function invented(): StreamReport {
  const actions = parseRailActions(['1@1s'], ['1@2s'], 3000);
  return {
    spec: { sizeBytes: 1_000_000, durationMs: 3000, window: 16, verify: true, seed: '1', actions, mode: 'silent', stallMs: 1000 },
    railNames: ['rail 0 (tcp:a<b>"&)', 'rail 1 (ws:c)'],
    findings: { received: totals, sent: totals, lost: 0, doubled: 0, reordered: 0, damaged: 0, problems: [] },
    problems: [],
    remarks: [],
    events: [
      { atMs: 1000, rank: 0, rail: 1, type: 'pulled', text: 'rail 1 pulled (silent)' },
      { atMs: 1400, rank: 0, rail: 1, type: 'lost', text: 'rail 1 is lost' },
      { atMs: 2000, rank: 0, rail: 1, type: 'put-back', text: 'rail 1 put back' },
      { atMs: 2900, rank: 0, rail: 1, type: 'restored', text: 'rail 1 is used again' },
    ],
    samples: Array.from({ length: 31 }, (_, i) => ({ atMs: i * 100, railBytes: [i * 30_000_000, Math.min(i, 10) * 20_000_000] })),
    phases: [
      { fromMs: 0, toMs: 1000, pulled: [], bytes: 400_000_000, worstGapMs: 3 },
      { fromMs: 1000, toMs: 2000, pulled: [1], bytes: 200_000_000, worstGapMs: 412.3 },
      { fromMs: 2000, toMs: 3000, pulled: [], bytes: 400_000_000, worstGapMs: 4 },
    ],
    worstGapMs: 412.3,
    worstGapEndMs: 1412,
    elapsedMs: 3001,
    receiverCounters: counters(),
    senderCounters: counters(),
  };
}

group('the plot', () => {
  test('is well-formed, and names rails, moments and units', async () => {
    const svg = await failoverPlot(invented(), { title: 'A title', foot: ['multirail bench bw "x" <y>', 'a machine & more'] });
    const document = new DOMParser().parseFromString(svg, 'image/svg+xml');
    expect(document.documentElement.tagName.toLowerCase()).toBe('svg');
    const texts = [...document.querySelectorAll('text')].map((text) => text.textContent);
    for (const expected of ['A title', 'rail 0 (tcp:a<b>"&)', 'rail 1 (ws:c)', 'pulled', 'MB/s', 'a machine & more'])
      expect(texts).toContain(expected);
    for (const expected of ['rail 1 pulled 1.000 s', 'rail 1 put back 2.000 s', 'loss seen 1.400 s', 'used again 2.900 s'])
      expect(texts).toContain(expected);
    expect(texts.join('\n')).toContain('time after the start (s)');
    // One area per rail, with as many steps as there are intervals.
    const areas = [...document.querySelectorAll('[aria-label="area"] path')];
    expect(areas.map((area) => area.getAttribute('fill'))).toEqual(['#4269d0', '#efb118']);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('every tag that is opened is closed', async () => {
    const svg = await failoverPlot(invented(), { title: 'A title', foot: [] });
    const open: string[] = [];
    for (const [, slash, name, rest] of svg.matchAll(/<(\/?)([a-zA-Z]+)((?:"[^"]*"|[^">])*)>/g)) {
      if (slash === '/') expect(open.pop()).toBe(name);
      else if (!rest.endsWith('/')) open.push(name);
    }
    expect(open).toEqual([]);
  });

  test('says so when the run has failed, and draws a run without samples', async () => {
    const report = { ...invented(), problems: ['3 messages lost (1-3)'] };
    expect(await failoverPlot(report, { title: 't', foot: [] })).toContain('FAILED: 3 messages lost (1-3)');
    expect(await failoverPlot({ ...invented(), samples: [] }, { title: 't', foot: [] })).not.toMatch(/NaN|undefined|Infinity/);
  });
});

group('the report', () => {
  test('passes only without a problem', () => {
    expect(verdictLine(invented())).toMatch(
      /^PASS: nothing lost, doubled or reordered \(1,000 messages, 1,000,000,000 bytes; every message verified/,
    );
    expect(verdictLine({ ...invented(), problems: ['a', 'b'] })).toBe('FAIL: a; b');
    const unverified = invented();
    unverified.spec.verify = false;
    expect(verdictLine(unverified)).toContain('contents not verified');
  });

  test('shows phases, gaps and what was done below', () => {
    const report = invented();
    report.receiverCounters.pml.fragDuplicates = 3;
    report.receiverCounters.pml.envelopeDuplicates = 4;
    (report.senderCounters as ReturnType<typeof counters>).pml.restarts = 5;
    const text = reportLines(report).join('\n');
    expect(text).toMatch(/healthy +0\.000 s +1\.000 s +400\.0 MB\/s +3\.0 ms/);
    expect(text).toMatch(/rail 1 pulled +1\.000 s +2\.000 s +200\.0 MB\/s +412\.3 ms/);
    expect(text).toMatch(/restored +2\.000 s +3\.000 s +400\.0 MB\/s +4\.0 ms/);
    expect(text).toContain('duplicates dropped below the program: 7');
    expect(text).toContain('rendezvous restarted: 5');
  });

  test('a run in which nothing is pulled by plan is not called healthy', () => {
    const report = invented();
    report.phases.splice(1);
    expect(reportLines(report).join('\n')).toMatch(/whole run +0\.000 s/);
  });

  test('says when the sender did not report', () => {
    const report = invented();
    report.findings.sent = undefined;
    report.senderCounters = undefined;
    expect(reportLines(report).join('\n')).toContain('no report');
  });
});

group('the live display', () => {
  const view = (elapsedMs: number, bytes: number[], isPulled = false): StreamView => ({
    elapsedMs,
    rails: bytes.map((count, rail) => ({
      rail,
      name: `rail ${rail} (x)`,
      state: 'UP',
      isPulled: isPulled && rail === 1,
      pulledWord: 'pulled',
      bytes: count,
    })),
    messages: 1,
    bytes: bytes.reduce((sum, count) => sum + count, 0),
  });
  function shown(isTerminal: boolean): { display: LiveDisplay; text(): string } {
    const out = new PassThrough();
    const display = new LiveDisplay({ out, isTerminal, color: false, columns: 80, durationMs: 2000 });
    return { display, text: () => String(out.read() ?? '') };
  }

  test('bars are never longer than their room', () => {
    expect([bar(0, 0, 4), bar(5, 10, 4), bar(50, 10, 4)]).toEqual(['░░░░', '██░░', '████']);
  });

  test('elsewhere than on a terminal: a line every half second, and no control characters', () => {
    const { display, text } = shown(false);
    for (let i = 0; i <= 10; i++) display.onView(view(i * 100, [i * 10_000_000, i * 20_000_000], i > 7));
    display.onEvent({ atMs: 900, rank: 0, rail: 1, type: 'pulled', text: 'rail 1 pulled (silent)' });
    expect(text()).toBe(
      [
        '  0.500 s  rail 0   100.0 MB/s  rail 1   200.0 MB/s  delivered   300.0 MB/s',
        '  1.000 s  rail 0   100.0 MB/s  rail 1   200.0 MB/s (pulled)  delivered   300.0 MB/s',
        '  0.900 s  rank 0: rail 1 pulled (silent)',
        '',
      ].join('\n'),
    );
  });

  test('on a terminal the block is drawn over itself, and events stay above it', () => {
    const { display, text } = shown(true);
    for (let i = 0; i <= 4; i++) display.onView(view(i * 100, [i, i]));
    expect(text().split('\x1b[3F\x1b[J')).toHaveLength(2);
    display.onEvent({ atMs: 400, rank: 0, rail: 1, type: 'pulled', text: 'an event' });
    expect(text().startsWith('\x1b[3F\x1b[J  0.400 s  rank 0: an event\n  rail 0')).toBe(true);
  });
});
