// Pages in a headless browser, and the browser's complaints: what the tests of the dashboard share.
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

/** Waits until the text of this element fits; says what it was instead when it never does. */
export async function untilText(page: Page, selector: string, pattern: RegExp): Promise<void> {
  const fits = (query: string, source: string) => new RegExp(source).test(document.querySelector(query)?.textContent ?? '');
  await page.waitForFunction(fits, { timeout: 60_000 }, selector, pattern.source).catch(async (error: Error) => {
    const found = await page.evaluate((query) => document.querySelector(query)?.textContent, selector);
    throw new Error(`${selector} never was ${pattern}; it is "${found}"`, { cause: error });
  });
}
