// A headless Chromium for tests and for docs/make-screenshots.mjs, found by its command.
import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { launch } from 'puppeteer-core';

const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function findBrowser() {
  for (const command of COMMANDS) {
    const found = spawnSync('sh', ['-c', `command -v ${command}`], { encoding: 'utf8' });
    if (found.status === 0) return found.stdout.trim();
  }
  return undefined;
}

/** Why there is none here, or undefined. */
export const BROWSER_MISSING = findBrowser() === undefined ? `needs one of ${COMMANDS.join(', ')}` : undefined;

export async function startBrowser() {
  const executablePath = findBrowser();
  if (executablePath === undefined) throw new Error(BROWSER_MISSING);
  // Its sandbox refuses root; what it is shown here is our own page.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return await launch({ executablePath, args: [...asRoot, '--disable-gpu', '--force-color-profile=srgb'], protocolTimeout: 120_000 });
}
