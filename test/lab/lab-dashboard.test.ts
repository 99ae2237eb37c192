// `multirail lab run --dashboard`: the page is served outside the lab's network, and shows a job inside it. Its orders break and repair the
// lab's rails, it shows what other shells do to the lab, and nothing is left when the command is killed. test/dashboard/job.test.ts tests
// the page itself.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { buildPage } from '../../tools/dashboard/build-page.mjs';
import type { ControlTarget, JobEvent, PageMessage, WaitsView } from '../../tools/dashboard/messages.ts';
import { findForwarder, labNamespaces, labUnavailable, waitUntil } from '../../tools/lab/lab.ts';
import { type BuiltCode, buildCode, isAlive, type Running, startNode } from '../support/helpers.ts';
import { parseExposition, sampleValue } from '../unit/dashboard/exposition.ts';

const unavailable = labUnavailable();
const NAME = `page-${process.pid}`;

describe.skipIf(unavailable !== undefined)(`a page for a lab${unavailable === undefined ? '' : ` (skipped: ${unavailable})`}`, () => {
  let code: BuiltCode;
  const running: Running[] = [];
  let isUp = false;
  beforeAll(async () => {
    code = await buildCode(['dashboard-rank.mjs']);
    await buildPage(join(code.folder, 'dashboard'));
  });
  afterEach(async () => {
    for (const job of running.splice(0)) {
      job.child.kill('SIGKILL');
      await job.ended;
    }
    if (isUp) await lab('down');
    isUp = false;
  });
  afterAll(() => code.dispose());

  const lab = (command: string, ...words: string[]) => startNode([code.cli, 'lab', command, '--name', NAME, ...words]).ended;

  /** A job in a lab, and its page. */
  async function startWatched(options: readonly string[], program: string): Promise<{ job: Running; page: PageClient }> {
    const words = ['lab', 'run', ...options, '--dashboard', code.fixture('dashboard-rank'), ...program.split(' ')];
    const job = startNode([code.cli, ...words], { input: '', timeoutMs: 90_000 });
    running.push(job);
    const page = new PageClient(new URL((await job.until(/dashboard at (http:\S+)/))[1]));
    return { job, page };
  }

  const gone = (namespaces: readonly string[]) =>
    waitUntil('the namespaces to be gone', () => !labNamespaces().some((name) => namespaces.includes(name)), 20_000, 50);

  it('its orders break and mend the rails of a kept lab; another shell is seen to do so too', async () => {
    isUp = true;
    expect((await lab('up', '--rails', 'fast=unshaped,slow', '-n', '2')).stdout).toMatch(/rail fast +unshaped/);
    const events = join(code.folder, 'events.jsonl');
    const { job, page } = await startWatched(['--name', NAME, '--events', events], 'talk 80000');
    await page.untilUp();
    expect(page.targets.map(({ id, label, state }) => [id, label, state])).toEqual([
      ['lab-0', 'lab rail fast (unshaped, mr0)', 'up'],
      ['lab-1', 'lab rail slow (1 Gbit/s, mr1)', 'up'],
    ]);
    expect(page.targets[0].rails.map(({ rank, peer }) => [rank, peer]).sort()).toEqual([
      [0, 1],
      [1, 0],
    ]);
    const wrong = { authorization: 'Bearer not-the-token-of-this-page' };
    expect((await fetch(new URL('/events?follow=0', page.url), { headers: wrong })).status).toBe(401);
    expect((await page.order('lab-0', 'pull', wrong)).status).toBe(401);
    expect((await page.order('lab-2', 'pull')).status).toBe(404);
    expect(JSON.parse((await lab('status', '--json')).stdout)).toMatchObject({ faults: [[], []] });

    // By the page, as its button does it.
    expect((await page.order('lab-0', 'pull')).status).toBe(200);
    const pulled = await page.event(({ type, action }) => type === 'lab-action' && action === 'pull');
    expect(pulled).toMatchObject({ labRail: 'fast', text: 'in the lab: rail fast pulled' });
    const overFast = ({ key }: JobEvent) => /\bmr0\b/.test(key ?? '');
    const lost = await page.event((event) => event.type === 'rail-lost' && overFast(event));
    expect(lost).toMatchObject({ up: 1, of: 2 });
    await page.until(() => page.targets[0].state === 'pulled');
    expect(JSON.parse((await lab('status', '--json')).stdout)).toMatchObject({ faults: [['rail fast pulled'], []] });
    expect((await page.order('lab-0', 'restore')).status).toBe(200);
    await page.event((event) => event.type === 'rail-restored' && overFast(event) && event.rank === lost.rank);
    await page.until(() => page.targets[0].state === 'up');

    // By other shells.
    expect((await lab('oneway', 'slow', '1')).code).toBe(0);
    expect((await lab('throttle', 'slow', '200mbit')).code).toBe(0);
    await page.until(() => page.targets[1].detail?.includes('200') === true);
    expect(page.targets[1]).toMatchObject({
      state: 'one-way',
      detail: 'what node 1 sends on rail slow vanishes; rail slow at 200 Mbit/s',
    });
    expect(await page.event(({ action }) => action === 'oneway')).toMatchObject({ type: 'lab-action', labRail: 'slow', node: 1 });
    await lab('restore');
    await page.until(() => page.targets[1].state === 'up');
    // Bad without being down.
    expect((await page.order('lab-1', 'loss')).status).toBe(200);
    await page.until(() => page.targets[1].state === 'impaired');
    expect(page.targets[1].detail).toBe('rail slow loses 5 % of its frames');
    if ('path' in findForwarder()) {
      for (const action of ['delay', 'reorder', 'flip']) expect((await page.order('lab-1', action)).status).toBe(200);
      await page.until(() => page.targets[1].detail?.includes('rail slow flips a bit in 5 % of its frames') === true);
      expect(page.targets[1].detail).toContain('rail slow takes 300 ms longer each way; rail slow holds 5 % of its frames back for 10 ms');
    } else {
      expect((await page.order('lab-1', 'delay')).status).toBeGreaterThanOrEqual(400);
    }
    expect((await page.order('lab-1', 'restore')).status).toBe(200);
    await page.until(() => page.targets[1].state === 'up');

    // The rest of what a page asks for crosses over too.
    const samples = await page.metrics();
    expect(sampleValue(samples, 'multirail_rank_joined', { rank: 1 })).toBe(1);
    expect(sampleValue(samples, 'multirail_rail_downs_total', { rank: lost.rank ?? 0, rail: lost.rail ?? 0 })).toBeGreaterThan(0);
    expect((await page.post('/waits')).status).toBe(200);
    await page.until(() => page.waits?.ranks.every(({ state }) => state === 'answered') === true);

    job.child.kill('SIGTERM');
    expect((await job.ended).code).toBe(128 + 15);
    const written = readFileSync(events, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as JobEvent);
    expect(written.at(-1)).toMatchObject({ type: 'job-ended', code: 143 });
    const forwarded = 'path' in findForwarder() ? ['delay', 'reorder', 'flip'] : [];
    expect(written.filter(({ type }) => type === 'lab-action').map(({ action }) => action)).toEqual([
      'pull',
      'restore',
      'oneway',
      'throttle',
      'restore',
      'loss',
      ...forwarded,
      'restore',
    ]);
    page.close();
  });

  it("in a lab of the job's own: the ranks' own faults beside the lab's, a rank's end, and kill -9", async () => {
    const before = labNamespaces();
    const options = ['--rails', 'fast,slow', '-n', '2', '--mca', 'btl_fault', 'manual', '--mca', 'btl', 'tcp'];
    const { job, page } = await startWatched(options, 'talk 80000');
    await page.untilUp();
    const made = labNamespaces().filter((name) => !before.includes(name));
    expect(made).toHaveLength(3);
    await page.until(() => page.targets.length === 4);
    // The order goes through the pipe to the launcher and from there to the ranks.
    const rail = page.targets.find(({ id }) => id === 'rail-0-1-1');
    expect(rail?.state).toBe('up');
    expect((await page.order('rail-0-1-1', 'oneway')).status).toBe(404);
    expect((await page.order('rail-0-1-1', 'pull')).status).toBe(200);
    const lost = await page.event(({ type, rail: index }) => type === 'rail-lost' && index === 1);
    expect(lost).toMatchObject({ up: 1, of: 2 });
    expect((await page.order('lab-0', 'flap')).status).toBe(200);
    await page.until(() =>
      page.targets.some(({ id, state, detail }) => id === 'lab-0' && state === 'flapping' && detail?.endsWith('4000 ms')),
    );

    const pids = [...page.pids.values()];
    expect(pids).toHaveLength(2);
    job.child.kill('SIGKILL');
    await gone(made);
    await waitUntil('the ranks to be gone', () => !pids.some(isAlive), 20_000, 50);
    page.close();
  });

  it('a rank that fails is said by its launcher inside; the page is kept until Ctrl-C', async () => {
    const { job, page } = await startWatched(['--rails', 'fast', '-n', '2', '--dashboard-hold'], 'die 300');
    const ended = await page.event(({ type }) => type === 'job-ended');
    expect(ended).toMatchObject({ code: 3, text: expect.stringMatching(/rank 1 \(pid \d+\) exited with code 3/) });
    await job.until(/the job has ended; the dashboard stays/);
    expect(sampleValue(await page.metrics(), 'multirail_job_running', {})).toBe(0);
    job.child.kill('SIGINT');
    expect((await job.ended).code).toBe(3);
    page.close();
  });
});

/** What a page knows, from what it is sent. */
class PageClient {
  readonly url: URL;
  readonly rails = new Map<string, { state: string }>();
  readonly pids = new Map<number, number>();
  targets: readonly ControlTarget[] = [];
  waits: WaitsView | undefined;
  private readonly events: JobEvent[] = [];
  private readonly live: WebSocket;

  constructor(url: URL) {
    this.url = url;
    this.live = new WebSocket(`ws://${url.host}/live${url.search}`);
    this.live.on('error', () => undefined);
    this.live.on('message', (data) => this.take(JSON.parse(String(data)) as PageMessage));
  }

  post(path: string, body?: object, headers: Record<string, string> = this.bearer()): Promise<Response> {
    return fetch(new URL(path, this.url), { method: 'POST', headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  }

  order(id: string, action: string, headers?: Record<string, string>): Promise<Response> {
    return this.post('/control', { id, action }, headers);
  }

  async metrics(): Promise<ReturnType<typeof parseExposition>> {
    return parseExposition(await (await fetch(new URL('/metrics', this.url), { headers: this.bearer() })).text(), 'prometheus');
  }

  /** The test's own limit is the only one. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** Two rails between two ranks, as each end sees them. */
  untilUp(): Promise<void> {
    return this.until(() => [...this.rails.values()].filter(({ state }) => state === 'UP').length === 4);
  }

  async event(fits: (event: JobEvent) => boolean): Promise<JobEvent> {
    await this.until(() => this.events.some(fits));
    return this.events.find(fits) as JobEvent;
  }

  close(): void {
    this.live.close();
  }

  private bearer(): Record<string, string> {
    return { authorization: `Bearer ${this.url.searchParams.get('token')}` };
  }

  private take(message: PageMessage): void {
    for (const { rank, peer, rail, state } of message.rails ?? []) this.rails.set(`${rank} ${peer} ${rail}`, { state });
    for (const { rank, pid } of message.ranks ?? []) if (pid > 0) this.pids.set(rank, pid);
    this.events.push(...(message.events ?? []));
    this.targets = message.targets ?? this.targets;
    this.waits = message.waits ?? this.waits;
  }
}
