// The events of a job: numbered, the last ones kept, and each one told to every listener. Times are arguments.
import type { EventType, JobEvent } from './messages.ts';

export type EventListener = (event: JobEvent) => void;
export type EventFields = Readonly<Record<string, unknown>>;

export class EventLog {
  private readonly eventsMax: number;
  private readonly kept: JobEvent[] = [];
  private readonly listeners = new Set<EventListener>();
  private readonly startedAtMs: number;
  private readonly counts = new Map<string, { type: EventType; rank: number | undefined; count: number }>();
  private lastSeq = 0;

  /** `startedAtMs`: the time of day of atMs 0. */
  constructor(startedAtMs: number, eventsMax: number) {
    this.startedAtMs = startedAtMs;
    this.eventsMax = eventsMax;
  }

  add(atMs: number, type: EventType, text: string, fields: EventFields = {}): JobEvent {
    const roundedMs = Math.round(atMs * 10) / 10;
    const time = new Date(this.startedAtMs + roundedMs).toISOString();
    const event: JobEvent = { seq: ++this.lastSeq, time, atMs: roundedMs, type, ...fields, text };
    this.kept.push(event);
    if (this.kept.length > this.eventsMax) this.kept.shift();
    this.count(event);
    for (const listener of [...this.listeners]) listener(event);
    return event;
  }

  /** Events that are still kept with a number above this one. */
  since(seq: number): JobEvent[] {
    const firstSeq = this.kept[0]?.seq ?? 1;
    return this.kept.slice(Math.max(0, seq + 1 - firstSeq));
  }

  get latestSeq(): number {
    return this.lastSeq;
  }

  /** How many of each type there were, by the rank that they name. */
  totals(): { type: EventType; rank: number | undefined; count: number }[] {
    return [...this.counts.values()];
  }

  /** Returns the function that ends it. */
  listen(listener: EventListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private count({ type, rank }: JobEvent): void {
    const key = `${type} ${rank ?? ''}`;
    const entry = this.counts.get(key) ?? { type, rank, count: 0 };
    entry.count++;
    this.counts.set(key, entry);
  }
}
