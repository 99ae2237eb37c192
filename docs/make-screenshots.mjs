// Makes the pictures of docs/guide/dashboard.md again: runs examples/dashboard.mjs with the built package, pulls and restores rails on its page in a
// headless Chromium, and photographs it. Run it after a build: node docs/make-screenshots.mjs [NAME ...], without names all of them.
// That of a lab needs root. Debian's pngquant and optipng make them small: they travel in the package.
import { execFileSync, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { startBrowser } from '../test/dashboard/launch-browser.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BYTES_MAX = 100 * 1000;
const SECONDS = '300';

const runWords = (ranks, links) => {
  const mca = ['--mca', 'btl', 'tcp', '--mca', 'btl_tcp_links', links, '--mca', 'btl_fault', 'manual'];
  return ['run', '-n', ranks, ...mca];
};

/** The job, and the address of its page. */
async function startJob(words) {
  const job = spawn(process.execPath, ['dist/cli.js', ...words, '--dashboard', 'examples/dashboard.mjs', SECONDS], { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  const url = await new Promise((resolve, reject) => {
    job.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
      const found = /dashboard at (\S+)/.exec(said);
      if (found !== null) resolve(found[1]);
    });
    job.on('exit', () => reject(new Error(`the job has ended:\n${said}`)));
  });
  return { job, url };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(page, selector, pattern) {
  const look = (query, source) => new RegExp(source).test(document.querySelector(query)?.textContent ?? '');
  await page.waitForFunction(look, { timeout: 60_000 }, selector, pattern.source);
}

const press = (page, target, action) => page.click(`[data-target="${target}"] [data-action="${action}"]`);

async function photograph(page, name) {
  const path = join(ROOT, 'docs', `${name}.png`);
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path });
  execFileSync('pngquant', ['--quality', '80-98', '--speed', '1', '--strip', '--force', '--output', path, path]);
  execFileSync('optipng', ['-quiet', '-o5', path]);
  const { size } = statSync(path);
  console.log(`docs/${name}.png: ${size} bytes`);
  if (size > BYTES_MAX) throw new Error(`docs/${name}.png has more than ${BYTES_MAX} bytes`);
}

async function withJob(browser, { name, words, width, height, scheme }, work) {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const { job, url } = await startJob(words);
  try {
    const page = await browser.newPage();
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    await page.goto(url);
    await work(page);
    await photograph(page, name);
    await page.close();
  } finally {
    job.kill('SIGTERM');
  }
}

const wanted = process.argv.slice(2);
const browser = await startBrowser();
try {
  // Two ranks, two rails: one is pulled, put back, and a second one is black-holed.
  await withJob(browser, { name: 'dashboard', words: runWords('2', '2'), width: 1240, height: 1330, scheme: 'light' }, async (page) => {
    await until(page, '[data-link="0 1 1"] .link-label', /: up, \d/);
    await pause(8000);
    await press(page, 'rail-0-1-1', 'pull');
    await until(page, '[data-link="0 1 1"] .link-label', /: down/);
    await pause(5000);
    await press(page, 'rail-0-1-1', 'restore');
    await until(page, '[data-link="0 1 1"] .link-label', /: up/);
    await pause(6000);
    await press(page, 'rail-0-1-0', 'blackhole');
    await page.click('[data-link="0 1 0"] .mark');
    await until(page, '[data-link="0 1 0"] .link-label', /: (down|connecting)/);
    await pause(3000);
  });
  // Four ranks in a ring, three rails each, in the dark.
  await withJob(browser, { name: 'dashboard-dark', words: runWords('4', '3'), width: 1240, height: 1000, scheme: 'dark' }, async (page) => {
    await until(page, '#tiles', /Rails that carry18 of 18/);
    await pause(4000);
    await press(page, 'rail-0-1-1', 'pull');
    await press(page, 'rail-2-3-0', 'blackhole');
    await until(page, '#tiles', /Rails that carry16 of 18/);
    await pause(3000);
  });
  // Two nodes of a lab: its fast rail is pulled by the page and restored; then one direction of the other one vanishes, and the first one flaps.
  const lab = ['lab', 'run', '--rails', 'fast,slow', '-n', '2'];
  await withJob(browser, { name: 'dashboard-lab', words: lab, width: 1240, height: 1120, scheme: 'light' }, async (page) => {
    await until(page, '#tiles', /Rails that carry2 of 2/);
    await pause(6000);
    await press(page, 'lab-0', 'pull');
    await until(page, '#tiles', /Rails that carry1 of 2/);
    await pause(5000);
    await press(page, 'lab-0', 'restore');
    await until(page, '#tiles', /Rails that carry2 of 2/);
    await pause(5000);
    await press(page, 'lab-1', 'oneway');
    await until(page, '#tiles', /Rails that carry1 of 2/);
    await press(page, 'lab-0', 'flap');
    await pause(3000);
  });
} finally {
  await browser.close();
}
