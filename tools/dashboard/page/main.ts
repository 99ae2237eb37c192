// The dashboard's page: takes what the launcher sends, and shows it.
import type { JobEvent, PageMessage } from '../messages.ts';
import { ResentChart, ThroughputChart } from './charts.ts';
import { Controls } from './controls.ts';
import { Diagram, fillKey } from './diagram.ts';
import { button, byId, setText } from './dom.ts';
import { type ConnectionState, Feed } from './feed.ts';
import { clock } from './format.ts';
import { Details, EventList, RailTable, RankTable, Tiles } from './lists.ts';
import { type Link, type Slots, Store } from './store.ts';
import { startTheme } from './theme.ts';
import { WaitsList } from './waits-view.ts';
import 'uplot/dist/uPlot.min.css';
import './page.css';

/** Rates of now are averages over this time. */
const NOW_MS = 1000;
/** What is said aloud at most every so often. */
const ANNOUNCE_MS = 2000;
/** How often times go on while no message comes. */
const TICK_MS = 500;
const SPANS = [
  { text: '1 min', ms: 60_000 },
  { text: '5 min', ms: 5 * 60_000 },
  { text: '10 min', ms: 10 * 60_000 },
] as const;
const ANNOUNCED: readonly string[] = ['rail-lost', 'rail-restored', 'peer-unreachable', 'job-aborted', 'job-ended'];

const store = new Store();
let connection: ConnectionState = 'connecting';
let selected: string | undefined;
let spanMs: number = SPANS[0].ms;
let isDrawScheduled = false;

const feed = new Feed({
  onMessage: (message) => take(message),
  onConnection: (state) => {
    connection = state;
    drawSoon();
  },
});
const diagram = new Diagram(byId('diagram'), {
  onSelect: (id) => {
    selected = id === selected ? undefined : id;
    drawSoon();
  },
});
const throughput = new ThroughputChart(byId('throughput'), byId('legend'));
const resent = new ResentChart(byId('resent'));
const tiles = new Tiles(byId('tiles'));
const events = new EventList(byId('events'));
const ranks = new RankTable(byId('ranks'));
const rails = new RailTable(byId('rails'));
const details = new Details(byId('details'));
const controls = new Controls(byId('control-section'), byId('control'), byId('control-error'), (id, action) => feed.order(id, action));
const waits = new WaitsList(byId('waits-section'), byId('waits'), byId<HTMLButtonElement>('ask-waits'));
const allEvents = byId<HTMLInputElement>('all-events');

function take(message: PageMessage): void {
  announce(store.apply(message, performance.now()));
  drawSoon();
}

let announcedAtMs = Number.NEGATIVE_INFINITY;
function announce(news: readonly JobEvent[]): void {
  const last = news.findLast(({ type }) => ANNOUNCED.includes(type));
  if (last === undefined || performance.now() - announcedAtMs < ANNOUNCE_MS) return;
  announcedAtMs = performance.now();
  byId('announce').textContent = last.text;
}

function drawSoon(): void {
  if (isDrawScheduled) return;
  isDrawScheduled = true;
  requestAnimationFrame(() => {
    isDrawScheduled = false;
    draw();
  });
}

function statusText(): [word: string, kind: string] {
  const { job } = store;
  const end = job?.ended;
  if (end !== undefined)
    return [`job ended after ${clock(end.atMs)} with code ${end.exitCode}${end.failure === undefined ? '' : `: ${end.failure}`}`, 'ended'];
  if (connection === 'live') return ['live', 'live'];
  if (connection === 'connecting') return ['connecting …', 'connecting'];
  return [
    job === undefined ? 'no connection to the launcher; trying again …' : 'connection lost, the last state is shown; trying again …',
    'lost',
  ];
}

function draw(): void {
  const [word, kind] = statusText();
  const status = byId('status');
  setText(status, word);
  status.className = `status-${kind}`;
  const { job } = store;
  if (job === undefined) return;
  const nowMs = store.nowMs(performance.now());
  document.title = `multirail: ${job.command.at(-1) ?? job.jobId}${job.ended === undefined ? '' : ' (ended)'}`;
  setText(byId('job-name'), job.command.join(' '));
  const slots = store.slots(Math.ceil(spanMs / job.intervalMs));
  const recent = store.slots(Math.max(1, Math.round(NOW_MS / job.intervalMs)));
  const rates = (link: Link) => [average(store, link, recent, false), average(store, link, recent, true)] as const;
  const links = store.links();
  const selectedLink = links.find(({ id }) => id === selected);
  tiles.update(store, job.ended === undefined ? links.reduce((sum, link) => sum + rates(link)[0] + rates(link)[1], 0) : 0, nowMs);
  diagram.update(store, selected, rates, nowMs);
  details.update(store, selected, selectedLink === undefined ? undefined : rates(selectedLink), nowMs);
  controls.update(job.ended === undefined && connection === 'live' ? store.targets : []);
  throughput.update(store, slots, selected);
  resent.update(store, slots);
  events.update(store.events, allEvents.checked);
  ranks.update(store, nowMs);
  rails.update(store, selected, nowMs);
  waits.update(store);
  const dropped = job.seriesDropped > 0 ? ` ${job.seriesDropped} series found no room in the history.` : '';
  setText(byId('footer'), `multirail ${job.version}, job ${job.jobId} of ${job.size} ranks, started ${job.startedAt}.${dropped}`);
}

/** Bytes per second in one direction, over the slots of which something is known. */
function average(from: Store, { low, high, rail }: Link, slots: Slots, isBack: boolean): number {
  const values = (isBack ? from.flow(high, low, rail, slots) : from.flow(low, high, rail, slots)).filter((value) => value !== null);
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

fillKey(byId('key'));
const spanButtons = SPANS.map(({ text, ms }) =>
  button(
    text,
    () => {
      spanMs = ms;
      for (const [i, one] of spanButtons.entries()) one.setAttribute('aria-pressed', String(SPANS[i].ms === ms));
      drawSoon();
    },
    { 'aria-pressed': String(ms === spanMs) },
  ),
);
byId('spans').append(...spanButtons);
allEvents.addEventListener('change', drawSoon);
byId('ask-waits').addEventListener('click', () => {
  feed.askWaits().catch((error: Error) => setText(byId('announce'), error.message));
});
// What scrolls can be scrolled by the keyboard too, in browsers that do not see to it themselves.
for (const element of document.querySelectorAll<HTMLElement>('section.scroll')) element.tabIndex = 0;
startTheme(byId<HTMLButtonElement>('theme'), () => {
  throughput.restyle();
  resent.restyle();
  drawSoon();
});
setInterval(() => {
  if (store.job?.ended === undefined) drawSoon();
}, TICK_MS);
feed.open();
