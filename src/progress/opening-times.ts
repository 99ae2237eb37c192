// When requests were begun: each takes the next number, which costs nothing, and its time is found when somebody asks.
// Pure: no clock of its own.

/** Requests begun within this time of each other count as begun together. */
const STEP_MS = 100;
/** The time of an old request is known to within this part of its age, so that a few hundred entries are enough for years. */
const ERROR_PART = 1 / 8;
const ENTRIES_MAX = 512;

/** Above the number of the entry before, up to `number`: begun at `atMs`, or a little later. */
interface Entry {
  number: number;
  atMs: number;
}

export class OpeningTimes {
  private entries: Entry[] = [];
  private noted = 0;

  /** At each turn: `number` is that of the newest request. What was begun since the last turn was begun now, since a request asks for a turn. */
  note(number: number, nowMs: number): void {
    if (number === this.noted) return;
    this.noted = number;
    const last = this.entries.at(-1);
    if (last !== undefined && nowMs - last.atMs < STEP_MS) {
      last.number = number;
      return;
    }
    this.entries.push({ number, atMs: nowMs });
    if (this.entries.length > ENTRIES_MAX) this.thin(nowMs);
  }

  /** When the request with this number was begun; undefined when there was no turn since. */
  atMs(number: number): number | undefined {
    const { entries } = this;
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (entries[middle].number < number) low = middle + 1;
      else high = middle;
    }
    return entries[low]?.atMs;
  }

  private thin(nowMs: number): void {
    const { entries } = this;
    const kept: Entry[] = [];
    let last: Entry | undefined;
    for (let i = 0; i < entries.length; i++) {
      const endMs = entries[i + 1]?.atMs ?? nowMs;
      if (last !== undefined && endMs - last.atMs <= (nowMs - last.atMs) * ERROR_PART) last.number = entries[i].number;
      else {
        last = entries[i];
        kept.push(last);
      }
    }
    this.entries = kept;
  }
}
