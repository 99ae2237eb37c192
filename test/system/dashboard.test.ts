// `multirail run --dashboard` and `--events` with real ranks over two TCP links, of which the fault interposer pulls one: /metrics, /events
// and the file have what happened. test/dashboard tests what the page shows.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { buildPage } from '../../tools/dashboard/build-page.mjs';
import type { JobEvent, PageMessage, WaitsView } from '../../tools/dashboard/messages.ts';
import { type BuiltCode, buildCode, type Running, startNode } from '../support/helpers.ts';
import { parseExposition, sampleValue } from '../unit/dashboard/exposition.ts';

let code: BuiltCode;
const running: Running[] = [];

beforeAll(async () => {
  code = await buildCode(['dashboard-rank.mjs', 'waits-rank.mjs']);
  await buildPage(join(code.folder, 'dashboard'));
});
afterEach(async () => {
  for (const job of running.splice(0)) {
    job.child.kill('SIGKILL');
    await job.ended;
  }
});
afterAll(() => code?.dispose());

function run(options: string, program: string, timeoutMs = 60_000, fixture = 'dashboard-rank'): Running {
  const words = `-n 2 --mca btl tcp --mca btl_tcp_links 2 ${options}`.split(' ').filter((word) => word !== '');
  const job = startNode([code.cli, 'run', ...words, code.fixture(fixture), ...program.split(' ')], { input: '', timeoutMs });
  running.push(job);
  return job;
}

const urlOf = async (job: Running) => new URL((await job.until(/dashboard at (http:\S+)/))[1]);

async function get(url: URL, path: string): Promise<string> {
  const response = await fetch(new URL(path, url), { headers: { authorization: `Bearer ${url.searchParams.get('token')}` } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return await response.text();
}

async function askWaits(url: URL): Promise<void> {
  const response = await fetch(new URL('/waits', url), {
    method: 'POST',
    headers: { authorization: `Bearer ${url.searchParams.get('token')}` },
  });
  if (!response.ok) throw new Error(`/waits: ${response.status} ${await response.text()}`);
}

const parseEvents = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JobEvent);
const eventsOf = async (url: URL) => parseEvents(await get(url, '/events?follow=0'));
const metricsOf = async (url: URL) => parseExposition(await get(url, '/metrics'), 'prometheus');

/** Asks until it is so; the test's own limit is the only one. */
async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const RAIL_1 = { rank: 0, peer: 1, rail: 1, transport: 'tcp' };

describe('a job that is watched', () => {
  test('a pulled rail, and its return, are in /metrics, in /events and in the file', async () => {
    const file = join(code.folder, 'events.jsonl');
    const plan = '--mca btl_fault pull:1:error@2500ms,restore:1@6000ms';
    const job = run(`--dashboard --events ${file} ${plan}`, 'talk 50000');
    const url = await urlOf(job);
    const up = (families: ReturnType<typeof parseExposition>) => sampleValue(families, 'multirail_rail_up', RAIL_1);

    await until(async () => (up(await metricsOf(url)) === 1 ? true : undefined));
    const lost = await until(async () => {
      const families = await metricsOf(url);
      return sampleValue(families, 'multirail_rail_downs_total', RAIL_1) === 1 && up(families) === 0 ? families : undefined;
    });
    expect(sampleValue(lost, 'multirail_rail_up', { ...RAIL_1, rail: 0 })).toBe(1);
    expect(sampleValue(lost, 'multirail_rail_payload_sent_bytes_total', RAIL_1)).toBeGreaterThan(0);
    const back = await until(async () => {
      const families = await metricsOf(url);
      return sampleValue(families, 'multirail_rail_ups_total', RAIL_1) === 2 && up(families) === 1 ? families : undefined;
    });
    expect(sampleValue(back, 'multirail_pml_messages_sent_total', { rank: 0 })).toBeGreaterThan(0);

    // It counts as up again while it is on trial. On a loaded machine it may be suspected and cleared in between, which is no return.
    const isReturn = ({ type, from, to }: { type?: unknown; from?: unknown; to?: unknown }) =>
      type === 'rail-state' && to === 'UP' && from !== 'SUSPECT';
    const events = await until(async () => {
      const all = await eventsOf(url);
      const ups = all.filter((event) => event.rank === 0 && event.rail === 1 && isReturn(event));
      return ups.length === 2 ? all : undefined;
    });
    const ofRail1 = events.filter(({ rank, rail }) => rank === 0 && rail === 1);
    const order = ['rail-lost', 'rail-last', 'rail-restored'];
    expect(ofRail1.map(({ type }) => type).filter((type) => order.includes(type))).toEqual(order);
    expect(ofRail1.find(({ type }) => type === 'rail-lost')).toMatchObject({
      peer: 1,
      transport: 'tcp',
      up: 1,
      of: 2,
    });
    expect(ofRail1.filter(isReturn)).toHaveLength(2);
    // Each end is told by the plan, or by its peer before: the notice of the other end's loss may overtake the upcall of the own one.
    const reasons = events.filter(({ type, rail }) => type === 'rail-lost' && rail === 1).map(({ reason }) => String(reason));
    expect(reasons).toHaveLength(2);
    for (const reason of reasons) expect(reason).toMatch(/^(injected: rail .* pulled|fenced: the peer lost it|closed: )/);

    // What was in doubt when the rail went was sent again: events and counters say the same of it.
    const settled = await metricsOf(url);
    for (const rank of [0, 1]) {
      const resent = events.filter((event) => event.type === 'resent' && event.rank === rank);
      const total = (field: string) => resent.reduce((sum, event) => sum + Number(event[field]), 0);
      expect(total('bytes')).toBe(sampleValue(settled, 'multirail_pml_bytes_resent_total', { rank }));
      expect(total('envelopes')).toBe(sampleValue(settled, 'multirail_pml_envelopes_resent_total', { rank }));
      expect(total('restarts')).toBe(sampleValue(settled, 'multirail_pml_restarts_total', { rank }));
    }

    job.child.kill('SIGUSR1');
    const ran = await job.ended;
    expect(ran.code).toBe(0);
    const written = parseEvents(readFileSync(file, 'utf8'));
    expect(written.slice(0, events.length)).toEqual(events);
    expect(written.map(({ seq }) => seq)).toEqual(written.map((_, i) => i + 1));
    expect(written.at(-1)).toMatchObject({ type: 'job-ended', code: 0 });
    expect(written.filter(({ type }) => type === 'rank-finalized')).toHaveLength(2);
  });

  test('a rail is pulled and restored by order, and the events follow as they happen', async () => {
    const job = run('--dashboard --mca btl_fault manual', 'talk 50000');
    const url = await urlOf(job);
    const token = url.searchParams.get('token');
    const stream = await fetch(new URL('/events', url), { headers: { authorization: `Bearer ${token}` } });
    const seen: JobEvent[] = [];
    const reading = (async () => {
      const decoder = new TextDecoder();
      let rest = '';
      for await (const chunk of stream.body as unknown as AsyncIterable<Uint8Array>) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        seen.push(...parseEvents(lines.join('\n')));
      }
    })();
    const order = async (action: string) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const response = await fetch(new URL('/control', url), {
        method: 'POST',
        headers,
        body: JSON.stringify({ id: 'rail-0-1-1', action }),
      });
      return response.status;
    };
    const has = (type: string, rank: number) => until(async () => seen.find((event) => event.type === type && event.rank === rank));
    await until(async () =>
      sampleValue(await metricsOf(url), 'multirail_rail_up', { ...RAIL_1, rank: 1, peer: 0 }) === 1 ? true : undefined,
    );
    await until(async () => (sampleValue(await metricsOf(url), 'multirail_rail_up', RAIL_1) === 1 ? true : undefined));
    expect(await order('blackhole')).toBe(200);
    await Promise.all([has('rail-lost', 0), has('rail-lost', 1)]);
    expect(await order('restore')).toBe(200);
    await Promise.all([has('rail-restored', 0), has('rail-restored', 1)]);
    job.child.kill('SIGUSR1');
    expect((await job.ended).code).toBe(0);
    await reading;
    expect(seen.at(-1)?.type).toBe('job-ended');
    expect(seen.filter(({ type }) => type === 'ordered').map(({ action }) => action)).toEqual(['blackhole', 'restore']);
  });

  test('a rank that computes is silent, and neither dead nor down', async () => {
    const job = run('--dashboard', 'busy 6000');
    const url = await urlOf(job);
    await Promise.all([0, 1].map((rank) => job.until(new RegExp(`\\[${rank}\\] is ready`))));
    job.child.kill('SIGUSR2');
    const age = await until(async () => {
      const families = await metricsOf(url);
      const value = sampleValue(families, 'multirail_rank_report_age_seconds', { rank: 1 }) ?? 0;
      return value > 2 ? { value, families } : undefined;
    });
    expect(sampleValue(age.families, 'multirail_rank_joined', { rank: 1 })).toBe(1);
    expect(sampleValue(age.families, 'multirail_rank_exited', { rank: 1 })).toBe(0);
    expect(sampleValue(age.families, 'multirail_rank_report_age_seconds', { rank: 0 })).toBeLessThan(age.value);
    await until(async () => {
      const value = sampleValue(await metricsOf(url), 'multirail_rank_report_age_seconds', { rank: 1 }) ?? 0;
      return value < 1 ? true : undefined;
    });
    job.child.kill('SIGUSR1');
    expect((await job.ended).code).toBe(0);
  });

  test('who waits for whom: asked by the page it comes to the page alone, asked by a signal to both', async () => {
    const job = run('--dashboard', 'ring', 60_000, 'waits-rank');
    const url = await urlOf(job);
    const pid = Number((await job.until(/rank 1: ready, pid (\d+)/))[1]);
    const reports: WaitsView[] = [];
    const live = new WebSocket(`ws://${url.host}/live${url.search}`);
    live.on('message', (data) => {
      const { waits } = JSON.parse(String(data)) as PageMessage;
      if (waits !== undefined && waits !== null) reports.push(waits);
    });
    // The first answers may be from before the long sends.
    const circle = await until(async () => {
      await askWaits(url);
      return reports.find(({ cycles }) => cycles.length > 0);
    });
    const send = { kind: 'send', tag: 5, comm: 'world', bytes: 1_000_000 };
    expect(circle).toMatchObject({
      reason: 'asked from the dashboard',
      cycles: [[0, 1]],
      ranks: [
        { rank: 0, state: 'answered', waits: { waits: [{ ...send, peer: 1 }] } },
        { rank: 1, state: 'answered', waits: { pid, waits: [{ ...send, peer: 0 }] } },
      ],
    });
    expect(job.output().stderr).not.toContain('who waits');
    process.kill(pid, 'SIGUSR2');
    await job.until(/who waits for whom \(rank 1: SIGUSR2\)[\s\S]*cycle: 0 waits for 1 waits for 0/);
    await until(async () => reports.find(({ reason }) => reason === 'rank 1: SIGUSR2'));
    live.close();
  });

  test('a rank that dies ends the job, and the last event says how', async () => {
    const file = join(code.folder, 'died.jsonl');
    const ran = await run(`--events ${file}`, 'die 1500').ended;
    expect(ran.code).toBe(3);
    expect(ran.stderr).not.toContain('dashboard at');
    const written = parseEvents(readFileSync(file, 'utf8'));
    expect(written.find(({ type }) => type === 'rank-exited')).toMatchObject({ rank: 1, code: 3 });
    expect(written.at(-1)).toMatchObject({ type: 'job-ended', code: 3 });
    // Rails report without a page too.
    expect(written.filter(({ type, to }) => type === 'rail-state' && to === 'UP').length).toBeGreaterThanOrEqual(4);
  });

  test('a token of the user, a port of the user, and a page that stays after the end', async () => {
    const tokenFile = join(code.folder, 'token');
    writeFileSync(tokenFile, 'a-token-that-stays-the-same\n');
    const job = run(`--dashboard --dashboard-hold --dashboard-token-file ${tokenFile}`, 'talk 500');
    const url = await urlOf(job);
    expect(url.searchParams.get('token')).toBe('a-token-that-stays-the-same');
    await job.until(/the job has ended; the dashboard stays/);
    const families = await metricsOf(url);
    expect(sampleValue(families, 'multirail_job_running', {})).toBe(0);
    expect((await eventsOf(url)).at(-1)?.type).toBe('job-ended');
    job.child.kill('SIGINT');
    expect((await job.ended).code).toBe(0);
  });

  test('what cannot be had is said before any rank is started', async () => {
    const short = join(code.folder, 'short');
    writeFileSync(short, 'short');
    const wrong: [string, RegExp][] = [
      ['--dashboard-hold', /--dashboard-hold needs --dashboard/],
      [`--dashboard --dashboard-token-file ${short}`, /holds no valid token: expected at least 16/],
      ['--dashboard --dashboard-token-file /no/such/file', /--dashboard-token-file: ENOENT/],
      ['--events /no/such/folder/file', /the events cannot be written to/],
    ];
    for (const [options, message] of wrong) {
      const ran = await run(options, 'talk 100').ended;
      expect(ran.stderr).toMatch(message);
      expect([ran.code, ran.stdout]).toEqual([2, '']);
    }
    const first = run('--dashboard', 'talk 50000');
    const { port } = await urlOf(first);
    const second = await run(`--dashboard ${port}`, 'talk 100').ended;
    expect(second.stderr).toMatch(/the dashboard cannot listen on port \d+: something listens there already/);
    expect(second.code).toBe(1);
  });
});
