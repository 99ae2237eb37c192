// Pages in a headless browser, and what they have to complain of: what the tests of the dashboard share.
import type { Browser, Page } from 'puppeteer-core';

export { BROWSER_MISSING, startBrowser } from './launch-browser.mjs';

export interface WatchedPage {
  page: Page;
  /** Everything that the console or an exception said that is no mere note. */
  complaints: string[];
}

export async function openPage(browser: Browser, url: string, width = 1280, height = 1400): Promise<WatchedPage> {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warn'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`exception: ${String(error)}`));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
  await page.goto(url);
  return { page, complaints };
}

/** Waits until the text of this element fits. */
export async function untilText(page: Page, selector: string, pattern: RegExp): Promise<void> {
  await page.waitForFunction(
    (query, source) => new RegExp(source).test(document.querySelector(query)?.textContent ?? ''),
    { timeout: 60_000 },
    selector,
    pattern.source,
  );
}
