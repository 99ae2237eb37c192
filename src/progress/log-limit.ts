// How many lines the engine may log: a stranger must not be able to fill a disk.
const LOGS_PER_SECOND_MAX = 20;

type Level = 'debug' | 'info' | 'warn';

export class LogLimit {
  private windowMs = 0;
  private count = 0;

  line(level: Level, text: string, nowMs: number, log: ((level: Level, text: string) => void) | undefined): void {
    if (nowMs - this.windowMs >= 1000) {
      if (this.count > LOGS_PER_SECOND_MAX) log?.('warn', `${this.count - LOGS_PER_SECOND_MAX} further lines were left out`);
      this.windowMs = nowMs;
      this.count = 0;
    }
    if (level === 'debug' || ++this.count <= LOGS_PER_SECOND_MAX) log?.(level, text);
  }
}
