// The parts of the page that are text: tiles, events, ranks, every rail, the selected rail. Each shows what the store says now, and touches
// only what differs.
import type { JobEvent, RailView } from '../messages.ts';
import { linkTitle } from './diagram.ts';
import { html, setText } from './dom.ts';
import { bytes, clock, count, duration, rate } from './format.ts';
import { type Link, STATES, type Store } from './store.ts';

const EVENT_ROWS_MAX = 400;
const RAIL_ROWS_MAX = 500;

/** A table or list that is drawn again only when what it says has changed. */
export class Rows {
  private readonly root: HTMLElement;
  private shown = '';

  constructor(root: HTMLElement) {
    this.root = root;
  }

  show(what: unknown, make: () => Node[]): void {
    const text = JSON.stringify(what);
    if (text === this.shown) return;
    this.shown = text;
    this.root.replaceChildren(...make());
  }
}

export class Tiles {
  private readonly root: HTMLElement;
  private readonly values = new Map<string, HTMLElement>();

  constructor(root: HTMLElement) {
    this.root = root;
  }

  update(store: Store, totalRate: number, nowMs: number): void {
    const { job, ranks } = store;
    const links = store.links();
    const states = ranks.map((view) => store.rankState(view, nowMs).kind);
    const busy = states.filter((kind) => kind === 'busy').length;
    const working = states.filter((kind) => kind === 'working').length + busy;
    // Both ends count each loss; one of them may have missed one.
    const losses = links.reduce((sum, { ends }) => sum + Math.max(...ends.map((end) => end?.counters.downs ?? 0)), 0);
    this.set('Time', clock(nowMs));
    const waiting = states.filter((kind) => kind === 'standby').length;
    const more = `${busy > 0 ? `, ${busy} busy` : ''}${waiting > 0 ? `, ${waiting} standing by` : ''}`;
    this.set('Ranks in the job', `${working} of ${(job?.size ?? 0) - (job?.spares ?? 0)}${more}`);
    const made = links.filter(({ state }) => state !== 'ON_DEMAND');
    const spares = links.length > made.length ? `, ${links.length - made.length} on demand` : '';
    this.set('Rails that carry', `${made.filter(({ state }) => STATES[state].carries).length} of ${made.length}${spares}`);
    this.set('Throughput', rate(totalRate));
    this.set('Payload sent', bytes(store.total('bytesSent')));
    this.set('Resent', bytes(store.total('bytesResent')));
    this.set('Losses of rails', count(losses));
    this.set('Messages resumed', count(store.total('restarts')));
  }

  private set(name: string, text: string): void {
    let value = this.values.get(name);
    if (value === undefined) {
      value = html('dd');
      this.values.set(name, value);
      this.root.append(html('div', {}, html('dt', {}, name), value));
    }
    setText(value, text);
  }
}

export class EventList {
  private readonly rows: Rows;

  constructor(root: HTMLElement) {
    this.rows = new Rows(root);
  }

  update(events: readonly JobEvent[], showsAll: boolean): void {
    const shown = (showsAll ? events : events.filter(({ type }) => type !== 'rail-state')).slice(-EVENT_ROWS_MAX).reverse();
    this.rows.show([showsAll, shown.at(0)?.seq, shown.length], () => shown.map(eventRow));
  }
}

function eventRow({ type, text, atMs, time, seq }: JobEvent): HTMLElement {
  const stamp = html('time', { datetime: time, title: time }, clock(atMs));
  return html(
    'li',
    { class: `event event-${type}`, value: seq },
    stamp,
    html('span', { class: 'type' }, type),
    html('span', { class: 'text' }, text),
  );
}

export class RankTable {
  private readonly rows: Rows;

  constructor(root: HTMLElement) {
    this.rows = new Rows(root);
  }

  update(store: Store, nowMs: number): void {
    const rows = store.ranks.map((view) => {
      const { word, kind } = store.rankState(view, nowMs);
      const sent = count(view.counters.messagesSent ?? 0);
      const received = count(view.counters.messagesReceived ?? 0);
      return { kind, cells: [String(view.rank), word, view.pid === 0 ? '' : String(view.pid), sent, received, bytes(view.retainedBytes)] };
    });
    this.rows.show(rows, () => [
      tableHead(['Rank', 'State', 'Process', 'Sent', 'Received', 'Kept copies']),
      html('tbody', {}, ...rows.map(({ kind, cells }) => tableRow(cells, { class: `rank-${kind}` }))),
    ]);
  }
}

export class RailTable {
  private readonly rows: Rows;

  constructor(root: HTMLElement) {
    this.rows = new Rows(root);
  }

  update(store: Store, selected: string | undefined, nowMs: number): void {
    const shown = store.links().slice(0, RAIL_ROWS_MAX);
    const rows = shown.flatMap((link) => link.ends.filter((end) => end !== undefined).map((end) => railRow(link, end, selected, nowMs)));
    const left = store.links().length - shown.length;
    this.rows.show(rows, () => [
      html('caption', {}, left > 0 ? `The first ${shown.length} rails; ${left} more are in /metrics` : 'One row for each end'),
      tableHead([
        'Rank',
        'To',
        'Rail',
        'Name',
        'State',
        'Since',
        'Epoch',
        'Sent',
        'Received',
        'On its way',
        'Lost',
        'In doubt',
        'Last reason',
      ]),
      html('tbody', {}, ...rows.map(({ kind, cells }) => tableRow(cells, { class: kind }))),
    ]);
  }
}

/** Most keys begin with the transport already. */
const nameOf = ({ transport, key }: Link): string => (key.startsWith(transport) ? key : `${transport} ${key}`);

function railRow(link: Link, end: RailView, selected: string | undefined, nowMs: number) {
  const { id, standby } = link;
  const { counters } = end;
  const state = `${end.state}${standby ? ' (standby)' : ''}`;
  return {
    kind: `state-${end.state.toLowerCase()}${id === selected ? ' selected' : ''}`,
    cells: [
      String(end.rank),
      String(end.peer),
      String(end.rail),
      nameOf(link),
      state,
      // Whole seconds: a table that changes all the time cannot be read.
      duration(Math.floor((nowMs - end.sinceMs) / 1000) * 1000),
      String(end.epoch),
      bytes(counters.payloadBytesSent ?? 0),
      bytes(counters.payloadBytesReceived ?? 0),
      bytes(end.outstandingBytes),
      count(counters.downs ?? 0),
      count(counters.framesInDoubt ?? 0),
      end.reason,
    ],
  };
}

export class Details {
  private readonly rows: Rows;

  constructor(root: HTMLElement) {
    this.rows = new Rows(root);
  }

  update(store: Store, selected: string | undefined, rates: readonly [number, number] | undefined, nowMs: number): void {
    const link = store.links().find(({ id }) => id === selected);
    if (link === undefined || rates === undefined) {
      this.rows.show('none', () => [
        html('p', { class: 'note' }, 'Select a rail in the drawing: click it, or go there with Tab and the arrow keys and press Enter.'),
      ]);
      return;
    }
    const { low, high } = link;
    const ends = link.ends.map((end, i) => {
      const rank = i === 0 ? low : high;
      return end === undefined ? [`By rank ${rank}`, 'nothing is known yet'] : [`By rank ${rank}`, endText(end, nowMs)];
    });
    const facts = [
      ['State', STATES[link.state].word],
      ['Name', `${nameOf(link)}${link.standby ? ', standby' : ''}`],
      [`${low} to ${high}`, rate(rates[0])],
      [`${high} to ${low}`, rate(rates[1])],
      ...ends,
    ];
    this.rows.show([link.id, facts], () => [
      html('p', { class: `state-${link.state.toLowerCase()} detail-title` }, linkTitle(link)),
      html('dl', {}, ...facts.map(([name, text]) => html('div', {}, html('dt', {}, name), html('dd', {}, text)))),
    ]);
  }
}

function endText(end: RailView, nowMs: number): string {
  const since = duration(Math.floor((nowMs - end.sinceMs) / 1000) * 1000);
  const measured = end.measuredBytesPerSecond === 0 ? 'not measured' : rate(end.measuredBytesPerSecond);
  const reason = end.reason === '' ? '' : `. Last lost for: ${end.reason}`;
  const { framesSent = 0, framesReceived = 0, framesInDoubt = 0, downs = 0 } = end.counters;
  return (
    `${end.state} for ${since}, epoch ${end.epoch}; measured speed: ${measured}; ${bytes(end.outstandingBytes)} on their way; ` +
    `frames sent: ${count(framesSent)}, received: ${count(framesReceived)}, in doubt: ${count(framesInDoubt)}; losses: ${count(downs)}${reason}`
  );
}

export const tableHead = (names: readonly string[]): HTMLElement =>
  html('thead', {}, html('tr', {}, ...names.map((name) => html('th', { scope: 'col' }, name))));

export const tableRow = (cells: readonly string[], attributes: Record<string, string> = {}): HTMLElement =>
  html('tr', attributes, html('th', { scope: 'row' }, cells[0]), ...cells.slice(1).map((cell) => html('td', {}, cell)));
