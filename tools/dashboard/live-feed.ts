// What the open pages are sent: a snapshot first, then, a few times a second, the changes. A page that does not keep up is skipped, and
// gets a new snapshot when it has caught up.
import type { WebSocket } from 'ws';
import type { RailControl } from './control.ts';
import type { ControlTarget, PageMessage, WaitsView } from './messages.ts';
import type { JobModel } from './model.ts';

const UPDATE_MS_MIN = 100;
/** Above the first a page is skipped, below the second it gets a snapshot. */
const BACKLOG_BYTES_MAX = 8 * 1024 * 1024;
const BACKLOG_BYTES_LOW = 1024 * 1024;
/** Events that a new page is shown. */
const SNAPSHOT_EVENTS_MAX = 1000;

interface Page {
  ws: WebSocket;
  /** Last event that it was sent. */
  seq: number;
  isBehind: boolean;
}

export class LiveFeed {
  private readonly model: JobModel;
  private readonly control: RailControl | undefined;
  private readonly canAskWaits: boolean;
  private readonly pages = new Set<Page>();
  private timer: NodeJS.Timeout | undefined;
  private targetsText = '[]';
  private lastWaits: (WaitsView & { atMs: number }) | null = null;
  private waitsChanged = false;

  constructor(model: JobModel, control: RailControl | undefined, canAskWaits: boolean) {
    this.model = model;
    this.control = control;
    this.canAskWaits = canAskWaits;
  }

  start(): void {
    this.timer = setInterval(() => this.update(), Math.max(UPDATE_MS_MIN, this.model.job.intervalMs));
    this.timer.unref();
  }

  /** The last update goes out now. */
  stop(): void {
    clearInterval(this.timer);
    this.update();
  }

  add(ws: WebSocket): void {
    // What changed while nobody looked is in the snapshot.
    if (this.pages.size === 0) this.forgetChanges();
    const page = { ws, seq: 0, isBehind: false };
    this.pages.add(page);
    this.sendSnapshot(page);
  }

  remove(ws: WebSocket): void {
    for (const page of this.pages) if (page.ws === ws) this.pages.delete(page);
  }

  /** A report of who waits for whom. */
  waits(report: WaitsView): void {
    this.lastWaits = { ...report, atMs: this.model.nowMs() };
    this.waitsChanged = true;
  }

  private targets(): readonly ControlTarget[] {
    return this.control?.targets() ?? [];
  }

  private forgetChanges(): void {
    this.model.takeChanged();
    this.model.history.takeChanged();
    this.waitsChanged = false;
    this.targetsText = JSON.stringify(this.targets());
  }

  private sendSnapshot(page: Page): void {
    const { model } = this;
    const { latestSeq } = model.log;
    const message: PageMessage = {
      type: 'snapshot',
      nowMs: model.nowMs(),
      job: model.job,
      ranks: model.ranks.map(({ view }) => view),
      rails: [...model.rails.values()].map(({ view }) => view),
      events: model.log.since(latestSeq - SNAPSHOT_EVENTS_MAX),
      history: model.history.all(),
      targets: this.targets(),
      waits: this.lastWaits,
      canAskWaits: this.canAskWaits,
    };
    page.seq = latestSeq;
    page.isBehind = false;
    page.ws.send(JSON.stringify(message));
  }

  private update(): void {
    if (this.pages.size === 0) return;
    const common = this.commonChanges();
    const bySeq = new Map<number, string>();
    const { latestSeq } = this.model.log;
    for (const page of this.pages) {
      const { bufferedAmount } = page.ws;
      if (page.isBehind) {
        if (bufferedAmount < BACKLOG_BYTES_LOW) this.sendSnapshot(page);
        continue;
      }
      if (bufferedAmount > BACKLOG_BYTES_MAX) {
        page.isBehind = true;
        continue;
      }
      // Pages that look at the same time get the same text.
      let text = bySeq.get(page.seq);
      if (text === undefined) {
        const events = this.model.log.since(page.seq);
        text = JSON.stringify({ ...common, ...(events.length === 0 ? {} : { events }) });
        bySeq.set(page.seq, text);
      }
      page.seq = latestSeq;
      page.ws.send(text);
    }
  }

  private commonChanges(): Extract<PageMessage, { type: 'update' }> {
    const { ranks, rails, job } = this.model.takeChanged();
    const history = this.model.history.takeChanged();
    const targets = this.targets();
    const targetsText = JSON.stringify(targets);
    const targetsChanged = targetsText !== this.targetsText;
    this.targetsText = targetsText;
    const waits = this.waitsChanged ? this.lastWaits : null;
    this.waitsChanged = false;
    return {
      type: 'update',
      nowMs: this.model.nowMs(),
      ...(job === undefined ? {} : { job }),
      ...(ranks.length === 0 ? {} : { ranks }),
      ...(rails.length === 0 ? {} : { rails }),
      ...(history.length === 0 ? {} : { history }),
      ...(targetsChanged ? { targets } : {}),
      ...(waits === null ? {} : { waits }),
    };
  }
}
