// Lines for people about what strangers do: equal lines are printed once, and after a window of time a line says how often they came again.

/** Different lines in one window; what comes beyond is counted together. */
const KINDS_MAX = 20;

export class RepeatedLines {
  private readonly say: (text: string) => void;
  private readonly windowMs: number;
  /** Times that a line came in this window, by what is equal in it. */
  private readonly counts = new Map<string, { text: string; again: number }>();
  private others = 0;
  private beganMs = Number.NEGATIVE_INFINITY;

  constructor(say: (text: string) => void, windowMs: number) {
    this.say = say;
    this.windowMs = windowMs;
  }

  /** `kind`: what is equal in lines that differ in an address or a port. */
  line(nowMs: number, kind: string, text: string): void {
    this.tick(nowMs);
    if (this.counts.size === 0) this.beganMs = nowMs;
    const known = this.counts.get(kind);
    if (known !== undefined) known.again++;
    else if (this.counts.size >= KINDS_MAX) this.others++;
    else {
      this.counts.set(kind, { text: kind, again: 0 });
      this.say(text);
    }
  }

  /** Called now and then: tells what was counted once the window is over. */
  tick(nowMs: number): void {
    if (nowMs - this.beganMs >= this.windowMs) this.flush();
  }

  /** Tells what was counted, as at the end. */
  flush(): void {
    const seconds = Math.round(this.windowMs / 1000);
    for (const { text, again } of this.counts.values()) if (again > 0) this.say(`${text} (${again} more in ${seconds} s)`);
    if (this.others > 0) this.say(`${this.others} more lines of other kinds in ${seconds} s`);
    this.counts.clear();
    this.others = 0;
  }
}
