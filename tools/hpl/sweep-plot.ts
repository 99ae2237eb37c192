// Draws a sweep as SVG: per order of the matrix the run time and the Gflop/s against the moment of the pull, with the model's line and that
// of a run that is never pulled.
import { describeMachine } from '../bench/machine.ts';
import { escapeXml, FIGURE_LEFT, figureSvg, panelOptions, panelTitle, placePanel } from '../bench/panels.ts';
import { type NamedRail, showRate } from '../lab/rails.ts';
import { SERIES, type Series } from './experiment.ts';
import type { SweepReport, SweepRow } from './sweep.ts';
import { gflopsOf } from './table.ts';

/** Told apart by people who do not tell red from green, and in print. */
const COLORS: Record<Series, string> = { network: '#4269d0', port: '#efb118' };
const TEXTS: Record<Series, string> = { network: 'the whole network pulled', port: "one node's port pulled" };
const NEVER_COLOR = '#5b626c';
const PLOT_HEIGHT = 230;
const HEAD_HEIGHT = 96;
const FOOT_HEIGHT = 48;

const railText = ({ name, mbit }: NamedRail): string => `${name} ${showRate(mbit)}`;

interface Point {
  at: number;
  value: number;
  series: Series;
}

interface Panel {
  title: string;
  points: Point[];
  model: Point[];
  never: number | undefined;
}

/** Two panels per order: time and rate. */
function panelsOf(rows: readonly SweepRow[]): Panel[] {
  const orders = [...new Set(rows.map(({ n }) => n))];
  return orders.flatMap((n) => {
    const own = rows.filter((row) => row.n === n);
    const pulled = own.filter((row) => row.fraction !== undefined);
    const never = own.find((row) => row.fraction === undefined);
    const points = (value: (row: SweepRow) => number | undefined): Point[] =>
      pulled.flatMap((row) => {
        const found = value(row);
        return found === undefined ? [] : [{ at: (row.fraction as number) * 100, value: found, series: row.series }];
      });
    // The line begins where the model has nothing to say: at the run that it is made of.
    const model = (row: SweepRow) => row.modelSeconds ?? row.seconds;
    return [
      { title: `N = ${n}: run time (s)`, points: points((row) => row.seconds), model: points(model), never: never?.seconds },
      {
        title: `N = ${n}: Gflop/s`,
        points: points((row) => row.gflops),
        model: points((row) => gflopsOf(n, model(row))),
        never: never?.gflops,
      },
    ];
  });
}

/** The SVG as text. */
export async function sweepPlot(report: SweepReport): Promise<string> {
  const Plot = await import('../bench/plot-library.ts');
  const { document } = Plot.parseHTML('<!doctype html><html><body></body></html>');
  const panels = panelsOf(report.rows);
  const drawn = panels.map((panel, i) => {
    const values = [...panel.points, ...panel.model].map(({ value }) => value);
    if (panel.never !== undefined) values.push(panel.never);
    const plot = Plot.plot({
      ...panelOptions(document, PLOT_HEIGHT),
      x: {
        domain: [0, 100],
        label: 'pulled at (% of the blocks)',
        labelAnchor: 'center',
        labelArrow: 'none',
        ticks: [0, 10, 25, 50, 75, 90],
      },
      y: { domain: [0, Math.max(...values) * 1.08], label: null, grid: true, ticks: 5 },
      marks: [
        Plot.ruleY([0], { stroke: '#1b1e23' }),
        ...(panel.never === undefined ? [] : [Plot.ruleY([panel.never], { stroke: NEVER_COLOR, strokeDasharray: '2 3' })]),
        Plot.lineY(panel.model, {
          x: 'at',
          y: 'value',
          z: 'series',
          stroke: (d: Point) => COLORS[d.series],
          strokeDasharray: '5 4',
          strokeWidth: 1.4,
        }),
        Plot.dot(panel.points, { x: 'at', y: 'value', r: 4, fill: (d: Point) => COLORS[d.series], stroke: '#ffffff' }),
        panelTitle(Plot, panel.title),
      ],
    });
    return placePanel(plot, i, HEAD_HEIGHT, PLOT_HEIGHT);
  });
  return frame(report, drawn, HEAD_HEIGHT + (panels.length / 2) * PLOT_HEIGHT);
}

function frame(report: SweepReport, drawn: readonly string[], bottom: number): string {
  const { rows, ranks, rails, pulledRail, nb, p, q, repeats, algebra } = report;
  const height = bottom + FOOT_HEIGHT;
  const title = `Linpack on ${ranks} ranks while ${pulledRail} is pulled`;
  const verdict = rows.every((row) => row.passed) ? 'every residual passed' : 'NOT every residual passed';
  const subtitle = `${rails.map(railText).join(', ')}; NB ${nb}, ${p} × ${q}, ${algebra.split(' (')[0].slice(0, 40)}; median of ${repeats}; ${verdict}`;
  let x = FIGURE_LEFT;
  const legend: string[] = [];
  const entry = (mark: string, text: string) => {
    legend.push(`<g transform="translate(${x} 74)">${mark}<text x="24" y="4" font-size="12">${escapeXml(text)}</text></g>`);
    x += 50 + text.length * 6.6;
  };
  for (const series of SERIES) {
    if (rows.some((row) => row.series === series && row.fraction !== undefined))
      entry(`<circle cx="10" cy="0" r="4" fill="${COLORS[series]}"/>`, TEXTS[series]);
  }
  entry('<line x1="0" x2="20" stroke="#1b1e23" stroke-width="1.4" stroke-dasharray="5 4"/>', 'model');
  entry(`<line x1="0" x2="20" stroke="${NEVER_COLOR}" stroke-dasharray="2 3"/>`, 'never pulled');
  const foot = [report.commandLine, describeMachine(report.machine)];
  return figureSvg({ title, subtitle, height, parts: [...legend, ...drawn], foot, footHeight: 26 });
}
