// Draws medians over message size as SVG, a line per contender, both axes logarithmic. Imports @observablehq/plot and linkedom.
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';

const WIDTH = 900;
const HEIGHT = 480;
const MARGIN = { left: 64, right: 150, top: 50, bottom: 46 };
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const COLORS = ['#4269d0', '#efb118', '#ff725c', '#6cc5b0', '#3ca951', '#ff8ab7', '#a463f2', '#97bbf5', '#9c6b4e'];
/** Least distance of two labels at the ends of lines, in pixels. */
const LABEL_HEIGHT = 14;

/** `points`: { contender, size, value }; contenders keep their order. The SVG as text. */
export async function linePlot(points, { title, unit, sizeName }) {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const names = [...new Set(points.map(({ contender }) => contender))];
  const colorOf = (name) => COLORS[names.indexOf(name) % COLORS.length];
  const sorted = [...points].sort((a, b) => a.size - b.size);
  const values = points.map(({ value }) => value);
  const domain = [Math.min(...values) / 1.3, Math.max(...values) * 1.3];
  // Labels at the ends of lines are pushed apart, top down.
  const span = Math.log(domain[1] / domain[0]);
  const heightOf = ({ value }) => MARGIN.top + (Math.log(domain[1] / value) / span) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const ends = names
    .map((name) => sorted.findLast(({ contender }) => contender === name))
    .map((point) => ({ ...point, own: heightOf(point), y: heightOf(point) }))
    .sort((a, b) => a.own - b.own);
  for (let i = 1; i < ends.length; i++) ends[i].y = Math.max(ends[i].y, ends[i - 1].y + LABEL_HEIGHT);
  const plot = Plot.plot({
    document,
    width: WIDTH,
    height: HEIGHT,
    marginLeft: MARGIN.left,
    marginRight: MARGIN.right,
    marginTop: MARGIN.top,
    marginBottom: MARGIN.bottom,
    style: { fontFamily: FONT, fontSize: '13px', color: '#1b1e23', background: '#ffffff' },
    x: { type: 'log', base: 2, ticks: [...new Set(sorted.map(({ size }) => size))], tickFormat: sizeName, label: null },
    y: { type: 'log', domain, label: null, grid: true, ticks: 6, tickFormat: '~s' },
    marks: [
      Plot.line(sorted, {
        x: 'size',
        y: 'value',
        z: 'contender',
        stroke: ({ contender }) => colorOf(contender),
        strokeWidth: ({ contender }) => (contender.startsWith('mr-') ? 3 : 1.6),
      }),
      Plot.dot(sorted, { x: 'size', y: 'value', r: 3, fill: ({ contender }) => colorOf(contender) }),
      ...ends.map((end) =>
        Plot.text([end], {
          x: 'size',
          y: 'value',
          dx: 10,
          dy: end.y - end.own,
          textAnchor: 'start',
          fill: colorOf(end.contender),
          text: 'contender',
        }),
      ),
      Plot.text([`${title} (${unit})`], {
        frameAnchor: 'top-left',
        dx: 8 - MARGIN.left,
        dy: -34,
        textAnchor: 'start',
        fontSize: 16,
        text: (line) => line,
      }),
    ],
  });
  plot.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  for (const style of [...plot.querySelectorAll('style')]) style.remove();
  return `<?xml version="1.0" encoding="UTF-8"?>\n${plot.outerHTML}\n`;
}
