// Bytes over time: throughput with a line per rail and the losses and returns as vertical lines, and bytes sent again. uPlot draws them;
// each line has a colour and a pattern. A list next to the chart names the lines, shows their values, and takes them out and in.
import uPlot from 'uplot';
import type { JobEvent } from '../messages.ts';
import { linkTitle } from './diagram.ts';
import { html, setText, svg } from './dom.ts';
import { clock, rate } from './format.ts';
import type { Link, Slots, Store } from './store.ts';
import { color } from './theme.ts';

/** Lines of the chart; the rails that carried less are added up in one more. */
const LINES_MAX = 8;
const DASHES: readonly number[][] = [[], [9, 5], [2, 4], [12, 4, 2, 4]];
const THROUGHPUT_HEIGHT_PX = 260;
const RESENT_HEIGHT_PX = 130;
const OTHERS = 'others';

interface Line {
  id: string;
  name: string;
  links: readonly Link[];
}

type Values = (number | null)[];

/** Events that are marked on the time line. */
const MARKS: Readonly<Record<string, { readonly tint: string; readonly sign: string; readonly isDashed: boolean }>> = {
  'rail-lost': { tint: 'down', sign: '✕', isDashed: false },
  'rail-restored': { tint: 'up', sign: '●', isDashed: true },
  saved: { tint: 'resent', sign: '▾', isDashed: true },
  recovered: { tint: 'down', sign: '↺', isDashed: false },
};

export class ThroughputChart {
  private readonly root: HTMLElement;
  private readonly legend: HTMLElement;
  private plot: uPlot | undefined;
  private lines: Line[] = [];
  private readonly hidden = new Set<string>();
  private readonly items = new Map<string, { button: HTMLButtonElement; value: HTMLElement }>();
  private events: readonly JobEvent[] = [];
  private selected: string | undefined;
  private data: Values[] = [];

  constructor(root: HTMLElement, legend: HTMLElement) {
    this.root = root;
    this.legend = legend;
    new ResizeObserver(() => this.plot?.setSize({ width: root.clientWidth, height: THROUGHPUT_HEIGHT_PX })).observe(root);
  }

  /** Colours have changed. */
  restyle(): void {
    this.lines = [];
  }

  update(store: Store, slots: Slots, selected: string | undefined): void {
    const lines = chooseLines(store, slots);
    const isNew = lines.map(({ id }) => id).join() !== this.lines.map(({ id }) => id).join();
    this.lines = lines;
    this.events = store.events.filter(({ type }) => type in MARKS);
    const isSelectedNew = selected !== this.selected;
    this.selected = selected;
    const seconds = (store.job?.intervalMs ?? 0) / 1000;
    const times = Array.from({ length: Math.max(0, slots.last - slots.first + 1) }, (_, i) => (slots.first + i) * seconds);
    this.data = lines.map(({ links }) => addUp(links.map((link) => store.linkFlow(link, slots))));
    if (isNew || isSelectedNew || this.plot === undefined) this.rebuild();
    this.plot?.setData([times, ...this.data] as uPlot.AlignedData);
    this.showValues();
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.items.clear();
    const series = this.lines.map(({ id, name }, i) => ({
      label: name,
      show: !this.hidden.has(id),
      stroke: color(`line-${i % LINES_MAX}`),
      dash: DASHES[i % DASHES.length],
      width: id === this.selected ? 3.5 : 1.75,
      points: { show: false },
    }));
    const options = chartOptions(this.root.clientWidth, THROUGHPUT_HEIGHT_PX, series);
    options.hooks = { draw: [(plot) => this.drawEvents(plot)], setCursor: [() => this.showValues()] };
    this.root.replaceChildren();
    this.plot = new uPlot(options, [[], ...this.lines.map(() => [])] as uPlot.AlignedData, this.root);
    this.legend.replaceChildren(...this.lines.map((line, i) => this.legendItem(line, i)));
  }

  private legendItem({ id, name }: Line, index: number): HTMLElement {
    const swatch = svg(
      'svg',
      { viewBox: '0 0 34 8', class: 'swatch', 'aria-hidden': 'true' },
      svg('path', { d: 'M1 4 H33', class: `line-${index}`, 'stroke-dasharray': DASHES[index % DASHES.length].join(' ') }),
    );
    const value = html('span', { class: 'value' });
    const button = html('button', { type: 'button', 'aria-pressed': String(!this.hidden.has(id)) }, swatch, name, value);
    button.addEventListener('click', () => {
      const isShown = this.hidden.delete(id);
      if (!isShown) this.hidden.add(id);
      button.setAttribute('aria-pressed', String(isShown));
      this.plot?.setSeries(index + 1, { show: isShown });
    });
    this.items.set(id, { button, value });
    return html('li', {}, button);
  }

  /** Shows the values at the moment under the pointer, else at the last one that is known. */
  private showValues(): void {
    const under = this.plot?.cursor.idx;
    const texts = this.lines.map(({ id, name }, i) => {
      const values = this.data[i] ?? [];
      const value = under === null || under === undefined ? values.findLast((one) => one !== null) : values[under];
      const text = value === null || value === undefined ? '–' : rate(value);
      const item = this.items.get(id);
      if (item !== undefined) setText(item.value, text);
      return `${name} ${text}`;
    });
    if (under === null || under === undefined) {
      this.root.setAttribute('role', 'img');
      this.root.setAttribute('aria-label', `Throughput over time. Now: ${texts.join('; ')}`);
    }
  }

  private drawEvents(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const { min, max } = plot.scales.x;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.font = `${11 * devicePixelRatio}px sans-serif`;
    for (const { atMs, type } of this.events) {
      const seconds = atMs / 1000;
      if (min === undefined || max === undefined || seconds < min || seconds > max) continue;
      const x = plot.valToPos(seconds, 'x', true);
      const { tint, sign, isDashed } = MARKS[type];
      ctx.strokeStyle = color(tint);
      ctx.fillStyle = ctx.strokeStyle;
      ctx.setLineDash(isDashed ? [4 * devicePixelRatio, 3 * devicePixelRatio] : []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(sign, x + 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
    }
    ctx.restore();
  }
}

export class ResentChart {
  private readonly root: HTMLElement;
  private plot: uPlot | undefined;
  private isStale = true;

  constructor(root: HTMLElement) {
    this.root = root;
    new ResizeObserver(() => this.plot?.setSize({ width: root.clientWidth, height: RESENT_HEIGHT_PX })).observe(root);
  }

  restyle(): void {
    this.isStale = true;
  }

  update(store: Store, slots: Slots): void {
    const seconds = (store.job?.intervalMs ?? 0) / 1000;
    const values = store.resent(slots);
    if (this.isStale || this.plot === undefined) {
      this.isStale = false;
      this.plot?.destroy();
      this.root.replaceChildren();
      const series = [{ label: 'resent', stroke: color('resent'), fill: color('resent-fill'), width: 1.5, points: { show: false } }];
      this.plot = new uPlot(chartOptions(this.root.clientWidth, RESENT_HEIGHT_PX, series), [[], []], this.root);
    }
    this.plot.setData([values.map((_, i) => (slots.first + i) * seconds), values]);
    this.root.setAttribute('role', 'img');
    this.root.setAttribute('aria-label', `Bytes sent again over time, ${rate(values.findLast((one) => one !== null) ?? 0)} now`);
  }
}

function chartOptions(width: number, height: number, series: uPlot.Series[]): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: color('quiet'),
    grid: { stroke: color('grid'), width: 1 },
    ticks: { stroke: color('grid'), width: 1 },
    font: '12px sans-serif',
  };
  return {
    width: Math.max(50, width),
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: false }, y: { range: (_plot, _min, max) => [0, Math.max(1000, (max ?? 0) * 1.08)] } },
    axes: [
      { ...axis, values: (_plot, ticks) => ticks.map((seconds) => clock(seconds * 1000, 0)) },
      { ...axis, size: 84, values: (_plot, ticks) => ticks.map((value) => rate(value)) },
    ],
    series: [{}, ...series],
  };
}

/** The rails that carried most in this stretch, in the order of the ranks, so that a line keeps its colour. */
function chooseLines(store: Store, slots: Slots): Line[] {
  const links = store.links();
  const asLine = (link: Link): Line => ({ id: link.id, name: linkTitle(link), links: [link] });
  if (links.length <= LINES_MAX) return links.map(asLine);
  const carried = new Map(
    links.map((link) => [link, addUp([store.linkFlow(link, slots)]).reduce<number>((sum, value) => sum + (value ?? 0), 0)]),
  );
  const busiest = new Set([...links].sort((a, b) => (carried.get(b) ?? 0) - (carried.get(a) ?? 0)).slice(0, LINES_MAX - 1));
  const rest = links.filter((link) => !busiest.has(link));
  return [...links.filter((link) => busiest.has(link)).map(asLine), { id: OTHERS, name: `${rest.length} other rails`, links: rest }];
}

function addUp(lists: readonly Values[]): Values {
  const [first = [], ...others] = lists;
  return others.reduce<Values>((sums, list) => sums.map((sum, i) => (sum === null ? list[i] : sum + (list[i] ?? 0))), [...first]);
}
