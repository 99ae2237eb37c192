// The ranks and the rails between them, drawn: one line per rail, whose state is a colour, a pattern of the line, a mark and a word. With many
// ranks a table of the pairs takes its place. One stop of the Tab key; the arrow keys go from rail to rail, Enter selects.
import { html, setText, svg } from './dom.ts';
import { rate } from './format.ts';
import { type Place, ring } from './layout.ts';
import { type Link, type LinkState, STATES, type Store } from './store.ts';

/** More ranks than this are shown as a table. */
const DRAWN_RANKS_MAX = 8;
const TABLE_RANKS_MAX = 64;
/** More rails than this are named only when there is something to say of them. */
const NAMED_LINKS_MAX = 9;
const WIDTH = 760;
const NODE_RADIUS = 27;
/** Between the lines of one pair. */
const LANE_PX = 46;
const LANE_PX_MIN = 16;

export interface DiagramListener {
  onSelect(id: string): void;
}

/** Bytes per second of a rail now: from low to high, and back. */
export type LinkRates = (link: Link) => readonly [number, number];

export class Diagram {
  private readonly root: HTMLElement;
  private readonly listener: DiagramListener;
  private shape = '';
  private readonly drawn = new Map<
    string,
    { group: SVGGElement; label: SVGTextElement; line: SVGPathElement; mark: SVGGElement; what: string }
  >();
  private readonly nodes = new Map<number, { group: SVGGElement; word: SVGTextElement }>();
  private readonly cells = new Map<string, HTMLElement>();
  private order: string[] = [];

  constructor(root: HTMLElement, listener: DiagramListener) {
    this.root = root;
    this.listener = listener;
    root.addEventListener('keydown', (event) => this.onKey(event));
    root.addEventListener('click', (event) => this.onPick(event.target as Element));
  }

  update(store: Store, selected: string | undefined, rates: LinkRates, nowMs: number): void {
    const links = store.links();
    const size = store.job?.size ?? 0;
    const shape = `${size} ${links.map(({ id }) => id).join(',')}`;
    if (shape !== this.shape) {
      this.shape = shape;
      const focused = (document.activeElement as HTMLElement | null)?.dataset?.link;
      this.rebuild(size, links);
      if (focused !== undefined) this.focusable(focused)?.focus();
    }
    if (size > DRAWN_RANKS_MAX) this.updateTable(links, selected);
    else this.updateDrawing(store, links, selected, rates, nowMs);
    this.keepTabStop(selected);
  }

  // --- drawing

  private rebuild(size: number, links: readonly Link[]): void {
    this.drawn.clear();
    this.nodes.clear();
    this.cells.clear();
    if (size > DRAWN_RANKS_MAX) this.buildTable(size, links);
    else this.buildDrawing(size, links);
  }

  private buildDrawing(size: number, links: readonly Link[]): void {
    this.order = links.map(({ id }) => id);
    const lanesMax = Math.max(1, ...lanesOf(links).values());
    const height = size <= 2 ? Math.max(170, lanesMax * LANE_PX + 90) : 470;
    const places = ring(size, WIDTH, height, size <= 2 ? WIDTH / 2 - 60 : height / 2 - NODE_RADIUS - 26, height / 2 - NODE_RADIUS - 26);
    const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${height}`, role: 'group', 'aria-label': 'Rails between the ranks' });
    for (const link of links) picture.append(this.drawLink(link, links, places));
    places.forEach((place, rank) => {
      const word = svg('text', { class: 'rank-word', y: NODE_RADIUS + 15 });
      const group = svg(
        'g',
        { class: 'rank', transform: `translate(${place.x} ${place.y})` },
        svg('circle', { r: NODE_RADIUS }),
        svg('text', { class: 'rank-number', y: 1 }, `rank ${rank}`),
        word,
      );
      this.nodes.set(rank, { group, word });
      picture.append(group);
    });
    this.root.replaceChildren(links.length === 0 ? html('p', { class: 'note' }, waitingText(size)) : '', picture);
  }

  private drawLink(link: Link, links: readonly Link[], places: readonly Place[]): SVGGElement {
    const lanes = links.filter(({ low, high }) => low === link.low && high === link.high);
    const lane = lanes.indexOf(link) - (lanes.length - 1) / 2;
    const [from, to] = [places[link.low], places[link.high]];
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const gap = places.length <= 2 ? LANE_PX : Math.max(LANE_PX_MIN, Math.min(LANE_PX, 90 / lanes.length));
    const across = { x: (-(to.y - from.y) / length) * lane * gap, y: ((to.x - from.x) / length) * lane * gap };
    // A curve whose middle is in its lane: a control point acts with half its distance.
    const middle = { x: (from.x + to.x) / 2 + across.x, y: (from.y + to.y) / 2 + across.y };
    const control = { x: (from.x + to.x) / 2 + across.x * 2, y: (from.y + to.y) / 2 + across.y * 2 };
    const path = `M${from.x} ${from.y} Q${control.x} ${control.y} ${to.x} ${to.y}`;
    const line = svg('path', { class: 'line', d: path });
    const mark = svg('g', { class: 'mark', transform: `translate(${middle.x} ${middle.y})` });
    const label = svg('text', { class: 'link-label', x: middle.x, y: middle.y - 11 });
    const group = svg(
      'g',
      { class: 'link', role: 'button', tabindex: -1, 'data-link': link.id },
      svg('path', { class: 'hit', d: path }),
      svg('path', { class: 'focus', d: path }),
      line,
      mark,
      label,
    );
    this.drawn.set(link.id, { group, label, line, mark, what: '' });
    return group;
  }

  private updateDrawing(store: Store, links: readonly Link[], selected: string | undefined, rates: LinkRates, nowMs: number): void {
    const areAllNamed = links.length <= NAMED_LINKS_MAX;
    for (const link of links) {
      const parts = this.drawn.get(link.id);
      if (parts === undefined) continue;
      const isSelected = link.id === selected;
      const [there, back] = rates(link);
      const { word } = STATES[link.state];
      const what = `${link.state} ${isSelected}`;
      if (parts.what !== what) {
        parts.what = what;
        parts.group.setAttribute('class', `link state-${link.state.toLowerCase()}${isSelected ? ' selected' : ''}`);
        parts.group.setAttribute('aria-pressed', String(isSelected));
        parts.mark.replaceChildren(markOf(link.state));
      }
      // Wider with what it carries, by orders of magnitude.
      parts.line.setAttribute('stroke-width', (2 + Math.max(0, Math.log10((there + back) / 1e5 + 1)) * 1.2).toFixed(1));
      const isNamed = areAllNamed || isSelected || !['UP', 'ON_DEMAND', 'CLOSED'].includes(link.state);
      const flow = STATES[link.state].carries ? `, ${rate(there + back)}` : '';
      setText(parts.label, isNamed ? `${link.transport} ${link.rail}: ${word}${flow}` : '');
      parts.group.setAttribute('aria-label', `${linkTitle(link)}: ${word}${flow}`);
    }
    for (const [rank, { group, word }] of this.nodes) {
      const view = store.ranks[rank];
      if (view === undefined) continue;
      const state = store.rankState(view, nowMs);
      group.setAttribute('class', `rank rank-${state.kind}`);
      setText(word, state.word);
    }
  }

  // --- table of pairs

  private buildTable(size: number, links: readonly Link[]): void {
    const shown = Math.min(size, TABLE_RANKS_MAX);
    const pairs = lanesOf(links);
    this.order = [];
    const head = html('tr', {}, html('td'), ...Array.from({ length: shown }, (_, rank) => html('th', { scope: 'col' }, String(rank))));
    const rows = Array.from({ length: shown }, (_, low) => {
      const cells = Array.from({ length: shown }, (_, high) => {
        const pair = `${low} ${high}`;
        if (!pairs.has(pair)) return html('td');
        const cell = html('span', { role: 'button', tabindex: -1, 'data-link': pair });
        this.cells.set(pair, cell);
        this.order.push(pair);
        return html('td', {}, cell);
      });
      return html('tr', {}, html('th', { scope: 'row' }, String(low)), ...cells);
    });
    const note = size > shown ? [html('p', { class: 'note' }, `The first ${shown} of ${size} ranks.`)] : [];
    const caption = html('caption', {}, 'Rails of each pair of ranks that carry, of those that there are');
    this.root.replaceChildren(html('div', { class: 'scroll' }, html('table', { class: 'pairs' }, caption, head, ...rows)), ...note);
  }

  private updateTable(links: readonly Link[], selected: string | undefined): void {
    const byPair = new Map<string, Link[]>();
    for (const link of links) byPair.set(pairOf(link), [...(byPair.get(pairOf(link)) ?? []), link]);
    for (const [pair, cell] of this.cells) {
      // What is made only when it is needed is not missing.
      const own = (byPair.get(pair) ?? []).filter(({ state }) => state !== 'ON_DEMAND');
      const carrying = own.filter(({ state }) => STATES[state].carries).length;
      const isSelected = own.some(({ id }) => id === selected);
      const kind = own.every(({ state }) => state === 'CLOSED')
        ? 'closed'
        : carrying === own.length
          ? 'up'
          : carrying === 0
            ? 'down'
            : 'suspect';
      setText(cell, carrying === own.length ? String(carrying) : `${carrying}/${own.length}`);
      cell.className = `state-${kind}${isSelected ? ' selected' : ''}`;
      cell.setAttribute('aria-pressed', String(isSelected));
      cell.setAttribute('aria-label', `ranks ${pair.replace(' ', ' and ')}: ${carrying} of ${own.length} rails carry`);
    }
  }

  // --- selecting

  private focusable(id: string): HTMLElement | SVGElement | undefined {
    return this.drawn.get(id)?.group ?? this.cells.get(id) ?? this.cells.get(id.split(' ').slice(0, 2).join(' '));
  }

  /** Exactly one of them is reached by Tab. */
  private keepTabStop(selected: string | undefined): void {
    const focused = (document.activeElement as HTMLElement | null)?.dataset?.link;
    const wanted = this.order.find((id) => id === focused) ?? this.order.find((id) => id === selected) ?? this.order[0];
    for (const id of this.order) this.focusable(id)?.setAttribute('tabindex', id === wanted ? '0' : '-1');
  }

  private onKey(event: KeyboardEvent): void {
    const id = (event.target as HTMLElement).dataset?.link;
    if (id === undefined) return;
    const at = this.order.indexOf(id);
    const last = this.order.length - 1;
    const targets: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: last,
    };
    if (event.key === 'Enter' || event.key === ' ') this.onPick(event.target as Element);
    else if (event.key in targets) {
      const next = this.order[Math.min(last, Math.max(0, targets[event.key]))];
      this.focusable(next)?.focus();
      this.keepTabStop(next);
    } else return;
    event.preventDefault();
  }

  private onPick(target: Element): void {
    const id = target.closest<HTMLElement>('[data-link]')?.dataset.link;
    if (id === undefined) return;
    // A pair of the table stands for its first rail.
    this.listener.onSelect(id.split(' ').length === 2 ? `${id} 0` : id);
  }
}

export const linkTitle = ({ low, high, rail, transport, standby }: Link): string =>
  `rail ${rail} (${transport}${standby ? ', standby' : ''}) between ranks ${low} and ${high}`;

const pairOf = ({ low, high }: Link): string => `${low} ${high}`;

function lanesOf(links: readonly Link[]): Map<string, number> {
  const lanes = new Map<string, number>();
  for (const link of links) lanes.set(pairOf(link), (lanes.get(pairOf(link)) ?? 0) + 1);
  return lanes;
}

const waitingText = (size: number): string => (size === 1 ? 'One rank has no rails.' : 'No rank has told of its rails yet.');

/** The mark of a state, around the origin. */
export function markOf(state: LinkState): SVGElement {
  switch (STATES[state].symbol) {
    case 'disc':
      return svg('circle', { r: 6, class: 'full' });
    case 'ring':
      return svg('circle', { r: 6, class: 'hollow' });
    case 'triangle':
      return svg('path', { d: 'M0 -8 L8 6 L-8 6 Z', class: 'full' });
    case 'hollow-triangle':
      return svg('path', { d: 'M0 -8 L8 6 L-8 6 Z', class: 'hollow' });
    case 'cross':
      return svg('path', { d: 'M-6 -6 L6 6 M6 -6 L-6 6', class: 'stroke' });
    case 'dots':
      return svg('path', { d: 'M-5 0 L-4 0 M4 0 L5 0', class: 'stroke' });
    case 'bar':
      return svg('path', { d: 'M-6 0 L6 0', class: 'stroke' });
  }
}

/** The marks with their words. */
export function fillKey(list: HTMLElement): void {
  const items = (Object.keys(STATES) as LinkState[])
    .filter((state) => state !== 'PROBING')
    .reverse()
    .map((state) => {
      const picture = svg('svg', { viewBox: '-26 -10 52 20', class: `link state-${state.toLowerCase()}`, 'aria-hidden': 'true' });
      picture.append(svg('path', { class: 'line', d: 'M-26 0 H26', 'stroke-width': 3 }), svg('g', { class: 'mark' }, markOf(state)));
      const word = state === 'CONNECTING' ? 'connecting, probing' : STATES[state].word;
      return html('li', {}, picture, word);
    });
  list.replaceChildren(...items);
}
