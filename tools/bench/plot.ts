// Draws a failover run as SVG: what each rail carried over time, stacked, with the moments at which rails were pulled and put back.
import { pulledWord } from './rail-actions.ts';
import { seconds } from './report.ts';
import type { StreamEvent, StreamReport } from './stream.ts';
import { railRates } from './timeline.ts';

/** Told apart by people who do not tell red from green, and in print. */
const RAIL_COLORS = ['#4269d0', '#efb118', '#3ca951', '#ff725c', '#a463f2'] as const;
const WIDTH = 900;
const PLOT_HEIGHT = 346;
const HEAD_HEIGHT = 96;
const FOOT_HEIGHT = 44;
const MARGIN = { left: 70, right: 24, top: 62, bottom: 46 };
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const LABEL_ROWS = 3;
const LABEL_ROW_HEIGHT = 14;
const LABELS_HEIGHT = 56;
/** Beyond this part of the time axis there is no room for a label right of its line. */
const LATE = 0.85;

export interface PlotTexts {
  title: string;
  /** Command and machine, a line each. */
  foot: readonly string[];
}

const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);

interface Mark {
  atMs: number;
  text: string;
  isByHand: boolean;
}

/** What is worth a line in the plot: what was done by hand, and when the receiver lost a rail and used it again. */
function marksOf(events: readonly StreamEvent[], rank: number, pulled: string): Mark[] {
  return events
    .filter((event) => event.rank === rank)
    .flatMap((event): Mark[] => {
      const name = event.rail === undefined ? 'all rails' : `rail ${event.rail}`;
      if (event.type === 'pulled') return [{ atMs: event.atMs, text: `${name} ${pulled}`, isByHand: true }];
      if (event.type === 'put-back') return [{ atMs: event.atMs, text: `${name} put back`, isByHand: true }];
      if (event.type === 'lost') return [{ atMs: event.atMs, text: 'loss seen', isByHand: false }];
      if (event.type === 'restored') return [{ atMs: event.atMs, text: 'used again', isByHand: false }];
      return [];
    });
}

/** The SVG as text. */
export async function failoverPlot(report: StreamReport, texts: PlotTexts): Promise<string> {
  const Plot = await import('./plot-library.ts');
  const { document } = Plot.parseHTML('<!doctype html><html><body></body></html>');
  const bins = railRates(report.samples);
  // Steps: what was measured is a mean over an interval, not a value at a moment. Stacked here, since two values at one moment, the
  // end of one step and the beginning of the next, must not be added up.
  const carried = report.railNames.flatMap((_, rail) =>
    bins.flatMap(({ fromMs, toMs, rates }) => {
      const below = rates.slice(0, rail).reduce((sum, rate) => sum + rate, 0);
      const step = { rail, below, above: below + rates[rail] };
      return [
        { at: fromMs / 1000, ...step },
        { at: toMs / 1000, ...step },
      ];
    }),
  );
  const marks = marksOf(report.events, 0, pulledWord(report.spec.mode));
  const endS = Math.max(report.spec.durationMs, ...bins.map(({ toMs }) => toMs)) / 1000;
  const rateMax = Math.max(1, ...bins.map(({ rates }) => rates.reduce((sum, rate) => sum + rate, 0)));
  const pulled = report.phases.filter((phase) => phase.pulled.length > 0);
  const at = (mark: Mark) => mark.atMs / 1000;
  // Neighbours that are close in time get rows of their own above the plot.
  const rowOf = (mark: Mark) => marks.indexOf(mark) % LABEL_ROWS;
  const plot = Plot.plot({
    document,
    width: WIDTH,
    height: PLOT_HEIGHT,
    marginLeft: MARGIN.left,
    marginRight: MARGIN.right,
    marginTop: MARGIN.top,
    marginBottom: MARGIN.bottom,
    style: { fontFamily: FONT, fontSize: '13px', color: '#1b1e23', background: 'none' },
    x: {
      domain: [0, endS],
      label: 'time after the start (s)',
      labelAnchor: 'center',
      labelArrow: 'none',
      ticks: Math.min(12, Math.ceil(endS)),
    },
    y: { domain: [0, rateMax * 1.04], label: null, grid: true, ticks: 6 },
    color: { type: 'identity' },
    marks: [
      Plot.rect(pulled, {
        x1: (phase) => phase.fromMs / 1000,
        x2: (phase) => phase.toMs / 1000,
        y1: 0,
        y2: rateMax * 1.04,
        fill: '#d0342c',
        fillOpacity: 0.08,
      }),
      Plot.areaY(carried, {
        x: 'at',
        y1: 'below',
        y2: 'above',
        z: 'rail',
        fill: (d) => RAIL_COLORS[d.rail % RAIL_COLORS.length],
        fillOpacity: 0.85,
      }),
      Plot.ruleY([0], { stroke: '#1b1e23' }),
      ...Array.from({ length: LABEL_ROWS }, (_, row) => {
        const inRow = marks.filter((mark) => rowOf(mark) === row);
        const top = -(LABELS_HEIGHT - row * LABEL_ROW_HEIGHT);
        const color = (mark: Mark) => (mark.isByHand ? '#d0342c' : '#5b626c');
        const text = {
          x: at,
          frameAnchor: 'top',
          dy: top,
          fontSize: 12,
          fill: color,
          text: (mark: Mark) => `${mark.text} ${seconds(mark.atMs)}`,
        } as const;
        const isLate = (mark: Mark) => at(mark) > endS * LATE;
        return [
          Plot.ruleX(inRow, {
            x: at,
            insetTop: top,
            stroke: color,
            strokeWidth: (mark) => (mark.isByHand ? 1.6 : 1),
            strokeDasharray: '4 3',
          }),
          Plot.text(
            inRow.filter((mark) => !isLate(mark)),
            { ...text, dx: 4, textAnchor: 'start' },
          ),
          Plot.text(inRow.filter(isLate), { ...text, dx: -4, textAnchor: 'end' }),
        ];
      }).flat(),
      Plot.text(['MB/s'], { frameAnchor: 'top-left', dx: -MARGIN.left + 8, dy: -20, textAnchor: 'start', fontSize: 13, text: (d) => d }),
    ],
  });
  plot.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  plot.setAttribute('y', String(HEAD_HEIGHT));
  // Its style sheet sets only what the attributes here say already, in selectors that simple viewers do not know.
  for (const style of [...plot.querySelectorAll('style')]) style.remove();
  return frame(report, texts, plot.outerHTML);
}

function frame(report: StreamReport, texts: PlotTexts, inner: string): string {
  const height = HEAD_HEIGHT + PLOT_HEIGHT + FOOT_HEIGHT;
  const { spec, findings } = report;
  const verdict = report.problems.length === 0 ? 'nothing lost, doubled or reordered' : `FAILED: ${report.problems[0]}`;
  const subtitle = `${findings.received.messages.toLocaleString('en-US')} messages of ${spec.sizeBytes.toLocaleString('en-US')} bytes: ${verdict}; worst gap ${report.worstGapMs.toFixed(0)} ms`;
  let x = MARGIN.left;
  const legend = report.railNames.map((name, rail) => {
    const item = `<rect x="${x}" y="66" width="14" height="14" fill="${RAIL_COLORS[rail % RAIL_COLORS.length]}" fill-opacity="0.85"/><text x="${x + 20}" y="78" font-size="13">${escapeXml(name)}</text>`;
    x += 44 + name.length * 7.6;
    return item;
  });
  legend.push(
    `<rect x="${x}" y="66" width="14" height="14" fill="#d0342c" fill-opacity="0.12"/><text x="${x + 20}" y="78" font-size="13">${pulledWord(spec.mode)}</text>`,
  );
  const foot = texts.foot.map(
    (line, i) => `<text x="${MARGIN.left}" y="${height - 28 + i * 15}" font-size="11" fill="#5b626c">${escapeXml(line)}</text>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="${escapeXml(FONT)}" fill="#1b1e23">
<title>${escapeXml(texts.title)}</title>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
<text x="${MARGIN.left}" y="28" font-size="18" font-weight="600">${escapeXml(texts.title)}</text>
<text x="${MARGIN.left}" y="50" font-size="13" fill="#40464f">${escapeXml(subtitle)}</text>
${legend.join('\n')}
${inner}
${foot.join('\n')}
</svg>
`;
}
