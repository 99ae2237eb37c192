// What a person sees while a failover run goes on: on a terminal a block that is redrawn, with a bar per rail; elsewhere a line every half
// second. Events are separate lines that stay.
import type { Writable } from 'node:stream';
import { megabytes, seconds } from './report.ts';
import type { StreamEvent, StreamListener, StreamView } from './stream.ts';

export interface DisplayOptions {
  out: Writable;
  isTerminal: boolean;
  /** Colour is used on a terminal, unless NO_COLOR is set. */
  color: boolean;
  columns: number;
  durationMs: number;
}

const PLAIN_INTERVAL_MS = 500;
const TERMINAL_INTERVAL_MS = 150;
const NAME_COLUMNS_MAX = 34;
const BAR_COLUMNS_MAX = 40;
const BAR_COLUMNS_MIN = 8;
/** Columns of a bar's line that are not the name or the bar: indent, rate, state. */
const OTHER_COLUMNS = 34;

/** Terminal colours of the rails, in the order of the plot's. */
const RAIL_COLORS = [34, 33, 32, 35, 36] as const;

interface Rates {
  rails: number[];
  total: number;
}

export function bar(rate: number, rateMax: number, columns: number): string {
  const filled = rateMax <= 0 ? 0 : Math.min(columns, Math.round((rate / rateMax) * columns));
  return '█'.repeat(filled) + '░'.repeat(columns - filled);
}

export class LiveDisplay implements StreamListener {
  private readonly options: DisplayOptions;
  private drawnLines = 0;
  private last: StreamView | undefined;
  private latest: StreamView | undefined;
  private rates: Rates = { rails: [], total: 0 };
  private rateMax = 0;

  constructor(options: DisplayOptions) {
    this.options = options;
  }

  onView(view: StreamView): void {
    this.latest = view;
    const intervalMs = this.options.isTerminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS;
    if (this.last === undefined) {
      this.last = view;
      return;
    }
    const spanMs = view.elapsedMs - this.last.elapsedMs;
    // Sampling is a little late as often as early.
    if (spanMs < intervalMs * 0.9) return;
    const { last } = this;
    this.rates = {
      rails: view.rails.map((rail, i) => (rail.bytes - last.rails[i].bytes) / 1000 / spanMs),
      total: (view.bytes - last.bytes) / 1000 / spanMs,
    };
    this.rateMax = Math.max(this.rateMax, this.rates.total, ...this.rates.rails);
    this.last = view;
    if (this.options.isTerminal) this.draw();
    else this.write(`${this.plainLine(view)}\n`);
  }

  onEvent(event: StreamEvent): void {
    this.erase();
    this.write(`${this.paint('1', eventLine(event))}\n`);
    if (this.latest !== undefined) this.draw();
  }

  /** Leaves the last block where it is. */
  stop(): void {
    this.drawnLines = 0;
  }

  private plainLine(view: StreamView): string {
    const rails = view.rails.map(
      (rail, i) => `rail ${rail.rail} ${megabytes(this.rates.rails[i] ?? 0).padStart(12)}${rail.isPulled ? ` (${rail.pulledWord})` : ''}`,
    );
    return `${seconds(view.elapsedMs).padStart(9)}  ${rails.join('  ')}  delivered ${megabytes(this.rates.total).padStart(12)}`;
  }

  private draw(): void {
    const { latest, options } = this;
    if (!options.isTerminal || latest === undefined) return;
    this.erase();
    const nameColumns = Math.min(NAME_COLUMNS_MAX, Math.max(9, ...latest.rails.map(({ name }) => name.length)));
    const barColumns = Math.max(BAR_COLUMNS_MIN, Math.min(BAR_COLUMNS_MAX, options.columns - nameColumns - OTHER_COLUMNS));
    const line = (name: string, rate: number, color: string, note: string) =>
      `  ${name.slice(0, nameColumns).padEnd(nameColumns)} ${this.paint(color, bar(rate, this.rateMax, barColumns))} ${megabytes(rate).padStart(12)} ${note}`;
    const lines = latest.rails.map((rail, i) => {
      const color = String(RAIL_COLORS[i % RAIL_COLORS.length]);
      return line(
        rail.name,
        this.rates.rails[i] ?? 0,
        color,
        rail.isPulled ? this.paint('31', `${rail.state}, ${rail.pulledWord}`) : rail.state,
      );
    });
    const time = `${(latest.elapsedMs / 1000).toFixed(1)} of ${(options.durationMs / 1000).toFixed(1)} s`;
    lines.push(line('delivered', this.rates.total, '0', time));
    this.write(lines.map((text) => `${text}\n`).join(''));
    this.drawnLines = lines.length;
  }

  private erase(): void {
    // Up to the first line of the block, and clear from there on.
    if (this.drawnLines > 0) this.write(`\x1b[${this.drawnLines}F\x1b[J`);
    this.drawnLines = 0;
  }

  private paint(code: string, text: string): string {
    return this.options.color ? `\x1b[${code}m${text}\x1b[0m` : text;
  }

  private write(text: string): void {
    this.options.out.write(text);
  }
}

export const eventLine = (event: StreamEvent): string => `${seconds(event.atMs).padStart(9)}  rank ${event.rank}: ${event.text}`;
