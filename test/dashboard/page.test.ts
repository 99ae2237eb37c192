// The page in a browser, fed by a server in this process whose job does what the test says: keyboard, themes, names that look like markup,
// many ranks, who waits for whom, a launcher that goes and comes back. A real job is in job.test.ts.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RailFault } from '../../src/launch/oob/telemetry.ts';
import { buildPage } from '../../tools/dashboard/build-page.mjs';
import { InterposerControl } from '../../tools/dashboard/control.ts';
import type { WaitsView } from '../../tools/dashboard/messages.ts';
import type { JobModel } from '../../tools/dashboard/model.ts';
import { DashboardServer, type DashboardServerOptions } from '../../tools/dashboard/server.ts';
import { makeModel, makeRunningModel, railReport, report, TestClock } from '../unit/dashboard/telemetry-examples.ts';
import { BROWSER_MISSING, openPage, startBrowser, untilText } from './browser.ts';

if (BROWSER_MISSING !== undefined) console.log(`skipped: the dashboard's page: ${BROWSER_MISSING}`);

const TOKEN = 'the-token-of-this-test';
const CACHE = join(import.meta.dirname, '../../.cache');
const cleanups: (() => unknown)[] = [];
let browser: Browser;
let pageFolder: string;

beforeAll(async () => {
  if (BROWSER_MISSING !== undefined) return;
  mkdirSync(CACHE, { recursive: true });
  pageFolder = mkdtempSync(join(CACHE, 'page-'));
  await buildPage(pageFolder);
  browser = await startBrowser();
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  await browser?.close();
  if (pageFolder !== undefined) rmSync(pageFolder, { recursive: true, force: true });
});

async function serve(model: JobModel, options: Partial<DashboardServerOptions> = {}): Promise<DashboardServer> {
  const server = new DashboardServer({ model, token: TOKEN, port: 0, pageFolder, ...options });
  await server.open();
  cleanups.push(() => server.close());
  return server;
}

async function look(server: DashboardServer) {
  const opened = await openPage(browser, server.url);
  cleanups.push(() => opened.page.close());
  await untilText(opened.page, '#status', /live|ended/);
  return opened;
}

const textOf = (page: Page, selector: string) => page.$eval(selector, (element) => element.textContent ?? '');
const focused = (page: Page) =>
  page.evaluate(() => (document.activeElement as HTMLElement).dataset.link ?? document.activeElement?.textContent);

describe.skipIf(BROWSER_MISSING !== undefined)('the page', () => {
  test('says what is there, to the eye and to a screen reader', async () => {
    const { page, complaints } = await look(await serve(makeRunningModel(new TestClock())));
    expect(await page.title()).toBe('multirail: --fast');
    expect(await page.$$eval('#diagram .rank-number', (list) => list.map(({ textContent }) => textContent))).toEqual(['rank 0', 'rank 1']);
    const rails = await page.$$eval('#diagram .link', (list) => list.map((link) => link.getAttribute('aria-label')));
    expect(rails).toEqual([
      expect.stringMatching(/^rail 0 \(tcp\) between ranks 0 and 1: up, [\d.]+ MB\/s$/),
      expect.stringMatching(/^rail 1 \(tcp\) between ranks 0 and 1: up, [\d.]+ MB\/s$/),
    ]);
    expect(await page.$$eval('#rails tbody tr', (rows) => rows.length)).toBe(4);
    expect(await page.$eval('#throughput', (chart) => chart.getAttribute('aria-label'))).toMatch(
      /Throughput over time\. Now: rail 0 .* MB\/s/,
    );
    expect(await page.$eval('#control-section', (section) => (section as HTMLElement).hidden)).toBe(true);
    expect(await page.$eval('#waits-section', (section) => (section as HTMLElement).hidden)).toBe(true);
    const tree = JSON.stringify(await page.accessibility.snapshot());
    for (const name of ['Rails', 'Selected rail', 'Throughput per rail', 'Events', 'Ranks']) expect(tree).toContain(`"name":"${name}"`);
    expect(complaints).toEqual([]);
  });

  test('can be used by the keyboard alone', async () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock, true);
    const orders: [number, RailFault][] = [];
    const control = new InterposerControl(model, (rank, fault) => orders.push([rank, fault]));
    const { page, complaints } = await look(await serve(model, { control }));
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Skip to the rails');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('0 1 0');
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).toBe('0 1 1');
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).toBe('0 1 1');
    await page.keyboard.press('Enter');
    await untilText(page, '#details', /rail 1 \(tcp\) between ranks 0 and 1/);
    expect(await page.$eval('[data-link="0 1 1"]', (link) => link.getAttribute('aria-pressed'))).toBe('true');
    expect(await textOf(page, '#details')).toMatch(/By rank 0.*UP for.*By rank 1.*UP for/s);

    // The drawing is one stop: the next one is the first button that makes sense.
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Pull rail 0 (tcp), ranks 0 and 1');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('[data-target="rail-0-1-0"] td')?.textContent === 'pulled');
    expect(orders).toEqual([
      [0, { action: 'pull', peer: 1, rail: 0 }],
      [1, { action: 'pull', peer: 0, rail: 0 }],
    ]);
    // Its button is gone grey; what makes sense now has the focus.
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Restore rail 0 (tcp), ranks 0 and 1');
    expect(complaints).toEqual([]);
  });

  test('light and dark: by the system, or by choice, which is kept; every text can be read in both', async () => {
    const model = makeRunningModel(new TestClock());
    model.railEvent(0, { type: 'lost', peer: 1, rail: 1, key: 'k', epoch: 1, reason: 'why', up: 1, of: 2 });
    const { page, complaints } = await look(await serve(model));
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    const lightContrast = await worstContrast(page);
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
    const dark = await background();
    expect(dark).not.toBe(light);
    expect(lightContrast.ratio, `light: ${lightContrast.text}`).toBeGreaterThanOrEqual(4.5);
    const darkContrast = await worstContrast(page);
    expect(darkContrast.ratio, `dark: ${darkContrast.text}`).toBeGreaterThanOrEqual(4.5);
    await page.click('#theme');
    expect([await textOf(page, '#theme'), await background()]).toEqual(['Theme: light', light]);
    await page.reload();
    await untilText(page, '#status', /live/);
    expect([await textOf(page, '#theme'), await background()]).toEqual(['Theme: light', light]);
    await page.click('#theme');
    expect([await textOf(page, '#theme'), await background()]).toEqual(['Theme: dark', dark]);
    await page.click('#theme');
    expect(await textOf(page, '#theme')).toBe('Theme: auto');
    expect(complaints).toEqual([]);
  });

  test('states are words and marks, not colours alone', async () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    const { page } = await look(await serve(model));
    const marks = new Set<string>();
    const words: [state: string, word: RegExp][] = [
      ['SUSPECT', /tcp 1: bad, suspect/],
      ['TRIAL', /tcp 1: bad, on trial/],
      ['CONNECTING', /tcp 1: connecting/],
      ['DOWN', /tcp 1: down$/],
      ['UP', /tcp 1: up/],
    ];
    for (const [state, word] of words) {
      clock.ms += 250;
      for (const rank of [0, 1]) model.telemetry(rank, report(clock.ms, [railReport(1 - rank, 1, { state })]));
      await untilText(page, '[data-link="0 1 1"] .link-label', word);
      marks.add(await page.$eval('[data-link="0 1 1"] .mark', (mark) => mark.innerHTML));
      expect(await page.$eval('[data-link="0 1 1"]', (link) => link.getAttribute('class'))).toContain(`state-${state.toLowerCase()}`);
    }
    expect(marks.size).toBe(words.length);
  });

  test('a rank that says nothing is busy, with since when', async () => {
    const clock = new TestClock();
    const { page } = await look(await serve(makeRunningModel(clock)));
    await untilText(page, '#ranks tbody', /working/);
    // No report comes any more, and the job's clock goes on.
    const timer = setInterval(() => {
      clock.ms += 100;
    }, 100);
    cleanups.push(() => clearInterval(timer));
    await untilText(page, '#ranks tbody', /busy, last heard \d\.\d s ago/);
    expect(await textOf(page, '#diagram .rank-word')).toMatch(/^busy, last heard/);
    expect(await textOf(page, '#tiles')).toMatch(/2 of 2, 2 busy/);
  });

  test('names and reasons are text, whatever they look like', async () => {
    const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
    const model = makeModel(new TestClock(), { command: [evil] });
    const name = { key: evil, transport: evil, standby: false, bandwidthBytesPerSecond: 1, latencyUs: 1 };
    model.joined(0, { incarnation: 1, pid: 1, hostId: evil });
    model.telemetry(0, report(1, [railReport(1, 0, { state: 'DOWN', reason: evil, name })]));
    model.railEvent(0, { type: 'lost', peer: 1, rail: 0, key: evil, epoch: 1, reason: evil, up: 0, of: 1 });
    const { page, complaints } = await look(await serve(model));
    await page.click('[data-link="0 1 0"] .mark');
    await untilText(page, '#details', /onerror/);
    expect(await page.title()).toBe(`multirail: ${evil}`);
    expect(await page.$$('img')).toHaveLength(0);
    expect(complaints).toEqual([]);
  });

  test('who waits for whom, with the circle in words', async () => {
    let asked = 0;
    const server = await serve(makeRunningModel(new TestClock()), { askWaits: () => asked++ });
    const { page, complaints } = await look(server);
    await untilText(page, '#waits', /Nobody has asked yet/);
    await page.click('#ask-waits');
    server.feed.waits(CIRCLE);
    await untilText(page, '#waits', /Ranks 0 → 1 → 0 wait for each other in a circle/);
    expect(asked).toBe(1);
    const rows = await page.$$eval('#waits tbody tr', (list) => list.map((row) => [...row.children].map(({ textContent }) => textContent)));
    expect(rows).toEqual([
      ['0', 'rank 1', 'recv, tag 7, in world', '800 B', '2.5 s', 'posted'],
      [
        '1',
        'rank 0',
        'bcast: send, tag 8, in world',
        '1.00 MB',
        '12 s',
        'waits for the receiver (tcp:eth0) (in a blocking call, said 3.0 s before)',
      ],
      ['1', 'any rank', 'recv, any tag, in world', '0 B', '0.1 s', 'posted (in a blocking call, said 3.0 s before)'],
      ['1', '', 'and 3 more', '', '', ''],
      ['2', '', 'does not answer: it computes, is stopped, or has just begun a blocking call', '', '', ''],
      ['3', '', 'has ended', '', '', ''],
      ['4', '', 'has not joined', '', '', ''],
    ]);
    expect(await page.$eval('#waits svg', (picture) => picture.getAttribute('aria-label'))).toBe(
      'rank 0 waits for rank 1; rank 1 waits for rank 0',
    );
    expect(await page.$$('#waits .arrow.in-circle')).toHaveLength(2);
    expect(complaints).toEqual([]);
  });

  test('many ranks are a table of pairs', async () => {
    const clock = new TestClock();
    const model = makeModel(clock, { size: 12 });
    for (let rank = 0; rank < 12; rank++) {
      const peers = Array.from({ length: 12 }, (_, peer) => peer).filter((peer) => peer !== rank);
      const rails = peers.flatMap((peer) =>
        [0, 1].map((rail) => railReport(peer, rail, rank === 3 && peer === 7 && rail === 1 ? { state: 'DOWN' } : {})),
      );
      model.joined(rank, { incarnation: 1, pid: rank, hostId: 'h' });
      model.telemetry(rank, report(1, rails));
    }
    const { page, complaints } = await look(await serve(model));
    const cell = (pair: string) =>
      page.$eval(`[data-link="${pair}"]`, (span) => [span.textContent, span.className, span.getAttribute('aria-label')]);
    expect(await cell('0 1')).toEqual(['2', 'state-up', 'ranks 0 and 1: 2 of 2 rails carry']);
    expect(await cell('3 7')).toEqual(['1/2', 'state-suspect', 'ranks 3 and 7: 1 of 2 rails carry']);
    await page.focus('[data-link="0 1"]');
    await page.keyboard.press('ArrowRight');
    expect(await focused(page)).toBe('0 2');
    await page.keyboard.press('Enter');
    await untilText(page, '#details', /between ranks 0 and 2/);
    expect(await page.$$eval('#legend li', (items) => items.map(({ textContent }) => textContent).at(-1))).toMatch(/^125 other rails/);
    expect(complaints).toEqual([]);
  });

  test('the launcher goes, and comes back; the last state stays meanwhile', async () => {
    const model = makeRunningModel(new TestClock());
    const server = await serve(model);
    const { port } = server;
    const { page } = await look(server);
    await server.close();
    await untilText(page, '#status', /connection lost, the last state is shown/);
    expect(await page.$$('#diagram .link')).toHaveLength(2);
    model.event('job-aborted', 'while nobody looked', {});
    await serve(model, { port });
    await untilText(page, '#status', /^live$/);
    await untilText(page, '#events', /while nobody looked/);
  });

  test('a job that has ended is shown as that, and its rails as closed', async () => {
    const clock = new TestClock();
    const model = makeRunningModel(clock);
    const server = await serve(model);
    const { page } = await look(server);
    for (const rank of [0, 1]) model.exited(rank, { code: 0, signal: '', finalized: true, lost: false });
    clock.ms = 65_000;
    model.ended(3, 'rank 1 said so');
    await untilText(page, '#status', /^job ended after 1:05\.0 with code 3: rank 1 said so$/);
    await untilText(page, '[data-link="0 1 0"] .link-label', /tcp 0: closed/);
    await server.close();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(await textOf(page, '#status')).toMatch(/^job ended/);
    expect(await page.title()).toBe('multirail: --fast (ended)');
  });

  test('a page that is busy while the job ends gets the last word all the same', async () => {
    const model = makeRunningModel(new TestClock());
    const server = await serve(model);
    const { page } = await look(server);
    await page.evaluate(() => {
      setTimeout(() => {
        for (const endMs = performance.now() + 1500; performance.now() < endMs; );
      });
    });
    model.ended(0, undefined);
    await server.close();
    await untilText(page, '#status', /^job ended/);
  });

  test('without the token there is no page', async () => {
    const server = await serve(makeRunningModel(new TestClock()));
    const page = await browser.newPage();
    cleanups.push(() => page.close());
    const response = await page.goto(server.url.replace(TOKEN, 'another-token-of-it'));
    expect(response?.status()).toBe(401);
    expect(await textOf(page, 'body')).not.toContain('job-7');
  });
});

const CIRCLE: WaitsView = {
  reason: 'asked from the dashboard',
  ranks: [
    {
      rank: 0,
      state: 'answered',
      waits: {
        pid: 1,
        more: 0,
        waits: [{ kind: 'recv', peer: 1, tag: 7, comm: 'world', bytes: 800, waitedMs: 2500, phase: 'posted', rails: [] }],
      },
    },
    {
      rank: 1,
      state: 'blocked',
      agoMs: 3000,
      waits: {
        pid: 2,
        more: 3,
        waits: [
          {
            kind: 'send',
            peer: 0,
            tag: 8,
            comm: 'world',
            call: 'bcast',
            bytes: 1e6,
            waitedMs: 12_000,
            phase: 'waits for the receiver',
            rails: ['tcp:eth0'],
          },
          { kind: 'recv', peer: 'any', tag: 'any', comm: 'world', bytes: 0, waitedMs: 100, phase: 'posted', rails: [] },
        ],
      },
    },
    { rank: 2, state: 'silent' },
    { rank: 3, state: 'ended' },
    { rank: 4, state: 'absent' },
  ],
  cycles: [[0, 1]],
};

/** The lowest contrast between any text of the page and what is behind it, by the formula of WCAG 2; grey buttons are left out, as there. */
function worstContrast(page: Page): Promise<{ ratio: number; text: string }> {
  return page.evaluate(() => {
    const parse = (text: string) => (text.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = (rgb: number[]) =>
      rgb.slice(0, 3).reduce((sum, value, i) => {
        const part = value / 255;
        return sum + [0.2126, 0.7152, 0.0722][i] * (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      }, 0);
    const behind = (element: Element | null): number[] => {
      for (let at = element; at !== null; at = at.parentElement) {
        const color = parse(getComputedStyle(at).backgroundColor);
        if (color.length === 3 || color[3] > 0) return color;
      }
      return [255, 255, 255];
    };
    let worst = { ratio: 21, text: '' };
    for (const element of document.querySelectorAll('body *')) {
      const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim());
      if (!own || element.closest('[disabled], .unseen, noscript, script') !== null) continue;
      const style = getComputedStyle(element);
      const color = parse(element.closest('svg') === null ? style.color : style.fill);
      const [a, b] = [luminance(color), luminance(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < worst.ratio) worst = { ratio, text: `"${element.textContent?.trim().slice(0, 40)}" ${color} on ${behind(element)}` };
    }
    return worst;
  });
}
