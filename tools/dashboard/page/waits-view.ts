// Who waits for whom: the launcher's last report, as a drawing for few ranks and as a table.
import type { WaitsView, WaitView } from '../messages.ts';
import { html, svg } from './dom.ts';
import { bytes, clock, duration } from './format.ts';
import { type Place, ring } from './layout.ts';
import { Rows, tableHead, tableRow } from './lists.ts';
import type { Store } from './store.ts';

const DRAWN_RANKS_MAX = 12;
const WIDTH = 420;
const HEIGHT = 280;
const RADIUS = 20;

export class WaitsList {
  private readonly section: HTMLElement;
  private readonly rows: Rows;
  private readonly button: HTMLButtonElement;

  constructor(section: HTMLElement, root: HTMLElement, button: HTMLButtonElement) {
    this.section = section;
    this.rows = new Rows(root);
    this.button = button;
  }

  update({ waits, canAskWaits, job }: Store): void {
    this.section.hidden = waits === null && !canAskWaits;
    this.button.hidden = !canAskWaits || job?.ended !== undefined;
    this.rows.show(waits, () => (waits === null ? [html('p', { class: 'note' }, 'Nobody has asked yet.')] : report(waits)));
  }
}

function report(waits: WaitsView & { atMs: number }): Node[] {
  const circles = waits.cycles.map((cycle) =>
    html('p', { class: 'error' }, `Ranks ${[...cycle, cycle[0]].join(' → ')} wait for each other in a circle.`),
  );
  const rows = waits.ranks.flatMap(rankRows);
  const table = html(
    'table',
    {},
    html('caption', {}, `At ${clock(waits.atMs)}: ${waits.reason}`),
    tableHead(['Rank', 'Waits for', 'What', 'Bytes', 'For', 'How far it is']),
    html('tbody', {}, ...rows.map((cells) => tableRow(cells))),
  );
  // Shadows wait for whom their leads wait for.
  const leads = { ...waits, ranks: waits.ranks.filter(({ shadowOf }) => shadowOf === undefined) };
  const drawing = leads.ranks.length <= DRAWN_RANKS_MAX ? [draw(leads)] : [];
  return [...circles, html('div', { class: 'waits' }, ...drawing, html('div', { class: 'scroll' }, table))];
}

type RankWaits = WaitsView['ranks'][number];

function rankRows({ rank, shadowOf, state, waits, agoMs }: RankWaits): string[][] {
  const name = shadowOf === undefined ? String(rank) : `${shadowOf}, shadow (process ${rank})`;
  const only = (text: string) => [[name, '', text, '', '', '']];
  if (state === 'silent') return only('does not answer: it computes, is stopped, or has just begun a blocking call');
  if (state === 'ended') return only('has ended');
  if (waits === undefined) return only('has not joined');
  const blocked = state === 'blocked' ? ` (in a blocking call, said ${duration(agoMs ?? 0)} before)` : '';
  if (waits.waits.length === 0) return only(`waits for nothing${blocked}`);
  const list = waits.waits.map((wait) => waitRow(name, wait, blocked));
  return waits.more > 0 ? [...list, ...only(`and ${waits.more} more`)] : list;
}

function waitRow(name: string, wait: WaitView, blocked: string): string[] {
  const tag = wait.tag === 'any' ? 'any tag' : `tag ${wait.tag}`;
  const peer = wait.peer === 'any' ? 'any rank' : `rank ${wait.peer}`;
  const rails = wait.rails.length === 0 ? '' : ` (${wait.rails.join(', ')})`;
  const call = wait.call === undefined ? '' : `${wait.call}: `;
  const message = `${call}${wait.kind}, ${tag}, in ${wait.comm}`;
  const what = wait.kind === 'finalize' ? 'finalize' : wait.kind === 'collective' ? `${call}in ${wait.comm}` : message;
  return [name, peer, what, bytes(wait.bytes), duration(wait.waitedMs), `${wait.phase}${rails}${blocked}`];
}

function kindOf({ state }: RankWaits): string {
  if (state === 'answered') return 'working';
  return state === 'ended' ? 'exited' : 'busy';
}

/** An arrow from each rank to each rank that it waits for. */
function draw(waits: WaitsView): SVGElement {
  const places = ring(waits.ranks.length, WIDTH, HEIGHT, WIDTH / 2 - 50, HEIGHT / 2 - 40);
  const inCircle = new Set(waits.cycles.flatMap((cycle) => cycle.map((rank, i) => `${rank} ${cycle[(i + 1) % cycle.length]}`)));
  // Who would take a message from anybody waits for nobody in particular, unless there is but one other.
  const anybody = (rank: number) => (waits.ranks.length === 2 ? 1 - rank : rank);
  const targets = (rank: number) =>
    new Set(
      (waits.ranks[rank].waits?.waits ?? []).map(({ peer }) => (peer === 'any' ? anybody(rank) : peer)).filter((peer) => peer !== rank),
    );
  const words = waits.ranks.map(({ rank }) => {
    const peers = [...targets(rank)];
    return peers.length === 0 ? '' : `rank ${rank} waits for ${peers.map((peer) => `rank ${peer}`).join(' and ')}`;
  });
  const label = words.filter((text) => text !== '').join('; ') || 'nobody waits for anybody';
  const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label });
  for (const { rank } of waits.ranks) {
    for (const peer of targets(rank)) {
      if (places[peer] !== undefined) picture.append(arrow(places[rank], places[peer], inCircle.has(`${rank} ${peer}`)));
    }
  }
  places.forEach(({ x, y }, rank) => {
    const group = svg('g', {
      class: `rank rank-${kindOf(waits.ranks[rank])}`,
      transform: `translate(${x} ${y})`,
    });
    group.append(svg('circle', { r: RADIUS }), svg('text', { class: 'rank-number', y: 1 }, String(rank)));
    picture.append(group);
  });
  return picture;
}

/** Bent to its right, so that the two arrows of a pair do not lie on each other. */
function arrow(from: Place, to: Place, isInCircle: boolean): SVGElement {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const along = { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
  const start = { x: from.x + along.x * (RADIUS + 3), y: from.y + along.y * (RADIUS + 3) };
  const end = { x: to.x - along.x * (RADIUS + 9), y: to.y - along.y * (RADIUS + 9) };
  const bend = { x: (start.x + end.x) / 2 - along.y * 26, y: (start.y + end.y) / 2 + along.x * 26 };
  // The head points the way the bent line ends.
  const last = Math.hypot(end.x - bend.x, end.y - bend.y) || 1;
  const tip = { x: (end.x - bend.x) / last, y: (end.y - bend.y) / last };
  const corner = (side: number) => `${end.x - tip.x * 9 - tip.y * 5 * side} ${end.y - tip.y * 9 + tip.x * 5 * side}`;
  return svg(
    'g',
    { class: `arrow${isInCircle ? ' in-circle' : ''}` },
    svg('path', { class: 'line', d: `M${start.x} ${start.y} Q${bend.x} ${bend.y} ${end.x} ${end.y}` }),
    svg('path', { class: 'head', d: `M${end.x + tip.x * 4} ${end.y + tip.y * 4} L${corner(1)} L${corner(-1)} Z` }),
  );
}
