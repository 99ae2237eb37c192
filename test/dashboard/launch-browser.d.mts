// Types of launch-browser.mjs.
import type { Browser } from 'puppeteer-core';
export const BROWSER_MISSING: string | undefined;
export function startBrowser(): Promise<Browser>;
