// Draws the cost of saves against their period as SVG: a panel per level or time between failures, with the periods of several models marked.
import { figureSvg, panelOptions, panelTitle, placePanel } from '../bench/panels.ts';

const PANEL_HEIGHT = 300;
const HEAD_HEIGHT = 68;
const FOOT_HEIGHT = 40;
const CURVE_POINTS = 200;
/** Beyond this multiple of the least cost the curve says nothing that the eye needs. */
const SHOWN = 4;

/** Told apart by people who do not tell red from green, and in print. */
export const MARK_COLORS = { ours: '#4269d0', paper: '#d0342c', young: '#efb118', daly: '#3ca951' } as const;

export interface Point {
  x: number;
  y: number;
}
export interface CurvePanel {
  title: string;
  curve: readonly Point[];
  /** Periods by name, each at its cost. */
  marks: readonly (Point & { text: string; color: string })[];
  dots: readonly Point[];
}
export interface CurvePlot {
  title: string;
  subtitle: string;
  panels: readonly CurvePanel[];
  foot: readonly string[];
}

/** Values of a function between two periods, closer together where the period is short. */
export function curveOf(from: number, to: number, cost: (period: number) => number): Point[] {
  return Array.from({ length: CURVE_POINTS }, (_, i) => {
    const x = from * (to / from) ** (i / (CURVE_POINTS - 1));
    return { x, y: cost(x) };
  });
}

/** The SVG as text. */
export async function curvePlot({ title, subtitle, panels, foot }: CurvePlot): Promise<string> {
  const Plot = await import('../bench/plot-library.ts');
  const { document } = Plot.parseHTML('<!doctype html><html><body></body></html>');
  const drawn = panels.map((panel, i) => {
    const least = Math.min(...panel.curve.map(({ y }) => y));
    const top = Math.min(SHOWN * least, Math.max(...panel.curve.map(({ y }) => y)));
    const most = Math.max(top, ...panel.marks.map(({ y }) => y * 1.1), ...panel.dots.map(({ y }) => y * 1.05));
    const plot = Plot.plot({
      ...panelOptions(document, PANEL_HEIGHT),
      x: {
        type: 'log',
        label: 'period (s)',
        labelAnchor: 'center',
        labelArrow: 'none',
        ticks: 5,
        tickFormat: (value: number) => String(value),
      },
      y: { domain: [0, most], label: null, grid: true, ticks: 6 },
      marks: [
        Plot.ruleY([0], { stroke: '#1b1e23' }),
        Plot.lineY(
          panel.curve.filter(({ y }) => y <= most),
          { x: 'x', y: 'y', stroke: '#1b1e23', strokeWidth: 1.4 },
        ),
        Plot.dot(panel.dots, { x: 'x', y: 'y', r: 3.5, stroke: '#5b626c', fill: '#ffffff' }),
        ...panel.marks.flatMap((mark, row) => [
          Plot.ruleX([mark], { x: 'x', stroke: mark.color, strokeDasharray: '4 3' }),
          Plot.dot([mark], { x: 'x', y: 'y', r: 4, fill: mark.color, stroke: '#ffffff' }),
          // Names of neighbours have rows of their own, at the foot, where no curve is.
          Plot.text([mark], {
            x: 'x',
            frameAnchor: 'bottom',
            dx: 5,
            dy: -6 - 14 * row,
            textAnchor: 'start',
            fontSize: 12,
            fill: mark.color,
            text: () => mark.text,
          }),
        ]),
        panelTitle(Plot, panel.title),
      ],
    });
    return placePanel(plot, i, HEAD_HEIGHT, PANEL_HEIGHT);
  });
  const height = HEAD_HEIGHT + Math.ceil(panels.length / 2) * PANEL_HEIGHT + FOOT_HEIGHT;
  return figureSvg({ title, subtitle, height, parts: drawn, foot, footHeight: 18 });
}
