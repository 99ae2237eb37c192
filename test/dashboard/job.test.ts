// The page in a browser during a real job: two ranks over two TCP links, one of which is pulled and restored with the page's own buttons;
// and during a job in a lab. The tests check what a reader must see at each step, and that the browser has no complaints.
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildPage } from '../../tools/dashboard/build-page.mjs';
import { labUnavailable } from '../../tools/lab/available.ts';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';
import { BROWSER_MISSING, openPage, startBrowser, untilText } from './browser.ts';

if (BROWSER_MISSING !== undefined) console.log(`skipped: the dashboard's page beside a job: ${BROWSER_MISSING}`);

const LAB_MISSING = BROWSER_MISSING ?? labUnavailable();
if (LAB_MISSING !== undefined) console.log(`skipped: the dashboard's page for a lab: ${LAB_MISSING}`);

let browser: Browser;
let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  if (BROWSER_MISSING !== undefined) return;
  code = await buildCode(['dashboard-rank.mjs', 'waits-rank.mjs', 'ft-standby.ts']);
  await buildPage(join(code.folder, 'dashboard'));
  browser = await startBrowser();
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(async () => {
  await browser?.close();
  code?.dispose();
});

function startJob(options: string, program: string, fixture = 'dashboard-rank'): Promise<{ job: Running; url: string }> {
  return startPage(`run -n 2 --dashboard --mca btl tcp --mca btl_tcp_links 2 ${options}`, program, fixture);
}

async function startPage(command: string, program: string, fixture = 'dashboard-rank'): Promise<{ job: Running; url: string }> {
  const words = command.split(' ').filter((word) => word !== '');
  const job = startNode([code.cli, ...words, code.fixture(fixture), ...program.split(' ')], { input: '', timeoutMs: 90_000 });
  running.push(job);
  const [, url] = await job.until(/dashboard at (http:\S+)/);
  return { job, url };
}

/** Pixels of a chart that are not the background, roughly: something is drawn. */
const inkOf = (page: Page, selector: string) =>
  page.$eval(`${selector} canvas`, (element) => {
    const canvas = element as HTMLCanvasElement;
    const { data } = (canvas.getContext('2d') as CanvasRenderingContext2D).getImageData(0, 0, canvas.width, canvas.height);
    let ink = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i] > 0) ink++;
    return ink;
  });

const LABEL_0 = '[data-link="0 1 0"] .link-label';
const LABEL_1 = '[data-link="0 1 1"] .link-label';

describe.skipIf(BROWSER_MISSING !== undefined)('the page beside a job', () => {
  test('a rail is pulled and restored by its buttons, and everything shows it', async () => {
    const { job, url } = await startJob('--mca btl_fault manual', 'talk 80000');
    const { page, complaints } = await openPage(browser, url);
    await untilText(page, '#status', /^live$/);
    await untilText(page, '#ranks tbody', /0working.*1working/);
    await untilText(page, LABEL_0, /^tcp 0: up, [\d.]+ [kMG]B\/s$/);
    await untilText(page, LABEL_1, /^tcp 1: up, [\d.]+ [kMG]B\/s$/);

    // The chart has lines with values for both rails.
    await page.waitForFunction(() => {
      const values = [...document.querySelectorAll('#legend .value')].map(({ textContent }) => textContent ?? '');
      return values.length === 2 && values.every((text) => /^[1-9][\d.]* [kMG]B\/s$/.test(text));
    });
    expect(await inkOf(page, '#throughput')).toBeGreaterThan(1000);

    // The button is there when both ranks have said that they take orders.
    await (await page.waitForSelector('[data-target="rail-0-1-1"] [data-action="pull"]'))?.click();
    await untilText(page, LABEL_1, /^tcp 1: (down|connecting|probing)$/);
    expect(await page.$eval(LABEL_0, ({ textContent }) => textContent)).toMatch(/^tcp 0: up/);
    await untilText(page, '#events', /rail-lostrank 0: rail 1 \(tcp\) to rank 1 is lost, 1 of 2 carry/);
    await untilText(page, '#tiles', /Rails that carry1 of 2/);
    await untilText(page, '#announce', /rail 1 \(tcp\) .* is lost/);
    // Its line falls to nothing, and the other one goes on.
    await page.waitForFunction(() => {
      const [first, second] = [...document.querySelectorAll('#legend .value')].map(({ textContent }) => textContent ?? '');
      return second === '0 B/s' && /^[1-9]/.test(first);
    });

    await page.click('[data-target="rail-0-1-1"] [data-action="restore"]');
    await untilText(page, LABEL_1, /^tcp 1: up/);
    await untilText(page, '#events', /rail-restoredrank 0: rail 1 \(tcp\) to rank 1 carries again, 2 of 2 carry/);
    await untilText(page, '#tiles', /Rails that carry2 of 2/);

    // Every step of the way is there for those who want it.
    expect(await page.$$('.event-rail-state')).toHaveLength(0);
    await page.click('#all-events');
    await untilText(page, '#events', /rail-staterank 0: rail 1 \(tcp\) to rank 1 went from UP to DOWN/);
    expect(complaints).toEqual([]);

    job.child.kill('SIGUSR1');
    expect((await job.ended).code).toBe(0);
    await untilText(page, '#status', /^job ended after .* with code 0$/);
    await untilText(page, LABEL_1, /^tcp 1: closed$/);
    expect(await page.$eval('#events', ({ textContent }) => textContent)).toMatch(/job-ended/);
    await page.close();
  });

  test('a process is killed by its button, and one that stands by takes its place', async () => {
    const { job, url } = await startPage('run -n 2 --spares 1 --mca btl tcp --dashboard --dashboard-hold', 'replace', 'ft-standby');
    const { page, complaints } = await openPage(browser, url);
    await untilText(page, '#ranks tbody', /0working.*1working.*2stands by/);
    await untilText(page, '#tiles', /Ranks in the job2 of 2, 1 standing by/);
    await (await page.waitForSelector('[data-target="process-1"] [data-action="kill"]:not([disabled])'))?.click();
    await untilText(page, '#events', /rank-diedrank 1 was killed by SIGKILL/);
    await untilText(page, '#events', /standby-calledprocess 2 has taken the place of rank 1/);
    await untilText(page, '#ranks tbody', /1died \(SIGKILL\)/);
    await untilText(page, '#status', /^job ended after .* with code 0$/);
    expect(complaints).toEqual([]);
    job.child.kill('SIGINT');
    const { code: exitCode, stdout } = await job.ended;
    expect(exitCode).toBe(0);
    expect(stdout).toContain('the sum is 1 with 0 2');
    await page.close();
  });

  test('a rank that computes is busy and not dead, and works again afterwards', async () => {
    const { job, url } = await startJob('', 'busy 6000');
    const { page } = await openPage(browser, url);
    await untilText(page, '#ranks tbody tr:nth-child(2)', /^1working/);
    await Promise.all([0, 1].map((rank) => job.until(new RegExp(`\\[${rank}\\] is ready`))));
    job.child.kill('SIGUSR2');
    await untilText(page, '#ranks tbody tr:nth-child(2)', /^1busy, last heard \d\.\d s ago/);
    await untilText(page, '#ranks tbody tr:nth-child(2)', /^1working/);
    expect(await page.$eval('#control-section', (section) => (section as HTMLElement).hidden)).toBe(true);
    job.child.kill('SIGUSR1');
    expect((await job.ended).code).toBe(0);
    await page.close();
  });

  test('who waits for whom, at the press of its button', async () => {
    const { job, url } = await startJob('', 'ring', 'waits-rank');
    const { page, complaints } = await openPage(browser, url);
    for (const rank of [0, 1]) await job.until(new RegExp(`rank ${rank}: ready`));
    await page.click('#ask-waits');
    // The first answers may be from before the long sends.
    while (!/Ranks 0 → 1 → 0 wait for each other/.test(await page.$eval('#waits', ({ textContent }) => textContent ?? ''))) {
      await new Promise((resolve) => setTimeout(resolve, 1100));
      await page.click('#ask-waits');
    }
    const rows = await page.$$eval('#waits tbody tr', (list) => list.map(({ textContent }) => textContent));
    expect(rows[0]).toMatch(/^0rank 1send, tag 5, in world1\.00 MB.*RNDV/);
    expect(rows[1]).toMatch(/^1rank 0send, tag 5, in world1\.00 MB.*RNDV/);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('a job that has ended before anybody looked, with the page kept', async () => {
    const { job, url } = await startJob('--dashboard-hold', 'talk 300');
    await job.until(/the job has ended/);
    const { page, complaints } = await openPage(browser, url);
    await untilText(page, '#status', /^job ended after/);
    expect(await page.$$('#diagram .state-closed')).toHaveLength(2);
    expect(complaints).toEqual([]);
    job.child.kill('SIGINT');
    expect((await job.ended).code).toBe(0);
    await page.close();
  });
});

describe.skipIf(LAB_MISSING !== undefined)('the page of a job in a lab', () => {
  test('a rail of the lab is pulled and restored by its buttons', async () => {
    const { job, url } = await startPage('lab run --rails fast,slow -n 2 --dashboard', 'talk 80000');
    const { page, complaints } = await openPage(browser, url);
    await untilText(page, '#tiles', /Rails that carry2 of 2/);
    const row = '[data-target="lab-0"]';
    const enabled = () => page.$$eval(`${row} button:not([disabled])`, (list) => list.map(({ textContent }) => textContent));
    await untilText(page, row, /^lab rail fast \(10 Gbit\/s, mr0\)up/);
    expect(await enabled()).toEqual(['Pull', 'Black-hole', 'One-way', 'Lose some', 'Delay', 'Reorder', 'Flip bits', 'Flap']);

    await page.click(`${row} [data-action="pull"]`);
    await untilText(page, row, /mr0\)pulled/);
    await untilText(page, '#events', /lab-actionin the lab: rail fast pulled/);
    await untilText(page, '#tiles', /Rails that carry1 of 2/);
    expect(await enabled()).toEqual(['Restore']);
    await page.click(`${row} [data-action="restore"]`);
    await untilText(page, '#tiles', /Rails that carry2 of 2/);
    await untilText(page, row, /mr0\)up/);

    await page.click(`${row} [data-action="oneway"]`);
    await untilText(page, row, /one-way: what node 0 sends on rail fast vanishes/);
    expect(complaints).toEqual([]);
    job.child.kill('SIGTERM');
    expect((await job.ended).code).toBe(128 + 15);
    await untilText(page, '#status', /^job ended after .* with code 143/);
    await page.close();
  });
});
