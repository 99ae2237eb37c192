// Figures of several panels, two in a row, as one SVG: what they look like, and the page around them.
import type * as PlotLibrary from './plot-library.ts';

/** Width of a figure, in its own units. */
export const FIGURE_WIDTH = 900;
/** Where its text begins. */
export const FIGURE_LEFT = 30;
const PANEL_WIDTH = 430;
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

export const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);

/** Options that all panels share. Each adds its axes and marks. */
export const panelOptions = (document: unknown, height: number) => ({
  document,
  width: PANEL_WIDTH,
  height,
  marginLeft: 48,
  marginTop: 34,
  marginBottom: 40,
  style: { fontFamily: FONT, fontSize: '12px', color: '#1b1e23', background: 'none' },
  color: { type: 'identity' as const },
});

/** The name of a panel, above it. */
export const panelTitle = (Plot: typeof PlotLibrary, title: string) =>
  Plot.text([title], {
    frameAnchor: 'top-left',
    dx: -40,
    dy: -24,
    textAnchor: 'start',
    fontSize: 13,
    fontWeight: 600,
    text: (d: string) => d,
  });

/** An element of the document that a panel is drawn in, as far as it is used here. */
type Figured = Pick<ReturnType<typeof PlotLibrary.plot>, 'setAttribute' | 'querySelectorAll' | 'outerHTML'>;

/** The SVG of panel i, put into its place below a head of this height. */
export function placePanel(plot: Figured, i: number, headHeight: number, height: number): string {
  plot.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  plot.setAttribute('x', String(FIGURE_LEFT - 10 + (i % 2) * PANEL_WIDTH));
  plot.setAttribute('y', String(headHeight + Math.floor(i / 2) * height));
  // Its style sheet sets only what the attributes here say already, in selectors that simple viewers do not know.
  for (const style of [...plot.querySelectorAll('style')]) style.remove();
  return plot.outerHTML;
}

export interface Figure {
  title: string;
  subtitle: string;
  height: number;
  /** SVG of the legend and of the panels. */
  parts: readonly string[];
  /** Small lines at its foot, the first one so far above the lower edge. */
  foot: readonly string[];
  footHeight: number;
}

/** The whole file. */
export function figureSvg({ title, subtitle, height, parts, foot, footHeight }: Figure): string {
  const footLines = foot.map(
    (line, i) => `<text x="${FIGURE_LEFT}" y="${height - footHeight + i * 15}" font-size="11" fill="#5b626c">${escapeXml(line)}</text>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="${FIGURE_WIDTH}" height="${height}" viewBox="0 0 ${FIGURE_WIDTH} ${height}" font-family="${escapeXml(FONT)}" fill="#1b1e23">
<title>${escapeXml(title)}</title>
<rect width="${FIGURE_WIDTH}" height="${height}" fill="#ffffff"/>
<text x="${FIGURE_LEFT}" y="28" font-size="18" font-weight="600">${escapeXml(title)}</text>
<text x="${FIGURE_LEFT}" y="50" font-size="13" fill="#40464f">${escapeXml(subtitle)}</text>
${parts.join('\n')}
${footLines.join('\n')}
</svg>
`;
}
