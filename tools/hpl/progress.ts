// What a person sees while a long factorisation goes on: on a terminal one line that is redrawn, elsewhere a line now and then.
import type { Writable } from 'node:stream';

const TERMINAL_INTERVAL_MS = 200;
const PLAIN_INTERVAL_MS = 5000;
const BAR_COLUMNS = 30;

/** Operations of the first `columns` columns of the elimination of an N x N matrix: 2/3 (N^3 - (N - columns)^3). */
export function operationsUntil(n: number, columns: number): number {
  return (2 / 3) * (n ** 3 - (n - columns) ** 3);
}

export class Progress {
  private readonly out: Writable;
  private readonly isTerminal: boolean;
  private readonly now: () => number;
  private startMs = 0;
  private shownMs = 0;
  private firstColumns = 0;
  private isDrawn = false;

  constructor(out: Writable, isTerminal: boolean, now: () => number = () => performance.now()) {
    this.out = out;
    this.isTerminal = isTerminal;
    this.now = now;
  }

  /** `columns`: those that are done already, of a resumed run. */
  start(columns = 0): void {
    this.startMs = this.now();
    this.shownMs = this.startMs;
    this.firstColumns = columns;
  }

  /** `columns` of N are done. */
  block(n: number, columns: number): void {
    const nowMs = this.now();
    if (nowMs - this.shownMs < (this.isTerminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS)) return;
    this.shownMs = nowMs;
    const all = operationsUntil(n, n);
    const part = operationsUntil(n, columns) / all;
    const did = operationsUntil(n, columns) - operationsUntil(n, this.firstColumns);
    const seconds = (nowMs - this.startMs) / 1000;
    const leftS = did > 0 ? ((all - operationsUntil(n, columns)) / did) * seconds : 0;
    const text = `N=${n}: ${(part * 100).toFixed(0).padStart(3)} % in ${seconds.toFixed(1)} s, ${(did / seconds / 1e9).toFixed(2)} Gflop/s, ${leftS.toFixed(0)} s to go`;
    if (!this.isTerminal) {
      this.out.write(`${text}\n`);
      return;
    }
    const filled = Math.round(part * BAR_COLUMNS);
    this.out.write(`\r\x1b[K${'█'.repeat(filled)}${'░'.repeat(BAR_COLUMNS - filled)} ${text}`);
    this.isDrawn = true;
  }

  /** Takes the line away. */
  end(): void {
    if (this.isDrawn) this.out.write('\r\x1b[K');
    this.isDrawn = false;
  }
}
