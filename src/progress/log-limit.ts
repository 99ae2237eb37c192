// Lines for people, so many in a second and no more: a stranger must not be able to fill a disk.
const LINES_PER_SECOND_MAX = 20;

export type LogLevel = 'debug' | 'info' | 'warn';

export class LogLimit {
  private readonly write: (level: LogLevel, text: string) => void;
  private windowMs = Number.NEGATIVE_INFINITY;
  private count = 0;

  constructor(write: (level: LogLevel, text: string) => void) {
    this.write = write;
  }

  log(level: LogLevel, text: string, nowMs: number): void {
    if (nowMs - this.windowMs >= 1000) {
      if (this.count > LINES_PER_SECOND_MAX) this.write('warn', `${this.count - LINES_PER_SECOND_MAX} further lines were left out`);
      this.windowMs = nowMs;
      this.count = 0;
    }
    if (level === 'debug' || ++this.count <= LINES_PER_SECOND_MAX) this.write(level, text);
  }
}
